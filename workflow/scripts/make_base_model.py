"""Make the base model of one scale: train it from scratch, or fetch a pretrained one."""

from pathlib import Path

from grpo_replay.machine.job import job

with job(snakemake.log[0], f"base model {snakemake.wildcards.scale}") as terminal:
    from pydantic import TypeAdapter

    from grpo_replay.models.config import Model
    from grpo_replay.models.make import make_base_model
    from grpo_replay.tasks.any_task import task_of
    from grpo_replay.tasks.config import TrainingProblems

    terminal.say("started")
    compared = snakemake.resources.parameters  # 0 of a model that is made here
    settings = snakemake.params.model | ({"parameters": compared} if compared else {})
    model = TypeAdapter(Model).validate_python(settings)
    problems = TypeAdapter(TrainingProblems).validate_python(snakemake.params.problems)
    task = task_of(snakemake.params.get("task"))
    figures = make_base_model(model, problems, Path(snakemake.output.model), task)
    terminal.say(", ".join(f"{name} {value:g}" for name, value in figures.items()))
