"""Names and looks of methods, in one place: a method looks the same in every table and figure.

Colours are the colour-blind-safe set of Okabe and Ito; line style and marker differ too, because
the colours alone are close to each other when printed in grey.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from grpo_replay.methods.method import Setting
from grpo_replay.study.axes import ALPHA, RATIO, TAU_MAX
from grpo_replay.study.cells import value_text
from grpo_replay.study.config import Study

BASE = "base"
GRPO = "grpo"
OURS = "ours"

_NAMES = {
    BASE: "base",
    GRPO: "GRPO",
    "uniform-pool": "uniform (pool)",
    "sigma_g-pool": "σ_g (pool)",
    OURS: "ours",
}
# What people read in place of a part of a key: `sigma_g-query`, a study's own method, is σ_g-query.
_SYMBOLS = {"sigma_g": "σ_g", "abs_advantage": "|A|"}
_SETTINGS = {TAU_MAX: "τ_max", RATIO: "r", ALPHA: "α"}
_FIGURE_SYMBOLS = {"σ_g": r"$\sigma_g$", "τ_max": r"$\tau_\mathrm{max}$", "α": r"$\alpha$"}


@dataclass(frozen=True)
class Style:
    """How a line or point is drawn; `line` is a matplotlib line style."""

    colour: str
    line: str | tuple[int, tuple[int, ...]]
    marker: str
    width: float = 1.6


_STYLES = {
    BASE: Style("#7f7f7f", ":", "X"),
    GRPO: Style("#0072B2", "-", "o"),
    "uniform-pool": Style("#E69F00", "--", "s"),
    "sigma_g-pool": Style("#009E73", "-.", "^"),
    OURS: Style("#D55E00", "-", "D", 2.4),
}
# For the methods that a study adds to the four of the paper's Table 1, in the study's order.
_FURTHER_STYLES = (
    Style("#CC79A7", (0, (5, 1)), "v"),
    Style("#56B4E9", (0, (3, 1, 1, 1)), "P"),
    Style("#8C6D00", (0, (1, 1)), "<"),
    Style("#332288", (0, (7, 2, 1, 2)), ">"),
    Style("#882255", (0, (2, 2)), "h"),
    Style("#117733", (0, (4, 1, 1, 1, 1, 1)), "*"),
)
# The ages are all `ours`: shades of its colour, from light and dotted to dark and solid, so that
# their order is seen also in grey, and no age looks like another method.
_AGE_STYLES = (
    Style("#F2A16B", ":", "o"),
    Style("#D9701E", "-.", "s"),
    Style("#9C3A00", "--", "^"),
    Style("#3D1600", "-", "D"),
    Style("#7A4B2A", (0, (5, 1)), "v"),
    Style("#B98B6B", (0, (3, 1, 1, 1)), "P"),
)


def method_name(method: str) -> str:
    """The name that people read; a method which a study adds keeps its key, in symbols."""
    return _NAMES.get(method) or axis_name(method)


def axis_name(value: str) -> str:
    """The name that people read of a priority, unit or composition, or of several in a key."""
    for key, symbol in _SYMBOLS.items():
        value = value.replace(key, symbol)
    return value


def setting_name(path: str) -> str:
    """The name that people read of a varied setting: the paper's symbol, else its path."""
    return _SETTINGS.get(path, path)


def varied_name(varied: Iterable[tuple[str, Setting]]) -> str:
    """What a condition varies, in words: `r 1, τ_max 30`."""
    return ", ".join(f"{setting_name(path)} {value_text(value)}" for path, value in varied)


def plain_text(text: str) -> str:
    """A study's own text, such as a title, in which matplotlib sees no math notation."""
    return text.replace("$", r"\$")


def figure_text(text: str) -> str:
    """The same text with its symbols in matplotlib's math notation."""
    for symbol, math in _FIGURE_SYMBOLS.items():
        text = text.replace(symbol, math)
    return text


def method_style(study: Study, method: str) -> Style:
    """The look of a method: fixed for the paper's four, by order in the study for further ones."""
    return style_among(study.methods, method)


def style_among(methods: Iterable[str], method: str) -> Style:
    """The same, for who has a study's methods in its order and not its file."""
    if method in _STYLES:
        return _STYLES[method]
    further = [name for name in methods if name not in _STYLES]
    return _FURTHER_STYLES[further.index(method) % len(_FURTHER_STYLES)]


def variant_style(style: Style, position: int) -> Style:
    """The look of the position-th condition of one method: its colour, other dashes and marker."""
    if not position:
        return style
    others = [other for other in _FURTHER_STYLES if other.marker != style.marker]
    further = others[(position - 1) % len(others)]
    return replace(style, line=further.line, marker=further.marker)


def age_style(position: int) -> Style:
    """The look of the line of the position-th tau_max in rising order."""
    return _AGE_STYLES[position % len(_AGE_STYLES)]
