"""Trajectory balance (TBA, arXiv 2503.18929, Eq. 3 to 5), by the surrogate of its Appendix A.

Under a penalty on KL the best policy is proportional to pi_ref exp(r / beta). The loss squares,
over the K responses to a prompt, the distance of log pi from it; log Z is estimated by the
responses themselves. It is right for responses of any origin and age: no importance ratio, no clip.
"""

from typing import Any, ClassVar, Literal

import numpy as np

from grpo_replay.methods.loss import Loss, LossBatch
from grpo_replay.ranges import Bound


class TrajectoryBalance(Loss):
    """REINFORCE with A_i = (r_i - mean r) - beta (KL_i - mean KL), the means over the responses of
    a prompt, KL_i = log pi(y_i) - log pi_ref(y_i) under the policy of the moment.

    The gradient is that of the squared residuals up to the factor 2 / (K beta), which would let the
    gradient clip decide every step; here it is the mean over the tokens of a mini-batch, as for the
    other losses. beta is in units of the reward: with rewards -1 and +1, twice that of 0 and 1.
    """

    kind: Literal["trajectory_balance"] = "trajectory_balance"
    keeps_zero_variance: ClassVar[bool] = True  # their KL part still pulls
    needs_reference: ClassVar[bool] = True
    whole_groups: ClassVar[bool] = True
    uses_ratio: ClassVar[bool] = False
    beta: Bound = 0.01

    def start(self, seed: int) -> "Balance":
        """The loss of one training."""
        return Balance(self)

    def advantages(self, rewards_K: Any, policy_K: Any, reference_K: Any) -> Any:
        """A of the responses to one prompt, numpy or torch; log-probabilities are sums in nats."""
        kl_K = policy_K - reference_K
        return (rewards_K - rewards_K.mean()) - self.beta * (kl_K - kl_K.mean())

    def of(self, batch: LossBatch) -> Any:
        """-A (pi / itself), summed over tokens, over `tokens`: its gradient is -A grad log pi."""
        one = (batch.logprobs - batch.logprobs.detach()).exp()
        return -(one * batch.advantages * batch.mask).sum() / batch.tokens


class Balance:
    """Trajectory balance at work: what it tells of a step."""

    def __init__(self, part: TrajectoryBalance) -> None:
        self.part = part
        self.of = part.of
        self._seen: list[tuple[np.ndarray, np.ndarray]] = []  # A and KL since metrics were told

    def label(self) -> str:
        """How a study names the part."""
        return self.part.label()

    def advantages(
        self, rewards_K: np.ndarray, policy_K: np.ndarray, reference_K: np.ndarray
    ) -> np.ndarray:
        """A of the responses to one prompt."""
        advantages_K = self.part.advantages(rewards_K, policy_K, reference_K)
        self._seen.append((advantages_K, policy_K - reference_K))
        return advantages_K

    def metrics(self, step: int) -> dict[str, float | None]:
        """Over the rows of a step: the paper's loss (mean of A^2 / beta^2), and mean and largest KL
        to the reference in nats a response.
        """
        seen, self._seen = self._seen, []
        if not seen:
            return {"balance/loss": None, "balance/kl_mean": None, "balance/kl_max": None}
        advantages, kl = (np.concatenate(arrays) for arrays in zip(*seen, strict=True))
        return {
            "balance/loss": float(np.mean(advantages**2)) / self.part.beta**2,
            "balance/kl_mean": float(kl.mean()),
            "balance/kl_max": float(kl.max()),
        }

    def state_dict(self) -> dict[str, Any]:
        """Nothing outlives a step."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to continue."""
