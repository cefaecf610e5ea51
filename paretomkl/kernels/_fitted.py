"""A bank of kernels bound to training data that never stores one Gram matrix per kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._tools.files import Saved
from .._tools.typing import AnyArray, Array, IntArray
from ._distances import add_squares
from ._plan import MAX_DOUBLINGS, Codes, Plan, compile_program
from ._rounding import Rounding, RoundingBuilder
from ._standardizer import Standardizer
from ._statistics import Statistics, draw_groups
from ._tiles import EXPONENTIAL, POLYNOMIAL, VALUE, Pairs, Program, Samples

if TYPE_CHECKING:
    from ._kernels import Kernel, Normalization

PANEL_BYTES = 32 * 2**20  # size of the piece of the base matrices computed at a time if they are not kept
# limit on tasks, and on samples per task, for measuring kernels: for normalisation, and only to display shares
_MOST_MEASURED, _MOST_LOOKED_AT = 1000, 256
_MOST_VALUES = 3e7  # limit on all kernel values computed to display shares
_STACK_BYTES = 64 * 2**20  # size of the matrices measured at a time
_MANY_PAIRS, _MANY_BASES = 1000, 100  # kernels on pairs of columns, and pairs, above which products pay off
_NO_VARIANCE = 1e-13  # relative variance that rounding leaves in a constant kernel

Groups: TypeAlias = Sequence[tuple[IntArray, Array]]
"""The samples of each task and their weights."""


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

    def samples(self, which: IntArray) -> Samples:
        """The given samples, for compiled code."""
        return Samples(which, self.squares, self.scale)

    def take(self, which: IntArray) -> Side:
        """A side with the given samples."""
        parts = [part[which] for part in self.features], [squares[which] for squares in self.centred_squares]
        return Side(*parts, self.squares[:, which], self.scale[:, which])


class FittedBank(Saved):
    """A bank bound to training data, with its bases, the order of its kernels and its normalisation.

    ``columns`` lists the columns of each kernel; ``None`` means that X is a precomputed stack. ``standardizer`` is
    applied to samples first. Kernel m enters every sum with the factor ``factor[m]``.

    Attributes
    ----------
    variance, effective_rank : arrays of shape (n_kernels,)
        v = tr(K_c) / n and r = (tr K_c)² / ‖K_c‖_F² of each kernel before its factor, with K_c centred within a task;
        means over the tasks.
    """

    variance: Array
    effective_rank: Array
    factor: Array
    centred: bool = False  # whether linear kernels are inner products of centred columns
    _measured: tuple[AnyArray, Side, Array] | None = None  # the samples just measured, as a side and as base values

    def __init__(
        self,
        kernels: list[Kernel],
        columns: list[IntArray] | None,
        normalize: Normalization,
        standardizer: Standardizer | None = None,
        cache_mb: float = 512.0,
    ):
        self.kernels = kernels
        self.precomputed = columns is None
        self.normalize = normalize
        self.standardizer = standardizer
        self.cache_bytes = cache_mb * 2**20  # also for a stack: reading it kernel by kernel is slow
        self.names = [str(kernel) for kernel in kernels]
        # kernels with the same columns and the same metric share one base matrix
        keys: dict[tuple, int] = {}
        self.base = np.empty(len(kernels), dtype=np.int64)
        self.base_kernels: list[Kernel] = []
        self.base_columns: list[IntArray] = []
        for m, kernel in enumerate(kernels):
            key: tuple = (kernel.metric, columns[m].tobytes()) if columns and kernel.metric != "custom" else (m,)
            if key not in keys:
                keys[key] = len(keys)
                self.base_kernels.append(kernel)
                self.base_columns.append(np.empty(0, dtype=np.int64) if columns is None else columns[m])
            self.base[m] = keys[key]
        self.terms = None if columns is None else self._split_pairs()

    def _split_pairs(self) -> IntArray | None:
        """If there are very many Gaussians on pairs of columns, put their bases last and return the two terms of each.

        The squared distance on two columns is the sum of the distances on each; these become bases if they are not yet.
        """
        two = [
            k.metric == "sqeuclidean" and len(c) == 2 for k, c in zip(self.base_kernels, self.base_columns, strict=True)
        ]
        exponential = np.array([kernel.code.kind == EXPONENTIAL for kernel in self.kernels])
        split = np.array(two)
        np.logical_and.at(split, self.base[~exponential], False)  # inner products need the base itself
        if np.count_nonzero(split[self.base]) < _MANY_PAIRS or np.count_nonzero(split) < _MANY_BASES:
            return None
        kernel = self.base_kernels[int(np.argmax(split))]
        single = {int(c[0]): b for b, c in enumerate(self.base_columns) if len(c) == 1 and not two[b]}
        single = {c: b for c, b in single.items() if self.base_kernels[b].metric == "sqeuclidean"}
        for c in sorted({int(c) for b in np.flatnonzero(split) for c in self.base_columns[b]} - set(single)):
            single[c] = len(self.base_columns)
            self.base_kernels.append(kernel)
            self.base_columns.append(np.array([c]))
        split = np.concatenate([split, np.zeros(len(self.base_columns) - len(split), dtype=bool)])
        order = np.argsort(split, kind="stable")
        place = np.argsort(order)
        terms = np.array(
            [
                [place[single[int(c)]] for c in cs] if two_of else [-1, -1]
                for cs, two_of in zip(self.base_columns, split, strict=True)
            ]
        )
        self.base = place[self.base]
        self.base_kernels = [self.base_kernels[b] for b in order]
        self.base_columns = [self.base_columns[b] for b in order]
        return terms[order]

    def bind(self, X: AnyArray, weight: Array | None, groups: Groups | None, capacity: float) -> None:
        """Compute the centres and the factor of every kernel from the training samples."""
        if not self.precomputed:
            self.bind_columns(Statistics(np.asarray(X, dtype=np.float64), weight))
        groups = groups or [(np.arange(len(X)), np.ones(len(X)) if weight is None else weight)]
        there = [np.flatnonzero(weight > 0) for _, weight in groups]
        drawn = []
        for k, some in draw_groups([len(positive) for positive in there], self.most_measured):
            rows, weight_of = groups[k]
            drawn.append((rows[there[k][some]], weight_of[there[k][some]]))
        self.bind_spread(*self.measure(X, drawn), capacity)
        if self.normalize == "trace" and self.precomputed:
            self.factor = _inverse(np.average(self.scaled_diagonals(X), axis=1, weights=weight))

    @property
    def most_measured(self) -> int:
        """Limit on tasks, and on samples per task, for measuring the kernels."""
        # displayed shares may be rough, and rougher still for very many kernels
        rough = min(_MOST_LOOKED_AT, max(32, int(math.sqrt(_MOST_VALUES / self.n_kernels))))
        return _MOST_MEASURED if self.normalize == "capacity" else rough

    def bind_columns(self, statistics: Any) -> None:
        """Compute the centres, and the factors of normalize="trace", from column statistics."""
        standardizer = self.standardizer
        # medians are values of the samples, so that subtracting them is exact if the samples are close together
        self.middle = statistics.quantiles((0.5,))[0] if standardizer is None else np.zeros(len(standardizer.mean))
        self.centre = [self.middle[seen] for seen in self.base_columns]
        self.factor = np.ones(self.n_kernels)
        if self.normalize == "trace":
            self.factor = _inverse(statistics.mean(self._diagonal_rows))

    def bind_spread(self, variance: Array, rank: Array, capacity: float) -> None:
        """Set the variance and the effective rank of the kernels, and compute the factors from them."""
        self.variance, self.effective_rank, self.capacity = variance, rank, capacity
        if self.normalize == "capacity":
            self.factor = self._capacity_factor(capacity)
        elif self.precomputed:
            self.factor = np.ones(self.n_kernels)

    def _diagonal_rows(self, X: Array) -> Array:
        return self.scaled_diagonals(X).T

    def scaled_diagonals(self, X: AnyArray) -> Array:
        """k_m(x, x) of the training samples before the factors, (n_kernels, n)."""
        if self.precomputed:
            return np.einsum("iim->mi", X)
        side = self.side(X)
        diagonals = np.ones((self.n_kernels, len(side)))
        for m, diagonal in self._diagonals(self._standardized(X), side.squares):
            diagonals[m] = diagonal * side.scale[m] ** 2 if self.codes.scaled[m] else diagonal
        return diagonals

    def diagonals(self, X: AnyArray) -> Array:
        """k_m(x, x) of samples X, (n_kernels, n)."""
        return self.factor[:, None] * self.scaled_diagonals(X)

    def paying(self, capacity: float) -> FittedBank:
        """A copy with another exponent κ of the effective rank."""
        other = copy(self)
        other.capacity, other.factor = capacity, self._capacity_factor(capacity)
        return other

    def _capacity_factor(self, capacity: float) -> Array:
        owners = [kernel.source or "" for kernel in self.kernels]
        return capacity_factor(self.variance, self.effective_rank, owners, capacity)

    def variance_share(self, theta: Array) -> Array:
        """Share of each kernel in the variance within tasks of a function drawn from Σ_m θ_m K_m, (…, n_kernels)."""
        variance = theta * self.factor * self.variance
        total = variance.sum(axis=-1, keepdims=True)
        return np.divide(variance, total, out=np.zeros_like(variance), where=total > 0)

    def by_source(self, share: Array) -> dict[str, Array]:
        """Shares of kernels (…, n_kernels) summed over each named source, in the order of the bank."""
        owners = [kernel.source for kernel in self.kernels]
        names = [name for name in dict.fromkeys(owners) if name is not None]
        return {name: share[..., [owner == name for owner in owners]].sum(axis=-1) for name in names}

    def _standardized(self, X: AnyArray) -> Array:
        X = np.asarray(X, dtype=np.float64)
        return X if self.standardizer is None else self.standardizer(X)

    def measure(self, X: AnyArray, groups: Groups) -> tuple[Array, Array]:
        """Variance and effective rank of every kernel within groups of samples, averaged over the groups.

        The groups are rows of X and their weights, all positive.
        """
        everyone = np.unique(np.concatenate([rows for rows, _ in groups]))
        # if groups overlap a lot, as pairs of classes do, computing kernels among all samples at once is less work
        few = len(everyone) <= self.most_measured
        together = few and sum(len(rows) ** 2 for rows, _ in groups) >= len(everyone) ** 2
        sums = SpreadSums.empty(self.n_kernels)
        for among, members in [(everyone, groups)] if together else [(np.unique(part[0]), [part]) for part in groups]:
            places = [(np.searchsorted(among, rows), weight / weight.sum()) for rows, weight in members]
            pairs = [at[:, None] * len(among) + at for at, _ in places]
            measured = np.empty((2, len(places), self.plan.n_evaluated))
            if self.precomputed:
                samples = X[np.ix_(among, among)]
            else:
                samples = X if len(among) == len(X) else X[among]
            for some, Ks in self._evaluated_stacks(samples):
                flat = Ks.reshape(len(Ks), -1)
                for t, (_, weight) in enumerate(places):
                    measured[:, t, some] = spreads(np.take(flat, pairs[t], axis=1), weight)
            for v, r in zip(*measured, strict=True):
                sums.add(slice(None), *self._spread_of_kernels(v, r), len(groups))
        return sums.means()

    def _spread_of_kernels(self, v: Array, r: Array) -> tuple[Array, Array]:
        """Variance and effective rank of the kernels from those of the evaluated functions.

        v and v²/r = ‖K_c‖² of an interpolated kernel are mixtures of those of its nodes.
        """
        if self.plan.mixing is None:
            return v, r
        alone = np.diff(self.plan.mixing.indptr) == 1
        size = np.divide(v**2, r, out=np.zeros_like(v), where=r > 0)
        own_v, own_size = self.plan.of_kernels(v), self.plan.of_kernels(size)
        own_r = np.divide(own_v**2, own_size, out=np.zeros_like(own_v), where=(own_v > _NO_VARIANCE) & (own_size > 0))
        # a kernel that is evaluated directly keeps its r; unless it is an exponential, v² may overflow
        own_r[alone] = r[self.plan.mixing.indices[self.plan.mixing.indptr[:-1][alone]]]
        return np.where(own_r > 0, own_v, 0.0), own_r

    def _evaluated_stacks(self, X: AnyArray) -> Iterator[tuple[slice, Array]]:
        """Yield the evaluated matrices among samples in stacks (k, n, n), with their positions."""
        if self.precomputed:
            for m in range(self.n_kernels):
                yield slice(m, m + 1), np.array(X[None, :, :, m], dtype=np.float64)
            return
        side, everyone, n_bases = self._with_norms(self.side(X), True), np.arange(len(X)), self.plan.n_bases
        small = 8 * n_bases * len(X) ** 2 <= min(_STACK_BYTES, self.cache_bytes)
        panel = self.panel(side, everyone, side, everyone, slice(0, n_bases)) if small else None
        self._measured = None if panel is None else (X, side, panel)
        step = max(1, int(_STACK_BYTES // (8 * len(X) ** 2)))
        for part in self.plan.split(step):
            pairs = self._pairs(side, everyone, side, part.bases, None if panel is None else panel[part.bases])
            yield part.place, part.stack(pairs).reshape(-1, len(X), len(X))
        for place, values in self._product_stacks(side, everyone, side, step):
            yield place, values.reshape(-1, len(X), len(X))

    def _product_stacks(self, left: Side, rows: IntArray, right: Side, step: int) -> Iterator[tuple[slice, Array]]:
        """Yield the values of kernels on sums of bases, (k, n_pairs) with k ≤ ``step``, and their positions."""
        products, plan = self.plan.products, self.plan
        if products is None:
            return
        panel = self.panel(left, rows, right, np.arange(len(right)), slice(0, plan.n_bases))
        begin = plan.n_evaluated - len(products)
        for first in range(0, len(products), step):
            some = slice(first, min(first + step, len(products)))
            yield slice(begin + some.start, begin + some.stop), products.stack(panel, some)

    def each_kernel(self, X: AnyArray) -> Iterator[Array]:
        """Yield the matrix (n, n) of each base kernel among samples, before its factor; computes a few at a time."""
        if self.precomputed:
            yield from np.moveaxis(np.array(X, dtype=np.float64), 2, 0)
            return
        step = max(1, int(_STACK_BYTES // (8 * len(X) ** 2)))
        for first in range(0, self.n_kernels, step):
            some = self.some(np.arange(first, min(first + step, self.n_kernels)))
            side = some.side(X)
            yield from some.stack(side, side)

    def some(self, which: IntArray) -> FittedBank:
        """A bank with the given kernels and their factors."""
        base = self.base[which]
        columns = [self.base_columns[b] for b in base]
        some = FittedBank([self.kernels[m] for m in which], columns, self.normalize, self.standardizer)
        some.cache_bytes = self.cache_bytes
        some.middle, some.centred = self.middle, self.centred
        some.centre = [self.middle[seen] for seen in some.base_columns]
        for name in ("variance", "effective_rank", "factor"):
            if hasattr(self, name):  # missing while they are being measured
                setattr(some, name, getattr(self, name)[which])
        return some

    def __getstate__(self) -> dict[str, Any]:
        made = ("codes", "_linear_bases", "_depth", "program", "plan", "_measured")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @cached_property
    def codes(self) -> Codes:
        """The kernels in the form that compiled code reads."""
        asked = {"always": 1, "never": 0, "bank": int(self.normalize == "unit")}
        codes = [kernel.code for kernel in self.kernels]
        kind = np.array([code.kind for code in codes], dtype=np.int64)
        degree = np.array([code.degree for code in codes], dtype=np.int64)
        scaled = np.array([asked[kernel.scaling] for kernel in self.kernels], dtype=np.int64)
        linear = (kind == POLYNOMIAL) & (degree == 1) & (scaled == 0)
        norm = self.base.copy()
        norm[linear] = self.n_bases + np.unique(self.base[linear], return_inverse=True)[1]
        return Codes(
            kind=kind,
            base=self.base,
            rate=np.array([code.rate for code in codes], dtype=np.float64),
            offset=np.array([code.offset for code in codes], dtype=np.float64),
            degree=degree,
            scaled=scaled,
            norm=norm,
        )

    @cached_property
    def _linear_bases(self) -> IntArray:
        """The bases of linear kernels, in the order of their rows of squared norms."""
        return np.unique(self.base[self.codes.norm >= self.n_bases])

    @property
    def has_offset(self) -> bool:
        """Whether a linear kernel has columns that are not centred."""
        return not self.precomputed and any(self.centre[b].any() for b in self._linear_bases)

    def for_shift_invariant(self) -> FittedBank:
        """The bank for machines on which a shift has no effect: its linear kernels are products of centred columns.

        With Σ_i v_i = 0, the kernels x'z and (x − c)'(z − c) have the same forms v'Kv, and the functions
        Σ_i v_i k(x_i, ·) differ by a constant, which a free intercept absorbs. So an offset of the columns costs no
        digits.
        """
        if self.centred or not self.has_offset:
            return self
        other = copy(self)
        other.centred, self._measured = True, None
        return other

    @cached_property
    def program(self) -> Program:
        """The program that evaluates every kernel separately."""
        return compile_program(self.codes)

    @cached_property
    def plan(self) -> Plan:
        """The plan that evaluates all kernels with the least work."""
        n_bases = self.n_bases if self.terms is None else int(np.count_nonzero(self.terms[:, 0] < 0))
        return Plan(self.codes, n_bases, self.terms)

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def n_bases(self) -> int:
        return len(self.base_kernels)

    def side(self, X: AnyArray) -> Side:
        """Prepare samples X (n, n_features), or a stack of any shape (n, n', n_kernels), for use in panels."""
        if self.precomputed:
            return replace(self.side_of_columns(len(X)), features=[X])
        X = self._standardized(X)
        features: list[AnyArray] = []
        centred_squares: list[Array] = []
        squares = np.zeros((self.n_bases + len(self._linear_bases), len(X)))
        for b, seen in enumerate(self.base_columns):
            part = _take(X, seen)
            centred = squares[b]
            metric, off_centre = self.base_kernels[b].metric, self.centre[b].any()
            if metric == "sqeuclidean":
                squares[b] = np.einsum("ij,ij->i", part, part)
            if metric in ("sqeuclidean", "cityblock") and off_centre:
                part = part - self.centre[b]  # so that distances keep their digits for data far from the origin
            if metric == "sqeuclidean" and off_centre:
                centred = np.einsum("ij,ij->i", part, part)
            centred_squares.append(centred)
            features.append(np.ascontiguousarray(part))
        scaled = self.codes.scaled
        scale = np.ones((self.n_kernels if scaled.any() else 1, len(X)))
        for m, diagonal in self._diagonals(X, squares):
            if not np.isfinite(diagonal).all():
                raise ValueError(f"Kernel {self.kernels[m]} overflows on these data; scale the features.")
            if scaled[m]:
                scale[m] = np.sqrt(_inverse(diagonal))
        return self._with_norms(Side(features, centred_squares, squares, scale), self.centred)

    def _with_norms(self, side: Side, centred: bool) -> Side:
        """The side with squared norms for linear kernels of centred columns, or of the columns as they are."""
        if not len(self._linear_bases):
            return side
        own = side.squares[: self.n_bases]
        norms = [side.centred_squares[b] if centred else own[b] for b in self._linear_bases]
        return replace(side, squares=np.concatenate([own, norms]))

    def recall(self, X: AnyArray) -> tuple[Side, Array | None]:
        """Samples X as a side, and the base values among all of them if the kernels have just been measured there.

        The values are handed over once, so that the bank does not keep them.
        """
        measured, self._measured = self._measured, None
        if measured is None or measured[0] is not X:
            return self.side(X), None
        return self._with_norms(measured[1], self.centred), measured[2]

    def side_of_columns(self, n: int) -> Side:
        """The column side of a precomputed stack, which has no samples there."""
        return Side([], [], np.zeros((self.n_kernels, 1)), np.ones((self.n_kernels, n)))

    def _diagonals(self, X: Array, squares: Array) -> Iterator[tuple[int, Array]]:
        """Yield m and k_m(x, x) of every sample, except for exponential kernels, whose diagonal is one."""
        part, base_of_part = X, -1
        for m in np.flatnonzero((self.codes.kind != EXPONENTIAL) | (self.codes.scaled != 0)).tolist():
            b = int(self.base[m])
            if b != base_of_part:
                part, base_of_part = _take(X, self.base_columns[b]), b
            yield m, self.kernels[m].diagonal(part, squares[self.codes.norm[m]])

    def rounding(self, X: AnyArray, side: Side) -> Rounding:
        """Bounds on the rounding errors of all kernels among samples X, of which ``side`` was made.

        With D columns, inner products and squared norms are off by D units of their size, so squared distances by
        2D + 16 units of the squared norms of both centred samples, centring included.
        """
        made, kind, degree = RoundingBuilder(len(side)), self.codes.kind, self.codes.degree
        squares = [-1] * self.n_bases  # the row of the norms that distances are computed from
        values = self.scaled_diagonals(X) if self.precomputed or np.any(kind == VALUE) else None
        for m in range(self.n_kernels):
            b, D = int(self.base[m]), len(self.base_columns[self.base[m]])
            if kind[m] == EXPONENTIAL:
                metric = self.base_kernels[b].metric
                if squares[b] < 0:
                    one = metric == "cityblock"
                    squares[b] = made.row(np.abs(side.features[b]).sum(axis=1) if one else side.centred_squares[b])
                lost = {"sqeuclidean": 2 * D + 16, "cityblock": 2}.get(metric, 0)
                made.exponential(int(self._depth[m]), D + 8, squares[b], self.codes.rate[m] * lost)
            elif kind[m] == POLYNOMIAL:
                # with κ = γ ‖x‖² + c, values are at most √(κ_i κ_j)^p, and their errors p √(κ_i κ_j)^(p−1) (κ_i + κ_j)
                norms = np.maximum(side.squares[self.codes.norm[m]], side.centred_squares[b])
                size, p = self.codes.rate[m] * norms + self.codes.offset[m], degree[m]
                scale = side.scale[m] if self.codes.scaled[m] else 1.0
                second = 0 if p == 1 and not self.codes.scaled[m] else made.row(size ** ((p - 1) / 2) * scale)
                made.product(made.row(size ** ((p + 1) / 2) * scale), second, p * (3 * D + 24))
            else:
                assert values is not None
                root = made.row(np.sqrt(np.maximum(values[m], 0.0)))
                made.product(root, root, 4)
        return made.made(interpolated=self.plan.mixing is not None)

    @cached_property
    def _depth(self) -> IntArray:
        """How many times in a row each exponential is squared; an upper bound if kernels are interpolated."""
        depth = np.zeros(self.n_kernels, dtype=np.int64)
        program = self.plan.parts[0].program if self.plan.few else self.program
        for m in program.order:
            if program.parent[m] >= 0:
                depth[m] = depth[program.parent[m]] + program.doublings[m]
        return depth if self.plan.mixing is None else np.full_like(depth, MAX_DOUBLINGS)

    def panel(self, left: Side, rows: IntArray, right: Side, columns: IntArray, bases: slice = slice(None)) -> Array:
        """Flat base matrices between the given samples of each side, (n_bases, n_rows * n_columns)."""
        if self.precomputed:
            stack = left.features[0][np.ix_(rows, columns)]
            return np.ascontiguousarray(stack.reshape(-1, stack.shape[2]).T[bases])
        wanted = range(self.n_bases)[bases]
        out = np.empty((len(wanted), len(rows), len(columns)))
        whole = left is right and np.array_equal(rows, columns)  # passing x twice makes the matrix symmetric
        for k, b in enumerate(wanted):
            kernel, x, z = self.base_kernels[b], left.features[b][rows], right.features[b][columns]
            if kernel.metric == "sqeuclidean":
                squared_distances(x, z, left.centred_squares[b][rows], right.centred_squares[b][columns], out[k])
                if left is right:
                    out[k][rows[:, None] == columns] = 0  # a sample is at distance zero from itself
            else:
                out[k] = kernel.base_values(x, x if whole else z)
        return out.reshape(len(out), -1)

    def base_matrix(self, base: int, side: Side, samples: IntArray) -> Array:
        """One base matrix among the given samples."""
        if self.precomputed:
            return np.ascontiguousarray(side.features[0][np.ix_(samples, samples)][:, :, base])
        part = side.features[base][samples]
        return self.base_kernels[base].base_values(part, part)

    def cross(self, left: Side, right: Side, theta: Array) -> Array:
        """Σ_m θ_m K_m between two sets of samples, (n_left, n_right)."""
        return self._cross(left, right, (theta * self.factor)[None])[0]

    def stack(self, left: Side, right: Side) -> Array:
        """The base kernels before their factors, (n_kernels, n_left, n_right)."""
        evaluated = np.empty((self.plan.n_evaluated, len(left) * len(right)))
        for part in self.plan.parts:
            for rows in self._steps(left, right, part.bases.stop - part.bases.start):
                place = slice(rows[0] * len(right), (rows[-1] + 1) * len(right))
                evaluated[part.place, place] = part.stack(self._pairs(left, rows, right, part.bases))
        for some, values in self._product_stacks(left, np.arange(len(left)), right, 256):
            evaluated[some] = values
        return self.plan.of_kernels(evaluated).reshape(self.n_kernels, len(left), len(right))

    def _cross(self, left: Side, right: Side, thetas: Array) -> Array:
        """Σ_m θ_m K_m for several θ, (n_thetas, n_left, n_right); base matrices are computed once."""
        weights = self.plan.weights(np.ascontiguousarray(thetas, dtype=np.float64))
        out = np.empty((len(thetas), len(left) * len(right)))
        tile = self.plan.tile()
        for rows in self._steps(left, right, self.plan.n_bases):
            pairs = self._pairs(left, rows, right, slice(0, self.plan.n_bases))
            for row, combined in zip(weights, out, strict=True):
                self.plan.combine(row, pairs, 0, len(rows), tile, combined[rows[0] * len(right) :])
        return out.reshape(len(thetas), len(left), len(right))

    def _steps(self, left: Side, right: Side, n_bases: int) -> Iterator[IntArray]:
        """Yield chunks of rows whose base values fit into a panel."""
        step = max(1, int(PANEL_BYTES // (8 * n_bases * max(len(right), 1))))
        for first in range(0, len(left), step):
            yield np.arange(first, min(first + step, len(left)))

    def _pairs(self, left: Side, rows: IntArray, right: Side, bases: slice, panel: Array | None = None) -> Pairs:
        """The pairs of the given rows with all samples of the other side; pass their base values if known."""
        columns, n = np.arange(len(right)), len(rows)
        return Pairs(
            panel=self.panel(left, rows, right, columns, bases) if panel is None else panel,
            row_at=np.arange(n) * len(columns),
            column=columns,
            begin=np.zeros_like(rows),
            end=np.full_like(rows, len(columns)),
            left=left.samples(rows),
            right=right.samples(columns),
        )


def _take(X: Array, columns: IntArray) -> Array:
    """The given columns of X in C order, so that sums do not depend on the layout of X; no copy if it is all of X."""
    whole = len(columns) == X.shape[1] and np.array_equal(columns, np.arange(X.shape[1]))
    return np.ascontiguousarray(X if whole else X[:, columns])


def spread(K: Array, weight: Array) -> tuple[float, float]:
    """v = tr(K_c) and r = v² / ‖K_c‖² of a kernel matrix, with weights that sum to one; both zero if it is constant."""
    v, r = spreads(K[None], weight)
    return float(v[0]), float(r[0])


def spreads(Ks: Array, weight: Array) -> tuple[Array, Array]:
    """v and r of each of the matrices (k, n, n), which are overwritten.

    With m_i = Σ_j w_j K_ij and g = w'Kw: tr(K_c) = Σ w_i K_ii − g, ‖K_c‖² = Σ w_i w_j K_ij² − 2 Σ w_i m_i² + g².
    """
    flat = Ks.reshape(len(Ks), -1)
    size = np.maximum(flat.max(axis=1), -flat.min(axis=1))
    Ks /= np.where(size > 0, size, 1.0)[:, None, None]  # so that squares neither overflow nor underflow
    Ks -= Ks[:, :1, :1].copy()  # centring removes a constant anyway; doing it now keeps digits if K hardly varies
    sums, trace = Ks @ weight, np.einsum("kii,i->k", Ks, weight)
    mean = sums @ weight
    v = trace - mean
    norm = np.square(Ks, out=Ks) @ weight @ weight - 2 * sums**2 @ weight + mean**2
    varies = (v > _NO_VARIANCE) & (norm > 0)
    return np.where(varies, size * v, 0.0), np.divide(v**2, norm, out=np.zeros_like(v), where=varies)


@dataclass(frozen=True)
class SpreadSums:
    """Sums over tasks for the mean variance and the mean effective rank of kernels, (n_kernels,) each."""

    variance: Array
    rank: Array
    n_ranks: Array

    @classmethod
    def empty(cls, n_kernels: int) -> SpreadSums:
        return cls(*np.zeros((3, n_kernels)))

    def add(self, kernel: int | slice, variance: Array | float, rank: Array | float, n_tasks: int) -> None:
        """Add one of ``n_tasks`` tasks; a kernel without variance in a task has no rank there."""
        self.variance[kernel] += variance / n_tasks
        self.rank[kernel] += np.where(np.asarray(variance) > 0, rank, 0.0)
        self.n_ranks[kernel] += np.asarray(variance) > 0

    def means(self) -> tuple[Array, Array]:
        return self.variance, self.rank / np.maximum(self.n_ranks, 1) + (self.n_ranks == 0)


def squared_distances(x: AnyArray, z: AnyArray, x_squares: Array, z_squares: Array, out: AnyArray) -> None:
    """‖x_i − z_j‖² as x'x − 2x'z + z'z in the precision of x and z; where that cancels, from the differences."""
    np.dot(x, z.T, out=out)
    x_squares, z_squares = x_squares.astype(out.dtype), z_squares.astype(out.dtype)
    share = out.dtype.type(1e-7 if out.dtype == np.float64 else 1e-4)
    add_squares(x, z, x_squares, z_squares, share, out)


def capacity_factor(variance: Array, rank: Array, owners: list[str], capacity: float) -> Array:
    """1 / (v r^κ) of each kernel, and zero for a kernel that is constant within every task.

    In a named source (not ""), r is relative to the smallest r of that source, so that a source with many columns is
    not penalised more than one with few.
    """
    rank, of = rank.copy(), np.array(owners)
    for source in set(owners) - {""}:
        rank[of == source] /= rank[of == source].min()
    return _inverse(variance) * rank**-capacity


def _inverse(values: Array) -> Array:
    """1/d, and zero if d is zero: a sample of norm zero stays at the origin of feature space."""
    return np.where(values > 0, 1 / np.maximum(values, 1e-300), 0.0)
