"""The main and the age table of hand-made results: numbers, intervals, marks, dashes and notes."""

import contextlib
import html
import io
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from reporting_inputs import (
    read_csv,
    small_study,
    write_cell,
    write_metrics,
    write_own_table,
)

from grpo_replay.reporting.numbers.conditions import all_conditions, main_conditions
from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.tables.html import to_html
from grpo_replay.reporting.tables.latex import tex, to_latex
from grpo_replay.reporting.tables.notes import missing
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import (
    Column,
    Row,
    Table,
    estimate_text,
    to_csv,
    to_markdown,
)
from grpo_replay.results.scores import collect_scores
from grpo_replay.study.cells import expand, select
from grpo_replay.study.config import Study

OURS_10 = "s/ours-seed42"  # at its default age, which no id names
OURS = "s/ours-replay.tau_max{}-seed42"


def fill(study: Study, results, correct_by_cell: dict[str, tuple]) -> None:
    """Score cells from (number correct of easy's 8, of hard's 10), the first ones in row order."""
    cells = expand(study)
    for name, counts in correct_by_cell.items():
        graded = {}
        for (benchmark, spec), count in zip(study.benchmarks.items(), counts, strict=True):
            size = spec.n_problems * spec.k
            graded[benchmark] = (np.arange(size) < count).reshape(spec.n_problems, spec.k)
        write_cell(study, results, cells[name], graded)
    collect_scores(study, results, results / "scores.parquet")


def line_of(rows: list[dict], **labels) -> dict:
    found = [row for row in rows if all(row[key] == value for key, value in labels.items())]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def main(tmp_path_factory):
    """The rows of main.csv, the folder of the tables, and what went to stderr."""
    folder = tmp_path_factory.mktemp("results")
    finished = {
        "s/base": (2, 1),
        "s/grpo-seed42": (5, 4),
        "s/uniform-pool-seed42": (4, 4),
        OURS_10: (8, 10),
        OURS.format(1): (0, 0),
    }
    fill(small_study(), folder, finished)
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        write_own_table("main", small_study(), folder, folder / "tables" / "main")
    return read_csv(folder / "tables" / "main.csv"), folder / "tables", stderr.getvalue()


def test_main_table_numbers_by_hand(main):
    rows, _, _ = main
    grpo = line_of(rows, scale="s", method_key="grpo")
    assert float(grpo["easy_avg"]) == pytest.approx(62.5)  # 5 of 8 samples
    assert float(grpo["easy_pass"]) == pytest.approx(75)  # 3 of 4 problems
    assert float(grpo["hard_avg"]) == pytest.approx(40)  # 4 of 10 samples
    assert float(grpo["hard_pass"]) == pytest.approx(40)  # 2 of 5 problems
    assert float(grpo["avg"]) == pytest.approx(51.25)
    assert float(grpo["pass"]) == pytest.approx(57.5)
    assert float(grpo["avg_low"]) < 51.25 < float(grpo["avg_high"])
    assert (grpo["avg_n"], grpo["easy_avg_n"], grpo["seeds"]) == ("9", "4", "1")
    ours = line_of(rows, scale="s", method_key="ours")
    assert ours["tau_max"] == "10" and float(ours["avg"]) == 100.0
    assert 50 < float(ours["avg_low"]) < 100  # Wilson: all right is not certainty


def test_main_table_order_and_chance_line(main):
    rows, _, _ = main
    assert [row["method_key"] for row in rows if row["scale"] == "s"] == [
        "chance",
        "base",
        "grpo",
        "uniform-pool",
        "sigma_g-pool",
        "ours",
    ]
    chance = line_of(rows, scale="xs", method_key="chance")
    assert float(chance["easy_avg"]) == pytest.approx(10)
    assert float(chance["pass"]) == pytest.approx(19)  # 1 - 0.9^2 for k = 2


def test_missing_cells_are_dashes_with_the_command(main):
    rows, folder, stderr = main
    sigma = line_of(rows, scale="s", method_key="sigma_g-pool")
    assert sigma["avg"] == "" and sigma["seeds"] == "0"
    text = (folder / "main.md").read_text(encoding="utf-8")
    assert "| s | σ_g (pool) | 0 | – | – | – | – | – | – |" in text
    assert {sigma[key] for key in sigma if key.startswith(("easy", "hard", "avg", "pass"))} == {""}
    assert "missing: xs/base, xs/grpo-seed42" in text
    assert "`snakemake --cores all --config study=tiny only='xs/base,xs/grpo-seed42," in text
    assert "warning: missing: xs/base" in stderr


def test_the_command_declares_the_gpus_of_what_is_missing():
    study = small_study()
    scales = {name: scale.model_copy(update={"gpus": 2}) for name, scale in study.scales.items()}
    study = study.model_copy(update={"scales": scales})
    settings, nothing = main_conditions(study, "s")[:1], pd.DataFrame({"cell": []})
    notes = missing(Source(study, nothing, Path(), "study=tiny results=/elsewhere"), settings)
    command = "snakemake --cores all --resources gpu=2 --config study=tiny results=/elsewhere"
    assert notes == [f"missing: s/base; make it with: `{command} only='s/base'`"]


def test_the_command_makes_what_is_missing_and_nothing_else():
    study = small_study()
    settings, cells = all_conditions(study), expand(study)
    scored = pd.DataFrame({"cell": ["s/base"]})
    (note,) = missing(Source(study, scored, Path(), "study=tiny"), settings)
    assert note.endswith("make them with: `snakemake --cores all --config study=tiny`")
    of_s = [setting for setting in settings if setting.scale == "s"]
    (note,) = missing(Source(study, scored, Path(), "study=tiny"), of_s)
    only = note.partition(" only='")[2].removesuffix("'`")
    assert set(select(cells, only)) == {c for c in cells if c.startswith("s/")} - {"s/base"}


def test_one_seed_makes_no_claim(main):
    text = (main[1] / "main.md").read_text(encoding="utf-8")
    assert "Seeds n=1: one training seed" in text
    assert "| s | GRPO | 1 | 62.5 [" in text
    assert "Easy avg@2<br>n = 4 × 2" in text


def larger_study(seeds: list[int]) -> Study:
    """One scale, 40 problems a benchmark: enough for a difference to be significant."""
    content = small_study().model_dump(mode="json")
    content["scales"] = {"s": content["scales"]["s"]}
    for benchmark in content["benchmarks"].values():
        benchmark["n_problems"] = 40
    for block in content["grid"]:
        block |= {"scales": ["s"], "seeds": seeds}
    return Study.model_validate(content)


def test_significant_differences_are_marked(tmp_path):
    study = larger_study([42])
    finished = {
        "s/base": (0, 0),
        "s/grpo-seed42": (40, 40),
        "s/uniform-pool-seed42": (40, 42),
        OURS_10: (60, 60),
    }
    fill(study, tmp_path, finished)
    write_own_table("main", study, tmp_path, tmp_path / "main")
    rows = read_csv(tmp_path / "main.csv")
    ours, uniform = (line_of(rows, method_key=m) for m in ("ours", "uniform-pool"))
    assert float(ours["avg_p_problems"]) < 0.01 and ours["avg_p_seeds"] == ""
    assert float(uniform["avg_p_problems"]) == 1.0
    text = (tmp_path / "main.md").read_text(encoding="utf-8")
    assert "75.0† [" in text and "51.2 [" in text
    assert line_of(rows, method_key="base")["avg_p_problems"] == ""
    assert "make it with: `snakemake --cores all --config study=tiny only=" in text


def test_several_seeds_give_the_mean_and_an_interval_over_seeds(tmp_path):
    study = larger_study([1, 2, 3])
    finished = {"s/base": (0, 0)}
    for seed, shift in ((1, 0), (2, 2), (3, 4)):
        finished[f"s/grpo-seed{seed}"] = (20 + shift, 20 + shift)
        finished[f"s/ours-seed{seed}"] = (60 + shift, 61 + 2 * shift)
    fill(study, tmp_path, finished)
    write_own_table("main", study, tmp_path, tmp_path / "main")
    grpo = line_of(read_csv(tmp_path / "main.csv"), method_key="grpo")
    # 25, 27.5, 30 %: mean 27.5, s = 2.5, t(0.975, 2) = 4.303, half width 4.303 * 2.5 / sqrt(3)
    assert float(grpo["avg"]) == pytest.approx(27.5)
    assert float(grpo["avg_seeds_low"]) == pytest.approx(27.5 - 6.210, abs=1e-3)
    assert float(grpo["avg_seeds_high"]) == pytest.approx(27.5 + 6.210, abs=1e-3)
    assert grpo["seeds"] == "3"
    text = (tmp_path / "main.md").read_text(encoding="utf-8")
    assert "27.5 [21.3, 33.7]" in text
    assert "†‡" in text and "‡ differs from GRPO over the seeds" in text
    assert "Seeds n=1" not in text


def test_age_table_by_hand(tmp_path):
    study = small_study()
    fill(
        study, tmp_path, {"s/grpo-seed42": (5, 4), OURS.format(1): (6, 5), OURS.format(60): (4, 5)}
    )
    folder = tmp_path / "cells" / OURS.format(1)
    steps = [(1, 0.001, None), (2, 0.002, 0.01), (3, 0.003, 0.03)]
    write_metrics(
        folder,
        [{"step": s, "clip_ratio/fresh": f, "clip_ratio/replay": r} for s, f, r in steps],
    )
    write_own_table("age", study, tmp_path, tmp_path / "age")
    rows = read_csv(tmp_path / "age.csv")
    assert [row["tau"] for row in rows] == ["GRPO (no replay)", "1", "10", "30", "60"]
    assert {row["scale"] for row in rows} == {"s"}
    first = line_of(rows, tau="1")
    assert float(first["avg"]) == pytest.approx((75 + 50) / 2)
    assert float(first["clip_fresh_percent"]) == pytest.approx(0.2)
    assert float(first["clip_replay_percent"]) == pytest.approx(2.0)  # two steps replayed
    assert first["clip_replay_percent_n"] == "2"
    text = (tmp_path / "age.md").read_text(encoding="utf-8")
    assert "0.200 (n=1) | 2.000 (n=1)" in text
    assert f"missing: {OURS_10}; make it with" in text
    assert f"only='{OURS.format(30)}'" in text


def test_a_study_without_ours_has_an_empty_age_table(tmp_path):
    grids = [small_study().grid[0].model_dump() | {"methods": ["grpo"]}]
    study = small_study(grid=grids)
    fill(study, tmp_path, {"s/grpo-seed42": (5, 4)})
    write_own_table("age", study, tmp_path, tmp_path / "age")
    assert read_csv(tmp_path / "age.csv") == []
    assert "has no cells of the method ours" in (tmp_path / "age.md").read_text(encoding="utf-8")


def test_main_conditions_prefer_the_papers_age():
    ours = small_study().grid[1].model_dump()
    blocks = [{**ours, "methods": ["grpo"], "vary": {}}, ours]
    settings = main_conditions(small_study(grid=blocks), "s")
    assert [(s.method, s.axes.tau_max) for s in settings] == [
        ("base", None),
        ("grpo", None),
        ("ours", 10),
    ]
    ours["vary"] = {"replay.tau_max": [4, 2]}
    assert main_conditions(small_study(grid=blocks), "s")[-1].axes.tau_max == 4


def test_number_text():
    assert estimate_text(None, 1) == "–"
    assert estimate_text(Estimate(float("nan")), 1) == "–"
    assert estimate_text(Estimate(61.24, 57.0, 65.12, marks="†"), 1) == "61.2† [57.0, 65.1]"
    assert estimate_text(Estimate(0.0551, remark="n=1"), 3) == "0.055 (n=1)"
    both = Estimate(61.24, 57.0, 65.12, seeds_low=50.0, seeds_high=70.0)
    assert estimate_text(both, 1) == "61.2 [50.0, 70.0]"


def test_a_label_like_that_above_it_is_not_seen_again():
    rows = [Row({"a": "s", "b": label}, {"x": Estimate(1.0)}) for label in ("-0.5", "-0.5", "σ_g")]
    rows[1] = Row({"a": "s", "b": "t-1"}, {"x": Estimate(-1.0)})
    table = Table("T", {"a": "A", "b": "B"}, [Column("x", "", "X")], rows)
    page = to_html(table)
    assert re.findall(r'<th scope="row"( class="again")?>(.*?)</th>', page) == [
        *(("", "s"), ("", "−0.5")),
        *((' class="again"', "s"), ("", "t-1")),
        *((' class="again"', "s"), ("", "σ<sub>g</sub>")),
    ]
    assert r"s & $-$0.5 & 1.0" in to_latex(table) and "\n & t-1 & $-$1.0" in to_latex(table)


TITLES = ["MATH | hard", "a \\| b", "$x$ and $$", "<b>bold</b> *x* **", "|A|", "back\\slash"]


@pytest.mark.parametrize("title", TITLES)
def test_a_title_is_no_markup_in_markdown(tmp_path, title):
    """As a reader of Markdown reads the table: one column for each number, and the title whole."""
    columns = [Column("x", title, "avg@2", "n = 4"), Column("y", title, "pass@2")]
    table = Table(title, {"a": title}, columns, [Row({"a": title}, {"x": Estimate(1.0)})])
    page = MarkdownIt("gfm-like", {"linkify": False}).render(to_markdown(table))
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)]
    assert cells == [title, f"{title} avg@2<br>n = 4", f"{title} pass@2", title, "1.0", "–"]
    assert f"<strong>{html.escape(title)}</strong>" in page
    assert "$" not in to_markdown(table).replace(r"\$", "")  # a formula to GitHub


def test_a_label_that_looks_like_a_formula_is_none_and_numbers_stay(tmp_path):
    row = Row({"a": "=1+1", "b": -0.5}, {"x": Estimate(-0.25, -1.0, 0.5)})
    table = Table("t", {"a": "A", "b": "B"}, [Column("x", "", "x")], [row])
    assert to_csv(table).splitlines()[1] == "'=1+1,-0.5,-0.25,-1.0,0.5,,,"


def test_tex_escapes():
    assert tex("a_b 5 % × 3 σ_g") == r"a\_b 5 \% $\times$ 3 $\sigma_g$"
    assert tex("run `x --cores only='s'`") == (
        r"run \texttt{x -{}-cores only=\textquotesingle{}s\textquotesingle{}}"
    )


def test_latex_breaks_a_long_command():
    assert tex("a, b `c,d`") == r"a, b \texttt{c,\allowbreak{}d}"


def test_latex_compiles_with_any_text(tmp_path):
    assert tex("γ ≤ 日") == r"$\gamma$ $\leq$ {[}U+65E5]"
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("pdflatex is not installed (Debian: texlive-latex-recommended)")
    every = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA1, 0x100)]))
    texts = [every, "[1.0] – ‘x’ … γ ≤ 日本", r"\item -- $5 {b} ~ a^2 `c_d` #1 50 %"]
    rows = [Row({"a": text}, {"x": Estimate(1.0)}) for text in texts]
    columns = [Column("x", text, text, text) for text in texts]
    (tmp_path / "any.tex").write_text(to_latex(Table(every, {"a": every}, columns, rows, texts)))
    command = [compiler, "-interaction=nonstopmode", "-halt-on-error", "any.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_tables_are_the_same_bytes_again(main):
    _, folder, _ = main
    write_own_table("main", small_study(), folder.parent, folder / "again")
    for suffix in ("csv", "md", "tex", "html"):
        assert (folder / f"again.{suffix}").read_bytes() == (folder / f"main.{suffix}").read_bytes()


def test_latex_compiles(main):
    _, folder, _ = main
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("pdflatex is not installed (Debian: texlive-latex-recommended)")
    write_own_table("age", small_study(), folder.parent, folder / "age")
    for name in ("main.tex", "age.tex"):
        command = [compiler, "-interaction=nonstopmode", "-halt-on-error", name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]


def test_a_base_model_has_no_seeds(main):
    base = line_of(main[0], scale="s", method_key="base")
    assert base["seeds"] == "" and float(base["easy_avg"]) == 25.0
