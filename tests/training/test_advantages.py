"""Proposition 1 and its edges."""

from math import sqrt

import numpy as np
import pytest

from grpo_replay.methods.advantages import Centred, GroupNormalised, LeaveOneOut
from grpo_replay.methods.groups import score_groups
from grpo_replay.methods.selection import KeepAll


def group_advantages(rewards: np.ndarray, size: int, eps: float = 1e-6) -> tuple:
    found = score_groups(rewards, size, KeepAll(), GroupNormalised(eps=eps), step=1)
    return found.advantages, found.means, found.stds


@pytest.mark.parametrize("wrong", [-1.0, 0.0])
@pytest.mark.parametrize("group", range(2, 17))
def test_closed_form(group: int, wrong: float) -> None:
    """|A| of the right ones is sqrt((G-k)/k), of the wrong ones sqrt(k/(G-k))."""
    for k in range(1, group):
        rewards = np.array([1.0] * k + [wrong] * (group - k))
        expected = np.array([sqrt((group - k) / k)] * k + [-sqrt(k / (group - k))] * (group - k))
        exact, _, stds = group_advantages(rewards, group, eps=0.0)
        assert np.abs(exact - expected).max() < 1e-6
        assert np.abs(group_advantages(rewards, group)[0] - expected).max() < 2e-5
        assert stds == pytest.approx((1 - wrong) * sqrt(k / group * (1 - k / group)))


@pytest.mark.parametrize("reward", [0.1, 1.0, 0.0, -1 / 3, 1e6])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_equal_rewards_have_no_variance(reward: float, kind: type) -> None:
    advantages, means, stds = group_advantages(np.full(16, reward, kind), 8, eps=0.0)
    assert (advantages == 0).all() and (stds == 0).all()
    assert means == pytest.approx(float(kind(reward)))


def test_a_missing_reward_is_no_zero() -> None:
    advantages, means, stds = group_advantages(np.array([1.0, -1.0, None, 1.0]), 4, eps=0.0)
    assert means == pytest.approx(1 / 3)
    assert advantages[2] == 0.0
    assert advantages[[0, 1, 3]] == pytest.approx([1 / sqrt(2), -sqrt(2), 1 / sqrt(2)])
    assert stds[0] == pytest.approx(sqrt(8) / 3)


def test_a_group_without_rewards_carries_nothing() -> None:
    advantages, means, stds = group_advantages(np.full(4, np.nan), 4)
    assert (advantages == 0).all() and (stds == 0).all() and np.isnan(means).all()


def test_rewards_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="groups of 4"):
        group_advantages(np.zeros(6), 4)


def test_without_the_standard_deviation_and_against_the_others() -> None:
    """Dr. GRPO's r - mean; RLOO's r - mean of the others, n / (n - 1) times that."""
    rewards = np.array([1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0, np.nan])
    centred = score_groups(rewards, 4, KeepAll(), Centred(), step=1).advantages
    assert centred == pytest.approx([1, -1, -1, 1, 0, 0, 0, 0])
    left_out = score_groups(rewards, 4, KeepAll(), LeaveOneOut(), step=1).advantages
    assert left_out[:4] == pytest.approx([4 / 3, -4 / 3, -4 / 3, 4 / 3])
    graded = np.array([0.1, 0.4, 0.9])
    others = [r - (graded.sum() - r) / 2 for r in graded]
    assert score_groups(graded, 3, KeepAll(), LeaveOneOut(), 1).advantages == pytest.approx(others)
