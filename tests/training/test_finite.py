"""What is not finite ends the real `train()` before it is applied, kept or published."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from scripted import TINY, Probe, Script, Watch, cell_settings, make_probe, tiny_study
from transformers import TrainerCallback

from grpo_replay.errors import TrainingError
from grpo_replay.study.config import Checkpoints
from grpo_replay.study.file import load_study
from grpo_replay.tasks.math import task
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training import run_training
from grpo_replay.training.finite import LOG_RATIO_BOUND, bound_log_ratio
from grpo_replay.training.trainer import ReplayGRPOTrainer

SCRIPT = Path(__file__).with_name("not_finite.py")


def probe_of(model: Path, run: Path, script: Script | None = None) -> Probe:
    settings = cell_settings(tiny_study(steps=4, replay_warmup=1), "ours")
    return make_probe(settings, model, run, script)


def strict_lines(path: Path) -> list[dict]:
    """Rows of a JSON Lines file that knows neither NaN nor Infinity."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{path}: {text}")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def weights(probe: Probe) -> dict[str, torch.Tensor]:
    return probe.trainer.accelerator.unwrap_model(probe.trainer.model).state_dict()


def assert_untouched_since(probe: Probe, step: int) -> None:
    before, now = probe.script.policies[step - 1], weights(probe)
    assert all(torch.equal(before[name], now[name]) for name in before)


# --- the log ratio is bounded ----------------------------------------------------------------


@pytest.mark.parametrize("stored", [-100.0, -1e30])
def test_a_stored_logprob_far_off_spoils_nothing(
    stored: float, tiny_model: Path, tmp_path: Path
) -> None:
    probe = probe_of(tiny_model, tmp_path)
    behaviour = probe.trainer._behaviour_logprobs

    def far_off(output: dict[str, torch.Tensor]) -> torch.Tensor:
        logprobs = behaviour(output).clone()
        logprobs[:, 0] = stored
        return logprobs

    probe.trainer._behaviour_logprobs = far_off
    probe.trainer.train()
    assert all(tensor.isfinite().all() for tensor in weights(probe).values())
    assert any(not torch.equal(weights(probe)[n], p) for n, p in probe.script.policies[0].items())
    metrics = strict_lines(probe.records.metrics.path)
    assert max(row["ratio/fresh_mean"] or 0 for row in metrics) > math.exp(LOG_RATIO_BOUND) / 20
    assert all(row["log_ratio"] > 1 for row in strict_lines(probe.records.replay.path))


def test_the_bound_leaves_ordinary_values_and_gradients_alone() -> None:
    logprobs = torch.tensor([-1.0, -19.9, -1e-7, -3.0, float("nan")], requires_grad=True)
    stored = torch.tensor([-1.5, -0.1, -19.0, -100.0, -1.0])
    bounded = bound_log_ratio(logprobs, stored)
    assert torch.equal(bounded[:3], logprobs[:3])
    assert bounded[3] == -80 and bounded[4].isnan()
    bounded[:4].sum().backward()
    assert logprobs.grad.tolist()[:4] == [1, 1, 1, 0]


# --- rewards, losses and gradients -----------------------------------------------------------


def test_an_infinite_reward_is_told_with_its_rows(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = task.boxed_answer_reward

    def overflows(completions: list, answer: list[str], **_: Any) -> list[float]:
        texts = (completion[0]["content"] for completion in completions)
        rewards = score(completions, answer)
        return [math.inf if "3" in t[:1] else r for t, r in zip(texts, rewards, strict=True)]

    monkeypatch.setattr(task, "boxed_answer_reward", overflows)
    probe = probe_of(tiny_model, tmp_path)
    with pytest.raises(
        TrainingError,
        match=r"training step 1: rewards.answer, row \d+ .*infinite number inf",
    ):
        probe.trainer.train()
    assert_untouched_since(probe, 1)


def test_a_gradient_that_is_not_finite_is_not_applied(tiny_model: Path, tmp_path: Path) -> None:
    probe = probe_of(tiny_model, tmp_path)
    weight = next(probe.trainer.model.parameters())
    weight.register_hook(
        lambda gradient: gradient * math.inf if probe.trainer.state.global_step == 4 else gradient
    )
    message = r"step 3, update 1: the gradient is not finite \(norm (nan|inf)\); .* rollout \d-\d"
    with pytest.raises(TrainingError, match=message):
        probe.trainer.train()
    assert_untouched_since(probe, 3)
    assert [row["step"] for row in strict_lines(probe.records.metrics.path)] == [1, 2]


def test_a_loss_that_is_not_finite_names_the_row(tiny_model: Path, tmp_path: Path) -> None:
    """The replayed rows have lost a stored number."""
    probe = probe_of(tiny_model, tmp_path)
    probe.trainer.watchers = [Watch(lambda record: spoil_buffer(probe.trainer))]
    message = (
        r"step 2, update \d: the loss is not finite; .*: rollout 1-\d-\d \(.* of step 1\): nan"
    )
    with pytest.raises(TrainingError, match=message):
        probe.trainer.train()
    assert all(tensor.isfinite().all() for tensor in weights(probe).values())


def spoil_buffer(trainer: ReplayGRPOTrainer) -> None:
    for rollout in trainer.replay.buffer.rollouts():
        rollout.behaviour_logprobs[0] = math.nan


def test_a_model_without_finite_logits_is_told(tiny_model: Path, tmp_path: Path) -> None:
    """Its log-probabilities, and where it draws the rollouts itself, its sampling."""

    def blow_up(probe: Probe) -> None:
        with torch.no_grad():
            probe.trainer.model.model.norm.weight.fill_(3e38)

    probe = probe_of(tiny_model, tmp_path / "scripted")
    probe.trainer.watchers = [Watch(lambda record: blow_up(probe))]
    with pytest.raises(TrainingError, match="step 2: log-probabilities of the model are not fin"):
        probe.trainer.train()
    drawing = probe_of(tiny_model, tmp_path / "drawing")
    drawing.trainer.rollout_func = None
    blow_up(drawing)
    with pytest.raises(TrainingError, match="step 1: the model's logits are not finite"):
        drawing.trainer.train()


@pytest.mark.parametrize("sharded", [False, True])
def test_two_processes_end_together(sharded: bool, tiny_model: Path, tmp_path: Path) -> None:
    """One row is spoilt, which one of the processes learns from: both tell, none waits."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", "2", str(SCRIPT), str(tiny_model), str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SHARDED": "1" if sharded else ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    told = [tmp_path / f"error{process}.txt" for process in (0, 1)]
    assert all(file.is_file() for file in told), done.stdout + done.stderr
    one, other = (file.read_text() for file in told)
    assert one == other
    assert "step 2, update" in one and "the loss is not finite" in one
    assert "rollout 1-" in one


# --- checkpoints and models ------------------------------------------------------------------


@pytest.fixture
def train(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Train a cell of three steps in tmp_path, with other callbacks and arguments."""
    make_problems(load_study(TINY).problems, tmp_path / "problems.jsonl")
    settings = cell_settings(tiny_study(steps=3, replay_warmup=1), "ours")
    build = run_training.build_trainer

    def run(*callbacks: TrainerCallback, start: Path = tiny_model, every: int = 1) -> None:
        def build_with(*args: Any, **kwargs: Any) -> ReplayGRPOTrainer:
            trainer = build(*args, rollout_func=Script(), **kwargs)
            for callback in callbacks:
                trainer.add_callback(callback)
            return trainer

        monkeypatch.setattr(run_training, "build_trainer", build_with)
        paths = (tmp_path / "problems.jsonl", tmp_path / "cell", tmp_path / "checkpoints")
        run_training.train_policy(
            settings, start, *paths, Checkpoints(every=every, keep=True), watchers=[]
        )

    return run


class Spoil(TrainerCallback):
    """Makes a weight, or a moment of AdamW, nan after an update."""

    def __init__(self, update: int, moment: bool = False) -> None:
        self.update, self.moment = update, moment

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == self.update:
            weight = list(kwargs["model"].parameters())[3]
            spoilt = kwargs["optimizer"].state[weight]["exp_avg"] if self.moment else weight
            with torch.no_grad():
                spoilt.view(-1)[0] = math.nan


def markers(folder: Path) -> set[int]:
    files = (folder / "checkpoints").glob("*/checkpoint-*/whole.json")
    return {json.loads(file.read_text())["step"] for file in files}


@pytest.mark.parametrize("moment", [False, True])
def test_no_checkpoint_keeps_what_is_not_finite(
    moment: bool, train: Callable[..., None], tmp_path: Path
) -> None:
    with pytest.raises(
        TrainingError, match=r"checkpoint-4: not written: tensors that are not finite: model"
    ):
        train(Spoil(4, moment))
    assert markers(tmp_path) == {1}
    train()
    assert markers(tmp_path) == {2, 3}


def test_what_diverges_in_the_last_step_is_not_published(
    train: Callable[..., None], tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="not written: tensors that are not finite: model"):
        train(Spoil(6), every=100)
    assert not (tmp_path / "cell" / "model").exists() and not markers(tmp_path)


def test_a_finished_model_is_looked_at_before_it_is_written(
    tiny_model: Path, tmp_path: Path
) -> None:
    probe = probe_of(tiny_model, tmp_path)
    with torch.no_grad():
        next(probe.trainer.model.parameters())[0] = math.inf
    with pytest.raises(TrainingError, match="model: not written: tensors"):
        probe.trainer.save_model(str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


def test_a_checkpoint_of_an_earlier_version_that_is_not_finite_is_named(
    train: Callable[..., None], tmp_path: Path
) -> None:
    train()
    (newest,) = (tmp_path / "checkpoints").glob("*/checkpoint-6")
    tensors = load_file(newest / "model.safetensors")
    name = sorted(tensors)[0]
    tensors[name][0] = math.nan
    save_file(tensors, newest / "model.safetensors", metadata={"format": "pt"})
    (newest / "whole.json").write_text('{"step": 3}')
    with pytest.raises(TrainingError, match=rf"checkpoint-6: tensors .*{name}. Remove it, and"):
        train()


# --- what the sampling engine says -----------------------------------------------------------


def test_missing_logprobs_of_the_sampling_engine_are_counted(
    tiny_model: Path, tmp_path: Path
) -> None:
    """vLLM gives nan for some tokens, which TRL turns into None; -inf comes too."""

    class Scored(Script):
        def __call__(self, prompts: list, trainer: ReplayGRPOTrainer) -> dict[str, list]:
            drawn = super().__call__(prompts, trainer)
            drawn["logprobs"] = [[-1.0] * len(ids) for ids in drawn["completion_ids"]]
            drawn["logprobs"][0][0], drawn["logprobs"][1][0] = None, -math.inf
            return drawn

    probe = probe_of(tiny_model, tmp_path, Scored())
    probe.trainer.train()
    rows = strict_lines(probe.records.metrics.path)
    assert [row["inference/logprobs_missing"] for row in rows] == [2] * 4
    assert all(
        0 < row["inference/logprob_gap_mean"] < row["inference/logprob_gap_max"] for row in rows
    )
