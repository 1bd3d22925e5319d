"""What a step trains on besides its fresh rollouts (axis "replay"): nothing, a batch drawn from
fresh and stored units together (`pool`), or every fresh rollout and a separate draw from the store
(`anchored`, Algorithm 1).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, SerializeAsAny, model_validator

from grpo_replay.errors import TrainingError
from grpo_replay.methods.buffer import EvictionCounts, RolloutBuffer
from grpo_replay.methods.draw import Draw, checked_weights
from grpo_replay.methods.priorities import AnyPriority, Uniform
from grpo_replay.methods.rollout import Rollout, SampledUnit, group_by_query, members
from grpo_replay.parts import Part, name_of, or_imported
from grpo_replay.ranges import Count, CountOrZero, Ratio, Rows

NO_EVICTION = EvictionCounts(0, 0)


@dataclass(frozen=True)
class Batch:
    """Rows of one training step; `is_replay` has shape (rows,): True for rollouts of an earlier
    step. `evicted` counts what left the store in this step.
    """

    rows: list[Rollout]
    is_replay: np.ndarray
    evicted: EvictionCounts = NO_EVICTION


def batch_of(rows: list[Rollout], step: int, evicted: EvictionCounts = NO_EVICTION) -> Batch:
    """The batch of some rows at a step."""
    return Batch(list(rows), np.array([r.birth_step < step for r in rows], bool), evicted)


def checked_batch(found: Any, replay: Any, step: int) -> Batch:
    """What a replay gave, if a step can train on it.

    Raises:
        TrainingError: naming the part and the step.
    """
    if isinstance(found, Batch) and np.shape(found.is_replay) == (len(found.rows),):
        return found
    what = f"{len(found.rows)} rows" if isinstance(found, Batch) else type(found).__name__
    raise TrainingError(
        f"step {step}: replay {name_of(replay)} gave {what} where a Batch with one is_replay a row "
        "is meant: mend it; the run goes on from its last checkpoint"
    )


class Replay(Part):
    """How the batch of a step is composed from its fresh rollouts and earlier ones."""

    @property
    def draws_groups(self) -> bool:
        """Whether earlier rollouts come back as whole groups alone."""
        return True

    def next_batch(self, fresh: list[Rollout], step: int) -> Batch:
        """The rows that a step trains on; `fresh` are its rollouts that have a signal."""
        raise NotImplementedError

    def most_rows(self, fresh: int, group_size: int) -> int:
        """The most rows of a step that sampled `fresh` rollouts in groups of `group_size`."""
        return fresh

    def metrics(self, step: int) -> dict[str, float]:
        """What is stored at a step: rows, and their mean age in steps."""
        return {"buffer/size": 0, "buffer/age_mean": 0.0}


class NoReplay(Replay):
    """Plain GRPO: fresh rollouts alone."""

    compose: Literal["none"] = "none"

    def next_batch(self, fresh: list[Rollout], step: int) -> Batch:
        """The fresh rollouts."""
        return batch_of(fresh, step)


class FromBuffer(Replay):
    """Replay from one store of all problems' rollouts, with a bound on age.

    Attributes:
        unit: what is stored and drawn as one: a rollout, or a query (a whole group).
        priority: which units are drawn more often.
        tau_max: the largest age in steps at which a rollout may be trained on.
        ratio: r, drawn units over fresh ones.
        warmup: steps without replay at the start, while the store fills.
        capacity: the most rollouts kept, a backstop that does not bind in the paper's settings.
    """

    unit: Literal["query", "rollout"] = "rollout"
    priority: AnyPriority = Uniform()
    tau_max: Count = 10
    ratio: Ratio = 0.5
    warmup: CountOrZero = 20
    capacity: Rows = 30_000

    @property
    def draws_groups(self) -> bool:
        """Whether earlier rollouts come back as whole groups alone."""
        return self.unit == "query"

    @model_validator(mode="after")
    def _priority_weighs_the_unit(self) -> "FromBuffer":
        if self.unit not in self.priority.units:
            raise ValueError(
                f"priority {self.priority.label()} needs unit {' or '.join(self.priority.units)}: "
                f"a {self.unit} has no single value of it"
            )
        return self

    def start(self, seed: int) -> "Store":
        """The store of one training."""
        return Store(self, seed)

    def most_rows(self, fresh: int, group_size: int) -> int:
        """(1 + r) times as many, rounded as a draw is: in whole units, halves up."""
        unit = UNITS[self.unit].size(group_size)
        return unit * round_half_up((1 + self.ratio) * fresh / unit)

    def draw(self, fresh: list[Rollout], store: "Store", step: int) -> list[Rollout]:
        """The rows of a step after the warm-up."""
        raise NotImplementedError


class Pool(FromBuffer):
    """(1 + r) B' units are drawn from fresh and stored ones together."""

    compose: Literal["pool"] = "pool"

    def draw(self, fresh: list[Rollout], store: "Store", step: int) -> list[Rollout]:
        """The drawn rows."""
        units = UNITS[self.unit].of_fresh(fresh)
        size = round_half_up((1 + self.ratio) * len(units))
        return store.sample([*units, *store.units()], size, step)


class Anchored(FromBuffer):
    """Every fresh rollout, and r B' units drawn from the store (Algorithm 1)."""

    compose: Literal["anchored"] = "anchored"

    def draw(self, fresh: list[Rollout], store: "Store", step: int) -> list[Rollout]:
        """The fresh rows, then the drawn ones."""
        size = round_half_up(self.ratio * len(UNITS[self.unit].of_fresh(fresh)))
        return [*fresh, *store.sample(store.units(), size, step)]


AnyReplay = Annotated[
    Annotated[NoReplay | Pool | Anchored, Field(discriminator="compose")],
    SerializeAsAny(),
    or_imported(Replay),
]


@dataclass(frozen=True)
class _Unit:
    """How rollouts are seen as units: those of a step, and those of a buffer."""

    of_fresh: Callable[[list[Rollout]], list]
    of_buffer: Callable[[RolloutBuffer], list]
    size: Callable[[int], int]  # rollouts of a unit, by the group size


UNITS = {
    "rollout": _Unit(list, RolloutBuffer.rollouts, lambda group_size: 1),
    "query": _Unit(group_by_query, RolloutBuffer.groups, lambda group_size: group_size),
}


class Store:
    """The buffer of one training, and the generator that draws from it."""

    def __init__(self, replay: FromBuffer, seed: int) -> None:
        self.replay = replay
        self.buffer = RolloutBuffer(replay.tau_max, replay.capacity)
        self._draw = Draw(seed)

    def next_batch(self, fresh: list[Rollout], step: int) -> Batch:
        """Evict, draw, store the fresh rollouts, and evict again, so that a drawn rollout's age
        never exceeds tau_max.
        """
        before = self.buffer.evict(step)
        warm = step > self.replay.warmup
        rows = self.replay.draw(fresh, self, step) if warm else fresh
        self.buffer.add(fresh)
        after = self.buffer.evict(step)
        counts = EvictionCounts(*(sum(pair) for pair in zip(before, after, strict=True)))
        return batch_of(rows, step, counts)

    def units(self) -> list[SampledUnit]:
        """What is stored, in units of the method, oldest first."""
        return UNITS[self.replay.unit].of_buffer(self.buffer)

    def sample(self, units: list[SampledUnit], size: int, step: int) -> list[Rollout]:
        """The rollouts of `size` units, drawn by priority; of all where there are fewer."""
        if not size or not units:
            return []
        priority = self.replay.priority
        weights = checked_weights(
            priority.weights(units, step), len(units), f"replay.priority {priority.label()}", step
        )
        return [rollout for unit in self._draw(units, weights, size) for rollout in members(unit)]

    def label(self) -> str:
        """How a study names the part."""
        return self.replay.label()

    def metrics(self, step: int) -> dict[str, float]:
        """What is stored at a step: rows, and their mean age in steps."""
        return self.buffer.metrics(step)

    def state_dict(self) -> dict[str, Any]:
        """Buffer and generator, as `arrays` and `values`."""
        buffer, draw = self.buffer.state_dict(), self._draw.state_dict()
        values = {"buffer": buffer["values"], "draw": draw["values"]}
        return {"arrays": buffer["arrays"], "values": values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
        values = state["values"]
        self.buffer.load_state_dict({"arrays": state["arrays"], "values": values["buffer"]})
        self._draw.load_state_dict({"values": values["draw"]})


def round_half_up(value: float) -> int:
    """Round to the nearest integer, halves up: Python's round-half-even would replay nothing for
    one group.
    """
    return math.floor(value + 0.5)
