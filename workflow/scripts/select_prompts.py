"""A first pass of the start model: keep the problems that it gets right only sometimes."""

from pathlib import Path

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

record = made_from(snakemake.input, snakemake.output.problems, dict(snakemake.params.items()))
with job(snakemake.log[0], f"prompt selection {snakemake.wildcards.scale}") as terminal, record:
    from grpo_replay.evaluation.select_prompts import select_prompts
    from grpo_replay.tasks.any_task import task_of
    from grpo_replay.tasks.config import PromptSelection
    from grpo_replay.tasks.problems import read_problems
    from grpo_replay.tasks.rewards import DEFAULT_REWARDS, rewards_of

    terminal.say("started")
    settings = PromptSelection(**snakemake.params.settings)
    problems = read_problems(snakemake.input.problems)
    model, output = Path(snakemake.input.model), Path(snakemake.output.problems)
    task = task_of(snakemake.params.get("task"))
    weights = snakemake.params.get("rewards", DEFAULT_REWARDS)
    rewards = rewards_of(task, weights, snakemake.params.get("reward_files"))
    figures = select_prompts(model, problems, settings, output, task, rewards)
    terminal.say(", ".join(f"{name} {value:g}" for name, value in figures.items()))
