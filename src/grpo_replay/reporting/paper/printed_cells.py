"""Which of the paper's tables print the same trained cell, and with what numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from grpo_replay.reporting.labels import GRPO
from grpo_replay.reporting.numbers.conditions import PartialIdentity
from grpo_replay.reporting.paper import published
from grpo_replay.reporting.paper.design_space import (
    METHOD,
    NO_REPLAY,
    REPLAYING,
    SIGMA_POOL,
    UNIFORM_POOL,
    replayed,
)
from grpo_replay.study.axes import ALPHA, RATIO, TAU_MAX
from grpo_replay.study.cells import Cell

# "The axes of the design space": what a line has that prints no value of its own.
_DEFAULTS = {TAU_MAX: 10, RATIO: 0.5, ALPHA: 0.5}


@dataclass(frozen=True)
class Printed:
    """Mean accuracy, and pass@k where the table has it, of one cell in one table."""

    table: str
    avg: str
    passed: str | None


@cache
def printed_cells() -> dict[tuple[str, PartialIdentity], list[Printed]]:
    """What each of Tables 1, 2, 3, 4, 9, 10 and 13 prints, by scale and row."""
    found: dict[tuple[str, PartialIdentity], list[Printed]] = {}
    for table in ("table01", "table02", "table03", "table04", "table09", "table10", "table13"):
        for line in published.rows(table):
            row = _row(table, line)
            if row is not None:
                avg = line.get("avg") or line["accuracy_percent"]
                printed = Printed(table, avg, line.get("pass"))
                found.setdefault((line.get("scale", "1.7B"), row), []).append(printed)
    return found


def _row(table: str, line: dict[str, str]) -> PartialIdentity | None:
    """The cell of a line, every axis given; None for an untrained model."""
    if table == "table10":
        return NO_REPLAY if line["reference"] == GRPO else None
    if {"none", GRPO} & set(_texts(line, ("composition", "method", "priority", "replay_ratio"))):
        return NO_REPLAY
    if "composition" in line:
        axes = (line["composition"], "rollout", "abs_advantage")
    elif "priority" in line:
        axes = ("anchored", line["unit"], line["priority"])
    else:
        axes = REPLAYING[line.get("method", METHOD.name)]
    ratio = float(line.get("replay_ratio", _DEFAULTS[RATIO]))
    alpha = 0.0 if axes[2] == "uniform" else float(line.get("alpha", _DEFAULTS[ALPHA]))
    tau_max = int(line.get("tau_max", _DEFAULTS[TAU_MAX]))
    return replayed(*axes, {TAU_MAX: tau_max, RATIO: ratio, ALPHA: alpha})


def _texts(line: dict[str, str], keys: tuple[str, ...]) -> Iterator[str]:
    return (line[key] for key in keys if key in line)


# Tables that print no accuracy of a cell, but are made from it.
_ALSO = {
    "table05": (NO_REPLAY, UNIFORM_POOL, SIGMA_POOL, METHOD),
    "table06": (NO_REPLAY, METHOD),
    "table08": (NO_REPLAY,),
    "table11": (NO_REPLAY,),
    "table12": (NO_REPLAY, METHOD),
}


def tables_of(cell: Cell) -> list[str]:
    """The paper's tables that a cell of any study serves, by its place in the design space.

    At the paper's scales only those that the paper made there; other scales count for all. Tables
    of mean accuracies compare every line with GRPO. An untrained model is the reference of Tables 5
    and 10.
    """
    if not cell.trained:
        return ["table05", "table10"]
    cells = printed_cells()
    scales = {scale for scale, _ in cells}
    found = {
        printed.table
        for (scale, row), tables in cells.items()
        for printed in tables
        if (row.holds(cell) or NO_REPLAY.holds(cell))
        and (scale == cell.scale or cell.scale not in scales)
    }
    if "table01" in found:
        found |= {table for table, rows in _ALSO.items() if any(row.holds(cell) for row in rows)}
    return sorted(found)
