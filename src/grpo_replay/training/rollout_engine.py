"""What TRL leaves open of the vLLM engine that draws rollouts: its precision and random numbers.

TRL seeds the engine with the number of the process alone, once: every cell would draw the same
stream, and a resumed run would begin it anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from transformers import set_seed
from trl.generation import vllm_generation
from trl.import_utils import is_vllm_available

from grpo_replay.config import Training
from grpo_replay.errors import ConfigError
from grpo_replay.training.seeds import purpose_seed


@contextmanager
def engine_precision(training: Training) -> Iterator[None]:
    """While the block runs, an engine that TRL makes holds weights and cache in the precision of
    the training; without vLLM there is nothing to do.

    TRL names none: vLLM would take that of the model's config.json, and bfloat16 for float32.

    Raises:
        ConfigError: where vLLM is not installed.
    """
    if training.rollout_engine != "vllm":
        yield
        return
    if not is_vllm_available():
        raise ConfigError(
            "training.rollout_engine: 'vllm' is not installed here; install the package's extra "
            "[vllm] in an environment of its own, or set rollout_engine: transformers"
        )
    engine = vllm_generation.LLM
    vllm_generation.LLM = partial(engine, dtype=training.precision)
    try:
        yield
    finally:
        vllm_generation.LLM = engine


def seed_rollouts(seed: int, step: int, process: int) -> None:
    """Begin the random numbers of one step's rollouts in this process.

    An engine in the training process draws from the process's default generators (torch's or
    numpy's, vLLM 0.31), one number after the other whatever the prompt: rows of a group differ, and
    so do steps, processes and cells' seeds. A seed in each request would slow every token, and give
    equal rows to equal prompts.
    """
    set_seed(purpose_seed(seed, "rollouts", step, process))
