r"""Find the answer box in one linear pass: a rambling completion may open thousands of them."""

import re

# An escaped brace (\{) is text, not a group, and \\ is a line break, so both are consumed whole.
_TOKEN = re.compile(r"(?P<box>\\boxed\s*\{)|\\.|(?P<open>\{)|(?P<close>\})", re.DOTALL)


def last_boxed(text: str) -> str | None:
    r"""Return what stands inside the last complete ``\boxed{...}`` of `text`, or None.

    A box without its closing brace is no box. Nested braces are kept; a box inside a box is opened.
    """
    opened: list[
        int | None
    ] = []  # where the content of each open group starts; None: a plain group
    found: str | None = None
    for token in _TOKEN.finditer(text):
        if token["box"]:
            opened.append(token.end())
        elif token["open"]:
            opened.append(None)
        elif token["close"] and opened:
            start = opened.pop()
            if start is not None:
                found = text[start : token.start()]
    return found if found is None or "\\boxed" not in found else _inner(found)


def _inner(content: str) -> str:
    whole = re.fullmatch(r"\s*\\boxed\s*\{(.*)\}\s*", content, re.DOTALL)
    return whole[1] if whole and "\\boxed" not in whole[1] else last_boxed(content) or content
