"""Problem files: what is wrong is refused with file, line and repair; what is right survives."""

import json
from pathlib import Path

import pytest

from grpo_replay.errors import ConfigError, DataError
from grpo_replay.tasks.config import ClockProblems, FileProblems
from grpo_replay.tasks.problems import (
    data_file,
    first,
    make_problems,
    read_problems,
    write_problems,
)

GOOD = {"id": "a", "problem": "What is 1+1?", "answer": "2", "level": 1}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_problems_survive_a_round_trip(tmp_path: Path) -> None:
    problems = [GOOD, {**GOOD, "id": "b", "problem": "∠ABC\u2028next", "answer": "\\frac{1}{2}"}]
    write_problems(tmp_path / "new" / "set.jsonl", problems)
    assert read_problems(tmp_path / "new" / "set.jsonl") == problems
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["set.jsonl"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**GOOD, "id": "b", "answer": 2}, "line 2: field 'answer' is 2, expected a string; write"),
        ({**GOOD, "id": "b", "answer": None}, "line 2: field 'answer' is None.* fill it in"),
        ({**GOOD, "id": "b", "answer": float("nan")}, "line 2: field 'answer' is nan"),
        ({**GOOD, "id": "b", "answer": " "}, "line 2: field 'answer' is empty"),
        ({**GOOD, "id": "b", "problem": ""}, "line 2: field 'problem' is empty"),
        ({**GOOD, "id": 7}, "line 2: field 'id' is 7"),
        ({"id": "b", "problem": "x"}, "line 2: field 'answer' is missing"),
        (GOOD, "line 2: id 'a' is that of line 1"),
        ([1], "line 2: found list, expected an object"),
    ],
)
def test_wrong_rows_are_refused(tmp_path: Path, row: object, message: str) -> None:
    path = write(tmp_path / "set.jsonl", GOOD, row)
    with pytest.raises(DataError, match=message) as error:
        read_problems(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "no problems"),
        (b"\n \n", "no problems"),
        (b'{"id": "a",\n', "line 1: not valid JSON"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "set.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_problems(path)


def test_data_file_names_variable_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FileProblems(source="file", file="set.jsonl")
    monkeypatch.delenv("GRPO_REPLAY_DATA", raising=False)
    with pytest.raises(ConfigError, match="GRPO_REPLAY_DATA is not set.*set.jsonl"):
        data_file(source)
    monkeypatch.setenv("GRPO_REPLAY_DATA", str(tmp_path))
    with pytest.raises(ConfigError, match=f"set.jsonl: not in {tmp_path}"):
        data_file(source)
    write(tmp_path / "set.jsonl", GOOD)
    assert data_file(source) == tmp_path / "set.jsonl"


def test_first_without_limit_is_everything() -> None:
    assert first([GOOD, GOOD], None) == [GOOD, GOOD]
    assert first([GOOD, GOOD], 1) == [GOOD]


def test_clock_problems_are_generated(tmp_path: Path) -> None:
    settings = ClockProblems(
        source="clock", hours=10, max_step=3, steps=[3, 5], count=20, seed=1, wrap_error=0,
        random_error=0,
    )  # fmt: skip
    make_problems(settings, tmp_path / "train.jsonl")
    assert len(read_problems(tmp_path / "train.jsonl")) == 20


def test_file_problems_are_limited_and_their_golds_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPO_REPLAY_DATA", str(tmp_path))
    write(tmp_path / "set.jsonl", GOOD, {**GOOD, "id": "b", "answer": "\\text{}"})
    settings = FileProblems(source="file", file="set.jsonl", limit=1)
    make_problems(settings, tmp_path / "train.jsonl")
    assert read_problems(tmp_path / "train.jsonl") == [GOOD]
    with pytest.raises(DataError, match="set.jsonl: problem 'b': gold answer"):
        make_problems(FileProblems(source="file", file="set.jsonl"), tmp_path / "train.jsonl")
