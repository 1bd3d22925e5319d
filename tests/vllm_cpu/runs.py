"""Runs of `train.py`, and what must hold of each."""

import json
import os
import subprocess
import sys
from pathlib import Path

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"


def train(
    model: Path,
    folder: Path,
    seed: int,
    die_at: int = 0,
    processes: int = 0,
    **variables: str,
) -> str:
    """Train, in a process or in several that torch's launcher starts; return what was printed."""
    script = Path(__file__).with_name("train.py")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"}
    environment |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "TORCH_COMPILE_DISABLE": "1"}
    environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind"} if processes else {}
    environment |= variables
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


def agrees_in_every_step(folder: Path) -> None:
    """Equal log-probabilities in later steps mean that vLLM has the new weights."""
    first, *later = metrics(folder)
    for record in (first, *later):
        assert record["inference/logprob_gap_max"] < 1e-4
    # The update was large enough that the weights of the first step would not pass the second.
    assert first["survivors/rollouts"] > 0
    drift = max(abs(first["ratio/fresh_mean"] - 1), first["clip_ratio/fresh"])
    assert drift > 1e-3
