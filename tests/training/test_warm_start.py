"""The warm start on a tiny random model: it learns the completions alone, repeatably."""

import shutil
from pathlib import Path

import pytest
import torch
from random_model import save_random_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_replay.errors import DataError, TrainingError
from grpo_replay.models.config import WarmStart
from grpo_replay.models.from_scratch import IGNORED
from grpo_replay.models.warm_start import boxed_solution, make_examples, warm_start

SETTINGS = WarmStart(
    file="unused.jsonl", steps=30, batch_size=4, learning_rate=3e-3, max_tokens=200, seed=1
)


def _problem(number: int) -> dict[str, str]:
    total = number + 2
    return {
        "id": f"p{number}",
        "problem": f"Ann has {number} pears and buys 2. How many has she?",
        "answer": str(total),
        "solution": f"She has {number}+2=<<{number}+2={total}>>{total} pears.",
    }


PROBLEMS = [_problem(number) for number in range(12)]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [(p["problem"], boxed_solution(p)) for p in PROBLEMS]
    return save_random_model(tmp_path_factory.mktemp("tiny") / "model", texts=texts)


@pytest.fixture(scope="module")
def warmed(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    output = tmp_path_factory.mktemp("warm") / "model"
    return output, warm_start(model_folder, PROBLEMS, SETTINGS, output)


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def test_the_completion_is_the_solution_without_marks_then_the_box() -> None:
    assert boxed_solution(_problem(3)) == "She has 3+2=5 pears.\n\\boxed{5}"


def test_loss_falls_and_the_folder_reloads(model_folder: Path, warmed: tuple[Path, dict]) -> None:
    output, figures = warmed
    assert figures["examples"] == len(PROBLEMS)
    assert figures["loss_last"] < 0.5 * figures["loss_first"]
    assert {p.name for p in output.iterdir()} == {p.name for p in model_folder.iterdir()}
    before, after = _weights(model_folder), _weights(output)
    assert before.keys() == after.keys()
    assert not any(torch.equal(before[name], after[name]) for name in before)
    start, result = (AutoTokenizer.from_pretrained(f) for f in (model_folder, output))
    assert start.chat_template == result.chat_template
    assert start.get_vocab() == result.get_vocab()
    assert start.eos_token == result.eos_token


def test_prompt_tokens_carry_no_loss(model_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    (ids_T, labels_T), *_ = make_examples(tokenizer, PROBLEMS[:1], 200)
    prompt, completion = ids_T[labels_T == IGNORED], ids_T[labels_T != IGNORED]
    assert tokenizer.decode(prompt).endswith("\\boxed{}.<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.decode(completion) == boxed_solution(PROBLEMS[0]) + tokenizer.eos_token
    assert torch.equal(labels_T[labels_T != IGNORED], completion)
    assert torch.equal(torch.cat([prompt, completion]), ids_T)


def test_same_seed_same_weights_and_another_seed_others(
    model_folder: Path, warmed: tuple[Path, dict], tmp_path: Path
) -> None:
    warm_start(model_folder, PROBLEMS, SETTINGS, tmp_path / "same")
    other = SETTINGS.model_copy(update={"seed": 2})
    warm_start(model_folder, PROBLEMS, other, tmp_path / "other")
    first, same, another = (_weights(f) for f in (warmed[0], tmp_path / "same", tmp_path / "other"))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not all(torch.equal(first[name], another[name]) for name in first)


def test_an_existing_folder_is_replaced_whole(model_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "model"
    shutil.copytree(model_folder, output)
    (output / "left_over").touch()
    warm_start(model_folder, PROBLEMS, SETTINGS.model_copy(update={"steps": 1}), output)
    assert not (output / "left_over").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_long_texts_are_left_out_and_none_left_is_an_error(model_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    longest = max(len(ids_T) for ids_T, _ in make_examples(tokenizer, PROBLEMS, 200))
    assert 0 < len(make_examples(tokenizer, PROBLEMS, longest - 1)) < len(PROBLEMS)
    with pytest.raises(DataError, match="max_tokens: 10"):
        make_examples(tokenizer, PROBLEMS, 10)


def test_a_problem_without_solution_is_named() -> None:
    with pytest.raises(DataError, match="'p1' has no solution"):
        boxed_solution({"id": "p1", "problem": "?", "answer": "1"})


def test_a_warm_start_that_diverges_says_so(model_folder: Path, tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"learning_rate": 1e38})
    with pytest.raises(TrainingError, match=r"warm_start: step \d+: loss .* must be finite"):
        warm_start(model_folder, PROBLEMS, settings, tmp_path / "warm")
    assert not (tmp_path / "warm").exists()
