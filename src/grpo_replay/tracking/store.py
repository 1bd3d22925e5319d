"""The MLflow store of a study: one experiment, and what is done to its runs.

Every call may raise whatever a store may raise; `quietly` turns that into a warning.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# Its lines with a run's address show the password that a URI holds, in logs that are kept.
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")

import requests  # noqa: E402
from filelock import FileLock  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import LifecycleStage, Metric, Param, Run, RunTag  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.study.settings import (
    STORE_FILE,
    STUDY_VARIABLE,
    TRACKING_VARIABLE,
    config_text,
    without_credentials,
)
from grpo_replay.tracking.series import Point
from grpo_replay.tracking.sqlite_store import ARTIFACTS, follow_move, make_tables

BATCH = 1000  # the most metrics that one request may hold
PARAMS = 100  # likewise for parameters
PROBE_SECONDS = 2.0  # a server that does not answer for so long is out of reach
DATABASE_TRIES = 3  # MLflow's ten take 100 s, in every job
LOCK_SECONDS = 30.0
SQLITE = "sqlite:///"
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"


class Store:
    """The experiment of a study; tables and experiment are made where they are missing.

    `results` is the study's folder: its runs carry its path. A lock beside the store keeps
    processes from making the same thing twice.
    """

    def __init__(self, study: str, results: Path) -> None:
        self.study = study
        self.results = str(results.resolve())  # others may use the same server for theirs
        uri = os.environ[TRACKING_VARIABLE]
        if uri.startswith("http"):
            requests.get(f"{uri.rstrip('/')}/health", timeout=PROBE_SECONDS)
        else:
            _try_briefly()
        file = sqlite_file(uri)
        folder = file.parent if file else Path(self.results).parent
        self.lock = lock_in(folder)
        artifacts = None if uri.startswith("http") else (folder / ARTIFACTS / study)
        if file:
            prepare(file, results.parent)
        with self.lock:
            self.client = MlflowClient(uri)
            self.experiment = self._experiment(study, artifacts and artifacts.as_uri())

    def _experiment(self, study: str, artifacts: str | None) -> str:
        if found := self.client.get_experiment_by_name(study):
            if found.lifecycle_stage == LifecycleStage.DELETED:  # someone did so on the pages
                self.client.restore_experiment(found.experiment_id)
            return found.experiment_id
        try:
            return self.client.create_experiment(study, artifact_location=artifacts)
        except MlflowException:  # another machine was quicker
            found = self.client.get_experiment_by_name(study)
            if found is None:
                raise
            return found.experiment_id

    def runs(self, **tags: str) -> list[Run]:
        """All runs of this results folder that carry these tags, the newest first."""
        tags = {"results": self.results, **tags}
        filters = " and ".join(f"tags.{name} = {_quoted(value)}" for name, value in tags.items())
        found, page = [], None
        while page is None or page:
            page = self.client.search_runs([self.experiment], filters, page_token=page)
            found += page
            page = page.token or ""
        return found

    def create(self, name: str, tags: dict[str, str], start: int | None = None) -> Run:
        """Start a run, now or at a time in milliseconds since 1970."""
        tags = {"results": self.results, "study": self.study, **tags}
        return self.client.create_run(self.experiment, start, tags, name)

    def parent(self, scale: str, method: str) -> str:
        """The run that the cells of a scale and method are children of."""
        tags = {"stage": "summary", "scale": scale, "method": method}
        with self.lock:
            if found := self.runs(**tags):
                return found[0].info.run_id
            run_id = self.create(f"{scale}/{method}", tags).info.run_id
        self.client.set_terminated(run_id)
        return run_id

    def set_tags(self, run: Run, tags: dict[str, Any]) -> None:
        """Set those tags that differ."""
        changed = {n: str(v) for n, v in tags.items() if run.data.tags.get(n) != str(v)}
        if changed:
            self.client.log_batch(run.info.run_id, tags=[RunTag(*tag) for tag in changed.items()])

    def set_parameters(self, run: Run, parameters: dict[str, str]) -> None:
        """Log the parameters that the run does not have: none can be changed."""
        new = [Param(*item) for item in parameters.items() if item[0] not in run.data.params]
        for start in range(0, len(new), PARAMS):
            self.client.log_batch(run.info.run_id, params=new[start : start + PARAMS])

    def set_metrics(self, run: Run, metrics: dict[str, float], step: int) -> None:
        """Log those single metrics whose last value differs."""
        changed = {n: v for n, v in metrics.items() if run.data.metrics.get(n) != v}
        if changed:
            self.log(run.info.run_id, [Point(step, int(time.time() * 1000), changed)])

    def logged_steps(self, run_id: str, mark: str) -> set[int]:
        """The steps at which a run has the metric `mark`."""
        return {metric.step for metric in self.client.get_metric_history(run_id, mark)}

    def log(self, run_id: str, points: Iterable[Point]) -> None:
        """Log points; a step is in the store whole or not at all."""
        for metrics in _batches(points):
            self.client.log_batch(run_id, metrics=metrics)

    def status(self, run: Run, status: str, end: int | None = None) -> None:
        """Set a run's status (RUNNING, FINISHED, FAILED, KILLED) where it differs; it ended now or
        at a time in milliseconds since 1970.
        """
        if run.info.status == status:
            return
        if status == "RUNNING":
            self.client.update_run(run.info.run_id, status=status)
        else:
            self.client.set_terminated(run.info.run_id, status, end)

    def supersede(self, old: Run, new: Run) -> None:
        """Say in both runs that one takes the place of the other."""
        self.set_tags(old, {"superseded_by": new.info.run_id, "status": "superseded"})
        self.set_tags(new, {"supersedes": old.info.run_id})
        if old.info.status == "RUNNING":
            self.status(old, "KILLED")


def sqlite_file(uri: str) -> Path | None:
    """The file of a store that is one; None for others."""
    if not uri.startswith(SQLITE):
        return None
    return Path(uri.removeprefix(SQLITE).partition("?")[0]).resolve()


def lock_in(folder: Path) -> FileLock:
    """The lock of the store in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / "mlflow.lock", timeout=LOCK_SECONDS)


def prepare(file: Path, results: Path) -> None:
    """Make a store's file where it is missing or half-made; where it is the one in the folder of
    results, have it follow that folder. One that a user named elsewhere keeps its addresses.
    """
    with lock_in(file.parent):
        make_tables(file)
        if file == results.resolve() / STORE_FILE:
            follow_move(file)


def _quoted(value: str) -> str:
    """A value in the language of MLflow's filters, which has no escapes."""
    return f'"{value}"' if "'" in value else f"'{value}'"


def _try_briefly() -> None:
    """Have MLflow give up on a database as soon as on a server that is out of reach."""
    from mlflow.store.db import utils  # slow, and of no use where the store is a server

    utils.MAX_RETRY_COUNT = DATABASE_TRIES


def _batches(points: Iterable[Point]) -> Iterable[list[Metric]]:
    batch: list[Metric] = []
    for point in points:
        step = [Metric(n, v, point.time, point.step) for n, v in point.metrics.items()]
        if len(batch) + len(step) > BATCH:
            yield batch
            batch = []
        batch += step
    if batch:
        yield batch


def make_store(study: str, results: Path) -> None:
    """Make the store and the study's experiment."""
    quietly(results, lambda: Store(study, results))


def quietly(results: Path, action: Callable[[], Any]) -> bool:
    """Do something with a study's store; one that fails is told, and costs nothing else.

    Returns whether it was done.
    """
    try:
        action()
    except Exception as error:  # MLflow's own, those of SQL, of the network, of files
        warn(results, error)
        return False
    return True


def at_study(results: Path) -> str:
    """What a person types behind `--config` for a study's folder of results."""
    study = os.environ.get(STUDY_VARIABLE, results.name)
    return config_text({"study": study, "results": results.parent.as_posix()})


def sync_command(results: Path) -> str:
    """What brings a study's store up to date."""
    return f"snakemake --cores 1 sync_tracking --config {at_study(results)}"


def warn(results: Path, error: BaseException | str) -> None:
    """Say that the store misses something, why, and how it is brought up to date."""
    name = "" if isinstance(error, str) else f"{type(error).__name__}: "
    reason = without_credentials(str(error)).partition("\n")[0][:300]
    warnings.warn(
        without_credentials(f"MLflow at {os.environ[TRACKING_VARIABLE]}")
        + f" misses some of this ({name}{reason}); no result is lost. "
        f"Bring it up to date with: {sync_command(results)}",
        GrpoReplayWarning,
        stacklevel=3,
    )
