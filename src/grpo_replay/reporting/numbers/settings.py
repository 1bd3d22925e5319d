"""Which conditions a study compares: method, scale, replay settings, and the cells of each."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from grpo_replay.reporting.labels import BASE, GRPO
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import Cell, expand
from grpo_replay.study.config import Study

# The paper's defaults ("The axes of the design space"): shown wherever a table varies another axis.
DEFAULT_TAU_MAX, DEFAULT_REPLAY_RATIO, DEFAULT_ALPHA = 10, 0.5, 0.5
AGE = "replay.tau_max"


@dataclass(frozen=True)
class Setting:
    """Cells that differ in their seed alone: one row of a table, one line of a figure.

    `varied` holds what the cells vary from their method, as pairs of path and value.
    """

    scale: str
    method: str
    tau_max: int | None
    replay_ratio: float | None
    alpha: float | None
    cells: tuple[Cell, ...]
    varied: tuple[tuple[str, object], ...] = ()

    @property
    def distance(self) -> int:
        """How many settings differ from the method as the study defines it."""
        return len(self.varied)

    @property
    def is_default(self) -> bool:
        """Whether it is the method as the study defines it."""
        return self.distance == 0

    @property
    def text(self) -> str:
        """The axes in words, empty where the method has none."""
        if self.tau_max is None:
            return ""
        return f"τ_max {self.tau_max}, r {self.replay_ratio:g}, α {self.alpha:g}"


def all_settings(study: Study) -> list[Setting]:
    """Every setting of a study, base models first, in the order of the study file."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in expand(study).values():
        key = (cell.scale, cell.method, tuple(cell.varied.items()))
        groups.setdefault(key, []).append(cell)
    return [_setting(*key, tuple(cells)) for key, cells in groups.items()]


def _setting(scale: str, method: str, varied: tuple, cells: tuple[Cell, ...]) -> Setting:
    axes = axes_of(cells[0])
    return Setting(scale, method, axes.tau_max, axes.replay_ratio, axes.alpha, cells, varied)


def used_scales(study: Study) -> list[str]:
    """The scales that have cells, in the order of the study file."""
    return [setting.scale for setting in all_settings(study) if setting.method == BASE]


def default_settings(study: Study, scale: str) -> list[Setting]:
    """One setting a method at a scale, base first: the paper's defaults, else the study's first."""
    chosen = []
    for method in (BASE, *study.methods):
        settings = [s for s in all_settings(study) if (s.scale, s.method) == (scale, method)]
        chosen += sorted(settings, key=lambda s: not s.is_default)[:1]
    return chosen


def grpo_of(settings: Iterable[Setting]) -> Setting | None:
    """GRPO among the settings of one scale, if it is there."""
    return next((s for s in settings if s.method == GRPO), None)


def age_settings(study: Study, method: str) -> dict[str, list[Setting]]:
    """The settings of a method by scale, rising in tau_max, all else as in its default setting.

    Scales with several values of tau_max only; where none has several, all that have the method.
    """
    found = {scale: tau_settings(study, scale, method) for scale in used_scales(study)}
    found = {scale: settings for scale, settings in found.items() if settings}
    several = {scale: settings for scale, settings in found.items() if len(settings) > 1}
    return several or found


def tau_settings(study: Study, scale: str, method: str) -> list[Setting]:
    """The settings of a method at a scale, rising in tau_max, all else as in its default one."""
    settings = [s for s in all_settings(study) if (s.scale, s.method) == (scale, method)]
    if not settings:
        return []
    first = min(settings, key=lambda s: not s.is_default)
    same = [s for s in settings if _other_axes(s) == _other_axes(first)]
    return sorted(same, key=lambda s: s.tau_max or 0)


def _other_axes(setting: Setting) -> dict[str, object]:
    return {path: value for path, value in setting.varied if path != AGE}


def finished_cells(scores: pd.DataFrame, setting: Setting) -> list[Cell]:
    """The cells of a setting that have scores, in the order of the study's seeds."""
    present = set(scores["cell"])
    return [cell for cell in setting.cells if cell.cell in present]
