"""A study may say how many prompts are short enough: a run that has another number says both."""

import warnings
from pathlib import Path

import pytest
from scripted import TINY
from transformers import AutoTokenizer

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.study.file import load_study
from grpo_replay.tasks.problems import make_problems
from grpo_replay.training.prompt_length import compare_count, short_prompts


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    make_problems(load_study(TINY).problems, tmp_path / "problems.jsonl")
    return tmp_path / "problems.jsonl"


def test_a_prompt_of_exactly_the_limit_is_kept(tiny_model: Path, problems: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    rows, _ = short_prompts(problems, tokenizer, 10_000)
    lengths = [
        len(tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True)["input_ids"])
        for row in rows
    ]
    limit = min(lengths)
    everything, kept = short_prompts(problems, tokenizer, limit)
    assert len(everything) == 60
    assert kept == [r for r, n in zip(rows, lengths, strict=True) if n == limit]
    assert 0 < len(kept) < 60


def test_another_number_than_expected_is_told_with_both(tiny_model: Path, problems: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", GrpoReplayWarning)
        compare_count(tiny_model, problems, 10_000, 60)
    with pytest.warns(GrpoReplayWarning, match="61 prompts of at most 10000 .* and 60 of 60"):
        compare_count(tiny_model, problems, 10_000, 61)
