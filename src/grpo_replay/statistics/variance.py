"""Where the noise of a score comes from: components of variance of trained models' answers.

A run is one trained model: a condition (fixed) with a seed. Runs of one seed share what the seed
fixes; all runs answer the same problems of each benchmark, K times each:

    correct = condition and benchmark + seed + run
              + problem + condition x problem + run x problem + sample

Everything but the first is random. Estimated by moments (analysis of variance), which for balanced
data is what REML gives if no component is below 0. `_RP` marks a row a run, a column a problem.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grpo_replay.statistics.benchmark_means import FloatArray


@dataclass(frozen=True)
class Components:
    """Standard deviations in points; an estimate of a variance below 0 is 0, what cannot be told
    apart is nan.

    Attributes:
        seed: of what all methods of a seed share (its base model, if each seed has one).
        training: of a run beside that, in the mean over the benchmarks.
        problem: between the problems of a benchmark, alike for all models.
        method_problem: between the problems, of a method beside that.
        run_problem: of a run on a problem beside all of these.
        sample: of one answer.
    """

    seed: float
    training: float
    problem: float
    method_problem: float
    run_problem: float
    sample: float


PARTS = tuple(field.name for field in fields(Components))


def components(
    percent_RP: ArrayLike,
    condition_R: ArrayLike,
    seed_R: ArrayLike,
    benchmark_P: ArrayLike,
    k: ArrayLike,
) -> Components:
    """Return the components of the answers of R runs to P problems, percent correct of `k` each.

    Every condition has the same seeds, each once; a benchmark weighs the same however many problems
    it has. `k` is a number, or one a problem (P,). Raises ValueError for nan, fewer than two seeds,
    a benchmark of one problem, or runs that are not every condition with every seed.
    """
    percent_RP = np.asarray(percent_RP, dtype=float)
    k_P = np.broadcast_to(np.asarray(k, dtype=float), percent_RP.shape[1:])
    percent_CNP = _by_condition_and_seed(percent_RP, condition_R, seed_R)
    members = [np.flatnonzero(benchmark_P == name) for name in np.unique(benchmark_P)]
    if min(map(len, members)) < 2:
        raise ValueError("a benchmark of one problem: its problems have no spread")
    parts = [_within(percent_CNP[..., own], k_P[own]) for own in members]
    inner = np.mean([part[:-1] for part in parts], axis=0)
    seed, training = _between(
        np.mean([percent_CNP[..., own].mean(axis=-1) for own in members], axis=0),
        noise=sum(part[-1] for part in parts) / len(parts) ** 2,
    )
    return Components(*_deviations([seed, training, *inner]))


def deviation_of_mean(
    found: Components, seeds: int, problems: int, k: int, methods: int = 1
) -> float:
    """Return the standard deviation of a method's mean over so many seeds, or of the difference of
    two methods with the same seeds and problems (`methods=2`): what they share then cancels.

    `problems` are those of all benchmarks together, of equal size, drawn from a larger stock.
    """
    known = {name: np.nan_to_num(getattr(found, name)) ** 2 for name in PARTS}
    own = _run(known, problems, k) / seeds + known["method_problem"] / problems
    if methods == 2:
        return float(np.sqrt(2 * own))
    return float(np.sqrt(own + known["seed"] / seeds + known["problem"] / problems))


def deviation_over_seeds(found: Components, problems: int, k: int) -> float:
    """Return the standard deviation over seeds of the difference of two methods that share seeds
    and problems: the spread that a paired t test over seeds sees. Its problems stay as they are.
    """
    known = {name: np.nan_to_num(getattr(found, name)) ** 2 for name in PARTS}
    return float(np.sqrt(2 * _run(known, problems, k)))


def _run(known: dict[str, float], problems: int, k: int) -> float:
    """The variance of a run's mean over its problems, for the seed's own part."""
    return known["training"] + (known["run_problem"] + known["sample"] / k) / problems


def _by_condition_and_seed(
    percent_RP: FloatArray, condition_R: ArrayLike, seed_R: ArrayLike
) -> FloatArray:
    """Return the runs as (conditions, seeds, problems)."""
    if percent_RP.ndim != 2 or np.isnan(percent_RP).any():
        raise ValueError(f"percent of runs x problems, none nan: {percent_RP.shape}")
    conditions, condition = np.unique(condition_R, return_inverse=True)
    seeds, seed = np.unique(seed_R, return_inverse=True)
    if len(seeds) < 2:
        raise ValueError(f"components of variance need two seeds or more: {len(seeds)}")
    shape = (len(conditions), len(seeds))
    counts = np.zeros(shape, dtype=int)
    np.add.at(counts, (condition, seed), 1)
    if (counts != 1).any():
        raise ValueError("every condition needs every seed once")
    percent_CNP = np.empty((*shape, percent_RP.shape[1]))
    percent_CNP[condition, seed] = percent_RP
    return percent_CNP


def _within(percent_CNP: FloatArray, k_P: NDArray[np.float64]) -> list[float]:
    """Variances of problem, method x problem, run x problem and sample in one benchmark, and what
    the last two add to a run's mean over it.
    """
    conditions, seeds, problems = percent_CNP.shape
    share = percent_CNP / 100.0
    # Of one answer, without bias; a single answer a problem has none of its own.
    several = np.where(k_P > 1, k_P / np.maximum(k_P - 1, 1), 0.0)
    sample_P = 1e4 * (several * share * (1 - share)).mean(axis=(0, 1))
    noise = np.mean([_interaction(of_condition) for of_condition in percent_CNP])
    mean_CP = percent_CNP.mean(axis=1)
    spread = mean_CP.mean(axis=0).var(ddof=1)
    if conditions == 1:
        problem, method_problem = spread - noise / seeds, np.nan
    else:
        of_methods = _interaction(mean_CP)
        problem, method_problem = spread - of_methods / conditions, of_methods - noise / seeds
    run_problem = noise - (sample_P / k_P).mean()
    return [problem, method_problem, run_problem, sample_P.mean(), noise / problems]


def _interaction(values_RC: FloatArray) -> float:
    """The mean square of what rows and columns leave, of two or more of each."""
    left = values_RC - values_RC.mean(axis=0) - values_RC.mean(axis=1, keepdims=True)
    freedom = (values_RC.shape[0] - 1) * (values_RC.shape[1] - 1)
    return float(((left + values_RC.mean()) ** 2).sum() / freedom)


def _between(mean_CN: FloatArray, noise: float) -> tuple[float, float]:
    """Variances of seed and of run, from the means over the benchmarks; of one condition the two
    are one, which is given as the run's.
    """
    conditions = len(mean_CN)
    if conditions == 1:
        return np.nan, float(mean_CN.var(ddof=1) - noise)
    own = _interaction(mean_CN)
    return float(mean_CN.mean(axis=0).var(ddof=1) - own / conditions), own - noise


def _deviations(variances: list[float]) -> list[float]:
    return [float(np.sqrt(max(v, 0.0))) if np.isfinite(v) else np.nan for v in variances]
