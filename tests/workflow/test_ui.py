"""MLflow's pages on the finished tiny study, as a person sees them. Runs with `make test-ui`.

The pictures are kept in pytest's temporary folder: look at them.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from browser import Browser
from mlflow import MlflowClient
from repository_copy import REPOSITORY, Workflow
from servers import Server, free_port

pytestmark = pytest.mark.ui
OURS = "s/ours-seed42"
TRACES = """
    const plots = [...document.querySelectorAll('.js-plotly-plot')].filter(p => p.data);
    return plots.flatMap(p => p.data.map(t => [t.name, [...t.x]]));
"""


@pytest.fixture(scope="module")
def experiment(finished: Workflow, tmp_path_factory: pytest.TempPathFactory):
    """The address of the study's experiment in the pages that `make ui` serves."""
    server = Server(free_port(), tmp_path_factory.mktemp("ui") / "log", finished.folder)
    command = (sys.executable, "-m", "grpo_replay.tracking.ui", str(server.port))
    server.start(*command, PYTHONPATH=str(REPOSITORY / "src"), MLFLOW_TRACKING_URI="")
    client = MlflowClient(f"sqlite:///{finished.folder}/results/mlflow.db")
    number = client.get_experiment_by_name("tiny").experiment_id
    yield f"{server.uri}/#/experiments/{number}"
    server.kill()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


def scores_of(finished: Workflow) -> dict[str, dict]:
    files = (finished.results / "cells").glob("*/*/scores.json")
    scores = [json.loads(file.read_text()) for file in files]
    return {row["cell"]["cell"]: row for row in scores}


def test_the_list_shows_cells_with_method_scale_and_avg(
    finished: Workflow, experiment: str, browser: Browser, tmp_path: Path
) -> None:
    browser.open(f"{experiment}/runs?viewStateShareKey=cells")
    scores = scores_of(finished)
    names = json.dumps(list(scores))
    text = browser.wait(
        f"const t = document.body.innerText; return {names}.every(n => t.includes(n)) && t"
    )
    browser.photograph(tmp_path / "list.png")
    for column in ("eval/avg", "eval/pass", "scale", "method"):
        assert f"\n{column}\n" in text
    lines = text.splitlines()
    for row in scores.values():
        assert row["cell"]["method"] in lines
        values = [benchmark["avg_at_k"] for benchmark in row["benchmarks"].values()]
        average = sum(values) / len(values)
        assert any(is_number(line) and abs(float(line) - average) < 1e-6 for line in lines)


def is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def test_the_compare_view_draws_reward_of_the_four_methods(
    experiment: str, browser: Browser, tmp_path: Path
) -> None:
    browser.open(f"{experiment}/runs?viewStateShareKey=reward&compareRunsMode=CHART")
    browser.wait(f"return (() => {{ {TRACES} }})().length >= 4")
    browser.photograph(tmp_path / "compare.png")
    lines = {name: x for name, x in browser.run(TRACES) if name}
    methods = {name.split("/")[1].split("-tau")[0].split("-seed")[0] for name in lines}
    assert methods == {"grpo", "uniform-pool", "sigma_g-pool", "ours"}
    assert all(x == [1, 2, 3, 4] for x in lines.values())


def test_a_completions_table_opens(
    finished: Workflow, experiment: str, browser: Browser, tmp_path: Path
) -> None:
    client = MlflowClient(f"sqlite:///{finished.folder}/results/mlflow.db")
    number = client.get_experiment_by_name("tiny").experiment_id
    (run,) = client.search_runs([number], f"tags.cell = '{OURS}' and tags.status = 'complete'")
    browser.open(f"{experiment}/runs/{run.info.run_id}/artifacts/completions.json")
    text = browser.wait(
        "const t = document.body.innerText;"
        "return t.includes('Start at') && t.includes('boxed') && t"
    )
    browser.photograph(tmp_path / "completions.png")
    for column in ("prompt", "answer", "completion", "correct", "reward"):
        assert f"\n{column}\n" in text
    assert os.path.getsize(tmp_path / "completions.png") > 10_000
