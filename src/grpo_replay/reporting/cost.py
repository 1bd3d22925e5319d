"""What a study costs before it runs: hours by scale and by table, disk, memory of each GPU.

Hours come from the study file until a cell of the scale has run: then from what that took.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from grpo_replay.config import Study
from grpo_replay.grid import Cell, expand
from grpo_replay.plan import duration, is_finished
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
    """Hours of a cell's two parts, and how many GPUs each occupies (0: a CPU core)."""

    cell: Cell
    train_hours: float
    evaluate_hours: float
    gpus: int
    finished: bool

    @property
    def device_hours(self) -> float:
        """GPU-hours, or core-hours of a study without GPUs; sampling occupies one."""
        return self.train_hours * max(self.gpus, 1) + self.evaluate_hours


def cell_costs(
    study: Study, cells: Iterable[Cell], results: Path, measured: dict[str, float]
) -> list[CellCost]:
    """The cost of every cell, finished or not; `measured` is what `measured_hours` returns."""
    costs = []
    for cell in cells:
        scale = study.scales[cell.scale]
        train = (measured.get(cell.scale) or scale.hours_train) if cell.trained else 0.0
        done = is_finished(study, cell, results)
        costs.append(CellCost(cell, train, scale.hours_evaluate, scale.gpus, done))
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
    parts = [
        f"{head}, {sum(c.finished for c in costs)} finished.",
        _table(_scale_rows(study, costs, measured, gpus)),
        _table(_table_rows(costs, gpus)),
        _table(_disk_and_memory(study, costs)) + memory_note(study),
        "Hours without a mark come from the study file, * from cells of the scale that have run.\n"
        "Narrow with --config only='<glob>'; `--until train_policy` costs the training alone.",
    ]
    return "\n\n".join(parts)


def _scale_rows(
    study: Study, costs: list[CellCost], measured: dict[str, float], gpus: int
) -> list[list[str]]:
    unit = "GPU-hours" if any(scale.gpus for scale in study.scales.values()) else "core-hours"
    rows = [["scale", "GPUs a run", "cells left", "h a run", f"{unit} left", "all", "wall time"]]
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
                _wall_time(own, gpus),
            ]
        )
    training = sum(c.train_hours * max(c.gpus, 1) for c in costs)
    everything = sum(c.device_hours for c in costs)
    total = [f"{_hours_left(costs):,.4g}", f"{everything:,.4g}", _wall_time(costs, gpus)]
    rows.append(["total", "", "", "", *total])
    rows.append(["training alone", "", "", "", "", f"{training:,.4g}", ""])
    return rows


def _hours_left(costs: list[CellCost]) -> float:
    return sum(c.device_hours for c in costs if not c.finished)


def _wall_time(costs: list[CellCost], gpus: int) -> str:
    """How long the unfinished ones take: as many runs at a time as the GPUs (or cores) hold."""
    hours = 0.0
    for cost in costs:
        if not cost.finished:
            at_once = max(1, gpus // cost.gpus) * cost.gpus if cost.gpus else CORES
            hours += cost.device_hours / at_once
    return duration(hours) if hours else "-"


def _table_rows(costs: list[CellCost], gpus: int) -> list[list[str]]:
    rows = [["paper's table", "cells", "cells left", "hours of these alone", "wall time"]]
    for table in sorted({name for c in costs for name in tables_of(c.cell)}):
        own = [c for c in costs if table in tables_of(c.cell)]
        left = str(sum(not c.finished for c in own))
        hours = f"{_hours_left(own):,.4g}"
        rows.append([table, str(len(own)), left, hours, _wall_time(own, gpus)])
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
