"""A first pass of the start model: keep the problems that it gets right only sometimes."""

from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], f"prompt selection {snakemake.wildcards.scale}") as terminal:
    from grpo_replay.problems import read_problems
    from grpo_replay.sources import PromptSelection
    from grpo_replay.training.select_prompts import select_prompts

    terminal.say("started")
    settings = PromptSelection(**snakemake.params.settings)
    problems = read_problems(snakemake.input.problems)
    model, output = Path(snakemake.input.model), Path(snakemake.output.problems)
    figures = select_prompts(model, problems, settings, output)
    terminal.say(", ".join(f"{name} {value:g}" for name, value in figures.items()))
