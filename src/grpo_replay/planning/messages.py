"""What the start and the end of a run say: how much is left to do, and where everything is."""

from pathlib import Path

from grpo_replay.planning.costs import cell_costs, duration, scale_hours, usable_gpus, wall_time
from grpo_replay.results.layout import StudyFiles
from grpo_replay.results.progress import is_finished
from grpo_replay.study.cells import Cell
from grpo_replay.study.config import Study
from grpo_replay.study.settings import without_credentials


def opening(
    study: Study,
    cells: dict[str, Cell],
    results: Path,
    jobs: int,
    declared_gpus: int,
    trainings: int,
) -> str:
    """One line for the start of a run; `jobs` is how many run at a time, `trainings` how many
    cells this run will train.
    """
    costs = cell_costs(study, cells.values(), results, scale_hours(study, results))
    finished = sum(cost.finished for cost in costs)
    gpus = usable_gpus(study, cells.values(), declared_gpus)
    hours = wall_time([cost.left for cost in costs], gpus or max(1, jobs))
    where = f"{gpus} GPUs" if gpus else f"{jobs} cores, {jobs} jobs at a time"
    return (
        f"\n{study.title} (study {study.study}): {len(cells)} cells, {finished} of them finished, "
        f"{trainings} to be trained in this run; "
        f"about {duration(hours)} on {where}.\n"
        f"Progress is shown here, each job's own output is in {StudyFiles(results).logs}.\n"
    )


def closing(study: Study, cells: dict[str, Cell], results: Path, tracking_uri: str) -> str:
    """Where tables, figures and runs are, as far as there are any, for the end of a run."""
    finished = sum(is_finished(study, cell, results) for cell in cells.values())
    files = StudyFiles(results)
    places = {
        "main table": files.tables / "main.md",
        "tables": files.tables,
        "figures": files.figures,
        "scores": files.scores,
    }
    lines = [f"  {name:<12}{path}" for name, path in places.items() if path.exists()]
    store = without_credentials(tracking_uri)
    local = not store.startswith("http")
    ui = f"mlflow ui --host 127.0.0.1 --backend-store-uri {store}" if local else store
    lines.append(f"  {'MLflow':<12}{ui}")
    head = f"\nStudy {study.study}: {finished} of {len(cells)} cells are finished."
    return "\n".join([head, *lines]) + "\n"


def stopped(results: Path) -> str:
    """What to do after a run in which a job failed."""
    return (
        f"\nNot everything is done: look above, and in {StudyFiles(results).logs}. What is "
        "finished stays; a second run makes the rest.\nTables of what is finished: the same "
        "command with only=finished in its --config\n"
    )
