r"""What one odd answer may cost: its own verdict, and its own CPU time.

Real grading processes throughout. Those of `odd` run the real worker, in which some answers stop,
end, or raise as an answer of a model might make sympy do.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grpo_replay.errors import GrpoReplayWarning
from grpo_replay.tasks.math import grade, grade_many, grade_paper_many
from grpo_replay.tasks.math import grading as grading_module
from grpo_replay.tasks.math import pool as pool_module
from grpo_replay.tasks.math.task import boxed_answer_reward

TOWERS = [("204", rf"\boxed{{9^{{9^{{{n}}}}}}}") for n in range(9, 17)]
PLAIN = [("2k+2", r"\boxed{2(k+1)}"), ("2k+2", r"\boxed{2(k+3)}"), ("5", r"\boxed{5}")]
RIGHT = [True, False, True]
ODD_WORKER = """
import os, signal, time
from pathlib import Path
from grpo_replay.tasks.math import worker

HERE, judge = Path(__file__).parent, worker._ours

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def recurse():
    return recurse() + 1

def accident():
    if not (HERE / "happened").exists():
        (HERE / "happened").touch()
        os.kill(os.getpid(), signal.SIGKILL)

def stop():
    (HERE / "stopped").write_text(str(os.getpid()))
    os.kill(os.getpid(), signal.SIGSTOP)

DEEDS = {
    "1001": lambda: 1 / 0,
    "1002": recurse,
    "1003": lambda: bytearray(8 * 2**30),
    "1004": os.abort,
    "1005": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "1006": lambda: os._exit(3),
    "1007": accident,
    "1008": stop,
    "1009": lambda: burn(0.6),
    "1010": lambda: time.sleep(2),
    "1011": lambda: time.sleep(600),
}

def odd(gold, answer):
    for mark, deed in DEEDS.items():
        if mark in answer:
            deed()
    return judge(gold, answer)

worker._QUESTIONS["ours"] = odd
worker.main()
"""


def marked(mark: int) -> tuple[str, str]:
    """A right answer that makes an odd worker do what its mark says."""
    return "2k+2", rf"\boxed{{2k+2+0\cdot {mark}}}"


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the pool start odd workers, and end them afterwards."""
    (tmp_path / "odd_worker.py").write_text(ODD_WORKER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(pool_module, "_MODULE", "odd_worker")
    monkeypatch.setattr(pool_module, "_idle", [])
    yield tmp_path
    pool_module._close_idle()


@pytest.mark.parametrize(
    "function", ["last_boxed", "clean", "decide", "aligned", "_paper_shortcut"]
)
@pytest.mark.parametrize("error", [RecursionError, ValueError, ZeroDivisionError, MemoryError])
def test_what_is_raised_is_one_answers_alone(
    monkeypatch: pytest.MonkeyPatch, function: str, error: type[Exception]
) -> None:
    real = getattr(grading_module, function)

    def raising(*texts: str) -> Any:
        if any("1000" in text for text in texts):
            raise error
        return real(*texts)

    monkeypatch.setattr(grading_module, function, raising)
    pairs = [*PLAIN, marked(1000)]
    grades = grade_many(pairs)
    assert [g.correct for g in grades] == [*RIGHT, function == "_paper_shortcut"]
    if function != "_paper_shortcut":
        assert (grades[3].method, grades[3].error) == ("error", error.__name__)
    assert not any(g.error for g in grades[:3])
    # The paper's verdict needs none of our rules.
    assert [g.correct for g in grade_paper_many(pairs)] == [*RIGHT, True]


@pytest.mark.parametrize(
    "answer",
    [r"\boxed{" * 600 + "5" + "}" * 600, r"\boxed{12_{²}}", rf"\boxed{{12_{{{'9' * 5000}}}}}"],
)
@pytest.mark.parametrize("gold", ["2k+2", "12_8", r"\text{Evelyn}"])
def test_odd_answers_of_the_text_rules(gold: str, answer: str) -> None:
    pairs = [*PLAIN, (gold, answer)]
    assert [g.correct for g in grade_many(pairs)] == [*RIGHT, False]
    assert [g.correct for g in grade_paper_many(pairs)][:3] == RIGHT
    for text in (answer, answer[-499:]):
        assert boxed_answer_reward([[{"content": text}]], [gold]) == [-1.0]


def test_no_answer_can_end_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    real = grading_module.training_reward

    def raising(completion: str, gold: str) -> float:
        if "odd" in completion:
            raise RecursionError
        return real(completion, gold)

    monkeypatch.setattr(grading_module, "training_reward", raising)
    texts = [r"\boxed{5}", r"odd \boxed{5}", r"\boxed{6}"]
    with pytest.warns(GrpoReplayWarning, match="1 of 3 answers count as wrong .* RecursionError"):
        rewards = boxed_answer_reward([[{"content": text}] for text in texts], ["5"] * 3)
    assert rewards == [1.0, -1.0, -1.0]


@pytest.mark.parametrize(
    ("mark", "error"),
    [
        (1001, "ZeroDivisionError"), (1002, "RecursionError"), (1003, "MemoryError"),
        (1004, "process ended, SIGABRT"), (1005, "process ended, SIGSEGV"),
        (1006, "process ended, code 3"),
    ],
)  # fmt: skip
def test_what_ends_or_raises_in_the_process_is_one_answers_alone(
    odd: Path, mark: int, error: str
) -> None:
    grades = grade_many([*PLAIN, marked(mark), *PLAIN[:2]], workers=1)
    assert [g.correct for g in grades] == [*RIGHT, False, *RIGHT[:2]]
    assert [g.error for g in grades] == [None] * 3 + [error] + [None] * 2
    assert grades[3].method == "error" and not grades[3].timed_out


def test_an_accident_from_outside_is_no_verdict(odd: Path) -> None:
    assert grade(*marked(1007)).correct
    assert (odd / "happened").exists()


def test_a_pause_beyond_the_limit_changes_no_verdict(odd: Path) -> None:
    def go_on() -> None:
        while not (odd / "stopped").is_file() or not (odd / "stopped").read_text():
            time.sleep(0.05)
        time.sleep(1.5)
        os.kill(int((odd / "stopped").read_text()), signal.SIGCONT)

    thread = threading.Thread(target=go_on)
    thread.start()
    assert grade(*marked(1008), timeout=0.5).correct
    thread.join()
    assert grade(*marked(1010), timeout=0.5).correct  # it sleeps


def test_a_loaded_machine_changes_no_verdict(odd: Path) -> None:
    assert grade(*marked(1009), timeout=0.3).timed_out
    assert grade(*marked(1009), timeout=1.5).correct
    code = [sys.executable, "-c", "while True: pass"]
    load = [subprocess.Popen(code) for _ in range(4 * len(os.sched_getaffinity(0)))]
    try:
        assert grade(*marked(1009), timeout=1.5).correct
        assert grade(*marked(1009), timeout=0.3).timed_out
    finally:
        for process in load:
            process.kill()
            process.wait()


def test_a_process_without_cpu_time_is_ended_at_last(
    odd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "_CLOCK_SECONDS", 1)
    grades = grade_many([*PLAIN, marked(1011)], workers=2, timeout=0.2)
    assert [g.correct for g in grades] == [*RIGHT, False]
    assert [g.timed_out for g in grades] == [False] * 3 + [True]


def test_answers_longer_than_the_pipe_are_judged() -> None:
    pairs = [("2k+2", rf"\boxed{{2k+{n}}}" + " word" * 60_000) for n in (2, 3)]
    assert [g.correct for g in grade_paper_many(pairs)] == [True, False]


class OutOfBudget(ValueError):
    """What a caller's timer raises."""


def raise_out_of_budget(number: int, frame: Any) -> None:
    raise OutOfBudget


@pytest.fixture
def budget() -> Callable[[float], None]:
    """Return a function that sets a timer whose handler raises."""
    before = signal.signal(signal.SIGALRM, raise_out_of_budget)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupt_waits_for_no_hard_answer(budget: Callable[[float], None]) -> None:
    grade(*PLAIN[0])  # the process start is not part of the measurement
    start = time.perf_counter()
    budget(1.0)
    with pytest.raises(OutOfBudget):
        grade_many(TOWERS, timeout=20.0)
    assert time.perf_counter() - start < 10
    assert [g.correct for g in grade_many(PLAIN)] == RIGHT


def test_what_a_callers_timer_raises_is_no_answers_error(
    budget: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading_module, "clean", lambda text: time.sleep(60))
    budget(0.2)
    with pytest.raises(OutOfBudget):
        grade_many(PLAIN)


def test_ctrl_c_ends_the_caller_and_its_processes_at_once() -> None:
    # With its own handler: what a shell starts in the background ignores the signal.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from grpo_replay.tasks.math import grade_many;"
        "grade_many([('2k+2', r'\\boxed{2(k+1)}')]); print('ready', flush=True);"
        "grade_many([('204', r'\\boxed{9^{9^{%d}}}' % n) for n in range(9, 17)], timeout=20.0)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout and process.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
    assert process.wait(timeout=60) != 0  # the answers would take longer
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
