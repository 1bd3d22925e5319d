"""The sqlite file of a store: made whole or not at all, and right again after a move.

MLflow makes its tables in place, in some seven seconds, and takes what a killed process has left of
them for a store ever after. So they are made in a file beside, which is renamed once. Its addresses
of artifacts are absolute: those of the store in the results folder follow that folder.
All functions expect that the caller holds the store's lock.
"""

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

ARTIFACTS = "mlflow-artifacts"  # the folder beside the store that holds a folder each experiment
BESIDE = ".making"
# What the making of the tables itself writes into them.
_OF_THE_MAKING = {"alembic_version", "workspaces"}
# Where addresses of artifacts stand; each of these tables has a column `experiment_id`.
_ADDRESSES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
)
_OF_RUN = "run_uuid IN (SELECT run_uuid FROM runs WHERE experiment_id = :experiment)"


def make_tables(file: Path) -> None:
    """Make the store where there is none, or where one was left half-made; no other is touched."""
    if file.exists() and not is_half_made(file):
        return
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # slow

    if file.exists():
        print(f"{file} was left half-made, with nothing in it: it is made again", flush=True)
    beside = file.with_name(file.name + BESIDE)
    for left in (beside, _journal(beside)):
        left.unlink(missing_ok=True)
    store = SqlAlchemyStore(f"sqlite:///{beside}", (file.parent / ARTIFACTS).as_uri())
    store.engine.dispose()
    _journal(file).unlink(missing_ok=True)  # sqlite would play it into the new file
    beside.replace(file)


def is_half_made(file: Path) -> bool:
    """Whether a store was never whole: the last that is made is the experiment "Default", so that
    no table of a half-made one has a row. What cannot be read is not half-made.
    """
    try:
        with closing(sqlite3.connect(file)) as database:
            return not any(
                database.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone()
                for table in _tables(database) - _OF_THE_MAKING
            )
    except sqlite3.Error:
        return False


def _journal(file: Path) -> Path:
    return file.with_name(f"{file.name}-journal")


def _tables(database: sqlite3.Connection) -> set[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows}


def follow_move(file: Path) -> None:
    """Have all addresses that point into the folder where the store lay before point into the one
    where it lies: artifacts, and the tags by which runs name their results. All or nothing.
    """
    place = (file.parent / ARTIFACTS).as_uri()
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        query = "SELECT experiment_id, artifact_location FROM experiments"
        moved = [(e, old) for e, old in database.execute(query) if _has_moved(old, place)]
        if not moved:
            return
        with database:
            database.execute("BEGIN IMMEDIATE")
            for experiment, old in moved:
                _move_experiment(database, experiment, old.rpartition(f"/{ARTIFACTS}/")[0], file)


def _has_moved(location: str | None, place: str) -> bool:
    """Whether an experiment's artifacts are in a folder like ours (`place`), but another."""
    parts = (location or "").rsplit("/", 2)
    return len(parts) == 3 and parts[1] == ARTIFACTS and "/".join(parts[:2]) != place


def _move_experiment(
    database: sqlite3.Connection, experiment: int, old_uri: str, file: Path
) -> None:
    """Correct one experiment; `old_uri` is the folder in which the store lay before."""
    uris = {"old": old_uri, "new": file.parent.as_uri(), "experiment": experiment}
    old_path = unquote(urlsplit(old_uri).path)
    paths = {"old": old_path, "new": str(file.parent), "experiment": experiment}
    own = "experiment_id = :experiment"
    for table, column in _ADDRESSES:
        database.execute(_moved(table, column, own), uris)
    in_tags = f"{_OF_RUN} AND key IN ('results', 'model_path')"
    database.execute(_moved("tags", "value", in_tags), paths)
    database.create_function("moved_note", 3, moved_note)
    notes = f"{_OF_RUN} AND key = 'mlflow.note.content'"
    database.execute(f"UPDATE tags SET value = moved_note(value, :old, :new) WHERE {notes}", paths)
    sources = "dataset_source = replace(dataset_source, :old || '/', :new || '/')"
    database.execute(f"UPDATE datasets SET {sources} WHERE {own}", uris)


def moved_note(text: str, old: str, new: str) -> str:
    """A note of `runs.note` with another folder of results; what a person added to it stays."""
    lines = text.replace(f"`{old}/", f"`{new}/").split("\n")
    return "\n".join(_moved_command(line, old, new) for line in lines)


def _moved_command(line: str, old: str, new: str) -> str:
    try:
        words = shlex.split(line) if line.startswith("snakemake ") else []
    except ValueError:  # someone has changed it
        words = []
    moved = [
        word.replace(old, new, 1)
        if word == f"results={old}" or word.startswith(f"{old}/")
        else word
        for word in words
    ]
    return line if moved == words else shlex.join(moved)


def _moved(table: str, column: str, where: str) -> str:
    """SQL that puts :new for :old at the start of a column, unless :new stands there already."""
    return (
        f"UPDATE {table} SET {column} = :new || substr({column}, length(:old) + 1) WHERE {where} "
        f"AND substr({column}, 1, length(:old) + 1) = :old || '/' "
        f"AND substr({column}, 1, length(:new) + 1) != :new || '/'"
    )
