"""Files and folders that are there whole or not at all, and their checksums.

What is half written must never be taken for a result: everything is written beside its place and
then renamed.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpo_replay.errors import DataError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path beside `path`, which takes its place when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished-{path.name}")  # the ending tells some the format
    yield unfinished
    os.replace(unfinished, path)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path`, which takes its place when the block ends without an
    error.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    yield unfinished
    replace_folder(unfinished, path)


def replace_folder(made: Path, path: Path) -> None:
    """Put a folder into the place of another, which may be there."""
    shutil.rmtree(path, ignore_errors=True)
    os.replace(made, path)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with atomic_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a JSON-like value for people and programs, keys sorted; nan is refused."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        DataError: it is not JSON, naming the file.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # also of text that is no UTF-8
        raise DataError(f"{path}: not JSON ({error}); remove it and run again") from error


def read_appended(path: Path) -> list[dict]:
    """The objects of a JSON Lines file to which a job appends, none where it is not there yet.

    A last line that a crash or a look at the wrong moment has torn is left out.

    Raises:
        DataError: another line is not JSON, naming file and line.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number < len(lines):
                message = f"{path}: line {number} is not JSON; make the cell again"
                raise DataError(message) from error
    return rows


def digest(value: object) -> str:
    """Return the SHA-256 of a JSON-like value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of a folder: names and bytes of the files directly in it."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return digest([[path.name, file_digest(path)] for path in files])
