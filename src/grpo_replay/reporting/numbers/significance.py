"""Every number that compares a method with GRPO: paired tests, Holm's correction, marks.

† is over the problems: the two trained models, exchanged problem by problem (`permutation`). ‡ is
over the training seeds. Both test the number that the table prints, whatever it is made of.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from grpo_replay.reporting.labels import BASE
from grpo_replay.reporting.numbers.conditions import Condition
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.means import METRICS, Metric, mean_number
from grpo_replay.reporting.numbers.paired import Paired, metric_columns, paired
from grpo_replay.statistics import intervals
from grpo_replay.statistics.benchmark_means import Statistic
from grpo_replay.statistics.permutation import EXCHANGES, MOST_ENUMERATED, exchange_test, exchanged

LEVEL = 0.05
MARK_PROBLEMS, MARK_SEEDS = "†", "‡"
# A t test of two pairs of seeds has one degree of freedom: it can say nothing.
FEWEST_SEEDS = 3

NOTE_PROBLEMS = (
    "† differs from GRPO at the same scale: two-sided paired permutation test over the problems "
    "(the two models' answers to a problem change places; mean over seeds first; "
    f"{EXCHANGES:,} random exchanges, or all where at most {MOST_ENUMERATED} problems differ), "
    "Holm-adjusted over all tests of this table and scale, p < 0.05. It compares these trained "
    "models."
)
NOTE_SEEDS = (
    "‡ differs from GRPO over the seeds: paired t test over three or more shared seeds of the "
    "number less that with the two models exchanged, Holm-adjusted alike, p < 0.05."
)
GRPO_ALONE = "No marks: the table has GRPO alone, with which the others compare."

SHORT = {"avg_at_k": "avg", "pass_at_k": "pass"}
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class PValues:
    """p of one number before Holm's correction; None where there is no such test."""

    problems: float | None = None
    seeds: float | None = None


def p_values(pair: Paired | None, statistic: Statistic) -> PValues:
    """Test a number of a model and GRPO, the first two of `pair`; a further one stays in place."""
    if pair is None:
        return PValues()
    over_problems = exchange_test(pair.values_PV, pair.benchmarks_P, statistic, pair.width)
    other_way_NBV = exchanged(pair.by_seed_NBV, pair.width)
    return PValues(
        None if np.isnan(over_problems) else over_problems,
        p_over_seeds(statistic(pair.by_seed_NBV), statistic(other_way_NBV)),
    )


def p_over_seeds(values_N: ArrayLike, exchanged_N: ArrayLike) -> float | None:
    """Return p of the t test over the seeds, None where too few or all alike.

    `exchanged_N` is each seed's number with the two models in each other's place. The difference is
    0 on average if the models are interchangeable; the number itself need not be: an AES, where a
    loss weighs more than a gain, is then below 0.
    """
    difference_N = np.subtract(values_N, exchanged_N)
    if len(difference_N) < FEWEST_SEEDS or np.isnan(difference_N).any():
        return None
    if np.ptp(difference_N) < 1e-9:
        return None
    return float(stats.ttest_1samp(difference_N, 0).pvalue)


def marked(
    numbers: Mapping[Key, Estimate | None], tests: Mapping[Key, PValues]
) -> dict[Key, Estimate | None]:
    """The numbers of one table and scale, with Holm-adjusted p-values and the marks they give."""
    compared = [key for key, number in numbers.items() if key in tests and number is not None]
    problems = _holm([tests[key].problems for key in compared])
    seeds = _holm([tests[key].seeds for key in compared])
    found = dict(numbers)
    for key, p_problems, p_seeds in zip(compared, problems, seeds, strict=True):
        marks = MARK_PROBLEMS * _below(p_problems) + MARK_SEEDS * _below(p_seeds)
        found[key] = replace(numbers[key], marks=marks, p_problems=p_problems, p_seeds=p_seeds)
    return found


def marked_means(
    scores: pd.DataFrame, conditions: list[Condition], grpo: Condition | None
) -> list[dict[str, Estimate | None]]:
    """The means of the rows of one table and scale (`avg`, `pass`), with p-values and marks.

    Untrained models and `grpo` itself are not compared; without a finished GRPO nothing is.
    """
    places = [(position, metric) for position in range(len(conditions)) for metric in METRICS]
    numbers = {(i, metric): mean_number(scores, conditions[i], metric) for i, metric in places}
    tests = {
        (i, metric): mean_p_values(scores, conditions[i], grpo, metric)
        for i, metric in places
        if grpo is not None and conditions[i].method != BASE and conditions[i] != grpo
    }
    found = marked(numbers, tests)
    return [
        {SHORT[metric]: found[position, metric] for metric in METRICS}
        for position in range(len(conditions))
    ]


def mean_p_values(
    scores: pd.DataFrame, condition: Condition, grpo: Condition, metric: Metric
) -> PValues:
    """Test the unweighted mean over the benchmarks of a condition against GRPO's."""
    pair = paired(scores, metric_columns(scores, metric), [condition, grpo])
    return p_values(pair, intervals.difference_of_means)


def _holm(p_values: list[float | None]) -> list[float | None]:
    known = [p for p in p_values if p is not None]
    adjusted = iter(intervals.holm(known).tolist())
    return [None if p is None else next(adjusted) for p in p_values]


def _below(p_value: float | None) -> bool:
    return p_value is not None and p_value < LEVEL
