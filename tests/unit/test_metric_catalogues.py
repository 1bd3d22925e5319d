"""One entry brings a metric to the files, MLflow, the main table and the documentation."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reporting_inputs import (
    SEED,
    random_results,
    read_csv,
    small_study,
    write_metrics,
    write_own_table,
)

from grpo_replay.evaluation import score
from grpo_replay.reporting.tables import main, training
from grpo_replay.results import scores
from grpo_replay.statistics.evaluation_metrics import EVALUATION_METRICS, EvaluationMetric
from grpo_replay.tracking import series
from grpo_replay.training.step_metrics import HEADINGS, MEANINGS

README = (Path(__file__).parents[2] / "config" / "README.md").read_text(encoding="utf-8")


def documented(section: str) -> dict[str, str]:
    """Meanings by name of one list of config/README.md."""
    text = README.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ", 1) for line in text.splitlines() if line[:3] == "| `"]
    return {name.strip("`"): meaning for name, meaning in rows}


def test_the_readme_lists_every_training_metric():
    assert documented("Names in `train/metrics.jsonl`") == MEANINGS


def test_the_readme_lists_every_evaluation_metric():
    listed = documented("Names in `scores.json` and `scores.parquet`")
    assert listed == {metric.name: metric.meaning for metric in EVALUATION_METRICS}


FIRST = EvaluationMetric(
    "first_at_k",
    lambda answers: float(100.0 * answers.correct_PK[:, 0].mean()),
    "percent of the first answers that are correct",
    of_problems=lambda answers: 100.0 * answers.correct_PK[:, 0],
    heading="first@{k}",
    basis="n = {n}",
)


@pytest.fixture
def added(monkeypatch):
    """A catalogue with one more entry, in the modules that read it."""
    longer = (*EVALUATION_METRICS, FIRST)
    for module in (score, scores, series):
        monkeypatch.setattr(module, "EVALUATION_METRICS", longer)
    monkeypatch.setattr(scores, "SCHEMA", scores.schema())
    monkeypatch.setattr(main, "TABULATED", tuple(m for m in longer if m.heading))


@pytest.mark.parametrize("seeds", [[SEED], [1, 2, 3]])
def test_an_entry_is_enough(added, tmp_path, seeds):
    study = small_study(grid=[{"scales": ["s"], "methods": ["grpo"], "seeds": seeds}])
    random_results(study, tmp_path)
    cell = f"s/grpo-seed{seeds[0]}"
    written = json.loads((tmp_path / "cells" / cell / "scores.json").read_text())
    easy = written["benchmarks"]["easy"]
    grades = pd.read_parquet(tmp_path / "cells" / cell / "grades" / "easy.parquet")
    first = 100.0 * grades[grades["sample_id"] == 0]["correct"].mean()
    assert easy["first_at_k"] == pytest.approx(first)
    table = scores.read_scores(tmp_path)
    of_cell = table[(table["cell"] == cell) & (table["benchmark"] == "easy")].iloc[0]
    assert of_cell["first_at_k"] == pytest.approx(first)
    assert of_cell["first_at_k_low"] <= first <= of_cell["first_at_k_high"]
    assert series.evaluation_metrics(written)["eval/easy/first_at_2"] == pytest.approx(first)
    write_own_table("main", study, tmp_path, tmp_path / "main")
    (row,) = (r for r in read_csv(tmp_path / "main.csv") if r["method_key"] == "grpo")
    of_seeds = table[(table["method"] == "grpo") & (table["benchmark"] == "easy")]["first_at_k"]
    assert float(row["easy_first_at_k"]) == pytest.approx(np.mean(of_seeds), abs=1e-6)
    interval = row["easy_first_at_k_seeds_low" if len(seeds) > 1 else "easy_first_at_k_low"]
    assert interval != "" or np.ptp(of_seeds) == 0
    assert "Easy first@2<br>n = 4" in (tmp_path / "main.md").read_text(encoding="utf-8")


def test_a_metric_with_a_heading_has_a_column_of_the_training_table(monkeypatch, tmp_path):
    assert HEADINGS.keys() <= MEANINGS.keys()
    study = small_study(grid=[{"scales": ["s"], "methods": ["grpo", "ours"], "seeds": [1, 2, 3]}])
    random_results(study, tmp_path)
    cells = tmp_path / "cells" / "s"
    for seed, values in ((1, [-1.0, None, -2.0]), (2, [-3.0, -3.0, None]), (3, [None, None, -1.5])):
        records = [{"step": i, "own/number": value} for i, value in enumerate(values, 1)]
        write_metrics(cells / f"grpo-seed{seed}", records)
    monkeypatch.setattr(training, "HEADINGS", {"own/number": "Own", "never/made": "Never"})
    write_own_table("training", study, tmp_path, tmp_path / "training")
    rows = {row["method_key"]: row for row in read_csv(tmp_path / "training.csv")}
    assert rows.keys() == {"grpo", "ours"}
    grpo = rows["grpo"]
    assert float(grpo["own/number"]) == pytest.approx(-2.0)  # of -1.5, -3 and -1.5
    ends = -2.0 + np.array([-1, 1]) * 4.302653 * 0.5  # Student's t of two degrees of freedom
    found = [float(grpo[f"own/number_seeds_{end}"]) for end in ("low", "high")]
    assert found == pytest.approx(ends, abs=1e-5)
    assert rows["ours"]["own/number"] == "" and not any("never" in key for key in grpo)
    assert "-2.00" in (tmp_path / "training.md").read_text(encoding="utf-8")


def test_the_training_table_needs_no_torch():
    code = "import sys, grpo_replay.reporting.paper.catalogue; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
