"""The clean-up of every answer before it is judged, linear in its length.

Every pattern reads a text once: an answer may be any 2,000 characters, and the caller has no limit.
"""

import re
import unicodedata

from .spelling import respell

MAX_CHARACTERS = 2000  # of an answer that is judged at all; the longest gold in use has 400
_BLANKS = re.compile(r"\s+")
_SEPARATOR = r"(?:\{,\}| ?\\[,;: ] ?|~|\u202f|\u00a0)"
_GROUPED = re.compile(rf"\d{{1,3}}(?:{_SEPARATOR}\d{{3}})+")
_RUN = re.compile(rf"(?<![\d.,])[\d.,]*+(?<=\d)(?:{_SEPARATOR}\d+)+")  # read once each
_SPACED_NUMBER = re.compile(r"^[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?(?=$|\s*[\\%°^])")
_SIGNS = str.maketrans(
    {"\u2212": "-", "∞": r"\infty ", "×": r"\times ", "·": r"\cdot ", "≤": r"\le ", "≥": r"\ge ",
     "∪": r"\cup ", "±": r"\pm "}
    | {chr(0xFF10 + digit): str(digit) for digit in range(10)}
)  # fmt: skip
_ROOT_SIGN = re.compile(r"√\s*(\d+|[A-Za-z])")
_SPACING = re.compile(r"\\[!]\s*|\\(?:displaystyle|textstyle)\b|\\left(?![a-z])|\\right(?![a-z])")
EMPTY_WORDS = (
    r"(?:(?:so|thus|hence|therefore|the|final|correct|answer|result|value|is|are|equals|option"
    r"|choice)\b[\s,:]*)+"
)
_LEAD_IN = re.compile(
    rf"^\\(?:text|mbox|textbf|mathrm)\{{\s*{EMPTY_WORDS}\}}\s*[:=]?\s*(?=\S)", re.IGNORECASE
)
_EMPTY_TEXT = re.compile(r"\\(?:text|mbox)\{[ .,;:]{0,3}\}$")
_BRACED = re.compile(r"^\{([^{}]*)\}$")  # what a decoration around the whole leaves behind
_WORDED_NUMBER = re.compile(r"\\(?:text|mbox)\{\s*(-?\d[\d.,]*+)(?![\d/])[^{}\d]*\}")


def clean(answer: str) -> str:
    """Return `answer` without delimiters, spacing, thousands separators, lead-in and full stop.

    An answer of more than MAX_CHARACTERS is returned as it is: `decide` counts it as wrong.
    """
    if len(answer) > MAX_CHARACTERS:
        return answer
    text = _ROOT_SIGN.sub(r"\\sqrt{\1}", unicodedata.normalize("NFC", answer).translate(_SIGNS))
    text = _SPACING.sub("", re.sub(r"(?<!\\)(?:\$|\\[()\[\]])", "", text))
    text = _BLANKS.sub(" ", text).strip()
    text = _without_tail(_LEAD_IN.sub("", _without_tail(text)).strip())
    text = worded[1] if (worded := _WORDED_NUMBER.fullmatch(text)) else text
    text = _RUN.sub(lambda m: _without_separators(m[0]), text)
    text = respell(_SPACED_NUMBER.sub(lambda m: m[0].replace(" ", ""), text)).strip()
    return _BRACED.sub(r"\1", text).replace(r"\{ \}", r"\{\}")


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


def _without_separators(digits: str) -> str:
    return re.sub(r"\D", "", digits) if _GROUPED.fullmatch(digits) else digits


def spelling(answer: str) -> str:
    """Return a cleaned answer without blanks, for a comparison as text."""
    # One blank between digits stays: "1 1/2" is not "11/2".
    closed = re.sub(r"(?<![\d\s])\s+|\s+(?![\d\s])", "", _BLANKS.sub(" ", answer))
    return re.sub(r"\\[dtc]frac", r"\\frac", closed)
