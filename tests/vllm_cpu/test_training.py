"""Training steps whose rollouts the real vLLM draws, in the trainer's own process, on a CPU."""

import json
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM lives in an environment of its own: make test-vllm")

import pandas as pd
from runs import agrees_in_every_step, metrics, train


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of three steps."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(model, folder, seed=42)
    return folder


def test_sampler_and_trainer_agree_also_after_an_update(whole: Path) -> None:
    agrees_in_every_step(whole)


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
    assert [record["inference/logprob_gap_max"] < 1e-4 for record in records] == [True] * 3
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
