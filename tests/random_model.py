"""A tiny random Qwen3 model with its tokenizer, as a folder."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from grpo_replay.models.from_scratch import make_network, save_folder, train_tokenizer

TEXTS = (("Start at 7 and go +2", "7+2=9 \\boxed{9}"),)


def save_random_model(
    folder: Path, seed: int = 0, texts: Sequence[tuple[str, str]] = TEXTS, hidden_size: int = 32
) -> Path:
    """Write a model whose tokenizer learned pairs of problem and solution."""
    tokenizer = train_tokenizer(texts)
    sizes = SimpleNamespace(
        hidden_size=hidden_size, layers=2, heads=4, kv_heads=2, intermediate_size=64, seed=seed
    )
    save_folder(make_network(sizes, tokenizer), tokenizer, folder)
    return folder
