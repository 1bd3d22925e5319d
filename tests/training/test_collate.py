"""Rows survive splitting and padding as they are."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from grpo_replay.methods.rollout import Rollout
from grpo_replay.training.collate import collate, split_evenly

PAD = 7
CPU = torch.device("cpu")


def rollout(prompt: list[int], completion: list[int], birth: int = 1, advantage: float = 0.5):
    return Rollout(
        rollout_id="r",
        group_id="g",
        problem_id="p",
        prompt_ids=np.array(prompt, np.int32),
        completion_ids=np.array(completion, np.int32),
        behaviour_logprobs=-np.array(completion, np.float32),
        inference_logprobs=None,
        advantage=advantage,
        reward=1.0,
        group_mean=0.0,
        group_std=1.0,
        birth_step=birth,
        truncated=False,
    )


@pytest.mark.parametrize("rows", [0, 1, 3, 7, 16, 33])
@pytest.mark.parametrize(("updates", "pieces"), [(2, 1), (2, 4), (1, 3), (4, 8)])
def test_every_row_is_in_one_piece(rows: int, updates: int, pieces: int) -> None:
    split = split_evenly(np.arange(rows), updates, pieces)
    assert [len(update) for update in split] == [pieces] * updates
    sizes = [sum(map(len, update)) for update in split]
    assert max(sizes) - min(sizes) <= 1
    flat = [index for update in split for piece in update for index in piece]
    assert sorted(flat) == list(range(rows))


@pytest.mark.parametrize("sizes", [[4, 4, 4], [1, 5, 2, 2, 3], [3], []])
def test_units_stay_whole_within_an_update(sizes: list[int]) -> None:
    rows = np.random.default_rng(0).permutation(sum(sizes))
    units = [piece.tolist() for piece in np.split(rows, np.cumsum(sizes)[:-1])] if sizes else []
    order = np.random.default_rng(1).permutation(len(units))
    split = split_evenly(order, 2, 3, units)
    assert [len(update) for update in split] == [3, 3]
    updates = [[int(i) for piece in update for i in piece] for update in split]
    assert sorted(updates[0] + updates[1]) == list(range(sum(sizes)))
    for unit in units:
        assert sum(set(unit) <= set(update) for update in updates) == 1
    held = [sum(set(unit) <= set(update) for unit in units) for update in updates]
    assert abs(held[0] - held[1]) <= 1
    alone = [[i] for i in range(9)]
    order = np.random.default_rng(2).permutation(9)
    found, plain = split_evenly(order, 2, 2, alone), split_evenly(order, 2, 2)
    assert [p.tolist() for u in found for p in u] == [p.tolist() for u in plain for p in u]


def test_padding_hides_nothing_and_adds_nothing() -> None:
    """An end token that is the padding token counts; so does a completion of one token."""
    rows = [rollout([1, 2, 3], [4, PAD]), rollout([5], [PAD]), rollout([6, 6], [1, 2, 3, PAD])]
    others = [rollout([1], [1]), *rows]
    batch = collate(
        others, [1, 2, 3], 5, step=4, tokens_in_mini_batch=9, pad_token_id=PAD, device=CPU
    )
    for index, row in enumerate(rows):
        prompt = batch["prompt_ids"][index][batch["prompt_mask"][index].bool()]
        assert prompt.tolist() == row.prompt_ids.tolist()
        mask = batch["completion_mask"][index].bool()
        assert batch["completion_ids"][index][mask].tolist() == row.completion_ids.tolist()
        old = batch["old_per_token_logps"][index][mask]
        assert old.tolist() == row.behaviour_logprobs.tolist()
    assert batch["completion_mask"].sum() == 7
    assert batch["ages"].tolist() == [3, 3, 3, 0, 0]
    assert batch["row_index"].tolist() == [1, 2, 3, -1, -1]
    assert batch["completion_mask"][3:].sum() == 0  # filled up to five rows
    assert batch["num_items_in_batch"] == 9
    assert batch["prompt_mask"][1].tolist() == [0, 0, 1]  # prompts end where completions begin


def test_no_rows_give_one_masked_row() -> None:
    batch = collate([], [], 1, step=4, tokens_in_mini_batch=0, pad_token_id=PAD, device=CPU)
    assert batch["completion_mask"].sum() == 0
    assert batch["prompt_mask"].sum() == 1
    assert batch["advantages"].tolist() == [0.0]


def test_company_changes_no_logprob(tiny_model) -> None:
    """A row's log-probabilities are the same in whatever batch it is padded into."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model).eval()
    short, long = rollout([9, 8], [11, 12, 13]), rollout(list(range(9, 60)), list(range(9, 40)))
    alone, together = (completion_logprobs(model, rows) for rows in ([short], [short, long]))
    assert torch.allclose(alone[0, :3], together[0, :3], atol=1e-4)


def completion_logprobs(model: torch.nn.Module, rows: list[Rollout]) -> torch.Tensor:
    places = range(len(rows))
    batch = collate(
        rows, places, len(rows), 1, tokens_in_mini_batch=1, pad_token_id=PAD, device=CPU
    )
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = model(ids, attention_mask=mask, position_ids=positions).logits
    width = batch["completion_ids"].shape[1]
    logprobs = logits[:, -width - 1 : -1].log_softmax(-1)
    return logprobs.gather(2, batch["completion_ids"][:, :, None])[:, :, 0]
