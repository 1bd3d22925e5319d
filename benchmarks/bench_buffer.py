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

from grpo_replay.methods.buffer import RolloutBuffer
from grpo_replay.methods.composition import ReplayMethod, compose
from grpo_replay.methods.priorities import AdvantageSampler
from grpo_replay.methods.rollout import Rollout
from grpo_replay.training.checkpoints import load_replay_state, save_replay_state

REPETITIONS = 7
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
            behavior_logprobs=random.standard_normal(tokens, dtype=np.float32),
            sampler_logprobs=None,
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


def full_buffer(count: int, tokens: int) -> RolloutBuffer:
    """A buffer that ten steps have filled."""
    buffer = RolloutBuffer(tau_max=10, capacity=30_000)
    for step in range(1, 11):
        buffer.add(make_rollouts(count // 10, tokens, step))
    return buffer


def main() -> None:
    """Print every figure with what it is held against."""
    tracemalloc.start()
    buffer = full_buffer(LIVE, TOKENS)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    rows = buffer.rollouts()
    payload = sum(
        r.prompt_ids.nbytes + r.completion_ids.nbytes + r.behavior_logprobs.nbytes for r in rows
    )
    print(f"memory: {memory / payload:.3f} x the bytes of the rows (below 1.3)")

    fresh = make_rollouts(SURVIVORS, TOKENS, 11)
    method = ReplayMethod("anchored", "rollout", 0.5, warmup_steps=0)
    sampler = AdvantageSampler(0.5, 1e-6, seed=0)

    def one_step() -> None:
        buffer.evict(11)
        compose(fresh, buffer, 11, method, sampler)
        buffer.add(fresh)
        buffer.evict(11)

    print(f"insert, evict, draw, compose at {LIVE} x {TOKENS}: {median_ms(one_step):.2f} ms (50)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def save() -> None:
            state = buffer.state_dict()
            save_replay_state(folder, state["arrays"], {"step": 1, "buffer": state["values"]})

        def load() -> None:
            arrays, values = load_replay_state(folder)
            RolloutBuffer(10, 30_000).load_state_dict(
                {"arrays": arrays, "values": values["buffer"]}
            )

        print(f"save at {LIVE} x {TOKENS}: {median_ms(save):.0f} ms (1000)")
        print(f"load at {LIVE} x {TOKENS}: {median_ms(load):.0f} ms (1000)")
    short = full_buffer(30_000, 8).rollouts()
    print(f"draw of 128 from 30,000: {median_ms(lambda: sampler.sample(short, 128)):.2f} ms (5)")


if __name__ == "__main__":
    main()
