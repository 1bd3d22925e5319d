"""Table 2 of the paper: `ours` at each tau_max, its accuracy and its share of clipped ratios."""

from pathlib import Path

import numpy as np
import pandas as pd

from grpo_replay.config import Study
from grpo_replay.reporting.formats import Column, Number, Row, Table
from grpo_replay.reporting.labels import GRPO, OURS
from grpo_replay.reporting.main_table import INTERVAL_NOTE, comparison_notes, setting_labels
from grpo_replay.reporting.scores import problem_count
from grpo_replay.reporting.significance import marked_means
from grpo_replay.reporting.summaries import (
    METRICS,
    Setting,
    age_settings,
    default_settings,
    finished_cells,
    mean_number,
    missing_notes,
    with_seeds,
)
from grpo_replay.reporting.training_metrics import CLIP_FRESH, CLIP_REPLAY, read_metrics

_CLIP_KEYS = {"clip_fresh_percent": CLIP_FRESH, "clip_replay_percent": CLIP_REPLAY}
_CLIP_NOTE = (
    "Clipped: percent of the trained tokens at which the clip binds (ratio too low with a negative "
    "advantage, too high with a positive one); mean over the steps that trained such tokens. One "
    "run is n=1: steps of a run are not independent, so there is no interval; several seeds: "
    "Student's t over seeds."
)


def build(study: Study, scores: pd.DataFrame, results: Path) -> Table:
    """The age table, GRPO above the ages for reference; empty, with a note, without the method."""
    by_scale = age_settings(study, OURS)
    rows, settings = [], []
    for scale, ages in by_scale.items():
        grpo = next((s for s in default_settings(study, scale) if s.method == GRPO), None)
        shown = ([grpo] if grpo else []) + ages
        settings += shown
        rows += _scale_rows(study, scores, results, shown, grpo)
    absent = [] if by_scale else [f"The study {study.study} has no cells of the method {OURS}."]
    return Table(
        title=f"Replay age: {OURS} at each τ_max ({study.title})",
        stub={"scale": "Scale", "tau": "τ_max", "seeds": "Seeds (n)"},
        columns=_columns(study),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            _CLIP_NOTE,
            *_other_axes_note(settings),
            *comparison_notes(scores, settings),
            *absent,
            *missing_notes(study, scores, settings),
        ],
        hidden=("study", "method_key", "tau_max", "replay_ratio", "alpha"),
    )


def _columns(study: Study) -> list[Column]:
    n = f"n = {sum(map(problem_count, study.benchmarks.values()))}"
    return [
        Column("avg", "Mean over benchmarks", "Avg", n, tested=True),
        Column("pass", "Mean over benchmarks", "Pass", n, tested=True),
        Column("clip_fresh_percent", "Clipped (%)", "fresh", decimals=3),
        Column("clip_replay_percent", "Clipped (%)", "replay", decimals=3),
    ]


def _scale_rows(
    study: Study,
    scores: pd.DataFrame,
    results: Path,
    settings: list[Setting],
    grpo: Setting | None,
) -> list[Row]:
    means = {
        (position, metric): mean_number(scores, setting, metric)
        for position, setting in enumerate(settings)
        for metric in METRICS
    }
    means = marked_means(scores, means, settings, grpo)
    rows = []
    for position, setting in enumerate(settings):
        numbers = {"avg": means[position, "avg_at_k"], "pass": means[position, "pass_at_k"]}
        numbers |= {
            key: clip_number(scores, results, setting, name) for key, name in _CLIP_KEYS.items()
        }
        tau = setting.tau_max if setting.tau_max is not None else "GRPO (no replay)"
        rows.append(Row(setting_labels(study, scores, setting) | {"tau": tau}, numbers))
    return rows


def clip_number(scores: pd.DataFrame, results: Path, setting: Setting, name: str) -> Number | None:
    """Percent of clipped ratios: mean over the steps, then over seeds; None without any value."""
    per_seed, steps = [], 0
    for cell in finished_cells(scores, setting):
        metrics = read_metrics(results, cell)
        values = pd.Series(dtype=float) if metrics is None else metrics[name].dropna()
        if len(values):
            per_seed.append(100.0 * float(values.mean()))
            steps = len(values)
    if not per_seed:
        return None
    number = Number(float(np.mean(per_seed)), n=steps, remark=f"n={len(per_seed)}")
    return with_seeds(number, np.array(per_seed), highest=100.0)


def _other_axes_note(settings: list[Setting]) -> list[str]:
    axes = dict.fromkeys(
        f"r {s.replay_ratio:g}, α {s.alpha:g}" for s in settings if s.tau_max is not None
    )
    return [f"Replay: {'; '.join(axes)}."] if axes else []
