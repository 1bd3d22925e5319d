"""Clock arithmetic as a task of its own: the hour as a plain integer in the last box."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from grpo_replay.errors import DataError
from grpo_replay.tasks.math.boxes import last_boxed
from grpo_replay.tasks.math.guard import guarded
from grpo_replay.tasks.math.task import Math
from grpo_replay.tasks.task import Grade, Verifier


class Clock(Math):
    """The prompt and the reward of mathematics; one verifier, which reads integers alone."""

    kind: Literal["clock"] = "clock"

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        """Equal as integers."""
        return {"hour": grade_hours}

    def check_gold(self, problem: Mapping[str, Any]) -> None:
        """Refuse a gold answer that is no hour."""
        gold = problem["answer"]
        if not isinstance(gold, str) or _hour(gold) is None:
            raise DataError(f"gold answer {gold!r} is no hour: write a whole number such as 7")


def grade_hours(
    pairs: Sequence[tuple[str, str]], workers: int | None = None, timeout: float = 0.0
) -> list[Grade]:
    """Whether the last box of each text holds the hour of its gold, as ASCII digits."""
    return [_grade(gold, text) for gold, text in pairs]


def _grade(gold: str, text: str) -> Grade:
    box = guarded(last_boxed, text)
    if not isinstance(box, str):
        return Grade(False, "no box", None, error=getattr(box, "name", None))
    hour = _hour(box)
    return Grade(hour is not None and hour == _hour(gold), "hour", box)


def _hour(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
