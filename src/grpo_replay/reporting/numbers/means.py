"""Which cells make one row or line, and its numbers: means over benchmarks, problems and seeds.

Tables and figures share this, so that a number and the point that shows it cannot differ.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import pandas as pd

from grpo_replay.errors import DataError
from grpo_replay.reporting.numbers.conditions import Condition, finished_cells
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.statistics import intervals
from grpo_replay.statistics.evaluation_metrics import EvaluationMetric
from grpo_replay.study.cells import Cell

Metric = Literal["avg_at_k", "pass_at_k", "mean_length"]
METRICS: tuple[Metric, ...] = ("avg_at_k", "pass_at_k")  # those in percent


def benchmark_number(
    scores: pd.DataFrame, condition: Condition, benchmark: str, metric: EvaluationMetric
) -> Estimate | None:
    """A condition's score on one benchmark: mean over problems and finished seeds."""
    rows = scores[scores["benchmark"] == benchmark]
    cells = finished_cells(rows, condition)
    if len(cells) != 1 and metric.name in get_args(Metric):
        return mean_number(rows, condition, metric.name)
    own = rows.set_index("cell").loc[[cell.cell for cell in cells]]
    values_S = own[metric.name].dropna().to_numpy()
    if not len(values_S):
        return None
    number = Estimate(
        float(values_S.mean()), n=int(own["n_problems"].iloc[0]), remark=f"n={len(own)}"
    )
    if len(cells) > 1:  # no value of each problem is stored, of which an interval could be made
        return with_seeds(number, values_S, 0.0, 100.0 if metric.proportion else np.inf)
    if metric.of_problems is None:
        return number
    # One seed: scoring the cell has made this interval.
    row = own.iloc[0]
    low, high = ends(
        intervals.Interval(row[f"{metric.name}_low"], row[f"{metric.name}_high"], "bca")
    )
    return replace(number, low=low, high=high, remark=no_interval([number.n]) or number.remark)


def mean_number(scores: pd.DataFrame, condition: Condition, metric: Metric) -> Estimate | None:
    """The unweighted mean over the benchmarks: percent (Avg and Pass of Table 1), or tokens."""
    cells = finished_cells(scores, condition)
    if not cells:
        return None
    values = problem_values(scores, cells, metric)
    benchmarks_P = values.index.get_level_values("benchmark")
    interval = _stratified(tuple(values), tuple(benchmarks_P), metric in METRICS)
    over_problems = Estimate(
        benchmark_mean(values),
        *ends(interval),
        n=len(values),
        remark=no_interval(benchmarks_P.value_counts()) or f"n={len(cells)}",
    )
    if len(cells) == 1:
        return over_problems
    means = np.array([benchmark_mean(problem_values(scores, [c], metric)) for c in cells])
    return with_seeds(over_problems, means, 0.0, 100.0 if metric in METRICS else np.inf)


def no_interval(sizes: Iterable[int]) -> str:
    """Why there is no interval over problems, for a benchmark of one: its spread is not known."""
    return "n = 1, no interval" if min(sizes) < 2 else ""


def benchmark_mean(values: pd.Series) -> float:
    """The mean of each benchmark first, then their unweighted mean."""
    return float(values.groupby(level="benchmark").mean().mean())


@lru_cache(maxsize=4096)
def _stratified(
    values: tuple[float, ...], benchmarks: tuple[str, ...], proportion: bool
) -> intervals.Interval:
    # Cached, because tables and figures of one process ask for the same intervals.
    return intervals.stratified_interval(
        np.array(values), np.array(benchmarks), proportion=proportion
    )


def with_seeds(number: Estimate, values_S: np.ndarray, lowest: float, highest: float) -> Estimate:
    """Add Student's interval over one value a seed, cut to lowest..highest.

    Seeds that all agree get none: it would have no width and promise what no one knows.
    """
    interval = intervals.seed_interval(values_S)
    if interval.method != "student":
        return number
    low, high = max(interval.low, lowest), min(interval.high, highest)
    return replace(number, seeds_low=low, seeds_high=high)


def ends(interval: intervals.Interval) -> tuple[float | None, float | None]:
    """Both ends of an interval, None where there is none."""
    if not np.isfinite([interval.low, interval.high]).all():
        return None, None
    return interval.low, interval.high


def problem_values(scores: pd.DataFrame, cells: list[Cell], metric: Metric) -> pd.Series:
    """One value a problem, mean over the cells, in percent or tokens; the index is (benchmark,
    problem).
    """
    rows = scores[scores["cell"].isin([cell.cell for cell in cells])]
    column = "problem_length" if metric == "mean_length" else "problem_accuracy"
    values_P = np.concatenate([np.asarray(values, dtype=float) for values in rows[column]])
    if metric == "pass_at_k":
        values_P = 100.0 * (values_P > 0)
    index = [
        np.repeat(rows["benchmark"].to_numpy(dtype=object), rows["n_problems"]),
        np.concatenate([np.asarray(ids, dtype=object) for ids in rows["problem_ids"]]),
    ]
    values = pd.Series(values_P, index=pd.MultiIndex.from_arrays(index))
    values.index.names = ["benchmark", "problem"]
    return values.groupby(level=["benchmark", "problem"]).mean()


def same_problems(
    values: pd.Series, others: pd.Series, condition: Condition, other: Condition
) -> None:
    """Refuse to pair two models that were not evaluated on the same problems.

    Raises:
        DataError: naming a cell of each.
    """
    if not values.index.equals(others.index):
        raise DataError(
            f"scores: {condition.cells[0].cell} and {other.cells[0].cell} were not evaluated on "
            "the same problems; delete their samples and evaluate both again"
        )
