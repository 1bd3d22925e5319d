"""Put the scores of every finished cell into one table."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], "scores"):
    from grpo_replay.results.scores import collect_scores
    from grpo_replay.study.config import Study

    study = Study.model_validate(snakemake.params.study)
    output = Path(snakemake.output.scores)
    collect_scores(study, output.parent, output)
