"""Rows about one problem as HTML: the problem above, and texts as the model wrote them."""

from html import escape

import pandas as pd
from pandas.io.formats.style import Styler

from grpo_replay.reporting.numbers.estimate import DASH

_LOOK = [
    {"selector": "td, th", "props": "text-align: left; vertical-align: top"},
    {"selector": "caption", "props": "text-align: left; white-space: pre-wrap; font-size: 110%"},
    {"selector": "td > div", "props": "white-space: pre-wrap; min-width: 16em; max-width: 44em"},
    {"selector": "td > div", "props": "max-height: 14em; overflow: auto"},
]


def styled(frame: pd.DataFrame, problem: dict[str, str]) -> Styler:
    """Rows with a column `text` as HTML; truth values are yes and no, what is missing is a dash.

    Texts are escaped, for models write HTML too, and scroll where they are long. MathJax leaves
    them alone, so that people see what the verifiers saw.
    """
    words = {column: _word for column in frame.columns if frame[column].dtype == bool}
    styler = frame.style.hide(axis="index").set_caption(_caption(problem))
    styler = styler.format({**words, "text": _scrolling}, precision=3, na_rep=DASH, escape="html")
    return styler.set_table_styles(_LOOK).set_table_attributes('class="tex2jax_ignore"')


def _caption(problem: dict[str, str]) -> str:
    text, answer = escape(problem["problem"]), escape(problem["answer"])
    return f"<b>{escape(problem['id'])}</b>\n{text}\n<b>Answer:</b> {answer}"


def _word(value: bool) -> str:
    return "yes" if value else "no"


def _scrolling(escaped: str) -> str:
    return f"<div>{escaped}</div>"
