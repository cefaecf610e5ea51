"""What a bank of kernels learns from its samples, and sums that come out the same however the samples are divided.

A :class:`Statistics` answers from samples in memory. Where the samples are at several workers, each answers for its own
and the answers are put together: maxima and :func:`exact_sums` do not depend on how the samples are divided, nor do
:func:`quantiles_by_counting`. So both ways learn the same numbers to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ._distances import cityblock
from ._typing import Array, IntArray

_MOST_PAIRED = 500  # samples between which distances are looked at
_AT_A_TIME = 2**18  # values of a sum
_SMALLEST = -900  # exponent of two below which a value counts as zero in a sum
_SECTIONS = 16  # into which counting divides the range of a quantile in each round

Function: TypeAlias = Callable[[Array], Array]
"""From samples (n, n_features) to a row of numbers for each, (n, n_numbers)."""


class Scale(NamedTuple):
    """What the widths of default kernels follow from: typical distances, and how many columns vary."""

    euclidean: float
    cityblock: float
    n_varying: int

    @classmethod
    def of(cls, X: Array, weight: Array | None = None) -> Scale:
        there = X if weight is None else X[weight > 0]
        return cls(*typical_distances(X, weight), max(1, int((there[:1] != there).any(axis=0).sum())))


class Statistics:
    """Weighted quantiles, maxima and means over samples; those of weight zero do not count.

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
        """For each share and column the least value with that share of the weight at or below it."""
        return weighted_quantiles(self.X, self.weight, shares)

    def largest(self, function: Function) -> Array:
        """The largest value of each number over all samples."""
        return np.max([function(X).max(axis=0) for X, _ in self._parts()], axis=0)

    def mean(self, function: Function, bound: Array | float | None = None) -> Array:
        """The weighted mean of each number; ``bound`` is at least its largest size."""
        if bound is None:
            bound = np.maximum(self.largest(function), self.largest(Negative(function)))
        heaviest = float(self.weight.max())
        total = self.sums(function, heaviest * np.asarray(bound, dtype=float), len(self.X))
        return total.sum(axis=0) / exact_sums(self.weight[:, None], np.array([heaviest]), len(self.X)).sum()

    def sums(self, function: Function, bound: Array, n_samples: int) -> Array:
        """The weighted sums as two parts (2, n_numbers), both exact; they add up over divisions of ``n_samples``."""
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
    """Sums of the columns, each of at most ``n_values`` numbers below ``bound`` in size, as two parts (2, n_columns).

    Every value is cut into a multiple of a coarse unit and one of a fine unit, so coarse that no sum of multiples is
    ever rounded: neither the order of the sums nor their division changes a digit.
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
    """The quantiles of :func:`weighted_quantiles` from nothing but the weight at or below given values.

    ``weight_up_to`` takes values (n_values, n_columns) and returns as many weights; all samples lie between ``low`` and
    ``high``. The doubles between them are numbered, and the range of each quantile is divided until one is left.
    """
    wanted = np.array(shares)[:, None] * total * (1 - 1e-12)
    first, last = (np.tile(_number_of(edge), (len(shares), 1)) for edge in (low, high))
    while (first < last).any():
        # between two doubles there may be more of them than a signed number of 64 bits can say
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
    """Doubles as whole numbers of the same order."""
    bits = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.int64)  # + 0.0: there is one zero only
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _double_of(numbers: IntArray) -> Array:
    bits = np.where(numbers < 0, np.int64(-(2**63)) - numbers, numbers)
    return np.ascontiguousarray(bits).view(np.float64)


def typical_distances(X: Array, weight: Array | None = None) -> tuple[float, float]:
    """The medians of ‖x − z‖_2 and of ‖x − z‖_1 between different samples; of many samples some are drawn."""
    weight = np.ones(len(X)) if weight is None else weight
    rows: IntArray = np.flatnonzero(weight > 0)
    drawn = draw(len(rows), _MOST_PAIRED)
    X, weight = X[rows[drawn]], weight[rows[drawn]]
    i, j = np.tril_indices(len(X), -1)
    squares = np.einsum("ij,ij->i", X, X)
    euclidean = np.sqrt(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))[i, j]
    both = weight[i] * weight[j]
    return _median_of_positive(euclidean, both), _median_of_positive(cityblock(X, X)[i, j], both)


def draw(n: int, most: int = _MOST_PAIRED, rng: np.random.Generator | None = None) -> IntArray:
    """Some of n numbers, rising: all where they are at most ``most``, else as many at random."""
    if n <= most:
        return np.arange(n)
    return np.sort((rng or np.random.default_rng(0)).choice(n, most, replace=False))


def draw_groups(sizes: Sequence[int], most: int) -> list[tuple[int, IntArray]]:
    """Some of the groups by their numbers, and some samples of each: at most ``most`` of both."""
    rng = np.random.default_rng(0)
    return [(int(k), draw(sizes[k], most, rng)) for k in draw(len(sizes), most, rng)]


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
