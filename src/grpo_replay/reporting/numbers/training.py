"""A number of a row from the training metrics of its cells: mean over steps, or the last step's."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from grpo_replay.reporting.numbers.conditions import Condition, finished_cells
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.means import with_seeds
from grpo_replay.results.training_metrics import read_metrics

STEPS_NOTE = (
    "One run is n=1: steps of a run are not independent, so there is no interval; several seeds: "
    "Student's t over seeds."
)


def mean_over_steps(
    scores: pd.DataFrame,
    results: Path,
    condition: Condition,
    name: str,
    factor: float = 1.0,
    highest: float = np.inf,
) -> Estimate | None:
    """`factor` times a metric, mean over the steps that have it, then over seeds; `n` is steps."""

    def mean(metrics: pd.DataFrame) -> tuple[float, int]:
        values = metrics[name].dropna()
        return factor * float(values.mean()), len(values)

    return over_seeds(per_cell(scores, results, condition, mean), highest=highest)


def per_cell(
    scores: pd.DataFrame,
    results: Path,
    condition: Condition,
    value: Callable[[pd.DataFrame], tuple[float, int]],
) -> dict[int | None, tuple[float, int]]:
    """(value, number of steps) of each finished cell by seed, without those that have none."""
    found = {}
    for cell in finished_cells(scores, condition):
        metrics = read_metrics(results, cell)
        if metrics is not None:
            found[cell.seed] = value(metrics)
    return {seed: pair for seed, pair in found.items() if not np.isnan(pair[0])}


def over_seeds(
    pairs: dict[int | None, tuple[float, int]], lowest: float = 0.0, highest: float = np.inf
) -> Estimate | None:
    """The mean over seeds with Student's interval; None without any value."""
    if not pairs:
        return None
    values_S = np.array([value for value, _ in pairs.values()])
    steps = list(pairs.values())[-1][1]
    number = Estimate(float(values_S.mean()), n=steps, remark=f"n={len(pairs)}")
    return with_seeds(number, values_S, lowest, highest)
