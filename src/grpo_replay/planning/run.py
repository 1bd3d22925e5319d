"""One run of the workflow: a study, its cells, which of them are chosen, where everything lies, and
what is refused before a job starts. What needs Snakemake's own objects is in common.smk.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from grpo_replay.errors import ConfigError, listing, suggestion
from grpo_replay.machine import gpus
from grpo_replay.planning import gpu_memory, job_limits, messages
from grpo_replay.planning.preflight import check_conda, check_inputs
from grpo_replay.results import progress
from grpo_replay.results.layout import StudyFiles
from grpo_replay.study.cells import Cell, expand
from grpo_replay.study.config import Scale, Study
from grpo_replay.study.file import load_study
from grpo_replay.study.settings import config_text, find_study, tracking_uri
from grpo_replay.tasks.config import Benchmark
from grpo_replay.training.rollout_server import server_address

Known = TypeVar("Known")


@dataclass(frozen=True)
class Declared:
    """What `--resources` says of this machine: how many GPUs a run may use, and the memory of each
    in GB; 0 where it says nothing. `local`: the jobs run on this machine, not on a cluster.
    """

    gpus: int
    gpu_gb: float
    local: bool

    def memory(self) -> gpu_memory.GpuMemory | None:
        """The memory of each GPU, as declared, else as this machine's driver tells it; None where
        neither says, or a cluster's GPUs do the work.
        """
        if self.gpu_gb:
            return gpu_memory.GpuMemory(1e9 * self.gpu_gb, "declared by --resources gpu_gb")
        there = gpus.offered_memory() if self.local else None
        return there and gpu_memory.GpuMemory(there, "the smallest of this machine's GPUs")


@dataclass(frozen=True)
class Run:
    """What config.yaml and `--config` ask for."""

    study_file: Path
    study: Study
    cells: dict[str, Cell]
    files: StudyFiles
    only: str
    config: str
    tracking_uri: str

    @classmethod
    def of(
        cls, config: Mapping[str, Any], studies: Path, conda: bool, tokenizers: bool = True
    ) -> "Run":
        """Read and check everything that can be known before the jobs are planned.

        Args:
            config: what `study.settings.read_settings` returned.
            studies: the folder of the studies that are known by name.
            conda: whether rules run in conda environments.
            tokenizers: whether to look at them too, which costs seconds.

        Raises:
            ConfigError, DataError: with every mistake, its key and the repair.
        """
        check_conda(conda)
        study_file = find_study(config["study"], studies)
        study = load_study(study_file)
        files = StudyFiles(Path(config["results"], study.study))
        cells, uri = expand(study), tracking_uri(config)
        run = cls(study_file, study, cells, files, config["only"], config_text(config), uri)
        run.chosen  # noqa: B018 (an `only` that names nothing is refused here)
        check_inputs(study_file, study, tokenizers)
        return run

    @cached_property
    def chosen(self) -> dict[str, Cell]:
        """The cells that `only` names, all without it."""
        return progress.choose(self.study, self.cells, self.only, self.files.folder)

    # --- what a job's wildcards name ---

    def cell(self, name: str) -> Cell:
        """A cell by its id."""
        return self._lookup("cell", self.cells, name)

    def scale(self, name: str) -> Scale:
        """A scale by its name."""
        return self._lookup("scale", self.study.scales, name)

    def benchmark(self, name: str) -> Benchmark:
        """A benchmark by its name."""
        return self._lookup("benchmark", self.study.benchmarks, name)

    def position(self, cell: str) -> str:
        """Which cell of how many."""
        return f"{self._positions[self.cell(cell).cell]}/{len(self.cells)}"

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.cells, start=1)}

    def _lookup(self, kind: str, known: Mapping[str, Known], name: str) -> Known:
        """What the study calls so; another name in a target is the user's mistake."""
        if name not in known:
            meant = suggestion(name, known)
            raise ConfigError(
                f"{self.study_file}: no {kind} {name!r}{meant}; there are: {listing(known)}"
            )
        return known[name]

    # --- files that jobs read and make ---

    def start_model(self, scale: str) -> Path:
        """The model that every method of a scale starts from."""
        return progress.start_model(self.study, scale, self.files.folder)

    def policy(self, cell: str) -> Path:
        """The model that a cell is evaluated with: its own, or the untrained one."""
        found = self.cell(cell)
        return self.files.cell(cell).model if found.trained else self.start_model(found.scale)

    def training_problems(self, scale: str) -> Path:
        """The training problems of a scale: those that its first pass chose, or all."""
        selected = self.study.prompt_selection is not None
        return self.files.selected_problems(scale) if selected else self.files.problems

    def scores(self) -> list[str]:
        """The scores of the chosen cells."""
        return [str(self.files.cell(name).scores) for name in self.chosen]

    def lost(self) -> list[str]:
        """What of the chosen cells that are begun has been lost."""
        return progress.lost_files(self.study, self.chosen, self.files.folder)

    # --- what is refused as a run starts ---

    def check_hardware(
        self, training: Iterable[str], sampling: Iterable[str], declared: Declared
    ) -> None:
        """Refuse jobs that do not fit the GPUs declared and there; a cluster refuses by itself.

        By the study's numbers: Snakemake cuts what a job asks for down to what is declared.
        `training` and `sampling` name the cells of the jobs.

        Raises:
            ConfigError: with both numbers and the repair.
        """
        training = set(training)
        wanted = [self.scale(self.cell(name).scale).gpus for name in training]
        wanted += [min(self.scale(self.cell(name).scale).gpus, 1) for name in set(sampling)]
        if declared.local:
            most = max(wanted, default=0)
            offered = gpus.offered_gpus() if most else 0
            job_limits.check_gpus(self.study, most, declared.gpus, offered, self.config)
        if training and self.study.training.rollout_engine == "vllm_server":
            server_address()
        scales = sorted({self.cell(name).scale for name in training})
        if any(wanted) and (memory := declared.memory()):
            gpu_memory.check_memory(self.study, scales, memory, declared.gpus)

    def is_trained(self, cell: str) -> bool:
        """Whether a cell's training is finished, under the present settings."""
        return progress.is_trained(self.study, self.cell(cell), self.files.folder)

    # --- what a run says ---

    def unread(self) -> list[str]:
        """A line on the cells that lie here and are none of the study's: an earlier version of this
        code named cells otherwise, and a study file may have lost some.
        """
        found = [name for name in self.files.begun_cells() if name not in self.cells]
        if not found:
            return []
        what, be = ("cell", "is") if len(found) == 1 else ("cells", "are")
        return [
            f"{self.files.cells}: {len(found)} {what} here {be} none of study {self.study.study}, "
            f"so {be} not read and not removed ({listing(found)}); ids of an earlier version are "
            "made anew under their present ones"
        ]

    def plan(self, declared: Declared) -> str:
        """What the chosen cells cost; imported here, since a run needs no tables to start."""
        from grpo_replay.planning.plan_text import plan_text

        memory = declared.memory() or gpu_memory.PAPERS_GPUS
        return plan_text(self.study, self.chosen, self.files.folder, declared.gpus, memory)

    def opening(self, jobs: int, declared: Declared, trainings: int) -> str:
        """What a run will make, and about how long that takes; `jobs` run at a time."""
        folder = self.files.folder
        return messages.opening(self.study, self.chosen, folder, jobs, declared.gpus, trainings)

    def closing(self) -> str:
        """Where everything is."""
        return messages.closing(self.study, self.cells, self.files.folder, self.tracking_uri)

    def tracking_misses(self) -> str:
        """How often the MLflow store was out of reach at the end of a run: once more, and the next
        run brings it up to date.
        """
        count = self.files.tracking_misses
        return count.read_text() if count.is_file() else "0"
