"""Figures of accuracy: by method, against tau_max, both at once, and its gain over GRPO.

Each function reads a study's folder of results and writes `<stem>.png`, `.svg` and `.pdf`.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from grpo_replay.reporting.figures.canvas import (
    EMPTY_TEXT,
    draw_point,
    error,
    legend_below,
    panels,
    say_empty,
)
from grpo_replay.reporting.figures.curves import condition_lines, heading
from grpo_replay.reporting.labels import BASE, GRPO, OURS, figure_text, method_name, method_style
from grpo_replay.reporting.numbers.chance import chance_percent
from grpo_replay.reporting.numbers.conditions import (
    AgeSeries,
    Condition,
    Varied,
    age_series,
    grpo_of,
    main_conditions,
    rows_of,
    scale_series,
    used_scales,
)
from grpo_replay.reporting.numbers.estimate import DASH, Estimate
from grpo_replay.reporting.numbers.means import METRICS, Metric, mean_number
from grpo_replay.reporting.numbers.significance import SHORT
from grpo_replay.results.scores import read_scores
from grpo_replay.study.config import Study

_METRIC_NAMES = {"avg_at_k": "avg@k", "pass_at_k": "pass@k"}
# Points from the palest to the darkest cell, at least: noise must not look like a finding.
_LEAST_RANGE = 5.0
_CHANCE_LINE = {"color": "#444444", "linestyle": (0, (2, 3)), "linewidth": 1.2}


# --- accuracy by method and scale -----------------------------------------------------------------


def accuracy_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean avg@k and pass@k over the benchmarks by method and scale, with the chance line."""
    scores, scales = read_scores(results), used_scales(study)
    by_scale = {scale: main_conditions(study, scale) for scale in scales}
    shown = [condition for conditions in by_scale.values() for condition in conditions]
    # The same rows at every scale, in the order of the study; what a scale lacks is blank.
    rows = rows_of(study)
    title = heading(study, scores, shown, "Accuracy by method and scale")
    height = 0.9 + 0.28 * len(rows)
    with panels(output_stem, 2, len(scales), 3.0, height, title, sharex="row") as (figure, axes):
        for (row, column), panel in np.ndenumerate(axes):
            metric, scale = METRICS[row], scales[column]
            _accuracy_panel(panel, study, scores, by_scale[scale], rows, metric)
            panel.axvline(_mean_chance(study, metric), label="chance", **_CHANCE_LINE)
            panel.set_xlabel(f"mean {_METRIC_NAMES[metric]} (%)")
            if row == 0:
                panel.set_title(f"scale {scale}")
            if column:
                panel.set_yticklabels([])
            else:
                panel.set_ylabel("method")
        legend_below(figure)


def _accuracy_panel(
    panel: Axes,
    study: Study,
    scores: pd.DataFrame,
    conditions: list[Condition],
    rows: list[tuple[str, Varied]],
    metric: Metric,
) -> None:
    for line in condition_lines(study, conditions):
        number = mean_number(scores, line.condition, metric)
        position = rows.index((line.condition.method, line.condition.varied))
        if number is not None:
            draw_point(panel, number, position, line.style)
        else:
            across = panel.get_yaxis_transform()
            panel.text(0.5, position, "no finished cell", transform=across, **EMPTY_TEXT)
    names = [figure_text(Condition("", *row).name) for row in rows]
    panel.set_yticks(range(len(rows)), names)
    panel.set_ylim(len(rows) - 0.5, -0.5)


def _mean_chance(study: Study, metric: str) -> float:
    chances = [chance_percent(study, b)[SHORT[metric]] for b in study.benchmarks.values()]
    return sum(chances) / len(chances)


# --- accuracy against tau_max ---------------------------------------------------------------------


def tau_max_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean avg@k of `ours` against tau_max with intervals, a panel a scale, GRPO for reference."""
    scores, every = read_scores(results), age_series(study, OURS)
    shown = [condition for series in every for condition in series.conditions]
    title = heading(study, scores, shown, "Accuracy against the age limit of replay")
    with panels(output_stem, 1, max(len(every), 1), 4.2, 3.0, title) as (figure, axes):
        if not every:
            say_empty(axes[0, 0], f"the study has no method {OURS}")
        for panel, series in zip(axes[0], every, strict=False):
            _tau_panel(panel, study, scores, series)
        for panel in axes[0]:
            panel.set_xlabel(figure_text("τ_max (steps)"))
            panel.set_ylabel("mean avg@k (%)")
        legend_below(figure)


def _tau_panel(panel: Axes, study: Study, scores: pd.DataFrame, series: AgeSeries) -> None:
    conditions = series.conditions
    numbers = [mean_number(scores, condition, "avg_at_k") for condition in conditions]
    # Evenly spaced positions: 1, 10, 30, 60 lie too unevenly for a linear axis, and none is zero.
    # A missing age is nan, which breaks the line instead of bridging the gap.
    shown = [number or Estimate(float("nan")) for number in numbers]
    style = method_style(study, OURS)
    _reference_line(panel, study, scores, series.scale)
    if any(numbers):
        panel.errorbar(
            range(len(shown)),
            [number.value for number in shown],
            yerr=_errors(shown),
            color=style.colour,
            marker=style.marker,
            linestyle=style.line,
            linewidth=style.width,
            capsize=4,
            label=method_name(OURS),
        )
    else:
        say_empty(panel)
    further = series.name.removeprefix(method_name(OURS))
    panel.set_title(f"scale {series.scale}{figure_text(further)}")
    panel.set_xticks(range(len(conditions)), [str(c.axes.tau_max) for c in conditions])
    panel.set_xlim(-0.4, len(conditions) - 0.6)


def _errors(numbers: list[Estimate]) -> np.ndarray:
    """Return the (2, N) distances to the ends of the intervals; zero where there is no interval."""
    errors = [error(number) for number in numbers]
    return np.hstack([np.zeros((2, 1)) if e is None else e for e in errors])


def _reference_line(panel: Axes, study: Study, scores: pd.DataFrame, scale: str) -> None:
    grpo = grpo_of(main_conditions(study, scale))
    number = mean_number(scores, grpo, "avg_at_k") if grpo else None
    if number is None:
        return
    style = method_style(study, GRPO)
    name = f"{method_name(GRPO)} (no replay)"
    panel.axhline(number.value, color=style.colour, linestyle=style.line, linewidth=1.6, label=name)
    if number.shown_interval is not None:
        panel.axhspan(*number.shown_interval, color=style.colour, alpha=0.12, linewidth=0)


# --- method against tau_max -----------------------------------------------------------------------


def method_tau_max_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean avg@k of every method at every tau_max, a heat map a scale; absent cells are blank."""
    scores, scales = read_scores(results), used_scales(study)
    every = [series for scale in scales for series in scale_series(study, scale)]
    order = [BASE, *study.methods]
    by_method = sorted(every, key=lambda series: order.index(series.conditions[0].method))
    names = list(dict.fromkeys(series.name for series in by_method))
    shown = [condition for series in every for condition in series.conditions]
    taus = sorted({c.axes.tau_max for c in shown} - {None})
    title = heading(study, scores, shown, "Method against the age limit, mean avg@k (%)")
    size = (0.5 + 0.75 * (1 + len(taus)), 0.7 + 0.5 * len(names))
    with panels(output_stem, 1, len(scales), *size, title, sharey=True) as (_, axes):
        for panel, scale in zip(axes[0], scales, strict=True):
            numbers = {
                (series.name, c.axes.tau_max): mean_number(scores, c, "avg_at_k")
                for series in every
                if series.scale == scale
                for c in series.conditions
            }
            _heat_map(panel, numbers, names, [None, *taus])
            panel.set_title(f"scale {scale}")
            panel.set_xlabel(figure_text("τ_max (steps)"))
            if not any(numbers.values()):
                say_empty(panel)
        axes[0, 0].set_ylabel("method")


def _heat_map(
    panel: Axes,
    numbers: dict[tuple[str, int | None], Estimate | None],
    names: list[str],
    taus: list[int | None],
) -> None:
    values_MT = np.full((len(names), len(taus)), np.nan)
    panel.set_xticks(range(len(taus)), ["no\nreplay" if t is None else str(t) for t in taus])
    panel.set_yticks(range(len(names)), [figure_text(name) for name in names])
    panel.grid(False)
    for (name, tau), number in numbers.items():
        if number is not None:
            values_MT[names.index(name), taus.index(tau)] = number.value
    # Light, so that one colour of text is readable on every cell, and darker for more in grey.
    image = panel.imshow(values_MT, cmap="YlOrBr", aspect="auto")
    image.set_clim(*_clear_limits(values_MT))
    for (name, tau), number in numbers.items():
        text = DASH if number is None else f"{number.value:.1f}"
        panel.text(taus.index(tau), names.index(name), text, ha="center", va="center")


def _clear_limits(values: np.ndarray) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    span = max(high - low, _LEAST_RANGE)
    return low - 0.5 * span, low + 2.0 * span  # the lowest is not white: that is an absent cell
