"""Tables 5 and 10 of the paper, and the numbers of Table 13: accuracy against length, the AES."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from grpo_replay.reporting.labels import method_name
from grpo_replay.reporting.numbers.conditions import Condition, PartialIdentity
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.means import Metric, mean_number
from grpo_replay.reporting.numbers.paired import Paired, metric_columns, paired
from grpo_replay.reporting.numbers.significance import (
    NOTE_PROBLEMS,
    PValues,
    marked,
    mean_p_values,
    p_values,
)
from grpo_replay.reporting.paper.design_space import (
    BASE_MODEL,
    METHOD,
    NO_REPLAY,
    SIGMA_POOL,
    UNIFORM_POOL,
)
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import problems_text, study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.statistics.benchmark_means import FloatArray, Statistic
from grpo_replay.statistics.metrics import accuracy_efficiency_score, ratio, relative_change

AES_NOTE = (
    "AES = (L_ref - L) / L_ref + w (A - A_ref) / A_ref, w = 3 for a gain in accuracy and 5 for a "
    "loss; A and L are unweighted means over the benchmarks (avg@k, tokens of all answers). A "
    "reference that solves nothing has no AES: a dash."
)
RATIO_NOTE = (
    "[95 % interval]: BCa bootstrap over problems, both models on the same ones; several seeds: "
    "Student's t over each seed's own ratio, whose middle is not quite the ratio of the means that "
    "is shown."
)
FIXED_NOTE = (
    "A row against base is tested for its lead over GRPO's AES against base, which stays in place. "
    "Losses weigh more than gains, so that equal models have an AES below 0 on average: the tests "
    "ask what the exchange of the two models gives, not whether the AES is 0."
)
_MEASURES: dict[str, Metric] = {"accuracy_percent": "avg_at_k", "length_tokens": "mean_length"}


@dataclass(frozen=True)
class Efficiency:
    """Accuracy and mean length of a model against a reference: the columns of Table 13."""

    delta_length_percent: FloatArray | np.float64
    delta_accuracy_percent: FloatArray | np.float64
    aes: FloatArray | np.float64


FIELDS = tuple(field.name for field in fields(Efficiency))


def efficiency(
    accuracy: ArrayLike,
    length: ArrayLike,
    reference_accuracy: ArrayLike,
    reference_length: ArrayLike,
) -> Efficiency:
    """Percent by which a model is shorter and more accurate than its reference, and its AES.

    Accuracies in percent, lengths in tokens, each a mean over the benchmarks; numbers, or arrays
    of one shape. nan against 0.
    """
    return Efficiency(
        100.0 * ratio(np.subtract(reference_length, length), reference_length),
        100.0 * relative_change(accuracy, reference_accuracy),
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
    lines += [(NO_REPLAY, row) for row in (UNIFORM_POOL, SIGMA_POOL, METHOD)]
    by_scale = {scale: _aes_of_scale(source, scale, lines) for scale in source.scales}
    rows = []
    for line in lines:
        reference, row = line
        labels = {"reference": method_name(reference.name), "method": method_name(row.name)}
        keys = {"reference_key": reference.name, "method_key": row.name}
        numbers = {scale: found[line] for scale, found in by_scale.items()}
        rows.append(Row({"study": source.study.study} | labels | keys, numbers))
    conditions = [
        source.at(scale, row)
        for reference, method in lines
        for scale in source.scales
        for row in (method, reference)
    ]
    return study_table(
        source,
        "Table 5: accuracy-efficiency score",
        {"reference": "Reference", "method": "Method"},
        [
            Column(scale, "AES", scale, problems_text(source.study), decimals=3, tested=True)
            for scale in source.scales
        ],
        rows,
        conditions,
        *(AES_NOTE, RATIO_NOTE, notes.replay, notes.marks, FIXED_NOTE, notes.seeds),
    )


def _aes_of_scale(
    source: Source, scale: str, lines: list[tuple[PartialIdentity, PartialIdentity]]
) -> dict[tuple[PartialIdentity, PartialIdentity], Estimate | None]:
    """The AES of each (reference, method) at a scale, marked against GRPO."""
    grpo = source.at(scale, NO_REPLAY)
    numbers, tests = {}, {}
    for reference, row in lines:
        own, fixed = source.at(scale, row), source.at(scale, reference)
        numbers[reference, row] = relative(source, own, fixed, ("aes",))["aes"]
        if row is not NO_REPLAY and reference is NO_REPLAY:
            tests[reference, row] = p_values(_pair(source, own, grpo), relative_field("aes"))
        elif row is not NO_REPLAY:
            tests[reference, row] = p_values(_pair(source, own, grpo, fixed), _lead_in_aes)
    return marked(numbers, tests)


def _lead_in_aes(means_BV: FloatArray) -> FloatArray:
    """AES of the first model less that of the second, both against the third: a `Statistic`."""
    one, other, fixed = np.split(means_BV, 3, axis=-1)
    aes = relative_field("aes")
    return aes(np.concatenate([one, fixed], -1)) - aes(np.concatenate([other, fixed], -1))


def table10(source: Source) -> Table:
    """Table 10: accuracy and length of the references, base model and GRPO."""
    rows, conditions = [], []
    by_scale = {scale: _references_of_scale(source, scale) for scale in source.scales}
    for reference in (BASE_MODEL, NO_REPLAY):
        for scale in source.scales:
            labels = {"reference": method_name(reference.name), "scale": scale}
            keys = {"study": source.study.study, "reference_key": reference.name}
            rows.append(Row(keys | labels, by_scale[scale][reference]))
            conditions.append(source.at(scale, reference))
    return study_table(
        source,
        "Table 10: the references of the AES",
        {"reference": "Reference", "scale": "Scale"},
        measure_columns(problems_text(source.study), tested=True),
        rows,
        conditions,
        notes.INTERVALS,
        "Unweighted means over the benchmarks. The length, in tokens with such an interval, is "
        "that of all answers.",
        NOTE_PROBLEMS,
        "base has no training seeds, so no test over them.",
        notes.seeds,
    )


def _references_of_scale(
    source: Source, scale: str
) -> dict[PartialIdentity, dict[str, Estimate | None]]:
    """The numbers of Table 10 at a scale, those of the base model marked against GRPO."""
    base, grpo = source.at(scale, BASE_MODEL), source.at(scale, NO_REPLAY)
    tests = {
        key: mean_p_values(source.scores, base, grpo, metric) for key, metric in _MEASURES.items()
    }
    return {BASE_MODEL: marked(means(source, base), tests), NO_REPLAY: means(source, grpo)}


def measure_columns(n: str, tested: bool = False) -> list[Column]:
    """Mean accuracy and length over the benchmarks, on the problems that `n` tells."""
    return [
        Column("accuracy_percent", "", "Accuracy (%)", n, decimals=2, tested=tested),
        Column("length_tokens", "", "Length (tokens)", n, decimals=0, tested=tested),
    ]


def means(source: Source, condition: Condition) -> dict[str, Estimate | None]:
    """The numbers of `measure_columns`."""
    return {key: mean_number(source.scores, condition, metric) for key, metric in _MEASURES.items()}


def relative(
    source: Source, condition: Condition, reference: Condition, names: tuple[str, ...] = FIELDS
) -> dict[str, Estimate | None]:
    """Fields of `Efficiency` of a condition against a reference; None where one is missing."""
    pair = _pair(source, condition, reference)
    return {name: pair and pair.number(relative_field(name)) for name in names}


def relative_p_values(source: Source, condition: Condition, grpo: Condition) -> dict[str, PValues]:
    """Tests of the same fields of a condition against GRPO."""
    pair = _pair(source, condition, grpo)
    return {name: p_values(pair, relative_field(name)) for name in FIELDS}


def relative_field(name: str) -> Statistic:
    """A field of `Efficiency` of the first model against the second, from means of both."""

    def of_means(means_BV: FloatArray) -> FloatArray:
        return getattr(efficiency(*np.moveaxis(means_BV.mean(axis=-2), -1, 0)), name)

    return of_means


def _pair(source: Source, *conditions: Condition) -> Paired | None:
    """Accuracy and length of each condition on each problem."""
    return paired(source.scores, metric_columns(source.scores, *_MEASURES.values()), conditions)
