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
def add_squares(
    x: AnyArray, z: AnyArray, x_squares: AnyArray, z_squares: AnyArray, share: float, products: AnyArray
) -> None:
    """Turn inner products x'z into ‖x − z‖² = x'x − 2x'z + z'z, in place.

    A result below ``share`` of x'x + z'z has lost most of its digits and is computed from the differences. Few are,
    unless an outlier is so far away that all others seem close together.
    """
    zero = share - share  # a zero with the precision of ``share``
    for i in range(len(products)):
        own = x_squares[i]
        for first in range(0, len(z), _COLUMNS):
            row, squares = products[i, first:], z_squares[first:]
            n = min(_COLUMNS, len(z) - first)
            n_lossy = 0
            for j in range(n):
                distance = max(own + squares[j] - row[j] - row[j], zero)
                row[j] = distance
                n_lossy += distance < share * (own + squares[j])
            for j in range(n if n_lossy else 0):
                if row[j] < share * (own + squares[j]):
                    total = zero
                    for k in range(x.shape[1]):
                        difference = x[i, k] - z[first + j, k]
                        total += difference * difference
                    row[j] = total
