# What the rules look up, as far as it needs Snakemake's own objects; the rest is `planning/run.py`.
# Nothing here runs a job.
import gc
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod

# Jobs, also those in conda environments, import the package from here, and what a study names by an
# import path from the folder in which Snakemake runs.
SOURCE = str(Path(workflow.basedir, "src"))
sys.path[:0] = [SOURCE, os.getcwd()]
above = filter(None, [SOURCE, os.getcwd(), os.environ.get("PYTHONPATH")])
os.environ.update(PYTHONPATH=os.pathsep.join(above))
# A terminal that has no letter for τ shows another one.
if hasattr(sys.stdout, "reconfigure"):
    sys.stdout.reconfigure(errors="replace")

from grpo_replay.machine import surroundings

LEFT_OUT = surroundings.prepare(os.environ)

# Thousands of jobs are millions of objects that stay: looking for garbage among them again and again
# takes a good part of the time.
gc.set_threshold(100_000, 20, 50)

from grpo_replay.errors import GrpoReplayError
from grpo_replay.machine.failed_jobs import FailedJobs
from grpo_replay.machine.made_from import restore
from grpo_replay.planning import job_limits, messages
from grpo_replay.planning.preflight import source_files
from grpo_replay.planning.run import Declared, Run
from grpo_replay.planning.steps import steps
from grpo_replay.reporting import names
from grpo_replay.study import cells, versions
from grpo_replay.study.oddities import oddities
from grpo_replay.study.settings import STUDY_VARIABLE, TRACKING_VARIABLE, read_settings

logger.addHandler(FailedJobs())


def refused(action, *arguments):
    """What an action returns; a mistake of the user's stops the run with its message alone."""
    try:
        return action(*arguments)
    except GrpoReplayError as error:
        raise WorkflowError(str(error)) from None


# As typed: Snakemake makes numbers of what looks like one, and None of nothing.
config.update(refused(read_settings, config, workflow.config_settings.config_args or []))
MAIN = workflow.is_main_process  # each job reads this file too
CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
RUN = refused(Run.of, config, Path(workflow.basedir, "config", "studies"), CONDA, MAIN)
STUDY, FILES = RUN.study, RUN.files
# Before Snakemake looks at times; a job leaves them.
if MAIN:
    restore(steps(RUN))
CELL = FILES.cell("{cell}")  # the files of a cell, as rules write them
os.environ.update({TRACKING_VARIABLE: RUN.tracking_uri, STUDY_VARIABLE: config["study"]})
if STUDY.hub_cache:
    os.environ.update(HF_HUB_CACHE=str(Path(STUDY.hub_cache).expanduser().absolute()))


def scale_of(wildcards):
    """The scale of a job, or of its cell."""
    cell = "cell" in wildcards.keys()
    return refused(RUN.scale, cell_of(wildcards).scale if cell else wildcards.scale)


def cell_of(wildcards):
    """The cell of a job."""
    return refused(RUN.cell, wildcards.cell)


def benchmark_of(wildcards):
    """The benchmark of a job."""
    return refused(RUN.benchmark, wildcards.benchmark)


def limits(hours, memory):
    """Memory and minutes that a cluster gets for a job, more with every attempt."""
    return {
        "mem_mb": lambda wildcards, attempt: memory(scale_of(wildcards), attempt),
        "runtime": lambda wildcards, attempt: job_limits.minutes_allowed(
            getattr(scale_of(wildcards), hours), attempt
        ),
    }


def declared():
    """What `--resources` says of this machine's GPUs."""
    gpus, memory = (workflow.global_resources.get(name).value or 0 for name in ("gpu", "gpu_gb"))
    return Declared(gpus, memory, workflow.local_exec)


def planned_jobs(*rules):
    """The jobs of some rules, or all, in this run; finished ones too."""
    jobs = workflow.persistence.dag.needrun_jobs(exclude_finished=False)
    return [job for job in jobs if not rules or job.rule.name in rules]


def planned_cells(rule):
    """The cells for which a rule has jobs in this run."""
    return {job.wildcards.cell for job in planned_jobs(rule)}


def check_retraining():
    """Stop a run that would remove trained models: Snakemake removes what a job makes before it."""
    if config["retrain"] and not workflow.touch:
        return
    reasons = {
        str(job.output.model): str(workflow.persistence.dag.reason(job))
        for job in planned_jobs("train_policy", "warm_start")
        # `--touch` removes nothing, but must not pass a model of other settings off as current.
        if Path(job.output.model).is_dir() and not (workflow.touch and is_current(job))
    }
    refused(job_limits.check_retraining, reasons, RUN.config)


def is_current(job):
    """Whether a training's record holds the present settings; a warm start has no such record."""
    return job.rule.name == "warm_start" or RUN.is_trained(job.wildcards.cell)


def shown(folder, name, formats):
    """The files of a table or figure in every format, with caption and labels for the report."""
    kind = folder.name
    entry = {
        "caption": f"../report/{kind}/{'comparison' if name in names.COMPARED else name}.rst",
        "category": "The paper's tables" if name in names.PAPER_TABLES else kind.capitalize(),
    }
    labels = {ext: {kind.removesuffix("s"): name, "format": ext} for ext in formats}
    return [report(f"{folder}/{name}.{ext}", labels=labels[ext], **entry) for ext in formats]
