"""Scale columns robustly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._tools.typing import Array
from ._statistics import Statistics

_TAIL = 0.05  # share of a column at each end that is ignored for its scale
_WIDTH = 2 * 1.6448536269514722  # standard deviations between these quantiles of a normal distribution
_FAR = 10.0  # standard deviations beyond which a value is an outlier and is clipped
_CONSTANT = 1e-13  # variation, relative to the largest value, that may be rounding


@dataclass(frozen=True)
class Standardizer:
    """Scales columns to mean zero and standard deviation one, with outliers clipped at ten standard deviations.

    The limits come from the quantiles at 5 and 95 %, so no single value, however large, determines the scale. A
    constant column becomes zero.

    Parameters
    ----------
    low, high : arrays of shape (n_features,)
        Limits for clipping.
    mean, scale : arrays of shape (n_features,)
        Subtracted from the clipped values, and their divisor.
    """

    low: Array
    high: Array
    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, weight: Array | None = None) -> Standardizer:
        """Fit to samples X (n, n_features); a sample of weight two counts twice, one of weight zero not at all."""
        return cls.from_statistics(Statistics(X, weight))

    @classmethod
    def from_statistics(cls, statistics: Any) -> Standardizer:
        """Fit to statistics of the samples instead of the samples themselves."""
        median, bottom, top = statistics.quantiles((0.5, _TAIL, 1 - _TAIL))
        reach = _FAR * (top - bottom) / _WIDTH
        spread_out = reach > 0  # otherwise most values are equal, as in the indicator of a rare category
        low, high = np.where(spread_out, median - reach, -np.inf), np.where(spread_out, median + reach, np.inf)
        size = statistics.largest(_Distance(median))
        unit = np.where(size > 0, size, 1.0)  # so that squares cannot overflow
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
