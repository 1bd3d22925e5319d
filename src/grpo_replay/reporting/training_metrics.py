"""Read `train/metrics.jsonl` of finished cells: one row a training step."""

import json
from pathlib import Path

import pandas as pd

from grpo_replay.errors import DataError
from grpo_replay.grid import Cell

CLIP_FRESH, CLIP_REPLAY = "clip_ratio/fresh", "clip_ratio/replay"
REWARD, LENGTH = "reward/mean", "completions/mean_length"


def read_metrics(results: Path, cell: Cell) -> pd.DataFrame | None:
    """The metrics of a cell by step, rising; null becomes nan. None where there is no file.

    A step that a resumed run wrote again counts once, as written last; a torn last line is dropped.

    Raises:
        DataError: a line that is not JSON and not the last, naming file and line.
    """
    path = results / "cells" / cell.cell / "train" / "metrics.jsonl"
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number < len(lines):
                message = f"{path}: line {number} is not JSON; train the cell again"
                raise DataError(message) from error
    if not records:
        return None
    frame = pd.DataFrame(records).drop_duplicates("step", keep="last").set_index("step")
    return frame.sort_index().apply(pd.to_numeric, errors="coerce")


def rolling_mean(values: pd.Series, steps: int = 5) -> pd.Series:
    """The paper's 5-step rolling mean (Figure 2); steps without a value are skipped, not zeros."""
    return values.dropna().rolling(steps, min_periods=1).mean()
