"""The first pass on a tiny model that answers one problem at random and two always the same."""

from pathlib import Path

import pytest
import torch
from random_model import save_random_model

from grpo_replay.errors import DataError, ModelError
from grpo_replay.evaluation.select_prompts import select_prompts
from grpo_replay.models.config import WarmStart
from grpo_replay.models.warm_start import boxed_solution, warm_start
from grpo_replay.tasks.config import PromptSelection
from grpo_replay.tasks.math.task import Math
from grpo_replay.tasks.problems import read_problems
from grpo_replay.tasks.rewards import Reward

WARM_START = WarmStart(
    file="unused.jsonl", steps=120, batch_size=8, learning_rate=1e-2, max_tokens=200, seed=1
)
SELECTION = PromptSelection(candidates=3, rollouts=8, max_completion_tokens=24, keep=2, seed=4)


def _problem(name: str, question: str, answer: str) -> dict[str, str]:
    return {"id": name, "problem": question, "answer": answer, "solution": "It is so."}


COIN, SURE, WRONG = "toss a coin", "say five", "say seven, please"
# What the model learns, and, for COIN, learns to be undecided about.
TAUGHT = [
    _problem("a", COIN, "1"),
    _problem("b", COIN, "2"),
    _problem("c", SURE, "5"),
    _problem("d", WRONG, "9"),
]
PROBLEMS = [_problem("wrong", WRONG, "7"), _problem("coin", COIN, "1"), _problem("sure", SURE, "5")]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    texts = [(p["problem"], boxed_solution(p)) for p in TAUGHT]
    save_random_model(folder / "random", texts=texts)
    warm_start(folder / "random", TAUGHT, WARM_START, folder / "taught")
    return folder / "taught"


def test_only_the_undecided_problem_is_kept(model_folder: Path, tmp_path: Path) -> None:
    figures = select_prompts(model_folder, PROBLEMS, SELECTION, tmp_path / "kept.jsonl")
    (kept,) = read_problems(tmp_path / "kept.jsonl")
    correct = kept.pop("first_pass_correct")
    assert kept == PROBLEMS[1]
    assert 0 < correct < SELECTION.rollouts
    assert (figures["candidates"], figures["mixed"], figures["kept"]) == (3, 1, 1)
    assert figures["correct"] == pytest.approx((correct + 8) / 24)
    assert figures["boxed"] == 1.0
    assert figures["truncated"] == 0.0
    assert 5 < figures["mean_tokens"] < 24


def test_same_seed_same_choice_and_the_global_generator_is_left_alone(
    model_folder: Path, tmp_path: Path
) -> None:
    state = torch.random.get_rng_state()
    for name in ("one.jsonl", "two.jsonl"):
        select_prompts(model_folder, PROBLEMS, SELECTION, tmp_path / name)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert torch.equal(state, torch.random.get_rng_state())


def test_candidates_are_the_shortest_and_none_mixed_is_an_error(
    model_folder: Path, tmp_path: Path
) -> None:
    one = SELECTION.model_copy(update={"candidates": 1})
    with pytest.raises(DataError, match="none of 1 candidates"):
        select_prompts(model_folder, PROBLEMS, one, tmp_path / "kept.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_rollouts_that_the_model_has_no_positions_for_are_refused(
    model_folder: Path, tmp_path: Path
) -> None:
    long = SELECTION.model_copy(update={"max_completion_tokens": 100_000})
    with pytest.raises(ModelError, match="lower prompt_selection.max_completion_tokens"):
        select_prompts(model_folder, PROBLEMS, long, tmp_path / "kept.jsonl")


def test_mixed_is_what_the_rewards_of_the_study_say(model_folder: Path, tmp_path: Path) -> None:
    """The undecided problem is not mixed where both of its answers are worth the same."""

    def boxed(completions: list, problem_id: list[str], **_: object) -> list[float | None]:
        boxes = [completion[0]["content"].count("boxed{1}") for completion in completions]
        return [
            None if name != "coin" else 1.0 + n for n, name in zip(boxes, problem_id, strict=True)
        ]

    def same(completions: list, **_: object) -> list[float]:
        return [0.1] * len(completions)

    by_box, equal = (Reward(f.__name__, f.__name__, 0.3, f, None) for f in (boxed, same))
    task, output = Math(), tmp_path / "kept.jsonl"
    select_prompts(model_folder, PROBLEMS, SELECTION, output, task, [equal, by_box])
    (kept,) = read_problems(output)
    assert kept["id"] == "coin" and 0 < kept["first_pass_correct"] < SELECTION.rollouts
    with pytest.raises(DataError, match="none of 3 candidates"):
        select_prompts(model_folder, PROBLEMS, SELECTION, output, task, [equal])
