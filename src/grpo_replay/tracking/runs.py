"""Which run of the store is a cell's: found, made, continued, superseded, or marked as dead."""

import shlex
from pathlib import Path

from mlflow.entities import Run

from grpo_replay.results.layout import StudyFiles
from grpo_replay.study.cells import Cell, config_hash
from grpo_replay.tracking.cell_results import CellResults
from grpo_replay.tracking.series import parameters
from grpo_replay.tracking.store import NOTE, PARENT, Store, at_study

COMPLETE = "results_sha256"  # the tag of a run that shows a scored cell, and of whose files
TRAINING = "training_id"


def open_training_run(
    store: Store, results: CellResults, settings: dict, training: str, start: int
) -> Run:
    """The run of a training that starts (when: ms) or continues; an older one of the cell is
    superseded.
    """
    with store.lock:
        others = current_runs(store, results)
        run = next((r for r in others if _is_open(r, training, settings)), None)
        if run is None:
            run = create_run(store, results, settings, training, start)
        store.status(run, "RUNNING")
        store.set_tags(run, {"status": "running", "stage": "training"})
        for other in others:
            if other.info.run_id != run.info.run_id:
                store.supersede(other, run)
    store.set_parameters(run, parameters(settings))
    return run


def current_runs(store: Store, results: CellResults) -> list[Run]:
    """The runs of a cell that no later one supersedes, the newest first."""
    runs = store.runs(cell=results.name)
    return [run for run in runs if "superseded_by" not in run.data.tags]


def run_of_results(store: Store, results: CellResults, sha256: str | None) -> Run:
    """The run that shows what the results folder holds of a cell, made where there is none.

    `sha256` is the digest of a scored cell, None before: a run that shows other results is
    superseded, one that shows a part of these is continued.
    """
    with store.lock:
        others = current_runs(store, results)
        run = next((r for r in others if sha256 and r.data.tags.get(COMPLETE) == sha256), None)
        training, settings = results.training_id, results.settings
        run = run or next((r for r in others if _is_open(r, training, settings)), None)
        if run is None:
            # A run that the store lost comes back with its time; one that supersedes is newer.
            start = None if others else results.start
            run = create_run(store, results, settings, training, start)
        for other in others:
            if other.info.run_id != run.info.run_id:
                store.supersede(other, run)
    return run


def _is_open(run: Run, training: str, settings: dict) -> bool:
    """Whether a run shows a part of this training and no other settings: those cannot be changed
    in it.
    """
    same = all(run.data.params.get(n, v) == v for n, v in parameters(settings).items())
    return same and run.data.tags.get(TRAINING) == training and COMPLETE not in run.data.tags


def create_run(
    store: Store, results: CellResults, settings: dict, training: str, start: int | None = None
) -> Run:
    """A new run below its parent, named like its cell, which starts now or at `start` (ms)."""
    cell = Cell(**settings["cell"])
    tags = {"cell": cell.cell, "scale": cell.scale, "method": cell.method}
    tags |= {"stage": "training", "status": "running", TRAINING: training}
    tags |= origin_tags(results, settings)
    tags |= {NOTE: note(results, cell, store.study), "model_path": str(model_path(results, cell))}
    tags[PARENT] = store.parent(cell.scale, cell.method)
    return store.create(cell.cell, tags, start)


def origin_tags(results: CellResults, settings: dict) -> dict[str, str]:
    """By what code, on which machine, and under which settings a run is made."""
    tags = {name: results.origin.get(name, "unknown") for name in ("commit", "hardware")}
    resolved = results.resolved
    # While a cell is trained anew, its `cell.json` may still be that of earlier settings.
    if resolved and parameters(settings).items() <= parameters(resolved).items():
        tags["config_hash"] = config_hash(resolved)
    return tags


def model_path(results: CellResults, cell: Cell) -> Path:
    """Where the cell's model lies: it is not copied."""
    if cell.trained:
        return results.files.model.resolve()
    study = StudyFiles(results.study_folder)
    started, base = study.warm_started_model(cell.scale), study.base_model(cell.scale)
    return (started if started.is_dir() else base).resolve()


def note(results: CellResults, cell: Cell, study: str) -> str:
    """What the page of a run says, in Markdown."""
    rule = "train_policy" if cell.trained else "sample_answers"
    command = (
        f"snakemake --cores all --config {at_study(results.study_folder)} "
        f"--forcerun {rule} -- {shlex.quote(f'{results.files.scores.as_posix()}')}"
    )
    return (
        f"Cell `{cell.cell}` of the study `{study}`. Make it again with\n\n```\n{command}\n```\n\n"
        f"Its files are in `{results.files.folder.resolve()}`: they are the results, this run "
        "shows them."
    )


def end_dead_runs(store: Store, study_folder: Path) -> None:
    """Mark the runs of trainings that were killed: RUNNING in the store, and by no process."""
    for run in store.runs(status="running"):
        cell = CellResults(study_folder, run.data.tags.get("cell", ""))
        if run.info.status != "RUNNING" or cell.is_alive:
            continue
        # Asked again, now that no process holds it: it may just have ended in good order.
        run = store.client.get_run(run.info.run_id)
        if run.info.status == "RUNNING":
            store.set_tags(run, {"status": "killed"})
            store.status(run, "KILLED")
