"""Train a cell in this process, or in several that torch's launcher starts on this machine.

The watchers stay in the calling process: with several processes the first of them announces its
records as marked lines, which are taken out of what goes to the job's log.
"""

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from grpo_replay.errors import GrpoReplayError, GrpoReplayWarning, TrainingError
from grpo_replay.files import write_json
from grpo_replay.machine.surroundings import prepare
from grpo_replay.study.config import Checkpoints, Training
from grpo_replay.tasks.any_task import task_of
from grpo_replay.training.prompt_length import compare_count
from grpo_replay.training.rollout_server import check_server
from grpo_replay.training.run_training import Watcher, train_policy

MARK = "@grpo-replay "


def train_cell(job: dict[str, Any], watchers: Sequence[Watcher]) -> None:
    """Train the cell of a job with as many processes as its settings say.

    `job` holds the arguments of `train_policy` as JSON-like values (paths as text, `saving` as the
    study's section), how many `gpus` are wanted, and how many prompts are expected (0: any number).

    Raises:
        TrainingError: where one of several processes ended with an error.
    """
    if job["gpus"] and not torch.cuda.is_available():
        warnings.warn(
            f"scales.*.gpus: {job['gpus']} GPUs are wanted and this torch ({torch.__version__}) "
            "sees none, so this trains on the CPU: install torch's CUDA build",
            GrpoReplayWarning,
            stacklevel=2,
        )
    for line in prepare(os.environ):  # what torch's launcher sets, it sets in the processes below
        print(line, flush=True)
    _look_ahead(job)
    if job["settings"]["processes"] == 1:
        train_policy(**_arguments(job), watchers=watchers)
        return
    count = job["settings"]["processes"]
    file = Path(job["checkpoints"]) / "job.json"
    write_json(file, job | {"launcher": os.getpid()})
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(count), "-m", __name__, str(file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        try:
            errors = follow(process.stdout or [], watchers)
        except BaseException:
            process.terminate()  # it ends the processes that it has started
            raise
    file.unlink()
    if process.returncode:
        told = errors or ["the log of the job says why"]
        raise TrainingError(
            f"{count} training processes ended with status {process.returncode}: {told[0]}"
        )


def _look_ahead(job: dict[str, Any]) -> None:
    # Here, where what is said reaches the terminal, however many processes train.
    training, start_model = Training(**job["settings"]["training"]), Path(job["start_model"])
    task = task_of(job["settings"].get("task"))
    if training.rollout_engine == "vllm_server":
        check_server(training, start_model)
    if job["expected_prompts"]:
        longest = training.max_prompt_tokens
        compare_count(start_model, Path(job["problems"]), longest, job["expected_prompts"], task)


def follow(lines: Iterable[str], watchers: Sequence[Watcher]) -> list[str]:
    """Give announced records to the watchers, everything else to standard output; returns the
    announced errors.
    """
    errors = []
    for line in lines:
        event, content = _announced(line)
        if event == "error":
            errors.append(content)
        elif event is None:
            print(line, end="", flush=True)
        for watcher in watchers if event in ("resumed", "step") else ():
            watcher.resumed(content) if event == "resumed" else watcher.step(content)
    return errors


def _announced(line: str) -> tuple[str | None, Any]:
    """What a line announces; nothing where other output got into the middle of it."""
    try:
        return json.loads(line.removeprefix(MARK)) if line.startswith(MARK) else (None, None)
    except ValueError:
        return None, None


class Announcer:
    """Tells the process that started this one."""

    def resumed(self, records: list[dict]) -> None:
        """Announce the records of the steps that are kept."""
        self._announce("resumed", records)

    def step(self, record: dict) -> None:
        """Announce a finished step's record."""
        self._announce("step", record)

    def error(self, text: str) -> None:
        """Announce why this process cannot go on."""
        self._announce("error", text)

    def _announce(self, event: str, content: object) -> None:
        sys.stdout.write(f"{MARK}{json.dumps([event, content])}\n")
        sys.stdout.flush()


def _arguments(job: dict[str, Any]) -> dict[str, Any]:
    paths = {name: Path(job[name]) for name in ("start_model", "problems", "output", "checkpoints")}
    return {"settings": job["settings"], "saving": Checkpoints(**job["saving"]), **paths}


def _end_with(launcher: int) -> None:
    """End this process soon after the one that started the training, which holds lock and GPUs."""
    while Path(f"/proc/{launcher}").exists() or not Path("/proc").exists():
        time.sleep(1)
    os._exit(1)


def _main(file: Path) -> None:
    job = json.loads(file.read_text(encoding="utf-8"))
    threading.Thread(target=_end_with, args=(job["launcher"],), daemon=True).start()
    try:
        train_policy(**_arguments(job), watchers=[Announcer()])
    except GrpoReplayError as error:
        Announcer().error(str(error))
        sys.exit(1)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
