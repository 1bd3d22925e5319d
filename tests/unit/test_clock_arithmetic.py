"""The generated problems are right, their solutions err as asked, and the splits stay apart."""

import re

import numpy as np
import pytest

from grpo_replay.errors import ConfigError
from grpo_replay.tasks.clock import (
    clock_problems,
    draw_problem,
    parse_problem,
    right_answer,
    worked_solution,
)

PROBLEM = "Start at 7 and go A+2 B+3 C-3 around a 10-hour clock."


def test_problem_text_is_parsed_and_answered() -> None:
    assert parse_problem(PROBLEM) == (7, [2, 3, -3], 10)
    assert right_answer(PROBLEM) == "9"


def test_problems_have_unique_ids_and_texts_and_the_asked_length() -> None:
    problems = clock_problems([3, 5], count=200, hours=10, max_step=3, seed=0)
    assert len({problem["id"] for problem in problems}) == 200
    assert len({problem["problem"] for problem in problems}) == 200
    assert {len(parse_problem(problem["problem"])[1]) for problem in problems} == {3, 5}
    assert all(problem["answer"] in set("0123456789") for problem in problems)


def test_same_seed_same_problems() -> None:
    first, second, other = (clock_problems(5, 20, 10, 3, seed) for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_training_never_meets_a_benchmark_problem() -> None:
    training = clock_problems(3, 1000, 10, 3, seed=0, split="train")
    benchmark = clock_problems(3, 300, 10, 3, seed=0, split="benchmark")
    assert not {p["problem"] for p in training} & {p["problem"] for p in benchmark}


def test_too_many_problems_are_refused() -> None:
    with pytest.raises(ConfigError, match="count: 100 .* lower count"):
        clock_problems(1, 100, 10, 3, seed=0)


def test_solution_without_errors_is_right() -> None:
    solution = worked_solution(PROBLEM, np.random.default_rng(0), 0.0, 0.0)
    assert solution == "7 A+2=9 B+3=2 C-3=9 \\boxed{9}"


def test_wrap_error_lands_one_hour_short_and_is_carried_on() -> None:
    solution = worked_solution(PROBLEM, np.random.default_rng(0), 1.0, 0.0)
    assert solution == "7 A+2=9 B+3=1 C-3=9 \\boxed{9}"


@pytest.mark.parametrize("length", [1, 2, 3])
def test_error_rates_are_the_asked_ones(length: int) -> None:
    rng = np.random.default_rng(length)
    strays, lapses = [], []  # wrong results of moves inside the clock, and past its top
    for _ in range(1500):
        problem = draw_problem([5], 10, 3, "train", rng)
        solution = worked_solution(problem, rng, wrap_error=0.4, random_error=0.1)
        hour = solution[0]
        for move, landed in re.findall(r"([+-]\d)=(\d)", solution):
            right = int(hour) + int(move)
            hour = landed
            if abs(int(move)) == length:
                (strays if 0 <= right < 10 else lapses).append(int(landed) != right % 10)
    assert np.mean(strays) == pytest.approx(0.1 * 0.9, abs=0.02)
    assert np.mean(lapses) == pytest.approx(1 - (0.9 * 0.6**length + 0.1 * 0.1), abs=0.06)
