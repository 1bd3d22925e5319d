"""Any setting of any part can be varied, and each table and figure shows it; a row of the paper's
tables is a partial identity, which no method with another part falls under.
"""

import json
from pathlib import Path

import pytest
from reporting_inputs import (
    CONFIG,
    SEED,
    paper_study,
    random_results,
    read_csv,
    small_study,
    write_own_table,
)

from grpo_replay.reporting import labels
from grpo_replay.reporting.figures import accuracy, canvas, curves, problems, replay
from grpo_replay.reporting.numbers.conditions import (
    age_series,
    all_conditions,
    main_conditions,
)
from grpo_replay.reporting.paper.accuracy import table01
from grpo_replay.reporting.paper.design_space import METHOD, NO_REPLAY, replayed
from grpo_replay.reporting.paper.printed_cells import tables_of
from grpo_replay.reporting.tables.source import Source
from grpo_replay.results.scores import read_scores
from grpo_replay.study.axes import ALPHA, RATIO, TAU_MAX
from grpo_replay.study.cells import expand
from grpo_replay.study.config import Study

PODS = {"select": {"kind": "max_variance", "keep": 2}}
NAMES = ["base", "GRPO", "GRPO, loss.high 0.4", "pods", "pods, select.keep 3", "ours"]


def varied_study() -> Study:
    """GRPO with two clips, PODS that keeps 2 or 3, and `ours` at two ages."""
    methods = small_study().model_dump(mode="json")["methods"]
    block = {"scales": ["s"], "seeds": [SEED]}
    axes = {"grpo": {"loss.high": [0.28, 0.4]}, "pods": {"select.keep": [2, 3]}}
    axes["ours"] = {TAU_MAX: [1, 10]}
    return small_study(
        methods={"grpo": {}, "pods": PODS, "ours": methods["ours"]},
        grid=[{**block, "methods": [name], "vary": vary} for name, vary in axes.items()],
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("varied")
    random_results(varied_study(), folder)
    return folder


def test_the_main_table_has_a_row_for_whatever_is_varied(results, tmp_path):
    write_own_table("main", varied_study(), results, tmp_path / "main")
    rows = read_csv(tmp_path / "main.csv")
    assert [row["method"] for row in rows] == ["chance", *NAMES]
    # A GRPO with another clip is compared with GRPO as the study defines it.
    tested = {row["method"]: row["avg_p_problems"] != "" for row in rows}
    assert tested["GRPO, loss.high 0.4"] and tested["pods"] and not tested["GRPO"]


def test_scores_hold_what_a_cell_varies(results):
    varied = read_scores(results).groupby("cell")["varied"].first()
    assert {cell: json.loads(text) for cell, text in varied.items()} == {
        name: cell.varied for name, cell in expand(varied_study()).items()
    }
    assert varied["s/pods-select.keep3-seed42"] == '{"select.keep": 3}'


def test_several_varied_settings_stand_sorted():
    study = small_study(
        grid=[
            {
                "scales": ["s"],
                "methods": ["ours"],
                "seeds": [SEED],
                "vary": {TAU_MAX: [30], "loss.high": [0.4], RATIO: [1.0], ALPHA: [1.0]},
            }
        ]
    )
    (condition,) = (c for c in all_conditions(study) if c.method == "ours")
    assert condition.name == "ours, loss.high 0.4, α 1, r 1, τ_max 30"
    assert condition.text == "τ_max 30, r 1, α 1, loss.high 0.4"
    assert condition.name_without(TAU_MAX, RATIO, ALPHA) == "ours, loss.high 0.4"


def drawn(monkeypatch, draw, folder: Path, results: Path):
    """The axes of a figure."""
    figures = []

    class Kept(canvas.Figure):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            figures.append(self)

    monkeypatch.setattr(canvas, "Figure", Kept)
    draw(varied_study(), results, folder / "figure")
    return figures[-1]


def legend(figure) -> dict[str, object]:
    handles = {}
    for axes in figure.axes:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    return handles


@pytest.mark.parametrize(
    ("draw", "without"),
    [(problems.gain_figure, {"base", "GRPO"}), (problems.pass_at_k_figure, set())],
)
def test_a_legend_names_what_is_varied(draw, without, results, tmp_path, monkeypatch):
    found = legend(drawn(monkeypatch, draw, tmp_path, results))
    assert list(found) == [name for name in NAMES if name not in without]


def test_the_accuracy_figure_has_a_row_for_each(results, tmp_path, monkeypatch):
    figure = drawn(monkeypatch, accuracy.accuracy_figure, tmp_path, results)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == NAMES


def test_the_ages_of_replay_stand_under_all_that_is_varied(results, tmp_path, monkeypatch):
    figure = drawn(monkeypatch, replay.replay_ages_figure, tmp_path, results)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 2 and r"$\tau_\mathrm{max}$ 1, r 0.5" in titles[0]


def test_conditions_of_one_method_look_different_and_alike_everywhere():
    study = varied_study()
    (group,) = curves.method_groups(study)
    styles = {line.label: line.style for line in group.lines}
    looks = {name: (style.colour, style.line, style.marker) for name, style in styles.items()}
    assert len(set(looks.values())) == len(looks) == 5
    assert looks["GRPO"][0] == looks["GRPO, loss.high 0.4"][0] == labels._STYLES["grpo"].colour
    (again,) = curves.condition_lines(study, [group.lines[1].condition])
    assert again == group.lines[1]


def test_ages_are_a_series_for_each_further_setting():
    block = {"scales": ["s"], "seeds": [SEED], "methods": ["ours"]}
    vary = {TAU_MAX: [1, 10], "loss.high": [0.28, 0.4]}
    study = small_study(grid=[{**block, "vary": vary}])
    series = age_series(study, "ours")
    assert [(s.name, [c.axes.tau_max for c in s.conditions]) for s in series] == [
        ("ours", [1, 10]),
        ("ours, loss.high 0.4", [1, 10]),
    ]
    titles = [group.title for group in curves.age_groups(study)]
    assert titles == ["ours, scale s", "ours, loss.high 0.4, scale s"]


def test_a_method_with_another_part_is_no_row_of_the_paper():
    study = varied_study()
    source = Source(study, None, None, CONFIG)
    assert source.at("s", NO_REPLAY).method == "grpo" and source.at("s", NO_REPLAY).is_default
    held = [c.name for c in all_conditions(study) if NO_REPLAY.holds(c.cells[0])]
    assert held == ["GRPO"]
    pods = expand(study)["s/pods-seed42"]
    assert tables_of(pods) == []
    renamed = small_study(methods={"grpo": PODS}, grid=[{**_block(), "methods": ["grpo"]}])
    assert Source(renamed, None, None, CONFIG).at("s", NO_REPLAY).cells == ()


def _block() -> dict:
    return {"scales": ["s"], "seeds": [SEED]}


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({}, True),
        ({TAU_MAX: 3, RATIO: 0.25, ALPHA: 1.0, "replay.warmup": 5}, True),  # free
        ({"replay.priority.age_decay": 20.0}, False),
        ({"replay.priority.eps": 0.5}, False),
        ({"replay.unit": "rollout", "loss.dual_clip": 3.0}, False),
        ({"replay.compose": "pool"}, False),
        ({"advantage.eps": 0.1}, False),
    ],
)
def test_what_a_row_does_not_name_is_at_its_default_or_free(change, held):
    vary = {path: [value] for path, value in change.items()}
    study = small_study(grid=[{**_block(), "methods": ["ours"], "vary": vary}])
    (cell,) = (c for c in expand(study).values() if c.trained)
    assert METHOD.holds(cell) == held
    assert not NO_REPLAY.holds(cell)


def test_a_row_may_name_what_another_leaves_free():
    (cell,) = (
        c for c in expand(paper_study()).values() if c.cell == "1.7B/ours-replay.tau_max30-seed42"
    )
    assert METHOD.at({TAU_MAX: 30}).holds(cell) and not METHOD.at({TAU_MAX: 10}).holds(cell)
    assert METHOD.at({TAU_MAX: 30, RATIO: 0.5, ALPHA: 0.5}).holds(cell)
    uniform = expand(paper_study())["1.7B/uniform-query-seed42"]
    assert replayed("anchored", "query", "uniform", {ALPHA: 0.0}).holds(uniform)
    assert not replayed("anchored", "query", "uniform", {ALPHA: 0.5}).holds(uniform)


def test_table_1_names_a_varied_method_by_the_papers_word(results):
    source = Source(varied_study(), read_scores(results), results, CONFIG)
    names = [row.labels["method"] for row in table01(source).rows]
    assert names == ["GRPO", "uniform (pool)", "σ_g (pool)", "ours"]
    assert [c.name for c in main_conditions(varied_study(), "s")] == NAMES
