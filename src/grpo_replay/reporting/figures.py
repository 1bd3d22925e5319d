"""The figures of a study: each function reads its results and writes `<stem>.png`, `<stem>.svg`.

One call a figure, so that a script of the workflow only unpacks its arguments. `results` is the
study's folder.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from grpo_replay.config import Study
from grpo_replay.reporting.canvas import EMPTY_TEXT, legend_below, panels, say_empty
from grpo_replay.reporting.formats import Number
from grpo_replay.reporting.labels import (
    BASE,
    GRPO,
    OURS,
    Style,
    age_style,
    figure_text,
    method_name,
    method_style,
)
from grpo_replay.reporting.main_table import chance_percent
from grpo_replay.reporting.scores import read_scores
from grpo_replay.reporting.summaries import (
    METRICS,
    Setting,
    age_settings,
    default_settings,
    finished_cells,
    mean_number,
    used_scales,
)
from grpo_replay.reporting.tables import SCORES_FILE
from grpo_replay.reporting.training_metrics import (
    CLIP_FRESH,
    CLIP_REPLAY,
    LENGTH,
    REWARD,
    read_metrics,
    rolling_mean,
)

_METRIC_NAMES = {"avg_at_k": "avg@k", "pass_at_k": "pass@k"}
_CHANCE_KEYS = {"avg_at_k": "avg", "pass_at_k": "pass"}
_CHANCE_LINE = {"color": "#444444", "linestyle": (0, (2, 3)), "linewidth": 1.2}


# --- accuracy by method and scale -----------------------------------------------------------------


def accuracy_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean avg@k and pass@k over the benchmarks by method and scale, with the chance line."""
    scores, scales = read_scores(results / SCORES_FILE), used_scales(study)
    title = f"Accuracy by method and scale\n{study.title}"
    with panels(output_stem, 2, len(scales), 3.0, 2.3, title, sharex="row") as (figure, axes):
        for column, scale in enumerate(scales):
            for row, metric in enumerate(METRICS):
                panel = axes[row, column]
                settings = default_settings(study, scale)
                numbers = [mean_number(scores, setting, metric) for setting in settings]
                _accuracy_panel(panel, study, settings, numbers)
                panel.axvline(_mean_chance(study, metric), label="chance", **_CHANCE_LINE)
                panel.set_xlabel(f"mean {_METRIC_NAMES[metric]} (%)")
                if row == 0:
                    panel.set_title(f"scale {scale}")
                if column:
                    panel.set_yticklabels([])
        for panel in axes[:, 0]:
            panel.set_ylabel("method")
        legend_below(figure, [axes[0, 0]])


def _accuracy_panel(
    panel: Axes, study: Study, settings: list[Setting], numbers: list[Number | None]
) -> None:
    for position, (setting, number) in enumerate(zip(settings, numbers, strict=True)):
        style = method_style(study, setting.method)
        if number is not None:
            panel.errorbar(
                [number.value],
                [position],
                xerr=_error(number),
                color=style.colour,
                marker=style.marker,
                markersize=5,
                capsize=4,
                linewidth=1.6,
            )
        else:
            across = panel.get_yaxis_transform()
            panel.text(0.5, position, "no finished cell", transform=across, **EMPTY_TEXT)
    panel.set_yticks(range(len(settings)), [figure_text(method_name(s.method)) for s in settings])
    panel.set_ylim(len(settings) - 0.5, -0.5)


def _error(number: Number) -> np.ndarray | None:
    """Return the (2, 1) distances to the ends of the interval, None where there is none."""
    interval = number.shown_interval
    if interval is None:
        return None
    low, high = interval
    return np.array([[max(number.value - low, 0)], [max(high - number.value, 0)]])


def _mean_chance(study: Study, metric: str) -> float:
    chances = [chance_percent(b)[_CHANCE_KEYS[metric]] for b in study.benchmarks.values()]
    return sum(chances) / len(chances)


# --- accuracy against tau_max ---------------------------------------------------------------------


def tau_max_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean avg@k of `ours` against tau_max with intervals, a panel a scale, GRPO for reference."""
    scores, by_scale = read_scores(results / SCORES_FILE), age_settings(study, OURS)
    title = f"Accuracy against the age limit of replay\n{study.title}"
    with panels(output_stem, 1, max(len(by_scale), 1), 4.2, 3.0, title) as (figure, axes):
        if not by_scale:
            say_empty(axes[0, 0], f"the study has no method {OURS}")
        for panel, (scale, settings) in zip(axes[0], by_scale.items(), strict=False):
            _tau_panel(panel, study, scores, scale, settings)
        for panel in axes[0]:
            panel.set_xlabel(figure_text("τ_max (steps)"))
            panel.set_ylabel("mean avg@k (%)")
        legend_below(figure, list(axes[0]))


def _tau_panel(
    panel: Axes, study: Study, scores: pd.DataFrame, scale: str, settings: list[Setting]
) -> None:
    numbers = [mean_number(scores, setting, "avg_at_k") for setting in settings]
    # Evenly spaced positions: 1, 10, 30, 60 lie too unevenly for a linear axis, and none is zero.
    # A missing age is nan, which breaks the line instead of bridging the gap.
    shown = [number or Number(float("nan")) for number in numbers]
    style = method_style(study, OURS)
    _reference_line(panel, study, scores, scale)
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
    panel.set_title(f"scale {scale}")
    panel.set_xticks(range(len(settings)), [str(setting.tau_max) for setting in settings])
    panel.set_xlim(-0.4, len(settings) - 0.6)


def _errors(numbers: list[Number]) -> np.ndarray:
    """Return the (2, N) distances to the ends of the intervals; zero where there is no interval."""
    errors = [_error(number) for number in numbers]
    return np.hstack([np.zeros((2, 1)) if error is None else error for error in errors])


def _reference_line(panel: Axes, study: Study, scores: pd.DataFrame, scale: str) -> None:
    grpo = next((s for s in default_settings(study, scale) if s.method == GRPO), None)
    number = mean_number(scores, grpo, "avg_at_k") if grpo else None
    if number is None:
        return
    style = method_style(study, GRPO)
    name = f"{method_name(GRPO)} (no replay)"
    panel.axhline(number.value, color=style.colour, linestyle=style.line, linewidth=1.6, label=name)
    if number.shown_interval is not None:
        panel.axhspan(*number.shown_interval, color=style.colour, alpha=0.12, linewidth=0)


# --- curves over the training steps ---------------------------------------------------------------


def training_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Training reward and response length over the steps (5-step rolling mean), by scale."""
    scores, scales = read_scores(results / SCORES_FILE), used_scales(study)
    title = f"Training reward and response length, 5-step rolling mean\n{study.title}"
    with panels(output_stem, 2, len(scales), 3.2, 2.4, title, sharex="col") as (figure, axes):
        for column, scale in enumerate(scales):
            settings = [s for s in default_settings(study, scale) if s.method != BASE]
            axes[0, column].set_title(f"scale {scale}")
            axes[1, column].set_xlabel("training step")
            for panel, metric in zip(axes[:, column], (REWARD, LENGTH), strict=True):
                drawn = [
                    _draw_curve(
                        panel,
                        _curves(scores, results, setting, metric),
                        method_style(study, setting.method),
                        figure_text(method_name(setting.method)),
                    )
                    for setting in settings
                ]
                if not any(drawn):
                    say_empty(panel)
        axes[0, 0].set_ylabel("mean training reward\n(−1 to 1)")
        axes[1, 0].set_ylabel("mean response length\n(tokens)")
        legend_below(figure, list(axes.flat))


def clip_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Clipped share of the tokens over the steps, fresh and replayed apart, a line a tau_max."""
    scores, by_scale = read_scores(results / SCORES_FILE), age_settings(study, OURS)
    title = f"Clipped fraction of {OURS}, 5-step rolling mean\n{study.title}"
    with panels(output_stem, max(len(by_scale), 1), 2, 4.2, 2.9, title) as (figure, axes):
        for panel in axes.flat:
            panel.set_xlabel("training step")
            panel.set_ylabel("clipped tokens (%)")
        if not by_scale:
            for panel in axes.flat:
                say_empty(panel, f"the study has no method {OURS}")
        for row, (scale, settings) in enumerate(by_scale.items()):
            for panel, metric, part in zip(
                axes[row], (CLIP_FRESH, CLIP_REPLAY), ("fresh", "replayed"), strict=True
            ):
                panel.set_title(f"{part} rollouts, scale {scale}")
                _clip_panel(panel, scores, results, settings, metric)
        legend_below(figure, list(axes.flat))


def _clip_panel(
    panel: Axes, scores: pd.DataFrame, results: Path, settings: list[Setting], metric: str
) -> None:
    drawn = []
    for position, setting in enumerate(settings):
        curves = [100.0 * curve for curve in _curves(scores, results, setting, metric)]
        label = figure_text(f"τ_max = {setting.tau_max}")
        drawn.append(_draw_curve(panel, curves, age_style(position), label))
    if not any(drawn):
        finished = any(finished_cells(scores, setting) for setting in settings)
        say_empty(panel, "no such token was trained on" if finished else "no finished cell")
    else:
        panel.set_ylim(0, 1.1 * panel.dataLim.y1 or 1.0)


def _curves(scores: pd.DataFrame, results: Path, setting: Setting, metric: str) -> list[pd.Series]:
    """Return the smoothed curve of each finished cell (seed) of a setting that has one."""
    frames = [read_metrics(results, cell) for cell in finished_cells(scores, setting)]
    curves = [rolling_mean(frame[metric]) for frame in frames if frame is not None]
    return [curve for curve in curves if len(curve)]


def _draw_curve(panel: Axes, curves: list[pd.Series], style: Style, label: str) -> bool:
    """Draw the mean over seeds, with a band from lowest to highest if several; False if none."""
    if not curves:
        return False
    by_step = pd.concat(curves, axis=1)
    mean = by_step.mean(axis=1)
    every = max(len(mean) // 6, 1)
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.plot(
        mean.index,
        mean.to_numpy(),
        color=style.colour,
        linestyle=style.line,
        linewidth=style.width,
        marker=style.marker,
        markersize=4.5,
        markevery=every,
        label=label,
    )
    if len(curves) > 1:
        low, high = by_step.min(axis=1), by_step.max(axis=1)
        panel.fill_between(mean.index, low, high, color=style.colour, alpha=0.15, linewidth=0)
    return True
