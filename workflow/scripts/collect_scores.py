"""Put the scores of every finished cell into one table."""

from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], "scores"):
    from grpo_replay.config import Study
    from grpo_replay.reporting.scores import collect_scores

    study = Study.model_validate(snakemake.params.study)
    output = Path(snakemake.output.scores)
    collect_scores(study, output.parent, output)
