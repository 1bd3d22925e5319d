"""Which GPUs a job uses: Snakemake counts them and hands none out.

A slot is a locked file a GPU. The lock belongs to the process, so a job that is killed frees it.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from grpo_replay.errors import ConfigError

VARIABLE = "CUDA_VISIBLE_DEVICES"
POLL_SECONDS = 2.0


def gpu_names() -> list[str]:
    """This machine's GPUs, without loading torch; none where its driver is absent."""
    if shutil.which("nvidia-smi") is None:
        return []
    done = subprocess.run(
        ["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False
    )
    # GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)
    lines = [line for line in done.stdout.splitlines() if line.startswith("GPU ")]
    return [line.partition(": ")[2].partition(" (UUID")[0] for line in lines]


def gpu_count() -> int:
    """How many GPUs this machine has."""
    return len(gpu_names())


def offered_gpus() -> int:
    """How many GPUs a job here may take: those that CUDA_VISIBLE_DEVICES lists, where it is set."""
    given = os.environ.get(VARIABLE)
    return gpu_count() if given is None else _listed(given)


def _listed(given: str) -> int:
    return sum(bool(device.strip()) for device in given.split(","))


@contextmanager
def gpus(
    wanted: int, count: Callable[[], int] = gpu_count, folder: Path | None = None
) -> Iterator[None]:
    """Hold `wanted` GPUs of this machine while the block runs, waiting for those that others hold.

    Sets CUDA_VISIBLE_DEVICES for this process and its children: to nothing where none is wanted.
    Where a person or a cluster's scheduler has set it, that choice is left alone.

    Raises:
        ConfigError: where the machine has fewer, or the variable lists fewer.
    """
    given = os.environ.get(VARIABLE)
    if given is not None:
        listed = _listed(given)
        if listed < wanted:
            raise ConfigError(
                f"{VARIABLE}={given!r} lists {listed} devices and this job needs {wanted}: list "
                "as many, or unset it"
            )
        yield
        return
    if wanted == 0:
        with _visible(""):
            yield
        return
    there = count()
    if there < wanted:
        raise ConfigError(
            f"scales.*.gpus: {wanted} GPUs are wanted and this machine has {there}: run this study "
            f"where they are, or set {VARIABLE} yourself"
        )
    folder = folder or Path(tempfile.gettempdir()) / "grpo-replay-gpus"
    folder.mkdir(parents=True, exist_ok=True)
    if folder.stat().st_uid == os.getuid():
        folder.chmod(0o777)  # slots are the machine's, whoever runs a job
    with ExitStack() as held:
        # One job chooses at a time: two that each hold a part would wait for each other for ever.
        with FileLock(folder / "choosing.lock", mode=0o666):
            chosen = _hold(held, wanted, there, folder)
        with _visible(",".join(map(str, chosen))):
            yield


@contextmanager
def _visible(devices: str) -> Iterator[None]:
    os.environ[VARIABLE] = devices
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def _hold(held: ExitStack, wanted: int, there: int, folder: Path) -> list[int]:
    chosen: list[int] = []
    while True:
        for number in range(there):
            if number in chosen:
                continue
            try:
                held.enter_context(FileLock(folder / f"{number}.lock", timeout=0, mode=0o666))
            except Timeout:
                continue
            chosen.append(number)
            if len(chosen) == wanted:
                return sorted(chosen)
        time.sleep(POLL_SECONDS)
