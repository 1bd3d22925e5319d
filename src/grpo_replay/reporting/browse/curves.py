"""Learning curves of any cells of a study, drawn for the notebook: one line a cell."""

from collections import Counter
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grpo_replay.reporting.browse.tables import as_cell, existing, study_cells
from grpo_replay.reporting.figures.canvas import say_empty, style
from grpo_replay.reporting.figures.curves import Line, plot_line
from grpo_replay.reporting.labels import BASE, style_among, variant_style
from grpo_replay.reporting.numbers.conditions import Condition
from grpo_replay.results.layout import CellFiles
from grpo_replay.results.training_metrics import (
    CLIP_FRESH,
    CLIP_REPLAY,
    LENGTH,
    REWARD,
    read_metrics,
    rolling_mean,
)

# Metric, axis label, factor to the label's unit.
_PANELS = (
    (REWARD, "mean training reward (−1 to 1)", 1.0),
    (LENGTH, "mean response length (tokens)", 1.0),
    (CLIP_FRESH, "clipped tokens, fresh (%)", 100.0),
    (CLIP_REPLAY, "clipped tokens, replayed (%)", 100.0),
)


def curves(results: Path, metric: str, cells: str = "*", steps: int = 5) -> pd.DataFrame:
    """A metric of `train/metrics.jsonl` over training: one row a step, one column a trained cell.

    Values are rolling means over `steps` steps (1: as recorded). A step without a value, as a
    replay metric before the warm-up ends, is missing. Names: config/README.md.
    """
    chosen = study_cells(results, cells)
    chosen = chosen[chosen["method"] != BASE]
    found = {}
    for name in chosen.index:
        existing(CellFiles(results, name).metrics)
        frame = read_metrics(results, as_cell(chosen, name))
        found[name] = rolling_mean(frame[metric], steps)
    return pd.DataFrame(found).rename_axis(index="step", columns="cell").sort_index()


def learning_curves(results: Path, cells: str = "*", steps: int = 5) -> Figure:
    """Reward, length and clipped tokens (fresh, replayed) over the steps, a line a trained cell.

    Rolling means as `curves`. Colours are those of the methods in every other figure.
    """
    lines = _lines(study_cells(results), study_cells(results, cells))
    with style():
        figure = Figure(figsize=(10.5, 6.8), layout="constrained")
        figure.suptitle(f"Learning curves, {steps}-step rolling mean", fontsize=11)
        axes = figure.subplots(2, 2, sharex=True).flat
        for panel, (metric, label, factor) in zip(axes, _PANELS, strict=True):
            _draw(panel, factor * curves(results, metric, cells, steps), lines)
            panel.set_xlabel("training step")
            panel.set_ylabel(label)
        # The replay panel lacks the cells that replay nothing; the first has all.
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=3.2)
    return figure


def _lines(known: pd.DataFrame, chosen: pd.DataFrame) -> dict[str, Line]:
    """The line of each chosen cell, in the look of its method, whose colours go by the order of all
    methods known; further cells of a method differ in dashes and marker.
    """
    methods = list(dict.fromkeys(known["method"]))
    drawn: Counter[str] = Counter()
    lines = {}
    for cell, method in chosen["method"].items():
        look = variant_style(style_among(methods, method), drawn[method])
        lines[cell] = Line(Condition(chosen.at[cell, "scale"], method), look, cell)
        drawn[method] += 1
    return lines


def _draw(panel: Axes, table: pd.DataFrame, lines: dict[str, Line]) -> None:
    for cell in table:
        curve = table[cell].dropna()
        if len(curve):
            plot_line(panel, curve.index, curve, lines[cell])
    if not panel.has_data():
        say_empty(panel, "no such token was trained on")
