"""A task: the hour of a clock in the last box, with a second verifier for near misses."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from grpo_replay.errors import DataError
from grpo_replay.tasks.task import Grade, RewardFunction, Task, Verifier, system_and_user, text_of

_BOX = re.compile(r"\\boxed\{(\d{1,2})\}")


class Hours(Task):
    """The first verifier, `exact`, says what is correct; `near` allows for `within` hours."""

    within: Annotated[int, Field(ge=1, le=6)] = 1

    @property
    def rewards(self) -> Mapping[str, RewardFunction]:
        """`answer`: +1 for the right hour, 0 for a near one, else -1."""
        return {"answer": partial(hour_reward, within=self.within)}

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        """Each judges (gold, text) pairs, as many verdicts."""
        return {"exact": partial(grade, within=0), "near": partial(grade, within=self.within)}

    def messages(self, problem: Mapping[str, Any]) -> list[dict[str, str]]:
        """The turns of the prompt."""
        return system_and_user(f"{problem['problem']} Put the hour into \\boxed{{}}.")

    def check_gold(self, problem: Mapping[str, Any]) -> None:
        """Refuse a problem that no answer could solve."""
        if not re.fullmatch(r"\d{1,2}", problem["answer"]):
            raise DataError(f"gold answer {problem['answer']!r} is no hour: write one such as 7")


def grade(pairs: Sequence[tuple[str, str]], within: int, **_: Any) -> list[Grade]:
    """Whether the hour of each text is at most `within` hours from its gold."""
    hours = [_BOX.findall(text) for _, text in pairs]
    return [
        Grade(abs(int(found[-1]) - int(gold)) <= within, "hour", found[-1])
        if found
        else Grade(False, "no box", None)
        for found, (gold, _) in zip(hours, pairs, strict=True)
    ]


def hour_reward(completions: list, answer: list[str], within: int, **_: Any) -> list[float]:
    """The sum of both verdicts less one."""
    pairs = [(gold, text_of(c)) for gold, c in zip(answer, completions, strict=True)]
    verdicts = zip(grade(pairs, 0), grade(pairs, within), strict=True)
    return [float(exact.correct + near.correct - 1) for exact, near in verdicts]
