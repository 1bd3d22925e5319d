"""Which cells a run will make, what of them is there, and what their jobs may take."""

import math
from pathlib import Path

from grpo_replay.config import Scale, Study
from grpo_replay.errors import ConfigError
from grpo_replay.files import read_json
from grpo_replay.grid import Cell, config_hash, resolve, select, training_settings


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


def check_retraining(reasons: dict[str, str], config: str) -> None:
    """Refuse a run that would remove trained models; `reasons` says why, by the model's path, and
    `config` is what follows `--config` (`settings.config_text`).

    Raises:
        ConfigError: with every model, its reason and both repairs.
    """
    if not reasons:
        return
    listed = "\n".join(f"  {model}: {reason}" for model, reason in sorted(reasons.items()))
    raise ConfigError(
        f"trained models: this run would remove {len(reasons)} and train them again:\n{listed}\n"
        f"Nothing has been removed. If that is meant: --config {config} retrain=True. If the "
        'results were only copied or moved, and nothing else has changed: see "Moving results" '
        "in README.md"
    )


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
