"""Checkpoints that are whole or not there, keyed by everything that decides the run.

They lie outside Snakemake's outputs, which a failed job loses. TRL's part is written by its own
code; the replay state (buffer, generators, step) is safetensors and JSON, and the marker that makes
a checkpoint whole is written last.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file
from transformers import TrainerCallback

from grpo_replay.files import digest, file_digest, folder_digest, write_json

ARRAYS_FILE = "replay_buffer.safetensors"
VALUES_FILE = "replay_state.json"
WHOLE_MARKER = "whole.json"


class SaveEvery(TrainerCallback):
    """Saves as often as the study says now: a resumed run would keep to its checkpoint's number."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take the place of what the checkpoint says."""
        state.save_steps = self.updates


def run_key(settings: dict, start_model: Path, problems: Path) -> str:
    """Key of a run: a hash of its settings, of its whole start model and of its problems."""
    return digest([settings, folder_digest(start_model), file_digest(problems)])[:16]


def save_replay_state(folder: Path, arrays: dict, values: dict) -> None:
    """Write the replay state into a checkpoint folder, then mark the checkpoint whole."""
    save_file(arrays, folder / ARRAYS_FILE)
    (folder / VALUES_FILE).write_text(json.dumps(values), encoding="utf-8")
    write_json(folder / WHOLE_MARKER, {"step": values["step"]})


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
    return sorted(
        folder for folder in cell_folder.iterdir() if folder.is_dir() and folder.name != key
    )
