"""Scores of one cell from its grades: metrics with intervals, and the value of each problem."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from grpo_replay.errors import DataError
from grpo_replay.files import read_json, write_text
from grpo_replay.results.grades import verdicts_in
from grpo_replay.results.layout import CellFiles
from grpo_replay.statistics import intervals
from grpo_replay.statistics.evaluation_metrics import (
    EVALUATION_METRICS,
    Answers,
    EvaluationMetric,
)
from grpo_replay.study.cells import config_hash

_GRADE_COLUMNS = [
    "problem_id",
    "sample_id",
    "timed_out",
    "n_tokens",
    "finish_reason",
]


def score_cell(cell_file: Path, grades: dict[str, Path], output: Path) -> None:
    """Score one cell on its benchmarks and write `scores.json`.

    `cell_file` is the cell's `cell.json`, `grades` its graded samples by benchmark. Accuracies are
    percent with 95 % intervals over problems, lengths are tokens.

    Raises:
        DataError: a benchmark without grades, an empty file, a sample graded twice, or a problem
            with other than k samples; the message names file and problem.
    """
    content = read_json(cell_file)
    _check_provenance(CellFiles.of(cell_file.parent), content)
    k_by_benchmark = content["evaluation"]["k"]
    if missing := sorted(set(k_by_benchmark) - set(grades)):
        raise DataError(f"{cell_file}: no grades for {', '.join(missing)}; grade these first")
    scores = {
        "cell": content["cell"],
        "study": content["study"],
        "config_hash": config_hash(content),
        "benchmarks": {
            name: _score_benchmark(_read_grades(grades[name], k), k)
            for name, k in k_by_benchmark.items()
        },
    }
    write_text(output, json.dumps(scores, indent=1, allow_nan=False) + "\n")


def _check_provenance(cell: CellFiles, content: dict) -> None:
    """Refuse to score answers, or a model, that other settings made."""
    made = [(cell.manifest, "settings", content["evaluation"], "sample_answers")]
    if content["training"]:
        made.append((cell.training_settings, None, content["training"], "train_policy"))
    for path, key, wanted, rule in made:
        found = read_json(path)
        if (found[key] if key else found) != wanted:
            raise DataError(
                f"{path}: made under other settings than {cell.settings} has; run again with "
                f"`--forcerun {rule}` and this cell's scores.json as the target"
            )


def _read_grades(path: Path, k: int) -> pd.DataFrame:
    """Return the graded samples, sorted by problem and sample, k rows a problem."""
    frame = pd.read_parquet(path)
    frame = frame[[*_GRADE_COLUMNS, *verdicts_in(frame.columns)]]
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
    def of_samples(values: pd.Series, kind: type) -> np.ndarray:
        return values.to_numpy(dtype=kind).reshape(-1, k)

    answers = Answers(
        correct_PK=of_samples(frame["correct"], bool),
        paper_PK=of_samples(frame["grade_paper"], bool) if "grade_paper" in frame else None,
        length_PK=of_samples(frame["n_tokens"], float),
        truncated_PK=of_samples(frame["finish_reason"] == "length", bool),
        timed_out_PK=of_samples(frame["timed_out"], bool),
    )
    return {
        "n_problems": len(answers.correct_PK),
        "k": k,
        **{n: v for metric in EVALUATION_METRICS for n, v in _values(metric, answers).items()},
        "problem_ids": frame["problem_id"].iloc[::k].tolist(),
        "problem_accuracy": (100.0 * answers.correct_PK.mean(axis=1)).tolist(),
        "problem_length": answers.length_PK.mean(axis=1).tolist(),
    }


def _values(metric: EvaluationMetric, answers: Answers) -> dict[str, float | None]:
    values = [metric.of(answers)]
    if metric.of_problems is not None:
        values_P = metric.of_problems(answers)
        interval = intervals.bootstrap_interval(values_P, proportion=metric.proportion)
        values += [interval.low, interval.high]
    return dict(zip(metric.columns, map(_number, values), strict=True))


def _number(value: float) -> float | None:
    """JSON has no nan: a mean of nothing is null."""
    return None if math.isnan(value) else float(value)
