r"""Mutate gold answers (digit, sign, constant, unit, operator) and list what is graded right.

    GRPO_REPLAY_DATA=folder python benchmarks/mutate_golds.py [count]

Prints the number of mutated answers, how many are graded right by which rule, and each of them.
A mutation that leaves the value as it was (1-x against -x+1) is in the list too: judge it by eye.
"""

import json
import os
import random
import re
import sys
from collections import Counter
from pathlib import Path

from grpo_replay.tasks.math import grade_many

SWAPS = (
    ("sign or operator", r"[+-]", {"+": "-", "-": "+"}),
    ("comparison", r"\\le\b|\\ge\b|<|>", {r"\le": r"\ge", r"\ge": r"\le", "<": ">", ">": "<"}),
    ("constant", r"\\pi\b|\\sqrt\b|(?<![A-Za-z\\])[eixynk](?![A-Za-z])",
     {r"\pi": "e", r"\sqrt": "", "e": r"\pi ", "i": "e", "x": "y", "y": "x", "n": "m", "k": "m"}),
    ("unit", r"cm|meters|minutes|hours|dollars|cents|degrees",
     {"cm": "km", "meters": "feet", "minutes": "hours", "hours": "minutes", "dollars": "cents",
      "cents": "dollars", "degrees": "radians"}),
)  # fmt: skip


def mutate(gold: str, random_source: random.Random) -> tuple[str, str] | None:
    """Return (kind, gold with one place changed), or None where nothing can be changed so."""
    kind, pattern, swap = random_source.choice((("digit", r"\d", {}), *SWAPS))
    places = list(re.finditer(pattern, gold))
    if not places:
        return None
    place = random_source.choice(places)
    if kind == "digit":
        new = random_source.choice([digit for digit in "0123456789" if digit != place[0]])
    else:
        new = swap[place[0]]
    return kind, gold[: place.start()] + new + gold[place.end() :]


def main() -> None:
    """Grade `count` mutated golds (10,000 by default) and print those that are graded right."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    folder = Path(os.environ["GRPO_REPLAY_DATA"])
    names = ("math500", "aime2*", "hmmt*", "deepscaler*")
    files = [path for name in names for path in sorted(folder.glob(f"{name}.jsonl"))]
    golds = sorted({str(json.loads(line)["answer"]) for f in files for line in f.open()})
    source = random.Random(0)
    mutations: dict[tuple[str, str], str] = {}
    for _ in range(40 * count):
        gold = source.choice(golds)
        if len(mutations) < count and (made := mutate(gold, source)) and made[1] != gold:
            mutations[gold, made[1]] = made[0]
    grades = grade_many([(gold, f"\\boxed{{{text}}}") for gold, text in mutations], timeout=3.0)
    print(len(mutations), "mutations of", len(golds), "golds:", Counter(mutations.values()))
    print("timed out:", sum(grade.timed_out for grade in grades))
    right = [(p, g) for p, g in zip(mutations, grades, strict=True) if g.correct]
    print("graded right:", Counter(grade.method for _, grade in right))
    for (gold, text), grade in right:
        print(json.dumps([grade.method, mutations[gold, text], gold, text]))


if __name__ == "__main__":
    main()
