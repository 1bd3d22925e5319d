"""Table 1 of the paper: every method on every benchmark, with chance line and base model."""

import pandas as pd

from grpo_replay.reporting.numbers.chance import chance_percent
from grpo_replay.reporting.numbers.number import Number
from grpo_replay.reporting.numbers.settings import (
    default_settings,
    used_scales,
)
from grpo_replay.reporting.tables.notes import (
    INTERVAL_NOTE,
    comparison_notes,
    missing_notes,
    setting_notes,
)
from grpo_replay.reporting.tables.parts import HIDDEN, benchmark_columns, scale_rows
from grpo_replay.reporting.tables.table import Row, Table
from grpo_replay.study.config import Study


def build(study: Study, scores: pd.DataFrame, config: str) -> Table:
    """The main table from `scores.parquet`; a cell without scores is a dash and a note.

    `config` is what the note's command has behind `--config`.
    """
    by_scale = {scale: default_settings(study, scale) for scale in used_scales(study)}
    settings = [setting for found in by_scale.values() for setting in found]
    rows = []
    for scale, found in by_scale.items():
        rows += [_chance_row(study, scale), *scale_rows(study, scores, found)]
    return Table(
        title=f"Accuracy of every method ({study.title})",
        stub={"scale": "Scale", "method": "Method", "seeds": "Seeds (n)"},
        columns=benchmark_columns(study),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            "Avg and Pass: unweighted means over the benchmarks. Chance: answers drawn at random.",
            *setting_notes(settings),
            *comparison_notes(scores, settings),
            *missing_notes(study, scores, settings, config),
        ],
        hidden=HIDDEN,
    )


def _chance_row(study: Study, scale: str) -> Row:
    chances = {name: chance_percent(study, b) for name, b in study.benchmarks.items()}
    numbers: dict[str, Number | None] = {
        f"{name}_{part}": Number(value)
        for name, parts in chances.items()
        for part, value in parts.items()
    }
    for part in ("avg", "pass"):
        numbers[part] = Number(sum(c[part] for c in chances.values()) / len(chances))
    labels = {"study": study.study, "scale": scale, "method": "chance", "method_key": "chance"}
    return Row(labels, numbers)
