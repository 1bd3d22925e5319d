"""Grade one cell's answers."""

from pathlib import Path

from grpo_replay.console import job

cell, params = snakemake.wildcards.cell, snakemake.params
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}"):
    from grpo_replay.evaluation.grade import grade_answers

    grade_answers(
        Path(params.samples),
        {name: Path(file) for name, file in params.benchmarks.items()},
        params.k,
        Path(params.folder),
        timeout=params.timeout,
        workers=snakemake.threads,
    )
