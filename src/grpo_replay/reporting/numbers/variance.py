"""The components of variance of a study's scores, scale by scale."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from grpo_replay.reporting.labels import BASE
from grpo_replay.reporting.numbers.conditions import (
    Condition,
    all_conditions,
    finished_cells,
    used_scales,
)
from grpo_replay.reporting.numbers.means import problem_values, same_problems
from grpo_replay.results.scores import problem_count
from grpo_replay.statistics.variance import Components, components
from grpo_replay.study.cells import Cell
from grpo_replay.study.config import Study


@dataclass(frozen=True)
class ScaleComponents:
    """The components of avg@k at a scale and what they rest on; None, and why, without them."""

    scale: str
    found: Components | None
    conditions: tuple[Condition, ...] = ()
    seeds: int = 0
    reason: str = ""


def scale_components(study: Study, scores: pd.DataFrame) -> list[ScaleComponents]:
    """The components at every scale: of the conditions that have the same finished seeds, as many
    as there are (cells first, then conditions, decide which).
    """
    return [_of_scale(study, scores, scale) for scale in used_scales(study)]


def _of_scale(study: Study, scores: pd.DataFrame, scale: str) -> ScaleComponents:
    finished = {
        condition: {cell.seed: cell for cell in finished_cells(scores, condition)}
        for condition in all_conditions(study)
        if condition.scale == scale and condition.method != BASE
    }
    seeds = _best_seeds([set(cells) for cells in finished.values()])
    if len(seeds) < 2:
        return ScaleComponents(scale, None, reason="two finished seeds are needed")
    if min(map(problem_count, study.benchmarks.values())) < 2:
        return ScaleComponents(scale, None, reason="a benchmark has one problem")
    taken = {c: [cells[s] for s in seeds] for c, cells in finished.items() if seeds <= set(cells)}
    found = components(*_columns(study, scores, taken))
    return ScaleComponents(scale, found, tuple(taken), len(seeds))


def _best_seeds(of_conditions: list[set[int | None]]) -> set[int | None]:
    """The seeds of some condition that give the most cells in all the conditions that have them."""

    def cells(seeds: set[int | None]) -> int:
        return len(seeds) * sum(seeds <= other for other in of_conditions)

    return max(of_conditions, key=cells, default=set())


def _columns(study: Study, scores: pd.DataFrame, taken: dict[Condition, list[Cell]]) -> tuple:
    """What `components` takes: percent (R, P), condition and seed (R,), benchmark and k (P,)."""
    rows, first = [], next(iter(taken))
    index = problem_values(scores, taken[first][:1], "avg_at_k")
    for condition, cells in taken.items():
        for cell in cells:
            values = problem_values(scores, [cell], "avg_at_k")
            same_problems(index, values, first, condition)
            rows.append(values.to_numpy())
    names = index.index.get_level_values("benchmark")
    k_P = np.array([study.benchmarks[name].k for name in names])
    labels = [(c.name, cell.seed) for c, cells in taken.items() for cell in cells]
    return np.array(rows), *map(list, zip(*labels, strict=True)), names.to_numpy(dtype=str), k_P
