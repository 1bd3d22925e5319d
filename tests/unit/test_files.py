"""What a job appends to is read as far as it is whole; a torn file is named."""

from pathlib import Path

import pytest

from grpo_replay.errors import DataError
from grpo_replay.files import read_appended
from grpo_replay.tasks.fingerprint import check_fingerprint


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_appended(path) == []
    path.write_text('{"step": 1}\n{"step": 2}\n{"ste')
    assert read_appended(path) == [{"step": 1}, {"step": 2}]


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"ste\n{"step": 3}\n')
    with pytest.raises(DataError, match=r"metrics\.jsonl: line 2 is not JSON; make the cell again"):
        read_appended(path)


def test_a_torn_record_of_a_source_is_named(tmp_path: Path) -> None:
    record = tmp_path / "problems.jsonl.source.json"
    record.touch()
    with pytest.raises(DataError, match=r"source\.json: not JSON .* remove it and run again"):
        check_fingerprint(record, "org/set@0", {"rows": 3}, DataError)
