"""What training needs of each GPU, from arithmetic: nothing here was measured."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from grpo_replay.errors import ConfigError
from grpo_replay.methods.method import vary
from grpo_replay.models.config import PretrainedModel
from grpo_replay.study.config import ROLLOUT_ENGINE_SHARE, Scale, Study

# Mixed precision keeps float32 weights, gradients and two AdamW moments.
BYTES_STATE = 16
# Processes that each hold everything sum gradients in a second copy of them (torch's DDP).
BYTES_SUMMED = 4
BYTES_ENGINE = {"float32": 4, "bfloat16": 2}  # vLLM's own weights, in the training's precision


def parameter_count(scale: Scale) -> int | None:
    """Parameters of a pretrained model; None for the tiny ones, which need no planning."""
    return scale.model.parameters if isinstance(scale.model, PretrainedModel) else None


def state_bytes(scale: Scale, parameters: int) -> float:
    """Bytes of weights, gradients and AdamW's moments that each process holds."""
    if scale.sharding == "full":
        return parameters * BYTES_STATE / scale.gpus
    return parameters * (BYTES_STATE + (BYTES_SUMMED if scale.gpus > 1 else 0))


@dataclass(frozen=True)
class GpuMemory:
    """Bytes of each GPU, and whose GPUs that are."""

    size: float
    source: str


PAPERS_GPUS = GpuMemory(
    80e9, "the paper's GPUs, none was found here (others: --resources gpu_gb=N)"
)


def weights_bytes(study: Study, parameters: int) -> float:
    """Bytes of vLLM's weights in a training process; 0 where the study samples without it."""
    engine = study.training.rollout_engine == "vllm"
    return float(parameters * BYTES_ENGINE[study.training.precision]) if engine else 0.0


def engine_bytes(study: Study, parameters: int, memory: GpuMemory) -> float:
    """Bytes of each GPU that vLLM takes there, weights and cache."""
    weights = weights_bytes(study, parameters)
    return max(weights, ROLLOUT_ENGINE_SHARE * memory.size) if weights else 0.0


def bytes_left(study: Study, scale: Scale, parameters: int, memory: GpuMemory) -> float:
    """Bytes of a GPU that training state and vLLM leave; below zero where they do not fit."""
    return memory.size - state_bytes(scale, parameters) - engine_bytes(study, parameters, memory)


def rows_held(study: Study, name: str) -> int:
    """The most rollouts whose activations a device of a scale holds at a time.

    A step has as many micro-batches whether it replays or not, so that each has up to (1 + r) times
    `micro_batch` rows, r the largest of the scale's cells.
    """
    fresh, group = study.training.rollouts_per_step, study.training.group_size
    rows = [fresh]
    for block in study.grid:
        if name in block.scales:
            variants = product(block.methods, block.variants())
            methods = [vary(study.methods[method], variant) for method, variant in variants]
            rows += [method.replay.most_rows(fresh, group) for method in methods]
    return -(-max(rows) * study.scales[name].micro_batch // fresh)


def memory_row(study: Study, scale: Scale, parameters: int, memory: GpuMemory) -> list[str]:
    """Training state on each GPU, vLLM's weights beside it, and what both leave of the GPU."""
    state, weights = state_bytes(scale, parameters), weights_bytes(study, parameters)
    left = bytes_left(study, scale, parameters, memory)
    fits = gigabytes(left) if left > 0 else f"{gigabytes(-left)} too much: {_repair(scale)}"
    return [gigabytes(state), gigabytes(weights) if weights else "-", fits if scale.gpus else "-"]


def check_memory(study: Study, scales: Iterable[str], memory: GpuMemory, declared: int) -> None:
    """Refuse a run whose training cannot fit its GPUs, by the arithmetic of the plan; `scales` are
    those that the run trains, `declared` the number of GPUs declared.

    Raises:
        ConfigError: naming the first such scale, with both numbers and the repair.
    """
    for name in scales:
        scale = study.scales[name]
        parameters = parameter_count(scale)
        if not (parameters and scale.gpus) or bytes_left(study, scale, parameters, memory) > 0:
            continue
        engine = engine_bytes(study, parameters, memory)
        state = gigabytes(state_bytes(scale, parameters))
        beside = f", {gigabytes(engine)} for vLLM beside it" if engine else ""
        raise ConfigError(
            f"study {study.study}: training {name} holds {state} of weights, gradients and moments "
            f"on each GPU{beside}, and a GPU has {gigabytes(memory.size)} "
            f"({memory.source}), where the activations of {rows_held(study, name)} rollouts have "
            f"to fit too: {_repair(scale)} (scales.{name}); to start all the same, say "
            f"what memory to count with: --resources gpu={declared} gpu_gb=N"
        )


def memory_note(study: Study, memory: GpuMemory) -> str:
    """How to read what is left, below the table; nothing for a study without GPUs."""
    if not any(scale.gpus for scale in study.scales.values()):
        return ""
    engine = f"vLLM takes {ROLLOUT_ENGINE_SHARE:.0%} of each GPU, weights and cache within that.\n"
    held = ", ".join(f"{name} {rows_held(study, name)}" for name in study.scales)
    return (
        f"\n{gigabytes(memory.size)}: {memory.source}.\n"
        f"{engine if study.training.rollout_engine == 'vllm' else ''}What is left is for "
        "activations, and where the state is sharded for the layers at work.\n"
        f"Rollouts that a GPU holds at a time, at most (micro_batch x (1 + r)): {held}."
    )


def _repair(scale: Scale) -> str:
    if scale.sharding == "full":
        return "more gpus"
    return "set sharding: full" if scale.gpus > 1 else "more gpus, sharding: full"


def gigabytes(count: float) -> str:
    """Bytes in words."""
    return f"{rounded(count / 1e9, 3)} GB"


def rounded(value: float, digits: int) -> str:
    """A number to so many digits, the whole ones all, with a comma at each thousand."""
    short = f"{value:.{digits}g}"
    return f"{value:,.0f}" if float(short) >= 10 ** (digits - 1) else short
