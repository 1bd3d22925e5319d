"""One sampled completion with everything that is frozen at its birth (paper, section
"Objective").
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Rollout:
    """A completion, and its behaviour policy's view of it.

    `prompt_ids` has shape (prompt tokens,), `completion_ids` and both log-probability arrays
    (completion tokens,). `behaviour_logprobs` come from the training engine at the birth step,
    `inference_logprobs` from the inference engine if it reports them. `group_mean` and
    `group_std` are mu_g and sigma_g of the birth group, `birth_step` counts training steps from 1,
    `truncated` says that no end token was reached, `kept` that the selection of fresh rollouts took
    it, `correct` is the first verifier's word (a reward may be made of more than right and wrong).
    `reference_logprob` is that of the whole completion under the start model, in nats, where the
    loss needs it.
    """

    rollout_id: str
    group_id: str
    problem_id: str
    prompt_ids: np.ndarray
    completion_ids: np.ndarray
    behaviour_logprobs: np.ndarray
    inference_logprobs: np.ndarray | None
    advantage: float
    reward: float
    group_mean: float
    group_std: float
    birth_step: int
    truncated: bool
    kept: bool = True
    correct: bool = False
    reference_logprob: float | None = None

    @property
    def scored(self) -> bool:
        """Whether it counts and has a reward."""
        return self.kept and not math.isnan(self.reward)

    @property
    def has_signal(self) -> bool:
        """Whether its group's rewards differ, too: what survives the filter."""
        return self.group_std > 0 and self.scored


Group = tuple[Rollout, ...]
SampledUnit = Rollout | Group


def members(unit: SampledUnit) -> Group:
    """The rollouts of a unit: itself, or those of a group."""
    return (unit,) if isinstance(unit, Rollout) else unit


def group_by_query(rollouts: list[Rollout]) -> list[Group]:
    """Rollouts of equal `group_id` as tuples, groups and rollouts in the order of first
    appearance.
    """
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group_id, []).append(rollout)
    return [tuple(group) for group in groups.values()]


def places_of_groups(rollouts: list[Rollout]) -> list[list[int]]:
    """The positions of each group's rollouts, groups in the order of first appearance."""
    places: dict[str, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        places.setdefault(rollout.group_id, []).append(place)
    return [*places.values()]
