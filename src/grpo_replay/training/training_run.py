"""What one training is: the settings that the rule hands over, typed once."""

from dataclasses import dataclass
from typing import Any

from grpo_replay.errors import ConfigError
from grpo_replay.methods.method import Method
from grpo_replay.study.axes import method_of
from grpo_replay.study.cells import Cell
from grpo_replay.study.config import Training
from grpo_replay.tasks.any_task import task_of
from grpo_replay.tasks.rewards import DEFAULT_REWARDS, Reward, rewards_of
from grpo_replay.tasks.task import Task


@dataclass(frozen=True)
class TrainingRun:
    """A training of a cell; `settings` is what `study.cells.training_settings` returned.

    `micro_batch` is in rows a process, `processes` is how many train together.
    """

    settings: dict[str, Any]
    cell: Cell
    method: Method
    task: Task
    rewards: list[Reward]
    training: Training
    micro_batch: int
    processes: int
    sharding: str

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "TrainingRun":
        """The training that some settings describe."""
        cell = Cell(**settings["cell"])
        task, rewards = _scoring(settings)
        return cls(
            settings,
            cell,
            method_of(cell),
            task,
            rewards,
            Training(**settings["training"]),
            settings["micro_batch"],
            settings["processes"],
            settings.get("sharding", "none"),
        )


def _scoring(settings: dict[str, Any]) -> tuple[Task, list[Reward]]:
    """Task and rewards, which may be files of the user's.

    Raises:
        ConfigError: where such a file has gone, raises or has changed since the run was planned.
    """
    weights, digests = settings.get("rewards", DEFAULT_REWARDS), settings.get("reward_files")
    try:
        task = task_of(settings.get("task"))
    except ValueError as error:
        raise ConfigError(f"task: {' '.join(str(error).split())}") from error
    try:
        return task, rewards_of(task, weights, digests)
    except ValueError as error:
        raise ConfigError(f"rewards: {error}") from error
