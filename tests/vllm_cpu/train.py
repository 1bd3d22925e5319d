"""Trains a tiny cell with vLLM as its rollout engine: `python train.py MODEL FOLDER SEED [STEP]`.

A random model never boxes a right answer, so the reward is whether its answer has an even number of
tokens, and every seed sees the same prompts; everything else is the path of production. With STEP
the process ends itself before that step's checkpoint. Processes that torch's launcher has started
share the training state, and each has an engine. Where GRPO_REPLAY_VLLM_SERVER is set, its server
is the engine.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "training"))
from runs import TINY
from safetensors.torch import save_file
from sharded_cpu import allow_sharding, sharded
from trl.generation.vllm_client import VLLMClient

from grpo_replay.study.cells import expand, training_settings
from grpo_replay.study.config import Checkpoints
from grpo_replay.study.file import load_study
from grpo_replay.tasks.math import task
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training import run_training
from grpo_replay.training.rollout_server import SERVER_VARIABLE


def even_length(completions: list, completion_ids: list, **_: Any) -> list[float]:
    """+1 for an even number of tokens, else -1."""
    return [1.0 if len(ids) % 2 == 0 else -1.0 for ids in completion_ids]


def hand_over_by_files(folder: Path) -> None:
    """Let the server read new weights from a model folder: TRL's way, NCCL, is for GPUs alone."""

    def update(client: VLLMClient, metadata: list, parameters: Iterator) -> None:
        weights = {name: weight.detach().clone().contiguous() for name, weight in parameters}
        save_file(weights, folder / "model.safetensors")
        call = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        client._post(f"{client.base_url}/collective_rpc", json=call)

    VLLMClient.init_communicator = lambda client, device: None
    VLLMClient.update_named_params = update


class Death:
    """A watcher that ends the process at a step."""

    def __init__(self, at_step: int) -> None:
        self.at_step = at_step

    def resumed(self, records: list[dict]) -> None:
        print("continues after", len(records), flush=True)

    def step(self, record: dict) -> None:
        if record["step"] == self.at_step:
            os._exit(9)


def main(model: Path, folder: Path, seed: int, last: int) -> None:
    """Three steps with a learning rate that old weights would be seen at."""
    study = load_study(TINY)
    engine = "vllm_server" if SERVER_VARIABLE in os.environ else "vllm"
    changes = {"steps": 3, "learning_rate": 1e-2, "rollout_engine": engine}
    training = study.training.model_copy(update=changes)
    study = study.model_copy(update={"training": training})
    cell = next(cell for cell in expand(study).values() if cell.method == "grpo")
    folder.mkdir(parents=True, exist_ok=True)
    make_problems(study.problems, folder / "problems.jsonl")
    if engine == "vllm_server":
        shutil.copytree(model, folder / "handed_over", dirs_exist_ok=True)
        hand_over_by_files(folder / "handed_over")
    task.boxed_answer_reward = even_length
    make_set = run_training.training_set
    run_training.training_set = lambda *arguments: make_set(*arguments[:-1], 0)
    settings = training_settings(study, cell.model_copy(update={"seed": seed}))
    if "WORLD_SIZE" in os.environ:
        allow_sharding()
        settings = sharded(settings, int(os.environ["WORLD_SIZE"]))
    run_training.train_policy(
        settings,
        model,
        folder / "problems.jsonl",
        folder / "cell",
        folder / "checkpoints",
        Checkpoints(every=1, keep=False),
        watchers=[Death(last)],
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int((sys.argv[4:] or [0])[0]))
