"""Hours of a study's cells: the study file's, until cells of a scale have run under its present
settings; then what those took.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import fmean

from grpo_replay.files import read_appended, read_json
from grpo_replay.models.config import PretrainedModel
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.results.progress import is_finished, is_trained, start_model
from grpo_replay.study.cells import Cell, expand
from grpo_replay.study.config import Scale, Study

# So many runs of a scale are enough for a mean; to read thousands would take minutes.
MEASURED_RUNS = 20


@dataclass(frozen=True)
class ScaleHours:
    """Hours of one run of each part at a scale, and which of them were measured."""

    train: float
    evaluate: float
    train_measured: bool
    evaluate_measured: bool


def scale_hours(study: Study, results: Path) -> dict[str, ScaleHours]:
    """The hours of every scale; measured are the steps of training, and the drawing of answers.

    `results` is the study's folder.
    """
    cells = expand(study).values()
    found = {}
    for name, scale in study.scales.items():
        own = [cell for cell in cells if cell.scale == name]
        trained = (training_seconds(study, cell, results) for cell in own if cell.trained)
        sampled = (sampling_seconds(study, cell, results) for cell in own)
        train, evaluate = _mean_hours(trained), _mean_hours(sampled)
        found[name] = ScaleHours(
            train or scale.hours_train,
            evaluate or scale.hours_evaluate,
            train_measured=train is not None,
            evaluate_measured=evaluate is not None,
        )
    return found


def _mean_hours(seconds: Iterable[float | None]) -> float | None:
    known = list(islice((value for value in seconds if value), MEASURED_RUNS))
    return fmean(known) / 3600 if known else None


def training_seconds(study: Study, cell: Cell, results: Path) -> float | None:
    """What the steps of a cell's training took together; None unless it has ended, and under the
    settings that the study gives now.
    """
    if not is_trained(study, cell, results):
        return None
    records = read_appended(CellFiles(results, cell.cell).metrics)
    return sum(record["perf/step_seconds"] for record in records)


def sampling_seconds(study: Study, cell: Cell, results: Path) -> float | None:
    """What drawing a cell's answers took; None unless it is finished as the study has it now."""
    manifest = CellFiles(results, cell.cell).manifest
    if not manifest.is_file() or not is_finished(study, cell, results):
        return None
    return read_json(manifest).get("seconds")


@dataclass(frozen=True)
class CellCost:
    """Hours of a cell's parts, how many GPUs training occupies (0: a CPU core), and what is done.

    `start_hours` make the model and the problems that all cells of its scale start from: once a
    scale, on `start_devices` GPUs (or cores).
    """

    cell: Cell
    start_hours: float
    train_hours: float
    evaluate_hours: float
    start_devices: int
    gpus: int
    started: bool
    trained: bool
    finished: bool

    @property
    def left(self) -> "CellCost":
        """The same cell with what is still to be done alone."""
        trained = self.trained or self.finished
        started = self.started or self.finished or (self.cell.trained and trained)
        return replace(
            self,
            start_hours=0.0 if started else self.start_hours,
            train_hours=0.0 if trained else self.train_hours,
            evaluate_hours=0.0 if self.finished else self.evaluate_hours,
        )


def cell_costs(
    study: Study, cells: Iterable[Cell], results: Path, hours: dict[str, ScaleHours]
) -> list[CellCost]:
    """The cost of every cell, finished or not; `hours` is what `scale_hours` returns."""
    costs = []
    for cell in cells:
        scale, own = study.scales[cell.scale], hours[cell.scale]
        costs.append(
            CellCost(
                cell,
                scale.hours_base,
                own.train if cell.trained else 0.0,
                own.evaluate,
                _start_devices(study, scale),
                scale.gpus,
                started=_is_started(study, cell.scale, results),
                trained=is_trained(study, cell, results),
                finished=is_finished(study, cell, results),
            )
        )
    return costs


def _start_devices(study: Study, scale: Scale) -> int:
    """A study with GPUs needs none of them for fetching a model, which is often all there is."""
    fetched = isinstance(scale.model, PretrainedModel)
    computed = study.warm_start or study.prompt_selection or not fetched
    return 1 if computed or not scale.gpus else 0


def _is_started(study: Study, scale: str, results: Path) -> bool:
    selected = StudyFiles(results).selected_problems(scale)
    model = start_model(study, scale, results)
    return model.is_dir() and (selected.is_file() or not study.prompt_selection)


def device_hours(costs: Iterable[CellCost]) -> float:
    """GPU-hours, or core-hours of a study without GPUs; sampling occupies one."""
    costs = list(costs)
    starts = _once_a_scale((c.cell.scale, c.start_hours * c.start_devices) for c in costs)
    return sum(starts) + sum(c.train_hours * max(c.gpus, 1) + c.evaluate_hours for c in costs)


def wall_time(costs: Iterable[CellCost], workers: int) -> float:
    """Hours until all is over on so many workers (GPUs, or cores): what the scales start from, then
    the cells.
    """
    costs = list(costs)
    starts = _once_a_scale((c.cell.scale, c.start_hours) for c in costs)
    runs = [(c.train_hours, c.evaluate_hours, c.gpus) for c in costs]
    return wall_hours([(0.0, hours, 1) for hours in starts], workers) + wall_hours(runs, workers)


def _once_a_scale(hours: Iterable[tuple[str, float]]) -> list[float]:
    most: dict[str, float] = {}
    for scale, value in hours:
        most[scale] = max(value, most.get(scale, 0.0))
    return list(most.values())


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


def usable_gpus(study: Study, cells: Iterable[Cell], declared: int) -> int:
    """On how many GPUs these cells are thought to run: those declared, and no fewer than the widest
    run needs; 0 for cells that need none.
    """
    needed = max(study.scales[cell.scale].gpus for cell in cells)
    return max(declared, needed) if needed else 0


def duration(hours: float) -> str:
    """Hours in words: minutes below two hours."""
    if hours < 2:
        minutes = max(1, round(hours * 60))
        return f"{minutes} minute{'s' * (minutes > 1)}"
    return f"{hours:,.0f} hours"
