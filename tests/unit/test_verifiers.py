"""The table of disagreements: real verdicts on stored answers, counted, with an example each."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from reporting_inputs import small_study, write_own_table

from grpo_replay.evaluation.grade import grade_answers
from grpo_replay.evaluation.sample_files import problems_digest, write_samples
from grpo_replay.files import file_digest, write_json
from grpo_replay.reporting.tables.table import csv_text
from grpo_replay.results.scores import SCHEMA
from grpo_replay.tasks.problems import read_problems, write_problems

CELL, OTHER = "s/base", "s/grpo-seed42"
# Gold, answer, and the verdicts of training, evaluation and paper.
ANSWERS = [
    ("\\frac{1}{2}", "It is \\boxed{0.5}", "wrong right right"),
    ("52_8", "It is \\boxed{52_9}", "wrong wrong right"),
    ("3", "First \\boxed{2}. No, it is\n\n\\boxed{3}.", "right right wrong"),
    ("7", "It is \\boxed{7}", "right right right"),
]
LONG = "word " * 200 + "\\boxed{0.5}"


def answer(results: Path, cell: str, benchmark: str, texts: list[str]) -> None:
    """Store one answer a problem as its second of two, "I do not know" as its first; grade them."""
    folder = results / "cells" / cell
    problems = [
        {"id": f"p{i}", "problem": f"?{i}", "answer": row[0]} for i, row in enumerate(ANSWERS)
    ]
    source = results / "data" / "benchmarks" / f"{benchmark}.jsonl"
    write_problems(source, problems)
    rows = [
        {
            "problem_id": f"p{i}", "sample_id": j, "wave_seed": 42, "text": text,
            "n_tokens": 9, "finish_reason": "stop",
        }
        for i, own in enumerate(texts)
        for j, text in enumerate(["I do not know", own])
    ]  # fmt: skip
    samples = folder / "samples" / f"{benchmark}.parquet"
    write_samples(samples, benchmark, [row["id"] for row in problems], 2, rows)
    manifest = {
        "problems_sha256": {benchmark: problems_digest(read_problems(source))},
        "files": {benchmark: {"sha256": file_digest(samples)}},
    }
    write_json(folder / "samples" / "manifest.json", manifest)
    golds, k = {benchmark: source}, {benchmark: 2}
    grade_answers(samples.parent, folder / "no model", golds, k, folder / "grades", 5.0, 1)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    results = tmp_path_factory.mktemp("results")
    texts = [text for _, text, _ in ANSWERS]
    for benchmark in ("easy", "hard"):
        answer(results, CELL, benchmark, texts)
        answer(results, OTHER, benchmark, [LONG, *texts[1:]])
    pd.DataFrame({"cell": [CELL, CELL, OTHER, OTHER]}).reindex(columns=SCHEMA.names).to_parquet(
        results / "scores.parquet"
    )
    write_own_table("verifiers", small_study(), results, results / "tables" / "verifiers")
    with (results / "tables" / "verifiers.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_combination_is_counted_in_every_cell_and_benchmark(rows: list) -> None:
    found = {
        (row["benchmark"], row["cell"], f"{row['training']} {row['evaluation']} {row['paper']}"):
            (row["answers"], row["of"], row["percent"])
        for row in rows
    }  # fmt: skip
    combinations = {verdicts: ("1", "8", "12.5") for *_, verdicts in ANSWERS}
    combinations["wrong wrong wrong"] = ("4", "8", "50")  # the four that do not know
    assert found == {
        (benchmark, cell, verdicts): counts
        for benchmark in ("easy", "hard")
        for cell in (CELL, OTHER)
        for verdicts, counts in combinations.items()
    }
    assert len(rows) == len(found)


def test_answers_without_a_verdict_are_counted(tmp_path: Path) -> None:
    texts = [text for _, text, _ in ANSWERS]
    answer(tmp_path, CELL, "easy", texts)
    answer(tmp_path, CELL, "hard", texts)
    path = tmp_path / "cells" / CELL / "grades" / "easy.parquet"
    grades = pd.read_parquet(path)
    grades.loc[0, "timed_out"] = grades.loc[[0, 2], "timed_out_paper"] = True
    grades.loc[4, "errors"] = "training: ValueError; paper: SIGSEGV"
    grades.to_parquet(path)
    pd.DataFrame({"cell": [CELL]}).reindex(columns=SCHEMA.names).to_parquet(
        tmp_path / "scores.parquet"
    )
    write_own_table("verifiers", small_study(), tmp_path, tmp_path / "table")
    table = pd.read_csv(tmp_path / "table.csv")
    found = {
        (row.benchmark, row.training, row.evaluation, row.paper): (row.timed_out, row.errors)
        for row in table.itertuples()
        if row.timed_out or row.errors
    }
    assert found == {("easy", "wrong", "wrong", "wrong"): (2, 1)}


def test_a_disagreement_shows_its_answer_and_an_agreement_none(rows: list) -> None:
    own = [row for row in rows if (row["cell"], row["benchmark"]) == (CELL, "easy")]
    examples = {row["gold"]: row for row in own if row["gold"]}
    assert set(examples) == {
        gold for gold, _, verdicts in ANSWERS if len(set(verdicts.split())) > 1
    }
    shown = examples["3"]
    assert (shown["problem_id"], shown["sample_id"], shown["extracted"]) == ("p2", "1", "3")
    assert shown["end_of_text"] == "First \\boxed{2}. No, it is \\boxed{3}."
    assert not any(row["problem_id"] or row["end_of_text"] for row in own if not row["gold"])


def test_long_answers_are_cut_at_the_front(rows: list) -> None:
    text = next(
        row["end_of_text"] for row in rows if row["cell"] == OTHER and row["extracted"] == "0.5"
    )
    assert text == "…" + LONG[-160:]


def test_a_text_of_a_model_is_no_formula_and_a_number_stays_one(tmp_path: Path) -> None:
    """As a spreadsheet reads a cell; the last box of a disagreement is what a model wrote."""
    formula = "=HYPERLINK(1) \\boxed{-0.5}"
    assert csv_text(formula).startswith("'=")
    for text in ("@SUM(A1)", "+1+1", "-x", "\t=1", "\r=1", " =1", "＝1", "-1.2.3", "--1", "-٣"):
        assert csv_text(text) == f"'{text}"
    for text in ("-0.5", "+3", "-.5", "-1e-3", "", "a=b", "5-3", "'=1", "…-x", "\\frac{1}{2}"):
        assert csv_text(text) == text
    texts = ["It is -\\boxed{0.5}", formula, *(text for _, text, _ in ANSWERS[2:])]
    answer(tmp_path, CELL, "easy", texts)
    answer(tmp_path, CELL, "hard", texts)
    path = tmp_path / "cells" / CELL / "grades" / "easy.parquet"
    grades = pd.read_parquet(path)
    grades.loc[3, ["correct", "extracted"]] = [True, "=1+1"]  # as of another grader
    grades.to_parquet(path)
    pd.DataFrame({"cell": [CELL]}).reindex(columns=SCHEMA.names).to_parquet(
        tmp_path / "scores.parquet"
    )
    write_own_table("verifiers", small_study(), tmp_path, tmp_path / "table")
    table = pd.read_csv(tmp_path / "table.csv")
    (row,) = table[table.extracted == "'=1+1"].to_dict("records")
    assert row["end_of_text"] == f"'{formula}" and row["percent"] == 12.5
    assert not table.select_dtypes("object").apply(lambda c: c.str.startswith("=")).any(axis=None)
