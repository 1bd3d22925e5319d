"""What the results folder holds of one cell, as far as MLflow shows it. Reads files only.

A training is known by its first record, whose timings are its own: a run that continues has it too,
a run that starts anew has another.
"""

import importlib.metadata
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from grpo_replay.files import (
    digest,
    file_digest,
    folder_digest,
    read_appended,
    read_json,
    write_json,
)
from grpo_replay.machine import provenance
from grpo_replay.machine.gpus import machine_gpus
from grpo_replay.machine.surroundings import recorded
from grpo_replay.results.layout import CellFiles, StudyFiles
from grpo_replay.results.training_metrics import read_records
from grpo_replay.study.cells import Cell, config_hash
from grpo_replay.tracking.series import TRAINING_MARK, Point, training_points

ALIVE_SECONDS = 2.0  # a training waits so long for its lock, which a look at it holds for a moment
STAGES = ("train_policy", "sample_answers", "grade_answers")


@dataclass(frozen=True)
class CellResults:
    """The files of a cell; `study_folder` is the study's folder of results."""

    study_folder: Path
    name: str

    @property
    def files(self) -> CellFiles:
        """Where each of them lies."""
        return CellFiles(self.study_folder, self.name)

    @cached_property
    def resolved(self) -> dict | None:
        """All settings (`cell.json`)."""
        return _read(self.files.settings)

    @property
    def origin(self) -> dict:
        """Where the results were made: settings of the training, commit, hardware, packages."""
        return _read(self.files.origin) or {}

    @property
    def settings(self) -> dict:
        """The resolved settings, or those of the training where there are no others yet."""
        return self.resolved or self.origin["settings"]

    @property
    def cell(self) -> Cell:
        """The cell."""
        return Cell(**self.settings["cell"])

    @cached_property
    def records(self) -> list[dict]:
        """The training steps so far."""
        return list(read_records(self.study_folder, self.cell).values())

    @property
    def training_id(self) -> str:
        """Which training this is; "none" before its first record and for base models."""
        return training_id(self.records[0]) if self.records else "none"

    @property
    def trained(self) -> bool:
        """Whether the training has ended; until then its metrics are a link."""
        path = self.files.metrics
        return path.is_file() and not path.is_symlink() and self.files.model.is_dir()

    @cached_property
    def scores(self) -> dict | None:
        """The scores, if they are those of the present training and settings."""
        scores = _read(self.files.scores)
        if scores is None or self.resolved is None:
            return None
        if scores["config_hash"] != config_hash(self.resolved):
            return None
        return scores if not self.cell.trained or self._answers_are_new() else None

    def _answers_are_new(self) -> bool:
        """Whether the answers are those of the model that is there."""
        manifest, metrics = self.files.manifest, self.files.metrics
        if not self.trained or not manifest.is_file():
            return False
        if manifest.stat().st_mtime >= metrics.stat().st_mtime:
            return True
        # Copied results may have lost their times.
        return _read(manifest)["model_sha256"] == folder_digest(self.files.model)

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to show but settings."""
        return bool(self.scores or self.records or (self.origin and self.cell.trained))

    def points(self) -> list[Point]:
        """The training steps with their times, from the file's."""
        if not self.records:
            return []
        end = self.files.metrics.stat().st_mtime
        return training_points(self.records, end)

    @property
    def start(self) -> int | None:
        """When the first step began, None without steps; milliseconds since 1970, as `end`."""
        points = self.points()
        return points[0].time - int(1000 * points[0].metrics[TRAINING_MARK]) if points else None

    @property
    def end(self) -> int | None:
        """When the last step ended, None without steps."""
        points = self.points()
        return points[-1].time if points else None

    def system_points(self) -> list[Point]:
        """What the machine did meanwhile."""
        return [Point(**row) for row in read_appended(self.files.system_metrics)]

    def digest(self) -> str:
        """The SHA-256 of a scored cell's results: settings, metrics, answers, grades, scores."""
        files = [self.files.settings, self.files.metrics, self.files.scores]
        files += sorted(self.files.samples("*").parent.glob("*.parquet"))
        files += sorted(self.files.grades("*").parent.glob("*.parquet"))
        return digest([[path.name, file_digest(path)] for path in files if path.is_file()])

    def problem_files(self) -> dict[str, Path]:
        """The problems of training and of each benchmark, as used."""
        study = StudyFiles(self.study_folder)
        chosen = study.selected_problems(self.cell.scale)
        files = {"training": chosen if chosen.is_file() else study.problems}
        if not self.cell.trained:
            files = {}
        names = self.resolved["benchmarks"] if self.resolved else []
        files |= {name: study.benchmark(name) for name in names}
        return {name: path for name, path in files.items() if path.is_file()}

    def logs(self) -> list[tuple[str, Path]]:
        """The logs of the cell's jobs, by rule."""
        study = StudyFiles(self.study_folder)
        found = [(stage, study.log(stage, self.name)) for stage in STAGES]
        return [(stage, path) for stage, path in found if path.is_file()]

    def note_origin(self, settings: dict) -> None:
        """Write down what only the process that makes the results knows."""
        # Each look at `metadata` reads a file again.
        found = [package.metadata for package in importlib.metadata.distributions()]
        packages = {metadata["Name"]: metadata["Version"] for metadata in found}
        origin = {
            "settings": settings,
            "commit": provenance.commit(),
            "hardware": provenance.hardware([gpu.name for gpu in machine_gpus()]),
            "variables": recorded(os.environ),
            "environment": sorted(f"{n}=={v}" for n, v in packages.items()),
        }
        write_json(self.files.origin, origin)

    @contextmanager
    def alive(self) -> Iterator[None]:
        """While this lasts, others see that the cell trains; a killed process lets go of it."""
        lock = FileLock(self.files.tracking / "alive.lock", timeout=ALIVE_SECONDS)
        self.files.tracking.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except (Timeout, OSError, NotImplementedError) as error:  # a view must not stop a training
            print(f"{lock.lock_file} cannot be held ({error})", flush=True)
        try:
            yield
        finally:
            lock.release()

    @property
    def is_alive(self) -> bool:
        """Whether a process trains this cell now."""
        lock = FileLock(self.files.tracking / "alive.lock", timeout=0)
        if not Path(lock.lock_file).exists():
            return False
        try:
            with lock:
                return False
        except Timeout:
            return True


def all_cells(study_folder: Path) -> list[CellResults]:
    """Every cell whose settings are known, in the order of their names."""
    return [CellResults(study_folder, name) for name in StudyFiles(study_folder).begun_cells()]


def training_id(record: dict) -> str:
    """A training's name, from its first record."""
    return digest(record)[:16]


def _read(path: Path) -> Any:
    return read_json(path) if path.is_file() else None
