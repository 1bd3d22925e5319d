r"""Multiple choice, as GPQA asks it: the letter of an option, in the last box."""

import re
import string
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from grpo_replay.errors import DataError
from grpo_replay.tasks.math.boxes import last_boxed
from grpo_replay.tasks.math.guard import Raised, guarded
from grpo_replay.tasks.task import (
    Grade,
    RewardFunction,
    Task,
    Verifier,
    system_and_user,
    text_of,
)

PROMPT = (
    "Problem: {question}\n\n{options}\n\n"
    "Please reason step by step, and put the letter of the right option within \\boxed{{}}."
)
_WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\{(.*)\}", re.DOTALL)
# A letter alone, or one that is marked off from the text of its option: (B), B., B: 5, (B) 5.
_LETTER = re.compile(r"\(?([A-Za-z])(?:[).:]+(.*))?", re.DOTALL)
_ANOTHER = re.compile(r"\b[A-Z]\)")


class Choice(Task):
    """Each problem has a list `options`, and its answer is the letter of one of them.

    Attributes:
        options: how many options every problem has.
    """

    kind: Literal["choice"] = "choice"
    options: Annotated[int, Field(ge=2, le=26)] = 4

    @property
    def chance(self) -> float:
        """One of the options at random."""
        return 100.0 / self.options

    @property
    def rewards(self) -> Mapping[str, RewardFunction]:
        """`answer`: +1 for the letter of the gold, else -1."""
        return {"answer": letter_reward}

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        """Equal as letters."""
        return {"letter": grade_letters}

    def messages(self, problem: Mapping[str, Any]) -> list[dict[str, str]]:
        """The problem, and its options under their letters."""
        lines = zip(string.ascii_uppercase, problem["options"], strict=False)
        options = "\n".join(f"{letter}. {text}" for letter, text in lines)
        return system_and_user(PROMPT.format(question=problem["problem"], options=options))

    def check_gold(self, problem: Mapping[str, Any]) -> None:
        """Refuse options that are missing or of another number, and a gold that is none of them."""
        options, gold = problem.get("options"), problem["answer"]
        if not isinstance(options, list | tuple) or len(options) != self.options:
            found = "no list" if not isinstance(options, list | tuple) else f"{len(options)} texts"
            raise DataError(
                f"options: found {found}, expected {self.options} texts: give every problem as "
                "many, or set the task's `options` to their number"
            )
        for text in options:
            if not isinstance(text, str) or not text.strip():
                raise DataError(f"options: {text!r} is no text: write every option as a string")
        letters = string.ascii_uppercase[: self.options]
        if not isinstance(gold, str) or len(gold) != 1 or gold not in letters:
            raise DataError(
                f"gold answer {gold!r} is the letter of no option: write one of "
                f"{', '.join(letters)}"
            )


def letter_reward(completions: list, answer: list[str], **_: Any) -> list[float]:
    """+1 where the last box holds the letter of the answer, else -1."""
    pairs = [(gold, text_of(c)) for gold, c in zip(answer, completions, strict=True)]
    return [1.0 if grade.correct else -1.0 for grade in grade_letters(pairs)]


def grade_letters(
    pairs: Sequence[tuple[str, str]], workers: int | None = None, timeout: float = 0.0
) -> list[Grade]:
    """Whether the last box of each text holds the letter of its gold."""
    return [_grade(gold, text) for gold, text in pairs]


def _grade(gold: str, text: str) -> Grade:
    box = guarded(last_boxed, text)
    if isinstance(box, Raised):
        return Grade(False, "error", None, error=box.name)
    if box is None:
        return Grade(False, "no box", None)
    return Grade(letter_of(box) == gold, "letter", box)


def letter_of(answer: str) -> str | None:
    """The one option that an answer names; None where it names none, or several."""
    answer = answer.strip()
    while wrapped := _WRAPPER.fullmatch(answer):
        answer = wrapped[1].strip()
    found = _LETTER.fullmatch(answer)
    if not found or _ANOTHER.search(found[2] or ""):
        return None
    return found[1].upper()
