"""Importance ratios of a step, fresh and replayed rollouts apart (paper, Table 2 and Figure 3).

Sums are collected micro-batch by micro-batch and process by process, and divided once at the end of
the step, so that every token counts alike.
"""

from collections import Counter
from math import isfinite

import torch

from grpo_replay.training.finite import LOG_RATIO_BOUND


class RatioStatistics:
    """Token sums over the updates of one training step, and each row's mean log ratio.

    A token counts as clipped where its ratio left [1 - clip_low, 1 + clip_high] on the side where
    the clip binds for the sign of its advantage.
    """

    def __init__(self, clip_low: float, clip_high: float) -> None:
        self.clip_low = clip_low
        self.clip_high = clip_high
        self.sums: Counter[str] = Counter()
        self.log_ratios: dict[int, float] = {}  # nats a token, by place in the step's batch

    def observe(
        self, inputs: dict[str, torch.Tensor], logprobs_RT: torch.Tensor, entropies_RT: torch.Tensor
    ) -> None:
        """Add a micro-batch: log-probabilities and entropies (nats) of the current policy."""
        mask_RT = inputs["completion_mask"].bool()
        log_ratio_RT = (logprobs_RT - inputs["old_per_token_logps"]).double()
        advantage_RT = inputs["advantages"].unsqueeze(1).expand_as(log_ratio_RT)
        age_RT = inputs["ages"].unsqueeze(1).expand_as(log_ratio_RT)
        means_R = (log_ratio_RT * mask_RT).sum(dim=1) / mask_RT.sum(dim=1).clamp(min=1)
        places_means = zip(inputs["row_index"].tolist(), means_R.tolist(), strict=True)
        self.log_ratios |= {place: mean for place, mean in places_means if place >= 0}
        self.sums["entropy"] += float(entropies_RT[mask_RT].double().sum())
        for kind, chosen in (
            ("fresh", mask_RT & (age_RT == 0)),
            ("replay", mask_RT & (age_RT > 0)),
        ):
            self._add(kind, log_ratio_RT[chosen], advantage_RT[chosen])
        for age in inputs["ages"][mask_RT.any(dim=1)].unique().tolist():
            chosen = mask_RT & (age_RT == age)
            self.sums[f"age/{age}/tokens"] += int(chosen.sum())
            self.sums[f"age/{age}/log_ratio"] += float(log_ratio_RT[chosen].sum())

    def _add(self, kind: str, log_ratio: torch.Tensor, advantage: torch.Tensor) -> None:
        ratio = log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()  # as in the loss
        low = (ratio < 1 - self.clip_low) & (advantage < 0)
        high = (ratio > 1 + self.clip_high) & (advantage > 0)
        self.sums[f"{kind}/tokens"] += ratio.numel()
        self.sums[f"{kind}/low"] += int(low.sum())
        self.sums[f"{kind}/high"] += int(high.sum())
        self.sums[f"{kind}/ratio"] += float(ratio.sum())
        self.sums[f"{kind}/ratio_squared"] += float((ratio**2).sum())


def ratio_metrics(gathered: list[Counter[str]]) -> dict[str, float | dict | None]:
    """Divide the summed counters of all processes; None where a step has no such tokens, or some
    without a finite value (the entropy of a model that forbids tokens by infinite logits).
    """
    total: Counter[str] = Counter()
    for sums in gathered:
        total.update(sums)  # `+` would drop negative sums
    tokens = total["fresh/tokens"] + total["replay/tokens"]
    result: dict[str, float | dict | None] = {"entropy": _mean(total["entropy"], tokens)}
    for kind in ("fresh", "replay"):
        result |= _of_kind(total, kind)
    weight, squares = total["replay/ratio"], total["replay/ratio_squared"]
    # Effective sample size (sum w)^2 / sum w^2, as a share of the number of tokens.
    size = _mean(weight**2, squares)
    result["ratio/replay_effective_sample_share"] = (
        None if size is None else size / total["replay/tokens"]
    )
    ages = sorted(int(key.split("/")[1]) for key in total if key.endswith("/log_ratio"))
    result["ratio/log_ratio_by_age"] = {
        str(age): total[f"age/{age}/log_ratio"] / total[f"age/{age}/tokens"] for age in ages
    }
    return result


def _of_kind(total: Counter[str], kind: str) -> dict[str, float | None]:
    tokens, low, high = (total[f"{kind}/{name}"] for name in ("tokens", "low", "high"))
    return {
        f"tokens/{kind}": tokens,
        f"clip_ratio/{kind}_low": _mean(low, tokens),
        f"clip_ratio/{kind}_high": _mean(high, tokens),
        f"clip_ratio/{kind}": _mean(low + high, tokens),
        f"ratio/{kind}_mean": _mean(total[f"{kind}/ratio"], tokens),
    }


def _mean(total: float, count: float) -> float | None:
    return total / count if count and isfinite(total) else None
