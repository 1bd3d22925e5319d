"""Results whose times were lost by copying are current by their records, and lose no model."""

import os
import shutil
from pathlib import Path

import pytest
from repository_copy import Workflow, copy_repository, copy_without_times

from grpo_replay.files import folder_digest


@pytest.fixture
def copied(finished: Workflow, tmp_path: Path) -> Workflow:
    return copy_without_times(finished, tmp_path / "copied")


def models(workflow: Workflow) -> list[str]:
    """The digests of the trained models."""
    return [folder_digest(path) for path in sorted(workflow.results.glob("cells/*/*/model"))]


def refused(workflow: Workflow, *arguments: str) -> str:
    """What a run says that stops since it would remove models; it must leave them."""
    before = models(workflow)
    done = workflow.run(*arguments)
    text = done.stdout + done.stderr
    assert done.returncode != 0 and "retrain=True" in text, text
    assert models(workflow) == before
    return text


def test_nothing_is_made_again_for_its_times(copied: Workflow) -> None:
    assert copied.jobs() == {}
    done = copied.run()
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr


def test_results_alone_are_enough(copied: Workflow) -> None:
    """Without what Snakemake remembers, only tables and figures are made again."""
    shutil.rmtree(copied.folder / ".snakemake")
    made_again = copied.jobs().keys()
    assert not made_again & {"train_policy", "sample_answers", "grade_answers", "score_cell"}
    assert not made_again & {"make_base_model", "make_problems", "collect_scores"}


def test_other_problems_train_anew_if_that_is_meant(copied: Workflow) -> None:
    problems = copied.results / "data" / "problems.jsonl"
    problems.write_text("".join(problems.read_text().splitlines(True)[:-1]))
    trained = len(models(copied))
    assert copied.jobs()["train_policy"] == trained > 0
    text = refused(copied)
    assert f"would remove {trained} and train" in text and "s/grpo-seed42" in text


def test_another_start_model_trains_anew_if_that_is_meant(copied: Workflow) -> None:
    """Its weights differ, and no time tells so: the times of the copy are as they were."""
    (weights,) = copied.results.glob("base_models/s/*.safetensors")
    time, content = weights.stat().st_mtime, bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, (time, time))
    refused(copied)


def test_results_of_a_version_without_records(copied: Workflow) -> None:
    """Their times decide, and `--touch` sets these."""
    for record in copied.results.rglob("*.inputs.json"):
        record.unlink()
    assert "s/grpo-seed42" in refused(copied)
    before = models(copied)
    touched = copied.run("--touch")
    assert touched.returncode == 0, touched.stdout + touched.stderr
    assert copied.jobs() == {} and models(copied) == before


def test_a_run_stops_before_it_removes_a_model(tmp_path: Path) -> None:
    """Also `--touch`, where no record says that the model is of these settings."""
    workflow = copy_repository(tmp_path / "copy")
    model = workflow.results / "cells/s/grpo-seed42/model"
    model.mkdir(parents=True)
    (model / "weights").write_text("hours of work")
    for arguments in (["cells"], ["cells", "--touch"]):
        done = workflow.run(*arguments)
        assert done.returncode != 0 and "retrain=True" in done.stdout + done.stderr
        assert (model / "weights").read_text() == "hours of work"
