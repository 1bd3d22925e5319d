"""Grade one cell's answers."""

from pathlib import Path

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

cell, params = snakemake.wildcards.cell, snakemake.params
settings = {key: value for key, value in params.items() if key != "model"}
record = made_from(snakemake.input, snakemake.output[0], settings)
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}"), record:
    from grpo_replay.evaluation.grade import grade_answers

    grade_answers(
        Path(snakemake.input.manifest).parent,
        Path(params.model),
        dict(zip(params.k, map(Path, snakemake.input.benchmarks), strict=True)),
        params.k,
        Path(snakemake.output[0]).parent,
        timeout=params.timeout,
        workers=snakemake.threads,
        tasks=params.get("tasks"),
    )
