"""Teach a pretrained model the boxed format: a few supervised steps on worked solutions.

A small instruct model boxes almost none of its answers, so every reward is -1, no group is mixed
and no method has anything to learn from. These steps (not in the paper) make the model that every
method, and the base row of the tables, start from.
"""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from grpo_replay.errors import DataError
from grpo_replay.models.from_scratch import IGNORED, completion_loss, save_folder
from grpo_replay.models.gradient import clip_gradient
from grpo_replay.models.load import load_model
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.task import Task

if TYPE_CHECKING:
    from grpo_replay.models.config import WarmStart

CALCULATOR_MARK = re.compile(r"<<.*?>>")
WARM_UP_SHARE = 0.1
GRADIENT_CLIP = 1.0
FIGURE_STEPS = 5  # the reported losses are means over the first and the last steps

Example = tuple[torch.Tensor, torch.Tensor]  # token ids [token] and labels [token]


def warm_start(
    model_folder: Path,
    problems: list[dict[str, Any]],
    settings: "WarmStart",
    output: Path,
    task: Task = DEFAULT_TASK,
) -> dict[str, float]:
    """Fine-tune the model of `model_folder` on worked solutions and save it as the folder `output`.

    `problems` have the string fields problem, answer and solution. Those whose prompt and solution
    take more than `settings.max_tokens` tokens are left out. AdamW in float32, on a GPU where there
    is one, one-cycle learning rate, the loss on completion tokens alone; on a CPU equal settings
    and threads give equal weights. The folder holds safetensors weights, tokenizer and generation
    config and appears only when complete. Returns `examples` (that fit), `loss_first` and
    `loss_last` (nats a completion token, over the first and last steps) and `seconds`. Raises
    DataError where a solution is missing or none fits.
    """
    start = time.perf_counter()
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    examples = make_examples(tokenizer, problems, settings.max_tokens, task)
    network = load_model(model_folder).to("cuda" if torch.cuda.is_available() else "cpu")
    losses = _fit(network, examples, settings)
    save_folder(network, tokenizer, output)
    return {
        "examples": float(len(examples)),
        "loss_first": float(np.mean(losses[:FIGURE_STEPS])),
        "loss_last": float(np.mean(losses[-FIGURE_STEPS:])),
        "seconds": time.perf_counter() - start,
    }


def make_examples(
    tokenizer: PreTrainedTokenizerBase,
    problems: list[dict[str, Any]],
    max_tokens: int,
    task: Task = DEFAULT_TASK,
) -> list[Example]:
    """Return ids and labels of each problem whose text fits; labels of the prompt are `IGNORED`."""
    examples = []
    for problem in problems:
        prompt = tokenizer.apply_chat_template(
            task.messages(problem), tokenize=False, add_generation_prompt=True
        )
        prompt_ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        completion = boxed_solution(problem) + tokenizer.eos_token
        completion_ids = tokenizer(completion, add_special_tokens=False)["input_ids"]
        if len(prompt_ids) + len(completion_ids) <= max_tokens:
            ids_T = torch.tensor(prompt_ids + completion_ids)
            labels_T = torch.tensor([IGNORED] * len(prompt_ids) + completion_ids)
            examples.append((ids_T, labels_T))
    if not examples:
        raise DataError(
            f"warm_start: max_tokens: {max_tokens}: no prompt with its worked solution fits; "
            "give more tokens or shorter problems"
        )
    return examples


def boxed_solution(problem: dict[str, Any]) -> str:
    r"""Return the worked solution, without calculator marks, ended by `\boxed{answer}`.

    Raises DataError naming the problem where it has no solution.
    """
    solution = problem.get("solution")
    if not isinstance(solution, str) or not solution.strip():
        raise DataError(
            f"warm_start: file: problem {problem['id']!r} has no solution; "
            "a warm start needs worked solutions in the field 'solution'"
        )
    return f"{CALCULATOR_MARK.sub('', solution).strip()}\n\\boxed{{{problem['answer']}}}"


def _fit(network: torch.nn.Module, examples: list[Example], settings: "WarmStart") -> list[float]:
    """Train for `settings.steps` updates; return the loss of each."""
    rng = np.random.default_rng(settings.seed)
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, total_steps=settings.steps, pct_start=WARM_UP_SHARE
    )
    network.train()
    losses = []
    for rows in _batches(len(examples), settings, rng):
        padded = _pad([examples[row] for row in rows])
        loss = completion_loss(network, *(batch_BT.to(network.device) for batch_BT in padded))
        optimizer.zero_grad()
        loss.backward()
        clip_gradient(network, loss, GRADIENT_CLIP, f"warm_start: step {len(losses) + 1}")
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        print(f"warm start: step {len(losses)}/{settings.steps}, loss {losses[-1]:.3f}", flush=True)
    return losses


def _batches(count: int, settings: "WarmStart", rng: np.random.Generator) -> np.ndarray:
    """Return example rows [step, row]: whole shuffles one after another, so none is favoured."""
    wanted = settings.steps * settings.batch_size
    shuffles = [rng.permutation(count) for _ in range(-(-wanted // count))]
    return np.concatenate(shuffles)[:wanted].reshape(settings.steps, settings.batch_size)


def _pad(examples: list[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and labels [row, token], padded on the right, where causal attention is blind."""
    ids_BT = pad_sequence([ids_T for ids_T, _ in examples], batch_first=True)
    labels_BT = pad_sequence(
        [labels_T for _, labels_T in examples], batch_first=True, padding_value=IGNORED
    )
    return ids_BT, labels_BT
