"""Where the verifiers of an answer disagree: how often in each cell, with an example.

Of mathematics there are three: the training reward (Minerva rules, last 500 characters), the
evaluation grade that feeds the tables and the paper's evaluation (math-verify on the raw text)
judge the same stored answers. A model can gain by one of them and not by the others, which an
accuracy alone does not show.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Label, Row, Table
from grpo_replay.results.grades import timed_out_columns, verdict_columns
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.study.cells import benchmark_task
from grpo_replay.study.config import Study
from grpo_replay.tasks.problems import read_problems

COUNTS = {
    "answers": "Answers",
    "of": "Of",
    "percent": "Percent",
    "timed_out": "Timed out",
    "errors": "Errors",
}
EXAMPLE = {"problem_id": "Problem", "gold": "Gold", "extracted": "Last box"}
SHOWN_CHARACTERS = 160
NOTES = [
    "A row is a combination of verdicts that occurs; the answers of a cell and benchmark add up to "
    "all of them. A disagreement shows its first answer (the csv file also the end of its text).",
    "Timed out, Errors: answers of the row that a verifier counts as wrong because it ran out of "
    "CPU time, or because something was raised.",
]


def build(source: Source) -> Table:
    """A row a finished cell, benchmark and combination of verdicts that occurs."""
    study = source.study
    rows = [
        Row({"cell": cell, "benchmark": name, **labels}, {})
        for cell in source.scores["cell"].unique()
        for name in study.benchmarks
        for labels in _combinations(study, source.results, cell, name)
    ]
    verifiers = dict.fromkeys(name for own in study.benchmarks for name in _names(study, own))
    index = {"cell": "Cell", "benchmark": "Benchmark", **{v: v.capitalize() for v in verifiers}}
    title = f"Where the verifiers of an answer disagree ({study.title})"
    return Table(title, index | COUNTS | EXAMPLE, [], rows, NOTES, ("sample_id", "end_of_text"))


def _names(study: Study, benchmark: str) -> list[str]:
    """The verifiers of a benchmark. The last one stands first, which is the training reward of
    mathematics: what was trained for, then what is measured.
    """
    *others, last = benchmark_task(study, study.benchmarks[benchmark]).verifiers
    return [last, *others]


def _combinations(
    study: Study, results: Path, cell: str, benchmark: str
) -> Iterator[dict[str, Label]]:
    grades = pd.read_parquet(CellFiles(results, cell).grades(benchmark))
    verifiers = benchmark_task(study, study.benchmarks[benchmark]).verifiers
    columns, names = verdict_columns(verifiers), _names(study, benchmark)
    verdicts = [tuple(row) for row in grades[[columns[n] for n in names]].to_numpy().tolist()]
    timed_out = grades[[*timed_out_columns(verifiers).values()]].any(axis=1)
    for combination in sorted(set(verdicts), reverse=True):
        own = [place for place, found in enumerate(verdicts) if found == combination]
        words = ["right" if verdict else "wrong" for verdict in combination]
        row: dict[str, Label] = dict(zip(names, words, strict=True))
        percent = f"{100 * len(own) / len(grades):.6g}"
        row |= {"answers": len(own), "of": len(grades), "percent": percent}
        row["timed_out"] = int(timed_out[own].sum())
        row["errors"] = int((grades["errors"][own] != "").sum())
        if len(set(combination)) > 1:
            row |= _example(results, cell, benchmark, grades.loc[own[0]])
        yield row


def _example(results: Path, cell: str, benchmark: str, graded: pd.Series) -> dict[str, Label]:
    keys = {name: graded[name] for name in ("problem_id", "sample_id")}
    samples = pd.read_parquet(
        CellFiles(results, cell).samples(benchmark),
        columns=["text"],
        filters=[(name, "==", value) for name, value in keys.items()],
    )
    problems = read_problems(StudyFiles(results).benchmark(benchmark))
    gold = next(row["answer"] for row in problems if row["id"] == keys["problem_id"])
    text = " ".join(samples["text"].item().split())
    end = f"…{text[-SHOWN_CHARACTERS:]}"
    return {
        "problem_id": graded["problem_id"],
        "sample_id": int(graded["sample_id"]),
        "gold": " ".join(gold.split()),
        "extracted": None
        if pd.isna(graded["extracted"])
        else " ".join(graded["extracted"].split()),
        "end_of_text": text if len(text) <= SHOWN_CHARACTERS else end,
    }
