"""A priority: the younger a rollout, the more often it is drawn again."""

from collections.abc import Sequence

import numpy as np

from grpo_replay.methods.priorities import Priority
from grpo_replay.methods.rollout import SampledUnit, members
from grpo_replay.ranges import Age


class Recency(Priority):
    """w = 2^(-age / half_life), age and half_life in training steps."""

    half_life: Age = 20.0

    def weights(self, units: Sequence[SampledUnit], step: int) -> np.ndarray:
        """w of each unit at a step, shape (units,)."""
        ages = np.array([step - members(unit)[0].birth_step for unit in units])
        return 0.5 ** (ages / self.half_life)
