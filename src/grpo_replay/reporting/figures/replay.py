"""Figures of what was replayed: ages, and how often rollouts were used again.

Each function reads a study's folder of results and writes `<stem>.png`, `.svg` and `.pdf`.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from grpo_replay.reporting.figures.canvas import legend_below, panels, say_empty
from grpo_replay.reporting.figures.curves import (
    NOTHING_REPLAYED,
    Group,
    Line,
    empty_text,
    group_conditions,
    heading,
    plot_line,
    replay_groups,
)
from grpo_replay.reporting.labels import figure_text, method_name, method_style
from grpo_replay.reporting.numbers.conditions import (
    Condition,
    all_conditions,
    finished_cells,
    used_scales,
)
from grpo_replay.reporting.numbers.training import step_frames
from grpo_replay.results.scores import read_scores
from grpo_replay.results.trained_rows import age_shares, reuse_counts, trained_rows
from grpo_replay.study.config import Study

_COLUMNS = 4
MOST_REUSED = 20


# --- ages -----------------------------------------------------------------------------------------


def replay_ages_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Histogram of the ages trained on, a panel a condition; the share of fresh rows in words."""
    scores = read_scores(results)
    scales, methods = used_scales(study), list(study.methods)
    conditions = sorted(
        (c for c in all_conditions(study) if c.replays),
        key=lambda c: (scales.index(c.scale), methods.index(c.method), c.axes.tau_max or 0),
    )
    rows = max(-(-len(conditions) // _COLUMNS), 1)
    title = heading(study, scores, conditions, "Ages of the replayed rollouts trained on")
    with panels(output_stem, rows, _COLUMNS, 2.6, 2.0, title) as (_, axes):
        for panel in axes.flat[max(len(conditions), 1) :]:
            panel.set_axis_off()
        if not conditions:
            say_empty(axes[0, 0], empty_text(scores, Group("", ()), ""))
        for panel, condition in zip(axes.flat, conditions, strict=False):
            _age_panel(panel, study, scores, results, condition)
            panel.set_xlabel("age (steps)")
        for row in axes:
            row[0].set_ylabel("rows trained on (%)")


def _age_panel(
    panel: Axes, study: Study, scores: pd.DataFrame, results: Path, condition: Condition
) -> None:
    name = figure_text(method_name(condition.method))
    panel.set_title(f"{condition.scale}, {name}\n{figure_text(condition.text)}", fontsize=8)
    cells = finished_cells(scores, condition)
    shares = age_shares(trained_rows(results, cells))
    replayed = shares[shares.index > 0]
    if replayed.empty:
        say_empty(panel, NOTHING_REPLAYED if cells else "no finished cell")
        return
    colour = method_style(study, condition.method).colour
    panel.bar(replayed.index, replayed, width=1.0, color=colour, edgecolor="white", linewidth=0.4)
    panel.set_xlim(0, (condition.axes.tau_max or replayed.index.max()) + 1)
    panel.set_ylim(0, 1.25 * replayed.max())
    panel.xaxis.get_major_locator().set_params(integer=True)
    fresh = f"age 0 (fresh): {shares.iloc[0]:.0f} %"
    panel.text(0.98, 0.97, fresh, transform=panel.transAxes, ha="right", va="top", fontsize=8)


# --- reuse ----------------------------------------------------------------------------------------


def reuse_figure(study: Study, results: Path, output_stem: Path) -> None:
    """How often rollouts were replayed, how often the most reused were, and at what ages.

    A row a group: the methods at a scale, and `ours` at each tau_max.
    """
    scores, groups = read_scores(results), replay_groups(study)
    shown = [group for group in groups if group.lines] or [Group("", ())]
    title = heading(study, scores, group_conditions(groups), "Reuse of rollouts")
    with panels(output_stem, len(shown), 3, 3.4, 2.3, title) as (figure, axes):
        for row, group in zip(axes, shown, strict=True):
            for line in group.lines:
                _draw_reuse(row, scores, results, line)
            for panel in row:
                panel.set_title(group.title)
                if not panel.has_data():
                    say_empty(panel, empty_text(scores, group, NOTHING_REPLAYED))
            _label_reuse(row)
        legend_below(figure)


def _draw_reuse(row: np.ndarray, scores: pd.DataFrame, results: Path, line: Line) -> None:
    cells = finished_cells(scores, line.condition)
    rows = trained_rows(results, cells)
    counts = reuse_counts(rows)
    survivors = sum(
        frame["survivors/rollouts"].sum()
        for frame in step_frames(scores, results, line.condition).values()
    )
    if counts.empty or not survivors:
        return
    at_least = reused_at_least(counts, survivors)
    plot_line(row[0], at_least.index, at_least, line)
    most = counts.head(MOST_REUSED)
    plot_line(row[1], range(1, len(most) + 1), most, line)
    ages = ages_of(rows, most)
    plot_line(row[2], ages.index, ages, line)


def _label_reuse(row: np.ndarray) -> None:
    row[0].set_xlabel("times reused, at least")
    row[0].set_ylabel("survivors (%)")
    row[1].set_xlabel(f"rank among the {MOST_REUSED} most reused")
    row[1].set_ylabel("times reused")
    row[2].set_xlabel("age (steps)")
    row[2].set_ylabel("their reuses up to\nthat age (%)")
    if row[0].has_data():
        for panel in row:
            panel.set_ylim(0, 1.08 * panel.dataLim.y1)
        row[1].yaxis.get_major_locator().set_params(integer=True)


def reused_at_least(counts: pd.Series, survivors: float) -> pd.Series:
    """Percent of the survivors (all that could be replayed) reused 1, 2, ... times or more."""
    times = range(1, int(counts.max()) + 1)
    return pd.Series({n: 100.0 * int((counts >= n).sum()) / survivors for n in times})


def ages_of(rows: pd.DataFrame, counts: pd.Series) -> pd.Series:
    """Percent of the reuses of some rollouts that were at each age in steps or before."""
    replayed = rows[rows["replayed"].astype(bool)].set_index(["cell", "rollout_id"])
    ages = replayed.loc[replayed.index.isin(counts.index), "age"].astype(int).value_counts()
    every_age = range(1, int(ages.index.max()) + 1)
    return 100.0 * ages.reindex(every_age, fill_value=0).cumsum() / ages.sum()
