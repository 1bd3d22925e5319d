"""Claims as data: sentences about methods, each with the contrast and the metric that judge it.

The paper's claims stand in reporting/claims.yaml; a study adds its own under `claims`. Importing
this module must stay cheap: Snakemake reads it before every run.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from grpo_replay.fields import Strict
from grpo_replay.methods.method import Setting
from grpo_replay.ranges import Line, Name

ClaimMetric = Literal[
    "avg_at_k",
    "pass_at_k",
    "mean_length",
    "mean_length_correct",
    "mean_length_incorrect",
    "aes",
    "clip_fresh",
    "clip_replay",
    "drift",
]
OVER_SCALE = "scale"


class Side(Strict):
    """The models that one side of a claim is about: a method of the study by its name, or every
    method with these settings by path (its other settings are at their defaults, or axes of
    replay); `vary` names further settings.
    """

    method: Name | None = None
    settings: dict[str, Setting] | None = None
    vary: dict[str, Setting] = {}

    @model_validator(mode="after")
    def _named_once(self) -> "Side":
        if (self.method is None) == (self.settings is None):
            raise ValueError("give method (a name of this study), or settings (by path)")
        return self


class Pair(Strict):
    """One condition against another."""

    kind: Literal["pair"]
    of: Side
    against: Side

    @property
    def sides(self) -> list[Side]:
        """All conditions, the claimed one first."""
        return [self.of, self.against]


class BestOf(Strict):
    """One condition against each of several."""

    kind: Literal["best_of"]
    of: Side
    against: list[Side] = Field(min_length=2)

    @property
    def sides(self) -> list[Side]:
        """All conditions, the claimed one first."""
        return [self.of, *self.against]


class Trend(Strict):
    """A value that rises over the scales, or over a setting: that of a condition, or its lead over
    another.
    """

    kind: Literal["trend"]
    of: Side
    against: Side | None = None
    over: Annotated[str, Field(min_length=1, max_length=200)]  # scale, or the path of a setting

    @property
    def sides(self) -> list[Side]:
        """All conditions, the claimed one first."""
        return [self.of, *([self.against] if self.against else [])]


class Claim(Strict):
    """A sentence, and what would make it right.

    `expect` is how `of` compares with the other side in the metric; `margin`, in the metric's unit,
    is a difference that does not matter. `scales` are those at which it is claimed.
    """

    claim: Line
    where: Line = ""
    contrast: Annotated[Pair | BestOf | Trend, Field(discriminator="kind")]
    metric: ClaimMetric
    expect: Literal["higher", "lower"] = "higher"
    scales: Literal["every", "largest"] | Annotated[list[Name], Field(min_length=1)] = "every"
    margin: Annotated[float, Field(gt=0, le=1e9)]

    @property
    def sign(self) -> int:
        """What makes a difference above 0 if the claim is right."""
        return 1 if self.expect == "higher" else -1
