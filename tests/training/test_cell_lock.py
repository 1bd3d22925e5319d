"""Of two processes that train one cell the second is refused; a dead one's lock is taken over."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grpo_replay.training.cell_lock import HOLDER_FILE, LOCK_FILE, server_lock

SCRIPT = Path(__file__).with_name("lock_holder.py")
LEASE = 1.5


@pytest.fixture
def start(tmp_path: Path):
    """Start processes that hold the lock; what is left of them is killed."""
    processes = []

    def start_one(lease: object = LEASE, **variables: str) -> tuple[subprocess.Popen, str]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(tmp_path), str(lease)],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process, process.stdout.readline()

    yield start_one
    for process in processes:
        process.kill()
        process.communicate()


def move_to_another_host(folder: Path) -> None:
    """Make the lock look like one of another host, where a process cannot be looked at."""
    lock, holder = folder / LOCK_FILE, folder / HOLDER_FILE
    assert f"host={socket.gethostname()}" in lock.read_text()
    with lock.open("r+") as file:  # in place: its holder knows it by its inode
        text = file.read().replace(f"host={socket.gethostname()}", "host=elsewhere")
        file.seek(0)
        file.write(text)
        file.truncate()
    holder.write_text(json.dumps({**json.loads(holder.read_text()), "host": "elsewhere"}))


def test_the_second_process_is_refused_at_once_with_the_first_ones_name(start) -> None:
    first, said = start(SLURM_JOB_ID="17")
    assert said == "held\n"
    begun = time.monotonic()
    second, said = start()
    assert f"process {first.pid} on {socket.gethostname()}, Slurm job 17, since" in said
    assert second.wait() == 0 and time.monotonic() - begun < 10
    assert first.poll() is None


def test_a_lock_is_free_again_when_its_holder_ends(start, tmp_path: Path) -> None:
    first, _ = start()
    first.communicate()
    assert list(tmp_path.iterdir()) == []
    assert start()[1] == "held\n"


def test_the_lock_of_a_killed_process_is_taken_over(start, tmp_path: Path) -> None:
    first, _ = start()
    first.kill()
    first.wait()
    assert (tmp_path / LOCK_FILE).is_file()
    second, said = start()
    assert said == "held\n"
    assert json.loads((tmp_path / HOLDER_FILE).read_text())["pid"] == second.pid


def test_an_empty_holder_file_stops_nothing(start, tmp_path: Path) -> None:
    first, _ = start()
    (tmp_path / HOLDER_FILE).write_text("")  # as after a power cut
    first.kill()
    first.wait()
    assert start()[1] == "held\n"


def test_an_empty_lock_is_taken_over_when_it_is_old(start, tmp_path: Path) -> None:
    lock = tmp_path / LOCK_FILE
    lock.touch()  # as after a power cut
    os.utime(lock, (0, 0))
    assert start()[1] == "held\n"


def test_another_hosts_lock_is_respected_while_it_is_renewed(start, tmp_path: Path) -> None:
    first, _ = start()
    move_to_another_host(tmp_path)
    assert "being trained already, by process" in start()[1]
    os.kill(first.pid, signal.SIGSTOP)  # no renewal, as if the host were gone
    second, said = start()
    assert said == "held\n"
    os.kill(first.pid, signal.SIGCONT)  # it was not gone: it must see that, and end itself
    assert first.wait(timeout=20) == -signal.SIGTERM
    assert f"was taken over by process {second.pid}" in first.stdout.read()
    assert second.poll() is None


def test_a_holder_that_lost_its_lock_leaves_the_new_holders_name(start, tmp_path: Path) -> None:
    first, _ = start(END_IN_ORDER="1")
    move_to_another_host(tmp_path)
    os.kill(first.pid, signal.SIGSTOP)
    second, said = start()
    assert said == "held\n"
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(timeout=20) == 1  # it has unwound
    assert json.loads((tmp_path / HOLDER_FILE).read_text())["pid"] == second.pid
    assert str(second.pid) in (tmp_path / LOCK_FILE).read_text()
    second.communicate()
    assert list(tmp_path.iterdir()) == []


def test_a_server_is_waited_for(start) -> None:
    """Of two trainings each would put its weights into it."""
    address = {"GRPO_REPLAY_VLLM_SERVER": "http://node7:8000"}
    first, said = start("server", **address)
    assert said == "held\n"
    other, said = start("server", GRPO_REPLAY_VLLM_SERVER="http://node8:8000")
    assert said == "held\n"
    second, said = start("server", **address)
    assert said.startswith("waiting for") and f"process {first.pid} on" in said
    assert second.poll() is None and first.poll() is None
    first.communicate()
    assert second.stdout.readline() == "held\n"


def test_without_a_server_nothing_is_held(tmp_path: Path) -> None:
    with server_lock("vllm", tmp_path), server_lock("vllm", tmp_path):
        assert list(tmp_path.iterdir()) == []
