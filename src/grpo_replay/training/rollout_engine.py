"""What TRL leaves open of the vLLM engine that draws rollouts: its precision and random numbers.

TRL seeds an engine in the training process with the number of the process alone, once, and a server
not at all: every cell would draw the same stream, or what is left of another cell's, and a resumed
run would begin it anew.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from transformers import set_seed
from trl.generation import vllm_generation
from trl.generation.vllm_client import VLLMClient
from trl.import_utils import is_vllm_available

from grpo_replay.config import Training
from grpo_replay.errors import ConfigError
from grpo_replay.training.seeds import purpose_seed

# vLLM schedules what it is sent; the pool of connections of TRL's client is as large.
REQUESTS_AT_ONCE = 64


@contextmanager
def rollout_engine(training: Training) -> Iterator[None]:
    """While the block runs, an engine that TRL makes holds weights and cache in the precision of
    the training, and a client of a server asks with seeds; without vLLM there is nothing to do.

    TRL names no precision: vLLM would take that of the model's config.json, and bfloat16 for
    float32. That of a server is compared before (`rollout_server.check_server`).

    Raises:
        ConfigError: where vLLM is not installed.
    """
    if training.rollout_engine == "transformers":
        yield
        return
    if not is_vllm_available():
        raise ConfigError(
            f"training.rollout_engine: {training.rollout_engine!r} needs vLLM, which is not "
            "installed here; install the package's extra [vllm] in an environment of its own, or "
            "set rollout_engine: transformers"
        )
    engine, client = vllm_generation.LLM, vllm_generation.VLLMClient
    vllm_generation.LLM = partial(engine, dtype=training.precision)
    vllm_generation.VLLMClient = SeededClient
    try:
        yield
    finally:
        vllm_generation.LLM, vllm_generation.VLLMClient = engine, client


class SeededClient(VLLMClient):
    """Asks a server for each prompt by itself, with a seed of its own.

    In one request all prompts would get the same random numbers, and without a seed those that
    whatever the server did before has left.
    """

    def generate(
        self, prompts: list, *, generation_kwargs: dict[str, Any], **parameters: Any
    ) -> dict[str, list]:
        """What TRL's client returns; `generation_kwargs` has the `seed` of the step."""
        ask = super().generate
        seeds = [purpose_seed(generation_kwargs["seed"], "prompt", i) for i in range(len(prompts))]

        def one(prompt: list, seed: int) -> dict[str, list]:
            return ask(
                [prompt], generation_kwargs={**generation_kwargs, "seed": seed}, **parameters
            )

        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as executor:
            answers = list(executor.map(one, prompts, seeds))
        return {key: [row for answer in answers for row in answer[key]] for key in answers[0]}


def seed_rollouts(generation: vllm_generation.VLLMGeneration, seed: int, step: int) -> None:
    """Begin the random numbers of one step's rollouts.

    A server gets a seed with each prompt (vLLM counts on from it for the rows of the group). An
    engine in the training process draws from the process's default generators (torch's or numpy's,
    vLLM 0.31), one number after the other whatever the prompt: rows of a group differ, and so do
    steps, processes and cells' seeds. There a seed in each request would slow every token, and give
    equal rows to equal prompts.
    """
    if generation.mode == "server":
        generation.generation_kwargs["seed"] = purpose_seed(seed, "rollouts", step)
    else:
        set_seed(purpose_seed(seed, "rollouts", step, generation.accelerator.process_index))
