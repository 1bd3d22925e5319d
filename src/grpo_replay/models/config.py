"""What a study says of its models: from scratch or pretrained, and a warm start."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from grpo_replay.fields import Strict
from grpo_replay.ranges import (
    Count,
    Layers,
    LearningRate,
    Parameters,
    Seed,
    Tokens,
    Width,
)
from grpo_replay.tasks.config import Commit, DataFile, Repository

MAX_POSITIONS = 1024  # of a model from scratch: tokens of a prompt and its answer together


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


class WarmStart(DataFile):
    """A few supervised steps in the boxed format; every method, and the base row, start from its
    result.
    """

    needs_solutions: ClassVar[bool] = True
    steps: Count
    batch_size: Count
    learning_rate: LearningRate
    max_tokens: Tokens
    seed: Seed
