"""Graded samples: a file for each benchmark of a cell, a row a sample, a column a verifier."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

CORRECT = "correct"
_VERDICT, _TIMED_OUT = "grade_", "timed_out"


def verdict_columns(verifiers: Iterable[str]) -> dict[str, str]:
    """The column of each verifier's word, by its name: `correct` is the first one's."""
    first, *others = verifiers
    return {first: CORRECT, **{name: f"{_VERDICT}{name}" for name in others}}


def timed_out_columns(verifiers: Iterable[str]) -> dict[str, str]:
    """The column of what each verifier had no time for, by its name."""
    first, *others = verifiers
    return {first: _TIMED_OUT, **{name: f"{_TIMED_OUT}_{name}" for name in others}}


def verdicts_in(columns: Iterable[str]) -> list[str]:
    """The columns of a file that hold a verifier's word, `correct` first."""
    return [CORRECT, *(name for name in columns if name.startswith(_VERDICT))]


def grade_schema(verifiers: Sequence[str]) -> pa.Schema:
    """The columns of a file of grades."""
    return pa.schema(
        [
            ("problem_id", pa.string()),
            ("sample_id", pa.int64()),
            *((column, pa.bool_()) for column in verdict_columns(verifiers).values()),
            ("extracted", pa.string()),
            ("method", pa.string()),
            *((column, pa.bool_()) for column in timed_out_columns(verifiers).values()),
            ("errors", pa.string()),
            ("n_tokens", pa.int64()),
            ("finish_reason", pa.string()),
        ]
    )
