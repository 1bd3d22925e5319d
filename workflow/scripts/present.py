"""Make one table or figure: the function of grpo_replay.reporting that bears the rule's name."""

from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], snakemake.rule):
    from grpo_replay.config import Study
    from grpo_replay.reporting import figures, tables

    makers = (tables.main_table, tables.age_table, figures.accuracy_figure, figures.tau_max_figure)
    makers += (figures.training_figure, figures.clip_figure)
    make = {maker.__name__: maker for maker in makers}[snakemake.rule]
    study = Study.model_validate(snakemake.params.study)
    make(study, Path(snakemake.input.scores).parent, Path(snakemake.output[0]).with_suffix(""))
