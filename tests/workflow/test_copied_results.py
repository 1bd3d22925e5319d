"""Results whose times were lost by copying keep their trained models."""

import os
import shutil
from pathlib import Path

from repository_copy import Workflow, copy_repository

from grpo_replay.files import folder_digest


def test_copied_results_lose_no_model(finished: Workflow, tmp_path: Path) -> None:
    workflow = Workflow(tmp_path / "copied")
    shutil.copytree(finished.folder, workflow.folder)
    models = sorted(workflow.results.glob("cells/*/*/model"))
    before = [folder_digest(model) for model in models]
    for stamp in workflow.results.glob("base_models/*/.snakemake_timestamp"):
        os.utime(stamp)  # as a copy without times leaves it: newer than the models
    done = workflow.run()
    text = done.stdout + done.stderr
    assert done.returncode != 0 and "retrain=True" in text and "s/grpo-seed42" in text
    assert [folder_digest(model) for model in models] == before
    touched = workflow.run("--touch")
    assert touched.returncode == 0, touched.stdout + touched.stderr
    assert "train_policy" not in workflow.jobs()
    assert [folder_digest(model) for model in models] == before


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
