"""What training needs of each GPU, from arithmetic: nothing here was measured."""

from grpo_replay.config import ROLLOUT_ENGINE_SHARE, Scale, Study
from grpo_replay.sources import PretrainedModel

# Mixed precision keeps float32 weights, gradients and two AdamW moments.
BYTES_STATE = 16
# Processes that each hold everything sum gradients in a second copy of them (torch's DDP).
BYTES_SUMMED = 4
BYTES_ENGINE = {"float32": 4, "bfloat16": 2}  # vLLM's own weights, in the training's precision
GPU_BYTES = 80e9  # the paper's GPUs


def parameter_count(scale: Scale) -> int | None:
    """Parameters of a pretrained model; None for the tiny ones, which need no planning."""
    return scale.model.parameters if isinstance(scale.model, PretrainedModel) else None


def state_bytes(scale: Scale, parameters: int) -> float:
    """Bytes of weights, gradients and AdamW's moments that each process holds."""
    if scale.sharding == "full":
        return parameters * BYTES_STATE / scale.gpus
    return parameters * (BYTES_STATE + (BYTES_SUMMED if scale.gpus > 1 else 0))


def memory_row(study: Study, scale: Scale, parameters: int) -> list[str]:
    """Training state on each GPU, vLLM's weights beside it, and what both leave of the GPU."""
    training = study.training
    state = state_bytes(scale, parameters)
    if training.rollout_engine != "vllm":
        return [gigabytes(state), "-", _left(scale, GPU_BYTES - state)]
    weights = parameters * BYTES_ENGINE[training.precision]
    engine = max(weights, ROLLOUT_ENGINE_SHARE * GPU_BYTES)
    return [gigabytes(state), gigabytes(weights), _left(scale, GPU_BYTES - state - engine)]


def memory_note(study: Study) -> str:
    """How to read what is left, below the table; nothing for a study without GPUs."""
    if not any(scale.gpus for scale in study.scales.values()):
        return ""
    engine = f"vLLM takes {ROLLOUT_ENGINE_SHARE:.0%} of each GPU, weights and cache within that.\n"
    return (
        f"\n{engine if study.training.rollout_engine == 'vllm' else ''}What is left is for "
        "activations, and where the state is sharded for the layers at work."
    )


def _left(scale: Scale, left: float) -> str:
    if not scale.gpus:
        return "-"
    if left > 0:
        return gigabytes(left)
    repair = "more gpus" if scale.sharding == "full" else "set sharding: full"
    return f"does not fit, {gigabytes(-left)} too much: {repair}"


def gigabytes(count: float) -> str:
    """Bytes in words."""
    return f"{count / 1e9:,.3g} GB"
