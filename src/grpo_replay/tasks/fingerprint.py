"""What came from outside, written down when it first came and compared ever after."""

from pathlib import Path
from typing import Any

from grpo_replay.errors import GrpoReplayError
from grpo_replay.files import read_json, write_json


def check_fingerprint(
    record: Path, source: str, found: dict[str, Any], error: type[GrpoReplayError]
) -> None:
    """Compare what a source gave with its record; where there is none of that source, write it.

    Args:
        record: the JSON file that keeps it.
        source: name and revision: another one of a study that was edited is a first time again.
        found: fingerprints by name, JSON-like.
        error: what to raise.

    Raises:
        error: with both values of every fingerprint that differs.
        DataError: where the record is torn.
    """
    known = read_json(record) if record.is_file() else {}
    if known.pop("source", None) != source:
        write_json(record, {"source": source, **found})
        return
    changed = [
        f"{name}: {known.get(name)} in the record, {found.get(name)} now"
        for name in sorted(known.keys() | found.keys())
        if known.get(name) != found.get(name)
    ]
    if changed:
        raise error(
            f"{source} has changed ({'; '.join(changed)}): get the recorded content again, or "
            f"remove {record} if the new one is meant"
        )
