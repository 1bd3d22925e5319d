"""A cell's run while it trains: every step once, the right end, and a store that fails."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from servers import MlflowServer, free_port
from tracked_cells import (
    CELLS,
    GRPO,
    OURS,
    PATIENCE,
    STEPS,
    STUDY,
    make_records,
    runs_of,
    settings_of,
    steps_of,
    train,
    write_records,
)

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.files import write_json
from grpo_replay.study.cells import resolve
from grpo_replay.tracking import live, store
from grpo_replay.tracking.cell_results import ALIVE_SECONDS
from grpo_replay.tracking.live import DRAIN_SECONDS, training_run
from grpo_replay.tracking.store import Store
from grpo_replay.tracking.sync import sync_study

PROGRAM = Path(__file__).with_name("tracked_cells.py")
LIMIT = 60  # seconds: far below what MLflow alone waits for a server (247), far above our own wait


def test_a_run_has_every_step_once_and_says_what_it_is(results: Path) -> None:
    records = make_records(5)
    train(results, OURS, records)
    (run,) = runs_of(results, OURS)
    assert run.info.run_name == OURS and run.info.status == "FINISHED"
    assert steps_of(results, run) == [1, 2, 3, 4, 5]
    assert run.data.metrics["reward/mean"] == records[-1]["reward/mean"]
    assert run.data.metrics["replay/age_histogram/1"] == 5
    assert steps_of(results, run, "replay/age_mean") == [2, 3, 4, 5]
    assert run.data.metrics["system/cpu_utilization_percentage"] >= 0
    assert run.data.params["training.learning_rate"] == "0.0003"
    tags = run.data.tags
    assert (tags["study"], tags["scale"], tags["method"]) == ("tiny", "s", "ours")
    assert tags["stage"] == "trained" and tags["commit"] and tags["hardware"]
    assert "--forcerun train_policy" in tags["mlflow.note.content"]
    store = Store(STUDY.study, results)
    first = store.client.get_metric_history(run.info.run_id, "reward/mean")[0]
    assert run.info.start_time <= first.timestamp  # the training's, not the store's
    parent = store.client.get_run(tags["mlflow.parentRunId"])
    assert parent.info.run_name == "s/ours" and parent.info.status == "FINISHED"


def test_a_resumed_training_continues_its_run(results: Path) -> None:
    """Steps that the store has are not logged again, nor those that were trained twice."""
    records = make_records(9)
    with pytest.raises(RuntimeError), training_run(settings_of(OURS), results) as run:
        for record in records[:6]:
            run.step(record)
        raise RuntimeError
    assert runs_of(results, OURS)[0].info.status == "FAILED"
    with (results / "tracking" / OURS / "system_metrics.jsonl").open("a") as torn:
        torn.write('{"step": ')
    train(results, OURS, records, done=4)
    (run,) = runs_of(results, OURS)
    assert run.info.status == "FINISHED"
    assert steps_of(results, run) == list(range(1, 10))
    assert run.data.tags["resumed_from_step"] == "4"
    system = steps_of(results, run, "system/cpu_utilization_percentage")
    assert system == list(range(len(system))) and len(system) >= 2


def test_a_second_training_supersedes_the_first(results: Path) -> None:
    train(results, OURS, make_records(3))
    train(results, OURS, make_records(3))
    new, old = runs_of(results, OURS)
    assert old.data.tags["superseded_by"] == new.info.run_id
    assert new.data.tags["supersedes"] == old.info.run_id
    assert "superseded_by" not in new.data.tags
    assert old.data.tags["mlflow.parentRunId"] == new.data.tags["mlflow.parentRunId"]
    client, system = Store(STUDY.study, results).client, "system/cpu_utilization_percentage"
    histories = [client.get_metric_history(run.info.run_id, system) for run in (old, new)]
    first, second = [{point.timestamp for point in history} for history in histories]
    assert first and second and first.isdisjoint(second)  # each has its own machine's


def test_other_settings_do_not_continue_a_run(results: Path) -> None:
    """For parameters cannot be changed."""
    records, settings = make_records(4), settings_of(OURS)
    train(results, OURS, records[:2])
    settings["training"]["learning_rate"] = 0.5
    with training_run(settings, results) as run:
        run.resumed(records[:2])
        for record in records[2:]:
            run.step(record)
    new, old = runs_of(results, OURS)
    assert old.data.tags["superseded_by"] == new.info.run_id
    rates = [run.data.params["training.learning_rate"] for run in (old, new)]
    assert rates == ["0.0003", "0.5"]
    assert steps_of(results, new) == [1, 2, 3, 4]


def start(results: Path, cell: str) -> subprocess.Popen:
    """Train a cell in a process of its own until its run is in the store."""
    with (results.parent / "program.log").open("ab") as log:
        command = [sys.executable, str(PROGRAM), str(results), cell]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    wait_for(lambda: process.poll() is None and runs_of(results, cell))
    return process


def wait_for(condition: Callable[[], Any]) -> None:
    """Until it holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_a_killed_training_is_marked(results: Path) -> None:
    """SIGTERM ends a run KILLED; after SIGKILL the next training of the study does it."""
    asked, shot = start(results, OURS), start(results, GRPO)
    asked.terminate()
    assert asked.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    assert runs_of(results, OURS)[0].info.status == "KILLED"
    assert runs_of(results, OURS)[0].data.tags["status"] == "killed"
    shot.kill()
    shot.wait()
    assert runs_of(results, GRPO)[0].info.status == "RUNNING"
    other = next(name for name in CELLS if name.startswith("s/uniform"))
    train(results, other, make_records(2))
    assert runs_of(results, GRPO)[0].info.status == "KILLED"


def test_a_training_that_runs_is_not_taken_for_dead(results: Path) -> None:
    log = results / "logs" / "train_policy" / f"{OURS}.log"
    log.parent.mkdir(parents=True)
    log.write_text("what the job said")
    process = start(results, OURS)
    train(results, GRPO, make_records(2))
    sync_study(STUDY, results)
    assert runs_of(results, OURS)[0].info.status == "RUNNING"
    process.kill()
    process.wait()
    sync_study(STUDY, results)
    (run,) = runs_of(results, OURS)
    assert run.info.status == "KILLED"
    assert steps_of(results, run) == list(range(1, STEPS + 1))  # as the file that it has left
    client = Store(STUDY.study, results).client
    names = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert names == {"config.yaml", "environment.txt", "logs"}


def test_what_has_not_begun_has_no_run(results: Path) -> None:
    for cell in (OURS, "s/base"):
        write_json(results / "cells" / cell / "cell.json", resolve(STUDY, CELLS[cell]))
    assert sync_study(STUDY, results)
    assert not runs_of(results, OURS) and not runs_of(results, "s/base")


def log_one_of_eight(results: Path, cell: str, records: list[dict]) -> None:
    live.FLUSH_SECONDS, live.DRAIN_SECONDS = 0.2, PATIENCE
    train(results, cell, records, pause=0.02)


def test_eight_processes_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They meet on a store that is not there yet, which breaks a bare MLflow."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    results = tmp_path / STUDY.study
    folders = (results, tmp_path / "another" / STUDY.study)  # the study has five trained cells
    jobs = [(f, name) for f in folders for name, cell in CELLS.items() if cell.trained][:8]
    fork = multiprocessing.get_context("fork")
    processes = [
        fork.Process(target=log_one_of_eight, args=(*job, make_records(60))) for job in jobs
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for folder, cell in jobs:
        (run,) = runs_of(folder, cell)
        assert steps_of(folder, run) == list(range(1, 61))
        assert run.info.status == "FINISHED"
    parents = Store(STUDY.study, results).runs(stage="summary")
    assert len(parents) == len({run.info.run_name for run in parents})


# --- a server that is out of reach ---


def seconds_of(results: Path, records: list[dict]) -> float:
    """How long a training takes whose steps take no time."""
    started = time.monotonic()
    with pytest.warns(GrpoReplayWarning, match="no result is lost.*sync_tracking"):
        train(results, OURS, records)
    return time.monotonic() - started


def test_the_wait_at_the_end_is_short() -> None:
    """A training loses no more than 5 s in all: here, and to the lock beside its results."""
    assert DRAIN_SECONDS + ALIVE_SECONDS <= 5


def test_a_server_that_is_not_there_costs_little(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reachable = os.environ["MLFLOW_TRACKING_URI"]
    records = make_records(4)
    write_records(results, OURS, records)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    assert seconds_of(results, records) < LIMIT
    with pytest.warns(GrpoReplayWarning, match="sync_tracking"):
        assert not sync_study(STUDY, results)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", reachable)
    assert sync_study(STUDY, results)
    (run,) = runs_of(results, OURS)
    assert steps_of(results, run) == [1, 2, 3, 4]
    assert steps_of(results, run, "system/cpu_utilization_percentage")


def test_a_server_that_never_answers_costs_little(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training ends while its thread still waits for the server."""
    monkeypatch.setattr(live, "DRAIN_SECONDS", DRAIN_SECONDS)
    monkeypatch.setattr(store, "PROBE_SECONDS", PATIENCE)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert seconds_of(results, make_records(4)) < LIMIT
        (thread,) = [t for t in threading.enumerate() if t.name == "mlflow"]
    thread.join(PATIENCE)  # the server is gone, and it gives up by itself
    assert not thread.is_alive()


@pytest.fixture
def server(results: Path, monkeypatch: pytest.MonkeyPatch):
    """A server that is not started yet."""
    server = MlflowServer(free_port(), results.parent / "server.log")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    yield server
    server.kill()


def shown_steps(results: Path) -> set[int]:
    return {step for run in runs_of(results, OURS) for step in steps_of(results, run)}


def test_a_server_that_dies_loses_nothing(
    server: MlflowServer, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down before the first step, there in the middle, down at the end, and there again."""
    records = make_records(30)
    write_records(results, OURS, records)
    database = f"sqlite:///{results.parent}/mlflow.db", results.parent / "artifacts"
    warned = pytest.warns(GrpoReplayWarning, match="sync_tracking")
    with warned, training_run(settings_of(OURS), results) as run:
        for record in records[:10]:
            run.step(record)
        server.serve(*database)
        for record in records[10:20]:
            run.step(record)
        wait_for(lambda: shown_steps(results) >= set(range(1, 21)))
        server.kill()
        monkeypatch.setattr(live, "DRAIN_SECONDS", DRAIN_SECONDS)
        started = time.monotonic()
        for record in records[20:]:
            run.step(record)
    assert time.monotonic() - started < LIMIT
    server.serve(*database)
    assert sync_study(STUDY, results)
    (run,) = runs_of(results, OURS)
    assert steps_of(results, run) == list(range(1, 31))
