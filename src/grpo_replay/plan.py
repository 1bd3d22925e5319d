"""What a run will make, about how long that takes, and where everything is at the end."""

import math
from collections.abc import Iterable
from pathlib import Path

from grpo_replay.config import Scale, Study
from grpo_replay.errors import ConfigError
from grpo_replay.files import read_json
from grpo_replay.grid import Cell, config_hash, resolve, select, training_settings
from grpo_replay.settings import without_credentials


def current_scores(study: Study, cell: Cell, results: Path) -> dict | None:
    """A cell's `scores.json`, if there is one and it belongs to its present configuration."""
    path = scores_file(cell, results)
    if not path.is_file():
        return None
    scores = read_json(path)
    return scores if scores["config_hash"] == config_hash(resolve(study, cell)) else None


def scores_file(cell: Cell, results: Path) -> Path:
    """Where a cell's scores are; `results` is the study's folder."""
    return results / "cells" / cell.cell / "scores.json"


def is_finished(study: Study, cell: Cell, results: Path) -> bool:
    """Whether a cell has scores that belong to its present configuration."""
    return current_scores(study, cell, results) is not None


def is_trained(study: Study, cell: Cell, results: Path) -> bool:
    """Whether a cell needs no training any more: it has its model, of its present settings."""
    if not cell.trained:
        return True
    folder = results / "cells" / cell.cell
    settings = folder / "train" / "settings.json"
    made = (folder / "model").is_dir() and settings.is_file()
    return made and read_json(settings) == training_settings(study, cell)


def choose(study: Study, cells: dict[str, Cell], only: str, results: Path) -> dict[str, Cell]:
    """The cells that `only` names: a glob over ids, `finished`, or all of them where it is empty.

    Raises:
        ConfigError: where there is no such cell.
    """
    if only != "finished":
        return select(cells, only or None)
    finished = {name: cell for name, cell in cells.items() if is_finished(study, cell, results)}
    if not finished:
        raise ConfigError(f"--config only=finished: no cell of study {study.study} is finished yet")
    return finished


def lost_files(study: Study, cells: dict[str, Cell], results: Path) -> list[str]:
    """What cells that are begun promise beside their scores and lack, below `results`.

    Only these, since Snakemake takes minutes where all files of thousands of cells are named.
    """
    answers = [
        f"{kind}/{name}.parquet" for kind in ("samples", "grades") for name in study.benchmarks
    ]
    answers += ["samples/manifest.json", "cell.json"]
    records = ("metrics.jsonl", "replay.parquet", "rollouts.parquet", "settings.json")
    trained = ["model", *(f"train/{name}" for name in records)]
    promised = (
        f"cells/{name}/{file}"
        for name, cell in cells.items()
        if (results / "cells" / name).is_dir()
        for file in (answers + trained if cell.trained else answers)
    )
    return [file for file in promised if not (results / file).exists()]


def wall_hours(runs: Iterable[tuple[float, float, int]], workers: int) -> float:
    """Hours until all runs are over on so many workers (cores, or GPUs), the widest and longest
    first; of each run the hours of training, of evaluation, and the GPUs that training occupies.

    A run that does not use all workers takes no less time because they are there.
    """
    free = [0.0] * workers
    spans = [(max(gpus, 1) if training else 1, training, later) for training, later, gpus in runs]
    for width, training, evaluation in sorted(spans, reverse=True):
        free.sort()
        trained = free[width - 1] + training
        free[:width] = [trained] * width
        free[0] += evaluation
    return max(free)


def hours_left(study: Study, cells: Iterable[Cell], results: Path, workers: int) -> float:
    """Hours of so many workers for what is not there yet, by the study's figures."""
    unfinished = [c for c in cells if not is_finished(study, c, results)]
    bases = {c.scale for c in unfinished if not (results / "base_models" / c.scale).is_dir()}
    made = [(0.0, study.scales[name].hours_base, 1) for name in bases]
    runs = []
    for cell in unfinished:
        scale = study.scales[cell.scale]
        training = 0.0 if is_trained(study, cell, results) else scale.hours_train
        runs.append((training, scale.hours_evaluate, scale.gpus))
    return wall_hours(made, workers) + wall_hours(runs, workers)


def usable_gpus(study: Study, cells: Iterable[Cell], declared: int) -> int:
    """On how many GPUs these cells are thought to run: those declared, and no fewer than the widest
    run needs; 0 for cells that need none.
    """
    needed = max(study.scales[cell.scale].gpus for cell in cells)
    return max(declared, needed) if needed else 0


def minutes_allowed(hours: float, attempt: int) -> int:
    """The time limit that a cluster gets for a job: twice its estimate and ten minutes, and as much
    again with every attempt.
    """
    return math.ceil(120 * hours + 10) * attempt


def memory_mb(scale: Scale, attempt: int) -> int:
    """The main memory that a cluster gets for a training, as much again with every attempt."""
    return math.ceil(1000 * scale.memory_gb) * attempt


def process_memory_mb(scale: Scale, attempt: int) -> int:
    """The share of that which a job of one process gets: it holds one copy of the model."""
    return math.ceil(memory_mb(scale, attempt) / max(scale.gpus, 1))


def check_gpus(study: Study, wanted: int, declared: int, there: int, config: str) -> None:
    """Refuse a run one of whose jobs needs more GPUs than are declared, or than this machine has;
    and one that declares more than that, whose jobs would share them.

    `config` is what follows `--config` (`settings.config_text`).

    Raises:
        ConfigError: with both numbers and the repair.
    """
    if wanted > declared:
        raise ConfigError(
            f"study {study.study}: a job needs {wanted} GPUs and {declared} are declared: look at "
            f"`snakemake plan --cores 1 --config {config}`, then say --resources gpu={wanted} (or "
            "more) where they are"
        )
    if wanted > there:
        raise ConfigError(
            f"study {study.study}: a job needs {wanted} GPUs and this machine offers {there}: run "
            "it where they are (profiles/slurm, profiles/kubernetes), or narrow it with "
            "--config only='<glob>'"
        )
    if wanted and declared > there:
        raise ConfigError(
            f"study {study.study}: {declared} GPUs are declared and this machine offers {there}: "
            f"say --resources gpu={there}"
        )


def opening(
    study: Study, cells: dict[str, Cell], results: Path, jobs: int, declared_gpus: int
) -> str:
    """One line for the start of a run; `jobs` is how many run at a time."""
    finished = sum(is_finished(study, cell, results) for cell in cells.values())
    gpus = usable_gpus(study, cells.values(), declared_gpus)
    hours = hours_left(study, cells.values(), results, gpus or max(1, jobs))
    where = f"{gpus} GPUs" if gpus else f"{jobs} cores, {jobs} jobs at a time"
    return (
        f"\n{study.title} (study {study.study}): {len(cells)} cells, {finished} of them finished; "
        f"about {duration(hours)} on {where}.\n"
        f"Progress is shown here, each job's own output is in {results}/logs.\n"
    )


def closing(study: Study, cells: dict[str, Cell], results: Path, tracking_uri: str) -> str:
    """Where tables, figures and runs are, as far as there are any, for the end of a run."""
    finished = sum(is_finished(study, cell, results) for cell in cells.values())
    places = {
        "main table": results / "tables" / "main.md",
        "tables": results / "tables",
        "figures": results / "figures",
        "scores": results / "scores.parquet",
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
        f"\nNot everything is done: look above, and in {results}/logs. What is finished stays; a "
        "second run makes the rest.\nTables of what is finished: the same command with "
        "only=finished in its --config\n"
    )


def duration(hours: float) -> str:
    """Hours in words: minutes below two hours."""
    if hours < 2:
        minutes = max(1, round(hours * 60))
        return f"{minutes} minute{'s' * (minutes > 1)}"
    return f"{hours:.0f} hours"
