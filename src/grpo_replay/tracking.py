"""MLflow: a view of the results, the only module that imports it. Losing the store loses no result.

One run a cell: it is opened when the cell trains, logs each step in batches, and gets its
evaluation when the cell is scored. A store that fails is reported and never stops a job. The store
is where the variable MLFLOW_TRACKING_URI says; the workflow sets it.
"""

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")

from filelock import FileLock  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import Metric, Param  # noqa: E402

from grpo_replay import provenance  # noqa: E402
from grpo_replay.errors import GrpoReplayWarning  # noqa: E402

FLUSH_SECONDS = 10.0
BATCH = 1000  # the most metrics that one request may hold
PARAMS = 100  # likewise for parameters
SQLITE = "sqlite:///"


class Store:
    """The experiment of a study; tables and experiment are made where they are missing."""

    def __init__(self, study: str) -> None:
        uri = os.environ["MLFLOW_TRACKING_URI"]
        # Processes that meet on a new sqlite file break it for good: one makes it, others wait.
        local = Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None
        with FileLock(f"{local}.lock") if local else nullcontext():
            self.client = MlflowClient(uri)
            found = self.client.get_experiment_by_name(study)
            place = (local.parent / "mlflow-artifacts" / study).as_uri() if local else None
            self.experiment = (
                found.experiment_id
                if found
                else self.client.create_experiment(study, artifact_location=place)
            )

    def run_of(self, cell: str) -> str | None:
        """The id of a cell's run that no later one supersedes."""
        runs = self.client.search_runs([self.experiment], f"tags.cell = '{cell}'")
        return next((r.info.run_id for r in runs if "superseded" not in r.data.tags), None)

    def open_run(self, settings: dict) -> "Run":
        """Start a cell's run; an older one is marked, and ended if its process was killed."""
        cell = settings["cell"]
        if old := self.run_of(cell["cell"]):
            self.client.set_tag(old, "superseded", "true")
            if self.client.get_run(old).info.status == "RUNNING":
                self.client.set_terminated(old, "KILLED")
        tags = {name: cell[name] for name in ("cell", "scale", "method")}
        tags |= {"study": settings["study"], "commit": provenance.commit()}
        tags["hardware"] = provenance.hardware()
        run = self.client.create_run(self.experiment, tags=tags, run_name=cell["cell"])
        params = [Param(name, str(value)) for name, value in _flatten(settings).items()]
        for start in range(0, len(params), PARAMS):
            self.client.log_batch(run.info.run_id, params=params[start : start + PARAMS])
        return Run(self.client, run.info.run_id)


class Run:
    """An MLflow run whose metrics are buffered and flushed every few seconds."""

    def __init__(self, client: MlflowClient, run_id: str) -> None:
        self.client = client
        self.run_id = run_id
        self._metrics: list[Metric] = []
        self._flushed = time.monotonic()

    def resumed(self, records: list[dict]) -> None:
        """Log the steps that an earlier job has done."""
        for record in records:
            self.step(record)

    def step(self, record: dict) -> None:
        """Log a training step's record: its numbers as they are, its histograms bin by bin."""
        now = int(time.time() * 1000)
        for name, value in _flatten(record).items():
            if isinstance(value, int | float) and name != "step":
                self._metrics.append(Metric(name, float(value), now, record["step"]))
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            _quietly(self.flush)
            self._flushed = time.monotonic()  # after it: a store that hangs is not asked at once

    def flush(self) -> None:
        """Send what is buffered."""
        for start in range(0, len(self._metrics), BATCH):
            self.client.log_batch(self.run_id, metrics=self._metrics[start : start + BATCH])
        self._metrics = []


class NoRun:
    """Stands in where the store is out of reach: the job goes on without it."""

    def resumed(self, records: list[dict]) -> None:
        """Drop the records; they are in `metrics.jsonl`."""

    def step(self, record: dict) -> None:
        """Drop the record; it is in `metrics.jsonl`."""


@contextmanager
def training_run(settings: dict) -> Iterator[Run | NoRun]:
    """The run of a cell while it trains. Ends FINISHED, or FAILED where the training raises."""
    run = _quietly(lambda: Store(settings["study"]).open_run(settings))
    if run is None:
        yield NoRun()
        return
    try:
        yield run
    except BaseException:
        _quietly(lambda: run.client.set_terminated(run.run_id, "FAILED"))
        raise
    _quietly(run.flush)
    _quietly(lambda: run.client.set_terminated(run.run_id, "FINISHED"))


def evaluation_metrics(scores: dict) -> dict[str, float]:
    """A cell's `scores.json` as metrics: `eval/<benchmark>/avg_at_<k>` and so on, and means."""
    metrics = {}
    for name, row in scores["benchmarks"].items():
        metrics[f"eval/{name}/avg_at_{row['k']}"] = row["avg_at_k"]
        metrics[f"eval/{name}/pass_at_{row['k']}"] = row["pass_at_k"]
        metrics[f"eval/{name}/mean_length"] = row["mean_length"]
    rows = scores["benchmarks"].values()
    metrics["eval/avg"] = fmean(row["avg_at_k"] for row in rows)
    metrics["eval/pass"] = fmean(row["pass_at_k"] for row in rows)
    return metrics


def log_scores(cell_file: Path, metrics: dict[str, float]) -> None:
    """Add evaluation metrics, and the resolved settings as an artifact, to the run of a cell.

    A base model, which does not train, gets its run here.
    """
    settings = json.loads(cell_file.read_text(encoding="utf-8"))
    now = int(time.time() * 1000)
    values = [Metric(name, float(value), now, 0) for name, value in metrics.items()]

    def log() -> None:
        store = Store(settings["study"])
        run_id = store.run_of(settings["cell"]["cell"]) or store.open_run(settings).run_id
        store.client.log_batch(run_id, metrics=values)
        store.client.log_artifact(run_id, str(cell_file))
        store.client.set_terminated(run_id, "FINISHED")

    _quietly(log)


def log_results(study: str, files: list[Path]) -> None:
    """Keep the study's tables and figures as artifacts of a run of their own."""

    def log() -> None:
        store = Store(study)
        tags = {"study": study, "cell": "results"}
        run_id = store.run_of("results") or (
            store.client.create_run(
                store.experiment, tags=tags, run_name="tables and figures"
            ).info.run_id
        )
        for file in files:
            store.client.log_artifact(run_id, str(file), file.parent.name)
        store.client.set_terminated(run_id, "FINISHED")

    _quietly(log)


def make_store(study: str) -> None:
    """Make the store and the study's experiment."""
    _quietly(lambda: Store(study))


def _quietly(action: Callable[[], Any]) -> Any:
    # Whatever a store may raise (its own errors, those of sqlite, of the network): a view that is
    # out of reach must not cost a training run.
    try:
        return action()
    except Exception as error:
        reason = str(error).partition("\n")[0]
        warnings.warn(
            f"MLflow at {os.environ['MLFLOW_TRACKING_URI']} misses some of this; no result is lost "
            f"({type(error).__name__}: {reason})",
            GrpoReplayWarning,
            stacklevel=2,
        )
        return None


def _flatten(nested: dict, prefix: str = "") -> dict:
    flat = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
