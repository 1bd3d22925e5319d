"""Make a table, or all of the paper's: the function of reporting.tables of the rule's name."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], snakemake.rule):
    from grpo_replay.reporting.paper.catalogue import paper_tables
    from grpo_replay.reporting.tables import catalogue
    from grpo_replay.study.config import Study

    makers = (catalogue.main_table, catalogue.age_table, paper_tables)
    make = {maker.__name__: maker for maker in makers}[snakemake.rule]
    study = Study.model_validate(snakemake.params.study)
    results, stem = Path(snakemake.input.scores).parent, Path(snakemake.output[0]).with_suffix("")
    make(study, results, stem, snakemake.params.config)
