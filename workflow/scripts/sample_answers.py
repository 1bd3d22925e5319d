"""Sample one cell's answers to every benchmark."""

from pathlib import Path

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

cell, params = snakemake.wildcards.cell, snakemake.params
record = made_from(snakemake.input, snakemake.output.manifest, params.settings)
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}") as terminal, record:
    terminal.say(f"sampling {', '.join(params.benchmarks)}")
    from grpo_replay.evaluation.sample import sample_answers
    from grpo_replay.evaluation.settings import SamplingSettings
    from grpo_replay.machine.gpus import gpus

    with gpus(snakemake.resources.gpu):
        sample_answers(
            Path(snakemake.input.model),
            dict(zip(params.benchmarks, map(Path, snakemake.input.benchmarks), strict=True)),
            SamplingSettings(**params.settings),
            Path(snakemake.output.manifest).parent,
            Path(params.work),
        )
