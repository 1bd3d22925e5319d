"""Which fresh rollouts of a group count (axis "select"): all, or some of many (PODS, arXiv
2504.13818).
"""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, SerializeAsAny

from grpo_replay.parts import Part, or_imported
from grpo_replay.ranges import Rollouts


class Selection(Part):
    """Keeps some rollouts of each group, in their order.

    Attributes:
        advantage_over: the rollouts whose mean and standard deviation the advantages of the kept
            ones are formed with: the kept `subset` (the authors' choice), or `all` of the group.
    """

    advantage_over: Literal["subset", "all"] = "subset"

    def kept(self, rewards_G: np.ndarray) -> np.ndarray:
        """Positions of the kept rollouts of a group, rising; a reward that is NaN is never kept."""
        raise NotImplementedError

    def check(self, group_size: int) -> None:
        """Refuse a group size that it cannot work with.

        Raises:
            ValueError: with both numbers.
        """


class KeepAll(Selection):
    """Every rollout."""

    kind: Literal["all"] = "all"

    def kept(self, rewards_G: np.ndarray) -> np.ndarray:
        """All positions."""
        return np.arange(len(rewards_G))


class KeepSome(Selection):
    """`keep` rollouts of each group."""

    keep: Rollouts

    def kept(self, rewards_G: np.ndarray) -> np.ndarray:
        """Positions of the kept rollouts of a group, rising."""
        scored = np.flatnonzero(~np.isnan(rewards_G))
        if len(scored) <= self.keep:
            return scored
        order = scored[np.argsort(rewards_G[scored], kind="stable")]
        return np.sort(order[self.ranks(rewards_G[order])])

    def ranks(self, ascending: np.ndarray) -> np.ndarray:
        """Which of a group's rewards, sorted rising, are kept: `keep` different positions."""
        raise NotImplementedError

    def check(self, group_size: int) -> None:
        """Refuse to keep more than there are."""
        if self.keep > group_size:
            raise ValueError(f"select.keep {self.keep} is more than group_size {group_size}")


class MaxVariance(KeepSome):
    """The `keep` rollouts whose rewards have the largest variance: some highest, some lowest.

    Ties go to the first of k = keep, 0, 1, ... highest, among candidates that are equal but for
    rounding [our reading: the authors' sort is not stable].
    """

    kind: Literal["max_variance"] = "max_variance"

    def ranks(self, ascending: np.ndarray) -> np.ndarray:
        """The lowest keep - k and the highest k, by prefix sums of the centred rewards."""
        n, m = len(ascending), self.keep
        centred = ascending - ascending.mean()
        sums, squares = (np.concatenate([[0.0], np.cumsum(v)]) for v in (centred, centred**2))
        highest = np.array([m, *range(m)])
        total, square = (p[m - highest] + p[n] - p[n - highest] for p in (sums, squares))
        variances = square / m - (total / m) ** 2
        best = variances.max()
        k = highest[np.argmax(variances >= best - 1e-12 * max(best, 1.0))]
        return np.concatenate([np.arange(m - k), np.arange(n - k, n)])


class MaxReward(KeepSome):
    """The `keep` rollouts with the highest rewards."""

    kind: Literal["max_reward"] = "max_reward"

    def ranks(self, ascending: np.ndarray) -> np.ndarray:
        """The last ones."""
        return np.arange(len(ascending) - self.keep, len(ascending))


class Percentile(KeepSome):
    """Evenly spaced ranks, floor((i - 0.5) n / keep) for i = 1..keep [our reading]."""

    kind: Literal["percentile"] = "percentile"

    def ranks(self, ascending: np.ndarray) -> np.ndarray:
        """The middle rank of each of `keep` parts."""
        i = np.arange(1, self.keep + 1)
        return np.floor((i - 0.5) * len(ascending) / self.keep).astype(int)


class RandomSubset(KeepSome):
    """`keep` rollouts at random, without replacement: the control of the other rules."""

    kind: Literal["random"] = "random"

    def start(self, seed: int) -> "RandomSubsets":
        """The generator of one training."""
        return RandomSubsets(self, seed)


class RandomSubsets:
    """`RandomSubset` with its generator, which every process seeds alike."""

    def __init__(self, part: RandomSubset, seed: int) -> None:
        self.part = part
        self.advantage_over = part.advantage_over
        self._random = np.random.default_rng(seed)

    def kept(self, rewards_G: np.ndarray) -> np.ndarray:
        """Positions of the kept rollouts of a group, rising."""
        scored = np.flatnonzero(~np.isnan(rewards_G))
        size = min(self.part.keep, len(scored))
        return np.sort(self._random.choice(scored, size=size, replace=False))

    def state_dict(self) -> dict[str, Any]:
        """The generator's state."""
        return {"values": self._random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
        self._random.bit_generator.state = state["values"]


AnySelection = Annotated[
    Annotated[
        KeepAll | MaxVariance | MaxReward | Percentile | RandomSubset, Field(discriminator="kind")
    ],
    SerializeAsAny(),
    or_imported(Selection),
]
