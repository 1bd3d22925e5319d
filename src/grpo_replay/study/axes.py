"""A cell on the axes of the paper's design space, whatever else its method is made of."""

from functools import lru_cache
from typing import NamedTuple

from grpo_replay.methods.method import Method
from grpo_replay.study.cells import Cell


class Axes(NamedTuple):
    """Composition, unit and priority by the words of a study, and the settings of the replay.

    All are None for an untrained model; what a method has none of is None, and the uniform priority
    is alpha 0. `others` tells whether select, advantage or loss differ from the paper's.
    """

    composition: str | None = None
    unit: str | None = None
    priority: str | None = None
    tau_max: int | None = None
    replay_ratio: float | None = None
    alpha: float | None = None
    others: bool = False


def axes_of(cell: Cell) -> Axes:
    """Where a cell lies."""
    return Axes() if cell.parts is None else _axes_of(method_of(cell))


def method_of(cell: Cell) -> Method:
    """The method that a trained cell trains by."""
    return Method.model_validate(cell.parts)


@lru_cache(maxsize=4096)
def _axes_of(method: Method) -> Axes:
    others = bool(method.identity().keys() - {"replay"})
    replay = method.replay
    priority = getattr(replay, "priority", None)
    if priority is None:
        return Axes(replay.label(), others=others)
    return Axes(
        replay.label(),
        replay.unit,
        priority.label(),
        replay.tau_max,
        replay.ratio,
        getattr(priority, "alpha", 0.0),
        others,
    )
