"""The paper's tables by name."""

from pathlib import Path

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
from grpo_replay.reporting.tables.catalogue import write_table
from grpo_replay.reporting.tables.source import Source
from grpo_replay.results.scores import read_scores
from grpo_replay.study.config import Study

PAPER_TABLES = (
    *(accuracy.table01, accuracy.table02, accuracy.table03, accuracy.table04, efficiency.table05),
    *(lengths.table06, hyperparameters.table07, training.table08, accuracy.table09),
    *(efficiency.table10, lengths.table11, training.table12, ranking.table13),
)


def paper_tables(study: Study, results: Path, output_stem: Path, config: str) -> None:
    """Write Tables 1 to 13 of the paper, each but 7 (which holds both) also beside the paper's
    numbers (`table01_comparison`), and what the paper's numbers give when recomputed
    (`published_check`). `output_stem` is that of Table 1; the others lie beside it.
    """
    folder = output_stem.parent
    source = Source(study, read_scores(results), results, config)
    for build in PAPER_TABLES:
        name, table = build.__name__, build(source)
        write_table(table, folder / name)
        if build is not hyperparameters.table07:
            write_table(compare(study, name, table), folder / f"{name}_comparison")
    write_table(consistency.check_table(), folder / "published_check")
