"""Choose training prompts by a first pass: those the start model solves sometimes, not always.

A group of rollouts whose rewards are all equal is dropped before the update (paper, Algorithm 1).
A weak model leaves nearly all groups like that, so that a short run on a CPU would hardly train.
One sampled group a candidate tells which problems can give a mixed group. This is not in the
paper; the problems kept are easier than the set they come from, so training curves on them are
comparable between methods of one study and with nothing else.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import (
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from grpo_replay.errors import DataError
from grpo_replay.models.end_tokens import end_token_ids
from grpo_replay.models.load import load_model
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.math import last_boxed
from grpo_replay.tasks.math.guard import guarded
from grpo_replay.tasks.problems import write_problems
from grpo_replay.tasks.rewards import DEFAULT_REWARDS, Reward, rewards_of, weighted
from grpo_replay.tasks.task import Task

if TYPE_CHECKING:
    from grpo_replay.tasks.config import PromptSelection

ROWS_AT_ONCE = 32  # rollouts decoded together: a row that has ended still costs until the last one


def select_prompts(
    model_folder: Path,
    problems: list[dict[str, Any]],
    settings: "PromptSelection",
    output: Path,
    task: Task = DEFAULT_TASK,
    rewards: Sequence[Reward] | None = None,
) -> dict[str, float]:
    """Write the problems whose group of rollouts was mixed to `output` (JSON Lines).

    Candidates are the `settings.candidates` problems with the shortest text (the cheapest to sample
    and the easiest), each sampled `settings.rollouts` times at temperature 1. Of the mixed ones the
    `settings.keep` most evenly mixed are kept, the most even first, with the field
    `first_pass_correct` (rollouts that were right). A group is mixed where its rewards (by default
    the task's `answer`) differ; what is right is the word of the task's first verifier. Returns
    `candidates`, `mixed` and `kept` (problems), `boxed`, `correct` and `truncated` (shares of
    rollouts), `mean_tokens` and `seconds`. Raises DataError where no group was mixed.
    """
    start = time.perf_counter()
    tokenizer = AutoTokenizer.from_pretrained(model_folder, padding_side="left")
    network = load_model(model_folder).eval()
    candidates = sorted(problems, key=lambda problem: _length(tokenizer, task, problem))
    judge = _Judge(task, rewards or rewards_of(task, DEFAULT_REWARDS))
    rollouts = _first_pass(network, tokenizer, candidates[: settings.candidates], settings, judge)
    kept = _most_even(rollouts, settings)
    if not kept:
        raise DataError(
            f"prompt_selection: none of {len(rollouts)} candidates gave a mixed group of "
            f"{settings.rollouts}; try more candidates, or a longer warm_start"
        )
    write_problems(output, kept)
    return {**_figures(rollouts), "kept": len(kept), "seconds": time.perf_counter() - start}


def _length(tokenizer: PreTrainedTokenizerBase, task: Task, problem: dict[str, Any]) -> int:
    """Return the tokens of the prompt and, where the set has them, of the worked solution."""
    solution = tokenizer(problem.get("solution", ""), add_special_tokens=False)["input_ids"]
    return len(_prompt_ids(tokenizer, task, problem)) + len(solution)


def _prompt_ids(
    tokenizer: PreTrainedTokenizerBase, task: Task, problem: dict[str, Any]
) -> list[int]:
    prompt = tokenizer.apply_chat_template(
        task.messages(problem), tokenize=False, add_generation_prompt=True
    )
    return tokenizer(prompt, add_special_tokens=False)["input_ids"]


def _first_pass(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    candidates: list[dict[str, Any]],
    settings: "PromptSelection",
    judge: "_Judge",
) -> list[dict[str, Any]]:
    """Sample every candidate; return one record (see `_record`) for each, in their order."""
    ends = end_token_ids(network.config, network.generation_config, tokenizer)
    generation = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=settings.max_completion_tokens,
        num_return_sequences=settings.rollouts,
        eos_token_id=ends,
        pad_token_id=tokenizer.pad_token_id,
    )
    records = []
    # generate draws from torch's global generator: fork it, so that it is left as it was.
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(settings.seed)
        for batch in _chunks(candidates, max(1, ROWS_AT_ONCE // settings.rollouts)):
            inputs = [
                {"input_ids": _prompt_ids(tokenizer, judge.task, problem)} for problem in batch
            ]
            padded = tokenizer.pad(inputs, return_tensors="pt")
            ids_BT = network.generate(**padded, generation_config=generation)
            completions_BT = ids_BT[:, padded["input_ids"].shape[1] :]
            for row, problem in enumerate(batch):
                group = completions_BT[row * settings.rollouts : (row + 1) * settings.rollouts]
                records.append(_record(problem, group, tokenizer, ends, judge))
            mixed = sum(_is_mixed(record) for record in records)
            print(f"first pass: {len(records)}/{len(candidates)}, {mixed} mixed", flush=True)
    return records


def _chunks(items: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def _record(
    problem: dict[str, Any],
    completions_GT: torch.Tensor,
    tokenizer: PreTrainedTokenizerBase,
    ends: list[int],
    judge: "_Judge",
) -> dict[str, Any]:
    """Judge one group of rollouts [rollout, token], each cut after its first end token."""
    is_end_GT = torch.isin(completions_GT, torch.tensor(ends))
    truncated_G = ~is_end_GT.any(dim=1)
    lengths_G = torch.where(truncated_G, completions_GT.shape[1], is_end_GT.int().argmax(dim=1) + 1)
    texts = [
        tokenizer.decode(tokens_T[:length], skip_special_tokens=True)
        for tokens_T, length in zip(completions_GT, lengths_G.tolist(), strict=True)
    ]
    return {
        "problem": problem,
        "rewards": judge.rewards(problem, texts),
        "correct": judge.task.correct([(problem["answer"], text) for text in texts]),
        "boxed": [isinstance(guarded(last_boxed, text), str) for text in texts],
        "tokens": lengths_G.tolist(),
        "truncated": truncated_G.tolist(),
    }


class _Judge:
    """What rollouts are worth, as training will reward them."""

    def __init__(self, task: Task, rewards: Sequence[Reward]) -> None:
        self.task = task
        self._rewards = rewards

    def rewards(self, problem: dict[str, Any], texts: list[str]) -> np.ndarray:
        """The weighted reward of each text, NaN of one that has none."""
        completions = [[{"role": "assistant", "content": text}] for text in texts]
        columns = {name: [value] * len(texts) for name, value in problem.items() if name != "id"}
        columns["problem_id"] = [problem["id"]] * len(texts)
        values = [reward.values(completions, **columns) for reward in self._rewards]
        return weighted(np.transpose(values), [reward.weight for reward in self._rewards])


def _is_mixed(record: dict[str, Any]) -> bool:
    scored = record["rewards"][~np.isnan(record["rewards"])]
    return len(np.unique(scored)) > 1


def _unevenness(record: dict[str, Any]) -> int:
    """How far a mixed group is from half of its rewards above their mean."""
    rewards = record["rewards"]
    return abs(2 * int(np.sum(rewards > np.nanmean(rewards))) - len(rewards))


def _most_even(records: list[dict[str, Any]], settings: "PromptSelection") -> list[dict[str, Any]]:
    """Return the problems of the `keep` most evenly mixed groups, ties in their order."""
    mixed = [record for record in records if _is_mixed(record)]
    mixed.sort(key=_unevenness)
    return [
        {**record["problem"], "first_pass_correct": sum(record["correct"])}
        for record in mixed[: settings.keep]
    ]


def _figures(records: list[dict[str, Any]]) -> dict[str, float]:
    def mean(field: str) -> float:
        values = [value for record in records for value in record[field]]
        return sum(values) / len(values)

    return {
        "candidates": len(records),
        "mixed": sum(_is_mixed(record) for record in records),
        "boxed": mean("boxed"),
        "correct": mean("correct"),
        "truncated": mean("truncated"),
        "mean_tokens": mean("tokens"),
    }
