"""Sums of absolute differences, compiled: BLAS has no product that gives them."""

from __future__ import annotations

import numpy as np

from ._compiled import njit
from ._typing import Array

_COLUMNS = 512  # of a strip of the result, which stays in the first-level cache while features are added to it


@njit(fastmath={"contract", "reassoc", "nsz"})
def _add_differences(X: Array, Zt: Array, same: bool, out: Array) -> None:
    """out[i, j] = Σ_d |X[i, d] − Zt[d, j]|, four features at a time so that the sum is loaded and stored less often.

    If both are the ``same`` samples, the lower triangle is computed and the upper one copied from it.
    """
    n, d = X.shape
    whole = d - d % 4
    for first in range(0, Zt.shape[1], _COLUMNS):
        for i in range(first if same else 0, n):
            width = min(_COLUMNS, (i + 1 if same else Zt.shape[1]) - first)
            row = out[i, first:]
            for j in range(width):
                row[j] = 0.0
            for k in range(0, whole, 4):
                x0, x1, x2, x3 = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
                z0, z1, z2, z3 = Zt[k, first:], Zt[k + 1, first:], Zt[k + 2, first:], Zt[k + 3, first:]
                for j in range(width):
                    row[j] += abs(x0 - z0[j]) + abs(x1 - z1[j]) + abs(x2 - z2[j]) + abs(x3 - z3[j])
            for k in range(whole, d):
                x0, z0 = X[i, k], Zt[k, first:]
                for j in range(width):
                    row[j] += abs(x0 - z0[j])
            if same:
                for j in range(width):
                    out[first + j, i] = row[j]


def cityblock(X: Array, Z: Array) -> Array:
    """‖x − z‖_1 between the rows of X and of Z, (len(X), len(Z)); half the work where X is Z."""
    out = np.empty((len(X), len(Z)))
    left = np.ascontiguousarray(X, dtype=np.float64)
    _add_differences(left, np.ascontiguousarray(Z.T, dtype=np.float64), X is Z, out)
    return out
