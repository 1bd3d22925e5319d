"""Which stored units are drawn more often (axis "priority"): weights of a draw without replacement,
P(i) = w_i / sum_j w_j with w = p^alpha (Algorithm 1, line 2).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, SerializeAsAny

from grpo_replay.methods.rollout import SampledUnit, members
from grpo_replay.parts import Part, or_imported
from grpo_replay.ranges import Age, Fraction, PositiveEpsilon


class Priority(Part):
    """What the draw's weights are made of.

    Attributes:
        units: what it can weigh; a study that asks for more is refused.
        age_decay: tau in steps of a factor exp(-age / tau) on p, inside the power (FreshPER, arXiv
            2604.16918); none leaves age to `tau_max` alone.
    """

    units: ClassVar[tuple[str, ...]] = ("rollout", "query")
    age_decay: Age | None = None

    def priorities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """p of each unit, positive, shape (units,)."""
        raise NotImplementedError

    def weights(self, units: Sequence[SampledUnit], step: int) -> np.ndarray:
        """w of each unit at a step, shape (units,)."""
        values = self.priorities(units)
        if self.age_decay is None:
            return values
        ages = np.array([step - members(unit)[0].birth_step for unit in units])
        return values * np.exp(-ages / self.age_decay)


class Uniform(Priority):
    """Every unit alike, whatever it is."""

    kind: Literal["uniform"] = "uniform"

    def priorities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """1 for each unit, shape (units,)."""
        return np.ones(len(units))


class Graded(Priority):
    """A priority with a power, w = p^alpha; alpha 0 weighs every unit alike. `eps` keeps p above
    0.
    """

    alpha: Fraction = 0.5
    eps: PositiveEpsilon = 1e-6

    def weights(self, units: Sequence[SampledUnit], step: int) -> np.ndarray:
        """w of each unit at a step, shape (units,)."""
        return super().weights(units, step) ** self.alpha


class GroupStd(Graded):
    """p = sigma_g + eps: the standard deviation of the rewards of the unit's birth group."""

    kind: Literal["sigma_g"] = "sigma_g"

    def priorities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """sigma_g + eps of each unit, shape (units,)."""
        return np.array([members(unit)[0].group_std for unit in units]) + self.eps


class AbsAdvantage(Graded):
    """p = |A| + eps of a rollout: the minority side of a group is drawn more often
    (Proposition 1). A group has no single advantage.
    """

    kind: Literal["abs_advantage"] = "abs_advantage"
    units: ClassVar[tuple[str, ...]] = ("rollout",)

    def priorities(self, units: Sequence[SampledUnit]) -> np.ndarray:
        """|A| + eps of each rollout, shape (units,)."""
        return np.abs(np.array([unit.advantage for unit in units])) + self.eps


AnyPriority = Annotated[
    Annotated[Uniform | GroupStd | AbsAdvantage, Field(discriminator="kind")],
    SerializeAsAny(),
    or_imported(Priority),
]
