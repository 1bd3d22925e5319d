"""What was trained on: the metrics of the training records that have a heading, for every cell."""

import math

from grpo_replay.reporting.labels import BASE
from grpo_replay.reporting.numbers.conditions import Condition, all_conditions
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.training import STEPS_NOTE, mean_over_steps, step_frames
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import condition_labels, study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.training.step_metrics import HEADINGS

_FIGURES = 3  # that a column shows of its largest number
_NOTE = (
    "Means over the training steps that have the metric; `train/metrics.jsonl` has every step, and "
    f"config/README.md the meaning of each. {STEPS_NOTE}"
)


def build(source: Source) -> Table:
    """A row a trained condition, a column a metric; a metric that no cell has is left out."""
    conditions = [c for c in all_conditions(source.study) if c.method != BASE]
    rows = [
        Row(
            condition_labels(source, condition) | {"method": condition.name},
            _numbers(source, condition),
        )
        for condition in conditions
    ]
    columns = [
        Column(name, "", heading, decimals=_decimals(rows, name))
        for name, heading in HEADINGS.items()
        if any(row.numbers[name] for row in rows)
    ]
    index = {"scale": "Scale", "method": "Method", "seeds": "Seeds (n)"}
    title = "Training: means over the steps"
    return study_table(source, title, index, columns, rows, conditions, _NOTE, notes.replay)


def _numbers(source: Source, condition: Condition) -> dict[str, Estimate | None]:
    frames = step_frames(source.scores, source.results, condition)
    return {name: mean_over_steps(frames, name, lowest=-math.inf) for name in HEADINGS}


def _decimals(rows: list[Row], name: str) -> int:
    largest = max(abs(number.value) for row in rows if (number := row.numbers[name]))
    return max(_FIGURES - 1 - math.floor(math.log10(largest)), 0) if largest else 0
