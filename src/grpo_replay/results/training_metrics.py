"""Read `train/metrics.jsonl` of finished cells: one row a training step."""

from collections import Counter
from pathlib import Path

import pandas as pd

from grpo_replay.files import read_appended
from grpo_replay.results.layout import CellFiles
from grpo_replay.study.cells import Cell

CLIP_FRESH, CLIP_REPLAY = "clip_ratio/fresh", "clip_ratio/replay"
REWARD, LENGTH = "reward/mean", "completions/mean_length"
LOG_RATIO, AGES = "ratio/log_ratio_by_age", "replay/age_histogram"


def read_records(results: Path, cell: Cell) -> dict[int, dict]:
    """The records of a cell by step, rising; empty where there is no file.

    A step that a resumed run wrote again counts once, as written last; a torn last line is dropped.

    Raises:
        DataError: a line that is not JSON and not the last, naming file and line.
    """
    path = CellFiles(results, cell.cell).metrics
    records = {record["step"]: record for record in read_appended(path)}
    return dict(sorted(records.items()))


def read_metrics(results: Path, cell: Cell) -> pd.DataFrame | None:
    """The numbers among a cell's metrics by step; null becomes nan. None where there are none.

    Raises:
        DataError: as `read_records`.
    """
    records = read_records(results, cell)
    if not records:
        return None
    frame = pd.DataFrame(list(records.values())).set_index("step")
    return frame.apply(pd.to_numeric, errors="coerce")


def log_ratio_by_age(results: Path, cell: Cell) -> pd.Series:
    """Mean log ratio to the birth policy, nats a token, by age in steps (0: fresh rows).

    Steps weigh by their rows of that age, which is near to the mean over tokens.
    """
    total: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for record in read_records(results, cell).values():
        for age, value in record[LOG_RATIO].items():
            count = record[AGES][age]
            total[int(age)] += count * value
            rows[int(age)] += count
    return pd.Series({age: total[age] / rows[age] for age in sorted(rows)}, dtype=float)


def rolling_mean(values: pd.Series, steps: int = 5) -> pd.Series:
    """The paper's 5-step rolling mean (Figure 2); steps without a value are skipped, not zeros."""
    return values.dropna().rolling(steps, min_periods=1).mean()
