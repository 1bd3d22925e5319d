"""Tables 6 and 11 of the paper: lengths of correct and of incorrect answers, from the grades."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from grpo_replay import grid, statistics
from grpo_replay.reporting.formats import Column, Number, Row, Table
from grpo_replay.reporting.main_table import setting_notes
from grpo_replay.reporting.paper_tables.points import METHOD, NO_REPLAY, Source
from grpo_replay.reporting.summaries import (
    Setting,
    ends,
    finished_cells,
    same_problems,
    with_seeds,
)

SIDES = ("correct", "incorrect")
_POOLED_NOTE = (
    "Mean over all answers of the benchmarks together, each answer counting once (the paper leaves "
    "open how it averages). n in the csv: problems with such an answer. [95 % interval]: BCa "
    "bootstrap over problems within benchmarks; several seeds: Student's t over each seed's own "
    "number, whose middle is not quite that of all answers that is shown."
)


def table06(source: Source) -> Table:
    """Table 6: percent change of the mean length of `ours` against GRPO."""
    settings = [(source.at(s, METHOD), source.at(s, NO_REPLAY)) for s in source.scales]
    return Table(
        title=f"Table 6: length by correctness, ours against GRPO ({source.study.title})",
        stub={"scale": "Scale"},
        columns=[
            Column("delta_correct_percent", "", "ΔL correct (%)"),
            Column("delta_incorrect_percent", "", "ΔL incorrect (%)"),
        ],
        rows=[
            Row(
                {"study": source.study.study, "scale": ours.scale},
                {f"delta_{side}_percent": _change(source, ours, grpo, side) for side in SIDES},
            )
            for ours, grpo in settings
        ],
        notes=_notes(source, [s for pair in settings for s in pair]),
        hidden=("study",),
    )


def table11(source: Source) -> Table:
    """Table 11: GRPO's mean length of correct and of incorrect answers."""
    settings = [source.at(scale, NO_REPLAY) for scale in source.scales]
    return Table(
        title=f"Table 11: GRPO's lengths by correctness ({source.study.title})",
        stub={"scale": "Scale"},
        columns=[Column(f"{s}_tokens", "", f"{s.title()} (tokens)", decimals=0) for s in SIDES],
        rows=[
            Row(
                {"study": source.study.study, "scale": grpo.scale},
                {f"{side}_tokens": _length(source, grpo, side) for side in SIDES},
            )
            for grpo in settings
        ],
        notes=_notes(source, settings),
        hidden=("study",),
    )


def _notes(source: Source, settings: list[Setting]) -> list[str]:
    return [
        _POOLED_NOTE,
        *setting_notes([s for s in settings if s.cells]),
        *source.seeds(settings),
        *source.missing(settings),
    ]


def _length(source: Source, setting: Setting, side: str) -> Number | None:
    def mean(sums_V: np.ndarray) -> float:
        tokens, answers = sums_V
        return tokens / answers if answers else np.nan

    return _pooled(source, [setting], side, mean, lowest=0.0)


def _change(source: Source, ours: Setting, grpo: Setting, side: str) -> Number | None:
    def percent(sums_V: np.ndarray) -> float:
        tokens, answers, reference_tokens, reference_answers = sums_V
        if not (answers and reference_answers):
            return np.nan
        return 100.0 * (tokens / answers * reference_answers / reference_tokens - 1.0)

    return _pooled(source, [ours, grpo], side, percent, lowest=-100.0)


def _pooled(
    source: Source,
    settings: list[Setting],
    side: str,
    of_sums: Callable[[np.ndarray], float],
    lowest: float,
) -> Number | None:
    """A number of the sums over all answers: tokens and count of each setting in turn."""
    cells = [finished_cells(source.scores, setting) for setting in settings]
    if not all(cells):
        return None
    sums = [_mean_over_cells(source, found, side) for found in cells]
    for other, setting in zip(sums[1:], settings[1:], strict=True):
        same_problems(sums[0]["tokens"], other["tokens"], settings[0], setting)
    values_PV = np.column_stack([frame.to_numpy() for frame in sums])
    strata_P = sums[0].index.get_level_values("benchmark").to_numpy(dtype=str)
    _, size_S = np.unique(strata_P, return_counts=True)
    interval = statistics.stratified_interval(
        values_PV, strata_P, statistic=lambda means_SV: of_sums(size_S @ means_SV)
    )
    number = Number(
        float(of_sums(values_PV.sum(axis=0))),
        *ends(interval),
        n=int((sums[0]["answers"] > 0).sum()),
        remark=f"n={len(cells[0])}",
    )
    values_S = np.array([of_sums(v) for v in _sums_by_seed(source, cells, side)])
    if len(values_S) < 2 or np.isnan(values_S).any():
        return number
    return with_seeds(number, values_S, lowest, np.inf)


def _sums_by_seed(source: Source, cells: list[list[grid.Cell]], side: str) -> list[np.ndarray]:
    """The sums of every seed that all settings have."""
    by_seed = [{cell.seed: cell for cell in found} for found in cells]
    shared = [seed for seed in by_seed[0] if all(seed in found for found in by_seed)]
    return [
        np.concatenate([_mean_over_cells(source, [f[seed]], side).sum() for f in by_seed])
        for seed in shared
    ]


def _mean_over_cells(source: Source, cells: list[grid.Cell], side: str) -> pd.DataFrame:
    """Tokens and number of a problem's answers on one side, mean over the cells; the index is
    (benchmark, problem).
    """
    frames = [_answers(source, cell, side) for cell in cells]
    return pd.concat(frames).groupby(level=["benchmark", "problem"]).mean()


def _answers(source: Source, cell: grid.Cell, side: str) -> pd.DataFrame:
    frames = {}
    for benchmark in source.study.benchmarks:
        path = source.results / "cells" / cell.cell / "grades" / f"{benchmark}.parquet"
        grades = pd.read_parquet(path, columns=["problem_id", "correct", "n_tokens"])
        counted = grades["correct"] == (side == "correct")
        tokens = grades["n_tokens"].where(counted, 0)
        sums = pd.DataFrame({"tokens": tokens.astype(float), "answers": counted.astype(float)})
        frames[benchmark] = sums.groupby(grades["problem_id"].astype(str)).sum()
    return pd.concat(frames, names=["benchmark", "problem"])
