"""Write one benchmark's problems, checked."""

from grpo_replay.console import job

with job(snakemake.log[0], f"benchmark {snakemake.wildcards.benchmark}"):
    from pydantic import TypeAdapter

    from grpo_replay.evaluation.benchmarks import make_benchmark
    from grpo_replay.sources import BenchmarkProblems

    settings = TypeAdapter(BenchmarkProblems).validate_python(snakemake.params.settings)
    make_benchmark(settings, snakemake.output.problems)
