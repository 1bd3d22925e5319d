r"""The three verifiers: given cases, benchmark golds, each documented decision, hanging answers.

The folders of cases and problems are found through GRPO_REPLAY_CASES and GRPO_REPLAY_DATA, or
beside the repository; the essential cases are repeated here as literals.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grpo_replay.errors import DataError
from grpo_replay.tasks.math import (
    Grade,
    check_gold,
    grade,
    grade_many,
    grade_paper,
    grade_paper_many,
    last_boxed,
    training_reward,
)
from grpo_replay.tasks.math import grading as grading_module
from grpo_replay.tasks.math import pool as pool_module

REPOSITORY = Path(__file__).resolve().parents[2]
BENCHMARKS = ("math500", "aime25", "aime26", "hmmt_feb25", "hmmt_feb26")
TOWER = r"\boxed{9^{9^{9}}}"

# (gold, content of the box): one line per decision of the package's docstring.
RIGHT = [
    ("6 - 5i", "6 - 5i"), (r"10,\!080", r"10,\!080"), (r"(-\infty, 0]", r"(-\infty, 0]"),
    ("2k+2", "2k+2"),
    (r"\frac9{19}", r"\frac9{19}"), (r"\frac{1}{2}", r"\dfrac12"), (r"\frac{1}{2}", "0.5"),
    ("x<2", r"(-\infty,2)"),
    ("3", "3."), ("3", "3,"), ("3", r"3\text{.}"), ("30", r"\text{The answer is }30"),
    ("30", "30\\\\"),
    ("1000", "$1000$"), ("1000", r"\(1000\)"),
    ("5", r"5\text{ cm}"), ("12", r"\text{12 apples}"), (r"15\mbox{ cm}^2", "15"),
    (r"\$36", "36"),
    ("18.90", r"\$18.90"), (r"5.4 \text{ cents}", r"5.4\text{ cent}"),
    (r"\frac{270}7\text{ degrees}", r"\frac{270}{7}"),
    ("10000", "10 000"), ("10000", r"10\,000"), ("10000", r"10 \, 000"),
    ("1234567", r"1\,234 \, 567"), ("1234.5", "1{,}234.5"), ("10000", r"10\;000"),
    ("10000", r"10\ 000"),
    ("10000", "10{,}000"), ("10000", "10,000"), ("(1{,}000,2)", "(1000,2)"),
    (r"11,\! 111,\! 111,\! 100", "11111111100"),
    ("016", "16"), ("16", "016"), ("5", "+5"), (".0000672", "6.72e-5"),
    (".0000672", r"6.72\times 10^{-5}"),
    (r"\frac13", "0.333333"), (r"\frac{1}{576}", "0.00173611"), (r"\sqrt{2}", "1.41421356"),
    (r"\frac13", r"0.\overline{3}"), ("1", r"0.\overline{9}"),
    ("3^{2025}", r"9^{1012}\cdot 3"), (r"\sqrt{2}", r"\frac{2}{\sqrt{2}}"), ("2k+2", "2(k+1)"),
    (r"50\%", "50"), (r"50\%", "0.5"), ("50", r"50\%"), ("12.5", r"12.5\%"),
    (r"25\%", r"\frac14"),
    (r"1\frac{4}{5}", r"\frac{9}{5}"), (r"1\frac45", "1 4/5"), (r"137 \frac{1}{2}", "137.5"),
    ("52_8", "52 base 8"), ("52_8", r"52\text{ (base 8)}"), ("52_8", r"52\text{ in base eight}"),
    ("52_8", "52"), ("52_8", "52_{8}"), ("52_8", "(52)_8"), ("52_8", r"52_{\text{eight}}"),
    ("5", "101_2"),
    (r"90^\circ", "90"), ("204", r"204^\circ"), (r"90^\circ", r"90\text{ degrees}"),
    (r"1 \pm \sqrt{19}", r"1-\sqrt{19}, 1+\sqrt{19}"), (r"\pm 5", "5,-5"),
    (r"\frac{1\pm\sqrt5}{2}", r"\frac{1-\sqrt5}{2}, \frac{1+\sqrt5}{2}"),
    (r"1 \pm \sqrt{19}", r"x = 1 \mp \sqrt{19}"), (r"\pm 1, \pm 2", "-2,-1,1,2"),
    (r"\infty", "∞"), (r"\sqrt{2}", "√2"), (r"[2,\infty)", "x ≥ 2"), ("6", "2·3"), ("5,-5", "±5"),
    ("5", "2+3"), (r"\frac12", r"\frac{2}{4}"), ("30", r"30 \text{ or } 30.0"),
    ("(1,2)", "1,2"), ("1,2", "2,1,2"), ("1,-2", "-2,1"), ("1,-2", r"\{-2,1\}"),
    (r"\{1,2,3\}", r"\{3,1,2\}"),
    (r"\{1,2\}", "2,1"),
    (r"(0,9) \cup (9,36)", r"(9,36)\cup(0,9)"), (r"x \in [-2,7]", r"-2\le x\le 7"),
    (r"(2,\infty)", "x>2"),
    ("5", "x=5"), ("x=5", "5"), ("5x - 7y + 4 = 0", "10x-14y+8=0"),
    (r"\text{(C)}", "C"), (r"\text{(C)}", "c"), (r"\text{(C)}", "(C)"), (r"\text{(C)}", "C. 5"),
    (r"\text{(C)}", r"\text{(C) }5"), (r"\text{(C)}", r"\textbf{(C)}\ 5"),
    (r"\text{(C)}", r"\text{Option C}"), (r"\text{(C)}", r"\text{The answer is (C)}"),
    (r"\text{(C)}", "(C) f(a)+(a+b)"), (r"\text{June 20}", "June 20."),
    (r"\text{Evelyn}", "evelyn."), (r"\text{Evelyn}", r"\textbf{Evelyn}"),
]  # fmt: skip
WRONG = [
    ("6 - 5i", "5"), (r"\frac 34", "34"), (r"3\sqrt{13}", "3"), (r"\frac 34", "3"), ("2k+2", "2"),
    (r"(-\infty, 0]", "0"),
    ("30", r"\text{not }30"), ("4", r"4\text{ or }5"), ("5", r"4\text{ or }5"), ("30", "30 or 20"),
    ("30", r"30\text{ apples and }20\text{ pears}"), ("30", r"30\text{ min }20\text{ s}"),
    ("1", r"1\text{ hour }30\text{ minutes}"), ("30", r"\text{30 or 20}"),
    (r"\frac13", r"\frac13 \text{ or about } 0.333"), ("3", "3!"), ("30", ""), ("30", " "),
    (r"5.4 \text{ cents}", r"5.4\text{ dollars}"), ("(1,234)", "1234"),
    (".0000672", ".0000671"), ("30", "30.0000001"), ("1", "0.9999999"), (r"\frac13", "0.333"),
    (r"\frac{1}{576}", "0.001736"),
    (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}"), (r"(1/2^{99},1)", r"(1/2^{98},1)"),
    ("x/2^{99}", "x/2^{98}"),
    (r"50(1 - \frac{1}{2^{101} - 1})", r"50(1 - \frac{1}{2^{100} - 1})"),
    ("3^{2025}", "3^{2025}+1"),
    (r"\sqrt{2}", r"\sqrt{2}+10^{-30}"),
    ("11/2", "1 1/2"), ("12", "1 2"),
    ("50", "0.5"), (r"50\%", "5"), (r"1\frac{4}{5}", "14/5"), (r"1\frac{4}{5}", r"\frac{4}{5}"),
    ("52_8", "52_9"), ("52_8", r"52\text{ (base 9)}"), ("52_8", "52 base 9"), ("52_8", "42"),
    ("52", "52_8"), (r"90^\circ", r"\frac{\pi}{2}"),
    (r"90^\circ", r"91^\circ"),
    (r"\frac{1\pm\sqrt5}{2}", r"\frac{1+\sqrt5}{2}"), ("5", r"\{5,-5\}"),
    (r"1 \pm \sqrt{19}", r"1 \pm \sqrt{18}"),
    (r"1 \pm \sqrt{19}", r"1+\sqrt{19}"), (r"\pm 5", "5"), ("5", r"\pm 5"),
    ("(1,2)", "(2,1)"), ("(1,2)", "2,1"), ("1,-2", "(-2,1)"), ("(1,2)", r"\{1,2\}"),
    (r"\{1,2\}", "(1,2)"), ("3, 5, 7", "3,5"),
    ("[0,1)", "[0,1]"), ("(1,2)", "[1,2]"), ("x=5", "y=5"), ("5x - 7y + 4 = 0", "0"),
    ("y = 2x + 3", "3"),
    (r"\text{(C)}", "(C), (B)"), (r"\text{(C)}", r"(B) \text{ and } (C)"),
    (r"\text{(C)}", "C) or D)"),
    (r"\text{(C)}", "B, C"), (r"\text{(C)}", "5"), (r"\text{June 20}", "20"),
    (r"\text{June 20}", "June 21"),
    (r"\text{(C)}", "B"), (r"\text{(C)}", "Circle"),
    (r"\text{Evelyn}", r"\text{Evelyn is fastest}"), (r"\text{even}", r"\text{odd}"),
]  # fmt: skip


def _folder(variable: str, name: str) -> Path:
    folder = Path(os.environ.get(variable, REPOSITORY.parent / "shared" / name))
    if not folder.exists():
        pytest.skip(f"{folder} is not there: set {variable}")
    return folder


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _boxed(content: str) -> str:
    return f"So the answer is \\boxed{{{content}}}."


@pytest.fixture(scope="module")
def decided() -> dict[tuple[str, str], Grade]:
    """Every decision, graded in one call."""
    pairs = RIGHT + WRONG
    grades = grade_many([(gold, _boxed(content)) for gold, content in pairs])
    return dict(zip(pairs, grades, strict=True))


@pytest.mark.parametrize("pair", RIGHT, ids=" | ".join)
def test_right(pair: tuple[str, str], decided: dict[tuple[str, str], Grade]) -> None:
    assert decided[pair].correct, decided[pair]


@pytest.mark.parametrize("pair", WRONG, ids=" | ".join)
def test_wrong(pair: tuple[str, str], decided: dict[tuple[str, str], Grade]) -> None:
    assert not decided[pair].correct, decided[pair]
    assert not decided[pair].timed_out


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"\boxed{203}. Wait, \boxed{204}.", "204"),
        (r"\boxed{\frac{1}{3}}", r"\frac{1}{3}"),
        (r"\boxed{204", None),
        (r"\boxed{3} and then \boxed{4", "3"),
        (r"\boxed{ oh no \boxed{3}", "3"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed {7}", "7"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\left\{ x \right.}", r"\left\{ x \right."),
        (r"\boxed{}", ""),
        ("12", None),
        ("", None),
    ],
)
def test_last_boxed(text: str, box: str | None) -> None:
    assert last_boxed(text) == box


def test_last_boxed_takes_linear_time() -> None:
    start = time.perf_counter()
    assert last_boxed(r"\boxed{" * 100_000) is None
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    ("gold", "completion", "reward"),
    [
        ("204", r"\boxed{203} no, \boxed{204}", 1.0),
        ("204", r"\boxed{204}" + "x" * 489, 1.0),
        ("204", r"\boxed{204}" + "x" * 490, -1.0),  # the box no longer fits into 500 characters
        ("204", r"\boxed{204", -1.0),
        ("204", "204", -1.0),
        ("204", r"\boxed{}", -1.0),
        (r"\frac{1}{2}", r"\boxed{\dfrac12}", 1.0),
        (r"\frac{1}{2}", r"\boxed{0.5}", -1.0),  # exact match, no algebra
        (r"\frac9{19}", r"\boxed{\frac{9}{19}}", 1.0),
        (r"11\sqrt2", r"\boxed{11\sqrt{2}}", 1.0),
        ("10,080", r"\boxed{10{,}080}", 1.0),
        ("5", r"\boxed{x=5}", 1.0),
        ("5", r"\boxed{5\text{ cm}}", 1.0),
        (r"15\mbox{ cm}^2", r"\boxed{15}", 1.0),
        (r"90^\circ", r"\boxed{90}", 1.0),
        (r"\$36", r"\boxed{36 \text{ dollars}}", 1.0),
        ("5x - 7y + 4 = 0", r"\boxed{0}", -1.0),
        ("5", r"\boxed{a + 5}", -1.0),
        (r"\text{square}", r"\boxed{\text{units}}", -1.0),
        ("(1,2)", r"\boxed{(2,1)}", -1.0),
    ],
)
def test_training_reward(gold: str, completion: str, reward: float) -> None:
    assert training_reward(completion, gold) == reward


def test_shared_cases() -> None:
    rows = _rows(_folder("GRPO_REPLAY_CASES", "cases") / "answers.jsonl")
    grades = grade_many([(str(r["gold"]), str(r["completion"])) for r in rows], timeout=3.0)
    assert [r for r, g in zip(rows, grades, strict=True) if g.correct != r["correct"]] == []


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_gold_is_right_against_itself(benchmark: str) -> None:
    folder = _folder("GRPO_REPLAY_DATA", "data")
    golds = [str(row["answer"]) for row in _rows(folder / f"{benchmark}.jsonl")]
    pairs = [(gold, _boxed(gold)) for gold in golds]
    assert [g for g, c in pairs if training_reward(c, g) != 1.0] == []
    assert [p for p, g in zip(pairs, grade_many(pairs), strict=True) if not g.correct] == []
    assert [p for p, g in zip(pairs, grade_paper_many(pairs), strict=True) if not g.correct] == []
    for gold in golds:
        check_gold(gold)


def test_paper_verdict_judges_the_raw_completion() -> None:
    assert grade_paper("12", "12").correct  # no box needed there
    assert grade_paper("52_8", r"\boxed{52_9}").correct  # its known mistake
    assert not grade_paper(
        "3", "First \\boxed{2}. Hmm, no: \\boxed{3}."
    ).correct  # reads both boxes
    assert not grade_paper("12", "").correct


@pytest.mark.parametrize("gold", [None, 3, float("nan"), "", "  ", "???", "\\frac{"])
def test_bad_gold_is_refused(gold: object) -> None:
    with pytest.raises(DataError, match="gold answer .*: write the final answer as a LaTeX string"):
        check_gold(gold)


@pytest.mark.parametrize("many", [grade_many, grade_paper_many])
@pytest.mark.parametrize("wrong", [5, None, float("nan")])
def test_pairs_of_anything_but_strings_are_refused(many: Callable, wrong: object) -> None:
    for pair in ((wrong, "\\boxed{5}"), ("5", wrong)):
        with pytest.raises(DataError, match=r"pair 1: .* is (int|NoneType|float), not a string"):
            many([("7", "\\boxed{7}"), pair])


def test_hanging_answers_are_counted_and_stall_nobody() -> None:
    pairs = [("204", TOWER), ("204", r"\boxed{100000000!}")]
    pairs += [("2k+2", rf"\boxed{{2(k+{n})}}") for n in range(20)]
    grade("2k+2", r"\boxed{2(k+1)}")  # the process start is not part of the measurement
    start = time.perf_counter()
    grades = grade_many(pairs, workers=2, timeout=2.0)
    assert time.perf_counter() - start < 12
    assert [g.timed_out for g in grades] == [True, True] + [False] * 20
    assert [g.correct for g in grades[2:]] == [n == 1 for n in range(20)]
    assert not any(g.correct for g in grades[:2])


def test_the_callers_timer_survives() -> None:
    fired: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: fired.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 60)
        grade("2k+2", r"\boxed{2(k+1)}")
        grade("204", TOWER, timeout=0.5)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 30
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        grade("204", TOWER, timeout=0.5)
        assert fired == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


PAIRS = [("2k+2", r"\boxed{2(k+1)}"), ("2k+2", r"\boxed{2k}"), ("204", TOWER), ("7", r"\boxed{7}")]


def _grade_pairs(_: int = 0) -> list[Grade]:
    return grade_many(PAIRS, workers=2, timeout=1.5)


def test_same_verdicts_from_thread_and_process() -> None:
    expected = _grade_pairs()
    assert [g.correct for g in expected] == [True, False, False, True]
    seen: list[list[Grade]] = []
    thread = threading.Thread(target=lambda: seen.append(_grade_pairs()))
    thread.start()
    thread.join()
    assert seen == [expected]
    # A pool's processes are daemonic (no multiprocessing children); forked ones share our pipes.
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(_grade_pairs, [0]) == [expected]
    assert _grade_pairs() == expected


def test_order_and_duplicates() -> None:
    pairs = [("7", r"\boxed{7}"), ("2k+2", r"\boxed{2(k+1)}"), ("7", r"\boxed{8}")] * 50
    assert [g.correct for g in grade_many(pairs)] == [True, True, False] * 50
    assert grade_many([]) == []


def test_plain_numbers_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a process was asked")

    monkeypatch.setattr(grading_module, "ask_all", refuse)
    pairs = [(str(n % 97), f"\\boxed{{{n % 89}}}") for n in range(2500)]
    start = time.perf_counter()
    expected = [n % 97 == n % 89 for n in range(2500)]
    assert [g.correct for g in grade_many(pairs)] == expected
    assert [g.correct for g in grade_paper_many(pairs)] == expected
    assert time.perf_counter() - start < 2


def test_a_process_that_cannot_start_is_an_error_not_a_deadlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "_MODULE", "no_such_module")
    monkeypatch.setattr(pool_module, "_idle", [])
    with pytest.raises(RuntimeError, match="is math-verify installed"):
        grade_many([("2k+2", rf"\boxed{{2(k+{n})}}") for n in range(20)], workers=2)


def test_importing_loads_no_computer_algebra() -> None:
    code = (
        "import sys, grpo_replay.tasks.math as m; m.training_reward('\\\\boxed{1}', '1');"
        "m.grade('1', '\\\\boxed{1}');"
        "sys.exit('math_verify' in sys.modules or 'sympy' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
