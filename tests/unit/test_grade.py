"""Grading of stored samples: verdicts of three verifiers, and refusal of what does not belong."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from grpo_replay.errors import DataError, GrpoReplayWarning
from grpo_replay.evaluation import grade as grade_module
from grpo_replay.evaluation.grade import grade_answers
from grpo_replay.evaluation.sample_files import problems_digest, write_parquet, write_samples
from grpo_replay.files import file_digest, folder_digest, write_json
from grpo_replay.tasks.math import grading
from grpo_replay.tasks.problems import read_problems, write_problems

PROBLEMS = [
    {"id": "half", "problem": "What is 1/2?", "answer": "\\frac{1}{2}"},
    {"id": "two", "problem": "What is 1+1?", "answer": "2"},
]
TEXTS = {
    "half": ["It is \\boxed{0.5}", "It is \\boxed{\\frac{1}{2}}"],
    "two": ["2", "It is \\boxed{3}"],
}


def sample(problem_id: str, sample_id: int, text: str) -> dict[str, Any]:
    return {
        "problem_id": problem_id,
        "sample_id": sample_id,
        "wave_seed": 42,
        "text": text,
        "n_tokens": 5 + sample_id,
        "finish_reason": "stop",
    }


@pytest.fixture
def grade(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that grades the samples in `tmp_path`, where right ones lie beforehand."""
    write_problems(tmp_path / "math.jsonl", PROBLEMS)
    write_json(tmp_path / "model" / "config.json", {"weights": 1})
    samples = tmp_path / "samples" / "math.parquet"
    rows = [sample(name, i, text) for name in TEXTS for i, text in enumerate(TEXTS[name])]
    assert write_samples(samples, "math", list(TEXTS), 2, rows) == 0
    seal(tmp_path)

    def run(timeout: float = 5.0) -> list[dict[str, Any]]:
        benchmarks, model = {"math": tmp_path / "math.jsonl"}, tmp_path / "model"
        output = tmp_path / "grades"
        grade_answers(samples.parent, model, benchmarks, {"math": 2}, output, timeout, 1)
        return pq.read_table(tmp_path / "grades" / "math.parquet").to_pylist()

    return run


def seal(folder: Path) -> None:
    """Write the manifest that belongs to the samples as they are."""
    manifest = {
        "model_sha256": folder_digest(folder / "model"),
        "problems_sha256": {"math": problems_digest(read_problems(folder / "math.jsonl"))},
        "files": {"math": {"sha256": file_digest(folder / "samples" / "math.parquet")}},
    }
    write_json(folder / "samples" / "manifest.json", manifest)


def change(path: Path, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    table = pq.read_table(path)
    write_parquet(path, table.from_pylist(edit(table.to_pylist()), schema=table.schema))


def test_three_verifiers_side_by_side(grade: Callable[[], list[dict[str, Any]]]) -> None:
    rows = grade()
    assert [(row["problem_id"], row["sample_id"]) for row in rows] == [
        ("half", 0), ("half", 1), ("two", 0), ("two", 1),
    ]  # fmt: skip
    assert [row["correct"] for row in rows] == [True, True, False, False]
    assert [row["grade_paper"] for row in rows] == [True, True, True, False]  # "2" has no box
    assert [row["grade_training"] for row in rows[1:]] == [True, False, False]
    assert [row["extracted"] for row in rows] == ["0.5", "\\frac{1}{2}", None, "3"]
    assert [row["n_tokens"] for row in rows] == [5, 6, 5, 6]
    assert not any(row["timed_out"] or row["timed_out_paper"] for row in rows)


def raise_on_half(gold: str, answer: str) -> None:
    if answer == "0.5":
        raise RecursionError


def test_an_answer_that_raises_costs_no_other_its_verdict(
    grade: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = grading.decide
    monkeypatch.setattr(grading, "decide", lambda *texts: raise_on_half(*texts) or decide(*texts))
    with pytest.warns(GrpoReplayWarning, match=r"1 of 4 .*'half', sample 0, evaluation: Recursion"):
        rows = grade()
    assert [row["correct"] for row in rows] == [False, True, False, False]
    assert [row["method"] for row in rows] == ["error", "same text", "no box", "number"]
    assert [row["errors"] for row in rows] == ["evaluation: RecursionError", "", "", ""]
    assert rows[0]["grade_paper"]


def test_timed_out_answers_are_counted_and_end_the_grading_beyond_a_share(
    tmp_path: Path,
    grade: Callable[[float], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "samples" / "math.parquet"
    change(path, lambda rows: [{**rows[0], "text": "\\boxed{9^{9^{9}}}"}, *rows[1:]])
    seal(tmp_path)
    with pytest.warns(GrpoReplayWarning, match="1 of 4 answers have no verdict"):
        rows = grade(0.5)
    assert [row["timed_out"] for row in rows] == [True, False, False, False]
    shutil.rmtree(tmp_path / "grades")
    monkeypatch.setattr(grade_module, "FEW_UNJUDGED", 0)
    with pytest.raises(DataError, match=r"1 of 4 .* at most 0 .*grade_timeout_seconds"):
        grade(0.5)
    assert not (tmp_path / "grades").exists()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda rows: rows[:-1], r"problem 'two': found 1 samples, expected k = 2.*missing \[1\]"),
        (lambda rows: rows + rows[:1], r"problem 'half': found 3 samples.*doubled \[0\]"),
        (
            lambda rows: [*rows[:-1], {**rows[-1], "problem_id": "three"}],
            "row 3: unknown problem id 'three'",
        ),
        (
            lambda rows: [{**row, "text": f"another model's {row['text']}"} for row in rows],
            "not the file that manifest.json beside it describes .of another model",
        ),
        (lambda rows: [*rows[:-1], {**rows[-1], "text": None}], "row 3: text is missing"),
        (lambda rows: [rows[0], {**rows[1], "n_tokens": None}], "row 1: n_tokens is missing"),
        (lambda rows: [], "problem 'half': found 0 samples"),
    ],
)
def test_wrong_samples_are_refused(
    tmp_path: Path,
    grade: Callable[[], list[dict[str, Any]]],
    edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
    message: str,
) -> None:
    path = tmp_path / "samples" / "math.parquet"
    change(path, edit)
    with pytest.raises(DataError, match=message) as error:
        grade()
    assert str(path) in str(error.value)
    assert "sample again" in str(error.value)
    assert not (tmp_path / "grades").exists()


def test_missing_and_empty_files_are_refused(
    tmp_path: Path, grade: Callable[[], list[dict[str, Any]]]
) -> None:
    path = tmp_path / "samples" / "math.parquet"
    path.write_bytes(b"")
    with pytest.raises(DataError, match="empty or cut off"):
        grade()
    path.unlink()
    with pytest.raises(DataError, match="not sampled"):
        grade()
    (tmp_path / "samples" / "manifest.json").unlink()
    with pytest.raises(DataError, match="manifest.json: missing"):
        grade()


def test_samples_of_another_model_are_refused_and_outlive_their_own(
    tmp_path: Path, grade: Callable[[], list[dict[str, Any]]]
) -> None:
    """A whole folder of samples, its manifest too, that lies in the place of another cell's."""
    write_json(tmp_path / "model" / "config.json", {"weights": 2})
    message = r"manifest.json: the samples are of another model than .*model; remove the samples"
    with pytest.raises(DataError, match=message):
        grade()
    shutil.rmtree(tmp_path / "model")
    assert len(grade()) == 4


def test_samples_of_other_columns_are_refused(
    tmp_path: Path, grade: Callable[[], list[dict[str, Any]]]
) -> None:
    path = tmp_path / "samples" / "math.parquet"
    table = pq.read_table(path)
    position = table.schema.get_field_index("sample_id")
    write_parquet(path, table.set_column(position, "sample_id", table["sample_id"].cast("double")))
    with pytest.raises(DataError, match=r"sample_id \(double\).*expected.*sample_id \(int64\)"):
        grade()


def test_a_corrected_gold_regrades_and_another_text_does_not(
    tmp_path: Path, grade: Callable[[], list[dict[str, Any]]]
) -> None:
    write_problems(tmp_path / "math.jsonl", [PROBLEMS[0], {**PROBLEMS[1], "answer": "3"}])
    assert [row["correct"] for row in grade()] == [True, True, False, True]
    write_problems(tmp_path / "math.jsonl", [PROBLEMS[0], {**PROBLEMS[1], "problem": "1+2?"}])
    with pytest.raises(DataError, match="sampled from other texts"):
        grade()


def test_finished_grades_stay_until_what_decides_them_changes(
    tmp_path: Path, grade: Callable[..., list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs are removed before each job, as Snakemake does; what is kept is not."""
    path = tmp_path / "grades" / "math.parquet"

    def graded(timeout: float = 5.0) -> int:
        path.unlink(missing_ok=True)
        grade(timeout)
        return path.stat().st_mtime_ns

    first = graded()
    assert graded() == first
    other_timeout = graded(6.0)
    assert other_timeout > first
    monkeypatch.setattr(grade_module, "GRADER_VERSION", 999)
    other_grader = graded(6.0)
    assert other_grader > other_timeout
    change(
        tmp_path / "samples" / "math.parquet", lambda rows: [*rows[:-1], rows[-1] | {"text": "2"}]
    )
    seal(tmp_path)
    assert graded(6.0) > other_grader
    path.resolve().write_bytes(b"damaged")
    assert len(grade(6.0)) == 4
