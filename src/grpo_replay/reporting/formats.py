"""A table as data, and its three files: csv (numbers for machines), md and tex (for people).

A table knows nothing of methods or benchmarks: what it shows is decided where it is built.
"""

import csv
import io
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from grpo_replay.files import write_text

DASH = "–"


@dataclass(frozen=True)
class Number:
    """A value with its intervals, how many problems (or steps) it rests on, and its marks.

    `low` and `high` are over problems, `seeds_low` and `seeds_high` over seeds where several
    differ; None where there is no interval: if there is neither, `remark` says why ("n=1").
    `p_problems` and `p_seeds` are Holm-adjusted p-values of the difference from GRPO.
    """

    value: float
    low: float | None = None
    high: float | None = None
    seeds_low: float | None = None
    seeds_high: float | None = None
    n: int | None = None
    remark: str = ""
    marks: str = ""
    p_problems: float | None = None
    p_seeds: float | None = None

    @property
    def shown_interval(self) -> tuple[float, float] | None:
        """The interval that people see: over seeds where there is one, else over problems."""
        if self.seeds_low is not None and self.seeds_high is not None:
            return self.seeds_low, self.seeds_high
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class Column:
    """A column of numbers: `group` spans neighbours, `n` says how many problems x samples."""

    key: str
    group: str
    heading: str
    n: str = ""
    decimals: int = 1
    tested: bool = False


@dataclass(frozen=True)
class Row:
    """One line: its labels by stub key, and its numbers by column key (None or absent: a dash)."""

    labels: dict[str, str | int | float | None]
    numbers: dict[str, Number | None]


@dataclass(frozen=True)
class Table:
    """A table; `stub` maps the keys of the label columns to headings, `hidden` are for csv only."""

    title: str
    stub: dict[str, str]
    columns: list[Column]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    hidden: tuple[str, ...] = ()


def write_table(table: Table, stem: Path) -> None:
    """Write `<stem>.csv`, `<stem>.md` and `<stem>.tex`."""
    for suffix, render in ((".csv", to_csv), (".md", to_markdown), (".tex", to_latex)):
        write_text(stem.with_name(stem.name + suffix), render(table))


# --- csv ------------------------------------------------------------------------------------------


def to_csv(table: Table) -> str:
    """Numbers only: each column with its intervals and `_n`, tested ones also with p-values."""
    header = [*table.hidden, *table.stub]
    for column in table.columns:
        header += [column.key, *(f"{column.key}_{part}" for part in _csv_parts(column))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        fields = [row.labels.get(key) for key in (*table.hidden, *table.stub)]
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


# --- markdown -------------------------------------------------------------------------------------


def to_markdown(table: Table) -> str:
    """A pipe table below its title, the notes as a list below it."""
    header = [*table.stub.values(), *(_markdown_heading(column) for column in table.columns)]
    align = ["---"] * len(table.stub) + ["---:"] * len(table.columns)
    body = [
        [_label(row, key) for key in table.stub]
        + [number_text(row.numbers.get(column.key), column.decimals) for column in table.columns]
        for row in table.rows
    ]
    lines = [f"| {' | '.join(cells)} |" for cells in (header, align, *body)]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([f"**{table.title}**", "", *lines, "", *notes]) + "\n"


def _markdown_heading(column: Column) -> str:
    name = f"{column.group} {column.heading}".strip()
    return f"{name}<br>{column.n}" if column.n else name


def _label(row: Row, key: str) -> str:
    value = row.labels.get(key)
    if isinstance(value, float):
        return f"{value:g}"
    return DASH if value is None else str(value)


def number_text(number: Number | None, decimals: int) -> str:
    """The text of a number in a table: `61.2† [57.0, 65.1]`, `0.055 (n=1)`, or a dash."""
    if number is None or math.isnan(number.value):
        return DASH
    text = f"{number.value:.{decimals}f}{number.marks}"
    return f"{text} {_second_part(number, decimals)}".rstrip()


def _second_part(number: Number, decimals: int) -> str:
    interval = number.shown_interval
    if interval is None:
        return f"({number.remark})" if number.remark else ""
    return f"[{interval[0]:.{decimals}f}, {interval[1]:.{decimals}f}]"


# --- latex ----------------------------------------------------------------------------------------

_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "'": r"\textquotesingle{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "α": r"$\alpha$",
    "×": r"$\times$",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
    "–": "--",
}
_TEX_WORDS = {"σ_g": r"$\sigma_g$", "τ_max": r"$\tau_{\max}$", "--": "-{}-"}
_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{textcomp}
\usepackage[a4paper,landscape,margin=1.5cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\pagestyle{empty}
\begin{document}"""


def to_latex(table: Table) -> str:
    """A whole booktabs document that compiles as is; the table alone stands between the marks."""
    groups = _groups(table.columns)
    lines = [
        _PREAMBLE,
        "% --- table ---",
        r"\begin{center}",
        rf"\textbf{{{tex(table.title)}}}\\[1ex]",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{'l' * len(table.stub)}{'c' * len(table.columns)}}}",
        r"\toprule",
        *_tex_header(table, groups),
        r"\midrule",
        *_tex_body(table),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{center}",
        r"{\raggedright\footnotesize",
        *(rf"{tex(note)}\par" for note in table.notes),
        "}",
        "% --- end of table ---",
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def tex(text: str) -> str:
    """Escape text for LaTeX: symbols of the tables become math, `code` becomes typewriter."""
    parts = [_escape(part) for part in text.split("`")]
    parts[1::2] = [rf"\texttt{{{part}}}" for part in parts[1::2]]
    return "".join(parts)


def _escape(text: str) -> str:
    tokens = re.split("(" + "|".join(_TEX_WORDS) + ")", text)
    return "".join(_TEX_WORDS.get(t) or "".join(_TEX.get(c, c) for c in t) for t in tokens)


def _groups(columns: list[Column]) -> list[tuple[str, int]]:
    groups: list[tuple[str, int]] = []
    for column in columns:
        if groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    return groups


def _tex_header(table: Table, groups: list[tuple[str, int]]) -> list[str]:
    lines = []
    if any(name for name, _ in groups):
        spans = [rf"\multicolumn{{{width}}}{{c}}{{{tex(name)}}}" for name, width in groups]
        lines.append(" & ".join([""] * len(table.stub) + spans) + r" \\")
        start = len(table.stub) + 1
        for _, width in groups:
            lines.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            start += width
    headings = [_tex_heading(column) for column in table.columns]
    lines.append(" & ".join([*map(tex, table.stub.values()), *headings]) + r" \\")
    return lines


def _tex_heading(column: Column) -> str:
    heading = tex(column.heading)
    return rf"\shortstack{{{heading}\\{{\scriptsize {tex(column.n)}}}}}" if column.n else heading


def _tex_body(table: Table) -> list[str]:
    lines: list[str] = []
    first_key = next(iter(table.stub))
    previous = None
    for row in table.rows:
        first = row.labels.get(first_key)
        if lines and first != previous:
            lines.append(r"\midrule")
        labels = [tex(_label(row, key)) for key in table.stub]
        labels[0] = "" if first == previous else labels[0]
        numbers = [_tex_number(row.numbers.get(c.key), c.decimals) for c in table.columns]
        lines.append(" & ".join([*labels, *numbers]) + r" \\[2pt]")
        previous = first
    return lines


def _tex_number(number: Number | None, decimals: int) -> str:
    if number is None or math.isnan(number.value):
        return tex(DASH)
    value = tex(f"{number.value:.{decimals}f}{number.marks}")
    below = tex(_second_part(number, decimals))
    if not below:
        return value
    # Top-aligned, so that the value stands on the line of the row's labels.
    return (
        rf"\begin{{tabular}}[t]{{@{{}}c@{{}}}}{value}\\[-2pt]{{\scriptsize {below}}}\end{{tabular}}"
    )
