"""What a study costs before it runs: hours by scale and by table, disk, memory of each GPU.

Hours come from the study file until a cell of the scale has run: then from what that took.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from grpo_replay.config import Study
from grpo_replay.grid import Cell, expand
from grpo_replay.plan import duration, is_finished, is_trained, usable_gpus, wall_hours
from grpo_replay.reporting.memory import gigabytes, memory_note, memory_row, parameter_count
from grpo_replay.reporting.paper_tables.shared_cells import tables_of
from grpo_replay.reporting.scores import problem_count
from grpo_replay.reporting.training_metrics import read_records

# A checkpoint holds weights and moments; two are kept, since the newest may be torn.
BYTES_CHECKPOINT = 2 * 12
BYTES_MODEL = 4
# About what the text of a token takes; the files are compressed.
BYTES_TOKEN = 4
# A study without GPUs is thought to have two cores.
CORES = 2


@dataclass(frozen=True)
class CellCost:
    """Hours of a cell's two parts, and how many GPUs training occupies (0: a CPU core)."""

    cell: Cell
    train_hours: float
    evaluate_hours: float
    gpus: int
    trained: bool
    finished: bool

    @property
    def device_hours(self) -> float:
        """GPU-hours, or core-hours of a study without GPUs; sampling occupies one."""
        return self.train_hours * max(self.gpus, 1) + self.evaluate_hours

    @property
    def left(self) -> "CellCost":
        """The same cell with what is still to be done alone."""
        train = 0.0 if self.trained or self.finished else self.train_hours
        evaluate = 0.0 if self.finished else self.evaluate_hours
        return replace(self, train_hours=train, evaluate_hours=evaluate)


def cell_costs(
    study: Study, cells: Iterable[Cell], results: Path, measured: dict[str, float]
) -> list[CellCost]:
    """The cost of every cell, finished or not; `measured` is what `measured_hours` returns."""
    costs = []
    for cell in cells:
        scale = study.scales[cell.scale]
        train = (measured.get(cell.scale) or scale.hours_train) if cell.trained else 0.0
        done = is_trained(study, cell, results), is_finished(study, cell, results)
        costs.append(CellCost(cell, train, scale.hours_evaluate, scale.gpus, *done))
    return costs


def measured_hours(study: Study, results: Path) -> dict[str, float]:
    """Mean hours of the training runs that have ended, from their metrics.jsonl, by scale."""
    hours: dict[str, list[float]] = {}
    for cell in expand(study).values():
        records = read_records(results, cell)  # empty for a base model
        if len(records) == study.training.steps:
            seconds = sum(record["perf/step_seconds"] for record in records.values())
            hours.setdefault(cell.scale, []).append(seconds / 3600)
    return {scale: fmean(values) for scale, values in hours.items()}


def text_bytes(study: Study, cell: Cell) -> int:
    """What a cell's samples and its training rollouts take, were all as long as they may be."""
    training, scale = study.training, study.scales[cell.scale]
    answers = sum(problem_count(b) * b.k for b in study.benchmarks.values())
    tokens = answers * scale.evaluation_max_tokens
    if cell.trained:
        rollouts = training.steps * training.rollouts_per_step
        tokens += rollouts * training.max_completion_tokens
    return tokens * BYTES_TOKEN


def plan_text(study: Study, cells: dict[str, Cell], results: Path, gpus: int) -> str:
    """The whole plan, for the terminal; `gpus` is how many may be used at a time."""
    measured = measured_hours(study, results)
    costs = cell_costs(study, cells.values(), results, measured)
    trained = sum(c.cell.trained for c in costs)
    head = f"Plan of study {study.study}: {trained} trained cells, {len(costs) - trained} untrained"
    usable = usable_gpus(study, cells.values(), gpus)
    workers, unit = (usable, "GPU") if usable else (CORES, "core")
    parts = [
        f"{head}, {sum(c.finished for c in costs)} finished.",
        _table(_scale_rows(study, costs, measured, workers, unit)),
        _table(_table_rows(costs, workers, unit)),
        _table(_disk_and_memory(study, costs)) + memory_note(study),
        "Hours without a mark come from the study file, * from cells of the scale that have run.\n"
        "Narrow with --config only='<glob>'; `--until train_policy` costs the training alone.",
    ]
    return "\n\n".join(parts)


def _scale_rows(
    study: Study, costs: list[CellCost], measured: dict[str, float], workers: int, unit: str
) -> list[list[str]]:
    head = ["scale", "GPUs a run", "cells left", "h a run", f"{unit}-hours left", "all"]
    rows = [[*head, f"wall time on {workers} {unit}s"]]
    for name, scale in study.scales.items():
        own = [c for c in costs if c.cell.scale == name]
        if not own:
            continue
        mark = "*" if name in measured else ""
        rows.append(
            [
                name,
                str(scale.gpus),
                f"{sum(not c.finished for c in own)} of {len(own)}",
                f"{max(c.train_hours for c in own):.2g}{mark}",
                f"{_hours_left(own):,.4g}",
                f"{sum(c.device_hours for c in own):,.4g}",
                _wall_time(own, workers),
            ]
        )
    for name, part in (("total", costs), ("training alone", list(map(_training, costs)))):
        hours = [f"{_hours_left(part):,.4g}", f"{sum(c.device_hours for c in part):,.4g}"]
        rows.append([name, "", "", "", *hours, _wall_time(part, workers)])
    return rows


def _training(cost: CellCost) -> CellCost:
    return replace(cost, evaluate_hours=0.0)


def _hours_left(costs: list[CellCost]) -> float:
    return sum(c.left.device_hours for c in costs)


def _wall_time(costs: list[CellCost], workers: int) -> str:
    """How long what is left takes where so many GPUs (or cores) are."""
    runs = [(c.left.train_hours, c.left.evaluate_hours, c.gpus) for c in costs]
    hours = wall_hours(runs, workers)
    return duration(hours) if hours else "-"


def _table_rows(costs: list[CellCost], workers: int, unit: str) -> list[list[str]]:
    head = ["paper's table", "cells", "cells left", "hours of these alone"]
    rows = [[*head, f"wall time on {workers} {unit}s"]]
    for table in sorted({name for c in costs for name in tables_of(c.cell)}):
        own = [c for c in costs if table in tables_of(c.cell)]
        left = str(sum(not c.finished for c in own))
        rows.append(
            [table, str(len(own)), left, f"{_hours_left(own):,.4g}", _wall_time(own, workers)]
        )
    return rows


def _disk_and_memory(study: Study, costs: list[CellCost]) -> list[list[str]]:
    head = ["scale", "models", "samples and rollouts, at most", "checkpoints of one run"]
    rows = [[*head, "training state on each GPU", "vLLM's weights there", "left of 80 GB"]]
    for name, scale in study.scales.items():
        parameters = parameter_count(scale)
        own = [c.cell for c in costs if c.cell.scale == name]
        if parameters and own:
            rows.append(
                [
                    name,
                    gigabytes(len(own) * parameters * BYTES_MODEL),
                    gigabytes(sum(text_bytes(study, cell) for cell in own)),
                    gigabytes(parameters * BYTES_CHECKPOINT),
                    *memory_row(study, scale, parameters),
                ]
            )
    return rows


def _table(rows: list[list[str]]) -> str:
    """Rows in columns; a table of a head alone is nothing."""
    if len(rows) == 1:
        return "No pretrained model: disk and memory are no concern."
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
