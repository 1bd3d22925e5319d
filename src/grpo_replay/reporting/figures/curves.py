"""Curves over a training run, and the small multiples that most figures of training are.

A *group* is what stands in one panel: the methods at a scale, or `ours` at each tau_max. A
*quantity* is a name in metrics.jsonl and how it is shown. A grid has a panel for each pair.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from grpo_replay.reporting.figures.canvas import legend_below, panels, say_empty
from grpo_replay.reporting.labels import (
    BASE,
    OURS,
    Style,
    age_style,
    figure_text,
    method_style,
    plain_text,
    variant_style,
)
from grpo_replay.reporting.numbers.conditions import (
    Condition,
    age_series,
    finished_cells,
    main_conditions,
    rows_of,
    used_scales,
)
from grpo_replay.reporting.numbers.training import step_frames
from grpo_replay.results.scores import read_scores
from grpo_replay.results.training_metrics import rolling_mean
from grpo_replay.study.config import Study

MAX_NAMED = 2
NOTHING_REPLAYED = "nothing was replayed"


@dataclass(frozen=True)
class Line:
    """One line of a panel: a condition (mean over its seeds), its look and its name."""

    condition: Condition
    style: Style
    label: str


@dataclass(frozen=True)
class Group:
    """The lines of one panel, and its title."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Quantity:
    """A number of metrics.jsonl: its axis label with unit; `empty` says why a run may lack it."""

    name: str
    label: str
    factor: float = 1.0
    from_zero: bool = True
    minus: float = 0.0
    empty: str = "no such value was recorded"


@dataclass(frozen=True)
class StepAxis:
    """A horizontal axis: its label with unit, and its value at each step of a run."""

    label: str
    values: Callable[[pd.DataFrame], pd.Series]


STEPS = StepAxis("training step", lambda frame: frame.index.to_series())


def method_groups(study: Study, methods: Iterable[str] | None = None) -> list[Group]:
    """The main conditions of the trained methods, a group a scale; all if not named."""
    groups = []
    for scale in used_scales(study):
        conditions = [
            s
            for s in main_conditions(study, scale)
            if s.method != BASE and (methods is None or s.method in methods)
        ]
        groups.append(Group(f"scale {scale}", tuple(condition_lines(study, conditions))))
    return groups


def condition_lines(study: Study, conditions: Iterable[Condition]) -> list[Line]:
    """Main conditions in the look of their method; further ones of a method have other dashes."""
    names = rows_of(study)
    lines = []
    for condition in conditions:
        of_method = [varied for method, varied in names if method == condition.method]
        own = method_style(study, condition.method)
        look = variant_style(own, of_method.index(condition.varied))
        lines.append(Line(condition, look, figure_text(condition.name)))
    return lines


def all_groups(study: Study) -> list[Group]:
    """The methods, a group a scale, then `ours` by tau_max where there are several."""
    return method_groups(study) + [group for group in age_groups(study) if len(group.lines) > 1]


def replay_groups(study: Study) -> list[Group]:
    """The same without the methods that do not replay."""
    return [
        replace(group, lines=tuple(line for line in group.lines if line.condition.replays))
        for group in all_groups(study)
    ]


def age_groups(study: Study) -> list[Group]:
    """`ours` at each tau_max, a group a scale."""
    groups = []
    for series in age_series(study, OURS):
        lines = [
            Line(c, age_style(position), figure_text(f"τ_max = {c.axes.tau_max}"))
            for position, c in enumerate(series.conditions)
        ]
        title = f"{figure_text(series.name)}, scale {series.scale}"
        groups.append(Group(title, tuple(lines)))
    return groups


def heading(study: Study, scores: pd.DataFrame, conditions: Iterable[Condition], text: str) -> str:
    """The title of a figure: what it shows, of which study, on how many seeds, and what lacks."""
    wanted = {cell.cell: condition for condition in conditions for cell in condition.cells}
    finished = {cell.cell for s in conditions for cell in finished_cells(scores, s)}
    trained = [s for s in dict.fromkeys(wanted.values()) if s.method != BASE]
    counts = [n for n in (len(finished_cells(scores, s)) for s in trained) if n]
    lines = [text, plain_text(study.title) + (f"; {_seeds_text(counts)}" if counts else "")]
    missing = [name for name in wanted if name not in finished]
    if 0 < len(missing) <= MAX_NAMED:
        lines.append(f"not finished: {', '.join(missing)}")
    elif missing:
        lines.append(f"not finished: {len(missing)} of {len(wanted)} cells")
    return "\n".join(lines)


def _seeds_text(counts: list[int]) -> str:
    if max(counts) == 1:
        return "n=1 training seed"
    low = f"{min(counts)} to " if min(counts) < max(counts) else ""
    return f"n={low}{max(counts)} training seeds"


def group_conditions(groups: Iterable[Group]) -> list[Condition]:
    """All conditions of some groups."""
    return [line.condition for group in groups for line in group.lines]


def curve_grid(
    study: Study,
    results: Path,
    output_stem: Path,
    title: str,
    groups: list[Group],
    quantities: list[Quantity],
    groups_in_rows: bool = False,
) -> None:
    """Draw every quantity (a row each) for every group (a column each) over the training steps."""
    scores = read_scores(results)
    shown = groups or [Group("", ())]
    shape = (len(quantities), len(shown))
    title = heading(study, scores, group_conditions(groups), f"{title}, 5-step rolling mean")
    with panels(output_stem, *(shape[::-1] if groups_in_rows else shape), 3.2, 2.1, title) as (
        figure,
        axes,
    ):
        axes_QG = axes.T if groups_in_rows else axes
        for (row, column), panel in np.ndenumerate(axes_QG):
            draw_lines(panel, scores, results, shown[column], quantities[row])
            if groups_in_rows or row == 0:
                panel.set_title(shown[column].title)
            if groups_in_rows or column == 0:
                panel.set_ylabel(quantities[row].label)
            if groups_in_rows or row == len(quantities) - 1:
                panel.set_xlabel(STEPS.label)
        legend_below(figure)


def draw_lines(
    panel: Axes,
    scores: pd.DataFrame,
    results: Path,
    group: Group,
    quantity: Quantity,
    progress: StepAxis = STEPS,
) -> None:
    """Draw a quantity of each line of a group; say so where there is none."""
    drawn = False
    for line in group.lines:
        frames = step_frames(scores, results, line.condition).values()
        curves = [_curve(frame, quantity, progress) for frame in frames]
        drawn |= _draw_curve(panel, [curve for curve in curves if len(curve)], line)
    if not drawn:
        say_empty(panel, empty_text(scores, group, quantity.empty))
    elif quantity.from_zero:
        panel.set_ylim(0, 1.08 * panel.dataLim.y1 or 1.0)


def plot_line(panel: Axes, x: Iterable, y: pd.Series | list[float], line: Line) -> None:
    """Draw one line in its look, with about six markers; x is a whole number, mostly."""
    style = line.style
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.line,
        linewidth=style.width,
        marker=style.marker,
        markersize=4.5,
        markevery=max(len(y) // 6, 1),
        label=line.label,
        # A thick line lies under the thin ones, so that none hides another.
        zorder=3 - style.width / 10,
    )


def empty_text(scores: pd.DataFrame, group: Group, otherwise: str) -> str:
    """Why nothing is drawn for a group: no such method, no finished cell, or something else."""
    if not group.lines:
        return "the study has no such method"
    finished = any(finished_cells(scores, line.condition) for line in group.lines)
    return otherwise if finished else "no finished cell"


def _curve(frame: pd.DataFrame, quantity: Quantity, progress: StepAxis) -> pd.DataFrame:
    """Return the smoothed curve of a run by step: x and y, where it has a value."""
    y = rolling_mean(quantity.factor * (frame[quantity.name] - quantity.minus))
    return pd.DataFrame({"x": progress.values(frame), "y": y}).dropna()


def _draw_curve(panel: Axes, curves: list[pd.DataFrame], line: Line) -> bool:
    """Draw the mean over seeds, with a band from lowest to highest if several; False if none."""
    if not curves:
        return False
    x, y = (pd.concat([c[name] for c in curves], axis=1).sort_index() for name in ("x", "y"))
    plot_line(panel, x.mean(axis=1), y.mean(axis=1), line)
    if len(curves) > 1:
        band, colour = (y.min(axis=1), y.max(axis=1)), line.style.colour
        panel.fill_between(x.mean(axis=1), *band, color=colour, alpha=0.15, linewidth=0)
    return True
