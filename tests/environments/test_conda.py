"""`--use-conda` runs every rule in its own environment; a stand-in plays conda, not on PyPI."""

import json
import os
import re
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import stand_in_conda
import yaml
from repository_copy import REPOSITORY, Workflow, copy_repository

CELL = "results/tiny/cells/s/ours-seed42"
TARGETS = ("results/tiny/tables/main.md", f"{CELL}/scores.json", "results/tiny/tracked.txt")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workflow, dict, list[dict]]:
    """One cell, run with the stand-in: its workflow, the variables, what each process told."""
    folder = tmp_path_factory.mktemp("conda")
    tool = folder / "tool"
    stand_in_conda.install(tool)
    workflow = copy_repository(folder / "copy")
    study = yaml.safe_load(workflow.study.read_text())
    study["grid"] = [study["grid"][0] | {"methods": ["ours"]}]
    workflow.study.write_text(yaml.safe_dump(study))
    # vLLM and CUDA are several GB that nothing here can use.
    base = (REPOSITORY / "requirements.lock").read_text().split()
    for file in (workflow.folder / "envs").glob("*.yaml"):
        environment = yaml.safe_load(file.read_text())
        names = {re.split("==", line)[0] for line in environment["dependencies"][-1]["pip"]}
        kept = [pin for pin in base if re.sub("_", "-", pin.split("==")[0].lower()) in names]
        environment["dependencies"][-1]["pip"] = kept
        file.write_text(yaml.safe_dump(environment))
    variables = {"PATH": f"{tool / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = workflow.run("--use-conda", *TARGETS, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in (tool / "processes.jsonl").read_text().splitlines()]
    return workflow, variables, told


def test_every_rule_ran_in_its_own_environment(finished) -> None:
    workflow, _, told = finished
    assert len(list(workflow.folder.glob(".snakemake/conda/*/bin/python"))) == 3
    places = [Path(process["command"][0]) for process in told]
    scripts = {place.name.split(".", 1)[1] for place in places if place.parent.name == "scripts"}
    expected = {path.name for path in (REPOSITORY / "workflow" / "scripts").glob("*.py")}
    elsewhere = {"warm_start.py", "select_prompts.py", "sync_tracking.py"}  # not of this study
    assert scripts >= expected - elsewhere, scripts
    assert all(str(workflow.folder) in process["prefix"] for process in told)


def test_what_an_environment_holds_is_taken_from_it(finished) -> None:
    """Snakemake puts the driver's packages behind it: libraries find some there that they can do
    without, and an environment's own must not be among them.
    """
    _, _, told = finished
    distributions = packages_distributions()
    for process in told:
        pins = Path(process["prefix"]).with_suffix(".pip.txt").read_text().split()
        own = {normal(re.split(r"\[|==", pin)[0]) for pin in pins}
        others = {normal(d) for m in process["outside"] for d in distributions.get(m, [m])}
        assert len(own) > 20 and not others & own, process


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_conda_on_or_off_makes_nothing_again(finished) -> None:
    workflow, variables, _ = finished
    assert workflow.jobs("--use-conda", *TARGETS, **variables) == {}
    assert workflow.jobs(*TARGETS) == {}
