"""Load a model from its folder, or say what is missing."""

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from grpo_replay.errors import ModelError


def load_model(folder: Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A causal language model all of whose weights are in its folder.

    Training keeps float32 (its bfloat16 is autocast).

    Raises:
        ModelError: where transformers would have filled a gap with random numbers.
    """
    model, found = AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=dtype, output_loading_info=True
    )
    if lost := sorted(map(str, [*found["missing_keys"], *found["mismatched_keys"]])):
        raise ModelError(
            f"{folder}: config.json asks for weights that the folder does not have ({lost[0]} and "
            f"{len(lost) - 1} more); remove the folder and make it again"
        )
    return model
