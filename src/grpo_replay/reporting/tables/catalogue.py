"""A study's own tables by name, and the files of any table."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from grpo_replay.files import write_text
from grpo_replay.reporting import names
from grpo_replay.reporting.tables.html import to_html
from grpo_replay.reporting.tables.latex import to_latex
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Table, to_csv, to_markdown

RENDERERS = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex, ".html": to_html}
# Each is the module of its name here, so that a further one is that module and its name.
OWN_TABLES: dict[str, Callable[[Source], Table]] = {
    name: import_module(f"{__package__}.{name}").build for name in names.OWN_TABLES
}


def write_table(table: Table, stem: Path) -> None:
    """Write `<stem>.csv`, `<stem>.md`, `<stem>.tex` and `<stem>.html`."""
    for suffix, render in RENDERERS.items():
        write_text(stem.with_name(stem.name + suffix), render(table))
