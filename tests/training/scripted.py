"""A real trainer on a tiny random model whose rollouts are scripted, and eyes on its loss.

The rollouts go in through TRL's own `rollout_func`, so that everything else is the path of
production: rewards from text, advantages, replay, padding, loss, optimizer, checkpoints.
"""

import copy
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from grpo_replay.methods.loss import LossBatch
from grpo_replay.methods.method import Method, with_setting
from grpo_replay.methods.replay import FromBuffer
from grpo_replay.study.cells import expand, training_settings
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training.records import TrainingRecords
from grpo_replay.training.run_training import build_trainer
from grpo_replay.training.trainer import ReplayGRPOTrainer

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"


def tiny_study(
    method: dict[str, Any] | None = None, replay_warmup: int | None = None, **training: Any
) -> Study:
    """The tiny study with other training settings, another warm-up, and a method named `probe`."""
    study = load_study(TINY)
    methods, grid = dict(study.methods), list(study.grid)
    if method:
        methods["probe"] = Method.model_validate(method)
        grid.append(grid[0].model_copy(update={"methods": ["probe"]}))
    if replay_warmup is not None:
        methods = {name: warmed_up(m, replay_warmup) for name, m in methods.items()}
    settings = study.training.model_copy(update=training)
    return study.model_copy(update={"training": settings, "methods": methods, "grid": grid})


def warmed_up(method: Method, steps: int) -> Method:
    """The method with another warm-up of its replay, if it has one."""
    stores = isinstance(method.replay, FromBuffer)
    return with_setting(method, "replay.warmup", steps) if stores else method


def cell_settings(study: Study, method: str, tau_max: int = 10, seed: int = 42) -> dict:
    """Training settings of the study's cell of a method."""
    spec = study.methods[method]
    if isinstance(spec.replay, FromBuffer):
        spec = with_setting(spec, "replay.tau_max", tau_max)
    cell = next(c for c in expand(study).values() if c.method == method)
    cell = cell.model_copy(update={"seed": seed, "parts": spec.identity()})
    return training_settings(study, cell)


@dataclass
class Script:
    """Answers every prompt at random, right in `share` of the cases (a number, or a list by step),
    and without an end token in `cut` of them.

    It draws from torch's global generator, as real sampling does, so a resumed run must have
    restored that too. `policies` keeps the weights at the start of every step: the behaviour
    policies.
    """

    share: float | list[float] = 0.5
    keyed: bool = False
    cut: float = 0.0
    policies: list[dict[str, torch.Tensor]] = field(default_factory=list)
    steps: int = 0

    def __call__(self, prompts: list, trainer: ReplayGRPOTrainer) -> dict[str, list]:
        """TRL's rollout function."""
        tokenizer = trainer._tokenizer
        share = self.share if isinstance(self.share, float) else self.share[self.steps]
        self.steps += 1
        model = trainer.accelerator.unwrap_model(trainer.model)
        self.policies.append(copy.deepcopy(model.state_dict()))
        prompt_ids = tokenizer.apply_chat_template(prompts, add_generation_prompt=True)["input_ids"]
        place: Counter[str] = Counter()
        completion_ids = []
        for prompt in prompts:
            message = prompt[-1]["content"]
            generator = torch.default_generator
            if self.keyed:
                key = f"{self.steps} {place[message]} {message}"
                generator = torch.Generator().manual_seed(zlib.crc32(key.encode()))
                place[message] += 1
            text = self._answer(message, share, generator)
            completion_ids.append(tokenizer(text)["input_ids"])
        return {"prompt_ids": prompt_ids, "completion_ids": completion_ids, "logprobs": None}

    def _answer(self, message: str, share: float, generator: torch.Generator) -> str:
        digits = torch.randint(0, 10, (6,), generator=generator).tolist()
        length = int(torch.randint(1, 7, (), generator=generator))
        right = torch.rand((), generator=generator) < share
        answer = right_answer(message) if right else "x"
        cut = self.cut and torch.rand((), generator=generator) < self.cut
        end = "" if cut else "<|im_end|>"
        return "".join(map(str, digits[:length])) + f" \\boxed{{{answer}}}{end}"


def right_answer(message: str) -> str:
    """The gold answer of a prompt, worked out from its text."""
    from grpo_replay.tasks import clock

    return clock.right_answer(message.split("\n")[0].removeprefix("Problem: "))


@dataclass
class Watch:
    """A watcher that calls a function with every step's record."""

    step: Callable[[dict], None]


class WatchedLoss:
    """A loss that keeps the log-probabilities of the current policy that it last saw."""

    def __init__(self, loss: Any) -> None:
        self._loss = loss
        self.logprobs: torch.Tensor | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loss, name)

    def of(self, batch: LossBatch) -> torch.Tensor:
        """The loss, as without the watch."""
        self.logprobs = batch.logprobs.detach()
        return self._loss.of(batch)


@dataclass
class SeenRow:
    """One unpadded row of a micro-batch that reached the loss."""

    step: int
    prompt_ids: list[int]
    completion_ids: list[int]
    advantage: float
    age: int
    behaviour: torch.Tensor


@dataclass
class Probe:
    """A trainer, what its script drew, and every row that its loss saw."""

    trainer: ReplayGRPOTrainer
    script: Script
    records: TrainingRecords
    rows: list[SeenRow] = field(default_factory=list)
    losses: list[dict[str, Any]] = field(default_factory=list)


def make_probe(
    settings: dict, model: Path, run: Path, script: Script | None = None, every: int = 1000
) -> Probe:
    """Build a trainer of the tiny study whose `_compute_loss` is watched."""
    problems = run / "problems.jsonl"
    make_problems(load_study(TINY).problems, problems)
    script = script or Script()
    records = TrainingRecords(run / "records")
    trainer = build_trainer(settings, model, problems, run, records, rollout_func=script)
    trainer.args.save_steps = every * trainer.updates_per_step
    probe = Probe(trainer, script, records)
    trainer.loss = WatchedLoss(trainer.loss)
    compute_loss = trainer._compute_loss

    def watched(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        loss = compute_loss(model, inputs)
        step = trainer.training_step_number
        probe.rows += list(_rows(inputs, step))
        probe.losses.append(
            {
                "step": step,
                "update": trainer.state.global_step,
                "loss": loss.item(),
                "logprobs": trainer.loss.logprobs,
                "inputs": inputs,
            }
        )
        return loss

    trainer._compute_loss = watched
    return probe


def _rows(inputs: dict[str, torch.Tensor], step: int):
    for row in range(len(inputs["advantages"])):
        completion = inputs["completion_mask"][row].bool()
        if completion.any():
            yield SeenRow(
                step,
                inputs["prompt_ids"][row][inputs["prompt_mask"][row].bool()].tolist(),
                inputs["completion_ids"][row][completion].tolist(),
                float(inputs["advantages"][row]),
                int(inputs["ages"][row]),
                inputs["old_per_token_logps"][row][completion],
            )
