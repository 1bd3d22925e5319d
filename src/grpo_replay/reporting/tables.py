"""The tables of a study: each function reads its results and writes csv, md, tex and html files.

One call a table, so that a script of the workflow only unpacks its arguments. `results` is the
study's folder, with its scores.parquet; `config` is what a command that makes missing cells has
behind `--config`.
"""

from pathlib import Path

from grpo_replay.config import Study
from grpo_replay.files import write_text
from grpo_replay.reporting import age_table as ages
from grpo_replay.reporting import main_table as main
from grpo_replay.reporting.formats import Table, to_csv, to_markdown
from grpo_replay.reporting.html import to_html
from grpo_replay.reporting.latex import to_latex
from grpo_replay.reporting.paper_tables import (
    accuracy,
    efficiency,
    hyperparameters,
    lengths,
    ranking,
    recomputed,
    training,
)
from grpo_replay.reporting.paper_tables.comparison import compare
from grpo_replay.reporting.paper_tables.points import Source
from grpo_replay.reporting.scores import read_scores

PAPER_TABLES = (
    *(accuracy.table01, accuracy.table02, accuracy.table03, accuracy.table04, efficiency.table05),
    *(lengths.table06, hyperparameters.table07, training.table08, accuracy.table09),
    *(efficiency.table10, lengths.table11, training.table12, ranking.table13),
)
_RENDERERS = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex, ".html": to_html}


def write_table(table: Table, stem: Path) -> None:
    """Write `<stem>.csv`, `<stem>.md`, `<stem>.tex` and `<stem>.html`."""
    for suffix, render in _RENDERERS.items():
        write_text(stem.with_name(stem.name + suffix), render(table))


def main_table(study: Study, results: Path, output_stem: Path, config: str) -> None:
    """Write Table 1: accuracy of every method at every scale."""
    write_table(main.build(study, read_scores(results), config), output_stem)


def age_table(study: Study, results: Path, output_stem: Path, config: str) -> None:
    """Write Table 2: `ours` at each tau_max, with clipped ratios from the cells' metrics.jsonl."""
    scores = read_scores(results)
    write_table(ages.build(study, scores, results, config), output_stem)


def paper_tables(study: Study, results: Path, output_stem: Path, config: str) -> None:
    """Write Tables 1 to 13 of the paper, each but 7 (which holds both) also beside the paper's
    numbers (`table01_comparison`), and what the paper's numbers give when recomputed
    (`published_check`). `output_stem` is that of Table 1; the others lie beside it.
    """
    folder = output_stem.parent
    source = Source(study, read_scores(results), results, config)
    for build in PAPER_TABLES:
        name, table = build.__name__, build(source)
        write_table(table, folder / name)
        if build is not hyperparameters.table07:
            write_table(compare(study, name, table), folder / f"{name}_comparison")
    write_table(recomputed.check_table(), folder / "published_check")
