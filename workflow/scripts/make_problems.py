"""Write the study's training problems."""

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

record = made_from(snakemake.input, snakemake.output.problems, dict(snakemake.params.items()))
with job(snakemake.log[0], "problems"), record:
    from pydantic import TypeAdapter

    from grpo_replay.tasks.any_task import task_of
    from grpo_replay.tasks.config import TrainingProblems
    from grpo_replay.tasks.problems import make_problems

    settings = TypeAdapter(TrainingProblems).validate_python(snakemake.params.settings)
    make_problems(settings, snakemake.output.problems, task_of(snakemake.params.get("task")))
