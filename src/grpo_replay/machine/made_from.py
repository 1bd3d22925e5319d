"""What a job's outputs were made from, kept beside them as digests, so that results whose times a
copy has lost are still known to be current.

Snakemake makes again what is older than its inputs. Where the record says that inputs and settings
are those that the outputs were made from, `restore` gives the outputs times that say so too.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grpo_replay.errors import DataError
from grpo_replay.files import digest, file_digest, folder_digest, read_json, write_json

STAMP = ".snakemake_timestamp"  # in a folder that is an output: its time is the folder's


@dataclass(frozen=True)
class Step:
    """A job as far as its times go: what it reads, what it makes, and what gives the settings
    (JSON-like) that decide how: few are ever asked. The record lies beside the first output.
    """

    inputs: list[Path]
    outputs: list[Path]
    settings: Callable[[], object]

    @cached_property
    def record(self) -> Path:
        """The file that keeps the digests."""
        return self.outputs[0].with_name(f"{self.outputs[0].name}.inputs.json")

    def is_out_of_date(self) -> bool:
        """Whether all is there, and an output is older than an input."""
        if not self.inputs or not all(path.exists() for path in self.inputs + self.outputs):
            return False
        return min(map(_output_time, self.outputs)) < max(map(_input_time, self.inputs))

    def content(self, digests: dict[Path, str]) -> dict:
        """The record of inputs and settings as they are now; `digests` keeps what was summed."""
        for path in self.inputs:
            if path not in digests:
                digests[path] = folder_digest(path) if path.is_dir() else file_digest(path)
        # Sorted, without names: a study's folder may have another one in the copy.
        sums = sorted(digests[path] for path in self.inputs)
        return {"settings": digest(self.settings()), "inputs": sums}


@contextmanager
def made_from(inputs: Iterable[str], output: str, settings: object) -> Iterator[None]:
    """Record what a job reads, once it has ended without an error.

    Args:
        inputs: all files and folders that the rule names as inputs.
        output: the file or folder beside which the record lies.
        settings: what else decides the outputs, JSON-like.
    """
    step = Step([Path(path) for path in inputs], [Path(output)], lambda: settings)
    step.record.unlink(missing_ok=True)
    content = step.content({})  # as the job reads them, whatever happens to them meanwhile
    yield
    if step.inputs:  # without any, no time is wrong
        write_json(step.record, content)


def restore(steps: Iterable[Step]) -> None:
    """Set the times of outputs that are older than what they were really made from.

    Nothing is summed unless a time is wrong, and nothing is touched whose record is missing, torn
    or another.

    Args:
        steps: makers before users.
    """
    digests: dict[Path, str] = {}
    for step in steps:
        if not step.is_out_of_date():
            continue
        recorded = _recorded(step.record)
        if recorded is not None and recorded == step.content(digests):
            newest = max(map(_input_time, step.inputs))
            for path in step.outputs:
                if _output_time(path) < newest:
                    _set_time(path, newest)


def _recorded(record: Path) -> dict | None:
    with suppress(DataError, FileNotFoundError):
        return read_json(record)
    return None


def _carrier(path: Path) -> Path:
    """What Snakemake takes a folder's time from."""
    stamp = path / STAMP
    return stamp if stamp.is_file() and not path.is_symlink() else path


def _output_time(path: Path) -> int:
    return _carrier(path).lstat().st_mtime_ns


def _input_time(path: Path) -> int:
    """That of a link, or of what it points at: the newer one, as Snakemake has it."""
    target = _carrier(path.resolve()).stat().st_mtime_ns
    return max(target, path.lstat().st_mtime_ns) if path.is_symlink() else target


def _set_time(path: Path, time: int) -> None:
    with suppress(PermissionError):  # of another owner: Snakemake says what it would make again
        os.utime(_carrier(path), ns=(time, time), follow_symlinks=False)
