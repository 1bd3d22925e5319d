"""Draws without replacement: P(i) = p_i^alpha / sum_j p_j^alpha (Algorithm 1, line 2; axis
"priority").
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from grpo_replay.methods.rollout import Rollout, SampledUnit, members


class Sampler:
    """What all priorities share: the generator, its state, and the draw. A unit is a rollout or a
    group.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def probabilities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """Probability of each unit at the first draw, shape (units,)."""
        raise NotImplementedError

    def sample(self, units: Sequence[SampledUnit], k: int) -> list[SampledUnit]:
        """Draw min(k, units) different units."""
        k = min(k, len(units))
        if k == 0:
            return []
        drawn = self._random.choice(
            len(units), size=k, replace=False, p=self.probabilities(units), shuffle=False
        )
        return [units[index] for index in drawn]

    def state_dict(self) -> dict[str, Any]:
        """The generator's state, as JSON-like values."""
        return self._random.bit_generator.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
        self._random.bit_generator.state = state


class UniformSampler(Sampler):
    """Every unit alike (alpha = 0)."""

    def probabilities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """Probability of each unit at the first draw, shape (units,)."""
        return np.full(len(units), 1.0 / len(units))


class GroupStdSampler(Sampler):
    """p = sigma_g + eps: the standard deviation of the rewards of the unit's birth group."""

    def __init__(self, alpha: float, eps: float, seed: int) -> None:
        super().__init__(seed)
        self.alpha = alpha
        self.eps = eps

    def probabilities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """Probability of each unit at the first draw, shape (units,)."""
        stds = np.array([members(unit)[0].group_std for unit in units])
        return _normalised(stds + self.eps, self.alpha)


class AdvantageSampler(Sampler):
    """p = |A| + eps of a rollout: the minority side of a group is drawn more often (Proposition
    1).
    """

    def __init__(self, alpha: float, eps: float, seed: int) -> None:
        super().__init__(seed)
        self.alpha = alpha
        self.eps = eps

    def probabilities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """Probability of each unit at the first draw, shape (units,).

        Raises:
            TypeError: for groups, which have no single advantage.
        """
        if not all(isinstance(unit, Rollout) for unit in units):
            raise TypeError("AdvantageSampler draws rollouts; a group has no single advantage")
        advantages = np.array([unit.advantage for unit in units])
        return _normalised(np.abs(advantages) + self.eps, self.alpha)


def _normalised(priorities: np.ndarray, alpha: float) -> np.ndarray:
    weights = priorities**alpha
    return weights / weights.sum()
