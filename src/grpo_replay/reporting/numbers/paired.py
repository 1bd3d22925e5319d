"""Models on the same problems, side by side: what a number of several models rests on.

The one that a number is about stands first, its reference second, any further one behind them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from grpo_replay.reporting.numbers.conditions import Condition, finished_cells
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.means import (
    Metric,
    ends,
    no_interval,
    problem_values,
    same_problems,
    with_seeds,
)
from grpo_replay.statistics import intervals
from grpo_replay.statistics.benchmark_means import (
    FloatArray,
    Statistic,
    checked,
    means_by_benchmark,
)
from grpo_replay.study.cells import Cell

# What a number needs of a cell: columns of one value a problem, the index (benchmark, problem).
Columns = Callable[[Cell], pd.DataFrame]
_LEVELS = ["benchmark", "problem"]


@dataclass(frozen=True)
class Paired:
    """The columns of several models: `width` of each, on each problem (P) and in the mean of each
    benchmark (S).

    `values_PV` is the mean over the finished seeds, `seeds` how many those of the first model are;
    `by_seed_NBV` has the means of each seed that all have (N; an untrained model serves any seed
    of the first one).
    """

    values_PV: FloatArray
    benchmarks_P: NDArray[np.str_]
    by_seed_NBV: FloatArray
    width: int
    seeds: int

    @property
    def sizes_B(self) -> NDArray[np.intp]:
        """How many problems each benchmark has, in the order of its means."""
        return np.unique(self.benchmarks_P, return_counts=True)[1]

    def number(
        self, statistic: Statistic, lowest: float = -np.inf, highest: float = np.inf
    ) -> Estimate:
        """The number with its intervals over problems and over seeds, this cut to its range."""
        means_BV = means_by_benchmark(*checked(self.values_PV, self.benchmarks_P))
        interval = intervals.stratified_interval(
            self.values_PV, self.benchmarks_P, statistic=statistic
        )
        made = Estimate(
            float(statistic(means_BV)),
            *ends(interval),
            n=len(self.values_PV),
            remark=no_interval(self.sizes_B) or f"n={self.seeds}",
        )
        values_N = statistic(self.by_seed_NBV)
        if len(values_N) < 2 or np.isnan(values_N).any():
            return made
        return with_seeds(made, values_N, lowest, highest)


def paired(
    scores: pd.DataFrame, columns: Columns, conditions: Sequence[Condition]
) -> Paired | None:
    """Pair conditions on the problems of all benchmarks; None where one has no finished cell.

    Raises:
        DataError: two conditions were not evaluated on the same problems.
    """
    cells = [finished_cells(scores, condition) for condition in conditions]
    if not all(cells):
        return None
    frames = [{cell.seed: columns(cell) for cell in found} for found in cells]
    values_PV, benchmarks_P = _side_by_side([list(f.values()) for f in frames], conditions)
    by_seed = [
        means_by_benchmark(*checked(*_side_by_side([[frame] for frame in one], conditions)))
        for one in _of_shared_seeds(frames)
    ]
    shape = (len(by_seed), len(np.unique(benchmarks_P)), values_PV.shape[1])
    return Paired(
        values_PV,
        benchmarks_P,
        np.reshape(by_seed, shape),
        width=values_PV.shape[1] // len(conditions),
        seeds=len(cells[0]),
    )


def metric_columns(scores: pd.DataFrame, *metrics: Metric) -> Columns:
    """Columns of a cell's scores: percent or tokens of each problem."""

    def columns(cell: Cell) -> pd.DataFrame:
        values = [problem_values(scores, [cell], metric) for metric in metrics]
        return pd.concat(values, axis=1, keys=metrics)

    return columns


def _of_shared_seeds(frames: list[dict[int | None, pd.DataFrame]]) -> list[list[pd.DataFrame]]:
    """The frame of each model, for every seed of the first that the others have too."""
    partners = [[f.get(seed, f.get(None)) for f in frames] for seed in frames[0]]
    return [found for found in partners if all(frame is not None for frame in found)]


def _side_by_side(
    frames: list[list[pd.DataFrame]], conditions: Sequence[Condition]
) -> tuple[FloatArray, NDArray[np.str_]]:
    """The columns of all models, each the mean over its frames, and the problems' benchmarks."""
    means = [pd.concat(found).groupby(level=_LEVELS).mean() for found in frames]
    for other, condition in zip(means[1:], conditions[1:], strict=True):
        same_problems(means[0], other, conditions[0], condition)
    benchmarks_P = means[0].index.get_level_values("benchmark").to_numpy(dtype=str)
    return np.column_stack([frame.to_numpy() for frame in means]), benchmarks_P
