"""Draws without replacement from weighted units."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from grpo_replay.errors import TrainingError

Unit = TypeVar("Unit")


class Draw:
    """A generator of random numbers, its state, and the draw."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, units: Sequence[Unit], weights: np.ndarray, k: int) -> list[Unit]:
        """Draw min(k, units) different units, the first with probability w_i / sum_j w_j."""
        k = min(k, len(units))
        if k == 0:
            return []
        p = weights / weights.sum()
        drawn = self._random.choice(len(units), size=k, replace=False, p=p, shuffle=False)
        return [units[index] for index in drawn]

    def state_dict(self) -> dict[str, Any]:
        """The generator's state."""
        return {"values": self._random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
        self._random.bit_generator.state = state["values"]


def checked_weights(weights: Any, count: int, place: str, step: int) -> np.ndarray:
    """The weights of a draw, if a draw can be made by them.

    Raises:
        TrainingError: naming the part and the step, where they are of another shape, not finite,
            negative, or all zero.
    """
    found = np.asarray(weights, dtype=float)
    if found.shape != (count,):
        fault = f"weights of shape {found.shape} for {count} units"
    elif not np.isfinite(found).all():
        fault = "a weight that is not finite"
    elif (found < 0).any():
        fault = "a negative weight"
    elif count and not found.any():
        fault = "no weight above 0"
    else:
        return found
    raise TrainingError(
        f"step {step}: {place} gave {fault}: mend it; the run goes on from its last checkpoint"
    )
