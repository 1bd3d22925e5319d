"""The evaluation grade: exact rules first, computer algebra in killable processes for the rest."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from grpo_replay.errors import DataError
from grpo_replay.tasks.task import TIMEOUT_SECONDS, Grade

from .boxes import last_boxed
from .cleaning import clean
from .guard import Raised, guarded
from .pool import Question, Reply, ask_all
from .reward import training_reward
from .rules import aligned, decide, is_number

_Box = str | None | Raised  # the content of the last box, or what was raised in search of it


class Reward(NamedTuple):
    """The training reward of one completion; `error`: what was raised instead of a verdict."""

    value: float
    error: str | None


def guarded_training_reward(completion: str, gold: str) -> Reward:
    """Return the training reward, -1.0 where judging raises: no answer can end a training."""
    found = guarded(training_reward, completion, gold)
    return Reward(-1.0, found.name) if isinstance(found, Raised) else Reward(found, None)


def grade(gold: str, completion: str, timeout: float = TIMEOUT_SECONDS) -> Grade:
    """Grade the last box of one completion; feeds the tables."""
    return grade_many([(gold, completion)], workers=1, timeout=timeout)[0]


def grade_paper(gold: str, completion: str, timeout: float = TIMEOUT_SECONDS) -> Grade:
    """Grade one raw completion as the paper does: math-verify decides what the answer is."""
    return grade_paper_many([(gold, completion)], workers=1, timeout=timeout)[0]


def grade_many(
    pairs: Sequence[tuple[str, str]], workers: int | None = None, timeout: float = TIMEOUT_SECONDS
) -> list[Grade]:
    """Grade (gold, completion) pairs, in order. Equal pairs are graded once.

    `workers`: grading processes, by default one per available core; none is started when the cheap
    rules decide everything. `timeout`: seconds of CPU time that one answer may cost. What is raised
    while an answer is judged is its `error` alone. Raises DataError naming the first pair that
    holds anything but strings.
    """
    _check_texts(pairs)
    boxes = {text: guarded(last_boxed, text) for text in dict.fromkeys(c for _, c in pairs)}
    keys = [(gold, boxes[completion]) for gold, completion in pairs]
    known: dict[tuple[str, _Box], Grade] = {}
    open_keys: dict[tuple[str, _Box], Question] = {}
    for key in dict.fromkeys(keys):
        found = _cheap(*key)
        if isinstance(found, Grade):
            known[key] = found
        else:
            open_keys[key] = found
    replies = _ask(list(open_keys.values()), workers, timeout)
    for key, reply in zip(open_keys, replies, strict=True):
        known[key] = _grade(reply, key[1])
    return [known[key] for key in keys]


def grade_paper_many(
    pairs: Sequence[tuple[str, str]], workers: int | None = None, timeout: float = TIMEOUT_SECONDS
) -> list[Grade]:
    """Return the paper's own verdicts on (gold, completion) pairs, in order ("Verifiers").

    Arguments and errors as `grade_many`.
    """
    _check_texts(pairs)
    distinct = list(dict.fromkeys(pairs))
    questions = [Question("paper", gold, completion) for gold, completion in distinct]
    known = {pair: _paper_verdict(*pair) for pair in distinct}
    asked = [
        question for pair, question in zip(distinct, questions, strict=True) if known[pair] is None
    ]
    for question, reply in zip(asked, _ask(asked, workers, timeout), strict=True):
        box = guarded(last_boxed, question.answer)
        known[question.gold, question.answer] = _grade(reply, box)
    return [found for pair in pairs if (found := known[pair]) is not None]


def _check_texts(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse what math-verify would parse to nothing, silently, and so count as wrong."""
    for number, pair in enumerate(pairs):
        for name, text in zip(("gold answer", "completion"), pair, strict=True):
            if not isinstance(text, str):
                raise DataError(
                    f"pair {number}: {name} {text!r} is {type(text).__name__}, not a string: "
                    "write numbers as text, fill in or leave out what is missing"
                )


def check_gold(gold: object) -> None:
    """Raise DataError unless `gold` is a non-empty string that math-verify can parse, and that is
    right against itself, in a box, under `grade` and under the training reward.
    """
    repair = "write the final answer as a LaTeX string without $ and \\boxed, such as \\frac{1}{2}"
    if not isinstance(gold, str):
        reason = f"is {type(gold).__name__}, not a string (math-verify parses it to nothing)"
    elif not gold.strip():
        reason = "is empty, so no completion could be right"
    elif not _parses(gold):
        reason = "cannot be parsed by math-verify"
    elif judges := _judges_against(gold):
        reason = (
            f"is wrong against itself under {judges}: it holds a box, its braces do not balance, "
            "or it is too long"
        )
    else:
        return
    raise DataError(f"gold answer {gold!r} {reason}: {repair}")


def _judges_against(gold: str) -> str:
    """Name those of our verdicts under which a gold in a box is wrong."""
    boxed = f"\\boxed{{{gold}}}"
    verdicts = {
        "the grade": grade(gold, boxed).correct,
        "the training reward": training_reward(boxed, gold) > 0,
    }
    return " and ".join(name for name, right in verdicts.items() if not right)


def _parses(gold: str) -> bool:
    if guarded(lambda text: is_number(clean(text)), gold) is True:
        return True
    return _ask([Question("parses", gold, "")], workers=1, timeout=TIMEOUT_SECONDS)[0].correct


def _grade(reply: Reply, box: _Box) -> Grade:
    extracted = None if isinstance(box, Raised) else box
    return Grade(reply.correct, reply.method, extracted, reply.timed_out, reply.error)


def _cheap(gold: str, box: _Box) -> Grade | Question:
    found = box if isinstance(box, Raised) else guarded(_decided, gold, box)
    if isinstance(found, Raised):
        return _grade(Reply(False, "error", error=found.name), box)
    return found


def _decided(gold: str, answer: str | None) -> Grade | Question:
    if answer is None or not answer.strip():
        return Grade(False, "no box" if answer is None else "empty box", answer)
    clean_gold, clean_answer = clean(gold), clean(answer)
    if verdict := decide(clean_gold, clean_answer):
        return Grade(*verdict, answer)
    return Question("ours", *aligned(clean_gold, clean_answer))


def _paper_verdict(gold: str, completion: str) -> Grade | None:
    """What raises is math-verify's to decide: its own verdict needs none of our rules."""
    found = guarded(_paper_shortcut, gold, completion)
    return None if isinstance(found, Raised) else found


def _paper_shortcut(gold: str, completion: str) -> Grade | None:
    """Say what math-verify would say where it cannot differ: plain integers, and nothing."""
    if not completion.strip():
        return Grade(False, "same text", None)
    answer = last_boxed(completion)
    plain = answer is not None and completion.strip() == f"\\boxed{{{answer}}}"
    if plain and _is_integer(gold) and _is_integer(answer):
        return Grade(int(gold) == int(answer), "number", answer)
    return None


def _is_integer(text: str | None) -> bool:
    return (
        text is not None
        and len(text) < 100
        and text.removeprefix("-").isdecimal()
        and text.isascii()
    )


def _ask(questions: list[Question], workers: int | None, timeout: float) -> list[Reply]:
    if not questions:
        return []
    return ask_all(questions, workers or len(os.sched_getaffinity(0)), timeout)
