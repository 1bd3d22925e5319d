"""Values of problems in their benchmarks: checked, and as the means of which tables are made.

Benchmarks are strata: each has the same weight in a table's mean, however many problems it has.
`_P` marks one value a problem, `_PV` several, `_SV` one row a stratum.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
# From the means (..., S, V) of each stratum and column to numbers of a table (...): it is called
# on one set of means and on thousands of resampled ones alike.
Statistic = Callable[[FloatArray], FloatArray]


def checked(values: ArrayLike, strata_P: ArrayLike) -> tuple[FloatArray, list[NDArray[np.intp]]]:
    """Return the values as (P, V) and the row numbers of each stratum, in sorted order of names.

    Raises ValueError for no values, nan, or strata of another length.
    """
    values, strata_P = np.asarray(values, dtype=float), np.asarray(strata_P)
    values_PV = values[:, None] if values.ndim == 1 else values
    if len(values_PV) == 0:
        raise ValueError("no problems: an interval needs at least one value")
    if strata_P.shape != (len(values_PV),):
        raise ValueError(f"{len(values_PV)} problems but strata of shape {strata_P.shape}")
    missing = np.flatnonzero(np.isnan(values_PV).any(axis=1))
    if missing.size:
        raise ValueError(f"nan at problems {missing[:5].tolist()}: drop or fill them first")
    return values_PV, [np.flatnonzero(strata_P == name) for name in np.unique(strata_P)]


def stratum_means(values_PV: FloatArray, members: list[NDArray[np.intp]]) -> FloatArray:
    """Return the (S, V) means of the rows of each stratum."""
    return np.stack([values_PV[member].mean(axis=0) for member in members])
