"""Fit a bank of kernels to samples: statistics of the samples, the standardizer, and the fitted bank.

:class:`Statistics` computes statistics from samples in memory. If the samples are on several workers, each worker
computes its part and the parts are combined: maxima, :func:`exact_sums` and quantiles by counting do not depend on how
the samples are split. So both ways give the same numbers to the last digit.

A :class:`FittedBank` never stores one Gram matrix per kernel. Its :class:`Evaluator` computes kernel values from the
distances between samples, whenever they are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from .._tools.compiled import njit
from .._tools.devices import chosen_device
from .._tools.typing import AnyArray, Array, IntArray
from ._choose_device import device_for
from ._evaluation import (
    EXPONENTIAL,
    POLYNOMIAL,
    Bases,
    Codes,
    EvaluationPlan,
    Pairs,
    Program,
    SampleNorms,
    Scaling,
    as_matrix,
    cityblock,
    compile_program,
    dense,
    gaps_in,
    squared_distances,
    sums_of_squares,
)
from ._many_kernels import MANY_PAIRS, WORTHWHILE, make_plan, split_pairs
from ._preparing import Preparation

if TYPE_CHECKING:
    from ._kernels import Kernel, Normalization

PANEL_BYTES = 32 * 2**20  # size of the piece of the base matrices computed at a time if they are not kept
_TAIL = 0.05  # share of a column at each end that is ignored for its scale
_WIDTH = 2 * 1.6448536269514722  # standard deviations between these quantiles of a normal distribution
_FAR = 10.0  # standard deviations beyond which a value is an outlier and is clipped
_CONSTANT = 1e-13  # variation, relative to the largest value, that may be rounding
_MOSTLY = 0.6  # share of zeros above which a block is mostly zero
_HEAVY, _UNLIKE = 0.25, 10.0  # limits on the share of a column in the squared norm, and on its typical value
_MOST_PAIRED = 500  # maximum number of samples for typical distances
_AT_A_TIME = 2**18  # values summed at a time
_SMALLEST = -900  # exponent of two below which a value counts as zero in a sum
# limit on tasks, and on samples per task, for measuring kernels: for normalisation, and only to display shares
_MOST_MEASURED, _MOST_LOOKED_AT = 1000, 256
_MOST_VALUES = 3e7  # limit on all kernel values computed to display shares
_CALL = 10_000  # pairs of samples that cost as much as one more call
_WORTH_A_DEVICE = 1e7  # numbers of which a device finds quantiles faster
_PAIRS_WORTH_A_DEVICE = 1e7  # pairs of samples below which a device evaluates functions no faster
_STACK_BYTES = 64 * 2**20  # size of the matrices measured at a time
NO_VARIANCE = 1e-13  # relative variance that rounding leaves in a constant kernel

Function: TypeAlias = Callable[[Array], Array]
"""Maps samples (n, n_features) to one row of numbers each, (n, n_numbers)."""

Groups: TypeAlias = Sequence[tuple[IntArray, Array]]
"""The samples of each task and their weights."""


# --------------------------------------------------------------------------------------------- statistics
class ColumnStatistics(Protocol):
    """Statistics of the columns of samples, in memory or on a cluster; see :class:`Statistics`."""

    def quantiles(self, shares: tuple[float, ...]) -> Array: ...

    def largest(self, function: Function) -> Array: ...

    def mean(self, function: Function, bound: Array | float | None = None) -> Array: ...

    def scale(self, scaler: Function | None, columns: IntArray) -> Scale: ...


class TrainingStatistics(ColumnStatistics, Protocol):
    """Statistics of the tasks on a cluster."""

    def spread(self, evaluator: Evaluator, most: int) -> tuple[Array, Array]: ...


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
        there = slice(None) if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        self.X = X[there]
        self.weight = np.ones(X.shape[0])[there] if weight is None else weight[there]

    def quantiles(self, shares: tuple[float, ...]) -> Array:
        """For each share and column, the smallest value with that share of the weight at or below it."""
        return weighted_quantiles(self.X, self.weight, shares)

    def largest(self, function: Function) -> Array:
        """The largest value of each number over all samples."""
        return np.stack([function(X).max(axis=0) for X, _ in self._parts()]).max(axis=0)

    def mean(self, function: Function, bound: Array | float | None = None) -> Array:
        """The weighted mean of each number; ``bound`` is an upper bound on its absolute value."""
        if bound is None:
            bound = np.maximum(self.largest(function), self.largest(negative(function)))
        heaviest = float(self.weight.max())
        total = self.sums(function, heaviest * np.asarray(bound, dtype=float), len(self.weight))
        return total.sum(axis=0) / exact_sums(self.weight[:, None], np.array([heaviest]), len(self.weight)).sum()

    def sums(self, function: Function, bound: Array, n_samples: int) -> Array:
        """The weighted sums as two exact parts (2, n_numbers), which add up over any split of ``n_samples``."""
        parts = [exact_sums(function(X) * weight[:, None], bound, n_samples) for X, weight in self._parts()]
        return np.sum(parts, axis=0)

    def scale(self, scaler: Function | None, columns: IntArray) -> Scale:
        """Typical distances in the given columns, scaled if asked for, and the number of columns that vary."""
        some = draw(len(self.weight), _MOST_PAIRED)
        distances = typical_distances(seen(scaler, columns, self.X[some]), self.weight[some])
        return Scale(*distances, max(1, self._n_varying(scaler, columns)))

    def _n_varying(self, scaler: Function | None, columns: IntArray) -> int:
        same = columns
        for X, _ in self._parts():  # most columns vary in the first part already
            values = seen(scaler, same, X)
            same = same[(values == seen(scaler, same, self.X[:1])).all(axis=0)]
        return len(columns) - len(same)

    def _parts(self) -> Iterator[tuple[Array, Array]]:
        step = max(1, _AT_A_TIME // max(1, self.X.shape[1]))
        for first in range(0, len(self.weight), step):
            yield self.X[first : first + step], self.weight[first : first + step]


class SparseStatistics(Statistics):
    """Statistics of sparse samples, of which only columns to be standardised become dense."""

    X: Any  # a sparse array

    def __init__(self, X: AnyArray, weight: Array | None = None):
        super().__init__(X, weight)
        there = np.bincount(self.X.indices, minlength=self.X.shape[1])
        self.empty = 1 - there / max(1, len(self.weight))

    def quantiles(self, shares: tuple[float, ...]) -> Array:
        """Zeros: sparse samples are not centred, or they would not be sparse."""
        return np.zeros((len(shares), self.X.shape[1]))

    def like_counts(self, blocks: Sequence[IntArray]) -> list[bool]:
        """See :func:`like_counts`."""
        lowest, squares = dense(self.X.min(axis=0)).ravel(), self.X.power(2).sum(axis=0)
        return [
            self.mostly_zero(seen)
            and bool((lowest[seen] >= 0).all())
            and _balanced(squares[seen], (1 - self.empty[seen]) * len(self.weight))
            for seen in blocks
        ]

    def mostly_zero(self, columns: IntArray) -> bool:
        return bool(self.empty[columns].mean() > _MOSTLY)

    def standardizer(self, columns: IntArray) -> Standardizer:
        """A standardizer of the given columns that leaves the others alone."""
        some = Standardizer.of(Statistics(dense(_take(self.X, columns)), self.weight))
        whole = [np.full(self.X.shape[1], value) for value in (-np.inf, np.inf, 0.0, 1.0)]
        for values, own in zip(whole, (some.low, some.high, some.mean, some.scale), strict=True):
            values[columns] = own
        return Standardizer(*whole)

    def scale(self, scaler: Function | None, columns: IntArray) -> Scale:
        """As for dense samples, but without the distances ‖x − z‖_1 of columns that are not standardised."""
        part = _take(self.X, columns)
        if isinstance(scaler, Standardizer):
            return Scale.of(scaler.at(columns)(dense(part)), self.weight)
        part = part[draw(len(self.weight))]
        part = part if scaler is None else scaler(part)
        squares, (i, j) = sums_of_squares(part), np.tril_indices(part.shape[0], -1)
        distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * dense(part @ part.T), 0))[i, j]
        return Scale(_median_of_positive(distances, np.ones(len(distances))), np.nan, part.shape[1])


def statistics_of(X: AnyArray, weight: Array | None = None) -> Statistics:
    return SparseStatistics(X, weight) if issparse(X) else Statistics(X, weight)


def seen(scaler: Function | None, columns: IntArray, X: Array) -> Array:
    """The given columns of samples, scaled unless the scaler is None."""
    own = _take(X, columns)
    if isinstance(scaler, Standardizer):
        return scaler.at(columns)(own)
    return own if scaler is None else scaler(own)


def negative(function: Function) -> Function:
    """−f, in a form that can be sent to workers."""
    return partial(_negative, function)


def _negative(function: Function, X: Array) -> Array:
    return -function(X)


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


def draw_samples(groups: Groups, most: int) -> list[tuple[IntArray, Array]]:
    """At most ``most`` of the groups, and of the samples with positive weight of each, with their weights."""
    there = [np.flatnonzero(weight > 0) for _, weight in groups]
    drawn = [(k, there[k][some]) for k, some in draw_groups([len(positive) for positive in there], most)]
    return [(groups[k][0][some], groups[k][1][some]) for k, some in drawn]


def _median_of_positive(distances: Array, weight: Array) -> float:
    apart = distances > 1e-6 * distances.max(initial=0.0)  # copies of a sample have small distances from rounding
    if not apart.any():
        return 1.0
    return float(weighted_quantiles(distances[apart][:, None], weight[apart], (0.5,))[0, 0])


def weighted_quantiles(X: Array, weight: Array, shares: tuple[float, ...]) -> Array:
    """For each share and column, the smallest value with that share of the weight at or below it, as a matrix."""
    if (weight == weight[0]).all():  # partitioning is faster than sorting
        places = [int((np.arange(1, len(X) + 1) < share * len(X) * (1 - 1e-12)).sum()) for share in shares]
        device = chosen_device(pays=True) if X.size > _WORTH_A_DEVICE else None
        if device is not None:
            from ._device import ordered  # imports PyTorch

            return ordered(X, places, device)
        chosen, out = sorted(set(places)), np.empty((len(shares), X.shape[1]), dtype=X.dtype)
        step = max(1, _AT_A_TIME // len(X))
        for first in range(0, X.shape[1], step):  # partitioning is fast where the values of a column lie together
            some = np.array(X[:, first : first + step].T, order="C")
            some.partition(chosen, axis=1)
            out[:, first : first + step] = some[:, places].T
        return out
    order = np.argsort(X, axis=0, kind="stable")
    below = np.cumsum(weight[order], axis=0)
    at = [(below < share * below[-1] * (1 - 1e-12)).sum(axis=0) for share in shares]
    columns = np.arange(X.shape[1])
    return np.array([X[order[k, columns], columns] for k in at])


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
    def of(cls, statistics: ColumnStatistics) -> Standardizer:
        """Fit to samples, given by their statistics."""
        median, bottom, top = statistics.quantiles((0.5, _TAIL, 1 - _TAIL))
        reach = _FAR * (top - bottom) / _WIDTH
        spread_out = reach > 0  # otherwise most values are equal, as in the indicator of a rare category
        low, high = np.where(spread_out, median - reach, -np.inf), np.where(spread_out, median + reach, np.inf)
        size = statistics.largest(partial(_distance, median))
        unit = np.where(size > 0, size, 1.0)  # so that squares cannot overflow
        inside = cls(low, high, median, unit)
        centre = statistics.mean(inside, 1.0)
        deviation = unit * np.sqrt(statistics.mean(partial(_squared_distance, inside, centre), 4.0))
        varies = deviation > _CONSTANT * statistics.largest(np.abs)
        return cls(low, high, median + unit * centre, np.where(varies, deviation, np.inf))

    @classmethod
    def of_ranges(cls, statistics: ColumnStatistics) -> Standardizer:
        """Maps the range of each column to [0, 1]."""
        low, high = -statistics.largest(np.negative), statistics.largest(np.positive)
        everything = np.full(len(low), np.inf)
        return cls(-everything, everything, low, np.where(high > low, high - low, np.inf))

    def joining(self, groups: Sequence[IntArray]) -> Standardizer:
        """With one scale for each group of columns, so that together they have the variance of one column.

        So the indicators of a category count as one column, and a rare category is not far from all others.
        """
        scale = self.scale.copy()
        for columns in groups:
            varying = columns[np.isfinite(scale[columns])]
            scale[varying] = np.sqrt(np.sum(scale[varying] ** 2))
        return replace(self, scale=scale)

    def at(self, columns: IntArray) -> Standardizer:
        """The standardizer of some of the columns."""
        return Standardizer(self.low[columns], self.high[columns], self.mean[columns], self.scale[columns])

    def __call__(self, X: Array) -> Array:
        return (np.clip(X, self.low, self.high) - self.mean) / self.scale


def like_counts(statistics: ColumnStatistics, blocks: Sequence[IntArray]) -> list[bool]:
    """Whether each block of columns is like counts, shares, indicators or weights of words.

    Such a block has no negative value, is mostly zero, and no column outweighs the others: none has more than
    a quarter of the mean squared norm, or all have values of similar size. Dividing its columns by their standard
    deviations would make the rarest ones the largest.
    """
    if isinstance(statistics, SparseStatistics):
        return statistics.like_counts(blocks)
    lowest = -statistics.largest(np.negative)
    maybe = [bool((lowest[seen] >= 0).all()) for seen in blocks]
    if not any(maybe):
        return maybe
    empty = statistics.mean(_is_zero, 1.0)
    maybe = [fits and bool(empty[seen].mean() > _MOSTLY) for fits, seen in zip(maybe, blocks, strict=True)]
    if not any(maybe):
        return maybe
    largest = statistics.largest(np.abs)
    squares = statistics.mean(partial(_squares, largest.max() or 1.0), 1.0)
    return [fits and _balanced(squares[seen], 1 - empty[seen]) for fits, seen in zip(maybe, blocks, strict=True)]


def _balanced(squares: Array, there: Array) -> bool:
    """Whether no column outweighs the others, by its mean square or by the mean square of its values besides zero."""
    used = there > 0
    if not used.any():
        return False
    size = squares[used] / there[used]
    return bool(squares.max() <= _HEAVY * squares.sum() or size.max() <= _UNLIKE**2 * np.median(size))


def roots(X: Any) -> AnyArray:
    """Square roots, which give counts of all sizes about the same noise; negative values become zero."""
    return X.maximum(0.0).sqrt() if issparse(X) else np.sqrt(np.maximum(X, 0.0))


def _is_zero(X: Array) -> Array:
    return (X == 0).astype(float)


def _squares(unit: float, X: Array) -> Array:
    return (X / unit) ** 2


def _distance(point: Array, X: Array) -> Array:
    return np.abs(X - point)


def _squared_distance(inside: Standardizer, point: Array, X: Array) -> Array:
    return (inside(X) - point) ** 2


# --------------------------------------------------------------------------------------------- evaluation
@dataclass(frozen=True)
class Side:
    """One set of samples as the rows or columns of Gram matrices.

    ``features`` holds, per base, the samples in the form its metric needs: centred for distances. ``squares``
    (n_norms, n) are the squared norms before centring, one row per base, followed by those for linear kernels, one row
    per base with any; ``centred_squares`` are the squared norms of the centred features; ``scale`` (n_kernels, n) the
    normalisation factors, or (1, n) if no kernel has any.
    """

    features: list[AnyArray]
    centred_squares: list[Array]
    squares: Array
    scale: Array

    def __len__(self) -> int:
        return self.scale.shape[1]

    def norms(self, which: IntArray) -> SampleNorms:
        """Norms and scale of the given samples, for compiled code."""
        return SampleNorms(which, self.squares, self.scale)

    def take(self, which: IntArray) -> Side:
        """A side with the given samples."""
        parts = [part[which] for part in self.features], [squares[which] for squares in self.centred_squares]
        return Side(*parts, self.squares[:, which], self.scale[:, which])


@dataclass(frozen=True, eq=False, repr=False)
class Evaluator:
    """Evaluates the kernels of a bank, before their factors, between samples of the columns it was fitted to.

    Parameters
    ----------
    kernels : list of kernels
    bases : Bases
        The matrices that the kernels are computed from.
    unit : bool
        Whether kernels that follow the bank's normalisation give every sample norm one.
    standardizer : Standardizer or None
        Applied to the columns of the bases that are to be standardised.
    middle : array of shape (n_features,), or None
        The medians of the columns before standardising; None means that X is a precomputed stack.
    preparation : Preparation or None
        Fills gaps and makes indicators of categories, before anything else; None if the training samples had neither.
    """

    kernels: list[Kernel]
    bases: Bases
    unit: bool
    standardizer: Standardizer | None
    middle: Array | None
    preparation: Preparation | None = None

    @classmethod
    def of(
        cls,
        kernels: list[Kernel],
        columns: list[IntArray] | None,
        unit: bool,
        standardizer: Standardizer | None = None,
        middle: Array | None = None,
        scaling: list[Scaling] | None = None,
        preparation: Preparation | None = None,
    ) -> Evaluator:
        """The evaluator of kernels on the given prepared columns; None means that X is a precomputed stack.

        ``scaling`` tells what is done to the columns of each kernel; by default nothing.
        """
        bases = Bases.of(kernels, columns, ["none"] * len(kernels) if scaling is None else scaling)
        if len(kernels) >= MANY_PAIRS:
            bases = split_pairs(bases, np.array([kernel.code.kind == EXPONENTIAL for kernel in kernels]))
        return cls(kernels, bases, unit, standardizer, middle, preparation)

    def some(self, which: IntArray) -> Evaluator:
        """The evaluator of some of the kernels."""
        columns = [self.bases.columns[b] for b in self.bases.of_kernel[which]]
        kernels, scaling = [self.kernels[m] for m in which], [self.scaling[m] for m in which]
        return self.of(kernels, columns, self.unit, self.standardizer, self.middle, scaling, self.preparation)

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # not what was derived from them

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def precomputed(self) -> bool:
        return self.middle is None

    @cached_property
    def names(self) -> list[str]:
        return [str(kernel) for kernel in self.kernels]

    @property
    def scaling(self) -> list[Scaling]:
        """What is done to the columns of each kernel."""
        return [self.bases.scaling[b] for b in self.bases.of_kernel]

    @cached_property
    def codes(self) -> Codes:
        """The kernels in the form that compiled code reads."""
        asked = {"always": 1, "never": 0, "bank": int(self.unit)}
        codes, base = [kernel.code for kernel in self.kernels], self.bases.of_kernel
        kind = np.array([code.kind for code in codes], dtype=np.int64)
        degree = np.array([code.degree for code in codes], dtype=np.int64)
        scaled = np.array([asked[kernel.scaling] for kernel in self.kernels], dtype=np.int64)
        linear = (kind == POLYNOMIAL) & (degree == 1) & (scaled == 0)
        norm = base.copy()
        norm[linear] = len(self.bases.kernels) + np.unique(base[linear], return_inverse=True)[1]
        rate, offset = np.array([[code.rate, code.offset] for code in codes], dtype=np.float64).T
        return Codes(kind, base, np.ascontiguousarray(rate), np.ascontiguousarray(offset), degree, scaled, norm)

    @cached_property
    def program(self) -> Program:
        """The program that evaluates every kernel separately."""
        return compile_program(self.codes)

    @cached_property
    def plan(self) -> EvaluationPlan:
        """The plan that evaluates all kernels with the least work."""
        terms, n_bases = self.bases.terms, len(self.bases.kernels)
        if terms is None and self.n_kernels <= WORTHWHILE:
            return EvaluationPlan(self.codes, n_bases)
        return make_plan(self.codes, n_bases if terms is None else int(np.count_nonzero(terms[:, 0] < 0)), terms)

    @cached_property
    def _linear_bases(self) -> IntArray:
        """The bases of linear kernels, in the order of their rows of squared norms."""
        return np.unique(self.bases.of_kernel[self.codes.norm >= len(self.bases.kernels)])

    @property
    def has_offset(self) -> bool:
        """Whether a linear kernel has columns that are not centred."""
        return self.middle is not None and any(self.centre_of(b).any() for b in self._linear_bases)

    def centre_of(self, base: int) -> Array:
        """What is subtracted from the columns of a base to centre them; standardised columns are centred already."""
        assert self.middle is not None
        middle, scaling = self.middle[self.bases.columns[base]], self.bases.scaling[base]
        return np.zeros(len(middle)) if scaling == "standardize" else roots(middle) if scaling == "root" else middle

    # ------------------------------------------------------------------------------------------- samples
    def prepared(self, X: Any) -> AnyArray:
        """Samples without gaps; if training had none, the mean of the column stands for a gap."""
        if self.preparation is not None:
            return self.preparation(X)
        if not gaps_in(X):
            return X
        middle: Any = self.middle if self.standardizer is None else self.standardizer.mean
        if issparse(X):
            return csr_array((np.where(np.isnan(X.data), middle[X.indices], X.data), X.indices, X.indptr), X.shape)
        return np.where(np.isnan(X), middle, X)

    def _parts(self, X: AnyArray) -> Callable[[int], AnyArray]:
        """Maps a base to its columns of the samples, scaled."""
        X = self.prepared(as_matrix(X))
        standard = X if self.standardizer is None or issparse(X) else self.standardizer(X)

        def part(base: int) -> AnyArray:
            scaling, seen = self.bases.scaling[base], self.bases.columns[base]
            own = _take(standard if scaling == "standardize" else X, seen)
            if scaling == "standardize" and self.standardizer is not None and issparse(X):
                return self.standardizer.at(seen)(dense(own))
            return roots(own) if scaling == "root" else own

        return part

    def side(self, X: AnyArray, centred: bool = False) -> Side:
        """Prepare samples X (n, n_features), or a stack of any shape (n, n', n_kernels), for use in panels.

        ``centred`` says whether linear kernels are inner products of centred columns.
        """
        if self.middle is None:
            return replace(self.side_of_columns(X.shape[0]), features=[X])
        part_of, parts = self._parts(X), []
        centred_squares: list[Array] = []
        squares = np.zeros((len(self.bases.kernels) + len(self._linear_bases), X.shape[0]))
        for b, kernel in enumerate(self.bases.kernels):
            part, centre, squared = part_of(b), self.centre_of(b), kernel.metric == "sqeuclidean"
            if squared:
                squares[b] = sums_of_squares(part)
            off_centre = (squared or kernel.metric == "cityblock") and centre.any()
            if off_centre:
                part = dense(part) - centre  # so that distances keep their digits for data far from the origin
            centred_squares.append(sums_of_squares(part) if squared and off_centre else squares[b])
            parts.append(part if issparse(part) else np.ascontiguousarray(part))
        scaled = self.codes.scaled
        scale = np.ones((self.n_kernels if scaled.any() else 1, X.shape[0]))
        for m, diagonal in self._diagonals(part_of, squares, scaled):
            if not np.isfinite(diagonal).all():
                raise ValueError(f"Kernel {self.kernels[m]} overflows on these data; scale the features.")
            if scaled[m]:
                scale[m] = np.sqrt(inverse(diagonal))
        return self.with_norms(Side(parts, centred_squares, squares, scale), centred)

    def with_norms(self, side: Side, centred: bool) -> Side:
        """The side with squared norms for linear kernels of centred columns, or of the columns as they are."""
        if not len(self._linear_bases):
            return side
        own = side.squares[: len(self.bases.kernels)]
        norms = [side.centred_squares[b] if centred else own[b] for b in self._linear_bases]
        return replace(side, squares=np.concatenate([own, norms]))

    def side_of_columns(self, n: int) -> Side:
        """The column side of a precomputed stack, which has no samples there."""
        return Side([], [], np.zeros((self.n_kernels, 1)), np.ones((self.n_kernels, n)))

    def _diagonals(
        self, part_of: Callable[[int], AnyArray], squares: Array, needed: IntArray | None = None
    ) -> Iterator[tuple[int, Array]]:
        """Yield m and k_m(x, x) of every sample before scaling, except for exponentials, whose diagonal is one.

        Kernels that are given as values may be asked only if ``needed``.
        """
        kind, base, rate, offset, degree, _, norm = self.codes
        for m in np.flatnonzero(kind != EXPONENTIAL).tolist():
            if kind[m] == POLYNOMIAL:
                yield m, (rate[m] * squares[norm[m]] + offset[m]) ** int(degree[m])
            elif needed is None or needed[m]:
                yield m, self.kernels[m].diagonal(part_of(base[m]))

    def diagonals(self, X: AnyArray, centred: bool = False) -> Array:
        """k_m(x, x) of samples X, (n_kernels, n); ``centred`` is as in :meth:`side`."""
        if self.precomputed:
            return np.einsum("iim->mi", X)
        side = self.side(X, centred)
        diagonals = np.ones((self.n_kernels, len(side)))
        for m, diagonal in self._diagonals(self._parts(X), side.squares):
            diagonals[m] = diagonal * side.scale[m] ** 2 if self.codes.scaled[m] else diagonal
        return diagonals

    def diagonals_by_sample(self, X: Array) -> Array:
        """k_m(x, x) of samples X, (n, n_kernels)."""
        return self.diagonals(X).T

    # -------------------------------------------------------------------------------------------- values
    def panel(self, left: Side, rows: IntArray, right: Side, columns: IntArray, bases: slice = slice(None)) -> Array:
        """Flat base matrices between the given samples of each side, (n_bases, n_rows * n_columns)."""
        if self.precomputed:
            stack = left.features[0][np.ix_(rows, columns)]
            return np.ascontiguousarray(stack.reshape(-1, stack.shape[2]).T[bases])
        wanted = range(len(self.bases.kernels))[bases]
        out = np.empty((len(wanted), len(rows), len(columns)))
        whole = left is right and np.array_equal(rows, columns)  # passing x twice makes the matrix symmetric
        for k, b in enumerate(wanted):
            kernel, x, z = self.bases.kernels[b], left.features[b][rows], right.features[b][columns]
            if kernel.metric == "sqeuclidean":
                squared_distances(x, z, left.centred_squares[b][rows], right.centred_squares[b][columns], out[k])
                if left is right:
                    out[k][rows[:, None] == columns] = 0  # a sample is at distance zero from itself
            elif kernel.metric == "cityblock":
                out[k] = cityblock(x, x if whole else z)
            else:
                out[k] = kernel.base_values(x, x if whole else z)
        return out.reshape(len(out), -1)

    def base_matrix(self, base: int, side: Side, samples: IntArray) -> Array:
        """One base matrix among the given samples."""
        if self.precomputed:
            return np.ascontiguousarray(side.features[0][np.ix_(samples, samples)][:, :, base])
        part = side.features[base][samples]
        return self.bases.kernels[base].base_values(part, part)

    def pairs(self, left: Side, rows: IntArray, right: Side, bases: slice, panel: Array | None = None) -> Pairs:
        """The pairs of the given rows with all samples of the other side; pass their base values if known."""
        columns, n = np.arange(len(right)), len(rows)
        return Pairs(
            panel=self.panel(left, rows, right, columns, bases) if panel is None else panel,
            row_at=np.arange(n) * len(columns),
            column=columns,
            begin=np.zeros_like(rows),
            end=np.full_like(rows, len(columns)),
            left=left.norms(rows),
            right=right.norms(columns),
        )

    def stack(self, left: Side, right: Side) -> Array:
        """The kernels between two sets of samples, (n_kernels, n_left, n_right)."""
        plan, n = self.plan, len(right)
        evaluated = np.empty((plan.n_evaluated, len(left) * n))
        for group in plan.groups:
            for rows in _steps(len(left), n, group.bases.stop - group.bases.start):
                some = slice(rows[0] * n, (rows[-1] + 1) * n)
                evaluated[group.place, some] = group.stack(self.pairs(left, rows, right, group.bases))
        if plan.n_products:
            panel = self.panel(left, np.arange(len(left)), right, np.arange(n), slice(0, plan.n_bases))
            for place, values in plan.product_stacks(panel, 256):
                evaluated[place] = values
        return plan.of_kernels(evaluated).reshape(self.n_kernels, len(left), n)

    def cross(self, left: Side, right: Side, theta: Array) -> Array:
        """Σ_m θ_m K_m between two sets of samples, (n_left, n_right)."""
        plan, out = self.plan, np.empty(len(left) * len(right))
        weights = plan.weights(np.ascontiguousarray(theta, dtype=np.float64))
        for rows in _steps(len(left), len(right), plan.n_bases):
            pairs = self.pairs(left, rows, right, slice(0, plan.n_bases))
            plan.combine(weights, pairs, 0, len(rows), out[rows[0] * len(right) :])
        return out.reshape(len(left), len(right))


def _steps(n_rows: int, n_columns: int, n_bases: int) -> Iterator[IntArray]:
    """Yield chunks of rows whose base values fit into a panel."""
    step = max(1, int(PANEL_BYTES // (8 * n_bases * max(n_columns, 1))))
    for first in range(0, n_rows, step):
        yield np.arange(first, min(first + step, n_rows))


def _take(X: AnyArray, columns: IntArray) -> AnyArray:
    """The given columns of X in C order, so that sums do not depend on the layout of X; no copy if it is all of X."""
    whole = len(columns) == X.shape[1] and np.array_equal(columns, np.arange(X.shape[1]))
    if issparse(X):
        return X if whole else X[:, columns]
    return np.ascontiguousarray(X if whole else X[:, columns])


# ---------------------------------------------------------------------------------------------- measuring
class BaseValues(NamedTuple):
    """The base values among all samples of a training set, from measuring kernels there, for use in a Gram store.

    ``side`` are the samples, and ``panel`` the base values (n_bases, n * n).
    """

    side: Side
    panel: Array


def most_measured(n_kernels: int, normalize: Normalization) -> int:
    """Limit on tasks, and on samples per task, for measuring kernels."""
    # displayed shares may be rough, and rougher still for very many kernels
    rough = min(_MOST_LOOKED_AT, max(32, int(math.sqrt(_MOST_VALUES / n_kernels))))
    return _MOST_MEASURED if normalize == "capacity" else rough


def measure(
    evaluator: Evaluator,
    X: AnyArray,
    groups: Groups,
    most: int,
    keep_bytes: float = 0.0,
    codes: Array | None = None,
) -> tuple[Array, Array, BaseValues | None]:
    """Variance and effective rank of every kernel within groups of samples, averaged over the groups.

    Parameters
    ----------
    evaluator : Evaluator
    X : array of shape (n, n_features), or a stack (n, n, n_kernels)
    groups : sequence of (rows, weights)
        Rows of X and their weights.
    most : int
        Measure at most so many groups, and so many samples of positive weight in each; see :func:`most_measured`.
    keep_bytes : float, default=0
        Size up to which the base values are returned if the kernels are measured among all samples.
    codes : array of shape (n,), default=None
        Measure K_m ∘ [same code] instead of K_m.
    """
    drawn = draw_samples(groups, most)
    n_pairs = sum(len(rows) ** 2 for rows, _ in drawn)
    device = device_for(evaluator, [X], True) if codes is None and n_pairs > _PAIRS_WORTH_A_DEVICE else None
    if device is not None:
        from ._device import measured_spreads  # imports PyTorch

        sums = SpreadSums.empty(evaluator.n_kernels)
        for v, r in zip(*measured_spreads(evaluator, X, drawn, device), strict=True):
            sums.add(v, r, len(drawn))
        return *sums.means(), None
    everyone = np.unique(np.concatenate([rows for rows, _ in drawn]))
    # if groups overlap a lot, as pairs of classes do, or are tiny, computing kernels among all samples at once is less
    together = len(everyone) <= most and n_pairs + _CALL * len(drawn) >= len(everyone) ** 2
    sums, known = SpreadSums.empty(evaluator.n_kernels), None
    for among, members in [(everyone, drawn)] if together else [(np.unique(part[0]), [part]) for part in drawn]:
        places = [(np.searchsorted(among, rows), weight / weight.sum()) for rows, weight in members]
        measured = np.empty((2, len(places), evaluator.plan.n_evaluated))
        stacks, found = _evaluated_stacks(evaluator, X, among, keep_bytes, centred=codes is None)
        known = found if len(among) == X.shape[0] else None
        own = None if codes is None else codes[among]
        for some, Ks in stacks:
            for t, (at, weight) in enumerate(places):
                measured[:, t, some] = spreads(Ks, weight, at, own)
        for v, r in zip(*measured, strict=True):
            sums.add(*_spread_of_kernels(evaluator.plan, v, r), len(drawn))
    return *sums.means(), known


def _evaluated_stacks(
    evaluator: Evaluator, X: AnyArray, among: IntArray, keep_bytes: float, centred: bool
) -> tuple[Iterator[tuple[slice, Array]], BaseValues | None]:
    """The evaluated matrices among some samples in stacks (k, n, n) with their positions, and the base values."""
    n, plan = len(among), evaluator.plan
    if evaluator.precomputed:
        some = X[np.ix_(among, among)]
        return ((slice(m, m + 1), np.array(some[None, :, :, m], dtype=np.float64)) for m in range(some.shape[2])), None
    side, everyone = evaluator.side(X if n == X.shape[0] else X[among], centred), np.arange(n)
    step = max(1, int(_STACK_BYTES // (8 * n**2)))
    panel = None
    if plan.n_products or 8 * plan.n_bases * n**2 <= min(_STACK_BYTES, keep_bytes):
        panel = evaluator.panel(side, everyone, side, everyone, slice(0, plan.n_bases))

    def stacks() -> Iterator[tuple[slice, Array]]:
        for group in plan.split(step):
            known = None if panel is None else panel[group.bases]
            yield group.place, group.stack(evaluator.pairs(side, everyone, side, group.bases, known)).reshape(-1, n, n)
        if plan.n_products and panel is not None:
            for place, values in plan.product_stacks(panel, step):
                yield place, values.reshape(-1, n, n)

    return stacks(), None if panel is None else BaseValues(side, panel)


def _spread_of_kernels(plan: EvaluationPlan, v: Array, r: Array) -> tuple[Array, Array]:
    """Variance and effective rank of the kernels from those of the evaluated functions.

    v and v²/r = ‖K_c‖² of an interpolated kernel are mixtures of those of its nodes.
    """
    if plan.mixing is None:
        return v, r
    alone = np.diff(plan.mixing.indptr) == 1
    size = np.divide(v**2, r, out=np.zeros_like(v), where=r > 0)
    own_v, own_size = plan.of_kernels(v), plan.of_kernels(size)
    own_r = np.divide(own_v**2, own_size, out=np.zeros_like(own_v), where=(own_v > NO_VARIANCE) & (own_size > 0))
    # a kernel that is evaluated directly keeps its r; unless it is an exponential, v² may overflow
    own_r[alone] = r[plan.mixing.indices[plan.mixing.indptr[:-1][alone]]]
    return np.where(own_r > 0, own_v, 0.0), own_r


def spreads(Ks: Array, weight: Array, at: IntArray | None = None, codes: Array | None = None) -> tuple[Array, Array]:
    """v and r of each of the matrices (k, n, n) among the samples ``at``, by default all, with their weights.

    With m_i = Σ_j w_j K_ij and g = w'Kw: tr(K_c) = Σ w_i K_ii − g, ‖K_c‖² = Σ w_i w_j K_ij² − 2 Σ w_i m_i² + g².
    ``codes`` (n,) are as in :func:`measure`.
    """
    n, found = Ks.shape[1], np.zeros((2, len(Ks)))
    at, codes = np.arange(n) if at is None else at, np.zeros(n) if codes is None else codes
    _spreads(Ks, np.ascontiguousarray(weight), at, codes[at], *found)
    return found[0], found[1]


@njit(fastmath={"contract", "reassoc", "nsz"})
def _spreads(Ks: Array, weight: Array, at: IntArray, codes: Array, v: Array, r: Array) -> None:
    n = len(at)
    row = np.empty(n)
    whole = n == Ks.shape[1]
    for m in range(len(Ks)):
        K = Ks[m]
        size = 0.0
        for i in range(n):
            size = max(size, abs(K[at[i], at[i]]))  # no entry of a positive semidefinite matrix is larger
        if size == 0.0:
            continue
        shift = K[at[0], at[0]] / size  # centring removes a constant anyway; now, it keeps digits if K hardly varies
        trace, mean, squares, of_means = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            own = K[at[i]]
            if not whole:
                for j in range(n):
                    row[j] = own[at[j]]
                own = row
            total, square, code = 0.0, 0.0, codes[i]
            for j in range(n):  # scaled, so that squares neither overflow nor underflow
                x = (own[j] / size if codes[j] == code else 0.0) - shift
                total += weight[j] * x
                square += weight[j] * x * x
            trace += weight[i] * (own[i] / size - shift)
            mean += weight[i] * total
            squares += weight[i] * square
            of_means += weight[i] * total * total
        variance, norm = trace - mean, squares - 2.0 * of_means + mean * mean
        if variance > NO_VARIANCE and norm > 0.0:
            v[m] = size * variance
            r[m] = variance * variance / norm


@dataclass(frozen=True)
class SpreadSums:
    """Sums over tasks for the mean variance and the mean effective rank of kernels, (n_kernels,) each."""

    variance: Array
    rank: Array
    n_ranks: Array

    @classmethod
    def empty(cls, n_kernels: int) -> SpreadSums:
        return cls(*np.zeros((3, n_kernels)))

    def add(self, variance: Array, rank: Array, n_tasks: int) -> None:
        """Add one of ``n_tasks`` tasks; a kernel without variance in a task has no rank there."""
        self.variance[:] += variance / n_tasks
        self.rank[:] += np.where(variance > 0, rank, 0.0)
        self.n_ranks[:] += variance > 0

    def means(self) -> tuple[Array, Array]:
        return self.variance, self.rank / np.maximum(self.n_ranks, 1) + (self.n_ranks == 0)


# --------------------------------------------------------------------------------------------------- bank
class KernelShares:
    """What part of a learned kernel each of its base kernels is; for banks with these attributes."""

    variance: Array
    factor: Array

    @property
    def sources(self) -> list[str | None]:
        """The source of each kernel."""
        raise NotImplementedError

    def variance_share(self, theta: Array) -> Array:
        """Share of each kernel in the variance within tasks of a function drawn from Σ_m θ_m K_m, (…, n_kernels)."""
        variance = theta * self.factor * self.variance
        total = variance.sum(axis=-1, keepdims=True)
        return np.divide(variance, total, out=np.zeros_like(variance), where=total > 0)

    def by_source(self, share: Array) -> dict[str, Array]:
        """Shares of kernels (…, n_kernels) summed over each named source, in the order of the bank."""
        return {name: share[..., own].sum(axis=-1) for name, own in self.by_name().items()}

    def by_name(self) -> dict[str, AnyArray]:
        """Which kernels belong to each named source, (n_kernels,), in the order of the bank."""
        names = [name for name in dict.fromkeys(self.sources) if name is not None]
        return {name: np.array([source == name for source in self.sources]) for name in names}

    def without(self, left_out: AnyArray) -> Any:
        """The bank without some of the kernels (n_kernels,), and the factors of the others as they are.

        The kernels stay in their places, with a factor of zero.
        """
        this: Any = self
        return replace(this, factor=np.where(left_out, 0.0, self.factor))


@dataclass(frozen=True, eq=False, repr=False)
class FittedBank(KernelShares):
    """A bank fitted to training data: kernel m enters every sum as ``factor[m]`` times its value.

    Parameters
    ----------
    evaluator : Evaluator
        Computes the kernels before their factors.
    normalize : {"unit", "trace", "capacity", "none"}
        The normalisation.
    variance, effective_rank : arrays of shape (n_kernels,)
        v = tr(K_c) / n and r = (tr K_c)² / ‖K_c‖_F² of each kernel before its factor, with K_c centred within a task;
        means over the tasks.
    factor : array of shape (n_kernels,)
        The factors of the kernels.
    capacity : float
        κ of ``normalize="capacity"``.
    cache_bytes : float
        Size up to which Gram stores keep base matrices.
    centred : bool, default=False
        Whether linear kernels are inner products of centred columns.
    """

    evaluator: Evaluator
    normalize: Normalization
    variance: Array
    effective_rank: Array
    factor: Array
    capacity: float
    cache_bytes: float = 512 * 2.0**20  # also for a stack: reading it kernel by kernel is slow
    centred: bool = False

    coupled: ClassVar[bool] = False  # whether samples have the code of their task in the last column

    @property
    def kernels(self) -> list[Kernel]:
        return self.evaluator.kernels

    @property
    def names(self) -> list[str]:
        return self.evaluator.names

    @property
    def sources(self) -> list[str | None]:
        return [kernel.source for kernel in self.kernels]

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def n_bases(self) -> int:
        return len(self.evaluator.bases.kernels)

    @property
    def preparation(self) -> Preparation | None:
        """What fills gaps and makes indicators of categories, if training samples had some."""
        return self.evaluator.preparation

    @property
    def precomputed(self) -> bool:
        """Whether samples are rows of a stack of kernels."""
        return self.evaluator.precomputed

    @property
    def scaling(self) -> dict[str, Scaling]:
        """What is done to the columns of each source; without sources, the only key is "X"."""
        done = self.evaluator.scaling
        named = {source: way for source, way in zip(self.sources, done, strict=True) if source}
        return named or {"X": done[0]}

    def with_capacity(self, capacity: float) -> FittedBank:
        """The bank with another exponent κ of the effective rank."""
        factor = capacity_factor(self.variance, self.effective_rank, self.sources, capacity)
        return replace(self, capacity=capacity, factor=factor)

    def some(self, which: IntArray) -> FittedBank:
        """A bank with the given kernels and their factors."""
        own = {name: getattr(self, name)[which] for name in ("variance", "effective_rank", "factor")}
        return replace(self, evaluator=self.evaluator.some(which), **own)

    def for_shift_invariant(self) -> FittedBank:
        """The bank for machines on which a shift has no effect: its linear kernels are products of centred columns.

        With Σ_i v_i = 0, the kernels x'z and (x − c)'(z − c) have the same forms v'Kv, and the functions
        Σ_i v_i k(x_i, ·) differ by a constant, which a free intercept absorbs. So an offset of the columns costs no
        digits.
        """
        return replace(self, centred=True) if self.evaluator.has_offset else self

    def side(self, X: AnyArray) -> Side:
        """Samples X (n, n_features), or a stack (n, n', n_kernels), as rows or columns of kernel matrices."""
        return self.evaluator.side(X, self.centred)

    def side_of_columns(self, n: int) -> Side:
        """The columns of a precomputed stack, which has no samples there."""
        return self.evaluator.side_of_columns(n)

    def cross(self, left: Side, right: Side, theta: Array) -> Array:
        """Σ_m θ_m K_m between two sets of samples, (n_left, n_right)."""
        return self.evaluator.cross(left, right, theta * self.factor)

    def device_for(self, side: Side, n_pairs: int) -> Any:
        """The device for :meth:`sums` over so many pairs of samples, or None."""
        return device_for(self.evaluator, side.features, True) if n_pairs > _PAIRS_WORTH_A_DEVICE else None

    def sums(self, left: Side, right: Side, theta: Array, coefficients: Array, device: Any = None) -> Array:
        """Σ_j Σ_m θ_m K_m(x_i, z_j) coefficients_jt, (n_left, n_columns)."""
        if device is None:
            return self.cross(left, right, theta) @ coefficients
        from ._device import weighted_sums  # imports PyTorch

        return weighted_sums(self.evaluator, left, right, theta * self.factor, coefficients, device)

    def stack(self, left: Side, right: Side) -> Array:
        """The kernels before their factors, (n_kernels, n_left, n_right)."""
        return self.evaluator.stack(left, right)

    def diagonals(self, X: AnyArray) -> Array:
        """k_m(x, x) of samples X, (n_kernels, n)."""
        return self.factor[:, None] * self.evaluator.diagonals(X, self.centred)


def capacity_factor(variance: Array, rank: Array, sources: list[str | None], capacity: float) -> Array:
    """1 / (v r^κ) of each kernel, and zero for a kernel that is constant within every task.

    In a named source, r is relative to the smallest r of that source, so that a source with many columns is
    not penalised more than one with few.
    """
    rank = rank.copy()
    for name in set(sources) - {None}:
        own = [source == name for source in sources]
        rank[own] /= rank[own].min()
    return inverse(variance) * rank**-capacity


def inverse(values: Array) -> Array:
    """1/d, and zero if d is zero: a sample of norm zero stays at the origin of feature space."""
    return np.where(values > 0, 1 / np.maximum(values, 1e-300), 0.0)
