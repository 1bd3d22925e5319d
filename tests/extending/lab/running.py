"""An advantage with a memory: the deviation is that of all rewards so far, not of the group."""

from typing import Any

import numpy as np

from grpo_replay.methods.advantages import Advantage, GroupStatistics


class Running(Advantage):
    """A = (r - mu_g) / the root mean square of r - mu_g over all groups of the training."""

    def start(self, seed: int) -> "RunningSums":
        """The sums of one training; nothing is drawn, so the seed is not used."""
        return RunningSums()


class RunningSums:
    """How many rewards there have been, and the sum of their squared distances from their group's
    mean: a checkpoint holds both.
    """

    def __init__(self) -> None:
        self.count, self.squares = 0, 0.0

    def of(self, group: GroupStatistics) -> np.ndarray:
        """Advantages, shape (groups, rollouts); called once a step, in every process alike."""
        self.count += int(group.scored.sum())
        self.squares += float((group.spread**2).sum())
        return group.spread / (np.sqrt(self.squares / max(self.count, 1)) + 1e-6)

    def metrics(self, step: int) -> dict[str, float | None]:
        """What the step's record in train/metrics.jsonl says."""
        return {"running/rewards": self.count}

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint holds: `values` are JSON-like, `arrays` numpy's."""
        return {"values": {"count": self.count, "squares": self.squares}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
        self.count, self.squares = state["values"]["count"], state["values"]["squares"]
