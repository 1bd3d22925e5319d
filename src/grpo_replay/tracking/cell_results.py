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

from grpo_replay import provenance
from grpo_replay.devices import machine_gpus
from grpo_replay.files import (
    digest,
    file_digest,
    folder_digest,
    read_appended,
    read_json,
    write_json,
)
from grpo_replay.grid import Cell, config_hash
from grpo_replay.reporting.training_metrics import read_records
from grpo_replay.surroundings import recorded
from grpo_replay.tracking.series import TRAINING_MARK, Point, training_points

ALIVE_SECONDS = 2.0  # a training waits so long for its lock, which a look at it holds for a moment
STAGES = ("train_policy", "sample_answers", "grade_answers")


@dataclass(frozen=True)
class CellResults:
    """The files of a cell; `study_folder` is the study's folder of results."""

    study_folder: Path
    name: str

    @property
    def folder(self) -> Path:
        """The cell's own folder."""
        return self.study_folder / "cells" / self.name

    @property
    def own(self) -> Path:
        """The folder of what only tracking needs; no rule's output, so Snakemake leaves it."""
        return self.study_folder / "tracking" / self.name

    @cached_property
    def resolved(self) -> dict | None:
        """All settings (`cell.json`)."""
        return _read(self.folder / "cell.json")

    @property
    def origin(self) -> dict:
        """Where the results were made: settings of the training, commit, hardware, packages."""
        return _read(self.own / "origin.json") or {}

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
        path = self.folder / "train" / "metrics.jsonl"
        return path.is_file() and not path.is_symlink() and (self.folder / "model").is_dir()

    @cached_property
    def scores(self) -> dict | None:
        """The scores, if they are those of the present training and settings."""
        scores = _read(self.folder / "scores.json")
        if scores is None or self.resolved is None:
            return None
        if scores["config_hash"] != config_hash(self.resolved):
            return None
        return scores if not self.cell.trained or self._answers_are_new() else None

    def _answers_are_new(self) -> bool:
        """Whether the answers are those of the model that is there."""
        manifest = self.folder / "samples" / "manifest.json"
        metrics = self.folder / "train" / "metrics.jsonl"
        if not self.trained or not manifest.is_file():
            return False
        if manifest.stat().st_mtime >= metrics.stat().st_mtime:
            return True
        # Copied results may have lost their times.
        return _read(manifest)["model_sha256"] == folder_digest(self.folder / "model")

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to show but settings."""
        return bool(self.scores or self.records or (self.origin and self.cell.trained))

    def points(self) -> list[Point]:
        """The training steps with their times, from the file's."""
        if not self.records:
            return []
        end = (self.folder / "train" / "metrics.jsonl").stat().st_mtime
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

    @property
    def system_file(self) -> Path:
        """What the machine did meanwhile, a point a line."""
        return self.own / "system_metrics.jsonl"

    def system_points(self) -> list[Point]:
        """The points of that file."""
        return [Point(**row) for row in read_appended(self.system_file)]

    def digest(self) -> str:
        """The SHA-256 of a scored cell's results: settings, metrics, answers, grades, scores."""
        files = [self.folder / name for name in ("cell.json", "train/metrics.jsonl", "scores.json")]
        files += sorted(self.folder.glob("samples/*.parquet"))
        files += sorted(self.folder.glob("grades/*.parquet"))
        return digest([[path.name, file_digest(path)] for path in files if path.is_file()])

    def problem_files(self) -> dict[str, Path]:
        """The problems of training and of each benchmark, as used."""
        data = self.study_folder / "data"
        chosen = data / self.cell.scale / "selected.jsonl"
        files = {"training": chosen if chosen.is_file() else data / "problems.jsonl"}
        if not self.cell.trained:
            files = {}
        names = self.resolved["benchmarks"] if self.resolved else []
        files |= {name: data / "benchmarks" / f"{name}.jsonl" for name in names}
        return {name: path for name, path in files.items() if path.is_file()}

    def logs(self) -> list[tuple[str, Path]]:
        """The logs of the cell's jobs, by rule."""
        logs = self.study_folder / "logs"
        found = [(stage, logs / stage / f"{self.name}.log") for stage in STAGES]
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
        write_json(self.own / "origin.json", origin)

    @contextmanager
    def alive(self) -> Iterator[None]:
        """While this lasts, others see that the cell trains; a killed process lets go of it."""
        lock = FileLock(self.own / "alive.lock", timeout=ALIVE_SECONDS)
        self.own.mkdir(parents=True, exist_ok=True)
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
        lock = FileLock(self.own / "alive.lock", timeout=0)
        if not Path(lock.lock_file).exists():
            return False
        try:
            with lock:
                return False
        except Timeout:
            return True


def all_cells(study_folder: Path) -> list[CellResults]:
    """Every cell whose settings are known, in the order of their names."""
    found = {
        path.parent.relative_to(study_folder / kind).as_posix()
        for kind, file in (("cells", "cell.json"), ("tracking", "origin.json"))
        for path in (study_folder / kind).glob(f"*/*/{file}")
    }
    return [CellResults(study_folder, name) for name in sorted(found)]


def training_id(record: dict) -> str:
    """A training's name, from its first record."""
    return digest(record)[:16]


def _read(path: Path) -> Any:
    return read_json(path) if path.is_file() else None
