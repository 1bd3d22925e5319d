"""Table 13 of the paper: the anchored cells ranked by their AES against GRPO."""

from dataclasses import replace

from grpo_replay.reporting.numbers.conditions import Condition, PartialIdentity
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.significance import marked
from grpo_replay.reporting.paper import published
from grpo_replay.reporting.paper.accuracy import axis_labels
from grpo_replay.reporting.paper.design_space import NO_REPLAY, replayed
from grpo_replay.reporting.paper.efficiency import (
    AES_NOTE,
    FIELDS,
    RATIO_NOTE,
    means,
    measure_columns,
    ranks,
    relative,
    relative_p_values,
)
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import problems_text, study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.study.axes import REPLAY_AXES


def table13(source: Source) -> Table:
    """Table 13: the twelve cells that the paper ranks, by the study's own AES."""
    lines = {_row(line): _labels(line) for line in published.rows("table13")}
    rows, conditions = [], []
    for scale in source.ablation_scales:
        grpo = source.at(scale, NO_REPLAY)
        found = [source.at(scale, row) for row in lines]
        numbers = _marked_numbers(source, found, grpo)
        place = {"study": source.study.study, "scale": scale}
        labels = [place | of_line for of_line in lines.values()]
        rows += ranked([Row(*pair) for pair in zip(labels, numbers, strict=True)])
        conditions += [grpo, *found]
    n = problems_text(source.study)
    return study_table(
        source,
        "Table 13: anchored cells ranked by AES",
        {
            "scale": "Scale",
            "rank": "Rank",
            "priority": "Priority",
            "unit": "Unit",
            "alpha": "α",
            "tau_max": "τ_max",
            "replay_ratio": "r",
        },
        [
            *measure_columns(n),
            Column("delta_length_percent", "", "ΔL (%)", n, tested=True),
            Column("delta_accuracy_percent", "", "ΔAcc (%)", n, tested=True),
            Column("aes", "", "AES", n, decimals=3, tested=True),
        ],
        rows,
        conditions,
        AES_NOTE,
        "Against GRPO of the same scale: ΔL > 0 is shorter, ΔAcc > 0 more accurate.",
        RATIO_NOTE,
        notes.marks,
        "Marked are the three columns against GRPO; ΔL and ΔAcc stand for length and accuracy.",
        "Equal scores share a rank; the order of ranks whose intervals overlap is no finding.",
        notes.seeds,
    )


def _marked_numbers(
    source: Source, conditions: list[Condition], grpo: Condition
) -> list[dict[str, Estimate | None]]:
    """The numbers of each row of a scale, those against GRPO marked."""
    numbers, tests = {}, {}
    for position, condition in enumerate(conditions):
        found = relative(source, condition, grpo)
        p_of = relative_p_values(source, condition, grpo)
        numbers |= {(position, name): number for name, number in found.items()}
        tests |= {(position, name): p for name, p in p_of.items()}
    against_grpo = marked(numbers, tests)
    return [
        means(source, condition) | {name: against_grpo[position, name] for name in FIELDS}
        for position, condition in enumerate(conditions)
    ]


def ranked(rows: list[Row]) -> list[Row]:
    """The rows by falling AES, with their rank; those without an AES keep their order below."""
    scores = [number.value if (number := row.numbers["aes"]) else None for row in rows]
    found = zip(rows, ranks(scores), strict=True)
    labelled = [replace(row, labels=row.labels | {"rank": rank}) for row, rank in found]
    return sorted(labelled, key=lambda row: row.labels["rank"] or len(rows) + 1)


def _row(line: dict[str, str]) -> PartialIdentity:
    axes = ("anchored", line["unit"], line["priority"])
    values = (int(line["tau_max"]), float(line["replay_ratio"]), float(line["alpha"]))
    return replayed(*axes, dict(zip(REPLAY_AXES, values, strict=True)))


def _labels(line: dict[str, str]) -> dict:
    axes = {key: float(line[key]) for key in ("alpha", "replay_ratio")}
    names = axis_labels(line["priority"], line["unit"])
    return axes | {"tau_max": int(line["tau_max"])} | names
