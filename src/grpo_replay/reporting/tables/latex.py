"""A table as LaTeX: booktabs, in a document that compiles with a plain TeX installation."""

import math
import re

from grpo_replay.reporting.numbers.estimate import DASH, Estimate
from grpo_replay.reporting.tables.table import (
    Column,
    Row,
    Table,
    column_groups,
    label_text,
    minus,
    row_groups,
    second_part,
    without_repeats,
)

_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "[": "{[}",  # after a rule or a line break it would open an argument
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
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "Δ": r"$\Delta$",
    "×": r"$\times$",
    "−": "$-$",
    "→": r"$\to$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "∞": r"$\infty$",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
    "§": r"\S{}",
    "–": "--",
}
_TEX_WORDS = {"σ_g": r"$\sigma_g$", "τ_max": r"$\tau_{\max}$", "--": "-{}-"}
# Beside Latin letters: what plain TeX fonts have.
_PUNCTUATION = "–—‘’‚“”„†‡•…‰‹›€"
_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{textcomp}
\usepackage[a4paper,landscape,margin=1.5cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\newsavebox{\tablebox}
% A table wider or higher than the page is made smaller.
\newcommand{\fitted}[1]{\sbox{\tablebox}{#1}%
\ifdim\wd\tablebox>\linewidth\sbox{\tablebox}{\resizebox{\linewidth}{!}{\usebox{\tablebox}}}\fi
\ifdim\dimexpr\ht\tablebox+\dp\tablebox\relax>0.8\textheight
\sbox{\tablebox}{\resizebox*{!}{0.8\textheight}{\usebox{\tablebox}}}\fi
\usebox{\tablebox}}
\pagestyle{empty}
\begin{document}"""
# What fits on a page in a size that can be read.
_ROWS_PER_PAGE = 24


def to_latex(table: Table) -> str:
    """A whole booktabs document that compiles as is; the table alone stands between the marks."""
    lines = [
        _PREAMBLE,
        "% --- table ---",
        r"\begin{center}",
        rf"\textbf{{{tex(table.title)}}}\\[1ex]",
        "\\par\\medskip\n".join(_tabular(table, blocks) for blocks in _pages(table)),
        r"\end{center}",
        r"{\raggedright\footnotesize",
        *(rf"{tex(note)}\par" for note in table.notes),
        "}",
        "% --- end of table ---",
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def _pages(table: Table) -> list[list[list[Row]]]:
    """Blocks of rows, page by page; a block that is too long alone goes on on the next page."""
    pages: list[list[list[Row]]] = [[]]
    for block in row_groups(table):
        for start in range(0, len(block), _ROWS_PER_PAGE) or [0]:
            part = block[start : start + _ROWS_PER_PAGE]
            if pages[-1] and sum(map(len, pages[-1])) + len(part) > _ROWS_PER_PAGE:
                pages.append([])
            pages[-1].append(part)
    return pages


def _tabular(table: Table, blocks: list[list[Row]]) -> str:
    lines = [
        r"\fitted{%",
        rf"\begin{{tabular}}{{{'l' * len(table.index)}{'c' * len(table.columns)}}}",
        r"\toprule",
        *_tex_header(table, column_groups(table.columns)),
        *(line for block in blocks for line in (r"\midrule", *_tex_rows(table, block))),
        r"\bottomrule",
        r"\end{tabular}}",
    ]
    return "\n".join(lines) + "\n"


def tex(text: str) -> str:
    """Escape text for LaTeX: symbols of the tables become math, `code` becomes typewriter."""
    parts = [_escape(part) for part in text.split("`")]
    # A command that lists many cells goes on on the next line.
    broken = [part.replace(",", r",\allowbreak{}") for part in parts[1::2]]
    parts[1::2] = [rf"\texttt{{{part}}}" for part in broken]
    return "".join(parts)


def _escape(text: str) -> str:
    tokens = re.split("(" + "|".join(_TEX_WORDS) + ")", text)
    return "".join(_TEX_WORDS.get(t) or "".join(map(_character, t)) for t in tokens)


def _character(character: str) -> str:
    """A character for LaTeX; one that its fonts lack, in a title say, as its number: any text
    compiles.
    """
    if character in _TEX:
        return _TEX[character]
    if ord(character) < 0x100 or character in _PUNCTUATION:
        return character
    return f"{{[}}U+{ord(character):04X}]"


def _tex_header(table: Table, groups: list[tuple[str, int]]) -> list[str]:
    lines = []
    if any(name for name, _ in groups):
        spans = [rf"\multicolumn{{{width}}}{{c}}{{{tex(name)}}}" for name, width in groups]
        lines.append(" & ".join([""] * len(table.index) + spans) + r" \\")
        start = len(table.index) + 1
        for _, width in groups:
            lines.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            start += width
    headings = [_tex_heading(column) for column in table.columns]
    lines.append(" & ".join([*map(tex, table.index.values()), *headings]) + r" \\")
    return lines


def _tex_heading(column: Column) -> str:
    heading = tex(column.heading)
    return rf"\shortstack{{{heading}\\{{\scriptsize {tex(column.n)}}}}}" if column.n else heading


def _tex_rows(table: Table, rows: list[Row]) -> list[str]:
    lines: list[str] = []
    previous: list[str] = []
    for row in rows:
        labels = [label_text(row, key) for key in table.index]
        numbers = [_tex_number(row.numbers.get(c.key), c.decimals) for c in table.columns]
        shown = [tex(minus(label)) for label in without_repeats(labels, previous)]
        lines.append(" & ".join([*shown, *numbers]) + r" \\[2pt]")
        previous = labels
    return lines


def _tex_number(number: Estimate | None, decimals: int) -> str:
    if number is None or math.isnan(number.value):
        return tex(DASH)
    value = tex(f"{number.value:z.{decimals}f}{number.marks}").replace("-", "$-$")
    below = tex(second_part(number, decimals)).replace("-", "$-$")
    if not below:
        return value
    # Top-aligned, so that the value stands on the line of the row's labels.
    return (
        rf"\begin{{tabular}}[t]{{@{{}}c@{{}}}}{value}\\[-2pt]{{\scriptsize {below}}}\end{{tabular}}"
    )
