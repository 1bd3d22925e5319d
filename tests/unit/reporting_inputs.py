"""Graded samples and training metrics with known values, as real files, for the reporting tests."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd

from grpo_replay.evaluation.score import score_cell
from grpo_replay.reporting.tables.catalogue import OWN_TABLES, write_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.results.scores import collect_scores, read_scores
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import Cell, expand, resolve
from grpo_replay.study.config import Study

SEED = 42
CONFIG = "study=tiny"  # what stands behind `--config`


AGES = {"replay.tau_max": [1, 10, 30, 60]}


def replaying(compose: str, unit: str, priority: str) -> dict:
    """A method as a study writes it."""
    section = {"compose": compose, "unit": unit, "priority": {"kind": priority}}
    return {"replay": {**section, "warmup": 2, "capacity": 100}}


def small_study(**changes) -> Study:
    """Two scales, two benchmarks of 4 and 5 problems with k = 2, four methods, four ages at s."""
    model = {
        "source": "from_scratch",
        "hidden_size": 16,
        "layers": 1,
        "heads": 2,
        "kv_heads": 1,
        "intermediate_size": 32,
        "updates": 1,
        "texts_per_update": 1,
        "learning_rate": 1e-3,
        "seed": 0,
    }
    scale = {
        "model": model,
        "micro_batch": 4,
        "gpus": 0,
        "evaluation_max_tokens": 16,
        "evaluation_batch": 8,
        "hours_base": 0.1,
        "hours_train": 0.1,
        "hours_evaluate": 0.1,
    }
    clock = {"source": "clock", "hours": 10, "max_step": 3}
    methods = ["grpo", "uniform-pool", "sigma_g-pool", "ours"]
    content = {
        "study": "tiny",
        "title": "Tiny test study",
        "scales": {"xs": scale, "s": scale},
        "methods": {
            "grpo": {},
            "uniform-pool": replaying("pool", "query", "uniform"),
            "sigma_g-pool": replaying("pool", "query", "sigma_g"),
            "ours": replaying("anchored", "rollout", "abs_advantage"),
        },
        "grid": [
            {"scales": ["xs", "s"], "methods": methods, "seeds": [SEED]},
            {"scales": ["s"], "methods": ["ours"], "seeds": [SEED], "vary": AGES},
        ],
        "problems": {
            **clock,
            "steps": [3],
            "count": 8,
            "seed": 1,
            "wrap_error": 0.5,
            "random_error": 0.0,
        },
        "benchmarks": {
            "easy": {**clock, "title": "Easy", "steps": 1, "n_problems": 4, "k": 2, "seed": 1},
            "hard": {**clock, "title": "Hard", "steps": 2, "n_problems": 5, "k": 2, "seed": 2},
        },
        "training": {
            "steps": 20,
            "rollouts_per_step": 8,
            "group_size": 4,
            "mini_batch": 4,
            "max_prompt_tokens": 8,
            "max_completion_tokens": 8,
            "learning_rate": 1e-3,
            "weight_decay": 0.01,
            "adam_betas": [0.9, 0.999],
            "gradient_clip": 1.0,
            "temperature": 1.0,
            "precision": "float32",
            "gradient_checkpointing": False,
            "rollout_engine": "transformers",
        },
        "checkpoints": {"every": 5, "keep": False},
        "evaluation": {
            "engine": "transformers",
            "temperature": 0.6,
            "top_p": 0.8,
            "top_k": 0,
            "samples_per_wave": 8,
            "first_wave_seed": 42,
            "grade_timeout_seconds": 5.0,
        },
    }
    return Study.model_validate(content | changes)


def write_grades(path: Path, correct_PK: np.ndarray, lengths_PK: np.ndarray | None = None) -> None:
    """Write one benchmark's graded samples; the paper's verdict is wrong everywhere."""
    correct_PK = np.asarray(correct_PK, dtype=bool)
    n, k = correct_PK.shape
    lengths_PK = np.full((n, k), 10) if lengths_PK is None else np.asarray(lengths_PK)
    frame = pd.DataFrame(
        {
            "problem_id": np.repeat([f"p{i:03d}" for i in range(n)], k),
            "sample_id": np.tile(np.arange(k), n),
            "correct": correct_PK.ravel(),
            "grade_paper": False,
            "grade_training": correct_PK.ravel(),
            "extracted": "1",
            "method": "verify",
            "timed_out": False,
            "n_tokens": lengths_PK.ravel(),
            "finish_reason": np.where(lengths_PK.ravel() >= 16, "length", "stop"),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path)


def write_cell(
    study: Study,
    results: Path,
    cell: Cell,
    graded: dict[str, np.ndarray],
    lengths: dict[str, np.ndarray] | None = None,
) -> Path:
    """Write `cell.json` and the grades of a cell, and score it; return its folder."""
    folder = results / "cells" / cell.cell
    folder.mkdir(parents=True, exist_ok=True)
    content = resolve(study, cell)
    (folder / "cell.json").write_text(json.dumps(content))
    for path, made in (
        ("samples/manifest.json", {"settings": content["evaluation"]}),
        ("train/settings.json", content["training"]),
    ):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(json.dumps(made))
    for name, correct_PK in graded.items():
        lengths_PK = None if lengths is None else lengths[name]
        write_grades(folder / "grades" / f"{name}.parquet", correct_PK, lengths_PK)
    paths = {name: folder / "grades" / f"{name}.parquet" for name in graded}
    score_cell(folder / "cell.json", paths, folder / "scores.json")
    return folder


def write_metrics(folder: Path, records: list[dict]) -> None:
    """Write the training metrics of a cell as JSON lines."""
    path = folder / "train" / "metrics.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def random_results(study: Study, results: Path, left_out: tuple[str, ...] = ()) -> None:
    """Fill a study with plausible random scores and curves, but for the cells left out."""
    rng = np.random.default_rng(0)
    for position, cell in enumerate(expand(study).values()):
        if cell.cell in left_out:
            continue
        rate = 0.35 if cell.method == "base" else 0.5 + 0.03 * (position % 8)
        graded = {
            name: rng.random((benchmark.n_problems, benchmark.k)) < rate
            for name, benchmark in study.benchmarks.items()
        }
        folder = write_cell(study, results, cell, graded)
        if cell.trained:
            write_metrics(folder, _random_metrics(rng, cell, study.training.steps))
            write_replay(folder, _random_replay(rng, cell, study.training.steps))
    collect_scores(study, results, results / "scores.parquet")


def write_replay(folder: Path, rows: list[tuple[int, int, str]]) -> None:
    """Write the rows trained on, each (step, age, rollout id), as a cell's `replay.parquet`."""
    frame = pd.DataFrame(rows, columns=["step", "age", "rollout_id"])
    path = folder / "train" / "replay.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.assign(replayed=frame["age"] > 0).to_parquet(path)


def _random_replay(rng: np.random.Generator, cell: Cell, steps: int) -> list[tuple]:
    rows = [(step, 0, f"{step}-0-{i}") for step in range(1, steps + 1) for i in range(4)]
    if axes_of(cell).tau_max is not None:
        for step in range(3, steps + 1):
            ages = rng.integers(1, min(axes_of(cell).tau_max, step - 1) + 1, size=2)
            rows += [(step, int(age), f"{step - age}-0-{i}") for i, age in enumerate(ages)]
    return rows


def paper_study(**changes) -> Study:
    """The small study with the paper's scales and every cell of its tables, ablated at 1.7B."""
    content = small_study().model_dump(mode="json")
    scales = ["0.6B", "1.7B", "4B"]
    methods = content["methods"] | {
        "pool-advantage": replaying("pool", "rollout", "abs_advantage"),
        "uniform-query": replaying("anchored", "query", "uniform"),
        "sigma_g-query": replaying("anchored", "query", "sigma_g"),
        "uniform-rollout": replaying("anchored", "rollout", "uniform"),
        "sigma_g-rollout": replaying("anchored", "rollout", "sigma_g"),
    }
    first = {"seeds": [SEED]}
    main = ["grpo", "uniform-pool", "sigma_g-pool", "ours", "pool-advantage"]
    one = {"scales": ["1.7B"], **first}
    squared = {"replay.ratio": [0.5, 1.0], "replay.priority.alpha": [0.5, 1.0]}
    content |= {
        "scales": dict.fromkeys(scales, content["scales"]["s"]),
        "methods": methods,
        "grid": [
            {"scales": scales, "methods": main, **first},
            {**one, "methods": ["uniform-query", "sigma_g-query", "sigma_g-rollout"]},
            {**one, "methods": ["ours"], "vary": AGES},
            {**one, "methods": ["uniform-rollout"], "vary": {"replay.tau_max": [1, 10, 30]}},
            {**one, "methods": ["ours"], "vary": squared},
        ],
    }
    return Study.model_validate(content | changes)


def _random_metrics(rng: np.random.Generator, cell: Cell, steps: int) -> list[dict]:
    records = []
    for step in range(1, steps + 1):
        replayed = axes_of(cell).tau_max is not None and step > 2
        ages = range(min(axes_of(cell).tau_max, step - 1) + 1) if replayed else (0,)
        drift = 1e-4 * (axes_of(cell).tau_max or 1) ** 0.5
        clipped = {"fresh": 6e-4 + rng.normal(0, 5e-5), "replay": 2e-3 + drift * step}
        if not replayed:
            clipped["replay"] = None
        clips = {}
        for part, value in clipped.items():
            clips[f"clip_ratio/{part}"] = value
            clips[f"clip_ratio/{part}_low"] = clips[f"clip_ratio/{part}_high"] = value and value / 2
        records.append(
            {
                "step": step,
                "reward/mean": float(np.tanh(step / steps * 1.5 - 0.5 + rng.normal(0, 0.1))),
                "completions/mean_length": float(40 + 10 * step / steps + rng.normal(0, 2)),
                "completions/mean_length_correct": 38.0,
                "completions/mean_length_incorrect": 44.0 if step % 3 else None,
                "completions/truncated_share": 0.1,
                "groups/count": 2,
                "survivors/rollouts": int(rng.integers(1, 3) * 4),
                "groups/all_correct_percent": 0.0,
                "groups/all_wrong_percent": 50.0,
                "replay/age_histogram": {str(age): 4 if age == 0 else 1 for age in ages},
                "buffer/size": 4 * min(step, axes_of(cell).tau_max or 0),
                "buffer/evicted_age": 4 * (step > (axes_of(cell).tau_max or 0)),
                "buffer/evicted_capacity": 0,
                "updates/skipped": 0,
                "entropy": 0.1 + rng.normal(0, 0.01),
                **clips,
                "ratio/fresh_mean": 1.0001,
                "ratio/replay_mean": 1.0 - drift * step if replayed else None,
                "ratio/replay_effective_sample_share": 0.99 if replayed else None,
                "ratio/log_ratio_by_age": {str(age): -drift * age for age in ages},
                "perf/generation_seconds": 3.0,
                "perf/scoring_seconds": 1.0,
                "perf/update_seconds": 2.0,
                "perf/step_seconds": 6.0,
            }
        )
    return records


def read_csv(path: Path) -> list[dict[str, str]]:
    """The lines of a table's CSV file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_own_table(name: str, study: Study, results: Path, stem: Path) -> None:
    """Write one of a study's own tables, as the workflow does."""
    write_table(OWN_TABLES[name](Source(study, read_scores(results), results, CONFIG)), stem)
