"""What a claim compares: the value of each training seed of a condition, by benchmark.

Lengths are 100 times their logarithm: a difference of 5 is (about) 5 %, whichever of the two is
the reference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from grpo_replay.reporting.numbers.conditions import Condition, finished_cells
from grpo_replay.results.training_metrics import (
    AGES,
    CLIP_FRESH,
    CLIP_REPLAY,
    LOG_RATIO,
    read_metrics,
    read_records,
)
from grpo_replay.statistics.metrics import accuracy_efficiency_score
from grpo_replay.study.cells import Cell
from grpo_replay.study.claims import ClaimMetric


@dataclass(frozen=True)
class Scores:
    """A study's scores, and its folder of results for what a training has recorded."""

    table: pd.DataFrame
    results: Path


# The value of each benchmark, or one for all, of a cell; nan where it has none. GRPO's cell of the
# same seed is there for whatever compares with it.
CellValue = Callable[[Scores, Cell, Cell | None], pd.Series]


@dataclass(frozen=True)
class SeedMetric:
    """What a claim's metric is in words, with its unit, and of one cell."""

    heading: str
    of: CellValue


def seed_values(
    scores: Scores, condition: Condition, metric: ClaimMetric, grpo: Condition | None
) -> pd.DataFrame:
    """A row a finished seed, a column a benchmark (or one for all)."""
    partners = {c.seed: c for c in finished_cells(scores.table, grpo)} if grpo else {}
    cells = finished_cells(scores.table, condition)
    of = SEED_METRICS[metric].of
    return pd.DataFrame({cell.seed: of(scores, cell, partners.get(cell.seed)) for cell in cells}).T


def _column(name: str, change: Callable = lambda values: values) -> CellValue:
    """A column of the scores, each benchmark on its own."""

    def value(scores: Scores, cell: Cell, grpo: Cell | None) -> pd.Series:
        return change(_of_cell(scores, cell)[name].astype(float))

    return value


def _of_cell(scores: Scores, cell: Cell) -> pd.DataFrame:
    return scores.table[scores.table["cell"] == cell.cell].set_index("benchmark")


def _log_percent(values: pd.Series) -> pd.Series:
    return 100.0 * np.log(values.where(values > 0))


def _aes(scores: Scores, cell: Cell, grpo: Cell | None) -> pd.Series:
    if grpo is None:
        return pd.Series({"all": np.nan})
    means = [_of_cell(scores, c)[["avg_at_k", "mean_length"]].mean() for c in (cell, grpo)]
    return pd.Series({"all": accuracy_efficiency_score(*means[0], *means[1])})


def _mean_over_steps(name: str, factor: float) -> CellValue:
    def value(scores: Scores, cell: Cell, grpo: Cell | None) -> pd.Series:
        metrics = read_metrics(scores.results, cell)
        mean = np.nan if metrics is None or name not in metrics else metrics[name].mean()
        return pd.Series({"all": factor * mean})

    return value


def _drift(scores: Scores, cell: Cell, grpo: Cell | None) -> pd.Series:
    """The mean of minus the log ratio to the birth policy over all replayed rows: it estimates how
    far the policy has gone from what it trains on (a KL).
    """
    total, rows = 0.0, 0
    for record in read_records(scores.results, cell).values():
        for age, value in record[LOG_RATIO].items():
            count = record[AGES][age] if int(age) else 0
            total, rows = total - count * value, rows + count
    return pd.Series({"all": 1000.0 * total / rows if rows else np.nan})


SEED_METRICS: dict[ClaimMetric, SeedMetric] = {
    "avg_at_k": SeedMetric("mean avg@k (points)", _column("avg_at_k")),
    "pass_at_k": SeedMetric("mean pass@k (points)", _column("pass_at_k")),
    "mean_length": SeedMetric("length (%)", _column("mean_length", _log_percent)),
    "mean_length_correct": SeedMetric(
        "length of correct answers (%)", _column("mean_length_correct", _log_percent)
    ),
    "mean_length_incorrect": SeedMetric(
        "length of wrong answers (%)", _column("mean_length_incorrect", _log_percent)
    ),
    "aes": SeedMetric("AES against GRPO", _aes),
    "clip_fresh": SeedMetric("clipped fresh tokens (points)", _mean_over_steps(CLIP_FRESH, 100.0)),
    "clip_replay": SeedMetric(
        "clipped replayed tokens (points)", _mean_over_steps(CLIP_REPLAY, 100.0)
    ),
    "drift": SeedMetric("drift since birth (1e-3 nats a token)", _drift),
}
