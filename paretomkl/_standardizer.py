"""Columns on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._statistics import Statistics
from ._typing import Array

_TAIL = 0.05  # of a column at each end that says nothing about its scale
_WIDTH = 2 * 1.6448536269514722  # standard deviations between these quantiles of a normal distribution
_FAR = 10.0  # standard deviations beyond which a value is an outlier and is moved in
_CONSTANT = 1e-13  # of the largest value: a column that varies less does so by rounding


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
        return cls.from_statistics(Statistics(X, weight))

    @classmethod
    def from_statistics(cls, statistics: Any) -> Standardizer:
        """Fitted to samples of which no more than statistics is known."""
        median, bottom, top = statistics.quantiles((0.5, _TAIL, 1 - _TAIL))
        reach = _FAR * (top - bottom) / _WIDTH
        spread_out = reach > 0  # else most values are the same: an indicator of something rare
        low, high = np.where(spread_out, median - reach, -np.inf), np.where(spread_out, median + reach, np.inf)
        size = statistics.largest(_Distance(median))
        unit = np.where(size > 0, size, 1.0)  # squares of what is left cannot overflow
        inside = cls(low, high, median, unit)
        centre = statistics.mean(inside, 1.0)
        deviation = unit * np.sqrt(statistics.mean(_SquaredDistance(inside, centre), 4.0))
        varies = deviation > _CONSTANT * statistics.largest(np.abs)
        return cls(low, high, median + unit * centre, np.where(varies, deviation, np.inf))

    def __call__(self, X: Array) -> Array:
        return (np.clip(X, self.low, self.high) - self.mean) / self.scale


class _Distance(NamedTuple):
    """abs(x − point) of every column."""

    point: Array

    def __call__(self, X: Array) -> Array:
        return np.abs(X - self.point)


class _SquaredDistance(NamedTuple):
    """(inside(x) − point)² of every column."""

    inside: Standardizer
    point: Array

    def __call__(self, X: Array) -> Array:
        return (self.inside(X) - self.point) ** 2
