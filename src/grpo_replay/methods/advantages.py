"""Advantages of the rollouts of a group (axis "advantage"; paper, section "Objective").

TRL uses the sample standard deviation and 1e-4, and gives an unscored completion reward 0; the
paper does neither.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, SerializeAsAny

from grpo_replay.parts import Part, or_imported
from grpo_replay.ranges import Epsilon

# Equal rewards that are no dyadic numbers leave a residue of rounding; a real spread is far larger.
ZERO_STD_TOLERANCE = 1e-6


class GroupStatistics(NamedTuple):
    """What a group's rewards say, each of shape (groups, 1), and (groups, rollouts) for the rest.

    `spread` is r - mu_g, 0 where there is no reward; `std` is exactly 0 where all rewards are
    equal; `mean` is NaN for a group without rewards; `count` counts the rewards.
    """

    spread: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    count: np.ndarray
    scored: np.ndarray


def group_statistics(rewards_PG: np.ndarray) -> GroupStatistics:
    """Mean and population standard deviation of each group; NaN marks an unscored completion.

    Args:
        rewards_PG: shape (groups, rollouts).
    """
    scored_PG = ~np.isnan(rewards_PG)
    count_P = scored_PG.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_P = np.where(scored_PG, rewards_PG, 0.0).sum(axis=1, keepdims=True) / count_P
        spread_PG = np.where(scored_PG, rewards_PG - mean_P, 0.0)
        std_P = np.sqrt((spread_PG**2).sum(axis=1, keepdims=True) / count_P)
        scale_P = np.abs(np.where(scored_PG, rewards_PG, 0.0)).max(axis=1, keepdims=True)
        std_P = np.where(std_P > ZERO_STD_TOLERANCE * scale_P, std_P, 0.0)
    return GroupStatistics(spread_PG, mean_P, std_P, count_P, scored_PG)


class Advantage(Part):
    """How far a rollout is above its group; 0 for one without a reward, or in a group whose rewards
    are all equal.
    """

    def of(self, group: GroupStatistics) -> np.ndarray:
        """Advantages, shape (groups, rollouts)."""
        raise NotImplementedError


class GroupNormalised(Advantage):
    """A = (r - mu_g) / (sigma_g + eps), the paper's."""

    kind: Literal["group_normalised"] = "group_normalised"
    eps: Epsilon = 1e-6

    def of(self, group: GroupStatistics) -> np.ndarray:
        """Advantages, shape (groups, rollouts)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return group.spread / (group.std + self.eps)


class Centred(Advantage):
    """A = r - mu_g, without the standard deviation (Dr. GRPO, arXiv 2503.20783)."""

    kind: Literal["centred"] = "centred"

    def of(self, group: GroupStatistics) -> np.ndarray:
        """Advantages, shape (groups, rollouts)."""
        return group.spread


class LeaveOneOut(Advantage):
    """A = r - the mean reward of the group's other rollouts (RLOO, arXiv 2402.14740): the centred
    advantage times n / (n - 1).
    """

    kind: Literal["leave_one_out"] = "leave_one_out"

    def of(self, group: GroupStatistics) -> np.ndarray:
        """Advantages, shape (groups, rollouts)."""
        return group.spread * group.count / np.maximum(group.count - 1, 1)


AnyAdvantage = Annotated[
    Annotated[GroupNormalised | Centred | LeaveOneOut, Field(discriminator="kind")],
    SerializeAsAny(),
    or_imported(Advantage),
]
