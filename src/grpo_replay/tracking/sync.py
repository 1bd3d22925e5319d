"""Make the store equal to what the results folder holds: runs, metrics, parameters, artifacts.

Each part is sent only where it differs, so that a second time changes nothing, and a store that was
deleted comes back whole.
"""

from pathlib import Path

from mlflow.entities import Run

from grpo_replay.errors import DataError, GrpoReplayError
from grpo_replay.reporting.paper.printed_cells import tables_of
from grpo_replay.study.config import Study
from grpo_replay.tracking.artifacts import copy_model, log_artifacts, log_files, log_inputs
from grpo_replay.tracking.cell_results import CellResults, all_cells
from grpo_replay.tracking.runs import COMPLETE, end_dead_runs, origin_tags, run_of_results
from grpo_replay.tracking.series import (
    SYSTEM_MARK,
    TRAINING_MARK,
    evaluation_metrics,
    missing,
    parameters,
)
from grpo_replay.tracking.store import Store, quietly, sync_command, warn
from grpo_replay.tracking.summaries import sync_results, sync_summaries
from grpo_replay.tracking.views import sync_views


def sync_study(study: Study, results: Path, copy_models: bool = False) -> bool:
    """Bring the store up to date; returns whether that went through (if not, it was told why).

    Trainings that run now are left to their own processes.
    """

    unread: list[Exception] = []

    def sync() -> None:
        store = Store(study.study, results)
        end_dead_runs(store, results)
        for cell in all_cells(results):
            try:
                _show_cell(store, cell, copy_models)
            except DataError as error:  # of this cell alone
                warn(results, error)
                unread.append(error)
        sync_results(store, results)
        sync_views(store)
        sync_summaries(store, study, results)

    return quietly(results, sync) and not unread


def _show_cell(store: Store, cell: CellResults, copy_models: bool) -> None:
    if cell.has_begun and not cell.is_alive:
        run = _sync_cell(store, cell)
        if copy_models:
            copy_model(store, run)


def sync_scored_cell(folder: Path) -> None:
    """Complete the run of a cell that has just been scored; `folder` is the cell's."""
    results = CellResults(folder.parents[2], f"{folder.parent.name}/{folder.name}")
    if not results.origin:  # a base model, which no training has noted
        results.note_origin(results.settings)
    study = results.settings["study"]
    quietly(results.study_folder, lambda: _sync_cell(Store(study, results.study_folder), results))


def require_sync(study: Study, results: Path, copy_models: bool) -> None:
    """Bring the store up to date, as `sync_study`.

    Raises:
        GrpoReplayError: where that does not go through, naming what to do.
    """
    if not sync_study(study, results, copy_models):
        raise GrpoReplayError(
            "the store is not up to date (why: the warning above); run "
            f"`{sync_command(results)}` again once it can be reached, or set "
            "MLFLOW_TRACKING_URI to another"
        )


def _sync_cell(store: Store, results: CellResults) -> Run:
    sha256 = results.digest() if results.scores else None
    run = run_of_results(store, results, sha256)
    if sha256 and run.data.tags.get(COMPLETE) == sha256:
        return run
    _sync_steps(store, results, run)
    store.set_parameters(run, parameters(results.settings))
    tables = {"tables": ", ".join(tables_of(results.cell))}
    store.set_tags(run, origin_tags(results, results.settings) | tables)
    log_files(store, run, results)
    if sha256:
        _complete(store, results, run)
        store.set_tags(run, {"stage": "scored", "status": "complete", COMPLETE: sha256})
        store.status(run, "FINISHED", _end(results, run))
    elif results.trained:
        store.set_tags(run, {"stage": "trained", "status": "finished"})
        store.status(run, "FINISHED", _end(results, run))
    elif run.info.status == "RUNNING":  # and no process trains it: it was made just now
        store.set_tags(run, {"status": "killed"})
        store.status(run, "KILLED", _end(results, run))
    return run


def _end(results: CellResults, run: Run) -> int | None:
    """The end of the training where the run has its time too; else None, which is now."""
    return results.end if results.end and results.end >= run.info.start_time else None


def _sync_steps(store: Store, results: CellResults, run: Run) -> None:
    run_id = run.info.run_id
    for mark, points in (
        (TRAINING_MARK, results.points()),
        (SYSTEM_MARK, results.system_points()),
    ):
        if points:
            store.log(run_id, missing(points, store.logged_steps(run_id, mark)))


def _complete(store: Store, results: CellResults, run: Run) -> None:
    step = results.records[-1]["step"] if results.records else 0
    store.set_metrics(run, evaluation_metrics(results.scores), step)
    log_inputs(store, run, results)
    log_artifacts(store, run, results)
