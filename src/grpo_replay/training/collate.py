"""Split a step's rows over updates, micro-batches and processes, and pad them into tensors.

TRL's own splitter drops a remainder, and needs a fixed batch; ours splits any number of rows evenly
and fills with fully masked rows where there are too few, so that all processes run the same number
of micro- batches.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from grpo_replay.methods.rollout import Rollout


def split_evenly(
    order: np.ndarray, updates: int, pieces: int, units: Sequence[Sequence[int]] | None = None
) -> list[list[np.ndarray]]:
    """Indices for every update (outer) and micro-batch (inner), each as even as possible; some
    may be empty.

    Args:
        order: of the rows, or of the units where they are given.
        updates, pieces: how many, of each update.
        units: rows that stay together within an update.
    """
    chunks = np.array_split(order, updates)
    if units is not None:
        chunks = [np.array([i for u in chunk for i in units[u]], dtype=int) for chunk in chunks]
    return [np.array_split(chunk, pieces) for chunk in chunks]


def collate(
    batch: Sequence[Rollout],
    places: Sequence[int],
    width: int,
    step: int,
    tokens_in_mini_batch: int,
    pad_token_id: int,
    device: torch.device,
) -> dict[str, torch.Tensor]:
    """Pad the rollouts at some places of a batch into the tensors that TRL's loss reads, `width`
    rows in all.

    TRL gathers a value a row from all processes, which therefore must have equally many: what is
    missing is filled up with rows whose completion is fully masked.

    Returns:
        `prompt_ids`, `prompt_mask` (width, prompt tokens), padded on the left; `completion_ids`,
        `completion_mask`, `old_per_token_logps` (width, completion tokens), padded on the right;
        `advantages`, `ages`, `places` (-1: filled up) (width,); `num_items_in_batch` ().
    """
    rows = [batch[place] for place in places]
    missing = width - len(rows)
    filler = torch.full((1,), pad_token_id)
    prompts = [torch.as_tensor(row.prompt_ids, dtype=torch.long) for row in rows]
    prompts += [filler] * missing
    completions = [torch.as_tensor(row.completion_ids, dtype=torch.long) for row in rows]
    masks = [torch.ones_like(c) for c in completions] + [torch.zeros_like(filler)] * missing
    completions += [filler] * missing
    logprobs = [torch.as_tensor(row.behaviour_logprobs, dtype=torch.float32) for row in rows]
    logprobs += [torch.zeros(1)] * missing

    def pad(tensors: list[torch.Tensor], value: float, side: str = "right") -> torch.Tensor:
        return pad_sequence(tensors, batch_first=True, padding_value=value, padding_side=side)

    tensors = {
        "prompt_ids": pad(prompts, pad_token_id, "left"),
        "prompt_mask": pad([torch.ones_like(p) for p in prompts], 0, "left"),
        "completion_ids": pad(completions, pad_token_id),
        "completion_mask": pad(masks, 0),
        "old_per_token_logps": pad(logprobs, 0.0),
        "advantages": torch.tensor([r.advantage for r in rows] + [0.0] * missing),
        "ages": torch.tensor([step - r.birth_step for r in rows] + [0] * missing),
        "row_index": torch.tensor([*places] + [-1] * missing),
        "num_items_in_batch": torch.tensor(float(tokens_in_mini_batch)),
    }
    return {name: tensor.to(device) for name, tensor in tensors.items()}
