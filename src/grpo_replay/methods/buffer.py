"""The store of past rollouts: first in, first out, with a bound on age (Algorithm 1, lines 4 and
5).

It stores and evicts; what is drawn is the samplers' business, what is trained on is mixing's.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from grpo_replay.methods.rollout import Group, Rollout, group_by_query

_SCALARS = {
    "advantage": np.float64,
    "reward": np.float64,
    "group_mean": np.float64,
    "group_std": np.float64,
    "birth_step": np.int64,
    "truncated": np.bool_,
    "correct": np.bool_,
}
_REFERENCE = "reference_logprob"  # where the loss needs it
_NAMES = ("rollout_id", "group_id", "problem_id")
_PROMPT_ARRAYS = ("prompt_ids",)
_COMPLETION_ARRAYS = ("completion_ids", "behaviour_logprobs", "inference_logprobs")


class EvictionCounts(NamedTuple):
    """Rollouts that one eviction removed, by reason."""

    age: int
    capacity: int


class RolloutBuffer:
    """Live rollouts in the order of insertion.

    Args:
        tau_max: the largest age, in training steps, at which a rollout may be trained on.
        capacity: the most rollouts kept; a backstop that does not bind in the paper's settings.
    """

    def __init__(self, tau_max: int, capacity: int) -> None:
        self.tau_max = tau_max
        self.capacity = capacity
        self._rollouts: list[Rollout] = []
        # A group that lost members to the capacity can no longer be drawn as a query.
        self._size_at_birth: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._rollouts)

    def add(self, rollouts: list[Rollout]) -> None:
        """Append rollouts; call `evict` afterwards."""
        self._rollouts.extend(rollouts)
        self._size_at_birth.update(rollout.group_id for rollout in rollouts)

    def evict(self, step: int) -> EvictionCounts:
        """Remove rollouts with birth step < step - tau_max, then the oldest ones over the
        capacity.
        """
        young = [r for r in self._rollouts if r.birth_step >= step - self.tau_max]
        kept = young[max(len(young) - self.capacity, 0) :]
        counts = EvictionCounts(
            age=len(self._rollouts) - len(young), capacity=len(young) - len(kept)
        )
        self._rollouts = kept
        if counts.age or counts.capacity:
            live = {rollout.group_id for rollout in kept}
            self._size_at_birth = Counter({g: self._size_at_birth[g] for g in live})
        return counts

    def rollouts(self) -> list[Rollout]:
        """All live rollouts, oldest first."""
        return list(self._rollouts)

    def groups(self) -> list[Group]:
        """All live groups that are still whole, oldest first."""
        groups = group_by_query(self._rollouts)
        return [g for g in groups if len(g) == self._size_at_birth[g[0].group_id]]

    def metrics(self, step: int) -> dict[str, float]:
        """Size and mean age (in training steps) of what is stored at a step."""
        ages = [step - rollout.birth_step for rollout in self._rollouts]
        return {
            "buffer/size": len(ages),
            "buffer/age_mean": float(np.mean(ages)) if ages else 0.0,
        }

    def state_dict(self) -> dict:
        """The content as flat arrays (`arrays`) and JSON-like values (`values`): no pickle is
        needed to store it.
        """
        rows = self._rollouts
        arrays = {
            name: np.array([getattr(row, name) for row in rows], dtype=kind)
            for name, kind in _SCALARS.items()
        }
        if rows and rows[0].reference_logprob is not None:
            arrays[_REFERENCE] = np.array([r.reference_logprob for r in rows], np.float64)
        has_inference = bool(rows) and rows[0].inference_logprobs is not None
        for name in (*_PROMPT_ARRAYS, *_COMPLETION_ARRAYS):
            if name != "inference_logprobs" or has_inference:
                pieces = [getattr(row, name) for row in rows]
                arrays[name] = np.concatenate(pieces) if pieces else np.zeros(0)
        arrays["prompt_lengths"] = np.array([len(r.prompt_ids) for r in rows], np.int64)
        arrays["completion_lengths"] = np.array([len(r.completion_ids) for r in rows], np.int64)
        values = {name: [getattr(row, name) for row in rows] for name in _NAMES}
        return {"arrays": arrays, "values": {**values, "size_at_birth": dict(self._size_at_birth)}}

    def load_state_dict(self, state: dict) -> None:
        """Replace the content by what `state_dict` returned."""
        arrays, values = state["arrays"], state["values"]
        columns: dict[str, list] = {n: arrays[n].tolist() for n in _SCALARS if n in arrays}
        if _REFERENCE in arrays:
            columns[_REFERENCE] = arrays[_REFERENCE].tolist()
        columns |= {name: values[name] for name in _NAMES}
        columns |= {n: _split(arrays[n], arrays["prompt_lengths"]) for n in _PROMPT_ARRAYS}
        for name in _COMPLETION_ARRAYS:
            if name in arrays:
                columns[name] = _split(arrays[name], arrays["completion_lengths"])
            else:
                columns[name] = [None] * len(values["rollout_id"])
        names = list(columns)
        self._rollouts = [
            Rollout(**dict(zip(names, row, strict=True)))
            for row in zip(*columns.values(), strict=True)
        ]
        self._size_at_birth = Counter(values["size_at_birth"])


def _split(flat: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    return np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []
