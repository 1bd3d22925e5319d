"""Which functions reward a completion, and with what weight: the task's own, or import paths.

All have TRL's signature: `completions` (a conversation each) and every column of the data come in
by name, a number or None (no reward) for each completion comes out. What a function may not return
is caught here, so that it ends a training before anything is learnt from it.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from grpo_replay.errors import GrpoReplayError, listing, suggestion
from grpo_replay.parts import imported, module_digest
from grpo_replay.tasks.task import RewardFunction, Task

Weight = Annotated[float, Field(ge=-1e6, le=1e6)]
Rewards = Annotated[dict[str, Weight], Field(min_length=1)]
DEFAULT_REWARDS: dict[str, float] = {"answer": 1.0}
# Beside the means of the functions stand these, of their sum (`reward/mean`).
TAKEN_NAMES = {"mean", "unscored"}
LARGEST = float(np.finfo(np.float32).max)  # TRL keeps rewards as such


class RewardFault(GrpoReplayError, RuntimeError):
    """A reward function raised, or returned what is no reward."""


@dataclass(frozen=True)
class Reward:
    """One function: `source` is what the study calls it, `name` what its mean is logged as.

    `sha256` is that of its file and the local modules which that imports; None of a task's own.
    """

    name: str
    source: str
    weight: float
    function: RewardFunction
    sha256: str | None

    def values(self, completions: Sequence[Any], **given: Any) -> list[float]:
        """The rewards of completions, NaN for none; `given` are columns, and what else TRL gives.

        Raises:
            RewardFault: naming function, row (from 0), what is wrong and the repair.
        """
        try:
            found = list(self.function(completions=completions, **given))
        except Exception as error:  # a function of the user's may raise anything
            row = self._row_that_raises(completions, given)
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise self._fault(row, given, f"raised {text}") from error
        if len(found) != len(completions):
            what = f"returned {len(found)} values for {len(completions)} completions"
            raise self._fault(None, given, what)
        return [self._number(value, row, given) for row, value in enumerate(found)]

    def _number(self, value: Any, row: int, given: Mapping[str, Any]) -> float:
        if value is None:
            return float("nan")
        try:
            if isinstance(value, str | bytes):
                raise TypeError
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise self._fault(row, given, f"returned {value!r:.80}") from None
        if abs(number) > LARGEST:
            raise self._fault(row, given, f"returned the infinite number {number}")
        return number

    def _row_that_raises(self, completions: Sequence[Any], given: Mapping[str, Any]) -> int | None:
        """The first row that raises alone; None where all of them pass."""
        for row, completion in enumerate(completions):
            one = {name: _of_row(value, row, len(completions)) for name, value in given.items()}
            try:
                list(self.function(completions=[completion], **one))
            except Exception:
                return row
        return None

    def _fault(self, row: int | None, given: Mapping[str, Any], what: str) -> RewardFault:
        ids = given.get("problem_id")
        problem = f" (problem {ids[row]})" if ids and row is not None else ""
        place = "" if row is None else f", row {row}{problem}"
        return RewardFault(
            f"rewards.{self.source}{place}: {what}: mend the function, which must return one "
            "finite number or None for each completion"
        )


def _of_row(value: Any, row: int, rows: int) -> Any:
    return [value[row]] if isinstance(value, list) and len(value) == rows else value


def rewards_of(
    task: Task, weights: Mapping[str, float], digests: Mapping[str, str] | None = None
) -> list[Reward]:
    """The functions that a study names, sorted by what it calls them.

    Args:
        task: whose own functions have plain names.
        weights: by name or import path.
        digests: SHA-256 of each import path as the run was planned; not compared without.

    Raises:
        ValueError: a name that the task does not have, a path that gives no such function, two of
            one name, weights that are all 0, a file that has changed.
    """
    found = [_reward(task, source, weights[source]) for source in sorted(weights)]
    names = [reward.name for reward in found]
    for reward in found:
        if names.count(reward.name) > 1 or reward.name in TAKEN_NAMES:
            raise ValueError(
                f"{reward.source}: the name {reward.name!r} is taken, rename the function"
            )
        if digests and digests.get(reward.source) != reward.sha256:
            raise ValueError(
                f"{reward.source}: its file has changed since the run was planned: plan it anew"
            )
    if not any(reward.weight for reward in found):
        raise ValueError("every weight is 0, so nothing would be learnt: give one another weight")
    return found


def file_digests(rewards: Iterable[Reward]) -> dict[str, str]:
    """The SHA-256 of those that are import paths, by path."""
    return {reward.source: reward.sha256 for reward in rewards if reward.sha256}


def _reward(task: Task, source: str, weight: float) -> Reward:
    if ":" in source:
        module, _, name = source.partition(":")
        return Reward(name, source, weight, _function(source), module_digest(module))
    if source not in task.rewards:
        known = listing(task.rewards)
        raise ValueError(
            f"{source}: the task has no such reward{suggestion(source, task.rewards)}; there are: "
            f"{known}, and import paths such as lab.rewards:short"
        )
    return Reward(source, source, weight, task.rewards[source], None)


def _function(path: str) -> RewardFunction:
    function = imported(path)
    if not callable(function) or isinstance(function, type):
        raise ValueError(f"{path} is no function")
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    if inspect.iscoroutinefunction(function) or inspect.Parameter.VAR_KEYWORD not in kinds:
        raise ValueError(
            f"{path} must be a plain function of completions and further columns, such as "
            "def short(completions, **columns)"
        )
    return function


def weighted(values_NF: np.ndarray, weights_F: Sequence[float]) -> np.ndarray:
    """Weighted sums of the rewards that there are, shape (N,); NaN where no function that counts
    gave one.
    """
    weights = np.asarray(weights_F, dtype=np.float64)
    counted_NF = np.asarray(values_NF, dtype=np.float64)[:, weights != 0]
    totals = np.nansum(counted_NF * weights[weights != 0], axis=1)
    return np.where(np.isnan(counted_NF).all(axis=1), np.nan, totals)
