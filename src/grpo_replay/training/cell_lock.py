"""One training of a cell at a time, and one on a vLLM server: a lock in a folder that names its
holder.

It is a lease, since network file systems need not have locks: the holder renews it, and one that is
not renewed is taken over. Where the holder's host is this one, a dead holder is seen at once.
"""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path

from filelock import SoftFileLease, Timeout

from grpo_replay.errors import LockedError
from grpo_replay.files import write_json
from grpo_replay.training.rollout_server import server_address

LOCK_FILE = "training.lock"
HOLDER_FILE = "holder.json"
LEASE_SECONDS = 120.0  # NFS clients may see a renewal a minute late


@contextmanager
def cell_lock(
    folder: Path, lease_seconds: float = LEASE_SECONDS, wait: bool = False
) -> Iterator[None]:
    """Hold the lock of a cell, for all processes that train it: their launcher takes it.

    A process whose lock was taken over ends itself: two trainings would write the same checkpoints.

    Args:
        folder: the cell's folder for checkpoints; made where it is missing.
        lease_seconds: a lock of another host that was not renewed for so long is taken over. The
            same for all that meet at a lock.
        wait: for as long as another process holds it, instead of an error.

    Raises:
        LockedError: while another process holds it, with that process's host and id.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = SoftFileLease(
        folder / LOCK_FILE, lease_duration=lease_seconds, on_compromise=lambda _: _end(folder)
    )
    holder_file, this = folder / HOLDER_FILE, _this_process()
    _acquire(lock, holder_file, wait)
    try:
        write_json(holder_file, this)
        yield
    finally:
        if _read(holder_file) == this:  # after a takeover it names the new holder
            holder_file.unlink()
        lock.release()


def server_lock(engine: str, results: Path) -> AbstractContextManager[None]:
    """Hold the vLLM server, waiting for another training that does: each puts its own weights into
    it, and the other would go on with rollouts of a policy that is not its own.

    Args:
        engine: the study's `rollout_engine`; of those without a server nothing is held.
        results: the folder around the studies: all that write there see the lock.
    """
    if engine != "vllm_server":
        return nullcontext()
    return cell_lock(results / ".servers" / re.sub(r"\W+", "-", server_address()), wait=True)


def _remove_torn(lock: SoftFileLease) -> None:
    """An empty lock, as a power cut leaves it, names nobody that could be dead: age decides."""
    with suppress(FileNotFoundError):
        found = Path(lock.lock_file).stat()
        if found.st_size == 0 and time.time() - found.st_mtime > lock.lease_duration:
            Path(lock.lock_file).unlink()


def _acquire(lock: SoftFileLease, holder_file: Path, wait: bool) -> None:
    _remove_torn(lock)
    try:
        lock.acquire(timeout=0)
        return
    except Timeout:
        holder = _read(holder_file)
    if wait:
        print(f"waiting for {lock.lock_file}, which {_text(holder)} holds", flush=True)
        lock.acquire(timeout=-1, poll_interval=lock.lease_duration / 20)
        return
    try:
        # Of a holder on this host it is known that it lives; another must show it by a renewal.
        here = holder.get("host") == socket.gethostname()
        patience = 0 if here else 1.5 * lock.lease_duration
        lock.acquire(timeout=patience, poll_interval=lock.lease_duration / 20)
    except Timeout:
        raise LockedError(
            f"this cell is being trained already, by {_text(_read(holder_file))}: let that end, or "
            f"end it there. Its lock is {lock.lock_file}; a lock that nobody renews is taken over "
            f"after {lock.lease_duration:g} s"
        ) from None


def _this_process() -> dict:
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _read(holder_file: Path) -> dict:
    # Missing where the holder has only just got the lock: it writes the file right after. Empty
    # where its machine went down.
    try:
        return json.loads(holder_file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def _text(holder: dict) -> str:
    if not holder:
        return "a process that has just started"
    job = f", Slurm job {holder['slurm_job']}" if holder["slurm_job"] else ""
    return f"process {holder['pid']} on {holder['host']}{job}, since {holder['since']}"


def _end(folder: Path) -> None:
    print(
        f"{folder / LOCK_FILE} was taken over by {_text(_read(folder / HOLDER_FILE))}", flush=True
    )
    os.kill(os.getpid(), signal.SIGTERM)
