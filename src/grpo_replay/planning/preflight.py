"""What can be known to be missing or wrong before the first job starts."""

import shutil
from functools import partial
from pathlib import Path

from grpo_replay.errors import ConfigError, DataError, GrpoReplayError
from grpo_replay.models.config import PretrainedModel, WarmStart
from grpo_replay.models.local import check_local_model
from grpo_replay.study.config import Study
from grpo_replay.tasks.clock import check_problems as check_clock_problems
from grpo_replay.tasks.config import ClockBenchmark, ClockProblems, FileBenchmark, FileProblems
from grpo_replay.tasks.problems import data_file, read_source

Source = ClockProblems | FileProblems | ClockBenchmark | FileBenchmark | WarmStart


def check_conda(asked: bool) -> None:
    """Say what else there is, before Snakemake looks for a conda that is absent.

    Raises:
        ConfigError: where rules are to run in conda environments, and no conda is on the PATH.
    """
    if asked and not shutil.which("conda"):
        raise ConfigError(
            "--use-conda: there is no conda on the PATH: install it, or call `make run`, or run "
            "without --use-conda in an environment of your own (pip install -r requirements.lock)"
        )


def source_files(source: Source) -> list[str]:
    """The files outside the results that a section of the study reads."""
    if isinstance(source, ClockProblems | ClockBenchmark):
        return []
    path = data_file(source)
    return [str(path.resolve())] if path else []


def check_inputs(study_file: Path, study: Study, tokenizers: bool = True) -> None:
    """Look at every file and model folder that the study names, at its claims, and at the
    tokenizers unless a job reads the study again: looking costs seconds.

    Raises:
        ConfigError: listing everything that is missing or wrong, each with its key.
    """
    sources: dict[str, Source] = {"problems": study.problems}
    if study.warm_start:
        sources["warm_start"] = study.warm_start
    sources |= {f"benchmarks.{name}": benchmark for name, benchmark in study.benchmarks.items()}
    check_model = partial(check_local_model, tokenizer=tokenizers)
    complaints = [_complaint(_check_source, key, source) for key, source in sources.items()]
    complaints += [
        _complaint(check_model, f"scales.{name}.model", scale.model)
        for name, scale in study.scales.items()
        if isinstance(scale.model, PretrainedModel)
    ]
    complaints += _claim_complaints(study)
    found = [f"{study_file}: {complaint}" for complaint in complaints if complaint]
    if found:
        raise ConfigError("\n".join(found))


def _claim_complaints(study: Study) -> list[str | None]:
    if not study.claims:
        return []
    # Loads pandas, which a study without claims does not wait for.
    from grpo_replay.reporting.numbers.placed_claims import check_claim

    check = partial(check_claim, study)
    return [_complaint(check, f"claims.{i}", claim) for i, claim in enumerate(study.claims)]


def _complaint(check, key: str, argument) -> str | None:
    try:
        check(argument)
    except GrpoReplayError as error:
        return f"{key}: {error}"
    return None


def _check_source(source: Source) -> None:
    if isinstance(source, ClockBenchmark):
        sizes = (source.n_problems, source.hours, source.max_step)
        check_clock_problems(source.steps, *sizes, "benchmark")
    elif isinstance(source, ClockProblems):
        check_clock_problems(source.steps, source.count, source.hours, source.max_step)
    elif path := data_file(source):
        problems = read_source(source, path)
        if isinstance(source, FileBenchmark) and len(problems) != source.n_problems:
            raise DataError(
                f"{path} has {len(problems)} problems, n_problems says {source.n_problems}: "
                "put the right file there, or correct n_problems"
            )
