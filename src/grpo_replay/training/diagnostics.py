"""What the importance ratios of a step look like, fresh and replayed rollouts apart (paper, Table 2
and Figure 3).

Sums are collected micro-batch by micro-batch and process by process, and divided once at the end of
the step.
"""

from collections import Counter

import torch


class RatioStatistics:
    """Token sums over the updates of one training step.

    A token counts as clipped where its ratio left [1 - clip_low, 1 + clip_high] on the side where
    the clip binds for the sign of its advantage.
    """

    def __init__(self, clip_low: float, clip_high: float) -> None:
        self.clip_low = clip_low
        self.clip_high = clip_high
        self.sums: Counter[str] = Counter()

    def observe(self, inputs: dict[str, torch.Tensor], logprobs_RT: torch.Tensor) -> None:
        """Add a micro-batch, given the current policy's log-probabilities of its completion
        tokens.
        """
        mask_RT = inputs["completion_mask"].bool()
        log_ratio_RT = (logprobs_RT - inputs["old_per_token_logps"]).double()
        advantage_RT = inputs["advantages"].unsqueeze(1).expand_as(log_ratio_RT)
        age_RT = inputs["ages"].unsqueeze(1).expand_as(log_ratio_RT)
        replayed_RT = age_RT > 0
        for kind, chosen in (("fresh", mask_RT & ~replayed_RT), ("replay", mask_RT & replayed_RT)):
            self._add(kind, log_ratio_RT[chosen], advantage_RT[chosen])
        for age in inputs["ages"][mask_RT.any(dim=1)].unique().tolist():
            chosen = mask_RT & (age_RT == age)
            self.sums[f"age/{age}/tokens"] += int(chosen.sum())
            self.sums[f"age/{age}/log_ratio"] += float(log_ratio_RT[chosen].sum())

    def _add(self, kind: str, log_ratio: torch.Tensor, advantage: torch.Tensor) -> None:
        ratio = log_ratio.exp()
        low = (ratio < 1 - self.clip_low) & (advantage < 0)
        high = (ratio > 1 + self.clip_high) & (advantage > 0)
        self.sums.update(
            {
                f"{kind}/tokens": ratio.numel(),
                f"{kind}/low": int(low.sum()),
                f"{kind}/high": int(high.sum()),
                f"{kind}/ratio": float(ratio.sum()),
                f"{kind}/ratio_squared": float((ratio**2).sum()),
            }
        )

    def metrics(self, gathered: list[Counter[str]]) -> dict[str, float | dict | None]:
        """Divide the summed counters of all processes; None where a step has no such tokens."""
        total = sum(gathered, Counter())
        result: dict[str, float | dict | None] = {}
        for kind in ("fresh", "replay"):
            tokens = total[f"{kind}/tokens"]
            result[f"tokens/{kind}"] = int(tokens)
            for name, value in (
                ("clip_ratio/{}_low", total[f"{kind}/low"]),
                ("clip_ratio/{}_high", total[f"{kind}/high"]),
                ("clip_ratio/{}", total[f"{kind}/low"] + total[f"{kind}/high"]),
                ("ratio/{}_mean", total[f"{kind}/ratio"]),
            ):
                result[name.format(kind)] = value / tokens if tokens else None
        result["ratio/replay_effective_sample_share"] = _effective_share(total)
        result["ratio/log_ratio_by_age"] = {
            key.split("/")[1]: total[key.replace("tokens", "log_ratio")] / count
            for key, count in sorted(total.items())
            if key.startswith("age/") and key.endswith("/tokens")
        }
        return result


def _effective_share(total: Counter[str]) -> float | None:
    """Effective sample size of the replayed tokens' ratios, (sum w)^2 / sum w^2, as a share of
    their number.
    """
    if not total["replay/tokens"]:
        return None
    size = total["replay/ratio"] ** 2 / total["replay/ratio_squared"]
    return size / total["replay/tokens"]
