"""Which cells of a study are trained and finished, and what of them is lost."""

from pathlib import Path

from grpo_replay.errors import ConfigError
from grpo_replay.files import read_json
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.study.cells import Cell, config_hash, resolve, select, training_settings
from grpo_replay.study.config import Study


def current_scores(study: Study, cell: Cell, results: Path) -> dict | None:
    """A cell's `scores.json`, if there is one and it belongs to its present configuration."""
    path = CellFiles(results, cell.cell).scores
    if not path.is_file():
        return None
    scores = read_json(path)
    return scores if scores["config_hash"] == config_hash(resolve(study, cell)) else None


def start_model(study: Study, scale: str, results: Path) -> Path:
    """The folder of the model that every method of a scale starts from."""
    files = StudyFiles(results)
    return files.warm_started_model(scale) if study.warm_start else files.base_model(scale)


def is_finished(study: Study, cell: Cell, results: Path) -> bool:
    """Whether a cell has scores that belong to its present configuration."""
    return current_scores(study, cell, results) is not None


def is_trained(study: Study, cell: Cell, results: Path) -> bool:
    """Whether a cell needs no training any more: it has its model, of its present settings."""
    if not cell.trained:
        return True
    files = CellFiles(results, cell.cell)
    settings = files.training_settings
    made = files.model.is_dir() and settings.is_file()
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
    """What cells that are begun promise beside their scores and lack.

    Only these, since Snakemake takes minutes where all files of thousands of cells are named.
    """
    begun = ((c, f) for c in cells.values() if (f := CellFiles(results, c.cell)).folder.is_dir())
    promised = (
        path
        for cell, files in begun
        for path in files.answers(study.benchmarks) + files.training_outputs() * cell.trained
    )
    return [str(path) for path in promised if not path.exists()]
