"""The real vLLM engine, on a CPU, with a tiny random model: `make test-vllm`.

vLLM needs an environment of its own, so that `make test` skips this file.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM lives in an environment of its own: make test-vllm")

import pyarrow.parquet as pq
import torch
from draw import SETTINGS
from random_model import save_random_model
from transformers import (
    AutoModelForCausalLM,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from grpo_replay.models.folder import open_folder
from grpo_replay.tasks.problems import read_problems

Draw = Callable[[str, Path], None]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with many end tokens, so that a good part of its answers finishes."""
    # vLLM's attention on CPUs needs heads of 32 or more.
    folder = save_random_model(tmp_path_factory.mktemp("vllm") / "model", hidden_size=128)
    path = folder / "generation_config.json"
    ends = list(range(100, 130))
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": ends}))
    return folder


@pytest.fixture(scope="session")
def draw(model: Path, benchmarks: dict[str, Path]) -> Draw:
    """Return a function that does one task of draw.py in a process of its own."""

    def run(task: str, folder: Path) -> None:
        folder.mkdir()
        arguments = {
            "task": task,
            "model": str(model),
            "benchmarks": {name: str(path) for name, path in benchmarks.items()},
            "folder": str(folder),
        }
        command = [sys.executable, str(Path(__file__).with_name("draw.py")), json.dumps(arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    return run


@pytest.fixture(scope="session")
def samples(draw: Draw, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the samples of one evaluation."""
    folder = tmp_path_factory.mktemp("first") / "run"
    draw("sample", folder)
    return folder / "samples"


def test_a_second_run_gives_the_same_bytes(samples: Path, draw: Draw, tmp_path: Path) -> None:
    draw("sample", tmp_path / "second")
    names = {path.name for path in samples.iterdir() if path.is_file()}
    assert names == {"five.parquet", "three.parquet", "manifest.json"}
    second = tmp_path / "second" / "samples"
    for name in names - {"manifest.json"}:
        assert (second / name).read_bytes() == (samples / name).read_bytes(), name
    manifests = [json.loads((f / "manifest.json").read_text()) for f in (samples, second)]
    assert all(manifest.pop("seconds") > 0 for manifest in manifests)
    assert manifests[0] == manifests[1]


def test_two_waves_of_eight(samples: Path, benchmarks: dict[str, Path]) -> None:
    rows = pq.read_table(samples / "five.parquet").to_pylist()
    ids = [problem["id"] for problem in read_problems(benchmarks["five"])]
    assert [(row["problem_id"], row["sample_id"]) for row in rows] == [
        (problem_id, sample) for problem_id in ids for sample in range(16)
    ]
    assert [row["wave_seed"] for row in rows] == 5 * (8 * [42] + 8 * [43])
    # Streams that coincide would repeat whole answers; short ones repeat by chance.
    long = [row["text"] for row in rows if row["n_tokens"] > 8]
    assert len(set(long)) == len(long) > 20


def test_every_end_token_finishes(samples: Path) -> None:
    rows = pq.read_table(samples / "five.parquet").to_pylist()
    reasons = {row["finish_reason"] for row in rows}
    assert reasons == {"stop", "length"}
    assert all(row["n_tokens"] == 24 for row in rows if row["finish_reason"] == "length")


def test_the_manifest_names_the_engine(samples: Path) -> None:
    manifest = json.loads((samples / "manifest.json").read_text())
    assert manifest["engine"] == manifest["settings"]["engine"] == "vllm"
    assert manifest["engine_version"].startswith("0.31")
    assert manifest["dtype"] == "float32"


def test_log_probabilities_are_those_of_transformers(
    model: Path, draw: Draw, tmp_path: Path
) -> None:
    """Teacher-forced, so that prompts, positions and weights are the same in both engines."""
    draw("log_probabilities", tmp_path / "run")
    answers = json.loads((tmp_path / "run" / "answers.json").read_text())
    assert len(answers) == 5 * 8
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    ends = set(open_folder(model).end_ids)
    for answer in answers:
        prompt, drawn = answer["prompt"], answer["drawn"]
        assert not ends & set(drawn[:-1])
        with torch.inference_mode():
            logits = network(torch.tensor([prompt + drawn])).logits[0, len(prompt) - 1 : -1]
        expected = logits.log_softmax(-1).gather(1, torch.tensor(drawn)[:, None])[:, 0]
        assert (expected - torch.tensor(answer["logprobs"])).abs().max() < 1e-4


def test_draws_follow_the_filtered_distribution(model: Path, draw: Draw, tmp_path: Path) -> None:
    """Temperature and top-p are the study's, and no default of the model gets in."""
    draw("first_tokens", tmp_path / "run")
    drawn = torch.tensor(json.loads((tmp_path / "run" / "first.json").read_text()))
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    warpers = LogitsProcessorList(
        [TemperatureLogitsWarper(SETTINGS.temperature), TopPLogitsWarper(SETTINGS.top_p)]
    )
    with torch.inference_mode():
        expected = warpers(None, network(torch.tensor([[5, 6, 7]])).logits[:, -1]).softmax(-1)[0]
    found = drawn.bincount(minlength=len(expected)) / len(drawn)
    assert len(drawn) == 4000
    assert not found[expected == 0].any()
    # Six standard errors of each frequency: a false alarm once in a million runs.
    error = (expected * (1 - expected) / len(drawn)).sqrt()
    assert ((found - expected).abs() <= 6 * error + 1 / len(drawn)).all()
