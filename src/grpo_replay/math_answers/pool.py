"""Worker processes that can be killed, kept between calls, and usable from any thread or process.

Plain subprocesses and not `multiprocessing`: a daemonic pool process may not have children there,
and "spawn" would import the caller's main script again. The caller's signals are not touched.
"""

import atexit
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import Condition, Lock

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_MODULE = f"{__package__}.worker"


@dataclass(frozen=True)
class Question:
    """One thing to ask: `kind` is "ours", "paper" or "parses"."""

    kind: str
    gold: str
    answer: str


@dataclass(frozen=True)
class Reply:
    """`lost`: the worker ran out of its time or memory and was ended."""

    correct: bool
    method: str
    lost: bool = False


class Worker:
    """One process that answers questions; it is started again when a question ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: Question, timeout: float) -> Reply:
        """Return the verdict in at most `timeout` seconds (plus a process start, if needed)."""
        process = self._running()
        assert process.stdin and process.stdout
        line = json.dumps([question.kind, question.gold, question.answer, timeout])
        print(line, file=process.stdin, flush=True)
        reply = process.stdout.readline()
        if reply:
            return Reply(*json.loads(reply))
        self.close()
        return Reply(False, "timeout", lost=True)

    def close(self) -> None:
        """End the process and wait for it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def start(self) -> None:
        """Start the process without waiting until it is ready."""
        paths = [_PACKAGE_ROOT, *(path for path in sys.path if path)]
        self._process = subprocess.Popen(
            # -P: a file in the current folder must not shadow a module.
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # A fixed hash seed: sympy's order of terms, and so a verdict, must not vary by process.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
        )

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is not None:
            return self._process
        self.start()
        assert self._process is not None and self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            code = self._process.wait()
            raise RuntimeError(
                f"the grading process ended with code {code} at start: is math-verify installed?"
            )
        return self._process


class _Queue:
    """Indices of questions, handed out a few of one gold at a time: golds are parsed once."""

    def __init__(self, questions: list[Question], size: int = 8) -> None:
        order = sorted(range(len(questions)), key=lambda index: questions[index].gold)
        by_gold = [list(group) for _, group in groupby(order, key=lambda i: questions[i].gold)]
        self._batches = deque(
            deque(group[start : start + size])
            for group in by_gold
            for start in range(0, len(group), size)
        )
        self._in_hand = 0
        self._changed = Condition()

    def take(self) -> deque[int]:
        """Return the next batch; empty only when no batch can come back any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._in_hand <= 0)
            if not self._batches:
                return deque()
            self._in_hand += 1
            return self._batches.popleft()

    def give_back(self, batch: deque[int]) -> None:
        """Empty `batch` back into the queue, one question each."""
        with self._changed:
            self._batches.extend(deque([index]) for index in batch)
            batch.clear()
            self._changed.notify_all()

    def finished(self) -> None:
        """Tell the threads that wait that one batch is done."""
        with self._changed:
            self._in_hand -= 1
            self._changed.notify_all()

    def abandon(self) -> None:
        """Drop what is left and release every thread that waits."""
        with self._changed:
            self._batches.clear()
            self._in_hand = 0
            self._changed.notify_all()


_idle: list[Worker] = []
_lock = Lock()


def ask_all(questions: list[Question], workers: int, timeout: float) -> list[Reply]:
    """Return the replies in the order of `questions`, from up to `workers` processes.

    Each process takes the next few questions of one gold at a time, so each gold is mostly parsed
    once.
    """
    queue = _Queue(questions)
    replies: dict[int, Reply] = {}

    def serve(worker: Worker) -> None:
        while batch := queue.take():
            while batch:
                index = batch.popleft()
                replies[index] = worker.ask(questions[index], timeout)
                if replies[index].lost:  # others take the rest while this process starts again
                    queue.give_back(batch)
            queue.finished()

    crew = _take(min(workers, len(questions)))
    try:
        with ThreadPoolExecutor(max(1, len(crew))) as threads:
            try:
                for served in as_completed([threads.submit(serve, worker) for worker in crew]):
                    served.result()
            except BaseException:  # an interrupt, too: nobody shall work off the rest
                queue.abandon()
                raise
    except BaseException:
        _close(crew)  # a half-read reply must not answer somebody's next question
        raise
    with _lock:
        _idle.extend(crew)
    return [replies[index] for index in range(len(questions))]


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
