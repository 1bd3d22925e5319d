"""The workflow through a real Slurm: devices, failures, cancelled and killed jobs, and the lock."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pandas as pd
import psutil
from repository_copy import Workflow
from slurm_host import SlurmHost

CELLS = ("s/grpo-seed42", "s/ours-seed42")
STEPS = 40
PATIENCE = 1800  # seconds; a busy machine needs some of it


def start(workflow: Workflow, *arguments: str) -> subprocess.Popen:
    """Snakemake with the shipped profile; what it prints is in `printed`."""
    command = workflow.command("--profile", "profiles/slurm", *arguments)
    del command[command.index("--cores") : command.index("--cores") + 2]
    with (workflow.folder / "printed").open("w") as file:
        return subprocess.Popen(command, cwd=workflow.folder, stdout=file, stderr=subprocess.STDOUT)


def printed(workflow: Workflow) -> str:
    return (workflow.folder / "printed").read_text()


def file(cell: str, name: str) -> str:
    return f"results/tiny/cells/{cell}/{name}"


def checkpoints(workflow: Workflow, cell: str) -> Path:
    return workflow.results / "checkpoints" / "training" / cell


def holder(workflow: Workflow, cell: str) -> dict:
    """Who trains a cell, once it has a checkpoint."""
    place = checkpoints(workflow, cell)
    holder_file = place / "holder.json"
    if not list(place.glob("*/checkpoint-*/whole.json")) or not holder_file.is_file():
        return {}
    return json.loads(holder_file.read_text())


def variable(pid: int, name: str) -> str:
    """A variable of a running process, as it was given."""
    return psutil.Process(pid).environ().get(name, "")


def job_logs(workflow: Workflow) -> str:
    logs = (workflow.folder / ".snakemake" / "slurm_logs").rglob("*.log")
    return "\n".join(path.read_text() for path in logs)


def test_devices_and_jobs_that_were_cancelled_and_killed(
    slurm: SlurmHost, workflow: Workflow
) -> None:
    run = start(workflow, *(file(cell, "model") for cell in CELLS))
    slurm.wait_for(
        lambda: all(holder(workflow, c) for c in CELLS) or run.poll() is not None, PATIENCE
    )
    assert run.poll() is None, printed(workflow)
    grpo, ours = (holder(workflow, cell) for cell in CELLS)
    devices = {variable(h["pid"], "CUDA_VISIBLE_DEVICES") for h in (grpo, ours)}
    assert devices == {"0", "1"}
    asked = slurm.ask("scontrol", "show", "job", grpo["slurm_job"])
    assert "TimeLimit=00:22:00" in asked  # 2 x 0.1 h and ten minutes
    assert "Partition=gpu" in asked and "mem=1500M" in asked and "Requeue=1" in asked
    slurm.ask("scancel", grpo["slurm_job"])
    os.kill(ours["pid"], signal.SIGKILL)
    assert run.wait(timeout=PATIENCE) == 0, printed(workflow)
    assert printed(workflow).count("Trying to restart job") == 2
    for job, state in ((grpo["slurm_job"], "CANCELLED"), (ours["slurm_job"], "FAILED")):
        assert f"JobState={state}" in slurm.ask("scontrol", "show", "job", job)
    for cell in CELLS:
        metrics = pd.read_json(workflow.folder / file(cell, "train/metrics.jsonl"), lines=True)
        assert list(metrics.step) == list(range(1, STEPS + 1))
        assert not (checkpoints(workflow, cell) / "training.lock").exists()
    assert job_logs(workflow).count(f"/{STEPS}, from its checkpoint") == 2


def test_a_failing_job_is_reported_and_the_others_go_on(
    slurm: SlurmHost, workflow: Workflow
) -> None:
    text = workflow.study.read_text()
    workflow.study.write_text(text.replace("max_prompt_tokens: 256", "max_prompt_tokens: 1"))
    targets = (file(CELLS[0], "model"), file("s/base", "scores.json"))
    run = start(workflow, "--retries", "0", *targets)
    assert run.wait(timeout=PATIENCE) == 1, printed(workflow)
    told = printed(workflow)
    assert re.search(r"\[train_policy\] failed: SLURM.* is: 'FAILED'", told), told
    log = workflow.results / "logs" / "train_policy" / f"{CELLS[0]}.log"
    assert "prompts of at most 1 tokens" in log.read_text()
    assert (workflow.folder / file("s/base", "scores.json")).is_file()
    logs = workflow.folder / ".snakemake" / "slurm_logs"
    assert len(list(logs.glob("group_answers*/*.log"))) == 1  # sampled, graded, scored in one job
    assert not (workflow.folder / file(CELLS[0], "model")).exists()


def test_a_cell_whose_job_outlived_its_snakemake_does_not_train_twice(
    slurm: SlurmHost, workflow: Workflow
) -> None:
    target, cell, steps = file(CELLS[0], "model"), CELLS[0], 10 * STEPS
    text = workflow.study.read_text()  # long enough to be there when the second job starts
    workflow.study.write_text(text.replace(f"steps: {STEPS}\n", f"steps: {steps}\n"))
    run = start(workflow, target)
    slurm.wait_for(lambda: holder(workflow, cell) or run.poll() is not None, PATIENCE)
    first = holder(workflow, cell)
    run.kill()  # Slurm goes on with its job
    run.wait()
    assert psutil.pid_exists(first["pid"])
    workflow.run("--unlock")
    second = start(workflow, "--retries", "0", target)
    assert second.wait(timeout=PATIENCE) == 1, printed(workflow)
    message = f"this cell is being trained already, by process {first['pid']} on "
    assert message in job_logs(workflow)
    assert f"Slurm job {first['slurm_job']}, since" in job_logs(workflow)
    slurm.wait_for(
        lambda: not slurm.ask("squeue", "-h", "-j", first["slurm_job"]).strip(), PATIENCE
    )
    rows = workflow.folder / file(cell, "train/metrics.jsonl")
    assert list(pd.read_json(rows, lines=True).step) == list(range(1, steps + 1))
    assert list((workflow.folder / target).glob("*.safetensors"))
