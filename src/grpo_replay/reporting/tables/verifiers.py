"""Where the verifiers of an answer disagree: how often in each cell, with an example.

Of mathematics there are three: the training reward (Minerva rules, last 500 characters), the
evaluation grade that feeds the tables and the paper's evaluation (math-verify on the raw text)
judge the same stored answers. A model can gain by one of them and not by the others, which an
accuracy alone does not show.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from grpo_replay.files import write_text
from grpo_replay.reporting.tables.table import csv_text
from grpo_replay.results.grades import timed_out_columns, verdict_columns
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.results.scores import read_scores
from grpo_replay.study.cells import benchmark_task
from grpo_replay.study.config import Study
from grpo_replay.tasks.problems import read_problems

COUNTS = ["answers", "of", "percent", "timed_out", "errors"]
EXAMPLE = ["problem_id", "sample_id", "gold", "extracted", "end_of_text"]
SHOWN_CHARACTERS = 160


def verifiers_table(study: Study, results: Path, output: Path) -> None:
    """Write one row a cell x benchmark x combination of verdicts that occurs, as CSV.

    `results` is the study's folder; the cells are those of its scores.parquet. The counts of a cell
    and benchmark (`answers`, and `percent` of `of`) add up to all its answers, so agreements are
    rows too. `timed_out` and `errors` count the answers that a verifier counts as wrong because it
    ran out of CPU time, or because something was raised. A disagreement shows its first answer:
    gold, content of the last box, and the end of the text; one that a
    spreadsheet would take for a formula stands behind an apostrophe.
    """
    scores = read_scores(results)
    rows = [
        {"cell": cell, "benchmark": name, **row}
        for cell in scores["cell"].unique()
        for name in study.benchmarks
        for row in _combinations(study, results, cell, name)
    ]
    names = dict.fromkeys(name for own in study.benchmarks for name in _names(study, own))
    columns = ["cell", "benchmark", *names, *COUNTS, *EXAMPLE]
    table = pd.DataFrame(rows, columns=columns).astype({"sample_id": "Int64"})
    write_text(output, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def _names(study: Study, benchmark: str) -> list[str]:
    """The verifiers of a benchmark. The last one stands first, which is the training reward of
    mathematics: what was trained for, then what is measured.
    """
    *others, last = benchmark_task(study, study.benchmarks[benchmark]).verifiers
    return [last, *others]


def _combinations(
    study: Study, results: Path, cell: str, benchmark: str
) -> Iterator[dict[str, Any]]:
    grades = pd.read_parquet(CellFiles(results, cell).grades(benchmark))
    verifiers = benchmark_task(study, study.benchmarks[benchmark]).verifiers
    columns, names = verdict_columns(verifiers), _names(study, benchmark)
    verdicts = [tuple(row) for row in grades[[columns[n] for n in names]].to_numpy().tolist()]
    timed_out = grades[[*timed_out_columns(verifiers).values()]].any(axis=1)
    for combination in sorted(set(verdicts), reverse=True):
        own = [place for place, found in enumerate(verdicts) if found == combination]
        words = ["right" if verdict else "wrong" for verdict in combination]
        row: dict[str, Any] = dict(zip(names, words, strict=True))
        row |= {"answers": len(own), "of": len(grades), "percent": 100 * len(own) / len(grades)}
        row |= {"timed_out": timed_out[own].sum(), "errors": (grades["errors"][own] != "").sum()}
        if len(set(combination)) > 1:
            row |= _example(results, cell, benchmark, grades.loc[own[0]])
        yield row


def _example(results: Path, cell: str, benchmark: str, graded: pd.Series) -> dict[str, Any]:
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
        "problem_id": csv_text(graded["problem_id"]),
        "sample_id": graded["sample_id"],
        "gold": csv_text(gold),
        "extracted": csv_text("" if pd.isna(graded["extracted"]) else graded["extracted"]),
        "end_of_text": csv_text(text if len(text) <= SHOWN_CHARACTERS else end),
    }
