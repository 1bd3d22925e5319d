"""The parent of a scale and method: means and spreads over seeds, and a figure."""

import json
from pathlib import Path
from statistics import stdev

import pytest
from tracked_cells import FILE, make_records

from grpo_replay.files import write_json, write_text
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import Cell, config_hash, expand, resolve
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study
from grpo_replay.tracking.store import Store
from grpo_replay.tracking.summaries import sync_summaries


@pytest.fixture
def two_seeds(tmp_path: Path) -> Study:
    """The tiny study with seeds 42 and 43."""
    text = FILE.read_text(encoding="utf-8").replace("seeds: [42]", "seeds: [42, 43]")
    write_text(tmp_path / "studies" / "tiny.yaml", text)
    return load_study(tmp_path / "studies" / "tiny.yaml")


def finish(results: Path, study: Study, cell: Cell, accuracy: float) -> None:
    """What a cell leaves, as far as summaries look at it."""
    folder, resolved = results / "cells" / cell.cell, resolve(study, cell)
    row = {"avg_at_k": accuracy, "pass_at_k": 90.0, "mean_length": 12.0}
    benchmarks = {name: row | {"k": b.k} for name, b in study.benchmarks.items()}
    scores = {"config_hash": config_hash(resolved), "benchmarks": benchmarks}
    records = "".join(json.dumps(record) + "\n" for record in make_records(4))
    write_text(folder / "train" / "metrics.jsonl", records)
    (folder / "model").mkdir()
    write_json(folder / "samples" / "manifest.json", {})
    write_json(folder / "cell.json", resolved)
    write_json(folder / "scores.json", scores)


def test_a_parent_carries_mean_spread_and_figure(results: Path, two_seeds: Study) -> None:
    cells = [c for c in expand(two_seeds).values() if c.method == "ours"]
    accuracy = {(10, 42): 40.0, (10, 43): 60.0, (1, 42): 30.0, (1, 43): 36.0}
    for cell in cells:
        finish(results, two_seeds, cell, accuracy[axes_of(cell).tau_max, cell.seed])
    store = Store(two_seeds.study, results)
    sync_summaries(store, two_seeds, results)
    (parent,) = store.runs(stage="summary", method="ours")
    metrics = parent.data.metrics
    assert (metrics["eval/avg"], metrics["seeds"]) == (50.0, 2)
    assert metrics["eval/clock3/avg_at_4_sd"] == pytest.approx(stdev([40, 60]))
    assert metrics["eval/pass_sd"] == 0
    assert metrics["settings/replay.tau_max 1 avg"] == 33.0
    assert metrics["settings/replay.tau_max 1 avg_sd"] == pytest.approx(stdev([30, 36]))
    names = [artifact.path for artifact in store.client.list_artifacts(parent.info.run_id)]
    assert names == ["reward_over_seeds.png"]


def test_a_parent_shows_whatever_is_varied(results: Path, tmp_path: Path) -> None:
    vary = "vary: {replay.tau_max: [1, 10]}"
    text = FILE.read_text(encoding="utf-8")
    assert vary in text
    both = "vary: {replay.tau_max: [1, 10], loss.high: [0.28, 0.4]}"
    write_text(tmp_path / "studies" / "tiny.yaml", text.replace(vary, both))
    study = load_study(tmp_path / "studies" / "tiny.yaml")
    for cell in expand(study).values():
        if cell.method == "ours":
            finish(results, study, cell, 40.0 + 10 * len(cell.varied))
    store = Store(study.study, results)
    sync_summaries(store, study, results)
    (parent,) = store.runs(stage="summary", method="ours")
    assert {
        n: v
        for n, v in parent.data.metrics.items()
        if n.startswith("settings/") and n.endswith(" avg")
    } == {
        "settings/replay.tau_max 1 avg": 50.0,
        "settings/loss.high 0.4 avg": 50.0,
        "settings/loss.high 0.4 replay.tau_max 1 avg": 60.0,
    }
