r"""Mathematics with a boxed answer: the paper's prompt, reward and verifiers."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.tasks.math.grading import (
    check_gold,
    grade_many,
    grade_paper_many,
    guarded_training_reward,
)
from grpo_replay.tasks.task import (
    Grade,
    RewardFunction,
    Task,
    Verifier,
    system_and_user,
    text_of,
)

# For every model, in training and in evaluation (paper, section "Training").
PROMPT = (
    "Problem: {question}\n\n"
    "Please reason step by step, and put your final answer within \\boxed{{}}."
)


class Math(Task):
    """The paper's task; its verifiers are explained in `tasks/math/__init__.py`."""

    kind: Literal["math"] = "math"

    @property
    def rewards(self) -> Mapping[str, RewardFunction]:
        """`answer`: +1 where the last box is the gold answer, else -1."""
        return {"answer": boxed_answer_reward}

    @property
    def verifiers(self) -> Mapping[str, Verifier]:
        """The tables' own verdict, the paper's, and the training reward's."""
        return {
            "evaluation": grade_many,
            "paper": grade_paper_many,
            "training": grade_as_rewarded,
        }

    def messages(self, problem: Mapping[str, Any]) -> list[dict[str, str]]:
        """The paper's prompt."""
        return system_and_user(PROMPT.format(question=problem["problem"]))

    def check_gold(self, problem: Mapping[str, Any]) -> None:
        """Refuse a gold answer that a verifier or the reward cannot read."""
        check_gold(problem["answer"])


def boxed_answer_reward(completions: list, answer: list[str], **_: Any) -> list[float]:
    """+1 where the last box equals the answer, else -1 (paper, section "Verifiers")."""
    rewards = [
        guarded_training_reward(text_of(completion), gold)
        for completion, gold in zip(completions, answer, strict=True)
    ]
    if errors := Counter(reward.error for reward in rewards if reward.error):
        warnings.warn(
            f"training reward: {errors.total()} of {len(rewards)} answers count as wrong since "
            f"judging them raised {', '.join(errors)}",
            GrpoReplayWarning,
            stacklevel=2,
        )
    return [reward.value for reward in rewards]


def grade_as_rewarded(
    pairs: Sequence[tuple[str, str]], workers: int | None = None, timeout: float = 0.0
) -> list[Grade]:
    """The training reward as a verdict on (gold, completion) pairs; string work in this process."""
    found = [guarded_training_reward(completion, gold) for gold, completion in pairs]
    return [Grade(r.value > 0, "minerva", None, error=r.error) for r in found]
