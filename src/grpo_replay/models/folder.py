"""A model folder without its weights: prompts, end tokens and text, the same for every engine."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from grpo_replay.errors import ModelError
from grpo_replay.models.end_tokens import end_token_ids

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase


@dataclass(frozen=True)
class ModelFolder:
    """A model on disk without its weights: what prompts need, whatever the engine."""

    path: Path
    config: "PretrainedConfig"
    tokenizer: "PreTrainedTokenizerBase"
    end_ids: list[int]

    def render(self, conversations: Iterable[list[dict[str, str]]]) -> list[list[int]]:
        """Return the token ids of conversations, each opened for the assistant's turn."""
        return self.tokenizer.apply_chat_template(
            list(conversations), add_generation_prompt=True, tokenize=True, return_dict=True
        )["input_ids"]

    def decode(self, answers: Iterable[list[int]]) -> list[str]:
        """Return texts without special tokens, thus without the end token."""
        return self.tokenizer.batch_decode(
            list(answers), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def check_length(self, prompts: dict[str, list[list[int]]], max_tokens: int, key: str) -> None:
        """Raise ModelError where a prompt and its answer would not fit the model's positions.

        `key` is the study's, of `max_tokens`.
        """
        limit = getattr(self.config, "max_position_embeddings", None)
        for name, rows in prompts.items():
            longest = max(map(len, rows))
            if limit is not None and longest + max_tokens > limit:
                raise ModelError(
                    f"{self.path}: {name}: the longest prompt has {longest} tokens, which with "
                    f"{key} = {max_tokens} is more than the model's {limit} positions; lower {key}"
                )


def open_folder(path: Path) -> ModelFolder:
    """Read config and tokenizer of a model folder; nothing is fetched, no code in it is run.

    Raises ModelError where the folder, its config or its chat template is missing.
    """
    if not (path / "config.json").is_file():
        raise ModelError(f"{path}: no model there (config.json is missing); make or copy it first")
    config = AutoConfig.from_pretrained(path, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    if tokenizer.chat_template is None:
        raise ModelError(f"{path}: the tokenizer has no chat template; add chat_template.jinja")
    generation = None
    if (path / "generation_config.json").is_file():
        generation = GenerationConfig.from_pretrained(path, local_files_only=True)
    return ModelFolder(path, config, tokenizer, end_token_ids(config, generation, tokenizer))
