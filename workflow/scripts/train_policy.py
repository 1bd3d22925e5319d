"""Train one cell, with its run in MLflow."""

from pathlib import Path

from grpo_replay.machine.job import Progress, job
from grpo_replay.machine.made_from import made_from

cell, params, needs = snakemake.wildcards.cell, snakemake.params, snakemake.resources
record = made_from(snakemake.input, snakemake.output.model, params.settings)
with job(snakemake.log[0], f"cell {needs.position} {cell}") as terminal, record:
    terminal.say("training")
    from grpo_replay.machine.gpus import gpus
    from grpo_replay.tracking.live import training_run
    from grpo_replay.training.cell_lock import cell_lock, server_lock
    from grpo_replay.training.launch import train_cell

    output = Path(snakemake.output.model).parent
    task = {"settings": params.settings, "checkpoints": params.checkpoints, "output": str(output)}
    task |= {"start_model": snakemake.input.model, "problems": snakemake.input.problems}
    task |= {"gpus": needs.gpu, "expected_prompts": needs.expected_prompts}
    task["saving"] = {"every": needs.checkpoint_every, "keep": bool(needs.keep_checkpoints)}
    lock, devices = cell_lock(Path(params.checkpoints)), gpus(needs.gpu)
    server = server_lock(params.settings["training"]["rollout_engine"], output.parents[3])
    with lock, server, devices, training_run(params.settings, output.parents[2]) as run:
        train_cell(task, [run, Progress(terminal, params.settings["training"]["steps"])])
