"""SIGKILL, again and again, also while a checkpoint is being written: the end is the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripted import TINY

from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import make_problems

SCRIPT = Path(__file__).with_name("killable.py")
STEPS = 40


def start(
    model: Path, folder: Path, *extra: str, processes: int = 1, sharded: bool = False
) -> subprocess.Popen:
    problems = folder / "problems.jsonl"
    if not problems.exists():
        make_problems(load_study(TINY).problems, problems)
    paths = (model, problems, folder / "cell", folder / "checkpoints")
    command = [sys.executable, str(SCRIPT), *map(str, paths), *extra]
    if processes > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
        command[1:1] = [*launcher, str(processes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SHARDED": "1" if sharded else ""}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def steps_until(process: subprocess.Popen, wanted: int) -> list[int]:
    """The steps that a process has, those of earlier ones too, up to a wanted one or its end."""
    steps = []
    for line in process.stdout:
        if line.startswith("continues after "):
            steps = list(range(1, int(line.split()[2]) + 1))
        if line.startswith("step "):
            steps.append(int(line.split()[1]))
            if steps[-1] >= wanted:
                break
    return steps


def result(folder: Path) -> tuple[bytes, pd.DataFrame, list[dict]]:
    cell = folder / "cell"
    lines = (cell / "train" / "metrics.jsonl").read_text().splitlines()
    metrics = [
        {name: value for name, value in json.loads(line).items() if not name.startswith("perf/")}
        for line in lines
    ]
    weights = (cell / "model" / "model.safetensors").read_bytes()
    return weights, pd.read_parquet(cell / "train" / "replay.parquet"), metrics


def assert_same_result(killed: Path, whole: Path) -> None:
    weights, replay, metrics = result(killed)
    expected_weights, expected_replay, expected_metrics = result(whole)
    assert metrics == expected_metrics
    assert replay.equals(expected_replay)
    assert replay.replayed.any()
    assert weights == expected_weights


def test_killed_runs_end_like_one_that_was_left_alone(tiny_model: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    assert start(tiny_model, whole).wait() == 0
    seed = int.from_bytes(os.urandom(4))
    print(f"seed {seed}")  # shown when the test fails
    random = np.random.default_rng(seed)
    reached = 0
    for pause in random.uniform(0, 0.3, size=4):
        process = start(tiny_model, killed)
        steps = steps_until(process, reached + 1)
        assert steps == list(range(1, len(steps) + 1))
        try:
            process.wait(timeout=pause)
        except subprocess.TimeoutExpired:
            process.kill()
        reached = max([*steps, *steps_until(process, STEPS)])
        process.wait()
        assert not (killed / "cell" / "model").exists()
    torn = start(tiny_model, killed, str(reached + 2))
    assert steps_until(torn, STEPS)[-1] == reached + 2
    assert torn.wait() == -9
    assert start(tiny_model, killed).wait() == 0
    assert_same_result(killed, whole)
    assert not list((killed / "checkpoints").rglob("checkpoint-*"))


def test_a_run_that_died_while_publishing_trains_no_further(
    tiny_model: Path, tmp_path: Path
) -> None:
    """The last checkpoint is the end of the training: the next start only publishes it."""
    process = start(tiny_model, tmp_path, "publish")
    process.wait()
    assert not (tmp_path / "cell" / "model").exists()
    assert start(tiny_model, tmp_path).wait() == 0
    whole = tmp_path / "whole"
    whole.mkdir()
    assert start(tiny_model, whole).wait() == 0
    assert [row["step"] for row in result(tmp_path)[2]] == list(range(1, STEPS + 1))
    assert_same_result(tmp_path, whole)


@pytest.mark.parametrize("sharded", [False, True])
def test_two_processes_continue_from_the_last_whole_checkpoint(
    tiny_model: Path, tmp_path: Path, sharded: bool
) -> None:
    """One dies while it saves step 3; each holds the whole training state, or half of it."""
    several = {"processes": 2, "sharded": sharded}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    assert start(tiny_model, whole, **several).wait() == 0
    assert start(tiny_model, killed, "3", **several).wait() != 0
    (run,) = (killed / "checkpoints").glob("*/checkpoint-4")  # two updates a step
    assert len(list(run.glob("optimizer_0/*.distcp"))) == (2 if sharded else 0)
    assert not (killed / "cell" / "model").exists()
    again = start(tiny_model, killed, **several)
    assert steps_until(again, 4) == [1, 2, 3, 4]
    assert again.wait() == 0
    assert_same_result(killed, whole)
    assert {file.suffix for file in (killed / "cell" / "model").iterdir()} == {
        ".safetensors",
        ".json",
        ".jinja",
    }


def test_another_configuration_is_not_resumed(tiny_model: Path, tmp_path: Path) -> None:
    """Checkpoints are keyed by all that decides the run."""
    process = start(tiny_model, tmp_path, "3")  # ends itself at step 3
    process.wait()
    runs = list((tmp_path / "checkpoints").iterdir())
    assert len(runs) == 1
    runs[0].rename(runs[0].with_name("0123456789abcdef"))  # as if made under other settings
    process = start(tiny_model, tmp_path)
    output = process.stdout.read()
    assert process.wait() == 0
    assert "checkpoints of another configuration" in output
    assert "continues after" not in output
    assert "step 1\n" in output
