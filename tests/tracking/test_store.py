"""A store that is shut, was cleared on its pages, or needs a password; results with a torn file."""

import os
import sys
import time
from pathlib import Path

import pytest
from mlflow.entities import Run
from mlflow.environment_variables import MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT
from mlflow.exceptions import MlflowException
from tracked_cells import GRPO, OURS, STUDY, make_records, runs_of, steps_of, train, write_records

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.tracking import ui
from grpo_replay.tracking.store import Store, sync_command, warn
from grpo_replay.tracking.sync import sync_study


def leave(results: Path, cell: str) -> None:
    """Train a cell, and leave its steps in the results."""
    records = make_records(4)
    write_records(results, cell, records)
    train(results, cell, records)


def artifacts_of(results: Path, run: Run) -> set[str]:
    client = Store(STUDY.study, results).client
    return {artifact.path for artifact in client.list_artifacts(run.info.run_id)}


def test_a_database_that_does_not_open_costs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PostgreSQL that is down, a file that cannot be read: MLflow alone waits 100 s."""
    (tmp_path / "mlflow.db").mkdir()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with pytest.warns(GrpoReplayWarning, match="unable to open database file"):
        assert not sync_study(STUDY, tmp_path / STUDY.study)
    assert sum(slept) < 1


def test_an_experiment_deleted_on_the_pages_comes_back(results: Path) -> None:
    leave(results, OURS)
    store = Store(STUDY.study, results)
    store.client.delete_experiment(store.experiment)
    assert sync_study(STUDY, results)
    (run,) = runs_of(results, OURS)
    assert steps_of(results, run) == [1, 2, 3, 4]


def test_any_folder_can_hold_results(results: Path) -> None:
    """Quotation marks are part of the language in which runs are looked up."""
    results = results.parent / "o'brien" / STUDY.study
    leave(results, OURS)
    assert sync_study(STUDY, results)
    (run,) = runs_of(results, OURS)
    place = f"'results={results.parent}'".replace("o'brien", "o'\"'\"'brien")
    assert f"--config study=tiny {place} --forcerun" in run.data.tags["mlflow.note.content"]


@pytest.mark.parametrize("file", ["cells/{}/scores.json", "cells/{}/train/metrics.jsonl"])
def test_a_torn_file_costs_its_cell_alone(results: Path, file: str) -> None:
    for cell in (GRPO, OURS):
        leave(results, cell)
    torn = results / file.format(GRPO)
    torn.write_text('{"step": 1\n{"st')
    with pytest.warns(GrpoReplayWarning, match=f"{torn.name}.*sync_tracking"):
        assert not sync_study(STUDY, results)
    (run,) = runs_of(results, OURS)
    assert run.info.status == "FINISHED" and "config.yaml" in artifacts_of(results, run)


def test_no_warning_shows_a_password(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "http://me:pass@word@127.0.0.1:1"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.warns(GrpoReplayWarning) as caught:
        warn(results, MlflowException(f"API request to {uri}/api/2.0 failed"))
    text = str(caught[0].message)
    assert "word" not in text and text.count("//127.0.0.1:1") == 2
    assert f"--config study=tiny results={results.parent}" in text
    assert MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT.get()  # its lines at the end of a run


def test_commands_name_a_study_file_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sync_command(Path("results/own")).endswith("--config study=own")
    monkeypatch.setenv("GRPO_REPLAY_STUDY", "my studies/own.yaml")
    assert sync_command(Path("results/own")).endswith("--config 'study=my studies/own.yaml'")


def test_the_pages_get_the_store_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the machine sees the arguments of a process."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("results: results")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/password.db")
    monkeypatch.setenv("MLFLOW_BACKEND_STORE_URI", "")
    monkeypatch.setattr(sys, "argv", ["ui"])
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))
    ui.main()
    assert "password" not in str(started) and "127.0.0.1" in started[0]
    assert os.environ["MLFLOW_BACKEND_STORE_URI"] == os.environ["MLFLOW_TRACKING_URI"]
