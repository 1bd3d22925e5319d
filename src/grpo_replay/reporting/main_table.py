"""Table 1 of the paper: every method on every benchmark, with chance line and base model."""

import pandas as pd

from grpo_replay.config import Study
from grpo_replay.reporting.formats import Column, Number, Row, Table
from grpo_replay.reporting.labels import BASE, GRPO, method_name
from grpo_replay.reporting.scores import problem_count
from grpo_replay.reporting.significance import NOTE_PROBLEMS, NOTE_SEEDS, marked_means
from grpo_replay.reporting.summaries import (
    METRICS,
    Setting,
    benchmark_number,
    default_settings,
    finished_cells,
    mean_number,
    missing_notes,
    used_scales,
)
from grpo_replay.sources import Benchmark

_SHORT = {"avg_at_k": "avg", "pass_at_k": "pass"}
INTERVAL_NOTE = (
    "Percent [95 % interval]. One seed: BCa bootstrap over problems, Wilson where all outcomes "
    "are equal. Several seeds: mean over seeds, Student's t over seeds (over problems where all "
    "seeds agree)."
)


def build(study: Study, scores: pd.DataFrame) -> Table:
    """The main table from `scores.parquet`; a cell without scores is a dash and a note."""
    settings = [s for scale in used_scales(study) for s in default_settings(study, scale)]
    rows = [row for scale in used_scales(study) for row in _scale_rows(study, scores, scale)]
    return Table(
        title=f"Accuracy of every method ({study.title})",
        stub={"scale": "Scale", "method": "Method", "seeds": "Seeds (n)"},
        columns=_columns(study),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            "Avg and Pass: unweighted means over the benchmarks. Chance: answers drawn at random.",
            *_setting_notes(settings),
            *comparison_notes(scores, settings),
            *missing_notes(study, scores, settings),
        ],
        hidden=("study", "method_key", "tau_max", "replay_ratio", "alpha"),
    )


def _columns(study: Study) -> list[Column]:
    columns = []
    for name, benchmark in study.benchmarks.items():
        n, k = problem_count(benchmark), benchmark.k
        columns += [
            Column(f"{name}_avg", benchmark.title, f"avg@{k}", f"n = {n} × {k}"),
            Column(f"{name}_pass", benchmark.title, f"pass@{k}", f"n = {n}"),
        ]
    total = sum(map(problem_count, study.benchmarks.values()))
    return columns + [
        Column("avg", "Mean", "Avg", f"n = {total}", tested=True),
        Column("pass", "Mean", "Pass", f"n = {total}", tested=True),
    ]


def _scale_rows(study: Study, scores: pd.DataFrame, scale: str) -> list[Row]:
    settings = default_settings(study, scale)
    grpo = next((s for s in settings if s.method == GRPO), None)
    means = {
        (position, metric): mean_number(scores, setting, metric)
        for position, setting in enumerate(settings)
        for metric in METRICS
    }
    means = marked_means(scores, means, settings, grpo)
    rows = [_chance_row(study, scale)]
    for position, setting in enumerate(settings):
        numbers = {
            f"{name}_{_SHORT[metric]}": benchmark_number(scores, setting, name, metric)
            for name in study.benchmarks
            for metric in METRICS
        }
        numbers |= {_SHORT[metric]: means[position, metric] for metric in METRICS}
        rows.append(Row(setting_labels(study, scores, setting), numbers))
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


def chance_percent(benchmark: Benchmark) -> dict[str, float]:
    """avg@k and pass@k in percent of k independent answers drawn at random."""
    p = benchmark.chance / 100.0
    return {"avg": 100.0 * p, "pass": 100.0 * (1.0 - (1.0 - p) ** benchmark.k)}


def _chance_row(study: Study, scale: str) -> Row:
    chances = {name: chance_percent(b) for name, b in study.benchmarks.items()}
    numbers: dict[str, Number | None] = {
        f"{name}_{part}": Number(value)
        for name, parts in chances.items()
        for part, value in parts.items()
    }
    for part in ("avg", "pass"):
        numbers[part] = Number(sum(c[part] for c in chances.values()) / len(chances))
    labels = {"study": study.study, "scale": scale, "method": "chance", "method_key": "chance"}
    return Row(labels, numbers)


def _setting_notes(settings: list[Setting]) -> list[str]:
    texts = dict.fromkeys((method_name(s.method), s.text) for s in settings if s.text)
    joined = "; ".join(f"{name}: {text}" for name, text in texts)
    return [f"Replay: {joined}."] if texts else []


def comparison_notes(scores: pd.DataFrame, settings: list[Setting]) -> list[str]:
    """How the marks were tested, and what the number of seeds allows to say."""
    counts = [len(finished_cells(scores, s)) for s in settings if s.method != BASE]
    notes = [NOTE_PROBLEMS]
    if max(counts, default=0) > 1:
        notes.append(NOTE_SEEDS)
    if 1 in counts:
        notes.append(
            "Seeds n=1: one training seed compares these trained models, and makes no claim about "
            "a method."
        )
    return notes
