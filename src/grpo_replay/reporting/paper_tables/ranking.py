"""Table 13 of the paper: the anchored cells ranked by their AES against GRPO."""

from dataclasses import replace

from grpo_replay.reporting import published
from grpo_replay.reporting.formats import Column, Row, Table
from grpo_replay.reporting.main_table import problems_text
from grpo_replay.reporting.paper_tables.accuracy import axis_labels
from grpo_replay.reporting.paper_tables.efficiency import (
    AES_NOTE,
    RATIO_NOTE,
    means,
    measure_columns,
    ranks,
    relative,
)
from grpo_replay.reporting.paper_tables.points import NO_REPLAY, Point, Source


def table13(source: Source) -> Table:
    """Table 13: the twelve cells that the paper ranks, by the study's own AES."""
    points = [_point(line) for line in published.rows("table13")]
    rows, settings = [], []
    for scale in source.ablation_scales:
        grpo = source.at(scale, NO_REPLAY)
        found = [source.at(scale, point) for point in points]
        numbers = [means(source, s) | relative(source, s, grpo) for s in found]
        labels = [_labels(source, scale, point) for point in points]
        rows += ranked([Row(*pair) for pair in zip(labels, numbers, strict=True)])
        settings += [grpo, *found]
    n = problems_text(source.study)
    return Table(
        title=f"Table 13: anchored cells ranked by AES ({source.study.title})",
        stub={
            "scale": "Scale",
            "rank": "Rank",
            "priority": "Priority",
            "unit": "Unit",
            "alpha": "α",
            "tau_max": "τ_max",
            "replay_ratio": "r",
        },
        columns=[
            *measure_columns(n),
            Column("delta_length_percent", "", "ΔL (%)", n),
            Column("delta_accuracy_percent", "", "ΔAcc (%)", n),
            Column("aes", "", "AES", n, decimals=3),
        ],
        rows=rows,
        notes=[
            AES_NOTE,
            "Against GRPO of the same scale: ΔL > 0 is shorter, ΔAcc > 0 more accurate.",
            RATIO_NOTE,
            "Equal scores share a rank; the order of ranks whose intervals overlap is no finding.",
            *source.seeds(settings),
            *source.missing(settings),
        ],
        hidden=("study", "priority_key"),
    )


def ranked(rows: list[Row]) -> list[Row]:
    """The rows by falling AES, with their rank; those without an AES keep their order below."""
    scores = [number.value if (number := row.numbers["aes"]) else None for row in rows]
    found = zip(rows, ranks(scores), strict=True)
    labelled = [replace(row, labels=row.labels | {"rank": rank}) for row, rank in found]
    return sorted(labelled, key=lambda row: row.labels["rank"] or len(rows) + 1)


def _point(line: dict[str, str]) -> Point:
    return Point(
        "anchored",
        line["unit"],
        line["priority"],
        int(line["tau_max"]),
        float(line["replay_ratio"]),
        float(line["alpha"]),
    )


def _labels(source: Source, scale: str, point: Point) -> dict:
    axes = {"alpha": point.alpha, "tau_max": point.tau_max, "replay_ratio": point.replay_ratio}
    names = axis_labels(point.priority, point.unit)
    return {"study": source.study.study, "scale": scale} | axes | names
