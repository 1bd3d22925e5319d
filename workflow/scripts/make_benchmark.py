"""Write one benchmark's problems, checked."""

from grpo_replay.machine.job import job

with job(snakemake.log[0], f"benchmark {snakemake.wildcards.benchmark}"):
    from pydantic import TypeAdapter

    from grpo_replay.tasks.benchmarks import make_benchmark
    from grpo_replay.tasks.config import BenchmarkProblems

    settings = TypeAdapter(BenchmarkProblems).validate_python(snakemake.params.settings)
    make_benchmark(settings, snakemake.output.problems)
