"""A cell in two processes (gloo), as the rule starts it: records come back, failures are told."""

from pathlib import Path

import pytest
from scripted import TINY, cell_settings, tiny_study

from grpo_replay.errors import TrainingError
from grpo_replay.problems import make_problems
from grpo_replay.study_file import load_study
from grpo_replay.training.launch import train_cell


class Seen:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.steps: list[int] = []

    def resumed(self, records: list[dict]) -> None:
        self.kept += [record["step"] for record in records]

    def step(self, record: dict) -> None:
        self.steps.append(record["step"])


@pytest.fixture
def job(tiny_model: Path, tmp_path: Path) -> dict:
    make_problems(load_study(TINY).problems, tmp_path / "problems.jsonl")
    settings = cell_settings(tiny_study(steps=3, replay_warmup=1), "ours")
    return {
        "settings": {**settings, "processes": 2, "micro_batch": settings["micro_batch"] // 2},
        "saving": {"every": 1, "keep": True},
        "start_model": str(tiny_model),
        "problems": str(tmp_path / "problems.jsonl"),
        "output": str(tmp_path / "cell"),
        "checkpoints": str(tmp_path / "checkpoints"),
    }


def test_two_processes_train_a_cell_and_report_to_the_first(job: dict, capfd) -> None:
    seen = Seen()
    train_cell(job, [seen])
    assert (seen.kept, seen.steps) == ([], [1, 2, 3])
    assert list(Path(job["output"], "model").glob("*.safetensors"))
    again = Seen()
    train_cell(job, [again])  # every checkpoint is kept: nothing is left to do
    assert (again.kept, again.steps) == ([1, 2, 3], [])
    assert "@grpo-replay" not in capfd.readouterr().out


def test_a_process_that_fails_fails_the_cell(job: dict, capfd) -> None:
    Path(job["problems"]).write_text("")
    with pytest.raises(TrainingError, match="2 training processes ended with status 1"):
        train_cell(job, [])
    assert "the file has no problems" in capfd.readouterr().out
