"""A table as one HTML page that needs nothing else: for Snakemake's report and for a browser."""

import html
import re

from grpo_replay.reporting.numbers.estimate import Estimate
from grpo_replay.reporting.tables.table import (
    Column,
    Row,
    Table,
    column_groups,
    estimate_text,
    label_text,
    minus,
    row_groups,
    without_repeats,
)

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; }
table { border-collapse: collapse; border-top: 2px solid; border-bottom: 2px solid; }
caption { text-align: left; font-weight: bold; padding-bottom: .6em; }
th, td { padding: .2em .7em; white-space: nowrap; text-align: left; vertical-align: top; }
th { font-weight: normal; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
th.group { text-align: center; border-bottom: 1px solid #888; }
thead tr:last-child th { vertical-align: bottom; }
tbody { border-top: 1px solid; }
th.again { color: transparent; }
sub { line-height: 0; }
small { color: #555; }
ul { max-width: 60em; padding-left: 1.2em; color: #444; font-size: 13px; }
"""


def to_html(table: Table) -> str:
    """The table with its title as caption, and the notes as a list below it."""
    bodies = [_body(table, rows) for rows in row_groups(table)]
    lines = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(table.title)}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<table><caption>{_marked_up(table.title)}</caption>",
        f"<thead>{_header(table)}</thead>",
        *(f"<tbody>{body}</tbody>" for body in bodies),
        "</table>",
        f"<ul>{''.join(f'<li>{_marked_up(note)}</li>' for note in table.notes)}</ul>",
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def _header(table: Table) -> str:
    groups = column_groups(table.columns)
    spans = ""
    if any(name for name, _ in groups):
        spans = f'<tr><td colspan="{len(table.index)}"></td>'
        spans += "".join(_group(name, width) for name, width in groups) + "</tr>"
    index = "".join(f'<th scope="col">{_marked_up(text)}</th>' for text in table.index.values())
    return f"{spans}<tr>{index}{''.join(map(_heading, table.columns))}</tr>"


def _group(name: str, width: int) -> str:
    if not name:
        return f'<td colspan="{width}"></td>'
    return f'<th scope="colgroup" class="group" colspan="{width}">{_marked_up(name)}</th>'


def _heading(column: Column) -> str:
    below = f"<br><small>{_marked_up(column.n)}</small>" if column.n else ""
    return f'<th scope="col" class="number">{_marked_up(column.heading)}{below}</th>'


def _body(table: Table, rows: list[Row]) -> str:
    """The rows of a block; a label like that above it is there for who copies, and not seen."""
    lines, previous = [], []
    for row in rows:
        labels = [label_text(row, key) for key in table.index]
        shown = without_repeats(labels, previous)
        cells = [_label(*pair) for pair in zip(labels, shown, strict=True)]
        cells += [_cell(row.numbers.get(c.key), c.decimals) for c in table.columns]
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
        previous = labels
    return "".join(lines)


def _label(text: str, shown: str) -> str:
    look = "" if shown else ' class="again"'
    return f'<th scope="row"{look}>{_marked_up(minus(text))}</th>'


def _cell(number: Estimate | None, decimals: int) -> str:
    """The value, and below it, as in LaTeX, its interval: a wide table stays readable."""
    value, _, below = estimate_text(number, decimals).replace("-", "−").partition(" ")
    small = f"<br><small>{_marked_up(below)}</small>" if below else ""
    return f'<td class="number">{_marked_up(value)}{small}</td>'


def _marked_up(text: str) -> str:
    """Escaped text; `code` and the indices of symbols become HTML."""
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
    return re.sub(r"([στ])_(g|max)\b", r"\1<sub>\2</sub>", text)
