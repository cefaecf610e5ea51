"""Compiled helpers for distances: sums of absolute differences, and squared distances from inner products."""

from __future__ import annotations

import numpy as np

from ._compiled import njit
from ._typing import AnyArray, Array

_COLUMNS = 512  # width of a strip of the result, which stays in the first-level cache while features are added


@njit(fastmath={"contract", "reassoc", "nsz"})
def _add_differences(X: Array, Zt: Array, same: bool, out: Array) -> None:
    """out[i, j] = Σ_d |X[i, d] − Zt[d, j]|, four features at a time to load and store the sum less often.

    If both are the ``same`` samples, the lower triangle is computed and copied to the upper one.
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
    """‖x − z‖_1 between the rows of X and of Z, (len(X), len(Z)); half the work if X is Z.

    The result has single precision if X has.
    """
    kind = np.float32 if X.dtype == np.float32 else np.float64
    out = np.empty((len(X), len(Z)), dtype=kind)
    left = np.ascontiguousarray(X, dtype=kind)
    _add_differences(left, np.ascontiguousarray(Z.T, dtype=kind), X is Z, out)
    return out


@njit(fastmath={"contract"})
def add_squares(x_squares: AnyArray, z_squares: AnyArray, share: float, products: AnyArray, lossy: AnyArray) -> None:
    """Turn inner products x'z into x'x − 2x'z + z'z, clipped at zero, in place.

    ``lossy`` marks rows with a result below ``share`` of x'x + z'z, which has lost most of its digits.
    """
    zero = share - share  # a zero with the precision of ``share``
    for i in range(len(products)):
        row = products[i]
        own = x_squares[i]
        n_lossy = 0
        for j in range(len(row)):
            squares = own + z_squares[j]
            distance = max(squares - row[j] - row[j], zero)
            row[j] = distance
            n_lossy += distance < share * squares
        lossy[i] = n_lossy > 0
