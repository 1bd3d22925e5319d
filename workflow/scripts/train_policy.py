"""Train one cell, with its run in MLflow."""

from pathlib import Path

from grpo_replay.console import Progress, job

cell, params, needs = snakemake.wildcards.cell, snakemake.params, snakemake.resources
with job(snakemake.log[0], f"cell {needs.position} {cell}") as terminal:
    terminal.say("training")
    from grpo_replay.devices import gpus
    from grpo_replay.tracking.live import training_run
    from grpo_replay.training.cell_lock import cell_lock
    from grpo_replay.training.launch import train_cell

    settings = params.settings
    saving = {"every": needs.checkpoint_every, "keep": bool(needs.keep_checkpoints)}
    task = {"settings": settings, "saving": saving, "checkpoints": params.checkpoints}
    task |= {"start_model": snakemake.input.model, "problems": snakemake.input.problems}
    task["output"] = str(Path(snakemake.output.model).parent)
    progress = Progress(terminal, settings["training"]["steps"])
    results = Path(snakemake.output.model).parents[3]
    lock = cell_lock(Path(params.checkpoints))
    with lock, gpus(needs.gpu), training_run(settings, results) as run:
        train_cell(task, [run, progress])
