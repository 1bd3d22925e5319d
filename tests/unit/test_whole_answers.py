r"""A verdict needs the whole answer: kinds of fragments, of spellings, and bounds on any text."""

import itertools
import time
from collections.abc import Callable

import pytest

from grpo_replay.errors import DataError
from grpo_replay.tasks.math import check_gold, grade, grade_many, last_boxed, training_reward
from grpo_replay.tasks.math.cleaning import MAX_CHARACTERS, clean
from grpo_replay.tasks.math.rules import aligned, decide

# Each kind: (gold, answers); one list is wrong, the other right.
WRONG = {
    "imaginary": ("3", r"3\mathrm{i}|3i|3 i|3\mathrm{ i }|i3|3+i|3-\mathrm{i}|\mathrm{i}+3"
        r"|3i^3|3e"),
    "upright e": (
        "2",
        r"2\mathrm{e}|2+\mathrm{e}|2^{\mathrm{e}}|\mathrm{e}^2|\frac{2}{\mathrm{e}}|2e|e2|2-e"
        r"|\mathrm{e}-2|2\operatorname{e}",
    ),
    "upright e in a sum": (
        r"1-\frac{1}{\mathrm{e}}",
        r"1+\frac{1}{\mathrm{e}}|1-\mathrm{e}|1|\frac1e|1-\frac{2}{e}|\frac{1}{\mathrm{e}}-1|0|e|1/2"
        r"|1-\frac{1}{\mathrm{i}}",
    ),
    "unknown signs": (
        "3",
        r"3\aleph_0|2 \mid 3|\#3|\sim 3|\neg 3|x \approx 3|\le 3|> 3|17 \to 3|x^^2 3",
    ),
    "unparsed": (
        "204",
        r"Symbol('x').subs(x, 204)|f(17)) + 204|\left( 17, 204|\frac{1}{} 204|&&& 204|204'"
        r"|A_{17} = \{ 204|#17 204|(204|[204",
    ),
    "dots": (
        r"1, 2, \ldots, n",
        r"1, 3, 5, \ldots, 2n-1|1, 2, \ldots, 2n|2, \ldots, n|1, \ldots, n-1|1,2,n|n|1,2"
        r"|1, 2, \ldots|\ldots, n|0, 1, \ldots, n",
    ),
    "words behind": (
        "12",
        r"12 \text{ (or 13)}|12 \text{ or so}|12 \text{ or }13|12\text{ minus one}"
        r"|12 \text{ plus } x|12\text{ not }|12 or 13|12, 13|12\text{ and 13}|12\text{ to }15",
    ),
    "tuples": (
        "11111",
        "(11, 111)|(11,111)|(1,1,1,1,1)|[11,111]|(11111,1)|(1, 11111)|11, 111, 1|(11111, 11112)"
        r"|\left(11,111\right)|(11;111)",
    ),
    "blanks": (
        "204",
        "20  4|2  04|20   4|2 0 4|20\n\n4|2\t\t04|20 \n 4|2   0   4|20 4|2 04",
    ),
    "root with round brackets": (
        r"2\sqrt{3}",
        r"2\sqrt(2)|2\sqrt3+1|\sqrt(3)|2(3)|\sqrt(6)|2\sqrt(3)+1|2\sqrt(3+1)|\sqrt(2)3"
        r"|2\sqrt(3)i|\sqrt(2)\cdot 3|6|2\sqrt(-3)|-2\sqrt(3)|\sqrt(2)(3)"
        r"|\sqrt[3](3)\cdot 2",
    ),
    "other dots": (
        r"1, 4, \ldots, n^2",
        r"1, 2, \ldots, n|1, 4, \ldots, n",
    ),
    "members": (
        r"m=4, 5, 6",
        r"m=3, 4, 5|m=4, 5|5, 6, 7",
    ),
    "and": (
        r"17, 33, \text{ and } 71",
        r"18, 35, \text{ and } 71|17, 33|71",
    ),
    "time": (
        r"11:00",
        r"1:00|11:30|11|11:0",
    ),
    "line": (
        r"2x-y+9=0",
        r"2x+3y+8=0|2x-y=9|0",
    ),
    "growth": (
        r"O(n \log n)",
        r"\Theta(n \log n)|O(n)|\Omega(n \log n)",
    ),
    "numerator": (
        r"14",
        r"5 14/3|5 14|14/3",
    ),
    "family": (
        r"7k",
        r"7|k|7n|7k+1",
    ),
    "variable": (
        r"a^2+4a+4",
        r"b^2+4b+4|x^2+4x+4",
    ),
    "hundred": (
        r"75",
        r"0.75|7500",
    ),
    "modulus": (
        r"x \equiv 2 \pmod{9}",
        r"x \equiv 2 \pmod{8}|x \equiv 3 \pmod{9}",
    ),
    "tuple": (
        r"22,\! 333,\! 444",
        r"(22, 333, 444)|22|333",
    ),
    "empty set": (
        r"\emptyset",
        r"\{0\}|0|\{\emptyset\}|\phi|\{\varnothing, 1\}|\mathbb{R}|(0,0)|\infty|\{x\}"
        r"|\text{all}",
    ),
    "domain": (
        r"k\pi",
        r"k\pi+1, k \in \mathbb{Z}|2k\pi, k\in\mathbb{Z}|n, k \in\mathbb Z"
        r"|\pi, k\in\mathbb{Z}|k, k\in\mathbb{Z}|-1+k\pi, k\in\mathbb{Z}|k\pi, 3"
        r"|k\pi, 2k\pi|\frac{k\pi}{2}, k \in \mathbb{Z}|k^2\pi, k\in\mathbb{Z}"
        r"|k\in\mathbb{Z}",
    ),
    "sum": (
        r"\frac{\pi}{4}+2-\sqrt{2}",
        r"2+\sqrt2+\frac\pi4|2-\sqrt2-\frac\pi4|\frac\pi4-2-\sqrt2|2-\sqrt[3]2+\frac\pi4"
        r"|2-\sqrt2+\frac\pi2|\frac4\pi+2-\sqrt2|2-\sqrt2+\frac{e}4|2-\sqrt2|\frac\pi4"
        r"|1-\sqrt2+\frac\pi4",
    ),
    "letter": (
        r"\text{(C)}",
        r"\text{Choice (B)}|\text{The correct answer is D}|\text{Option A}|\text{not C}"
        r"|\text{Option C or D}|\text{Options (C) and (D)}|\text{Cat}"
        r"|\text{The answer is (A), not (C)}|\text{all but C}|\text{Choice 3}"
        r"|\text{Code}",
    ),
    "decimals with i": (
        r"14-i",
        r"14.0 + 1.0i|14.0|1.0i|14.1 - 1.0i|14.0 - 1.1i|14.0-10i|-14.0-1.0i|14.0i-1.0"
        r"|13.0|14.0-1.0e",
    ),
}  # fmt: skip
RIGHT = {
    "short fraction": (
        r"\frac{\pi}{4}",
        r"\frac\pi4|\frac \pi 4|\dfrac\pi4|\tfrac\pi 4|\frac\pi{4}|\frac{\pi}4|\frac14\pi|\pi/4"
        r"|\frac{1}{4}\pi|\cfrac\pi4",
    ),
    "short root": (
        r"2^{1/3}",
        r"\sqrt[3]2|\sqrt[3]{2}|\sqrt[3] 2|2^{\frac13}|\sqrt[3](2)|2^{\frac{1}{3}}|\sqrt[ 3 ]2"
        r"|\sqrt[{3}]2|2^\frac13|\sqrt[3]{(2)}",
    ),
    "upright e": (
        "e^2",
        r"\mathrm{e}^2|\mathrm{e}^{2}|\operatorname{e}^2|e^{2}|\mathit{e}^2|{\mathrm{e}}^2"
        r"|\mathrm{ e }^2|e\cdot e|\mathrm{e}\cdot\mathrm{e}|\mathrm{e}\mathrm{e}",
    ),
    "decoration": (
        "5",
        r"\underline{5}|\color{red}{5}|\textcolor{blue}{5}|\mathbf{5}|\boldsymbol{5}|\Large 5"
        r"|{\large 5}|\fbox{5}|\displaystyle 5|\color{red}5",
    ),
    "root with round brackets": (
        r"2\sqrt{3}",
        r"2\sqrt(3)|2 \sqrt(3)|\sqrt(12)|2\sqrt( 3 )|2\cdot\sqrt(3)|\sqrt(3)\cdot 2"
        r"|\sqrt(4)\sqrt(3)|2\sqrt(2+1)|\sqrt(4\cdot 3)|2\sqrt((3))|\sqrt(3)+\sqrt(3)",
    ),
    "empty set": (
        r"\emptyset",
        r"\varnothing|\emptyset|\{\}|\{ \}|\left\{\right\}|\displaystyle\varnothing"
        r"|\boldsymbol{\varnothing}|x \in \emptyset|x\in\varnothing|{\varnothing}"
        r"|\mathbf{\emptyset}|\varnothing.|$\varnothing$"
        r"|\text{The answer is }\varnothing|\(\emptyset\)|\lbrace\rbrace"
        r"|\Large\varnothing",
    ),
    "domain": (
        r"k\pi",
        r"k\pi, k \in \mathbb{Z}|\pi k, k\in\mathbb{Z}|k\pi, k\in\mathbb Z"
        r"|k \cdot \pi, k \in \mathbb{Z}|\pi k,\, k \in \mathbb{Z}|k\pi,\ k\in\mathbb{Z}"
        r"|k\pi, \text{where } k \in \mathbb{Z}|k\pi , k \in \mathbb{Z}"
        r"|\frac{2k\pi}{2}, k \in \mathbb{Z}|k\pi\quad (k\in\mathbb{Z})"
        r"|k\pi, \quad k \in \mathbb{Z}|k\pi \text{ for } k\in\mathbb{Z}"
        r"|x=k\pi, k\in\mathbb{Z}",
    ),
    "sum": (
        r"\frac{\pi}{4}+2-\sqrt{2}",
        r"2-\sqrt2+\frac\pi4|\frac\pi4-\sqrt2+2|-\sqrt2+2+\frac\pi4|2+\frac\pi4-\sqrt2"
        r"|-\sqrt{2}+\frac{\pi}{4}+2|\frac\pi4+2-\sqrt2|2+\pi/4-\sqrt2"
        r"|\frac14\pi-\sqrt{2}+2|(2-\sqrt2)+\frac\pi4|\frac{\pi+8-4\sqrt2}{4}"
        r"|\frac{\pi}{4} - (\sqrt 2 - 2)",
    ),
    "letter": (
        r"\text{(C)}",
        r"\text{Choice (C)}|\text{The correct answer is C}|\text{Option C}"
        r"|\text{The answer is (C)}|\text{choice C}|\text{The correct option is (C)}"
        r"|\text{So the answer is C}|\text{Answer: C}|\text{The correct choice is C.}"
        r"|\textbf{Option (C)}|\text{Thus the answer is }\textbf{(C)}|Option C",
    ),
    "decimals with i": (
        r"14-i",
        r"14.0 - 1.0i|14.0-i|-i+14|14-1i|14-\mathrm{i}|-\mathrm{i}+14|14.00 - 1.00i"
        r"|14 - 1.0i|-1.0i+14.0|14-i.|14.0 - i|-1i + 14|14.0-1.0\mathrm{i}|14 - 1.0 i"
        r"|14.0 - 1.0 \cdot i",
    ),
    "upright in fraction": (
        r"500",
        r"\frac{\mathrm{1,000}}{2}|\frac{\text{1,000}}{2}|\mathrm{500}|\text{500}"
        r"|\mathrm{500}.|\frac{\mathrm{1000}}{2}|\mathrm{1,000}/2",
    ),
    "split": (
        r"\frac{n-3}{5}",
        r"\frac n5-\frac35|\frac{n}{5}-\frac{3}{5}|\frac15(n-3)|0.2n-0.6|(n-3)/5"
        r"|-\frac{3-n}{5}",
    ),
    "line": (
        r"2x-3y+7=0",
        r"-2x+3y-7=0|4x-6y+14=0|2x+7=3y|3y=2x+7|y=\frac{2x+7}{3}|2x-3y=-7",
    ),
    "arg": (
        r"3\cos\left(\frac{\pi t}{6}\right)-2",
        r"3\cos(\frac{\pi}{6}t)-2|-2+3\cos(\frac{\pi t}6)"
        r"|3\cos\left(\frac{\pi}{6} t\right) - 2",
    ),
    "vector": (
        r"\begin{pmatrix}3\\-1\end{pmatrix}",
        r"\begin{pmatrix}3\\-1\end{pmatrix}|\begin{pmatrix} 3 \\ -1 \end{pmatrix}"
        r"|\begin{bmatrix}3\\-1\end{bmatrix}"
        r"|\left(\begin{array}{c}3\\-1\end{array}\right)",
    ),
    "pair": (
        r"(\tfrac{5}{8},\tfrac{3}{4})",
        r"\left(\frac58,\frac34\right)|\left(\frac{5}{8},\frac{3}{4}\right)"
        r"|(0.625, 0.75)",
    ),
    "polar": (
        r"\left( 5, \frac{\pi}{3} \right)",
        r"(5, \frac{\pi}{3})|(5,\frac\pi3)|\left(5,\frac{1}{3}\pi\right)",
    ),
    "minus": (
        r"-\frac{3}{4}",
        r"3/(-4)|\frac{-3}{4}|\frac{3}{-4}|-3/4|-0.75",
    ),
    "fullwidth": (
        r"48",
        r"４８|４8",
    ),
    "both signs": (
        r"\frac{-3+\sqrt{5}}{2}, \frac{-3-\sqrt{5}}{2}",
        r"\frac{-3\pm\sqrt{5}}{2}|\frac{-3\pm\sqrt5}2|-\frac32\pm\frac{\sqrt5}{2}",
    ),
    "root of a sum": (
        r"\sqrt{x+1}",
        r"\sqrt(x+1)|\sqrt (x+1)|\sqrt(1+x)|\sqrt((x+1))",
    ),
}  # fmt: skip


def _cases(kinds: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    return [(gold, text) for gold, texts in kinds.values() for text in texts.split("|")]


@pytest.mark.parametrize(("kinds", "correct"), [(WRONG, False), (RIGHT, True)])
def test_verdicts(kinds: dict[str, tuple[str, str]], correct: bool) -> None:
    pairs = _cases(kinds)
    grades = grade_many([(gold, f"\\boxed{{{text}}}") for gold, text in pairs])
    assert [p for p, g in zip(pairs, grades, strict=True) if g.correct != correct] == []


@pytest.mark.parametrize(
    ("gold", "answer"),
    [("1,2", "12"), ("0,1", "01"), ("3,5,7", "357"), ("1,23", "123"), ("12,34", "1234")],
)
def test_a_list_is_no_number_in_training(gold: str, answer: str) -> None:
    assert training_reward(f"\\boxed{{{answer}}}", gold) == -1.0
    assert training_reward(f"\\boxed{{{gold}}}", gold) == 1.0


@pytest.mark.parametrize(
    "gold",
    [
        r"\boxed{60}", r"\(\boxed{4489}\)", r"x=\boxed{2}",
        r"3,-\frac{3}{2}+\frac{i\sqrt{3}}{2", "1+" * 300 + "1",
    ],
)  # fmt: skip
def test_a_gold_that_is_wrong_against_itself_is_named(gold: str) -> None:
    with pytest.raises(DataError, match="is wrong against itself under .*the training reward"):
        check_gold(gold)


PIECES = (
    " ", ".", ",", r"\,", r"\text{}", r"\text{ ", "{", "}", "(", "[", r"\frac", r"\sqrt", r"\sqrt[",
    r"\sqrt(", "1", "1 ", "1,", "1/", "$", "\\", "a", "a ", r"\mathrm{", r"\color{", r"\boxed{",
    r"\boxed ", "=", r"\pm", "^", "-", "the ", "or ", "answer ", "\n", "~", r"\text{1", "(A)", "0.",
    r"\overline{", "%", r"\circ",
)  # fmt: skip
ENDS = (("", ""), ("1", "x"), ("(", ")"), ("x", "5"), (r"5\text{", "}"))


GOLDS = ("5", r"\text{(C)}", "1:2", "12_8", r"x \equiv 3 \pmod{7}", r"0, 2, \ldots, 9", r"50\%")


@pytest.mark.parametrize("length", [200, MAX_CHARACTERS - 10, 20_000, 1_000_000])
def test_no_text_holds_the_caller(length: int) -> None:
    slow = [
        (name, text[:40])
        for text in _shapes(length)
        for name, call in _calls(text).items()
        if all(_cpu_seconds(call) > 0.1 for _ in range(3))  # one quick call is enough
    ]
    assert slow == []


def _shapes(length: int) -> list[str]:
    return [
        head + piece * ((length - len(head) - len(tail)) // len(piece)) + tail
        for piece, (head, tail) in itertools.product(PIECES, ENDS)
    ]


def _calls(text: str) -> dict[str, Callable[[], object]]:
    cleaned = clean(text)
    calls: dict[str, Callable[[], object]] = {
        f"decide {gold}": lambda gold=gold: decide(gold, cleaned) for gold in GOLDS
    }
    return calls | {
        "clean": lambda: clean(text),
        "last_boxed": lambda: last_boxed(text),
        "reward": lambda: training_reward(f"\\boxed{{{text}}}", "5"),
        "aligned": lambda: aligned("5", cleaned),
    }


def _cpu_seconds(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return time.thread_time() - start


def test_a_sample_of_shapes_in_a_real_process() -> None:
    shapes = [*_shapes(200)[::15], *_shapes(MAX_CHARACTERS - 10)[::20], *_shapes(20_000)[::50]]
    grades = grade_many([("2k+2", f"\\boxed{{{text}}}") for text in shapes], timeout=2.0)
    assert not any(verdict.correct for verdict in grades)
    assert grade("2k+2", r"\boxed{2(k+1)}").correct


def test_an_answer_beyond_the_bound_is_wrong_by_name() -> None:
    assert grade("5", "\\boxed{" + "5" * (MAX_CHARACTERS + 1) + "}").method == "too long"


def test_nested_boxes_do_not_recurse() -> None:
    assert last_boxed(r"\boxed{" * 5_000 + "7" + "}" * 5_000) == "7"


@pytest.mark.parametrize("content", ["7", "8", ""])
def test_many_boxes_around_an_answer_take_no_time(content: str) -> None:
    text = r"\boxed{" * 100_000 + content + "}" * 100_000
    assert _cpu_seconds(lambda: last_boxed(text)) < 0.5
    assert not grade("7", text).correct  # the openings lie before the 100,000 characters read
    assert grade("7", r"\boxed{" * 10_000 + content + "}" * 10_000).correct == (content == "7")
