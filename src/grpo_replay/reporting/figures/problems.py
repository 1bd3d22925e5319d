"""Figures from the outcomes of single problems: pass@k, accuracy against length, gain over GRPO.

Each function reads a study's folder of results and writes `<stem>.png`, `.svg` and `.pdf`.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from grpo_replay.reporting.figures.canvas import draw_point, legend_below, panels, say_empty
from grpo_replay.reporting.figures.curves import condition_lines, heading, plot_line
from grpo_replay.reporting.labels import (
    BASE,
    GRPO,
    figure_text,
    method_name,
    method_style,
    plain_text,
    varied_name,
)
from grpo_replay.reporting.numbers.conditions import (
    Condition,
    all_conditions,
    finished_cells,
    grpo_of,
    main_conditions,
    rows_of,
    used_scales,
)
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.means import benchmark_mean, ends, mean_number
from grpo_replay.reporting.numbers.paired import metric_columns, paired
from grpo_replay.results.scores import read_scores
from grpo_replay.statistics import intervals, metrics
from grpo_replay.study.config import Study

_NAN = float("nan")
# A band has an interval for each k: fewer resamples than the tables, the ends move by about 0.1.
BAND_RESAMPLES = 1_999


# --- pass@k against k -----------------------------------------------------------------------------


def pass_at_k_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean pass@k over benchmarks against k, up to the n samples that all of them have.

    A column a scale; a row for each n, with the benchmarks that have as many samples or more.
    """
    scores, scales = read_scores(results), used_scales(study)
    sizes = sorted({benchmark.k for benchmark in study.benchmarks.values()})
    shown = [s for scale in scales for s in main_conditions(study, scale)]
    title = heading(study, scores, shown, "pass@k against k, 95 % bands over problems")
    with panels(output_stem, len(sizes), len(scales), 3.2, 2.6, title) as (figure, axes):
        for (row, column), panel in np.ndenumerate(axes):
            n, scale = sizes[row], scales[column]
            names = [name for name, b in study.benchmarks.items() if b.k >= n]
            of_row = scores[scores["benchmark"].isin(names)]
            _pass_panel(panel, study, of_row, main_conditions(study, scale), n)
            panel.set_xlabel("k (samples a problem)")
            panel.set_title(f"scale {scale}")
            if column == 0:
                panel.set_ylabel(f"mean pass@k (%)\n{len(names)} benchmarks")
        legend_below(figure)


def _pass_panel(
    panel: Axes, study: Study, scores: pd.DataFrame, conditions: list[Condition], n: int
) -> None:
    for line in condition_lines(study, conditions):
        numbers = pass_numbers(scores, line.condition, n)
        if not numbers:
            continue
        k = range(1, n + 1)
        plot_line(panel, k, [number.value for number in numbers], line)
        low = [_NAN if number.low is None else number.low for number in numbers]
        high = [_NAN if number.high is None else number.high for number in numbers]
        panel.fill_between(k, low, high, color=line.style.colour, alpha=0.1, linewidth=0)
    if not panel.has_data():
        say_empty(panel)


def pass_numbers(scores: pd.DataFrame, condition: Condition, n: int) -> list[Estimate]:
    """Mean pass@k in percent over the benchmarks of `scores` for k = 1..n; empty if not finished.

    Mean over seeds on each problem first; the interval is over problems.
    """
    cells = finished_cells(scores, condition)
    if not cells:
        return []
    numbers = []
    for k in range(1, n + 1):
        values = pd.concat([_pass_values(scores, cell.cell, k) for cell in cells])
        values = values.groupby(level=["benchmark", "problem"]).mean()
        benchmarks_P = values.index.get_level_values("benchmark")
        interval = intervals.stratified_interval(values, benchmarks_P, resamples=BAND_RESAMPLES)
        numbers.append(Estimate(benchmark_mean(values), *ends(interval), n=len(values)))
    return numbers


def _pass_values(scores: pd.DataFrame, cell: str, k: int) -> pd.Series:
    """Return the unbiased estimate of pass@k in percent for each problem of a cell."""
    parts = {}
    for row in scores[scores["cell"] == cell].itertuples():
        # A problem's accuracy is a share of n samples, so its count of correct ones is exact.
        counts_P = np.rint(np.asarray(row.problem_accuracy) / 100.0 * row.k).astype(int)
        values_P = [100.0 * metrics.pass_at_k(row.k, count, k) for count in counts_P]
        parts[row.benchmark] = pd.Series(values_P, index=list(row.problem_ids))
    return pd.concat(parts, names=["benchmark", "problem"])


# --- accuracy against length ----------------------------------------------------------------------


def accuracy_length_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean avg@k against mean answer length of every condition, with AES contours against GRPO."""
    scores, scales = read_scores(results), used_scales(study)
    title = "Accuracy against length, contours of AES against GRPO"
    title = heading(study, scores, all_conditions(study), title)
    with panels(output_stem, 1, len(scales), 3.6, 3.4, title) as (figure, axes):
        for panel, scale in zip(axes[0], scales, strict=True):
            conditions = [s for s in all_conditions(study) if s.scale == scale]
            _length_panel(panel, study, scores, conditions)
            panel.set_title(f"scale {scale}")
            panel.set_xlabel("mean answer length (tokens)")
        axes[0, 0].set_ylabel("mean avg@k (%)")
        legend_below(figure)


def _length_panel(
    panel: Axes, study: Study, scores: pd.DataFrame, conditions: list[Condition]
) -> None:
    points = {}
    for condition in conditions:
        accuracy = mean_number(scores, condition, "avg_at_k")
        length = mean_number(scores, condition, "mean_length")
        if accuracy is None or length is None:
            continue
        points[condition] = (accuracy.value, length.value)
        name = figure_text(method_name(condition.method))
        draw_point(panel, length, accuracy, method_style(study, condition.method), name)
    if not points:
        say_empty(panel)
        return
    _widen(panel)
    _name_points(panel, points)
    grpo = next((point for s, point in points.items() if s.method == GRPO and s.is_default), None)
    if grpo is not None:
        _contours(panel, *grpo)


def _widen(panel: Axes) -> None:
    """Show at least 5 % around the lengths: where all are alike, noise must not fill the panel."""
    low, high = panel.get_xlim()
    middle, half = (low + high) / 2, max((high - low) / 2, 0.05 * (low + high) / 2)
    panel.set_xlim(middle - half, middle + half)


def _name_points(panel: Axes, points: dict[Condition, tuple[float, float]]) -> None:
    """Write beside each point what its condition changes, from below to above without overlap."""
    wide, high = 0.2 * np.ptp(panel.get_xlim()), 0.04 * np.ptp(panel.get_ylim())
    taken: list[tuple[float, float]] = []
    for condition, (accuracy, length) in sorted(points.items(), key=lambda item: item[1]):
        if text := varied_name(condition.varied):
            above = [y + high for x, y in taken if abs(x - length) < wide]
            taken.append((length, max([accuracy, *above])))
            place = {"xytext": (7, 0), "textcoords": "offset points", "va": "center"}
            panel.annotate(figure_text(text), taken[-1], fontsize=7, **place)


def _contours(panel: Axes, accuracy: float, length: float) -> None:
    """Draw lines of equal AES against a reference over the panel; 0 goes through the reference."""
    lengths, accuracies = (
        np.linspace(*limits, 80) for limits in (panel.get_xlim(), panel.get_ylim())
    )
    score = np.vectorize(metrics.accuracy_efficiency_score)
    scores_AL = score(accuracies[:, None], lengths[None, :], accuracy, length)
    contours = panel.contour(
        lengths, accuracies, scores_AL, levels=8, colors="#999999", linewidths=0.7, zorder=0.5
    )
    # Labels stand in one column near the left edge: AES rises with accuracy at any length.
    at = 10
    heights = np.interp(contours.levels, scores_AL[:, at], accuracies, np.nan, np.nan)
    inner = (heights > accuracies[3]) & (heights < accuracies[-4])
    places = [(lengths[at], height) for height in heights[inner]]
    panel.clabel(contours, fontsize=7, manual=places)


# --- gain over GRPO -------------------------------------------------------------------------------


def gain_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Forest plot of the gain in avg@k over GRPO on each benchmark and their mean."""
    scores, scales = read_scores(results), used_scales(study)
    shown = [s for scale in scales for s in main_conditions(study, scale) if s.method != BASE]
    title = heading(study, scores, shown, "Gain over GRPO, paired on the same problems")
    names = [*study.benchmarks, None]
    labels = [*(plain_text(b.title) for b in study.benchmarks.values()), "mean"]
    size = (3.2, 0.6 + max(0.5, 0.11 * len(rows_of(study)[1:])) * len(names))
    with panels(output_stem, 1, len(scales), *size, title, sharey=True) as (figure, axes):
        for panel, scale in zip(axes[0], scales, strict=True):
            _gain_panel(panel, study, scores, main_conditions(study, scale), names)
            panel.set_title(f"scale {scale}")
            panel.set_xlabel("gain in avg@k over GRPO\n(percentage points)")
        axes[0, 0].set_yticks(range(len(names)), labels)
        axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
        axes[0, 0].set_ylabel("benchmark")
        legend_below(figure)


def _gain_panel(
    panel: Axes,
    study: Study,
    scores: pd.DataFrame,
    conditions: list[Condition],
    names: list[str | None],
) -> None:
    grpo = grpo_of(conditions)
    compared = [c for c in conditions if c.method != BASE and c != grpo]
    finished = [s for s in (grpo, *compared) if s and finished_cells(scores, s)]
    if grpo not in finished or len(finished) < 2:
        say_empty(panel, f"no finished cell{' to compare' if finished else ''}")
        return
    panel.axvline(0, color="#444444", linewidth=1.0)
    for position, line in enumerate(condition_lines(study, compared)):
        offset = 0.6 * ((position + 0.5) / len(compared) - 0.5)
        for row, name in enumerate(names):
            number = gain_number(scores, line.condition, grpo, name)
            if number is not None:
                draw_point(panel, number, row + offset, line.style, line.label)


def gain_number(
    scores: pd.DataFrame, condition: Condition, grpo: Condition, benchmark: str | None
) -> Estimate | None:
    """Gain in avg@k, percentage points, on one benchmark or (None) their mean; None if not there.

    The interval is over problems, paired; over the seeds that both have where these are several.
    """
    if benchmark is not None:
        scores = scores[scores["benchmark"] == benchmark]
    pair = paired(scores, metric_columns(scores, "avg_at_k"), [condition, grpo])
    return pair and pair.number(intervals.difference_of_means, -100.0, 100.0)
