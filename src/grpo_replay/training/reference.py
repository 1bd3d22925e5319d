"""What a loss needs besides the log-probabilities of birth: those of a frozen reference, and those
of the policy of the moment, each summed over a completion.
"""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object

from grpo_replay.errors import TrainingError
from grpo_replay.methods.rollout import Rollout, places_of_groups
from grpo_replay.parts import name_of


def frozen(trainer: Any) -> torch.nn.Module:
    """A copy of the model as it is before training; every process holds the whole of it."""
    model = copy.deepcopy(trainer.model).eval().requires_grad_(False)
    return trainer.accelerator.prepare_model(model, device_placement=True, evaluation_mode=True)


@torch.no_grad()
def completion_logprobs(
    trainer: Any, model: torch.nn.Module, inputs: dict[str, torch.Tensor]
) -> list[float]:
    """log pi of each row's completion in nats, with the temperature of the sampling."""
    logprobs_RT, _, _ = trainer._get_per_token_logps_and_entropies(
        model,
        torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1),
        torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
        inputs["completion_ids"].size(1),
        batch_size=trainer.args.per_device_train_batch_size,
    )
    return (logprobs_RT.double() * inputs["completion_mask"]).sum(dim=1).tolist()


def with_reference(
    rollouts: list[Rollout], trainer: Any, model: torch.nn.Module, inputs: dict[str, torch.Tensor]
) -> list[Rollout]:
    """The rollouts of this process, with their log-probability under the reference."""
    sums = completion_logprobs(trainer, model, inputs)
    return [replace(r, reference_logprob=s) for r, s in zip(rollouts, sums, strict=True)]


def rescore(
    trainer: Any, micro_batches: list[dict[str, torch.Tensor]], rows: list[Rollout]
) -> None:
    """Put the advantages of the moment into this process's micro-batches of one update.

    Args:
        trainer: its loss forms the advantages, group by group.
        micro_batches: those of the update, whose `advantages` are replaced.
        rows: the step's batch; the groups of the update are whole.

    Raises:
        TrainingError: in every process, where an advantage is not finite, or of another shape.
    """
    own: dict[int, float] = {}
    for inputs in micro_batches:
        sums = completion_logprobs(trainer, trainer.model, inputs)
        own |= {p: s for p, s in zip(inputs["row_index"].tolist(), sums, strict=True) if p >= 0}
    policy = dict(gather_object([*own.items()]))
    advantages = _advantages(trainer.loss, policy, rows, trainer.training_step_number)
    for inputs in micro_batches:
        values = [advantages.get(place, 0.0) for place in inputs["row_index"].tolist()]
        inputs["advantages"] = torch.tensor(values).to(inputs["advantages"])


def _advantages(
    loss: Any, policy: dict[int, float], rows: list[Rollout], step: int
) -> dict[int, float]:
    """By place in the batch; `policy` has the places of the update."""
    update = sorted(policy)
    found: dict[int, float] = {}
    for members in places_of_groups([rows[place] for place in update]):
        places = [update[member] for member in members]
        group = [rows[place] for place in places]
        values = loss.advantages(
            np.array([row.reward for row in group]),
            np.array([policy[place] for place in places]),
            np.array([row.reference_logprob for row in group]),
        )
        if np.shape(values) != (len(group),) or not np.isfinite(values).all():
            raise TrainingError(
                f"training step {step}: loss {name_of(loss)} gave advantages that are not finite, "
                f"or not one a row, for {group[0].group_id}: mend it, or lower the learning rate"
            )
        found |= dict(zip(places, map(float, values), strict=True))
    return found
