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
from typing import Any

import numpy as np
import torch

from grpo_replay.errors import DataError
from grpo_replay.evaluation.engines import Answer, Engine, open_engine
from grpo_replay.evaluation.sample import spaced_seed
from grpo_replay.evaluation.settings import Decoding
from grpo_replay.models.folder import ModelFolder, open_folder
from grpo_replay.tasks.any_task import DEFAULT_TASK, task_of
from grpo_replay.tasks.config import PromptSelection
from grpo_replay.tasks.math import last_boxed
from grpo_replay.tasks.math.guard import guarded
from grpo_replay.tasks.problems import read_problems, write_problems
from grpo_replay.tasks.rewards import DEFAULT_REWARDS, Reward, rewards_of, weighted
from grpo_replay.tasks.task import Task


def select_as_asked(
    model_folder: Path, problems: Path, output: Path, params: dict[str, Any]
) -> dict[str, float]:
    """`select_prompts` by what the rule hands over, `cells.selection_params`."""
    task = task_of(params.get("task"))
    rewards = params.get("rewards", DEFAULT_REWARDS)
    return select_prompts(
        model_folder,
        read_problems(problems),
        PromptSelection(**params["settings"]),
        output,
        task,
        rewards_of(task, rewards, params.get("reward_files")),
        params["engine"],
        params["batch"],
    )


def select_prompts(
    model_folder: Path,
    problems: list[dict[str, Any]],
    settings: PromptSelection,
    output: Path,
    task: Task = DEFAULT_TASK,
    rewards: Sequence[Reward] | None = None,
    engine: str = "transformers",
    batch: int = 32,
) -> dict[str, float]:
    """Write the problems whose group of rollouts was mixed to `output` (JSON Lines).

    Candidates are the `settings.candidates` problems with the shortest text (the cheapest to sample
    and the easiest), each sampled `settings.rollouts` times at temperature 1 by `engine`, `batch`
    rollouts at a time. Of the mixed ones the `settings.keep` most evenly mixed are kept, the most
    even first, with the field `first_pass_correct` (rollouts that were right). A group is mixed
    where its rewards (by default the task's `answer`) differ; what is right is the word of the
    task's first verifier. Returns `candidates`, `mixed` and `kept` (problems), `boxed`, `correct`
    and `truncated` (shares of rollouts), `mean_tokens` and `seconds`. Raises DataError where no
    group was mixed.
    """
    start = time.perf_counter()
    folder = open_folder(model_folder)
    candidates, prompts = _shortest(folder, task, problems, settings.candidates)
    max_tokens = settings.max_completion_tokens
    key = "prompt_selection.max_completion_tokens"
    folder.check_length({"prompt_selection": prompts}, max_tokens, key)
    decoding = Decoding(engine, temperature=1.0, top_p=1.0, top_k=0, max_tokens=max_tokens)
    drawing = open_engine(decoding, folder, max(map(len, prompts)))
    judge = _Judge(task, rewards or rewards_of(task, DEFAULT_REWARDS))
    rollouts, mixed = [], 0
    for problem, group in zip(candidates, _groups(drawing, prompts, settings, batch), strict=True):
        rollouts.append(_record(problem, group, folder, judge))
        mixed += _is_mixed(rollouts[-1])
        print(f"first pass: {len(rollouts)}/{len(candidates)}, {mixed} mixed", flush=True)
    kept = _most_even(rollouts, settings)
    if not kept:
        raise DataError(
            f"prompt_selection: none of {len(rollouts)} candidates gave a mixed group of "
            f"{settings.rollouts}; try more candidates, or a longer warm_start"
        )
    write_problems(output, kept)
    return {**_figures(rollouts), "kept": len(kept), "seconds": time.perf_counter() - start}


def _shortest(
    folder: ModelFolder, task: Task, problems: list[dict[str, Any]], count: int
) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The problems of the fewest tokens, worked solutions included where there are some, and the
    token ids of their prompts.
    """
    prompts = folder.render(map(task.messages, problems))
    texts = [problem.get("solution", "") for problem in problems]
    solutions = folder.tokenizer(texts, add_special_tokens=False)["input_ids"]
    lengths = [len(prompt) + len(own) for prompt, own in zip(prompts, solutions, strict=True)]
    order = sorted(range(len(problems)), key=lengths.__getitem__)[:count]
    return [problems[i] for i in order], [prompts[i] for i in order]


def _groups(
    engine: Engine, prompts: list[list[int]], settings: PromptSelection, batch: int
) -> Iterator[list[Answer]]:
    """Draw the group of rollouts of each prompt, in their order."""
    size, n = max(1, batch // settings.rollouts), settings.rollouts
    taken: set[int] = set()
    for start in range(0, len(prompts), size):
        seed = spaced_seed(f"{settings.seed}/{start}", size * n, taken)
        # An engine may draw from torch's global generator: fork it, so that it is left as it was.
        with torch.random.fork_rng():
            answers = engine.generate(prompts[start : start + size], n, seed)
        yield from (answers[row : row + n] for row in range(0, len(answers), n))


def _record(
    problem: dict[str, Any], group: Sequence[Answer], folder: ModelFolder, judge: "_Judge"
) -> dict[str, Any]:
    """Judge one group of rollouts."""
    texts = folder.decode(answer.token_ids for answer in group)
    return {
        "problem": problem,
        "rewards": judge.rewards(problem, texts),
        "correct": judge.task.correct([(problem["answer"], text) for text in texts]),
        "boxed": [isinstance(guarded(last_boxed, text), str) for text in texts],
        "tokens": [len(answer.token_ids) for answer in group],
        "truncated": [not answer.finished for answer in group],
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


def _most_even(records: list[dict[str, Any]], settings: PromptSelection) -> list[dict[str, Any]]:
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
