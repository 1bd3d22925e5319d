"""Two gloo processes replay what one replays, and make the same update.

Started by torch's own launcher: without MPI `accelerate launch --cpu` starts one process, however
many it is asked for.
"""

import os
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

SCRIPT = Path(__file__).with_name("two_processes.py")


def launch(model: Path, run: Path, processes: int) -> dict[str, torch.Tensor]:
    run.mkdir()
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc_per_node", str(processes)),
        *(str(SCRIPT), str(model), str(run), str(processes)),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return load_file(run / "model" / "model.safetensors")


def test_two_processes_replay_and_learn_like_one(tiny_model: Path, tmp_path: Path) -> None:
    one = launch(tiny_model, tmp_path / "one", 1)
    two = launch(tiny_model, tmp_path / "two", 2)
    for name in ("replay", "rollouts"):
        texts = [(tmp_path / n / "records" / f"{name}.jsonl").read_text() for n in ("one", "two")]
        assert texts[0] == texts[1]
    assert (
        '"replayed": true' in texts[0]
        or '"replayed": true' in (tmp_path / "two" / "records" / "replay.jsonl").read_text()
    )
    start = load_file(tiny_model / "model.safetensors")
    change = torch.cat([(one[name] - start[name]).flatten() for name in start])
    difference = torch.cat([(one[name] - two[name]).flatten() for name in start])
    assert change.norm() > 0
    assert difference.norm() < 1e-3 * change.norm()
