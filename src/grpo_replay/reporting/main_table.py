"""Table 1 of the paper: every method on every benchmark, with chance line and base model."""

import pandas as pd

from grpo_replay.config import Study
from grpo_replay.reporting.formats import Column, Number, Row, Table
from grpo_replay.reporting.labels import BASE, method_name
from grpo_replay.reporting.scores import problem_count
from grpo_replay.reporting.significance import SHORT, mark_notes, marked_means
from grpo_replay.reporting.summaries import (
    METRICS,
    Setting,
    benchmark_number,
    default_settings,
    finished_cells,
    grpo_of,
    missing_notes,
    used_scales,
)
from grpo_replay.sources import Benchmark

HIDDEN = ("study", "method_key", "tau_max", "replay_ratio", "alpha")
INTERVAL_NOTE = (
    "Percent [95 % interval]. One seed: BCa bootstrap over problems, Wilson where all outcomes "
    "are equal. Several seeds: mean over seeds, Student's t over seeds (over problems where all "
    "seeds agree). Near 0 or 100 an interval over some 30 problems is too short: at 2.4 it holds "
    "the true value in 80 to 90 % of cases."
)


def build(study: Study, scores: pd.DataFrame, config: str) -> Table:
    """The main table from `scores.parquet`; a cell without scores is a dash and a note.

    `config` is what the note's command has behind `--config`.
    """
    by_scale = {scale: default_settings(study, scale) for scale in used_scales(study)}
    settings = [setting for found in by_scale.values() for setting in found]
    rows = []
    for scale, found in by_scale.items():
        rows += [_chance_row(study, scale), *scale_rows(study, scores, found)]
    return Table(
        title=f"Accuracy of every method ({study.title})",
        stub={"scale": "Scale", "method": "Method", "seeds": "Seeds (n)"},
        columns=benchmark_columns(study),
        rows=rows,
        notes=[
            INTERVAL_NOTE,
            "Avg and Pass: unweighted means over the benchmarks. Chance: answers drawn at random.",
            *setting_notes(settings),
            *comparison_notes(scores, settings),
            *missing_notes(study, scores, settings, config),
        ],
        hidden=HIDDEN,
    )


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


def setting_notes(settings: list[Setting]) -> list[str]:
    """The replay axes of each method, where it has them."""
    texts = dict.fromkeys((method_name(s.method), s.text) for s in settings if s.text)
    joined = "; ".join(f"{name}: {text}" for name, text in texts)
    return [f"Replay: {joined}."] if texts else []


def comparison_notes(scores: pd.DataFrame, settings: list[Setting]) -> list[str]:
    """How the marks were tested, and what the number of seeds allows to say."""
    counts = seed_counts(scores, settings)
    return [*mark_notes(counts), *seed_notes(scores, settings)]


def seed_notes(scores: pd.DataFrame, settings: list[Setting]) -> list[str]:
    """That one seed makes no claim, where a row has one."""
    if 1 not in seed_counts(scores, settings):
        return []
    return [
        "Seeds n=1: one training seed compares these trained models, and makes no claim about "
        "a method."
    ]


def seed_counts(scores: pd.DataFrame, settings: list[Setting]) -> list[int]:
    """How many seeds of each trained setting are finished."""
    return [len(finished_cells(scores, s)) for s in settings if s.method != BASE]
