"""GPU slots: never two jobs on one, a killed job frees its own. The devices are pretended."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grpo_replay.errors import ConfigError
from grpo_replay.machine.gpus import gpus, machine_gpus, offered_gpus, offered_memory
from grpo_replay.machine.provenance import hardware

HOLD = """
import os, sys, time
from pathlib import Path
from grpo_replay.machine.gpus import gpus
with gpus(int(sys.argv[2]), count=lambda: 2, folder=Path(sys.argv[1])):
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(float(sys.argv[3]))
"""


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def hold(folder: Path, wanted: int, seconds: float, **variables: str) -> subprocess.Popen:
    command = [sys.executable, "-c", HOLD, str(folder), str(wanted), str(seconds)]
    environment = {**os.environ, **variables}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_jobs_side_by_side_have_different_gpus_and_a_third_waits(tmp_path: Path) -> None:
    first, second = hold(tmp_path, 1, 60), hold(tmp_path, 1, 60)
    devices = {first.stdout.readline().strip(), second.stdout.readline().strip()}
    assert devices == {"0", "1"}
    third = hold(tmp_path, 1, 0)
    time.sleep(1)
    assert third.poll() is None
    first.kill()  # its slot is free again
    assert third.stdout.readline().strip() in devices
    assert third.wait() == 0
    second.kill()


def test_two_that_want_both_do_not_wait_for_each_other_for_ever(tmp_path: Path) -> None:
    jobs = [hold(tmp_path, 2, 0.2) for _ in range(3)]
    assert [job.communicate(timeout=60)[0].strip() for job in jobs] == ["0,1"] * 3


def test_what_a_person_or_scheduler_set_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    with gpus(2, count=lambda: 0):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "5,7"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5,7"
    with pytest.raises(ConfigError, match="lists 2 devices and this job needs 4"), gpus(4):
        pass


def test_jobs_that_need_fewer_than_a_person_listed_share_them_out(tmp_path: Path) -> None:
    """TRL refuses one process with several visible GPUs; an engine would take the first of them."""
    jobs = [hold(tmp_path, 1, 60, CUDA_VISIBLE_DEVICES="5,GPU-7") for _ in range(2)]
    assert {job.stdout.readline().strip() for job in jobs} == {"5", "GPU-7"}
    for job in jobs:
        job.kill()


def test_a_set_variable_says_how_many_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, count in (("5,7", 2), ("", 0), ("-1", 0), ("NoDevFiles", 0), ("GPU-a, 3,-1,4", 2)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        assert offered_gpus() == count


def test_without_gpus_a_study_that_needs_one_is_refused_at_once(tmp_path: Path) -> None:
    refused = pytest.raises(ConfigError, match="2 GPUs are wanted and this machine has 1")
    with refused, gpus(2, count=lambda: 1, folder=tmp_path):
        pass
    with gpus(0, count=lambda: 0):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""  # the CPU, also where there are GPUs
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """Return a function that puts a driver on the PATH which tells these GPUs."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(lines: list[str]) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        program.chmod(0o755)

    return put


def test_the_machine_is_told_with_its_gpus(driver: Callable[[list[str]], None]) -> None:
    assert machine_gpus() == [] and offered_memory() is None
    assert hardware([]).endswith("CPU cores")
    driver([f"{n}, GPU-{n}a1f, 81559, NVIDIA H100 80GB HBM3" for n in range(4)])
    assert offered_gpus() == 4 and offered_memory() == 81559 * 2**20
    names = [gpu.name for gpu in machine_gpus()]
    assert hardware(names).endswith("CPU cores, 4 x NVIDIA H100 80GB HBM3")
    driver(["No devices were found"])
    assert machine_gpus() == []


def test_the_smallest_gpu_that_is_offered_counts(
    driver: Callable[[list[str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(["0, GPU-a1, 81559, H100", "1, GPU-b2, 4096, T400", "2, GPU-c3, [N/A], GB10"])
    for given, size in (("0", 81559), ("0,1", 4096), ("GPU-a", 81559), ("2", None), ("7", None)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        assert offered_memory() == (size and size * 2**20), given
