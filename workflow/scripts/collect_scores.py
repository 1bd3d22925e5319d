"""Put the scores of every finished cell into one table."""

from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], "scores") as terminal:
    from grpo_replay.config import Study
    from grpo_replay.reporting.scores import collect_scores

    study = Study.model_validate(snakemake.params.study)
    collect_scores(study, Path(snakemake.params.folder), Path(snakemake.output.scores))
