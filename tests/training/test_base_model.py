"""A base model made in seconds: its tokenizer, its prompt, its folder, its determinism."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_replay.errors import ModelError, TrainingError
from grpo_replay.models.from_scratch import encode, save_folder, train_base_model
from grpo_replay.tasks.any_task import DEFAULT_TASK

MODEL = SimpleNamespace(
    hidden_size=16,
    layers=1,
    heads=2,
    kv_heads=1,
    intermediate_size=32,
    updates=20,
    texts_per_update=8,
    learning_rate=1e-2,
    seed=0,
)
PROBLEMS = SimpleNamespace(
    hours=10, max_step=3, steps=[2, 3], wrap_error=0.5, random_error=0.0, count=50, seed=0
)
QUESTION = "Start at 7 and go A+2 B-3 around a 10-hour clock."


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """Return the folder and the figures of one tiny training."""
    folder = tmp_path_factory.mktemp("base") / "model"
    return folder, train_base_model(MODEL, PROBLEMS, folder)


def test_loss_falls_below_a_uniform_guess(trained: tuple[Path, dict[str, float]]) -> None:
    folder, figures = trained
    vocabulary = len(AutoTokenizer.from_pretrained(folder))
    assert figures["loss"] < torch.tensor(float(vocabulary)).log().item()
    assert figures["parameters"] > 0
    assert figures["seconds"] > 0


def test_tokenizer_splits_digits_and_gives_text_back(
    trained: tuple[Path, dict[str, float]],
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(trained[0])
    text = "17+25=42 \\boxed{42}"
    tokens = tokenizer.tokenize(text)
    assert [token for token in tokens if any(char.isdigit() for char in token)] == list("17254242")
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


def test_chat_template_renders_the_prompt_exactly(
    trained: tuple[Path, dict[str, float]],
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(trained[0])
    text = tokenizer.apply_chat_template(
        DEFAULT_TASK.messages({"problem": QUESTION}), tokenize=False, add_generation_prompt=True
    )
    assert text == (
        f"<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        f"<|im_start|>user\nProblem: {QUESTION}\n\n"
        "Please reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_labels_cover_the_completion_alone(trained: tuple[Path, dict[str, float]]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(trained[0])
    solutions = ["7 A+2=9 B-3=6 \\boxed{6}", "\\boxed{6}"]
    ids_BT, labels_BT = encode(tokenizer, [(QUESTION, solution) for solution in solutions])
    assert ids_BT.shape == labels_BT.shape
    for label_T, solution in zip(labels_BT, solutions, strict=True):
        assert tokenizer.decode(label_T[label_T >= 0]) == solution + "<|im_end|>"


def test_folder_reloads_with_its_generation_config(
    trained: tuple[Path, dict[str, float]],
) -> None:
    folder = trained[0]
    network = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert network.generation_config.eos_token_id == tokenizer.eos_token_id
    assert network.config.model_type == "qwen3"
    assert not folder.with_name("model.unfinished").exists()


def test_same_seed_same_weights(trained: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    train_base_model(MODEL, PROBLEMS, tmp_path / "again")
    other = SimpleNamespace(**{**vars(MODEL), "seed": 1})
    train_base_model(other, PROBLEMS, tmp_path / "other")
    first, again, different = (
        AutoModelForCausalLM.from_pretrained(path).state_dict()
        for path in (trained[0], tmp_path / "again", tmp_path / "other")
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], different[name]) for name in first)


def test_a_base_model_that_diverges_says_so(tmp_path: Path) -> None:
    model = SimpleNamespace(**{**vars(MODEL), "learning_rate": 1e38})
    with pytest.raises(TrainingError, match=r"base model: update \d+: loss .* must be finite"):
        train_base_model(model, PROBLEMS, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_weights_that_the_last_update_spoilt_are_not_kept(
    trained: tuple[Path, dict[str, float]], tmp_path: Path
) -> None:
    network = AutoModelForCausalLM.from_pretrained(trained[0])
    with torch.no_grad():
        network.model.norm.weight[0] = float("nan")
    with pytest.raises(ModelError, match=r"model\.norm\.weight is not finite"):
        save_folder(network, AutoTokenizer.from_pretrained(trained[0]), tmp_path / "model")
    assert not (tmp_path / "model").exists()
