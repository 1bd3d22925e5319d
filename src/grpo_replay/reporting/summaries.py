"""Which cells make one row or line, and its numbers: means over benchmarks, problems and seeds.

Tables and figures share this, so that a number and the point that shows it cannot differ.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd

from grpo_replay import grid, statistics
from grpo_replay.config import Study
from grpo_replay.errors import DataError
from grpo_replay.reporting.formats import Number
from grpo_replay.reporting.labels import BASE, GRPO

Metric = Literal["avg_at_k", "pass_at_k", "mean_length"]
METRICS: tuple[Metric, ...] = ("avg_at_k", "pass_at_k")  # those in percent

# The paper's defaults ("The axes of the design space"): shown wherever a table varies another axis.
DEFAULT_TAU_MAX, DEFAULT_REPLAY_RATIO, DEFAULT_ALPHA = 10, 0.5, 0.5
# Above this the note lists the missing cells in one line with one command.
FEW_MISSING = 4


@dataclass(frozen=True)
class Setting:
    """Cells that differ in their seed alone: one row of a table, one line of a figure."""

    scale: str
    method: str
    tau_max: int | None
    replay_ratio: float | None
    alpha: float | None
    cells: tuple[grid.Cell, ...]

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
    groups: dict[tuple, list[grid.Cell]] = {}
    for cell in grid.expand(study).values():
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


def finished_cells(scores: pd.DataFrame, setting: Setting) -> list[grid.Cell]:
    """The cells of a setting that have scores, in the order of the study's seeds."""
    present = set(scores["cell"])
    return [cell for cell in setting.cells if cell.cell in present]


def benchmark_number(
    scores: pd.DataFrame, setting: Setting, benchmark: str, metric: Metric
) -> Number | None:
    """A setting's score on one benchmark, in percent: mean over problems and finished seeds."""
    rows = scores[scores["benchmark"] == benchmark]
    cells = finished_cells(rows, setting)
    if len(cells) != 1:
        return mean_number(rows, setting, metric)
    # One seed: scoring the cell has made this interval.
    row = rows[rows["cell"] == cells[0].cell].iloc[0]
    interval = statistics.Interval(row[f"{metric}_low"], row[f"{metric}_high"], "bca")
    count = int(row["n_problems"])
    return Number(row[metric], *ends(interval), n=count, remark=no_interval([count]) or "n=1")


def mean_number(scores: pd.DataFrame, setting: Setting, metric: Metric) -> Number | None:
    """The unweighted mean over the benchmarks: percent (Avg and Pass of Table 1), or tokens."""
    cells = finished_cells(scores, setting)
    if not cells:
        return None
    values = problem_values(scores, cells, metric)
    strata_P = values.index.get_level_values("benchmark")
    interval = _stratified(tuple(values), tuple(strata_P), metric in METRICS)
    over_problems = Number(
        benchmark_mean(values),
        *ends(interval),
        n=len(values),
        remark=no_interval(strata_P.value_counts()) or f"n={len(cells)}",
    )
    if len(cells) == 1:
        return over_problems
    means = np.array([benchmark_mean(problem_values(scores, [c], metric)) for c in cells])
    return with_seeds(over_problems, means, 0.0, 100.0 if metric in METRICS else np.inf)


def no_interval(sizes: Iterable[int]) -> str:
    """Why there is no interval over problems, for a benchmark of one: its spread is not known."""
    return "n = 1, no interval" if min(sizes) < 2 else ""


def benchmark_mean(values: pd.Series) -> float:
    """The mean of each benchmark first, then their unweighted mean."""
    return float(values.groupby(level="benchmark").mean().mean())


@lru_cache(maxsize=4096)
def _stratified(
    values: tuple[float, ...], strata: tuple[str, ...], proportion: bool
) -> statistics.Interval:
    # Cached, because tables and figures of one process ask for the same intervals.
    return statistics.stratified_interval(np.array(values), np.array(strata), proportion=proportion)


def with_seeds(number: Number, values_S: np.ndarray, lowest: float, highest: float) -> Number:
    """Add Student's interval over one value a seed, cut to lowest..highest.

    Seeds that all agree get none: it would have no width and promise what no one knows.
    """
    interval = statistics.seed_interval(values_S)
    if interval.method != "student":
        return number
    low, high = max(interval.low, lowest), min(interval.high, highest)
    return replace(number, seeds_low=low, seeds_high=high)


def ends(interval: statistics.Interval) -> tuple[float | None, float | None]:
    """Both ends of an interval, None where there is none."""
    if not np.isfinite([interval.low, interval.high]).all():
        return None, None
    return interval.low, interval.high


def problem_values(scores: pd.DataFrame, cells: list[grid.Cell], metric: Metric) -> pd.Series:
    """One value a problem, mean over the cells, in percent or tokens; the index is (benchmark,
    problem).
    """
    rows = scores[scores["cell"].isin([cell.cell for cell in cells])]
    column = "problem_length" if metric == "mean_length" else "problem_accuracy"
    values_P = np.concatenate([np.asarray(values, dtype=float) for values in rows[column]])
    if metric == "pass_at_k":
        values_P = 100.0 * (values_P > 0)
    index = [
        np.repeat(rows["benchmark"].to_numpy(dtype=object), rows["n_problems"]),
        np.concatenate([np.asarray(ids, dtype=object) for ids in rows["problem_ids"]]),
    ]
    values = pd.Series(values_P, index=pd.MultiIndex.from_arrays(index))
    values.index.names = ["benchmark", "problem"]
    return values.groupby(level=["benchmark", "problem"]).mean()


def same_problems(values: pd.Series, others: pd.Series, setting: Setting, other: Setting) -> None:
    """Refuse to pair two models that were not evaluated on the same problems.

    Raises:
        DataError: naming a cell of each.
    """
    if not values.index.equals(others.index):
        raise DataError(
            f"scores: {setting.cells[0].cell} and {other.cells[0].cell} were not evaluated on the "
            "same problems; delete their samples and evaluate both again"
        )


def missing_notes(
    study: Study, scores: pd.DataFrame, settings: Iterable[Setting], config: str
) -> list[str]:
    """Say which cells are missing and the command that makes them; the same goes to stderr.

    `config` is what follows `--config` (`settings.config_text`).
    """
    present = set(scores["cell"])
    wanted = {cell.cell: cell for setting in settings for cell in setting.cells}
    missing = [cell for name, cell in wanted.items() if name not in present]
    if len(missing) > FEW_MISSING:
        names = ", ".join(cell.cell for cell in missing)
        all_left = [name for name in grid.expand(study) if name not in present]
        command = _command(study, missing, config, narrowed=len(missing) < len(all_left))
        notes = [f"missing: {names}; make them with: `{command}`"]
    else:
        notes = [
            f"missing: {cell.cell}; make it with: `{_command(study, [cell], config)}`"
            for cell in missing
        ]
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)
    return notes


def _command(study: Study, cells: list[grid.Cell], config: str, narrowed: bool = True) -> str:
    # `--config` comes last: what follows it is taken for a setting.
    gpus = max(study.scales[cell.scale].gpus for cell in cells)
    declared = f" --resources gpu={gpus}" if gpus else ""
    only = f" only='{','.join(cell.cell for cell in cells)}'" if narrowed else ""
    return f"snakemake --cores all{declared} --config {config}{only}"
