"""Make the MLflow store and the study's experiment, once, before jobs run side by side."""

from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], "tracking store"):
    from grpo_replay.tracking import make_store

    params = snakemake.params
    make_store(params.uri, params.study, Path(params.artifacts), Path(snakemake.output.store))
