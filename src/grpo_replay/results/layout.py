"""Where everything lies below a study's folder of results: each path is spelt here, and nowhere
else.

Rules write a wildcard in the place of a name, so `StudyFiles("results/nano").cell("{cell}").scores`
is an output of a rule as well as a file to read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"  # beside the samples that it describes


@dataclass(frozen=True)
class CellFiles:
    """The files of one cell; `study` is the study's folder, `name` the cell's id."""

    study: Path
    name: str

    @classmethod
    def of(cls, folder: Path) -> "CellFiles":
        """The files of the cell whose folder this is."""
        return cls(folder.parents[2], "/".join(folder.parts[-2:]))

    @property
    def folder(self) -> Path:
        """The cell's folder."""
        return StudyFiles(self.study).cells / self.name

    @property
    def settings(self) -> Path:
        """Every setting that decides the cell's scores."""
        return self.folder / "cell.json"

    @property
    def scores(self) -> Path:
        """Scores by benchmark, and those of every problem."""
        return self.folder / "scores.json"

    @property
    def model(self) -> Path:
        """The trained model's folder."""
        return self.folder / "model"

    @property
    def training(self) -> Path:
        """The folder of what a training leaves beside its model."""
        return self.folder / "train"

    @property
    def metrics(self) -> Path:
        """One JSON line a training step; a link to the live file until the training has ended."""
        return self.training / "metrics.jsonl"

    @property
    def training_settings(self) -> Path:
        """The settings that the training was made under."""
        return self.training / "settings.json"

    @property
    def trained_rows(self) -> Path:
        """One row for every rollout that a step trained on."""
        return self.training / "replay.parquet"

    @property
    def rollouts(self) -> Path:
        """One row for every rollout that was sampled, with its text."""
        return self.training / "rollouts.parquet"

    @property
    def manifest(self) -> Path:
        """What drew the samples: model, settings, digests."""
        return self.folder / "samples" / MANIFEST

    def samples(self, benchmark: str) -> Path:
        """The answers to a benchmark."""
        return self.folder / "samples" / f"{benchmark}.parquet"

    def grades(self, benchmark: str) -> Path:
        """The verdicts on these answers."""
        return self.folder / "grades" / f"{benchmark}.parquet"

    @property
    def tracking(self) -> Path:
        """The folder of what only tracking needs; no rule's output, so Snakemake leaves it."""
        return self.study / "tracking" / self.name

    @property
    def origin(self) -> Path:
        """Commit, packages and hardware of the process that trained."""
        return self.tracking / "origin.json"

    @property
    def system_metrics(self) -> Path:
        """What the machine did meanwhile, a point a line."""
        return self.tracking / "system_metrics.jsonl"

    @property
    def training_checkpoints(self) -> Path:
        """Checkpoints lie outside the rule's outputs, which Snakemake deletes when a job fails."""
        return self.study / "checkpoints" / "training" / self.name

    @property
    def sampling_checkpoints(self) -> Path:
        """Answers that are drawn already; outside the outputs as well."""
        return self.study / "checkpoints" / "samples" / self.name

    def answers(self, benchmarks: Iterable[str]) -> list[Path]:
        """What a cell keeps beside its scores, trained or not."""
        names = list(benchmarks)
        kept = [*map(self.samples, names), *map(self.grades, names)]
        return [*kept, self.manifest, self.settings]

    def training_outputs(self) -> list[Path]:
        """What a training leaves."""
        records = [self.metrics, self.trained_rows, self.rollouts, self.training_settings]
        return [self.model, *records]


@dataclass(frozen=True)
class StudyFiles:
    """The files of a study; `folder` is `results/<study>`."""

    folder: Path

    @property
    def cells(self) -> Path:
        """The folder of all cells."""
        return self.folder / "cells"

    def cell(self, name: str) -> CellFiles:
        """The files of a cell."""
        return CellFiles(self.folder, name)

    def begun_cells(self) -> list[str]:
        """The cells whose settings are known, in the order of their names."""
        pattern = self.cell("*/*")
        found = {
            path.parent.relative_to(self.folder / kind).as_posix()
            for kind, file in (("cells", pattern.settings), ("tracking", pattern.origin))
            for path in self.folder.glob(str(file.relative_to(self.folder)))
        }
        return sorted(found)

    @property
    def scores(self) -> Path:
        """One row a cell x benchmark."""
        return self.folder / "scores.parquet"

    @property
    def tables(self) -> Path:
        """The folder of tables."""
        return self.folder / "tables"

    @property
    def figures(self) -> Path:
        """The folder of figures."""
        return self.folder / "figures"

    @property
    def logs(self) -> Path:
        """The folder of the jobs' own output, a folder a rule."""
        return self.folder / "logs"

    def log(self, rule: str, job: str = "") -> Path:
        """The log of a rule's job, named by its wildcard; of the rule where it has one job."""
        return self.logs / rule / f"{job}.log" if job else self.logs / f"{rule}.log"

    @property
    def problems(self) -> Path:
        """The training problems."""
        return self.folder / "data" / "problems.jsonl"

    def selected_problems(self, scale: str) -> Path:
        """Those that a first pass of a scale's model chose."""
        return self.folder / "data" / scale / "selected.jsonl"

    def benchmark(self, name: str) -> Path:
        """The problems of a benchmark."""
        return self.folder / "data" / "benchmarks" / f"{name}.jsonl"

    def base_model(self, scale: str) -> Path:
        """The folder of a scale's model before anything of this study has trained it."""
        return self.folder / "base_models" / scale

    def warm_started_model(self, scale: str) -> Path:
        """The folder of that model after the supervised steps of a warm start."""
        return self.folder / "warm_start" / scale

    @property
    def tracking_made(self) -> Path:
        """Says that the MLflow store is made."""
        return self.folder / "tracking.txt"

    @property
    def tracked(self) -> Path:
        """Says that MLflow shows everything, as far as its store was in reach."""
        return self.folder / "tracked.txt"

    @property
    def tracking_misses(self) -> Path:
        """How often the MLflow store was out of reach at the end of a run."""
        return self.folder / "tracking" / "misses.txt"
