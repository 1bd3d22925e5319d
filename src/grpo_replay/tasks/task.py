"""What is asked of a model: the prompt, the rewards, the check of a gold answer, the verifiers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_replay.parts import Part

# Seconds of CPU time that one answer may cost a verifier where a study says nothing of it.
TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class Grade:
    """One verdict: `method` tells which rule spoke, `extracted` is what was read as the answer.

    `timed_out`: the answer could not be decided within its time and counts as wrong. `error`: what
    was raised instead of a verdict, or how the grading process ended (memory, a signal); such an
    answer counts as wrong, too.
    """

    correct: bool
    method: str
    extracted: str | None
    timed_out: bool = False
    error: str | None = None


# TRL's signature: `completions` (a conversation each), and every column of the data by name; a
# number or None for each completion.
RewardFunction = Callable[..., Sequence[float | None]]
# (gold, text) pairs, `workers` (processes), `timeout` (seconds of CPU time an answer).
Verifier = Callable[..., list[Grade]]


class Task(Part):
    """How a problem is put to a model, and what is rewarded and right.

    A problem has the text fields id, problem, answer (its gold), and whatever else its file has.
    """

    @property
    def chance(self) -> float:
        """Accuracy in percent of an answer that is drawn at random."""
        return 0.0

    @property
    def rewards(self) -> Mapping[str, RewardFunction]:
        """The reward functions that a study can name; `answer` is the one it gets unasked."""
        raise NotImplementedError

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        """Who says whether an answer is right, by name: the first one's word is `correct`."""
        raise NotImplementedError

    def messages(self, problem: Mapping[str, Any]) -> list[dict[str, str]]:
        """The turns of the prompt, to be rendered by a chat template."""
        raise NotImplementedError

    def check_gold(self, problem: Mapping[str, Any]) -> None:
        """Refuse a problem that no answer could solve.

        Raises:
            DataError: naming the gold answer and the repair.
        """
        raise NotImplementedError

    def correct(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """The first verifier's word on (gold, text) pairs."""
        verify = next(iter(self.verifiers.values()))
        return [g.correct for g in verify(pairs, workers=1, timeout=TIMEOUT_SECONDS)]


def system_and_user(text: str) -> list[dict[str, str]]:
    """The two turns of a prompt whose user says `text`."""
    return [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": text},
    ]


def text_of(completion: Any) -> str:
    """The text of a completion as a reward function gets it: a conversation of one turn."""
    return completion[0]["content"]
