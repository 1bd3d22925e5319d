"""What a person sees while a job runs: progress and errors on the terminal, everything else in
the job's log file.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_replay.errors import GrpoReplayError


class Terminal:
    """The terminal of a job whose own output goes to a file."""

    def __init__(self, descriptor: int, label: str) -> None:
        self._descriptor = descriptor
        self._label = label

    def say(self, text: str) -> None:
        """Write one line in one piece, so that lines of jobs side by side do not mix."""
        os.write(self._descriptor, f"[{self._label}] {text}\n".encode())

    def step(self, record: dict, steps: int) -> None:
        """Report a training step: the first, and about ten more."""
        step = record["step"]
        if step % max(1, steps // 10) == 0 or step in (1, steps):
            self.say(
                f"step {step}/{steps}: reward {_number(record['reward/mean'], '+.2f')}, "
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
