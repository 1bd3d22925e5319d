"""Which training prompts are short enough, and whether they are as many as the study expects."""

import warnings
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.problems import read_problems
from grpo_replay.tasks.task import Task

Rows = list[dict[str, Any]]


def short_prompts(
    problems: Path, tokenizer: Any, longest: int, task: Task = DEFAULT_TASK
) -> tuple[Rows, Rows]:
    """All problems as rows of prompt, answer and problem_id; and those of them whose prompt, as the
    model reads it, has at most `longest` tokens.
    """
    rows = [
        {"prompt": task.messages(p), "answer": p["answer"], "problem_id": p["id"]}
        for p in read_problems(problems)
    ]
    prompts = [row["prompt"] for row in rows]
    rendered = tokenizer.apply_chat_template(prompts, add_generation_prompt=True)["input_ids"]
    return rows, [row for row, ids in zip(rows, rendered, strict=True) if len(ids) <= longest]


def compare_count(
    start_model: Path, problems: Path, longest: int, expected: int, task: Task = DEFAULT_TASK
) -> None:
    """Warn where other than the expected number of prompts are short enough.

    No error: the paper's 40,306 of about 40,315 hang on its tokenizer and chat template, and on
    what it did with rows that have no answer, which it does not say.
    """
    tokenizer = AutoTokenizer.from_pretrained(start_model, local_files_only=True)
    rows, kept = short_prompts(problems, tokenizer, longest, task)
    if len(kept) != expected:
        warnings.warn(
            f"training.expected_prompts: {expected} prompts of at most {longest} tokens were "
            f"expected, and {len(kept)} of {len(rows)} are that short: the number depends on "
            "tokenizer and chat template, and on problems without a readable answer, which are "
            "left out before (make_problems.log names them)",
            GrpoReplayWarning,
            stacklevel=2,
        )
