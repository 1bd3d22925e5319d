"""Write one benchmark's problems, checked."""

from grpo_replay.machine.job import job
from grpo_replay.machine.made_from import made_from

record = made_from(snakemake.input, snakemake.output.problems, snakemake.params.settings)
with job(snakemake.log[0], f"benchmark {snakemake.wildcards.benchmark}"), record:
    from pydantic import TypeAdapter

    from grpo_replay.tasks.benchmarks import make_benchmark
    from grpo_replay.tasks.config import BenchmarkProblems

    settings = TypeAdapter(BenchmarkProblems).validate_python(snakemake.params.settings)
    make_benchmark(settings, snakemake.output.problems)
