"""Sample statistics for a bank of kernels, with sums that do not depend on how the samples are split.

:class:`Statistics` computes them from samples in memory. If the samples are on several workers, each worker computes
its part and the parts are combined: maxima, :func:`exact_sums` and :func:`quantiles_by_counting` do not depend on the
split. So both ways give the same numbers to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from .._tools.typing import Array, IntArray
from ._distances import cityblock

_MOST_PAIRED = 500  # maximum number of samples for typical distances
_AT_A_TIME = 2**18  # values summed at a time
_SMALLEST = -900  # exponent of two below which a value counts as zero in a sum
_SECTIONS = 16  # sections into which each round of counting divides the range of a quantile

Function: TypeAlias = Callable[[Array], Array]
"""Maps samples (n, n_features) to one row of numbers each, (n, n_numbers)."""


class Scale(NamedTuple):
    """The inputs for the widths of default kernels: typical distances, and the number of columns that vary."""

    euclidean: float
    cityblock: float
    n_varying: int

    @classmethod
    def of(cls, X: Array, weight: Array | None = None) -> Scale:
        there = X if weight is None else X[weight > 0]
        return cls(*typical_distances(X, weight), max(1, int((there[:1] != there).any(axis=0).sum())))


class Statistics:
    """Weighted quantiles, maxima and means over samples; samples of weight zero do not count.

    Parameters
    ----------
    X : array of shape (n, n_features)
    weight : array of shape (n,), default=None
    """

    def __init__(self, X: Array, weight: Array | None = None):
        there = slice(None) if weight is None or (weight > 0).all() else weight > 0
        self.X = X[there]
        self.weight = np.ones(len(X))[there] if weight is None else weight[there]

    def quantiles(self, shares: tuple[float, ...]) -> Array:
        """For each share and column, the smallest value with that share of the weight at or below it."""
        return weighted_quantiles(self.X, self.weight, shares)

    def largest(self, function: Function) -> Array:
        """The largest value of each number over all samples."""
        return np.max([function(X).max(axis=0) for X, _ in self._parts()], axis=0)

    def mean(self, function: Function, bound: Array | float | None = None) -> Array:
        """The weighted mean of each number; ``bound`` is an upper bound on its absolute value."""
        if bound is None:
            bound = np.maximum(self.largest(function), self.largest(Negative(function)))
        heaviest = float(self.weight.max())
        total = self.sums(function, heaviest * np.asarray(bound, dtype=float), len(self.X))
        return total.sum(axis=0) / exact_sums(self.weight[:, None], np.array([heaviest]), len(self.X)).sum()

    def sums(self, function: Function, bound: Array, n_samples: int) -> Array:
        """The weighted sums as two exact parts (2, n_numbers), which add up over any split of ``n_samples``."""
        parts = [exact_sums(function(X) * weight[:, None], bound, n_samples) for X, weight in self._parts()]
        return np.sum(parts, axis=0)

    def _parts(self) -> Iterator[tuple[Array, Array]]:
        step = max(1, _AT_A_TIME // max(1, self.X.shape[1]))
        for first in range(0, len(self.X), step):
            yield self.X[first : first + step], self.weight[first : first + step]


@dataclass(frozen=True)
class Negative:
    """−f."""

    function: Function

    def __call__(self, X: Array) -> Array:
        return -self.function(X)


def exact_sums(values: Array, bound: Array, n_values: int) -> Array:
    """Column sums, each of at most ``n_values`` numbers below ``bound`` in size, as two parts (2, n_columns).

    Every value is split into a multiple of a coarse unit and one of a fine unit, which are so large that no sum is
    rounded: neither the order nor the grouping of the sums changes a digit.
    """
    bits = int(n_values).bit_length()
    exponent = np.maximum(np.frexp(bound)[1] + bits - 52, _SMALLEST)
    coarse, fine = np.ldexp(1.0, exponent), np.ldexp(1.0, exponent + bits - 52)
    heads = np.rint(values / coarse) * coarse
    tails = np.rint((values - heads) / fine) * fine
    return np.array([heads.sum(axis=0), tails.sum(axis=0)])


def quantiles_by_counting(
    weight_up_to: Callable[[Array], Array], low: Array, high: Array, total: float, shares: tuple[float, ...]
) -> Array:
    """The quantiles of :func:`weighted_quantiles`, using only the weight at or below given values.

    ``weight_up_to`` maps values (n_values, n_columns) to as many weights; all samples lie between ``low`` and ``high``.
    The doubles between them are numbered, and the range of each quantile is divided until one is left.
    """
    wanted = np.array(shares)[:, None] * total * (1 - 1e-12)
    first, last = (np.tile(_number_of(edge), (len(shares), 1)) for edge in (low, high))
    while (first < last).any():
        # the number of doubles in between may exceed a signed 64-bit integer
        distance = last.view(np.uint64) - first.view(np.uint64)
        steps = [
            np.minimum(np.uint64(k) * (distance // np.uint64(_SECTIONS) + np.uint64(1)), distance)
            for k in range(_SECTIONS)
        ]
        tried = np.array([*((first.view(np.uint64) + step).view(np.int64) for step in steps), last])
        enough = weight_up_to(_double_of(tried).reshape(-1, tried.shape[2])).reshape(tried.shape) >= wanted
        enough[-1] = True
        at = enough.argmax(axis=0)[None]
        before = np.take_along_axis(tried, np.maximum(at - 1, 0), axis=0)[0]
        last = np.take_along_axis(tried, at, axis=0)[0]
        first = np.where((at[0] == 0) | (before >= last), last, np.minimum(before + 1, last))
    return _double_of(first)


def _number_of(values: Array) -> IntArray:
    """Map doubles to integers in the same order."""
    bits = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.int64)  # + 0.0 turns −0.0 into 0.0
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _double_of(numbers: IntArray) -> Array:
    bits = np.where(numbers < 0, np.int64(-(2**63)) - numbers, numbers)
    return np.ascontiguousarray(bits).view(np.float64)


def typical_distances(X: Array, weight: Array | None = None) -> tuple[float, float]:
    """The medians of ‖x − z‖_2 and ‖x − z‖_1 between different samples; from a random subset if there are many."""
    weight = np.ones(len(X)) if weight is None else weight
    rows: IntArray = np.flatnonzero(weight > 0)
    drawn = draw(len(rows), _MOST_PAIRED)
    X, weight = X[rows[drawn]], weight[rows[drawn]]
    X = X - np.partition(X, len(X) // 2, axis=0)[len(X) // 2]  # so that distances keep their digits far from the origin
    i, j = np.tril_indices(len(X), -1)
    squares = np.einsum("ij,ij->i", X, X)
    euclidean = np.sqrt(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))[i, j]
    both = weight[i] * weight[j]
    return _median_of_positive(euclidean, both), _median_of_positive(cityblock(X, X)[i, j], both)


def draw(n: int, most: int = _MOST_PAIRED, rng: np.random.Generator | None = None) -> IntArray:
    """At most ``most`` of the numbers 0 to n − 1, drawn at random, in increasing order."""
    if n <= most:
        return np.arange(n)
    return np.sort((rng or np.random.default_rng(0)).choice(n, most, replace=False))


def draw_groups(sizes: Sequence[int], most: int) -> list[tuple[int, IntArray]]:
    """At most ``most`` of the groups, by number, and at most ``most`` samples of each."""
    rng = np.random.default_rng(0)
    return [(int(k), draw(sizes[k], most, rng)) for k in draw(len(sizes), most, rng)]


def _median_of_positive(distances: Array, weight: Array) -> float:
    apart = distances > 1e-6 * distances.max(initial=0.0)  # copies of a sample have small distances from rounding
    if not apart.any():
        return 1.0
    return float(weighted_quantiles(distances[apart][:, None], weight[apart], (0.5,))[0, 0])


def weighted_quantiles(X: Array, weight: Array, shares: tuple[float, ...]) -> Array:
    """For each share and column, the smallest value with that share of the weight at or below it, as a matrix."""
    if (weight == weight[0]).all():  # partitioning is faster than sorting
        places = [int((np.arange(1, len(X) + 1) < share * len(X) * (1 - 1e-12)).sum()) for share in shares]
        return np.partition(X, sorted(set(places)), axis=0)[places]
    order = np.argsort(X, axis=0, kind="stable")
    below = np.cumsum(weight[order], axis=0)
    at = [(below < share * below[-1] * (1 - 1e-12)).sum(axis=0) for share in shares]
    columns = np.arange(X.shape[1])
    return np.array([X[order[k, columns], columns] for k in at])
