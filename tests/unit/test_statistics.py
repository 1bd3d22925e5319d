"""Statistics against enumeration, hand-computed values, simulation, and the published Table 1."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from grpo_replay.reporting.paper import published
from grpo_replay.reporting.tables.notes import INTERVALS
from grpo_replay.statistics.intervals import (
    Interval,
    bootstrap_interval,
    holm,
    reachable,
    seed_interval,
    stratified_interval,
)
from grpo_replay.statistics.metrics import accuracy_efficiency_score, avg_at_k, mean_pass_at_k

# --- intervals -----------------------------------------------------------------------------------


def simulated_percent(rng: np.random.Generator, problems: int, samples: int = 16) -> np.ndarray:
    """Percent correct a problem, where hard problems prevail: a mean of 25 %, skewed."""
    difficulty_P = rng.beta(0.5, 1.5, size=problems)
    return 100 * rng.binomial(samples, difficulty_P) / samples


def test_bca_interval_covers_the_true_mean() -> None:
    rng = np.random.default_rng(1)
    repetitions = 400
    intervals = [
        bootstrap_interval(simulated_percent(rng, 30), seed=i, resamples=999)
        for i in range(repetitions)
    ]
    low, high = (np.array([getattr(i, end) for i in intervals]) for end in ("low", "high"))
    coverage = np.mean((low <= 25) & (high >= 25))
    # 0.93 or so at 30 skewed problems; three standard errors of the simulation are 0.035.
    assert 0.90 <= coverage <= 0.98
    # Both tails are missed, neither much more than the nominal 2.5 %.
    assert np.mean(low > 25) <= 0.06
    assert np.mean(high < 25) <= 0.075


def test_an_interval_near_zero_is_as_short_as_the_note_says() -> None:
    """The tables' note names a limit: it must be taken back if the interval gets better."""
    rng = np.random.default_rng(11)
    hits = 0
    for i in range(300):
        share_P = rng.beta(0.024, 0.976, size=30)  # a mean of 2.4 %
        percent_P = 100 * rng.binomial(16, share_P) / 16
        interval = bootstrap_interval(percent_P, seed=i, resamples=499)
        hits += interval.low <= 2.4 <= interval.high
    assert 0.76 <= hits / 300 <= 0.92
    assert "too short: at 2.4" in INTERVALS


def test_stratified_interval_covers_the_unweighted_mean() -> None:
    """Strata of very different means and sizes: pooling or weighting by size would miss 37.5."""
    rng = np.random.default_rng(2)
    strata = np.repeat(["large", "small"], [60, 20])
    hits = 0
    for i in range(250):
        easy = 100 * rng.binomial(16, rng.beta(3, 3, size=60)) / 16  # mean 50
        interval = stratified_interval(
            np.concatenate([easy, simulated_percent(rng, 20)]), strata, seed=i, resamples=499
        )
        hits += interval.low <= 37.5 <= interval.high
    assert 0.88 <= hits / 250 <= 0.985


def test_bca_interval_agrees_with_scipy_on_one_sample() -> None:
    values_P = simulated_percent(np.random.default_rng(3), 40)
    ours = bootstrap_interval(values_P, seed=5)
    low, high = stats.bootstrap(
        (values_P,), np.mean, method="BCa", rng=np.random.default_rng(6)
    ).confidence_interval
    assert ours.method == "bca"
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.7)


def test_interval_depends_on_the_seed_alone() -> None:
    values_P = simulated_percent(np.random.default_rng(4), 30)
    np.random.seed(0)
    first = bootstrap_interval(values_P, seed=7)
    np.random.seed(1)
    assert bootstrap_interval(values_P, seed=7) == first
    narrow = bootstrap_interval(values_P, confidence=0.5, seed=7)
    assert first.low < narrow.low < values_P.mean() < narrow.high < first.high


def test_equal_outcomes_have_wilsons_interval() -> None:
    # By hand, for 0 of n: 0 .. z^2 / (n + z^2), z = 1.959964.
    z2 = 3.841459
    none_right = bootstrap_interval(np.zeros(30))
    assert none_right.method == "wilson"
    assert (none_right.low, none_right.high) == pytest.approx((0.0, 100 * z2 / (30 + z2)), abs=1e-4)
    all_right = bootstrap_interval(np.full(30, 100.0))
    assert all_right.high == 100.0
    assert all_right.low == pytest.approx(100 - none_right.high)
    assert bootstrap_interval(np.zeros(30), trials=480).high == pytest.approx(
        100 * z2 / (480 + z2), abs=1e-4
    )


def test_equal_outcomes_of_all_benchmarks_count_effective_trials() -> None:
    strata = np.repeat(list("abcde"), [500, 30, 30, 30, 33])
    effective = 25 / (1 / 500 + 3 / 30 + 1 / 33)
    expected = 100 * 3.841459 / (effective + 3.841459)
    interval = stratified_interval(np.zeros(623), strata)
    assert interval.method == "wilson"
    assert interval.high == pytest.approx(expected, abs=1e-4)


def test_equal_lengths_and_single_problems() -> None:
    assert bootstrap_interval([64.0] * 4, proportion=False) == Interval(64.0, 64.0, "constant")
    with pytest.raises(ValueError, match="proportion=False"):
        bootstrap_interval([8192.0] * 4)
    assert bootstrap_interval([64.0], proportion=False).method == "none"
    assert bootstrap_interval([100.0]).method == "none"  # not 0 to 100, nor 21 to 100
    assert stratified_interval([0.0, 0.0, 0.0], ["a", "a", "b"]).method == "none"
    single = stratified_interval([0.0, 50.0, 100.0], ["a", "a", "b"])
    assert single.method == "none"
    assert np.isnan([single.low, single.high]).all()


def test_lengths_that_are_alike_within_each_benchmark_give_zero_width() -> None:
    lengths, strata = [22.0, 22.0, 62.0, 62.0], ["a", "a", "b", "b"]
    interval = stratified_interval(lengths, strata, proportion=False)
    assert interval == Interval(42.0, 42.0, "constant")


def test_small_discrete_samples_always_have_an_ordered_interval() -> None:
    for outcomes in product((0.0, 100.0), repeat=5):
        interval = bootstrap_interval(outcomes, resamples=99)
        assert 0 <= interval.low <= np.mean(outcomes) <= interval.high <= 100, outcomes


@pytest.mark.parametrize(
    ("values", "strata", "message"),
    [
        ([], [], "no problems"),
        ([1.0, np.nan], ["a", "a"], r"nan at problems \[1\]"),
        ([1.0, 2.0], ["a"], "2 problems but benchmarks"),
    ],
)
def test_intervals_refuse_bad_values(values: list, strata: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stratified_interval(values, strata)


def test_interval_of_a_statistic_keeps_a_problems_columns_together() -> None:
    """AES of a model against itself is 0 in every resample only if its columns stay paired."""
    rng = np.random.default_rng(8)
    model = np.column_stack([simulated_percent(rng, 40), rng.gamma(3, 300, size=40)])
    strata = np.repeat(["a", "b"], 20)

    def aes(means_BV: np.ndarray) -> float:
        return accuracy_efficiency_score(*np.moveaxis(means_BV.mean(axis=-2), -1, 0))

    shorter = np.column_stack([model[:, 0], 0.8 * model[:, 1], model])
    interval = stratified_interval(shorter, strata, statistic=aes, resamples=199)
    # A fifth shorter on every problem: AES is 0.2, whichever problems are drawn.
    assert (interval.low, interval.high) == pytest.approx((0.2, 0.2))
    shorter[:, 2] = simulated_percent(rng, 40)
    interval = stratified_interval(shorter, strata, statistic=aes, resamples=999)
    assert (
        interval.low < aes(np.stack([shorter[:20].mean(0), shorter[20:].mean(0)])) < interval.high
    )


def test_interval_over_seeds_is_students() -> None:
    # By hand: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.302653.
    interval = seed_interval([1.0, 2.0, 3.0])
    assert interval.method == "student"
    assert (interval.low, interval.high) == pytest.approx((-0.484138, 4.484138), abs=1e-5)
    assert seed_interval([5.0, 5.0]) == Interval(5.0, 5.0, "constant")
    assert seed_interval([5.0]).method == "none"


# --- several tests -------------------------------------------------------------------------------


def test_holm_by_hand_in_the_order_given() -> None:
    # Sorted 0.01 0.02 0.03 0.04: 4 x 0.01, 3 x 0.02, then never below the one before.
    assert holm([0.03, 0.01, 0.04, 0.02]).tolist() == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.7]).tolist() == pytest.approx([1.0, 1.0])
    assert holm([0.2]).tolist() == pytest.approx([0.2])
    assert holm([]).size == 0
    for wrong in ([0.1, np.nan], [1.5], [-0.1]):
        with pytest.raises(ValueError, match=r"0\.\.1"):
            holm(wrong)


# --- reachability --------------------------------------------------------------------------------


def test_reachable_finds_two_rows_of_table_1() -> None:
    cells = {
        (row["scale"], row["method"], column)
        for row in published.rows("table01")
        for column in row
        if column not in ("scale", "method") and not published.possible(column, row[column])
    }
    assert {(scale, method) for scale, method, _ in cells} == {
        ("1.7B", "uniform-pool"),
        ("4B", "uniform-pool"),
    }
    assert ("1.7B", "uniform-pool", "aime25_avg") in cells
    assert ("1.7B", "uniform-pool", "aime25_pass") in cells
    assert ("4B", "uniform-pool", "aime25_avg") in cells


@pytest.mark.parametrize(("n", "k"), [(30, 16), (33, 16), (500, 8), (7, 3), (33, 1)])
def test_every_printed_mean_is_reachable_and_its_neighbours_are_not(n: int, k: int) -> None:
    hundredths = [reachable(step / 100, n, k) for step in range(10_001)]
    expected = [False] * 10_001
    for m in range(n * k + 1):
        # 10000 m / (nk) in whole hundredths, rounded down and up where it lies half way.
        whole, rest = divmod(10_000 * m, n * k)
        if 2 * rest <= n * k:
            expected[whole] = True
        if 2 * rest >= n * k:
            expected[whole + 1] = True
    assert hundredths == expected


def test_half_way_values_may_be_printed_either_way() -> None:
    # 2705 of 4000 is 67.625
    assert reachable(67.62, 500, 8)
    assert reachable(67.63, 500, 8)
    assert not reachable(67.61, 500, 8)
    assert reachable(67.6, 500, 8, decimals=1)
    assert reachable(0.2, 500, 1, decimals=1)
    assert not reachable(0.1, 500, 1, decimals=1)


def test_values_outside_of_a_percentage_are_unreachable() -> None:
    assert not reachable(-0.01, 500, 8)
    assert not reachable(100.01, 500, 8)
    assert not reachable(float("nan"), 500, 8)
    assert reachable(100, 30, 16)
    assert reachable(0, 30, 16)
    with pytest.raises(ValueError, match="n=0"):
        reachable(50.0, 0, 8)


def test_our_own_numbers_are_reachable() -> None:
    rng = np.random.default_rng(12)
    for n, k in published.BENCHMARKS.values():
        for _ in range(50):
            correct_PK = rng.random((n, k)) < rng.random()
            for value in (avg_at_k(correct_PK), round(avg_at_k(correct_PK), 2)):
                assert reachable(value, n, k)
            assert reachable(mean_pass_at_k(correct_PK, k), n, 1)
