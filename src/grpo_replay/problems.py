"""Problem files: JSON Lines with the string fields id, problem, answer, and what a source adds.

Training and evaluation read the same form through the same checks, so that a gold answer that is
empty, a number or doubled stops a run before it costs anything.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_replay.clock_arithmetic import make_problems as make_clock_problems
from grpo_replay.errors import ConfigError, DataError
from grpo_replay.files import write_text

if TYPE_CHECKING:
    from grpo_replay.sources import ClockProblems, FileProblems

DATA_VARIABLE = "GRPO_REPLAY_DATA"
FIELDS = ("id", "problem", "answer")


def read_problems(path: Path | str) -> list[dict[str, Any]]:
    """Return the problems of a JSON Lines file, in its order.

    Raises DataError naming file and line: no file, no problems, invalid JSON, a field that is
    missing, empty or no string, an id that occurred before.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected problems as JSON Lines")
    problems: list[dict[str, Any]] = []
    line_of: dict[str, int] = {}
    for number, line in _lines(path):
        problem = _parse(line, f"{path}, line {number}")
        if problem["id"] in line_of:
            raise DataError(
                f"{path}, line {number}: id {problem['id']!r} is that of line "
                f"{line_of[problem['id']]} too; give each problem an id of its own"
            )
        line_of[problem["id"]] = number
        problems.append(problem)
    if not problems:
        raise DataError(f"{path}: the file has no problems; expected one JSON object a line")
    return problems


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error}); save the file as UTF-8") from error
    return [(i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        problem = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{place}: not valid JSON ({error}); expected one object a line") from error
    if not isinstance(problem, dict):
        raise DataError(
            f"{place}: found {type(problem).__name__}, expected an object with {', '.join(FIELDS)}"
        )
    for field in FIELDS:
        if field not in problem:
            raise DataError(f"{place}: field {field!r} is missing; every problem needs one")
        _check_text(problem[field], f"{place}: field {field!r}")
    return problem


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


def data_file(name: str) -> Path:
    """Return the path of a data file, in the folder that the variable GRPO_REPLAY_DATA names.

    Raises ConfigError where the variable is not set or the folder lacks the file.
    """
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise ConfigError(
            f"file: {name}: {DATA_VARIABLE} is not set; set it to the folder that holds {name}"
        )
    path = Path(folder) / name
    if not path.is_file():
        raise ConfigError(
            f"file: {name}: not in {folder} ({DATA_VARIABLE}); put it there or correct the variable"
        )
    return path


def first(problems: list[dict[str, Any]], limit: int | None) -> list[dict[str, Any]]:
    """Return the first `limit` problems, or all of them where it is None."""
    return problems if limit is None else problems[:limit]


def check_golds(path: Path | str, problems: Iterable[dict[str, Any]]) -> None:
    """Raise DataError naming the problem whose gold answer the verifiers cannot read."""
    # Imported here: sampling and training read problems without paying for the symbolic algebra.
    from grpo_replay.math_answers import check_gold

    for problem in problems:
        try:
            check_gold(problem["answer"])
        except DataError as error:
            raise DataError(f"{path}: problem {problem['id']!r}: {error}") from error


def make_problems(settings: "ClockProblems | FileProblems", output: Path | str) -> None:
    """Write a study's training problems: generated, or the first `limit` of a data file.

    Raises ConfigError where the data file is missing, DataError where a problem or gold is wrong.
    """
    if settings.source == "clock":
        problems: list[dict[str, Any]] = [
            dict(problem)
            for problem in make_clock_problems(
                settings.steps, settings.count, settings.hours, settings.max_step, settings.seed
            )
        ]
    else:
        source = data_file(settings.file)
        problems = first(read_problems(source), settings.limit)
        check_golds(source, problems)
    write_problems(output, problems)
