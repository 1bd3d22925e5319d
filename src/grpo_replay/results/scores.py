"""From graded samples to scores: one `scores.json` a cell, one `scores.parquet` a study.

Every table and figure reads `scores.parquet`, which therefore also carries the outcome of every
problem: paired tests and intervals of means need them. A score that belongs to another
configuration is left out, never shown.
"""

import json
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from grpo_replay.errors import DataError
from grpo_replay.files import atomic_file
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.results.progress import current_scores
from grpo_replay.statistics.evaluation_metrics import EVALUATION_METRICS
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import Cell, expand
from grpo_replay.study.config import Study
from grpo_replay.tasks.config import Benchmark


def schema() -> pa.Schema:
    """The columns of `scores.parquet`."""
    return pa.schema(
        [
            ("study", pa.string()),
            ("cell", pa.string()),
            ("scale", pa.string()),
            ("method", pa.string()),
            ("composition", pa.string()),
            ("unit", pa.string()),
            ("priority", pa.string()),
            ("tau_max", pa.int64()),
            ("replay_ratio", pa.float64()),
            ("alpha", pa.float64()),
            ("varied", pa.string()),  # JSON: all that the cell varies from its method, by path
            ("seed", pa.int64()),
            ("benchmark", pa.string()),
            ("n_problems", pa.int64()),
            ("k", pa.int64()),
            *((name, pa.float64()) for metric in EVALUATION_METRICS for name in metric.columns),
            ("problem_ids", pa.list_(pa.string())),
            ("problem_accuracy", pa.list_(pa.float64())),
            ("problem_length", pa.list_(pa.float64())),
        ]
    )


SCHEMA = schema()


def collect_scores(study: Study, results: Path, output: Path) -> None:
    """Gather the scores of every finished cell of a study into one row a cell x benchmark.

    `results` is the study's folder of results. A cell without `scores.json`, or whose scores belong
    to another configuration than the study's present one, is left out with a warning on stderr.
    """
    rows: list[dict] = []
    for cell in expand(study).values():
        scores = current_scores(study, cell, results)
        if scores is None:
            _left_out(cell, CellFiles(results, cell.cell).scores)
        else:
            varied = json.dumps(cell.varied, sort_keys=True)
            fields = {"study": study.study, **cell.model_dump(), **axes_of(cell)._asdict()}
            fields["varied"] = varied
            rows += [
                {**fields, "benchmark": name, **scores["benchmarks"][name]}
                for name in study.benchmarks
            ]
    with atomic_file(output) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), temporary)


def _left_out(cell: Cell, path: Path) -> None:
    stale = f"{path} belongs to another configuration of this cell"
    reason = stale if path.is_file() else "not finished"
    print(f"warning: cell {cell.cell} is left out of the scores: {reason}", file=sys.stderr)


def problem_count(benchmark: Benchmark) -> int:
    """How many problems of a benchmark a study uses."""
    return min(benchmark.n_problems, benchmark.limit or benchmark.n_problems)


def read_scores(results: Path) -> pd.DataFrame:
    """Read a study's `scores.parquet`: a row a cell x benchmark, list columns as numpy arrays.

    Raises:
        DataError: a file of an earlier version, which lacks a column.
    """
    path = StudyFiles(results).scores
    scores = pd.read_parquet(path)
    if lacking := [name for name in SCHEMA.names if name not in scores.columns]:
        raise DataError(
            f"{path}: has no {', '.join(lacking)}, as an earlier version wrote it; make it again: "
            "snakemake --cores 1 --forcerun collect_scores"
        )
    return scores
