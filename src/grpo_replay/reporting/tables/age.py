"""Table 2 of the paper: `ours` at each tau_max, its accuracy and its share of clipped ratios."""

from grpo_replay.reporting.labels import OURS, varied_name
from grpo_replay.reporting.numbers.conditions import (
    Condition,
    age_series,
    grpo_of,
    main_conditions,
)
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.training import STEPS_NOTE, mean_over_steps, step_frames
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import Line, marked_rows, mean_columns, study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.results.training_metrics import CLIP_FRESH, CLIP_REPLAY
from grpo_replay.study.axes import TAU_MAX

_CLIP_KEYS = {"clip_fresh_percent": CLIP_FRESH, "clip_replay_percent": CLIP_REPLAY}
_CLIP_NOTE = (
    "Clipped: percent of the trained tokens at which the clip binds (ratio too low with a negative "
    "advantage, too high with a positive one); mean over the steps that trained such tokens. "
    f"{STEPS_NOTE} These shares are not tested: a run gives one of each, and GRPO replays nothing."
)


def build(source: Source) -> Table:
    """The ages of a study, GRPO above them for reference; empty, with a note, without `ours`."""
    rows, shown = [], []
    for series in age_series(source.study, OURS):
        grpo = grpo_of(main_conditions(source.study, series.scale))
        found = [*([grpo] if grpo else []), *series.conditions]
        rows += age_rows(source, found, grpo)
        shown += found
    absent = [] if rows else [f"The study {source.study.study} has no cells of the method {OURS}."]
    return age_table(source, f"Replay age: {OURS} at each τ_max", rows, shown, *absent)


def age_table(
    source: Source,
    title: str,
    rows: list[Row],
    conditions: list[Condition],
    *further_notes: str,
    decimals: int = 1,
) -> Table:
    """Rows of `age_rows` as a table."""
    index = {"scale": "Scale", "tau": "τ_max", "seeds": "Seeds (n)"}
    columns = [
        *mean_columns(source.study, "Mean over benchmarks", decimals),
        Column("clip_fresh_percent", "Clipped (%)", "fresh", decimals=3),
        Column("clip_replay_percent", "Clipped (%)", "replay", decimals=3),
    ]
    below = (notes.INTERVALS, _CLIP_NOTE, notes.replay_but_age, notes.marks, notes.one_seed)
    return study_table(source, title, index, columns, rows, conditions, *below, *further_notes)


def age_rows(source: Source, conditions: list[Condition], grpo: Condition | None) -> list[Row]:
    """A row a condition of one scale: means marked against GRPO, and percent of clipped ratios."""

    def clipped(condition: Condition) -> dict[str, Estimate | None]:
        frames = step_frames(source.scores, source.results, condition)
        return {
            key: mean_over_steps(frames, name, 100.0, highest=100.0)
            for key, name in _CLIP_KEYS.items()
        }

    lines = [Line(c, {"tau": _age_label(c)}) for c in conditions]
    return marked_rows(source, lines, grpo, clipped)


def _age_label(condition: Condition) -> int | str:
    age, further = condition.axes.tau_max, varied_name(condition.but(TAU_MAX))
    if age is not None and not further:
        return age
    return ", ".join(filter(None, (str(age) if age else "GRPO (no replay)", further)))
