"""Read `train/replay.parquet` of finished cells: one row for every rollout that was trained on."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from grpo_replay.results.layout import CellFiles
from grpo_replay.study.cells import Cell

_COLUMNS = ["step", "age", "rollout_id", "replayed"]


def trained_rows(results: Path, cells: Iterable[Cell]) -> pd.DataFrame:
    """The rows of some cells, with a column `cell`; empty where none has a file.

    Columns: step, age (steps), rollout_id, replayed, cell. A rollout is one of its own cell: the
    ids of two cells repeat.
    """
    frames = []
    for cell in cells:
        path = CellFiles(results, cell.cell).trained_rows
        if path.is_file():
            frames.append(pd.read_parquet(path, columns=_COLUMNS).assign(cell=cell.cell))
    return pd.concat(frames) if frames else pd.DataFrame(columns=[*_COLUMNS, "cell"])


def age_shares(rows: pd.DataFrame) -> pd.Series:
    """Percent of the rows trained on by age in steps, 0 (fresh) included; ages rise without gap."""
    counts = rows["age"].astype(int).value_counts()
    every_age = range(int(counts.index.max()) + 1) if len(counts) else range(0)
    return 100.0 * counts.reindex(every_age, fill_value=0) / max(len(rows), 1)


def reuse_counts(rows: pd.DataFrame) -> pd.Series:
    """How often each rollout was replayed, most often first; those never replayed are not in it.

    The index is (cell, rollout_id). Equal counts stand in the order of the index, so that a choice
    among them repeats.
    """
    counts = rows[rows["replayed"].astype(bool)].groupby(["cell", "rollout_id"]).size()
    return counts.sort_index().sort_values(ascending=False, kind="stable")
