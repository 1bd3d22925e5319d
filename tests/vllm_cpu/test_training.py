"""Training steps whose rollouts the real vLLM draws, in the trainer's own process, on a CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM lives in an environment of its own: make test-vllm")

import pandas as pd
from random_model import save_random_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a random model; vLLM's attention on CPUs needs heads of 32 or more."""
    return save_random_model(tmp_path_factory.mktemp("model") / "model", hidden_size=128)


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of three steps."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(model, folder, seed=42)
    return folder


def train(model: Path, folder: Path, seed: int, die_at: int = 0, processes: int = 0) -> str:
    """Train, in a process or in several that torch's launcher starts; return what was printed."""
    script = Path(__file__).with_name("train.py")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"}
    environment |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "TORCH_COMPILE_DISABLE": "1"}
    environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind"} if processes else {}
    command = [sys.executable, *(launcher if processes else []), str(script), str(model)]
    done = subprocess.run(
        [*command, str(folder), str(seed), str(die_at)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == (9 if die_at else 0), done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def metrics(folder: Path) -> list[dict]:
    lines = (folder / "cell" / "train" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_sampler_and_trainer_agree_also_after_an_update(whole: Path) -> None:
    """Equal log-probabilities in later steps mean that vLLM has the new weights."""
    first, *later = metrics(whole)
    for record in (first, *later):
        assert record["sampler/logprob_gap_max"] < 1e-4
    # The update was large enough that the weights of the first step would not pass the second.
    assert first["survivors/rollouts"] > 0
    drift = max(abs(first["ratio/fresh_mean"] - 1), first["clip_ratio/fresh"])
    assert drift > 1e-3


def test_rollouts_differ_from_each_other(whole: Path) -> None:
    rollouts = pd.read_parquet(whole / "cell" / "train" / "rollouts.parquet")
    assert len(rollouts) == 3 * 32
    long = rollouts.query("step == 1 and length > 6")  # short ones may meet by chance
    assert len(long) > 8
    assert not long.text.duplicated().any()


def test_shards_hand_their_engines_the_whole_weights(model: Path, tmp_path: Path) -> None:
    """Two processes that share the training state, each with an engine of its own."""
    train(model, tmp_path, seed=42, processes=2)
    records = metrics(tmp_path)
    assert [record["sampler/logprob_gap_max"] < 1e-4 for record in records] == [True] * 3
    assert records[0]["survivors/rollouts"] > 0 and records[0]["grad_norm"] > 0
    rollouts = pd.read_parquet(tmp_path / "cell" / "train" / "rollouts.parquet")
    long = rollouts.query("step == 1 and length > 6")  # from both processes
    assert len(long) > 8 and not long.text.duplicated().any()


def test_a_run_that_was_stopped_draws_what_it_would_have_drawn(
    whole: Path, model: Path, tmp_path: Path
) -> None:
    train(model, tmp_path, seed=42, die_at=2)
    assert "continues after 1" in train(model, tmp_path, seed=42)
    rows = [pd.read_parquet(f / "cell/train/rollouts.parquet") for f in (whole, tmp_path)]
    pd.testing.assert_frame_equal(*rows)
    weights = [(f / "cell/model/model.safetensors").read_bytes() for f in (whole, tmp_path)]
    assert weights[0] == weights[1]


def test_another_seed_draws_other_rollouts_from_the_same_prompts(
    whole: Path, model: Path, tmp_path: Path
) -> None:
    train(model, tmp_path, seed=43, die_at=2)
    lines = next((tmp_path / "checkpoints").glob("*/records/rollouts.jsonl")).read_text()
    other = pd.DataFrame(map(json.loads, lines.splitlines())).query("step == 1")
    first = pd.read_parquet(whole / "cell" / "train" / "rollouts.parquet").query("step == 1")
    assert list(other.problem_id) == list(first.problem_id)
    same = (other.text.to_numpy() == first.text.to_numpy()).mean()
    assert same < 0.5
