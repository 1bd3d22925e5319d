"""Make every table of the study, in one process."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], "tables"):
    from grpo_replay.reporting.paper.catalogue import write_tables
    from grpo_replay.study.config import Study

    study = Study.model_validate(snakemake.params.study)
    results, folder = Path(snakemake.input.scores).parent, Path(snakemake.output[0]).parent
    write_tables(study, results, folder, snakemake.params.config)
