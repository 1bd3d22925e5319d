"""Variables that a launcher, a notebook or a shell has left change no training, and stop none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripted import TINY, cell_settings, tiny_study

from grpo_replay.errors import ConfigError
from grpo_replay.files import read_json, write_json
from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training.records import TrainingRecords
from grpo_replay.training.run_training import build_trainer

LEFT_BEHIND = {
    # Of a launcher on other machines: 192.0.2.1 is reserved for examples, nobody answers there.
    **{"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"},
    **{"MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "29999", "PET_NNODES": "2", "PMI_SIZE": "4"},
    **{"TORCHELASTIC_RUN_ID": "none", "OMPI_COMM_WORLD_SIZE": "4"},
    # Of a user's `accelerate config`.
    **{"ACCELERATE_MIXED_PRECISION": "bf16", "ACCELERATE_USE_DEEPSPEED": "true"},
    **{"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "1", "ACCELERATE_DYNAMO_BACKEND": "eager"},
    **{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "7", "ACCELERATE_USE_CPU": "false"},
    **{"USE_TF": "1", "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1", "PYTHONWARNINGS": "ignore"},
    # Of Slurm: no harm, and left as they are.
    **{"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "3", "SLURM_JOB_ID": "7"},
}


def trained(model: Path, folder: Path, processes: int, **variables: str) -> tuple[bytes, list]:
    """The weights and records of a real training under variables."""
    folder.mkdir()
    make_problems(load_study(TINY).problems, folder / "problems.jsonl")
    settings = cell_settings(tiny_study(steps=2, replay_warmup=1), "ours")
    rows = settings["micro_batch"] // processes
    job = {
        "settings": {**settings, "processes": processes, "micro_batch": rows},
        "saving": {"every": 1, "keep": False},
        **{"gpus": 0, "expected_prompts": 0, "start_model": str(model)},
        "problems": str(folder / "problems.jsonl"),
        "output": str(folder / "cell"),
        "checkpoints": str(folder / "checkpoints"),
    }
    write_json(folder / "job.json", job)
    command = [sys.executable, str(Path(__file__).with_name("train_here.py"))]
    done = subprocess.run(
        [*command, str(folder / "job.json")],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (folder / "cell/train/metrics.jsonl").read_text().splitlines()
    records = [
        {name: value for name, value in json.loads(line).items() if "perf/" not in name}
        for line in lines
    ]
    assert read_json(folder / "cell/train/settings.json")["training"]["precision"] == "float32"
    return (folder / "cell/model/model.safetensors").read_bytes(), records


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_left_in_the_environment_changes_no_training(
    processes: int, tiny_model: Path, tmp_path: Path
) -> None:
    usual = trained(tiny_model, tmp_path / "usual", processes)
    assert trained(tiny_model, tmp_path / "odd", processes, **LEFT_BEHIND) == usual


def built(model: Path, folder: Path) -> None:
    make_problems(load_study(TINY).problems, folder / "problems.jsonl")
    settings = cell_settings(tiny_study(), "grpo")
    build_trainer(settings, model, folder / "problems.jsonl", folder, TrainingRecords(folder / "r"))


def test_a_trainer_alone_of_several_is_refused_before_it_waits(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.setenv(name, LEFT_BEHIND[name])
    with pytest.raises(ConfigError, match="1 processes were asked for and 4 are running.*unset it"):
        built(tiny_model, tmp_path)


def test_a_trainer_in_another_precision_is_refused(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing has left the variable out, as in a notebook that builds a trainer."""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    with pytest.raises(ConfigError, match="float32, and accelerate's mixed precision is 'bf16'"):
        built(tiny_model, tmp_path)
