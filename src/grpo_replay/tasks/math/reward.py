r"""The training reward: exact match after the "Minerva" clean-up (paper, section "Verifiers").

Plain string work, a few microseconds an answer: it runs inside the training loop and needs no
sympy.
The usual rule list (Lewkowycz et al. 2022, appendix D) is kept, with four repairs, since as bare
substring replacement it turns wrong answers into right ones:

- unit words, `a` and `an` are removed as whole words only, and never when nothing would be left;
- what stands before `=` is dropped only when it is one symbol: `x=5` is 5, `5x-7y+4=0` is not 0;
- `\frac9{19}`, `\frac 34`, `\sqrt2` are expanded whichever argument lacks its braces;
- `\dfrac`, `\tfrac`, `\left`, `\right` and spacing commands are cleaned up too.
"""

import re

from .boxes import last_boxed

_WINDOW_CHARACTERS = 500
_UNIT_WORDS = (
    "square|ways|integers|dollars|mph|inches|hours|km|units|sue|points|feet|minutes|digits|cents"
    "|degrees|cm|gm|pounds|meters|meals|edges|students|children tickets|multiples"
)
_REMOVED_WORDS = re.compile(rf"(?<![A-Za-z\\])(?:{_UNIT_WORDS}|an|a(?= [a-z]{{2}}))(?![A-Za-z])")
_SPACING = re.compile(r"\\[!,;: ]|\\quad|\\qquad|\\left(?![a-z])|\\right(?![a-z])|\\displaystyle")
_DECORATION = re.compile(
    r"\\mathrm\{th\}|\^\{?\\circ\}?|\\l?dots|\\\$|\$|\"|\\text\{[\s.]*\}(?:\^\{?[23]\}?)?"
)
_TEXT = re.compile(r"\\(?:text|textbf|mbox|mathrm|mathbf|textit|overline)\{([^{}]*)\}")
_METRES = re.compile(r"\\(?:text|mbox)\{\s*(?:m|s)\s*\}")
_SYMBOL_EQUALS = re.compile(r"^\s*\\?[A-Za-z]+(?:_\{?\w+\}?)?(?:\([A-Za-z]\))?\s*=(?!=)")
_ARGUMENT = r"(\{[^{}]*\}|\\[A-Za-z]+|[^\s{}\\])"
_FRACTION = re.compile(rf"\\[dtc]?frac\s*{_ARGUMENT}\s*{_ARGUMENT}")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_ROOT = re.compile(r"\\sqrt\s*([^\s{}\[\\])")


def training_reward(completion: str, gold: str) -> float:
    """Return +1.0 when the last box in the last 500 characters is the gold answer, else -1.0.

    Both sides get the same Minerva normalisation and must then be the same string.
    """
    answer = last_boxed(completion[-_WINDOW_CHARACTERS:])
    if answer is None or not answer.strip():
        return -1.0
    return 1.0 if normalise_minerva(answer) == normalise_minerva(gold) else -1.0


def normalise_minerva(answer: str) -> str:
    """Return the canonical string of one answer; never empty for an answer that is not blank."""
    text = (
        _SYMBOL_EQUALS.sub("", answer.replace("\n", " "))
        .replace("{,}", ",")
        .replace("\\mbox", "\\text")
    )
    text = _SPACING.sub("", _METRES.sub("", text))
    text = _without_decoration(text)
    text = _FRACTION.sub(lambda m: rf"\frac{_braced(m[1])}{_braced(m[2])}", text)
    text = _ROOT.sub(r"\\sqrt{\1}", text).replace(" ", "").strip().rstrip(".")
    text = text.replace(",", "") if _GROUPED.fullmatch(text) else text  # 1,2 is a list, not 12
    return text or "".join(answer.split())


def _without_decoration(text: str) -> str:
    """Drop units, degree and currency signs, unless that would leave nothing."""
    plain = _TEXT.sub(r"\1", _DECORATION.sub("", text))
    shorter = _TEXT.sub(r"\1", _DECORATION.sub("", _REMOVED_WORDS.sub("", text)))
    return shorter if shorter.strip(" ^23{}") else plain


def _braced(argument: str) -> str:
    return argument if argument.startswith("{") else f"{{{argument}}}"
