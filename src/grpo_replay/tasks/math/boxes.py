r"""Find the answer box in one linear pass: a rambling completion may open thousands of them."""

import re

_WINDOW_CHARACTERS = 100_000  # from the end: more than the longest completion of any study
# An escaped brace (\{) is text, not a group, and \\ is a line break, so both are consumed whole.
_TOKEN = re.compile(r"(?P<box>\\boxed\s*\{)|\\.|(?P<open>\{)|(?P<close>\})", re.DOTALL)


def last_boxed(text: str) -> str | None:
    r"""Return what stands inside the last complete ``\boxed{...}`` of `text`, or None.

    A box without its closing brace is no box. Nested braces are kept; a box inside a box is opened.
    Only the last 100,000 characters are read, so that no text takes long.
    """
    text = text[-_WINDOW_CHARACTERS:]
    opened: list[int | None] = []  # where the content of each open group starts; None: plain group
    closed: list[tuple[int, int]] = []  # the content of each complete box, inner ones first
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "box":
            opened.append(token.end())
        elif kind == "open":
            opened.append(None)
        elif kind == "close" and opened:
            start = opened.pop()
            if start is not None:
                closed.append((start, token.start()))
    if not closed:
        return None
    place = len(closed) - 1
    while place and closed[place - 1][0] > closed[place][0]:  # the one before stands inside
        place -= 1
    start, end = closed[place]
    return text[start:end]
