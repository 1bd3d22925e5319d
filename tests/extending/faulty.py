"""Parts of a user's with one fault each."""

from typing import Any

import numpy as np

from grpo_replay.methods.advantages import Advantage, GroupStatistics
from grpo_replay.methods.loss import Loss, LossBatch
from grpo_replay.methods.priorities import Priority
from grpo_replay.methods.replay import Replay
from grpo_replay.methods.selection import Selection


class Weights(Priority):
    """Weights that are right until step 3, then `fault`."""

    fault: str

    def weights(self, units: Any, step: int) -> np.ndarray:
        """A vector, with the fault at its end."""
        right = np.ones(len(units))
        if step < 3:
            return right
        wrong = {"nan": np.nan, "negative": -1.0, "infinite": np.inf}
        if self.fault in wrong:
            return np.append(right[1:], wrong[self.fault])
        return {"short": right[1:], "zero": 0 * right, "square": right[None]}[self.fault]


class Places(Selection):
    """A place that no group has."""

    def kept(self, rewards_G: np.ndarray) -> np.ndarray:
        """One beyond the last."""
        return np.array([0, len(rewards_G)])


class Advantages(Advantage):
    """Advantages that are not finite, or of one group alone."""

    fault: str

    def metrics(self, step: int) -> dict[str, float | None]:
        """No number."""
        return {"own/number": float("inf")} if self.fault == "metric" else {}

    def of(self, group: GroupStatistics) -> np.ndarray:
        """The wrong array, but where the metric is wrong."""
        if self.fault == "metric":
            return group.spread
        return group.spread * np.nan if self.fault == "nan" else group.spread[0]


class Losses(Loss):
    """A loss that is not finite, one a row, or none."""

    fault: str

    def of(self, batch: LossBatch) -> Any:
        """The wrong tensor."""
        rows = -(batch.advantages * batch.logprobs * batch.mask).sum(1) / batch.tokens
        wrong = {"nan": rows.sum() * float("nan"), "rows": rows, "detached": rows.sum().detach()}
        return wrong.get(self.fault, 0.0)


class Batches(Replay):
    """What is no batch."""

    def next_batch(self, fresh: list, step: int) -> Any:
        """The rows alone."""
        return fresh
