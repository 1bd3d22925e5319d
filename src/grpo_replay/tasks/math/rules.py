r"""Verdicts that need no computer algebra, and the clean-up of every answer before it is parsed.

Strings and exact rational arithmetic only: safe in the caller's process, microseconds an answer.
`decide` returns None for what only sympy can tell. The package's docstring lists the decisions.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from .spelling import respell

MAX_CHARACTERS = 2000  # of an answer that is judged at all; the longest gold in use has 400
_BLANKS = re.compile(r"\s+")
_MAX_NUMBER_CHARACTERS = 400  # beyond that Python's own int() becomes slow, then refuses
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:\{,\}| ?\\[,;: ] ?|~|\u202f|\u00a0)\d{3})+(?!\d)")
_SPACED_NUMBER = re.compile(r"^[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?(?=$|\s*[\\%°^])")
_SIGNS = str.maketrans(
    {"\u2212": "-", "∞": r"\infty ", "×": r"\times ", "·": r"\cdot ", "≤": r"\le ", "≥": r"\ge ",
     "∪": r"\cup ", "±": r"\pm "}
    | {chr(0xFF10 + digit): str(digit) for digit in range(10)}
)  # fmt: skip
_ROOT_SIGN = re.compile(r"√\s*(\d+|[A-Za-z])")
_SPACING = re.compile(r"\\[!]\s*|\\(?:displaystyle|textstyle)\b|\\left(?![a-z])|\\right(?![a-z])")
_EMPTY_WORDS = (
    r"(?:(?:so|thus|hence|therefore|the|final|correct|answer|result|value|is|are|equals|option"
    r"|choice)\b[\s,:]*)+"
)
_LEAD_IN = re.compile(
    rf"^\\(?:text|mbox|textbf|mathrm)\{{\s*{_EMPTY_WORDS}\}}\s*[:=]?\s*(?=\S)", re.IGNORECASE
)
_EMPTY_TEXT = re.compile(r"\\(?:text|mbox)\{[ .,;:]{0,3}\}$")
_WORDED_NUMBER = re.compile(r"\\(?:text|mbox)\{\s*(-?\d[\d.,]*)(?![\d/])[^{}\d]*\}")
_REPEATING = re.compile(r"([-+]?)(\d*)\.(\d*)\\overline\{(\d+)\}")
_DEGREES = re.compile(r"(?:\^\{?\\circ\}?|°|\\degree)$")
_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)"
_NUMBER = re.compile(rf"([-+]?)\s*({_DECIMAL})(?:[eE]([-+]?\d{{1,3}}))?")
_SCIENTIFIC = re.compile(
    rf"([-+]?)({_DECIMAL})\s*(?:\\times|\\cdot|\*)\s*10\^\{{?([-+]?\d{{1,3}})\}}?"
)
_LATEX_RATIO = r"\\[dtc]?frac\s*(?:\{\s*(-?\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))"
_RATIO = re.compile(rf"([-+]?)\s*(?:(\d+)\s*)?{_LATEX_RATIO}")
_SLASHED = re.compile(r"([-+]?)\s*(?:(\d+)\s+)?(\d+)\s*/\s*(\d+)")
_BASED = re.compile(
    r"\(?([0-9A-Fa-f]+)\)?_(?:\{\s*(?:\\(?:text|mathrm)\{)?\s*(\w+)\s*\}?\s*\}|(\d))"
)
_BASE_IN_WORDS = re.compile(
    r"\s*(?:\\(?:text|mbox|mathrm)\{)?\s*\(?\s*(?:in\s+)?base[\s-]*(\w+)\s*\)?\s*\}?$"
)
_BASE_WORDS = dict(
    zip(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        range(2, 11),
        strict=True,
    )
)
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_OPTION_GOLD = re.compile(r"\(([A-J])\)")
_OPTION_ANSWER = re.compile(r"(?:\(([A-Ja-j])\)|([A-J])[.:)]|([A-Ja-j])$)(?=[\s.,:\\]|$)")
_OPTION_LEAD_IN = re.compile(rf"^{_EMPTY_WORDS}", re.IGNORECASE)
_OPTIONS = re.compile(r"(?<![A-Za-z])\([A-Ja-j]\)|(?<![^\s,])[A-J]\)")
_JOINING_WORDS = re.compile(r"\\(?:text|mbox|mathrm)\{[^{}]*\}")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*[A-Za-z]")
_UNIT = re.compile(
    r"(?:\\(?:text|mbox|mathrm)\{\s*([A-Za-z]+)[^{}]*\}|(?<=[\d}\s])([a-z]+))(?:\^\{?\d\}?)?$"
)
# Units are dropped, never converted; two different ones of this list are a contradiction.
_UNITS = {
    alias: names.split()[0]
    for names in (
        "mm millimeter millimetre", "cm centimeter centimetre", "m meter metre",
        "km kilometer kilometre", "inch in inche", "foot ft feet", "yard yd", "mile mi", "cent",
        "dollar", "degree deg", "radian rad", "second sec s", "minute min", "hour hr h", "day",
        "week", "month", "year", "g gram", "kg kilogram",
    )
    for alias in names.split()
}  # fmt: skip


@dataclass(frozen=True)
class _Number:
    value: Fraction
    percent: bool
    decimal: bool  # written with a point, so it may be a rounded value


def clean(answer: str) -> str:
    """Return `answer` without delimiters, spacing, thousands separators, lead-in and full stop.

    An answer of more than MAX_CHARACTERS is returned as it is: `decide` counts it as wrong.
    """
    if len(answer) > MAX_CHARACTERS:
        return answer
    text = _BLANKS.sub(" ", unicodedata.normalize("NFC", answer).translate(_SIGNS)).strip()
    text = _ROOT_SIGN.sub(r"\\sqrt{\1}", text)
    text = _SPACING.sub("", re.sub(r"(?<!\\)(?:\$|\\[()\[\]])", "", text)).strip()
    text = _without_tail(_LEAD_IN.sub("", _without_tail(text)).strip())
    text = worded[1] if (worded := _WORDED_NUMBER.fullmatch(text)) else text
    text = _GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text)
    return respell(_SPACED_NUMBER.sub(lambda m: m[0].replace(" ", ""), text)).strip()


def _without_tail(text: str) -> str:
    """Drop blanks and final punctuation, read from the end so that a long run is read once."""
    while True:
        shorter = text.rstrip(" .,;:")
        if shorter.endswith("\\"):
            shorter = shorter.rstrip("\\")
        elif empty := _EMPTY_TEXT.search(shorter, max(0, len(shorter) - 12)):
            shorter = shorter[: empty.start()]
        if shorter == text:
            return text
        text = shorter


def decide(gold: str, answer: str) -> tuple[bool, str] | None:
    """Return (correct, method) for two cleaned answers; None: only computer algebra can tell."""
    if len(answer) > MAX_CHARACTERS:
        return False, "too long"
    if _spelling(gold) == _spelling(answer):
        return True, "same text"
    for method, rule in _RULES:
        verdict = rule(gold, answer)
        if verdict is not None:
            return verdict, method
    return None


def _spelling(answer: str) -> str:
    # One blank between digits stays: "1 1/2" is not "11/2".
    closed = re.sub(r"(?<![\d\s])\s+|\s+(?![\d\s])", "", _BLANKS.sub(" ", answer))
    return re.sub(r"\\[dtc]frac", r"\\frac", closed)


def is_number(answer: str) -> bool:
    """Tell whether a cleaned answer is a literal number, so that its parse needs no test."""
    return _number(answer) is not None


def aligned(gold: str, answer: str) -> tuple[str, str]:
    """Write out what math-verify cannot read: both signs of a plus-minus, and a bare list as a
    tuple when the other side is a tuple, so that the order counts.
    """
    gold, answer = _both_signs(gold), _both_signs(answer)
    kinds = _kind(gold), _kind(answer)
    if kinds == ("tuple", "list"):
        return gold, f"({answer})"
    return (f"({gold})", answer) if kinds == ("list", "tuple") else (gold, answer)


def _both_signs(text: str) -> str:
    upper = re.sub(r"\\pm\s*", "+", re.sub(r"\\mp\s*", "-", text))
    lower = re.sub(r"\\pm\s*", "-", re.sub(r"\\mp\s*", "+", text))
    return text if upper == lower else f"{upper}, {lower}"


def _same_number(gold: str, answer: str) -> bool | None:
    g, a = _number(gold), _number(answer)
    if g is None or a is None:
        return None
    if (
        g.percent != a.percent
    ):  # the sign may be left out, or worked in: 50% is answered by 50 and by 0.5
        of_hundred, bare = (g.value, a.value) if g.percent else (a.value, g.value)
        return bare in (of_hundred, of_hundred / 100)
    if g.decimal == a.decimal or 1 in (g.value.denominator, a.value.denominator):
        return g.value == a.value
    return rounds_to(g.value, a.value)


def rounds_to(exact: Fraction, other: Fraction) -> bool:
    """Tell whether two numbers agree to six decimals and to one part in 100,000."""
    return round(exact, 6) == round(other, 6) and abs(exact - other) <= abs(exact) / 100_000


def _number(text: str) -> _Number | None:
    if len(text) > _MAX_NUMBER_CHARACTERS:
        return None
    body = _DEGREES.sub("", text).removeprefix("\\$").strip()
    percent = body.endswith("%")
    body = body.removesuffix("%").removesuffix("\\").strip()
    if match := _NUMBER.fullmatch(body) or _SCIENTIFIC.fullmatch(body):
        value = Fraction(match[2].replace(",", "")) * Fraction(10) ** int(match[3] or 0)
        return _Number(-value if match[1] == "-" else value, percent, value.denominator != 1)
    if match := _RATIO.fullmatch(body) or _SLASHED.fullmatch(body):
        sign, whole, *parts = match.groups()
        numerator, denominator = (int(part) for part in parts if part is not None)
        if denominator == 0 or (whole and numerator < 0):
            return None
        value = int(whole or 0) + Fraction(numerator, denominator)
        return _Number(-value if sign == "-" else value, percent, False)
    if match := _REPEATING.fullmatch(body):
        sign, whole, fixed, period = match.groups()
        tail = Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed))
        value = Fraction(f"{whole or 0}.{fixed or 0}") + tail
        return _Number(-value if sign == "-" else value, percent, False)
    return None


def _same_base(gold: str, answer: str) -> bool | None:
    g, a = _based(gold), _based(answer)
    if g is None and a is None:
        return None
    if g and a:
        return g == a
    if (
        g
    ):  # the question names the base, so it may be left out; the value in base ten is not asked for
        return answer.lstrip("0").upper() == g[0] if re.fullmatch(r"\w+", answer) else None
    plain = _number(gold)
    return None if plain is None or a is None else plain.value == _base_value(*a)


def _based(text: str) -> tuple[str, int] | None:
    match = _BASED.fullmatch(_BASE_IN_WORDS.sub(r"_{\1}", text))
    if match is None:
        return None
    name = (match[2] or match[3]).lower()
    base = int(name) if name.isdigit() else _BASE_WORDS.get(name, 0)
    return (match[1].lstrip("0").upper(), base) if 2 <= base <= 36 else None


def _base_value(digits: str, base: int) -> int | None:
    values = [int(digit, 36) for digit in digits]
    return (
        sum(v * base**i for i, v in enumerate(reversed(values)))
        if max(values, default=0) < base
        else None
    )


def _same_option(gold: str, answer: str) -> bool | None:
    letter = _OPTION_GOLD.fullmatch(_WRAPPER.sub(r"\1", gold).strip())
    if letter is None:
        return None
    text = _OPTION_LEAD_IN.sub("", _WRAPPER.sub(r"\1", answer).strip())
    first = _OPTION_ANSWER.match(text)
    if first is None:
        return False
    given = {next(filter(None, first.groups())).upper()}
    return given | {option.strip("()").upper() for option in _OPTIONS.findall(text)} == {letter[1]}


def _same_words(gold: str, answer: str) -> bool | None:
    if not _WRAPPER.fullmatch(gold):
        return None
    words, given = (_WRAPPER.sub(r"\1", text).strip(" .") for text in (gold, answer))
    if words.casefold() == given.casefold():
        return True
    return False if _WORDS.fullmatch(words) else None


def _contradiction(gold: str, answer: str) -> bool | None:
    """Return False for a set against a tuple, two different known units, and several numbers."""
    units = {_unit(gold), _unit(answer)} - {None}
    kinds = {_kind(gold), _kind(answer)}
    lone = _number(gold) is not None and _kind(answer) == "tuple"
    wrong = lone or kinds == {"set", "tuple"} or len(units) == 2 or _several_numbers(gold, answer)
    return False if wrong else None


def _several_numbers(gold: str, answer: str) -> bool:
    """Tell whether words join different numbers (30 minutes 20 seconds) where one is asked for."""
    if _number(gold) is None:
        return False
    numbers = (_number(part.strip()) for part in _JOINING_WORDS.split(answer))
    return len({n.value / 100 if n.percent else n.value for n in numbers if n}) > 1


def _unit(text: str) -> str | None:
    match = _UNIT.search(text)
    name = (match[1] or match[2]).lower() if match else ""
    return _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))


def _kind(text: str) -> str:
    """Return "set" for {a,b}, "tuple" for (a,b), "list" for a bare a,b, else "single"."""
    if text.startswith("\\{") and text.endswith("\\}"):
        return "set"
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    depth, comma, lowest = 0, False, 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        lowest = min(lowest, depth)
        comma = comma or (character in ",;" and depth == 0)
    if inner is not text and lowest < 0:  # "(0,9) \cup (9,36)": the outer brackets are no pair
        return "single"
    return ("list" if inner is text else "tuple") if comma else "single"


_RULES = (
    ("number", _same_number),
    ("base", _same_base),
    ("option", _same_option),
    ("words", _same_words),
    ("contradiction", _contradiction),
)
