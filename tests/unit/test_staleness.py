"""What makes a finished result stale, and what does not: a setting that is added with a default."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import create_model

from grpo_replay.evaluation.settings import SamplingSettings
from grpo_replay.fields import Strict
from grpo_replay.study.cells import (
    base_model,
    benchmark_problems,
    evaluation_settings,
    expand,
    problems_params,
    resolve,
    selection_params,
    training_settings,
    warm_start_params,
)
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study
from grpo_replay.tasks.math import task

STUDIES = Path(__file__).parents[2] / "config" / "studies"


def with_further(section: Strict, value: int = 1) -> Strict:
    """The same section of a class that has one more setting, whose default is 1."""
    further = create_model("Further", __base__=type(section), further=(int, 1))
    return further(**dict(section), further=value)


def in_scales(study: Study, change: Callable[[Any], Any]) -> Study:
    scales = {name: change(scale) for name, scale in study.scales.items()}
    return study.model_copy(update={"scales": scales})


def in_section(name: str) -> Callable[[Study, int], Study]:
    def change(study: Study, value: int) -> Study:
        return study.model_copy(update={name: with_further(getattr(study, name), value)})

    return change


def in_models(study: Study, value: int) -> Study:
    return in_scales(
        study, lambda scale: scale.model_copy(update={"model": with_further(scale.model, value)})
    )


def in_benchmarks(study: Study, value: int) -> Study:
    benchmarks = {name: with_further(own, value) for name, own in study.benchmarks.items()}
    return study.model_copy(update={"benchmarks": benchmarks})


CHANGES = {
    **{name: in_section(name) for name in ("training", "evaluation", "problems")},
    "models": in_models,
    "benchmarks": in_benchmarks,
}


def settings_of(study: Study) -> list[Any]:
    """All that the rules of data, training, sampling and scoring get as params."""
    cells = expand(study).values()
    return [
        *([training_settings(study, cell), evaluation_settings(study, cell)] for cell in cells),
        *(resolve(study, cell) for cell in cells),
        *map(base_model, study.scales.values()),
        *(benchmark_problems(study, benchmark) for benchmark in study.benchmarks.values()),
        *(params(study) for params in (problems_params, warm_start_params)),
        *(selection_params(study, scale) for scale in study.scales),
    ]


def test_a_first_pass_is_recorded_with_what_it_judges_by(monkeypatch: pytest.MonkeyPatch) -> None:
    study = load_study(STUDIES / "smollm2.yaml")
    first = selection_params(study, "135M")
    other = study.model_copy(update={"rewards": {"answer": 2.0}})
    assert selection_params(other, "135M") == {**first, "rewards": {"answer": 2.0}}
    monkeypatch.setattr(task, "PROMPT", "Solve: {question}")
    assert (
        selection_params(study, "135M") != first
        and warm_start_params(study)["prompt"] != first["prompt"]
    )


@pytest.mark.parametrize("study", ["nano", "paper", "smollm2"])
@pytest.mark.parametrize("section", CHANGES)
def test_a_further_setting_at_its_default_makes_nothing_stale(study: str, section: str) -> None:
    before = load_study(STUDIES / f"{study}.yaml")
    assert settings_of(CHANGES[section](before, 1)) == settings_of(before)
    assert settings_of(CHANGES[section](before, 2)) != settings_of(before)


def test_a_further_setting_of_a_scale_makes_nothing_stale() -> None:
    before = load_study(STUDIES / "nano.yaml")
    assert settings_of(in_scales(before, with_further)) == settings_of(before)


def test_a_further_setting_of_sampling_makes_no_finished_answers_stale() -> None:
    """The settings in the manifest are those that the cell's settings are held against."""
    study = load_study(STUDIES / "nano.yaml")
    settings = evaluation_settings(study, next(iter(expand(study).values())))

    @dataclass(frozen=True)
    class Further(SamplingSettings):
        min_p: float = 0.0

    assert Further(**settings).given() == SamplingSettings(**settings).given() == settings
    assert Further(**settings, min_p=0.1).given() == {**settings, "min_p": 0.1}


def test_an_edited_prompt_is_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all of them, trained or not."""
    study = load_study(STUDIES / "nano.yaml")
    cells = expand(study).values()
    before = [(training_settings(study, cell), resolve(study, cell)) for cell in cells]
    monkeypatch.setattr(task, "PROMPT", task.PROMPT + " Be brief.")
    after = [(training_settings(study, cell), resolve(study, cell)) for cell in cells]
    assert all(
        trained != again and whole != whole_again
        for (trained, whole), (again, whole_again) in zip(before, after, strict=True)
    )
