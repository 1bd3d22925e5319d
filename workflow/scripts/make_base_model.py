"""Make the base model of one scale: train it from scratch, or fetch a pretrained one."""

from pathlib import Path

from grpo_replay.console import job

with job(snakemake.log[0], f"base model {snakemake.wildcards.scale}") as terminal:
    from pydantic import TypeAdapter

    from grpo_replay.sources import Model, TrainingProblems
    from grpo_replay.training.models import make_base_model

    terminal.say("started")
    model = TypeAdapter(Model).validate_python(snakemake.params.model)
    problems = TypeAdapter(TrainingProblems).validate_python(snakemake.params.problems)
    figures = make_base_model(model, problems, Path(snakemake.output.model))
    terminal.say(", ".join(f"{name} {value:g}" for name, value in figures.items()))
