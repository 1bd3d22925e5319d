"""Which conditions a study compares: method, scale, replay settings, and the cells of each."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from grpo_replay.reporting.labels import BASE, GRPO
from grpo_replay.study.cells import Cell, expand
from grpo_replay.study.config import Study

# The paper's defaults ("The axes of the design space"): shown wherever a table varies another axis.
DEFAULT_TAU_MAX, DEFAULT_REPLAY_RATIO, DEFAULT_ALPHA = 10, 0.5, 0.5


@dataclass(frozen=True)
class Setting:
    """Cells that differ in their seed alone: one row of a table, one line of a figure."""

    scale: str
    method: str
    tau_max: int | None
    replay_ratio: float | None
    alpha: float | None
    cells: tuple[Cell, ...]

    @property
    def distance(self) -> int:
        """How many axes that the method uses differ from the paper's defaults."""
        weighted = self.cells[0].priority != "uniform"
        return (
            (self.tau_max not in (None, DEFAULT_TAU_MAX))
            + (self.replay_ratio not in (None, DEFAULT_REPLAY_RATIO))
            + (weighted and self.alpha not in (None, DEFAULT_ALPHA))
        )

    @property
    def is_default(self) -> bool:
        """Whether every axis that the method uses has the paper's default."""
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
        key = (cell.scale, cell.method, cell.tau_max, cell.replay_ratio, cell.alpha)
        groups.setdefault(key, []).append(cell)
    return [Setting(*key, tuple(cells)) for key, cells in groups.items()]


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


def _other_axes(setting: Setting) -> tuple[float | None, float | None]:
    return setting.replay_ratio, setting.alpha


def finished_cells(scores: pd.DataFrame, setting: Setting) -> list[Cell]:
    """The cells of a setting that have scores, in the order of the study's seeds."""
    present = set(scores["cell"])
    return [cell for cell in setting.cells if cell.cell in present]
