"""Clock arithmetic: the generated problems that the nano study trains and is measured on.

A problem is a walk around a clock; its difficulty is the number of moves. The worked solutions that
a base model is trained on hold mistakes, and the commonest one is *likelier than the right result*
(a move past the top of the clock lands one hour short): sharpening the model's own choices cannot
repair it, only a reward for right answers can.
"""

import re
import string
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Literal, TypedDict

import numpy as np

from grpo_replay.errors import ConfigError

Split = Literal["train", "benchmark"]
# One text in four is kept for benchmarks: the shortest chains have few different texts.
BENCHMARK_SHARE = 4
TRIES_PER_PROBLEM = 200
ROOM = 8  # with so many texts a problem, in all a thousand, drawing cannot fail
# Every move has a name, which the solution repeats: to find the next move is then to copy, which
# two layers learn in seconds; to count moves they do not learn in minutes.
MOVE_NAMES = string.ascii_uppercase


class Problem(TypedDict):
    """One problem: `answer` is the hour as a string, as graders want it."""

    id: str
    problem: str
    answer: str


def split_of(problem: str) -> Split:
    """Return the split a problem text belongs to, by its checksum.

    The split depends on the text alone, so that no seed, count or chain length can bring a
    benchmark problem into training.
    """
    return "benchmark" if zlib.crc32(problem.encode()) % BENCHMARK_SHARE == 0 else "train"


def draw_problem(
    steps: Sequence[int], hours: int, max_step: int, split: Split, rng: np.random.Generator
) -> str:
    """Return the text of a random problem of one of the chain lengths `steps` and of one split."""
    n_moves = int(rng.choice(np.asarray(steps)))
    while True:
        start = int(rng.integers(hours))
        moves = rng.integers(1, max_step + 1, n_moves) * rng.choice([-1, 1], n_moves)
        text = _text(start, moves, hours)
        if split_of(text) == split:
            return text


def parse_problem(problem: str) -> tuple[int, list[int], int]:
    """Return (start, signed moves, hours) of a problem text."""
    start, *moves, hours = (int(number) for number in re.findall(r"[+-]?\d+", problem))
    return start, moves, hours


def check_problems(
    steps: int | Sequence[int], count: int, hours: int, max_step: int, split: Split = "train"
) -> None:
    """Raise ConfigError where there are fewer than `count` texts, without drawing any."""
    lengths = [steps] if isinstance(steps, int) else list(steps)
    longest = hours * (2 * max_step) ** max(lengths)
    if longest >= max(1000, ROOM * count):
        return
    texts = (text for length in set(lengths) for text in _all_texts(length, hours, max_step))
    if count > sum(split_of(text) == split for text in texts):
        raise _too_few(count, split, lengths, hours, max_step)


def _all_texts(length: int, hours: int, max_step: int) -> Iterator[str]:
    moves = [move for move in range(-max_step, max_step + 1) if move]
    for start, *walk in product(range(hours), *[moves] * length):
        yield _text(start, walk, hours)


def _text(start: int, moves: Iterable[int], hours: int) -> str:
    walk = " ".join(f"{name}{move:+d}" for name, move in zip(MOVE_NAMES, moves, strict=False))
    return f"Start at {start} and go {walk} around a {hours}-hour clock."


def clock_problems(
    steps: int | Sequence[int],
    count: int,
    hours: int,
    max_step: int,
    seed: int,
    split: Split = "train",
) -> list[Problem]:
    """Return `count` different problems; ids are `clock-<split>-<number>`.

    `steps` is a chain length, or several among which each problem draws one. Problems of the two
    splits never coincide (see `split_of`). Raises ConfigError where there are too few texts.
    """
    lengths = [steps] if isinstance(steps, int) else list(steps)
    rng = np.random.default_rng(seed)
    texts: dict[str, None] = {}  # a set that keeps the order
    possible = sum(hours * (2 * max_step) ** length for length in set(lengths))
    for _ in range(TRIES_PER_PROBLEM * count if count <= possible else 0):
        if len(texts) == count:
            break
        texts.setdefault(draw_problem(lengths, hours, max_step, split, rng))
    if len(texts) < count:
        raise _too_few(count, split, lengths, hours, max_step)
    return [
        Problem(id=f"clock-{split}-{number}", problem=text, answer=right_answer(text))
        for number, text in enumerate(texts)
    ]


def _too_few(
    count: int, split: Split, lengths: list[int], hours: int, max_step: int
) -> ConfigError:
    return ConfigError(
        f"count: {count} different {split} problems of {lengths} steps do not exist "
        f"({hours} hours, steps up to {max_step}); lower count or lengthen the chains"
    )


def right_answer(problem: str) -> str:
    """Return the hour at which the walk of a problem text ends."""
    start, moves, hours = parse_problem(problem)
    return str((start + sum(moves)) % hours)


def worked_solution(
    problem: str, rng: np.random.Generator, wrap_error: float, random_error: float
) -> str:
    r"""Return a solution such as `7 A+2=9 B-3=6 \boxed{6}`, with mistakes that are carried on.

    In a move past the top of the clock each hour is miscounted with probability `wrap_error`, so
    that a move of n hours lands one hour short with probability 1 - (1 - wrap_error)^n: short moves
    are soon repaired by training, long ones late, and accuracy rises gradually. Any result is a
    random hour with probability `random_error`. With both 0 the boxed answer is right.
    """
    hour, moves, hours = parse_problem(problem)
    words = [str(hour)]
    for name, move in zip(MOVE_NAMES[: len(moves)], moves, strict=True):
        landed = hour + move
        if not 0 <= landed < hours and rng.random() >= (1 - wrap_error) ** abs(move):
            landed -= 1 if move > 0 else -1
        if rng.random() < random_error:
            landed = int(rng.integers(hours))
        hour = landed % hours
        words.append(f"{name}{move:+d}={hour}")
    return " ".join(words) + f" \\boxed{{{hour}}}"
