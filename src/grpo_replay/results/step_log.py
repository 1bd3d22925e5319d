"""Records of training steps, one JSON line each."""

import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from grpo_replay.files import atomic_file


class StepLog:
    """An append-only JSON Lines file whose rows carry the training step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def append(self, rows: Iterable[dict]) -> None:
        """Write rows and hand them to the operating system at once; nan is refused."""
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows)

    def keep_until(self, step: int) -> None:
        """Drop every row of a later step, and a torn last line."""
        with (
            atomic_file(self.path) as beside,
            self.path.open(encoding="utf-8") as old,
            beside.open("w", encoding="utf-8") as new,
        ):
            new.writelines(line for line in old if line.endswith("\n") and _step(line) <= step)

    def rows(self) -> list[dict]:
        """All rows."""
        with self.path.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def table(self) -> pd.DataFrame:
        """All rows as a data frame."""
        return pd.DataFrame(self.rows())


def _step(line: str) -> int:
    return json.loads(line)["step"]
