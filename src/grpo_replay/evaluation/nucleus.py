"""Temperature, top-k and top-p as transformers has them, without sorting the whole vocabulary.

transformers sorts every token of every row in every step, which with tens of thousands of tokens
costs more on a CPU than the model itself. The nucleus of a peaked distribution lies in its first
few tokens, so these alone are sorted, and all only where they do not suffice.
"""

import torch
from transformers import LogitsProcessor

HEAD = 1024  # tokens sorted at first


class Nucleus(LogitsProcessor):
    """Keeps the likeliest tokens whose probabilities, before the last of them, sum to less than
    top_p; `top_k` 0 is no limit.
    """

    def __init__(self, temperature: float, top_k: int, top_p: float) -> None:
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores of the next token, (rows, vocabulary), with -inf for what is not to be drawn."""
        scores_RV = scores / self.temperature
        if self.top_p == 1.0 and not self.top_k:
            return scores_RV
        size = scores_RV.shape[-1]
        count = min(self.top_k or HEAD, size)
        kept_RV, suffices = self._keep(scores_RV, count)
        return kept_RV if suffices else self._keep(scores_RV, size)[0]

    def _keep(self, scores_RV: torch.Tensor, count: int) -> tuple[torch.Tensor, bool]:
        """The scores with the nucleus among the first `count` left, and whether it ends there."""
        head_RC, tokens_RC = scores_RV.topk(count)  # falling
        among = head_RC if self.top_k else scores_RV  # what the probabilities are normalised over
        probability_RC = (head_RC - among.logsumexp(-1, keepdim=True)).exp()
        before_RC = probability_RC.cumsum(-1) - probability_RC
        last = before_RC[:, -1] + probability_RC[:, -1]
        suffices = bool(self.top_k) or count == scores_RV.shape[-1]
        suffices = suffices or bool((last >= self.top_p).all())
        head_RC = head_RC.masked_fill(before_RC >= self.top_p, float("-inf"))
        empty_RV = torch.full_like(scores_RV, float("-inf"))
        return empty_RV.scatter(-1, tokens_RC, head_RC), suffices
