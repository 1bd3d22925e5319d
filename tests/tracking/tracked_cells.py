"""Cells that log to MLflow without a model: records of steps, in the form of the real ones.

As a program it trains such a cell in a process of its own, which never ends by itself: its parent
kills it. Arguments: the folder of results, the cell.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from mlflow.entities import Run

from grpo_replay.study.cells import expand, training_settings
from grpo_replay.study.file import load_study
from grpo_replay.tracking import live
from grpo_replay.tracking.live import training_run
from grpo_replay.tracking.store import Store

FILE = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"
STUDY = load_study(FILE)
CELLS = expand(STUDY)
PATIENCE = 600.0  # seconds until a wait is given up: no machine, however busy, should need them
STEPS = 20  # of the program's training
GRPO, OURS = "s/grpo-seed42", "s/ours-seed42"


def settings_of(cell: str) -> dict:
    """What the training of a cell gets."""
    return training_settings(STUDY, CELLS[cell])


def make_records(steps: int) -> list[dict]:
    """Records of a training; each call is another training."""
    random = np.random.default_rng()
    return [
        {
            "step": step,
            "reward/mean": float(random.normal()),
            "replay/age_mean": None if step == 1 else 1.5,
            "replay/age_histogram": {"0": 8, "1": step},
            "perf/step_seconds": float(random.uniform(0.01, 0.02)),
        }
        for step in range(1, steps + 1)
    ]


def write_records(results: Path, cell: str, records: list[dict]) -> None:
    """What a training leaves of its steps while it is not finished: a link."""
    live = results / "checkpoints" / f"{cell.replace('/', '-')}.jsonl"
    live.parent.mkdir(parents=True, exist_ok=True)
    live.write_text("".join(json.dumps(record) + "\n" for record in records))
    link = results / "cells" / cell / "train" / "metrics.jsonl"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(live, link.parent))


def train(results: Path, cell: str, records: list[dict], done: int = 0, pause: float = 0) -> None:
    """Log a training, after `done` steps of an earlier job."""
    with training_run(settings_of(cell), results) as run:
        if done:
            run.resumed(records[:done])
        for record in records[done:]:
            run.step(record)
            time.sleep(pause)


def runs_of(results: Path, cell: str) -> list[Run]:
    """The runs of a cell, the newest first."""
    return Store(STUDY.study, results).runs(cell=cell)


def steps_of(results: Path, run: Run, metric: str = "reward/mean") -> list[int]:
    """The steps at which a run has a metric, as often as it has them."""
    store = Store(STUDY.study, results)
    return sorted(m.step for m in store.client.get_metric_history(run.info.run_id, metric))


if __name__ == "__main__":
    folder, name = Path(sys.argv[1]), sys.argv[2]
    live.DRAIN_SECONDS = PATIENCE
    rows = make_records(STEPS)
    write_records(folder, name, rows)
    with training_run(settings_of(name), folder) as live_run:
        for row in rows:
            live_run.step(row)
        while True:
            time.sleep(1)
