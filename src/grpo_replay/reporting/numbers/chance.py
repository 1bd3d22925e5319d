"""What answers drawn at random score."""

from grpo_replay.study.cells import benchmark_task
from grpo_replay.study.config import Study
from grpo_replay.tasks.config import Benchmark


def chance_percent(study: Study, benchmark: Benchmark) -> dict[str, float]:
    """avg@k and pass@k in percent of k independent answers drawn at random."""
    p = (benchmark.chance or benchmark_task(study, benchmark).chance) / 100.0
    return {"avg": 100.0 * p, "pass": 100.0 * (1.0 - (1.0 - p) ** benchmark.k)}
