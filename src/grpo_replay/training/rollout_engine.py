"""What TRL leaves open of the vLLM engine that draws rollouts: its precision and random numbers.

TRL seeds an engine in the training process with the number of the process alone, once, and a server
not at all: every cell would draw the same stream, or what is left of another cell's, and a resumed
run would begin it anew.
"""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from requests.adapters import HTTPAdapter
from transformers import set_seed
from trl.generation import vllm_generation
from trl.generation.vllm_client import VLLMClient
from trl.import_utils import is_vllm_available

from grpo_replay.errors import ConfigError, TrainingError
from grpo_replay.study.config import Training
from grpo_replay.training.seeds import purpose_seed

# vLLM schedules what it is sent.
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
    """Asks a server for each prompt by itself, with a seed of its own, and once only.

    In one request all prompts would get the same random numbers, and without a seed those that
    whatever the server did before has left. TRL asks again for a minute where a server has died:
    one that was started anew meanwhile would answer, with the weights that it was started with.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        adapter = HTTPAdapter()
        # An answer may take hours; a host that has gone is told by the connection, in four minutes.
        alive = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
        keep = {socket.TCP_KEEPIDLE: 120, socket.TCP_KEEPINTVL: 30, socket.TCP_KEEPCNT: 4}
        alive += [(socket.IPPROTO_TCP, option, value) for option, value in keep.items()]
        adapter.init_poolmanager(1, REQUESTS_AT_ONCE, socket_options=alive)
        self.session.mount(self.base_url, adapter)
        # The server closes idle connections; one that is taken at that moment fails.
        self.session.headers["Connection"] = "close"

    def _post(self, url: str, **kwargs: Any) -> dict:
        try:
            return super()._post(url, **kwargs)
        except Exception as error:  # TRL's own type where the status is not 200
            raise TrainingError(
                f"the vLLM server at {self.base_url} has failed ({error}): look into its log, "
                "start it again, and run again: the training goes on from its last checkpoint"
            ) from error

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
