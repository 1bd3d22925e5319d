"""Which fresh rollouts of a group count (axis "select"): all, or some of many (PODS, arXiv
2504.13818).
"""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, SerializeAsAny

from grpo_replay.parts import Part, or_imported
from grpo_replay.ranges import Rollouts

# Variances this near to each other, as shares of the largest, are equal but for rounding.
TIE = 1e-9


class Selection(Part):
    """Keeps some rollouts of each group, in their order.

    Attributes:
        advantage_over: the rollouts whose mean and standard deviation the advantages of the kept
            ones are formed with: the kept `subset` (the authors' choice), or `all` of the group.
    """

    advantage_over: Literal["subset", "all"] = "subset"

    def start(self, seed: int) -> Any:
        """The selection of one training, which tells what it keeps."""
        return Selecting(self)

    def kept(self, rewards_G: np.ndarray) -> np.ndarray:
        """Positions of the kept rollouts of a group, rising; a reward that is NaN is never kept."""
        raise NotImplementedError

    def check(self, group_size: int) -> None:
        """Refuse a group size that it cannot work with.

        Raises:
            ValueError: with both numbers.
        """


class Selecting:
    """A selection at work: what it keeps of each group, and what of a step is told of that."""

    def __init__(self, part: Selection) -> None:
        self.part = part
        self.advantage_over = part.advantage_over
        self._seen: list[tuple[np.ndarray, np.ndarray]] = []  # since metrics were last told

    def label(self) -> str:
        """How a study names the part."""
        return self.part.label()

    def kept(self, rewards_G: np.ndarray) -> np.ndarray:
        """Positions of the kept rollouts of a group, rising."""
        positions = self.choose(rewards_G)
        self._seen.append((rewards_G, positions))
        return positions

    def choose(self, rewards_G: np.ndarray) -> np.ndarray:
        """As the part says."""
        return self.part.kept(rewards_G)

    def metrics(self, step: int) -> dict[str, float | None]:
        """Of the step's groups: how many right (reward above 0) and wrong rollouts are kept, and,
        of all scored rollouts and of the kept, the mean reward and the mean variance in a group.
        """
        seen, self._seen = self._seen, []
        kept = [rewards[np.asarray(positions, int)] for rewards, positions in seen]
        right = sum(int((rewards > 0).sum()) for rewards in kept)
        scored = [rewards[~np.isnan(rewards)] for rewards, _ in seen]
        return {
            "select/kept_right": right,
            "select/kept_wrong": sum(map(len, kept)) - right,
            "select/reward_all": _mean([r for rewards in scored for r in rewards]),
            "select/reward_kept": _mean([r for rewards in kept for r in rewards]),
            "select/variance_all": _mean([rewards.var() for rewards in scored if len(rewards)]),
            "select/variance_kept": _mean([rewards.var() for rewards in kept if len(rewards)]),
        }

    def state_dict(self) -> dict[str, Any]:
        """Nothing outlives a step."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to continue."""


class KeepAll(Selection):
    """Every rollout."""

    kind: Literal["all"] = "all"

    def start(self, seed: int) -> "KeepAll":
        """Itself: there is nothing to tell."""
        return self

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
        k = highest[np.argmax(variances >= best * (1 - TIE))]
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


class RandomSubsets(Selecting):
    """`RandomSubset` with its generator, which every process seeds alike."""

    def __init__(self, part: RandomSubset, seed: int) -> None:
        super().__init__(part)
        self._random = np.random.default_rng(seed)

    def choose(self, rewards_G: np.ndarray) -> np.ndarray:
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


def _mean(values: list) -> float | None:
    return float(np.mean(values)) if values else None


AnySelection = Annotated[
    Annotated[
        KeepAll | MaxVariance | MaxReward | Percentile | RandomSubset, Field(discriminator="kind")
    ],
    SerializeAsAny(),
    or_imported(Selection),
]
