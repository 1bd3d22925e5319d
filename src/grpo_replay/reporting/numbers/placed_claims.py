"""Where a claim stands in a study: the conditions that it compares, at each scale."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from grpo_replay.errors import ConfigError, suggestion
from grpo_replay.methods.method import setting_of
from grpo_replay.reporting.labels import GRPO
from grpo_replay.reporting.numbers.conditions import (
    FREE,
    Condition,
    PartialIdentity,
    all_conditions,
    used_scales,
)
from grpo_replay.statistics.seed_tests import FEWEST_SEEDS
from grpo_replay.study.axes import TAU_MAX, value_of
from grpo_replay.study.cells import Cell
from grpo_replay.study.claims import OVER_SCALE, Claim, Side, Trend
from grpo_replay.study.config import Study

# The steps of the paper's runs: its ages are shares of them.
PAPER_STEPS = 200
_GRPO = Side(settings={})


@dataclass(frozen=True)
class Placed:
    """A claim at a scale (empty: over all of them) with its conditions.

    `of` and `against` are one condition each of a pair; `against` has every rival of `best_of`;
    of a trend both have one condition a point of `axis` (`against` may be empty).
    """

    claim: Claim
    scale: str
    of: tuple[Condition, ...]
    against: tuple[Condition, ...] = ()
    axis: tuple[float, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.of, *self.against)))

    @property
    def seeds(self) -> list[int]:
        """The seeds that all conditions have in the grid."""
        return sorted(set.intersection(*({c.seed for c in of.cells} for of in self.conditions)))


def place(study: Study, claim: Claim) -> list[Placed]:
    """The claim wherever the study has all that it compares; empty where it has not."""
    conditions, contrast = all_conditions(study), claim.contrast
    scales = used_scales(study)
    if isinstance(contrast, Trend) and contrast.over == OVER_SCALE:
        found = [(s, sides) for s in scales if (sides := _at(conditions, s, contrast.sides))]
        points = [tuple(column) for column in zip(*(sides for _, sides in found), strict=True)]
        axis = tuple(float(scales.index(scale)) for scale, _ in found)
        return [Placed(claim, "", *_two(points), axis)] if len(found) > 1 else []
    if claim.scales == "largest":
        scales = scales[-1:]
    elif claim.scales != "every":
        scales = [scale for scale in scales if scale in claim.scales]
    if isinstance(contrast, Trend):
        placed = [_over_setting(conditions, scale, claim, contrast) for scale in scales]
        return [one for one in placed if one]
    sides = {scale: _at(conditions, scale, contrast.sides) for scale in scales}
    return [Placed(claim, s, tuple(of[:1]), tuple(of[1:])) for s, of in sides.items() if of]


def place_of_paper(study: Study, claim: Claim) -> list[Placed]:
    """The same for a claim of the paper: its ages are those of the study's own length, else its
    very numbers.
    """
    return place(study, _aged(study, claim)) or place(study, claim)


def age_of_paper(study: Study, age: int) -> int:
    """What an age of the paper's is in a study of other length: the same share of a run."""
    return math.ceil(age * study.training.steps / PAPER_STEPS)


def grpo_at(study: Study, scale: str) -> Condition | None:
    """Plain GRPO at a scale, whatever the study calls it."""
    found = _at(all_conditions(study), scale, [_GRPO])
    return found[0] if found else None


def check_claim(study: Study, claim: Claim) -> None:
    """Refuse a claim of a study's own that its grid cannot decide.

    Raises:
        ConfigError: one line that says what is wrong, and the repair.
    """
    for side in claim.contrast.sides:
        _check_side(study, side)
    if isinstance(claim.scales, list):
        _check_known("scale", claim.scales, study.scales)
    placed = place(study, claim)
    if not placed:
        raise ConfigError("the grid has no cells of all that it compares: add them to the grid")
    for one in placed:
        _check_placed(study, one)


def _check_side(study: Study, side: Side) -> None:
    if side.method is None:
        return
    _check_known("method", [side.method], study.methods)
    for path in side.vary:
        try:
            setting_of(study.methods[side.method], path)
        except ValueError as error:
            raise ConfigError(f"vary {error}") from None


def _check_known(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            there = f"; there are: {', '.join(known)}"
            raise ConfigError(f"unknown {kind} {name!r}{suggestion(name, known) or there}")


def _check_placed(study: Study, placed: Placed) -> None:
    names = " and ".join(dict.fromkeys(c.name for c in placed.conditions))
    place = f"at scale {placed.scale}" if placed.scale else "over the scales"
    if placed.claim.metric == "aes" and grpo_at(study, placed.scale) in placed.conditions:
        raise ConfigError(
            f"metric aes compares with {GRPO} already, and names it again: compare two other "
            "methods, or take metric avg_at_k or mean_length"
        )
    seeds = placed.seeds
    if not seeds:
        raise ConfigError(f"{names} share no seed {place}: give them the same seeds in the grid")
    if len(seeds) < FEWEST_SEEDS:
        raise ConfigError(
            f"{names} share {len(seeds)} seed{'s' * (len(seeds) > 1)} {place}, a test over seeds "
            f"needs {FEWEST_SEEDS} or more: add seeds to the grid"
        )


def _two(columns: list[tuple]) -> tuple[tuple, tuple]:
    return columns[0], columns[1] if len(columns) > 1 else ()


def _at(conditions: list[Condition], scale: str, sides: list[Side]) -> list[Condition] | None:
    """The condition of each side at a scale, the one that varies least; None where one has none."""
    found = []
    for side in sides:
        fitting = [c for c in conditions if c.scale == scale and _holds(side, c.cells[0])]
        if not fitting:
            return None
        found.append(min(fitting, key=lambda c: len(c.varied)))
    return found


def _holds(side: Side, cell: Cell, free: tuple[str, ...] = FREE) -> bool:
    if side.settings is not None:
        named = tuple({**side.settings, **side.vary}.items())
        return PartialIdentity("", named, free).holds(cell)
    same = all(value_of(cell, path) == value for path, value in side.vary.items())
    return cell.method == side.method and same


def _over_setting(
    conditions: list[Condition], scale: str, claim: Claim, trend: Trend
) -> Placed | None:
    """A point for every value of the setting, rising: on the logarithm of numbers above 0, else on
    their ranks.
    """
    free = (*FREE, trend.over)
    fitting = [c for c in conditions if c.scale == scale and _holds(trend.of, c.cells[0], free)]
    fitting.sort(key=lambda c: len(c.but(trend.over)))
    by_value: dict = {}
    for condition in fitting:
        by_value.setdefault(value_of(condition.cells[0], trend.over), condition)
    values = sorted(value for value in by_value if value is not None)
    against = _at(conditions, scale, [trend.against]) if trend.against else []
    if len(values) < 2 or against is None:
        return None
    points = tuple(by_value[value] for value in values)
    axis = np.log(values) if _positive(values) else np.arange(len(values))
    return Placed(claim, scale, points, tuple(against) * len(points), tuple(axis.tolist()))


def _positive(values: list) -> bool:
    return all(isinstance(value, int | float) and value > 0 for value in values)


def _aged(study: Study, claim: Claim) -> Claim:
    def aged(side: Side) -> Side:
        if TAU_MAX not in side.vary:
            return side
        age = age_of_paper(study, side.vary[TAU_MAX])
        return side.model_copy(update={"vary": {**side.vary, TAU_MAX: age}})

    contrast = claim.contrast
    against = contrast.against
    sides = [aged(side) for side in against] if isinstance(against, list) else against
    if isinstance(sides, Side):
        sides = aged(sides)
    changed = contrast.model_copy(update={"of": aged(contrast.of), "against": sides})
    return claim.model_copy(update={"contrast": changed})
