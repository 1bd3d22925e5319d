"""What training seeds say of a difference: t test, test of equality, and what they can detect.

The unit is the training seed: one difference a seed, between two models that share it. `_N` marks
one value a seed.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from statsmodels.stats.weightstats import DescrStatsW

from grpo_replay.statistics.benchmark_means import FloatArray

LEVEL, POWER = 0.05, 0.8
# A t test of two pairs of seeds has one degree of freedom: it can say nothing.
FEWEST_SEEDS = 3
MOST_SEEDS = 1_000_000  # what needs more is asked of nobody


@dataclass(frozen=True)
class SeedEvidence:
    """A difference over seeds, in the unit of its values; nan where the seeds cannot say it.

    `low` and `high` are Student's 95 % interval, `equal_low` and `equal_high` the 90 % interval of
    the test of equality (TOST); `p` is two-sided, `p_equal` that of TOST. `detectable` is the
    smallest true difference that these seeds find with a power of 80 % at their own spread,
    `needed` the seeds that find one as large as the margin; None where no number of them does.
    """

    seeds: int
    difference: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    equal_low: float = np.nan
    equal_high: float = np.nan
    p_equal: float = np.nan
    detectable: float = np.nan
    needed: int | None = None


def seed_evidence(difference_N: ArrayLike, margin: float, tests: int = 1) -> SeedEvidence:
    """Return what the paired differences of the seeds (N,) say.

    `tests` is how many tests share the level (the first step of Holm): power is computed at
    level / tests. Below three seeds, or where all agree, there is the mean alone.
    Raises ValueError for nan, no seed, or a margin that is not above 0.
    """
    difference_N = np.asarray(difference_N, dtype=float)
    if difference_N.ndim != 1 or not len(difference_N) or np.isnan(difference_N).any():
        raise ValueError(f"one difference a seed, none nan: {difference_N.tolist()}")
    if not margin > 0:
        raise ValueError(f"a margin of equivalence is above 0: {margin}")
    seeds, mean = len(difference_N), float(difference_N.mean())
    if not testable(difference_N):
        return SeedEvidence(seeds, mean)
    described = DescrStatsW(difference_N)
    p_equal = described.ttost_mean(-margin, margin)[0]  # as `ttost_paired` of the two columns
    spread = float(difference_N.std(ddof=1))
    return SeedEvidence(
        seeds,
        mean,
        *map(float, described.tconfint_mean(LEVEL)),
        float(described.ttest_mean(0)[1]),
        *map(float, described.tconfint_mean(2 * LEVEL)),
        float(p_equal),
        spread * detectable_effect(seeds, LEVEL / tests),
        seeds_needed(margin / spread, LEVEL / tests),
    )


def testable(difference_N: FloatArray) -> bool:
    """Whether a t test can say anything: three seeds or more, and not all of them alike."""
    return len(difference_N) >= FEWEST_SEEDS and np.ptp(difference_N) >= 1e-9


def detectable_effect(seeds: int, level: float = LEVEL, power: float = POWER) -> float:
    """Return the difference, in standard deviations of the paired difference, that a two-sided t
    test over so many seeds finds with this power. Raises ValueError below two seeds.
    """
    if seeds < 2:
        raise ValueError(f"a t test needs two seeds: {seeds}")
    # Not statsmodels' TTestPower: its power is nan in the far tail, and what it then solves for is
    # wrong by a half without a word (3 seeds at 0.05 / 20: 5.5, and not 14.6). The tail of the
    # other sign, which this leaves out, has a chance below 1e-4 at a power of 80 %.
    freedom = seeds - 1
    critical = special.stdtrit(freedom, 1 - level / 2)
    return float(special.nctdtrinc(freedom, 1 - power, critical) / np.sqrt(seeds))


def seeds_needed(effect: float, level: float = LEVEL, power: float = POWER) -> int | None:
    """Return the fewest seeds, three at least, whose t test finds a difference of `effect` standard
    deviations with this power; None above a million. Raises ValueError for no effect.
    """
    if not effect > 0:
        raise ValueError(f"an effect is above 0: {effect}")
    counts = range(FEWEST_SEEDS, MOST_SEEDS + 1)
    place = bisect_left(counts, True, key=lambda n: detectable_effect(n, level, power) <= effect)
    return counts[place] if place < len(counts) else None
