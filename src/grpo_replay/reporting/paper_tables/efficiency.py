"""Tables 5 and 10 of the paper, and the numbers of Table 13: accuracy against length, the AES."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy import stats

from grpo_replay import statistics
from grpo_replay.metrics import accuracy_efficiency_score
from grpo_replay.reporting.formats import Column, Number, Row, Table
from grpo_replay.reporting.labels import method_name
from grpo_replay.reporting.main_table import INTERVAL_NOTE, problems_text, setting_notes
from grpo_replay.reporting.paper_tables.points import (
    BASE_MODEL,
    METHOD,
    NO_REPLAY,
    SIGMA_POOL,
    UNIFORM_POOL,
    Source,
)
from grpo_replay.reporting.summaries import (
    Metric,
    Setting,
    benchmark_mean,
    ends,
    finished_cells,
    mean_number,
    problem_values,
    same_problems,
    with_seeds,
)

AES_NOTE = (
    "AES = (L_ref - L) / L_ref + w (A - A_ref) / A_ref, w = 3 for a gain in accuracy and 5 for a "
    "loss; A and L are unweighted means over the benchmarks (avg@k, tokens of all answers). A "
    "reference that solves nothing has no AES: a dash."
)
RATIO_NOTE = (
    "[95 % interval]: BCa bootstrap over problems, both models on the same ones; several seeds: "
    "Student's t over each seed's own ratio, whose middle is not quite the ratio of the means that "
    "is shown. No significance is marked here."
)
_MEASURES: tuple[Metric, ...] = ("avg_at_k", "mean_length")


@dataclass(frozen=True)
class Efficiency:
    """Accuracy and mean length of a model against a reference: the columns of Table 13."""

    delta_length_percent: float
    delta_accuracy_percent: float
    aes: float


FIELDS = tuple(field.name for field in fields(Efficiency))


def efficiency(
    accuracy: float, length: float, reference_accuracy: float, reference_length: float
) -> Efficiency:
    """Percent by which a model is shorter and more accurate than its reference, and its AES.

    Accuracies in percent, lengths in tokens, each a mean over the benchmarks. nan against 0.
    """

    def percent(change: float, reference: float) -> float:
        return 100.0 * change / reference if reference else np.nan

    return Efficiency(
        percent(reference_length - length, reference_length),
        percent(accuracy - reference_accuracy, reference_accuracy),
        accuracy_efficiency_score(accuracy, length, reference_accuracy, reference_length),
    )


def ranks(scores: Sequence[float | None]) -> list[int | None]:
    """Rank by AES, the highest first; equal scores share the best rank, None and nan have none."""
    values = np.array([np.nan if score is None else score for score in scores], dtype=float)
    found = stats.rankdata(-values, method="min", nan_policy="omit")
    return [None if np.isnan(rank) else int(rank) for rank in found]


def table05(source: Source) -> Table:
    """Table 5: AES against the base model, and against GRPO."""
    lines = [(BASE_MODEL, NO_REPLAY), (BASE_MODEL, METHOD)]
    lines += [(NO_REPLAY, point) for point in (UNIFORM_POOL, SIGMA_POOL, METHOD)]
    rows, settings = [], []
    for reference, point in lines:
        pairs = {
            scale: (source.at(scale, point), source.at(scale, reference)) for scale in source.scales
        }
        numbers = {scale: relative(source, *pair, ("aes",))["aes"] for scale, pair in pairs.items()}
        labels = {"reference": method_name(reference.name), "method": method_name(point.name)}
        keys = {"reference_key": reference.name, "method_key": point.name}
        rows.append(Row({"study": source.study.study} | labels | keys, numbers))
        settings += [setting for pair in pairs.values() for setting in pair]
    return Table(
        title=f"Table 5: accuracy-efficiency score ({source.study.title})",
        stub={"reference": "Reference", "method": "Method"},
        columns=[
            Column(scale, "AES", scale, problems_text(source.study), decimals=3)
            for scale in source.scales
        ],
        rows=rows,
        notes=[
            AES_NOTE,
            RATIO_NOTE,
            *setting_notes([s for s in settings if s.cells]),
            *source.seeds(settings),
            *source.missing(settings),
        ],
        hidden=("study", "reference_key", "method_key"),
    )


def table10(source: Source) -> Table:
    """Table 10: accuracy and length of the references, base model and GRPO."""
    rows, settings = [], []
    for reference in (BASE_MODEL, NO_REPLAY):
        for scale in source.scales:
            setting = source.at(scale, reference)
            labels = {"reference": method_name(reference.name), "scale": scale}
            keys = {"study": source.study.study, "reference_key": reference.name}
            rows.append(Row(keys | labels, means(source, setting)))
            settings.append(setting)
    return Table(
        title=f"Table 10: the references of the AES ({source.study.title})",
        stub={"reference": "Reference", "scale": "Scale"},
        columns=measure_columns(problems_text(source.study)),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            "Unweighted means over the benchmarks. The length, in tokens with such an interval, is "
            "that of all answers.",
            *source.seeds(settings),
            *source.missing(settings),
        ],
        hidden=("study", "reference_key"),
    )


def measure_columns(n: str) -> list[Column]:
    """Mean accuracy and length over the benchmarks, on the problems that `n` tells."""
    return [
        Column("accuracy_percent", "", "Accuracy (%)", n, decimals=2),
        Column("length_tokens", "", "Length (tokens)", n, decimals=0),
    ]


def means(source: Source, setting: Setting) -> dict[str, Number | None]:
    """The numbers of `measure_columns`."""
    return {
        "accuracy_percent": mean_number(source.scores, setting, "avg_at_k"),
        "length_tokens": mean_number(source.scores, setting, "mean_length"),
    }


def relative(
    source: Source, setting: Setting, reference: Setting, names: tuple[str, ...] = FIELDS
) -> dict[str, Number | None]:
    """Fields of `Efficiency` of a setting against a reference; None where one is missing."""
    if not finished_cells(source.scores, setting) or not finished_cells(source.scores, reference):
        return dict.fromkeys(names)
    values_PV, strata_P = _paired_values(source, setting, reference)
    return {
        field: _relative_number(source, setting, reference, values_PV, strata_P, field)
        for field in names
    }


def _relative_number(
    source: Source,
    setting: Setting,
    reference: Setting,
    values_PV: np.ndarray,
    strata_P: np.ndarray,
    field: str,
) -> Number:
    statistic = _statistic(field)
    names = np.unique(strata_P)
    means_SV = np.stack([values_PV[strata_P == name].mean(axis=0) for name in names])
    interval = statistics.stratified_interval(values_PV, strata_P, statistic=statistic)
    seeds = len(finished_cells(source.scores, setting))
    number = Number(statistic(means_SV), *ends(interval), n=len(values_PV), remark=f"n={seeds}")
    per_seed = _per_seed(source, setting, reference)
    values_S = np.array([getattr(found, field) for found in per_seed])
    if len(values_S) < 2 or np.isnan(values_S).any():
        return number
    return with_seeds(number, values_S, -np.inf, np.inf)


def _statistic(field: str) -> Callable[[np.ndarray], float]:
    return lambda means_SV: getattr(efficiency(*means_SV.mean(axis=0).tolist()), field)


def _paired_values(
    source: Source, setting: Setting, reference: Setting
) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy and length of both on each problem (P, 4), mean over seeds, and its benchmark."""
    columns = []
    for one in (setting, reference):
        cells = finished_cells(source.scores, one)
        columns += [problem_values(source.scores, cells, metric) for metric in _MEASURES]
    same_problems(columns[0], columns[2], setting, reference)
    strata_P = columns[0].index.get_level_values("benchmark").to_numpy(dtype=str)
    return np.column_stack([column.to_numpy() for column in columns]), strata_P


def _per_seed(source: Source, setting: Setting, reference: Setting) -> list[Efficiency]:
    """The fields of every seed that both have; a base model serves every seed."""
    by_seed = {cell.seed: cell for cell in finished_cells(source.scores, reference)}
    found = []
    for cell in finished_cells(source.scores, setting):
        partner = by_seed.get(cell.seed, by_seed.get(None))
        if partner is not None:
            values = [
                benchmark_mean(problem_values(source.scores, [one], metric))
                for one in (cell, partner)
                for metric in _MEASURES
            ]
            found.append(efficiency(*values))
    return found
