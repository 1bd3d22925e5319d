"""Values of problems in their benchmarks: checked, and as the means of which tables are made.

Benchmarks are strata: each has the same weight in a table's mean, however many problems it has.
`_P` marks one value a problem, `_PV` several, `_BV` one row a benchmark.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
# From the means (..., B, V) of each benchmark and column to numbers of a table (...): it is called
# on one set of means and on thousands of resampled ones alike.
Statistic = Callable[[FloatArray], FloatArray]


def checked(
    values: ArrayLike, benchmarks_P: ArrayLike
) -> tuple[FloatArray, list[NDArray[np.intp]]]:
    """Return the values as (P, V) and the row numbers of each benchmark, in sorted order of names.

    Raises ValueError for no values, nan, or benchmarks of another length.
    """
    values, benchmarks_P = np.asarray(values, dtype=float), np.asarray(benchmarks_P)
    values_PV = values[:, None] if values.ndim == 1 else values
    if len(values_PV) == 0:
        raise ValueError("no problems: an interval needs at least one value")
    if benchmarks_P.shape != (len(values_PV),):
        raise ValueError(f"{len(values_PV)} problems but benchmarks of shape {benchmarks_P.shape}")
    missing = np.flatnonzero(np.isnan(values_PV).any(axis=1))
    if missing.size:
        raise ValueError(f"nan at problems {missing[:5].tolist()}: drop or fill them first")
    return values_PV, [np.flatnonzero(benchmarks_P == name) for name in np.unique(benchmarks_P)]


def means_by_benchmark(values_PV: FloatArray, members: list[NDArray[np.intp]]) -> FloatArray:
    """Return the (B, V) means of the rows of each benchmark."""
    return np.stack([values_PV[member].mean(axis=0) for member in members])
