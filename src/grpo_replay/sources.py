"""Sections of a study that say where problems, benchmarks and models come from.

Importing this module must stay cheap, as config.py's.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from grpo_replay.ranges import (
    ChainLength,
    Count,
    CountOrZero,
    FileName,
    Fraction,
    Generated,
    Hours,
    Layers,
    LearningRate,
    Line,
    MaxStep,
    Name,
    Parameters,
    Rollouts,
    Samples,
    Seed,
    Tokens,
    Width,
)

Repository = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")]
RowsFile = Annotated[str, Field(pattern=r"^(\w[^/]*/)*\w[^/]*\.(jsonl|json|parquet)$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]

MAX_POSITIONS = 1024  # of a model from scratch: tokens of a prompt and its answer together


class Strict(BaseModel):
    """Base of every section: frozen, and an unknown key is an error, not a silent default; true is
    no number, and neither is the text "1".
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


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

    file: FileName
    hub: HubFile | None = None


class FileProblems(DataFile):
    """Training problems; at most `max_dropped` rows without a usable answer are left out."""

    source: Literal["file"]
    limit: Count | None = None
    max_dropped: CountOrZero = 0


class ClockBenchmarkProblems(Strict):
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


class FileBenchmarkProblems(DataFile):
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

    @property
    def chance(self) -> float:
        """Free-form answers: a random one is never right."""
        return 0.0


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


class FromScratchModel(Strict):
    """A small Qwen3-architecture model that the workflow trains on worked solutions with errors."""

    source: Literal["from_scratch"]
    hidden_size: Width
    layers: Layers
    heads: Width
    kv_heads: Width
    intermediate_size: Width
    updates: Count
    texts_per_update: Count
    learning_rate: LearningRate
    seed: Seed

    @model_validator(mode="after")
    def _heads_divide(self) -> "FromScratchModel":
        if self.hidden_size % self.heads or self.heads % self.kv_heads:
            raise ValueError("hidden_size must be a multiple of heads, heads of kv_heads")
        if self.hidden_size // self.heads % 2:  # rotary positions turn pairs of numbers
            raise ValueError(
                f"hidden_size / heads must be even, found {self.hidden_size // self.heads}"
            )
        return self


class PretrainedModel(Strict):
    """A model from the Hub by pinned revision, or the folder of its name under
    `GRPO_REPLAY_MODELS`; the number of its parameters is for the plan's arithmetic.
    """

    source: Literal["pretrained"]
    name: Repository
    revision: Commit
    parameters: Parameters


Model = Annotated[FromScratchModel | PretrainedModel, Field(discriminator="source")]


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


class WarmStart(DataFile):
    """A few supervised steps in the boxed format; every method, and the base row, start from its
    result.
    """

    steps: Count
    batch_size: Count
    learning_rate: LearningRate
    max_tokens: Tokens
    seed: Seed
