"""From the rewards of a step's groups to advantages: select, then compare within each group."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_replay.errors import TrainingError
from grpo_replay.methods.advantages import group_statistics
from grpo_replay.parts import name_of


@dataclass(frozen=True)
class ScoredGroups:
    """What is known of each rollout once its group is scored, each of shape (rollouts,).

    `means` and `stds` are mu_g and sigma_g (population) of the rollouts that the advantages are
    formed over; `kept` says which rollouts count. A group whose rewards are all equal has sigma_g
    exactly 0 and advantages 0; so has one without rewards, whose mu_g is NaN.
    """

    advantages: np.ndarray
    means: np.ndarray
    stds: np.ndarray
    kept: np.ndarray


def score_groups(
    rewards: np.ndarray, group_size: int, select: Any, advantage: Any, step: int
) -> ScoredGroups:
    """Select rollouts of each group and form their advantages.

    Args:
        rewards: shape (groups * group_size,), a group together; NaN (or None) marks a completion
            without a reward, which gets advantage 0 and stays out of mean and standard deviation.
        group_size: G, completions a prompt.
        select: what `Selection.start` returned.
        advantage: what `Advantage.start` returned.
        step: for messages.

    Raises:
        ValueError: the number of rewards is no multiple of the group size.
        TrainingError: a part returned positions that do not exist, or advantages that are not
            finite or of another shape.
    """
    flat = np.array(rewards, dtype=np.float64)
    if flat.ndim != 1 or len(flat) % group_size:
        raise ValueError(f"{flat.shape} rewards do not divide into groups of {group_size}")
    rewards_PG = flat.reshape(-1, group_size)
    kept_PG = np.stack([_kept(select, rewards_G, step) for rewards_G in rewards_PG])
    over_all = select.advantage_over == "all"
    group = group_statistics(rewards_PG if over_all else np.where(kept_PG, rewards_PG, np.nan))
    advantages_PG = np.asarray(advantage.of(group), dtype=np.float64)
    if advantages_PG.shape != rewards_PG.shape:
        raise _fault(
            step, "advantage", advantage, f"shape {advantages_PG.shape} for {rewards_PG.shape}"
        )
    counted_PG = kept_PG & group.scored & (group.std > 0)
    advantages_PG = np.where(counted_PG, advantages_PG, 0.0)
    if not np.isfinite(advantages_PG).all():
        raise _fault(step, "advantage", advantage, "an advantage that is not finite")
    return ScoredGroups(
        advantages_PG.reshape(-1),
        np.repeat(group.mean, group_size),
        np.repeat(group.std, group_size),
        kept_PG.reshape(-1),
    )


def _kept(select: Any, rewards_G: np.ndarray, step: int) -> np.ndarray:
    positions = np.asarray(select.kept(rewards_G))
    if not _are_places(positions, len(rewards_G)):
        what = f"positions {positions.tolist()} in a group of {len(rewards_G)}"
        raise _fault(step, "select", select, what)
    kept_G = np.zeros(len(rewards_G), dtype=bool)
    kept_G[positions.astype(int)] = True
    return kept_G


def _are_places(positions: np.ndarray, count: int) -> bool:
    """Whether these are different places among `count`; none is a choice too."""
    if positions.ndim != 1 or (len(positions) and positions.dtype.kind not in "iu"):
        return False
    found = set(positions.tolist())
    return len(found) == len(positions) and found <= set(range(count))


def _fault(step: int, axis: str, part: Any, what: str) -> TrainingError:
    return TrainingError(
        f"step {step}: {axis} {name_of(part)} gave {what}: mend it; the run goes on from its last "
        "checkpoint"
    )
