"""The gradient of a loop of our own (base models, warm starts)."""

import math

import torch

from grpo_replay.errors import TrainingError


def clip_gradient(network: torch.nn.Module, loss: torch.Tensor, limit: float, place: str) -> None:
    """Clip the norm of the gradient in a loop of our own (base models, warm starts).

    Raises:
        TrainingError: the loss or the norm is not finite, naming the place.
    """
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), limit)
    if not (math.isfinite(loss.item()) and math.isfinite(norm.item())):
        raise TrainingError(
            f"{place}: loss {loss.item():.3g} and gradient norm {norm.item():.3g} must be finite; "
            "lower its learning_rate"
        )
