"""Rows of `rollouts.parquet` and `replay.parquet` from the rollouts of a step (config/README.md
explains the names).
"""

import math

from grpo_replay.methods.replay import Batch
from grpo_replay.methods.rollout import Rollout


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
