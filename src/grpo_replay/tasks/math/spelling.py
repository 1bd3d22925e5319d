r"""Write equal LaTeX in one way, in one linear pass over its tokens, before any rule reads it.

Arguments get their braces (`\frac\pi4`, `\sqrt[3]2`, `\sqrt(2)`), decoration goes (underline,
colours, sizes), upright letters and digits become plain ones (`\mathrm{e}`).
"""

import re

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[^\\]", re.DOTALL)
_SYNONYMS = {r"\varnothing": r"\emptyset", r"\dfrac": r"\frac", r"\tfrac": r"\frac",
             r"\cfrac": r"\frac", r"\lbrace": r"\{", r"\rbrace": r"\}"}  # fmt: skip
_SIZE_NAMES = (
    "tiny small normalsize large Large LARGE huge Huge big Big bigg Bigg bigl bigr Bigl Bigr "
    "biggl biggr Biggl Biggr displaystyle textstyle bf rm it boldmath limits"
)
_SIZES = frozenset(rf"\{name}" for name in _SIZE_NAMES.split())
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
    arguments = _Arguments()
    place = 0
    while place < len(tokens):
        place = arguments.take(tokens, place)
    return arguments.kept


class _Arguments:
    """Gives each argument of a fraction or root its braces, one token at a time."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._waiting: list[int] = []  # arguments that each open command still lacks
        self._rounds: list[int] = []  # depths of round brackets that stand for a root's braces
        self._depth = 0

    def take(self, tokens: list[str], place: int) -> int:
        """Keep the token at `place`, changed where need be; return the place of the next one."""
        token = tokens[place]
        due = bool(self._waiting and self._waiting[-1])
        if token == " " and due:
            return place + 1
        if token == "[" and self.kept[-1:] == [r"\sqrt"]:
            return self._take_index(tokens, place)
        if due and self._is_argument(token):
            return place + 1
        self._count(token)
        if token == ")" and self._rounds[-1:] == [self._depth]:
            self._rounds.pop()
            token = "}"
        self.kept.append(token)
        return place + 1

    def _take_index(self, tokens: list[str], place: int) -> int:
        near = range(place + 1, min(place + 21, len(tokens)))
        end = next((k for k in near if tokens[k] == "]"), place)
        self.kept += tokens[place : end + 1]
        return end + 1

    def _is_argument(self, token: str) -> bool:
        """Fill one argument; say whether `token` is kept already, with a brace for it."""
        self._waiting[-1] -= 1
        if not self._waiting[-1]:
            self._waiting.pop()
        if token == "(" and self.kept[-1] in (r"\sqrt", "]"):
            self._rounds.append(self._depth)
            self._depth += 1
            self.kept.append("{")
            return True
        if token == "{" or token in _ARGUMENTS or token in "})]":
            return False
        self.kept += ["{", token, "}"]
        return True

    def _count(self, token: str) -> None:
        """Follow braces, commands that want arguments, and round brackets."""
        if token == "{":
            self._waiting.append(0)
        elif token == "}":
            while self._waiting and self._waiting.pop():
                pass
        elif token in _ARGUMENTS:
            self._waiting.append(_ARGUMENTS[token])
        self._depth += (token == "(") - (token == ")")
