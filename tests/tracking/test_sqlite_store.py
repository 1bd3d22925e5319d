"""The store's file: makers that are killed or meet, and a folder of results that is moved."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import OrderedDict
from contextlib import closing
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException
from mlflow.tracking._tracking_service import utils
from tracked_cells import OURS, PATIENCE, STUDY, make_records, runs_of, train, write_records

from grpo_replay.tracking.sqlite_store import BESIDE, is_half_made
from grpo_replay.tracking.store import Store
from grpo_replay.tracking.sync import sync_study

BARE = "import sys; from mlflow import MlflowClient; MlflowClient(sys.argv[1])"
OURS_MAKES = """
import sys; from pathlib import Path; from grpo_replay.tracking.store import Store
Store("tiny", Path(sys.argv[2]))
"""


def start(program: str, results: Path) -> subprocess.Popen:
    """Open the store in a process group of its own."""
    uri = os.environ["MLFLOW_TRACKING_URI"]
    command = [sys.executable, "-c", program, uri, str(results)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def tables_in(file: Path) -> int:
    if not file.exists():
        return 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        try:
            (count,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:  # locked by its maker
            return 0
    return count


def kill_at(tables: int, file: Path, process: subprocess.Popen) -> None:
    """SIGKILL for the whole group once a file has so many tables and indices."""
    end = time.monotonic() + PATIENCE
    while tables_in(file) < tables:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def unmade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study's folder of results whose store is not there yet."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    return tmp_path / STUDY.study


def test_makers_that_are_killed_leave_a_store_that_others_make(unmade: Path) -> None:
    """What MLflow leaves in place, and our maker beside; the next three meet there at once."""
    file = unmade.parent / "mlflow.db"
    for tables in (4, 20, 45):
        file.unlink(missing_ok=True)
        kill_at(tables, file, start(BARE, unmade))
        assert is_half_made(file), tables
    left = file.read_bytes()
    beside = file.with_name(file.name + BESIDE)
    kill_at(30, beside, start(OURS_MAKES, unmade))
    assert file.read_bytes() == left and beside.exists()
    makers = [start(OURS_MAKES, unmade) for _ in range(3)]
    assert [maker.wait(PATIENCE) for maker in makers] == [0, 0, 0]
    names = [e.name for e in Store(STUDY.study, unmade).client.search_experiments()]
    assert sorted(names) == ["Default", STUDY.study]
    assert not is_half_made(file) and not list(file.parent.glob(f"*{BESIDE}*"))


def test_our_maker_leaves_nothing_in_place(unmade: Path) -> None:
    file = unmade.parent / "mlflow.db"
    kill_at(4, file.with_name(file.name + BESIDE), start(OURS_MAKES, unmade))
    assert not file.exists()


def test_a_damaged_store_with_runs_is_not_made_anew(results: Path) -> None:
    train(results, OURS, make_records(2))
    file = results.parent / "mlflow.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM alembic_version")
        database.execute("ALTER TABLE experiments RENAME TO _alembic_tmp_experiments")
    before = file.stat().st_ino
    with pytest.raises((MlflowException, sqlite3.Error)):
        Store(STUDY.study, results)
    assert file.stat().st_ino == before
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (2,)  # and its parent


def test_what_is_no_store_is_left_alone(unmade: Path) -> None:
    file = unmade.parent / "mlflow.db"
    file.write_text("notes of a user")
    with pytest.raises(sqlite3.Error):
        Store(STUDY.study, unmade)
    assert file.read_text() == "notes of a user"


# --- a folder that is moved ---


def leave_trained(results: Path) -> None:
    """A cell that has trained, in the store with its files, data and note."""
    records = make_records(3)
    write_records(results, OURS, records)
    problems = results / "data" / "problems.jsonl"
    problems.parent.mkdir(parents=True)
    problems.write_text("")
    train(results, OURS, records)
    assert sync_study(STUDY, results)


def move(folder: Path, target: Path, patch: pytest.MonkeyPatch) -> Path:
    """Move a folder of results; whatever writes into its old place fails, for root too."""
    shutil.move(folder, target)
    folder.write_text("")
    patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{target}/mlflow.db")
    # Which MLflow keeps by run as long as a process lives; the next one is another.
    patch.setattr(utils, "_artifact_repos_cache", OrderedDict())
    return target / STUDY.study


@pytest.fixture
def old(results: Path, empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results, with a store, whose address has to be written otherwise in a URI."""
    folder = tmp_path / "old results"
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
    return folder


@pytest.mark.parametrize("new", ["new's", "old results, moved"])
def test_a_moved_store_follows_its_folder(
    old: Path, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_trained(old / STUDY.study)
    runs = Store(STUDY.study, old / STUDY.study).runs()
    moved = move(old, old.parent / new, monkeypatch)
    assert sync_study(STUDY, moved)
    store = Store(STUDY.study, moved)
    everything = store.client.search_runs([store.experiment])
    assert {r.info.run_id for r in store.runs()} == {r.info.run_id for r in runs}
    assert len(everything) == len(runs)
    (run,) = runs_of(moved, OURS)
    kept = Path(store.client.download_artifacts(run.info.run_id, "config.yaml"))
    assert "learning_rate" in kept.read_text()
    assert run.info.artifact_uri.startswith(f"{moved.parent.as_uri()}/mlflow-artifacts/")
    with closing(sqlite3.connect(moved.parent / "mlflow.db")) as database:
        text = "\n".join(database.iterdump())
    for place in (str(old), old.as_uri()):
        assert f"{place}/" not in text and f"{place} " not in text and f"{place}'" not in text
    assert not old.read_text()
    store.client.log_text(run.info.run_id, "later", "later.txt")  # as the pages and a next sync do
    assert list((moved.parent / "mlflow-artifacts").rglob("later.txt"))


def test_a_store_that_the_user_named_keeps_its_addresses(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold the runs of others, whose folders have not moved."""
    place = results.parent / "shared"
    place.mkdir()
    shutil.move(results.parent / "mlflow.db", place / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{place}/mlflow.db")
    first = Store(STUDY.study, results)
    (before,) = {e.artifact_location for e in first.client.search_experiments() if e.name == "tiny"}
    shutil.copytree(place, results.parent / "copy")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{results.parent}/copy/mlflow.db")
    second = Store(STUDY.study, results)
    assert second.client.get_experiment(second.experiment).artifact_location == before
