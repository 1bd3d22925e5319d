"""What a run keeps besides numbers: tables, figures, files, and which problems it saw."""

from pathlib import Path

import pandas as pd
import yaml
from mlflow.entities import Dataset, DatasetInput, InputTag, Run

from grpo_replay.files import file_digest
from grpo_replay.results.grades import verdicts_in
from grpo_replay.tasks.problems import read_problems
from grpo_replay.tracking import pictures
from grpo_replay.tracking.cell_results import CellResults
from grpo_replay.tracking.store import Store

SAMPLED_PROBLEMS, SAMPLES = 10, 2  # of a benchmark in the table of completions
LOGGED_TABLES = "mlflow.loggedArtifacts"  # MLflow's own tag: adding to a table again doubles it


def log_files(store: Store, run: Run, results: CellResults) -> None:
    """What a cell has at every stage: settings, packages, logs; sent where the size differs."""
    client, run_id = store.client, run.info.run_id
    texts = {"config.yaml": yaml.safe_dump(results.settings, sort_keys=False, allow_unicode=True)}
    if packages := results.origin.get("environment"):
        texts["environment.txt"] = "\n".join(packages) + "\n"
    for rule, path in results.logs():
        text = path.read_text(encoding="utf-8", errors="replace")
        texts[f"logs/{rule}.log"] = text or "(empty)\n"
    there = [*client.list_artifacts(run_id), *client.list_artifacts(run_id, "logs")]
    sizes = {artifact.path: artifact.file_size for artifact in there}
    for name, text in texts.items():
        if sizes.get(name) != len(text.encode()):
            client.log_text(run_id, text, name)


def log_artifacts(store: Store, run: Run, results: CellResults) -> None:
    """What else a scored cell has that is no number; what is there already is written again."""
    client, run_id = store.client, run.info.run_id
    client.log_artifact(run_id, str(results.files.scores))
    _log_table(store, run, completions(results), "completions.json")
    _log_table(store, run, outcomes(results), "outcomes.json")
    if figure := pictures.age_histogram(results.records):
        client.log_figure(run_id, figure, "age_histogram.png")


def copy_model(store: Store, run: Run) -> None:
    """Keep a copy of the run's model, where there is none yet."""
    there = {artifact.path for artifact in store.client.list_artifacts(run.info.run_id)}
    model = Path(run.data.tags["model_path"])
    if "model" not in there and model.is_dir():
        store.client.log_artifacts(run.info.run_id, str(model), "model")


def _log_table(store: Store, run: Run, table: pd.DataFrame, name: str) -> None:
    if name not in run.data.tags.get(LOGGED_TABLES, ""):
        store.client.log_table(run.info.run_id, table, name)


def completions(results: CellResults) -> pd.DataFrame:
    """The first answers to the first problems of each benchmark, with all verdicts."""
    tables = []
    for name, path in results.problem_files().items():
        if name == "training":
            continue
        rows = [(r["id"], r["problem"], r["answer"]) for r in read_problems(path)]
        chosen = pd.DataFrame(rows[:SAMPLED_PROBLEMS], columns=["problem_id", "prompt", "answer"])
        keys = ["problem_id", "sample_id"]
        samples = pd.read_parquet(results.files.samples(name))
        grades = pd.read_parquet(results.files.grades(name))
        table = chosen.merge(samples[[*keys, "text"]]).merge(
            grades[[*keys, *verdicts_in(grades), "n_tokens"]]
        )
        tables.append(table[table.sample_id < SAMPLES].assign(benchmark=name))
    found = pd.concat(tables, ignore_index=True).rename(columns={"text": "completion"})
    columns = ["benchmark", "prompt", "answer", "completion", *verdicts_in(found)]
    return found[[*columns, "n_tokens", "problem_id", "sample_id"]]


def outcomes(results: CellResults) -> pd.DataFrame:
    """One row a problem: its accuracy in percent and the mean tokens of its answers."""
    columns = {"problem_ids": "problem_id", "problem_accuracy": "avg_at_k"}
    columns["problem_length"] = "mean_length"
    return pd.concat(
        [
            pd.DataFrame({new: row[old] for old, new in columns.items()}).assign(benchmark=name)
            for name, row in results.scores["benchmarks"].items()
        ],
        ignore_index=True,
    )


def log_inputs(store: Store, run: Run, results: CellResults) -> None:
    """The problem files as the run's data sets, with their digests."""
    known = {used.dataset.name for used in run.inputs.dataset_inputs} if run.inputs else set()
    inputs = []
    for name, path in results.problem_files().items():
        if name in known:
            continue
        source = f'{{"uri": "{path.resolve().as_uri()}"}}'
        dataset = Dataset(name, file_digest(path)[:32], "local", source)
        context = "training" if name == "training" else "evaluation"
        inputs.append(DatasetInput(dataset, [InputTag("mlflow.data.context", context)]))
    if inputs:
        store.client.log_inputs(run.info.run_id, inputs)
