"""Figures of how training went: reward, lengths, clipped ratios (Figures 2 and 3 of the paper).

Each function reads a study's folder of results and writes `<stem>.png`, `.svg` and `.pdf`.
"""

from pathlib import Path

import pandas as pd

from grpo_replay.reporting.figures.canvas import legend_below, panels
from grpo_replay.reporting.figures.curves import (
    Group,
    Quantity,
    StepAxis,
    age_groups,
    curve_grid,
    draw_lines,
    group_conditions,
    heading,
    method_groups,
)
from grpo_replay.reporting.labels import GRPO, OURS
from grpo_replay.results.scores import read_scores
from grpo_replay.results.training_metrics import CLIP_FRESH, CLIP_REPLAY, LENGTH, REWARD
from grpo_replay.study.config import Study

_REWARD = Quantity(REWARD, "mean training reward\n(−1 to 1)", from_zero=False)
_LENGTH = Quantity(LENGTH, "mean response length\n(tokens)", from_zero=False)
_NO_TOKEN = "no such token was trained on"


def training_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Training reward and response length over the steps, by method and scale."""
    title = "Training reward and response length"
    curve_grid(study, results, output_stem, title, method_groups(study), [_REWARD, _LENGTH])


def figure2(study: Study, results: Path, output_stem: Path) -> None:
    """Figure 2 of the paper: response length over the steps, GRPO and ours, a panel a scale."""
    curve_grid(study, results, output_stem, "Response length", figure2_groups(study), [_LENGTH])


def figure2_groups(study: Study) -> list[Group]:
    """The lines of Figure 2."""
    return method_groups(study, (GRPO, OURS))


def figure3(study: Study, results: Path, output_stem: Path) -> None:
    """Figure 3 of the paper: clipped share, fresh and replayed apart, a line a tau_max."""
    quantities = [_clipped(CLIP_FRESH, "fresh"), _clipped(CLIP_REPLAY, "replayed")]
    title = f"Clipped fraction of {OURS}"
    curve_grid(study, results, output_stem, title, age_groups(study), quantities, True)


def clip_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Clipped share by side of the window, fresh and replayed apart, by method and scale."""
    quantities = [
        _clipped(f"{name}_{side}", f"{part}, ratio too {side}")
        for name, part in ((CLIP_FRESH, "fresh"), (CLIP_REPLAY, "replayed"))
        for side in ("low", "high")
    ]
    title = "Clipped tokens by side of the window"
    curve_grid(study, results, output_stem, title, method_groups(study), quantities)


def _clipped(name: str, part: str) -> Quantity:
    return Quantity(name, f"clipped tokens (%)\n{part}", 100.0, empty=_NO_TOKEN)


def learning_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Training reward against what it cost: rollouts, gradient steps, wall time; a row a scale."""
    scores, groups = read_scores(results), method_groups(study)
    title = "Training reward against its cost, 5-step rolling mean"
    title = heading(study, scores, group_conditions(groups), title)
    axes_of_cost = _costs(study)
    with panels(output_stem, len(groups), 3, 3.2, 2.3, title, sharey="row") as (figure, axes):
        for row, group in zip(axes, groups, strict=True):
            for panel, cost in zip(row, axes_of_cost, strict=True):
                draw_lines(panel, scores, results, group, _REWARD, cost)
                panel.set_xlabel(cost.label)
                panel.set_title(group.title)
            row[0].set_ylabel(_REWARD.label)
        legend_below(figure)


def _costs(study: Study) -> tuple[StepAxis, ...]:
    size, updates = study.training.group_size, study.training.updates_per_step

    def gradient_steps(frame: pd.DataFrame) -> pd.Series:
        return (updates - frame["updates/skipped"]).cumsum()

    return (
        StepAxis("rollouts generated", lambda frame: (size * frame["groups/count"]).cumsum()),
        StepAxis("gradient steps", gradient_steps),
        StepAxis("wall time (minutes)", lambda frame: frame["perf/step_seconds"].cumsum() / 60),
    )
