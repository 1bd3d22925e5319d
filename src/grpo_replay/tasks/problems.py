"""Problem files: JSON Lines with the string fields id, problem, answer, and what a source adds.

Training and evaluation read the same form through the same checks, so that a gold answer that is
empty, a number or doubled stops a run before it costs anything.
"""

import json
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_replay.errors import ConfigError, DataError, GrpoReplayWarning
from grpo_replay.files import write_text
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.clock import clock_problems
from grpo_replay.tasks.hub import download_problems
from grpo_replay.tasks.task import Task

if TYPE_CHECKING:
    from grpo_replay.tasks.config import ClockProblems, DataFile, FileProblems

DATA_VARIABLE = "GRPO_REPLAY_DATA"
FIELDS = ("id", "problem", "answer")


def read_problems(path: Path | str, blank_answers: bool = False) -> list[dict[str, Any]]:
    """Return the problems of a JSON Lines file, in its order; an answer may be empty where
    `blank_answers` says so.

    Raises DataError naming file and line: no file, no problems, invalid JSON, a field that is
    missing, empty or no string, an id that occurred before.
    """
    return list(_numbered(Path(path), blank_answers).values())


def _numbered(path: Path, blank_answers: bool) -> dict[int, dict[str, Any]]:
    """The problems of a file by the number of their line."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected problems as JSON Lines")
    problems = {
        number: _parse(line, f"{path}, line {number}", blank_answers)
        for number, line in _lines(path)
    }
    if not problems:
        raise DataError(f"{path}: the file has no problems; expected one JSON object a line")
    _check_ids(problems, str(path), "line")
    return problems


def _check_ids(problems: dict[int, dict[str, Any]], place: str, unit: str) -> None:
    number_of: dict[str, int] = {}
    for number, problem in problems.items():
        if problem["id"] in number_of:
            raise DataError(
                f"{place}, {unit} {number}: id {problem['id']!r} is that of {unit} "
                f"{number_of[problem['id']]} too; give each problem an id of its own"
            )
        number_of[problem["id"]] = number


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error}); save the file as UTF-8") from error
    return [(i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _parse(line: str, place: str, blank_answers: bool) -> dict[str, Any]:
    try:
        problem = json.loads(line)
    # Besides what is no JSON: an integer of thousands of digits, and brackets thousands deep.
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not valid JSON ({error}); expected one object a line") from error
    if not isinstance(problem, dict):
        raise DataError(
            f"{place}: found {type(problem).__name__}, expected an object with {', '.join(FIELDS)}"
        )
    for field in FIELDS:
        if field not in problem:
            raise DataError(f"{place}: field {field!r} is missing; every problem needs one")
    _check_row(problem, place, blank_answers)
    return problem


def _check_row(problem: dict[str, Any], place: str, blank_answers: bool) -> None:
    """Refuse fields that are no text, or that no file can hold; a missing answer becomes empty."""
    if problem["answer"] is None and blank_answers:
        problem["answer"] = ""
    for field in ("id", "problem"):
        _check_text(problem[field], f"{place}: field {field!r}")
    if not (blank_answers and _is_blank(problem)):
        _check_text(problem["answer"], f"{place}: field 'answer'")
    if not isinstance(problem.get("solution", ""), str):
        raise DataError(
            f"{place}: field 'solution' is {problem['solution']!r}, expected a string; fill it in "
            "or leave the field out"
        )
    if not _is_writable(problem):  # JSON can hold half of a surrogate pair, as \ud800; UTF-8 cannot
        field = next(f for f, value in problem.items() if not _is_writable([f, value]))
        raise DataError(
            f"{place}: field {ascii(field)} cannot be written (half of a surrogate pair, "
            "which is no UTF-8, or no JSON); correct or remove it"
        )


def _is_writable(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _is_blank(problem: dict[str, Any]) -> bool:
    return isinstance(problem["answer"], str) and not problem["answer"].strip()


def _check_text(value: object, place: str) -> None:
    if not isinstance(value, str):
        # A number as gold answer parses to nothing in the grader, silently: every sample is wrong.
        repair = "fill it in or drop the row" if value is None else f'write it as "{value}"'
        raise DataError(f"{place} is {value!r}, expected a string; {repair}")
    if not value.strip():
        raise DataError(f"{place} is empty; fill it in or drop the row")


def write_problems(path: Path | str, problems: Iterable[dict[str, Any]]) -> None:
    """Write problems as JSON Lines, whole or not at all."""
    lines = [json.dumps(problem, ensure_ascii=False) + "\n" for problem in problems]
    write_text(Path(path), "".join(lines))


def data_file(source: "DataFile") -> Path | None:
    """The local file of a source, in the folder that the variable GRPO_REPLAY_DATA names; None
    where that is not set and the Hub has it.

    Raises ConfigError where the variable is set and the folder lacks the file, or neither is there.
    """
    folder = os.environ.get(DATA_VARIABLE)
    if not folder and source.hub:
        return None
    if not folder:
        raise ConfigError(
            f"file: {source.file}: {DATA_VARIABLE} is not set; set it to the folder that holds "
            f"{source.file}"
        )
    path = Path(folder) / source.file
    if not path.is_file():
        raise ConfigError(
            f"file: {source.file}: not in {folder} ({DATA_VARIABLE}); put it there or correct the "
            "variable"
        )
    return path


def load_problems(source: "DataFile", output: Path) -> list[dict[str, Any]]:
    """All problems of a source, local or from the Hub; `output` is what is made of them.

    Raises DataError naming file and row where a problem is wrong, ConfigError where there is none.
    """
    if path := data_file(source):
        return read_source(source, path)
    rows = download_problems(source, output.with_name(f"{output.name}.source.json"))
    problems = dict(enumerate(rows))
    for number, problem in problems.items():
        if problem.get("solution", "") is None:  # a table's empty cell
            del problem["solution"]
        _check_row(problem, f"{source.file}, row {number}", _may_drop(source) > 0)
    _check_ids(problems, source.file, "row")
    _check_uses(source, problems, f"{source.file}, row")
    return rows


def read_source(source: "DataFile", path: Path) -> list[dict[str, Any]]:
    """The problems of a source's local file, judged by what the study wants with them: the same
    before a run and in its jobs.

    Raises DataError as `read_problems`, and where more answers are blank than `max_dropped`, or a
    warm start lacks a solution.
    """
    problems = _numbered(path, _may_drop(source) > 0)
    _check_uses(source, problems, f"{path}, line")
    return list(problems.values())


def _may_drop(source: "DataFile") -> int:
    return getattr(source, "max_dropped", 0)


def _check_uses(source: "DataFile", problems: dict[int, dict[str, Any]], place: str) -> None:
    if source.needs_solutions:
        for number, problem in problems.items():
            if not problem.get("solution", "").strip():
                raise DataError(
                    f"{place} {number}: field 'solution' is missing or empty; a warm start needs "
                    "worked solutions"
                )
    used = list(problems.items())[: getattr(source, "limit", None)]
    blank = [number for number, problem in used if _is_blank(problem)]
    if len(blank) > _may_drop(source):
        raise DataError(
            f"{place} {blank[_may_drop(source)]}: field 'answer' is empty; {len(blank)} rows have "
            f"no answer, and max_dropped allows {_may_drop(source)}: fill them in or raise it"
        )


def first(problems: list[dict[str, Any]], limit: int | None) -> list[dict[str, Any]]:
    """Return the first `limit` problems, or all of them where it is None."""
    return problems if limit is None else problems[:limit]


def with_readable_golds(
    name: str, problems: Iterable[dict[str, Any]], task: Task, max_dropped: int = 0
) -> list[dict[str, Any]]:
    """The problems whose gold answer the task can judge by; of others at most `max_dropped`.

    Raises DataError naming the first problem that is one too many.
    """
    kept, dropped = [], []
    for problem in problems:
        try:
            task.check_gold(problem)
            kept.append(problem)
        except DataError as error:
            dropped.append(problem["id"])
            if len(dropped) > max_dropped:
                raise DataError(f"{name}: problem {problem['id']!r}: {error}") from error
    if dropped:
        warnings.warn(
            f"{name}: left out {len(dropped)} problems without a readable answer: "
            f"{', '.join(dropped)}",
            GrpoReplayWarning,
            stacklevel=2,
        )
    return kept


def make_problems(
    settings: "ClockProblems | FileProblems", output: Path | str, task: Task = DEFAULT_TASK
) -> None:
    """Write a study's training problems: generated, or the first `limit` of a data file.

    Raises ConfigError where the data file is missing, DataError where a problem or gold is wrong.
    """
    if settings.source == "clock":
        problems: list[dict[str, Any]] = [
            dict(problem)
            for problem in clock_problems(
                settings.steps, settings.count, settings.hours, settings.max_step, settings.seed
            )
        ]
        problems = with_readable_golds("problems", problems, task)
    else:
        problems = first(load_problems(settings, Path(output)), settings.limit)
        problems = with_readable_golds(settings.file, problems, task, settings.max_dropped)
    write_problems(output, problems)
