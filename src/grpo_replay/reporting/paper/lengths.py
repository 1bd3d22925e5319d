"""Tables 6 and 11 of the paper: lengths of correct and of incorrect answers, from the grades."""

from dataclasses import replace

import pandas as pd

from grpo_replay.reporting.numbers.conditions import Condition
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.paired import Columns, Paired, paired
from grpo_replay.reporting.numbers.significance import GRPO_ALONE, PValues, marked, p_values
from grpo_replay.reporting.paper.design_space import METHOD, NO_REPLAY
from grpo_replay.reporting.tables import notes
from grpo_replay.reporting.tables.parts import study_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Column, Row, Table
from grpo_replay.results.layout import CellFiles
from grpo_replay.statistics.benchmark_means import FloatArray, Statistic
from grpo_replay.statistics.metrics import ratio, relative_change
from grpo_replay.study.cells import Cell

SIDES = ("correct", "incorrect")
_POOLED_NOTE = (
    "Mean over all answers of the benchmarks together, each answer counting once (the paper leaves "
    "open how it averages). n in the csv: problems with such an answer. [95 % interval]: BCa "
    "bootstrap over problems within benchmarks; several seeds: Student's t over each seed's own "
    "number, whose middle is not quite that of all answers that is shown."
)


def table06(source: Source) -> Table:
    """Table 6: percent change of the mean length of `ours` against GRPO."""
    conditions = [(source.at(s, METHOD), source.at(s, NO_REPLAY)) for s in source.scales]
    every = [condition for pair in conditions for condition in pair]
    return study_table(
        source,
        "Table 6: length by correctness, ours against GRPO",
        {"scale": "Scale"},
        [
            Column("delta_correct_percent", "", "ΔL correct (%)", tested=True),
            Column("delta_incorrect_percent", "", "ΔL incorrect (%)", tested=True),
        ],
        [
            Row({"study": source.study.study, "scale": ours.scale}, _changes(source, ours, grpo))
            for ours, grpo in conditions
        ],
        every,
        *(_POOLED_NOTE, notes.replay, notes.marks, notes.seeds),
    )


def table11(source: Source) -> Table:
    """Table 11: GRPO's mean length of correct and of incorrect answers."""
    conditions = [source.at(scale, NO_REPLAY) for scale in source.scales]
    return study_table(
        source,
        "Table 11: GRPO's lengths by correctness",
        {"scale": "Scale"},
        [Column(f"{s}_tokens", "", f"{s.title()} (tokens)", decimals=0) for s in SIDES],
        [
            Row(
                {"study": source.study.study, "scale": grpo.scale},
                {f"{side}_tokens": _length(source, grpo, side) for side in SIDES},
            )
            for grpo in conditions
        ],
        conditions,
        *(_POOLED_NOTE, notes.replay, GRPO_ALONE, notes.seeds),
    )


def _length(source: Source, condition: Condition, side: str) -> Estimate | None:
    pair = paired(source.scores, _answers(source, side), [condition])
    return None if pair is None else _number(pair, _mean_length(pair), lowest=0.0)


def _changes(source: Source, ours: Condition, grpo: Condition) -> dict[str, Estimate | None]:
    """Both numbers of a scale, marked. Tokens and counts of a problem are exchanged together."""
    numbers: dict[str, Estimate | None] = {}
    tests: dict[str, PValues] = {}
    for side in SIDES:
        key = f"delta_{side}_percent"
        pair = paired(source.scores, _answers(source, side), [ours, grpo])
        numbers[key] = None if pair is None else _number(pair, _change(pair), lowest=-100.0)
        if pair is not None:
            tests[key] = p_values(pair, _change(pair))
    return marked(numbers, tests)


def _number(pair: Paired, statistic: Statistic, lowest: float) -> Estimate:
    """`n` counts the problems for which the first model has such an answer."""
    return replace(pair.number(statistic, lowest), n=int((pair.values_PV[:, 1] > 0).sum()))


def _mean_length(pair: Paired) -> Statistic:
    """Tokens over answers, summed over the problems of all benchmarks; nan without an answer."""

    def of_means(means_BV: FloatArray) -> FloatArray:
        sums_V = pair.sizes_B @ means_BV
        return ratio(sums_V[..., 0], sums_V[..., 1])

    return of_means


def _change(pair: Paired) -> Statistic:
    """Percent change of that length of the first model against the second."""
    length = _mean_length(pair)

    def of_means(means_BV: FloatArray) -> FloatArray:
        return 100.0 * relative_change(length(means_BV[..., :2]), length(means_BV[..., 2:]))

    return of_means


def _answers(source: Source, side: str) -> Columns:
    """Tokens and number of a problem's answers on one side."""

    def columns(cell: Cell) -> pd.DataFrame:
        frames = {}
        for benchmark in source.study.benchmarks:
            path = CellFiles(source.results, cell.cell).grades(benchmark)
            grades = pd.read_parquet(path, columns=["problem_id", "correct", "n_tokens"])
            counted = grades["correct"] == (side == "correct")
            tokens = grades["n_tokens"].where(counted, 0)
            sums = pd.DataFrame({"tokens": tokens.astype(float), "answers": counted.astype(float)})
            frames[benchmark] = sums.groupby(grades["problem_id"].astype(str)).sum()
        return pd.concat(frames, names=["benchmark", "problem"])

    return columns
