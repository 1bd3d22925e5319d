"""A study's own tables by name, and the files of any table."""

from collections.abc import Callable
from pathlib import Path

from grpo_replay.files import write_text
from grpo_replay.reporting.tables import age, main, training, verifiers
from grpo_replay.reporting.tables.html import to_html
from grpo_replay.reporting.tables.latex import to_latex
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Table, to_csv, to_markdown

RENDERERS = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex, ".html": to_html}
OWN_TABLES: dict[str, Callable[[Source], Table]] = {
    "main": main.build,
    "age": age.build,
    "training": training.build,
    "verifiers": verifiers.build,
}


def write_table(table: Table, stem: Path) -> None:
    """Write `<stem>.csv`, `<stem>.md`, `<stem>.tex` and `<stem>.html`."""
    for suffix, render in RENDERERS.items():
        write_text(stem.with_name(stem.name + suffix), render(table))
