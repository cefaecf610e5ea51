"""Kernel values of samples after some of their columns have been exchanged among them.

Permutation importances need the kernels between some samples and the support vectors again and again, each time with
one column permuted. A squared or an L1 distance is a sum over columns, so the distances are updated, not recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray
from ._evaluation import POLYNOMIAL, dense
from ._fitted import FittedBank, Side, inverse

_LOSSY = 1e-7  # share of the old distance below which an updated one has lost its digits


@dataclass(frozen=True)
class Exchange:
    """Σ_m θ_m K_m between some samples and others, if the samples have columns from each other.

    Parameters
    ----------
    bank : FittedBank
        The kernels; not a precomputed stack.
    left, right : Side
        The samples, and the others.
    rows : array of int of shape (n_rows,)
        The samples to evaluate; the others in ``left`` only give their columns.
    theta : array of shape (n_kernels,)
        Weights of the kernels.
    """

    bank: FittedBank
    left: Side
    right: Side
    rows: IntArray
    theta: Array

    @cached_property
    def _own(self) -> Side:
        return self.left.take(self.rows)

    @cached_property
    def _panel(self) -> Array:
        """The base values of all pairs, (n_bases, n_rows, n_right)."""
        evaluator = self.bank.evaluator
        columns, bases = np.arange(len(self.right)), slice(0, evaluator.plan.n_bases)
        return evaluator.panel(self.left, self.rows, self.right, columns, bases).reshape(
            bases.stop, len(self.rows), len(columns)
        )

    def cross(self, columns: IntArray, donors: IntArray, which: AnyArray) -> Array:
        """The sum over the kernels ``which``, (n_rows, n_right), if row i has the columns of sample ``donors[i]``."""
        evaluator, n = self.bank.evaluator, len(self.rows)
        own, panel = self._exchanged(columns, donors, which)
        weights = evaluator.plan.weights(np.where(which, self.theta * self.bank.factor, 0.0))
        out = np.empty(n * len(self.right))
        pairs = evaluator.pairs(own, np.arange(n), self.right, slice(0), panel.reshape(len(panel), -1))
        evaluator.plan.combine(weights, pairs, 0, n, out)
        return out.reshape(n, -1)

    def _exchanged(self, columns: IntArray, donors: IntArray, which: AnyArray) -> tuple[Side, Array]:
        """The rows with exchanged columns, and their base values."""
        evaluator, own, right = self.bank.evaluator, self._own, self.right
        squares, centred = own.squares.copy(), list(own.centred_squares)
        features, panel = list(own.features), self._panel.copy()
        for b, (kernel, seen) in enumerate(zip(evaluator.bases.kernels, evaluator.bases.columns, strict=True)):
            at = np.flatnonzero(np.isin(seen, columns))
            if not len(at):
                continue
            x, z, new = (dense(part[:, at]) for part in (own.features[b], right.features[b], self.left.features[b]))
            new = new[donors]
            if kernel.metric not in ("sqeuclidean", "cityblock"):  # a function of any kind
                features[b] = _with_columns(own.features[b], at, new)
                panel[b] = kernel.base_values(features[b], right.features[b])
                continue
            if kernel.metric == "sqeuclidean":
                middle = evaluator.centre_of(b)[at]
                squares[b] += ((new + middle) ** 2 - (x + middle) ** 2).sum(axis=1)
                centred[b] = centred[b] + (new**2 - x**2).sum(axis=1)
            if b < len(panel):  # bases after these are sums of two of them
                _move(panel[b], x, new, z, kernel.metric == "sqeuclidean")
                if (panel[b] < _LOSSY * self._panel[b]).any():
                    i, j = np.nonzero(panel[b] < _LOSSY * self._panel[b])
                    apart = np.abs(_with_columns(own.features[b], at, new)[i] - dense(right.features[b][j]))
                    panel[b][i, j] = (apart**2 if kernel.metric == "sqeuclidean" else apart).sum(axis=1)
        side = self._scaled(Side(features, centred, squares, own.scale), which)
        return evaluator.with_norms(side, self.bank.centred), panel

    def _scaled(self, side: Side, which: AnyArray) -> Side:
        """The side with the scale that gives its samples norm one, where kernels have any."""
        evaluator = self.bank.evaluator
        kind, base, rate, offset, degree, scaled, norm = evaluator.codes
        mine = np.flatnonzero((scaled > 0) & which)
        if not len(mine):
            return side
        scale = side.scale.copy()
        for m in mine.tolist():
            if kind[m] == POLYNOMIAL:
                diagonal = (rate[m] * side.squares[norm[m]] + offset[m]) ** int(degree[m])
            else:
                diagonal = evaluator.kernels[m].diagonal(side.features[base[m]])
            scale[m] = np.sqrt(inverse(diagonal))
        return replace(side, scale=scale)


def kernels_on(bank: FittedBank, columns: IntArray) -> AnyArray:
    """Which kernels of a bank depend on one of the columns, (n_kernels,)."""
    bases = bank.evaluator.bases
    return np.array([bool(np.isin(columns, seen).any()) for seen in bases.columns])[bases.of_kernel]


def see_nothing_else(bank: FittedBank, columns: IntArray, which: AnyArray) -> bool:
    """Whether the kernels ``which`` depend on these columns only."""
    bases = bank.evaluator.bases
    return all(np.isin(bases.columns[b], columns).all() for b in np.unique(bases.of_kernel[which]))


def _with_columns(part: AnyArray, at: IntArray, values: Array) -> Array:
    """Features with other values in the columns ``at``."""
    changed = np.array(dense(part))
    changed[:, at] = values
    return changed


def _move(distances: Array, x: Array, new: Array, z: Array, squared: bool) -> None:
    """Update distances (n, n_right) after columns x (n, k) became ``new``; the others have z (n_right, k)."""
    for k in range(x.shape[1]):
        was, now, other = x[:, [k]], new[:, [k]], z[:, k]
        # (now − z)² − (was − z)², or the same with absolute values
        distances += (now - was) * (now + was - 2 * other) if squared else np.abs(now - other) - np.abs(was - other)
    np.maximum(distances, 0.0, out=distances)
