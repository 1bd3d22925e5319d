"""Columns and rows that several tables share."""

import pandas as pd

from grpo_replay.reporting.labels import BASE, method_name
from grpo_replay.reporting.numbers.means import METRICS, benchmark_number
from grpo_replay.reporting.numbers.settings import (
    Setting,
    finished_cells,
    grpo_of,
)
from grpo_replay.reporting.numbers.significance import SHORT, marked_means
from grpo_replay.reporting.tables.table import Column, Row
from grpo_replay.results.scores import problem_count
from grpo_replay.study.config import Study

HIDDEN = ("study", "method_key", "tau_max", "replay_ratio", "alpha")


def benchmark_columns(study: Study, decimals: int = 1) -> list[Column]:
    """avg@k and pass@k of every benchmark, then their means."""
    columns = []
    for name, benchmark in study.benchmarks.items():
        n, k = problem_count(benchmark), benchmark.k
        columns += [
            Column(f"{name}_avg", benchmark.title, f"avg@{k}", f"n = {n} × {k}", decimals),
            Column(f"{name}_pass", benchmark.title, f"pass@{k}", f"n = {n}", decimals),
        ]
    return columns + mean_columns(study, "Mean", decimals)


def problems_text(study: Study) -> str:
    """How many problems a mean over the benchmarks rests on."""
    return f"n = {sum(map(problem_count, study.benchmarks.values()))}"


def mean_columns(study: Study, group: str, decimals: int = 1) -> list[Column]:
    """Avg and Pass: the unweighted means over the benchmarks."""
    n = problems_text(study)
    return [
        Column("avg", group, "Avg", n, decimals, tested=True),
        Column("pass", group, "Pass", n, decimals, tested=True),
    ]


def scale_rows(study: Study, scores: pd.DataFrame, settings: list[Setting]) -> list[Row]:
    """A row a setting of one scale: every benchmark, and the means with marks against GRPO."""
    grpo = grpo_of(settings)
    rows = []
    for setting, means in zip(settings, marked_means(scores, settings, grpo), strict=True):
        numbers = {
            f"{name}_{SHORT[metric]}": benchmark_number(scores, setting, name, metric)
            for name in study.benchmarks
            for metric in METRICS
        }
        rows.append(Row(setting_labels(study, scores, setting), numbers | means))
    return rows


def setting_labels(study: Study, scores: pd.DataFrame, setting: Setting) -> dict:
    """The labels of a row; `seeds` counts the finished ones, a base model has none."""
    seeds = len(finished_cells(scores, setting)) if setting.method != BASE else None
    return {
        "study": study.study,
        "scale": setting.scale,
        "method": method_name(setting.method),
        "method_key": setting.method,
        "tau_max": setting.tau_max,
        "replay_ratio": setting.replay_ratio,
        "alpha": setting.alpha,
        "seeds": seeds,
    }
