"""All figures of a study by their file's name; the functions stand with their topics.

Each takes the study, its folder of results, and the stem of the files to write.
"""

from collections.abc import Callable
from pathlib import Path

from grpo_replay.reporting.figures.accuracy import (
    accuracy_figure,
    method_tau_max_figure,
    tau_max_figure,
)
from grpo_replay.reporting.figures.diagnostics import (
    buffer_figure,
    completions_figure,
    drift_figure,
    groups_figure,
    log_ratio_figure,
    seconds_figure,
)
from grpo_replay.reporting.figures.problems import (
    accuracy_length_figure,
    gain_figure,
    pass_at_k_figure,
)
from grpo_replay.reporting.figures.replay import replay_ages_figure, reuse_figure
from grpo_replay.reporting.figures.training import (
    clip_figure,
    figure2,
    figure3,
    learning_figure,
    training_figure,
)
from grpo_replay.study.config import Study

FIGURES: dict[str, Callable[[Study, Path, Path], None]] = {
    "accuracy": accuracy_figure,
    "tau_max": tau_max_figure,
    "training": training_figure,
    "clip": clip_figure,
    "figure2": figure2,
    "figure3": figure3,
    "pass_at_k": pass_at_k_figure,
    "accuracy_length": accuracy_length_figure,
    "method_tau_max": method_tau_max_figure,
    "gain": gain_figure,
    "learning": learning_figure,
    "replay_ages": replay_ages_figure,
    "reuse": reuse_figure,
    "drift": drift_figure,
    "log_ratio": log_ratio_figure,
    "groups": groups_figure,
    "buffer": buffer_figure,
    "completions": completions_figure,
    "seconds": seconds_figure,
}
