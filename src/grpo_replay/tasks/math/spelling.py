r"""Write equal LaTeX in one way, in one linear pass over its tokens, before any rule reads it.

Arguments get their braces (`\frac\pi4`, `\sqrt[3]2`, `\sqrt(2)`), decoration goes (underline,
colours, sizes), upright letters and digits become plain ones (`\mathrm{e}`).
"""

import re

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[^\\]", re.DOTALL)
_SYNONYMS = {r"\varnothing": r"\emptyset", r"\dfrac": r"\frac", r"\tfrac": r"\frac",
             r"\cfrac": r"\frac", r"\lbrace": r"\{", r"\rbrace": r"\}"}  # fmt: skip
_SIZES = frozenset(
    rf"\{name}"
    for name in [
        "tiny",
        "small",
        "normalsize",
        "large",
        "Large",
        "LARGE",
        "huge",
        "Huge",
        "big",
        "Big",
        "bigg",
        "Bigg",
        "bigl",
        "bigr",
        "Bigl",
        "Bigr",
        "biggl",
        "biggr",
        "Biggl",
        "Biggr",
        "displaystyle",
        "textstyle",
        "bf",
        "rm",
        "it",
        "boldmath",
        "limits",
    ]
)
_DECORATING = {r"\underline": 0, r"\underbrace": 0, r"\boldsymbol": 0, r"\bm": 0, r"\fbox": 0,
               r"\mathbf": 0, r"\color": 1, r"\textcolor": 1, r"\colorbox": 1}  # fmt: skip
_UPRIGHT = frozenset({r"\mathrm", r"\mathit", r"\mathsf", r"\operatorname", r"\text", r"\textrm"})
_ARGUMENTS = {r"\frac": 2, r"\sqrt": 1, r"\binom": 2}
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_PLAIN = re.compile(r"[eid]|\d[\d.,]*")


def respell(text: str) -> str:
    """Return `text` with one spelling of each construct; text that is not LaTeX stays itself."""
    tokens = [_SYNONYMS.get(token, token) for token in _TOKEN.findall(text)]
    tokens = [token for token in tokens if token not in _SIZES]
    return _joined(_with_arguments(_plain_letters(_undecorated(tokens))))


def _joined(tokens: list[str]) -> str:
    """Keep a command apart from the letter that follows it."""
    parts: list[str] = []
    for token in tokens:
        if parts and token[:1].isalpha() and len(parts[-1]) > 1 and parts[-1][-1].isalpha():
            parts.append(" ")
        parts.append(token)
    return "".join(parts)


def _undecorated(tokens: list[str]) -> list[str]:
    kept: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token not in _DECORATING:
            kept.append(token)
        elif _DECORATING[token] and tokens[place : place + 1] == ["{"]:
            place = _close(tokens, place) + 1  # the colour's name
    return kept


def _close(tokens: list[str], start: int) -> int:
    """Return where the brace at `start` closes; a colour's name holds no braces."""
    for place in range(start + 1, min(start + 40, len(tokens))):
        if tokens[place] == "}":
            return place
    return start


def _plain_letters(tokens: list[str]) -> list[str]:
    kept: list[str] = []
    place = 0
    while place < len(tokens):
        if tokens[place] in _UPRIGHT and tokens[place + 1 : place + 2] == ["{"]:
            end = _close(tokens, place + 1)
            content = "".join(tokens[place + 2 : end]).strip()
            upright = tokens[place] not in (r"\text", r"\textrm")
            if _PLAIN.fullmatch(content) and (upright or content[0].isdigit()):
                number = content.replace(",", "") if _GROUPED.fullmatch(content) else content
                kept += ["{", *content, "}"] if content[0].isalpha() else number
                place = end + 1
                continue
        kept.append(tokens[place])
        place += 1
    return kept


def _with_arguments(tokens: list[str]) -> list[str]:
    kept: list[str] = []
    waiting: list[int] = []  # arguments that each open command still lacks
    rounds: list[int] = []  # depths of round brackets that stand for a root's braces
    depth = 0
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token == " " and waiting and waiting[-1]:
            continue
        if token == "[" and kept and kept[-1] == r"\sqrt":
            end = next((k for k in range(place, min(place + 20, len(tokens)))
                        if tokens[k] == "]"), place - 1)  # fmt: skip
            kept += ["[", *tokens[place : end + 1]]
            place = end + 1
            continue
        if waiting and waiting[-1]:
            waiting[-1] -= 1
            if not waiting[-1]:
                waiting.pop()
            if token == "(" and kept[-1] in (r"\sqrt", "]"):
                rounds.append(depth)
                depth += 1
                kept.append("{")
                continue
            if token != "{" and token not in _ARGUMENTS and token not in "})]":
                kept += ["{", token, "}"]
                continue
        if token == "{":
            waiting.append(0)
        elif token == "}":
            while waiting and waiting.pop():
                pass
        elif token in _ARGUMENTS:
            waiting.append(_ARGUMENTS[token])
        depth += (token == "(") - (token == ")")
        if token == ")" and rounds and rounds[-1] == depth:
            rounds.pop()
            token = "}"
        kept.append(token)
    return kept
