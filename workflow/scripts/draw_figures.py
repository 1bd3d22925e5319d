"""Draw every figure of the study, in one process."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], "figures"):
    from grpo_replay.reporting.figures.catalogue import FIGURES
    from grpo_replay.study.config import Study

    study = Study.model_validate(snakemake.params.study)
    results, folder = Path(snakemake.input.scores).parent, Path(snakemake.output[0]).parent
    for name, draw in FIGURES.items():
        draw(study, results, folder / name)
