"""paper.yaml is the paper's, cell by cell and key by key; its rehearsal is paper.yaml in small."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from grpo_replay.methods.method import Method, setting_of, with_setting
from grpo_replay.methods.replay import NoReplay
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import expand
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "src" / "grpo_replay" / "reporting" / "paper" / "published"


def load(name: str) -> Study:
    return load_study(ROOT / "config" / "studies" / f"{name}.yaml")


@pytest.fixture(scope="module")
def paper() -> Study:
    return load("paper")


def common(study: Study, path: str) -> float:
    """The one value of a setting in all methods."""
    (value,) = {setting_of(method, path) for method in study.methods.values()}
    return value


def test_every_key_of_table_7_is_the_papers(paper: Study) -> None:
    training = paper.training
    ours = {
        "train_batch_size": training.rollouts_per_step,
        "group_size": training.group_size,
        "max_prompt_length": training.max_prompt_tokens,
        "max_response_length": training.max_completion_tokens,
        "learning_rate": training.learning_rate,
        "ppo_mini_batch_size": training.mini_batch,
        "clip_epsilon_low": common(paper, "loss.low"),
        "clip_epsilon_high": common(paper, "loss.high"),
        "dual_clip": common(paper, "loss.dual_clip"),
        "advantage_epsilon": common(paper, "advantage.eps"),
        "optimizer": "AdamW",  # arguments.trainer_arguments
        "weight_decay": training.weight_decay,
        "gradient_clip": training.gradient_clip,
        "learning_rate_warmup": 0,  # likewise
        "kl_beta": 0,  # likewise
        **{f"micro_batch_per_gpu_{name}": s.micro_batch for name, s in paper.scales.items()},
        "training_steps": training.steps,
        "seed": {cell.seed for cell in expand(paper).values() if cell.trained}.pop(),
    }
    table = pd.read_csv(PUBLISHED / "table07_hyperparameters.csv", dtype=str)
    assert list(table.setting) == list(ours)
    for row in table.itertuples():
        value = ours[row.setting]
        assert value == (row.value if isinstance(value, str) else float(row.value)), row.setting
    assert training.adam_betas == (0.9, 0.999)
    assert training.temperature == 1.0
    assert {m.replay.warmup for m in paper.methods.values() if m.replay != NoReplay()} == {20}


def test_the_cells_are_those_of_the_papers_tables(paper: Study) -> None:
    cells = expand(paper).values()
    trained = Counter(cell.scale for cell in cells if cell.trained)
    assert trained == {"0.6B": 5, "1.7B": 17, "4B": 5}
    hours = sum(paper.scales[s].hours_train * paper.scales[s].gpus * n for s, n in trained.items())
    assert hours == 1236  # the paper says about 1,200
    found = {
        (a.priority, a.unit, a.alpha, a.tau_max, a.replay_ratio)
        for a in (axes_of(c) for c in cells if c.scale == "1.7B")
        if a.composition == "anchored"
    }
    ranking = pd.read_csv(PUBLISHED / "table13_aes_ranking.csv")
    listed = {
        (r.priority, r.unit, r.alpha, r.tau_max, r.replay_ratio) for r in ranking.itertuples()
    }
    assert listed < found
    assert found - listed == {("abs_advantage", "rollout", 1.0, 10, 1.0)}  # Table 9 alone


def test_the_literal_grid_is_scales_by_methods_by_ages() -> None:
    study = load("paper_grid")
    replayed = [c for c in expand(study).values() if axes_of(c).tau_max]
    assert len(replayed) == 3 * 3 * 4
    assert study.training == load("paper").training
    assert study.benchmarks == load("paper").benchmarks


def with_the_papers_warmup(method: Method) -> Method:
    return method if method.replay == NoReplay() else with_setting(method, "replay.warmup", 20)


def test_the_rehearsal_differs_in_size_alone(paper: Study) -> None:
    small = load("paper_rehearsal")
    assert list(expand(small)) == list(expand(paper))
    assert {n: with_the_papers_warmup(m) for n, m in small.methods.items()} == paper.methods
    assert list(small.benchmarks) == list(paper.benchmarks)
    assert [b.k for b in small.benchmarks.values()] == [b.k for b in paper.benchmarks.values()]
    sizes = {"steps", "max_prompt_tokens", "max_completion_tokens"}
    sizes |= {"expected_prompts"}
    hardware = {"precision", "gradient_checkpointing", "rollout_engine"}
    assert small.training.model_dump(exclude=sizes | hardware) == paper.training.model_dump(
        exclude=sizes | hardware
    )
    assert small.evaluation == paper.evaluation.model_copy(update={"engine": "transformers"})


def test_the_seeds_study_is_nano_at_one_scale() -> None:
    seeds, nano = load("nano_seeds"), load("nano")
    assert seeds.scales == {"s": nano.scales["s"]}
    for section in ("methods", "problems", "benchmarks", "training", "evaluation"):
        assert getattr(seeds, section) == getattr(nano, section)
    assert {c.seed for c in expand(seeds).values() if c.trained} == {42, 43, 44, 45, 46}
