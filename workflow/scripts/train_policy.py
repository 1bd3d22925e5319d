"""Train one cell, with its run in MLflow."""

from pathlib import Path

from grpo_replay.console import Progress, job

cell, params, needs = snakemake.wildcards.cell, snakemake.params, snakemake.resources
with job(snakemake.log[0], f"cell {needs.position} {cell}") as terminal:
    terminal.say("training")
    from grpo_replay.config import Checkpoints
    from grpo_replay.tracking import training_run
    from grpo_replay.training.cell_lock import cell_lock
    from grpo_replay.training.run_training import train_policy

    saving = Checkpoints(every=needs.checkpoint_every, keep=bool(needs.keep_checkpoints))
    with cell_lock(Path(params.checkpoints)), training_run(params.settings) as run:
        train_policy(
            params.settings,
            Path(snakemake.input.model),
            Path(snakemake.input.problems),
            Path(snakemake.output.model).parent,
            Path(params.checkpoints),
            saving,
            watchers=[run, Progress(terminal, params.settings["training"]["steps"])],
        )
