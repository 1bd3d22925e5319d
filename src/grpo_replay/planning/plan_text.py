"""What a study costs before it runs: hours by scale and by table, disk, memory of each GPU.

Hours come from the study file until a cell of the scale has run: then from what that took.
"""

from dataclasses import replace
from pathlib import Path

from grpo_replay.planning.cells_by_table import cells_read
from grpo_replay.planning.costs import (
    CellCost,
    ScaleHours,
    cell_costs,
    device_hours,
    duration,
    scale_hours,
    usable_gpus,
    wall_time,
)
from grpo_replay.planning.gpu_memory import (
    GpuMemory,
    gigabytes,
    memory_note,
    memory_row,
    parameter_count,
    rounded,
)
from grpo_replay.results.scores import problem_count
from grpo_replay.study.cells import Cell
from grpo_replay.study.config import Study

# A checkpoint holds weights and moments; two are kept, since the newest may be torn.
BYTES_CHECKPOINT = 2 * 12
BYTES_MODEL = 4
# About what the text of a token takes; the files are compressed.
BYTES_TOKEN = 4
# A study without GPUs is thought to have two cores.
CORES = 2
_LAST = (
    "Left is what is not done; grading and tables are not counted. --config only='<glob>' narrows "
    "all of this.\nA run that needs GPUs starts only where --resources gpu=N declares enough of "
    "them, they are there, and its training fits their memory."
)


def text_bytes(study: Study, cell: Cell) -> int:
    """What a cell's samples and its training rollouts take, were all as long as they may be."""
    training, scale = study.training, study.scales[cell.scale]
    answers = sum(problem_count(b) * b.k for b in study.benchmarks.values())
    tokens = answers * scale.evaluation_max_tokens
    if cell.trained:
        rollouts = training.steps * training.rollouts_per_step
        tokens += rollouts * training.max_completion_tokens
    return tokens * BYTES_TOKEN


def plan_text(
    study: Study, cells: dict[str, Cell], results: Path, gpus: int, memory: GpuMemory
) -> str:
    """The whole plan, for the terminal; `gpus` is how many may be used at a time, each of that
    `memory`.
    """
    hours = scale_hours(study, results)
    costs = cell_costs(study, cells.values(), results, hours)
    trained = sum(c.cell.trained for c in costs)
    head = f"Plan of study {study.study}: {trained} trained cells, {len(costs) - trained} untrained"
    usable = usable_gpus(study, cells.values(), gpus)
    workers, unit = (usable, "GPU") if usable else (CORES, "core")
    parts = [
        f"{head}, {sum(c.finished for c in costs)} finished.",
        _table(_scale_rows(study, costs, hours, workers, unit)) + _hours_note(unit),
        _table(_table_rows(study, costs, workers, unit)),
        _table(_disk_and_memory(study, costs, memory)) + memory_note(study, memory),
        _LAST,
    ]
    return "\n\n".join(parts)


def _hours_note(unit: str) -> str:
    fetched = "; fetching a model occupies no GPU" if unit == "GPU" else ""
    return (
        "\nh to start: once a scale, before its cells (base model, and warm start and choice of "
        f"prompts where a study has them){fetched}.\n"
        "* measured: mean of the scale's cells that ran under the present settings (steps of "
        "training; drawing of answers). Without it: the study file's."
    )


def _scale_rows(
    study: Study,
    costs: list[CellCost],
    hours: dict[str, ScaleHours],
    workers: int,
    unit: str,
) -> list[list[str]]:
    head = ["scale", "GPUs a run", "cells left", "h to start", "h to train", "h to sample"]
    rows = [[*head, f"{unit}-hours left", "in all", f"wall time on {workers} {unit}s"]]
    for name, scale in study.scales.items():
        own = [c for c in costs if c.cell.scale == name]
        if not own:
            continue
        found = hours[name]
        rows.append(
            [
                name,
                str(scale.gpus),
                f"{sum(not c.finished for c in own)} of {len(own)}",
                f"{scale.hours_base:.2g}",
                f"{found.train:.2g}{'*' * found.train_measured}",
                f"{found.evaluate:.2g}{'*' * found.evaluate_measured}",
                *_hours_and_wall_time(own, workers),
            ]
        )
    training = [replace(c, evaluate_hours=0.0) for c in costs if c.cell.trained]
    for name, part in (("total", costs), ("with --until train_policy", training)):
        rows.append([name, *[""] * 5, *_hours_and_wall_time(part, workers)])
    return rows


def _hours_and_wall_time(costs: list[CellCost], workers: int) -> list[str]:
    """What is left and what all takes in device-hours, and how long what is left takes."""
    left = [cost.left for cost in costs]
    wall = wall_time(left, workers)
    hours = [rounded(device_hours(part), 4) for part in (left, costs)]
    return [*hours, duration(wall) if wall else "-"]


def _table_rows(study: Study, costs: list[CellCost], workers: int, unit: str) -> list[list[str]]:
    head = [
        "table or figure",
        "cells it reads",
        "left",
        f"{unit}-hours left for it alone",
        "in all",
    ]
    rows = [[*head, f"wall time on {workers} {unit}s"]]
    for name, read in cells_read(study).items():
        own = [c for c in costs if c.cell.cell in read]
        if own:
            chosen = str(len(own)) if len(own) == len(read) else f"{len(own)} of {len(read)}"
            left = str(sum(not c.finished for c in own))
            rows.append([name, chosen, left, *_hours_and_wall_time(own, workers)])
    return rows


def _disk_and_memory(study: Study, costs: list[CellCost], memory: GpuMemory) -> list[list[str]]:
    head = ["scale", "models", "samples and rollouts, at most", "checkpoints of one run"]
    rows = [[*head, "training state, each GPU", "vLLM's weights"]]
    rows[0].append(f"left of {gigabytes(memory.size)}")
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
                    *memory_row(study, scale, parameters, memory),
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
