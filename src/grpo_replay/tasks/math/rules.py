r"""Verdicts on two cleaned answers that need no computer algebra.

Strings and exact rational arithmetic only: safe in the caller's process, microseconds an answer.
`decide` returns None for what only sympy can tell. The package's docstring lists the decisions.
"""

import re

from .cleaning import EMPTY_WORDS, MAX_CHARACTERS, spelling
from .forms import in_parts, same_form
from .numbers import read_number, rounds_to

_BASED = re.compile(
    r"\(?([0-9A-Fa-f]+)\)?_(?:\{\s*(?:\\(?:text|mathrm)\{)?\s*(\w+)\s*\}?\s*\}|(\d))"
)
_BASE_IN_WORDS = re.compile(
    r" ?(?:\\(?:text|mbox|mathrm)\{)? ?\(? ?(?:in )?base[ -]?(\w+) ?\)? ?\}?$"  # blanks are single
)
_NAMES = "two three four five six seven eight nine ten"
_BASE_WORDS = {name: base for base, name in enumerate(_NAMES.split(), start=2)}
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_OPTION_GOLD = re.compile(r"\(([A-J])\)")
_OPTION_ANSWER = re.compile(r"(?:\(([A-Ja-j])\)|([A-J])[.:)]|([A-Ja-j])$)(?=[\s.,:\\]|$)")
_OPTION_LEAD_IN = re.compile(rf"^{EMPTY_WORDS}", re.IGNORECASE)
_OPTIONS = re.compile(r"(?<![A-Za-z])\([A-Ja-j]\)|(?<![^\s,])[A-J]\)")
_JOINING_WORDS = re.compile(r"\\(?:text|mbox|mathrm)\{[^{}]*\}")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*[A-Za-z]")
_UNIT = re.compile(
    r"(?:\\(?:text|mbox|mathrm)\{[\s~]*([A-Za-z]++)[^{}]*\}|(?<=[\d}\s])([a-z]++))(?:\^\{?\d\}?)?$"
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


def decide(gold: str, answer: str) -> tuple[bool, str] | None:
    """Return (correct, method) for two cleaned answers; None: only computer algebra can tell."""
    if len(answer) > MAX_CHARACTERS:
        return False, "too long"
    if spelling(gold) == spelling(answer):
        return True, "same text"
    for method, rule in _RULES:
        verdict = rule(gold, answer)
        if verdict is not None:
            return verdict, method
    return None


def is_number(answer: str) -> bool:
    """Tell whether a cleaned answer is a literal number, so that its parse needs no test."""
    return read_number(answer) is not None


def aligned(gold: str, answer: str) -> tuple[str, str]:
    """Write out what math-verify cannot read: both signs of a plus-minus, ratios, and a bare list
    as a tuple when the other side is a tuple, so that the order counts.
    """
    if len(gold) > MAX_CHARACTERS or len(answer) > MAX_CHARACTERS:
        return gold, answer
    gold, answer = in_parts(_both_signs(gold), _both_signs(answer))
    kinds = _kind(gold), _kind(answer)
    if kinds == ("tuple", "list"):
        return gold, f"({answer})"
    return (f"({gold})", answer) if kinds == ("list", "tuple") else (gold, answer)


def _both_signs(text: str) -> str:
    upper = re.sub(r"\\pm\s*", "+", re.sub(r"\\mp\s*", "-", text))
    lower = re.sub(r"\\pm\s*", "-", re.sub(r"\\mp\s*", "+", text))
    return text if upper == lower else f"{upper}, {lower}"


def _same_number(gold: str, answer: str) -> bool | None:
    g, a = read_number(gold), read_number(answer)
    if g is None or a is None:
        return None
    if (g.percent and a.degrees) or (g.degrees and a.percent):
        return False
    if g.percent != a.percent:  # left out, or worked in: 50% is answered by 50 and by 0.5
        of_hundred, bare = (g.value, a.value) if g.percent else (a.value, g.value)
        return bare in (of_hundred, of_hundred / 100)
    if g.decimal == a.decimal or 1 in (g.value.denominator, a.value.denominator):
        return g.value == a.value
    return rounds_to(g.value, a.value)


def _same_base(gold: str, answer: str) -> bool | None:
    g, a = _based(gold), _based(answer)
    if g is None and a is None:
        return None
    if g and a:
        return g == a
    if g:  # the question names it, so it may be left out; the value in base ten is not asked for
        return answer.lstrip("0").upper() == g[0] if re.fullmatch(r"\w+", answer) else None
    plain = read_number(gold)
    return None if plain is None or a is None else plain.value == _base_value(*a)


def _based(text: str) -> tuple[str, int] | None:
    match = _BASED.fullmatch(_BASE_IN_WORDS.sub(r"_{\1}", text))
    if match is None:
        return None
    name = (match[2] or match[3]).lower()
    base = int(name) if name.isdigit() else _BASE_WORDS.get(name, 0)
    return (match[1].lstrip("0").upper(), base) if 2 <= base <= 36 else None


def _base_value(digits: str, base: int) -> int | None:
    try:
        return int(digits, base)
    except ValueError:  # a digit that the base has not
        return None


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
    if len(words) == 1:  # one letter may stand in brackets
        given = re.sub(r"^\((\w)\)$", r"\1", given)
    if words.casefold() == given.casefold():
        return True
    return False if _WORDS.fullmatch(words) else None


def _contradiction(gold: str, answer: str) -> bool | None:
    """Return False for a set against a tuple, two different known units, and several numbers."""
    units = {_unit(gold), _unit(answer)} - {None}
    kinds = {_kind(gold), _kind(answer)}
    lone = read_number(gold) is not None and _kind(answer) == "tuple"
    wrong = lone or kinds == {"set", "tuple"} or len(units) == 2 or _several_numbers(gold, answer)
    return False if wrong else None


def _several_numbers(gold: str, answer: str) -> bool:
    """Tell whether words join different numbers (30 minutes 20 seconds) where one is asked for."""
    if read_number(gold) is None:
        return False
    numbers = (read_number(part.strip()) for part in _JOINING_WORDS.split(answer))
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
    ("form", same_form),
    ("option", _same_option),
    ("words", _same_words),
    ("contradiction", _contradiction),
)
