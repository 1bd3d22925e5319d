"""A loss: REINFORCE, without importance ratio and clip."""

from typing import Any, ClassVar

from grpo_replay.methods.loss import Loss, LossBatch
from grpo_replay.ranges import Bound


class Reinforce(Loss):
    """-A log pi, the mean over the tokens of a mini-batch, times `scale`."""

    uses_ratio: ClassVar[bool] = False
    scale: Bound = 1.0

    def of(self, batch: LossBatch) -> Any:
        """The loss of a micro-batch, a scalar tensor."""
        per_token = -batch.advantages * batch.logprobs
        return self.scale * (per_token * batch.mask).sum() / batch.tokens
