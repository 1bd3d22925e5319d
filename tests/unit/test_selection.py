"""PODS' rules and advantages on hand-made groups (arXiv 2504.13818); through `train()` they are
tested in training/test_selection_trained.py.
"""

from itertools import combinations

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from grpo_replay.errors import TrainingError
from grpo_replay.methods.advantages import Centred, GroupNormalised
from grpo_replay.methods.groups import score_groups
from grpo_replay.methods.selection import (
    AnySelection,
    KeepAll,
    MaxReward,
    MaxVariance,
    Percentile,
    RandomSubset,
)

RULES = (MaxVariance, MaxReward, Percentile, RandomSubset)


def kept(rule: type, rewards: list | np.ndarray, keep: int) -> list[int]:
    return rule(keep=keep).start(0).kept(np.array(rewards, dtype=float)).tolist()


def binary(right: int, count: int, wrong: float = -1.0) -> np.ndarray:
    return np.array([1.0] * right + [wrong] * (count - right))


def advantages(rewards: np.ndarray, **settings) -> np.ndarray:
    select = MaxVariance(**settings).start(0)
    return score_groups(rewards, len(rewards), select, GroupNormalised(), step=1).advantages


@pytest.mark.parametrize(
    ("rewards", "positions", "variance"),
    [
        ([0, 0.1, 0.2, 1], [0, 1, 3], 0.202222),
        ([0, 0.9, 1, 1], [0, 2, 3], 0.222222),
        ([1, 0.2, 0.1, 0], [0, 2, 3], 0.202222),  # in their order
    ],
)
def test_the_spread_decides_how_many_of_each_side(
    rewards: list[float], positions: list[int], variance: float
) -> None:
    assert kept(MaxVariance, rewards, 3) == positions
    assert np.var(np.array(rewards)[positions]) == pytest.approx(variance, abs=1e-6)


@pytest.mark.parametrize("wrong", [-1.0, 0.0])
@pytest.mark.parametrize(("n", "m"), [(8, 4), (16, 8), (6, 2), (9, 4), (8, 8)])
def test_right_ones_kept_of_binary_rewards(n: int, m: int, wrong: float) -> None:
    for c in range(n + 1):
        positions = kept(MaxVariance, binary(c, n, wrong), m)
        assert sum(p < c for p in positions) == min(max(m / 2, m - (n - c)), c)
        assert len(positions) == m


def test_right_ones_kept_as_published() -> None:
    found = [sum(p < c for p in kept(MaxVariance, binary(c, 8), 4)) for c in (1, 2, 5, 6, 7)]
    assert found == [1, 2, 2, 2, 3]


def test_two_are_one_best_and_one_worst() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        rewards = random.normal(size=9)
        assert set(kept(MaxVariance, rewards, 2)) == {rewards.argmin(), rewards.argmax()}


def test_no_subset_has_a_larger_variance() -> None:
    random = np.random.default_rng(1)
    for n in range(2, 10):
        for rewards in (random.normal(size=n), random.integers(0, 3, n) / 10, 1e-7 * np.arange(n)):
            for m in range(2, n + 1):
                best = max(np.var(rewards[list(c)]) for c in combinations(range(n), m))
                chosen = rewards[kept(MaxVariance, rewards, m)]
                assert len(chosen) == m
                assert np.var(chosen) == pytest.approx(best, rel=1e-9, abs=1e-30)


def test_order_and_a_constant_do_not_change_which_rewards_are_kept() -> None:
    random = np.random.default_rng(2)
    for _ in range(100):
        rewards = random.integers(0, 4, 8) / 10
        expected = sorted(rewards[kept(MaxVariance, rewards, 3)])
        other = random.permutation(rewards)
        assert sorted(other[kept(MaxVariance, other, 3)]) == expected
        for constant in (-1.0, 0.7, 1e3):
            assert sorted(rewards[kept(MaxVariance, rewards + constant, 3)]) == expected


def test_advantages_of_the_subset_and_over_all() -> None:
    for wrong in (0.0, -1.0):
        two, one = binary(2, 8, wrong), binary(1, 8, wrong)
        expected = [
            (two, "subset", 2, [1, -1]),
            (two, "all", 2, [1.7320, -0.5774]),
            (one, "subset", 1, [1.7320, -0.5774]),
            (one, "all", 1, [2.6457, -0.3780]),
        ]
        for rewards, over, right, values in expected:
            found = advantages(rewards, keep=4, advantage_over=over)
            assert found[:right] == pytest.approx(values[0], abs=1e-4)
            assert sorted(found)[: 4 - right] == pytest.approx([values[1]] * (4 - right), abs=1e-4)
            assert (found == 0).sum() == 4


def test_kept_advantages_sum_to_nothing() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        assert advantages(random.normal(size=8), keep=4).sum() == pytest.approx(0, abs=1e-9)


def test_everything_kept_is_plain_grpo() -> None:
    rewards = np.random.default_rng(4).normal(size=24)
    plain = score_groups(rewards, 8, KeepAll(), GroupNormalised(), step=1)
    for rule in RULES:
        found = score_groups(rewards, 8, rule(keep=8).start(0), GroupNormalised(), step=1)
        for name in ("advantages", "means", "stds", "kept"):
            assert np.array_equal(getattr(found, name), getattr(plain, name)), (rule, name)


@pytest.mark.parametrize("rule", RULES)
def test_equal_rewards_carry_nothing(rule: type) -> None:
    found = score_groups(np.full(8, 0.1), 8, rule(keep=4).start(0), GroupNormalised(), 1)
    assert (found.stds == 0).all() and (found.advantages == 0).all() and found.kept.sum() == 4


@pytest.mark.parametrize("rule", RULES)
def test_a_missing_reward_is_never_kept_and_the_group_shrinks(rule: type) -> None:
    rewards = np.array([1.0, np.nan, -1.0, np.nan, 1.0, np.nan])
    assert set(kept(rule, rewards, 2)) < {0, 2, 4}
    assert kept(rule, rewards, 5) == [0, 2, 4]
    assert kept(rule, np.full(4, np.nan), 2) == []


def test_the_best_alone_may_carry_nothing() -> None:
    """At least m equal best rewards: all advantages are 0."""
    select = MaxReward(keep=4).start(0)
    found = score_groups(binary(5, 8), 8, select, GroupNormalised(), step=1)
    assert found.kept.tolist() == [False, *[True] * 4, *[False] * 3]
    assert (found.advantages == 0).all() and (found.stds == 0).all()
    assert kept(MaxReward, [0.3, 0.9, 0.1, 0.5], 2) == [1, 3]


def test_percentiles_are_the_middles_of_equal_parts() -> None:
    """Ranks floor((i - 0.5) n / m): 1, 3, 5, 7 of 8 for m 4; 2, 5 (and 8) of 9 or 10."""
    assert kept(Percentile, np.arange(8), 4) == [1, 3, 5, 7]
    assert kept(Percentile, np.arange(10)[::-1], 3) == [1, 4, 8]


def test_random_subsets_are_uniform_and_go_on_from_their_state() -> None:
    select = RandomSubset(keep=2).start(7)
    drawn = [tuple(select.kept(np.arange(4.0))) for _ in range(6000)]
    counts = [drawn.count(pair) for pair in combinations(range(4), 2)]
    assert sum(counts) == 6000 and max(abs(count - 1000) for count in counts) < 150
    state = select.state_dict()
    expected = [select.kept(np.arange(9.0)).tolist() for _ in range(5)]
    other = RandomSubset(keep=2).start(8)
    other.load_state_dict(state)
    assert [other.kept(np.arange(9.0)).tolist() for _ in range(5)] == expected


def test_a_step_tells_what_was_kept() -> None:
    select = MaxVariance(keep=4).start(0)
    rewards = np.concatenate([binary(1, 8), [1.0, np.nan, *[0.0] * 6]])
    score_groups(rewards, 8, select, Centred(), step=1)
    told = select.metrics(1)
    assert told == pytest.approx(
        {
            "select/kept_right": 2,
            "select/kept_wrong": 6,
            "select/reward_all": (1 - 7 + 1) / 15,
            "select/reward_kept": (1 - 3 + 1) / 8,
            "select/variance_all": (4 * 7 / 64 + 6 / 49) / 2,
            "select/variance_kept": (4 * 3 / 16 + 3 / 16) / 2,
        }
    )
    assert select.metrics(2)["select/kept_right"] == 0  # each step is told once


def test_more_than_a_group_has_cannot_be_kept() -> None:
    for rule in RULES:
        with pytest.raises(ValueError, match="select.keep 9 is more than group_size 8"):
            rule(keep=9).check(8)
        rule(keep=8).check(8)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"kind": "max_variance"}, "keep"),
        ({"kind": "max_variance", "keep": 1}, "greater than or equal to 2"),
        ({"kind": "all", "keep": 4}, "Extra inputs"),
        ({"kind": "best", "keep": 4}, "max_variance"),
        ({"kind": "random", "keep": 4, "advantage_over": "kept"}, "'subset' or 'all'"),
    ],
)
def test_what_a_study_cannot_say(section: dict, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TypeAdapter(AnySelection).validate_python(section)


@pytest.mark.parametrize("positions", [[0, 9], [-1], [0.5], [[0, 1]], [2, 2], [True]])
def test_positions_that_are_none_are_named(positions: list) -> None:
    class Wrong(MaxVariance):
        def kept(self, rewards_G: np.ndarray) -> np.ndarray:
            return np.array(positions)

    with pytest.raises(TrainingError, match="step 3: select test_selection:.*Wrong gave positions"):
        score_groups(binary(1, 8), 8, Wrong(keep=2).start(0), Centred(), step=3)
