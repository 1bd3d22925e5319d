"""Load a model from its folder, or say what is missing."""

from pathlib import Path

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, PreTrainedModel

from grpo_replay.errors import ModelError


def load_model(folder: Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A causal language model all of whose weights are in its folder, and finite.

    Training keeps float32 (its bfloat16 is autocast).

    Raises:
        ModelError: where transformers would have filled a gap with random numbers, or a weight is
            not finite.
    """
    model, found = AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=dtype, output_loading_info=True
    )
    if lost := sorted(map(str, [*found["missing_keys"], *found["mismatched_keys"]])):
        raise ModelError(
            f"{folder}: config.json asks for weights that the folder does not have ({lost[0]} and "
            f"{len(lost) - 1} more); remove the folder and make it again"
        )
    check_finite(folder)
    return model


def check_finite(folder: Path) -> None:
    """Read every weight of a model folder: about a second for four billion of them.

    Raises:
        ModelError: one is not finite, naming file and tensor.
    """
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118 (no dict)
                if not all_finite(weights.get_tensor(name)):
                    raise ModelError(
                        f"{file}: {name} is not finite, the model diverged; remove the folder and "
                        "train again with a lower learning rate"
                    )


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether a tensor has neither nan nor infinity (its extremes tell, in one fast pass)."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    if tensor.element_size() == 1:  # torch has no extremes of its 8-bit formats
        tensor = tensor.float()
    return all(bool(torch.isfinite(extreme)) for extreme in torch.aminmax(tensor.detach()))
