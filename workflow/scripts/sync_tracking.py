"""Bring the MLflow store up to date with what the results folder holds."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], "tracking") as terminal:
    from grpo_replay.study.config import Study
    from grpo_replay.tracking.sync import require_sync

    params = snakemake.params
    study, results = Study.model_validate(params.study), Path(params.results)
    require_sync(study, results, params.copy_models)
    terminal.say("the store shows all that the results folder holds")
