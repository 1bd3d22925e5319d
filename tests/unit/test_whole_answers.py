r"""A verdict needs the whole answer: kinds of fragments, of spellings, and bounds on any text."""

import itertools
import time

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
    "other": ("14-i", r"14.0 - 1.0i|14.0-i|-i+14|14-1i|14-\mathrm{i}|-\mathrm{i}+14"),
    "empty set": (r"\emptyset", r"\varnothing|\emptyset"),
    "domain": (r"k\pi", r"k\pi, k \in \mathbb{Z}|\pi k, k\in\mathbb{Z}|k\pi, k\in\mathbb Z"),
    "sum": (
        r"\frac{\pi}{4}+2-\sqrt{2}",
        r"2-\sqrt2+\frac\pi4|\frac\pi4-\sqrt2+2|-\sqrt2+2+\frac\pi4|2+\frac\pi4-\sqrt2",
    ),
    "letter": (r"\text{(C)}", r"\text{Choice (C)}|\text{The correct answer is C}|\text{Option C}"),
}


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


@pytest.mark.parametrize("gold", [r"\boxed{60}", r"\(\boxed{4489}\)", r"x=\boxed{2}"])
def test_a_gold_that_holds_a_box_is_named(gold: str) -> None:
    with pytest.raises(DataError, match="training reward"):
        check_gold(gold)


PIECES = (
    " ", ".", ",", r"\,", r"\text{}", r"\text{ ", "{", "}", "(", "[", r"\frac", r"\sqrt", r"\sqrt[",
    r"\sqrt(", "1", "1 ", "1,", "1/", "$", "\\", "a", "a ", r"\mathrm{", r"\color{", r"\boxed{",
    r"\boxed ", "=", r"\pm", "^", "-", "the ", "or ", "answer ", "\n", "~", r"\text{1", "(A)", "0.",
    r"\overline{", "%", r"\circ",
)  # fmt: skip
ENDS = (("", ""), ("1", "x"), ("(", ")"), ("x", "5"), (r"5\text{", "}"))


@pytest.mark.parametrize("length", [200, MAX_CHARACTERS - 10, 20_000, 1_000_000])
def test_no_text_holds_the_caller(length: int) -> None:
    slow = []
    for piece, (head, tail) in itertools.product(PIECES, ENDS):
        text = head + piece * (length // len(piece)) + tail
        start = time.thread_time()
        _judge(text)
        if time.thread_time() - start > 0.3:  # three calls of 0.1 s
            slow.append((piece, head, tail))
    assert slow == []


def _judge(text: str) -> None:
    last_boxed(text)
    training_reward(f"\\boxed{{{text}}}", "5")
    answer = clean(text)
    if decide("5", answer) is None:
        aligned("5", answer)


def test_an_answer_beyond_the_bound_is_wrong_by_name() -> None:
    assert grade("5", "\\boxed{" + "5" * (MAX_CHARACTERS + 1) + "}").method == "too long"


def test_nested_boxes_do_not_recurse() -> None:
    assert last_boxed(r"\boxed{" * 5_000 + "7" + "}" * 5_000) == "7"
