"""Sharding on a CPU: accelerate shards on GPUs and their like alone, and is told that this is one.

Everything else is the real thing: torch's FSDP with gloo, TRL, checkpoints.
"""

from pathlib import Path

from accelerate import PartialState
from accelerate.utils import DistributedType
from trl import GRPOConfig

from grpo_replay.training import run_training


def allow_sharding() -> None:
    """From here on, trainers of this process may shard."""
    make_arguments = run_training.trainer_arguments

    def arguments(settings: dict, run: Path) -> GRPOConfig:
        made = make_arguments(settings, run)
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_XPU
        return made

    run_training.trainer_arguments = arguments


def sharded(settings: dict, processes: int) -> dict:
    """The settings of a cell, its training state divided among processes."""
    rows = settings["micro_batch"] // processes
    return {**settings, "processes": processes, "micro_batch": rows, "sharding": "full"}
