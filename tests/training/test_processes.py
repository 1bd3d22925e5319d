"""Two gloo processes replay what one replays, and make the same update, whole or in shards.

Started by torch's own launcher: without MPI `accelerate launch --cpu` starts one process, however
many it is asked for.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from grpo_replay.models.load import load_model

SCRIPT = Path(__file__).with_name("two_processes.py")


def launch(model: Path, run: Path, processes: int, *precision: str, script: Path = SCRIPT) -> Path:
    run.mkdir()
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc_per_node", str(processes)),
        *(str(script), str(model), str(run), str(processes), *precision),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return run


@pytest.fixture(scope="module")
def one(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of one process."""
    return launch(tiny_model, tmp_path_factory.mktemp("one") / "run", 1)


@pytest.fixture(scope="module")
def shards(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of two processes that each hold half of the training state."""
    return launch(tiny_model, tmp_path_factory.mktemp("shards") / "run", 2, "float32")


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def records(run: Path, name: str) -> list[dict]:
    lines = (run / "records" / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def trained_rows(run: Path, column: str | None = None) -> list:
    """One column of the rows trained on, or all but the log ratios, which are computed."""
    rows = pd.DataFrame(records(run, "replay"))
    return rows[column].tolist() if column else rows.drop(columns="log_ratio").values.tolist()


def assert_same_learning(
    model: Path, one: Path, two: Path, tolerance: float = 1e-3, keeps_all: bool = False
) -> None:
    """Equal records and weights; in the third step nothing is right, and `keeps_all` learns from
    that too.
    """
    assert trained_rows(one) == trained_rows(two)
    gaps = [trained_rows(run, "log_ratio") for run in (one, two)]
    assert np.abs(np.subtract(*gaps)).max() < tolerance * np.abs(gaps[0]).max()
    assert records(one, "rollouts") == records(two, "rollouts")
    assert any(row["replayed"] for row in records(one, "replay"))
    start = load_file(model / "model.safetensors")
    assert set(weights(one)) == set(weights(two)) == set(start)
    change = torch.cat([(weights(one)[name] - start[name]).flatten() for name in start])
    difference = torch.cat([(weights(one)[n] - weights(two)[n]).flatten() for n in start])
    assert change.norm() > 0
    assert difference.norm() < tolerance * change.norm()
    for name in ("updates/skipped", "loss", "grad_norm"):
        values = [[record[name] or 0.0 for record in records(r, "metrics")] for r in (one, two)]
        assert values[0] == pytest.approx(values[1], rel=tolerance), name
    # AdamW would move by its momentum.
    skipped = 0 if keeps_all else 2
    assert records(one, "metrics")[2]["updates/skipped"] == skipped


def test_two_processes_replay_and_learn_like_one(
    one: Path, tiny_model: Path, tmp_path: Path
) -> None:
    assert_same_learning(tiny_model, one, launch(tiny_model, tmp_path / "two", 2))


@pytest.mark.parametrize("rule", ["max_variance", "random"])
def test_two_processes_select_like_one(
    rule: str, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    select = {"kind": rule, "keep": 2}
    method = {"select": select, "replay": {"compose": "anchored", "unit": "rollout"}}
    monkeypatch.setenv("METHOD", json.dumps(method))
    runs = [launch(tiny_model, tmp_path / str(count), count) for count in (1, 2)]
    assert_same_learning(tiny_model, *runs)
    told = [
        [(r["select/kept_right"], r["select/variance_kept"]) for r in records(run, "metrics")]
        for run in runs
    ]
    assert told[0] == told[1]
    fresh = [row for row in records(runs[0], "replay") if not row["replayed"]]
    assert max(Counter(row["group_id"] for row in fresh).values()) == 2


def test_two_processes_balance_like_one(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Advantages of the moment need the log-probabilities of both."""
    replay = {"compose": "anchored", "unit": "query"}
    method = {"loss": {"kind": "trajectory_balance", "beta": 0.5}, "replay": replay}
    monkeypatch.setenv("METHOD", json.dumps(method))
    one, two = (launch(tiny_model, tmp_path / str(count), count) for count in (1, 2))
    assert_same_learning(tiny_model, one, two, keeps_all=True)
    for name in ("balance/loss", "balance/kl_mean"):
        told = [[record[name] for record in records(run, "metrics")] for run in (one, two)]
        assert told[0] == pytest.approx(told[1], rel=1e-2, abs=1e-5)


def test_shards_replay_and_learn_like_one_process(
    one: Path, shards: Path, tiny_model: Path
) -> None:
    assert_same_learning(tiny_model, one, shards)


def test_shards_in_bfloat16_differ_by_its_rounding(
    one: Path, tiny_model: Path, tmp_path: Path
) -> None:
    """Layers are gathered in bfloat16, gradients summed and weights kept in float32."""
    half = launch(tiny_model, tmp_path / "half", 2, "bfloat16")
    assert {tensor.dtype for tensor in weights(half).values()} == {torch.float32}
    assert_same_learning(tiny_model, one, half, tolerance=0.2)


def test_each_process_holds_half(shards: Path, tiny_model: Path) -> None:
    """Weights and AdamW's moments; FSDP pads a tensor whose rows do not divide evenly."""
    held = [json.loads((shards / f"held{process}.json").read_text()) for process in (0, 1)]
    whole = sum(tensor.numel() for tensor in load_file(tiny_model / "model.safetensors").values())
    for kind in ("weights", "moments"):
        parts = [sum(process[kind]) for process in held]
        assert sum(parts) == whole
        assert max(parts) < 0.51 * whole


def test_what_is_published_and_what_vllm_gets_is_whole(shards: Path) -> None:
    published = weights(shards)
    for_vllm = load_file(shards / "for_vllm.safetensors")
    assert set(for_vllm) == set(published)  # tied weights once
    assert all(torch.equal(for_vllm[name], published[name]) for name in published)
    model = load_model(shards / "model")  # refuses a gap
    assert model.config.architectures == ["Qwen3ForCausalLM"]
    assert not list((shards / "model").rglob("*.distcp"))


def test_shards_generate_together(tiny_model: Path, tmp_path: Path) -> None:
    """The process that ends first gathers layers until the other one has ended (transformers)."""
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    settings = json.loads((model / "generation_config.json").read_text())
    settings["eos_token_id"] = list(range(2, 40))
    (model / "generation_config.json").write_text(json.dumps(settings))
    run = launch(
        model, tmp_path / "run", 2, script=Path(__file__).with_name("generating_shards.py")
    )
    rollouts = pd.DataFrame(records(run, "rollouts"))
    assert len(rollouts) == 2 * 32
    half = rollouts.index % 32 < 16  # the rows of the first process
    longest = [rollouts[part].groupby("step").length.max().tolist() for part in (half, ~half)]
    assert longest[0] != longest[1]
    assert any(row["survived"] for row in records(run, "rollouts"))
