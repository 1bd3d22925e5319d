"""Table 2 of the paper: `ours` at each tau_max, its accuracy and its share of clipped ratios."""

from pathlib import Path

import pandas as pd

from grpo_replay.reporting.labels import OURS
from grpo_replay.reporting.numbers.settings import Setting, age_settings, default_settings, grpo_of
from grpo_replay.reporting.numbers.significance import marked_means
from grpo_replay.reporting.numbers.training import STEPS_NOTE, mean_over_steps
from grpo_replay.reporting.tables.notes import INTERVAL_NOTE, comparison_notes, missing_notes
from grpo_replay.reporting.tables.parts import HIDDEN, mean_columns, setting_labels
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.results.training_metrics import CLIP_FRESH, CLIP_REPLAY
from grpo_replay.study.config import Study

_CLIP_KEYS = {"clip_fresh_percent": CLIP_FRESH, "clip_replay_percent": CLIP_REPLAY}
CLIP_NOTE = (
    "Clipped: percent of the trained tokens at which the clip binds (ratio too low with a negative "
    "advantage, too high with a positive one); mean over the steps that trained such tokens. "
    f"{STEPS_NOTE} These shares are not tested: a run gives one of each, and GRPO replays nothing."
)


def build(study: Study, scores: pd.DataFrame, results: Path, config: str) -> Table:
    """The age table, GRPO above the ages for reference; empty, with a note, without the method.

    `config` is what the command of a note has behind `--config`.
    """
    by_scale = age_settings(study, OURS)
    rows, settings = [], []
    for scale, ages in by_scale.items():
        grpo = grpo_of(default_settings(study, scale))
        shown = ([grpo] if grpo else []) + ages
        settings += shown
        rows += scale_rows(study, scores, results, shown, grpo)
    absent = [] if by_scale else [f"The study {study.study} has no cells of the method {OURS}."]
    return Table(
        title=f"Replay age: {OURS} at each τ_max ({study.title})",
        stub={"scale": "Scale", "tau": "τ_max", "seeds": "Seeds (n)"},
        columns=columns(study),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            CLIP_NOTE,
            *other_axes_note(settings),
            *comparison_notes(scores, settings),
            *absent,
            *missing_notes(study, scores, settings, config),
        ],
        hidden=HIDDEN,
    )


def columns(study: Study, decimals: int = 1) -> list[Column]:
    """The means over the benchmarks, and the clipped shares."""
    return [
        *mean_columns(study, "Mean over benchmarks", decimals),
        Column("clip_fresh_percent", "Clipped (%)", "fresh", decimals=3),
        Column("clip_replay_percent", "Clipped (%)", "replay", decimals=3),
    ]


def scale_rows(
    study: Study,
    scores: pd.DataFrame,
    results: Path,
    settings: list[Setting],
    grpo: Setting | None,
) -> list[Row]:
    """A row a setting of one scale: means marked against GRPO, and percent of clipped ratios."""
    rows = []
    for setting, numbers in zip(settings, marked_means(scores, settings, grpo), strict=True):
        clipped = {
            key: mean_over_steps(scores, results, setting, name, 100.0, highest=100.0)
            for key, name in _CLIP_KEYS.items()
        }
        tau = setting.tau_max if setting.tau_max is not None else "GRPO (no replay)"
        rows.append(Row(setting_labels(study, scores, setting) | {"tau": tau}, numbers | clipped))
    return rows


def other_axes_note(settings: list[Setting]) -> list[str]:
    """The replay axes that the table does not vary."""
    axes = dict.fromkeys(
        f"r {s.replay_ratio:g}, α {s.alpha:g}" for s in settings if s.tau_max is not None
    )
    return [f"Replay: {'; '.join(axes)}."] if axes else []
