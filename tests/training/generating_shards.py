"""Two steps whose rollouts the sharded model generates. Arguments: model, folder."""

import sys
from pathlib import Path

from scripted import TINY, cell_settings, tiny_study
from sharded_cpu import allow_sharding, sharded

from grpo_replay.study.file import load_study
from grpo_replay.tasks.math import task
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training import run_training
from grpo_replay.training.records import TrainingRecords


def even_length(completions: list, completion_ids: list, **_: object) -> list[float]:
    """+1 for an even number of tokens, else -1: a random model never boxes a right answer."""
    return [1.0 if len(ids) % 2 == 0 else -1.0 for ids in completion_ids]


if __name__ == "__main__":
    model, run = Path(sys.argv[1]), Path(sys.argv[2])
    make_problems(load_study(TINY).problems, run / "problems.jsonl")
    allow_sharding()
    task.boxed_answer_reward = even_length
    settings = sharded(cell_settings(tiny_study(steps=2), "grpo"), 2)
    records = TrainingRecords(run / "records")
    trainer = run_training.build_trainer(settings, model, run / "problems.jsonl", run, records)
    trainer.train()
