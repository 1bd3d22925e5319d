"""Figures of runs: ages of the rows trained on, and reward over seeds."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from grpo_replay.results.training_metrics import REWARD, rolling_mean


def age_histogram(records: list[dict]) -> Figure | None:
    """Rows trained on by step and age, fresh ones at age 0; None where nothing was replayed."""
    counts = [(r["step"], int(a), n) for r in records for a, n in r["replay/age_histogram"].items()]
    table = pd.DataFrame(counts, columns=["step", "age", "rows"])
    if table.age.max() in (0, np.nan) or table.empty:
        return None
    grid_AS = table.pivot_table(index="age", columns="step", values="rows", fill_value=0)
    ages, steps = range(grid_AS.index.max() + 1), range(1, records[-1]["step"] + 1)
    grid_AS = grid_AS.reindex(index=ages, columns=steps, fill_value=0)
    figure, axes = _figure("Rows trained on by age")
    # Fresh rows are far more than those of any other age: a linear scale would show them alone.
    image = axes.imshow(
        np.ma.masked_equal(grid_AS.to_numpy(), 0),
        origin="lower",
        aspect="auto",
        extent=(0.5, steps[-1] + 0.5, -0.5, ages[-1] + 0.5),
        norm=LogNorm(vmin=1),
        interpolation="nearest",
    )
    axes.set(xlabel="step", ylabel="age (steps; 0 is fresh)")
    figure.colorbar(image, label="rows")
    return figure


def reward_over_seeds(title: str, settings: dict[str, list[list[dict]]]) -> Figure | None:
    """Mean training reward over seeds by step, with the range of the seeds; one line a setting.

    Each seed is smoothed like the lines of the paper's figures.

    `settings` holds the records of each seed by the setting's name.
    """
    settings = {name: seeds for name, seeds in settings.items() if any(seeds)}
    if not settings:
        return None
    figure, axes = _figure(title)
    for name, seeds in settings.items():
        columns = [rolling_mean(pd.Series({r["step"]: r[REWARD] for r in seed})) for seed in seeds]
        rewards = pd.concat(columns, axis=1)
        line = axes.plot(rewards.index, rewards.mean(axis=1), label=f"{name} (n={len(seeds)})")[0]
        if len(seeds) > 1:
            low, high = rewards.min(axis=1), rewards.max(axis=1)
            axes.fill_between(rewards.index, low, high, color=line.get_color(), alpha=0.2, lw=0)
    axes.set(xlabel="step", ylabel="training reward (mean of 5 steps)")
    figure.legend(
        loc="outside lower center", ncols=2, frameon=False, title="mean over seeds; shaded: range"
    )
    return figure


def _figure(title: str) -> tuple[Figure, mpl.axes.Axes]:
    figure = Figure(figsize=(6.4, 3.8), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_title(title, fontsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))  # steps
    return figure, axes
