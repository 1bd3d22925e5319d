"""A further reward, with TRL's signature."""

from typing import Any


def short(completions: list, **columns: Any) -> list[float]:
    """1 less a hundredth a character of each completion; every column of the problems comes in."""
    return [1.0 - len(completion[0]["content"]) / 100 for completion in completions]
