"""Every method against GRPO on the same problems: paired tests, Holm's correction, marks."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from grpo_replay import statistics
from grpo_replay.reporting.formats import Number
from grpo_replay.reporting.summaries import (
    METRICS,
    Metric,
    Setting,
    benchmark_mean,
    finished_cells,
    mean_number,
    problem_values,
    same_problems,
)

LEVEL = 0.05
MARK_PROBLEMS, MARK_SEEDS = "†", "‡"
# A t test of two pairs of seeds has one degree of freedom: it can say nothing.
FEWEST_SEEDS = 3

NOTE_PROBLEMS = (
    "† differs from GRPO at the same scale: two-sided paired sign-flip test over the problems "
    "(stratified by benchmark, mean over seeds first), Holm-adjusted over all methods and both "
    "means of this table and scale, p < 0.05. It compares these trained models."
)
NOTE_SEEDS = (
    "‡ differs from GRPO over the seeds: paired t test over three or more shared seeds, "
    "Holm-adjusted alike, p < 0.05."
)


SHORT = {"avg_at_k": "avg", "pass_at_k": "pass"}


def marked_means(
    scores: pd.DataFrame, settings: list[Setting], grpo: Setting | None
) -> list[dict[str, Number | None]]:
    """The means of the rows of one table and scale (`avg`, `pass`), with p-values and marks.

    Untrained models and GRPO itself are not compared; without a finished GRPO nothing is.
    """
    numbers = {
        (position, metric): mean_number(scores, setting, metric)
        for position, setting in enumerate(settings)
        for metric in METRICS
    }
    marked = _marked(scores, numbers, settings, grpo)
    return [
        {SHORT[metric]: marked[position, metric] for metric in METRICS}
        for position in range(len(settings))
    ]


def _marked(
    scores: pd.DataFrame,
    numbers: dict[tuple[int, Metric], Number | None],
    settings: list[Setting],
    grpo: Setting | None,
) -> dict[tuple[int, Metric], Number | None]:
    """`numbers` maps (position in `settings`, metric) to a mean."""
    if grpo is None or not finished_cells(scores, grpo):
        return numbers
    compared = [
        (position, metric)
        for position, setting in enumerate(settings)
        for metric in METRICS
        if setting.method not in ("base", "grpo") and numbers[position, metric] is not None
    ]
    problems = [_p_over_problems(scores, settings[i], grpo, metric) for i, metric in compared]
    seeds = [_p_over_seeds(scores, settings[i], grpo, metric) for i, metric in compared]
    marked = dict(numbers)
    for key, p_problems, p_seeds in zip(compared, _holm(problems), _holm(seeds), strict=True):
        marks = MARK_PROBLEMS * _below(p_problems) + MARK_SEEDS * _below(p_seeds)
        marked[key] = replace(numbers[key], marks=marks, p_problems=p_problems, p_seeds=p_seeds)
    return marked


def _p_over_problems(
    scores: pd.DataFrame, setting: Setting, grpo: Setting, metric: Metric
) -> float:
    ours = problem_values(scores, finished_cells(scores, setting), metric)
    theirs = problem_values(scores, finished_cells(scores, grpo), metric)
    same_problems(ours, theirs, setting, grpo)
    strata = ours.index.get_level_values("benchmark").to_numpy(dtype=str)
    return statistics.paired_difference(ours.to_numpy(), theirs.to_numpy(), strata).p_value


def _p_over_seeds(
    scores: pd.DataFrame, setting: Setting, grpo: Setting, metric: Metric
) -> float | None:
    """Return the p-value over the seeds that both have, None where there are too few."""
    means = [means_by_seed(scores, s, metric) for s in (setting, grpo)]
    shared = sorted(set(means[0]) & set(means[1]))
    if len(shared) < FEWEST_SEEDS:
        return None
    difference = np.array([means[0][seed] - means[1][seed] for seed in shared])
    if np.ptp(difference) == 0:
        return None
    return float(stats.ttest_1samp(difference, 0).pvalue)


def means_by_seed(scores: pd.DataFrame, setting: Setting, metric: Metric) -> dict[int, float]:
    """The mean over the benchmarks of each finished seed."""
    return {
        cell.seed: benchmark_mean(problem_values(scores, [cell], metric))
        for cell in finished_cells(scores, setting)
    }


def _holm(p_values: list[float | None]) -> list[float | None]:
    known = [p for p in p_values if p is not None]
    adjusted = iter(statistics.holm(known).tolist())
    return [None if p is None else next(adjusted) for p in p_values]


def _below(p_value: float | None) -> bool:
    return p_value is not None and p_value < LEVEL
