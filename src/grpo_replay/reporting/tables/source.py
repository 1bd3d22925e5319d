"""What a table is made from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from grpo_replay.reporting.numbers.conditions import (
    Condition,
    PartialIdentity,
    all_conditions,
    used_scales,
)
from grpo_replay.study.config import Study


@dataclass(frozen=True)
class Source:
    """A study, its scores and its folder of results.

    `config` is what the command of a note has behind `--config`.
    """

    study: Study
    scores: pd.DataFrame
    results: Path
    config: str

    @cached_property
    def conditions(self) -> list[Condition]:
        """Every condition of the study."""
        return all_conditions(self.study)

    @cached_property
    def scales(self) -> list[str]:
        """The scales that have cells, in the order of the study."""
        return used_scales(self.study)

    @cached_property
    def ablation_scales(self) -> list[str]:
        """The scales with the most conditions: where a study ablates (the paper: 1.7B)."""
        count = {scale: sum(c.scale == scale for c in self.conditions) for scale in self.scales}
        return [scale for scale in self.scales if count[scale] == max(count.values())]

    def at(self, scale: str, row: PartialIdentity) -> Condition:
        """The condition of a scale in a row, the one that varies least where several are; one
        without cells where the study's grid has none: all its numbers are dashes.
        """
        found = [c for c in self.conditions if c.scale == scale and row.holds(c.cells[0])]
        if found:
            return min(found, key=lambda c: len(c.varied))
        return Condition(scale, row.name, row.on_axes)
