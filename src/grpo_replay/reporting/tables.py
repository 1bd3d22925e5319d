"""The tables of a study: each function reads its results and writes csv, md, tex and html files.

One call a table, so that a script of the workflow only unpacks its arguments. `results` is the
study's folder, with its scores.parquet.
"""

from pathlib import Path

from grpo_replay.config import Study
from grpo_replay.files import write_text
from grpo_replay.reporting import age_table as ages
from grpo_replay.reporting import main_table as main
from grpo_replay.reporting.formats import Table, to_csv, to_markdown
from grpo_replay.reporting.html import to_html
from grpo_replay.reporting.latex import to_latex
from grpo_replay.reporting.scores import read_scores

SCORES_FILE = "scores.parquet"
_RENDERERS = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex, ".html": to_html}


def write_table(table: Table, stem: Path) -> None:
    """Write `<stem>.csv`, `<stem>.md`, `<stem>.tex` and `<stem>.html`."""
    for suffix, render in _RENDERERS.items():
        write_text(stem.with_name(stem.name + suffix), render(table))


def main_table(study: Study, results: Path, output_stem: Path) -> None:
    """Write Table 1: accuracy of every method at every scale."""
    write_table(main.build(study, read_scores(results / SCORES_FILE)), output_stem)


def age_table(study: Study, results: Path, output_stem: Path) -> None:
    """Write Table 2: `ours` at each tau_max, with clipped ratios from the cells' metrics.jsonl."""
    write_table(ages.build(study, read_scores(results / SCORES_FILE), results), output_stem)
