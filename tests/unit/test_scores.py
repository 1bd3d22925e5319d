"""Scores of hand-made graded samples, and which cells a study's scores take in."""

import json

import numpy as np
import pandas as pd
import pytest
from reporting_inputs import small_study, write_cell, write_grades

from grpo_replay.errors import DataError
from grpo_replay.evaluation.score import score_cell
from grpo_replay.reporting.numbers.conditions import all_conditions
from grpo_replay.reporting.numbers.means import benchmark_number, mean_number
from grpo_replay.reporting.tables.table import estimate_text
from grpo_replay.results.scores import SCHEMA, collect_scores, read_scores
from grpo_replay.statistics.evaluation_metrics import EVALUATION_METRICS
from grpo_replay.study.cells import config_hash, expand, resolve

# 4 problems x 2 samples: 5 of 8 correct, 3 of 4 problems solved at least once.
EASY = np.array([[1, 1], [1, 0], [0, 0], [1, 1]])
# 5 problems x 2 samples: nothing correct.
HARD = np.zeros((5, 2))
LENGTHS = np.array([[4, 6], [8, 16], [16, 12], [2, 4]])


@pytest.fixture
def scored(tmp_path):
    study = small_study()
    cell = expand(study)["s/grpo-seed42"]
    folder = write_cell(study, tmp_path, cell, {"easy": EASY, "hard": HARD})
    write_grades(folder / "grades" / "easy.parquet", EASY, LENGTHS)
    paths = {name: folder / "grades" / f"{name}.parquet" for name in ("easy", "hard")}
    score_cell(folder / "cell.json", paths, folder / "scores.json")
    return study, tmp_path, folder, paths


def test_score_cell_gives_the_numbers_by_hand(scored):
    study, _, folder, _ = scored
    scores = json.loads((folder / "scores.json").read_text())
    cell = expand(study)["s/grpo-seed42"]
    assert scores["cell"] == cell.model_dump()
    assert scores["config_hash"] == config_hash(resolve(study, cell))
    easy = scores["benchmarks"]["easy"]
    assert (easy["n_problems"], easy["k"]) == (4, 2)
    assert easy["avg_at_k"] == pytest.approx(62.5)
    assert easy["pass_at_k"] == pytest.approx(75.0)
    assert easy["avg_at_k_low"] < 62.5 < easy["avg_at_k_high"]
    assert easy["mean_length"] == pytest.approx(68 / 8)
    assert easy["mean_length_correct"] == pytest.approx((4 + 6 + 8 + 2 + 4) / 5)
    assert easy["mean_length_incorrect"] == pytest.approx((16 + 16 + 12) / 3)
    assert easy["truncated_percent"] == pytest.approx(25.0)
    assert easy["avg_at_k_paper"] == 0.0
    assert easy["problem_accuracy"] == [100.0, 50.0, 0.0, 100.0]
    assert easy["problem_length"] == [5.0, 12.0, 14.0, 3.0]


def test_a_benchmark_without_correct_answers_has_null_length_and_an_interval(scored):
    hard = json.loads((scored[2] / "scores.json").read_text())["benchmarks"]["hard"]
    assert hard["avg_at_k"] == 0.0
    assert hard["mean_length_correct"] is None
    assert hard["avg_at_k_low"] == pytest.approx(0.0, abs=1e-9)
    assert 10 < hard["avg_at_k_high"] < 60  # Wilson for 0 of 5


def test_row_order_of_the_grades_does_not_matter(scored):
    _, _, folder, paths = scored
    before = (folder / "scores.json").read_text()
    pd.read_parquet(paths["easy"]).sample(frac=1, random_state=1).to_parquet(paths["easy"])
    score_cell(folder / "cell.json", paths, folder / "scores.json")
    assert (folder / "scores.json").read_text() == before


def test_bad_grades_are_refused_by_name(scored):
    _, _, folder, paths = scored
    whole = pd.read_parquet(paths["easy"])
    for broken, message in (
        (whole.iloc[:-1], "'p003' has 1 samples, not k = 2"),
        (pd.concat([whole, whole.iloc[:1]]), "sample 0 of problem 'p000' is there twice"),
        (whole.iloc[:0], "no graded samples"),
        (whole.assign(correct=[True, None, *[True] * 6]), "row 1: correct is missing; delete"),
        (whole.assign(n_tokens=[*[1.0] * 7, np.nan]), "row 7: n_tokens is missing; delete"),
    ):
        broken.to_parquet(paths["easy"])
        with pytest.raises(DataError, match="easy.parquet.*" + message):
            score_cell(folder / "cell.json", paths, folder / "scores.json")
    with pytest.raises(DataError, match="no grades for hard"):
        score_cell(folder / "cell.json", {"easy": paths["easy"]}, folder / "scores.json")


def test_collect_has_one_row_a_cell_and_benchmark(scored, capsys):
    study, results, _, _ = scored
    base = expand(study)["xs/base"]
    write_cell(study, results, base, {"easy": EASY, "hard": HARD})
    collect_scores(study, results, results / "scores.parquet")
    frame = pd.read_parquet(results / "scores.parquet")
    assert frame.columns.tolist() == SCHEMA.names
    assert frame[["cell", "benchmark"]].to_numpy().tolist() == [
        ["xs/base", "easy"],
        ["xs/base", "hard"],
        ["s/grpo-seed42", "easy"],
        ["s/grpo-seed42", "hard"],
    ]
    assert frame["avg_at_k"].tolist() == pytest.approx([62.5, 0, 62.5, 0])
    assert frame.loc[0, "method"] == "base" and pd.isna(frame.loc[0, "seed"])
    assert frame["problem_accuracy"][0].tolist() == [100.0, 50.0, 0.0, 100.0]
    warnings = capsys.readouterr().err
    assert "s/ours-seed42 is left out of the scores: not finished" in warnings


def test_stale_scores_are_left_out(scored, capsys):
    _, results, _, _ = scored
    changed = small_study()
    training = changed.training.model_copy(update={"learning_rate": 5e-3})
    changed = changed.model_copy(update={"training": training})
    collect_scores(changed, results, results / "scores.parquet")
    assert pd.read_parquet(results / "scores.parquet").empty
    assert "s/grpo-seed42" in capsys.readouterr().err.split("another configuration")[0]


@pytest.mark.parametrize(
    ("path", "rule"),
    [("samples/manifest.json", "sample_answers"), ("train/settings.json", "train_policy")],
)
def test_answers_of_other_settings_are_not_scored(scored, path: str, rule: str):
    """What stands in cell.json is what was trained and sampled, or there is no score."""
    _, _, folder, paths = scored
    made = json.loads((folder / path).read_text())
    (made.get("settings") or made)["changed"] = 1
    (folder / path).write_text(json.dumps(made))
    with pytest.raises(DataError, match=f"other settings.*--forcerun {rule}"):
        score_cell(folder / "cell.json", paths, folder / "scores.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"problems": {"wrap_error": 0.9}},
        {"benchmarks": {"easy": {"seed": 5}}},
        {"benchmarks": {"hard": {"n_problems": 6}}},
        {"training": {"learning_rate": 0.1}},
        {"evaluation": {"grade_timeout_seconds": 1.0}},
    ],
)
def test_a_score_of_another_study_file_is_left_out(scored, changes: dict, capsys):
    study, results, _, _ = scored
    content = study.model_dump()
    for section, values in changes.items():
        for key, value in values.items():
            content[section][key] = (
                {**content[section][key], **value} if isinstance(value, dict) else value
            )
    other = type(study).model_validate(content)
    collect_scores(study, results, results / "scores.parquet")
    assert len(read_scores(results)) == 2
    collect_scores(other, results, results / "scores.parquet")
    assert len(read_scores(results)) == 0
    assert "another configuration" in capsys.readouterr().err


def test_a_benchmark_of_one_problem_has_no_interval(tmp_path):
    """One outcome says nothing of other problems: no 0 to 100, and a word for why."""
    study = small_study()
    base = expand(study)["s/base"]
    graded = {"easy": np.array([[1, 0]]), "hard": np.array([[1, 1]])}
    folder = write_cell(study, tmp_path, base, graded)
    scores = json.loads((folder / "scores.json").read_text())["benchmarks"]
    for values in scores.values():
        assert values["avg_at_k_low"] is None and values["pass_at_k_high"] is None
    scores_parquet = tmp_path / "scores.parquet"
    collect_scores(study, tmp_path, scores_parquet)
    frame = read_scores(tmp_path)
    setting = next(s for s in all_conditions(study) if base in s.cells)
    for number in (
        benchmark_number(frame, setting, "hard", EVALUATION_METRICS[0]),
        mean_number(frame, setting, "avg_at_k"),
    ):
        assert estimate_text(number, 1).endswith(" (n = 1, no interval)")


def test_scores_of_an_earlier_version_are_named(tmp_path):
    pd.DataFrame({"cell": ["s/base"]}).reindex(columns=SCHEMA.names).drop(
        columns="varied"
    ).to_parquet(tmp_path / "scores.parquet")
    with pytest.raises(
        DataError, match=r"scores.parquet: has no varied.*--forcerun collect_scores"
    ):
        read_scores(tmp_path)
