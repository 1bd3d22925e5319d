"""Bring the MLflow store up to date at the end of a run."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], "tracking"):
    from grpo_replay.files import write_text
    from grpo_replay.study.config import Study
    from grpo_replay.tracking.sync import sync_study

    params, tracked = snakemake.params, Path(snakemake.output.tracked)
    study = Study.model_validate(params.study)
    if not sync_study(study, tracked.parent, params.copy_models):
        # The number is a param of the rule: the next run tries again.
        write_text(tracked.parent / "tracking" / "misses.txt", str(int(params.missed) + 1))
    tracked.touch()
