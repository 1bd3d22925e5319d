"""Names, values, steps and times as MLflow keeps them: plain data, without MLflow."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from grpo_replay.statistics.evaluation_metrics import EVALUATION_METRICS

TRAINING_MARK = "perf/step_seconds"  # a metric that every training record has
SYSTEM_MARK = "system/cpu_utilization_percentage"  # likewise for the machine's


@dataclass(frozen=True)
class Point:
    """Metrics of one step; `time` is in milliseconds since 1970.

    A point that is sent again is the same in every part: SQL stores of MLflow then keep one.
    """

    step: int
    time: int
    metrics: dict[str, float]


def flatten(nested: dict, separator: str, prefix: str = "") -> dict:
    """A nested dictionary with joined keys; lists stay values."""
    flat = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= flatten(value, separator, f"{prefix}{name}{separator}")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def parameters(settings: dict) -> dict[str, str]:
    """The settings of a cell as MLflow's parameters, keys joined with dots.

    `settings` is a resolved cell (`cell.json`) or the part of it that training gets: the names are
    the same.
    """
    if isinstance(settings.get("training"), dict) and "training" in settings["training"]:
        settings = settings | settings["training"]
    return {name: _text(value) for name, value in flatten(settings, ".").items()}


def _text(value: object) -> str:
    """The same text in memory and read from a file, whose keys are sorted."""
    return json.dumps(value, sort_keys=True) if isinstance(value, list) else str(value)


def training_point(record: dict, time: int) -> Point:
    """A line of `metrics.jsonl`: numbers as they are, histograms bin by bin, null left out."""
    flat = flatten(record, "/")
    numbers = {n: float(v) for n, v in flat.items() if isinstance(v, int | float) and n != "step"}
    return Point(record["step"], time, numbers)


def training_points(records: list[dict], end: float) -> list[Point]:
    """Points of past steps: the last one ended at `end` (seconds), the others as long before it
    as the steps took.
    """
    points = []
    for record in reversed(records):
        points.append(training_point(record, int(end * 1000)))
        end -= record[TRAINING_MARK]
    return points[::-1]


def missing(points: Iterable[Point], logged: set[int]) -> list[Point]:
    """The points of the steps that a store does not have."""
    return [point for point in points if point.step not in logged]


def evaluation_metrics(scores: dict) -> dict[str, float]:
    """A cell's `scores.json` as metrics: `eval/<benchmark>/avg_at_<k>` and so on, and means; null
    is left out.
    """
    metrics = {}
    for benchmark, row in scores["benchmarks"].items():
        for metric in EVALUATION_METRICS:
            name = metric.name.replace("_at_k", f"_at_{row['k']}")
            if row.get(metric.name) is not None:
                metrics[f"eval/{benchmark}/{name}"] = row[metric.name]
    rows = scores["benchmarks"].values()
    metrics["eval/avg"] = fmean(row["avg_at_k"] for row in rows)
    metrics["eval/pass"] = fmean(row["pass_at_k"] for row in rows)
    return metrics
