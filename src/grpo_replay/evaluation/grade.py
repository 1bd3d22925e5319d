"""Grades stored samples by the verifiers of each benchmark's task.

Only stored text is read, so a better grader re-grades a whole study without a GPU.
"""

import warnings
from collections.abc import Mapping, Sequence
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
from grpo_replay.results.grades import grade_schema, timed_out_columns, verdict_columns
from grpo_replay.results.kept import keep, kept_record, link
from grpo_replay.results.layout import MANIFEST
from grpo_replay.study.versions import GRADER_VERSION
from grpo_replay.tasks.any_task import task_of
from grpo_replay.tasks.problems import read_problems
from grpo_replay.tasks.task import Grade, Task

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
    tasks: Mapping[str, dict[str, Any]] | None = None,
) -> None:
    """Grade every sample and write `output`/<benchmark>.parquet, one row a sample; grades of these
    samples, answers and grader that are there already stay as they are.

    `correct` is the word of the task's first verifier, from which tables are made; those of the
    others stand beside it (`grade_paper`, `grade_training`). Answers that are `timed_out`, or whose
    judging raised (`errors` names verifier and exception), count as wrong.

    Args:
        samples: Folder that `sample_answers` wrote.
        model: The model that should have answered; where its folder is no more, nobody can tell.
        benchmarks: Problem files by benchmark name.
        k: Samples a problem by benchmark name.
        output: Folder of the grades; a file appears there only when it is complete, as a link into
            `output`/kept/.
        timeout: Seconds of CPU time that one answer may cost a verifier.
        workers: Grading processes, started once for all benchmarks.
        tasks: Identity of each benchmark's task by name; one that is left out is mathematics.

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
    asked = {name: (tasks or {}).get(name) for name in rows}
    made_from = {n: _made_from(manifest, n, golds[n], asked[n], timeout) for n in rows}
    outputs = {name: output / f"{name}.parquet" for name in rows}
    records = {name: kept_record(path) for name, path in outputs.items()}
    stale = [n for n in rows if (records[n] or {}).get("made_from") != made_from[n]]
    task_by_name = {name: task_of(asked[name]) for name in stale}
    graded: dict[str, list[Row]] = {}
    for task, names in _by_task(task_by_name):
        of_task = {name: rows[name] for name in names}
        graded |= _grade_all(task, of_task, golds, timeout, workers)
    for name, own in graded.items():
        _check_unjudged(outputs[name], own, timeout)
    for name, own in graded.items():
        write = partial(_write, own, task_by_name[name])
        records[name] = keep(outputs[name], {"made_from": made_from[name]}, write)
    for name, path in outputs.items():
        link(path, records[name])


def _made_from(
    manifest: dict[str, Any],
    name: str,
    golds: dict[str, str],
    task: dict[str, Any] | None,
    timeout: float,
) -> dict[str, Any]:
    """What decides the grades of one benchmark: while it stays, they do."""
    return {
        "grader_version": GRADER_VERSION,
        "task": task,
        "timeout_seconds": timeout,
        "samples_sha256": manifest["files"][name]["sha256"],
        "answers_sha256": digest(golds),
    }


def _by_task(task_by_name: Mapping[str, Task]) -> list[tuple[Task, list[str]]]:
    """The benchmarks of each task, which are graded together."""
    groups: list[tuple[Task, list[str]]] = []
    for name, task in task_by_name.items():
        known = next((names for other, names in groups if other == task), None)
        if known is None:
            groups.append((task, [name]))
        else:
            known.append(name)
    return groups


def _grade_all(
    task: Task,
    rows: dict[str, list[Row]],
    golds: dict[str, dict[str, str]],
    timeout: float,
    workers: int,
) -> dict[str, list[Row]]:
    """Grade the samples of a task's benchmarks, with one start of a verifier's processes."""
    pairs = [(golds[name][row["problem_id"]], row["text"]) for name in rows for row in rows[name]]
    verdicts = iter(_verdicts(task, pairs, workers, timeout))
    return {name: [_grade_row(row, next(verdicts)) for row in own] for name, own in rows.items()}


def _verdicts(
    task: Task, pairs: list[tuple[str, str]], workers: int, timeout: float
) -> list[dict[str, Grade]]:
    """What each verifier says of each (gold, text) pair, by its name."""
    found = {}
    for name, verify in task.verifiers.items():
        found[name] = verify(pairs, workers=workers, timeout=timeout)
        if len(found[name]) != len(pairs):
            raise DataError(
                f"task {task.identity()['kind']}: verifier {name} gave {len(found[name])} grades "
                f"for {len(pairs)} answers: mend it, it must give one for each"
            )
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


def _write(graded: list[Row], task: Task, path: Path) -> dict[str, Any]:
    write_parquet(path, pa.Table.from_pylist(graded, schema=grade_schema([*task.verifiers])))
    return {}


def _check_unjudged(path: Path, graded: list[Row], timeout: float) -> None:
    """Name the answers that count as wrong without a verdict; refuse them if they are many."""
    late = [column for column in graded[0] if column.startswith("timed_out")]
    unjudged = [row for row in graded if row["errors"] or any(row[column] for column in late)]
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
            "evaluation.grade_timeout_seconds; mend the verifier where it raises; where the model "
            "writes what no time decides, raise MAX_UNJUDGED_SHARE in evaluation/grade.py"
        )
    warnings.warn(f"{found}; they count as wrong", GrpoReplayWarning, stacklevel=2)


def _grade_row(row: Row, verdicts: Mapping[str, Grade]) -> Row:
    first = next(iter(verdicts.values()))
    columns, late = verdict_columns(verdicts), timed_out_columns(verdicts)
    return {
        "problem_id": row["problem_id"],
        "sample_id": row["sample_id"],
        **{columns[name]: grade.correct for name, grade in verdicts.items()},
        "extracted": first.extracted,
        "method": first.method,
        **{late[name]: grade.timed_out for name, grade in verdicts.items()},
        "errors": "; ".join(f"{name}: {g.error}" for name, g in verdicts.items() if g.error),
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
