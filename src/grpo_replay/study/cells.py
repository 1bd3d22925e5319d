"""Expand a study into its cells: a pure function, ids built in one place and looked up ever
after, never parsed.
"""

from collections.abc import Set
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from pydantic import BaseModel, ConfigDict

from grpo_replay.errors import ConfigError, listing, suggestion
from grpo_replay.fields import Strict
from grpo_replay.files import digest
from grpo_replay.methods.method import Setting, recorded_setting, setting_of, vary
from grpo_replay.models.config import PretrainedModel
from grpo_replay.study.config import Scale, Study
from grpo_replay.study.versions import (
    ALGORITHM_VERSION,
    GRADER_VERSION,
    MODEL_VERSION,
    PROBLEMS_VERSION,
    SAMPLER_VERSION,
    SCORING_VERSION,
)
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.config import Benchmark
from grpo_replay.tasks.rewards import DEFAULT_REWARDS, file_digests, rewards_of
from grpo_replay.tasks.task import Task

BASE = "base"


class Cell(BaseModel):
    """One trained model, or an untrained one (`method == "base"`), of a study.

    `varied` holds what its grid block varies, by path; `parts` is the identity of its method: what
    of it decides a result.
    """

    model_config = ConfigDict(frozen=True)

    cell: str
    scale: str
    method: str
    seed: int | None = None
    varied: dict[str, Setting] = {}
    parts: dict[str, Any] | None = None

    def __hash__(self) -> int:
        """By its id, which no other cell of a study has."""
        return hash(self.cell)

    @property
    def trained(self) -> bool:
        """Whether the cell has a training run (all but the base models)."""
        return self.method != BASE


def value_text(value: Setting) -> str:
    """The one canonical text of a setting in a cell id: 0.50 and 0.5 are "0.5", 1.0 is "1"; two
    numbers never share one.
    """
    if isinstance(value, bool | str) or value is None:
        return str(value)
    text = f"{value:g}"  # six digits
    return text if float(text) == value else repr(value)


def expand(study: Study) -> dict[str, Cell]:
    """All cells of a study by id, base models first, in the order of the study file; shared cells
    appear once.

    Raises:
        ConfigError: where two different cells would have one id, thus one folder.
    """
    bases = (
        Cell(cell=f"{scale}/{BASE}", scale=scale, method=BASE) for scale in _used_scales(study)
    )
    cells = {cell.cell: cell for cell in bases}
    for block in study.grid:
        axes = product(block.scales, block.methods, block.variants(), block.seeds)
        for scale, method, variant, seed in axes:
            cell = _cell(study, scale, method, variant, seed)
            if cells.setdefault(cell.cell, cell) != cell:
                raise ConfigError(
                    f"grid: two different cells are named {cell.cell!r}: rename a method"
                )
    return cells


def _used_scales(study: Study) -> list[str]:
    used = {scale for block in study.grid for scale in block.scales}
    return [scale for scale in study.scales if scale in used]


def _cell(study: Study, scale: str, name: str, variant: dict[str, Setting], seed: int) -> Cell:
    """The id names what a cell varies from its method as the study defines it, sorted by path: to
    vary more, or a default that changes, renames no cell.
    """
    defined = study.methods[name]
    method = vary(defined, variant)
    varied = {
        path: value
        for path in sorted(variant)
        if (value := setting_of(method, path)) != recorded_setting(defined, path)
    }
    texts = [f"-{path}{value_text(value)}" for path, value in varied.items()]
    return Cell(
        cell=f"{scale}/{name}{''.join(texts)}-seed{seed}",
        scale=scale,
        method=name,
        seed=seed,
        varied=varied,
        parts=method.identity(),
    )


def select(cells: dict[str, Cell], pattern: str | None) -> dict[str, Cell]:
    """The cells whose id matches a glob, or one of several with commas between; all of them
    without one.

    Raises:
        ConfigError: when a glob matches nothing, listing the ids there are.
    """
    if pattern is None:
        return cells
    chosen: set[str] = set()
    for glob in pattern.split(","):
        found = [name for name in cells if fnmatchcase(name, glob)]
        if not found:
            raise ConfigError(
                f"--config only={glob!r} matches no cell{suggestion(glob, cells)}; "
                f"there are: {listing(cells)}"
            )
        chosen.update(found)
    return {name: cell for name, cell in cells.items() if name in chosen}


def deciding(section: Strict, exclude: Set[str] = frozenset()) -> dict[str, Any]:
    """What of a section decides a result, as plain JSON-like values: not what is at its default, so
    that a setting that is added with one makes no finished result stale.
    """
    return section.model_dump(mode="json", exclude=set(exclude), exclude_defaults=True)


def prompt(study: Study) -> list[dict[str, str]]:
    """What a problem is asked with: models are made, trained and sampled anew when it is edited."""
    return study.task.messages({"problem": "{question}", "options": ["{option}"]})


def base_model(scale: Scale) -> dict:
    """What decides a base model; not the number of its parameters, which is for the plan and for
    the check of what was fetched.
    """
    return deciding(scale.model, exclude={"parameters"})


def model_parameters(scale: Scale) -> int:
    """How many parameters a pretrained model has by the study; 0 of one that is made."""
    return scale.model.parameters if isinstance(scale.model, PretrainedModel) else 0


def asked(task: Task) -> dict[str, Any]:
    """What a job gets of a task: nothing of mathematics, so that studies which name no task, as all
    did once, keep what they have made.
    """
    return {} if task == DEFAULT_TASK else {"task": task.identity()}


def asked_rewards(study: Study) -> dict[str, Any]:
    """What a training gets of rewards: nothing of the default one, as of the default task."""
    if study.rewards == DEFAULT_REWARDS:
        return {}
    rewards = rewards_of(study.task, study.rewards)
    weights = {reward.source: reward.weight for reward in rewards}
    digests = file_digests(rewards)
    return {"rewards": weights, **({"reward_files": digests} if digests else {})}


def problems_params(study: Study) -> dict[str, Any]:
    """What `make_problems` gets as params."""
    return {**asked(study.task), "version": PROBLEMS_VERSION, "settings": deciding(study.problems)}


def warm_start_params(study: Study) -> dict[str, Any]:
    """What `warm_start` gets as params."""
    return {
        **asked(study.task),
        "prompt": prompt(study),
        "version": MODEL_VERSION,
        "settings": deciding(study.warm_start) if study.warm_start else {},
    }


def selection_params(study: Study, scale: str) -> dict[str, Any]:
    """What `select_prompts` gets as params: it draws as evaluation does, and so is as old."""
    return {
        **asked(study.task),
        **asked_rewards(study),
        "prompt": prompt(study),
        "version": PROBLEMS_VERSION,
        "sampler_version": SAMPLER_VERSION,
        "engine": study.evaluation.engine,
        "batch": study.scales[scale].evaluation_batch,
        "settings": deciding(study.prompt_selection) if study.prompt_selection else {},
    }


def benchmark_task(study: Study, benchmark: Benchmark) -> Task:
    """The task of a benchmark: its own, or the study's."""
    return benchmark.task or study.task


def benchmark_tasks(study: Study) -> dict[str, Any]:
    """The tasks of a study's benchmarks, by name; those that are mathematics are left out."""
    found = {name: asked(benchmark_task(study, b)) for name, b in study.benchmarks.items()}
    tasks = {name: own["task"] for name, own in found.items() if own}
    return {"tasks": tasks} if tasks else {}


def benchmark_problems(study: Study, benchmark: Benchmark) -> dict:
    """What decides a benchmark's problems (`BenchmarkProblems`): not its title, nor how often each
    is answered.
    """
    settings = deciding(benchmark, exclude={"title", "k", "task"})
    return {**settings, **asked(benchmark_task(study, benchmark))}


def resolve(study: Study, cell: Cell) -> dict:
    """Everything that decides a cell's scores, as plain JSON-like values (`cell.json`)."""
    return {
        "cell": cell.model_dump(),
        "study": study.study,
        **asked(study.task),
        "prompt": prompt(study),
        "model": base_model(study.scales[cell.scale]),
        "problems": deciding(study.problems),
        "warm_start": study.warm_start and deciding(study.warm_start),
        "prompt_selection": study.prompt_selection and deciding(study.prompt_selection),
        "training": training_settings(study, cell) if cell.trained else None,
        "evaluation": evaluation_settings(study, cell),
        "benchmarks": {n: deciding(b, exclude={"task"}) for n, b in study.benchmarks.items()},
        "grader": {
            "version": GRADER_VERSION,
            "timeout_seconds": study.evaluation.grade_timeout_seconds,
        },
        "problems_version": PROBLEMS_VERSION,
        "model_version": MODEL_VERSION,
        "scoring_version": SCORING_VERSION,
    }


def config_hash(resolved: dict) -> str:
    """What tells a resolved cell from another, whatever the order of keys in its file."""
    return digest(resolved)


def training_settings(study: Study, cell: Cell) -> dict:
    """What `train_policy` gets as params: a change of any value retrains the cell, of no other."""
    scale = study.scales[cell.scale]
    training = deciding(study.training, exclude={"expected_prompts"})
    return {
        "algorithm_version": ALGORITHM_VERSION,
        "study": study.study,
        "prompt": prompt(study),
        "cell": cell.model_dump(),
        "micro_batch": scale.micro_batch,
        "processes": max(scale.gpus, 1),
        # Named where there is something to name: cells of other scales keep their settings.
        **({"sharding": scale.sharding} if scale.sharding != "none" else {}),
        **asked(study.task),
        **asked_rewards(study),
        "training": training,
    }


def evaluation_settings(study: Study, cell: Cell) -> dict:
    """What `sample_answers` gets as params."""
    scale = study.scales[cell.scale]
    return {
        "sampler_version": SAMPLER_VERSION,
        "batch": scale.evaluation_batch,
        "k": {name: benchmark.k for name, benchmark in study.benchmarks.items()},
        "max_tokens": scale.evaluation_max_tokens,
        **benchmark_tasks(study),
        **deciding(study.evaluation, exclude={"grade_timeout_seconds"}),
    }


def grading_settings(study: Study) -> dict:
    """What `grade_answers` gets as params."""
    return {
        "k": {name: benchmark.k for name, benchmark in study.benchmarks.items()},
        "timeout": study.evaluation.grade_timeout_seconds,
        "grader_version": GRADER_VERSION,
        **benchmark_tasks(study),
    }
