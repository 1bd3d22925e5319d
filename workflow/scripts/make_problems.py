"""Write the study's training problems."""

from grpo_replay.console import job

with job(snakemake.log[0], "problems"):
    from pydantic import TypeAdapter

    from grpo_replay.problems import make_problems
    from grpo_replay.sources import TrainingProblems

    settings = TypeAdapter(TrainingProblems).validate_python(snakemake.params.settings)
    make_problems(settings, snakemake.output.problems)
