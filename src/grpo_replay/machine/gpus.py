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
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from grpo_replay.errors import ConfigError

VARIABLE = "CUDA_VISIBLE_DEVICES"
POLL_SECONDS = 2.0


class Gpu(NamedTuple):
    """A GPU of this machine; `memory` in MiB, None where the driver does not tell."""

    index: str
    uuid: str
    memory: int | None
    name: str


def machine_gpus() -> list[Gpu]:
    """This machine's GPUs, without loading torch; none where its driver is absent."""
    if shutil.which("nvidia-smi") is None:
        return []
    columns = "--query-gpu=index,uuid,memory.total,name"
    command = ["nvidia-smi", columns, "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # 0, GPU-6f1e..., 81559, NVIDIA H100 80GB HBM3
    rows = [line.split(", ", 3) for line in done.stdout.splitlines()]
    return [
        Gpu(row[0], row[1], int(row[2]) if row[2].isdigit() else None, row[3])
        for row in rows
        if len(row) == 4  # not the driver's complaint that it finds none
    ]


def gpu_count() -> int:
    """How many GPUs this machine has."""
    return len(machine_gpus())


def offered_gpus() -> int:
    """How many GPUs a job here may take: those that CUDA_VISIBLE_DEVICES lists, where it is set."""
    given = os.environ.get(VARIABLE)
    return gpu_count() if given is None else len(_listed(given))


def offered_memory() -> float | None:
    """Bytes of the smallest GPU that a job here may take; None where the driver does not tell.

    Numbers in CUDA_VISIBLE_DEVICES are taken for the driver's; CUDA may order unlike GPUs
    otherwise.
    """
    given = os.environ.get(VARIABLE)
    gpus = machine_gpus()
    if given is not None:
        listed = _listed(given)
        gpus = [g for g in gpus if any(d == g.index or g.uuid.startswith(d) for d in listed)]
    sizes = [gpu.memory for gpu in gpus if gpu.memory]
    return float(min(sizes) * 2**20) if sizes else None


def _listed(given: str) -> list[str]:
    """The devices that CUDA sees: it stops at the first that cannot be one (-1, NoDevFiles)."""
    devices = [device.strip() for device in given.split(",")]
    return list(takewhile(lambda d: d.isdigit() or d.startswith(("GPU-", "MIG-")), devices))


@contextmanager
def gpus(
    wanted: int, count: Callable[[], int] = gpu_count, folder: Path | None = None
) -> Iterator[None]:
    """Hold `wanted` GPUs of this machine while the block runs, waiting for those that others hold.

    Sets CUDA_VISIBLE_DEVICES for this process and its children: to nothing where none is wanted.
    Where a person has set it, the job takes its GPUs from those; a list of just as many, as a
    cluster's scheduler gives it, is left alone: that may count from 0 in every job.

    Raises:
        ConfigError: where the machine has fewer, or the variable lists fewer.
    """
    given = os.environ.get(VARIABLE)
    devices = _listed(given) if given is not None else [str(n) for n in range(wanted and count())]
    if len(devices) < wanted:
        raise ConfigError(_too_few(wanted, len(devices), given))
    if wanted == 0 or (given is not None and len(devices) == wanted):
        with _visible(given if wanted else ""):
            yield
        return
    folder = _slots(folder or Path(tempfile.gettempdir()) / "grpo-replay-gpus")
    with ExitStack() as held:
        # One job chooses at a time: two that each hold a part would wait for each other for ever.
        with FileLock(folder / "choosing.lock", mode=0o666):
            chosen = _hold(held, wanted, devices, folder)
        with _visible(",".join(chosen)):
            yield


def _slots(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if folder.stat().st_uid == os.getuid():
        folder.chmod(0o777)  # slots are the machine's, whoever runs a job
    return folder


def _too_few(wanted: int, there: int, given: str | None) -> str:
    if given is None:
        return (
            f"scales.*.gpus: {wanted} GPUs are wanted and this machine has {there}: run this study "
            f"where they are, or set {VARIABLE} yourself"
        )
    return (
        f"{VARIABLE}={given!r} lists {there} devices and this job needs {wanted}: list as many, or "
        "unset it"
    )


@contextmanager
def _visible(devices: str) -> Iterator[None]:
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = devices
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _hold(held: ExitStack, wanted: int, devices: list[str], folder: Path) -> list[str]:
    chosen: list[str] = []
    while True:
        for device in devices:
            if device in chosen:
                continue
            try:
                slot = folder / f"{device.replace('/', '_')}.lock"
                held.enter_context(FileLock(slot, timeout=0, mode=0o666))
            except Timeout:
                continue
            chosen.append(device)
            if len(chosen) == wanted:
                return sorted(chosen, key=devices.index)
        time.sleep(POLL_SECONDS)
