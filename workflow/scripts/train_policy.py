"""Train one cell, with its run in MLflow."""

from pathlib import Path

from grpo_replay.console import Progress, job

cell, params = snakemake.wildcards.cell, snakemake.params
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}") as terminal:
    terminal.say("training")
    from grpo_replay.devices import gpus
    from grpo_replay.tracking import training_run
    from grpo_replay.training.launch import train_cell

    needs, settings = snakemake.resources, params.settings
    saving = {"every": needs.checkpoint_every, "keep": bool(needs.keep_checkpoints)}
    job = {"settings": settings, "saving": saving, "checkpoints": params.checkpoints}
    job |= {"start_model": snakemake.input.model, "problems": snakemake.input.problems}
    job["output"] = str(Path(snakemake.output.model).parent)
    progress = Progress(terminal, settings["training"]["steps"])
    with gpus(needs.gpu), training_run(settings) as run:
        train_cell(job, [run, progress])
