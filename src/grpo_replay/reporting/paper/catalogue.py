"""Every table of a study by name: its own, and the paper's."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from grpo_replay.reporting.names import PUBLISHED_CHECK
from grpo_replay.reporting.paper import (
    accuracy,
    consistency,
    efficiency,
    hyperparameters,
    lengths,
    ranking,
    training,
)
from grpo_replay.reporting.paper.comparison import compare
from grpo_replay.reporting.tables.catalogue import OWN_TABLES, write_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.reporting.tables.table import Table
from grpo_replay.results.scores import read_scores
from grpo_replay.study.config import Study

PAPER_TABLES = (
    *(accuracy.table01, accuracy.table02, accuracy.table03, accuracy.table04, efficiency.table05),
    *(lengths.table06, hyperparameters.table07, training.table08, accuracy.table09),
    *(efficiency.table10, lengths.table11, training.table12, ranking.table13),
)


def paper_tables(source: Source) -> Iterator[tuple[str, Table]]:
    """Tables 1 to 13 of the paper, each but 7 (which holds both) also beside the paper's numbers,
    and what the paper's numbers give when recomputed.
    """
    for build in PAPER_TABLES:
        name, table = build.__name__, build(source)
        yield name, table
        if build is not hyperparameters.table07:
            yield f"{name}_comparison", compare(source.study, name, table)
    yield PUBLISHED_CHECK, consistency.check_table()


def write_tables(study: Study, results: Path, folder: Path, config: str) -> None:
    """Write the study's own tables and the paper's into a folder, as csv, md, tex and html.

    `results` is the study's folder, with its scores.parquet; `config` is what a command that makes
    missing cells has behind `--config`.
    """
    source = Source(study, read_scores(results), results, config)
    own = ((name, build(source)) for name, build in OWN_TABLES.items())
    for name, table in chain(own, paper_tables(source)):
        write_table(table, folder / name)
