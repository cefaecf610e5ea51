"""Plan how to evaluate the kernels of a bank: a few at a time, and only some of very many widths.

Compiled code computes the values of all kernels of a :class:`~paretomkl.kernels._tiles.Program` for a tile of pairs.
With many kernels, these values leave the cache, so a plan splits them into parts. If one base has very many rates, only
exponentials at fixed nodes are evaluated, and the others are sums of these (:mod:`paretomkl.kernels._many_widths`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._tools.typing import Array, IntArray
from ._many_pairs import ColumnPairs
from ._many_widths import N_NODES, WORTHWHILE, mixing_of, nodes_of, segment_of
from ._tiles import (
    EXPONENTIAL,
    Blocks,
    Pairs,
    Program,
    Samples,
    Support,
    Tile,
    add_rows,
    combine_rows,
    make_tile,
    quadratic_forms,
    store_rows,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MAX_DOUBLINGS = 14  # limit on squarings in a row from one exp: the error 2^14 · 1e-16 stays near 1e-12
MOST_TOGETHER = 256  # limit on kernels whose values for a tile of pairs fit into the second-level cache
_ROOM = 160  # limit on kernels and bases per part if there are several parts


class Codes(NamedTuple):
    """The kernels of a bank as arrays (n_kernels,); see :class:`~paretomkl.kernels._tiles.Program`."""

    kind: IntArray
    base: IntArray
    rate: Array
    offset: Array
    degree: IntArray
    scaled: IntArray
    norm: IntArray

    def take(self, which: IntArray | slice) -> Codes:
        fields: Any = (values[which] for values in self)
        return Codes(*fields)


def compile_program(codes: Codes) -> Program:
    """The program of these kernels; exponentials whose rates differ by powers of two are squared from each other."""
    kind, base, rate, offset, degree, scaled, norm = codes
    order = np.lexsort((rate, kind)).astype(np.int64)  # by increasing rate: a kernel is squared from a wider one
    parent, doublings, depth = np.zeros((3, len(kind)), dtype=np.int64)
    parent -= 1
    last_of_chain: dict[tuple[int, float], int] = {}  # by base and mantissa
    for m in order:
        if kind[m] != EXPONENTIAL:
            continue
        mantissa, exponent = math.frexp(rate[m])
        k = last_of_chain.get((int(base[m]), mantissa))
        if k is not None:
            steps = exponent - math.frexp(rate[k])[1]
            if steps >= 1 and depth[k] + steps <= MAX_DOUBLINGS:
                parent[m], doublings[m], depth[m] = k, steps, depth[k] + steps
        last_of_chain[int(base[m]), mantissa] = int(m)
    return Program(order, kind, base, rate, offset, degree, parent, doublings, scaled, norm)


class Part(NamedTuple):
    """Some of the evaluated kernels: ``program`` computes those at ``place`` from the bases at ``bases``.

    ``kernels`` are their rows in ``scale`` of the samples.
    """

    program: Program
    bases: slice
    place: slice
    kernels: IntArray

    def pairs(self, pairs: Pairs) -> Pairs:
        """Pairs of samples restricted to the bases and kernels of this part."""
        return self._of_part(pairs, pairs.panel[self.bases])

    def _of_part(self, pairs: Pairs, panel: Array) -> Pairs:
        left = self._samples(pairs.left)
        right = left if pairs.right is pairs.left else self._samples(pairs.right)
        return pairs._replace(panel=panel, left=left, right=right)

    def _samples(self, samples: Samples) -> Samples:
        scale = samples.scale[self.kernels] if self.program.scaled.any() else samples.scale[:1]
        return Samples(samples.which, samples.squares, scale)

    def tile(self, whole: Tile) -> Tile:
        """The piece of a tile that this part needs."""
        n_bases, n_kernels = self.bases.stop - self.bases.start, len(self.program.kind)
        cursor, needed, active, samples, bases, values, bits = whole
        room = n_kernels + 2  # two rows for intermediates
        return Tile(
            cursor, needed[:n_kernels], active[: n_kernels + 3], samples, bases[:n_bases], values[:room], bits[:room]
        )

    def stack(self, pairs: Pairs) -> Array:
        """The value of each kernel, (n_kernels, n_pairs), for pairs of whole rows whose panel has only its bases."""
        n_bases, n_kernels = len(pairs.panel), len(self.kernels)
        out = np.empty((n_kernels, pairs.panel.shape[1]))
        of_part = self._of_part(pairs, pairs.panel)
        store_rows(self.program, of_part, 0, len(pairs.row_at), make_tile(n_bases, n_kernels), out)
        return out


class Plan:
    """The parts of a bank, and how to compute its kernels from the evaluated functions.

    Attributes
    ----------
    parts : list of Part
    mixing : sparse array of shape (n_kernels, n_evaluated), or None
        Kernel m is Σ_i mixing[m, i] times the i-th evaluated function; None if the kernels themselves are evaluated.
    n_evaluated : int
    n_bases : int
        Number of bases in a panel; any further base is the sum of two of these, given by its row in ``terms``.
    products : ColumnPairs or None
        Kernels on such sums; they come last among the evaluated functions.
    """

    def __init__(self, codes: Codes, n_bases: int, terms: IntArray | None = None):
        self.mixing: csr_matrix | None = None
        self.products: ColumnPairs | None = None
        self.n_bases, self._terms = n_bases, terms
        self._all = self._codes = codes
        self._kernel = np.arange(len(codes.kind))
        plain = np.flatnonzero(codes.base < n_bases)
        group = _crowded(codes.take(plain))
        few = max(len(codes.kind), n_bases) <= MOST_TOGETHER and group is None and terms is None
        if not few:
            self._codes, kernel, self.mixing = _evaluated(codes.take(plain), group)
            self._kernel = plain[kernel]
        self._n_plain = self.n_evaluated = len(self._kernel)
        if len(plain) < len(codes.kind) and terms is not None:
            self._add_products(plain, np.flatnonzero(codes.base >= n_bases))
        self.parts = [self._part(slice(0, self.n_evaluated), slice(0, n_bases))] if few else self.split(_ROOM)

    def _add_products(self, plain: IntArray, products: IntArray) -> None:
        """Append the kernels on sums of two bases."""
        from scipy.sparse import block_diag, identity

        assert self._terms is not None
        codes = self._all.take(products)
        self.products = ColumnPairs(codes.rate, *self._terms[codes.base].T)
        mixing = block_diag([self.mixing, identity(len(products))]).tocsr()
        place = np.empty(len(plain) + len(products), dtype=np.int64)
        place[np.concatenate([plain, products])] = np.arange(len(place))
        self.mixing = mixing[place]
        self.n_evaluated += len(products)

    @property
    def few(self) -> bool:
        """Whether the kernels are so few that all of them are evaluated together, each by itself."""
        return len(self.parts) == 1 and self.mixing is None and self.products is None

    def of_weights(self, theta: Array) -> tuple[Plan, Array]:
        """The cheapest plan for Σ_m θ_m K_m, with its weights: for all kernels, or only for those with θ_m ≠ 0."""
        needed = np.flatnonzero(theta)
        if self.mixing is None or 2 * len(needed) > self.n_evaluated:
            return self, self.weights(theta)
        plan = Plan(self._all.take(needed), self.n_bases, self._terms)
        for k, part in enumerate(plan.parts):
            plan.parts[k] = part._replace(kernels=needed[part.kernels])
        return plan, plan.weights(theta[needed])

    def split(self, most: int) -> list[Part]:
        """All evaluated functions in parts of at most ``most``."""
        return [self._part(place) for place in _pieces(self._codes.base, min(most, _ROOM))] if self._n_plain else []

    def _part(self, place: slice, bases: slice | None = None) -> Part:
        some = self._codes.take(place)
        bases = bases or slice(int(some.base.min()), int(some.base.max()) + 1)
        program = compile_program(some._replace(base=some.base - bases.start))
        return Part(program, bases, place, self._kernel[place])

    def tile(self) -> Tile:
        """A tile that is large enough for any part."""
        n_bases = max((part.bases.stop - part.bases.start for part in self.parts), default=1)
        return make_tile(n_bases, max((len(part.kernels) for part in self.parts), default=1))

    def weights(self, theta: Array) -> Array:
        """The weights (…, n_evaluated) of the evaluated functions that give Σ_m θ_m K_m, θ (…, n_kernels)."""
        return theta if self.mixing is None else np.ascontiguousarray(theta @ self.mixing)

    def of_kernels(self, values: Any) -> Any:
        """Values (n_kernels, …) for all kernels from values (n_evaluated, …) that are linear in the kernels."""
        return values if self.mixing is None else self.mixing @ values

    def combine(self, weights: Array, pairs: Pairs, first: int, last: int, tile: Tile, out: Array) -> None:
        """The weighted sum of the evaluated functions; see ``combine_rows``."""
        combine = combine_rows
        if not self.parts:
            for i in range(first, last):
                out[pairs.row_at[i] + pairs.column[pairs.begin[i] : pairs.end[i]]] = 0.0
        for part in self.parts:
            combine(part.program, weights[part.place], part.pairs(pairs), first, last, part.tile(tile), out)
            combine = add_rows
        if self.products is not None:
            self.products.add(weights[self._n_plain :], pairs, first, last, out)

    def forms(
        self, pairs: Pairs, blocks: Blocks, ptr: IntArray, support: Support, first: int, last: int, tile: Tile
    ) -> Array:
        """The quadratic forms of the evaluated functions, (n_evaluated, n_tasks); see ``quadratic_forms``."""
        forms = np.empty((self.n_evaluated, len(ptr) - 1))
        for part in self.parts:
            some = np.zeros((len(ptr) - 1, len(part.kernels)))
            room = part.tile(tile)
            quadratic_forms(part.program, part.pairs(pairs), blocks, ptr, support, first, last, room, some)
            forms[part.place] = some.T
        if self.products is not None:
            forms[self._n_plain :] = self.products.forms(pairs, dense_duals(blocks, ptr, support), first, last)
        return forms


def dense_duals(blocks: Blocks, ptr: IntArray, support: Support) -> Array:
    """The dual of each task at every support vector, (n_tasks, n_support)."""
    _, tasks, task_ptr = blocks
    n_support = int(support.begin.shape[0])
    V = np.zeros((len(ptr) - 1, n_support))
    for b in range(len(task_ptr) - 1):
        mine = np.flatnonzero(support.block == b)
        for t in tasks[task_ptr[b] : task_ptr[b + 1]]:
            if len(mine):
                count = support.rank[support.rank_at[t] + mine[-1] + 1]
                V[t, support.number[ptr[t] : ptr[t] + count]] = support.value[ptr[t] : ptr[t] + count]
    return V


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
    both: Any = (np.concatenate(two) for two in zip(codes.take(plain), nodes, strict=True))
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


def _pieces(base: IntArray, most: int) -> list[slice]:
    """Ranges of at most ``most`` kernels and few bases; if there are many kernels, they are sorted by base."""
    pieces: list[slice] = []
    first = 0
    for k in range(1, len(base) + 1):
        if k == len(base) or k - first == most or abs(base[k] - base[first]) >= _ROOM:
            pieces.append(slice(first, k))
            first = k
    return pieces
