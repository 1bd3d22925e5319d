"""The published-data run: the paper's numbers through the code that makes our tables."""

import pytest

from grpo_replay.reporting.paper import consistency, efficiency, published
from grpo_replay.reporting.paper.consistency import AGREES, DIFFERS, IMPOSSIBLE, UNKNOWN
from grpo_replay.reporting.tables.table import to_csv

CHECKS = consistency.checks()


def of(table: str, quantity: str) -> list[consistency.Check]:
    return [c for c in CHECKS if c.table == table and c.quantity == quantity]


def test_table_13_comes_back_whole():
    lines = published.rows("table13")
    for column in ("delta_length_percent", "delta_accuracy_percent", "aes"):
        found = of("table13", column)
        assert [c.printed for c in found] == [line[column] for line in lines]
        assert {c.verdict for c in found} == {AGREES}
    tolerance = {"delta_length_percent": 0.1, "delta_accuracy_percent": 0.1, "aes": 0.002}
    for column, allowed in tolerance.items():
        for check in of("table13", column):
            assert check.recomputed == pytest.approx(float(check.printed), abs=allowed)
    assert [c.recomputed for c in of("table13", "rank")] == list(range(1, 13))


def test_table_5_comes_back_where_lengths_are_published():
    found = {c.line: c for c in of("table05", "AES")}
    known = {line for line, check in found.items() if check.verdict == AGREES}
    assert known == {
        *(f"GRPO against base, {scale}" for scale in published.SCALES),
        "ours against base, 1.7B",
        "ours against GRPO, 1.7B",
    }
    assert len(found) == 15 and {found[n].verdict for n in found.keys() - known} == {UNKNOWN}
    assert "no length of ours at 4B" in found["ours against base, 4B"].remark
    for line in known:
        assert found[line].recomputed == pytest.approx(float(found[line].printed), abs=0.002)


def test_both_references_of_ours_imply_one_length():
    found = of("table05", "length in tokens that both references imply")
    assert [c.line for c in found] == ["ours, 0.6B", "ours, 1.7B", "ours, 4B"]
    assert {c.verdict for c in found} == {AGREES}
    # Table 13 prints the one at 1.7B.
    assert [c.recomputed for c in found] == pytest.approx([3586, 1938, 6888], abs=4)
    length = consistency.implied_length(0.266, 16.58, 15.75, 2174)
    assert efficiency.efficiency(16.58, length, 15.75, 2174).aes == pytest.approx(0.266)


def test_means_survivors_and_training_lengths_come_back():
    for table, quantity, count in (
        ("table01", "avg", 12),
        ("table01", "pass", 12),
        ("table08", "b_fresh_surviving", 3),
        ("table12", "delta_percent", 3),
    ):
        found = of(table, quantity)
        assert len(found) == count and {c.verdict for c in found} == {AGREES}, table
    assert [c.recomputed for c in of("table08", "b_fresh_surviving")] == pytest.approx(
        [86.5, 112.7, 124.9], abs=0.08
    )


def test_two_lines_of_table_1_cannot_exist():
    lines = {c.line for c in CHECKS if c.verdict == IMPOSSIBLE}
    assert lines == {"1.7B uniform (pool)", "4B uniform (pool)"}


def test_what_is_not_published_is_said():
    assert {c.verdict for c in CHECKS if c.table == "table06"} == {UNKNOWN}
    assert not [c for c in CHECKS if c.verdict == DIFFERS]


def test_cells_that_stand_in_several_tables_have_one_number():
    shared = {c.line: c for c in CHECKS if c.quantity.startswith("one cell")}
    assert shared["1.7B ours, τ_max 10, r 0.5, α 0.5"].quantity.endswith("1, 2, 3, 4, 9, 13")
    assert shared["1.7B GRPO"].quantity.endswith("1, 3, 4, 9, 10")
    assert len(shared) == 15 and {c.verdict for c in shared.values()} == {AGREES}


def test_a_number_comes_back_within_the_rounding_of_its_inputs_and_no_further():
    def mean(*values: float) -> float:
        return sum(values) / len(values)

    # 1.005 to 1.015 and 2.005 to 2.015: means from 1.505 to 1.515
    assert consistency.comes_back("1.51", mean, ["1.01", "2.01"])
    assert consistency.comes_back("1.52", mean, ["1.01", "2.01"])
    assert not consistency.comes_back("1.53", mean, ["1.01", "2.01"])
    wrong = consistency._check("t", "l", "q", "1.53", mean, ["1.01", "2.01"])
    assert (wrong.verdict, wrong.recomputed) == (DIFFERS, pytest.approx(1.51))


def test_a_disagreement_of_the_paper_is_told(monkeypatch):
    lines = published.rows("table13")
    changed = [line | {"aes": "0.300"} if line["rank"] == "1" else line for line in lines]
    rows = published.rows
    monkeypatch.setattr(published, "rows", lambda t: changed if t == "table13" else rows(t))
    table = consistency.check_table()
    assert "the paper disagrees with itself: 1" in table.notes[0]
    assert "table13,rank 1,aes,0.300,0.2667,the paper disagrees with itself" in to_csv(table)
