r"""Answers that are no LaTeX expression, joined inequalities, and golds changed in one place.

A changed gold is wrong where sympy finds another value for it, exactly; the values of the golds
stand in the test, so that no reader of LaTeX judges itself.
"""

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
import sympy
from sympy import E, I, Rational, pi, sqrt

from grpo_replay.errors import DataError
from grpo_replay.tasks.math import check_gold, grade_many, training_reward

RIGHT = [
    ("1:2", r"1 : 2|$1:2$|1\colon 2|1\!:\!2|1\,:\,2"),
    ("1:5 000 000", r"1:5,000,000|1:5000000|1 : 5\,000\,000"),
    (r"05\!:\!00", "5:00|05:00"), ("09:38", "9:38"),
    ("4:30 PM", r"4:30 pm|4:30\text{ PM}|4:30\ \text{p.m.}|04:30\mathrm{pm}"),
    ("4:40 a.m.", r"4:40\text{ AM}|4:40am"),
    (r"8\!:\!34 \text{ p.m.}", r"8:34 PM|8:34\,\mathrm{pm}"),
    (r"4:45\frac{3}{11}", r"4:45\frac3{11}"),
    (r"2:\sqrt{5}:\sqrt{5}", r"2:\sqrt5:\frac{5}{\sqrt5}"),
    (r"\sqrt{13} : 2\sqrt{10}", r"\sqrt{13}:\sqrt{40}"),
    (r"\frac{7 \cdot 5}{4} \text{ OR } \frac{35}{4}", r"\frac{35}{4}|8.75"),
    (r"$x \le -2$ or $x \ge 3$",
     r"x\geq 3 \text{ or } x\leq-2|(-\infty,-2]\cup[3,\infty)|x\le-2, x\ge3"),
    (r"(-\infty,-2]\cup[3,\infty)", r"x\ge 3 \text{ or } x\le-2"), ("(2,5)", "x>2 and x<5"),
    (r"0, 2, 4, \ldots, 22", r"0,2,4,\dots,22|0,2,4,...,22"),
    (r"0.0223641 \ldots", "0.0223641"), (r"3\mid n", "3|n"), (r"\div", "÷"),
    (r"n \equiv 0,2(\bmod 6)", r"n \equiv 0, 2 \pmod{6}|n \equiv 2,0 \pmod 6"),
    (r"x \equiv 3 \pmod{7}", r"x\equiv 10 \pmod 7|3 \pmod{7}|x\equiv3\ (\text{mod } 7)"),
    (r"3200 \mathrm{~cm}^{3}", r"3200|3200\text{ cm}^3"), (r"\text{C}", r"C|(C)|\textbf{C}"),
]  # fmt: skip
WRONG = [
    ("1:2", r"2:1|1:3|12|2:4|1:2:3|\frac12|1:\frac12|1"), ("4:50", "4:5|4:50 PM|5:40"),
    ("4:05", "4:5"), ("4:30 PM", "4:30 AM|4:30|16:30 AM|4:03 PM"),
    (r"4:45\frac{3}{11}", r"4:45|4:45\frac{3}{10}"),
    (r"2:\sqrt{5}:\sqrt{5}", r"2:\sqrt5:\sqrt3|\sqrt5:2:\sqrt5"), ("1:2,3:4", "1,2:3:4"),
    (r"x \equiv 3 \pmod{7}",
     r"x\equiv 4 \pmod 7|x\equiv 3 \pmod 8|y\equiv 3 \pmod 7|3|x \equiv 3 \pmod{0}"),
    (r"n \equiv 0,2(\bmod 6)", r"n \equiv 0\pmod 6|n \equiv 0,2\pmod 3"),
    (r"$x \le -2$ or $x \ge 3$",
     r"x\le-2|(-\infty,-2]\cup(3,\infty)|[-2,3]|x\le-2 \text{ and } x\ge3"),
    (r"0, 2, 4, \ldots, 22", r"0, 2, 4, \ldots, 24|0,2,4,22"), (r"0.0223641 \ldots", "0.0223642"),
    (r"3\mid n", r"3 | m|3\nmid n"), (r"\frac{7 \cdot 5}{4} \text{ OR } \frac{35}{4}", "35"),
    (r"x=1 \text{ OR } x=2", "x=1"), (r"1 \text{ OR } 2", "1"), (r"\div", r"\times"),
    (r"3200 \mathrm{~cm}^{3}", r"3200\mathrm{~mm}^3"), (r"\text{C}", "B|(C) or (D)"),
    (r"17^\circ", r"17\%"), (r"17\%", r"17^\circ"),
]  # fmt: skip


@pytest.mark.parametrize(("cases", "correct"), [(RIGHT, True), (WRONG, False)])
def test_forms(cases: list[tuple[str, str]], correct: bool) -> None:
    pairs = [(gold, text) for gold, texts in cases for text in _split(texts)]
    grades = grade_many([(gold, f"\\boxed{{{text}}}") for gold, text in pairs])
    assert [p for p, g in zip(pairs, grades, strict=True) if g.correct != correct] == []


def _split(texts: str) -> list[str]:
    """Split at bars, but not at the one of "3|n" or "3 | m"."""
    return [text.replace("!bar!", "|") for text in
            texts.replace("3|n", "3!bar!n").replace("3 | m", "3 !bar! m").split("|")]  # fmt: skip


# What a gold is made of, each with its exact value.
TERMS = [
    (r"\pi", pi), ("e", E), ("i", I), (r"\sqrt{2}", sqrt(2)), (r"\sqrt{7}", sqrt(7)),
    (r"\frac{3}{4}", Rational(3, 4)), (r"\frac{\pi}{5}", pi / 5), ("11", sympy.Integer(11)),
    ("2.5", Rational(5, 2)), (r"\sqrt[3]{5}", sympy.cbrt(5)), ("e^2", E**2),
    ("6", sympy.Integer(6)),
]  # fmt: skip
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    r" \cdot ": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
UNITS = ("", "", r"^\circ", r"\text{ cm}", r"\text{ dollars}", r"\text{ minutes}")
OTHER_UNITS = {r"\text{ cm}": r"\text{ km}", r"\text{ dollars}": r"\text{ cents}",
               r"\text{ minutes}": r"\text{ hours}", r"^\circ": r"\%"}  # fmt: skip


def test_a_gold_changed_in_one_place_is_wrong() -> None:
    source = random.Random(5)
    made: dict[tuple[str, str], str] = {}
    while len(made) < 200:
        kind = source.choice(["term", "term", "sign", "sign", "operator", "operator", "unit"])
        if changed := _changed(kind, source):
            made[changed] = kind
    assert min(Counter(made.values()).values()) >= 10
    grades = grade_many([(gold, f"\\boxed{{{text}}}") for gold, text in made])
    assert [p for p, g in zip(made, grades, strict=True) if g.correct] == []
    golds = list(dict.fromkeys(gold for gold, _ in made))
    assert all(g.correct for g in grade_many([(gold, f"\\boxed{{{gold}}}") for gold in golds]))


def _changed(kind: str, source: random.Random) -> tuple[str, str] | None:
    """Return a gold, and the same with another term, sign, operator or unit; None: equal values."""
    first, second, other = source.sample(TERMS, 3)
    name, new_name = source.sample(sorted(OPERATORS), 2)
    unit = source.choice(UNITS)
    if kind == "unit":
        number = source.choice(["11", "2.5", r"\frac{3}{4}", "6"])
        return (number + unit, number + OTHER_UNITS[unit]) if unit else None
    gold, value = first[0] + name + second[0], OPERATORS[name](first[1], second[1])
    if kind == "term":
        text, new = first[0] + name + other[0], OPERATORS[name](first[1], other[1])
    elif kind == "sign":
        text, new = "-" + gold, OPERATORS[name](-first[1], second[1])
    else:
        text = first[0] + new_name + second[0]
        new = OPERATORS[new_name](first[1], second[1])
    return (gold, text) if abs(sympy.N(value - new, 40)) > 1e-9 else None


def test_every_gold_at_hand_is_right_against_itself_or_named() -> None:
    folder = Path(os.environ.get("GRPO_REPLAY_DATA", Path(__file__).parents[3] / "shared/data"))
    if not folder.exists():
        pytest.skip(f"{folder} is not there: set GRPO_REPLAY_DATA")
    files = sorted(folder.glob("*.jsonl"))
    golds = sorted({str(json.loads(line)["answer"]) for f in files for line in f.open()})
    boxed = [(gold, f"\\boxed{{{gold}}}") for gold in golds]
    wrong = [
        gold
        for (gold, text), found in zip(boxed, grade_many(boxed), strict=True)
        if not found.correct or training_reward(text, gold) < 0
    ]
    assert len(wrong) <= len(golds) // 100
    for gold in wrong:
        with pytest.raises(DataError, match="wrong against itself|cannot be parsed"):
            check_gold(gold)
