"""One round of Algorithm 1, as far as it has got: what is generated, scored, kept and trained."""

import time
from dataclasses import dataclass, field

import numpy as np
import torch

from grpo_replay.methods.groups import ScoredGroups
from grpo_replay.methods.replay import Batch
from grpo_replay.methods.rollout import Rollout


@dataclass
class Round:
    """One training step. Times are `time.perf_counter()` readings.

    `rewards` has shape (rollouts of all processes,), `reward_means` is each function's mean over
    them; `problem_ids` and `correct` are of this process's rows.
    """

    step: int
    started: float = field(default_factory=time.perf_counter)
    generation_seconds: float = 0.0
    rewards: np.ndarray | None = None
    reward_means: dict[str, float | None] = field(default_factory=dict)
    correct: list[bool] = field(default_factory=list)
    problem_ids: list[str] = field(default_factory=list)
    scored: float = 0.0
    fresh: list[Rollout] = field(default_factory=list)
    batch: Batch | None = None


def local_rollouts(
    round_: Round,
    groups: ScoredGroups,
    output: dict[str, torch.Tensor],
    behaviour: torch.Tensor,
    first: int,
    group_size: int,
    end_tokens: set[int],
) -> list[Rollout]:
    """The rollouts of this process.

    Args:
        round_: rewards and problem ids of the step.
        groups: what is known of each rollout of all processes.
        output: what TRL generated, (rows, tokens) each.
        behaviour: log-probabilities under the policy that sampled them, (rows, tokens).
        first: position of this process's first row among those of all.
        group_size: G.
        end_tokens: tokens that end a completion; one without is truncated.
    """
    lengths = output["completion_mask"].sum(dim=1).tolist()
    completions = output["completion_ids"].cpu().numpy().astype(np.int32)
    prompts = output["prompt_ids"].cpu().numpy().astype(np.int32)
    prompt_mask = output["prompt_mask"].bool().cpu().numpy()
    logprobs = behaviour.float().cpu().numpy()
    sampled = output.get("sampling_per_token_logps")
    inference = None if sampled is None else sampled.float().cpu().numpy()
    rollouts = []
    for row, length in enumerate(lengths):
        index = first + row
        group = f"{round_.step}-{index // group_size}"
        rollouts.append(
            Rollout(
                rollout_id=f"{group}-{index % group_size}",
                group_id=group,
                problem_id=round_.problem_ids[row],
                prompt_ids=prompts[row][prompt_mask[row]],
                completion_ids=completions[row, :length].copy(),
                behaviour_logprobs=logprobs[row, :length].copy(),
                inference_logprobs=None if inference is None else inference[row, :length].copy(),
                advantage=float(groups.advantages[index]),
                reward=float(round_.rewards[index]),
                group_mean=float(groups.means[index]),
                group_std=float(groups.stds[index]),
                birth_step=round_.step,
                truncated=int(completions[row, length - 1]) not in end_tokens,
                kept=bool(groups.kept[index]),
                correct=round_.correct[row],
            )
        )
    return rollouts
