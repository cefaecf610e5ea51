"""Gaussians on very many pairs of columns: exp(−γ(d_j + d_k)) is a product of two values on single columns.

With E (n_columns, n_pairs) = exp(−γ d) for one rate γ, a sum of kernels with weights U (n_columns, n_columns) is the
sum over j of E_j ∘ (UE)_j, and the quadratic forms of all pairs of columns are (E diag(c)) E' with c_ij = v_i v_j:
matrix products instead of one exponential per kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._tools.typing import Array, IntArray
from ._tiles import Pairs, exp_into

_CHUNK = 1024  # pairs of samples at a time
_TOGETHER = 64  # kernels at a time if they are evaluated one by one
_GEMM = 0.05  # cost of an entry of a matrix product relative to an exponential


class ColumnPairs:
    """Kernels exp(−rate (d_first + d_second)) of two bases each."""

    def __init__(self, rate: Array, first: IntArray, second: IntArray):
        self.rate, self.first, self.second = rate, first, second
        self.rates, self.at_rate = np.unique(rate, return_inverse=True)
        self.columns = np.unique(np.concatenate([first, second]))
        self._row, self._column = np.searchsorted(self.columns, first), np.searchsorted(self.columns, second)

    def __len__(self) -> int:
        return len(self.rate)

    def add(self, weights: Array, pairs: Pairs, first: int, last: int, out: Array) -> None:
        """Add Σ_m weights_m K_m of the pairs of rows first..last-1 to ``out``."""
        some = np.flatnonzero(weights)
        size = len(self.columns)
        used = np.unique(self.at_rate[some])
        if len(some) < _GEMM * len(used) * size**2:
            for at, _, _ in _chunks(pairs, first, last):
                d = pairs.panel[:, at]
                for k in range(0, len(some), _TOGETHER):
                    out[at] += weights[some[k : k + _TOGETHER]] @ self.stack(d, some[k : k + _TOGETHER])
            return
        U = np.zeros((len(self.rates), size, size))
        np.add.at(U, (self.at_rate, self._row, self._column), weights)
        for at, _, _ in _chunks(pairs, first, last):
            d = pairs.panel[self.columns[:, None], at]
            for r in used:
                E = exponential(self.rates[r] * d)
                out[at] += np.einsum("jp,jp->p", E, U[r] @ E)

    def forms(self, pairs: Pairs, V: Array, first: int, last: int) -> Array:
        """Σ_ij v_i v_j K_m(i, j) over pairs of support vectors, (n_kernels, n_tasks); V (n_tasks, n_support)."""
        size = len(self.columns)
        G = np.zeros((len(V), len(self.rates), size, size))
        for at, i, j in _chunks(pairs, first, last):
            c = V[:, i] * V[:, j] * np.where(i == j, 1.0, 2.0)
            d = pairs.panel[self.columns[:, None], at]
            there = [(t, np.flatnonzero(row)) for t, row in enumerate(c) if row.any()]
            for r, rate in enumerate(self.rates):
                E = exponential(rate * d)
                for t, some in there:
                    part = E if len(some) == len(at) else E[:, some]
                    G[t, r] += (part * c[t, some]) @ part.T
        return np.ascontiguousarray(G[:, self.at_rate, self._row, self._column].T)

    def stack(self, panel: Array, which: IntArray | slice) -> Array:
        """The values of the given kernels, (k, n_pairs), from the values of all bases."""
        distances = panel[self.first[which]] + panel[self.second[which]]
        return exponential(self.rate[which, None] * distances)


def exponential(x: Array) -> Array:
    """exp(−x) for x ≥ 0."""
    out, shift = np.empty(x.shape), np.empty(x.size)
    flat = out.reshape(-1)
    exp_into(np.ascontiguousarray(x).reshape(-1), 1.0, x.size, shift, shift.view(np.int64), flat, flat.view(np.int64))
    return out


def _chunks(pairs: Pairs, first: int, last: int) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield chunks of pairs: the positions of their base values, and the indices of both samples."""
    while first < last:
        until = first + 1
        size = int(pairs.end[first] - pairs.begin[first])
        while until < last and size + pairs.end[until] - pairs.begin[until] <= _CHUNK:
            size += int(pairs.end[until] - pairs.begin[until])
            until += 1
        j = np.concatenate([np.arange(pairs.begin[i], pairs.end[i]) for i in range(first, until)])
        i = np.repeat(np.arange(first, until), pairs.end[first:until] - pairs.begin[first:until])
        yield pairs.row_at[i] + pairs.column[j], i, j
        first = until
