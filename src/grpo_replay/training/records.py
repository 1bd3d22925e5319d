"""What a training run leaves behind, written as it happens: metrics, rows trained on, and the
rollouts' text.

Each file is JSON Lines with a `step` in every line. A run that resumes cuts them back to the
checkpoint's step, so no step is there twice; a line torn by a crash goes with them.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from grpo_replay.files import atomic_file
from grpo_replay.results.step_log import StepLog

REPLAY_COLUMNS = (
    *("step", "birth_step", "age", "rollout_id", "group_id", "problem_id", "unit", "priority"),
    *("advantage", "reward", "length", "truncated", "replayed", "log_ratio"),
)
ROLLOUT_COLUMNS = (
    *("step", "rollout_id", "group_id", "problem_id", "text", "reward", "correct", "advantage"),
    *("length", "truncated", "survived"),
)


class TrainingRecords:
    """The three logs of a run: `metrics` (a row a step), `replay` (a row a trained row),
    `rollouts` (their text).
    """

    def __init__(self, folder: Path) -> None:
        self.metrics = StepLog(folder / "metrics.jsonl")
        self.replay = StepLog(folder / "replay.jsonl")
        self.rollouts = StepLog(folder / "rollouts.jsonl")

    @property
    def paths(self) -> list[Path]:
        """The files of the logs."""
        return [log.path for log in (self.metrics, self.replay, self.rollouts)]

    def keep_until(self, step: int) -> None:
        """Cut all logs back to a checkpoint's step."""
        for log in (self.metrics, self.replay, self.rollouts):
            log.keep_until(step)

    def publish(self, folder: Path, unit: str | None, priority: str | None) -> None:
        """Write the finished run's files into a folder, each whole or not at all."""
        with atomic_file(folder / "metrics.jsonl") as beside:
            shutil.copyfile(self.metrics.path, beside)
        trained = self.replay.table().assign(unit=unit, priority=priority)
        _write_table(trained, REPLAY_COLUMNS, folder / "replay.parquet")
        _write_table(self.rollouts.table(), ROLLOUT_COLUMNS, folder / "rollouts.parquet")


def _write_table(table: pd.DataFrame, columns: Sequence[str], target: Path) -> None:
    """Write a table that has its columns even where there was nothing to train on."""
    with atomic_file(target) as beside:
        table.reindex(columns=columns).to_parquet(beside, index=False)
