"""Draw the figures whose files are the rule's outputs, in one process."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], snakemake.rule):
    from grpo_replay.reporting.figures.catalogue import FIGURES
    from grpo_replay.study.config import Study

    study = Study.model_validate(snakemake.params.study)
    for stem in dict.fromkeys(Path(file).with_suffix("") for file in snakemake.output):
        FIGURES[stem.name](study, Path(snakemake.input.scores).parent, stem)
