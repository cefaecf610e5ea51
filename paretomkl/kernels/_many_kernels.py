"""Evaluate very many kernels: a few at a time, many widths from a few, and pairs of columns as products.

With many kernels, the values for a tile of pairs leave the cache, so a plan splits the kernels into groups.

If one base has very many rates γ, only exponentials exp(−γd) at fixed nodes are evaluated, and the others are
interpolated. As a function of x = log γ, exp(−d e^x) is analytic and bounded by one for |Im x| ≤ π/2, for every d ≥ 0.
On an interval of half-width h, the error of interpolation at n Chebyshev nodes is therefore at most
4 ρ^(1−n) / (ρ − 1) with ρ = π/2h + √(1 + (π/2h)²). For four octaves, ρ = 2.64: the 36 nodes below give 4e-15, about the
same as rounding. Within a segment, γ changes only by a factor of 16, so 1 − exp(−γd) keeps its digits when it is small.
Anything linear in the kernel, such as sums and quadratic forms, can be interpolated in the same way. So can a product
of two such values: it is bounded by one in the same strip.

Gaussians on very many pairs of columns are products of two values on single columns, exp(−γ(d_j + d_k)). With
E (n_columns, n_pairs) = exp(−γ d) for one rate γ, a sum of kernels with weights U (n_columns, n_columns) is the sum
over j of E_j ∘ (UE)_j, and the quadratic forms of all pairs of columns are (E diag(c)) E' with c_ij = v_i v_j: matrix
products instead of one exponential per kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray
from ._evaluation import EXPONENTIAL, Bases, Codes, EvaluationPlan, Pairs, exp_into

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MOST_TOGETHER = 256  # limit on kernels whose values for a tile of pairs fit into the second-level cache
OCTAVES = 4  # the rates of a segment lie between 16^k and 16^(k+1); its nodes are 16 times those of the segment below
N_NODES = 36
WORTHWHILE = 48  # rates per segment above which nodes are less work: 36 exponentials, and a sum for each rate
MANY_PAIRS, _MANY_BASES = 1000, 100  # kernels on pairs of columns, and pairs, above which products pay off
_CHUNK = 1024  # pairs of samples at a time in products
_TOGETHER = 64  # products at a time if they are evaluated one by one
_GEMM = 0.05  # cost of an entry of a matrix product relative to an exponential

_ANGLES = (np.arange(N_NODES) + 0.5) * (np.pi / N_NODES)
_POSITIONS = -np.cos(_ANGLES)  # in the segment, from −1 to 1
_BARYCENTRIC = (-1.0) ** np.arange(N_NODES) * np.sin(_ANGLES)


def segment_of(rate: Array) -> IntArray:
    """The segment of each rate γ > 0."""
    return np.floor(np.log2(rate) / OCTAVES).astype(np.int64)


def nodes_of(segment: IntArray) -> Array:
    """The rates of the nodes of each segment, (n_segments, N_NODES); exactly 16 times larger in the next segment."""
    return np.ldexp(np.exp2(0.5 * OCTAVES * (1 + _POSITIONS)), OCTAVES * segment[:, None])


def mixing_of(rate: Array) -> Array:
    """exp(−rate_m d) = Σ_i mixing[m, i] exp(−node_i d) with the nodes of its segment: (n_rates, N_NODES)."""
    position = 2 * (np.log2(rate) / OCTAVES - segment_of(rate)) - 1
    apart = position[:, None] - _POSITIONS
    hit = np.abs(apart) < 1e-15
    share = _BARYCENTRIC / np.where(hit, 1.0, apart)
    share = np.where(hit.any(axis=1, keepdims=True), hit, share)
    return share / share.sum(axis=1, keepdims=True)


# ------------------------------------------------------------------------------------------------- plans
def make_plan(codes: Codes, n_bases: int, terms: IntArray | None = None) -> EvaluationPlan:
    """The plan that evaluates all kernels with the least work.

    A base from ``n_bases`` on is the sum of two of those before, which are its row of ``terms``.
    """
    if terms is None and max(len(codes.kind), n_bases) <= MOST_TOGETHER and _crowded(codes) is None:
        return EvaluationPlan(codes, n_bases)
    return PlanForMany(codes, n_bases, terms)


class PlanForMany(EvaluationPlan):
    """Evaluates kernels in several groups, interpolates widths, and has kernels on sums of two bases as products.

    The products come last among the evaluated functions.
    """

    def __init__(self, codes: Codes, n_bases: int, terms: IntArray | None = None):
        from scipy.sparse import block_diag, identity

        plain, products = np.flatnonzero(codes.base < n_bases), np.flatnonzero(codes.base >= n_bases)
        self._all, self._terms, self.n_bases = codes, terms, n_bases
        self._codes, kernel, self.mixing = _evaluated(codes.take(plain), _crowded(codes.take(plain)))
        self._kernel = plain[kernel]
        self._n_plain, self.n_products = len(kernel), len(products)
        self.n_evaluated = self._n_plain + self.n_products
        if terms is not None:
            self._products = ColumnPairs(codes.rate[products], *terms[codes.base[products]].T)
            mixing = block_diag([self.mixing, identity(len(products))]).tocsr()
            self.mixing = mixing[np.argsort(np.concatenate([plain, products]))]
        self.groups = self.split(MOST_TOGETHER)

    def of_weights(self, theta: Array) -> tuple[EvaluationPlan, Array]:
        needed = np.flatnonzero(theta)
        if 2 * len(needed) > self.n_evaluated:
            return self, self.weights(theta)
        plan = make_plan(self._all.take(needed), self.n_bases, self._terms)
        plan.groups = [group._replace(kernels=needed[group.kernels]) for group in plan.groups]
        return plan, plan.weights(theta[needed])

    def combine(self, weights: Array, pairs: Pairs, first: int, last: int, out: Array) -> None:
        if not self.groups:
            for i in range(first, last):
                out[pairs.row_at[i] + pairs.column[pairs.begin[i] : pairs.end[i]]] = 0.0
        super().combine(weights, pairs, first, last, out)
        if self.n_products:
            self._products.add(weights[self._n_plain :], pairs, first, last, out)

    def product_stacks(self, panel: Array, most: int) -> Iterator[tuple[slice, Array]]:
        for first in range(0, self.n_products, most):
            some = slice(first, min(first + most, self.n_products))
            yield slice(self._n_plain + some.start, self._n_plain + some.stop), self._products.stack(panel, some)

    def product_forms(self, pairs: Pairs, duals: Array, first: int, last: int) -> Array:
        return self._products.forms(pairs, duals, first, last)


def _crowded(codes: Codes) -> IntArray | None:
    """A group number for exponentials to interpolate from nodes, one per base and segment; −1 for other kernels."""
    fast = np.flatnonzero((codes.kind == EXPONENTIAL) & (codes.scaled == 0))
    if len(fast) <= WORTHWHILE:
        return None
    key = np.stack([codes.base[fast], segment_of(codes.rate[fast])])
    _, group, count = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    crowded = count[group] > WORTHWHILE
    if not crowded.any():
        return None
    number = np.full(len(codes.kind), -1)
    number[fast[crowded]] = np.unique(group[crowded], return_inverse=True)[1]
    return number


def _evaluated(codes: Codes, group: IntArray | None) -> tuple[Codes, IntArray, csr_matrix]:
    """The evaluated functions, sorted by base: codes, kernel of each (any of the group for a node), and mixing."""
    from scipy.sparse import csr_matrix

    group = np.full(len(codes.kind), -1) if group is None else group
    plain, crowded = np.flatnonzero(group < 0), np.flatnonzero(group >= 0)
    _, first = np.unique(group[crowded], return_index=True)  # one kernel per group
    owner = crowded[first]
    nodes = codes.take(np.repeat(owner, N_NODES))._replace(rate=nodes_of(segment_of(codes.rate[owner])).ravel())
    both = [np.concatenate([own, made]) for own, made in zip(codes.take(plain), nodes, strict=True)]
    every = Codes(*both)
    kernel = np.concatenate([plain, np.repeat(owner, N_NODES)])
    # sorting by mantissa keeps chains of squarings together
    order = np.lexsort((every.rate, np.frexp(every.rate)[0], every.kind, every.base))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    row = np.concatenate([plain, np.repeat(crowded, N_NODES)])
    column = np.concatenate(
        [np.arange(len(plain)), (len(plain) + N_NODES * group[crowded][:, None] + np.arange(N_NODES)).ravel()]
    )
    share = np.concatenate([np.ones(len(plain)), mixing_of(codes.rate[crowded]).ravel()])
    mixing = csr_matrix((share, (row, place[column])), shape=(len(codes.kind), len(order)))
    return every.take(order), kernel[order], mixing


# --------------------------------------------------------------------------------------- pairs of columns
def split_pairs(bases: Bases, exponential: AnyArray) -> Bases:
    """If there are very many Gaussians on pairs of columns, put their bases last, with the two terms of each.

    The squared distance on two columns is the sum of the distances on each; these become bases if they are not yet.
    ``exponential`` (n_kernels,) says which kernels are exponentials.
    """
    of_kernel, kernels, columns = bases.of_kernel, list(bases.kernels), list(bases.columns)
    two = [kernel.metric == "sqeuclidean" and len(seen) == 2 for kernel, seen in zip(kernels, columns, strict=True)]
    split = np.array(two)
    np.logical_and.at(split, of_kernel[~exponential], False)  # inner products need the base itself
    if (
        len(set(bases.scaling)) > 1  # the distances on a column depend on how it is scaled
        or np.count_nonzero(split[of_kernel]) < MANY_PAIRS
        or np.count_nonzero(split) < _MANY_BASES
    ):
        return bases
    single = {
        int(seen[0]): b
        for b, seen in enumerate(columns)
        if len(seen) == 1 and kernels[b].metric == "sqeuclidean" and not two[b]
    }
    for c in sorted({int(c) for b in np.flatnonzero(split) for c in columns[b]} - set(single)):
        single[c] = len(columns)
        kernels.append(kernels[int(np.argmax(split))])
        columns.append(np.array([c]))
    split = np.concatenate([split, np.zeros(len(columns) - len(split), dtype=bool)])
    order = np.argsort(split, kind="stable")
    place = np.argsort(order)
    terms = np.array([[place[single[int(c)]] for c in columns[b]] if split[b] else [-1, -1] for b in order])
    scaling = bases.scaling[:1] * len(order)
    return Bases(place[of_kernel], [kernels[b] for b in order], [columns[b] for b in order], scaling, terms)


class ColumnPairs:
    """Kernels exp(−rate (d_first + d_second)) of two bases each."""

    def __init__(self, rate: Array, first: IntArray, second: IntArray):
        self.rate, self.first, self.second = rate, first, second
        self.rates, self.at_rate = np.unique(rate, return_inverse=True)
        self.columns = np.unique(np.concatenate([first, second]))
        self._row, self._column = np.searchsorted(self.columns, first), np.searchsorted(self.columns, second)

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
