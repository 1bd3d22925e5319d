"""Train a cell in this process, or in several that torch's launcher starts on this machine.

The watchers stay in the calling process: with several processes the first of them announces its
records as marked lines, which are taken out of what goes to the job's log.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from grpo_replay.config import Checkpoints
from grpo_replay.errors import TrainingError
from grpo_replay.files import write_json
from grpo_replay.training.run_training import Watcher, train_policy

MARK = "@grpo-replay "


def train_cell(job: dict[str, Any], watchers: Sequence[Watcher]) -> None:
    """Train the cell of a job with as many processes as its settings say.

    `job` holds the arguments of `train_policy` as JSON-like values (paths as text, `saving` as the
    study's section).

    Raises:
        TrainingError: where one of several processes ended with an error.
    """
    if job["settings"]["processes"] == 1:
        train_policy(**_arguments(job), watchers=watchers)
        return
    file = Path(job["checkpoints"]) / "job.json"
    write_json(file, job)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(job["settings"]["processes"])]
    with subprocess.Popen(
        [*command, "-m", __name__, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        follow(process.stdout or [], watchers)
    file.unlink()
    if process.returncode:
        raise TrainingError(
            f"{job['settings']['processes']} training processes ended with status "
            f"{process.returncode}: the log of the job says why"
        )


def follow(lines: Iterable[str], watchers: Sequence[Watcher]) -> None:
    """Give announced records to the watchers, and everything else to standard output."""
    for line in lines:
        if not line.startswith(MARK):
            print(line, end="", flush=True)
            continue
        event, content = json.loads(line.removeprefix(MARK))
        for watcher in watchers:
            watcher.resumed(content) if event == "resumed" else watcher.step(content)


class Announcer:
    """Tells the process that started this one."""

    def resumed(self, records: list[dict]) -> None:
        """Announce the records of the steps that are kept."""
        self._announce("resumed", records)

    def step(self, record: dict) -> None:
        """Announce a finished step's record."""
        self._announce("step", record)

    def _announce(self, event: str, content: object) -> None:
        # One write: what other processes print cannot get into the middle of the line.
        sys.stdout.write(f"{MARK}{json.dumps([event, content])}\n")
        sys.stdout.flush()


def _arguments(job: dict[str, Any]) -> dict[str, Any]:
    paths = {name: Path(job[name]) for name in ("start_model", "problems", "output", "checkpoints")}
    return {"settings": job["settings"], "saving": Checkpoints(**job["saving"]), **paths}


if __name__ == "__main__":
    train_policy(**_arguments(json.loads(Path(sys.argv[1]).read_text())), watchers=[Announcer()])
