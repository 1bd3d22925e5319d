"""Problem files: what is wrong is refused with file, line and repair; what is right survives."""

import json
from pathlib import Path

import pytest

from grpo_replay.errors import ConfigError, DataError
from grpo_replay.models.config import WarmStart
from grpo_replay.planning.preflight import check_inputs
from grpo_replay.study.file import load_study
from grpo_replay.tasks.config import ClockProblems, DataFile, FileProblems
from grpo_replay.tasks.problems import (
    data_file,
    first,
    load_problems,
    make_problems,
    read_problems,
    write_problems,
)

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"
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
        ({**GOOD, "id": "b", "solution": None}, "line 2: field 'solution' is None, expected a str"),
        ({**GOOD, "id": "b", "answer": "\ud800"}, "line 2: field 'answer' cannot be written"),
        ({**GOOD, "id": "\udfff"}, "line 2: field 'id' cannot be written"),
        ({**GOOD, "id": "b", "more": [{"\ud800": 1}]}, "line 2: field 'more' cannot be written"),
        ({**GOOD, "id": "b", "\ud83d": 1}, r"line 2: field '\\ud83d' cannot be written"),
    ],
)
def test_wrong_rows_are_refused(tmp_path: Path, row: object, message: str) -> None:
    path = write(tmp_path / "set.jsonl", GOOD, row)
    with pytest.raises(DataError, match=message) as error:
        read_problems(path)
    assert str(path) in str(error.value)
    str(error.value).encode()  # a terminal and a log can show it


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "no problems"),
        (b"\n \n", "no problems"),
        (b'{"id": "a",\n', "line 1: not valid JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "line 1: not valid JSON"),
        (b"1" * 5_000, "line 1: not valid JSON"),
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


def training(**settings) -> FileProblems:
    return FileProblems(source="file", file="set.jsonl", **settings)


WARM_START = WarmStart(
    file="set.jsonl", steps=1, batch_size=1, learning_rate=1e-4, max_tokens=64, seed=1
)
BLANK = {**GOOD, "id": "b", "answer": ""}
TWO_BLANK = (BLANK, {**BLANK, "id": "c", "answer": None})


@pytest.mark.parametrize(
    ("source", "rows", "message"),
    [
        (training(), [GOOD, BLANK], "line 2: field 'answer' is empty"),
        (training(max_dropped=1), [GOOD, BLANK], None),
        (training(max_dropped=2), [GOOD, *TWO_BLANK], None),
        (training(max_dropped=1), [GOOD, *TWO_BLANK], "line 3: .* 2 rows have no answer, and max"),
        (training(max_dropped=1, limit=2), [GOOD, *TWO_BLANK], None),
        (WARM_START, [{**GOOD, "solution": "1+1 is 2"}], None),
        (WARM_START, [GOOD], "line 1: field 'solution' is missing or empty; a warm start needs"),
        (WARM_START, [{**GOOD, "solution": None}], "line 1: field 'solution' is None"),
        (WARM_START, [{**BLANK, "solution": "1+1 is 2"}], "line 1: field 'answer' is empty"),
    ],
)
def test_a_file_is_judged_alike_before_a_run_and_in_its_job(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: DataFile,
    rows: list[dict],
    message: str | None,
) -> None:
    monkeypatch.setenv("GRPO_REPLAY_DATA", str(tmp_path))
    write(tmp_path / "set.jsonl", *rows)
    part = "warm_start" if source is WARM_START else "problems"
    study = load_study(TINY).model_copy(update={part: source})
    checks = [lambda: check_inputs(TINY, study), lambda: load_problems(source, tmp_path / "out")]
    if part == "problems":
        checks.append(lambda: make_problems(source, tmp_path / "train.jsonl"))
    for check in checks:
        if message is None:
            check()
        else:
            with pytest.raises((DataError, ConfigError), match=message):
                check()
