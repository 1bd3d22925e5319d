"""Sample one cell's answers to every benchmark."""

from pathlib import Path

from grpo_replay.console import job

cell, params = snakemake.wildcards.cell, snakemake.params
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}") as terminal:
    terminal.say(f"sampling {', '.join(params.benchmarks)}")
    from grpo_replay.evaluation.sample import SamplingSettings, sample_answers

    sample_answers(
        Path(snakemake.input.model),
        {name: Path(file) for name, file in params.benchmarks.items()},
        SamplingSettings(**params.settings),
        Path(params.folder),
        Path(params.work),
    )
