"""From graded samples to scores: one `scores.json` a cell, one `scores.parquet` a study.

Every table and figure reads `scores.parquet`, which therefore also carries the outcome of every
problem: paired tests and intervals of means need them. A score that belongs to another
configuration is left out, never shown.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from grpo_replay import grid, metrics, statistics
from grpo_replay.config import Study
from grpo_replay.errors import DataError
from grpo_replay.files import read_json, whole_file, write_text
from grpo_replay.plan import current_scores, scores_file
from grpo_replay.sources import Benchmark

SCORES_FILE = "scores.parquet"
_GRADE_COLUMNS = [
    "problem_id",
    "sample_id",
    "correct",
    "grade_paper",
    "timed_out",
    "n_tokens",
    "finish_reason",
]
SCHEMA = pa.schema(
    [
        ("study", pa.string()),
        ("cell", pa.string()),
        ("scale", pa.string()),
        ("method", pa.string()),
        ("composition", pa.string()),
        ("unit", pa.string()),
        ("priority", pa.string()),
        ("tau_max", pa.int64()),
        ("replay_ratio", pa.float64()),
        ("alpha", pa.float64()),
        ("seed", pa.int64()),
        ("benchmark", pa.string()),
        ("n_problems", pa.int64()),
        ("k", pa.int64()),
        ("avg_at_k", pa.float64()),
        ("avg_at_k_low", pa.float64()),
        ("avg_at_k_high", pa.float64()),
        ("pass_at_k", pa.float64()),
        ("pass_at_k_low", pa.float64()),
        ("pass_at_k_high", pa.float64()),
        ("mean_length", pa.float64()),
        ("mean_length_low", pa.float64()),
        ("mean_length_high", pa.float64()),
        ("mean_length_correct", pa.float64()),
        ("mean_length_incorrect", pa.float64()),
        ("avg_at_k_paper", pa.float64()),
        ("truncated_percent", pa.float64()),
        ("timed_out", pa.int64()),
        ("problem_ids", pa.list_(pa.string())),
        ("problem_accuracy", pa.list_(pa.float64())),
        ("problem_length", pa.list_(pa.float64())),
    ]
)


def score_cell(cell_file: Path, grades: dict[str, Path], output: Path) -> None:
    """Score one cell on its benchmarks and write `scores.json`.

    `cell_file` is the cell's `cell.json`, `grades` its graded samples by benchmark. Accuracies are
    percent with 95 % intervals over problems, lengths are tokens.

    Raises:
        DataError: a benchmark without grades, an empty file, a sample graded twice, or a problem
            with other than k samples; the message names file and problem.
    """
    content = read_json(cell_file)
    _check_provenance(cell_file.parent, content)
    k_by_benchmark = content["evaluation"]["k"]
    if missing := sorted(set(k_by_benchmark) - set(grades)):
        raise DataError(f"{cell_file}: no grades for {', '.join(missing)}; grade these first")
    scores = {
        "cell": content["cell"],
        "study": content["study"],
        "config_hash": grid.config_hash(content),
        "benchmarks": {
            name: _score_benchmark(_read_grades(grades[name], k), k)
            for name, k in k_by_benchmark.items()
        },
    }
    write_text(output, json.dumps(scores, indent=1, allow_nan=False) + "\n")


def _check_provenance(cell: Path, content: dict) -> None:
    """Refuse to score answers, or a model, that other settings made."""
    made = [
        (cell / "samples" / "manifest.json", "settings", content["evaluation"], "sample_answers")
    ]
    if content["training"]:
        made.append((cell / "train" / "settings.json", None, content["training"], "train_policy"))
    for path, key, wanted, rule in made:
        found = read_json(path)
        if (found[key] if key else found) != wanted:
            raise DataError(
                f"{path}: made under other settings than {cell}/cell.json has; run again with "
                f"`--forcerun {rule}` and this cell's scores.json as the target"
            )


def _read_grades(path: Path, k: int) -> pd.DataFrame:
    """Return the graded samples, sorted by problem and sample, k rows a problem."""
    frame = pd.read_parquet(path, columns=_GRADE_COLUMNS)
    if frame.empty:
        raise DataError(f"{path}: no graded samples; delete it and run grade_answers again")
    missing = frame.isna().to_numpy()
    if missing.any():  # it would silently count as a verdict
        row, column = np.argwhere(missing)[0]
        raise DataError(
            f"{path}, row {row}: {frame.columns[column]} is missing; delete the file and run "
            "grade_answers again"
        )
    frame["problem_id"] = frame["problem_id"].astype(str)
    twice = frame[frame.duplicated(["problem_id", "sample_id"])]
    if not twice.empty:
        row = twice.iloc[0]
        raise DataError(
            f"{path}: sample {row['sample_id']} of problem {row['problem_id']!r} is there twice; "
            "delete the file and run grade_answers again"
        )
    counts = frame.groupby("problem_id").size()
    if not (counts == k).all():
        problem = counts[counts != k].index[0]
        raise DataError(
            f"{path}: problem {problem!r} has {counts[problem]} samples, not k = {k}; "
            "delete the samples of this benchmark and run sample_answers again"
        )
    return frame.sort_values(["problem_id", "sample_id"], ignore_index=True)


def _score_benchmark(frame: pd.DataFrame, k: int) -> dict:
    correct_PK = frame["correct"].to_numpy(dtype=bool).reshape(-1, k)
    length_PK = frame["n_tokens"].to_numpy(dtype=float).reshape(-1, k)
    accuracy_P, length_P = 100.0 * correct_PK.mean(axis=1), length_PK.mean(axis=1)
    of_correct, of_incorrect = metrics.length_by_correctness(length_PK, correct_PK)
    paper_PK = frame["grade_paper"].to_numpy(dtype=bool).reshape(-1, k)
    return {
        "n_problems": len(accuracy_P),
        "k": k,
        "avg_at_k": metrics.avg_at_k(correct_PK),
        **_interval("avg_at_k", accuracy_P),
        "pass_at_k": metrics.mean_pass_at_k(correct_PK, k),
        **_interval("pass_at_k", 100.0 * correct_PK.any(axis=1)),
        "mean_length": float(length_PK.mean()),
        **_interval("mean_length", length_P, proportion=False),
        "mean_length_correct": _number(of_correct),
        "mean_length_incorrect": _number(of_incorrect),
        "avg_at_k_paper": metrics.avg_at_k(paper_PK),
        "truncated_percent": float(100.0 * (frame["finish_reason"] == "length").mean()),
        "timed_out": int(frame["timed_out"].sum()),
        "problem_ids": frame["problem_id"].iloc[::k].tolist(),
        "problem_accuracy": accuracy_P.tolist(),
        "problem_length": length_P.tolist(),
    }


def _interval(name: str, values_P: np.ndarray, proportion: bool = True) -> dict:
    interval = statistics.bootstrap_interval(values_P, proportion=proportion)
    return {f"{name}_low": _number(interval.low), f"{name}_high": _number(interval.high)}


def _number(value: float) -> float | None:
    """JSON has no nan: a mean of nothing is null."""
    return None if math.isnan(value) else float(value)


def collect_scores(study: Study, results: Path, output: Path) -> None:
    """Gather the scores of every finished cell of a study into one row a cell x benchmark.

    `results` is the study's folder of results. A cell without `scores.json`, or whose scores belong
    to another configuration than the study's present one, is left out with a warning on stderr.
    """
    rows: list[dict] = []
    for cell in grid.expand(study).values():
        scores = current_scores(study, cell, results)
        if scores is None:
            _left_out(cell, scores_file(cell, results))
        else:
            fields = {"study": study.study, **cell.model_dump()}
            rows += [
                {**fields, "benchmark": name, **scores["benchmarks"][name]}
                for name in study.benchmarks
            ]
    with whole_file(output) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), temporary)


def _left_out(cell: grid.Cell, path: Path) -> None:
    stale = f"{path} belongs to another configuration of this cell"
    reason = stale if path.is_file() else "not finished"
    print(f"warning: cell {cell.cell} is left out of the scores: {reason}", file=sys.stderr)


def problem_count(benchmark: Benchmark) -> int:
    """How many problems of a benchmark a study uses."""
    return min(benchmark.n_problems, benchmark.limit or benchmark.n_problems)


def read_scores(results: Path) -> pd.DataFrame:
    """Read a study's `scores.parquet`: a row a cell x benchmark, list columns as numpy arrays."""
    return pd.read_parquet(results / SCORES_FILE)
