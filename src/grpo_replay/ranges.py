"""What a number or a name of a study may be: whatever lies outside cannot work, or means nothing.

The bounds are wide: they refuse slips (a digit too many, a unit mistaken) and what fails in the
middle of a job. `oddities` names what may be meant and is unusual.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field


def _plain_zero(value: float) -> float:
    """-0.0 is 0.0: two cells of one setting otherwise."""
    return value + 0.0


def _no_wheel(name: str) -> str:
    """Snakemake takes a name that ends in the same letters twenty times for a rule without end."""
    if re.search(r"(.+)\1{19}$", name):
        raise ValueError("ends in the same letters twenty times: shorten it")
    return name


# Names become parts of file names (255 bytes at most), several in one.
Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64),
    AfterValidator(_no_wheel),
]
Line = Annotated[str, Field(max_length=200)]  # a title, in tables and figures
FileName = Annotated[str, Field(min_length=1, max_length=1000)]

# numpy and transformers take what is below 2^32; each process of a training adds its number.
Seed = Annotated[int, Field(ge=0, lt=2**32 - 4096)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
CountOrZero = Annotated[int, Field(ge=0, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=10_000_000)]
# Groups of sequences and samples of a problem: seeds of the answers are spaced by them.
Batch = Annotated[int, Field(ge=1, le=100_000)]
Samples = Annotated[int, Field(ge=1, le=10_000)]
Rollouts = Annotated[int, Field(ge=2, le=10_000)]
Rows = Annotated[int, Field(ge=1, le=1_000_000_000)]
Devices = Annotated[int, Field(ge=0, le=4096)]
Parameters = Annotated[int, Field(ge=1, le=10**13)]
# Clock problems are drawn one by one, and are different.
Generated = Annotated[int, Field(ge=1, le=100_000)]
MaxStep = Annotated[int, Field(ge=1, le=1000)]
Hours = Annotated[int, Field(ge=2, le=10)]
ChainLength = Annotated[int, Field(ge=1, le=26)]  # moves are named A to Z
# Sizes of a model from scratch.
Width = Annotated[int, Field(ge=1, le=65_536)]
Layers = Annotated[int, Field(ge=1, le=512)]

Fraction = Annotated[float, Field(ge=0, le=1), AfterValidator(_plain_zero)]
Beta = Annotated[float, Field(ge=0, lt=1), AfterValidator(_plain_zero)]  # AdamW divides by 1 - beta
LearningRate = Annotated[float, Field(ge=1e-12, le=0.5)]
WeightDecay = Annotated[float, Field(ge=0, le=10), AfterValidator(_plain_zero)]
Ratio = Annotated[float, Field(ge=0, le=100), AfterValidator(_plain_zero)]
Epsilon = Annotated[float, Field(ge=0, le=1), AfterValidator(_plain_zero)]
PositiveEpsilon = Annotated[float, Field(ge=1e-30, le=1)]  # float32 has nothing below 1e-38
Bound = Annotated[float, Field(ge=1e-6, le=1e9)]  # 1e9: as good as none
Temperature = Annotated[float, Field(ge=1e-3, le=100)]
TopP = Annotated[float, Field(ge=1e-6, le=1)]
Seconds = Annotated[float, Field(ge=0.01, le=86_400)]
JobHours = Annotated[float, Field(ge=1e-6, le=100_000)]
JobHoursOrZero = Annotated[float, Field(ge=0, le=100_000), AfterValidator(_plain_zero)]
Gigabytes = Annotated[float, Field(ge=0.1, le=100_000)]
