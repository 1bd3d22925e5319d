"""What each table and figure reads of a study, held against the paper's and the cells' own word."""

from pathlib import Path

import pytest

from grpo_replay.planning.cells_by_table import cells_read
from grpo_replay.reporting.paper.printed_cells import tables_of
from grpo_replay.study.cells import expand
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study


def load(name: str) -> Study:
    return load_study(Path(__file__).parents[2] / "config" / "studies" / f"{name}.yaml")


def test_a_table_reads_its_references_too() -> None:
    wanted = {1: 12, 2: 5, 3: 9, 4: 6, 5: 15, 6: 6, 8: 3, 9: 5, 10: 6, 11: 3, 12: 6, 13: 13}
    read = cells_read(load("paper"))
    assert {name: len(cells) for name, cells in read.items()} == {
        **{f"table{n:02d}": count for n, count in wanted.items()},
        "figure2": 6,
        "figure3": 4,
    }
    assert "1.7B/grpo-seed42" in read["table02"] & read["table13"]
    assert {name for name in read if "4B/base" in read[name]} == {"table05", "table10"}


@pytest.mark.parametrize("name", ["paper", "paper_rehearsal"])
def test_a_cell_names_the_tables_that_read_it(name: str) -> None:
    study = load(name)
    read = cells_read(study)
    for cell in expand(study).values():
        tables = [t for t in read if t.startswith("table") and cell.cell in read[t]]
        assert tables_of(cell) == tables, cell.cell


def test_ablations_read_the_scales_that_a_study_ablates() -> None:
    read = cells_read(load("nano"))
    assert {cell.split("/")[0] for cell in read["table02"]} == {"s"}
    assert len(read["table02"]) == len(read["table13"]) == 5
