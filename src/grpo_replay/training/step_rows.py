"""Rows of the training records, from the rollouts of a step (names are explained in
config/README.md).
"""

import math
import time
from collections import Counter

import numpy as np

from grpo_replay.methods.advantages import group_statistics
from grpo_replay.methods.replay import Batch
from grpo_replay.methods.rollout import Rollout, group_by_query
from grpo_replay.training.round import Round

# TRL's own means over the step's updates that a record keeps.
_FROM_TRL = ("loss", "grad_norm", "learning_rate")


def rollout_rows(rollouts: list[Rollout], texts: list[str]) -> list[dict]:
    """One row for every sampled completion, with its text."""
    return [
        {
            "step": r.birth_step,
            "rollout_id": r.rollout_id,
            "group_id": r.group_id,
            "problem_id": r.problem_id,
            "text": text,
            "reward": None if math.isnan(r.reward) else r.reward,
            "correct": r.correct,
            "advantage": r.advantage,
            "length": len(r.completion_ids),
            "truncated": r.truncated,
            "survived": r.has_signal,
        }
        for r, text in zip(rollouts, texts, strict=True)
    ]


def replay_rows(batch: Batch, step: int, log_ratios: dict[int, float]) -> list[dict]:
    """One row for every rollout that a step has trained on; `log_ratios` by place in the batch."""
    return [
        {
            "step": step,
            "birth_step": r.birth_step,
            "age": step - r.birth_step,
            "rollout_id": r.rollout_id,
            "group_id": r.group_id,
            "problem_id": r.problem_id,
            "advantage": r.advantage,
            "reward": r.reward,
            "length": len(r.completion_ids),
            "truncated": r.truncated,
            "replayed": bool(batch.is_replay[place]),
            "log_ratio": log_ratios[place],
        }
        for place, r in enumerate(batch.rows)
    ]


def step_summary(step: int, done: Round, logs: dict[str, float], skipped: int) -> dict:
    """The record of a finished step; None stands where there is nothing to average."""
    fresh, batch = done.fresh, done.batch
    now = time.perf_counter()
    return {
        "step": step,
        **_rewards_and_lengths(fresh),
        **{f"reward/{name}": mean for name, mean in done.reward_means.items()},
        **_groups(fresh),
        **_sampler(fresh),
        **_replay(batch, step),
        "buffer/evicted_age": batch.evicted.age,
        "buffer/evicted_capacity": batch.evicted.capacity,
        "updates/skipped": skipped,
        **{name: logs.get(name) if batch.rows else None for name in _FROM_TRL},
        "perf/generated_tokens": sum(len(r.completion_ids) for r in fresh),
        "perf/trained_tokens": sum(len(r.completion_ids) for r in batch.rows),
        "perf/generation_seconds": done.generation_seconds,
        "perf/scoring_seconds": done.scored - done.started - done.generation_seconds,
        "perf/update_seconds": now - done.scored,
        "perf/step_seconds": now - done.started,
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


def _sampler(fresh: list[Rollout]) -> dict:
    """How far the sampling engine's log-probabilities are from the training engine's, in nats, over
    the tokens for which it has one (vLLM gives nan for some).
    """
    gaps = [
        np.abs(r.behavior_logprobs - r.sampler_logprobs)
        for r in fresh
        if r.sampler_logprobs is not None
    ]
    tokens = np.concatenate(gaps) if gaps else np.empty(0)
    known = tokens[np.isfinite(tokens)]
    return {
        "sampler/logprob_gap_mean": float(known.mean()) if len(known) else None,
        "sampler/logprob_gap_max": float(known.max()) if len(known) else None,
        "sampler/logprobs_missing": len(tokens) - len(known) if gaps else None,
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
