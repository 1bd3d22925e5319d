"""A table as data, and as csv (numbers for machines) and markdown (for people).

A table knows nothing of methods or benchmarks: what it shows is decided where it is built. Its
other forms are in latex.py and html.py.
"""

import csv
import io
import math
import re
from dataclasses import dataclass, field
from itertools import groupby

from grpo_replay.reporting.numbers.estimate import DASH, Estimate

# Blanks before the sign do not help, and neither does its full-width form.
_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_MARKDOWN = {character: f"\\{character}" for character in r"\|*$"} | {"<": "&lt;"}


@dataclass(frozen=True)
class Column:
    """A column of numbers: `group` spans neighbours, `n` says how many problems x samples."""

    key: str
    group: str
    heading: str
    n: str = ""
    decimals: int = 1
    tested: bool = False


Label = str | int | float | None


@dataclass(frozen=True)
class Row:
    """One line: its labels by index key, and its numbers by column key (None or absent: a dash)."""

    labels: dict[str, Label]
    numbers: dict[str, Estimate | None]


@dataclass(frozen=True)
class Table:
    """A table; `index` maps the label columns to their headings, `hidden` are for csv only."""

    title: str
    index: dict[str, str]
    columns: list[Column]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    hidden: tuple[str, ...] = ()


def column_groups(columns: list[Column]) -> list[tuple[str, int]]:
    """Neighbouring columns of one group, as (name, how many)."""
    groups: list[tuple[str, int]] = []
    for column in columns:
        if groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    return groups


def row_groups(table: Table) -> list[list[Row]]:
    """Neighbouring rows with one first label; each is a block of the table with a rule below it.

    A table whose first labels all differ is one block.
    """
    first = next(iter(table.index))
    blocks = [list(rows) for _, rows in groupby(table.rows, key=lambda r: r.labels.get(first))]
    if all(len(block) == 1 for block in blocks):
        return [table.rows]
    return blocks


def without_repeats(labels: list[str], previous: list[str]) -> list[str]:
    """The labels of a row, empty from the left as long as they are those of the row above it."""
    same = next(
        (i for i, pair in enumerate(zip(labels, previous, strict=False)) if len({*pair}) > 1), 0
    )
    return [""] * same + labels[same:]


def minus(text: str) -> str:
    """The text with a minus sign for the hyphen of a negative number."""
    return re.sub(r"^-(?=\d)", "−", text)


# --- csv ------------------------------------------------------------------------------------------


def to_csv(table: Table) -> str:
    """Numbers only: each column with its intervals and `_n`, tested ones also with p-values."""
    header = [*table.hidden, *table.index]
    for column in table.columns:
        header += [column.key, *(f"{column.key}_{part}" for part in _csv_parts(column))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        labels = (row.labels.get(key) for key in (*table.hidden, *table.index))
        fields = [csv_text(label) if isinstance(label, str) else label for label in labels]
        for column in table.columns:
            number = row.numbers.get(column.key)
            values = [getattr(number, part, None) for part in ("value", *_csv_parts(column))]
            fields += [_csv_value(value) for value in values]
        writer.writerow(fields)
    return text.getvalue()


def _csv_parts(column: Column) -> tuple[str, ...]:
    return (
        "low",
        "high",
        "seeds_low",
        "seeds_high",
        "n",
        *(("p_problems", "p_seeds") if column.tested else ()),
    )


def _csv_value(value: float | int | None) -> float | int | None:
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value


def csv_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula: behind an apostrophe where it looks like one.

    A number is one also with its sign, and stays it.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


# --- markdown -------------------------------------------------------------------------------------


def to_markdown(table: Table) -> str:
    """A pipe table below its title, the notes as a list below it."""
    header = [
        *map(markdown, table.index.values()),
        *(_markdown_heading(column) for column in table.columns),
    ]
    align = ["---"] * len(table.index) + ["---:"] * len(table.columns)
    body = [
        [markdown(label_text(row, key)) for key in table.index]
        + [estimate_text(row.numbers.get(column.key), column.decimals) for column in table.columns]
        for row in table.rows
    ]
    lines = [f"| {' | '.join(cells)} |" for cells in (header, align, *body)]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([f"**{markdown(table.title)}**", "", *lines, "", *notes]) + "\n"


def _markdown_heading(column: Column) -> str:
    name = markdown(f"{column.group} {column.heading}".strip())
    return f"{name}<br>{markdown(column.n)}" if column.n else name


def markdown(text: str) -> str:
    """A text in which nothing but `code` is markup."""
    return "".join(_MARKDOWN.get(character, character) for character in text)


def label_text(row: Row, key: str) -> str:
    """The text of a label, a dash where there is none."""
    value = row.labels.get(key)
    if isinstance(value, float):
        return f"{value:g}"
    return DASH if value is None else str(value)


def estimate_text(number: Estimate | None, decimals: int) -> str:
    """The text of a number in a table: `61.2† [57.0, 65.1]`, `0.055 (n=1)`, or a dash."""
    if number is None or math.isnan(number.value):
        return DASH
    text = f"{number.value:z.{decimals}f}{number.marks}"
    return f"{text} {second_part(number, decimals)}".rstrip()


def second_part(number: Estimate, decimals: int) -> str:
    """What stands beside a value: its interval, else why there is none."""
    interval = number.shown_interval
    if interval is None:
        return f"({number.remark})" if number.remark else ""
    return f"[{interval[0]:z.{decimals}f}, {interval[1]:z.{decimals}f}]"
