"""Checkpoints that are whole or not there, keyed by everything that decides the run.

They lie outside Snakemake's outputs, which a failed job loses. TRL's part is written by its own
code; the state of the parts (buffer, generators) is safetensors and JSON. The marker that makes a
checkpoint whole is written last: it has size and SHA-256 of every file, and of the records so far.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from safetensors.numpy import load_file, save_file
from transformers import TrainerCallback

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.files import digest, file_digest, folder_digest, write_json

ARRAYS_FILE = "parts.safetensors"
VALUES_FILE = "parts.json"
WHOLE_MARKER = "whole.json"
DAMAGED = "damaged-"  # before a folder's name
BLOCK = 1 << 20
FILES_AT_ONCE = 4
# Of the names in a part's state: a checkpoint of another form is never read.
FORM = 2
# Of the names in a part's state: a checkpoint of another form is never read.
FORM = 2


class SaveEvery(TrainerCallback):
    """Saves as often as the study says now: a resumed run would keep to its checkpoint's number."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take the place of what the checkpoint says."""
        state.save_steps = self.updates


def run_key(settings: dict, start_model: Path, problems: Path) -> str:
    """Key of a run: a hash of its form, its settings, its whole start model and its problems."""
    return digest([FORM, settings, folder_digest(start_model), file_digest(problems)])[:16]


def save_parts(folder: Path, parts: dict[str, dict], values: dict, logs: Iterable[Path]) -> None:
    """Write the state of every part into a checkpoint folder, then mark the checkpoint whole.

    Everything reaches the disk before the marker does: after a power cut there is no marker without
    its files.

    Args:
        folder: the checkpoint's.
        parts: by axis, what `state_dict` returned: `arrays` and `values`, both may be absent.
        values: what the trainer itself needs, with the `step`.
        logs: the run's records, which only grow.
    """
    arrays = {
        f"{axis}/{name}": array
        for axis, state in parts.items()
        for name, array in state.get("arrays", {}).items()
    }
    save_file(arrays, folder / ARRAYS_FILE)
    own = {axis: state.get("values") for axis, state in parts.items()}
    (folder / VALUES_FILE).write_text(json.dumps({**values, "parts": own}), encoding="utf-8")
    files = [*(path for path in folder.rglob("*") if path.is_file()), *logs]
    with ThreadPoolExecutor(FILES_AT_ONCE) as threads:
        sums = list(threads.map(_secured, files))
    names = [os.path.relpath(path, folder) for path in files]
    marker = folder / WHOLE_MARKER
    write_json(marker, {"step": values["step"], "files": dict(zip(names, sums, strict=True))})
    _to_disk(marker)
    _to_disk(folder)


def load_parts(folder: Path) -> tuple[dict[str, dict], dict]:
    """Read what `save_parts` wrote: the state of every part, and the trainer's values."""
    values = json.loads((folder / VALUES_FILE).read_text(encoding="utf-8"))
    states: dict[str, dict] = {
        axis: {"arrays": {}, "values": own} for axis, own in values.pop("parts").items()
    }
    for name, array in load_file(folder / ARRAYS_FILE).items():
        axis, _, key = name.partition("/")
        states[axis]["arrays"][key] = array
    return states, values


def agreed_checkpoint(run_folder: Path) -> tuple[Path | None, int]:
    """What all processes of a run go on from, and its step (None and 0: from the beginning).

    The first process reads the checkpoint and tells the others.
    """
    first = PartialState().is_main_process
    found = [(latest_complete(run_folder) or (None, 0)) if first else None]
    return broadcast_object_list(found)[0]


def latest_complete(run_folder: Path) -> tuple[Path, int] | None:
    """The newest whole checkpoint of a run and its step.

    What is torn (without a marker) is removed. One that is not what its marker says is put aside,
    under another name, and told in a warning. A marker without sums is of a version that wrote
    none, and is believed.
    """
    folders = sorted(run_folder.glob("checkpoint-*"), key=_updates, reverse=True)
    marked = [folder for folder in folders if (folder / WHOLE_MARKER).is_file()]
    for folder in set(folders).difference(marked):
        shutil.rmtree(folder)
    told = []
    for folder in marked:
        fault = _fault(folder)
        if fault is None:
            step = _marker(folder)["step"]
            _tell(told, f"goes on from step {step}")
            return folder, step
        told.append(f"{_put_aside(folder)}: {fault}")
    _tell(told, "begins anew")
    return None


def other_runs(cell_folder: Path, key: str) -> list[Path]:
    """Runs of the same cell under another configuration: never resumed."""
    if not cell_folder.is_dir():
        return []
    return sorted(
        folder for folder in cell_folder.iterdir() if folder.is_dir() and folder.name != key
    )


def _updates(folder: Path) -> int:
    return int(folder.name.rsplit("-", 1)[1])


def _marker(folder: Path) -> dict:
    return json.loads((folder / WHOLE_MARKER).read_text(encoding="utf-8"))


def _fault(folder: Path) -> str | None:
    """What is wrong with a marked checkpoint, if anything."""
    try:
        marker = _marker(folder)
        sums = marker.get("files", {}).items()
        with ThreadPoolExecutor(FILES_AT_ONCE) as threads:
            faults = list(threads.map(lambda item: _file_fault(folder, *item), sums))
        int(marker["step"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return f"{WHOLE_MARKER} cannot be read ({type(error).__name__})"
    return next(filter(None, faults), None)


def _file_fault(folder: Path, name: str, expected: list) -> str | None:
    path, (size, sha256) = folder / name, expected
    try:
        found = path.stat().st_size
        grows = name.startswith(os.pardir)  # a log, outside the folder
        if found < size or (found > size and not grows):
            return f"{name} has {found} bytes of {size}"
        return None if _sum(path, size) == sha256 else f"{name} has other bytes than were written"
    except OSError as error:
        return f"{name} cannot be read ({error.strerror})"


def _put_aside(folder: Path) -> Path:
    """Rename a damaged checkpoint: new files must not mix with it, nor whole ones make way."""
    aside, number = folder.with_name(DAMAGED + folder.name), 1
    while aside.exists():
        number += 1
        aside = folder.with_name(f"{DAMAGED}{folder.name}-{number}")
    return folder.rename(aside)


def _tell(damaged: list[str], then: str) -> None:
    if damaged:
        text = f"damaged checkpoints are kept and not used ({'; '.join(damaged)}): the training "
        warnings.warn(text + then, GrpoReplayWarning, stacklevel=3)


def _secured(path: Path) -> tuple[int, str]:
    """Size and sum of a file, once it is on the disk."""
    _to_disk(path)
    size = path.stat().st_size
    return size, _sum(path, size)


def _sum(path: Path, size: int) -> str:
    """SHA-256 of the first bytes of a file."""
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        while size and (block := file.read(min(size, BLOCK))):
            sha256.update(block)
            size -= len(block)
    return sha256.hexdigest()


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
