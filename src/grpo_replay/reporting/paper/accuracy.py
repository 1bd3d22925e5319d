"""Tables 1, 2, 3, 4 and 9 of the paper: mean accuracies, marked against GRPO."""

from grpo_replay.reporting.labels import axis_name, method_name
from grpo_replay.reporting.numbers.conditions import Condition, PartialIdentity
from grpo_replay.reporting.paper.design_space import (
    METHOD,
    NO_REPLAY,
    SIGMA_POOL,
    UNIFORM_POOL,
    replayed,
)
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.age import age_rows, age_table
from grpo_replay.reporting.tables.main import benchmark_rows, benchmark_table
from grpo_replay.reporting.tables.parts import Line, marked_rows, mean_columns, study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Label, Row, Table
from grpo_replay.study.axes import ALPHA, RATIO, TAU_MAX

DECIMALS = 2  # the paper's
AGES = (1, 10, 30, 60)
_GRPO_NOTE = "none: GRPO, which replays nothing."
NONE = "none"  # the paper's label of GRPO on the axes of replay


def table01(source: Source) -> Table:
    """Table 1: GRPO, the two naive baselines and `ours` on every benchmark."""
    rows, shown = [], []
    for scale in source.scales:
        lines = [
            Line(source.at(scale, row), {"method": method_name(row.name), "method_key": row.name})
            for row in (NO_REPLAY, UNIFORM_POOL, SIGMA_POOL, METHOD)
        ]
        rows += benchmark_rows(source, lines, grpo=lines[0].condition)
        shown += [line.condition for line in lines]
    return benchmark_table(source, "Table 1: main results", rows, shown, decimals=DECIMALS)


def table02(source: Source) -> Table:
    """Table 2: `ours` at each tau_max, with the percentage of clipped ratios."""
    rows, shown = [], []
    for scale in source.ablation_scales:
        ages = [source.at(scale, METHOD.at({TAU_MAX: age})) for age in AGES]
        rows += age_rows(source, ages, source.at(scale, NO_REPLAY))
        shown += ages
    return age_table(source, "Table 2: age-based eviction", rows, shown, decimals=DECIMALS)


def table03(source: Source) -> Table:
    """Table 3: how the batch is composed, under rollout-level |A| priority."""
    compositions = {
        NO_REPLAY: NONE,
        replayed("pool", "rollout", "abs_advantage"): "pool",
        METHOD: "anchored",
    }
    lines = {row: {"composition": word} for row, word in compositions.items()}
    title, index = "Table 3: composition of the batch", {"composition": "Composition"}
    return _means_table(source, source.scales, title, index, lines)


def table04(source: Source) -> Table:
    """Table 4: priority and unit of the anchored draw."""
    pairs = [(p, unit) for p in ("uniform", "sigma_g") for unit in ("query", "rollout")]
    pairs.append(("abs_advantage", "rollout"))
    lines = {NO_REPLAY: axis_labels(NONE, NONE)}
    lines |= {replayed("anchored", unit, p): axis_labels(p, unit) for p, unit in pairs}
    title, index = "Table 4: priority and unit", {"priority": "Priority", "unit": "Unit"}
    return _means_table(source, source.ablation_scales, title, index, lines)


def table09(source: Source) -> Table:
    """Table 9: replay ratio r and priority exponent alpha of `ours`."""
    pairs = [(0.5, 0.5), (0.5, 1.0), (1.0, 0.5), (1.0, 1.0)]
    lines = {NO_REPLAY: {"replay_ratio": NONE, "alpha": NONE}}
    lines |= {METHOD.at({RATIO: r, ALPHA: a}): {"replay_ratio": r, "alpha": a} for r, a in pairs}
    title, index = (
        "Table 9: replay ratio and priority exponent",
        {"replay_ratio": "r", "alpha": "α"},
    )
    return _means_table(source, source.ablation_scales, title, index, lines)


def axis_labels(priority: str, unit: str) -> dict[str, Label]:
    """Priority and unit as people read them, and the study's key of the priority."""
    return {"priority": axis_name(priority), "priority_key": priority, "unit": unit}


def _means_table(
    source: Source,
    scales: list[str],
    title: str,
    index: dict[str, str],
    labels: dict[PartialIdentity, dict[str, Label]],
) -> Table:
    """Avg and Pass of every row at each scale; `labels` has those of each row."""
    rows: list[Row] = []
    shown: list[Condition] = []
    for scale in scales:
        lines = [Line(source.at(scale, row), of_row) for row, of_row in labels.items()]
        rows += marked_rows(source, lines, source.at(scale, NO_REPLAY))
        shown += [line.condition for line in lines]
    index = {"scale": "Scale", **index, "seeds": "Seeds (n)"}
    columns = mean_columns(source.study, "Mean over benchmarks", DECIMALS)
    below = (notes.INTERVALS, _GRPO_NOTE, notes.replay, notes.marks, notes.one_seed)
    return study_table(source, title, index, columns, rows, shown, *below)
