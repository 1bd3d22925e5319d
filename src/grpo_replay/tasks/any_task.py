"""The tasks that a study can name: the union is the registry."""

from typing import Annotated, Any

from pydantic import Field, SerializeAsAny, TypeAdapter

from grpo_replay.parts import or_imported
from grpo_replay.tasks.choice import Choice
from grpo_replay.tasks.clock_task import Clock
from grpo_replay.tasks.math.task import Math
from grpo_replay.tasks.task import Task

AnyTask = Annotated[
    Annotated[Math | Clock | Choice, Field(discriminator="kind")],
    SerializeAsAny(),
    or_imported(Task),
]
DEFAULT_TASK: Task = Math()


def task_of(identity: dict[str, Any] | None) -> Task:
    """The task of an identity, as rules hand it over; the default one where they hand over none.

    Raises:
        pydantic.ValidationError: where a file of the user's has changed since the run was planned.
    """
    return DEFAULT_TASK if identity is None else TypeAdapter(AnyTask).validate_python(identity)
