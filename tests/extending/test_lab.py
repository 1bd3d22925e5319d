"""A study whose parts lie in a folder of the user's, `lab/`, by import path: through the workflow,
and killed in the middle.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
import test_kill
import yaml
from repository_copy import Workflow, copy_repository, listed_jobs

from grpo_replay.models.from_scratch import END_OF_TURN

HERE = Path(__file__).parent
OWN = yaml.safe_load((HERE / "study.yaml").read_text())
GRID = [{"scales": ["s"], "methods": ["grpo", "mine"], "seeds": [42]}]


class LabWorkflow(Workflow):
    """Runs the study `lab`; -P keeps the folder out of Python's path, as the command `snakemake`
    does: the workflow itself has to find `lab/`.
    """

    def command(self, *arguments: str, study: str = "lab") -> list[str]:
        """The command line of a run on two cores, whatever study is asked for."""
        python, *rest = super().command(*arguments, study="lab")
        return [python, "-P", *rest]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabWorkflow:
    """A copy of the repository, with the study and the folder `lab/` beside it."""
    folder = copy_repository(tmp_path_factory.mktemp("lab")).folder
    study = yaml.safe_load((folder / "config" / "studies" / "tiny.yaml").read_text())
    own = {"study": "lab", **OWN, "grid": GRID}
    own["benchmarks"] = {"clock3": study["benchmarks"]["clock3"]}
    (folder / "config" / "studies" / "lab.yaml").write_text(yaml.safe_dump({**study, **own}))
    shutil.copytree(HERE / "lab", folder / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    return LabWorkflow(folder)


@pytest.fixture(scope="module")
def finished_lab(lab: LabWorkflow) -> LabWorkflow:
    """The same, run to its end."""
    done = lab.run()
    assert done.returncode == 0, done.stdout + done.stderr
    return lab


def test_parts_of_outside_run_from_end_to_end(finished_lab: LabWorkflow) -> None:
    results = finished_lab.folder / "results" / "lab"
    scores = pd.read_parquet(results / "scores.parquet")
    assert {"s/base", "s/grpo-seed42", "s/mine-seed42"} == set(scores.cell)
    train = results / "cells" / "s" / "mine-seed42" / "train"
    rows = pd.read_parquet(train / "replay.parquet")
    assert rows.groupby(["step", "group_id"]).size().max() == 2  # lab.extremes keeps two
    assert rows.replayed.any() and set(rows.priority) == {"lab.recency:Recency"}
    records = [json.loads(line) for line in (train / "metrics.jsonl").read_text().splitlines()]
    assert [r["running/rewards"] for r in records] == [16, 32, 48, 64]  # two of four, eight groups
    assert all(r["select/kept_right"] + r["select/kept_wrong"] == 16 for r in records)
    rollouts = pd.read_parquet(train / "rollouts.parquet")
    for record, (_, rows) in zip(records, rollouts.groupby("step"), strict=True):
        # The records have the end token, a reward function does not see it.
        short = (1 - rows.text.str.removesuffix(END_OF_TURN).str.len() / 100).mean()
        assert record["reward/short"] == pytest.approx(short)
        assert record["reward/mean"] == pytest.approx(record["reward/answer"] + 0.1 * short)
    assert (results / "tables" / "main.csv").is_file()
    assert finished_lab.jobs() == {}


def test_a_task_of_outside_has_its_verifiers_in_every_file(finished_lab: LabWorkflow) -> None:
    results = finished_lab.folder / "results" / "lab"
    grades = pd.read_parquet(results / "cells" / "s" / "base" / "grades" / "clock3.parquet")
    assert grades.grade_near[grades.correct].all() and not grades.correct.all()
    table = pd.read_csv(results / "tables" / "verifiers.csv")
    assert set(zip(table.exact, table.near, strict=True)) <= {
        ("right", "right"), ("wrong", "right"), ("wrong", "wrong"),
    }  # fmt: skip
    scores = pd.read_parquet(results / "scores.parquet").set_index("cell")
    assert scores.avg_at_k["s/base"] == pytest.approx(100 * grades.correct.mean())


def test_an_edit_of_a_part_makes_its_cells_again_and_no_others(finished_lab: LabWorkflow) -> None:
    file = finished_lab.folder / "lab" / "reinforce.py"
    text = file.read_text()
    file.write_text(text + "\n# another line\n")
    try:
        done = finished_lab.run("-n", "retrain=true")
    finally:
        file.write_text(text)
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = listed_jobs(done)
    assert jobs["train_policy"] == jobs["sample_answers"] == 1  # of two cells
    assert finished_lab.jobs() == {}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("lab.recency:Recency", "lab.recency:Recenc", "lab.recency has no Recenc (did you mean"),
        ("lab.recency:Recency", "lib.recency:Recency", "ModuleNotFoundError: No module named 'lib"),
        ("lab.recency:Recency", "lab.running:Running", "is no subclass of grpo_replay.methods.pri"),
        ("half_life", "half_lif", "settings.half_lif: unknown key (did you mean 'half_life'?)"),
    ],
)
def test_a_wrong_part_stops_the_run_with_one_line(
    lab: LabWorkflow, old: str, new: str, told: str
) -> None:
    file = lab.folder / "config" / "studies" / "lab.yaml"
    text = file.read_text()
    file.write_text(text.replace(old, new))
    try:
        done = lab.run("-n")
    finally:
        file.write_text(text)
    assert done.returncode != 0
    [line] = [x for x in (done.stdout + done.stderr).splitlines() if "methods.mine.replay" in x]
    assert "lab.yaml: methods.mine.replay.priority" in line and told in line
    assert "Traceback" not in done.stdout + done.stderr


def test_a_part_with_a_memory_survives_kills_to_the_bit(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METHOD", json.dumps(OWN["methods"]["mine"]))
    path = [*sys.path, os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    assert test_kill.start(tiny_model, whole).wait() == 0
    for reached in (3, 9):
        process = test_kill.start(tiny_model, killed)
        steps = test_kill.steps_until(process, reached)
        assert steps == list(range(1, reached + 1))
        process.kill()
        assert process.wait() == -9
    assert test_kill.start(tiny_model, killed).wait() == 0
    test_kill.assert_same_result(killed, whole)
    counted = [row["running/rewards"] for row in test_kill.result(killed)[2]]
    assert counted == [16 * step for step in range(1, test_kill.STEPS + 1)]
