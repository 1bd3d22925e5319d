"""A fresh sqlite store for each test, and a study's folder with nothing in it."""

import shutil
from pathlib import Path

import pytest
from tracked_cells import PATIENCE, STUDY

from grpo_replay.tracking import live
from grpo_replay.tracking.store import Store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without runs: to make its tables takes seconds, to copy it does not."""
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
        Store(STUDY.study, folder / STUDY.study)
    return folder / "mlflow.db"


@pytest.fixture
def results(empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study's folder of results, with a store of its own; live runs are flushed at once, and wait
    for the store until it has everything, however busy the machine is.
    """
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setattr(live, "FLUSH_SECONDS", 0.1)
    monkeypatch.setattr(live, "DRAIN_SECONDS", PATIENCE)
    return tmp_path / STUDY.study
