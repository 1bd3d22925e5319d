"""All figures of a study by their file's name; the functions stand with their topics.

Each takes the study, its folder of results, and the stem of the files to write.
"""

from collections.abc import Callable
from pathlib import Path

from grpo_replay.reporting.figures import accuracy, diagnostics, problems, replay, training
from grpo_replay.study.config import Study

_FUNCTIONS = (
    *(accuracy.accuracy_figure, accuracy.tau_max_figure, training.training_figure),
    *(training.clip_figure, training.figure2, training.figure3, problems.pass_at_k_figure),
    *(problems.accuracy_length_figure, accuracy.method_tau_max_figure, problems.gain_figure),
    *(training.learning_figure, replay.replay_ages_figure, replay.reuse_figure),
    *(diagnostics.drift_figure, diagnostics.log_ratio_figure, diagnostics.groups_figure),
    *(diagnostics.buffer_figure, diagnostics.completions_figure, diagnostics.seconds_figure),
)
FIGURES: dict[str, Callable[[Study, Path, Path], None]] = {
    function.__name__.removesuffix("_figure"): function for function in _FUNCTIONS
}
