"""Weights, gradients and AdamW's moments divided among the processes of a run.

torch's FSDP, version 2, through accelerate: each process holds its part of every decoder layer, and
the layer that is at work is gathered. Checkpoints hold a file a process (torch's distributed
checkpoint format); what is published is whole, in safetensors.
"""

from typing import Any

import torch
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import Trainer

from grpo_replay.errors import ConfigError


def sharding_arguments(sharding: str) -> dict[str, Any]:
    """TRL's arguments for the study's `sharding`."""
    if sharding == "none":
        return {}
    return {
        "fsdp": True,
        "fsdp_config": {
            "version": 2,
            "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",  # the model's own decoder layer
            "state_dict_type": "SHARDED_STATE_DICT",
        },
        # Otherwise each process keeps whole gradients from one micro-batch to the next.
        "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}},
    }


def gathering_precision(precision: str) -> MixedPrecisionPolicy:
    """What layers are gathered and gradients summed in: accelerate would sum in bfloat16 too."""
    if precision == "float32":
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def check_sharding(trainer: Trainer, scale: str) -> None:
    """Refuse a trainer that is to shard and would not.

    Raises:
        ConfigError: where torch sees no GPU: accelerate then shards nothing, and says nothing.
    """
    if trainer.args.fsdp and not trainer.is_fsdp_enabled:
        raise ConfigError(
            f"scales.{scale}.sharding: full divides among GPUs, and this torch sees none: run "
            "where they are, with torch's CUDA build, or set sharding: none"
        )


def save_whole(trainer: Trainer, folder: str) -> None:
    """Write the whole model as one process would; to be called by all of them."""
    weights = trainer.accelerator.get_state_dict(trainer.model)  # empty but in the first process
    for name in trainer.model.all_tied_weights_keys:
        weights.pop(name, None)  # gathering has made a copy of its own
    if trainer.args.should_save:
        trainer._save(folder, state_dict=weights)
