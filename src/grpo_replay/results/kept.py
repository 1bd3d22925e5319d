"""Finished files that stay when Snakemake makes a rule's outputs anew.

Snakemake removes the outputs of a job before it runs, and after a failure; when the job has ended
it gives all of them the time of its end. So a finished file lies in `kept/<name>/` beside the
output, with a record of what it was made from, and the output is a link to it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grpo_replay.files import atomic_file, file_digest, read_json, write_json

Record = dict[str, Any]
_RECORD = "record.json"


def kept_record(output: Path) -> Record | None:
    """What was recorded with the file that is kept for an output; None where there is none, or
    its bytes are not those that were recorded.

    Raises:
        DataError: the record is not JSON.
    """
    path = _folder(output) / _RECORD
    if not path.is_file():
        return None
    record = read_json(path)
    file = kept_file(output, record)
    return record if file.is_file() and file_digest(file) == record["sha256"] else None


def kept_file(output: Path, record: Record) -> Path:
    """Where the file of a record lies."""
    return _folder(output) / f"{record['sha256'][:16]}{output.suffix}"


def keep(output: Path, record: Record, write: Callable[[Path], Record]) -> Record:
    """Keep what `write` writes in the place of what was kept before. A crash leaves the one or the
    other, whole.

    Returns the record, with what `write` returned and the `sha256` of the file.
    """
    folder = _folder(output)
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"new{output.suffix}"
    record = {**record, **write(new), "sha256": file_digest(new)}
    file = kept_file(output, record)
    os.replace(new, file)
    write_json(folder / _RECORD, record)
    for other in folder.iterdir():
        if other.name not in (_RECORD, file.name):
            other.unlink()
    return record


def link(output: Path, record: Record) -> None:
    """Make the output a link to what is kept for it; relative, so that a folder can be moved."""
    with atomic_file(output) as unfinished:
        unfinished.unlink(missing_ok=True)
        unfinished.symlink_to(kept_file(output, record).relative_to(output.parent))


def _folder(output: Path) -> Path:
    return output.parent / "kept" / output.stem
