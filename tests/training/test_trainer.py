"""What reaches the loss, through the real `train()` on a tiny model, for every method."""

import json
import shutil
from collections import Counter
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scripted import Probe, Script, Watch, cell_settings, make_probe, tiny_study
from transformers import AutoModelForCausalLM

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.methods.replay import Replay
from grpo_replay.planning.gpu_memory import rows_held
from grpo_replay.tasks.math import grading, task
from grpo_replay.training.step_metrics import MEANINGS
from grpo_replay.training.trainer import ReplayGRPOTrainer

METHODS = {
    "grpo": None,
    "uniform-pool": None,
    "sigma_g-pool": None,
    "ours": None,
    "anchored-query": {"replay": {"compose": "anchored", "unit": "query"}},
    "pool-rollout": {"replay": {"compose": "pool", "priority": {"kind": "abs_advantage"}}},
}
STEPS, WARMUP, TAU_MAX, GROUP = 6, 2, 2, 4


@pytest.fixture(scope="module", params=METHODS)
def trained(
    request: pytest.FixtureRequest, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Probe:
    """A finished run of one method, with every row its loss saw."""
    study = tiny_study(METHODS[request.param], steps=STEPS, replay_warmup=WARMUP)
    method = "probe" if METHODS[request.param] else request.param
    settings = cell_settings(study, method, tau_max=TAU_MAX)
    probe = make_probe(settings, tiny_model, tmp_path_factory.mktemp("run"))
    probe.trainer.train()
    return probe


def replay_of(probe: Probe) -> Replay:
    """The replay of a trained method; a store knows it, and plain GRPO is its own."""
    return getattr(probe.trainer.replay, "replay", probe.trainer.replay)


def fresh_rollouts(probe: Probe) -> pd.DataFrame:
    """Every rollout that was sampled, with the advantage of the paper's closed form beside it."""
    table = probe.records.rollouts.table()
    right = table.reward.eq(1).groupby(table.group_id).transform("sum")
    table["expected"] = np.where(
        table.reward.eq(1),
        [sqrt((GROUP - k) / k) if 0 < k < GROUP else 0 for k in right],
        [-sqrt(k / (GROUP - k)) if 0 < k < GROUP else 0 for k in right],
    )
    table["mixed"] = right.between(1, GROUP - 1)
    return table


def seen_by_step(probe: Probe) -> dict[int, list]:
    seen: dict[int, list] = {}
    for row in probe.rows:
        seen.setdefault(row.step, []).append(row)
    return seen


def trained_on(probe: Probe) -> pd.DataFrame:
    return probe.records.replay.table()


def test_rows_of_the_loss_are_those_of_the_record(trained: Probe) -> None:
    """Tokens, advantage, age and length stay together from storage to loss."""
    seen = seen_by_step(trained)
    for step, rows in trained_on(trained).groupby("step"):
        expected = Counter(
            (round(r.advantage, 5), r.age, r.length) for r in rows.itertuples(index=False)
        )
        found = Counter((round(r.advantage, 5), r.age, len(r.completion_ids)) for r in seen[step])
        assert found == expected


def test_advantages_are_the_closed_form(trained: Probe) -> None:
    fresh = fresh_rollouts(trained)
    assert fresh.mixed.any() and not fresh.mixed.all()
    assert np.abs(fresh.advantage - fresh.expected).max() < 2e-5
    birth = fresh.set_index("rollout_id").expected
    rows = trained_on(trained)
    assert np.abs(rows.advantage - birth.loc[rows.rollout_id].to_numpy()).max() < 2e-5


def test_only_mixed_groups_are_trained_on(trained: Probe) -> None:
    fresh = fresh_rollouts(trained)
    mixed = set(fresh[fresh.mixed].rollout_id)
    assert set(trained_on(trained).rollout_id) <= mixed


def test_behaviour_logprobs_are_those_of_the_birth_policy(trained: Probe, tiny_model: Path) -> None:
    """A replayed row carries the log-probabilities of the step it was sampled in."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model).eval()
    checked = Counter()
    for row in trained.rows:
        if checked[row.age] >= 12:
            continue
        checked[row.age] += 1
        model.load_state_dict(trained.script.policies[row.step - row.age - 1])
        ids = torch.tensor([row.prompt_ids + row.completion_ids])
        with torch.no_grad():
            logprobs = model(ids).logits[0, :-1].log_softmax(-1)
        answer = torch.tensor(row.completion_ids)
        expected = logprobs[len(row.prompt_ids) - 1 :].gather(1, answer[:, None])[:, 0]
        assert torch.allclose(row.behaviour, expected, atol=1e-4)
    assert checked[0] == 12


def test_the_record_has_each_rows_log_ratio_at_its_update(trained: Probe) -> None:
    rows = dict(list(trained_on(trained).groupby("step")))
    seen = 0
    for loss in trained.losses:
        inputs = loss["inputs"]
        for row in torch.nonzero(inputs["row_index"] >= 0).flatten():
            own = rows[loss["step"]].iloc[int(inputs["row_index"][row])]
            mask = inputs["completion_mask"][row].bool()
            assert (own.age, own.length) == (inputs["ages"][row], mask.sum())
            assert own.advantage == pytest.approx(float(inputs["advantages"][row]))
            gap = (loss["logprobs"] - inputs["old_per_token_logps"])[row][mask]
            assert own.log_ratio == pytest.approx(gap.mean().item(), abs=1e-6)
            seen += 1
    assert seen == len(trained_on(trained))


def test_composition(trained: Probe) -> None:
    """Every survivor is there once (none, anchored); sizes are (1 + r) B' in units, half up."""
    fresh, rows = fresh_rollouts(trained), trained_on(trained)
    replay = replay_of(trained)
    for step in range(1, STEPS + 1):
        survivors = fresh[(fresh.step == step) & fresh.mixed]
        now = rows[rows.step == step]
        assert not now.rollout_id.duplicated().any()
        own = now[~now.replayed]
        if replay.compose == "none" or step <= WARMUP:
            assert sorted(now.rollout_id) == sorted(survivors.rollout_id)
            continue
        live = fresh[fresh.step.between(step - TAU_MAX, step - 1) & fresh.mixed]
        size = GROUP if replay.unit == "query" else 1
        units, stored = len(survivors) // size, len(live) // size
        if replay.compose == "anchored":
            assert sorted(own.rollout_id) == sorted(survivors.rollout_id)
            assert len(now) - len(own) == size * min(int(0.5 * units + 0.5), stored)
        else:
            assert len(now) == size * min(int(1.5 * units + 0.5), units + stored)
        assert set(now[now.replayed].rollout_id) <= set(live.rollout_id)
        if replay.unit == "query":
            assert set(now.groupby("group_id").size()) <= {GROUP}


def test_ages_and_warm_up(trained: Probe) -> None:
    rows = trained_on(trained)
    assert (rows.age == rows.step - rows.birth_step).all()
    assert (rows.replayed == (rows.age > 0)).all()
    assert rows.age.max() <= TAU_MAX
    replayed = rows[rows.replayed]
    if replay_of(trained).compose == "none":
        assert replayed.empty
    else:
        assert replayed.step.min() == WARMUP + 1
        assert set(replayed.age) == {1, 2}


def test_loss_is_the_papers(trained: Probe) -> None:
    """PPO clip [0.8, 1.28], dual clip 10 for A < 0, mean over the tokens of its own mini-batch."""
    updates: dict[int, list[dict]] = {}
    for entry in trained.losses:
        updates.setdefault(entry["update"], []).append(entry)
    for entries in updates.values():
        total, tokens = 0.0, 0
        for entry in entries:
            inputs, logprobs = entry["inputs"], entry["logprobs"].double()
            mask = inputs["completion_mask"].bool()
            ratio = (logprobs - inputs["old_per_token_logps"].double()).exp()[mask]
            advantage = inputs["advantages"].double()[:, None].expand_as(mask)[mask]
            surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
            dual = torch.max(surrogate, 10.0 * advantage)
            total -= float(torch.where(advantage < 0, dual, surrogate).sum())
            tokens += int(mask.sum())
        assert sum(e["loss"] for e in entries) == pytest.approx(total / max(tokens, 1), abs=1e-5)


def test_clip_and_dual_clip_bind_as_in_the_paper(tiny_model: Path, tmp_path: Path) -> None:
    """Loss and gradient of drifted rows equal a reference in float64, on every branch."""
    probe = make_probe(cell_settings(tiny_study(steps=1), "grpo"), tiny_model, tmp_path)
    probe.trainer.train()
    entry = probe.losses[0]
    inputs = dict(entry["inputs"])
    mask = inputs["completion_mask"].bool()
    generator = torch.Generator().manual_seed(0)
    choices = torch.tensor([0.01, 0.7, 1.0, 1.5, 100.0])
    drift = choices[torch.randint(0, 5, mask.shape, generator=generator)].log()
    model = AutoModelForCausalLM.from_pretrained(tiny_model).double()
    reference = policy_logprobs(model, inputs)
    inputs["old_per_token_logps"] = (reference.detach() - drift).float()

    ratio = (reference - inputs["old_per_token_logps"].double()).exp()
    advantage = inputs["advantages"].double()[:, None].expand_as(ratio)
    surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
    bounded = torch.where(advantage < 0, torch.max(surrogate, 10.0 * advantage), surrogate)
    tokens = inputs["num_items_in_batch"] / probe.trainer.updates_per_step
    expected = -bounded[mask].sum() / tokens
    expected.backward()
    for sign in (advantage > 0, advantage < 0):
        for value in choices.double():
            assert (mask & sign & ((ratio - value).abs() < 0.01 * value)).any()  # all branches

    trained = probe.trainer.accelerator.unwrap_model(probe.trainer.model)
    trained.load_state_dict(probe.script.policies[0])
    trained.train()
    probe.trainer.current_gradient_accumulation_steps = 1
    loss = ReplayGRPOTrainer._compute_loss(probe.trainer, trained, inputs)
    trained.zero_grad()
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    pairs = zip(trained.parameters(), model.parameters(), strict=True)
    difference = sum(float((p.grad - q.grad).pow(2).sum()) for p, q in pairs)
    assert difference < 1e-6 * sum(float(q.grad.pow(2).sum()) for q in model.parameters())


def policy_logprobs(model: torch.nn.Module, inputs: dict) -> torch.Tensor:
    """Log-probabilities of the completion tokens, row by row and without padding."""
    rows = []
    for row in range(len(inputs["advantages"])):
        prompt = inputs["prompt_ids"][row][inputs["prompt_mask"][row].bool()]
        answer = inputs["completion_ids"][row]
        logits = model(torch.cat([prompt, answer])[None]).logits[0, len(prompt) - 1 : -1]
        rows.append(logits.log_softmax(-1).gather(1, answer[:, None])[:, 0])
    return torch.stack(rows)


def test_first_update_of_a_step_sees_fresh_ratios_of_one(trained: Probe) -> None:
    for entry in trained.losses:
        if entry["update"] % 2 == 0:
            inputs = entry["inputs"]
            fresh = inputs["completion_mask"].bool() & (inputs["ages"] == 0)[:, None]
            drift = entry["logprobs"] - inputs["old_per_token_logps"]
            assert drift[fresh].abs().max() < 1e-4 if fresh.any() else True


def test_records_tell_every_step(trained: Probe) -> None:
    metrics = trained.records.metrics.table()
    fresh = fresh_rollouts(trained)
    assert list(metrics.step) == list(range(1, STEPS + 1))
    named = {"reward/answer": "reward/<name>"}
    assert {named.get(name, name) for name in metrics.columns} == {"step", *MEANINGS}
    for row in metrics.to_dict("records"):
        own = fresh[fresh.step == row["step"]]
        assert row["reward/mean"] == pytest.approx(own.reward.mean())
        assert row["completions/mean_length"] == pytest.approx(own.length.mean())
        assert row["survivors/rollouts"] == own.mixed.sum()
        of_step = trained_on(trained).query("step == @row['step']")
        assert sum(row["replay/age_histogram"].values()) == len(of_step)
        assert row["replay/rows"] == of_step.replayed.sum()
        assert (row["entropy"] is None) == of_step.empty
        assert row["tokens/replay"] == of_step[of_step.replayed].length.sum()
    replays = replay_of(trained).compose != "none"
    assert metrics["clip_ratio/replay"].notna().any() == replays


def test_without_survivors_nothing_moves(tiny_model: Path, tmp_path: Path) -> None:
    """Neither weights nor moments: AdamW would move by momentum alone."""
    study = tiny_study(steps=3)
    script = Script(share=[0.5, 0.0, 0.5])
    probe = make_probe(cell_settings(study, "grpo"), tiny_model, tmp_path, script)
    moments = []

    def keep_moments(record: dict) -> None:
        states = probe.trainer.optimizer.state.values()
        moments.append([{k: v.clone() for k, v in state.items()} for state in states])

    probe.trainer.watchers = [Watch(keep_moments)]
    probe.trainer.train()
    before, after = script.policies[1], script.policies[2]
    assert all(torch.equal(before[name], after[name]) for name in before)
    for old, new in zip(moments[0], moments[1], strict=True):
        assert all(torch.equal(old[name], new[name]) for name in old)
    skipped = list(probe.records.metrics.table()["updates/skipped"])
    assert skipped == [0, 2, 0]
    assert all(np.isfinite(e["loss"]) for e in probe.losses)
    last = probe.trainer.accelerator.unwrap_model(probe.trainer.model).state_dict()
    assert any(not torch.equal(after[name], last[name]) for name in after)


@pytest.mark.parametrize("share", [0.5, 0.15])
def test_the_loss_is_the_mean_over_the_tokens_of_its_mini_batch(
    share: float, tiny_model: Path, tmp_path: Path
) -> None:
    """A loss of 1 a token gives 1, whatever the split, with fewer rows than micro-batches too."""
    study = tiny_study(steps=3, replay_warmup=1)
    settings = {**cell_settings(study, "ours"), "micro_batch": 1}
    script = Script(share=[0.5, share, share], cut=0.3)
    probe = make_probe(settings, tiny_model, tmp_path, script)
    probe.trainer.train()
    trained = probe.trainer.accelerator.unwrap_model(probe.trainer.model)
    totals: Counter[int] = Counter()
    expected: dict[int, float] = {}
    for entry in probe.losses:
        inputs = dict(entry["inputs"])
        if inputs["completion_mask"].any():
            expected[entry["update"]] = 1.0
        with torch.no_grad():
            inputs["old_per_token_logps"] = policy_logprobs(trained, inputs)
        inputs["advantages"] = -torch.ones_like(inputs["advantages"])
        loss = ReplayGRPOTrainer._compute_loss(probe.trainer, trained, inputs)
        totals[entry["update"]] += loss.item()
    rows = trained_on(probe)
    assert rows.truncated.any() and rows.replayed.any()
    assert rows.groupby("step").size().min() < 32  # micro-batches of a step
    assert all(np.isfinite(entry["loss"]) for entry in probe.losses)
    assert len(expected) >= 4
    assert totals == pytest.approx(dict.fromkeys(totals, 0.0) | expected)


def test_a_missing_reward_carries_no_signal(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not reward 0: left out of the group's mean, and never trained on."""
    score = task.boxed_answer_reward

    def sometimes(completions: list, answer: list[str], **_: Any) -> list[float | None]:
        texts = (completion[0]["content"] for completion in completions)
        rewards = score(completions, answer)
        return [None if "3" in t[:1] else r for t, r in zip(texts, rewards, strict=True)]

    monkeypatch.setattr(task, "boxed_answer_reward", sometimes)
    probe = make_probe(cell_settings(tiny_study(steps=2), "grpo"), tiny_model, tmp_path)
    probe.trainer.train()
    fresh = probe.records.rollouts.table()
    unscored = fresh[fresh.reward.isna()]
    assert len(unscored) and (unscored.advantage == 0).all()
    assert not set(unscored.rollout_id) & set(trained_on(probe).rollout_id)
    groups = fresh[fresh.survived].groupby("group_id").advantage
    assert groups.sum().abs().max() < 1e-3  # of those that were scored
    assert sum(probe.records.metrics.table()["reward/unscored"]) == len(unscored)


def test_an_answer_whose_judging_raises_gets_the_wrong_ones_reward(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reward = grading.training_reward

    def sometimes(completion: str, gold: str) -> float:
        if "3" in completion[:1]:
            raise RecursionError
        return reward(completion, gold)

    monkeypatch.setattr(grading, "training_reward", sometimes)
    probe = make_probe(cell_settings(tiny_study(steps=2), "grpo"), tiny_model, tmp_path)
    with pytest.warns(GrpoReplayWarning, match="training reward: .* raised RecursionError"):
        probe.trainer.train()
    fresh = probe.records.rollouts.table()
    raised = fresh.text.str.startswith("3")
    assert raised.any() and not raised.all()
    assert (fresh.reward[raised] == -1).all()
    assert (fresh.reward == 1).any()


def test_resume_in_a_later_pass_sees_the_same_prompts(tiny_model: Path, tmp_path: Path) -> None:
    """60 problems, 8 a step: step 8 begins the second pass, step 10 is in the middle of it."""
    study = tiny_study(steps=12)
    settings = cell_settings(study, "grpo")
    whole = make_probe(settings, tiny_model, tmp_path / "whole", every=2)
    whole.trainer.args.save_total_limit = None
    whole.trainer.train()
    table = whole.records.rollouts.table()
    assert table.problem_id.value_counts().max() > 4  # a problem is met again
    for at in (8, 10):
        resumed = make_probe(settings, tiny_model, tmp_path / f"from{at}")
        shutil.copytree(tmp_path / "whole" / f"checkpoint-{2 * at}", tmp_path / f"at{at}")
        resumed.trainer.train(resume_from_checkpoint=str(tmp_path / f"at{at}"))
        expected = table[table.step > at].reset_index(drop=True)
        assert resumed.records.rollouts.table().equals(expected)


@pytest.mark.parametrize("method", ["ours", "uniform-pool"])
def test_a_resumed_run_ends_like_one_that_never_stopped(
    method: str, tiny_model: Path, tmp_path: Path
) -> None:
    """Bit for bit: draws, metrics and weights, with evictions on both sides of the stop."""
    study = tiny_study(steps=STEPS, replay_warmup=1)
    settings = cell_settings(study, method, tau_max=1)
    whole, resumed = stop_and_resume(settings, tiny_model, tmp_path)
    assert_ends_alike(whole, resumed)
    evicted = whole.records.metrics.table()["buffer/evicted_age"]
    assert evicted[:3].sum() > 0 and evicted[3:].sum() > 0


def stop_and_resume(settings: dict, model: Path, folder: Path) -> tuple[Probe, Probe]:
    """A run of six steps, and the same that is stopped in the fifth and goes on from the third."""
    whole = make_probe(settings, model, folder / "whole", every=3)
    whole.trainer.train()
    stopped = make_probe(settings, model, folder / "stopped", every=3)

    def stop(record: dict) -> None:
        if record["step"] == 5:
            raise KeyboardInterrupt

    stopped.trainer.watchers = [Watch(stop)]
    with pytest.raises(KeyboardInterrupt):
        stopped.trainer.train()
    resumed = make_probe(settings, model, folder / "stopped", every=3)
    resumed.records.keep_until(3)
    resumed.trainer.train(resume_from_checkpoint=str(folder / "stopped" / "checkpoint-6"))
    return whole, resumed


def assert_ends_alike(whole: Probe, resumed: Probe) -> None:
    """Records and weights are equal, bit for bit."""
    for name in ("replay", "rollouts"):
        mine, other = (getattr(p.records, name).path.read_text() for p in (whole, resumed))
        assert mine == other
    assert without_seconds(whole) == without_seconds(resumed)
    weights = [p.trainer.accelerator.unwrap_model(p.trainer.model) for p in (whole, resumed)]
    pairs = zip(weights[0].parameters(), weights[1].parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def without_seconds(probe: Probe) -> list[dict]:
    lines = probe.records.metrics.path.read_text().splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if not k.startswith("perf/")} for line in lines
    ]


def test_micro_batches_change_no_draw_and_no_update(tiny_model: Path, tmp_path: Path) -> None:
    """Accumulated over four micro-batches or in one piece: the mean is over the mini-batch."""
    study = tiny_study(steps=4, replay_warmup=1)
    settings = cell_settings(study, "ours")
    changes = []
    for micro_batch in (16, 4):
        run = tmp_path / str(micro_batch)
        probe = make_probe({**settings, "micro_batch": micro_batch}, tiny_model, run)
        probe.trainer.train()
        model = probe.trainer.accelerator.unwrap_model(probe.trainer.model)
        start = probe.script.policies[0]
        change = [model.state_dict()[name] - start[name] for name in start]
        changes.append((torch.cat([c.flatten() for c in change]), trained_on(probe)))
    # The log ratios are computed in other pieces: equal but for rounding.
    pd.testing.assert_frame_equal(changes[0][1], changes[1][1], rtol=1e-3, atol=1e-5)
    assert (changes[0][0] - changes[1][0]).norm() < 1e-3 * changes[0][0].norm()


@pytest.mark.parametrize("method", ["ours", "uniform-pool"])
def test_a_device_holds_no_more_rows_than_the_plan_says(
    method: str, tiny_model: Path, tmp_path: Path
) -> None:
    study = tiny_study(steps=4, replay_warmup=1)
    settings = cell_settings(study, method)
    probe = make_probe(settings, tiny_model, tmp_path)
    probe.trainer.train()
    held = max(len(entry["inputs"]["advantages"]) for entry in probe.losses)
    assert settings["micro_batch"] < held <= rows_held(study, "s")


def test_the_same_cell_twice_gives_the_same_numbers(tiny_model: Path, tmp_path: Path) -> None:
    study = tiny_study(steps=3)
    runs = []
    for name in ("one", "two"):
        probe = make_probe(cell_settings(study, "ours"), tiny_model, tmp_path / name)
        probe.trainer.train()
        runs.append(without_seconds(probe))
    assert runs[0] == runs[1]
