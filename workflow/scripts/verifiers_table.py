"""Tabulate where the verifiers of the study's answers disagree."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], "verifiers"):
    from grpo_replay.reporting.tables.verifiers import verifiers_table
    from grpo_replay.study.config import Study

    study = Study.model_validate(snakemake.params.study)
    results = Path(snakemake.input.scores).parent
    verifiers_table(study, results, Path(snakemake.output.table))
