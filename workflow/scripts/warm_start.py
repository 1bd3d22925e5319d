"""Supervised steps in the boxed format: the model that every method of a scale starts from."""

from pathlib import Path

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

record = made_from(snakemake.input, snakemake.output.model, dict(snakemake.params.items()))
with job(snakemake.log[0], f"warm start {snakemake.wildcards.scale}") as terminal, record:
    import torch

    from grpo_replay.machine.gpus import gpus
    from grpo_replay.models.config import WarmStart
    from grpo_replay.models.warm_start import warm_start
    from grpo_replay.tasks.any_task import task_of
    from grpo_replay.tasks.problems import load_problems

    terminal.say("started")
    torch.set_num_threads(2)  # whatever --cores is: the number of threads decides the last bits
    settings = WarmStart(**snakemake.params.settings)
    model, output = Path(snakemake.input.model), Path(snakemake.output.model)
    task = task_of(snakemake.params.get("task"))
    with gpus(snakemake.resources.gpu):
        figures = warm_start(model, load_problems(settings, output), settings, output, task)
    terminal.say(", ".join(f"{name} {value:g}" for name, value in figures.items()))
