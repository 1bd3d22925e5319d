"""A cell's run in MLflow while the cell trains.

The training hands its records to a queue and never waits for the store; a thread sends them every
few seconds, tries again where the store is out of reach, and has DRAIN_SECONDS at the end. What is
not sent by then is in the results, and `sync` sends it.
"""

import gc
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor
from mlflow.system_metrics.metrics.gpu_monitor import GPUMonitor
from mlflow.system_metrics.metrics.network_monitor import NetworkMonitor

from grpo_replay.results.step_log import StepLog
from grpo_replay.tracking.cell_results import CellResults, training_id
from grpo_replay.tracking.runs import end_dead_runs, open_training_run
from grpo_replay.tracking.series import (
    SYSTEM_MARK,
    TRAINING_MARK,
    Point,
    missing,
    training_point,
    training_points,
)
from grpo_replay.tracking.store import Store, warn

FLUSH_SECONDS = 10.0
DRAIN_SECONDS = 2.5


class LiveRun:
    """Watches a training run and shows it in MLflow; see the module."""

    def __init__(self, settings: dict, results: CellResults) -> None:
        self.settings = settings
        self.results = results
        self._started = int(time.time() * 1000)
        self._queue: queue.Queue[Point | str] = queue.Queue()
        self._training_id: str | None = None
        self._resumed_from: int | None = None
        self._pending: list[Point] = []
        self._logged: set[int] = set()
        self._machine: _Machine | None = None
        self._store: Store | None = None
        self._run_id: str | None = None
        self._told = False
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)
        self._thread.start()

    def resumed(self, records: list[dict]) -> None:
        """Take over the steps that an earlier job has done."""
        if records:
            self._training_id = training_id(records[0])
            self._resumed_from = records[-1]["step"]
            for point in training_points(records, time.time()):
                self._queue.put(point)

    def step(self, record: dict) -> None:
        """Take a finished step's record."""
        if self._training_id is None:
            self._training_id = training_id(record)
        self._queue.put(training_point(record, int(time.time() * 1000)))

    def close(self, status: str) -> None:
        """End the run; waits no longer than DRAIN_SECONDS."""
        self._queue.put(status)
        self._thread.join(DRAIN_SECONDS)
        if self._thread.is_alive():
            warn(self.results.study_folder, f"it does not take the rest within {DRAIN_SECONDS} s")

    # --- in the thread ---

    def _work(self) -> None:
        self.results.note_origin(self.settings)
        flushed = time.monotonic() - FLUSH_SECONDS  # the first step is shown at once
        status = None
        while status is None:
            try:
                item = self._queue.get(timeout=FLUSH_SECONDS)
            except queue.Empty:
                item = None
            if isinstance(item, str):
                status = item
            elif item is not None:
                self._pending.append(item)
            if status or time.monotonic() - flushed >= FLUSH_SECONDS:
                self._try(status)
                flushed = time.monotonic()  # after it: a store that hangs is not asked at once

    def _try(self, status: str | None) -> None:
        try:
            self._flush(status)
        except Exception as error:  # whatever a store may raise: the training must go on
            self._run_id = None  # what it has is asked again
            if status or not self._told:
                warn(self.results.study_folder, error)
            self._told = True

    def _flush(self, status: str | None) -> None:
        if self._training_id is None and status in (None, "FINISHED"):
            return  # nothing has happened yet
        if self._machine is None:
            self._machine = _Machine(
                self.results.files.system_metrics, self._resumed_from is not None
            )
        machine = [self._machine.point()]
        if self._run_id is None:
            self._open()
            machine = []  # `_open` sends what the results have of it, and that is all
        new = missing(self._pending, self._logged)
        self._store.log(self._run_id, [*new, *machine])
        self._logged |= {point.step for point in new}
        self._pending = []
        if status:
            stage = {"stage": "trained"} if status == "FINISHED" else {}
            run = self._store.client.get_run(self._run_id)
            self._store.set_tags(run, stage | {"status": status.lower()})
            self._store.status(run, status)

    def _open(self) -> None:
        if self._store is None:
            self._store = Store(self.settings["study"], self.results.study_folder)
            end_dead_runs(self._store, self.results.study_folder)
        run = open_training_run(
            self._store, self.results, self.settings, self._training_id or "none", self._started
        )
        if self._resumed_from is not None:
            self._store.set_tags(run, {"resumed_from_step": self._resumed_from})
        run_id = run.info.run_id
        self._logged = self._store.logged_steps(run_id, TRAINING_MARK)
        seen = self._store.logged_steps(run_id, SYSTEM_MARK)
        self._store.log(run_id, missing(self.results.system_points(), seen))
        self._run_id = run_id


class _Machine:
    """MLflow's own system metrics, one point a call; each is kept in the results too."""

    def __init__(self, file: Path, continues: bool) -> None:
        self.log = StepLog(file)
        # What is kept of an earlier job has no line that a crash has torn.
        self.log.keep_until(sys.maxsize if continues else -1)
        self.monitors: list[Any] = [CPUMonitor(), DiskMonitor(), NetworkMonitor()]
        try:
            self.monitors.append(GPUMonitor())
        except Exception as error:  # no GPU, or no library to ask it
            print(f"no GPU is watched: {error}", flush=True)
        self.steps = len(self.log.rows())

    def point(self) -> Point:
        """Ask the machine."""
        metrics = {}
        for monitor in self.monitors:
            monitor.collect_metrics()
            metrics |= {f"system/{n}": float(v) for n, v in monitor.aggregate_metrics().items()}
            monitor.clear_metrics()
        point = Point(self.steps, int(time.time() * 1000), metrics)
        self.steps += 1
        self.log.append([vars(point)])
        return point


@contextmanager
def training_run(settings: dict, results: Path) -> Iterator[LiveRun]:
    """The run of a cell while it trains; `results` is the study's folder.

    Ends FINISHED, FAILED where the training raises, KILLED where the process is asked to end. One
    that is killed without being asked is marked by the next training or sync of the study.
    """
    cell = CellResults(results, settings["cell"]["cell"])
    # What was imported for the training stays: else the store's modules make the garbage collector
    # read all of it while the training waits (0.3 s).
    gc.freeze()
    with cell.alive(), _termination_raises():
        run = LiveRun(settings, cell)
        try:
            yield run
        except BaseException as error:
            killed = isinstance(error, KeyboardInterrupt | _Terminated)
            run.close("KILLED" if killed else "FAILED")
            raise
        run.close("FINISHED")


class _Terminated(SystemExit):
    """SIGTERM came."""


@contextmanager
def _termination_raises() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _Terminated(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
