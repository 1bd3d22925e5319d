"""Selections of fresh rollouts and other advantages, through the real `train()`."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scripted import Probe, Script, cell_settings, make_probe, tiny_study
from test_trainer import assert_ends_alike, stop_and_resume, without_seconds

STEPS, GROUP, KEEP = 4, 8, 4
RULES = ("max_variance", "max_reward", "percentile", "random")
ANCHORED = {"compose": "anchored", "unit": "rollout", "priority": {"kind": "abs_advantage"}}


def trained(
    model: Path, run: Path, method: dict[str, Any], share: float = 0.4, tau_max: int = 10
) -> Probe:
    study = tiny_study(method, steps=STEPS, replay_warmup=1, group_size=GROUP)
    settings = cell_settings(study, "probe", tau_max)
    probe = make_probe(settings, model, run, Script(share=share))
    probe.trainer.train()
    return probe


def normalised(rewards: np.ndarray) -> np.ndarray:
    spread = rewards.std()
    return (rewards - rewards.mean()) / (spread + 1e-6) if spread else np.zeros(len(rewards))


def weights(probe: Probe) -> dict[str, torch.Tensor]:
    return probe.trainer.accelerator.unwrap_model(probe.trainer.model).state_dict()


@pytest.mark.parametrize("rule", RULES)
def test_kept_rollouts_reach_the_loss_with_the_advantages_of_the_subset(
    rule: str, tiny_model: Path, tmp_path: Path
) -> None:
    probe = trained(tiny_model, tmp_path, {"select": {"kind": rule, "keep": KEEP}})
    fresh, rows = probe.records.rollouts.table(), probe.records.replay.table()
    metrics = probe.records.metrics.table().set_index("step")
    own = fresh.set_index("rollout_id")
    seen = sorted((round(r.advantage, 4), len(r.completion_ids)) for r in probe.rows)
    assert seen == sorted(zip(rows.advantage.round(4), rows.length, strict=True))
    assert len(rows) and rows.groupby("group_id").size().eq(KEEP).all()
    for _, group in rows.groupby("group_id"):
        expected = normalised(own.reward[group.rollout_id].to_numpy())
        assert group.advantage.to_numpy() == pytest.approx(expected)
        assert group.advantage.sum() == pytest.approx(0, abs=1e-6)
    for step, group in fresh.groupby("step"):
        kept = group[group.survived]
        assert set(kept.rollout_id) == set(rows[rows.step == step].rollout_id)
        told = metrics.loc[step]
        assert told["select/reward_all"] == told["reward/mean"] == group.reward.mean()
        assert told["select/kept_right"] + told["select/kept_wrong"] == KEEP * 4
    if rule == "max_variance":
        right = fresh.reward.eq(1).groupby(fresh.group_id).sum()
        for name, group in rows.groupby("group_id"):
            c = right[name]
            kept_right = int((group.reward == 1).sum())
            assert kept_right == min(max(KEEP / 2, KEEP - (GROUP - c)), c)
        assert (metrics["select/variance_kept"] >= metrics["select/variance_all"]).all()


def test_advantages_over_all_reach_the_loss(tiny_model: Path, tmp_path: Path) -> None:
    select = {"kind": "max_variance", "keep": KEEP, "advantage_over": "all"}
    probe = trained(tiny_model, tmp_path, {"select": select, "replay": ANCHORED})
    fresh, rows = probe.records.rollouts.table(), probe.records.replay.table()
    for name, group in fresh.groupby("group_id"):
        own = rows[rows.group_id == name].drop_duplicates("rollout_id")
        expected = pd.Series(normalised(group.reward.to_numpy()), index=group.rollout_id)
        assert own.advantage.to_numpy() == pytest.approx(expected[own.rollout_id].to_numpy())
    assert rows.replayed.any() and rows.groupby(["step", "group_id"]).size().max() == KEEP


@pytest.mark.parametrize("rule", RULES)
def test_everything_kept_is_plain_grpo_to_the_bit(
    rule: str, tiny_model: Path, tmp_path: Path
) -> None:
    plain = trained(tiny_model, tmp_path / "plain", {"replay": ANCHORED})
    select = {"kind": rule, "keep": GROUP}
    other = trained(tiny_model, tmp_path / rule, {"replay": ANCHORED, "select": select})
    for name in ("replay", "rollouts"):
        texts = [getattr(p.records, name).path.read_text() for p in (plain, other)]
        assert texts[0] == texts[1]
    told = [{k: v for k, v in r.items() if "select/" not in k} for r in without_seconds(other)]
    assert told == without_seconds(plain)
    pairs = zip(weights(plain).values(), weights(other).values(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)


def test_only_best_ones_of_right_groups_teach_nothing(tiny_model: Path, tmp_path: Path) -> None:
    """Where at least m of each group are right, `max_reward` has no gradient; the record still
    tells the groups that were mixed.
    """
    probe = trained(tiny_model, tmp_path, {"select": {"kind": "max_reward", "keep": 2}}, share=0.8)
    fresh, metrics = probe.records.rollouts.table(), probe.records.metrics.table()
    right = fresh.reward.eq(1).groupby(fresh.group_id).sum()
    assert right.min() >= 2 and right.min() < GROUP
    assert not len(probe.records.replay.table())
    start, end = probe.script.policies[0], weights(probe)
    assert all(torch.equal(start[name], end[name]) for name in start)
    mixed = right[right < GROUP].groupby(lambda name: int(name.split("-")[0])).size()
    percent = metrics.set_index("step")["groups/all_correct_percent"]
    assert percent.to_dict() == {s: 100 * (1 - mixed.get(s, 0) / 4) for s in range(1, STEPS + 1)}


@pytest.mark.parametrize("kind", ["centred", "leave_one_out"])
def test_advantages_without_deviation_reach_the_loss(
    kind: str, tiny_model: Path, tmp_path: Path
) -> None:
    probe = trained(tiny_model, tmp_path, {"advantage": {"kind": kind}})
    fresh = probe.records.rollouts.table().set_index("rollout_id")
    rows = probe.records.replay.table()
    means = fresh.reward.groupby(fresh.group_id).transform("mean")
    factor = GROUP / (GROUP - 1) if kind == "leave_one_out" else 1
    expected = factor * (fresh.reward - means)
    assert rows.advantage.to_numpy() == pytest.approx(expected[rows.rollout_id].to_numpy())
    seen = sorted(round(r.advantage, 4) for r in probe.rows)
    assert seen == sorted(rows.advantage.round(4)) and len(set(seen)) > 2


def test_no_decay_draws_as_the_plain_priority(tiny_model: Path, tmp_path: Path) -> None:
    """FreshPER: an endless tau changes no draw, a short one does; tau_max evicts all the same."""
    runs = {}
    for name, tau in (("plain", None), ("endless", 1e9), ("short", 0.2)):
        priority = {"kind": "abs_advantage", "alpha": 0.6, "age_decay": tau}
        replay = {**ANCHORED, "priority": priority, "ratio": 0.25}
        runs[name] = trained(tiny_model, tmp_path / name, {"replay": replay}, tau_max=2)
    tables = {name: run.records.replay.table() for name, run in runs.items()}
    pd.testing.assert_frame_equal(tables["plain"], tables["endless"])
    replayed = {name: table[table.replayed] for name, table in tables.items()}
    assert replayed["short"].age.mean() < replayed["plain"].age.mean()
    assert replayed["plain"].age.max() == 2
    evicted = [run.records.metrics.table()["buffer/evicted_age"] for run in runs.values()]
    assert all(list(one) == list(evicted[0]) and sum(one) for one in evicted)


def test_a_resumed_run_draws_the_same_subsets(tiny_model: Path, tmp_path: Path) -> None:
    method = {"select": {"kind": "random", "keep": 2}, "replay": ANCHORED}
    study = tiny_study(method, steps=6, replay_warmup=1)
    whole, resumed = stop_and_resume(cell_settings(study, "probe"), tiny_model, tmp_path)
    assert_ends_alike(whole, resumed)
    assert len(whole.records.replay.table())
