"""Grades stored samples by three verifiers: the tables' own, the paper's, and the training reward.

Only stored text is read, so a better grader re-grades a whole study without a GPU.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from grpo_replay.errors import DataError, GrpoReplayWarning
from grpo_replay.evaluation.sample_files import (
    SAMPLE_SCHEMA,
    Row,
    check_sample_ids,
    problems_digest,
    write_parquet,
)
from grpo_replay.files import digest, file_digest, folder_digest, read_json
from grpo_replay.results.kept import keep, kept_record, link
from grpo_replay.results.layout import MANIFEST
from grpo_replay.study.versions import GRADER_VERSION
from grpo_replay.tasks.math import Grade, grade_many, grade_paper_many, guarded_training_reward
from grpo_replay.tasks.problems import read_problems

GRADE_SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample_id", pa.int64()),
        ("correct", pa.bool_()),
        ("grade_paper", pa.bool_()),
        ("training_reward", pa.float64()),
        ("extracted", pa.string()),
        ("method", pa.string()),
        ("timed_out", pa.bool_()),
        ("timed_out_paper", pa.bool_()),
        ("errors", pa.string()),
        ("n_tokens", pa.int64()),
        ("finish_reason", pa.string()),
    ]
)
REPAIR = "remove the samples and sample again"
# An answer without a verdict counts as wrong, so an accuracy may be too low by their share: one
# point is what methods differ by. A few may pass where one odd answer is already 1 % of them.
MAX_UNJUDGED_SHARE, FEW_UNJUDGED = 0.01, 5


def grade_answers(
    samples: Path,
    model: Path,
    benchmarks: dict[str, Path],
    k: dict[str, int],
    output: Path,
    timeout: float,
    workers: int,
) -> None:
    """Grade every sample and write `output`/<benchmark>.parquet, one row a sample; grades of these
    samples, answers and grader that are there already stay as they are.

    `correct` (from which tables are made), `grade_paper` (math-verify on the raw text) and
    `training_reward` (+1 or -1) stand side by side. Answers that are `timed_out`, or whose judging
    raised (`errors` names verifier and exception), count as wrong.

    Args:
        samples: Folder that `sample_answers` wrote.
        model: The model that should have answered; where its folder is no more, nobody can tell.
        benchmarks: Problem files by benchmark name.
        k: Samples a problem by benchmark name.
        output: Folder of the grades; a file appears there only when it is complete, as a link into
            `output`/kept/.
        timeout: Seconds of CPU time that one answer may cost a verifier.
        workers: Grading processes, started once for all benchmarks.

    Raises:
        DataError: on samples that are missing, doubled, of an unknown problem, of another model,
            or not those of the manifest beside them; and where more answers of a benchmark than a
            few, and than 1 %, got no verdict.
    """
    manifest = _read_manifest(samples / MANIFEST, model)
    problems = {name: read_problems(path) for name, path in benchmarks.items()}
    rows = {
        name: _read_samples(samples / f"{name}.parquet", name, own, k[name], manifest)
        for name, own in problems.items()
    }
    golds = {name: {row["id"]: row["answer"] for row in own} for name, own in problems.items()}
    made_from = {name: _made_from(manifest, name, golds[name], timeout) for name in rows}
    outputs = {name: output / f"{name}.parquet" for name in rows}
    records = {name: kept_record(path) for name, path in outputs.items()}
    stale = {
        name: own
        for name, own in rows.items()
        if (records[name] or {}).get("made_from") != made_from[name]
    }
    graded = _grade_all(stale, golds, timeout, workers)
    for name, own in graded.items():
        _check_unjudged(outputs[name], own, timeout)
    for name, own in graded.items():
        records[name] = keep(outputs[name], {"made_from": made_from[name]}, partial(_write, own))
    for name, path in outputs.items():
        link(path, records[name])


def _made_from(
    manifest: dict[str, Any], name: str, golds: dict[str, str], timeout: float
) -> dict[str, Any]:
    """What decides the grades of one benchmark: while it stays, they do."""
    return {
        "grader_version": GRADER_VERSION,
        "timeout_seconds": timeout,
        "samples_sha256": manifest["files"][name]["sha256"],
        "answers_sha256": digest(golds),
    }


def _grade_all(
    rows: dict[str, list[Row]], golds: dict[str, dict[str, str]], timeout: float, workers: int
) -> dict[str, list[Row]]:
    """Grade the samples of some benchmarks, with one start of the processes."""
    pairs = [(golds[name][row["problem_id"]], row["text"]) for name in rows for row in rows[name]]
    ours = iter(grade_many(pairs, workers=workers, timeout=timeout))
    paper = iter(grade_paper_many(pairs, workers=workers, timeout=timeout))
    return {
        name: [
            _grade_row(row, golds[name][row["problem_id"]], next(ours), next(paper)) for row in own
        ]
        for name, own in rows.items()
    }


def _write(graded: list[Row], path: Path) -> dict[str, Any]:
    write_parquet(path, pa.Table.from_pylist(graded, schema=GRADE_SCHEMA))
    return {}


def _check_unjudged(path: Path, graded: list[Row], timeout: float) -> None:
    """Name the answers that count as wrong without a verdict; refuse them if they are many."""
    unjudged = [
        row for row in graded if row["timed_out"] or row["timed_out_paper"] or row["errors"]
    ]
    if not unjudged:
        return
    allowed = max(FEW_UNJUDGED, int(MAX_UNJUDGED_SHARE * len(graded)))
    raised, first = sum(bool(row["errors"]) for row in unjudged), unjudged[0]
    found = (
        f"{path}: {len(unjudged)} of {len(graded)} answers have no verdict (judging {raised} of "
        f"them raised an error, the others would have cost more than {timeout:g} s of CPU time); "
        f"the first is problem {first['problem_id']!r}, sample {first['sample_id']}"
        f"{first['errors'] and ', ' + first['errors']}"
    )
    if len(unjudged) > allowed:
        raise DataError(
            f"{found}; at most {allowed} may count as wrong without one: raise "
            "evaluation.grade_timeout_seconds; mend tasks/math where it raises; where the model "
            "writes what no time decides, raise MAX_UNJUDGED_SHARE in evaluation/grade.py"
        )
    warnings.warn(f"{found}; they count as wrong", GrpoReplayWarning, stacklevel=2)


def _grade_row(row: Row, gold: str, ours: Grade, paper: Grade) -> dict[str, Any]:
    reward = guarded_training_reward(row["text"], gold)
    errors = {"training": reward.error, "evaluation": ours.error, "paper": paper.error}
    return {
        "problem_id": row["problem_id"],
        "sample_id": row["sample_id"],
        "correct": ours.correct,
        "grade_paper": paper.correct,
        "training_reward": reward.value,
        "extracted": ours.extracted,
        "method": ours.method,
        "timed_out": ours.timed_out,
        "timed_out_paper": paper.timed_out,
        "errors": "; ".join(f"{name}: {error}" for name, error in errors.items() if error),
        "n_tokens": row["n_tokens"],
        "finish_reason": row["finish_reason"],
    }


def _read_manifest(path: Path, model: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(f"{path}: missing, so the samples are of an unknown model; {REPAIR}")
    manifest = read_json(path)
    if model.is_dir() and folder_digest(model) != manifest["model_sha256"]:
        raise DataError(f"{path}: the samples are of another model than {model}; {REPAIR}")
    return manifest


def _read_samples(
    path: Path, name: str, problems: Sequence[Row], k: int, manifest: dict[str, Any]
) -> list[Row]:
    """Return the samples of a benchmark, held against its problems and the manifest."""
    if not path.is_file():
        raise DataError(f"{path}: no such file, the benchmark was not sampled; sample it first")
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: empty or cut off ({error}); {REPAIR}") from error
    if not table.schema.equals(SAMPLE_SCHEMA):
        raise DataError(
            f"{path}: columns {_columns(table.schema)}, expected {_columns(SAMPLE_SCHEMA)}; "
            f"{REPAIR}"
        )
    rows = table.to_pylist()
    for number, row in enumerate(rows):
        if None in row.values():
            empty = next(column for column, value in row.items() if value is None)
            raise DataError(f"{path}, row {number}: {empty} is missing; {REPAIR}")
    _check_ids(path, rows, problems, k)
    if problems_digest(problems) != manifest["problems_sha256"].get(name):
        raise DataError(f"{path}: sampled from other texts of {name}'s problems; {REPAIR}")
    if file_digest(path) != manifest["files"].get(name, {}).get("sha256"):
        raise DataError(
            f"{path}: not the file that manifest.json beside it describes (of another model, or "
            f"edited); {REPAIR}"
        )
    return rows


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def _check_ids(path: Path, rows: Sequence[Row], problems: Sequence[Row], k: int) -> None:
    samples: dict[str, list[int]] = {problem["id"]: [] for problem in problems}
    for number, row in enumerate(rows):
        if row["problem_id"] not in samples:
            raise DataError(
                f"{path}, row {number}: unknown problem id {row['problem_id']!r}, the benchmark "
                f"has {len(samples)} others; {REPAIR}"
            )
        samples[row["problem_id"]].append(row["sample_id"])
    for problem_id, sample_ids in samples.items():
        check_sample_ids(path, problem_id, sample_ids, k)
