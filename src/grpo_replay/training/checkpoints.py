"""Checkpoints that are whole or not there, keyed by everything that decides the run.

They lie outside Snakemake's outputs, which a failed job loses. TRL's part is written by its own
code; the replay state (buffer, generators, step) is safetensors and JSON, and the marker that makes
a checkpoint whole is written last.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

from safetensors.numpy import load_file, save_file

ARRAYS_FILE = "replay_buffer.safetensors"
VALUES_FILE = "replay_state.json"
WHOLE_MARKER = "whole.json"


def run_key(settings: dict, *files: Path) -> str:
    """Key of a run: a hash of its settings and of the content of its input files (weights,
    problems).
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in sorted(files):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def save_replay_state(folder: Path, arrays: dict, values: dict) -> None:
    """Write the replay state into a checkpoint folder, then mark the checkpoint whole."""
    save_file(arrays, folder / ARRAYS_FILE)
    (folder / VALUES_FILE).write_text(json.dumps(values), encoding="utf-8")
    beside = folder / (WHOLE_MARKER + ".tmp")
    beside.write_text(json.dumps({"step": values["step"]}), encoding="utf-8")
    os.replace(beside, folder / WHOLE_MARKER)


def load_replay_state(folder: Path) -> tuple[dict, dict]:
    """Read what `save_replay_state` wrote: arrays and values."""
    values = json.loads((folder / VALUES_FILE).read_text(encoding="utf-8"))
    return load_file(folder / ARRAYS_FILE), values


def latest_whole(run_folder: Path) -> tuple[Path, int] | None:
    """The newest whole checkpoint of a run and its step; what is torn is removed."""
    best = None
    for folder in run_folder.glob("checkpoint-*"):
        marker = folder / WHOLE_MARKER
        if not marker.is_file():
            shutil.rmtree(folder)
            continue
        step = json.loads(marker.read_text(encoding="utf-8"))["step"]
        if best is None or step > best[1]:
            best = (folder, step)
    return best


def other_runs(cell_folder: Path, key: str) -> list[Path]:
    """Runs of the same cell under another configuration: never resumed."""
    if not cell_folder.is_dir():
        return []
    return sorted(folder for folder in cell_folder.iterdir() if folder.name != key)
