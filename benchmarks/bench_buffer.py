"""What storing, drawing and saving rollouts costs at the paper's size: medians of repetitions.

python benchmarks/bench_buffer.py
"""

import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from grpo_replay.methods.priorities import AbsAdvantage
from grpo_replay.methods.replay import Anchored, Store
from grpo_replay.methods.rollout import Rollout
from grpo_replay.training.checkpoints import load_parts, save_parts

REPETITIONS = 7
REPLAY = Anchored(priority=AbsAdvantage(), warmup=0)
LIVE, TOKENS, SURVIVORS = 1250, 8192, 125  # the paper at 4B: rollouts live before a draw


def make_rollouts(count: int, tokens: int, step: int) -> list[Rollout]:
    """Rollouts of 8 to a group, with their own token and log-probability arrays."""
    random = np.random.default_rng(step)
    return [
        Rollout(
            rollout_id=f"{step}-{i // 8}-{i % 8}",
            group_id=f"{step}-{i // 8}",
            problem_id=str(i // 8),
            prompt_ids=np.arange(200, dtype=np.int32),
            completion_ids=random.integers(0, 150_000, tokens, dtype=np.int32),
            behaviour_logprobs=random.standard_normal(tokens, dtype=np.float32),
            inference_logprobs=None,
            advantage=float(random.standard_normal()),
            reward=1.0,
            group_mean=0.0,
            group_std=1.0,
            birth_step=step,
            truncated=False,
        )
        for i in range(count)
    ]


def median_ms(action: Callable[[], object]) -> float:
    """Median milliseconds of an action."""
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def full_store(count: int, tokens: int) -> Store:
    """A store that ten steps have filled."""
    store = REPLAY.start(seed=0)
    for step in range(1, 11):
        store.buffer.add(make_rollouts(count // 10, tokens, step))
    return store


def main() -> None:
    """Print every figure with what it is held against."""
    tracemalloc.start()
    store = full_store(LIVE, TOKENS)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    rows = store.buffer.rollouts()
    payload = sum(
        r.prompt_ids.nbytes + r.completion_ids.nbytes + r.behaviour_logprobs.nbytes for r in rows
    )
    print(f"memory: {memory / payload:.3f} x the bytes of the rows (below 1.3)")

    fresh = make_rollouts(SURVIVORS, TOKENS, 11)

    def one_step() -> None:
        store.next_batch(fresh, 11)

    print(f"insert, evict, draw, compose at {LIVE} x {TOKENS}: {median_ms(one_step):.2f} ms (50)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def save() -> None:
            save_parts(folder, {"replay": store.state_dict()}, {"step": 1}, [])

        def load() -> None:
            REPLAY.start(seed=0).load_state_dict(load_parts(folder)[0]["replay"])

        print(f"save at {LIVE} x {TOKENS}: {median_ms(save):.0f} ms (1000)")
        print(f"load at {LIVE} x {TOKENS}: {median_ms(load):.0f} ms (1000)")
    short = full_store(30_000, 8)
    units = short.units()
    print(f"draw of 128 from 30,000: {median_ms(lambda: short.sample(units, 128, 11)):.2f} ms (5)")


if __name__ == "__main__":
    main()
