"""What one training is: the settings that the rule hands over, typed once."""

from dataclasses import dataclass
from typing import Any

from grpo_replay.methods.method import Method
from grpo_replay.study.axes import method_of
from grpo_replay.study.cells import Cell
from grpo_replay.study.config import Training
from grpo_replay.tasks.any_task import task_of
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
    training: Training
    micro_batch: int
    processes: int
    sharding: str

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "TrainingRun":
        """The training that some settings describe."""
        cell = Cell(**settings["cell"])
        return cls(
            settings,
            cell,
            method_of(cell),
            task_of(settings.get("task")),
            Training(**settings["training"]),
            settings["micro_batch"],
            settings["processes"],
            settings.get("sharding", "none"),
        )
