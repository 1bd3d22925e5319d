"""A Slurm host for the session, and copies of the repository that run the tiny study on it."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))

from repository_copy import Workflow, copy_repository  # noqa: E402
from slurm_host import SlurmHost  # noqa: E402


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory):
    """The host; when it has stopped, no process and no file of it is left."""
    assert shutil.which("slurmctld") and os.geteuid() == 0, "run `make test-slurm`, as root"
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("ended"))  # no way out without stop()
    host = SlurmHost(tmp_path_factory.getbasetemp())
    try:
        host.start()
        yield host
    finally:
        host.stop()
    assert host.leftovers() == []
    assert not host.folder.exists() and not any(file.exists() for file in host.files)


@pytest.fixture
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A copy that runs two trained cells of one GPU each, with the shipped profile."""
    copy = copy_repository(tmp_path_factory.mktemp("slurm"))
    study = yaml.safe_load(copy.study.read_text())
    study["scales"]["s"] |= {"gpus": 1, "memory_gb": 1.5, "hours_train": 0.1}
    study["scales"]["s"]["model"]["updates"] = 20  # nothing here is about learning
    study["grid"] = study["grid"][:1]
    study["grid"][0]["methods"] = ["grpo", "ours"]
    study["training"]["steps"] = 40
    copy.study.write_text(yaml.safe_dump(study))
    path = copy.folder / "profiles" / "slurm" / "config.yaml"
    profile = yaml.safe_load(path.read_text())
    # What only a test changes: it polls often, has two cores, and reads the logs of all jobs.
    profile["slurm-init-seconds-before-status-checks"] = 3
    profile["slurm-keep-successful-logs"] = True
    profile["latency-wait"] = 10
    profile["default-resources"]["mem_mb"] = 1500
    profile["set-resources"]["train_policy"]["cpus_per_task"] = 1
    path.write_text(yaml.safe_dump(profile))
    return copy
