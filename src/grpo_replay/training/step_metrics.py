"""The numbers of a training step: a row of `metrics.jsonl`, and what each means."""

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from grpo_replay.methods.advantages import group_statistics
from grpo_replay.methods.replay import Batch
from grpo_replay.methods.rollout import Rollout, group_by_query

if TYPE_CHECKING:  # its tensors, which a table of the metrics has no use for
    from grpo_replay.training.round import Round

# TRL's own means over the step's updates that a record keeps.
_FROM_TRL = ("loss", "grad_norm", "learning_rate")


@dataclass(frozen=True)
class Step:
    """A finished step, as far as its record is made of it; `logs` are TRL's own means."""

    step: int
    done: "Round"
    logs: dict[str, float]
    skipped: int
    now: float


def step_summary(step: int, done: "Round", logs: dict[str, float], skipped: int) -> dict:
    """The record of a finished step; None stands where there is nothing to average."""
    finished = Step(step, done, logs, skipped, time.perf_counter())
    record: dict[str, Any] = {"step": step}
    for metrics in STEP_METRICS:
        record |= metrics.of(finished)
    return record


def _updates(step: Step) -> dict:
    done, trained = step.done, bool(step.done.batch.rows)
    return {
        "buffer/evicted_age": done.batch.evicted.age,
        "buffer/evicted_capacity": done.batch.evicted.capacity,
        "updates/skipped": step.skipped,
        **{name: step.logs.get(name) if trained else None for name in _FROM_TRL},
    }


def _costs(step: Step) -> dict:
    done = step.done
    return {
        "perf/generated_tokens": sum(len(r.completion_ids) for r in done.fresh),
        "perf/trained_tokens": sum(len(r.completion_ids) for r in done.batch.rows),
        "perf/generation_seconds": done.generation_seconds,
        "perf/scoring_seconds": done.scored - done.started - done.generation_seconds,
        "perf/update_seconds": step.now - done.scored,
        "perf/step_seconds": step.now - done.started,
    }


def _rewards_and_lengths(fresh: list[Rollout]) -> dict:
    scored = [r for r in fresh if not math.isnan(r.reward)]
    correct = [len(r.completion_ids) for r in scored if r.correct]
    wrong = [len(r.completion_ids) for r in scored if not r.correct]
    return {
        "reward/mean": _mean([r.reward for r in scored]),
        "reward/unscored": len(fresh) - len(scored),
        "completions/mean_length": _mean([len(r.completion_ids) for r in fresh]),
        "completions/mean_length_correct": _mean(correct),
        "completions/mean_length_incorrect": _mean(wrong),
        "completions/truncated_share": _mean([r.truncated for r in fresh]),
    }


def _groups(fresh: list[Rollout]) -> dict:
    groups = group_by_query(fresh)
    # Of all that was sampled: a rollout knows the deviation of what was selected.
    rewards_PG = [np.array([[r.reward for r in group]]) for group in groups]
    stds = [group_statistics(rewards_G).std[0, 0] for rewards_G in rewards_PG]
    # Equal rewards; a group without any has no deviation.
    same = [group for group, std in zip(groups, stds, strict=True) if std == 0]
    same = [group for group in same if any(not math.isnan(r.reward) for r in group)]
    right = sum(all(r.correct for r in group) for group in same)
    return {
        "groups/count": len(groups),
        "groups/all_correct_percent": 100 * right / len(groups),
        "groups/all_wrong_percent": 100 * (len(same) - right) / len(groups),
        "survivors/rollouts": sum(r.has_signal for r in fresh),
    }


def _inference(fresh: list[Rollout]) -> dict:
    """How far the sampling engine's log-probabilities are from the training engine's, in nats, over
    the tokens for which it has one (vLLM gives nan for some).
    """
    gaps = [
        np.abs(r.behaviour_logprobs - r.inference_logprobs)
        for r in fresh
        if r.inference_logprobs is not None
    ]
    tokens = np.concatenate(gaps) if gaps else np.empty(0)
    known = tokens[np.isfinite(tokens)]
    return {
        "inference/logprob_gap_mean": float(known.mean()) if len(known) else None,
        "inference/logprob_gap_max": float(known.max()) if len(known) else None,
        "inference/logprobs_missing": len(tokens) - len(known) if gaps else None,
    }


def _replay(batch: Batch, step: int) -> dict:
    ages = Counter(step - r.birth_step for r in batch.rows)
    replayed = [age for age in ages.elements() if age > 0]
    return {
        "replay/rows": len(replayed),
        "replay/trained_rows": len(batch.rows),
        "replay/age_mean": _mean(replayed),
        "replay/age_max": max(replayed, default=None),
        "replay/age_histogram": {str(age): count for age, count in sorted(ages.items())},
    }


def _mean(values: list) -> float | None:
    return float(np.mean(values)) if values else None


# --- the catalogue --------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepMetrics:
    """Numbers that are made together, with the meaning of each for people, by name.

    One entry brings a number to `train/metrics.jsonl`, MLflow and, with a heading, to the training
    table; config/README.md lists them (a test compares).
    """

    of: Callable[[Step], dict[str, Any]]
    meanings: dict[str, str]
    headings: dict[str, str] = field(default_factory=dict)


STEP_METRICS = (
    StepMetrics(
        lambda s: _rewards_and_lengths(s.done.fresh),
        {
            "reward/mean": "mean reward of the sampled rollouts: the weighted sum of `rewards` (-1 "
            "to 1 by default)",
            "reward/unscored": "rollouts without a reward",
            "completions/mean_length": "tokens, end token included",
            "completions/mean_length_correct": "the same of answers that the task's first "
            "verifier calls right",
            "completions/mean_length_incorrect": "the same of the others that have a reward",
            "completions/truncated_share": "share of rollouts without an end token",
        },
        {
            "reward/mean": "Reward",
            "completions/mean_length": "Length (tokens)",
            "completions/truncated_share": "Truncated",
        },
    ),
    StepMetrics(
        lambda s: {f"reward/{name}": mean for name, mean in s.done.reward_means.items()},
        {
            "reward/<name>": "mean of each reward function, without its weight, over the rollouts "
            "that it gave one",
        },
    ),
    StepMetrics(
        lambda s: _groups(s.done.fresh),
        {
            "groups/count": "groups sampled",
            "groups/all_correct_percent": "percent of them with equal rewards and right "
            "answers alone (Table 8)",
            "groups/all_wrong_percent": "percent of the others with equal rewards (Table 8)",
            "survivors/rollouts": "rollouts that have a signal: of mixed groups (Table 8)",
        },
        {"survivors/rollouts": "Rollouts with a signal"},
    ),
    StepMetrics(
        lambda s: _inference(s.done.fresh),
        {
            "inference/logprob_gap_mean": "distance of the inference engine's log-probabilities "
            "from the training engine's, nats a token; null if it reports none",
            "inference/logprob_gap_max": "the largest of these distances",
            "inference/logprobs_missing": "tokens for which the inference engine's log-probability "
            "is not finite, left out of the two above; null if it reports none",
        },
    ),
    StepMetrics(
        lambda s: _replay(s.done.batch, s.step),
        {
            "replay/rows": "replayed rows of the step's updates",
            "replay/trained_rows": "all rows of the step's updates",
            "replay/age_mean": "mean age in steps of the replayed rows",
            "replay/age_max": "the age of the oldest",
            "replay/age_histogram": "rows trained on by age; fresh ones have age 0",
        },
        {"replay/rows": "Replayed rows", "replay/age_mean": "Their age (steps)"},
    ),
    StepMetrics(
        _updates,
        {
            "buffer/evicted_age": "rollouts that left the buffer because of their age",
            "buffer/evicted_capacity": "rollouts that left it because it was full",
            "updates/skipped": "optimizer updates without a row to learn from: weights and moments "
            "stay",
            "loss": "TRL's, mean over the step's updates",
            "grad_norm": "gradient norm of the last update",
            "learning_rate": "of the last update",
        },
        {"grad_norm": "Gradient norm"},
    ),
    StepMetrics(
        _costs,
        {
            "perf/generated_tokens": "tokens generated",
            "perf/trained_tokens": "tokens trained on",
            "perf/generation_seconds": "seconds of generation",
            "perf/scoring_seconds": "seconds of scoring",
            "perf/update_seconds": "seconds of the updates",
            "perf/step_seconds": "seconds of the whole step",
        },
        {"perf/step_seconds": "Seconds a step"},
    ),
)

# What `ratio_metrics` and the replay part add to a record.
ADDED = {
    "buffer/size": "rollouts in the buffer after the step",
    "buffer/age_mean": "their mean age in steps",
    "entropy": "nats, mean over the tokens trained on",
    **{
        name.format(kind): meaning.format(kind)
        for kind in ("fresh", "replay")
        for name, meaning in {
            "tokens/{}": "tokens of {} rows trained on",
            "clip_ratio/{}": "share of the {} tokens whose ratio left the window on the side where "
            "the clip binds for the sign of the advantage (Table 2, Figure 3)",
            "clip_ratio/{}_low": "the same, below the window alone ({})",
            "clip_ratio/{}_high": "the same, above the window alone ({})",
            "ratio/{}_mean": "mean importance ratio of the {} tokens to the birth policy",
        }.items()
    },
    "ratio/replay_effective_sample_share": "(sum w)^2 / (n sum w^2) over the replay tokens",
    "ratio/log_ratio_by_age": "mean log ratio to the birth policy by age, nats a token",
}
ADDED_HEADINGS = {
    "entropy": "Entropy (nats)",
    "ratio/replay_effective_sample_share": "Effective share of replay tokens",
}
MEANINGS = {n: text for metrics in STEP_METRICS for n, text in metrics.meanings.items()} | ADDED
HEADINGS = {
    n: text for metrics in STEP_METRICS for n, text in metrics.headings.items()
} | ADDED_HEADINGS
