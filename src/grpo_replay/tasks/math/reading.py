r"""Read one whole answer as LaTeX: what is not understood to its last token has no value.

math-verify's own `parse` searches a text that it cannot read for a part that it can, such as its
last number. That is right for a completion and wrong for the content of a box, so the box is given
to the LaTeX grammar directly. Used in the worker only.
"""

import re
from typing import Any

import sympy
from latex2sympy2_extended.latex2sympy2 import _Latex2Sympy
from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
from math_verify.parser import should_treat_as_complex
from sympy.logic.boolalg import Boolean

_NORMAL = NormalizationConfig(
    basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none"
)


def _word(words: str) -> re.Pattern[str]:
    """Match one of these words between two members of a list, bare or as text."""
    wrapped = rf"\\(?:text|mbox|mathrm)\s*\{{\s*,?\s*(?:{words})\s*\}}"
    return re.compile(rf",?\s*(?:{wrapped}|(?<=\s)(?:{words})(?=\s))")


_JOINING, _AND, _OR, _SAME = _word("and|or|OR"), _word("and"), _word("or"), _word("OR")
_UNIT = re.compile(
    r"(?<=[\d}\s\]\)])\s*\\(?:text|mbox|mathrm|textrm)\s*\{[A-Za-z~\s./^²³-]{1,60}\}(?:\^\{?\d\}?)?$"
)
_DENYING = re.compile(r"\b(?:or|and|not|to|less|more|than|times|over|under|minus|plus|half)\b")
_BARE_UNIT = re.compile(
    r"(?<=[\d}])\s+(?:cm|mm|km|inches|feet|ft|miles|units|degrees|dollars|cents|hours|minutes"
    r"|seconds|days|years|meters|square units|points|ways)$"
)
_UNREAD = re.compile(
    r"\\(?:l|c|d|v)?dots|\.\.\.|['\"]|\\(?:text|mbox|mathrm)\b|(?<![A-Za-z\\])or(?![A-Za-z])"
    r"|\\(?:approx|sim|neg|not)\b|\\pmod\b|\\equiv\b|\\Theta|\\Omega|:|#|&(?!.*\\end)|\?"
)
_GAP = r"(?:\s|\\[,;: ]|\\q?quad\b)*"
_DOMAIN = re.compile(
    rf"{_GAP}(?:,{_GAP}|\({_GAP}|(?=\\text))(?:\\text\{{\s*(?:where|for|with)\s*\}}{_GAP})?"
    rf"[a-z]{_GAP}\\in{_GAP}\\math(?:bb|bf)\s*\{{?Z\}}?{_GAP}\)?$"
)
_WHOLE_DECIMAL = re.compile(r"(?<![\d.])(\d+)\.0+(?!\d)")
_ONE_I = re.compile(r"(?<![\d.,^_}])1i(?![A-Za-z])")
_RAISED_FRACTION = re.compile(r"\^(\\frac\{[^{}]*\}\{[^{}]*\})")


class _Whole(_Latex2Sympy):  # type: ignore[misc]
    """The LaTeX grammar, with its parser kept so that the end of the text can be tested."""

    def create_parser(self, latex_str: str) -> Any:
        self.parser = super().create_parser(latex_str)
        return self.parser


def read(text: str) -> Any | None:
    """Return the sympy value of the whole of `text`, or None where a part is not understood.

    A list whose members are joined by OR in capitals is one value, where they are all equal.
    """
    if _SAME.search(text):
        values = [read(part) for part in _SAME.split(text)]
        if None not in values and all(_differ_by_nothing(values[0], v) for v in values[1:]):
            return values[0]
    text = _WHOLE_DECIMAL.sub(r"\1", _DOMAIN.sub("", _JOINING.sub(",", text)))
    text = _RAISED_FRACTION.sub(r"^{\1}", _ONE_I.sub("i", text))
    if (unit := _UNIT.search(text)) and not _DENYING.search(unit[0]):
        text = text[: unit.start()].strip()
    text = _BARE_UNIT.sub("", text)
    if not text or _UNREAD.search(text):
        return None
    try:
        return _value(text.strip())
    except RecursionError:
        raise
    except Exception:  # the library raises bare Exception for every syntax error
        return None


def allowed(text: str) -> sympy.Set | None:
    """Return the numbers that inequalities joined by "or", or by "and", allow together, or None."""
    word, together = (_OR, sympy.Or) if _OR.search(text) else (_AND, sympy.And)
    parts = [read(part) for part in word.split(text)]
    if len(parts) < 2 or not all(isinstance(part, Boolean) for part in parts):
        return None
    if word is _AND and any(part.has(sympy.Eq) for part in parts):
        return None  # "x=1 and x=2" are two solutions
    condition = together(*parts)
    try:
        return condition.as_set() if len(condition.free_symbols) == 1 else None
    except (NotImplementedError, TypeError, ValueError):  # sympy cannot solve it
        return None


def _differ_by_nothing(one: Any, other: Any) -> bool:
    both = isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr)
    return both and sympy.simplify(one.doit() - other.doit()) == 0


def _value(text: str) -> Any | None:
    body = text.removesuffix("%").removesuffix("\\").strip()
    percent = body != text and text.endswith("%")
    latex = normalize_latex(body if percent else text, config=_NORMAL)
    reader = _Whole(is_real=not should_treat_as_complex(latex))
    value = reader.parse(latex)
    if reader.parser.getCurrentToken().text != "<EOF>":
        return None
    return value * sympy.UnevaluatedExpr(sympy.Rational(1, 100)) if percent else value
