"""Benchmark files: generated or copied, count and golds checked before a model is loaded."""

from pathlib import Path
from typing import TYPE_CHECKING

from grpo_replay.errors import DataError
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.clock import clock_problems
from grpo_replay.tasks.problems import first, load_problems, with_readable_golds, write_problems

if TYPE_CHECKING:
    from grpo_replay.tasks.config import ClockBenchmarkProblems, FileBenchmarkProblems


def make_benchmark(
    settings: "ClockBenchmarkProblems | FileBenchmarkProblems", output: Path | str
) -> None:
    """Write the problems of a benchmark to `output`.

    A file must hold exactly `n_problems` problems with readable golds, before `limit` keeps the
    first ones: a benchmark that was cut or doubled by accident is never measured.

    Raises ConfigError where the data file is missing, DataError where its content is wrong.
    """
    task = settings.task or DEFAULT_TASK
    if settings.source == "clock":
        problems = clock_problems(
            settings.steps,
            settings.n_problems,
            settings.hours,
            settings.max_step,
            settings.seed,
            split="benchmark",
        )
        generated = [dict(problem) for problem in problems]
        write_problems(output, with_readable_golds("clock", generated, task))
        return
    everything = load_problems(settings, Path(output))
    if len(everything) != settings.n_problems:
        raise DataError(
            f"{settings.file}: expected n_problems = {settings.n_problems}, found "
            f"{len(everything)}; get the whole file, or correct n_problems in the study"
        )
    readable = with_readable_golds(settings.file, everything, task)
    write_problems(output, first(readable, settings.limit))
