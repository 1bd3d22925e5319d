"""Rows of the paper's tables as points of its design space, and the settings of a study there.

Found by composition, unit, priority and the replay axes: what a study calls its methods, and how a
cell is named, plays no part.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from grpo_replay.reporting.labels import BASE, GRPO, OURS, method_name
from grpo_replay.reporting.numbers.settings import Setting, all_settings, used_scales
from grpo_replay.reporting.numbers.significance import mark_notes
from grpo_replay.reporting.tables.notes import missing_notes, seed_counts, seed_notes
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import Cell
from grpo_replay.study.config import Study


@dataclass(frozen=True)
class Point:
    """A point of "The axes of the design space"; an axis that is None takes the study's default.

    No composition is the untrained base model, `none` is GRPO.
    """

    composition: str | None
    unit: str | None = None
    priority: str | None = None
    tau_max: int | None = None
    replay_ratio: float | None = None
    alpha: float | None = None

    @property
    def name(self) -> str:
        """The paper's name of the method, else its axes."""
        axes = (self.composition, self.unit, self.priority)
        return _PAPER_NAMES.get(axes) or "-".join(axis for axis in axes if axis)

    def holds(self, cell: Cell) -> bool:
        """Whether a cell lies here; axes that the point leaves open may be anything."""
        axes = axes_of(cell)
        fixed = (self.tau_max, self.replay_ratio, self.alpha)
        same = (self.composition, self.unit, self.priority) == axes[:3] and not axes.others
        return same and all(f is None or f == c for f, c in zip(fixed, axes[3:6], strict=True))


_PAPER_NAMES = {
    (None, None, None): BASE,
    ("none", None, None): GRPO,
    ("pool", "query", "uniform"): "uniform-pool",
    ("pool", "query", "sigma_g"): "sigma_g-pool",
    ("anchored", "rollout", "abs_advantage"): OURS,
}
BASE_MODEL = Point(None)
NO_REPLAY = Point("none")
UNIFORM_POOL = Point("pool", "query", "uniform")
SIGMA_POOL = Point("pool", "query", "sigma_g")
METHOD = Point("anchored", "rollout", "abs_advantage")


@dataclass(frozen=True)
class Source:
    """What a table is made from: a study, its scores and its folder of results.

    `config` is what the command of a note has behind `--config`.
    """

    study: Study
    scores: pd.DataFrame
    results: Path
    config: str

    @cached_property
    def settings(self) -> list[Setting]:
        """Every setting of the study."""
        return all_settings(self.study)

    @cached_property
    def scales(self) -> list[str]:
        """The scales that have cells, in the order of the study."""
        return used_scales(self.study)

    @cached_property
    def ablation_scales(self) -> list[str]:
        """The scales with the most settings: where a study ablates (the paper: 1.7B)."""
        count = {scale: sum(s.scale == scale for s in self.settings) for scale in self.scales}
        return [scale for scale in self.scales if count[scale] == max(count.values())]

    def at(self, scale: str, point: Point) -> Setting:
        """The setting of a scale at a point, that nearest to the paper's defaults where several
        are; one without cells where the study's grid has none: all its numbers are dashes.
        """
        found = [s for s in self.settings if s.scale == scale and point.holds(s.cells[0])]
        if found:
            return min(found, key=lambda s: s.distance)
        axes = (point.tau_max, point.replay_ratio, point.alpha)
        return Setting(scale, point.name, *axes, cells=())

    def marks(self, settings: list[Setting]) -> list[str]:
        """How the marks of a table were tested."""
        return mark_notes(seed_counts(self.scores, settings))

    def seeds(self, settings: list[Setting]) -> list[str]:
        """How many seeds stand behind a table that has no column for them."""
        finished = sorted(set(seed_counts(self.scores, settings)))
        several = [str(count) for count in finished if count > 1]
        note = f"Rows of several seeds: n = {' or '.join(several)} seeds, as far as finished."
        return [*seed_notes(self.scores, settings), *([note] if several else [])]

    def missing(self, settings: list[Setting]) -> list[str]:
        """Notes on the rows without numbers: cells to run, and points that the grid lacks."""
        notes = missing_notes(self.study, self.scores, settings, self.config)
        return notes + self._not_in_grid(settings)

    def _not_in_grid(self, settings: list[Setting]) -> list[str]:
        by_text: dict[str, list[str]] = {}
        for setting in dict.fromkeys(s for s in settings if not s.cells):
            by_text.setdefault(_described(setting), []).append(setting.scale)
        if not by_text:
            return []
        texts = "; ".join(f"{text} at {', '.join(scales)}" for text, scales in by_text.items())
        return [f"The grid of the study {self.study.study} has no cell of: {texts}."]


def _described(setting: Setting) -> str:
    axes = {"τ_max": setting.tau_max, "r": setting.replay_ratio, "α": setting.alpha}
    given = [f"{name} {value:g}" for name, value in axes.items() if value is not None]
    return " ".join([method_name(setting.method), *given])
