"""Train one cell: the one function behind the rule `train_policy`, for every method and scale.

A run that was stopped continues from its last whole checkpoint. Its live records lie beside the
checkpoints, and the cell's `train/metrics.jsonl` points at them until the run has ended, so that a
failed job loses nothing.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from datasets import Dataset
from transformers import AutoTokenizer
from transformers.trainer_callback import PrinterCallback

from grpo_replay.errors import ConfigError, DataError
from grpo_replay.files import replace_folder, write_json
from grpo_replay.models.end_tokens import end_token_ids
from grpo_replay.models.load import load_model
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import Cell
from grpo_replay.study.config import Checkpoints, Training
from grpo_replay.tasks.problems import read_problems
from grpo_replay.tasks.task import Task
from grpo_replay.training.arguments import trainer_arguments
from grpo_replay.training.checkpoints import SaveEvery, agreed_checkpoint, other_runs, run_key
from grpo_replay.training.prompt_length import short_prompts
from grpo_replay.training.records import TrainingRecords
from grpo_replay.training.rollout_engine import rollout_engine
from grpo_replay.training.scoring import Scoring
from grpo_replay.training.seeds import purpose_seed
from grpo_replay.training.sharding import check_sharding
from grpo_replay.training.trainer import ReplayGRPOTrainer
from grpo_replay.training.training_run import TrainingRun


class Watcher(Protocol):
    """Is told by the main process what a run does."""

    def resumed(self, records: list[dict]) -> None:
        """Called once where a run continues, with the records of the steps that are kept."""

    def step(self, record: dict) -> None:
        """Called with each finished step's record."""


def train_policy(
    settings: dict,
    start_model: Path,
    problems: Path,
    output: Path,
    checkpoints: Path,
    saving: Checkpoints,
    watchers: Sequence[Watcher],
) -> None:
    """Train a cell, from its last whole checkpoint if there is one.

    Writes `output/model` and `output/train/`: metrics.jsonl, replay.parquet, rollouts.parquet and
    settings.json.

    Args:
        settings: what `study.cells.training_settings` returns.
        start_model: folder of the model that every method of the scale starts from.
        problems: JSON Lines of training problems.
        output: the cell's folder.
        checkpoints: the cell's folder for checkpoints, outside the workflow's outputs.
        saving: how often checkpoints are made, and whether they are kept after success.
        watchers: who is told of steps as they happen.
    """
    key = run_key(settings, start_model, problems)
    for folder in other_runs(checkpoints, key):
        print(f"{folder}: checkpoints of another configuration, not used", flush=True)
    run = checkpoints / key
    records = TrainingRecords(run / "records")
    trainer = build_trainer(settings, start_model, problems, run, records)
    trainer.watchers = watchers
    trainer.add_callback(SaveEvery(saving.every * trainer.updates_per_step))
    checkpoint, step = agreed_checkpoint(run)
    if trainer.accelerator.is_main_process:
        records.keep_until(step)
        _show_live(records.metrics.path, output / "train")
        if checkpoint:
            for watcher in watchers:
                watcher.resumed(records.metrics.rows())
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    _publish(trainer, records, settings, output)
    if trainer.accelerator.is_main_process and not saving.keep:
        shutil.rmtree(run)


def build_trainer(
    settings: dict,
    start_model: Path,
    problems: Path,
    run: Path,
    records: TrainingRecords,
    **overrides: Any,
) -> ReplayGRPOTrainer:
    """The trainer of a cell, ready for `train()`; `overrides` go to the trainer (tests pass a
    `rollout_func`).
    """
    job = TrainingRun.of(settings)
    _check_processes(int(os.environ.get("WORLD_SIZE") or 1), job)
    tokenizer = AutoTokenizer.from_pretrained(start_model, local_files_only=True)
    model = load_model(start_model)
    model.generation_config.eos_token_id = end_token_ids(
        model.config, model.generation_config, tokenizer
    )
    arguments = trainer_arguments(job, run)
    if arguments.use_vllm:  # it does not read the model's generation config
        ends = model.generation_config.eos_token_id
        arguments.generation_kwargs = {"stop_token_ids": ends}
    _check_processes(arguments.world_size, job)
    with rollout_engine(job.training):
        trainer = ReplayGRPOTrainer(
            model=model,
            args=arguments,
            train_dataset=training_set(problems, tokenizer, job.training, job.task, job.cell.seed),
            processing_class=tokenizer,
            method=job.method,
            scoring=Scoring(job.task, job.rewards, read_problems(problems)),
            seed=job.cell.seed,
            records=records,
            **overrides,
        )
    check_sharding(trainer, job.cell.scale)
    _check_precision(trainer.accelerator.mixed_precision, job.training)
    trainer.remove_callback(PrinterCallback)
    return trainer


def _check_processes(running: int, job: TrainingRun) -> None:
    """Before the processes are to meet: one that is alone would wait for the others for ever."""
    if running != job.processes:
        raise ConfigError(
            f"scales.{job.cell.scale}.gpus: {job.processes} processes were asked for and {running} "
            "are running: each would train on fewer rollouts than meant (a launcher may have left "
            "WORLD_SIZE in the environment: unset it)"
        )


def _check_precision(found: str, training: Training) -> None:
    """The environment has a say in it, and so has a training that this process made before."""
    wanted = {"float32": "no", "bfloat16": "bf16"}[training.precision]
    if found != wanted:
        raise ConfigError(
            f"training.precision: {training.precision}, and accelerate's mixed precision is "
            f"{found!r} where {wanted!r} is meant: unset ACCELERATE_MIXED_PRECISION"
        )


def training_set(
    problems: Path, tokenizer: Any, training: Training, task: Task, seed: int
) -> Dataset:
    """The prompts of a whole run, one row a group, in the order in which the steps use them.

    Prompts of more than `max_prompt_tokens` are left out; the rest are shuffled, again and again
    until every step has its own. TRL's sampler would shuffle each pass with a generator that no
    checkpoint holds: a resumed run would see other prompts.

    Raises:
        DataError: where fewer prompts are left than a step needs.
    """
    rows, kept = short_prompts(problems, tokenizer, training.max_prompt_tokens, task)
    print(f"{len(kept)} of {len(rows)} prompts have at most {training.max_prompt_tokens} tokens")
    needed = training.rollouts_per_step // training.group_size
    if len(kept) < needed:
        raise DataError(
            f"{problems}: {len(kept)} prompts of at most {training.max_prompt_tokens} tokens, and "
            f"a step needs {needed}: give more problems, or raise training.max_prompt_tokens"
        )
    random = np.random.default_rng(purpose_seed(seed, "prompts"))
    passes = -(-needed * training.steps // len(kept))
    order = np.concatenate([random.permutation(len(kept)) for _ in range(passes)])
    return Dataset.from_list([kept[i] for i in order[: needed * training.steps]])


def _show_live(live: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "metrics.jsonl"
    link.unlink(missing_ok=True)
    # From where the link really lies: `cells` may itself be a link to another disk.
    link.symlink_to(os.path.relpath(live.resolve(), folder.resolve()))


def _publish(
    trainer: ReplayGRPOTrainer, records: TrainingRecords, settings: dict, output: Path
) -> None:
    axes = axes_of(Cell(**settings["cell"]))
    beside = output / "model.unfinished"
    if trainer.accelerator.is_main_process:
        shutil.rmtree(beside, ignore_errors=True)
    trainer.accelerator.wait_for_everyone()
    trainer.save_model(str(beside))  # all processes: each may hold a part of the weights
    trainer.accelerator.wait_for_everyone()
    if trainer.accelerator.is_main_process:
        (beside / "training_args.bin").unlink()  # a pickle; the settings are in cell.json
        records.publish(output / "train", axes.unit, axes.priority)
        write_json(output / "train" / "settings.json", settings)
        replace_folder(beside, output / "model")
    trainer.accelerator.wait_for_everyone()
