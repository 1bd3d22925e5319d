"""Two training steps whose rollouts the real vLLM draws, in the trainer's own process, on a CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM lives in an environment of its own: make test-vllm")

from random_model import save_random_model


def test_sampler_and_trainer_agree_also_after_an_update(tmp_path: Path) -> None:
    """Equal log-probabilities in the second step mean that vLLM has the new weights."""
    # vLLM's attention on CPUs needs heads of 32 or more.
    model = save_random_model(tmp_path / "model", hidden_size=128)
    script = Path(__file__).with_name("train.py")
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"}
    environment |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "TORCH_COMPILE_DISABLE": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(model), str(tmp_path / "run")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = (tmp_path / "run" / "cell" / "train" / "metrics.jsonl").read_text().splitlines()
    first, second = map(json.loads, lines)
    for record in (first, second):
        assert record["sampler/logprob_gap_max"] < 1e-4
    # The update was large enough that the weights of the first step would not pass the second.
    assert first["survivors/rollouts"] > 0
    drift = max(abs(first["ratio/fresh_mean"] - 1), first["clip_ratio/fresh"])
    assert drift > 1e-3
