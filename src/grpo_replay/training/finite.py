"""What is not finite ends a training before it is applied, kept in a checkpoint or published.

Every check gathers what the processes have seen first, so that all of them end, and none waits.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object

from grpo_replay.errors import TrainingError, listing
from grpo_replay.methods.rollout import Rollout
from grpo_replay.models.load import all_finite
from grpo_replay.parts import name_of

# Nats; e^20 is far above every clip, and e^89 would overflow float32: its gradient is nan.
LOG_RATIO_BOUND = 20.0
ROWS_NAMED = 3
REPAIR = (
    "A further run would end in the same place: lower training.learning_rate, or tau_max where the "
    "rows are old, or set training.precision: float32"
)


def check_loss(loss: Any, part: Any, step: int) -> None:
    """Refuse a loss that cannot be differentiated; one that is not finite is told at its update.

    Raises:
        TrainingError: naming the part and the step.
    """
    shape = getattr(loss, "shape", None)
    if shape != torch.Size([]) or not loss.requires_grad:
        found = type(loss).__name__ if shape is None else f"a tensor of shape {tuple(shape)}"
        raise TrainingError(
            f"training step {step}: loss {name_of(part)} gave {found} where a scalar tensor with "
            "a gradient is meant: mend it; the run goes on from its last checkpoint"
        )


def told(part: Any, step: int) -> dict[str, Any]:
    """What a part tells the record of a step, whose numbers are finite or None.

    Raises:
        TrainingError: naming the part, the metric and the step.
    """
    found = part.metrics(step)
    for name, value in found.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise TrainingError(
                f"training step {step}: {name_of(part)} tells {name} = {value}: give None where "
                "there is nothing to tell; the run goes on from its last checkpoint"
            )
    return found


def bound_log_ratio(logprobs_RT: torch.Tensor, stored_RT: torch.Tensor) -> torch.Tensor:
    """Log-probabilities that are at most LOG_RATIO_BOUND away from the stored ones.

    Those within pass bit for bit, with their gradient; one that is cut has the gradient 0.
    """
    return torch.clamp(logprobs_RT, stored_RT - LOG_RATIO_BOUND, stored_RT + LOG_RATIO_BOUND)


def check_rollouts(rollouts: list[Rollout], step: int) -> None:
    """Refuse log-probabilities that cannot be learnt from (`tasks/rewards.py` looks at rewards).

    Raises:
        TrainingError: names step, rollouts and problems.
    """
    if bad := [r for r in rollouts if not np.isfinite(r.behaviour_logprobs).all()]:
        names = listing((_name(r) for r in bad), ROWS_NAMED)
        raise TrainingError(
            f"training step {step}: log-probabilities of the model are not finite: {names}. "
            f"{REPAIR}"
        )


@contextmanager
def diverged_sampling(step: int) -> Iterator[None]:
    """Tell a model whose logits are not finite from other errors of the sampling in the block."""
    try:
        yield
    except RuntimeError as error:
        if "probability tensor" not in str(error):
            raise
        raise TrainingError(
            f"training step {step}: the model's logits are not finite, nothing can be sampled. "
            f"{REPAIR}"
        ) from error


class UpdateCheck:
    """Looks at an optimizer update, micro-batch by micro-batch, and then at its gradient; `loss`
    is named where it is not finite.
    """

    def __init__(self, loss: Any) -> None:
        self._loss = loss
        self._finite = True
        self._gaps: dict[int, float] = {}  # largest |log ratio| in nats, by place in the batch

    def observe(
        self, loss: torch.Tensor, inputs: dict[str, torch.Tensor], logprobs_RT: torch.Tensor
    ) -> None:
        """Add a micro-batch of this process: its loss, and the current log-probabilities."""
        self._finite &= math.isfinite(loss.item())
        gap_RT = (logprobs_RT - inputs["old_per_token_logps"]).abs()
        gap_R = gap_RT.masked_fill(~inputs["completion_mask"].bool(), 0.0).amax(dim=1)
        places = zip(inputs["row_index"].tolist(), gap_R.tolist(), strict=True)
        self._gaps |= {place: gap for place, gap in places if place >= 0}

    def finish(
        self, grad_norm: torch.Tensor | float, rows: list[Rollout], step: int, update: int
    ) -> None:
        """End the update, whose gradient has been summed over the processes but not applied.

        Args:
            grad_norm: norm of the whole gradient.
            rows: the step's batch.
            step, update: both counted from 1, for the message.

        Raises:
            TrainingError: in every process, where a loss or the gradient is not finite.
        """
        finite, gaps = self._finite, self._gaps
        self._finite, self._gaps = True, {}
        finite = all(gather_object([finite]))
        norm = float(grad_norm)
        if finite and math.isfinite(norm):
            return
        widths = dict(gather_object([*gaps.items()]))
        widest = sorted(widths, key=lambda place: _or_infinite(widths[place]), reverse=True)
        names = [f"{_name(rows[place])}: {widths[place]:.3g} nats" for place in widest]
        what = f"gradient is not finite (norm {norm})" if finite else "loss is not finite"
        raise TrainingError(
            f"training step {step}, update {update}: the {what}; it was not applied (loss "
            f"{name_of(self._loss)}). Rows with the largest log ratios: "
            f"{listing(names, ROWS_NAMED)}. {REPAIR}"
        )


def check_state(model: torch.nn.Module, optimizer: Any, place: str, repair: str = REPAIR) -> None:
    """Look at every weight, and at AdamW's moments where there is an optimizer.

    Raises:
        TrainingError: in every process, naming the place and the tensors that are not finite.
    """
    bad = {name for name, held in _state(model, optimizer) if not all_finite(held)}
    if bad := set(gather_object(sorted(bad))):
        raise TrainingError(
            f"{place}: tensors that are not finite: {listing(sorted(bad), ROWS_NAMED)}. {repair}"
        )


def _state(model: torch.nn.Module, optimizer: Any) -> Iterable[tuple[str, torch.Tensor]]:
    """Names and tensors that this process holds, its own parts where they are sharded."""
    moments = optimizer.state if optimizer else {}
    for name, weight in model.named_parameters():
        held = {"": weight} | {f" {key}": value for key, value in moments.get(weight, {}).items()}
        for key, value in held.items():
            yield f"{name}{key}", value.to_local() if hasattr(value, "to_local") else value


def _name(row: Rollout) -> str:
    return f"rollout {row.rollout_id} (problem {row.problem_id}, of step {row.birth_step})"


def _or_infinite(value: float) -> float:
    return math.inf if math.isnan(value) else value
