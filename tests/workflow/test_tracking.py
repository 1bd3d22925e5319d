"""MLflow after a real run: what it shows, and that it is only a view."""

import json
import shutil
import sqlite3
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml
from mlflow import MlflowClient
from mlflow.entities import Run
from repository_copy import Workflow

from grpo_replay.study.file import load_study
from grpo_replay.tracking.store import Store
from grpo_replay.tracking.sync import sync_study

OURS = "s/ours-seed42"
NOWHERE = "http://127.0.0.1:1"


class Shown:
    """What the store of a finished study shows."""

    def __init__(self, workflow: Workflow, store: str = "results/mlflow.db") -> None:
        self.client = MlflowClient(f"sqlite:///{workflow.folder}/{store}")
        experiment = self.client.get_experiment_by_name("tiny")
        self.runs = self.client.search_runs([experiment.experiment_id])
        self.cells = {r.data.tags["cell"]: r for r in self.runs if "cell" in r.data.tags}
        self.parents = {r.info.run_name: r for r in self.runs if r.data.tags["stage"] == "summary"}

    def artifacts(self, run: Run, path: str | None = None) -> set[str]:
        return {a.path for a in self.client.list_artifacts(run.info.run_id, path)}


@pytest.fixture(scope="module")
def shown(finished: Workflow) -> Shown:
    return Shown(finished)


def test_every_cell_is_a_run_below_its_method(finished: Workflow, shown: Shown) -> None:
    cells = set(pd.read_parquet(finished.results / "scores.parquet").cell)
    assert set(shown.cells) == cells
    assert len(shown.runs) == len(cells) + len(shown.parents) + 1
    assert {run.info.status for run in shown.runs} == {"FINISHED"}
    assert set(shown.parents) == {
        *("s/base", "s/grpo", "s/uniform-pool", "s/sigma_g-pool", "s/ours")
    }
    for name, run in shown.cells.items():
        tags = run.data.tags
        assert run.info.run_name == name
        parent = shown.client.get_run(tags["mlflow.parentRunId"])
        assert parent.info.run_name == f"{tags['scale']}/{tags['method']}"
        assert (tags["stage"], tags["status"]) == ("scored", "complete")
        assert tags["commit"] and tags["hardware"] != "unknown"  # no commit: a copy is no checkout
        assert len(tags["config_hash"]) == 64 and tags["tables"]
        assert "environment.txt" in shown.artifacts(run)


def test_a_run_carries_its_cell(finished: Workflow, shown: Shown) -> None:
    run = shown.cells[OURS]
    scores = pd.read_parquet(finished.results / "scores.parquet").query("cell == @OURS")
    assert run.data.metrics["eval/avg"] == pytest.approx(scores.avg_at_k.mean())
    assert "eval/clock3/pass_at_4" in run.data.metrics
    for name in ("reward/mean", "clip_ratio/fresh", "replay/age_histogram/0"):
        history = shown.client.get_metric_history(run.info.run_id, name)
        assert [point.step for point in history] == [1, 2, 3, 4]
    assert "system/cpu_utilization_percentage" in run.data.metrics
    assert run.data.params["training.learning_rate"] == "0.0003"
    assert run.data.params["evaluation.temperature"] == "0.6"
    assert {"table01", "table02"} <= set(run.data.tags["tables"].split(", "))
    inputs = {used.dataset.name: used.dataset.digest for used in run.inputs.dataset_inputs}
    assert set(inputs) == {"training", "clock3", "clock4"} and all(inputs.values())


def test_a_run_keeps_its_files(finished: Workflow, shown: Shown, tmp_path: Path) -> None:
    run = shown.cells[OURS]
    names = {"config.yaml", "environment.txt", "scores.json", "completions.json", "outcomes.json"}
    assert shown.artifacts(run) == names | {"age_histogram.png", "logs"}
    logs = ("train_policy", "sample_answers", "grade_answers")
    assert shown.artifacts(run, "logs") == {f"logs/{name}.log" for name in logs}
    folder = Path(shown.client.download_artifacts(run.info.run_id, "", str(tmp_path)))
    resolved = json.loads((finished.results / "cells" / OURS / "cell.json").read_text())
    assert yaml.safe_load((folder / "config.yaml").read_text()) == resolved
    assert "mlflow==" in (folder / "environment.txt").read_text()
    table = json.loads((folder / "completions.json").read_text())
    table = pd.DataFrame(table["data"], columns=table["columns"])
    assert {*("prompt", "answer", "completion", "correct", "grade_training")} <= set(table.columns)
    assert len(table) == 2 * 6 * 2  # benchmarks, problems, samples
    assert not table.duplicated(["benchmark", "problem_id", "sample_id"]).any()
    assert Path(run.data.tags["model_path"], "model.safetensors").is_file()


def test_parents_and_tables(finished: Workflow, shown: Shown) -> None:
    parent, child = shown.parents["s/ours"], shown.cells[OURS]
    assert parent.data.metrics["eval/avg"] == child.data.metrics["eval/avg"]
    assert parent.data.metrics["seeds"] == 1
    assert "eval/avg_sd" not in parent.data.metrics  # no spread from one seed
    assert "settings/replay.tau_max 1 avg" in parent.data.metrics
    assert shown.artifacts(parent) == {"reward_over_seeds.png"}
    (results,) = [run for run in shown.runs if run.data.tags["stage"] == "results"]
    assert shown.artifacts(results) == {"tables", "figures"}


def content(workflow: Workflow) -> dict[str, list]:
    """Every row of every table of the store."""
    with sqlite3.connect(workflow.folder / "results" / "mlflow.db") as database:
        names = [row[0] for row in database.execute("select name from sqlite_master")]
        tables = {n for n in names if n in ("runs", "metrics", "params", "tags", "latest_metrics")}
        return {
            name: sorted(map(str, database.execute(f"select * from {name}"))) for name in tables
        }


def test_a_second_sync_changes_nothing(finished: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"sqlite:///{finished.folder}/results/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    before, started = content(finished), time.time()
    assert sync_study(load_study(finished.study), finished.results.resolve())
    assert content(finished) == before
    artifacts = (finished.folder / "results" / "mlflow-artifacts").rglob("*")
    assert not [path for path in artifacts if path.is_file() and path.stat().st_mtime > started]


def metrics_of(finished: Workflow) -> list[str]:
    return (finished.results / "cells" / OURS / "train" / "metrics.jsonl").read_text().splitlines()


def summary(shown: Shown) -> dict:
    """What a store shows of each run, without ids and times."""
    kept = ("cell", "stage", "status", "commit", "tables", "results_sha256", "training_id")
    return {
        run.info.run_name: (
            run.info.status,
            run.data.metrics,
            run.data.params,
            {name: run.data.tags.get(name) for name in kept},
            shown.artifacts(run),
        )
        for run in shown.runs
    }


def test_a_deleted_store_is_rebuilt(finished: Workflow, shown: Shown) -> None:
    folder, expected = finished.folder / "results", summary(shown)
    (folder / "mlflow.db").rename(folder / "aside.db")
    (folder / "mlflow-artifacts").rename(folder / "aside")
    try:
        done = finished.run("sync_tracking")
        assert done.returncode == 0, done.stdout + done.stderr
        rebuilt = Shown(finished, "./results/mlflow.db")  # MLflow keeps the other one open
        found = summary(rebuilt)
        assert found.keys() == expected.keys()
        for name in expected:
            assert found[name] == expected[name], name
        run = rebuilt.cells[OURS]
        history = rebuilt.client.get_metric_history(run.info.run_id, "reward/mean")
        assert [point.step for point in history] == [1, 2, 3, 4]
        seconds = sum(json.loads(line)["perf/step_seconds"] for line in metrics_of(finished))
        assert run.info.end_time - run.info.start_time == pytest.approx(1000 * seconds, abs=10)
    finally:
        (folder / "mlflow.db").unlink(missing_ok=True)
        shutil.rmtree(folder / "mlflow-artifacts", ignore_errors=True)
        (folder / "aside.db").rename(folder / "mlflow.db")
        (folder / "aside").rename(folder / "mlflow-artifacts")


def test_a_cell_that_is_scored_anew_supersedes_its_run(
    finished: Workflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a copy of the results, which a store of its own shows; models are copied when asked."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    study, results = load_study(finished.study), tmp_path / "tiny"
    shutil.copytree(finished.results, results)
    assert sync_study(study, results)
    path = results / "cells" / OURS / "scores.json"
    scores = json.loads(path.read_text())
    scores["benchmarks"]["clock3"]["avg_at_k"] = 12.5
    path.write_text(json.dumps(scores))
    assert sync_study(study, results, copy_models=True)
    store = Store("tiny", results)
    new, old = store.runs(cell=OURS)
    assert old.data.tags["superseded_by"] == new.info.run_id
    assert new.data.tags["supersedes"] == old.info.run_id
    assert old.info.start_time <= old.info.end_time <= new.info.start_time <= new.info.end_time
    assert new.data.metrics["eval/clock3/avg_at_4"] == 12.5
    history = store.client.get_metric_history(new.info.run_id, "reward/mean")
    assert [point.step for point in history] == [1, 2, 3, 4]
    copies = {a.path for a in store.client.list_artifacts(new.info.run_id, "model")}
    assert "model/model.safetensors" in copies
    (parent,) = store.runs(stage="summary", scale="s", method="ours")
    assert parent.data.metrics["eval/avg"] == new.data.metrics["eval/avg"]


def test_a_store_out_of_reach_is_made_up_for_by_the_next_run(finished: Workflow) -> None:
    (finished.results / "tracked.txt").unlink()
    done = finished.run(MLFLOW_TRACKING_URI=NOWHERE)
    assert done.returncode == 0
    assert "no result is lost" in done.stderr and "sync_tracking" in done.stderr
    assert finished.jobs().keys() >= {"track_results"}
    assert "no result is lost" not in finished.run().stderr
    assert finished.jobs() == {}
    done = finished.run("sync_tracking", MLFLOW_TRACKING_URI=NOWHERE)
    assert done.returncode != 0 and "MLFLOW_TRACKING_URI" in done.stderr
