"""A number of a row from the training metrics of its cells: mean over steps, or the last step's."""

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


def step_frames(
    scores: pd.DataFrame, results: Path, condition: Condition
) -> dict[int | None, pd.DataFrame]:
    """The training metrics of each finished cell by seed: a row a step, a column a metric."""
    found = {cell.seed: read_metrics(results, cell) for cell in finished_cells(scores, condition)}
    return {seed: frame for seed, frame in found.items() if frame is not None}


def mean_over_steps(
    frames: dict[int | None, pd.DataFrame],
    name: str,
    factor: float = 1.0,
    lowest: float = 0.0,
    highest: float = np.inf,
) -> Estimate | None:
    """`factor` times a metric, mean over the steps that have it, then over seeds; `n` is steps."""
    known = {s: frame[name].dropna() for s, frame in frames.items() if name in frame.columns}
    means = {s: (factor * float(v.mean()), len(v)) for s, v in known.items() if len(v)}
    return over_seeds(means, lowest, highest)


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
