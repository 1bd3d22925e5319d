"""Sections of a study that say where problems, benchmarks and models come from.

Importing this module must stay cheap, as config.py's.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Repository = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")]
RowsFile = Annotated[str, Field(pattern=r"^(\w[^/]*/)*\w[^/]*\.(jsonl|json|parquet)$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
NonNegativeInt = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
ChainLength = Annotated[int, Field(ge=1, le=26)]  # moves are named A to Z


class Strict(BaseModel):
    """Base of every section: frozen, and an unknown key is an error, not a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ClockProblems(Strict):
    """Generated clock arithmetic (the nano study); the error rates shape the base model's worked
    solutions.
    """

    source: Literal["clock"]
    hours: Annotated[int, Field(ge=2, le=10)]
    max_step: PositiveInt
    steps: list[ChainLength] = Field(min_length=1)
    count: PositiveInt
    seed: NonNegativeInt
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

    file: str
    hub: HubFile | None = None


class FileProblems(DataFile):
    """Training problems; at most `max_dropped` rows without a usable answer are left out."""

    source: Literal["file"]
    limit: PositiveInt | None = None
    max_dropped: NonNegativeInt = 0


class ClockBenchmark(Strict):
    """A generated benchmark: chains of one length."""

    source: Literal["clock"]
    title: str
    hours: Annotated[int, Field(ge=2, le=10)]
    max_step: PositiveInt
    steps: ChainLength
    n_problems: PositiveInt
    k: PositiveInt
    seed: NonNegativeInt
    limit: None = None

    @property
    def chance(self) -> float:
        """Accuracy in percent of an answer that is drawn at random."""
        return 100.0 / self.hours


class FileBenchmark(DataFile):
    """A benchmark; `n_problems` is checked on loading, `limit` keeps the first ones."""

    source: Literal["file"]
    title: str
    n_problems: PositiveInt
    k: PositiveInt
    limit: PositiveInt | None = None

    @property
    def chance(self) -> float:
        """Free-form answers: a random one is never right."""
        return 0.0


TrainingProblems = Annotated[ClockProblems | FileProblems, Field(discriminator="source")]
Benchmark = Annotated[ClockBenchmark | FileBenchmark, Field(discriminator="source")]


class PromptSelection(Strict):
    """A first pass of the start model over candidate problems, keeping those whose group of
    rollouts is mixed.
    """

    candidates: PositiveInt
    rollouts: Annotated[int, Field(ge=2)]
    max_completion_tokens: PositiveInt
    keep: PositiveInt
    seed: NonNegativeInt


class FromScratchModel(Strict):
    """A small Qwen3-architecture model that the workflow trains on worked solutions with errors."""

    source: Literal["from_scratch"]
    hidden_size: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt
    intermediate_size: PositiveInt
    updates: PositiveInt
    texts_per_update: PositiveInt
    learning_rate: PositiveFloat
    seed: NonNegativeInt

    @model_validator(mode="after")
    def _heads_divide(self) -> "FromScratchModel":
        if self.hidden_size % self.heads or self.heads % self.kv_heads:
            raise ValueError("hidden_size must be a multiple of heads, heads of kv_heads")
        return self


class PretrainedModel(Strict):
    """A model from the Hub by pinned revision, or the folder of its name under
    `GRPO_REPLAY_MODELS`; the number of its parameters is for the plan's arithmetic.
    """

    source: Literal["pretrained"]
    name: Repository
    revision: Commit
    parameters: PositiveInt


Model = Annotated[FromScratchModel | PretrainedModel, Field(discriminator="source")]


class WarmStart(DataFile):
    """A few supervised steps in the boxed format; every method, and the base row, start from its
    result.
    """

    steps: PositiveInt
    batch_size: PositiveInt
    learning_rate: PositiveFloat
    max_tokens: PositiveInt
    seed: NonNegativeInt
