"""Compiled helpers for distances: sums of absolute differences, and squared distances from inner products."""

from __future__ import annotations

import numpy as np

from .._tools.compiled import inner_njit, njit
from .._tools.typing import AnyArray, Array

# width and depth of the piece of Z that stays in the second-level cache while the rows of X pass over it
_COLUMNS, _FEATURES = 256, 128


@inner_njit(fastmath={"contract", "reassoc", "nsz"})
def _add_four(x: Array, y: Array, Zt: Array, k: int, first: int, width: int, of_x: Array, of_y: Array) -> None:
    """Add the differences of four features of two samples to those of ``width`` columns."""
    x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
    y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
    z0, z1, z2, z3 = Zt[k, first:], Zt[k + 1, first:], Zt[k + 2, first:], Zt[k + 3, first:]
    for j in range(width):
        a, b, c, d = z0[j], z1[j], z2[j], z3[j]
        of_x[j] += abs(x0 - a) + abs(x1 - b) + abs(x2 - c) + abs(x3 - d)
        of_y[j] += abs(y0 - a) + abs(y1 - b) + abs(y2 - c) + abs(y3 - d)


@njit(fastmath={"contract", "reassoc", "nsz"})
def _add_differences(X: Array, Zt: Array, same: bool, out: Array) -> None:
    """out[i, j] += Σ_d |X[i, d] − Zt[d, j]|, two rows and four features at a time to load and store less often.

    If both are the ``same`` samples, the lower triangle is computed and copied to the upper one.
    """
    n, d = X.shape
    for first in range(0, Zt.shape[1], _COLUMNS):
        last = min(first + _COLUMNS, Zt.shape[1])
        top = first if same else 0
        for low in range(0, d, _FEATURES):
            high = min(low + _FEATURES, d)
            whole = high - (high - low) % 4
            for i in range(top, n - 1, 2):
                width = (min(last, i + 2) if same else last) - first
                for k in range(low, whole, 4):
                    _add_four(X[i], X[i + 1], Zt, k, first, width, out[i, first:], out[i + 1, first:])
                for k in range(whole, high):
                    for j in range(width):
                        out[i, first + j] += abs(X[i, k] - Zt[k, first + j])
                        out[i + 1, first + j] += abs(X[i + 1, k] - Zt[k, first + j])
            if (n - top) % 2:
                for k in range(low, high):
                    for j in range(first, last):
                        out[n - 1, j] += abs(X[n - 1, k] - Zt[k, j])
        if same:
            for i in range(top, n):
                for j in range(first, min(last, i + 1)):
                    out[j, i] = out[i, j]


def cityblock(X: Array, Z: Array) -> Array:
    """‖x − z‖_1 between the rows of X and of Z, (len(X), len(Z)); half the work if X is Z.

    The result has single precision if X has.
    """
    kind = np.float32 if X.dtype == np.float32 else np.float64
    out = np.zeros((len(X), len(Z)), dtype=kind)
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
