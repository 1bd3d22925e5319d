"""Whatever is raised while one answer is judged is that answer's alone."""

import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Raised:
    """Stands in for a verdict: `name` is the class of what was raised."""

    name: str


def guarded(judge: Callable[..., T], *texts: str | None) -> T | Raised:
    """Return what `judge` says of `texts`, or what it raised.

    What a signal handler of the caller raises meanwhile (a budget of time that is spent) is no
    verdict and goes on to the caller, as KeyboardInterrupt and SystemExit do.
    """
    try:
        return judge(*texts)
    except Exception as error:
        if _from_a_handler(error):
            raise
        return Raised(type(error).__name__)


def _from_a_handler(error: Exception) -> bool:
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))
