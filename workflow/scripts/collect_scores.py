"""Put the scores of every finished cell into one table."""

from pathlib import Path

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

record = made_from(snakemake.input, snakemake.output.scores, snakemake.params.study)
with job(snakemake.log[0], "scores"), record:
    from grpo_replay.results.scores import collect_scores
    from grpo_replay.study.config import Study

    study = Study.model_validate(snakemake.params.study)
    output = Path(snakemake.output.scores)
    collect_scores(study, output.parent, output)
