"""How often the interval of a table holds the true value, where a benchmark is small or extreme.

Each line draws benchmarks whose problems differ in difficulty (a beta law), answers them, and
counts the 95 % intervals that hold the true mean; beside it Wilson's interval on the number of
problems, which takes the answers to a problem for one. `python benchmarks/bench_intervals.py`
"""

import sys

import numpy as np

from grpo_replay.statistics.intervals import Interval, _wilson, bootstrap_interval

SHAPES = ((30, 16), (30, 4), (60, 8), (500, 4))  # problems, samples a problem
MEANS = (2.4, 10.0, 50.0, 90.0, 97.6)


def held(
    problems: int, samples: int, mean: float, spread: float, repetitions: int
) -> tuple[float, float]:
    """The percent of intervals that hold the true mean: the table's own, and Wilson's; the
    problems' difficulty has beta's parameters `spread` x (mean, 100 - mean) / 100.
    """
    rng = np.random.default_rng(0)
    hits = np.zeros(2)
    for number in range(repetitions):
        share_P = rng.beta(spread * mean / 100, spread * (1 - mean / 100), size=problems)
        percent_P = 100 * rng.binomial(samples, share_P) / samples
        found: list[Interval] = [
            bootstrap_interval(percent_P, seed=number, resamples=999),
            _wilson(float(percent_P.mean()), problems, 0.95),
        ]
        hits += [i.low <= mean <= i.high for i in found]
    own, wilson = 100 * hits / repetitions
    return float(own), float(wilson)


def main(repetitions: int) -> None:
    """Print a line a case."""
    print("problems samples mean spread  held by ours  by Wilson on problems")
    for problems, samples in SHAPES:
        for mean in MEANS:
            for spread in (0.3, 1.0):
                own, wilson = held(problems, samples, mean, spread, repetitions)
                print(f"{problems:8} {samples:7} {mean:4} {spread:6} {own:13.1f} {wilson:22.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
