"""Learning curves of any cells of a study, drawn for the notebook: one line a cell."""

from collections import Counter
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grpo_replay.reporting.browse.tables import as_cell, existing, study_cells
from grpo_replay.reporting.figures.canvas import say_empty, style
from grpo_replay.reporting.labels import BASE, style_among
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
# Dashes that tell the cells of one method apart.
_LINES = ("-", "--", ":", "-.")


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
    looks = _looks(list(study_cells(results)["method"]), study_cells(results, cells)["method"])
    with style():
        figure = Figure(figsize=(10.5, 6.8), layout="constrained")
        figure.suptitle(f"Learning curves, {steps}-step rolling mean", fontsize=11)
        axes = figure.subplots(2, 2, sharex=True).flat
        for panel, (metric, label, factor) in zip(axes, _PANELS, strict=True):
            _draw(panel, factor * curves(results, metric, cells, steps), looks)
            panel.set_xlabel("training step")
            panel.set_ylabel(label)
        # The replay panel lacks the cells that replay nothing; the first has all.
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=3.2)
    return figure


def _looks(known: list[str], chosen: pd.Series) -> dict[str, dict]:
    """How the line of each chosen cell is drawn: as its method, whose colours go by the order of
    all methods known; further cells of a method differ in their dashes.
    """
    methods = list(dict.fromkeys(known))
    drawn: Counter[str] = Counter()
    looks = {}
    for cell, method in chosen.items():
        style = style_among(methods, method)
        dashes = [style.line, *(line for line in _LINES if line != style.line)]
        looks[cell] = {
            "color": style.colour,
            "linestyle": dashes[drawn[method] % len(dashes)],
            "linewidth": style.width,
            "marker": style.marker,
            "markersize": 4.5,
        }
        drawn[method] += 1
    return looks


def _draw(panel: Axes, table: pd.DataFrame, looks: dict[str, dict]) -> None:
    for cell in table:
        curve = table[cell].dropna()
        if len(curve):
            every = max(len(curve) // 6, 1)
            panel.plot(curve.index, curve, label=cell, markevery=every, **looks[cell])
    panel.xaxis.get_major_locator().set_params(integer=True)
    if not panel.has_data():
        say_empty(panel, "no such token was trained on")
