"""MLflow: a view of the results, the only module that imports it. Losing the store loses no result.

One run a cell: it is opened when the cell trains, logs each step in batches, and gets its
evaluation when the cell is scored. A store that fails is reported and never stops a job.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")

from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import Metric, Param, RunTag  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402

from grpo_replay import provenance  # noqa: E402

FLUSH_SECONDS = 10.0
BATCH = 1000  # the most metrics that one request may hold
PARAMS = 100  # likewise for parameters


def make_store(uri: str, study: str, artifacts: Path, output: Path) -> None:
    """Make the store's tables and the study's experiment: once, before jobs run side by side.

    Writes `output`: the uri and the experiment's id.
    """
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(study)
    if experiment is None:
        location = None if uri.startswith("http") else artifacts.resolve().as_uri()
        identifier = client.create_experiment(study, artifact_location=location)
    else:
        identifier = experiment.experiment_id
    output.write_text(json.dumps({"uri": uri, "experiment_id": identifier}), encoding="utf-8")


class Run:
    """An MLflow run whose metrics are buffered and flushed every few seconds."""

    def __init__(self, client: MlflowClient, run_id: str) -> None:
        self.client = client
        self.run_id = run_id
        self._metrics: list[Metric] = []
        self._flushed = time.monotonic()

    def step(self, record: dict) -> None:
        """Log a training step's record: its numbers as they are, its histograms bin by bin."""
        now = int(time.time() * 1000)
        for name, value in _flatten(record).items():
            if isinstance(value, int | float) and name != "step":
                self._metrics.append(Metric(name, float(value), now, record["step"]))
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flushed = time.monotonic()
            _quietly(self.flush)

    def flush(self) -> None:
        """Send what is buffered."""
        for start in range(0, len(self._metrics), BATCH):
            self.client.log_batch(self.run_id, metrics=self._metrics[start : start + BATCH])
        self._metrics = []


class NoRun:
    """Stands in where the store is out of reach: the job goes on without it."""

    def step(self, record: dict) -> None:
        """Drop the record; it is in `metrics.jsonl`."""


@contextmanager
def training_run(store: Path, settings: dict) -> Iterator[Run | NoRun]:
    """The run of a cell while it trains. Ends FINISHED, or FAILED where the training raises."""
    try:
        run = _open(store, settings, "training")
    except MlflowException as error:
        print(f"warning: MLflow is out of reach, the cell trains without it: {error}", flush=True)
        yield NoRun()
        return
    try:
        yield run
    except BaseException:
        _quietly(run.client.set_terminated, run.run_id, "FAILED")
        raise
    _quietly(run.flush)
    _quietly(run.client.set_terminated, run.run_id, "FINISHED")


def evaluation_metrics(scores: dict) -> dict[str, float]:
    """A cell's `scores.json` as metrics: per benchmark `eval/<benchmark>/avg_at_<k>` and so on,
    and their means.
    """
    metrics = {}
    for name, row in scores["benchmarks"].items():
        metrics[f"eval/{name}/avg_at_{row['k']}"] = row["avg_at_k"]
        metrics[f"eval/{name}/pass_at_{row['k']}"] = row["pass_at_k"]
        metrics[f"eval/{name}/mean_length"] = row["mean_length"]
    rows = scores["benchmarks"].values()
    metrics["eval/avg"] = fmean(row["avg_at_k"] for row in rows)
    metrics["eval/pass"] = fmean(row["pass_at_k"] for row in rows)
    return metrics


def log_scores(store: Path, settings: dict, metrics: dict[str, float]) -> None:
    """Add evaluation metrics to the run of a cell; a base model gets its run here."""
    now = int(time.time() * 1000)
    values = [Metric(name, float(value), now, 0) for name, value in metrics.items()]
    cell = settings["cell"]["cell"]

    def log() -> None:
        client, experiment = _client(store)
        run_id = _current(client, experiment, cell) or _open(store, settings, "evaluated").run_id
        client.log_batch(run_id, metrics=values, tags=[RunTag("stage", "evaluated")])
        client.set_terminated(run_id, "FINISHED")

    _quietly(log)


def log_results(store: Path, study: str, files: list[Path]) -> None:
    """Keep the study's tables and figures as artifacts of a run of their own."""

    def log() -> None:
        client, experiment = _client(store)
        found = _current(client, experiment, "results")
        tags = {"study": study, "cell": "results", "mlflow.runName": "tables and figures"}
        run_id = found or client.create_run(experiment, tags=tags).info.run_id
        for file in files:
            client.log_artifact(run_id, str(file), file.parent.name)
        client.set_terminated(run_id, "FINISHED")

    _quietly(log)


def _open(store: Path, settings: dict, stage: str) -> Run:
    client, experiment = _client(store)
    cell = settings["cell"]
    superseded = _current(client, experiment, cell["cell"])
    if superseded:
        client.set_tag(superseded, "superseded", "true")
    tags = {name: cell[name] for name in ("cell", "scale", "method")}
    tags |= {"study": settings["study"], "stage": stage, "commit": provenance.commit()}
    tags["hardware"] = provenance.hardware()
    run = client.create_run(experiment, tags=tags, run_name=cell["cell"])
    params = [Param(name, str(value)) for name, value in _flatten(settings).items()]
    for start in range(0, len(params), PARAMS):
        client.log_batch(run.info.run_id, params=params[start : start + PARAMS])
    return Run(client, run.info.run_id)


def _client(store: Path) -> tuple[MlflowClient, str]:
    place = json.loads(store.read_text(encoding="utf-8"))
    return MlflowClient(place["uri"]), place["experiment_id"]


def _current(client: MlflowClient, experiment: str, cell: str) -> str | None:
    """The id of a cell's run that no later one supersedes."""
    runs = client.search_runs([experiment], filter_string=f"tags.cell = '{cell}'")
    return next((r.info.run_id for r in runs if "superseded" not in r.data.tags), None)


def _quietly(action, *arguments) -> None:
    try:
        action(*arguments)
    except MlflowException as error:
        print(f"warning: MLflow did not take something; no result is lost: {error}", flush=True)


def _flatten(nested: dict, prefix: str = "") -> dict:
    flat = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
