"""Columns and rows that several tables share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from grpo_replay.reporting.labels import BASE
from grpo_replay.reporting.numbers.conditions import Condition, finished_cells
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.significance import marked_means
from grpo_replay.reporting.tables.notes import Note, notes_below
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Label, Row, Table
from grpo_replay.results.scores import problem_count
from grpo_replay.study.config import Study


@dataclass(frozen=True)
class Line:
    """A row to be: its condition, and what its labels are in this table."""

    condition: Condition
    labels: dict[str, Label] = field(default_factory=dict)


def study_table(
    source: Source,
    title: str,
    index: dict[str, str],
    columns: list[Column],
    rows: list[Row],
    conditions: list[Condition],
    *notes: Note,
) -> Table:
    """A table of a study. Labels without a heading are for its csv alone; `conditions` are those
    that its rows are made from, and some notes are about.
    """
    further = dict.fromkeys(key for row in rows for key in row.labels if key not in index)
    below = notes_below(source, conditions, *notes)
    return Table(f"{title} ({source.study.title})", index, columns, rows, below, tuple(further))


def problems_text(study: Study) -> str:
    """How many problems a mean over the benchmarks rests on."""
    return f"n = {sum(map(problem_count, study.benchmarks.values()))}"


def mean_columns(study: Study, group: str, decimals: int = 1) -> list[Column]:
    """Avg and Pass: the unweighted means over the benchmarks."""
    n = problems_text(study)
    return [
        Column("avg", group, "Avg", n, decimals, tested=True),
        Column("pass", group, "Pass", n, decimals, tested=True),
    ]


def marked_rows(
    source: Source,
    lines: Sequence[Line],
    grpo: Condition | None,
    further: Callable[[Condition], dict[str, Estimate | None]] = lambda _: {},
) -> list[Row]:
    """A row a line of one scale: the means with marks against GRPO, and further numbers."""
    means = marked_means(source.scores, [line.condition for line in lines], grpo)
    return [
        Row(
            condition_labels(source, line.condition) | line.labels,
            numbers | further(line.condition),
        )
        for line, numbers in zip(lines, means, strict=True)
    ]


def condition_labels(source: Source, condition: Condition) -> dict[str, Label]:
    """The labels of a row; `seeds` counts the finished ones, a base model has none."""
    trained = condition.method != BASE
    return {
        "study": source.study.study,
        "scale": condition.scale,
        "method_key": condition.method,
        "tau_max": condition.axes.tau_max,
        "replay_ratio": condition.axes.replay_ratio,
        "alpha": condition.axes.alpha,
        "seeds": len(finished_cells(source.scores, condition)) if trained else None,
    }
