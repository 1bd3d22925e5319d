"""Which cells of a study each of the paper's tables and figures reads, asked of their builders."""

from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from grpo_replay.reporting.figures.curves import age_groups, group_conditions
from grpo_replay.reporting.figures.training import figure2_groups
from grpo_replay.reporting.numbers.conditions import Condition, PartialIdentity
from grpo_replay.reporting.paper.catalogue import PAPER_TABLES
from grpo_replay.reporting.tables.source import Source
from grpo_replay.results.scores import SCHEMA
from grpo_replay.study.config import Study


@dataclass(frozen=True)
class _Asked(Source):
    """A source without results, which notes the conditions that a table asks for."""

    asked: list[Condition] = field(default_factory=list)

    def at(self, scale: str, row: PartialIdentity) -> Condition:
        condition = super().at(scale, row)
        self.asked.append(condition)
        return condition


def cells_read(study: Study) -> dict[str, set[str]]:
    """Ids of the cells behind each of Tables 1 to 13 and Figures 2 and 3, references included;
    what reads no cell (Table 7) is left out.
    """
    asked = {build.__name__: _asked_by(build, study) for build in PAPER_TABLES}
    asked["figure2"] = group_conditions(figure2_groups(study))
    asked["figure3"] = group_conditions(age_groups(study))
    read = {
        name: {c.cell for s in conditions for c in s.cells} for name, conditions in asked.items()
    }
    return {name: cells for name, cells in read.items() if cells}


def _asked_by(build, study: Study) -> list[Condition]:
    source = _Asked(study, SCHEMA.empty_table().to_pandas(), Path(), config="")
    with redirect_stderr(StringIO()):  # where builders say that cells are missing: all are
        build(source)
    return source.asked
