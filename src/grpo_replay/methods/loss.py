"""Towards what a step trains (axis "loss"). A loss sees log-probabilities, advantages and a mask;
it imports no torch, and calls methods of the tensors that it gets.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from grpo_replay.parts import Part


@dataclass(frozen=True)
class LossBatch:
    """One micro-batch as a loss sees it.

    Attributes:
        logprobs: of the current policy, (rows, tokens), with a gradient.
        behaviour_logprobs: of the policy that sampled each row, (rows, tokens).
        advantages: (rows, 1).
        mask: 1 for a token of the completion, (rows, tokens).
        tokens: how many tokens a sum is divided by, so that the micro-batches of an update add up
            to the mean over its tokens.
    """

    logprobs: Any
    behaviour_logprobs: Any
    advantages: Any
    mask: Any
    tokens: Any


class Loss(Part):
    """What is minimised.

    Attributes:
        keeps_zero_variance: groups whose rewards are all equal are trained on too.
        needs_reference: rollouts carry their log-probability under the start model, and the
            advantages are formed anew before each update, by `advantages`.
        whole_groups: the trained rows of a group are in one update.
        uses_ratio: log-probabilities are compared with those of birth, and cut where they are too
            far away for that.
    """

    keeps_zero_variance: ClassVar[bool] = False
    needs_reference: ClassVar[bool] = False
    whole_groups: ClassVar[bool] = False
    uses_ratio: ClassVar[bool] = True

    def advantages(self, rewards_K: Any, policy_K: Any, reference_K: Any) -> Any:
        """A of the K rows of one group in an update, from their rewards and the sums of their
        log-probabilities in nats; only with `needs_reference`.
        """
        raise NotImplementedError

    def of(self, batch: LossBatch) -> Any:
        """The loss of a micro-batch, a scalar tensor."""
        raise NotImplementedError

    @property
    def clip_range(self) -> tuple[float, float]:
        """How far below and above 1 an importance ratio has to be before it is clipped."""
        return float("inf"), float("inf")
