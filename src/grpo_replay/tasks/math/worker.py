"""The process that may hang: reads questions as JSON lines and answers them with math-verify.

The only module that imports math_verify. Started by `pool.Worker`. The timer counts CPU time, so
that a verdict does not hang on what else the machine does, and its signal keeps the default action:
the kernel ends the process even inside one endless big-number operation, which no Python handler
survives; it also ends a worker whose parent is gone. Nothing but verdicts leaves: a sympy object is
never formatted.
"""

import json
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from math_verify import grader, parse, verify

from .numbers import rounds_to
from .reading import allowed, read

_Percent = sympy.UnevaluatedExpr  # math-verify writes x% as x * UnevaluatedExpr(1/100)
_MEMORY_BYTES = 4 * 2**30
_library_numeric_eq = grader.sympy_numeric_eq
_library_symbolic_eq = grader.sympy_symbolic_eq


def main() -> None:
    """Answer one question a line, [kind, gold, answer, seconds], until standard input closes.

    A reply is the line [correct, method, timed out, error]; what is raised is that answer's alone.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a parser that prints must not talk into the protocol
    logging.disable(logging.CRITICAL)
    _set_limits()
    # What the first answer makes the libraries load is not that answer's time.
    _reply("ours", "2k+2", "2(k+1)")
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        kind, gold, answer, seconds = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        reply = _reply(kind, gold, answer)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(reply), file=replies, flush=True)


def _set_limits() -> None:
    sys.setrecursionlimit(5000)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = _MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the caller, which ends this


def _reply(kind: str, gold: str, answer: str) -> tuple[bool, str, bool, str | None]:
    try:
        correct, method = _QUESTIONS[kind](gold, answer)
    except Exception as error:
        return False, "error", False, type(error).__name__
    return correct, method, False, None


def _parse(text: str) -> list[Any]:
    """Parse without math-verify's own alarm; the first item is a string when nothing parsed."""
    return parse(text, parsing_timeout=0)


_parse_gold = lru_cache(maxsize=256)(_parse)
_read_gold = lru_cache(maxsize=256)(read)
_allowed_by_gold = lru_cache(maxsize=256)(allowed)


def _parsed(items: list[Any]) -> bool:
    return bool(items) and not isinstance(items[0], str)


def _ours(gold: str, answer: str) -> tuple[bool, str]:
    g, a = _read_gold(gold), read(answer)
    if g is None or a is None:
        return False, "unparsed"
    grader.sympy_numeric_eq, grader.sympy_symbolic_eq = _strict_numeric_eq, _quick_symbolic_eq
    return _same_sets(_allowed_by_gold(gold), allowed(answer), g, a), "math-verify"


def _same_sets(g_set: Any, a_set: Any, gold: Any, answer: Any) -> bool:
    """Compare as sets what words join, where these say so on both sides, or the lists differ.

    A set without members is no solution that somebody meant: there the lists are compared.
    """
    empty = [found is not None and found.is_empty for found in (g_set, a_set)]
    if g_set is not None and a_set is not None and not all(empty):
        return _equal(g_set, a_set)
    if _equal(gold, answer):
        return True
    if any(empty) or (g_set is None and a_set is None):
        return False
    return _equal(gold if g_set is None else g_set, answer if a_set is None else a_set)


def _equal(gold: Any, answer: Any) -> bool:
    return bool(verify(gold, answer, timeout_seconds=0, allow_set_relation_comp=True))


def _paper(gold: str, completion: str) -> tuple[bool, str]:
    g, a = _parse_gold(_in_maths(gold)), _parse(_in_maths(completion))
    if not g or not a:
        return gold == completion, "same text"
    grader.sympy_numeric_eq, grader.sympy_symbolic_eq = _library_numeric_eq, _library_symbolic_eq
    return bool(verify(g, a, timeout_seconds=0)), "math-verify"


def _in_maths(text: str) -> str:
    delimited = any(mark in text.replace("\\$", "") for mark in ("$", "\\(", "\\[", "\\boxed"))
    return text if delimited else f"${text}$"


def _parses(gold: str, answer: str) -> tuple[bool, str]:
    return _parsed(_parse(f"${gold}$")), "parse"


def _strict_numeric_eq(gold: Any, answer: Any, float_rounding: int, numeric_precision: int) -> bool:
    """Take math-verify's numeric verdict back where the numbers provably differ.

    It drops differences below 1e-15 (so 1/2^99 equals 1/2^98) and compares decimals to an absolute
    1e-6.
    """
    if not _library_numeric_eq(gold, answer, float_rounding, numeric_precision):
        return False
    if not isinstance(gold, sympy.Expr) or not isinstance(answer, sympy.Expr):
        return True
    if gold.has(_Percent) or answer.has(_Percent):
        return True  # 50 and 50% count as equal
    if gold.has(sympy.Float) or answer.has(sympy.Float):
        return _decimals_agree(gold, answer)
    if gold.free_symbols | answer.free_symbols:
        return False  # symbolic comparison, which follows, is exact
    return not _provably_different(gold, answer)


def _quick_symbolic_eq(gold: Any, answer: Any) -> bool:
    """Spare the slow simplify where one sample point already proves that the expressions differ."""
    both = [
        e for e in (gold, answer) if isinstance(e, sympy.Expr) and not e.has(sympy.Float, _Percent)
    ]
    if len(both) == 2:
        symbols = sorted(gold.free_symbols | answer.free_symbols, key=str)
        point = {symbol: sympy.Rational(17 + 5 * k, 13) for k, symbol in enumerate(symbols)}
        if _provably_different(gold.subs(point), answer.subs(point)):
            return False
    return _library_symbolic_eq(gold, answer)


def _decimals_agree(gold: sympy.Expr, answer: sympy.Expr) -> bool:
    g, a = gold.doit().evalf(30), answer.doit().evalf(30)
    if not (g.is_Float and a.is_Float):
        return True
    return rounds_to(Fraction(str(g)), Fraction(str(a)))


def _provably_different(gold: sympy.Expr, answer: sympy.Expr) -> bool:
    difference = (gold - answer).doit()
    if difference.is_Rational:
        return not difference.is_zero
    # evalf raises its precision until a digit is certain; a true zero never gets one (_prec 1).
    parts = (part.evalf(5, maxn=2000) for part in difference.as_real_imag())
    return any(part.is_Float and part._prec > 1 and not part.is_zero for part in parts)


_QUESTIONS: dict[str, Callable[[str, str], tuple[bool, str]]] = {
    "ours": _ours,
    "paper": _paper,
    "parses": _parses,
}


if __name__ == "__main__":
    main()
