"""Trains a cell through `train_policy` with scripted rollouts; the parent process kills it.

Arguments: model, problems, output, checkpoints; a fifth one, a step or "publish", ends the process
itself in the middle of writing that step's checkpoint, or of publishing the result. Several
processes that torch's launcher has started make fewer steps; with SHARDED they share the training
state.
"""

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

from scripted import Script, cell_settings, tiny_study
from sharded_cpu import allow_sharding, sharded

from grpo_replay.study.config import Checkpoints
from grpo_replay.training import checkpoints as checkpoints_module
from grpo_replay.training import run_training, trainer
from grpo_replay.training.records import TrainingRecords


def die_while_saving(at_step: int) -> None:
    """Write a part of the parts' state, then end without any clean-up."""
    save = checkpoints_module.save_parts

    def torn(folder: Path, parts: dict, values: dict, logs: list[Path]) -> None:
        if values["step"] == at_step:
            (folder / checkpoints_module.ARRAYS_FILE).write_bytes(b"torn")
            os.kill(os.getpid(), signal.SIGKILL)
        save(folder, parts, values, logs)

    trainer.save_parts = torn


class Printer:
    """Tells the parent what happens."""

    def resumed(self, records: list[dict]) -> None:
        print("continues after", len(records), flush=True)

    def step(self, record: dict) -> None:
        print("step", record["step"], flush=True)


if __name__ == "__main__":
    model, problems, output, checkpoints = map(Path, sys.argv[1:5])
    if sys.argv[5:] == ["publish"]:
        TrainingRecords.publish = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
    elif len(sys.argv) > 5:
        die_while_saving(int(sys.argv[5]))
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    method = json.loads(os.environ.get("METHOD", "null"))  # instead of the tiny study's "ours"
    study = tiny_study(method, steps=40 if processes == 1 else 4, replay_warmup=1)
    settings = cell_settings(study, "probe" if method else "ours", tau_max=2)
    if processes > 1 and not os.environ["SHARDED"]:
        settings |= {"processes": processes, "micro_batch": settings["micro_batch"] // processes}
    elif processes > 1:
        allow_sharding()
        settings = sharded(settings, processes)
    run_training.build_trainer = partial(run_training.build_trainer, rollout_func=Script())
    run_training.train_policy(
        settings,
        model,
        problems,
        output,
        checkpoints,
        Checkpoints(every=1, keep=False),
        watchers=[Printer()],
    )
