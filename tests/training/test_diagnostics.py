"""Ratio statistics against sums done by hand."""

from math import exp, log

import pytest
import torch

from grpo_replay.training.diagnostics import RatioStatistics, ratio_metrics


def micro_batch(ages: list[int], advantages: list[float], ratios: list[list[float]]) -> tuple:
    """Inputs and log-probabilities with these ratios; the last token of each row is padding."""
    ratio_RT = torch.tensor(ratios)
    mask_RT = torch.ones_like(ratio_RT)
    mask_RT[:, -1] = 0
    old_RT = torch.full_like(ratio_RT, -2.0)
    inputs = {
        "completion_mask": mask_RT,
        "old_per_token_logps": old_RT,
        "advantages": torch.tensor(advantages),
        "ages": torch.tensor(ages),
        "row_index": torch.arange(len(ages)) - 1,  # the first row fills up
    }
    return inputs, old_RT + ratio_RT.log(), torch.full_like(ratio_RT, 0.5)


def test_metrics_by_hand() -> None:
    statistics = RatioStatistics(0.2, 0.28)
    statistics.observe(
        *micro_batch(
            ages=[0, 3, 12],
            advantages=[1.0, -1.0, 2.0],
            ratios=[[1.0, 1.3, 9.0], [0.5, 1.5, 9.0], [0.5, 2.0, 9.0]],
        )
    )
    metrics = ratio_metrics([statistics.sums, statistics.sums])  # two processes that saw the same
    assert (metrics["tokens/fresh"], metrics["tokens/replay"]) == (4, 8)
    assert metrics["clip_ratio/fresh_high"] == 0.5 and metrics["clip_ratio/fresh_low"] == 0
    # 0.5 with A < 0 and 2.0 with A > 0; neither 1.5 with A < 0 nor 0.5 with A > 0.
    assert metrics["clip_ratio/replay_low"] == metrics["clip_ratio/replay_high"] == 0.25
    assert metrics["clip_ratio/replay"] == 0.5
    assert metrics["ratio/replay_mean"] == pytest.approx(4.5 / 4)
    assert metrics["ratio/replay_effective_sample_share"] == pytest.approx(4.5**2 / 6.75 / 4)
    assert metrics["entropy"] == pytest.approx(0.5)
    by_age = metrics["ratio/log_ratio_by_age"]
    assert list(by_age) == ["0", "3", "12"]
    assert by_age["3"] == pytest.approx((log(0.5) + log(1.5)) / 2)  # negative sums count too
    assert by_age["12"] == pytest.approx(log(1.0))
    assert exp(by_age["0"]) == pytest.approx(1.3**0.5)
    assert statistics.log_ratios == pytest.approx({0: by_age["3"], 1: by_age["12"]})


def test_nothing_seen_is_no_zero() -> None:
    metrics = ratio_metrics([RatioStatistics(0.2, 0.28).sums])
    assert metrics["entropy"] is None and metrics["clip_ratio/replay"] is None
    assert metrics["ratio/log_ratio_by_age"] == {}
