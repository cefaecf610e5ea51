"""Columns on one scale, and the typical distance between samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._distances import cityblock
from ._typing import Array, IntArray

_TAIL = 0.05  # of a column at each end that says nothing about its scale
_WIDTH = 2 * 1.6448536269514722  # standard deviations between these quantiles of a normal distribution
_FAR = 10.0  # standard deviations beyond which a value is an outlier and is moved in
_CONSTANT = 1e-13  # of the largest value: a column that varies less does so by rounding
_MOST_PAIRED = 500  # samples between which distances are looked at


@dataclass(frozen=True)
class Standardizer:
    """Columns of mean zero and standard deviation one, outliers moved in to ten standard deviations.

    The limits come from the quantiles at 5 and 95 %, so that no single value, however large, decides the scale. A
    column that does not vary becomes zero.

    Parameters
    ----------
    low, high : arrays of shape (n_features,)
        Where values are cut off.
    mean, scale : arrays of shape (n_features,)
        What is taken off, and what the rest is divided by.
    """

    low: Array
    high: Array
    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, weight: Array | None = None) -> Standardizer:
        """Fitted to samples X (n, n_features); a sample of weight two counts as two, one of weight zero not at all."""
        weight = np.ones(len(X)) if weight is None else weight
        median, bottom, top = weighted_quantiles(X, weight, (0.5, _TAIL, 1 - _TAIL))
        reach = _FAR * (top - bottom) / _WIDTH
        spread_out = reach > 0  # else most values are the same: an indicator of something rare
        low, high = np.where(spread_out, median - reach, -np.inf), np.where(spread_out, median + reach, np.inf)
        there = X[weight > 0]
        size = np.abs(there - median).max(axis=0)
        unit = np.where(size > 0, size, 1.0)  # squares of what is left cannot overflow
        inside = (np.clip(X, low, high) - median) / unit
        centre = np.average(inside, axis=0, weights=weight)
        deviation = unit * np.sqrt(np.average((inside - centre) ** 2, axis=0, weights=weight))
        varies = deviation > _CONSTANT * np.abs(there).max(axis=0)
        return cls(low, high, median + unit * centre, np.where(varies, deviation, np.inf))

    def __call__(self, X: Array) -> Array:
        return (np.clip(X, self.low, self.high) - self.mean) / self.scale


def typical_distances(X: Array, weight: Array | None = None) -> tuple[float, float]:
    """The medians of ‖x − z‖_2 and of ‖x − z‖_1 between different samples; of many samples some are drawn."""
    weight = np.ones(len(X)) if weight is None else weight
    rows: IntArray = np.flatnonzero(weight > 0)
    if len(rows) > _MOST_PAIRED:
        rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_PAIRED, replace=False))
    X, weight = X[rows], weight[rows]
    i, j = np.tril_indices(len(X), -1)
    squares = np.einsum("ij,ij->i", X, X)
    euclidean = np.sqrt(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))[i, j]
    both = weight[i] * weight[j]
    return _median_of_positive(euclidean, both), _median_of_positive(cityblock(X, X)[i, j], both)


def _median_of_positive(distances: Array, weight: Array) -> float:
    apart = distances > 1e-6 * distances.max(initial=0.0)  # rounding leaves some distance between copies of a sample
    if not apart.any():
        return 1.0
    return float(weighted_quantiles(distances[apart][:, None], weight[apart], (0.5,))[0, 0])


def weighted_quantiles(X: Array, weight: Array, shares: tuple[float, ...]) -> Array:
    """For each share and column the least value with that share of the weight at or below it, (n_shares, n_columns)."""
    if (weight == weight[0]).all():  # finding some places is quicker than sorting
        places = [int((np.arange(1, len(X) + 1) < share * len(X) * (1 - 1e-12)).sum()) for share in shares]
        return np.partition(X, sorted(set(places)), axis=0)[places]
    order = np.argsort(X, axis=0, kind="stable")
    below = np.cumsum(weight[order], axis=0)
    at = [(below < share * below[-1] * (1 - 1e-12)).sum(axis=0) for share in shares]
    columns = np.arange(X.shape[1])
    return np.array([X[order[k, columns], columns] for k in at])
