"""Errors that a user can repair: each names the place, the value and the repair."""

import difflib
from collections.abc import Iterable


class GrpoReplayError(Exception):
    """Base class of every error that is the input's fault, not the program's."""


class ConfigError(GrpoReplayError, ValueError):
    """A study file or a command-line setting is wrong."""


class DataError(GrpoReplayError, ValueError):
    """A data file (problems, samples, grades, scores) is wrong or incomplete."""


class ModelError(GrpoReplayError, ValueError):
    """A model folder or Hub id is missing or unusable."""


class TrainingError(GrpoReplayError, RuntimeError):
    """A training process that was started for a cell has failed."""


class LockedError(GrpoReplayError, RuntimeError):
    """Another process is at the same work."""


class GrpoReplayWarning(UserWarning):
    """What a person should know though it stops nothing; jobs show it on the terminal."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question that names the known word nearest to an unknown one, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listing(names: Iterable[str], most: int = 40) -> str:
    """The names in a row, cut where there are more than a person reads (a study of thousands)."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
