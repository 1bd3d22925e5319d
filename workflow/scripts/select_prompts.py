"""A first pass of the start model: keep the problems that it gets right only sometimes."""

from pathlib import Path

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

params = snakemake.params.settings
record = made_from(snakemake.input, snakemake.output.problems, params)
with job(snakemake.log[0], f"prompt selection {snakemake.wildcards.scale}") as terminal, record:
    from grpo_replay.evaluation.select_prompts import select_as_asked
    from grpo_replay.machine.gpus import gpus

    terminal.say("started")
    model, problems, output = snakemake.input.model, snakemake.input.problems, snakemake.output[0]
    with gpus(snakemake.resources.gpu):
        figures = select_as_asked(Path(model), Path(problems), Path(output), params)
    terminal.say(", ".join(f"{name} {value:g}" for name, value in figures.items()))
