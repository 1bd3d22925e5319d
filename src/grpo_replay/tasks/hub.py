"""Problem sets and models from the Hub, at pinned commits: the only import of its client.

They go into the client's cache (`HF_HUB_CACHE`, which the study's `hub_cache` sets).
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_replay.errors import DataError
from grpo_replay.files import file_digest
from grpo_replay.tasks.fingerprint import check_fingerprint

if TYPE_CHECKING:
    from grpo_replay.tasks.config import DataFile, HubFile


def download_problems(source: "DataFile", record: Path) -> list[dict[str, Any]]:
    """The rows of a Hub file with the string fields id, problem, answer, and their other columns.

    An answer that is missing comes back as an empty one. `record` keeps the file's fingerprint
    (rows, column types, SHA-256): written by the first download, compared by every later one.

    Raises:
        DataError: where the file cannot be had, is not of this form, or has changed.
    """
    hub = source.hub
    assert hub, "a source without a Hub file has a local one"
    place = f"{hub.repo}@{hub.revision[:8]}/{hub.file}"
    path = _download(hub, source.file)
    rows = _read_rows(path, place)
    check_fingerprint(record, place, {"sha256": file_digest(path), **_shape(rows)}, DataError)
    columns = {"id": hub.id_column, "problem": "problem", "answer": "answer"}
    return [
        {
            **row,
            "id": str(number),
            **{
                field: _text(row, column, f"{place}, row {number}")
                for field, column in columns.items()
                if column
            },
        }
        for number, row in enumerate(rows)
    ]


def _download(hub: "HubFile", name: str) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(hub.repo, hub.file, repo_type="dataset", revision=hub.revision))
    except _failures() as error:
        raise DataError(
            f"{hub.repo}/{hub.file} at {hub.revision} cannot be had from the Hub "
            f"({type(error).__name__}): put its problems as {name} (JSON Lines: id, problem, "
            "answer) into a folder and name that in GRPO_REPLAY_DATA"
        ) from error


def _failures() -> tuple[type[Exception], ...]:
    # Imported here: a study of local files, and the check before every run, do without.
    from httpx import HTTPError
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    return (HfHubHTTPError, LocalEntryNotFoundError, OSError, HTTPError)


def _read_rows(path: Path, place: str) -> list[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows = pq.read_table(path).to_pylist()
        elif path.suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").split("\n")
            rows = [json.loads(line) for line in lines if line.strip()]
        else:
            rows = json.loads(path.read_text(encoding="utf-8"))
    # pyarrow calls a torn table OSError; too deep a nesting is a RecursionError.
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{place}: cannot be read ({error})") from error
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{place}: found no rows; expected a list of problems")
    return rows


def _shape(rows: list[dict[str, Any]]) -> dict[str, Any]:
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for column, value in row.items():
            kinds.setdefault(column, set()).add(type(value).__name__)
    return {"rows": len(rows), "columns": {c: sorted(k) for c, k in sorted(kinds.items())}}


def _text(row: dict[str, Any], column: str, place: str) -> str:
    """A cell as text, empty where there is none: the checks of problems and answers count those."""
    if column not in row:
        raise DataError(f"{place}: no column {column!r}; there are: {', '.join(row)}")
    value = row[column]
    if value is None:
        return ""
    # An integer is exact as text; of a float no one knows how the answer was meant to be written.
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).strip()
    raise DataError(
        f"{place}: column {column!r} is {value!r}, expected text or an integer: take a file whose "
        "answers are text, or put the problems into a local file (GRPO_REPLAY_DATA)"
    )
