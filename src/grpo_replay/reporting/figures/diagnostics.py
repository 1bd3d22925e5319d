"""Diagnostics of training: drift from the birth policy, groups, buffer, completions, seconds.

Each function reads a study's folder of results and writes `<stem>.png`, `.svg` and `.pdf`.
"""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from grpo_replay.reporting.figures.canvas import legend_below, panels, say_empty
from grpo_replay.reporting.figures.curves import (
    NOTHING_REPLAYED,
    Group,
    Quantity,
    all_groups,
    curve_grid,
    empty_text,
    group_conditions,
    heading,
    method_groups,
    plot_line,
    replay_groups,
)
from grpo_replay.reporting.numbers.conditions import finished_cells
from grpo_replay.reporting.numbers.training import step_frames
from grpo_replay.results.scores import read_scores
from grpo_replay.results.training_metrics import log_ratio_by_age
from grpo_replay.study.config import Study

# Greys and hatches: the colours belong to the methods.
_PARTS = (
    ("generation", "perf/generation_seconds", {"color": "#4d4d4d"}),
    ("scoring", "perf/scoring_seconds", {"color": "#ffffff", "hatch": "////"}),
    ("update", "perf/update_seconds", {"color": "#bdbdbd"}),
)


def drift_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Importance ratios to the birth policy: means, effective share, by method and tau_max."""
    quantities = [
        Quantity("ratio/fresh_mean", "mean ratio − 1 (%)\nfresh tokens", 100.0, False, 1.0),
        Quantity(
            "ratio/replay_mean",
            "mean ratio − 1 (%)\nreplayed tokens",
            *(100.0, False, 1.0, NOTHING_REPLAYED),
        ),
        Quantity(
            "ratio/replay_effective_sample_share",
            "effective sample\nshare of replayed (%)",
            *(100.0, False, 0.0, NOTHING_REPLAYED),
        ),
    ]
    title = "Drift of the policy since the birth of what it trains on"
    curve_grid(study, results, output_stem, title, all_groups(study), quantities)


def log_ratio_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean log ratio to the birth policy by age, over the whole run (its negative estimates KL)."""
    scores, groups = read_scores(results), replay_groups(study)
    shown = groups or [Group("", ())]
    title = heading(study, scores, group_conditions(groups), "Log ratio to the birth policy by age")
    with panels(output_stem, 1, len(shown), 3.2, 2.6, title) as (figure, axes):
        for panel, group in zip(axes[0], shown, strict=True):
            _log_ratio_panel(panel, scores, results, group)
            panel.set_title(group.title)
            panel.set_xlabel("age (steps)")
        axes[0, 0].set_ylabel("mean log ratio\n(nats a token)")
        legend_below(figure)


def _log_ratio_panel(panel: Axes, scores: pd.DataFrame, results: Path, group: Group) -> None:
    for line in group.lines:
        seeds = [log_ratio_by_age(results, c) for c in finished_cells(scores, line.condition)]
        seeds = [seed for seed in seeds if len(seed)]
        if not seeds:
            continue
        mean = pd.concat(seeds, axis=1).mean(axis=1).sort_index()
        plot_line(panel, mean.index, mean, line)
    if not panel.has_data():
        say_empty(panel, empty_text(scores, group, NOTHING_REPLAYED))


def groups_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Groups with a signal (Table 8 of the paper): survivors, all-correct and all-wrong share."""
    quantities = [
        Quantity("survivors/rollouts", "survivors\n(rollouts a step)"),
        Quantity("groups/all_correct_percent", "all-correct\ngroups (%)"),
        Quantity("groups/all_wrong_percent", "all-wrong\ngroups (%)"),
    ]
    title = "Survivors, and groups without a signal"
    curve_grid(study, results, output_stem, title, all_groups(study), quantities)


def buffer_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Size of the replay buffer after each step, and its evictions by reason."""
    quantities = [
        Quantity("buffer/size", "buffer size\n(rollouts)"),
        Quantity("buffer/evicted_age", "evicted by age\n(rollouts a step)"),
        Quantity("buffer/evicted_capacity", "evicted by capacity\n(rollouts a step)"),
    ]
    title = "Replay buffer and its evictions"
    curve_grid(study, results, output_stem, title, replay_groups(study), quantities)


def completions_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Entropy, truncated share, and length of correct and of incorrect completions."""
    quantities = [
        Quantity("entropy", "entropy\n(nats a token)"),
        Quantity("completions/truncated_share", "truncated (%)", 100.0),
        Quantity("completions/mean_length_correct", "length of correct\n(tokens)", 1.0, False),
        Quantity("completions/mean_length_incorrect", "length of incorrect\n(tokens)", 1.0, False),
    ]
    title = "Entropy and completions"
    curve_grid(study, results, output_stem, title, all_groups(study), quantities)


def seconds_figure(study: Study, results: Path, output_stem: Path) -> None:
    """Mean seconds a training step spends in generation, scoring and update, by method."""
    scores, groups = read_scores(results), method_groups(study)
    title = heading(study, scores, group_conditions(groups), "Seconds of a training step by part")
    most = max(len(group.lines) for group in groups)
    height = 0.9 + 0.35 * most
    with panels(output_stem, 1, len(groups), 3.2, height, title) as (figure, axes):
        for panel, group in zip(axes[0], groups, strict=True):
            _seconds_panel(panel, scores, results, group)
            panel.set_ylim(most - 0.5, -0.5)
            panel.set_title(group.title)
            panel.set_xlabel("mean seconds a step")
        axes[0, 0].set_ylabel("method")
        legend_below(figure)


def _seconds_panel(panel: Axes, scores: pd.DataFrame, results: Path, group: Group) -> None:
    labels = []
    for line in group.lines:
        frames = step_frames(scores, results, line.condition).values()
        if not frames:
            continue
        left = 0.0
        for label, name, look in _PARTS:
            seconds = pd.concat([frame[name] for frame in frames]).mean()
            bar = {"left": left, "height": 0.65, "edgecolor": "black", "linewidth": 0.6}
            panel.barh([len(labels)], [seconds], label=label, **bar, **look)
            left += seconds
        labels.append(line.label)
    if not labels:
        say_empty(panel, empty_text(scores, group, "no such value was recorded"))
        return
    panel.set_yticks(range(len(labels)), labels)
