"""The paper's printed numbers: the CSV files of `published/`, one a table, as their texts."""

import csv
from pathlib import Path

from grpo_replay.statistics.intervals import reachable

FOLDER = Path(__file__).parent / "published"
# Benchmarks of Table 1: (problems, samples a problem), as "Evaluation" of the paper has them.
BENCHMARKS = {
    "math500": (500, 8),
    "aime25": (30, 16),
    "aime26": (30, 16),
    "hmmt_feb25": (30, 16),
    "hmmt_feb26": (33, 16),
}
SCALES = ("0.6B", "1.7B", "4B")


def rows(table: str) -> list[dict[str, str]]:
    """The lines of `table01` to `table13` by column name; texts as printed, empty where blank."""
    (path,) = FOLDER.glob(f"{table}_*.csv")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def decimals(text: str) -> int:
    """How many digits a number is printed with after its point."""
    return len(text.partition(".")[2])


def possible(column: str, text: str) -> bool:
    """Whether the score of one benchmark in Table 1 (`aime25_avg`) can be printed so.

    avg@k is a mean over problems x samples, pass@k one over problems; other columns may be
    anything.
    """
    benchmark, _, part = column.rpartition("_")
    if benchmark not in BENCHMARKS:
        return True
    n, k = BENCHMARKS[benchmark]
    return reachable(float(text), n, k if part == "avg" else 1)
