"""Results whose times were lost by copying keep their trained models."""

import os
import shutil
from pathlib import Path

from repository_copy import Workflow

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
