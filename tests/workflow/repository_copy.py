"""A copy of the repository in which Snakemake runs the tiny study."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PARTS = ("Snakefile", "workflow", "config", "profiles", "envs", "src")
# Read before any test, for libraries set variables of their own. A test gives what it needs.
_GIVEN = ("GRPO_REPLAY_", "MLFLOW_TRACKING_URI")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(_GIVEN)}


@dataclass
class Workflow:
    """A copy of the repository in which Snakemake runs."""

    folder: Path

    @property
    def results(self) -> Path:
        """Folder of the tiny study's results."""
        return self.folder / "results" / "tiny"

    @property
    def study(self) -> Path:
        """The tiny study's file, to be edited."""
        return self.folder / "config" / "studies" / "tiny.yaml"

    def command(self, *arguments: str, study: str = "tiny") -> list[str]:
        """The command line of a run on two cores."""
        return [
            *(sys.executable, "-m", "snakemake", "--cores", "2"),
            *(a for a in arguments if "=" not in a),
            *("--config", f"study={study}"),
            *(a for a in arguments if "=" in a),
        ]

    def run(self, *arguments: str, study: str = "tiny", **variables: str):
        """Run Snakemake and return the finished process; `a=b` goes to `--config`."""
        return self.execute(self.command(*arguments, study=study), **variables)

    def execute(self, command: list[str], **variables: str):
        """Run a command in the copy and return the finished process."""
        environment = ENVIRONMENT | {"OMP_NUM_THREADS": "1"} | variables
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=3600,  # minutes where the machine is free
        )

    def jobs(self, *arguments: str, **variables: str) -> dict[str, int]:
        """What a dry run would do, by rule."""
        done = self.run("-n", *arguments, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return listed_jobs(done)


def listed_jobs(done: subprocess.CompletedProcess) -> dict[str, int]:
    """What a dry run listed, by rule."""
    rows = (line.split() for line in (done.stdout + done.stderr).splitlines())
    return {r[0]: int(r[1]) for r in rows if len(r) == 2 and r[1].isdigit() and r[0] != "total"}


def copy_repository(target: Path) -> Workflow:
    """Copy what the workflow needs, and add the tiny study to its studies."""
    target.mkdir(exist_ok=True)
    for part in PARTS:
        source = REPOSITORY / part
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, target / part)
    shutil.copy(
        REPOSITORY / "tests" / "fixtures" / "studies" / "tiny.yaml", target / "config/studies"
    )
    return Workflow(target)


def copy_without_times(workflow: Workflow, target: Path) -> Workflow:
    """A copy whose times say that every result is older than what it was made from."""
    copied = Workflow(target)
    shutil.copytree(workflow.folder, target, copy_function=shutil.copy)
    files = [path for path in workflow.results.rglob("*") if path.is_file()]
    newest_first = sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for time, path in enumerate(newest_first, start=1_000_000_000):
        os.utime(copied.results / path.relative_to(workflow.results), (time, time))
    return copied
