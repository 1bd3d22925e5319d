"""Which of the paper's tables print the same trained cell, and with what numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from grpo_replay.reporting.numbers.settings import (
    DEFAULT_ALPHA,
    DEFAULT_REPLAY_RATIO,
    DEFAULT_TAU_MAX,
)
from grpo_replay.reporting.paper import published
from grpo_replay.reporting.paper.design_space import (
    METHOD,
    NO_REPLAY,
    SIGMA_POOL,
    UNIFORM_POOL,
    Point,
)
from grpo_replay.study.cells import Cell

_METHODS = {p.name: p for p in (NO_REPLAY, UNIFORM_POOL, SIGMA_POOL, METHOD)}


@dataclass(frozen=True)
class Printed:
    """Mean accuracy, and pass@k where the table has it, of one cell in one table."""

    table: str
    avg: str
    passed: str | None


@cache
def printed_cells() -> dict[tuple[str, Point], list[Printed]]:
    """What each of Tables 1, 2, 3, 4, 9, 10 and 13 prints, by scale and point."""
    found: dict[tuple[str, Point], list[Printed]] = {}
    for table in ("table01", "table02", "table03", "table04", "table09", "table10", "table13"):
        for line in published.rows(table):
            point = _point(table, line)
            if point is not None:
                avg = line.get("avg") or line["accuracy_percent"]
                printed = Printed(table, avg, line.get("pass"))
                found.setdefault((line.get("scale", "1.7B"), point), []).append(printed)
    return found


def _point(table: str, line: dict[str, str]) -> Point | None:
    """The cell of a line, every axis given; None for an untrained model."""
    if table == "table10":
        return NO_REPLAY if line["reference"] == "grpo" else None
    if table == "table01":
        point = _METHODS[line["method"]]
        axes = (point.composition, point.unit, point.priority)
    elif "composition" in line:
        axes = (line["composition"], "rollout", "abs_advantage")
    elif "priority" in line:
        axes = ("anchored", line["unit"], line["priority"])
    else:
        axes = ("anchored", "rollout", "abs_advantage")
    values = set(_texts(line, ("composition", "method", "priority", "replay_ratio")))
    if values & {"none", "grpo"}:
        return NO_REPLAY
    uniform = axes[2] == "uniform"
    return Point(
        *axes,
        int(line.get("tau_max", DEFAULT_TAU_MAX)),
        float(line.get("replay_ratio", DEFAULT_REPLAY_RATIO)),
        0.0 if uniform else float(line.get("alpha", DEFAULT_ALPHA)),
    )


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
        for (scale, point), tables in cells.items()
        for printed in tables
        if (point.holds(cell) or NO_REPLAY.holds(cell))
        and (scale == cell.scale or cell.scale not in scales)
    }
    if "table01" in found:
        found |= {table for table, points in _ALSO.items() if any(p.holds(cell) for p in points)}
    return sorted(found)
