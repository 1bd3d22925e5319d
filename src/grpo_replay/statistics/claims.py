"""A claim about methods, judged over training seeds: contrasts, and verdicts that they allow.

Values are paired by seed; `_N` marks one value a seed, `_RN` a row a rival, `_AN` a row a point of
an axis. Every contrast ends in one difference a seed, which is above 0 if the claim is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from grpo_replay.statistics.benchmark_means import FloatArray
from grpo_replay.statistics.intervals import holm
from grpo_replay.statistics.seed_tests import LEVEL, SeedEvidence, seed_evidence


class Verdict(StrEnum):
    """What the seeds say of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    EQUAL = "equal within the margin"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Finding:
    """The evidence on a claim: that of its one difference, or of the rival that decides.

    `p` is what Holm's adjustment takes, nan where there is no test; `p_equal` that of equality with
    all rivals. `rival` is the row of the rival whose difference `evidence` tells.
    """

    evidence: SeedEvidence
    p: float
    p_equal: float
    rival: int = 0


def pair(difference_N: ArrayLike, margin: float, tests: int = 1) -> Finding:
    """Two conditions: their difference over seeds. Raises ValueError as `seed_evidence`."""
    evidence = seed_evidence(difference_N, margin, tests)
    return Finding(evidence, evidence.p, evidence.p_equal)


def best_of(difference_RN: ArrayLike, margin: float, tests: int = 1) -> Finding:
    """One condition against each rival: it is the best if it beats them all.

    Each pair is tested at the whole level and p is the largest (intersection-union). If a rival is
    ahead, the claim is wrong as soon as one pair says so: p is the smallest of the pairs behind,
    times the number of pairs. Raises ValueError as `seed_evidence`, or without a rival.
    """
    found = [seed_evidence(row_N, margin, tests) for row_N in np.atleast_2d(difference_RN)]
    if not found:
        raise ValueError("best of what? there is no rival")
    p_equal = float(np.max([one.p_equal for one in found]))
    p_R, difference_R = (np.array([getattr(f, n) for f in found]) for n in ("p", "difference"))
    if np.isnan(p_R).any():
        rival, p = int(difference_R.argmin()), np.nan
    elif (difference_R > 0).all():
        rival, p = int(p_R.argmax()), p_R.max()
    else:
        rival = int(np.where(difference_R > 0, np.inf, p_R).argmin())
        p = min(len(found) * p_R[rival], 1.0)
    return Finding(found[rival], float(p), p_equal, rival)


def rise_over(values_AN: ArrayLike, axis_A: Sequence[float]) -> FloatArray:
    """Return each seed's rise (N,) from the first to the last point of an axis, along its line of
    least squares: the slope, in the unit of the values. Raises ValueError below two points.
    """
    values_AN, axis_A = np.asarray(values_AN, dtype=float), np.asarray(axis_A, dtype=float)
    if len(axis_A) < 2 or np.ptp(axis_A) == 0:
        raise ValueError(f"a trend needs two points of its axis: {axis_A.tolist()}")
    slope_N = stats.linregress(axis_A[:, None], values_AN, axis=0).slope
    return np.asarray(slope_N * np.ptp(axis_A))


def judged(findings: Sequence[Finding | None]) -> list[tuple[float, Verdict]]:
    """Return Holm-adjusted p (nan: no test) and verdict of each claim of one family.

    None, for seeds of which some are missing, is undecided and takes no part in the adjustment.
    """
    taken = np.array([np.nan if finding is None else finding.p for finding in findings])
    tested = ~np.isnan(taken)
    taken[tested] = holm(taken[tested])
    return [(float(p), verdict(f, p)) for f, p in zip(findings, taken, strict=True)]


def verdict(finding: Finding | None, p_adjusted: float) -> Verdict:
    """Judge a claim by its adjusted p, its sign, and whether its 90 % interval lies within the
    margin (TOST at 5 %); of `best_of`, whether all of them do.
    """
    if finding is None:
        return Verdict.UNDECIDED
    if p_adjusted < LEVEL:
        return Verdict.HOLDS if finding.evidence.difference > 0 else Verdict.FAILS
    return Verdict.EQUAL if finding.p_equal < LEVEL else Verdict.UNDECIDED
