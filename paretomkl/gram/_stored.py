"""Compiled loops over stored kernel values, for stores so small that reading them is faster than computing them again.

The values of all kernels for a pair of samples lie side by side, so that each pair is one short vector operation.
"""

from __future__ import annotations

import numpy as np

from .._tools.compiled import njit
from .._tools.typing import Array, IntArray


@njit(fastmath={"contract", "reassoc", "nsz"})
def combine_values(values: Array, weights: Array, start: IntArray, size: IntArray, flat: Array) -> None:
    """The lower triangle of Σ_m weights_m K_m of every block, at its place in ``flat``.

    ``values`` has shape (n_pairs, n_kernels); ``weights`` has one row for all blocks, or one row per block.
    """
    n_kernels = values.shape[1]
    for b in range(len(size)):
        weight = weights[b if len(weights) > 1 else 0]
        for i in range(size[b]):
            for pair in range(start[b] + i * size[b], start[b] + i * size[b] + i + 1):
                total = 0.0
                for m in range(n_kernels):
                    total += weight[m] * values[pair, m]
                flat[pair] = total


@njit(fastmath={"contract"})
def forms_of_values(
    values: Array, ptr: IntArray, idx: IntArray, start: IntArray, size: IntArray, v: Array, G: Array
) -> None:
    """G[t] += v_t'K_m v_t of every kernel, for flat duals v; the other arguments are those of a TaskLayout.

    A sum per row first: the error of a sum is that of its longest chain of additions.
    """
    n_kernels = values.shape[1]
    of_row = np.empty(n_kernels)
    for t in range(len(size)):
        form = G[t]
        for i in range(ptr[t], ptr[t + 1]):
            if v[i] == 0.0:
                continue
            row = start[t] + idx[i] * size[t]
            own = row + idx[i]
            for m in range(n_kernels):
                of_row[m] = 0.5 * v[i] * values[own, m]
            for j in range(ptr[t], i):
                if v[j] == 0.0:
                    continue
                pair, factor = row + idx[j], v[j]
                for m in range(n_kernels):
                    of_row[m] += factor * values[pair, m]
            for m in range(n_kernels):
                form[m] += 2.0 * v[i] * of_row[m]
