"""Claims as data: where they stand in a study, what judges them, their table and their figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from reporting_inputs import (
    paper_study,
    read_csv,
    small_study,
    write_cell,
    write_metrics,
)
from scipy import stats

from grpo_replay.errors import ConfigError
from grpo_replay.planning.preflight import check_inputs
from grpo_replay.reporting.figures.claims import claims_figure
from grpo_replay.reporting.figures.variance import variance_figure
from grpo_replay.reporting.numbers.claims import judge, paper_claims, unplaced
from grpo_replay.reporting.numbers.placed_claims import place_of_paper
from grpo_replay.reporting.tables import claims, variance
from grpo_replay.reporting.tables.catalogue import RENDERERS, write_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.results.scores import collect_scores, read_scores
from grpo_replay.study.cells import expand, resolve
from grpo_replay.study.config import Study
from grpo_replay.study.file import load_study

SEEDS = [42, 43, 44, 45]
MINE = {
    "claim": "thirty steps are too old",
    "contrast": {
        "kind": "pair",
        "of": {"method": "ours", "vary": {"replay.tau_max": 30}},
        "against": {"method": "ours"},
    },
    "metric": "avg_at_k",
    "expect": "lower",
    "margin": 2.0,
}


def study_of_seeds(seeds: list[int], **changes) -> Study:
    content = small_study().model_dump(mode="json") | changes
    for block in content["grid"]:
        block["seeds"] = seeds
    return Study.model_validate(content)


def percent(cell, position: int) -> float:
    """A rate that method, age and seed decide: `ours` leads by 20, older replay loses."""
    seed = 0 if cell.seed is None else 3 * (cell.seed % 5) + position % 3
    age = cell.varied.get("replay.tau_max", 10)
    return 30 + seed + (20 if cell.method == "ours" else 0) - (25 if age >= 30 else 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    """A study of four seeds with ten answers to each of 200 problems, one cell unfinished."""
    results = tmp_path_factory.mktemp("made")
    benchmarks = small_study().model_dump(mode="json")["benchmarks"]
    for benchmark in benchmarks.values():
        benchmark |= {"n_problems": 40, "k": 10}
    study = study_of_seeds(SEEDS, benchmarks=benchmarks, claims=[MINE])
    rng = np.random.default_rng(5)
    for position, cell in enumerate(expand(study).values()):
        if cell.cell == "xs/uniform-pool-seed44":
            continue
        graded = {n: rng.random((40, 10)) < percent(cell, position) / 100 for n in benchmarks}
        lengths = {name: 10 + 2 * correct for name, correct in graded.items()}
        folder = write_cell(study, results, cell, graded, lengths)
        if cell.trained:
            write_metrics(folder, [record(cell, step) for step in (1, 2)])
    collect_scores(study, results, results / "scores.parquet")
    return study, results


def record(cell, step: int) -> dict:
    age = cell.varied.get("replay.tau_max", 10)
    clipped = 0.001 * np.log(age) * (1 + (cell.seed or 0) % 3 / 10) + 0.0001 * step
    return {
        "step": step,
        "clip_ratio/replay": clipped,
        "replay/age_histogram": {"0": 8, "1": 4, "2": 2},
        "ratio/log_ratio_by_age": {"0": 0.5, "1": -0.001 * age, "2": -0.004 * age},
    }


def found_in(made: tuple[Study, Path]) -> dict[tuple[str, str], object]:
    study, results = made
    families = judge(study, read_scores(results), results)
    return {(j.placed.claim.claim, j.placed.scale): j for family in families for j in family}


def means_of(results: Path, scale: str, method: str, tau: int | None = None) -> pd.Series:
    scores = read_scores(results)
    varied = f'{{"replay.tau_max": {tau}}}' if tau else "{}"
    chosen = scores[
        (scores["scale"] == scale) & (scores["method"] == method) & (scores["varied"] == varied)
    ]
    return chosen.groupby("seed")["avg_at_k"].mean()


def test_the_papers_claims_are_read_and_stand_in_its_own_study() -> None:
    """Every claim of the file is placed where its conditions are, at each scale."""
    study = paper_study()
    places = {c.claim: [p.scale for p in place_of_paper(study, c)] for c in paper_claims()}
    assert len(places) == 12 and all(c.where for c in paper_claims())
    every = ["0.6B", "1.7B", "4B"]
    assert places["`ours` is more accurate than GRPO"] == every
    assert places["the gain over GRPO grows with the scale"] == [""]
    assert places["a pool drawn uniformly falls below GRPO at the largest scale"] == ["4B"]
    for claim in ("τ_max 10 is the best age limit", "|A| is the best priority on pass@k"):
        assert places[claim] == ["1.7B"]
    best = next(c for c in paper_claims() if c.claim.startswith("τ_max 10"))
    (placed,) = place_of_paper(study, best)
    # 20 of the paper's 200 steps: its ages would be 1, 1, 3, 6, which the study has not.
    assert [c.axes.tau_max for c in (*placed.of, *placed.against)] == [10, 1, 30, 60]
    assert not unplaced(study)
    assert {c.where for c in unplaced(small_study())} == {"Table 3", "Table 4"}


def test_ages_of_a_shorter_study_are_shares_of_its_run() -> None:
    content = small_study().model_dump(mode="json")
    content["training"]["steps"] = 50
    content["grid"][1]["vary"] = {"replay.tau_max": [1, 3, 8, 15]}
    study = Study.model_validate(content)
    best = next(c for c in paper_claims() if c.claim.startswith("τ_max 10"))
    (placed,) = place_of_paper(study, best)
    assert [c.axes.tau_max for c in (*placed.of, *placed.against)] == [3, 1, 8, 15]
    table = claims.build(Source(study, pd.DataFrame({"cell": []}), Path(), ""))
    assert any("are 1, 3, 8, 15 of this study's 50" in note for note in table.notes)


def test_a_pair_is_the_t_test_over_the_means_of_the_seeds(made: tuple[Study, Path]) -> None:
    found = found_in(made)["`ours` is more accurate than GRPO", "s"]
    lead = means_of(made[1], "s", "ours") - means_of(made[1], "s", "grpo")
    assert found.finding.evidence.difference == pytest.approx(lead.mean())
    assert found.finding.p == pytest.approx(stats.ttest_1samp(lead, 0).pvalue)
    assert found.p > found.finding.p and found.verdict_text == "holds"
    own = found_in(made)["thirty steps are too old", "s"]
    drop = means_of(made[1], "s", "ours") - means_of(made[1], "s", "ours", 30)
    assert own.finding.evidence.difference == pytest.approx(drop.mean())
    # A family of its own.
    assert own.p == own.finding.p and own.compared == "ours − ours, τ_max 30"


def test_a_trend_over_scales_and_over_a_setting(made: tuple[Study, Path]) -> None:
    found, results = found_in(made), made[1]
    grown = found["the gain over GRPO grows with the scale", ""]
    lead = {s: means_of(results, s, "ours") - means_of(results, s, "grpo") for s in ("xs", "s")}
    assert grown.finding.evidence.difference == pytest.approx((lead["s"] - lead["xs"]).mean())
    clipped = found["more replayed tokens are clipped the older they may be", "s"]
    factor = np.mean([1 + seed % 3 / 10 for seed in SEEDS])
    assert clipped.finding.evidence.difference == pytest.approx(0.1 * factor * np.log(60))
    assert clipped.verdict_text == "holds"
    drift = found["the policy has drifted further from what it replays the older that may be", "s"]
    ages = np.array([1, 10, 30, 60])
    # 4 rows of age 1 and 2 of age 2: 2 thousandths a step of age. All seeds agree: no test.
    slope = stats.linregress(np.log(ages), 2.0 * ages).slope
    assert drift.finding.evidence.difference == pytest.approx(slope * np.log(60))
    assert drift.verdict_text == "undecided" and np.isnan(drift.p)


def test_best_of_names_the_rival_that_decides(made: tuple[Study, Path]) -> None:
    found = found_in(made)["τ_max 10 is the best age limit", "s"]
    assert found.finding.rival == 0 and found.compared == "ours − ours, τ_max 1"
    assert found.verdict_text == "undecided"


def test_lengths_are_compared_in_percent(made: tuple[Study, Path]) -> None:
    """Every correct answer has 12 tokens, every wrong one 10, whatever the method."""
    found = found_in(made)["correct answers of `ours` are longer than GRPO's", "s"]
    assert found.finding.evidence.difference == pytest.approx(0.0)
    assert found.verdict_text == "undecided"


def test_missing_cells_leave_a_claim_undecided(made: tuple[Study, Path]) -> None:
    found = found_in(made)["`ours` has the best AES against GRPO", "xs"]
    assert found.verdict_text == "undecided (3 of 4 seeds)" and np.isnan(found.p)
    assert found.finding.evidence.seeds == 3
    whole = found_in(made)["`ours` has the best AES against GRPO", "s"]
    assert whole.verdict_text == "holds"


def test_the_table_in_all_forms_and_the_figure(made: tuple[Study, Path], tmp_path: Path) -> None:
    study, results = made
    table = claims.build(Source(study, read_scores(results), results, "study=tiny"))
    write_table(table, tmp_path / "claims")
    rows = read_csv(tmp_path / "claims.csv")
    row = next(r for r in rows if r["claim"].startswith("`ours` is more") and r["scale"] == "s")
    assert row["verdict"] == "holds" and row["seeds"] == "4" and float(row["p"]) < 0.05
    low, high = float(row["difference_seeds_low"]), float(row["difference_seeds_high"])
    assert low < float(row["difference"]) < high and float(row["needed"]) >= 3
    for suffix in RENDERERS:
        assert "equal within the margin" in (tmp_path / f"claims{suffix}").read_text() or (
            suffix == ".csv"
        )
    assert "missing: xs/uniform-pool-seed44" in (tmp_path / "claims.md").read_text()
    assert "Table 4" in next(n for n in table.notes if n.startswith("The grid cannot say"))
    claims_figure(study, results, tmp_path / "forest")
    drawn = (tmp_path / "forest.svg").read_bytes()
    claims_figure(study, results, tmp_path / "forest")
    assert (tmp_path / "forest.svg").read_bytes() == drawn


def test_one_seed_decides_nothing_and_says_so(tmp_path: Path) -> None:
    study = small_study()
    for cell in expand(study).values():
        graded = {n: np.eye(b.n_problems, b.k) > 0 for n, b in study.benchmarks.items()}
        write_cell(study, tmp_path, cell, graded)
    collect_scores(study, tmp_path, tmp_path / "scores.parquet")
    source = Source(study, read_scores(tmp_path), tmp_path, "")
    table = claims.build(source)
    told = {row.labels["verdict"] for row in table.rows if row.labels["where"] == "Table 1"}
    assert told == {"undecided (1 seed)"}
    assert any(note.startswith("Below 3 seeds nothing is decided") for note in table.notes)
    claims_figure(study, tmp_path, tmp_path / "claims")
    of_noise = variance.build(source)
    assert any("Scale s: two finished seeds are needed." in note for note in of_noise.notes)
    variance_figure(study, tmp_path, tmp_path / "variance")


def test_the_table_of_noise(made: tuple[Study, Path], tmp_path: Path) -> None:
    study, results = made
    table = variance.build(Source(study, read_scores(results), results, ""))
    write_table(table, tmp_path / "variance")
    xs, s = read_csv(tmp_path / "variance.csv")
    # At xs the conditions that have seed 44 leave one out; three seeds of all four are as many.
    assert (xs["methods"], xs["seeds"]) in (("3", "4"), ("4", "3"))
    assert (s["methods"], s["seeds"]) == ("7", "4")
    assert 40 < float(s["sample"]) < 52 and float(s["seed"]) > 1
    differences = means_of(results, "s", "ours") - means_of(results, "s", "grpo")
    assert float(s["over_seeds"]) == pytest.approx(differences.std(), rel=0.8)
    variance_figure(study, results, tmp_path / "variance")
    assert (tmp_path / "variance.png").is_file()


# --- bad input ------------------------------------------------------------------------------------


def refusal(folder: Path, seeds: list[int], **changes) -> str:
    """The one line that refuses a study of such seeds with such a claim."""
    content = study_of_seeds(seeds).model_dump(mode="json")
    content["claims"] = [MINE | changes]
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    with pytest.raises(ConfigError) as error:
        check_inputs(path, load_study(path))
    message = str(error.value)
    assert message.startswith(f"{path}: claims.0") and "\n" not in message, message
    return message.removeprefix(f"{path}: ")


OURS = {"method": "ours"}


def pair_of(of: dict, against: dict) -> dict:
    return {"kind": "pair", "of": of, "against": against}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"metric": "accuracy"}, "claims.0.metric: Input should be 'avg_at_k', 'pass_at_k'"),
        ({"margin": 0.0}, "claims.0.margin: Input should be greater than 0 (found 0.0)"),
        (
            {"contrast": pair_of({"method": "our"}, {"method": "grpo"})},
            "claims.0: unknown method 'our' (did you mean 'ours'?)",
        ),
        (
            {
                "contrast": pair_of(
                    {"method": "ours", "vary": {"replay.age": 3}}, {"method": "grpo"}
                )
            },
            "claims.0: vary replay.age: no setting 'age'",
        ),
        ({"scales": ["l"]}, "claims.0: unknown scale 'l'; there are: xs, s"),
        (
            {"contrast": pair_of({}, {"method": "grpo"})},
            "claims.0.contrast.of: give method (a name of this study), or settings (by path)",
        ),
        (
            {
                "contrast": pair_of(
                    {"method": "ours", "vary": {"replay.tau_max": 7}}, {"method": "grpo"}
                )
            },
            "claims.0: the grid has no cells of all that it compares: add them to the grid",
        ),
        (
            {"contrast": pair_of(OURS, {"method": "grpo"}), "metric": "aes"},
            "claims.0: metric aes compares with grpo already",
        ),
    ],
)
def test_a_wrong_claim_is_one_line(tmp_path: Path, changes: dict, told: str) -> None:
    assert refusal(tmp_path, SEEDS, **changes).startswith(told)


def test_a_claim_needs_three_shared_seeds(tmp_path: Path) -> None:
    told = refusal(tmp_path, [42, 43])
    assert told.endswith(
        "share 2 seeds at scale s, a test over seeds needs 3 or more: add seeds to the grid"
    )
    content = small_study().model_dump(mode="json") | {"claims": [MINE]}
    content["grid"][0]["seeds"] = [42, 43, 44]
    content["grid"][1] |= {"seeds": [45, 46, 47], "vary": {"replay.tau_max": [30]}}
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    with pytest.raises(ConfigError, match=r"claims\.0: .* share no seed at scale s: give them the"):
        check_inputs(path, load_study(path))


def test_claims_make_no_cell_stale() -> None:
    without, own = study_of_seeds(SEEDS), study_of_seeds(SEEDS, claims=[MINE])
    for cell in expand(without).values():
        assert resolve(without, cell) == resolve(own, cell)
