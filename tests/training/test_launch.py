"""A cell in two processes (gloo), as the rule starts it: records come back, failures are told."""

import json
from pathlib import Path

import pytest
import torch
from scripted import TINY, cell_settings, tiny_study

from grpo_replay.errors import GrpoReplayWarning, TrainingError
from grpo_replay.machine.gpus import gpus
from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training.launch import MARK, follow, train_cell


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
        "gpus": 0,  # gloo
        "expected_prompts": 0,
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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_cell_trains_on_the_gpus_that_are_here(job: dict) -> None:
    """One process a GPU, two at most, on slots as the rule takes them; then it goes on."""
    processes = min(2, torch.cuda.device_count())
    settings = cell_settings(tiny_study(steps=3, replay_warmup=1), "ours")
    settings |= {"processes": processes, "micro_batch": settings["micro_batch"] // processes}
    seen, again = Seen(), Seen()
    with gpus(processes):
        train_cell(job | {"settings": settings, "gpus": processes}, [seen])
        train_cell(job | {"settings": settings, "gpus": processes}, [again])
    assert (seen.steps, again.kept) == ([1, 2, 3], [1, 2, 3])


def test_a_process_that_fails_fails_the_cell(job: dict, capfd) -> None:
    Path(job["problems"]).write_text("")
    with pytest.raises(TrainingError, match="ended with status 1: .*the file has no problems"):
        train_cell(job, [])
    assert "Traceback" not in capfd.readouterr().out.split("torch/distributed")[0]
    assert not (Path(job["checkpoints"]) / "job.json").exists()


def test_what_would_not_be_sharded_is_refused(job: dict) -> None:
    """On a CPU accelerate shards nothing, and says nothing."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    settings = {**job["settings"], "sharding": "full"}
    with pytest.raises(TrainingError, match="s.sharding: full divides among GPUs, and this torch"):
        train_cell(job | {"settings": settings}, [])


def test_a_gpu_that_torch_does_not_see_is_told(job: dict) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    Path(job["problems"]).write_text("")  # it need not train
    told = pytest.warns(GrpoReplayWarning, match="1 GPUs are wanted and this torch")
    with told, pytest.raises(TrainingError):
        train_cell(job | {"gpus": 1}, [])


def test_an_edited_interval_counts_when_a_stopped_run_goes_on(job: dict) -> None:
    class Stops(Seen):
        def step(self, record: dict) -> None:
            if record["step"] == 4:
                raise KeyboardInterrupt

    settings = cell_settings(tiny_study(steps=6, replay_warmup=1), "ours")
    job |= {"settings": settings, "saving": {"every": 3, "keep": True}}
    with pytest.raises(KeyboardInterrupt):
        train_cell(job, [Stops()])
    seen = Seen()
    train_cell(job | {"saving": {"every": 1, "keep": True}}, [seen])
    assert (seen.kept, seen.steps) == ([1, 2, 3], [4, 5, 6])
    markers = Path(job["checkpoints"]).glob("*/checkpoint-*/whole.json")
    steps = {json.loads(file.read_text())["step"] for file in markers}
    assert steps == {5, 6}  # the last two are kept


def test_a_mangled_line_is_output_and_no_record(capfd) -> None:
    seen = Seen()
    assert follow([f'{MARK}["step", {{"st', f'{MARK}["step", {{"step": 4}}]'], [seen]) == []
    assert seen.steps == [4]
    assert MARK in capfd.readouterr().out
