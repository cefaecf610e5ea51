"""Prepare samples for kernels: fill gaps, and turn the codes of categories into indicators.

A :class:`Preparation` is fitted to training samples, like the scales of columns. It appends indicators of categories to
the columns of X, which keep their places. A category that no training sample has is a constant column, without effect.
Cells without a value get a typical value of their column. A source that a sample lacks altogether is predicted from its
other sources by ridge regression, except beside a sparse source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._tools.typing import AnyArray, Array, IntArray
from ._evaluation import side_by_side

NEARLY_EMPTY = 0.05  # share of values below which a column is left out
_MOST_BASIS = 500  # maximum number of samples that missing sources are predicted from
_RIDGES = 10.0 ** np.arange(-2, 2, 0.5)  # in units of the mean squared norm
_SMALLEST = 1e-9  # variation, relative to the largest value, that may be rounding


def lacking(gaps: AnyArray, sources: Sequence[IntArray]) -> AnyArray:
    """Which sources each sample lacks, (n, n_sources), from which of its values are missing."""
    found = [gaps[:, columns].all(axis=1) for columns in sources]
    return np.stack(found, axis=1) if found else np.zeros((len(gaps), 0), dtype=bool)


@dataclass(frozen=True)
class Category:
    """A column of codes 0, 1, … as indicators.

    column: its position; first: the position of its first indicator; shares: the share of each code in training, which
    stands for codes that training samples lack; missing: the code of gaps, if training samples have some.
    """

    column: int
    first: int
    shares: Array
    missing: int | None

    def indicators(self, codes: Array) -> Array:
        """One column per code; codes that no training sample has have the shares of training."""
        missing = np.isnan(codes)
        known = np.where(missing, np.nan if self.missing is None else float(self.missing), codes)
        made = np.asarray((known[:, None] == np.arange(len(self.shares))) & (self.shares > 0), dtype=np.float64)
        made[~made.any(axis=1)] = self.shares
        return made

    @property
    def columns(self) -> IntArray:
        return self.first + np.arange(len(self.shares))


@dataclass(frozen=True)
class SourceRidge:
    """Predicts the columns of a source that a sample lacks from its other sources.

    sources: the prepared columns of each source; basis (n_basis, n_columns): training samples, standardised, with zeros
    for what they lack; there (n_basis, n_sources): which sources they have; mean, scale (n_columns,): of training;
    weights: one matrix (n_basis, n_columns_of_source) for each source that some training samples lack, else None.
    """

    raw: Sequence[IntArray]
    sources: Sequence[IntArray]
    basis: Array
    there: AnyArray
    mean: Array
    scale: Array
    level: float
    weights: Sequence[Array | None]

    @classmethod
    def of(
        cls, prepared: Array, lacks: AnyArray, raw: Sequence[IntArray], sources: Sequence[IntArray], weight: Array
    ) -> SourceRidge:
        """Fit to prepared training samples."""
        rows = np.flatnonzero((weight > 0) & ~lacks.all(axis=1))
        if len(rows) > _MOST_BASIS:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_BASIS, replace=False))
        there = ~lacks[rows]
        mean, scale = np.zeros(prepared.shape[1]), np.full(prepared.shape[1], np.inf)
        for k, columns in enumerate(sources):
            own = prepared[np.ix_(rows[there[:, k]], columns)]
            if len(own):
                deviation = own.std(axis=0)
                varies = deviation > _SMALLEST * np.abs(own).max(axis=0)
                mean[columns], scale[columns] = own.mean(axis=0), np.where(varies, deviation, np.inf)
        empty = np.empty((0, 0))
        made = cls(raw, sources, empty, there, mean, scale, 1.0, [])
        basis = made._standard(prepared[rows], there)
        level = float(np.mean(np.einsum("ij,ij->i", basis, basis))) or 1.0
        made = cls(raw, sources, basis, there, mean, scale, level, [])
        weights = [made._weights(k) if lacks[:, k].any() else None for k in range(len(sources))]
        return cls(raw, sources, basis, there, mean, scale, level, weights)

    def _standard(self, prepared: Array, there: AnyArray) -> Array:
        """Standardised samples, with zeros for what they lack, in which each source has the same weight."""
        made = np.zeros(prepared.shape)
        for k, columns in enumerate(self.sources):
            own = np.clip((prepared[:, columns] - self.mean[columns]) / self.scale[columns], -10, 10)
            made[:, columns] = np.where(there[:, [k]], own / np.sqrt(len(columns)), 0.0)
        return made

    def _products(self, standard: Array, there: AnyArray, k: int) -> Array:
        """Inner products with the basis over all sources but one, as if no sample had more of them than another."""
        some = standard.copy()
        some[:, self.sources[k]] = 0.0
        counts = [np.maximum(known.sum(axis=1) - known[:, k], 1) for known in (there, self.there)]
        return (some @ self.basis.T + self.level) / np.sqrt(np.multiply.outer(*counts))

    def _weights(self, k: int) -> Array | None:
        """The coefficients of the basis, with the penalty of the smallest leave-one-out error."""
        rows = np.flatnonzero(self.there[:, k] & (self.there.sum(axis=1) > 1))
        if len(rows) < 3:
            return None
        targets = self.basis[np.ix_(rows, self.sources[k])]
        products = self._products(self.basis, self.there, k)[np.ix_(rows, rows)]
        size, best = np.trace(products) / len(rows), (np.inf, np.empty(0))
        values, vectors = np.linalg.eigh(products)
        for ridge in _RIDGES:
            inverse = (vectors / (np.maximum(values, 0.0) + ridge * size)) @ vectors.T
            found = inverse @ targets
            error = float(np.mean((found / np.diag(inverse)[:, None]) ** 2))
            if error < best[0]:
                best = (error, found)
        weights = np.zeros((len(self.basis), len(self.sources[k])))
        weights[rows] = best[1]
        return weights

    def fill(self, prepared: Array, lacks: AnyArray) -> None:
        """Fill in the sources that samples lack, if they have another one."""
        for k, weights in enumerate(self.weights):
            rows = np.flatnonzero(lacks[:, k] & ~lacks.all(axis=1))
            if weights is None or not len(rows):
                continue
            columns, there = self.sources[k], ~lacks[rows]
            found = self._products(self._standard(prepared[rows], there), there, k) @ weights * np.sqrt(len(columns))
            scale = np.where(np.isfinite(self.scale[columns]), self.scale[columns], 0.0)
            prepared[np.ix_(rows, columns)] = self.mean[columns] + scale * found


@dataclass(frozen=True)
class Preparation:
    """What is done to samples before kernels see them, fitted to training samples.

    fill (n_columns,): stands for gaps in columns of numbers; unused: columns with hardly any values, which become
    constant; categories: columns of codes; ridge: predicts sources that samples lack, if training samples lack some.
    """

    fill: Array
    unused: IntArray
    categories: Sequence[Category]
    ridge: SourceRidge | None = None

    @classmethod
    def of(
        cls,
        X: AnyArray,
        weight: Array | None = None,
        n_levels: Mapping[int, int] | None = None,
        sources: Sequence[IntArray] = (),
    ) -> Preparation:
        """Fit to training samples.

        n_levels : the number of codes of each column of categories; sources : the columns of each source.
        """
        n_levels, n_columns = n_levels or {}, X.shape[1]
        weight = np.ones(X.shape[0]) if weight is None else weight
        if issparse(X):
            return cls._of_sparse(X, weight, n_levels)
        gaps = np.isnan(X)
        known = ~gaps * weight[:, None]
        few = known.sum(axis=0) < NEARLY_EMPTY * weight.sum()
        fill = np.array([typical(X[:, k], known[:, k]) for k in range(n_columns)])
        first = n_columns
        categories: list[Category] = []
        for column, n in n_levels.items():
            if few[column]:
                continue
            lost = bool((gaps[:, column] & (weight > 0)).any())
            codes = np.where(gaps[:, column], float(n), X[:, column])
            coded = np.asarray(codes[:, None] == np.arange(n + lost), dtype=np.float64)
            shares = weight @ coded / max(float((weight @ coded).sum()), 1e-300)
            categories.append(Category(column, first, shares, n if lost else None))
            first += n + lost
        made = cls(fill, np.flatnonzero(few), categories)
        lacks = lacking(gaps, sources)
        if len(sources) < 2 or not lacks.any():
            return made
        wide = [made.expanded(columns) for columns in sources]
        return cls(fill, made.unused, categories, SourceRidge.of(made(X), lacks, sources, wide, weight))

    @classmethod
    def _of_sparse(cls, X: Any, weight: Array, n_levels: Mapping[int, int]) -> Preparation:
        """Fit to sparse samples; zero stands for gaps in columns that are mostly zero and have none in training."""
        mostly = np.bincount(X.indices, minlength=X.shape[1]) > X.shape[0] / 2
        mostly[[*X.indices[np.isnan(X.data)], *n_levels]] = True
        columns, fill = np.flatnonzero(mostly), np.zeros(X.shape[1])
        levels = {k: n_levels[column] for k, column in enumerate(columns.tolist()) if column in n_levels}
        made = cls.of(X[:, columns].toarray(), weight, levels)
        fill[columns], before = made.fill, X.shape[1] - len(columns)
        moved = [replace(one, column=int(columns[one.column]), first=before + one.first) for one in made.categories]
        return cls(fill, columns[made.unused], moved)

    def __call__(self, X: AnyArray) -> AnyArray:
        """The columns of X without gaps, followed by the indicators."""
        if issparse(X):
            return self._of_sparse_samples(X)
        gaps = np.isnan(X)
        full = np.where(gaps, self.fill, X)
        full[:, self.unused] = 0.0
        full = np.hstack([full, *(category.indicators(X[:, category.column]) for category in self.categories)])
        if self.ridge is not None:
            self.ridge.fill(full, lacking(gaps, self.ridge.raw))
        return full

    def _of_sparse_samples(self, X: Any) -> Any:
        full = X.copy()
        full.data = np.where(np.isnan(X.data), self.fill[X.indices], X.data)
        full.data[np.isin(X.indices, self.unused)] = 0.0
        full.eliminate_zeros()
        made = [one.indicators(X[:, [one.column]].toarray().ravel()) for one in self.categories]
        return side_by_side([full, *made])

    def lacking(self, X: AnyArray) -> AnyArray:
        """Which sources each sample lacks, (n, n_sources); without columns if all training samples have all of them."""
        return np.zeros((X.shape[0], 0), dtype=bool) if self.ridge is None else lacking(np.isnan(X), self.ridge.raw)

    @property
    def n_columns(self) -> int:
        """The number of prepared columns."""
        return len(self.fill) + sum(len(category.shares) for category in self.categories)

    def origins(self, columns: IntArray) -> IntArray:
        """The columns of X that some prepared columns are made of."""
        origin = np.arange(self.n_columns)
        for category in self.categories:
            origin[category.columns] = category.column
        return np.unique(origin[columns])

    def expanded(self, columns: IntArray) -> IntArray:
        """The prepared columns of some columns of X."""
        made = {category.column: category.columns for category in self.categories}
        if not made:
            return columns
        return np.concatenate([made.get(int(column), np.array([column])) for column in columns])


def typical(values: Array, weight: Array) -> float:
    """The weighted median; zero without values."""
    there = np.flatnonzero(weight > 0)
    if not len(there):
        return 0.0
    order = there[np.argsort(values[there], kind="stable")]
    below = np.cumsum(weight[order])
    at = np.searchsorted(below, below[-1] / 2 * np.array([1 - 1e-12, 1 + 1e-12]))
    return float(values[order[np.minimum(at, len(order) - 1)]].mean())
