"""A benchmark is added to a finished study: it draws its own answers, and the others stay."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from repository_copy import Workflow

CELL = "s/grpo-seed42"
OLD = ("clock3", "clock4")
ANSWERS, AT_A_TIME = 400 * 8, 64
# As many answers as take a while, so that a run can be stopped in the middle.
ADDED = (
    "  clock5: {source: clock, title: Clock-5, hours: 5, max_step: 2, steps: 5, "
    "n_problems: 400, k: 8, seed: 13}\n"
)


@pytest.fixture
def further(finished: Workflow, tmp_path: Path) -> Workflow:
    """The finished study in a folder of its own, with a benchmark more."""
    workflow = Workflow(tmp_path / "further")
    shutil.copytree(finished.folder, workflow.folder, symlinks=True)
    text = workflow.study.read_text()
    workflow.study.write_text(text.replace("\ntraining:", f"{ADDED}\ntraining:", 1))
    return workflow


def finished_files(workflow: Workflow) -> dict[Path, tuple[bytes, int]]:
    """Bytes and time of the answers and grades of the benchmarks that were there before."""
    cell = workflow.results / "cells" / CELL
    paths = [cell / kind / f"{name}.parquet" for kind in ("samples", "grades") for name in OLD]
    files = [path.resolve(strict=True) for path in paths]
    return {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def unchanged(files: dict[Path, tuple[bytes, int]]) -> bool:
    return all((f.read_bytes(), f.stat().st_mtime_ns) == was for f, was in files.items())


def drawn(workflow: Workflow) -> int:
    """How many answers to the new benchmark lie in its file of work."""
    path = workflow.results / "checkpoints" / "samples" / CELL / "clock5.jsonl"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.is_file() else 0


def stop_sampling(workflow: Workflow, job_alone: bool) -> None:
    """Run until more chunks are drawn, then SIGKILL the job, or Snakemake and all it started."""
    before = drawn(workflow)
    process = subprocess.Popen(
        workflow.command("cells", f"only={CELL}"),
        cwd=workflow.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 600
    while drawn(workflow) < before + 2 * AT_A_TIME:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    family = psutil.Process(process.pid).children(recursive=True)
    if job_alone:
        family = [j for j in family if "sample_answers.py" in " ".join(j.cmdline()[-1:])]
        assert family
    else:
        process.send_signal(signal.SIGKILL)
    for member in family:
        member.kill()
    process.wait()
    psutil.wait_procs(family)


def test_a_further_benchmark_leaves_the_others_as_they_are(further: Workflow) -> None:
    """Also where its sampling is killed: once the job, once the whole run."""
    before = finished_files(further)
    jobs = further.jobs("cells")
    assert jobs.pop("make_benchmark") == 1
    rules = ("sample_answers", "grade_answers", "score_cell")  # one job a cell: one engine start
    assert jobs == {**dict.fromkeys(rules, 6), "cells": 1}
    for job_alone in (True, False):
        stop_sampling(further, job_alone)
        assert unchanged(before)
        further.run("--unlock")
    found = drawn(further)
    assert 0 < found < ANSWERS

    done = further.run("cells", f"only={CELL}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert unchanged(before) and before == finished_files(further)
    log = (further.results / "logs" / "sample_answers" / f"{CELL}.log").read_text()
    assert "sampled clock5: 400 problems, 3200 answers" in log
    assert "sampled clock3" not in log and "sampled clock4" not in log
    cell = further.results / "cells" / CELL
    assert len(pd.read_parquet(cell / "samples" / "clock5.parquet")) == ANSWERS
    assert len(pd.read_parquet(cell / "grades" / "clock5.parquet")) == ANSWERS
    assert further.jobs("cells", f"only={CELL}") == {}
