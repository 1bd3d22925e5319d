"""What a person sees while a job runs: progress and errors on the terminal, everything else in
the job's log file.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpo_replay.errors import GrpoReplayError, GrpoReplayWarning


class Terminal:
    """The terminal of a job whose own output goes to a file."""

    def __init__(self, descriptor: int, label: str) -> None:
        self._descriptor = descriptor
        self._label = label

    def say(self, text: str) -> None:
        """Write one line in one piece, so that lines of jobs side by side do not mix."""
        os.write(self._descriptor, f"[{self._label}] {text}\n".encode())


class Progress:
    """Shows a training run of `steps` steps: its first step, and about ten more."""

    def __init__(self, terminal: Terminal, steps: int) -> None:
        self.terminal = terminal
        self.steps = steps

    def resumed(self, records: list[dict]) -> None:
        """Say how much of the run an earlier job has done."""
        self.terminal.say(f"continues after step {len(records)}/{self.steps}, from its checkpoint")

    def step(self, record: dict) -> None:
        """Show a step if it is one of those."""
        step = record["step"]
        if step % max(1, self.steps // 10) == 0 or step in (1, self.steps):
            self.terminal.say(
                f"step {step}/{self.steps}: reward {_number(record['reward/mean'], '+.2f')}, "
                f"length {record['completions/mean_length']:.0f}, "
                f"survivors {record['survivors/rollouts']}, replayed {record['replay/rows']}, "
                f"{record['perf/step_seconds']:.1f} s"
            )


def _number(value: float | None, style: str) -> str:
    return "none" if value is None else format(value, style)


@contextmanager
def job(log: Path | str, label: str) -> Iterator[Terminal]:
    """Send the process's output to a log file, and end with one clear message where the input is
    at fault.
    """
    terminal = Terminal(os.dup(2), label)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sys.stdout.flush()
    os.dup2(file, 1)
    os.dup2(file, 2)
    _show_warnings(terminal)
    try:
        yield terminal
    except GrpoReplayError as error:
        print(f"error: {error}", flush=True)
        terminal.say(f"error: {error}")
        sys.exit(1)
    except Exception as error:
        traceback.print_exc()
        terminal.say(f"failed: {type(error).__name__}: {error} (see {log})")
        sys.exit(1)


def _show_warnings(terminal: Terminal) -> None:
    """Send our own warnings to the terminal too; those of libraries stay in the log."""
    show = warnings.showwarning

    def both(message: Warning | str, category: type[Warning], *place: Any) -> None:
        show(message, category, *place)
        if issubclass(category, GrpoReplayWarning):
            terminal.say(f"warning: {message}")

    warnings.showwarning = both
