r"""Answers that are no LaTeX expression: ratios, times of day, congruences, `\mid`, dots.

The grammar reads none of them, so they are compared as texts in one spelling, and part by part as
exact numbers. No more than that: 1:2 is not 2:4, nor 4:30 PM 4:30, since a time looks like a ratio.
"""

import re

from .cleaning import clean, spelling
from .numbers import read_number

_MARK = re.compile(r":|\\[lc]?dots|\.\.\.|…|\\equiv|\\(?:[pb]?mod|mid|div|colon)\b|÷")
_SPACING = re.compile(r"\\[,;: ]|\\q?quad\b|~")
_WRAPPED = re.compile(r"\\(?:text|textrm|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_MODULUS = re.compile(
    r"\(?\\(?:bmod|mod)(?:\{(\d+)\}|(\d+))\)?|\(?(?<!\\)\bmod(\d+)\)?|\\pmod(?:\{(\d+)\}|(\d+))"
)
_HALF_OF_DAY = re.compile(r"(?<=[\d}])([ap])\.?m\.?$", re.IGNORECASE)
_NAMES = re.compile(r"\\[A-Za-z]+|[A-Za-z]+")
_SYNONYMS = (
    (re.compile(r"\\colon\b"), ":"),
    (re.compile(r"\\mid\b"), "|"),
    (re.compile(r"\\c?dots\b|\\dotsc\b|\.\.\.|…"), r"\\ldots "),
    (re.compile(r"÷"), r"\\div "),
)
_CONGRUENCE = re.compile(
    r"(?:(?P<left>[^\\]+)\\equiv)?(?P<rests>-?\d{1,40}(?:(?:,|or|and)-?\d{1,40})*)"
    r"\\pmod\{(?P<modulus>\d{1,40})\}"
)


def same_form(gold: str, answer: str) -> bool | None:
    """Compare two cleaned answers where the gold has a sign that no LaTeX grammar reads."""
    if not _MARK.search(_SPACING.sub("", gold)):
        return None
    g, a = _plain(gold), _plain(answer)
    if g == a or g == a + r"\ldots" and read_number(a):  # 0.022\ldots is answered by its digits
        return True
    same_rests = _same_rests(g, a)
    return _same_parts(gold, answer) if same_rests is None else same_rests


def in_parts(gold: str, answer: str) -> tuple[str, str]:
    """Write two ratios of equally many parts as tuples, which the grammar reads."""
    parts = _parts(gold), _parts(answer)
    if len(parts[0]) != len(parts[1]) or any("," in part for part in parts[0] + parts[1]):
        return gold, answer
    first, second = (f"({', '.join(side)})" if len(side) > 1 else side[0] for side in parts)
    return first, second


def _plain(text: str) -> str:
    """Return `text` without wrappers and blanks, in small letters, in one spelling."""
    for pattern, sign in _SYNONYMS:
        text = pattern.sub(sign, text)
    text = spelling(_WRAPPED.sub(r" \1 ", _SPACING.sub(" ", text))).strip()
    text = _MODULUS.sub(lambda m: rf"\pmod{{{next(filter(None, m.groups()))}}}", text)
    text = _HALF_OF_DAY.sub(r"\1m", re.sub(r"^0(?=\d:)", "", text))
    return _NAMES.sub(lambda m: m[0] if m[0][0] == "\\" else m[0].lower(), text)


def _parts(text: str) -> list[str]:
    plain = _SPACING.sub(" ", re.sub(r"\\colon\b", ":", text))
    return [part.strip() for part in plain.split(":")] if ":" in plain else [text]


def _same_parts(gold: str, answer: str) -> bool | None:
    """Compare two ratios or times whose parts are numbers; only the first may lose a zero."""
    sides = [[clean(part) for part in _parts(text)] for text in (gold, answer)]
    if len(sides[0]) < 2 or len(sides[0]) != len(sides[1]):
        return None
    numbers = [[read_number(part) for part in side] for side in sides]
    if None in numbers[0] + numbers[1]:
        return None
    zeros = [[bool(re.match(r"0\d", part)) for part in side[1:]] for side in sides]
    return numbers[0] == numbers[1] and zeros[0] == zeros[1]


def _same_rests(gold: str, answer: str) -> bool | None:
    r"""Compare two congruences: x \equiv 3 \pmod{7} is x \equiv 10 \pmod{7}."""
    g, a = _CONGRUENCE.fullmatch(gold), _CONGRUENCE.fullmatch(answer)
    if not g or not a or not int(g["modulus"]):
        return None
    left = g["left"] == a["left"] or (None in (g["left"], a["left"]) and _is_letter(g, a))
    modulus = int(g["modulus"])
    rests = [
        {int(rest) % modulus for rest in re.findall(r"-?\d+", side["rests"])} for side in (g, a)
    ]
    return left and modulus == int(a["modulus"]) and rests[0] == rests[1]


def _is_letter(*sides: re.Match[str]) -> bool:
    return all(len(side["left"] or "x") == 1 for side in sides)
