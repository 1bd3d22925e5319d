"""The tables of a study: each function reads its results and writes csv, md, tex and html files.

One call a table, so that a script of the workflow only unpacks its arguments. `results` is the
study's folder, with its scores.parquet; `config` is what a command that makes missing cells has
behind `--config`.
"""

from pathlib import Path

from grpo_replay.files import write_text
from grpo_replay.reporting.tables import age, main
from grpo_replay.reporting.tables.html import to_html
from grpo_replay.reporting.tables.latex import to_latex
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Table, to_csv, to_markdown
from grpo_replay.results.scores import read_scores
from grpo_replay.study.config import Study

RENDERERS = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex, ".html": to_html}


def write_table(table: Table, stem: Path) -> None:
    """Write `<stem>.csv`, `<stem>.md`, `<stem>.tex` and `<stem>.html`."""
    for suffix, render in RENDERERS.items():
        write_text(stem.with_name(stem.name + suffix), render(table))


def main_table(study: Study, results: Path, output_stem: Path, config: str) -> None:
    """Write Table 1: accuracy of every method at every scale."""
    write_table(main.build(Source(study, read_scores(results), results, config)), output_stem)


def age_table(study: Study, results: Path, output_stem: Path, config: str) -> None:
    """Write Table 2: `ours` at each tau_max, with clipped ratios from the cells' metrics.jsonl."""
    write_table(age.build(Source(study, read_scores(results), results, config)), output_stem)
