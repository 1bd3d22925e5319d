"""Rollouts of vLLM begin at a place of their own in every step, process and cell."""

from itertools import product
from types import SimpleNamespace

import pytest
import torch
from scripted import TINY
from trl.import_utils import is_vllm_available

from grpo_replay.errors import ConfigError
from grpo_replay.study.file import load_study
from grpo_replay.training.rollout_engine import rollout_engine, seed_rollouts
from grpo_replay.training.seeds import purpose_seed


def test_seeds_are_those_that_earlier_runs_had() -> None:
    """Numbers fixed on purpose: another derivation would change every cell that was ever run."""
    seeds = [purpose_seed(42, purpose) for purpose in ("order", "prompts", "draw")]
    assert seeds == [3070478317, 3566563531, 1505397641]


def test_no_two_places_share_a_seed() -> None:
    places = list(product(range(40, 50), range(1, 201), range(8)))
    seeds = {purpose_seed(seed, "rollouts", step, process) for seed, step, process in places}
    assert len(places) - len(seeds) < 5  # 16,000 of 2^32: 0.03 pairs meet by chance
    assert all(0 <= seed < 2**32 for seed in seeds)


def drawn(seed: int, step: int, process: int) -> list[float]:
    accelerator = SimpleNamespace(process_index=process)
    seed_rollouts(SimpleNamespace(mode="colocate", accelerator=accelerator), seed, step)
    return torch.rand(4).tolist()


def test_a_step_draws_the_same_after_whatever_came_before() -> None:
    first = drawn(42, 3, 0)
    drawn(42, 4, 0)
    torch.rand(17)
    assert drawn(42, 3, 0) == first
    for other in ((43, 3, 0), (42, 2, 0), (42, 3, 1)):
        assert drawn(*other) != first


def test_a_server_gets_a_seed_of_cell_and_step_and_keeps_its_other_settings() -> None:
    generation = SimpleNamespace(mode="server", generation_kwargs={"stop_token_ids": [1]})
    seeds = set()
    for place in ((42, 1), (42, 2), (43, 1), (42, 1)):
        seed_rollouts(generation, *place)
        assert generation.generation_kwargs["stop_token_ids"] == [1]
        seeds.add(generation.generation_kwargs["seed"])
    assert len(seeds) == 3


def test_vllm_where_it_is_not_installed_is_refused() -> None:
    if is_vllm_available():
        pytest.skip("vLLM is installed")
    study = load_study(TINY)
    training = study.training.model_copy(update={"rollout_engine": "vllm"})
    refused = pytest.raises(ConfigError, match="'vllm' needs vLLM, which is not installed here")
    with refused, rollout_engine(training):
        pass
    with rollout_engine(study.training):
        pass
