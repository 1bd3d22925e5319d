"""What the completions of a step are worth, and which of them are right."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from accelerate.utils import gather_object

from grpo_replay.errors import TrainingError
from grpo_replay.tasks.rewards import Reward, RewardFault, weighted
from grpo_replay.tasks.task import Task, text_of

# Given by TRL, or by the trainer's own data set.
_NOT_COLUMNS = {"id", "prompt", "prompts", "completion", "completions", "completion_ids"}
_NOT_COLUMNS |= {"trainer_state", "log_extra", "log_metric", "environments"}


class Scoring:
    """The rewards and the first verifier of a training.

    Args:
        task: its first verifier says what is right.
        rewards: the functions, which TRL calls in this order.
        problems: the training problems; their fields are the columns that functions get.
    """

    def __init__(
        self, task: Task, rewards: Sequence[Reward], problems: Sequence[dict[str, Any]]
    ) -> None:
        self._task = task
        self.names = [reward.name for reward in rewards]
        self.weights = [reward.weight for reward in rewards]
        self.functions = [_Watched(reward) for reward in rewards]
        names = dict.fromkeys(name for problem in problems for name in problem)
        self._columns = {
            problem["id"]: {name: problem.get(name) for name in names if name not in _NOT_COLUMNS}
            for problem in problems
        }

    def with_columns(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows of the data set, each with all the fields of its problem."""
        return [{**self._columns[row["problem_id"]], **row} for row in inputs]

    def check(self, step: int) -> None:
        """Look at what the functions did in this step.

        Raises:
            TrainingError: in every process, where one of them raised or returned no reward.
        """
        faults = [function.take_fault() for function in self.functions]
        found = [fault for fault in gather_object(faults) if fault]
        if found:
            raise TrainingError(f"training step {step}: {found[0]}")

    def totals(self, values_NF: np.ndarray) -> np.ndarray:
        """The weighted sum of each row's rewards, NaN of one that has none."""
        return weighted(values_NF, self.weights)

    def means(self, values_NF: np.ndarray) -> dict[str, float | None]:
        """Each function's mean over the rows that it gave a reward, unweighted, by its name."""
        given = [column[~np.isnan(column)] for column in np.asarray(values_NF).T]
        found = [float(column.mean()) if len(column) else None for column in given]
        return dict(zip(self.names, found, strict=True))

    def correct(self, inputs: list[dict[str, Any]], completions: list[Any]) -> list[bool]:
        """The first verifier's word on each completion."""
        golds = [row["answer"] for row in inputs]
        return self._task.correct([*zip(golds, map(text_of, completions), strict=True)])


class _Watched:
    """A reward function as TRL calls it. A fault is kept until all processes can be told of it."""

    def __init__(self, reward: Reward) -> None:
        self.__name__ = reward.name
        self._reward = reward
        self._fault: str | None = None

    def __call__(self, completions: list[Any], **given: Any) -> list[float]:
        try:
            return self._reward.values(completions, **given)
        except RewardFault as fault:
            self._fault = str(fault)
            return [0.0] * len(completions)

    def take_fault(self) -> str | None:
        """The fault since the last call, if there was one."""
        fault, self._fault = self._fault, None
        return fault
