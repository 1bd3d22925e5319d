"""Worker processes that can be killed, kept between calls, and usable from any thread or process.

Plain subprocesses and not `multiprocessing`: a daemonic pool process may not have children there,
and "spawn" would import the caller's main script again. The caller's signals are not touched. One
loop in the caller's own thread serves all processes, so that whatever interrupts the caller ends
them at once.
"""

import atexit
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import Lock

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
_MODULE = f"{__package__}.worker"
_TICK_SECONDS = 0.5
# The limit of an answer is CPU time, which the kernel keeps. Time on the clock only ends a process
# that gets none: even one that shares its core with twenty others is left to reach its own limit.
_CLOCK_FACTOR, _CLOCK_SECONDS = 20, 60
_START_SECONDS = 600  # an import takes seconds, and minutes from a slow network disk


@dataclass(frozen=True)
class Question:
    """One thing to ask: `kind` is "ours", "paper" or "parses"."""

    kind: str
    gold: str
    answer: str


@dataclass(frozen=True)
class Reply:
    """`timed_out`: the answer cost its whole time. `error`: what was raised, or what ended the
    process (a signal, memory).
    """

    correct: bool
    method: str
    timed_out: bool = False
    error: str | None = None


class Worker:
    """One process that answers a question at a time; it is started again when one ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._unsent = self._received = b""
        self._waited = self._may_wait = 0.0

    @property
    def running(self) -> bool:
        """Whether there is a process, which may still be starting."""
        return self._process is not None and self._process.poll() is None

    def ask(self, question: Question, timeout: float) -> None:
        """Begin with a question that may cost `timeout` seconds of CPU time; `read` ends it."""
        if not self.running:
            self.close()
            self._start()
        line = json.dumps([question.kind, question.gold, question.answer, timeout])
        self._unsent = f"{line}\n".encode()
        self._waited, self._may_wait = 0.0, _CLOCK_FACTOR * timeout + _CLOCK_SECONDS

    def register(self, selector: selectors.BaseSelector) -> None:
        """Name what this worker waits for: an answer, and room for the rest of its question."""
        assert self._process and self._process.stdin and self._process.stdout
        selector.register(self._process.stdout, selectors.EVENT_READ, self)
        if self._ready and self._unsent:
            selector.register(self._process.stdin, selectors.EVENT_WRITE, self)

    def write(self) -> None:
        """Send as much of the question as the pipe takes."""
        if self._process is None:  # `read` found its end in the same tick
            return
        assert self._process.stdin
        try:
            self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # `read` finds the end
            self._unsent = b""

    def read(self) -> Reply | None:
        """Take what the process has written; return the reply once it is complete."""
        assert self._process and self._process.stdout
        received = os.read(self._process.stdout.fileno(), 65536)
        if not received:
            return self._ended()
        self._received += received
        line, end, rest = self._received.partition(b"\n")
        if not end:
            return None
        self._received = rest
        if not self._ready:
            self._ready, self._waited = line == b"ready", 0.0
            return None
        return Reply(*json.loads(line))

    def wait(self, seconds: float) -> Reply | None:
        """Count time on the clock; return the reply, and end the process, where it is too long."""
        self._waited += seconds
        if not self._ready and self._waited > _START_SECONDS:
            raise RuntimeError(
                f"the grading process was not ready after {_START_SECONDS} s: is the machine "
                "overloaded, or its disk gone? Run again once it answers"
            )
        if not self._ready or self._waited <= self._may_wait:
            return None
        self.close()
        return Reply(False, "timeout", timed_out=True)

    def _ended(self) -> Reply:
        assert self._process is not None
        code, was_ready = self._process.wait(), self._ready
        self.close()
        if not was_ready:
            raise RuntimeError(
                f"the grading process ended with code {code} at start: is math-verify installed?"
            )
        if code == -signal.SIGPROF:
            return Reply(False, "timeout", timed_out=True)
        name = signal.Signals(-code).name if code < 0 else f"code {code}"
        return Reply(False, "error", error=f"process ended, {name}")

    def close(self) -> None:
        """End the process and wait for it."""
        process, self._process, self._ready = self._process, None, False
        self._unsent = self._received = b""
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> None:
        paths = [_PACKAGE_ROOT, *(path for path in sys.path if path)]
        self._process = subprocess.Popen(
            # -P: a file in the current folder must not shadow a module.
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # A fixed hash seed: sympy's order of terms, and so a verdict, must not vary by process.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)  # its reader may be stopped


class _Round:
    """Questions, handed out a few of one gold at a time: golds are mostly parsed once."""

    def __init__(self, questions: list[Question], timeout: float, size: int = 8) -> None:
        order = sorted(range(len(questions)), key=lambda index: questions[index].gold)
        by_gold = [list(group) for _, group in groupby(order, key=lambda i: questions[i].gold)]
        self._batches = deque(
            deque(group[start : start + size])
            for group in by_gold
            for start in range(0, len(group), size)
        )
        self._questions, self._timeout = questions, timeout
        self._in_hand: dict[Worker, deque[int]] = {}  # the first of them is asked
        self._ended: set[int] = set()
        self._replies: dict[int, Reply] = {}

    def run(self, crew: list[Worker]) -> list[Reply]:
        """Return the replies in the order of the questions."""
        last = time.monotonic()
        while len(self._replies) < len(self._questions):
            self._hand_out(crew)
            for worker, reply in _served(self._in_hand):
                self._take_reply(worker, reply)
            now = time.monotonic()
            # What is longer is a pause of the caller, which mostly stops its workers as well.
            passed, last = min(now - last, 2 * _TICK_SECONDS), now
            for worker in list(self._in_hand):
                if reply := worker.wait(passed):
                    self._take_reply(worker, reply)
        return [self._replies[index] for index in range(len(self._questions))]

    def _hand_out(self, crew: list[Worker]) -> None:
        for worker in crew:
            if worker not in self._in_hand and self._batches:
                self._in_hand[worker] = self._batches.popleft()
                self._ask(worker)

    def _ask(self, worker: Worker) -> None:
        worker.ask(self._questions[self._in_hand[worker][0]], self._timeout)

    def _take_reply(self, worker: Worker, reply: Reply) -> None:
        batch = self._in_hand[worker]
        index = batch.popleft()
        again = reply.error is not None and not worker.running and index not in self._ended
        if again:  # once more in a fresh process: an accident from outside is no verdict
            self._ended.add(index)
            self._batches.append(deque([index]))
        else:
            self._replies[index] = reply
        if batch and worker.running:
            self._ask(worker)
        else:  # others take the rest while this process starts again
            self._batches.extend(deque([rest]) for rest in batch)
            del self._in_hand[worker]


def _served(workers: Iterable[Worker]) -> Iterator[tuple[Worker, Reply]]:
    """Wait for a tick at most; write and read what can be, and yield the replies."""
    with selectors.PollSelector() as selector:
        for worker in workers:
            worker.register(selector)
        ready = selector.select(_TICK_SECONDS)
    for key, event in ready:
        if event & selectors.EVENT_WRITE:
            key.data.write()
        elif reply := key.data.read():
            yield key.data, reply


_idle: list[Worker] = []
_lock = Lock()


def ask_all(questions: list[Question], workers: int, timeout: float) -> list[Reply]:
    """Return the replies in the order of `questions`, from up to `workers` processes.

    `timeout`: seconds of CPU time that one answer may cost, whatever else the machine does.
    """
    crew = _take(min(workers, len(questions)))
    try:
        replies = _Round(questions, timeout).run(crew)
    except BaseException:  # an interrupt, too: a reply must not answer somebody's next question
        _close(crew)
        raise
    with _lock:
        _idle.extend(crew)
    return replies


def _take(count: int) -> list[Worker]:
    with _lock:
        taken = [_idle.pop() for _ in range(min(count, len(_idle)))]
    return taken + [Worker() for _ in range(count - len(taken))]


def _close(workers: Iterable[Worker]) -> None:
    for worker in workers:
        worker.close()


def _close_idle() -> None:
    with _lock:
        _close(_idle)
        _idle.clear()


def _forget_after_fork() -> None:
    """A forked copy shares the pipes of its parent's workers: it leaves them and starts its own."""
    global _lock
    _lock = Lock()
    _abandoned.extend(_idle)
    _idle.clear()


# Kept, so that no destructor in a forked copy waits for a child of its parent.
_abandoned: list[Worker] = []
atexit.register(_close_idle)
os.register_at_fork(after_in_child=_forget_after_fork)
