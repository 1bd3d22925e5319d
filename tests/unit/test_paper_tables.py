"""Tables 1 to 13 of hand-made results, in the paper's order, and beside the paper's numbers."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reporting_inputs import (
    CONFIG,
    paper_study,
    random_results,
    read_csv,
    small_study,
    write_cell,
    write_metrics,
)
from scipy import stats

from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.numbers.significance import PValues, marked
from grpo_replay.reporting.paper import (
    accuracy,
    comparison,
    efficiency,
    hyperparameters,
    lengths,
    published,
    ranking,
    training,
)
from grpo_replay.reporting.paper.catalogue import PAPER_TABLES, paper_tables
from grpo_replay.reporting.paper.design_space import METHOD, NO_REPLAY, replayed
from grpo_replay.reporting.tables import catalogue
from grpo_replay.reporting.tables.catalogue import write_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.results.scores import collect_scores, read_scores
from grpo_replay.statistics.metrics import accuracy_efficiency_score
from grpo_replay.study.axes import TAU_MAX
from grpo_replay.study.cells import expand
from grpo_replay.study.file import load_study

STUDIES = Path(__file__).parents[2] / "config" / "studies"
NAMES = [build.__name__ for build in PAPER_TABLES]


def source_of(study, results) -> Source:
    collect_scores(study, results, results / "scores.parquet")
    return Source(study, read_scores(results), results, CONFIG)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The paper's grid with random results, and every table of it."""
    results = tmp_path_factory.mktemp("paper")
    study = paper_study()
    random_results(study, results)
    for name, table in paper_tables(Source(study, read_scores(results), results, CONFIG)):
        write_table(table, results / "tables" / name)
    return study, results


@pytest.fixture
def two_cells(tmp_path):
    """GRPO and `ours` at s on two benchmarks of 4 and 5 problems x 2 answers, lengths by hand."""
    study = small_study()
    cells = expand(study)
    easy, hard = np.zeros((4, 2)), np.zeros((5, 2))
    grpo = {"easy": easy.copy(), "hard": hard.copy()}
    grpo["easy"][:2] = 1  # 50 %, and nothing of hard: 25 % in the mean
    ours = {"easy": easy.copy(), "hard": hard.copy()}
    ours["easy"][:3] = 1  # 75 %
    ours["hard"][0] = 1  # 20 %: 47.5 % in the mean
    lengths_of_grpo = {"easy": np.where(grpo["easy"], 4, 10), "hard": np.full((5, 2), 14)}
    lengths_of_ours = {"easy": np.where(ours["easy"], 6, 8), "hard": np.full((5, 2), 10)}
    folder = write_cell(study, tmp_path, cells["s/grpo-seed42"], grpo, lengths_of_grpo)
    batch = [
        {"survivors/rollouts": 8, "groups/all_correct_percent": 0.0},
        {"survivors/rollouts": 4, "groups/all_correct_percent": 50.0},
    ]
    write_metrics(
        folder,
        [
            {"step": step, "completions/mean_length": 20.0, "groups/all_wrong_percent": 0.0} | row
            for step, row in zip((1, 20), batch, strict=True)
        ],
    )
    name = "s/ours-seed42"
    folder = write_cell(study, tmp_path, cells[name], ours, lengths_of_ours)
    clipped = {"clip_ratio/fresh": 0.001, "clip_ratio/replay": None}
    write_metrics(
        folder, [{"step": s, "completions/mean_length": 15.0 + s} | clipped for s in (1, 20)]
    )
    return source_of(study, tmp_path)


def row_of(table, **labels):
    found = [r for r in table.rows if all(r.labels[k] == v for k, v in labels.items())]
    assert len(found) == 1
    return found[0]


# --- numbers by hand ------------------------------------------------------------------------------


def test_accuracy_length_and_aes_by_hand(two_cells):
    grpo = row_of(efficiency.table10(two_cells), reference_key="grpo", scale="s").numbers
    assert grpo["accuracy_percent"].value == pytest.approx(25)
    assert grpo["length_tokens"].value == pytest.approx((7 + 14) / 2)
    best = row_of(ranking.table13(two_cells), rank=1)
    assert (best.labels["tau_max"], best.labels["priority_key"]) == (10, "abs_advantage")
    assert best.numbers["length_tokens"].value == pytest.approx((6.5 + 10) / 2)
    assert best.numbers["delta_length_percent"].value == pytest.approx(100 * 2.25 / 10.5)
    assert best.numbers["delta_accuracy_percent"].value == pytest.approx(90)
    aes = best.numbers["aes"]
    assert aes.value == pytest.approx(2.25 / 10.5 + 3 * 0.9)
    assert aes.n == 9 and aes.remark == "n=1"
    five = row_of(efficiency.table05(two_cells), reference_key="grpo", method_key="ours")
    assert five.numbers["s"].value == pytest.approx(aes.value)
    assert five.numbers["xs"] is None


def test_lengths_by_correctness_by_hand(two_cells):
    grpo = row_of(lengths.table11(two_cells), scale="s").numbers
    assert grpo["correct_tokens"].value == pytest.approx(4)
    assert grpo["incorrect_tokens"].value == pytest.approx((4 * 10 + 10 * 14) / 14)
    assert (grpo["correct_tokens"].n, grpo["incorrect_tokens"].n) == (2, 7)
    change = row_of(lengths.table06(two_cells), scale="s").numbers
    # 6 easy answers of 6 tokens and 2 hard ones of 10, against 4: 7 / 4 - 1
    assert change["delta_correct_percent"].value == pytest.approx(75)
    incorrect = (2 * 8 + 8 * 10) / 10
    expected = 100 * (incorrect / (180 / 14) - 1)
    assert change["delta_incorrect_percent"].value == pytest.approx(expected)
    low, high = grpo["incorrect_tokens"].shown_interval
    assert 10 <= low < 180 / 14 < high <= 14


def test_batch_and_training_length_by_hand(two_cells):
    batch = row_of(training.table08(two_cells), scale="s").numbers
    assert batch["b_fresh"].value == 8 and batch["b_fresh_surviving"].value == pytest.approx(6)
    assert batch["all_correct_percent"].value == pytest.approx(25)
    assert (batch["b_fresh_surviving"].n, batch["b_fresh_surviving"].remark) == (2, "n=1")
    assert training.surviving_rollouts(8, 25, 0) == pytest.approx(6)
    table = training.table12(two_cells)
    ours = row_of(table, method_key="ours", scale="s").numbers
    assert ours["length_tokens"].value == 35.0
    assert ours["delta_percent"].value == pytest.approx(75)
    assert row_of(table, method_key="grpo", scale="s").numbers["delta_percent"] is None


def test_a_run_that_has_not_reached_the_last_step_has_no_training_length(two_cells):
    folder = two_cells.results / "cells" / "s/grpo-seed42"
    write_metrics(folder, [{"step": 19, "completions/mean_length": 20.0}])
    table = training.table12(two_cells)
    assert row_of(table, method_key="grpo", scale="s").numbers["length_tokens"] is None
    assert row_of(table, method_key="ours", scale="s").numbers["delta_percent"] is None


def test_aes_against_a_reference_that_solves_nothing_is_a_dash(tmp_path):
    study = small_study()
    cells = expand(study)
    nothing = {"easy": np.zeros((4, 2)), "hard": np.zeros((5, 2))}
    write_cell(study, tmp_path, cells["s/base"], nothing)
    write_cell(study, tmp_path, cells["s/grpo-seed42"], {k: v + 1 for k, v in nothing.items()})
    table = efficiency.table05(source_of(study, tmp_path))
    number = row_of(table, reference_key="base", method_key="grpo").numbers["s"]
    assert np.isnan(number.value) and number.shown_interval is None
    catalogue.write_table(table, tmp_path / "table05")
    lines = (tmp_path / "table05.md").read_text(encoding="utf-8").splitlines()
    assert "| base | GRPO | – | – |" in lines
    assert read_csv(tmp_path / "table05.csv")[0]["s"] == ""


def test_seeds_give_intervals_over_seeds(tmp_path):
    content = small_study().model_dump(mode="json")
    for block in content["grid"]:
        block["seeds"] = [1, 2]
    study = type(small_study()).model_validate(content)
    cells = expand(study)
    expected = []
    for seed, solved in ((1, 2), (2, 3)):
        graded = {"easy": np.zeros((4, 2)), "hard": np.ones((5, 2))}
        graded["easy"][:2] = 1
        write_cell(study, tmp_path, cells[f"s/grpo-seed{seed}"], graded)
        graded["easy"][:solved] = 1
        write_cell(study, tmp_path, cells[f"s/ours-seed{seed}"], graded)
        avg = (100 + 25 * solved) / 2
        expected.append(accuracy_efficiency_score(avg, 10, 75, 10))
    source = source_of(study, tmp_path)
    table = ranking.table13(source)
    assert "Rows of several seeds: n = 2 seeds, as far as finished." in table.notes
    aes = row_of(table, rank=1).numbers["aes"]
    # 0 and 0.5: mean 0.25, t(0.975, 1) = 12.706, half width 12.706 * 0.3536 / sqrt(2)
    assert expected == pytest.approx([0, 0.5]) and aes.remark == "n=2"
    assert aes.value == pytest.approx(0.25)
    assert aes.seeds_low == pytest.approx(0.25 - 3.1765, abs=1e-3)
    assert aes.seeds_high == pytest.approx(0.25 + 3.1765, abs=1e-3)


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in NAMES if n != "table07"])
def test_rows_and_columns_are_the_papers(whole, name):
    """Every line of the published table, in its order, with all its numbers."""
    _, results = whole
    ours = read_csv(results / "tables" / f"{name}.csv")
    paper = published.rows(name)
    assert len(ours) == len(paper)
    if name != "table13":  # ranked by its own AES
        for own, line in zip(ours, paper, strict=True):
            for key in comparison.KEYS[name]:
                value = own.get(f"{key}_key", own.get(key)) or "none"
                assert comparison._spelling(value) == comparison._spelling(line[key])
    columns = [c for c in paper[0] if c not in comparison.KEYS[name] and c in ours[0]]
    assert columns and [c for c in ours[0] if c in columns] == columns
    missing = {c for c in paper[0] if c not in ours[0] and c not in comparison.KEYS[name]}
    assert {c.rsplit("_", 1)[0] for c in missing} <= set(published.BENCHMARKS)
    assert all(own[c] for own, line in zip(ours, paper, strict=True) for c in columns if line[c])


def test_cells_are_found_by_their_axes_whatever_their_method_is_called():
    methods = small_study().model_dump(mode="json")["methods"]
    renamed = {"best" if name == "ours" else name: spec for name, spec in methods.items()}
    blocks = [b.model_dump(mode="json") for b in small_study().grid]
    for block in blocks:
        block["methods"] = ["best" if m == "ours" else m for m in block["methods"]]
    source = Source(small_study(methods=renamed, grid=blocks), None, None, CONFIG)
    assert source.at("xs", METHOD).method == "best"
    assert source.at("s", METHOD).axes.tau_max == 10
    assert source.at("s", METHOD.at({TAU_MAX: 60})).axes.tau_max == 60
    assert source.at("s", replayed("pool", "rollout", "abs_advantage")).cells == ()
    assert source.at("s", NO_REPLAY).cells[0].cell == "s/grpo-seed42"
    assert source.ablation_scales == ["s"]
    even = Source(small_study(grid=[small_study().grid[0].model_dump()]), None, None, CONFIG)
    assert even.ablation_scales == ["xs", "s"]


def test_what_a_study_lacks_is_a_dash_and_a_line(two_cells):
    table = accuracy.table04(two_cells)
    assert [r.numbers["avg"] is None for r in table.rows] == [False, True, True, True, True, False]
    assert table.notes[-1].startswith("The grid of the study tiny has no cell of: anchored-query")
    assert "anchored-query-σ_g at s" in table.notes[-1]
    ages = accuracy.table02(two_cells)
    clipped = [r.numbers["clip_fresh_percent"] for r in ages.rows if r.numbers["avg"]]
    assert clipped == [Estimate(0.1, n=2, remark="n=1")]
    missing = "\n".join(ages.notes)
    assert "missing: s/ours-replay.tau_max30-seed42; make it with: `snakemake" in missing


@pytest.mark.parametrize("build", PAPER_TABLES, ids=NAMES)
def test_nothing_finished_is_dashes_and_never_a_zero(build):
    study = paper_study()
    nothing = pd.DataFrame({"cell": [], "benchmark": []})
    table = build(Source(study, nothing, None, CONFIG))
    assert len(table.rows) >= 3
    numbers = [n for row in table.rows for key, n in row.numbers.items() if key != "b_fresh"]
    assert set(numbers) <= {None}
    if build is not hyperparameters.table07:
        assert any(re.search("make (it|them) with: `snakemake", note) for note in table.notes)


def marked_study(seeds: list[int]):
    """The small study with 40 problems a benchmark: enough for a difference to be significant."""
    content = small_study().model_dump(mode="json")
    for benchmark in content["benchmarks"].values():
        benchmark["n_problems"] = 40
    for block in content["grid"]:
        block["seeds"] = seeds
    return type(small_study()).model_validate(content)


def write_solved(study, results, name, solved, length_of_correct=10, last_length=20.0):
    """A cell that solves the first problems of each benchmark; wrong answers have 10 tokens."""
    graded = {b: np.arange(80).reshape(40, 2) < 2 * solved for b in study.benchmarks}
    lengths_of = {b: np.where(correct, length_of_correct, 10) for b, correct in graded.items()}
    folder = write_cell(study, results, expand(study)[name], graded, lengths_of)
    metric = {"step": 20, "clip_ratio/fresh": 0.0, "clip_ratio/replay": 0.0}
    batch = dict.fromkeys([training.SURVIVORS, training.ALL_CORRECT, training.ALL_WRONG], 4.0)
    write_metrics(folder, [metric | batch | {"completions/mean_length": last_length}])


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory):
    """`ours` solves more than GRPO, with shorter right answers, at tau_max 10, and as much at 1."""
    study, results = marked_study([42]), tmp_path_factory.mktemp("one_seed")
    write_solved(study, results, "s/base", 5)
    write_solved(study, results, "s/grpo-seed42", 20)
    write_solved(study, results, "s/ours-seed42", 35, length_of_correct=6)
    write_solved(study, results, "s/ours-replay.tau_max1-seed42", 20)
    return source_of(study, results)


def test_means_are_marked_against_grpo(one_seed):
    for build in (accuracy.table01, accuracy.table02, accuracy.table03, accuracy.table04):
        table = build(one_seed)
        marks = [row.numbers["avg"].marks for row in table.rows if row.numbers["avg"]]
        assert sorted(marks)[-1] == "†" and "" in marks, build
        assert any(note.startswith("† differs from GRPO") for note in table.notes)
    nine = accuracy.table09(one_seed).rows
    assert [row.numbers["avg"].marks for row in nine if row.numbers["avg"]] == ["", "†"]


def test_numbers_against_grpo_are_marked(one_seed):
    five = efficiency.table05(one_seed)
    marks = {
        (row.labels["reference_key"], row.labels["method_key"]): number.marks
        for row in five.rows
        if (number := row.numbers["s"])
    }
    # GRPO against base compares nothing with GRPO.
    assert marks == {("base", "grpo"): "", ("base", "ours"): "†", ("grpo", "ours"): "†"}
    change = row_of(lengths.table06(one_seed), scale="s").numbers
    assert change["delta_correct_percent"].marks == "†"
    assert change["delta_incorrect_percent"].marks == ""  # all wrong answers have 10 tokens
    assert change["delta_incorrect_percent"].p_problems == 1.0
    base, grpo = (
        row_of(efficiency.table10(one_seed), scale="s", reference_key=key).numbers[
            "accuracy_percent"
        ]
        for key in ("base", "grpo")
    )
    assert (base.marks, grpo.marks, grpo.p_problems, base.p_seeds) == ("†", "", None, None)
    ranked = ranking.table13(one_seed)
    for tau, mark in ((10, "†"), (1, "")):
        numbers = row_of(
            ranked, tau_max=tau, priority_key="abs_advantage", replay_ratio=0.5, alpha=0.5
        )
        for key in ("delta_length_percent", "delta_accuracy_percent", "aes"):
            assert numbers.numbers[key].marks == mark, (tau, key)
    for table in (five, lengths.table06(one_seed), efficiency.table10(one_seed), ranked):
        assert any(note.startswith("† differs from GRPO") for note in table.notes), table.title


def test_a_table_without_marks_says_why(one_seed):
    for build in (training.table08, lengths.table11):
        table = build(one_seed)
        assert any(note.startswith("No marks: the table has GRPO alone") for note in table.notes)
        assert not any(column.tested for column in table.columns)
    twelve = training.table12(one_seed)
    assert any("the t test over seeds needs 3" in note for note in twelve.notes)
    assert row_of(twelve, method_key="ours", scale="s").numbers["delta_percent"].marks == ""


def test_numbers_are_tested_over_three_seeds(tmp_path):
    study = marked_study([1, 2, 3])
    write_solved(study, tmp_path, "s/base", 5)
    for seed in (1, 2, 3):
        write_solved(study, tmp_path, f"s/grpo-seed{seed}", 20, 10 + seed, 20.0 + seed)
        ours = f"s/ours-seed{seed}"
        write_solved(study, tmp_path, ours, 34 + seed, 6 + seed, 10.0 + seed)
    source = source_of(study, tmp_path)
    numbers = {
        "table05": row_of(efficiency.table05(source), reference_key="grpo", method_key="ours"),
        "base": row_of(efficiency.table05(source), reference_key="base", method_key="ours"),
        "table06": row_of(lengths.table06(source), scale="s"),
        "table12": row_of(training.table12(source), method_key="ours", scale="s"),
        "table13": row_of(ranking.table13(source), rank=1),
    }
    numbers = {name: row.numbers for name, row in numbers.items()}
    assert numbers["table05"]["s"].marks == numbers["base"]["s"].marks == "†‡"
    assert numbers["table06"]["delta_correct_percent"].marks == "†‡"
    assert numbers["table13"]["aes"].marks == "†‡"
    change = numbers["table12"]["delta_percent"]
    # 11/21, 12/22, 13/23 less what they are the other way round; no test over problems
    changes = [100 * (10 + s) / (20 + s) - 100 * (20 + s) / (10 + s) for s in (1, 2, 3)]
    assert change.p_seeds == pytest.approx(stats.ttest_1samp(changes, 0).pvalue)
    assert (change.marks, change.p_problems) == ("‡", None)
    assert any(n.startswith("‡ differs") for n in training.table12(source).notes)
    catalogue.write_table(training.table12(source), tmp_path / "table12")
    line = read_csv(tmp_path / "table12.csv")[-1]
    assert float(line["delta_percent_p_seeds"]) == pytest.approx(change.p_seeds, abs=1e-6)
    assert line["delta_percent_p_problems"] == ""
    for suffix, mark in ((".md", "‡"), (".html", "‡"), (".tex", r"\ddagger")):
        text = (tmp_path / f"table12{suffix}").read_text(encoding="utf-8")
        assert text.count(mark) == 2, suffix  # at the number and in the note


def test_holm_is_over_the_numbers_of_one_table_and_scale():
    """Two tests of a scale: the smaller p counts twice, and a number without a test not at all."""
    numbers = {"a": Estimate(1.0), "b": Estimate(2.0), "c": Estimate(3.0), "d": None}
    tests = {"a": PValues(0.02, 0.4), "b": PValues(0.03), "d": PValues(0.001, 0.001)}
    found = marked(numbers, tests)
    assert found["a"] == Estimate(1.0, p_problems=0.04, p_seeds=0.4, marks="†")
    assert found["b"] == Estimate(2.0, p_problems=0.04, marks="†")
    assert (found["c"], found["d"]) == (numbers["c"], None)


def test_ranks_fall_with_the_aes_and_skip_what_is_missing():
    assert efficiency.ranks([0.1, None, 0.3, float("nan"), 0.1]) == [2, None, 1, None, 2]


def test_hyperparameters_stand_beside_the_papers():
    table = hyperparameters.table07(Source(small_study(), None, None, CONFIG))
    labels = {row.labels["setting"]: row.labels for row in table.rows}
    assert labels["learning_rate"]["value"] == "0.001" and labels["learning_rate"]["equal"] == "no"
    assert labels["clip_epsilon_high"]["equal"] == "yes"
    assert labels["advantage_epsilon"]["equal"] == "yes"  # 1e-06 is 1e-6
    assert labels["micro_batch_per_gpu_4B"]["value"] is None
    assert labels["micro_batch_per_gpu_xs"]["paper"] is None
    paper = [line["setting"] for line in published.rows("table07")]
    assert [name for name in labels if name in paper] == paper


# --- beside the paper's ---------------------------------------------------------------------------


def test_the_difference_carries_our_interval(whole):
    _, results = whole
    lines = read_csv(results / "tables" / "table03_comparison.csv")
    own, paper, difference = [
        line for line in lines if (line["scale"], line["composition"]) == ("4B", "pool")
    ]
    assert (own["source"], paper["source"]) == ("this study", "paper")
    assert (paper["avg"], paper["pass"], paper["avg_low"]) == ("23.54", "39.08", "")
    for part in ("avg", "avg_low", "avg_high"):
        assert float(difference[part]) == pytest.approx(float(own[part]) - 23.54, abs=1e-5)
    text = (results / "tables" / "table03_comparison.md").read_text(encoding="utf-8")
    assert "Not the paper's: the models of 0.6B, 1.7B, 4B (Qwen3-<scale>-Base), and the" in text


def test_table_1_is_compared_under_the_papers_verifier_too(whole):
    _, results = whole
    scores = pd.read_parquet(results / "scores.parquet")
    grpo = scores.query("scale == '4B' and composition == 'none'")
    lines = read_csv(results / "tables" / "table01_comparison.csv")
    line = next(
        line
        for line in lines
        if (line["scale"], line["method_key"]) == ("4B", "grpo")
        and line["source"] == "this study, paper's verifier"
    )
    assert float(line["avg"]) == pytest.approx(grpo["avg_at_k_paper"].mean())


def test_every_published_line_is_compared(whole):
    _, results = whole
    for name in (n for n in NAMES if n != "table07"):
        lines = read_csv(results / "tables" / f"{name}_comparison.csv")
        per_row = 4 if name == "table01" else 3
        assert len(lines) == per_row * len(published.rows(name)), name
    ranks = read_csv(results / "tables" / "table13_comparison.csv")
    printed = sorted(int(line["rank"]) for line in ranks if line["source"] == "paper")
    assert printed == list(range(1, 13))


def test_impossible_published_numbers_are_marked():
    assert comparison._printed("aime25_avg", {"aime25_avg": "5.02"}).marks == "§"
    assert comparison._printed("aime25_avg", {"aime25_avg": "5.00"}) == Estimate(5.0)
    assert comparison._printed("avg", {"avg": "15.93"}) == Estimate(15.93)
    assert comparison._printed("delta_percent", {"delta_percent": ""}) is None


def test_impossible_lines_of_table_1_are_marked_and_told():
    clock = paper_study().benchmarks["easy"].model_dump()
    other = {**clock, "title": "Other"}
    study = paper_study(benchmarks={"aime25": clock, "hmmt_feb26": other})
    nothing = pd.DataFrame({"cell": [], "benchmark": []})
    table = comparison.compare(
        study, "table01", accuracy.table01(Source(study, nothing, None, CONFIG))
    )
    columns = ("aime25_avg", "aime25_pass", "hmmt_feb26_avg", "hmmt_feb26_pass")
    assert [c.key for c in table.columns] == [*columns, "avg", "pass"]
    paper = [row for row in table.rows if row.labels["source"] == "paper"]
    marked = {
        (row.labels["scale"], row.labels["method_key"], key)
        for row in paper
        for key, number in row.numbers.items()
        if number.marks
    }
    assert marked == {
        *(("1.7B", "uniform-pool", key) for key in columns[:3]),  # 9.09 is 3 of 33
        *(("4B", "uniform-pool", key) for key in columns),
    }
    assert any(note.startswith("§ printed by the paper, but no mean") for note in table.notes)
    others = [row for row in table.rows if row.labels["source"] != "paper"]
    assert all(number is None for row in others for number in row.numbers.values())


def test_other_models_and_benchmarks_than_the_papers_are_named():
    study = load_study(STUDIES / "paper.yaml")
    assert comparison._not_the_papers(study, ["0.6B", "4B"]) == []
    cut = study.benchmarks["math500"].model_copy(update={"limit": 100})
    few = study.model_copy(update={"benchmarks": {"math500": cut}})
    (note,) = comparison._not_the_papers(few, ["4B"])
    assert "the benchmarks under math500, aime25, aime26, hmmt_feb25, hmmt_feb26." in note
    assert "models" not in note
    rehearsal = load_study(STUDIES / "paper_rehearsal.yaml")
    (note,) = comparison._not_the_papers(rehearsal, ["0.6B"])
    assert "the models of 0.6B" in note and "the benchmarks under math500" in note


def test_a_compared_line_prints_what_its_sources_share_once(whole):
    _, results = whole
    lines = read_csv(results / "tables" / "table13_comparison.csv")
    assert [*lines[0]].index("rank") == [*lines[0]].index("source") - 1
    page = (results / "tables" / "table13_comparison.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr>(<th scope=\"row\".*?)<td", page)
    shown = {row.count('<th scope="row">') for row in rows if ">difference<" in row}
    assert shown == {2}  # rank and source


def test_shares_of_clipped_tokens_say_that_they_are_not_tested(whole):
    _, results = whole
    for name in ("table02", "table02_comparison"):
        text = (results / "tables" / f"{name}.md").read_text(encoding="utf-8")
        assert "shares are not tested" in text


def test_a_study_without_the_papers_scales_says_so(two_cells):
    table = comparison.compare(two_cells.study, "table03", accuracy.table03(two_cells))
    assert table.rows == []
    assert table.notes == [
        "The study tiny has none of the paper's scales (0.6B, 1.7B, 4B): there is nothing to "
        "compare."
    ]


# --- files ----------------------------------------------------------------------------------------


def test_no_table_prints_the_key_of_a_method_or_priority(whole):
    _, results = whole
    for path in (results / "tables").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert not re.search("sigma_g|abs_advantage|uniform-pool|grpo", text), path.name


def test_html_is_one_page_of_its_own(whole):
    _, results = whole
    text = (results / "tables" / "table04.html").read_text(encoding="utf-8")
    assert "|A|" in text and "σ<sub>g</sub>" in text and "<style>" in text
    assert "src=" not in text and "href=" not in text
    markdown = (results / "tables" / "table04.md").read_text(encoding="utf-8")
    assert r"| \|A\| | rollout |" in markdown


def test_latex_of_every_table_compiles_within_the_page(whole):
    compiler = shutil.which("pdflatex") or shutil.which("tectonic")
    if compiler is None:
        pytest.skip("pdflatex or tectonic is not installed (Debian: texlive-latex-recommended)")
    options = ["-interaction=nonstopmode", "-halt-on-error"] if "pdflatex" in compiler else []
    folder = whole[1] / "tables"
    for path in sorted(folder.glob("*.tex")):
        command = [compiler, *options, path.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (path.name, done.stdout[-2000:])
        assert "Overfull" not in done.stdout, (path.name, done.stdout[-2000:])
