r"""Mutate gold answers (digit, sign, constant, unit, operator) and list what is graded right.

    GRPO_REPLAY_DATA=folder python benchmarks/mutate_golds.py [count]

Prints the number of mutated answers, how many are graded right by which rule, and each of them.
A mutation that leaves the value as it was (1-x against -x+1) is in the list too: judge it by eye.

Of 3,000 (798 digits, 746 operators, 737 constants, 655 signs, 64 others) 37 were graded right: by
our rules 15 decimals with a zero added (no longer made) and 4 percents for degrees (mended since),
by math-verify 18, nearly all of the same value (1! for 1, -0 for 0) or with a power behind a unit.
"""

import json
import os
import random
import re
import sys
from collections import Counter
from pathlib import Path

from grpo_replay.tasks.math import grade_many

SWAPS = {
    "digit": {digit: [d for d in "0123456789" if d != digit] for digit in "0123456789"},
    "sign": {"+": ["-"], "-": ["+"]},
    "operator": {"+": [r"\cdot ", "/"], "/": ["+"], "^": [r"\cdot "], r"\cdot": ["+"],
                 r"\times": ["+"], r"\frac": [r"\binom"], r"\sqrt": [r"\sqrt[3]", ""],
                 r"\cup": [r"\cap"], r"\sin": [r"\cos"], r"\cos": [r"\sin"], r"\ln": [r"\sin"]},
    "comparison": {r"\le": [r"\ge", "<"], r"\ge": [r"\le", ">"], r"\leq": [r"\geq"],
                   r"\geq": [r"\leq"], "<": [">", r"\le "], ">": ["<", r"\ge "], "[": ["("],
                   "]": [")"], ":": ["/", "+"], "=": ["<"]},
    "constant": {r"\pi": ["e", "3.14", ""], "e": [r"\pi ", "i"], "i": ["e", ""],
                 r"\infty": ["9"], "!": ["", "!!"]},
    "letter": {a: [b] for a, b in ("xy", "yx", "nm", "mn", "kn", "ab", "ba", "zx", "pq", "qp")},
    "unit": {"cm": ["km"], "meters": ["feet"], "minutes": ["hours"], "hours": ["minutes"],
             "dollars": ["cents"], "cents": ["dollars"], "degrees": ["radians"],
             r"^\circ": [r"\%", r"\pi"], r"^{\circ}": [r"\%", r"\pi"], r"\%": [r"\pi"],
             "PM": ["AM"], "p.m.": ["a.m."], "a.m.": ["p.m."]},
}  # fmt: skip
BEFORE = {"sign": ["-"], "constant": [r"\pi ", "i", "2e", r"\sqrt{2}"], "operator": ["2+", "1/"]}
BEHIND = {"operator": ["!", "^2", "+1"], "constant": [r"\pi", "i", "e", r"\mathrm{i}", r"\sqrt 3"]}
KINDS = tuple(SWAPS)


def mutate(gold: str, source: random.Random) -> tuple[str, str] | None:
    """Return (kind, gold with one place changed), or None where nothing can be changed so."""
    kind = source.choice(KINDS)
    places = [(m.start(), m[0]) for m in re.finditer(_pattern(kind), gold)]
    outside = [(0, new) for new in BEFORE.get(kind, [])]
    outside += [(len(gold), new) for new in BEHIND.get(kind, [])]
    if places and (not outside or source.random() < 0.7):
        start, old = source.choice(places)
        return kind, gold[:start] + source.choice(SWAPS[kind][old]) + gold[start + len(old) :]
    if not outside:
        return None
    start, new = source.choice(outside)
    return kind, gold[:start] + new + gold[start:]


def _pattern(kind: str) -> str:
    """Match what this kind replaces; a name is matched whole, a letter on its own."""
    found = []
    for old in sorted(SWAPS[kind], key=len, reverse=True):
        word = old[-1].isalpha()
        before = r"(?<![A-Za-z\\])" if old[0].isalpha() else ""
        found.append(before + re.escape(old) + (r"(?![A-Za-z])" if word else ""))
    return "|".join(found)


def mutations(golds: list[str], count: int) -> dict[tuple[str, str], str]:
    """Return `count` pairs (gold, mutated gold) and their kinds, at most half of them digits."""
    source = random.Random(0)
    made: dict[tuple[str, str], str] = {}
    kinds: Counter[str] = Counter()
    while len(made) < count:
        gold = source.choice(golds)
        kind, text = mutate(gold, source) or ("", gold)
        full = kind == "digit" and kinds["digit"] >= count // 2
        if text != gold and (gold, text) not in made and not full:
            made[gold, text] = kind
            kinds[kind] += 1
    return made


def main() -> None:
    """Grade `count` mutated golds (10,000 by default) and print those that are graded right."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    folder = Path(os.environ["GRPO_REPLAY_DATA"])
    names = ("math500", "aime2*", "hmmt*", "deepscaler*")
    files = [path for name in names for path in sorted(folder.glob(f"{name}.jsonl"))]
    golds = sorted({str(json.loads(line)["answer"]) for f in files for line in f.open()})
    golds = [gold for gold in golds if "\\boxed" not in gold]  # `check_gold` refuses these
    made = mutations(golds, count)
    grades = grade_many([(gold, f"\\boxed{{{text}}}") for gold, text in made], timeout=3.0)
    print(len(made), "mutations of", len(golds), "golds:", Counter(made.values()))
    print("timed out:", sum(grade.timed_out for grade in grades))
    right = [(p, g) for p, g in zip(made, grades, strict=True) if g.correct]
    print("graded right:", Counter(grade.method for _, grade in right))
    for (gold, text), grade in right:
        print(json.dumps([grade.method, made[gold, text], gold, text]))


if __name__ == "__main__":
    main()
