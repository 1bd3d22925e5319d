"""One number of a table: value, interval, mark, and of how much it is made."""

from dataclasses import dataclass

DASH = "–"


@dataclass(frozen=True)
class Estimate:
    """A value with its intervals, how many problems (or steps) it rests on, and its marks.

    `low` and `high` are over problems, `seeds_low` and `seeds_high` over seeds where several
    differ; None where there is no interval: if there is neither, `remark` says why ("n=1").
    `p_problems` and `p_seeds` are Holm-adjusted p-values of the difference from GRPO.
    """

    value: float
    low: float | None = None
    high: float | None = None
    seeds_low: float | None = None
    seeds_high: float | None = None
    n: int | None = None
    remark: str = ""
    marks: str = ""
    p_problems: float | None = None
    p_seeds: float | None = None

    @property
    def shown_interval(self) -> tuple[float, float] | None:
        """The interval that people see: over seeds where there is one, else over problems."""
        if self.seeds_low is not None and self.seeds_high is not None:
            return self.seeds_low, self.seeds_high
        return None if self.low is None or self.high is None else (self.low, self.high)
