"""The losses that a study can name (axis "loss")."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from grpo_replay.methods.loss import Loss, LossBatch
from grpo_replay.methods.trajectory_balance import TrajectoryBalance
from grpo_replay.parts import or_imported
from grpo_replay.ranges import Bound, Fraction


class Clipped(Loss):
    """PPO's clip of the importance ratio, higher above than below, and a dual clip for negative
    advantages; the mean over the tokens of a mini-batch (paper, section "Objective").

    Attributes:
        low, high: the ratio is clipped to [1 - low, 1 + high].
        dual_clip: the largest ratio of a token with a negative advantage.
    """

    kind: Literal["clipped"] = "clipped"
    low: Fraction = 0.2
    high: Bound = 0.28
    dual_clip: Annotated[float, Field(gt=1, le=1e9)] = 10.0

    @property
    def clip_range(self) -> tuple[float, float]:
        """As configured."""
        return self.low, self.high

    def of(self, batch: LossBatch) -> Any:
        """Sum over tokens of -min(ratio A, clip(ratio) A), over `tokens`."""
        ratio = (batch.logprobs - batch.behaviour_logprobs).exp()
        clipped = ratio.clamp(1 - self.low, 1 + self.high)
        bounded = ratio.clamp(max=self.dual_clip)
        per_token = -(bounded * batch.advantages).minimum(clipped * batch.advantages)
        return (per_token * batch.mask).sum() / batch.tokens


AnyLoss = Annotated[
    Annotated[Clipped | TrajectoryBalance, Field(discriminator="kind")],
    SerializeAsAny(),
    or_imported(Loss),
]
