"""Trajectory balance through the real `train()`."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scripted import Probe, Script, cell_settings, make_probe, tiny_study
from test_trainer import assert_ends_alike, policy_logprobs, stop_and_resume
from transformers import AutoModelForCausalLM

BETA = 2.0  # so large that the penalty is seen
METHOD = {
    "loss": {"kind": "trajectory_balance", "beta": BETA},
    "replay": {"compose": "anchored", "unit": "query", "priority": {"kind": "uniform"}},
}


@pytest.fixture(scope="module")
def trained(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Probe:
    """A run of four steps; groups that are all right or all wrong are among its rows."""
    study = tiny_study(METHOD, steps=4, replay_warmup=1, learning_rate=3e-3)
    settings = {**cell_settings(study, "probe"), "micro_batch": 4}
    run = tmp_path_factory.mktemp("run")
    probe = make_probe(settings, tiny_model, run, Script(share=0.3, cut=0.2))
    probe.trainer.train()
    return probe


def rows_of(probe: Probe, step: int, update: int) -> list[tuple]:
    """Each row of an update: place in the batch, inputs of its micro-batch, row in it."""
    entries = [e for e in probe.losses if e["step"] == step and e["update"] % 2 == update]
    return [
        (int(place), entry["inputs"], row)
        for entry in entries
        for row, place in enumerate(entry["inputs"]["row_index"])
        if place >= 0
    ]


def test_nothing_scored_is_dropped_and_groups_are_whole_in_an_update(trained: Probe) -> None:
    fresh, table = trained.records.rollouts.table(), trained.records.replay.table()
    assert fresh.reward.groupby(fresh.group_id).nunique().eq(1).any()
    for step in range(1, 5):
        rows = table[table.step == step].reset_index(drop=True)
        own = rows[~rows.replayed]
        assert sorted(own.rollout_id) == sorted(fresh[fresh.step == step].rollout_id)
        seen = Counter()
        for update in (0, 1):
            groups = Counter(rows.group_id[place] for place, _, _ in rows_of(trained, step, update))
            assert set(groups.values()) == {4}
            seen.update(groups)
        assert seen == Counter(rows.group_id)
    assert table.replayed.any()


def test_advantages_are_those_of_the_policy_at_its_update(trained: Probe, tiny_model: Path) -> None:
    """From the weights at the start of each step, and those of the start model, in float64."""
    reference = AutoModelForCausalLM.from_pretrained(tiny_model).double().eval()
    policy = AutoModelForCausalLM.from_pretrained(tiny_model).double().eval()
    table = trained.records.replay.table()
    largest_kl = 0.0
    for step in range(1, 5):
        rows = table[table.step == step].reset_index(drop=True)
        policy.load_state_dict(trained.script.policies[step - 1])
        found, kl = {}, {}
        for place, inputs, row in rows_of(trained, step, 0):
            one = {name: value[row : row + 1] for name, value in inputs.items() if value.dim()}
            mask = one["completion_mask"].double()
            with torch.no_grad():
                logs = [(policy_logprobs(m, one) * mask).sum() for m in (policy, reference)]
            kl[place], found[place] = float(logs[0] - logs[1]), float(one["advantages"])
        for _, group in rows.loc[sorted(found)].groupby("group_id"):
            kls, rewards = np.array([kl[p] for p in group.index]), group.reward.to_numpy()
            expected = (rewards - rewards.mean()) - BETA * (kls - kls.mean())
            assert [found[p] for p in group.index] == pytest.approx(expected, abs=2e-3)
        largest_kl = max(largest_kl, *map(abs, kl.values()))
    assert largest_kl > 0.1  # the penalty took part


def test_every_update_has_advantages_of_its_own(trained: Probe) -> None:
    table = trained.records.replay.table()
    for step in range(1, 5):
        rows = table[table.step == step].reset_index(drop=True)
        for update in (0, 1):
            sums: Counter[str] = Counter()
            for place, inputs, row in rows_of(trained, step, update):
                sums[rows.group_id[place]] += float(inputs["advantages"][row])
            assert max(map(abs, sums.values())) < 1e-4
    same = [r.advantage for r in trained.rows if r.step == 3 and r.age == 0]
    assert np.abs(same).max() > 0


def test_the_record_tells_distance_and_loss(trained: Probe) -> None:
    metrics = trained.records.metrics.table()
    assert (metrics["balance/loss"] > 0).all()
    assert metrics["balance/kl_max"].iloc[-1] > metrics["balance/kl_max"].iloc[0]
    assert (metrics["clip_ratio/fresh"] == 0).all()  # there is no ratio to clip
    assert (metrics["updates/skipped"] == 0).all()


def test_the_reference_stays_the_start_model(trained: Probe, tiny_model: Path) -> None:
    start = AutoModelForCausalLM.from_pretrained(tiny_model).state_dict()
    reference = trained.trainer.reference.state_dict()
    model = trained.trainer.accelerator.unwrap_model(trained.trainer.model).state_dict()
    assert all(torch.equal(reference[name], start[name]) for name in start)
    assert any(not torch.equal(model[name], start[name]) for name in start)


def test_a_resumed_balance_ends_like_one_that_never_stopped(
    tiny_model: Path, tmp_path: Path
) -> None:
    """The reference is the start model's, not the checkpoint's; stored rows keep its sums."""
    settings = cell_settings(tiny_study(METHOD, steps=6, replay_warmup=1), "probe")
    whole, resumed = stop_and_resume(settings, tiny_model, tmp_path)
    assert_ends_alike(whole, resumed)
    table = whole.records.replay.table()
    assert (table.replayed & (table.step > 3) & (table.birth_step <= 3)).any()
