"""Conditions: what a row of a table and a line of a figure stand for, and the cells of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from grpo_replay.methods.method import Setting
from grpo_replay.reporting.labels import BASE, GRPO, method_name, varied_name
from grpo_replay.study.axes import (
    ALPHA,
    RATIO,
    REPLAY_AXES,
    TAU_MAX,
    Axes,
    axes_of,
    deciding,
    value_of,
)
from grpo_replay.study.cells import Cell, expand
from grpo_replay.study.config import Study

Varied = tuple[tuple[str, Setting], ...]


@dataclass(frozen=True)
class Condition:
    """Cells that differ in their seed alone.

    `varied` holds what the cells vary from their method, as pairs of path and value, sorted. A row
    that the grid lacks is a condition without cells.
    """

    scale: str
    method: str
    varied: Varied = ()
    cells: tuple[Cell, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether it is the method as the study defines it."""
        return not self.varied

    @property
    def name(self) -> str:
        """What people read: the method, and all that is varied from it."""
        return self.name_without()

    def name_without(self, *paths: str) -> str:
        """The same without what stands elsewhere."""
        return ", ".join(filter(None, (method_name(self.method), varied_name(self.but(*paths)))))

    def but(self, *paths: str) -> Varied:
        """What it varies besides some paths."""
        return tuple((path, value) for path, value in self.varied if path not in paths)

    @property
    def axes(self) -> Axes:
        """Where it lies in the paper's design space, as far as that is known without cells."""
        if self.cells:
            return axes_of(self.cells[0])
        named = dict(self.varied)
        return Axes(
            tau_max=named.get(TAU_MAX), replay_ratio=named.get(RATIO), alpha=named.get(ALPHA)
        )

    @property
    def replays(self) -> bool:
        """Whether its method trains on anything besides fresh rollouts."""
        return bool(self.cells) and bool((self.cells[0].parts or {}).get("replay"))

    @property
    def replay_text(self) -> str:
        """The paper's axes of replay in words, empty where the method has none."""
        if self.axes.tau_max is None:
            return ""
        return f"τ_max {self.axes.tau_max}, r {self.axes.replay_ratio:g}, α {self.axes.alpha:g}"

    @property
    def text(self) -> str:
        """The same, and all else that is varied."""
        further = self.but(*REPLAY_AXES) if self.replay_text else self.varied
        return ", ".join(filter(None, (self.replay_text, varied_name(further))))


# What a row of a paper's table leaves open if it does not name it: the paper has one value of
# each, which a smaller study may have otherwise.
FREE = (*REPLAY_AXES, "replay.warmup", "replay.capacity")


@dataclass(frozen=True)
class PartialIdentity:
    """What makes a cell one of a table's row, whatever a study calls its method.

    `named` are the settings that decide, by path; None is the untrained model. What it does not
    name must be at its default, or is free: a method that also selects is no plain GRPO.
    """

    name: str
    named: Varied | None
    free: tuple[str, ...] = FREE

    def holds(self, cell: Cell) -> bool:
        """Whether a cell belongs to the row."""
        if self.named is None or not cell.trained:
            return self.named is None and not cell.trained
        known = dict(self.named)
        if deciding(cell).keys() - known.keys() - set(self.free):
            return False
        return all(value_of(cell, path) == value for path, value in known.items())

    def at(self, further: Mapping[str, Setting]) -> "PartialIdentity":
        """The same row, with more settings named."""
        return replace(self, named=(*(self.named or ()), *further.items()))

    @property
    def on_axes(self) -> Varied:
        """What it names of the paper's axes of replay."""
        return tuple(pair for pair in self.named or () if pair[0] in REPLAY_AXES)


def all_conditions(study: Study) -> list[Condition]:
    """Every condition of a study, base models first, in the order of the study file."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in expand(study).values():
        key = (cell.scale, cell.method, tuple(cell.varied.items()))
        groups.setdefault(key, []).append(cell)
    return [Condition(*key, tuple(cells)) for key, cells in groups.items()]


def used_scales(study: Study) -> list[str]:
    """The scales that have cells, in the order of the study file."""
    return [condition.scale for condition in all_conditions(study) if condition.method == BASE]


def main_conditions(study: Study, scale: str) -> list[Condition]:
    """What stands for each method at a scale, base first: the method as the study defines it (else
    the study's first condition of it), then those that vary from that in no axis of replay: these
    have tables and figures of their own.
    """
    chosen, of_scale = [], _of_scale(study, scale)
    for method in (BASE, *study.methods):
        found = [c for c in of_scale if c.method == method]
        found.sort(key=lambda c: not c.is_default)
        chosen += [c for c in found if _on_axes(c) == _on_axes(found[0])]
    return chosen


def _of_scale(study: Study, scale: str) -> list[Condition]:
    return [c for c in all_conditions(study) if c.scale == scale]


def rows_of(study: Study) -> list[tuple[str, Varied]]:
    """Method and varied settings of the main conditions of all scales, each once: what stands in
    the same row, and looks alike, at every scale.
    """
    every = [c for scale in used_scales(study) for c in main_conditions(study, scale)]
    order = [BASE, *study.methods]
    every.sort(key=lambda c: (order.index(c.method), not c.is_default))
    return list(dict.fromkeys((c.method, c.varied) for c in every))


def _on_axes(condition: Condition) -> Varied:
    return tuple((path, value) for path, value in condition.varied if path in REPLAY_AXES)


def grpo_of(conditions: Iterable[Condition]) -> Condition | None:
    """GRPO among the main conditions of one scale, if it is there."""
    return next((c for c in conditions if c.method == GRPO), None)


@dataclass(frozen=True)
class AgeSeries:
    """Conditions of a method at a scale that differ in tau_max alone, rising in it."""

    scale: str
    name: str  # of the method, and what else is varied
    conditions: tuple[Condition, ...]


def age_series(study: Study, method: str) -> list[AgeSeries]:
    """The series of a method at every scale.

    Those of several ages only; where none has several, all.
    """
    found = [
        series
        for scale in used_scales(study)
        for series in scale_series(study, scale)
        if series.conditions[0].method == method
    ]
    return [series for series in found if len(series.conditions) > 1] or found


def scale_series(study: Study, scale: str) -> list[AgeSeries]:
    """The series of every method at a scale, one around each main condition."""
    of_scale, series = _of_scale(study, scale), {}
    for main in main_conditions(study, scale):
        key = (main.method, main.but(TAU_MAX))
        same = [c for c in of_scale if (c.method, c.but(TAU_MAX)) == key]
        same.sort(key=lambda c: c.axes.tau_max or 0)
        series[key] = AgeSeries(scale, main.name_without(TAU_MAX), tuple(same))
    return list(series.values())


def finished_cells(scores: pd.DataFrame, condition: Condition) -> list[Cell]:
    """The cells of a condition that have scores, in the order of the study's seeds."""
    present = set(scores["cell"])
    return [cell for cell in condition.cells if cell.cell in present]
