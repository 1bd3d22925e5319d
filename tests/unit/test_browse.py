"""The notebook's views on small files whose content is known."""

import math
from pathlib import Path

import pandas as pd
import pytest
from reporting_inputs import write_metrics

from grpo_replay.errors import DataError
from grpo_replay.reporting.browse import tables
from grpo_replay.reporting.browse.curves import curves, learning_curves
from grpo_replay.reporting.labels import method_style
from grpo_replay.results.scores import SCHEMA
from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import write_problems

NANO = load_study(Path(__file__).parents[2] / "config" / "studies" / "nano.yaml")
GRPO, OURS = "s/grpo-seed42", "s/ours-seed42"
ANSWER = r"so <b>x</b> & \boxed{3}"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """An untrained cell, a GRPO cell and one of `ours`; one benchmark, two training problems."""
    write_scores(tmp_path)
    golds = [{"id": f"p{i}", "problem": f"1 < {i} + 1?", "answer": str(i)} for i in range(2)]
    write_problems(tmp_path / "data" / "benchmarks" / "easy.jsonl", golds)
    training = [{"id": f"t{i}", "problem": f"task {i}", "answer": "7"} for i in range(3)]
    write_problems(tmp_path / "data" / "problems.jsonl", training)
    for cell in ("s/base", GRPO, OURS):
        write_answers(tmp_path / "cells" / cell)
    for cell in (GRPO, OURS):
        write_training(tmp_path / "cells" / cell, replays=cell == OURS)
    return tmp_path


def write_scores(results: Path) -> None:
    axes = {"scale": "s", "tau_max": None, "replay_ratio": None, "alpha": None, "seed": None}
    axes["varied"] = "{}"
    varied = '{"replay.tau_max": 10, "select.keep": 4}'
    cells = [
        axes | {"cell": "s/base", "method": "base"},
        axes | {"cell": GRPO, "method": "grpo", "seed": 42},
        axes
        | {"cell": OURS, "method": "ours", "seed": 42, "tau_max": 10, "alpha": 0.5}
        | {"varied": varied},
    ]
    rows = [
        cell
        | {"benchmark": name, "avg_at_k": value, "pass_at_k": 100.0}
        | {"problem_ids": ["p0", "p1"], "problem_accuracy": [50.0, 100.0]}
        for cell in cells
        for name, value in (("easy", 75.0), ("hard", 25.0))
    ]
    pd.DataFrame(rows).reindex(columns=SCHEMA.names).to_parquet(results / "scores.parquet")


def write_answers(cell: Path) -> None:
    """Two problems of two samples; the grades lie in another order than the samples."""
    keys = pd.DataFrame({"problem_id": ["p0", "p0", "p1", "p1"], "sample_id": [0, 1, 0, 1]})
    made = {"n_tokens": [10, 11, 12, 13], "finish_reason": "stop"}
    drawn = keys.assign(benchmark="easy", wave_seed=42, text=["a", ANSWER, "c", "d"], **made)
    graded = keys.assign(
        correct=[True, False, True, True],
        grade_paper=[True, True, True, True],
        grade_training=[True, False, True, False],
        extracted=["0", "3", "1", "1"],
        method=["same text", "number", "number", "number"],
        timed_out=False,
        **made,
    )
    for kind, frame in (("samples", drawn), ("grades", graded[::-1])):
        for name in ("easy", "hard"):
            path = cell / kind / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            # All verifiers agree on the other benchmark.
            agreed = frame if name == "easy" else frame[frame["sample_id"] == 0].head(1)
            agreed.to_parquet(path)


def write_training(cell: Path, replays: bool) -> None:
    """Problem t0 is sampled at steps 1 and 3; t1 at step 2, in a group without a signal."""
    rollouts = [
        (1, "1-0-0", "t0", 1.0, 0.9, True),
        (1, "1-0-1", "t0", -1.0, -0.9, True),
        (2, "2-0-0", "t1", 1.0, 0.0, False),
        (3, "3-0-0", "t0", 1.0, 0.5, True),
    ]
    names = ["step", "rollout_id", "problem_id", "reward", "advantage", "survived"]
    sampled = pd.DataFrame(rollouts, columns=names).assign(
        text=ANSWER, length=5, truncated=False, group_id="g"
    )
    uses = [(1, "1-0-0", 0, 0.0), (1, "1-0-1", 0, 0.0), (3, "3-0-0", 0, 0.01)]
    if replays:
        uses += [(2, "1-0-1", 1, -0.1), (3, "1-0-1", 2, -0.3), (3, "1-0-0", 2, -0.2)]
    trained = pd.DataFrame(uses, columns=["step", "rollout_id", "age", "log_ratio"])
    trained["replayed"] = trained["age"] > 0
    own = sampled.set_index("rollout_id")[["problem_id", "reward", "advantage"]]
    trained = trained.join(own, on="rollout_id")
    (cell / "train").mkdir()
    sampled.to_parquet(cell / "train" / "rollouts.parquet")
    trained.to_parquet(cell / "train" / "replay.parquet")
    records = [
        {
            "step": step,
            "reward/mean": float(step),
            "completions/mean_length": 5.0,
            "clip_ratio/fresh": 0.0,
            "clip_ratio/replay": 0.02 if replays and step > 1 else None,
        }
        for step in (1, 2, 3)
    ]
    write_metrics(cell, records)


# --- cells ---


def test_cells_stand_in_the_studys_order_with_their_means(results: Path) -> None:
    cells = tables.study_cells(results)
    assert list(cells.index) == ["s/base", GRPO, OURS]
    assert set(cells["avg"]) == {50.0} and set(cells["pass"]) == {100.0}
    assert cells.loc[OURS, "tau_max"] == 10
    # What has no column among the axes of replay has one under its path.
    assert cells.loc[OURS, "select.keep"] == 4 and cells["select.keep"].isna().sum() == 2
    assert "replay.tau_max" not in cells
    assert cells.loc[["s/base", GRPO], "tau_max"].isna().all()
    assert list(tables.study_cells(results, "*ours*").index) == [OURS]


def test_a_pattern_without_a_cell_names_those_there_are(results: Path) -> None:
    with pytest.raises(DataError, match=r"no finished cell matches 'x/\*'; there are: s/base"):
        tables.study_cells(results, "x/*")


def test_a_folder_without_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"scores.parquet: no such file; run snakemake"):
        tables.study_cells(tmp_path)


# --- benchmark problems ---


def test_overview_has_a_row_a_problem_and_a_column_a_cell(results: Path) -> None:
    overview = tables.benchmark_overview(results, "easy", "s/*-*")
    assert list(overview.columns) == [GRPO, OURS]
    assert overview[OURS].to_dict() == {"p0": 50.0, "p1": 100.0}


def test_samples_stand_beside_their_own_verdicts(results: Path) -> None:
    samples = tables.samples(results, "easy", "p0")
    assert list(samples["cell"]) == ["s/base", "s/base", GRPO, GRPO, OURS, OURS]
    second = samples[samples["cell"] == OURS].set_index("sample_id").loc[1]
    assert second["text"] == ANSWER and second["extracted"] == "3"
    assert (second["correct"], second["grade_paper"]) == (False, True)
    assert (second["grade_training"], second["decided_by"]) == (False, "number")


def test_disagreements_are_all_and_only_the_samples_judged_differently(results: Path) -> None:
    found = tables.disagreements(results, OURS)
    # p0: the paper's verifier alone says right; p1: the reward alone says wrong.
    assert found[["benchmark", "problem_id", "sample_id"]].values.tolist() == [
        ["easy", "p1", 1],
        ["easy", "p0", 1],
    ]


def test_samples_as_html_show_the_problem_and_what_the_model_wrote(results: Path) -> None:
    page = tables.show_samples(results, "easy", "p0", OURS).to_html()
    assert "1 &lt; 0 + 1?" in page and "<b>Answer:</b> 0" in page
    assert r"<div>so &lt;b&gt;x&lt;/b&gt; &amp; \boxed{3}</div>" in page
    assert "tex2jax_ignore" in page


@pytest.mark.parametrize(
    ("benchmark", "problem", "message"),
    [
        ("esy", "p0", r"no benchmark 'esy' \(did you mean 'easy'\?\); there are: easy, hard"),
        ("easy", "p7", r"easy.jsonl: no problem 'p7'.*there are: p0, p1"),
    ],
)
def test_an_unknown_benchmark_or_problem_is_refused(
    results: Path, benchmark: str, problem: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        tables.show_samples(results, benchmark, problem)


def test_samples_that_are_not_there_are_named(results: Path) -> None:
    (results / "cells" / OURS / "samples" / "easy.parquet").unlink()
    with pytest.raises(DataError, match=r"samples/easy.parquet: no such file"):
        tables.samples(results, "easy", "p0")


# --- training problems ---


def test_the_most_replayed_problem_stands_first(results: Path) -> None:
    overview = tables.training_overview(results, OURS)
    counts = ["rollouts", "correct", "survived", "replays", "most_replays"]
    assert overview[counts].T.to_dict("list") == {"t0": [3, 2, 3, 3, 2], "t1": [1, 1, 0, 0, 0]}
    assert overview.loc["t0", "oldest"] == 2 and pd.isna(overview.loc["t1", "oldest"])


def test_a_cell_that_replays_nothing_has_no_replays(results: Path) -> None:
    overview = tables.training_overview(results, GRPO)
    assert set(overview["replays"]) == {0} and overview["oldest"].isna().all()
    assert set(tables.rollouts(results, GRPO, "t0")["replayed_at"]) == {""}
    assert not tables.uses(results, GRPO, "t0")["replayed"].any()


def test_rollouts_say_when_they_were_replayed(results: Path) -> None:
    rollouts = tables.rollouts(results, OURS, "t0").set_index("rollout_id")
    assert rollouts["replayed_at"].to_dict() == {"1-0-0": "3", "1-0-1": "2, 3", "3-0-0": ""}
    assert rollouts["replays"].to_dict() == {"1-0-0": 1, "1-0-1": 2, "3-0-0": 0}
    page = tables.show_rollouts(results, OURS, "t0").to_html()
    assert "task 0" in page and "2, 3" in page


def test_uses_carry_their_own_log_ratio(results: Path) -> None:
    uses = tables.uses(results, OURS, "t0")
    shown = uses[["step", "rollout_id", "age", "replayed", "log_ratio"]].values.tolist()
    assert shown == [
        [1, "1-0-0", 0, False, 0.0],
        [1, "1-0-1", 0, False, 0.0],
        [2, "1-0-1", 1, True, -0.1],
        [3, "1-0-0", 2, True, -0.2],
        [3, "1-0-1", 2, True, -0.3],
        [3, "3-0-0", 0, False, 0.01],
    ]
    assert uses["ratio"].iloc[3] == pytest.approx(math.exp(-0.2))
    assert set(uses.query("rollout_id == '1-0-1'")["advantage"]) == {-0.9}


@pytest.mark.parametrize(
    ("cell", "problem", "message"),
    [
        ("s/base", "t0", rf"no trained cell 's/base'.*there are: {GRPO}, {OURS}"),
        (OURS, "t2", r"no sampled problem 't2'.*there are: t0, t1"),
    ],
)
def test_an_untrained_cell_or_a_problem_not_sampled_is_refused(
    results: Path, cell: str, problem: str, message: str
) -> None:
    for view in (tables.rollouts, tables.uses, tables.show_rollouts):
        with pytest.raises(DataError, match=message):
            view(results, cell, problem)


# --- learning curves ---


def test_curves_have_a_column_a_trained_cell(results: Path) -> None:
    table = curves(results, "reward/mean", steps=2)
    assert list(table.columns) == [GRPO, OURS]
    assert table[OURS].to_dict() == {1: 1.0, 2: 1.5, 3: 2.5}
    replayed = curves(results, "clip_ratio/replay", OURS, steps=1)[OURS]
    assert replayed.to_dict() == {2: 0.02, 3: 0.02}


def test_learning_curves_draw_every_cell_in_its_methods_colour(results: Path) -> None:
    figure = learning_curves(results, steps=1)
    reward, _, _, replayed = figure.axes
    drawn = {line.get_label(): line.get_color() for line in reward.lines}
    looks = [method_style(NANO, method).colour for method in ("grpo", "ours")]
    assert drawn == dict(zip((GRPO, OURS), looks, strict=True))
    [line] = replayed.lines
    assert line.get_label() == OURS and list(line.get_ydata()) == [2.0, 2.0]  # percent
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in figure.axes)


def test_an_empty_panel_says_so(results: Path) -> None:
    replayed = learning_curves(results, GRPO).axes[3]
    assert [text.get_text() for text in replayed.texts] == ["no such token was trained on"]
