"""The paired permutation test by enumeration, and how often it errs on models that are equal."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

from grpo_replay.reporting.numbers.significance import p_over_seeds
from grpo_replay.statistics.intervals import difference_of_means
from grpo_replay.statistics.metrics import accuracy_efficiency_score, ratio
from grpo_replay.statistics.permutation import EXCHANGES, MOST_ENUMERATED, exchange_test, exchanged

STRATA = np.array(["large"] * 5 + ["small"] * 2)


def aes(means_BV: np.ndarray) -> np.ndarray:
    """Accuracy and length of a model, then of its reference; further columns are not read."""
    return accuracy_efficiency_score(*np.moveaxis(means_BV.mean(axis=-2), -1, 0)[:4])


def lead(means_BV: np.ndarray) -> np.ndarray:
    """AES of one model less that of another, both against the last two columns."""
    one, other, fixed = np.split(means_BV, 3, axis=-1)
    return aes(np.concatenate([one, fixed], -1)) - aes(np.concatenate([other, fixed], -1))


def pooled_ratio(means_BV: np.ndarray) -> np.ndarray:
    """Tokens over answers of one model, against those of the other, all problems together."""
    sums_V = np.array([5, 2]) @ means_BV
    return ratio(sums_V[..., 0], sums_V[..., 1]) / ratio(sums_V[..., 2], sums_V[..., 3])


def by_enumeration(values_PV: np.ndarray, statistic: Callable, width: int) -> float:
    """Every exchange, one by one, without anything of the code that is tested."""
    numbers = []
    for swaps in product((False, True), repeat=len(values_PV)):
        rows = [
            [*row[width : 2 * width], *row[:width], *row[2 * width :]] if swap else list(row)
            for swap, row in zip(swaps, values_PV.tolist(), strict=True)
        ]
        rows = np.array(rows)
        means_BV = np.stack([rows[:5].mean(axis=0), rows[5:].mean(axis=0)])
        numbers.append(round(float(statistic(means_BV)), 9))
    found = numbers[0]
    tails = (np.mean([n <= found for n in numbers]), np.mean([n >= found for n in numbers]))
    return min(1.0, 2 * min(tails))


@pytest.mark.parametrize(
    ("statistic", "width", "columns"),
    [(difference_of_means, 1, 2), (aes, 2, 4), (lead, 2, 6), (pooled_ratio, 2, 4)],
    ids=["difference", "aes", "fixed-reference", "pooled-ratio"],
)
def test_p_equals_enumeration(statistic: Callable, width: int, columns: int) -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(5):
        values_PV = rng.integers(1, 20, size=(7, columns)).astype(float)
        values_PV[3, width : 2 * width] = values_PV[3, :width]  # a tie
        p = exchange_test(values_PV, STRATA, statistic, width)
        assert p == pytest.approx(by_enumeration(values_PV, statistic, width))
        found.append(p)
    assert len(set(found)) > 2


def test_p_by_hand() -> None:
    """Two problems, a ratio of 2: the exchanges give 2, 1, 1 and 1/2, so p = 2 x 1/4."""
    values_PV = np.array([[6.0, 3.0], [6.0, 3.0]])

    def quotient(means_BV: np.ndarray) -> np.ndarray:
        return means_BV[..., 0, 0] / means_BV[..., 0, 1]

    assert exchange_test(values_PV, ["a", "a"], quotient) == 0.5
    assert exchange_test(values_PV[:1], ["a"], quotient) == 1.0
    assert exchange_test(values_PV[:, [0, 0]], ["a", "a"], quotient) == 1.0


def test_a_difference_of_means_has_the_p_of_the_sign_flip_test() -> None:
    """Also where exchanges are drawn: they are the random signs of scipy's one-sample test."""
    values_PV = np.random.default_rng(4).random((40, 2)) + [0.15, 0.0]
    signs = stats.permutation_test(
        (values_PV[:, 0] - values_PV[:, 1],),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=EXCHANGES,
        batch=500,
        rng=np.random.default_rng(0),
    )
    p = exchange_test(values_PV, np.zeros(40), difference_of_means)
    assert p == pytest.approx(signs.pvalue) and 1e-3 < p < 0.1
    assert 2**MOST_ENUMERATED <= EXCHANGES < 2 ** (MOST_ENUMERATED + 1)


def test_ratio_logarithm_and_difference_of_two_means_have_one_p() -> None:
    values_PV = np.random.default_rng(5).gamma(3, 100, size=(60, 2)) * [1.15, 1.0]
    strata = np.repeat(["a", "b"], [40, 20])

    def quotient(means_BV: np.ndarray) -> np.ndarray:
        return means_BV[..., 0].mean(-1) / means_BV[..., 1].mean(-1)

    statistics = (difference_of_means, quotient, lambda means_BV: np.log(quotient(means_BV)))
    found = [exchange_test(values_PV, strata, statistic) for statistic in statistics]
    assert found[0] == found[1] == found[2] < 0.3


def test_a_number_that_an_exchange_leaves_undefined_has_no_p() -> None:
    """One model has no such answer but for one problem: exchanged there, it has none at all."""
    tokens_and_answers_PV = np.tile([10.0, 1.0, 0.0, 0.0], (7, 1))
    tokens_and_answers_PV[0, 2:] = [8.0, 1.0]
    tokens_and_answers_PV[0, :2] = 0.0
    assert np.isnan(exchange_test(tokens_and_answers_PV, STRATA, pooled_ratio, 2))
    one_moves = np.tile([10.0, 1.0, 10.0, 1.0], (7, 1))
    assert exchange_test(one_moves, STRATA, pooled_ratio, 2) == 1.0


def test_bad_values_are_refused() -> None:
    with pytest.raises(ValueError, match="two models of 2 columns need 4: 3"):
        exchange_test(np.ones((7, 3)), STRATA, aes, 2)
    with pytest.raises(ValueError, match=r"nan at problems \[0"):
        exchange_test(np.full((7, 4), np.nan), STRATA, aes, 2)


def test_exchanged_leaves_a_further_model_in_place() -> None:
    assert exchanged(np.arange(6.0), 2).tolist() == [2, 3, 0, 1, 4, 5]
    assert exchanged(np.arange(2.0), 1).tolist() == [1, 0]


# --- how often it is wrong, and right ------------------------------------------------------------


def two_models(rng: np.random.Generator, shorter: float = 1.0) -> np.ndarray:
    """Accuracy and length of two models on 40 problems; the first writes `shorter` times less."""
    rate, length = rng.beta(1, 1, size=40), rng.gamma(4, 100, size=40)
    columns = []
    for factor in (shorter, 1.0):
        columns += [
            100 * rng.binomial(64, rate) / 64,
            factor * length * rng.gamma(20, 0.05, size=40),
        ]
    return np.column_stack(columns)


def p_of(values_PV: np.ndarray, seed: int) -> float:
    strata = np.repeat(["a", "b", "c"], [20, 10, 10])
    return exchange_test(values_PV, strata, aes, 2, seed, exchanges=199)


def test_p_of_the_aes_is_uniform_for_models_that_are_equal() -> None:
    """Though the AES itself is below 0 on average: a loss weighs 5, a gain 3."""
    rng = np.random.default_rng(6)
    p_values = np.array([p_of(two_models(rng), seed) for seed in range(400)])
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3
    assert 0.02 <= np.mean(p_values <= 0.05) <= 0.085


def test_a_model_that_differs_is_found() -> None:
    rng = np.random.default_rng(7)
    p_values = np.array([p_of(two_models(rng, shorter=0.5), seed) for seed in range(100)])
    assert np.mean(p_values <= 0.05) > 0.9


def test_p_over_seeds_of_the_aes_is_right_for_models_that_are_equal() -> None:
    """A t test of "the AES is 0" would find a difference, and more often with more seeds."""
    rng = np.random.default_rng(8)
    p_values, naive = [], []
    for _ in range(1000):
        one, other = rng.normal(50, 4, size=(2, 100))
        values, other_way = (aes_of(*pair) for pair in ((one, other), (other, one)))
        p_values.append(p_over_seeds(values, other_way))
        naive.append(stats.ttest_1samp(values, 0).pvalue)
    assert 0.035 <= np.mean(np.array(p_values) <= 0.05) <= 0.065
    assert np.mean(np.array(naive) <= 0.05) > 0.15


def aes_of(accuracy: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return accuracy_efficiency_score(accuracy, 100.0, reference, 100.0)


def test_p_over_seeds_by_hand() -> None:
    """Of a difference it is the paired t test: differences 1, 2, 3, t = 2 / (1 / sqrt(3))."""
    difference = np.array([1.0, 2.0, 3.0])
    expected = 2 * stats.t.sf(2 * np.sqrt(3), 2)
    assert p_over_seeds(difference, -difference) == pytest.approx(expected)
    assert p_over_seeds(difference[:2], -difference[:2]) is None
    assert p_over_seeds([0.3, 0.1 + 0.2, 0.3], [0.0, 0.0, 0.0]) is None  # all alike
    assert p_over_seeds([1.0, np.nan, 2.0], [0.0, 0.0, 0.0]) is None
