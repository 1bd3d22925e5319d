"""Storage, draws and composition on their own; through `train()` they are tested in training/."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import chisquare

from grpo_replay.errors import TrainingError
from grpo_replay.methods.buffer import RolloutBuffer
from grpo_replay.methods.draw import Draw, checked_weights
from grpo_replay.methods.priorities import AbsAdvantage, GroupStd, Uniform
from grpo_replay.methods.replay import Anchored, FromBuffer, Pool, Store, round_half_up
from grpo_replay.methods.rollout import Rollout, group_by_query


def rollout(name: str, birth: int = 1, advantage: float = 1.0, std: float = 1.0, tokens: int = 3):
    group, _, _ = name.rpartition(".")
    return Rollout(
        rollout_id=name,
        group_id=group or name,
        problem_id=f"p{group}",
        prompt_ids=np.arange(4, dtype=np.int32),
        completion_ids=np.arange(tokens, dtype=np.int32),
        behaviour_logprobs=-np.arange(tokens, dtype=np.float32),
        inference_logprobs=None,
        advantage=advantage,
        reward=1.0,
        group_mean=0.0,
        group_std=std,
        birth_step=birth,
        truncated=False,
    )


def names(rollouts: list) -> list[str]:
    return [r.rollout_id for r in rollouts]


# --- buffer ---


def test_age_eviction_is_strict() -> None:
    """With tau_max = 2 at step 3 only birth step 0 goes."""
    buffer = RolloutBuffer(tau_max=2, capacity=100)
    buffer.add([rollout(f"{birth}", birth) for birth in (0, 1, 2, 3)])
    assert buffer.evict(3) == (1, 0)
    assert names(buffer.rollouts()) == ["1", "2", "3"]


def test_capacity_evicts_the_oldest_and_is_counted_apart() -> None:
    buffer = RolloutBuffer(tau_max=5, capacity=3)
    buffer.add([rollout(f"{birth}", birth) for birth in (1, 5, 6, 7, 8)])
    counts = buffer.evict(8)
    assert (counts.age, counts.capacity) == (1, 1)
    assert names(buffer.rollouts()) == ["6", "7", "8"]


def test_a_group_that_lost_members_is_no_query_any_more() -> None:
    buffer = RolloutBuffer(tau_max=5, capacity=5)
    buffer.add([rollout(f"{group}.{i}") for group in "ab" for i in range(3)])
    buffer.evict(1)
    assert len(buffer) == 5
    assert [names(group) for group in buffer.groups()] == [["b.0", "b.1", "b.2"]]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_state_survives_json_and_arrays(count: int) -> None:
    buffer = RolloutBuffer(tau_max=3, capacity=9)
    buffer.add([rollout(f"g.{i}", birth=i, advantage=0.1 * i, tokens=i + 1) for i in range(count)])
    state = buffer.state_dict()
    other = RolloutBuffer(tau_max=3, capacity=9)
    other.load_state_dict({**state, "values": json.loads(json.dumps(state["values"]))})
    assert len(other) == count
    for mine, theirs in zip(buffer.rollouts(), other.rollouts(), strict=True):
        for field in Rollout.__dataclass_fields__:
            assert np.array_equal(getattr(mine, field), getattr(theirs, field)), field
    assert names(buffer.groups()[0]) == names(other.groups()[0]) if count else not other.groups()


def test_log_probabilities_of_a_reference_are_kept_where_there_are_some() -> None:
    buffer, other = (RolloutBuffer(tau_max=3, capacity=9) for _ in range(2))
    buffer.add([replace(rollout(f"{i}"), reference_logprob=-i / 3) for i in range(4)])
    state = buffer.state_dict()
    other.load_state_dict(state)
    assert [r.reference_logprob for r in other.rollouts()] == [-i / 3 for i in range(4)]
    buffer.load_state_dict(RolloutBuffer(tau_max=3, capacity=9).state_dict())
    assert "reference_logprob" not in buffer.state_dict()["arrays"]


# --- draws ---


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kind", [AbsAdvantage, GroupStd])
def test_first_draws_follow_the_priorities(alpha: float, kind: type) -> None:
    values = np.array([0.1, 0.5, 1.0, 2.6])
    units = [rollout(f"{i}", advantage=-v, std=v) for i, v in enumerate(values)]
    weights = kind(alpha=alpha, eps=1e-6).weights(units, step=5)
    assert weights == pytest.approx((values + 1e-6) ** alpha)
    draw, expected = Draw(seed=3), weights / weights.sum()
    drawn = Counter(draw(units, weights, 1)[0].rollout_id for _ in range(20_000))
    assert chisquare([drawn[str(i)] for i in range(4)], 20_000 * expected).pvalue > 1e-3


def test_draws_are_without_replacement_and_never_more_than_there_is() -> None:
    units, draw = [rollout(f"{i}") for i in range(5)], Draw(seed=0)
    assert sorted(names(draw(units, np.ones(5), 9))) == ["0", "1", "2", "3", "4"]
    assert draw([], np.ones(0), 3) == []
    assert draw(units, np.ones(5), 0) == []


def test_age_decays_inside_the_power() -> None:
    """FreshPER: p exp(-age / tau) to the power alpha; a weight halves after tau ln 2 / alpha."""
    old, young = rollout("old", birth=3), rollout("young", birth=9)
    decayed = AbsAdvantage(alpha=0.6, age_decay=500.0).weights([old, young], step=9)
    assert decayed[0] / decayed[1] == pytest.approx(np.exp(-6 / 500) ** 0.6)
    halved = AbsAdvantage(alpha=0.6, age_decay=500.0).weights([rollout("old", birth=1)], step=579)
    assert halved[0] == pytest.approx(0.5, abs=1e-3)
    assert Uniform(age_decay=2.0).weights([old, young], 9) == pytest.approx([np.exp(-3), 1.0])


@pytest.mark.parametrize(("tau", "half_life"), [(500.0, 577.6), (10.0, 11.55)])
def test_of_equal_priorities_the_young_is_drawn_twice_as_often(
    tau: float, half_life: float
) -> None:
    assert tau * np.log(2) / 0.6 == pytest.approx(half_life, abs=0.05)
    for kind in (AbsAdvantage, GroupStd):
        age = 1000 * tau * np.log(2) / 0.6  # in thousandths of a step: ages are whole numbers
        units = [rollout("old"), rollout("young", birth=1 + round(age))]
        weights = kind(alpha=0.6, age_decay=1000 * tau).weights(units, step=1 + round(age))
        assert weights[1] / weights[0] == pytest.approx(2, abs=1e-3)
        draw = Draw(seed=5)
        young = sum(draw(units, weights, 1)[0].rollout_id == "young" for _ in range(6000))
        assert young / 6000 == pytest.approx(2 / 3, abs=0.02)
        undecayed = kind(alpha=0.0, age_decay=tau).weights(units, step=1 + round(age))
        assert undecayed.tolist() == [1, 1]


def test_an_endless_decay_draws_as_none() -> None:
    units = [rollout(f"{i}", birth=i, advantage=i + 1.0) for i in range(30)]
    drawn = []
    for tau in (None, 1e9):
        weights = AbsAdvantage(age_decay=tau).weights(units, step=40)
        drawn.append(names(Draw(seed=1)(units, weights, 12)))
    assert drawn[0] == drawn[1]


def test_zero_advantages_are_drawn_alike() -> None:
    weights = AbsAdvantage(alpha=1.0).weights([rollout(f"{i}", advantage=0.0) for i in "abcd"], 1)
    assert weights / weights.sum() == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        ([1.0], "shape"),
        ([1.0, np.nan], "finite"),
        ([1.0, -1.0], "negative"),
        ([0.0, 0.0], "no weight"),
    ],
)
def test_weights_that_allow_no_draw_end_the_step(weights: list[float], fault: str) -> None:
    with pytest.raises(TrainingError, match=f"step 7: replay.priority mine gave .*{fault}"):
        checked_weights(weights, 2, "replay.priority mine", 7)


def test_a_restored_draw_draws_on() -> None:
    units = [rollout(f"{i}", advantage=i + 1.0) for i in range(30)]
    weights = AbsAdvantage().weights(units, 1)
    one, other = Draw(1), Draw(2)
    one(units, weights, 5)
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    for _ in range(10):
        assert names(one(units, weights, 7)) == names(other(units, weights, 7))


# --- composition ---


def store_of(replay: FromBuffer, *groups: str) -> Store:
    """A store that holds two rollouts of each group, born at step 1."""
    store = replay.start(0)
    store.buffer.add([rollout(f"{group}.{i}") for group in groups for i in range(2)])
    return store


def fresh(*groups: str, step: int = 5) -> list[Rollout]:
    return [rollout(f"{group}.{i}", step) for group in groups for i in range(2)]


@pytest.mark.parametrize(
    ("ratio", "survivors", "expected"), [(0.5, 1, 1), (0.5, 3, 2), (0.25, 1, 0), (1.0, 2, 2)]
)
def test_query_draws_are_rounded_half_up_in_groups(
    ratio: float, survivors: int, expected: int
) -> None:
    """Round-half-even would replay nothing for one surviving group."""
    store = store_of(Anchored(unit="query", ratio=ratio, warmup=0), *"abcdef")
    batch = store.next_batch(fresh(*"vwxyz"[:survivors]), 5)
    assert batch.is_replay.sum() == 2 * expected
    replayed = [row for row, old in zip(batch.rows, batch.is_replay, strict=True) if old]
    assert all(len(group) == 2 for group in group_by_query(replayed))


def test_anchored_holds_every_survivor_once() -> None:
    store = store_of(Anchored(priority=AbsAdvantage(), warmup=0), "a", "b")
    batch = store.next_batch(fresh("x", "y"), 5)
    assert names(batch.rows)[:4] == ["x.0", "x.1", "y.0", "y.1"]
    assert batch.is_replay.tolist() == [False] * 4 + [True] * 2


def test_pool_draws_its_whole_batch_from_both() -> None:
    batch = store_of(Pool(warmup=0), *"abcdefgh").next_batch(fresh("x", "y"), 5)
    assert len(batch.rows) == 6 == len(set(names(batch.rows)))
    assert 0 < batch.is_replay.sum() < 6


def test_a_small_buffer_gives_what_it_has() -> None:
    batch = store_of(Anchored(ratio=1.0, warmup=0), "a").next_batch(fresh("x", "y"), 5)
    assert batch.is_replay.sum() == 2


@pytest.mark.parametrize("compose", [Pool, Anchored])
def test_warm_up_is_plain_grpo(compose: type[FromBuffer]) -> None:
    for step, replays in ((5, False), (6, True)):
        new = fresh(*"xyz", step=step)
        batch = store_of(compose(warmup=5), *"abcdefgh").next_batch(new, step)
        assert batch.is_replay.any() == replays
        if not replays:
            assert batch.rows == new


def test_no_survivors_means_no_rows() -> None:
    for compose in (Pool, Anchored):
        store = store_of(compose(unit="query", warmup=0), "a")
        assert store.next_batch([], 5).rows == []


def test_a_group_has_no_single_advantage() -> None:
    with pytest.raises(ValidationError, match="abs_advantage needs unit rollout"):
        Anchored(unit="query", priority=AbsAdvantage())


def test_halves_are_rounded_up() -> None:
    assert [round_half_up(x) for x in (0.0, 0.49, 0.5, 1.5, 2.5)] == [0, 0, 1, 2, 3]
