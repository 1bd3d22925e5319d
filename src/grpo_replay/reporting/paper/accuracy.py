"""Tables 1, 2, 3, 4 and 9 of the paper: mean accuracies, marked against GRPO."""

from grpo_replay.reporting.labels import axis_name, method_name
from grpo_replay.reporting.numbers.number import Number
from grpo_replay.reporting.numbers.settings import Setting, finished_cells
from grpo_replay.reporting.numbers.significance import marked_means
from grpo_replay.reporting.paper.design_space import (
    METHOD,
    NO_REPLAY,
    SIGMA_POOL,
    UNIFORM_POOL,
    Point,
    Source,
)
from grpo_replay.reporting.tables import age
from grpo_replay.reporting.tables.notes import INTERVAL_NOTE, comparison_notes, setting_notes
from grpo_replay.reporting.tables.parts import (
    HIDDEN,
    benchmark_columns,
    mean_columns,
    scale_rows,
    setting_labels,
)
from grpo_replay.reporting.tables.table import Row, Table

DECIMALS = 2  # the paper's
AGES = (1, 10, 30, 60)
NONE = "none"  # the paper's label of GRPO on the axes of replay
PAPER_VERIFIER = ":grade_paper"  # ends the keys of numbers that its verdicts give


def table01(source: Source) -> Table:
    """Table 1: GRPO, the two naive baselines and `ours` on every benchmark."""
    points = (NO_REPLAY, UNIFORM_POOL, SIGMA_POOL, METHOD)
    by_scale = [[source.at(scale, point) for point in points] for scale in source.scales]
    settings = [setting for found in by_scale for setting in found]
    rows = []
    for found in by_scale:
        made = scale_rows(source.study, source.scores, found)
        for point, row in zip(points, made, strict=True):
            names = {"method": method_name(point.name), "method_key": point.name}
            verdicts = _by_the_papers_verifier(source, source.at(row.labels["scale"], point))
            rows.append(Row(row.labels | names, row.numbers | verdicts))
    return Table(
        title=f"Table 1: main results ({source.study.title})",
        stub={"scale": "Scale", "method": "Method", "seeds": "Seeds (n)"},
        columns=benchmark_columns(source.study, DECIMALS),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            "Avg and Pass: unweighted means over the benchmarks.",
            *setting_notes([s for s in settings if s.cells]),
            *comparison_notes(source.scores, settings),
            *source.missing(settings),
        ],
        hidden=HIDDEN,
    )


def _by_the_papers_verifier(source: Source, setting: Setting) -> dict[str, Number | None]:
    """avg@k and its mean under the paper's verifier (math-verify on the raw text), for the
    comparison with the paper's numbers.
    """
    cells = [cell.cell for cell in finished_cells(source.scores, setting)]
    if not cells:
        return {}
    own = source.scores[source.scores["cell"].isin(cells)]
    means = own.groupby("benchmark")["avg_at_k_paper"].mean().dropna()
    if means.empty:  # a task without that verifier
        return {}
    numbers: dict[str, Number | None] = {
        f"{name}_avg{PAPER_VERIFIER}": Number(float(mean)) for name, mean in means.items()
    }
    return numbers | {f"avg{PAPER_VERIFIER}": Number(float(means.mean()))}


def table02(source: Source) -> Table:
    """Table 2: `ours` at each tau_max, with the percentage of clipped ratios."""
    rows, settings = [], []
    for scale in source.ablation_scales:
        ages = [source.at(scale, Point(*_axes(METHOD), tau_max=tau)) for tau in AGES]
        grpo = source.at(scale, NO_REPLAY)
        rows += age.scale_rows(source.study, source.scores, source.results, ages, grpo)
        settings += ages
    return Table(
        title=f"Table 2: age-based eviction ({source.study.title})",
        stub={"scale": "Scale", "tau": "τ_max", "seeds": "Seeds (n)"},
        columns=age.columns(source.study, DECIMALS),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            age.CLIP_NOTE,
            *age.other_axes_note([s for s in settings if s.cells]),
            *comparison_notes(source.scores, settings),
            *source.missing(settings),
        ],
        hidden=HIDDEN,
    )


def table03(source: Source) -> Table:
    """Table 3: how the batch is composed, under rollout-level |A| priority."""
    points = [NO_REPLAY, Point("pool", "rollout", "abs_advantage"), METHOD]
    lines = {point: {"composition": point.composition} for point in points}
    title, stub = "Table 3: composition of the batch", {"composition": "Composition"}
    return _means_table(source, source.scales, title, stub, lines)


def table04(source: Source) -> Table:
    """Table 4: priority and unit of the anchored draw."""
    points = [
        NO_REPLAY,
        Point("anchored", "query", "uniform"),
        Point("anchored", "rollout", "uniform"),
        Point("anchored", "query", "sigma_g"),
        Point("anchored", "rollout", "sigma_g"),
        METHOD,
    ]
    lines = {point: axis_labels(point.priority, point.unit) for point in points}
    title, stub = "Table 4: priority and unit", {"priority": "Priority", "unit": "Unit"}
    return _means_table(source, source.ablation_scales, title, stub, lines)


def table09(source: Source) -> Table:
    """Table 9: replay ratio r and priority exponent alpha of `ours`."""
    pairs = [(0.5, 0.5), (0.5, 1.0), (1.0, 0.5), (1.0, 1.0)]
    points = [NO_REPLAY, *(Point(*_axes(METHOD), replay_ratio=r, alpha=a) for r, a in pairs)]
    axes = {p: {"replay_ratio": p.replay_ratio, "alpha": p.alpha} for p in points}
    lines = axes | {NO_REPLAY: dict.fromkeys(("replay_ratio", "alpha"), NONE)}
    title, stub = "Table 9: replay ratio and priority exponent", {"replay_ratio": "r", "alpha": "α"}
    return _means_table(source, source.ablation_scales, title, stub, lines)


def axis_labels(priority: str | None, unit: str | None) -> dict[str, str]:
    """Priority and unit as people read them, and the study's key of the priority."""
    return {
        "priority": axis_name(priority or NONE),
        "priority_key": priority or NONE,
        "unit": unit or NONE,
    }


def _axes(point: Point) -> tuple[str | None, str | None, str | None]:
    return point.composition, point.unit, point.priority


def _means_table(
    source: Source, scales: list[str], title: str, stub: dict[str, str], lines: dict[Point, dict]
) -> Table:
    """Avg and Pass of one row a point at each scale; `lines` has the labels of each point."""
    rows: list[Row] = []
    settings: list[Setting] = []
    for scale in scales:
        found = [source.at(scale, point) for point in lines]
        grpo = source.at(scale, NO_REPLAY)
        means = marked_means(source.scores, found, grpo)
        for setting, labels, numbers in zip(found, lines.values(), means, strict=True):
            known = setting_labels(source.study, source.scores, setting)
            rows.append(Row(known | labels, numbers))
        settings += found
    return Table(
        title=f"{title} ({source.study.title})",
        stub={"scale": "Scale", **stub, "seeds": "Seeds (n)"},
        columns=mean_columns(source.study, "Mean over benchmarks", DECIMALS),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            "none: GRPO, which replays nothing.",
            *setting_notes([s for s in settings if s.cells]),
            *comparison_notes(source.scores, settings),
            *source.missing(settings),
        ],
        hidden=_hidden(stub, lines),
    )


def _hidden(stub: dict[str, str], lines: dict[Point, dict]) -> tuple[str, ...]:
    keys = [key for labels in lines.values() for key in labels if key.endswith("_key")]
    return tuple(key for key in dict.fromkeys([*HIDDEN, *keys]) if key not in stub)
