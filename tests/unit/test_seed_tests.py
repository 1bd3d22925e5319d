"""Tests over training seeds: against statsmodels and scipy, and their error rates on null data."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW, ttost_paired

from grpo_replay.statistics.claims import Verdict, best_of, judged, pair, rise_over, verdict
from grpo_replay.statistics.intervals import difference_of_means, holm
from grpo_replay.statistics.permutation import exchange_test
from grpo_replay.statistics.seed_tests import detectable_effect, seed_evidence, seeds_needed

NULLS = 2000


def paired_data(seed: int, n: int, lead: float = 0.0, spread: float = 6.0) -> np.ndarray:
    """Accuracies (2, n) of two methods that share what a seed brings."""
    rng = np.random.default_rng(seed)
    return rng.normal(70, 8, n) + rng.normal([[lead], [0.0]], spread / np.sqrt(2), (2, n))


@pytest.mark.parametrize("n", [3, 5, 20])
def test_evidence_is_that_of_statsmodels_and_scipy(n: int) -> None:
    one, other = paired_data(n, n, lead=3.0)
    found = seed_evidence(one - other, margin=4.0)
    tested = stats.ttest_rel(one, other)
    assert found.p == pytest.approx(tested.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(tested.confidence_interval(0.95)))
    within = DescrStatsW(one - other).tconfint_mean(alpha=0.1)
    assert (found.equal_low, found.equal_high) == pytest.approx(within)
    assert found.p_equal == pytest.approx(ttost_paired(one, other, -4.0, 4.0)[0])
    inside = found.equal_low > -4.0 and found.equal_high < 4.0
    assert (found.p_equal < 0.05) == inside
    assert found.detectable == pytest.approx(np.std(one - other, ddof=1) * detectable_effect(n))
    assert found.needed == seeds_needed(4.0 / np.std(one - other, ddof=1))


@pytest.mark.parametrize("n", [4, 8, 20, 100])
def test_power_is_that_of_statsmodels(n: int) -> None:
    effect = detectable_effect(n)
    assert TTestPower().power(effect, n, 0.05) == pytest.approx(0.8, abs=1e-5)
    needed = seeds_needed(effect * 1.0001)
    asked = TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
    assert needed == n == pytest.approx(asked, abs=1e-2)


def test_power_holds_by_simulation_also_where_statsmodels_has_none() -> None:
    """3 and 4 seeds at the level of twenty tests: `TTestPower` says 5.5 and 3.4."""
    rng = np.random.default_rng(0)
    for n in (3, 4):
        effect = detectable_effect(n, 0.05 / 20)
        p = stats.ttest_1samp(rng.normal(effect, 1, (20_000, n)), 0, axis=1).pvalue
        assert np.mean(p < 0.05 / 20) == pytest.approx(0.8, abs=0.012)


def test_what_seeds_cost_as_the_issue_tells_it() -> None:
    assert stats.t.isf(0.05 / 6 / 2, 2) == pytest.approx(10.9, abs=0.05)
    assert 6.0 * detectable_effect(5, 0.05 / 6) == pytest.approx(17, abs=0.6)
    assert 6.0 * detectable_effect(20, 0.05 / 6) == pytest.approx(5.1, abs=0.1)
    # The 90 % interval of twenty seeds at this spread is 2.3 to both sides: equal within 4 points.
    assert 4.0 - stats.t.isf(0.05, 19) * 6.0 / np.sqrt(20) > 0


def test_errors_and_coverage_on_null_data() -> None:
    """2,000 data sets of five seeds without a difference; and with one of exactly the margin."""
    rng = np.random.default_rng(11)
    null = rng.normal(0, 6, (NULLS, 5))
    found = [seed_evidence(row, margin=4.0) for row in null]
    assert 0.03 <= np.mean([f.p < 0.05 for f in found]) <= 0.07
    assert 0.93 <= np.mean([f.low <= 0 <= f.high for f in found]) <= 0.97
    assert 0.87 <= np.mean([f.equal_low <= 0 <= f.equal_high for f in found]) <= 0.93
    # Margins at which five seeds can be equal at all; the truth lies on their edge.
    at_margin = [pair(row + 20.0, margin=20.0) for row in rng.normal(0, 6, (NULLS, 5))]
    assert np.mean([f.p_equal < 0.05 for f in at_margin]) <= 0.07


def test_exchange_tests_keep_their_level_on_null_data() -> None:
    """Two models that are alike, on two benchmarks of 10 problems with 8 answers each."""
    rng = np.random.default_rng(12)
    rate = rng.beta(2, 1, (600, 20, 1))
    values = 100 * rng.binomial(8, rate, (600, 20, 2)) / 8
    strata = np.repeat(["a", "b"], 10)
    p = [exchange_test(v, strata, difference_of_means, exchanges=199) for v in values]
    assert np.mean(np.array(p) < 0.05) <= 0.07


def test_best_of_is_the_hardest_pair() -> None:
    rng = np.random.default_rng(1)
    ahead = np.array([[9.0], [5.0], [7.0]]) + rng.normal(0, 2, (3, 10))
    p_R = stats.ttest_1samp(ahead, 0, axis=1).pvalue
    found = best_of(ahead, 4.0)
    assert (found.p, found.rival) == (pytest.approx(p_R.max()), int(p_R.argmax()))
    # One rival is better: the claim is wrong, at the cost of three looks.
    ahead[2] -= 20
    found = best_of(ahead, 4.0)
    assert found.rival == 2 and found.evidence.difference < 0
    assert found.p == pytest.approx(3 * stats.ttest_1samp(ahead[2], 0).pvalue)
    assert judged([found])[0][1] is Verdict.FAILS


def test_best_of_keeps_its_level() -> None:
    """The condition is tied with two rivals: it is best in no world, and worst in none."""
    rng = np.random.default_rng(2)
    own, rivals = rng.normal(0, 4, (600, 1, 6)), rng.normal(0, 4, (600, 2, 6))
    found = [best_of(one, 4.0) for one in own - rivals]
    verdicts = [verdict(one, one.p) for one in found]
    assert np.mean([v in (Verdict.HOLDS, Verdict.FAILS) for v in verdicts]) <= 0.07


def test_a_trend_is_the_slope_of_each_seed_over_the_whole_axis() -> None:
    rng = np.random.default_rng(3)
    axis = np.log([1, 10, 30, 60])
    values = 2.0 * axis[:, None] + rng.normal(0, 1, (4, 6))
    slopes = [stats.linregress(axis, values[:, seed]).slope for seed in range(6)]
    assert rise_over(values, axis) == pytest.approx(np.array(slopes) * np.log(60))
    with pytest.raises(ValueError, match="two points"):
        rise_over(values[:1], axis[:1])


def test_verdicts() -> None:
    """Each by its rule, Holm over those that have a test."""
    rng = np.random.default_rng(4)
    noise = rng.normal(0, 1, (4, 8))
    noise -= noise.mean(axis=1, keepdims=True)
    better, worse, equal, wide = (
        pair(noise[0] + 5, 4.0),
        pair(noise[1] - 5, 4.0),
        pair(noise[2] + 0.1, 4.0),
        pair(20 * noise[3] + 1, 4.0),
    )
    found = judged([better, None, worse, equal, wide, pair([1.0, 2.0], 4.0)])
    told = [verdict for _, verdict in found]
    assert told == ["holds", "undecided", "fails", "equal within the margin", "undecided"] + [
        "undecided"
    ]
    adjusted = [p for p, _ in found if not np.isnan(p)]
    assert adjusted == pytest.approx(holm([better.p, worse.p, equal.p, wide.p]))
    # A difference that is right, and smaller than what matters, holds: the sign was claimed.
    assert judged([pair(noise[0] + 2, 40.0)])[0][1] is Verdict.HOLDS


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [3.0, 3.0, 3.0]])
def test_few_seeds_and_seeds_that_agree_say_nothing(values: list[float]) -> None:
    found = seed_evidence(values, 4.0)
    assert found.difference == pytest.approx(np.mean(values)) and found.seeds == len(values)
    assert np.isnan([found.low, found.p, found.p_equal, found.detectable]).all()
    assert found.needed is None


def test_what_is_no_evidence_is_refused() -> None:
    for values, margin in (([], 1.0), ([1.0, np.nan, 2.0], 1.0), ([1.0, 2.0, 3.0], 0.0)):
        with pytest.raises(ValueError, match="seed|margin"):
            seed_evidence(values, margin)
    with pytest.raises(ValueError, match="two seeds"):
        detectable_effect(1)
    with pytest.raises(ValueError, match="above 0"):
        seeds_needed(0.0)
    assert seeds_needed(1e-9) is None
