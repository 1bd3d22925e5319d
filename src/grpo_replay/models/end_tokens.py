"""Which tokens end an answer: the same in training and in evaluation, under every engine.

Qwen3-Base has two: its model config ends texts with `<|endoftext|>`, its chat template ends turns
with `<|im_end|>`. An engine that knows one of them counts half of the answers as cut off.
"""

from typing import TYPE_CHECKING

from grpo_replay.errors import ModelError

if TYPE_CHECKING:
    from transformers import GenerationConfig, PretrainedConfig, PreTrainedTokenizerBase

MARK = "answer"


def end_token_ids(
    model_config: "PretrainedConfig",
    generation_config: "GenerationConfig | None",
    tokenizer: "PreTrainedTokenizerBase",
) -> list[int]:
    """Return, sorted, every end token of model config, generation config, tokenizer and template.

    Raises ModelError where none of them names one: no answer would ever finish.
    """
    ids: set[int] = set()
    for source in (model_config, generation_config, tokenizer):
        ids.update(_as_ids(getattr(source, "eos_token_id", None)))
    ids.update(_template_end(tokenizer))
    if not ids:
        raise ModelError(
            f"{tokenizer.name_or_path}: no end token in model config, generation config, tokenizer "
            "or chat template; set eos_token_id in generation_config.json"
        )
    return sorted(ids)


def _as_ids(value: int | list[int] | None) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else list(value)


def _template_end(tokenizer: "PreTrainedTokenizerBase") -> list[int]:
    """Return the special token that the chat template puts right after the assistant's words."""
    if tokenizer.chat_template is None:
        return []
    turns = [{"role": "user", "content": "question"}, {"role": "assistant", "content": MARK}]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    after = tokenizer(text.rpartition(MARK)[2], add_special_tokens=False)["input_ids"]
    return [token for token in after[:1] if token in tokenizer.added_tokens_decoder]
