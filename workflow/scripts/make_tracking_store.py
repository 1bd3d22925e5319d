"""Make the MLflow store and the study's experiment, once, before jobs run side by side."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], "tracking store"):
    from grpo_replay.tracking.store import make_store

    made = Path(snakemake.output.made)
    make_store(snakemake.params.study, made.parent)
    made.touch()
