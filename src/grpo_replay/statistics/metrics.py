"""The paper's numbers for one model on one benchmark: avg@k, pass@k, AES, length by correctness.

Plain functions of arrays, so that every table, figure and test computes a number in one way.
`_PK` marks an array with one row a problem (P) and one column a sampled answer (K).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

GAIN_WEIGHT = 3.0
LOSS_WEIGHT = 5.0


def avg_at_k(correct_PK: ArrayLike) -> float:
    """Return avg@k in percent: the share of correct answers over all problems and samples.

    Implements avg@k of "Evaluation" (Table 1). `correct_PK` is boolean, (problems, samples).
    Raises ValueError where it is empty, not two-dimensional or holds other values than 0 and 1.
    """
    return float(100.0 * _as_correct(correct_PK).mean())


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance, in [0, 1], that k of n samples, c of them correct, hold a correct one.

    The unbiased estimator 1 - C(n-c, k) / C(n, k), drawn without replacement; at k = n it is the
    paper's pass@k, "any sample correct". Raises ValueError where k > n, k < 1 or c is not in 0..n.
    """
    if k > n:
        raise ValueError(f"pass@k needs at least k samples a problem: k={k} is above n={n}")
    if k < 1:
        raise ValueError(f"pass@k needs k of at least 1: k={k}")
    if not 0 <= c <= n:
        raise ValueError(f"the number of correct samples must be in 0..n: c={c}, n={n}")
    n, c, k = int(n), int(c), int(k)  # Python's integers: C(64, 32) overflows those of numpy
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def mean_pass_at_k(correct_PK: ArrayLike, k: int) -> float:
    """Return pass@k in percent: the estimator of each problem first, then the mean over problems.

    Implements pass@k of "Evaluation" (Table 1) for k = samples, and its curve for smaller k.
    `correct_PK` is boolean, (problems, samples). Raises ValueError as `avg_at_k` and `pass_at_k`.
    """
    correct_PK = _as_correct(correct_PK)
    n = correct_PK.shape[1]
    # The estimator takes n + 1 values only, so a table is cheaper than a call for each problem.
    estimate_by_count = np.array([pass_at_k(n, c, k) for c in range(n + 1)])
    return float(100.0 * estimate_by_count[correct_PK.sum(axis=1)].mean())


def accuracy_efficiency_score(
    accuracy: ArrayLike,
    length: ArrayLike,
    reference_accuracy: ArrayLike,
    reference_length: ArrayLike,
) -> NDArray[np.float64] | np.float64:
    """Return the AES of a model against a reference (Tables 5 and 13): above 0 is better.

    AES = (L_ref - L) / L_ref + beta (A - A_ref) / A_ref; beta is 3 for a gain in accuracy (or
    none) and 5 for a loss. Accuracies in one unit (percent), lengths in one unit (tokens), each the
    unweighted mean over the benchmarks; numbers, or arrays of one shape. A reference of 0 has no
    relative change: the score is nan, which tables show as a dash.
    """
    gain = relative_change(accuracy, reference_accuracy)
    weight = np.where(gain >= 0, GAIN_WEIGHT, LOSS_WEIGHT)
    return weight * gain - relative_change(length, reference_length)


def relative_change(value: ArrayLike, reference: ArrayLike) -> NDArray[np.float64] | np.float64:
    """Return (value - reference) / reference, nan against 0; numbers, or arrays of one shape."""
    return ratio(np.subtract(value, reference), reference)


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> NDArray[np.float64] | np.float64:
    """Return the quotient, nan where the denominator is 0; numbers, or arrays of one shape."""
    denominator = np.asarray(denominator, dtype=float)
    return np.divide(numerator, np.where(denominator == 0, np.nan, denominator))


def length_by_correctness(lengths: ArrayLike, correct: ArrayLike) -> tuple[float, float]:
    """Return the mean length in tokens of the correct and of the incorrect answers (Tables 6, 11).

    `lengths` and `correct` have one equal shape of any number of axes; every answer counts once.
    A side without answers is nan. Raises ValueError where the shapes differ.
    """
    lengths, correct = np.asarray(lengths, dtype=float), _as_bool(correct)
    if lengths.shape != correct.shape:
        raise ValueError(f"lengths {lengths.shape} and correct {correct.shape} differ in shape")
    return _mean_or_nan(lengths[correct]), _mean_or_nan(lengths[~correct])


def _mean_or_nan(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else math.nan


def _as_correct(correct_PK: ArrayLike) -> NDArray[np.bool_]:
    correct_PK = _as_bool(correct_PK)
    if correct_PK.ndim != 2 or correct_PK.size == 0:
        raise ValueError(f"expected (problems, samples), none empty: got shape {correct_PK.shape}")
    return correct_PK


def _as_bool(values: ArrayLike) -> NDArray[np.bool_]:
    values = np.asarray(values)
    # A missing verdict (nan, None) would silently become True or False.
    if values.dtype != bool and not np.isin(values, (0, 1)).all():
        raise ValueError("expected True or False for every answer: a verdict is missing or invalid")
    return values.astype(bool)
