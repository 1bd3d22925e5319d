"""What a run will make, about how long that takes, and where everything is at the end."""

import json
from collections.abc import Iterable
from pathlib import Path

from grpo_replay.config import Study
from grpo_replay.errors import ConfigError
from grpo_replay.grid import Cell, config_hash, resolve


def is_finished(study: Study, cell: Cell, results: Path) -> bool:
    """Whether a cell has scores that belong to its present configuration."""
    path = results / "cells" / cell.cell / "scores.json"
    if not path.is_file():
        return False
    scores = json.loads(path.read_text(encoding="utf-8"))
    return scores["config_hash"] == config_hash(resolve(study, cell))


def hours_left(study: Study, cells: Iterable[Cell], results: Path) -> float:
    """Hours of one worker for what is not there yet, from the study's own figures."""
    unfinished = [c for c in cells if not is_finished(study, c, results)]
    bases = {c.scale for c in unfinished if not (results / "base_models" / c.scale).is_dir()}
    hours = sum(study.scales[scale].hours_base for scale in bases)
    for cell in unfinished:
        scale = study.scales[cell.scale]
        hours += scale.hours_evaluate + (scale.hours_train if cell.trained else 0)
    return hours


def check_gpus(study: Study, cells: dict[str, Cell], gpus: int) -> None:
    """Refuse a study one of whose jobs needs more GPUs than there may be used.

    Raises:
        ConfigError: naming the scale, both numbers and the repair.
    """
    for name in dict.fromkeys(cell.scale for cell in cells.values()):
        wanted = study.scales[name].gpus
        if wanted > gpus:
            raise ConfigError(
                f"scales.{name}.gpus: a run needs {wanted} GPUs and {gpus} are declared: look at "
                f"`snakemake plan --config study={study.study}`, then say --config gpus={wanted} "
                "(or more) where they are"
            )


def opening(study: Study, cells: dict[str, Cell], results: Path, workers: int) -> str:
    """One line for the start of a run."""
    finished = sum(is_finished(study, cell, results) for cell in cells.values())
    hours = hours_left(study, cells.values(), results) / max(1, min(workers, len(cells)))
    return (
        f"\n{study.title} (study {study.study}): {len(cells)} cells, {finished} of them finished; "
        f"about {duration(hours)} on {workers} cores, {workers} jobs at a time.\n"
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
    local = not tracking_uri.startswith("http")
    ui = f"mlflow ui --host 127.0.0.1 --backend-store-uri {tracking_uri}" if local else tracking_uri
    lines.append(f"  {'MLflow':<12}{ui}")
    head = f"\nStudy {study.study}: {finished} of {len(cells)} cells are finished."
    return "\n".join([head, *lines]) + "\n"


def stopped(results: Path) -> str:
    """What to do after a run in which a job failed."""
    return (
        f"\nNot everything is done: look above, and in {results}/logs. What is finished stays; a "
        "second run makes the rest.\nTables of some cells alone: --config only='<glob over ids>'\n"
    )


def duration(hours: float) -> str:
    """Hours in words: minutes below two hours."""
    if hours < 2:
        return f"{max(1, round(hours * 60))} minutes"
    return f"{hours:.0f} hours"
