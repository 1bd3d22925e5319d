"""Split a step's rows over updates, micro-batches and processes, and pad them into tensors.

TRL's own splitter drops a remainder, and needs a fixed batch; ours splits any number of rows evenly
and fills with fully masked rows where there are too few, so that all processes run the same number
of micro- batches.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from grpo_replay.replay.rollout import Rollout


def split_evenly(order: np.ndarray, updates: int, pieces: int) -> list[list[np.ndarray]]:
    """Indices for every update (outer) and micro-batch (inner), each as even as possible; some
    may be empty.
    """
    return [np.array_split(chunk, pieces) for chunk in np.array_split(order, updates)]


def collate(
    rows: Sequence[Rollout],
    step: int,
    tokens_in_mini_batch: int,
    pad_token_id: int,
    device: torch.device,
) -> dict[str, torch.Tensor]:
    """Pad rollouts into the tensors that TRL's loss reads.

    Returns:
        `prompt_ids`, `prompt_mask` (rows, prompt tokens), padded on the left; `completion_ids`,
        `completion_mask`, `old_per_token_logps` (rows, completion tokens), padded on the right;
        `advantages`, `ages` (rows,); `num_items_in_batch` (). Without rows: one row whose
        completion is fully masked.
    """
    if not rows:
        return _masked_row(pad_token_id, device)
    prompts = [torch.as_tensor(row.prompt_ids, dtype=torch.long) for row in rows]
    completions = [torch.as_tensor(row.completion_ids, dtype=torch.long) for row in rows]
    logprobs = [torch.as_tensor(row.behavior_logprobs, dtype=torch.float32) for row in rows]

    def pad(tensors: list[torch.Tensor], value: float, side: str = "right") -> torch.Tensor:
        return pad_sequence(tensors, batch_first=True, padding_value=value, padding_side=side)

    tensors = {
        "prompt_ids": pad(prompts, pad_token_id, "left"),
        "prompt_mask": pad([torch.ones_like(p) for p in prompts], 0, "left"),
        "completion_ids": pad(completions, pad_token_id),
        "completion_mask": pad([torch.ones_like(c) for c in completions], 0),
        "old_per_token_logps": pad(logprobs, 0.0),
        "advantages": torch.tensor([row.advantage for row in rows], dtype=torch.float32),
        "ages": torch.tensor([step - row.birth_step for row in rows]),
        "num_items_in_batch": torch.tensor(float(tokens_in_mini_batch)),
    }
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def _masked_row(pad_token_id: int, device: torch.device) -> dict[str, torch.Tensor]:
    token = torch.full((1, 1), pad_token_id, dtype=torch.long, device=device)
    return {
        "prompt_ids": token,
        "prompt_mask": torch.ones_like(token),
        "completion_ids": token,
        "completion_mask": torch.zeros_like(token),
        "old_per_token_logps": torch.zeros(1, 1, device=device),
        "advantages": torch.zeros(1, device=device),
        "ages": torch.zeros(1, dtype=torch.long, device=device),
        "num_items_in_batch": torch.ones((), device=device),
    }
