"""How sure a table's number is: intervals, Holm, and whether a number can exist.

The unit of every resampling is the *problem*: the k samples of one problem are not independent, so
resampling answers would give intervals that are far too narrow. Benchmarks are strata: problems are
resampled within their own, and every benchmark has the same weight, as in the paper's aggregate.
`_P` marks one value a problem, `_PV` several, `_BV` one row a benchmark.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from grpo_replay.statistics.benchmark_means import (
    FloatArray,
    Statistic,
    checked,
    means_by_benchmark,
)

RESAMPLES = 9_999
BATCH = 500  # bounds the memory: 500 problems x 500 resamples x 8 bytes are 2 MB an array


@dataclass(frozen=True)
class Interval:
    """A confidence interval in the unit of its values, and the method that gave it.

    `bca`: bootstrap over problems; `wilson`: all outcomes equal; `constant`: all values equal and
    no proportion, or a statistic that every resample leaves alike, zero width; `student`: over
    seeds; `none`: too few values, both ends are nan.
    """

    low: float
    high: float
    method: Literal["bca", "wilson", "constant", "student", "none"]


def bootstrap_interval(
    values_P: ArrayLike,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    trials: int | None = None,
    proportion: bool = True,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the BCa interval of a mean over the problems of one benchmark.

    `values_P` holds one value a problem: its percent of correct answers, its pass@k in percent, or
    (`proportion=False`) its length in tokens. Where all are equal the bootstrap sees no spread: a
    proportion then has Wilson's interval on `trials` trials, the number of problems by default.
    Raises ValueError for no values, nan, or proportions outside 0..100.
    """
    values_P = np.asarray(values_P, dtype=float)
    return stratified_interval(
        values_P,
        np.zeros(len(values_P), dtype=int),
        confidence,
        seed,
        trials=trials,
        proportion=proportion,
        resamples=resamples,
    )


def stratified_interval(
    values: ArrayLike,
    benchmarks_P: ArrayLike,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    statistic: Statistic | None = None,
    trials: int | None = None,
    proportion: bool = True,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the BCa interval of the unweighted mean over benchmarks, or of another statistic.

    `values` is (problems,) or (problems, V), `benchmarks_P` names each problem's benchmark.
    `statistic` takes the (..., B, V) means, benchmarks in sorted order, and returns the numbers
    (...) (AES: V = accuracy and length of a model and its reference, whose problems then stay
    paired); by default it is the mean of all of them. Otherwise as `bootstrap_interval`; Wilson's
    default trials are the effective number B^2 / sum(1 / P_b), which gives a proportion the
    variance of the unweighted mean. A benchmark of one problem has no spread to resample, and one
    outcome says nothing of it: `none`. A statistic that is nan in some resample (AES against a
    reference that nearly never solves anything) has nan ends.
    """
    values_PV, members = checked(values, benchmarks_P)
    sizes = np.array([len(member) for member in members])
    if sizes.min() < 2:
        return Interval(np.nan, np.nan, "none")
    if statistic is None and proportion:
        if _all_equal(values_PV):
            effective = len(sizes) ** 2 / np.sum(1.0 / sizes)
            return _wilson(values_PV[0, 0], effective if trials is None else trials, confidence)
    elif all(_all_equal(values_PV[member]) for member in members):
        # No resample differs (lengths may be alike within every benchmark): BCa divides 0 by 0.
        return _constant(_estimate(values_PV, members, statistic))
    return _bca(values_PV, members, statistic, confidence, resamples, seed)


def seed_interval(values_S: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return Student's t interval of the mean over training seeds, nan ends below two seeds."""
    values_S = np.asarray(values_S, dtype=float)
    if len(values_S) < 2:
        return Interval(np.nan, np.nan, "none")
    if _all_equal(values_S):
        return _constant(values_S[0])
    half = stats.sem(values_S) * stats.t.ppf(0.5 + confidence / 2, len(values_S) - 1)
    return Interval(float(values_S.mean() - half), float(values_S.mean() + half), "student")


def difference_of_means(means_BV: FloatArray) -> FloatArray:
    """The first column less the second, unweighted mean over the benchmarks: a `Statistic`."""
    return (means_BV[..., 0] - means_BV[..., 1]).mean(axis=-1)


def holm(p_values: Sequence[float] | FloatArray) -> FloatArray:
    """Return Holm's adjusted p-values in the order given: one family is one table and scale.

    Raises ValueError for a p-value that is nan or outside 0..1.
    """
    p_values = np.asarray(p_values, dtype=float)
    if not np.all((p_values >= 0) & (p_values <= 1)):
        raise ValueError(f"p-values must lie in 0..1: {p_values.tolist()}")
    if p_values.size == 0:
        return p_values
    return multipletests(p_values, method="holm")[1]


def reachable(value_percent: float, n: int, k: int, decimals: int = 2) -> bool:
    """Return whether a mean over n problems x k samples can print as this percentage.

    Such a mean is 100 m / (n k) for a whole m in 0..nk; for "any sample correct" (pass@k), k = 1.
    The value is read as printed with `decimals` digits; a mean half way between two printed values
    may be printed either way. nan is not reachable. Raises ValueError where n or k is below 1.
    """
    if n < 1 or k < 1:
        raise ValueError(f"a mean needs at least one problem and one sample: n={n}, k={k}")
    if not np.isfinite(value_percent):
        return False
    # Fractions, because the half-way case decides and 100 m / (n k) is rarely a binary fraction.
    printed = Fraction(str(round(float(value_percent), decimals)))
    nearest = min(max(round(printed * n * k / 100), 0), n * k)
    return abs(Fraction(100 * nearest, n * k) - printed) <= Fraction(1, 2 * 10**decimals)


def _all_equal(values: FloatArray) -> bool:
    # Within rounding: 100/3 reached by two orders of summation differs in its last bit.
    return bool(np.allclose(values, values[0], rtol=1e-12, atol=1e-12))


def _constant(value: float) -> Interval:
    return Interval(float(value), float(value), "constant")


def _wilson(percent: float, trials: float, confidence: float) -> Interval:
    if not 0 <= percent <= 100:
        raise ValueError(f"{percent} is no percentage: pass proportion=False for other values")
    low, high = proportion_confint(percent / 100 * trials, trials, 1 - confidence, method="wilson")
    # Rounding would otherwise leave 100 % outside of its own interval, by 1e-14.
    return Interval(float(min(100 * low, percent)), float(max(100 * high, percent)), "wilson")


def _estimate(
    values_PV: FloatArray, members: list[NDArray[np.intp]], statistic: Statistic | None
) -> float:
    means_BV = means_by_benchmark(values_PV, members)
    return float(means_BV.mean() if statistic is None else statistic(means_BV))


def _bca(
    values_PV: FloatArray,
    members: list[NDArray[np.intp]],
    statistic: Statistic | None,
    confidence: float,
    resamples: int,
    seed: int,
) -> Interval:
    """Resample row numbers within strata, so that the columns of a problem stay together."""

    def resampled(*rows: FloatArray, axis: int) -> FloatArray:
        # scipy hands the row numbers back as floats, with the resamples on the leading axes.
        means = np.stack([values_PV[r.astype(np.intp)].mean(axis=-2) for r in rows], axis=-2)
        return means.mean(axis=(-2, -1)) if statistic is None else statistic(means)

    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # nan ends, looked at below
        result = stats.bootstrap(
            members,
            resampled,
            n_resamples=resamples,
            batch=BATCH,
            vectorized=True,
            axis=-1,
            confidence_level=confidence,
            method="BCa",
            rng=np.random.default_rng(seed),
        )
    low, high = result.confidence_interval
    if np.isnan(low) and _all_equal(result.bootstrap_distribution):
        # Values that differ, but not what the statistic makes of them: equal lengths of two models.
        return _constant(result.bootstrap_distribution[0])
    return Interval(float(low), float(high), "bca")
