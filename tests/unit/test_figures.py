"""Every figure is drawn from real files: whole, with missing cells, with none, and repeated; what
it shows equals numbers made by hand.
"""

import json
import shutil
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text
from PIL import Image
from reporting_inputs import (
    random_results,
    replaying,
    small_study,
    write_cell,
    write_metrics,
    write_replay,
)

from grpo_replay.reporting import labels
from grpo_replay.reporting.figures import (
    accuracy,
    canvas,
    curves,
    diagnostics,
    problems,
    replay,
    training,
)
from grpo_replay.reporting.figures.catalogue import FIGURES
from grpo_replay.reporting.numbers.conditions import all_conditions, main_conditions
from grpo_replay.results.scores import collect_scores, read_scores
from grpo_replay.results.trained_rows import reuse_counts, trained_rows
from grpo_replay.results.training_metrics import log_ratio_by_age
from grpo_replay.statistics.intervals import stratified_interval
from grpo_replay.study.cells import expand

DRAWING = (
    *(accuracy, curves, diagnostics, problems, replay),
    training,
)
FORMATS = ("png", "svg", "pdf")
OURS = "s/ours-seed42"


@contextmanager
def kept_axes():
    """Collect the (rows, columns) axes of every figure that is drawn meanwhile."""
    kept, original = [], curves.panels

    @contextmanager
    def keeping(*args, **kwargs):
        with original(*args, **kwargs) as (figure, axes):
            kept.append(axes)
            yield figure, axes

    with pytest.MonkeyPatch.context() as patch:
        for module in DRAWING:
            patch.setattr(module, "panels", keeping)
        yield kept


def drawn(name, study, results, stem):
    """Draw one figure and return its axes."""
    with kept_axes() as kept:
        FIGURES[name](study, results, stem)
    return kept[0]


def shown(axes):
    """The panels of a figure that are not switched off."""
    return [panel for panel in axes.flat if panel.axison]


def texts(panel):
    return [text.get_text() for text in panel.texts]


def curve(panel, label):
    """The x and y values of the line of that name."""
    line = {line.get_label(): line for line in panel.get_lines()}[label]
    return list(line.get_xdata()), list(line.get_ydata())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    random_results(small_study(), folder)
    return folder


@pytest.fixture(scope="module")
def drawings(results):
    """The axes of each figure of whole results, drawn once as `<name>/one`."""
    return {name: drawn(name, small_study(), results, results / name / "one") for name in FIGURES}


@pytest.fixture
def small(tmp_path):
    """One finished pair of cells, GRPO and ours at s, whose numbers are known."""
    study = small_study()
    cells = expand(study)
    graded = {
        "s/grpo-seed42": {
            "easy": [[1, 0], [0, 0], [1, 1], [0, 0]],
            "hard": [[0, 0], [1, 0], [0, 0], [0, 0], [0, 0]],
        },
        OURS: {
            "easy": [[1, 1], [0, 1], [1, 1], [0, 0]],
            "hard": [[1, 0], [1, 1], [0, 0], [0, 1], [0, 0]],
        },
    }
    for cell, verdicts in graded.items():
        folder = write_cell(study, tmp_path, cells[cell], verdicts)
        write_metrics(folder, [_record(step) for step in range(1, 7)])
    rows = [(1, 0, "a"), (1, 0, "b"), (2, 1, "a"), (3, 2, "a"), (3, 1, "c")]
    write_replay(tmp_path / "cells" / OURS, rows)
    collect_scores(study, tmp_path, tmp_path / "scores.parquet")
    return tmp_path


def _record(step):
    """Lengths 10, 20, ..., three groups of four a step, one skipped update in step 2."""
    return {
        "step": step,
        "reward/mean": step / 10,
        "completions/mean_length": 10.0 * step,
        "groups/count": 3,
        "survivors/rollouts": 1,
        "updates/skipped": int(step == 2),
        "replay/age_histogram": {"0": 4, "3": step},
        "ratio/fresh_mean": 1.0,
        "ratio/replay_mean": 1.02,
        "ratio/replay_effective_sample_share": 0.5,
        "ratio/log_ratio_by_age": {"0": 0.0, "3": -0.1 * step},
        "perf/generation_seconds": 30.0,
        "perf/scoring_seconds": 20.0,
        "perf/update_seconds": 10.0,
        "perf/step_seconds": 60.0,
    }


# --- all figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_and_repeats_byte_for_byte(results, drawings, name):
    FIGURES[name](small_study(), results, results / name / "two")
    for suffix in FORMATS:
        first = results / name / f"one.{suffix}"
        assert first.read_bytes() == (results / name / f"two.{suffix}").read_bytes()
    with Image.open(results / name / "one.png") as picture:
        assert picture.size[0] >= 700 and picture.size[1] >= 380
        assert picture.convert("L").getextrema()[1] == 255
    files = sorted(path.name for path in (results / name).iterdir())
    assert files == sorted(f"{stem}.{suffix}" for stem in ("one", "two") for suffix in FORMATS)


@pytest.mark.parametrize("name", FIGURES)
def test_panels_without_finished_cells_say_so(tmp_path, name):
    random_results(small_study(), tmp_path, left_out=tuple(expand(small_study())))
    axes = drawn(name, small_study(), tmp_path, tmp_path / name)
    for panel in shown(axes):
        assert "no finished cell" in texts(panel)
    assert (tmp_path / f"{name}.png").stat().st_size > 0


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_labelled(drawings, name):
    axes = drawings[name]
    assert all(panel.get_ylabel() for panel in axes[:, 0])
    assert all(panel.get_xlabel() for panel in shown(axes[-1:]))


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_reaches_over_the_edge(drawings, name):
    figure = drawings[name][0, 0].figure
    for dpi in (72, canvas.DPI):  # of SVG and PDF, and of PNG: ticks and so labels may differ
        figure.dpi = dpi
        for _ in range(2):  # as often as when a file is written: ticks follow the panel's size
            figure.draw_without_rendering()
        whole, page = figure.get_tightbbox(), figure.bbox_inches
        assert whole.x0 >= -0.01 and whole.y0 >= -0.01
        assert whole.x1 <= page.width + 0.01 and whole.y1 <= page.height + 0.01


@pytest.mark.parametrize("name", FIGURES)
def test_title_says_how_many_seeds(drawings, name):
    assert "n=1 training seed" in drawings[name][0, 0].figure.get_suptitle()


def test_long_names_stay_on_the_page(tmp_path):
    spec = replaying("anchored", "rollout", "uniform")
    methods = {f"anchored-uniform-rollout-{i}": spec for i in range(6)}
    block = {"scales": ["s"], "seeds": [1]}
    study = small_study(
        title="A long title of a study " * 4,
        methods=methods,
        grid=[{"methods": list(methods), **block}],
    )
    random_results(study, tmp_path, left_out=("s/base",))
    for name in ("groups", "gain", "accuracy", "method_tau_max"):
        test_nothing_reaches_over_the_edge(
            {name: drawn(name, study, tmp_path, tmp_path / name)}, name
        )


@pytest.mark.parametrize("title", ["$$ at 5 $", "$x_$", "100 $ and 50 $", r"a\$b ^_{", "$", "%&#"])
def test_a_title_is_shown_as_it_is_written(tmp_path, title):
    """Beside symbols of our own too; matplotlib raises for what is no formula between dollars."""
    study = small_study(title=title)
    for benchmark in study.benchmarks.values():
        object.__setattr__(benchmark, "title", title)
    random_results(study, tmp_path)
    axes = drawn("gain", study, tmp_path, tmp_path / "gain")
    parser = MathTextParser("agg")
    shown = [axes[0, 0].figure.get_suptitle().splitlines()[1], axes[0, 0].get_yticklabels()[0]]
    for text in (shown[0], shown[1].get_text(), f"{shown[0]} {labels.figure_text('τ_max')}"):
        parser.parse(text)
    plain, is_math = Text(text=shown[1].get_text())._preprocess_math(shown[1].get_text())
    assert (plain, is_math) == (title, False)


def test_a_studys_own_methods_are_written_with_the_symbols_of_the_tables(tmp_path):
    own = replaying("anchored", "query", "sigma_g")
    block = {"scales": ["s"], "seeds": [1]}
    study = small_study(
        methods={"grpo": {}, "sigma_g-query": own},
        grid=[{"methods": ["grpo", "sigma_g-query"], **block}],
    )
    random_results(study, tmp_path)
    for name in FIGURES:
        axes = drawn(name, study, tmp_path, tmp_path / name)
        found = [text.get_text() for text in axes[0, 0].figure.findobj(Text)]
        assert not [text for text in found if "sigma_g" in text.replace(r"$\sigma_g$", "")], name
        own_named = any(r"$\sigma_g$-query" in text for text in found)
        assert own_named == (name not in ("figure2", "figure3", "tau_max")), name
    assert labels.method_name("pool-rollout-abs_advantage") == "pool-rollout-|A|"


def test_few_missing_cells_are_named(results):
    settings = all_conditions(small_study())
    scores = read_scores(results)
    title = curves.heading(small_study(), scores[scores["cell"] != OURS], settings, "Title")
    assert title.splitlines()[-1] == f"not finished: {OURS}"


def test_a_study_without_replay_draws_every_figure(tmp_path):
    block = {"scales": ["s"], "seeds": [1]}
    study = small_study(methods={"grpo": {}}, grid=[{"methods": ["grpo"], **block}])
    random_results(study, tmp_path)
    for name in ("figure3", "tau_max", "replay_ages", "reuse", "log_ratio", "buffer"):
        for panel in shown(drawn(name, study, tmp_path, tmp_path / name)):
            assert any(text.startswith("the study has no") for text in texts(panel))


def test_several_seeds_are_a_mean_and_a_band(tmp_path):
    study = small_study(grid=[{"scales": ["s"], "methods": ["grpo"], "seeds": [1, 2]}])
    random_results(study, tmp_path)
    for seed, length in ((1, 10.0), (2, 30.0)):
        folder = tmp_path / "cells" / f"s/grpo-seed{seed}"
        write_metrics(folder, [{"step": 1, "completions/mean_length": length}])
    panel = drawn("figure2", study, tmp_path, tmp_path / "figure2")[0, 0]
    assert curve(panel, "GRPO") == ([1.0], [20.0])
    assert panel.collections[0].get_paths()[0].get_extents().y1 == 30.0
    assert "n=2 training seeds" in panel.figure.get_suptitle()


# --- looks ----------------------------------------------------------------------------------------


def test_a_method_looks_the_same_everywhere(drawings):
    expected = labels.method_style(small_study(), "ours").colour
    point = drawings["tau_max"][0, 0].containers[0].lines[0]
    assert point.get_color() == expected
    for name in ("training", "figure2", "pass_at_k", "learning", "reuse", "drift", "groups"):
        lines = {line.get_label(): line for line in drawings[name][0, 0].get_lines()}
        assert lines["ours"].get_color() == expected


def test_styles_differ_in_more_than_colour():
    study = small_study()
    styles = [labels.method_style(study, name) for name in ("base", *study.methods)]
    assert len({style.colour for style in styles}) == len(styles)
    assert len({style.marker for style in styles}) == len(styles)


def test_no_age_looks_like_a_method():
    study = small_study()
    methods = {labels.method_style(study, name).colour for name in ("base", *study.methods)}
    ages = [labels.age_style(position).colour for position in range(4)]
    assert len(set(ages)) == 4 and not methods & set(ages)


# --- accuracy -------------------------------------------------------------------------------------


def test_points_are_the_numbers_of_the_scores(results, drawings):
    scores = read_scores(results)
    mean = scores[scores["cell"] == "s/ours-replay.tau_max60-seed42"]["avg_at_k"].mean()
    line = drawings["tau_max"][0, 0].containers[0].lines[0]
    assert line.get_ydata()[3] == pytest.approx(mean)


def test_heat_map_numbers_dashes_and_blanks(small):
    panel = drawn("method_tau_max", small_study(), small, small / "heat")[0, 1]
    cells = {text.get_position(): text.get_text() for text in panel.texts}
    # Columns: no replay, 1, 10, 30, 60; rows: base, GRPO, uniform, sigma_g, ours. ours: 5/8 and
    # 4/10 are right; GRPO: 3/8 and 1/10.
    assert cells[2, 4] == "51.2" and cells[0, 1] == "23.8"
    assert cells[0, 0] == cells[2, 2] == cells[1, 4] == "–"
    assert (1, 2) not in cells and (2, 1) not in cells


def test_pass_at_k_points_are_unbiased_estimates(small):
    x, y = curve(drawn("pass_at_k", small_study(), small, small / "pass")[0, 1], "ours")
    # pass@1: 5/8 and 4/10; pass@2: 3 of 4 and 3 of 5 problems.
    assert x == [1, 2] and y == pytest.approx([51.25, 67.5])


def test_pass_at_k_has_a_row_for_each_number_of_samples(tmp_path):
    clock = {"source": "clock", "hours": 10, "max_step": 3, "steps": 1, "seed": 1}
    benchmarks = {
        "b2": {**clock, "title": "B2", "n_problems": 2, "k": 2},
        "b4": {**clock, "title": "B4", "n_problems": 2, "k": 4},
    }
    study = small_study(benchmarks=benchmarks)
    graded = {"b2": np.array([[1, 0], [0, 0]]), "b4": np.array([[1, 0, 0, 0], [0, 0, 0, 0]])}
    write_cell(study, tmp_path, expand(study)["s/grpo-seed42"], graded)
    collect_scores(study, tmp_path, tmp_path / "scores.parquet")
    axes = drawn("pass_at_k", study, tmp_path, tmp_path / "pass")
    assert curve(axes[0, 1], "GRPO")[1] == pytest.approx([(25 + 12.5) / 2, (50 + 25) / 2])
    assert curve(axes[1, 1], "GRPO")[1] == pytest.approx([12.5, 25.0, 37.5, 50.0])


def test_accuracy_against_length_has_contours_through_grpo(small):
    panel = drawn("accuracy_length", small_study(), small, small / "length")[0, 1]
    points = {c.get_label(): c.lines[0].get_xydata()[0].tolist() for c in panel.containers}
    assert points == {"GRPO": [10.0, 23.75], "ours": [10.0, 51.25]}
    contours = panel.collections[-1]
    zero = contours.get_paths()[list(contours.levels).index(0.0)].vertices
    nearest = zero[np.argmin(np.abs(zero[:, 0] - 10.0))]
    assert nearest[1] == pytest.approx(23.75, abs=0.5)


def test_points_name_what_differs_from_the_defaults(drawings):
    found = [label for label in texts(drawings["accuracy_length"][0, 1]) if "tau" in label]
    assert len(found) == 3 and not any("10" in label for label in found)


def test_a_uniform_priority_has_no_alpha_to_differ_in():
    block = {"scales": ["s"], "seeds": [1]}
    varied = {"replay.tau_max": [30], "replay.ratio": [1.0]}
    replaying = {"methods": ["uniform-pool", "ours"], "vary": varied, **block}
    study = small_study(grid=[{"methods": ["grpo"], **block}, replaying])
    found = {s.method: labels.varied_name(s.varied) for s in all_conditions(study)}
    assert found == {
        "base": "",
        "grpo": "",
        "uniform-pool": "r 1, τ_max 30",
        "ours": "r 1, τ_max 30",
    }


def test_gain_is_the_paired_difference(small):
    study, scores = small_study(), read_scores(small)
    settings = {s.method: s for s in main_conditions(study, "s")}
    number = problems.gain_number(scores, settings["ours"], settings["grpo"], None)
    ours = [100, 50, 100, 0, 50, 100, 0, 50, 0]
    grpo = [50, 0, 100, 0, 0, 50, 0, 0, 0]
    differences = np.subtract(ours, grpo)
    interval = stratified_interval(differences, ["easy"] * 4 + ["hard"] * 5, proportion=False)
    assert number.value == pytest.approx(27.5)
    assert (number.low, number.high) == pytest.approx((interval.low, interval.high))
    panel = drawn("gain", study, small, small / "gain")[0, 1]
    values = [container.lines[0].get_xdata()[0] for container in panel.containers]
    assert values == pytest.approx([25.0, 30.0, 27.5])


@pytest.mark.parametrize("finished", ["grpo", "ours"])
def test_a_gain_without_a_pair_says_so(tmp_path, finished):
    study = small_study()
    left_out = [name for name, c in expand(study).items() if c.method not in ("base", finished)]
    random_results(study, tmp_path, left_out=tuple(left_out))
    for panel in shown(drawn("gain", study, tmp_path, tmp_path / "gain")):
        assert texts(panel) == ["no finished cell to compare"]


# --- training -------------------------------------------------------------------------------------


def test_figure2_is_the_rolling_mean_of_grpo_and_ours(small):
    panel = drawn("figure2", small_study(), small, small / "figure2")[0, 1]
    assert {line.get_label() for line in panel.get_lines()} == {"GRPO", "ours"}
    assert curve(panel, "ours") == ([1, 2, 3, 4, 5, 6], [10, 15, 20, 25, 30, 40])


def test_figure3_has_fresh_and_replayed_panels_and_a_line_a_tau_max(drawings):
    axes = drawings["figure3"]
    assert axes.shape == (1, 2)
    assert "fresh" in axes[0, 0].get_ylabel() and "replayed" in axes[0, 1].get_ylabel()
    assert len(axes[0, 0].get_lines()) == len(axes[0, 1].get_lines()) == 4


def test_learning_curves_count_rollouts_gradient_steps_and_minutes(small):
    panels = drawn("learning", small_study(), small, small / "learning")[1]
    # Three groups of four rollouts a step; two updates a step but for one skipped; a minute a step.
    assert curve(panels[0], "ours")[0] == [12, 24, 36, 48, 60, 72]
    assert curve(panels[1], "ours")[0] == [2, 3, 5, 7, 9, 11]
    assert curve(panels[2], "ours")[0] == [1, 2, 3, 4, 5, 6]
    assert curve(panels[0], "ours")[1][0] == pytest.approx(0.1)


def test_missing_metrics_leave_the_other_lines(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    (tmp_path / "copy" / "cells" / "s/grpo-seed42" / "train" / "metrics.jsonl").unlink()
    axes = drawn("training", small_study(), tmp_path / "copy", tmp_path / "training")
    names = [line.get_label() for line in axes[0, 1].get_lines()]
    assert "GRPO" not in names and "ours" in names


def test_a_run_that_replayed_nothing_is_not_called_missing(tmp_path):
    study = small_study()
    random_results(study, tmp_path)
    for path in tmp_path.glob("cells/*/*/train/metrics.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        write_metrics(path.parent.parent, [r | {"clip_ratio/replay": None} for r in records])
    replayed = drawn("figure3", study, tmp_path, tmp_path / "figure3")[0, 1]
    assert texts(replayed) == ["no such token was trained on"]


# --- replay and diagnostics -----------------------------------------------------------------------


def test_age_histogram_counts_the_rows_trained_on(small):
    axes = drawn("replay_ages", small_study(), small, small / "ages")
    panel = next(p for p in axes.flat if p.patches)
    bars = {round(bar.get_center()[0]): bar.get_height() for bar in panel.patches}
    # Five rows: two fresh, two of age 1, one of age 2.
    assert bars == pytest.approx({1: 40.0, 2: 20.0})
    assert texts(panel) == ["age 0 (fresh): 40 %"]


def test_reuse_counts_rollouts_and_ages(small):
    cell = expand(small_study())[OURS]
    rows = trained_rows(small, [cell])
    counts = reuse_counts(rows)
    assert counts.to_dict() == {(OURS, "a"): 2, (OURS, "c"): 1}
    ages = replay.ages_of(rows, counts.head(1))
    assert ages.to_dict() == {1: 50.0, 2: 100.0}
    # Six survivors in six steps: a and c were reused, a twice.
    panels = drawn("reuse", small_study(), small, small / "reuse")[1]
    assert curve(panels[0], "ours")[1] == pytest.approx([100 * 2 / 6, 100 / 6])
    assert curve(panels[1], "ours")[1] == [2, 1]


def test_the_same_rollout_id_of_two_cells_is_two_rollouts():
    rows = pd.DataFrame({"rollout_id": ["a", "a"], "cell": ["x", "y"], "replayed": True, "age": 1})
    assert reuse_counts(rows).tolist() == [1, 1]


def test_log_ratios_weigh_by_rows(small):
    ratios = log_ratio_by_age(small, expand(small_study())[OURS])
    # Age 3 has 1, 2, ... 6 rows with -0.1, -0.2, ... -0.6: -0.1 * 91 / 21.
    assert ratios.to_dict() == pytest.approx({0: 0.0, 3: -0.1 * 91 / 21})
    panel = drawn("log_ratio", small_study(), small, small / "log_ratio")[0, 1]
    assert curve(panel, "ours") == ([0, 3], pytest.approx([0.0, -0.1 * 91 / 21]))


def test_drift_is_in_percent_of_ratio_one(small):
    axes = drawn("drift", small_study(), small, small / "drift")
    assert curve(axes[0, 1], "ours")[1] == pytest.approx([0.0] * 6)
    assert curve(axes[1, 1], "ours")[1] == pytest.approx([2.0] * 6)
    assert curve(axes[2, 1], "ours")[1] == pytest.approx([50.0] * 6)


def test_seconds_are_stacked_means(small):
    panel = drawn("seconds", small_study(), small, small / "seconds")[0, 1]
    bars = [(bar.get_x(), bar.get_width()) for bar in panel.patches]
    assert bars[:3] == [(0.0, 30.0), (30.0, 20.0), (50.0, 10.0)]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["GRPO", "ours"]
