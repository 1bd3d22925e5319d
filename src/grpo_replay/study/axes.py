"""A method's settings by path, and a cell on the axes of the paper's design space."""

from functools import lru_cache
from typing import Any, NamedTuple

from grpo_replay.methods.method import Method, Setting, setting_of
from grpo_replay.study.cells import Cell

REPLAY_AXES = TAU_MAX, RATIO, ALPHA = "replay.tau_max", "replay.ratio", "replay.priority.alpha"


class Axes(NamedTuple):
    """Composition, unit and priority by the words of a study, and the settings of the replay.

    All are None for an untrained model; what a method has none of is None, and a priority without
    a power is alpha 0.
    """

    composition: str | None = None
    unit: str | None = None
    priority: str | None = None
    tau_max: int | None = None
    replay_ratio: float | None = None
    alpha: float | None = None


PATHS = Axes("replay.compose", "replay.unit", "replay.priority.kind", *REPLAY_AXES)


def axes_of(cell: Cell) -> Axes:
    """Where a cell lies; a part from outside has its import path in the place of a word."""
    axes = Axes(*(value_of(cell, path) for path in PATHS))
    if cell.parts is None:
        return axes
    replay = method_of(cell).replay
    priority = getattr(replay, "priority", None)
    return axes._replace(composition=replay.label(), priority=priority and priority.label())


def value_of(cell: Cell, path: str) -> Any:
    """A setting of a cell's method; None where it has no such setting."""
    if cell.parts is None:
        return None
    method = method_of(cell)
    try:
        return setting_of(method, path)
    except ValueError:  # a part of another kind has no such setting
        uniform = path == ALPHA and hasattr(method.replay, "priority")
        return 0.0 if uniform else None


def method_of(cell: Cell) -> Method:
    """The method that a trained cell trains by."""
    return _methods(cell)


@lru_cache(maxsize=4096)
def _methods(cell: Cell) -> Method:
    return Method.model_validate(cell.parts)


def deciding(cell: Cell) -> dict[str, Setting]:
    """What of a trained cell's method is not at its default, by path: its identity, flat."""
    return _flat("", cell.parts or {})


def _flat(prefix: str, section: dict[str, Any]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for name, value in section.items():
        inner = isinstance(value, dict)
        found |= _flat(f"{prefix}{name}.", value) if inner else {f"{prefix}{name}": value}
    return found
