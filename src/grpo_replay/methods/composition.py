"""Compose the batch of one training step from survivors and stored rollouts (axis "composition").

`none`: the survivors (plain GRPO). `pool`: a batch of (1 + r) B' is drawn from survivors and buffer
together. `anchored`: every survivor, and a separate draw of r B' from the buffer (Algorithm 1).
During the replay warm-up every composition is plain GRPO.
"""

import math
from dataclasses import dataclass

import numpy as np

from grpo_replay.methods.buffer import RolloutBuffer
from grpo_replay.methods.priorities import Sampler
from grpo_replay.methods.rollout import Rollout, SampledUnit, group_by_query, members


@dataclass(frozen=True)
class ReplayMethod:
    """How a method replays: `composition` none, pool or anchored; `unit` query or rollout; r;
    warm-up in steps.
    """

    composition: str
    unit: str = "rollout"
    replay_ratio: float = 0.0
    warmup_steps: int = 0


@dataclass(frozen=True)
class Batch:
    """Rows of one training step; `is_replay` has shape (rows,): True for rollouts of an earlier
    step.
    """

    rows: list[Rollout]
    is_replay: np.ndarray


def compose(
    fresh: list[Rollout],
    buffer: RolloutBuffer,
    step: int,
    method: ReplayMethod,
    sampler: Sampler | None,
) -> Batch:
    """Return the batch of a step. `fresh` are the survivors of this step, not yet in the buffer.

    Sizes are rounded half up, in units of the method, and are never more than there is.
    """
    if method.composition == "none" or step <= method.warmup_steps:
        return _batch(fresh, step)
    stored = buffer.groups() if method.unit == "query" else buffer.rollouts()
    survivors = group_by_query(fresh) if method.unit == "query" else fresh
    if method.composition == "anchored":
        size = round_half_up(method.replay_ratio * len(survivors))
        return _batch([*fresh, *_flat(sampler.sample(stored, size))], step)
    size = round_half_up((1 + method.replay_ratio) * len(survivors))
    return _batch(_flat(sampler.sample([*survivors, *stored], size)), step)


def round_half_up(value: float) -> int:
    """Round to the nearest integer, halves up: Python's round-half-even would replay nothing for
    one group.
    """
    return math.floor(value + 0.5)


def _flat(units: list[SampledUnit]) -> list[Rollout]:
    return [rollout for unit in units for rollout in members(unit)]


def _batch(rows: list[Rollout], step: int) -> Batch:
    return Batch(rows=list(rows), is_replay=np.array([r.birth_step < step for r in rows], bool))
