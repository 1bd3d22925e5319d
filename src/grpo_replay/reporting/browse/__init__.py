"""What a notebook looks at: cells, answers, rollouts, curves."""

from .curves import curves, learning_curves
from .tables import (
    benchmark_names,
    benchmark_overview,
    benchmark_problem,
    disagreements,
    existing,
    rollouts,
    samples,
    show_rollouts,
    show_samples,
    study_cells,
    training_overview,
    uses,
)

__all__ = [
    "benchmark_names",
    "benchmark_overview",
    "benchmark_problem",
    "curves",
    "disagreements",
    "existing",
    "learning_curves",
    "rollouts",
    "samples",
    "show_rollouts",
    "show_samples",
    "study_cells",
    "training_overview",
    "uses",
]
