"""What MLflow costs a training of the nano study at scale s.

That is what its thread computes while the training runs (CPU seconds, the imports of the store
included; MLflow itself is imported by trl) and what the training waits for it.

The base model is that of `make run` where there is one; else it is made first (a minute).

    python benchmarks/bench_tracking.py
"""

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from grpo_replay.models.make import make_base_model
from grpo_replay.study.cells import expand, training_settings
from grpo_replay.study.config import Checkpoints
from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import make_problems
from grpo_replay.tracking import live
from grpo_replay.tracking.live import LiveRun, training_run
from grpo_replay.tracking.store import make_store
from grpo_replay.training.run_training import train_policy

ROOT = Path(__file__).parents[1]
CELL = "s/ours-seed42"


class TimedRun(LiveRun):
    """Counts what the thread computes, and how long the training waits."""

    cpu = opening = waited = 0.0

    def _try(self, status: str | None) -> None:
        if status:
            TimedRun.cpu = time.thread_time()  # the rest is what the training waits for at its end
        super()._try(status)

    def _open(self) -> None:
        started = time.thread_time()
        super()._open()
        TimedRun.opening += time.thread_time() - started

    def step(self, record: dict) -> None:
        """Time a step's hand-over."""
        self._timed(super().step, record)

    def close(self, status: str) -> None:
        """Time the end."""
        self._timed(super().close, status)

    def _timed(self, action: Any, argument: Any) -> None:
        started = time.perf_counter()
        action(argument)
        TimedRun.waited += time.perf_counter() - started


class StepClock:
    """What the steps take: seconds on the clock, and of computing, which do not grow on a busy
    machine (of the training's thread, the only one with OMP_NUM_THREADS=1; the first step, which
    has the start in it, is left out).
    """

    seconds = cpu = 0.0
    first: float | None = None

    def resumed(self, records: list[dict]) -> None:
        """Nothing is resumed here."""

    def step(self, record: dict) -> None:
        """Add a step."""
        self.seconds += record["perf/step_seconds"]
        self.first = self.first or time.thread_time()
        self.cpu = time.thread_time() - self.first


def base_model(study: Any, folder: Path) -> Path:
    """The base model of scale s."""
    made = ROOT / "results" / "nano" / "base_models" / "s"
    if not made.is_dir():
        made = folder / "model"
        make_base_model(study.scales["s"].model, study.problems, made)
    return made


def main() -> None:
    """Train one cell and print the share."""
    study = load_study(ROOT / "config" / "studies" / "nano.yaml")
    settings = training_settings(study, expand(study)[CELL])
    live.LiveRun, clock = TimedRun, StepClock()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        results, problems = folder / "nano", folder / "problems.jsonl"
        # In a process of its own, as in the workflow: the training opens the store anew.
        maker = multiprocessing.get_context("spawn").Process(
            target=make_store, args=("nano", results)
        )
        maker.start()
        maker.join()
        make_problems(study.problems, problems)
        model, saving = base_model(study, folder), Checkpoints(every=25, keep=False)
        with training_run(settings, results) as run:
            cell = results / "cells" / CELL
            train_policy(settings, model, problems, cell, folder / "c", saving, [run, clock])
    rest = TimedRun.cpu - TimedRun.opening
    share, whole = (100 * (s + TimedRun.waited) / clock.cpu for s in (rest, TimedRun.cpu))
    steps = study.training.steps
    print(f"training: {clock.cpu:.1f} s of computing, {clock.seconds:.1f} s in all, {steps} steps")
    print(f"tracking, opening the store and the run: {TimedRun.opening:.2f} s, once a cell")
    print(f"tracking, all else in its thread: {rest:.2f} s; waited for: {TimedRun.waited:.2f} s")
    print(f"share of the training: {share:.2f} %; with the opening {whole:.2f} % (wanted: below 1)")


if __name__ == "__main__":
    main()
