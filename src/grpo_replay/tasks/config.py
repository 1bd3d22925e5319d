"""What a study says of its problems and benchmarks: generated, from a file, or from the Hub."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from grpo_replay.fields import Strict
from grpo_replay.ranges import (
    ChainLength,
    Count,
    CountOrZero,
    FileName,
    Fraction,
    Generated,
    Hours,
    Line,
    MaxStep,
    Name,
    Rollouts,
    Samples,
    Seed,
    Tokens,
)
from grpo_replay.tasks.any_task import AnyTask

Repository = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")]


RowsFile = Annotated[str, Field(pattern=r"^(\w[^/]*/)*\w[^/]*\.(jsonl|json|parquet)$")]


Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class ClockProblems(Strict):
    """Generated clock arithmetic (the nano study); the error rates shape the base model's worked
    solutions.
    """

    source: Literal["clock"]
    hours: Hours
    max_step: MaxStep
    steps: list[ChainLength] = Field(min_length=1, max_length=26)
    count: Generated
    seed: Seed
    wrap_error: Fraction
    random_error: Fraction


class HubFile(Strict):
    """A file of a data set on the Hub, pinned to a commit: .jsonl, .json (a list) or .parquet.

    Its rows have the columns `problem` and `answer`, and those of `id_column`; without one the
    number of the row is its id.
    """

    repo: Repository
    revision: Commit
    file: RowsFile
    id_column: str | None = None


class DataFile(Strict):
    """A JSON Lines file (fields id, problem, answer, optionally solution) under `GRPO_REPLAY_DATA`;
    where that is unset the same problems come from the Hub.
    """

    needs_solutions: ClassVar[bool] = False
    file: FileName
    hub: HubFile | None = None


class FileProblems(DataFile):
    """Training problems; at most `max_dropped` rows without a usable answer are left out."""

    source: Literal["file"]
    limit: Count | None = None
    max_dropped: CountOrZero = 0


class BenchmarkTask(Strict):
    """A benchmark may have a task of its own: its prompt and its verifiers."""

    task: AnyTask | None = None

    @property
    def chance(self) -> float:
        """Accuracy in percent of an answer that is drawn at random, as far as the problems tell."""
        return 0.0


class ClockBenchmarkProblems(BenchmarkTask):
    """The problems of a generated benchmark: chains of one length."""

    source: Literal["clock"]
    hours: Hours
    max_step: MaxStep
    steps: ChainLength
    n_problems: Generated
    seed: Seed
    limit: None = None


class ClockBenchmark(ClockBenchmarkProblems):
    """A generated benchmark: its problems, its title, and how often each is answered."""

    title: Line
    k: Samples

    @property
    def chance(self) -> float:
        """Accuracy in percent of an answer that is drawn at random."""
        return 100.0 / self.hours


class FileBenchmarkProblems(DataFile, BenchmarkTask):
    """The problems of a benchmark; `n_problems` is checked on loading, `limit` keeps the first
    ones.
    """

    source: Literal["file"]
    n_problems: Count
    limit: Count | None = None


class FileBenchmark(FileBenchmarkProblems):
    """A benchmark: its problems, its title, and how often each is answered."""

    title: Line
    k: Samples


TrainingProblems = Annotated[ClockProblems | FileProblems, Field(discriminator="source")]


Benchmark = Annotated[ClockBenchmark | FileBenchmark, Field(discriminator="source")]


BenchmarkProblems = Annotated[
    ClockBenchmarkProblems | FileBenchmarkProblems, Field(discriminator="source")
]


class PromptSelection(Strict):
    """A first pass of the start model over candidate problems, keeping those whose group of
    rollouts is mixed.
    """

    candidates: Count
    rollouts: Rollouts
    max_completion_tokens: Tokens
    keep: Count
    seed: Seed

    @model_validator(mode="after")
    def _candidates_suffice(self) -> "PromptSelection":
        if self.keep > self.candidates:
            raise ValueError(f"keep {self.keep} is more than the {self.candidates} candidates")
        return self


def titles_differ(benchmarks: dict[str, Benchmark]) -> dict[str, Benchmark]:
    """Refuse two benchmarks of one title: tables and figures would show them as one."""
    keys: dict[str, str] = {}
    for key, benchmark in benchmarks.items():
        other = keys.setdefault(" ".join(benchmark.title.split()), key)
        if other != key:
            raise ValueError(
                f"{other}.title and {key}.title are both {benchmark.title!r}: give each its own"
            )
    return benchmarks


Benchmarks = Annotated[dict[Name, Benchmark], Field(min_length=1), AfterValidator(titles_differ)]
