"""Every end token of model, generation config, tokenizer and chat template ends an answer."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers import AutoTokenizer

from grpo_replay.errors import ModelError
from grpo_replay.models.end_tokens import end_token_ids

END_OF_TEXT, END_OF_TURN = 151643, 151645  # Qwen3's <|endoftext|> and <|im_end|>
BARE = SimpleNamespace(eos_token_id=None, chat_template=None, name_or_path="org/model")


def config(ids: int | list[int] | None) -> SimpleNamespace:
    return SimpleNamespace(eos_token_id=ids)


@pytest.mark.parametrize(
    ("model", "generation", "expected"),
    [
        (END_OF_TEXT, END_OF_TURN, [END_OF_TEXT, END_OF_TURN]),
        (END_OF_TEXT, [END_OF_TURN, END_OF_TEXT], [END_OF_TEXT, END_OF_TURN]),
        (None, END_OF_TURN, [END_OF_TURN]),
        (0, None, [0]),  # an id like any other
    ],
)
def test_configs_are_united(
    model: int | None, generation: int | list[int] | None, expected: list[int]
) -> None:
    assert end_token_ids(config(model), config(generation), BARE) == expected


def test_the_turn_end_of_the_chat_template_counts(tiny_model: Path) -> None:
    """As Qwen3-Base: its configs name <|endoftext|> alone, its template ends turns otherwise."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    turn_end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    other = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    assert None not in (turn_end, other) and turn_end != other
    tokenizer.eos_token = "<|endoftext|>"
    assert end_token_ids(config(other), None, tokenizer) == sorted([turn_end, other])


def test_a_model_without_any_end_token_is_refused() -> None:
    with pytest.raises(ModelError, match="org/model: no end token.*set eos_token_id in"):
        end_token_ids(config(None), None, BARE)
