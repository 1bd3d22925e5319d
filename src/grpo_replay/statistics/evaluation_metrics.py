"""The metrics of an evaluation: one entry brings a number to `scores.json`, `scores.parquet`,
MLflow and, with a heading, to the main table; config/README.md lists them (a test compares).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grpo_replay.statistics import metrics


@dataclass(frozen=True)
class Answers:
    """A model's graded answers to one benchmark, each of shape (problems, samples)."""

    correct_PK: np.ndarray
    paper_PK: np.ndarray | None  # correct by the paper's verifier, where the task has it
    length_PK: np.ndarray  # tokens
    truncated_PK: np.ndarray
    timed_out_PK: np.ndarray


@dataclass(frozen=True)
class EvaluationMetric:
    """One number of a model on a benchmark.

    Attributes:
        name: in the files; MLflow has the number of samples in place of a `k`.
        of: its value; nan where there is nothing to average.
        meaning: with its unit, for people.
        of_problems: its value on each problem, shape (problems,); the files then have its interval.
        proportion: whether it is a share in percent, thus between 0 and 100.
        heading: of its column in the main table, `{k}` the number of samples; empty: no column.
        basis: what stands below that heading.
    """

    name: str
    of: Callable[[Answers], float]
    meaning: str
    of_problems: Callable[[Answers], np.ndarray] | None = None
    proportion: bool = True
    heading: str = ""
    basis: str = "n = {n} × {k}"

    @property
    def columns(self) -> list[str]:
        """Its columns in `scores.parquet`."""
        ends = ("_low", "_high") if self.of_problems else ()
        return [self.name, *(self.name + end for end in ends)]


def _percent(values_PK: np.ndarray) -> float:
    return float(100.0 * values_PK.mean())


EVALUATION_METRICS = (
    EvaluationMetric(
        "avg_at_k",
        lambda a: metrics.avg_at_k(a.correct_PK),
        "percent of the answers that are correct",
        of_problems=lambda a: 100.0 * a.correct_PK.mean(axis=1),
        heading="avg@{k}",
    ),
    EvaluationMetric(
        "pass_at_k",
        lambda a: metrics.mean_pass_at_k(a.correct_PK, a.correct_PK.shape[1]),
        "percent of the problems with a correct answer",
        of_problems=lambda a: 100.0 * a.correct_PK.any(axis=1),
        heading="pass@{k}",
        basis="n = {n}",
    ),
    EvaluationMetric(
        "mean_length",
        lambda a: float(a.length_PK.mean()),
        "tokens of an answer",
        of_problems=lambda a: a.length_PK.mean(axis=1),
        proportion=False,
    ),
    EvaluationMetric(
        "mean_length_correct",
        lambda a: metrics.length_by_correctness(a.length_PK, a.correct_PK)[0],
        "tokens of a correct answer",
        proportion=False,
    ),
    EvaluationMetric(
        "mean_length_incorrect",
        lambda a: metrics.length_by_correctness(a.length_PK, a.correct_PK)[1],
        "tokens of an incorrect answer",
        proportion=False,
    ),
    EvaluationMetric(
        "avg_at_k_paper",
        lambda a: np.nan if a.paper_PK is None else metrics.avg_at_k(a.paper_PK),
        "percent of the answers that are correct by the paper's verifier (math-verify on the raw "
        "text)",
    ),
    EvaluationMetric(
        "truncated_percent",
        lambda a: _percent(a.truncated_PK),
        "percent of the answers that end at the token limit",
    ),
    EvaluationMetric(
        "timed_out",
        lambda a: float(a.timed_out_PK.sum()),
        "answers that count as wrong because grading them ran out of CPU time",
        proportion=False,
    ),
)
TABULATED = tuple(metric for metric in EVALUATION_METRICS if metric.heading)
