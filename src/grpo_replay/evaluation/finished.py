"""Answers to one benchmark that a run has finished: a later one keeps them, or draws only what they
lack, as long as they belong to its model, problems and settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from grpo_replay.evaluation.sample_files import Row, write_samples
from grpo_replay.results.kept import Record, keep, kept_file, kept_record

ChunkSeeds = list[list[int]]  # first sample id and seed of each chunk


@dataclass(frozen=True)
class Finished:
    """The finished answers that an output of `sample_answers` shows; `record` is how they were
    made, and how many there are to a problem.
    """

    output: Path
    record: Record

    @property
    def k(self) -> int:
        """Samples a problem."""
        return self.record["k"]

    @property
    def seeds(self) -> ChunkSeeds:
        """The seeds of its chunks, which no other chunk of the cell may have."""
        return self.record["seeds"]

    def rows(self, k: int) -> list[Row]:
        """The first k samples of each problem, or all that there are."""
        rows = pq.read_table(kept_file(self.output, self.record)).to_pylist()
        return [row for row in rows if row["sample_id"] < k]

    def seconds(self, k: int) -> float | None:
        """What the first k samples of each problem took, as far as it was recorded."""
        seconds = self.record["seconds"]
        return seconds and seconds * min(k, self.k) / self.k


def find_finished(output: Path, made_by: Record, k: int) -> Finished | None:
    """The finished answers behind an output; None where there are none that belong.

    `made_by` holds what decides them (`decided_by`), and the engine's version and number format
    (`engine`): those alone are no reason to draw again, but samples are added under the same only.
    """
    record = kept_record(output)
    if record is None or record["decided_by"] != made_by["decided_by"]:
        return None
    if record["k"] < k and record["engine"] != made_by["engine"]:
        return None
    return Finished(output, record)


def keep_samples(
    output: Path,
    problem_ids: Sequence[str],
    k: int,
    made_by: Record,
    drawn: Sequence[Row],
    seeds: ChunkSeeds,
    finished: Finished | None,
) -> Finished:
    """Keep k samples of each problem: those that are finished, and those that were drawn now.

    Raises:
        DataError: naming the first problem that has other than k samples.
    """
    seconds = [sample.get("seconds") for sample in drawn]
    rows = list(drawn)
    if finished:
        seconds.append(finished.seconds(k))
        rows += finished.rows(k)
        seeds = [*(pair for pair in finished.seeds if pair[0] < k), *seeds]
    record = {
        **made_by,
        "k": k,
        "seeds": seeds,
        "seconds": None if None in seconds else sum(seconds),
    }

    def write(file: Path) -> Record:
        return {"equal_texts": write_samples(file, output.stem, problem_ids, k, rows)}

    return Finished(output, keep(output, record, write))
