"""Trains a tiny cell with vLLM as its rollout engine: `python train.py MODEL FOLDER`.

A random model never boxes a right answer, so the reward is whether its answer has an even number of
tokens; everything else is the path of production.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from trl.generation import vllm_generation

from grpo_replay.config import Checkpoints
from grpo_replay.grid import expand, training_settings
from grpo_replay.problems import make_problems
from grpo_replay.study_file import load_study
from grpo_replay.training import run_training

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"


def even_length(completions: list, completion_ids: list, **_: Any) -> list[float]:
    """+1 for an even number of tokens, else -1."""
    return [1.0 if len(ids) % 2 == 0 else -1.0 for ids in completion_ids]


def main(model: Path, folder: Path) -> None:
    """Two steps with a learning rate that old weights would be seen at."""
    study = load_study(TINY)
    changes = {"steps": 2, "learning_rate": 1e-2, "rollout_engine": "vllm"}
    training = study.training.model_copy(update=changes)
    study = study.model_copy(update={"training": training})
    cell = next(cell for cell in expand(study).values() if cell.method == "grpo")
    folder.mkdir(parents=True)
    make_problems(study.problems, folder / "problems.jsonl")
    run_training.boxed_answer_reward = even_length
    # TRL leaves the number format open, and vLLM then takes bfloat16 for a float32 model.
    vllm_generation.LLM = partial(vllm_generation.LLM, dtype="float32")
    run_training.train_policy(
        training_settings(study, cell),
        model,
        folder / "problems.jsonl",
        folder / "cell",
        folder / "checkpoints",
        Checkpoints(every=100, keep=False),
        watchers=[],
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
