"""Benchmark files: the count is that of the whole file, and every gold can be graded."""

import json
from pathlib import Path

import pytest

from grpo_replay.errors import DataError
from grpo_replay.tasks.benchmarks import make_benchmark
from grpo_replay.tasks.config import ClockBenchmark, ClockProblems, FileBenchmark
from grpo_replay.tasks.problems import make_problems, read_problems


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data folder with a file of three problems."""
    monkeypatch.setenv("GRPO_REPLAY_DATA", str(tmp_path))
    rows = [{"id": str(i), "problem": f"What is {i}+1?", "answer": str(i + 1)} for i in range(3)]
    (tmp_path / "three.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def settings(**changes: object) -> FileBenchmark:
    values = {"source": "file", "title": "Three", "file": "three.jsonl", "n_problems": 3, "k": 4}
    return FileBenchmark(**{**values, **changes})


def test_limit_applies_after_the_count(data: Path) -> None:
    make_benchmark(settings(limit=2), data / "out.jsonl")
    assert [row["id"] for row in read_problems(data / "out.jsonl")] == ["0", "1"]


def test_wrong_count_is_refused(data: Path) -> None:
    with pytest.raises(DataError, match="three.jsonl: expected n_problems = 30, found 3"):
        make_benchmark(settings(n_problems=30), data / "out.jsonl")
    assert not (data / "out.jsonl").exists()


def test_gold_beyond_the_limit_is_checked(data: Path) -> None:
    with (data / "three.jsonl").open("a") as file:
        file.write('{"id": "3", "problem": "?", "answer": "\\\\text{}"}\n')
    with pytest.raises(DataError, match="problem '3': gold answer"):
        make_benchmark(settings(n_problems=4, limit=1), data / "out.jsonl")


def test_generated_benchmark_shares_nothing_with_training(tmp_path: Path) -> None:
    benchmark = ClockBenchmark(
        source="clock", title="Clock", hours=10, max_step=3, steps=3, n_problems=60, k=8, seed=1
    )
    training = ClockProblems(
        source="clock", hours=10, max_step=3, steps=[3], count=300, seed=1, wrap_error=0,
        random_error=0,
    )  # fmt: skip
    make_benchmark(benchmark, tmp_path / "clock.jsonl")
    make_problems(training, tmp_path / "train.jsonl")
    texts = [
        {row["problem"] for row in read_problems(tmp_path / name)}
        for name in ("clock.jsonl", "train.jsonl")
    ]
    assert list(map(len, texts)) == [60, 300]
    assert not texts[0] & texts[1]
