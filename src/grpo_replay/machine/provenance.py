"""Where a result comes from: code and hardware."""

import os
import platform
import shutil
import subprocess
from collections import Counter
from pathlib import Path


def commit() -> str:
    """The commit of the code, with `+changes` where the working tree differs; `unknown` outside a
    checkout.
    """
    root = Path(__file__).parents[3]
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    return f"{head}+changes" if _git(root, "status", "--porcelain") else head


def _git(root: Path, *arguments: str) -> str | None:
    if shutil.which("git") is None:
        return None
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def hardware(gpus: list[str]) -> str:
    """The machine in a few words, with the names of its GPUs."""
    counted = [f"{number} x {name}" for name, number in Counter(gpus).items()]
    return ", ".join([platform.machine(), f"{os.cpu_count()} CPU cores", *counted])
