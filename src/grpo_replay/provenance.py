"""Where a result comes from: code, versions, hardware."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("torch", "transformers", "trl", "snakemake", "mlflow", "math-verify")


def commit() -> str:
    """The commit of the code, with `+changes` where the working tree differs; `unknown` outside a
    checkout.
    """
    root = Path(__file__).parents[2]
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    return f"{head}+changes" if _git(root, "status", "--porcelain") else head


def _git(root: Path, *arguments: str) -> str | None:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def versions() -> dict[str, str]:
    """Installed versions of the libraries that decide a result."""
    return {name: version(name) for name in PACKAGES}


def hardware() -> str:
    """The machine in a few words."""
    return f"{platform.machine()}, {os.cpu_count()} CPU cores"
