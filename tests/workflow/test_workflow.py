"""The whole DAG, for real: what it makes, what it makes again, and what it refuses."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
import stand_in_conda
import yaml
from repository_copy import REPOSITORY, Workflow, copy_repository, listed_jobs

from grpo_replay.statistics.intervals import reachable
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import expand
from grpo_replay.study.file import load_study

CELLS = {
    "s/base",
    "s/grpo-seed42",
    "s/uniform-pool-seed42",
    "s/sigma_g-pool-seed42",
    "s/ours-seed42",
    "s/ours-replay.tau_max1-seed42",
}
SCORE_COLUMNS = {
    *("study", "cell", "scale", "method", "composition", "unit", "priority", "tau_max"),
    *("replay_ratio", "alpha", "seed", "benchmark", "n_problems", "k", "avg_at_k", "pass_at_k"),
    *("mean_length", "mean_length_correct", "mean_length_incorrect"),
}


# --- what a run makes ---


def test_scores_hold_every_cell_and_benchmark(finished: Workflow) -> None:
    scores = pd.read_parquet(finished.results / "scores.parquet")
    assert set(scores.columns) >= SCORE_COLUMNS
    assert set(scores.cell) == CELLS
    assert (scores.groupby("cell").benchmark.apply(set) == {"clock3", "clock4"}).all()
    assert scores.avg_at_k.between(0, 100).all()
    assert set(scores[scores.cell == "s/base"].method) == {"base"}


def test_every_table_and_figure_is_there(finished: Workflow) -> None:
    numbered = [f"table{number:02d}" for number in range(1, 14)]
    compared = [f"{name}_comparison" for name in numbered if name != "table07"]
    for name in ("main", "age", "training", "verifiers", *numbered, *compared, "published_check"):
        for ending in ("csv", "md", "tex", "html"):
            # A comparison with nothing to compare is a line of headings.
            assert (finished.results / "tables" / f"{name}.{ending}").stat().st_size > 50
    verifiers = pd.read_csv(finished.results / "tables" / "verifiers.csv")
    counted = verifiers.groupby(["cell", "benchmark"]).answers.sum()
    assert set(counted) == {6 * 4} and len(counted) == 2 * len(CELLS)
    for name in ("accuracy", "tau_max", "training", "clip"):
        for ending in ("png", "svg", "pdf"):
            assert (finished.results / "figures" / f"{name}.{ending}").stat().st_size > 1000


def test_training_leaves_records_and_no_checkpoints(finished: Workflow) -> None:
    cell = finished.results / "cells" / "s/ours-seed42"
    metrics = pd.read_json(cell / "train" / "metrics.jsonl", lines=True)
    assert list(metrics.step) == [1, 2, 3, 4]
    assert not (cell / "train" / "metrics.jsonl").is_symlink()
    replay = pd.read_parquet(cell / "train" / "replay.parquet")
    columns = "step birth_step age rollout_id group_id problem_id unit priority advantage reward"
    assert {*columns.split(), "length", "truncated", "replayed"} <= set(replay.columns)
    rollouts = pd.read_parquet(cell / "train" / "rollouts.parquet")
    assert len(rollouts) == 4 * 32 and rollouts.text.str.len().gt(0).all()
    assert list((cell / "model").glob("*.safetensors"))
    assert not list(cell.rglob("*.bin"))  # no pickle
    assert not list((finished.results / "checkpoints").rglob("checkpoint-*"))


def test_every_replay_cell_trained_on_replayed_rows(finished: Workflow) -> None:
    """After the warm-up of one step, in every step, no row older than the cell allows."""
    study = load_study(finished.study)
    for name, cell in expand(study).items():
        if cell.trained:
            rows = pd.read_parquet(finished.results / "cells" / name / "train" / "replay.parquet")
            replayed = rows[rows["replayed"]]
            steps, tau_max = range(2, study.training.steps + 1), axes_of(cell).tau_max
            assert set(replayed["step"]) == (set(steps) if tau_max else set()), name
            assert replayed["age"].between(1, tau_max or 0).all(), name
            assert (rows["birth_step"] == rows["step"] - rows["age"]).all(), name


def test_progress_and_summary_are_shown(finished: Workflow) -> None:
    output = (finished.folder / "first.log").read_text()
    assert "6 cells, 0 of them finished, 5 to be trained in this run; about" in output
    assert "[cell 2/6 s/grpo-seed42] step 4/4: reward" in output
    assert "6 of 6 cells are finished" in output
    assert "mlflow ui --host 127.0.0.1 --backend-store-uri sqlite:///" in output


# --- what is made again ---


def test_a_second_run_has_nothing_to_do(finished: Workflow) -> None:
    start = time.monotonic()
    done = finished.run()
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout + done.stderr
    assert time.monotonic() - start < 60


def test_only_narrows_what_is_made(edited: Workflow) -> None:
    edited.study.write_text(edited.study.read_text().replace("3.0e-4", "2.0e-4"))
    jobs = edited.jobs("only=s/ours-*")
    assert jobs["train_policy"] == 2
    assert edited.jobs("only=s/ours-replay.tau_max1-*")["train_policy"] == 1


def test_only_finished_makes_tables_and_no_cell(edited: Workflow) -> None:
    """What a run with a failed cell leaves can be tabulated."""
    text = edited.study.read_text()
    edited.study.write_text(text.replace("tau_max: [1, 10]", "tau_max: [2, 10]"))
    jobs = edited.jobs("only=finished")
    assert jobs["collect_scores"] == jobs["tables"] == 1
    assert not jobs.keys() & {"train_policy", "sample_answers", "score_cell"}
    edited.study.write_text(text.replace("temperature: 0.6", "temperature: 0.7"))
    done = edited.run("-n", "only=finished")
    assert done.returncode != 0
    assert "only=finished: no cell of study tiny is finished yet" in done.stdout


def test_only_keeps_every_finished_cell_in_the_scores(finished: Workflow) -> None:
    done = finished.run("only=s/grpo-*")
    assert done.returncode == 0, done.stderr
    assert set(pd.read_parquet(finished.results / "scores.parquet").cell) == CELLS
    done = finished.run()
    assert done.returncode == 0
    assert finished.jobs() == {}


def test_the_command_of_a_missing_cell_makes_it(edited: Workflow, tmp_path: Path) -> None:
    """In a run that was narrowed, with results elsewhere and a study file of one's own."""
    results = shutil.copytree(edited.folder / "results", tmp_path / "elsewhere")
    study = tmp_path / "tiny.yaml"
    study.write_text(edited.study.read_text().replace("tau_max: [1, 10]", "tau_max: [1, 2, 10]"))
    table = results / "tiny" / "tables" / "age.md"
    narrowed = ("only=s/grpo-*", f"results={results}")
    done = edited.run(str(table), "--forcerun", "collect_scores", *narrowed, study=str(study))
    assert done.returncode == 0, done.stdout + done.stderr

    [note] = [line for line in table.read_text().splitlines() if line.startswith("- missing: ")]
    [command] = re.findall(r"`snakemake (.*)`", note)
    assert "s/ours-replay.tau_max2-seed42" in note
    done = edited.execute([sys.executable, "-m", "snakemake", "-n", *shlex.split(command)])
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = listed_jobs(done)
    assert jobs["train_policy"] == jobs["score_cell"] == 1 and "make_base_model" not in jobs


def test_an_edited_axis_runs_its_cells_only(edited: Workflow) -> None:
    edited.study.write_text(
        edited.study.read_text().replace("tau_max: [1, 10]", "tau_max: [2, 10]")
    )
    jobs = edited.jobs()
    assert jobs["train_policy"] == jobs["sample_answers"] == jobs["score_cell"] == 1
    assert "make_base_model" not in jobs


def test_an_edited_decoding_trains_nothing(edited: Workflow) -> None:
    text = edited.study.read_text().replace("temperature: 0.6", "temperature: 0.7")
    edited.study.write_text(text)
    jobs = edited.jobs()
    assert jobs["sample_answers"] == len(CELLS)
    assert "train_policy" not in jobs


def raise_version(workflow: Workflow, name: str) -> None:
    """Raise a version, as one does who has edited what it stands for."""
    versions = workflow.folder / "src" / "grpo_replay" / "study" / "versions.py"
    code = versions.read_text()
    edited = re.sub(rf"^{name} = \d+$", f"{name} = 999", code, flags=re.MULTILINE)
    assert edited != code
    versions.write_text(edited)


def test_a_changed_sampler_samples_again_and_trains_nothing(
    finished: Workflow, tmp_path: Path
) -> None:
    workflow = Workflow(tmp_path / "resampled")
    shutil.copytree(finished.folder, workflow.folder)
    raise_version(workflow, "SAMPLER_VERSION")
    jobs = workflow.jobs()
    made_again = {"sample_answers", "grade_answers", "score_cell"}
    assert {rule: jobs[rule] for rule in made_again} == dict.fromkeys(made_again, len(CELLS))
    assert not jobs.keys() & {"train_policy", "make_base_model", "make_problems", "make_benchmark"}


def test_a_changed_grader_grades_stored_answers_again(finished: Workflow, tmp_path: Path) -> None:
    """No training, no sampling, and not one model: the stored answers are enough."""
    workflow = Workflow(tmp_path / "regraded")
    shutil.copytree(finished.folder, workflow.folder)
    raise_version(workflow, "GRADER_VERSION")
    assert workflow.jobs("grades") == {"grade_answers": len(CELLS), "grades": 1}
    made_again = {"grade_answers", "score_cell"}
    jobs = workflow.jobs("all")
    assert {rule: jobs[rule] for rule in made_again} == dict.fromkeys(made_again, len(CELLS))
    assert not jobs.keys() & {"train_policy", "sample_answers", "make_base_model", "make_problems"}

    for model in [workflow.results / "base_models", *workflow.results.glob("cells/*/*/model")]:
        shutil.rmtree(model)
    cell = workflow.results / "cells" / "s/grpo-seed42"
    samples = contents(cell / "samples")
    before = (cell / "grades" / "clock3.parquet").stat().st_mtime_ns
    done = workflow.run("grades", "only=s/grpo-*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (cell / "grades" / "clock3.parquet").stat().st_mtime_ns > before
    assert samples == contents(cell / "samples")
    assert not (workflow.results / "base_models").exists()


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_changed_score_scores_again_and_nothing_else(finished: Workflow, tmp_path: Path) -> None:
    workflow = Workflow(tmp_path / "rescored")
    shutil.copytree(finished.folder, workflow.folder, symlinks=True)
    raise_version(workflow, "SCORING_VERSION")
    jobs = workflow.jobs("cells")
    assert jobs == {"score_cell": len(CELLS), "cells": 1}


def test_an_edited_prompt_makes_models_and_answers_again(
    finished: Workflow, tmp_path: Path
) -> None:
    workflow = Workflow(tmp_path / "asked")
    shutil.copytree(finished.folder, workflow.folder, symlinks=True)
    prompts = workflow.folder / "src" / "grpo_replay" / "tasks" / "math" / "task.py"
    prompts.write_text(prompts.read_text().replace("reason step by step", "be brief"))
    jobs = workflow.jobs("cells", "retrain=True")
    assert jobs["make_base_model"] == 1 and jobs["train_policy"] == len(CELLS) - 1
    assert jobs["sample_answers"] == jobs["score_cell"] == len(CELLS)
    assert not jobs.keys() & {"make_problems", "make_benchmark"}


def test_our_own_accuracies_can_exist(finished: Workflow) -> None:
    """Means of n problems x k samples: the check that finds two rows of the paper's Table 1."""
    scores = pd.read_parquet(finished.results / "scores.parquet")
    for row in scores.itertuples():
        assert reachable(row.avg_at_k, row.n_problems, row.k), row.cell
        assert reachable(row.avg_at_k_paper, row.n_problems, row.k), row.cell
        assert reachable(row.pass_at_k, row.n_problems, 1), row.cell
    main = pd.read_csv(finished.results / "tables" / "main.csv")
    for value in main[main.method != "chance"]["clock3_avg"].dropna():
        assert reachable(value, 6, 4)


def test_one_cell_by_its_file(finished: Workflow) -> None:
    target = "results/tiny/cells/s/ours-seed42/scores.json"
    jobs = finished.jobs(target, "--forceall")
    assert jobs["train_policy"] == jobs["score_cell"] == 1


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        ("samples/clock3.parquet", "sample_answers"),
        ("grades/clock4.parquet", "grade_answers"),
        ("train/replay.parquet", "train_policy"),
        ("model", "train_policy"),
    ],
)
def test_a_lost_file_is_made_again(finished: Workflow, file: str, rule: str) -> None:
    lost = finished.results / "cells" / "s/grpo-seed42" / file
    aside = lost.with_name("aside")
    lost.rename(aside)
    assert finished.jobs()[rule] == 1
    aside.rename(lost)


def test_use_conda_makes_nothing_again(finished: Workflow, tmp_path: Path) -> None:
    stand_in_conda.install(tmp_path)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    assert finished.jobs("--use-conda", PATH=path) == {}


def test_a_stale_cell_is_left_out_and_named(edited: Workflow) -> None:
    """A cell of the old configuration is no result of the new one."""
    edited.study.write_text(
        edited.study.read_text().replace("temperature: 0.6", "temperature: 0.7")
    )
    done = edited.run("--until", "collect_scores", "only=s/base")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(pd.read_parquet(edited.results / "scores.parquet").cell) == {"s/base"}
    log = (edited.results / "logs" / "collect_scores.log").read_text()
    assert "s/grpo-seed42" in log


def test_a_killed_training_is_continued(finished: Workflow, tmp_path: Path) -> None:
    """SIGKILL in the middle: no half result, and the next run continues from the checkpoint."""
    workflow, process = start_training(finished, tmp_path / "killed")
    kill_all(process.pid)
    process.communicate()
    assert not (workflow.folder / TRAINED).parent.with_name("model").exists()
    workflow.run("--unlock")
    done = workflow.run(TRAINED)
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = pd.read_json(workflow.folder / TRAINED, lines=True)
    assert list(metrics.step) == list(range(1, 31))
    assert re.search(r"continues after step \d+/30, from its checkpoint", done.stderr)


def test_a_job_that_is_killed_is_named(finished: Workflow, tmp_path: Path) -> None:
    """As the kernel does where memory runs out: the job itself says nothing."""
    _, process = start_training(finished, tmp_path / "killed")
    jobs = psutil.Process(process.pid).children(recursive=True)
    next(job for job in jobs if job.cmdline()[-1].endswith("train_policy.py")).kill()
    printed, _ = process.communicate()
    assert process.returncode == 1, printed
    log = "results/tiny/logs/train_policy/s/ours-seed42.log"
    assert f"[train_policy] failed (log: {log})" in printed


TRAINED = "results/tiny/cells/s/ours-seed42/train/metrics.jsonl"


def start_training(finished: Workflow, folder: Path) -> tuple[Workflow, subprocess.Popen]:
    """A run of 30 steps in a workflow of its own, once it has a checkpoint."""
    workflow = copy_repository(folder)
    for part in ("base_models", "data"):
        copy_results(finished, workflow, part)
    workflow.study.write_text(workflow.study.read_text().replace("steps: 4\n", "steps: 30\n"))
    process = subprocess.Popen(
        workflow.command(TRAINED),
        cwd=workflow.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    checkpoints = workflow.results / "checkpoints" / "training" / "s"
    wait_for(lambda: list(checkpoints.glob("*/*/checkpoint-*/whole.json")))
    return workflow, process


def kill_all(pid: int) -> None:
    """SIGKILL a process and all that it started, at once."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for member in family:
        member.kill()
    psutil.wait_procs(family[1:])


def copy_results(source: Workflow, target: Workflow, part: str) -> None:
    copy = shutil.copytree if (source.results / part).is_dir() else shutil.copy
    target.results.mkdir(parents=True, exist_ok=True)
    copy(source.results / part, target.results / part)


def wait_for(condition, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.1)


# --- what is refused before any job starts ---


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "learning_rate: 3.0e-4",
            "learning_rat: 3.0e-4",
            "training.learning_rat: unknown key (did you mean 'learning_rate'?)",
        ),
        ("methods: [ours]", "methods: [our]", "unknown method 'our' (did you mean 'ours'?)"),
        (
            "kind: abs_advantage}",
            "kind: abs_advantage, alpha: 1.5}",
            "methods.ours.replay.priority.alpha",
        ),
        ("kind: abs_advantage}", "kind: abs_advantage}, ratio: -1", "methods.ours.replay.ratio"),
        ("tau_max: [1, 10]", "tau_max: [0]", "grid: method ours, vary replay.tau_max 0: "),
        ("group_size: 4", "group_size: 1", "training.group_size"),
        ("group_size: 4", "group_size: 5", "rollouts_per_step must be a multiple of group_size"),
        (
            "unit: rollout, priority: {kind: abs",
            "unit: query, priority: {kind: abs",
            "abs_advantage needs unit rollout",
        ),
        ("count: 60", "count: 100000", "count: 100000 different train problems"),
        ("study: tiny", "study: other", "must equal the file's name"),
    ],
)
def test_a_wrong_study_is_refused_with_file_and_key(
    edited: Workflow, old: str, new: str, message: str
) -> None:
    text = edited.study.read_text()
    assert old in text
    edited.study.write_text(text.replace(old, new))
    done = edited.run("-n")
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert message in output and "tiny.yaml" in output
    assert "Traceback" not in output


def test_all_mistakes_are_listed_at_once(edited: Workflow) -> None:
    study = yaml.safe_load(edited.study.read_text())
    study["training"]["steps"] = 0
    study["training"]["typo"] = 1
    del study["evaluation"]["top_p"]
    edited.study.write_text(yaml.safe_dump(study))
    output = edited.run("-n").stdout
    for key in ("training.steps", "training.typo", "evaluation.top_p: missing"):
        assert key in output


def test_an_absent_conda_is_told_with_the_other_ways(finished: Workflow) -> None:
    folders = os.environ["PATH"].split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if not Path(folder, "conda").exists())
    done = finished.run("-n", "--use-conda", PATH=path)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "no conda" in line]
    assert done.returncode != 0 and len(lines) == 1
    assert "make run" in lines[0] and "requirements.lock" in lines[0]


def test_unknown_names_are_refused_with_what_there_is(finished: Workflow) -> None:
    done = finished.run("-n", "only=m/*")
    assert done.returncode != 0 and "s/grpo-seed42" in done.stdout
    done = finished.run("-n", study="nanoo")
    assert done.returncode != 0 and "did you mean 'nano'?" in done.stdout
    done = finished.run("-n", "results/tiny/cells/s/grpo-seed43/scores.json")
    assert done.returncode != 0 and "no cell 's/grpo-seed43'" in done.stdout + done.stderr
    for target, message in (
        ("results/tiny/base_models/xl", "no scale 'xl'; there are: s"),
        ("results/tiny/data/benchmarks/aime.jsonl", "no benchmark 'aime'; there are: clock3"),
    ):
        done = finished.run("-n", target)
        assert done.returncode != 0 and message in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "1", "problem": "p", "answer": "1"}], "has 1 problems, n_problems says 2"),
        ([{"id": "1", "problem": "p", "answer": ""}], "line 1: field 'answer' is empty"),
        ([{"id": "1", "problem": "p", "answer": 7}], "expected a string"),
        (None, "not in"),
    ],
)
def test_a_wrong_benchmark_file_is_refused(
    edited: Workflow, tmp_path: Path, rows: list | None, message: str
) -> None:
    study = yaml.safe_load(edited.study.read_text())
    study["benchmarks"]["own"] = {
        "source": "file", "title": "Own", "file": "own.jsonl", "n_problems": 2, "k": 4
    }  # fmt: skip
    edited.study.write_text(yaml.safe_dump(study))
    if rows is not None:
        (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    done = edited.run("-n", GRPO_REPLAY_DATA=str(tmp_path))
    assert done.returncode != 0
    assert message in done.stdout and "benchmarks.own" in done.stdout
    done = edited.run("-n")
    assert done.returncode != 0 and "GRPO_REPLAY_DATA is not set" in done.stdout


def test_a_missing_model_is_refused(edited: Workflow, tmp_path: Path) -> None:
    study = yaml.safe_load(edited.study.read_text())
    study["scales"]["s"]["model"] = {
        "source": "pretrained",
        "name": "org/model",
        "revision": "0" * 40,
        "parameters": 1,
    }
    edited.study.write_text(yaml.safe_dump(study))
    done = edited.run("-n", GRPO_REPLAY_MODELS=str(tmp_path))
    assert done.returncode != 0
    assert "scales.s.model: " in done.stdout and "put org/model there" in done.stdout


# --- the paper's study, which has no model on this machine ---


def test_a_dry_run_of_the_papers_study_lists_its_jobs(finished: Workflow) -> None:
    cells = expand(load_study(REPOSITORY / "config" / "studies" / "paper.yaml"))
    trained = {name for name, cell in cells.items() if cell.trained}
    jobs = finished.jobs(study="paper")
    once = [
        *("make_problems", "make_tracking_store", "collect_scores", "tables", "figures"),
        *("track_results", "all"),
    ]
    per_cell = ("sample_answers", "grade_answers", "score_cell")
    assert (len(trained), len(cells)) == (27, 30)
    assert jobs == {
        "make_base_model": 3,
        "make_benchmark": 5,
        "train_policy": 27,
        **dict.fromkeys(per_cell, 30),
        **dict.fromkeys(once, 1),
    }
    done = finished.run("-n", "--quiet", "progress", study="paper")
    blocks = re.split(r"\n(?=(?:local)?rule \w+:)", done.stdout + done.stderr)
    found = [re.search(r"rule (\w+):.*wildcards: cell=(\S+)", block, re.S) for block in blocks]
    listed = [match.groups() for match in found if match]
    assert sorted(listed) == sorted(
        [("train_policy", name) for name in trained]
        + [(rule, name) for rule in per_cell for name in cells]
    )


def test_the_papers_study_does_not_start_without_its_gpus(finished: Workflow) -> None:
    for declared, message in (
        ([], "a job needs 8 GPUs and 0 are declared"),
        (["--resources", "gpu=4"], "a job needs 8 GPUs and 4 are declared"),
        (["--resources", "gpu=8"], "a job needs 8 GPUs and this machine offers 2"),
    ):
        command = [*finished.command(study="paper"), *declared]
        done = finished.execute(command, CUDA_VISIBLE_DEVICES="0,1")
        assert done.returncode != 0 and message in done.stdout + done.stderr
    assert not (finished.folder / "results" / "paper" / "cells").exists()
    plan = finished.run("plan", study="paper", CUDA_VISIBLE_DEVICES="")
    assert plan.returncode == 0 and "27 trained cells" in plan.stdout
    assert "80 GB: the paper's GPUs" in plan.stdout


def test_a_study_with_a_server_starts_no_training_without_its_address(edited: Workflow) -> None:
    engine = "rollout_engine: transformers"
    text = edited.study.read_text()
    edited.study.write_text(text.replace(engine, "rollout_engine: vllm_server"))
    done = edited.run()
    told = "training.rollout_engine: 'vllm_server' needs GRPO_REPLAY_VLLM_SERVER=http://<host>"
    assert done.returncode != 0 and told in done.stdout + done.stderr
    for target in ("plan", "results/tiny/base_models/s"):  # what trains nothing needs none
        assert edited.run(target).returncode == 0


def test_the_papers_study_does_not_start_on_gpus_too_small_for_it(
    finished: Workflow, tmp_path: Path
) -> None:
    driver = tmp_path / "nvidia-smi"
    lines = "".join(f"echo '{n}, GPU-{n}, 40960, NVIDIA A100-PCIE-40GB'\n" for n in range(8))
    driver.write_text(f"#!/bin/sh\n{lines}")
    driver.chmod(0o755)
    offered = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}
    offered["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    start = finished.command(study="paper")
    for declared, message in (
        (["gpu=8"], "a GPU has 42.9 GB (the smallest of this machine's GPUs), where the"),
        (["gpu=8", "gpu_gb=40"], "a GPU has 40 GB (declared by --resources gpu_gb), where the"),
    ):
        done = finished.execute([*start, "--resources", *declared], **offered)
        assert done.returncode != 0 and "training 1.7B holds 34.4 GB" in done.stdout + done.stderr
        assert message in done.stdout + done.stderr
    assert not (finished.folder / "results" / "paper" / "cells").exists()
    plan = finished.run("plan", study="paper", **offered)
    assert "left of 42.9 GB" in plan.stdout and "too much: set sharding: full" in plan.stdout


def test_the_plan_of_a_finished_study_has_measured_hours_and_nothing_left(
    finished: Workflow,
) -> None:
    finished.run()  # a test before this one may have run an edited study here
    plan = finished.run("plan")
    lines = {line.split()[0]: line.split() for line in plan.stdout.splitlines() if line}
    scale = lines["s"]
    assert scale[1:5] == ["0", "0", "of", "6"]
    assert scale[6].endswith("*") and scale[7].endswith("*")
    assert lines["total"][1] == "0" and float(lines["total"][2]) > 0 and lines["total"][3] == "-"
