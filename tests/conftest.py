"""A tiny random Qwen3 model with its tokenizer, and a benchmark to sample with it."""

from pathlib import Path

import pytest
import torch
from random_model import save_random_model

from grpo_replay.tasks.clock import clock_problems
from grpo_replay.tasks.problems import write_problems

WORKFLOW = "tests/workflow/"
torch.set_num_threads(1)  # a model this small gains nothing from more


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which the environment of vLLM does not have
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Run the tests of a file, and all of the workflow, in one process: they share what is slow."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            return WORKFLOW if file.startswith(WORKFLOW) else file

    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the workflow's tests first: they take about as long as all others together."""
    items.sort(key=lambda item: not item.nodeid.startswith(WORKFLOW))


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a random model."""
    return save_random_model(tmp_path_factory.mktemp("tiny") / "model", seed=0)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model with other weights."""
    return save_random_model(tmp_path_factory.mktemp("other") / "model", seed=1)


@pytest.fixture(scope="session")
def benchmarks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two benchmarks of five and three problems, whose prompts differ in length."""
    folder = tmp_path_factory.mktemp("benchmarks")
    for name, count in (("five", 5), ("three", 3)):
        problems = clock_problems([3, 9], count, 10, 3, seed=count, split="benchmark")
        write_problems(folder / f"{name}.jsonl", [dict(problem) for problem in problems])
    return {name: folder / f"{name}.jsonl" for name in ("five", "three")}
