"""A study of the shape of smollm2 and paper, whole: a pretrained model, and files of problems."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from repository_copy import Workflow, copy_repository, copy_without_times

from grpo_replay.models.local import count_parameters
from grpo_replay.tasks.clock import clock_problems, worked_solution

CELLS = {"p/base", "p/ours-seed42"}


def write_study(workflow: Workflow, parameters: int) -> None:
    """The tiny study with a pretrained model, all that may come before training, and files."""
    study = yaml.safe_load(workflow.study.read_text())
    model = {"source": "pretrained", "name": "org/tiny", "revision": "0" * 40}
    study["scales"] = {"p": study["scales"]["s"] | {"model": model | {"parameters": parameters}}}
    study["grid"] = [study["grid"][0] | {"scales": ["p"], "methods": ["ours"]}]
    study["problems"] = {"source": "file", "file": "problems.jsonl"}
    study["warm_start"] = {
        "file": "problems.jsonl", "steps": 2, "batch_size": 4, "learning_rate": 1e-4,
        "max_tokens": 256, "seed": 1,
    }  # fmt: skip
    study["prompt_selection"] = {
        "candidates": 24, "rollouts": 8, "max_completion_tokens": 24, "keep": 8, "seed": 7
    }  # fmt: skip
    study["benchmarks"] = {
        "own": {"source": "file", "title": "Own", "file": "own.jsonl", "n_problems": 6, "k": 2}
    }
    study["training"] |= {"steps": 2, "learning_rate": 2e-3}
    workflow.study.write_text(yaml.safe_dump(study))


def write_problems(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name, count, split in (("problems", 24, "train"), ("own", 6, "benchmark")):
        rows = clock_problems([2, 3], count, hours=5, max_step=2, seed=1, split=split)
        solved = [row | {"solution": worked_solution(row["problem"], rng, 0, 0)} for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in solved))


def test_a_pretrained_model_goes_from_the_study_file_to_tables(
    finished: Workflow, tmp_path: Path
) -> None:
    """And a correction of the number of its parameters makes no model and no answer again."""
    model = shutil.copytree(finished.results / "base_models" / "s", tmp_path / "models" / "tiny")
    write_problems(tmp_path)
    workflow = copy_repository(tmp_path / "copy")
    write_study(workflow, count_parameters(model))
    folders = {"GRPO_REPLAY_MODELS": str(model.parent), "GRPO_REPLAY_DATA": str(tmp_path)}
    done = workflow.run("tables", **folders)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tiny.yaml: training.learning_rate: 0.002 is unusual" in done.stdout
    assert set(pd.read_parquet(workflow.results / "scores.parquet").cell) == CELLS
    assert "own_avg" in pd.read_csv(workflow.results / "tables" / "main.csv").columns
    record = json.loads((workflow.results / "cells" / "p" / "base" / "cell.json").read_text())
    assert record["model"] == {"source": "pretrained", "name": "org/tiny", "revision": "0" * 40}

    copied = copy_without_times(workflow, tmp_path / "copied")
    shutil.rmtree(copied.folder / ".snakemake")  # so that the records alone decide
    assert copied.jobs("cells", **folders) == {}

    number = f"parameters: {count_parameters(model)}"
    workflow.study.write_text(workflow.study.read_text().replace(number, "parameters: 7"))
    jobs = workflow.jobs("tables", GRPO_REPLAY_DATA=str(tmp_path))
    assert jobs.keys() <= {"collect_scores", "tables"}  # they print the study
    done = workflow.run("-n", **folders)
    assert done.returncode != 0 and "`parameters` says 7" in done.stdout + done.stderr
