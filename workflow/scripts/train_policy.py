"""Train one cell, with its run in MLflow."""

from pathlib import Path

from grpo_replay.console import Progress, job

cell, params = snakemake.wildcards.cell, snakemake.params
with job(snakemake.log[0], f"cell {snakemake.resources.position} {cell}") as terminal:
    terminal.say("training")
    from grpo_replay.config import Checkpoints
    from grpo_replay.tracking.live import training_run
    from grpo_replay.training.run_training import train_policy

    steps, needs = params.settings["training"]["steps"], snakemake.resources
    saving = Checkpoints(every=needs.checkpoint_every, keep=bool(needs.keep_checkpoints))
    with training_run(params.settings, Path(snakemake.output.model).parents[3]) as run:
        train_policy(
            params.settings,
            Path(snakemake.input.model),
            Path(snakemake.input.problems),
            Path(snakemake.output.model).parent,
            Path(params.checkpoints),
            saving,
            watchers=[run, Progress(terminal, steps)],
        )
