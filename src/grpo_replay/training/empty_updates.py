"""Updates without a row to learn from."""

from typing import Any, Protocol

from transformers import TrainerCallback


class _Trainer(Protocol):
    def empty_update(self) -> bool: ...


class SkipEmptyUpdates(TrainerCallback):
    """Leave weights and moments alone where an update has nothing to learn from: AdamW moves by
    momentum alone.
    """

    def __init__(self, trainer: _Trainer) -> None:
        self.trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Forget the (zero) gradients, so that the optimizer passes over every parameter."""
        if self.trainer.empty_update():
            kwargs["optimizer"].zero_grad(set_to_none=True)
