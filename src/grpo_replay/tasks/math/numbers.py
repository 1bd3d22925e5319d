"""Literal numbers as exact fractions: plain, scientific, mixed, repeating, percent, degrees."""

import re
from dataclasses import dataclass
from fractions import Fraction

_MAX_NUMBER_CHARACTERS = 400  # beyond that Python's own int() becomes slow, then refuses
_DEGREES = re.compile(r"(?:\^\{?\\circ\}?|°|\\degree)$")
_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)"
_NUMBER = re.compile(rf"([-+]?)\s*({_DECIMAL})(?:[eE]([-+]?\d{{1,3}}))?")
_SCIENTIFIC = re.compile(
    rf"([-+]?)({_DECIMAL})\s*(?:\\times|\\cdot|\*)\s*10\^\{{?([-+]?\d{{1,3}})\}}?"
)
_LATEX_RATIO = r"\\[dtc]?frac\s*(?:\{\s*(-?\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))"
_RATIO = re.compile(rf"([-+]?)\s*(?:(\d+)\s*)?{_LATEX_RATIO}")
_SLASHED = re.compile(r"([-+]?)\s*(?:(\d+)\s+)?(\d+)\s*/\s*(\d+)")
_REPEATING = re.compile(r"([-+]?)(\d*)\.(\d*)\\overline\{(\d+)\}")


@dataclass(frozen=True)
class Number:
    """A literal number; `percent`, `degrees`: such a sign stands behind it."""

    value: Fraction
    percent: bool
    decimal: bool  # written with a point, so it may be a rounded value
    degrees: bool = False


def read_number(text: str) -> Number | None:
    """Return the number that `text` as a whole is, or None."""
    if len(text) > _MAX_NUMBER_CHARACTERS:
        return None
    body = _DEGREES.sub("", text)
    degrees = body != text
    body = body.removeprefix("\\$").strip()
    percent = body.endswith("%")
    found = _plain_number(body.removesuffix("%").removesuffix("\\").strip())
    return found and Number(found[0], percent, found[1], degrees)


def _plain_number(body: str) -> tuple[Fraction, bool] | None:
    """Return the value, and whether it may be a rounded one, of a number without a unit."""
    if match := _NUMBER.fullmatch(body) or _SCIENTIFIC.fullmatch(body):
        value = Fraction(match[2].replace(",", "")) * Fraction(10) ** int(match[3] or 0)
        return (-value if match[1] == "-" else value), value.denominator != 1
    if match := _RATIO.fullmatch(body) or _SLASHED.fullmatch(body):
        sign, whole, *parts = match.groups()
        numerator, denominator = (int(part) for part in parts if part is not None)
        if denominator == 0 or (whole and numerator < 0):
            return None
        value = int(whole or 0) + Fraction(numerator, denominator)
        return (-value if sign == "-" else value), False
    if match := _REPEATING.fullmatch(body):
        sign, whole, fixed, period = match.groups()
        tail = Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed))
        value = Fraction(f"{whole or 0}.{fixed or 0}") + tail
        return (-value if sign == "-" else value), False
    return None


def rounds_to(exact: Fraction, other: Fraction) -> bool:
    """Tell whether two numbers agree to six decimals and to one part in 100,000."""
    return round(exact, 6) == round(other, 6) and abs(exact - other) <= abs(exact) / 100_000
