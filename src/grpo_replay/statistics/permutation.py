"""The paired permutation test: are two models interchangeable on every problem?

If they are, it plays no part which of the two gave an answer: exchanging their answers to any set
of problems gives a number that is as likely as the one found. The test exchanges them at random,
problem by problem, and asks how far out the number found lies among those. It holds for any number
that is made of two models (a difference of means, where it is the sign-flip test; a ratio; the
AES), and needs no law of the values. Answers to one problem always move together.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from grpo_replay.statistics.benchmark_means import (
    FloatArray,
    Statistic,
    checked,
    means_by_benchmark,
)

# With 9,999 random exchanges, or all 2^n of them where n = 13 problems or fewer differ.
EXCHANGES = 9_999
MOST_ENUMERATED = EXCHANGES.bit_length() - 1
_BATCH = 500  # bounds the memory: 500 exchanges of 500 problems x 8 bytes are 2 MB an array
_TIE = 1e-12


def exchange_test(
    values_PV: ArrayLike,
    benchmarks_P: ArrayLike,
    statistic: Statistic,
    width: int = 1,
    seed: int = 0,
    *,
    exchanges: int = EXCHANGES,
) -> float:
    """Return the two-sided p of a number of two models on the same problems.

    `values_PV` has `width` columns of one model, as many of the other, and any that stay where they
    are (a fixed reference); `benchmarks_P` names the benchmark of each problem. `statistic` makes
    the number as in `stratified_interval`. p is twice the smaller tail: no rising function of the
    number changes it, so a ratio has the p of its logarithm, and of a difference of the same two
    means (whose sum no exchange changes). nan where some exchange leaves the number undefined.
    Raises ValueError as `checked`, or for fewer than 2 x `width` columns.
    """
    values_PV, members = checked(values_PV, benchmarks_P)
    if values_PV.shape[1] < 2 * width:
        raise ValueError(f"two models of {width} columns need {2 * width}: {values_PV.shape[1]}")
    change_PV = exchanged(values_PV, width) - values_PV
    # A problem on which the two are equal stays as it is; without it more cases can be enumerated.
    moved = np.flatnonzero(np.abs(change_PV).max(axis=1) > _TIE)
    means_BV = means_by_benchmark(values_PV, members)
    added_MBV = _added_to_means(change_PV, members)[moved]

    def number(exchanged_NM: FloatArray, _: FloatArray, axis: int = -1) -> FloatArray:
        means_NBV = means_BV + np.tensordot(exchanged_NM, added_MBV, axes=1)
        # Rounded, so that numbers which are equal in exact arithmetic count as ties.
        return np.round(statistic(means_NBV), 9)

    stay, move = np.zeros(len(moved)), np.ones(len(moved))
    if len(moved) < 2:  # one exchange: both outcomes are as extreme
        return float("nan") if np.isnan([number(stay, move), number(move, stay)]).any() else 1.0
    result = stats.permutation_test(
        (stay, move),  # so that the first sample of a permutation says which problems moved
        number,
        permutation_type="samples",
        vectorized=True,
        n_resamples=exchanges,
        batch=_BATCH,
        rng=np.random.default_rng(seed),
    )
    undefined = np.isnan(result.null_distribution).any()
    return float("nan") if undefined else float(result.pvalue)


def exchanged(values_V: FloatArray, width: int) -> FloatArray:
    """Return the columns (..., V) with those of the two models in each other's place."""
    one, other, fixed = np.split(values_V, [width, 2 * width], axis=-1)
    return np.concatenate([other, one, fixed], axis=-1)


def _added_to_means(change_PV: FloatArray, members: list) -> FloatArray:
    """Return what the exchange of each problem adds to the means: (P, B, V), one benchmark each."""
    added_PBV = np.zeros((len(change_PV), len(members), change_PV.shape[1]))
    for benchmark, member in enumerate(members):
        added_PBV[member, benchmark] = change_PV[member] / len(member)
    return added_PBV
