"""How fast answers are graded, and how near that is to what the cores allow.

`grade_many` against the plain loop `verify(parse(gold), parse(prediction))` over the same 8,000
pairs, the 500 golds of MATH-500 x 16 completions, right and wrong ones. Once a quarter of the pairs
is distinct (models repeat themselves at temperature 0.6), at least 8 x as fast is wanted; once all
are. The first figure includes the start of the grading processes. The limit is what the loop
would cost for the distinct pairs alone, spread over the cores without any loss; exact rules for
numbers and words can go below it.

GRPO_REPLAY_DATA=<folder with math500.jsonl> python benchmarks/bench_grading.py
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable

from math_verify import parse, verify

from grpo_replay.tasks.config import DataFile
from grpo_replay.tasks.math import Grade, grade_many
from grpo_replay.tasks.problems import data_file, read_problems

SAMPLES, CORES, SHOWN = 16, 2, 8
Pair = tuple[str, str]


def variants(golds: list[str], position: int, count: int) -> list[str]:
    """Return different answers to one problem: its gold, in other spellings too, then wrong ones.

    A wrong one is the gold with a digit changed, as hard to judge as the gold; where its digits do
    not suffice, golds of other problems follow.
    """
    gold = golds[position]
    spellings = [gold, f"x = {gold}", gold.replace("\\frac", "\\dfrac"), f"{gold}."]
    changed = [
        gold[:place] + str((int(digit) + step) % 10) + gold[place + 1 :]
        for step in range(1, 10)
        for place, digit in enumerate(gold)
        if digit.isascii() and digit.isdigit()
    ]
    others = golds[position + 1 :] + golds[:position]
    return list(dict.fromkeys([*spellings[: count // 2], *changed, *others]))[:count]


def make_pairs(golds: list[str], distinct: int) -> list[Pair]:
    """Return (gold, completion) pairs in random order, `distinct` of a problem's 16 different."""
    pairs = [
        (gold, f"Adding both, the answer is $\\boxed{{{answers[sample % distinct]}}}$.")
        for position, gold in enumerate(golds)
        for answers in [variants(golds, position, distinct)]
        for sample in range(SAMPLES)
    ]
    random.Random(0).shuffle(pairs)
    return pairs


def plain_loop(pairs: list[Pair]) -> list[bool]:
    """Return what math-verify says, pair by pair; golds are wrapped, or a fifth would not parse."""
    return [verify(parse(f"${gold}$"), parse(completion)) for gold, completion in pairs]


def timed(action: Callable[[], list]) -> tuple[list, float]:
    """Return what an action gives and its seconds."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def compare(name: str, pairs: list[Pair]) -> None:
    """Print both times, what the limit is, and the verdicts that differ."""
    count = len(set(pairs))
    ours, seconds = timed(lambda: grade_many(pairs, workers=CORES))
    theirs, plain = timed(lambda: plain_loop(pairs))
    limit = count * plain / len(pairs) / CORES
    print(
        f"{name}: {len(pairs)} pairs, {count} distinct, {CORES} cores: plain loop {plain:.1f} s, "
        f"grade_many {seconds:.2f} s: {plain / seconds:.1f} x\n"
        f"  limit {limit:.2f} s ({plain / limit:.1f} x): ours is {seconds / limit:.2f} x it\n"
        f"  {sum(g.correct for g in ours)} right, {sum(g.timed_out for g in ours)} timed out, "
        f"decided by {dict(Counter(g.method for g in ours).most_common())}"
    )
    report_differences(pairs, ours, theirs)


def report_differences(pairs: list[Pair], ours: list[Grade], theirs: list[bool]) -> None:
    """Print the distinct pairs that both judge differently: all must be documented decisions."""
    different = {
        (grade.method, grade.correct, gold, grade.extracted)
        for (gold, _), grade, other in zip(pairs, ours, theirs, strict=True)
        if grade.correct != other
    }
    print(f"  {len(different)} distinct pairs are judged differently")
    for group, count in Counter(row[:2] for row in different).items():
        method, correct = group
        print(f"  {count} are {'right' if correct else 'wrong'} for us ({method}), such as")
        for *_, gold, answer in sorted(row for row in different if row[:2] == group)[:SHOWN]:
            print(f"    gold {gold}  answer {answer}")


def main() -> None:
    """Both mixes, one after the other."""
    if hasattr(os, "sched_setaffinity"):  # the plain loop uses one core, ours two
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    golds = [row["answer"] for row in read_problems(data_file(DataFile(file="math500.jsonl")))]
    compare("a quarter distinct", make_pairs(golds, SAMPLES // 4))
    compare("all distinct", make_pairs(golds, SAMPLES))


if __name__ == "__main__":
    main()
