"""Files of sampling: chunks as they are done (JSON Lines), and samples (Parquet)."""

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from grpo_replay.errors import DataError, GrpoReplayWarning
from grpo_replay.files import atomic_file, digest, write_text

Row = dict[str, Any]
SAMPLE_SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("problem_id", pa.string()),
        ("sample_id", pa.int64()),
        ("wave_seed", pa.int64()),
        ("text", pa.string()),
        ("n_tokens", pa.int64()),
        ("finish_reason", pa.string()),
    ]
)


def problems_digest(problems: Iterable[Row]) -> str:
    """Return a checksum of ids and texts; answers are left out, so that a gold may be corrected."""
    return digest([[problem["id"], problem["problem"]] for problem in problems])


class WorkFile:
    """The finished chunks of one benchmark, which survive an interruption.

    The first line carries the fingerprint of all that decides the samples, each other line is one
    sample. `rows` maps (problem id, sample id, wave seed) to samples of whole chunks only.
    """

    def __init__(self, path: Path, fingerprint: str, chunks: Sequence[Sequence[Row]]) -> None:
        """Take over what `path` holds of the chunks (lists of keys) under the same fingerprint."""
        self.path = path
        found = {_key(row): row for row in _read_work_file(path, fingerprint)}
        self.rows: dict[tuple, Row] = {}
        for chunk in chunks:
            keys = [_key(row) for row in chunk]
            if all(key in found for key in keys):
                self.rows.update((key, found[key]) for key in keys)
        # Written anew without what is torn or incomplete: later lines always follow whole ones.
        header = json.dumps({"fingerprint": fingerprint})
        write_text(path, "\n".join([header, *map(_line, self.rows.values())]) + "\n")

    def has(self, chunk: Sequence[Row]) -> bool:
        """Return whether all samples of a chunk are there."""
        return all(_key(row) in self.rows for row in chunk)

    def append(self, samples: Sequence[Row]) -> None:
        """Add the samples of one chunk, on disk before this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(_line(sample) + "\n" for sample in samples))
            file.flush()
            os.fsync(file.fileno())
        self.rows.update((_key(sample), sample) for sample in samples)


def _key(row: Row) -> tuple:
    return row["problem_id"], row["sample_id"], row["wave_seed"]


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)


def _read_work_file(path: Path, fingerprint: str) -> list[Row]:
    if not path.exists():
        return []
    # A killed process may leave half a character: cut the torn end off before decoding.
    *lines, rest = path.read_bytes().split(b"\n")
    if rest:
        warnings.warn(
            f"{path}, line {len(lines) + 1}: torn last line dropped; its chunk is drawn again",
            GrpoReplayWarning,
            stacklevel=2,
        )
    rows = [_parse(line, path, number) for number, line in enumerate(lines, start=1)]
    if not rows or rows[0].get("fingerprint") != fingerprint:
        aside = path.with_name(path.name + ".stale")
        path.replace(aside)
        warnings.warn(
            f"{path}: made with another model, prompt or setting; set aside as {aside.name}",
            GrpoReplayWarning,
            stacklevel=2,
        )
        return []
    return rows[1:]


def _parse(line: bytes, path: Path, number: int) -> Row:
    try:
        return json.loads(line)
    except ValueError as error:
        raise DataError(
            f"{path}, line {number}: not valid JSON ({error}); remove the file to draw it again"
        ) from error


def write_samples(
    path: Path, benchmark: str, problem_ids: Sequence[str], k: int, samples: Iterable[Row]
) -> int:
    """Write a benchmark's samples, ordered by problem and sample id, as Parquet.

    Returns how many samples have a text that another sample of the same problem has before it.

    Raises:
        DataError: naming the first problem that has other than k samples.
    """
    rows: dict[str, list[Row]] = {problem_id: [] for problem_id in problem_ids}
    for sample in samples:
        rows[sample["problem_id"]].append({"benchmark": benchmark, **sample})
    for problem_id, own in rows.items():
        check_sample_ids(path, problem_id, [row["sample_id"] for row in own], k)
        own.sort(key=lambda row: row["sample_id"])
    table = pa.Table.from_pylist(
        [row for own in rows.values() for row in own], schema=SAMPLE_SCHEMA
    )
    write_parquet(path, table)
    return sum(len(own) - len({row["text"] for row in own}) for own in rows.values())


def check_sample_ids(path: Path, problem_id: str, sample_ids: Sequence[int], k: int) -> None:
    """Raise DataError unless a problem has the sample ids 0 to k - 1, each once."""
    counts = Counter(sample_ids)
    doubled = sorted(sample for sample, count in counts.items() if count > 1)
    missing = sorted(set(range(k)) - set(counts))
    beyond = sorted(set(counts) - set(range(k)))
    faults = [
        f"{kind} {found}"
        for kind, found in (("missing", missing), ("doubled", doubled), ("beyond k", beyond))
        if found
    ]
    if faults:
        raise DataError(
            f"{path}: problem {problem_id!r}: found {len(sample_ids)} samples, expected k = {k} "
            f"(sample ids {'; '.join(faults)}); remove the file and sample again"
        )


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table, whole or not at all."""
    with atomic_file(path) as unfinished:
        pq.write_table(table, unfinished)
