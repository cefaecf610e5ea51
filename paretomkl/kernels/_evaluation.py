"""Evaluate the kernels of a bank at pairs of samples, compiled, a tile of pairs at a time.

A bank of M kernels is built on a few *bases*: matrices of squared distances, of L1 distances, or of kernel values. The
values of all M kernels for a tile of pairs are computed from the base values, used, and discarded, so M Gram matrices
are never stored. Compiled functions allocate nothing; they work in a :class:`Tile`. They unpack tuples once: to read a
field, compiled code first copies the whole tuple, which is free at run time but slow to compile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array, hstack, issparse, vstack

from .._tools.compiled import inner_njit, njit
from .._tools.typing import AnyArray, Array, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from ._kernels import Kernel

VALUE, POLYNOMIAL, EXPONENTIAL = 0, 1, 2

Scaling: TypeAlias = Literal["standardize", "root", "none"]
"""What is done to columns: mean zero and standard deviation one, square roots, or nothing."""

_LOG2E = 1.4426950408889634
_LN2 = 0.6931471805599453
_ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to an integer, held in the low bits of the sum
TILE = 1024  # pairs at a time: the values of a dozen kernels stay in the second-level cache
_LOWEST = -465.0  # log2 of about 1e-140
_NEGLIGIBLE = 1e-140  # smaller kernel values are set to zero, before squaring makes them denormal and slow
# width and depth of the piece of Z that stays in the second-level cache while the rows of X pass over it
_COLUMNS, _FEATURES = 256, 128
_DENSE_COLUMNS, _PAIRS = 1024, 4096  # columns of sparse samples, and pairs of them, to make dense at a time
MAX_DOUBLINGS = 14  # limit on squarings in a row from one exp: the error 2^14 · 1e-16 stays near 1e-12
_GROUP = 160  # limit on kernels, and on bases, per group if there are several groups


# ---------------------------------------------------------------------------------- dense or sparse samples
def as_matrix(X: Any) -> AnyArray:
    """X in double precision: an array, or a sparse array by row without stored zeros."""
    if not issparse(X):
        return np.asarray(X, dtype=np.float64)
    made = csr_array(X, dtype=np.float64)
    if not made.has_canonical_format or (made.data == 0).any():
        made = made.copy()
        made.sum_duplicates()
        made.eliminate_zeros()
    return made


def gaps_in(X: Any) -> bool:
    """Whether some value is NaN."""
    values: AnyArray = X.data if issparse(X) else X
    return bool(values.size and np.isnan(values.min()))


def side_by_side(parts: Sequence[AnyArray]) -> AnyArray:
    """The columns of several matrices; sparse if one of them is."""
    return csr_array(hstack(parts, format="csr")) if any(map(issparse, parts)) else np.hstack(parts)


def one_below_the_other(parts: Sequence[AnyArray]) -> AnyArray:
    """The rows of several matrices; sparse if one of them is."""
    return csr_array(vstack(parts, format="csr")) if any(map(issparse, parts)) else np.concatenate(parts)


def dense(part: Any) -> AnyArray:
    """The matrix as an array."""
    return part.toarray() if issparse(part) else part


def last_column(X: AnyArray) -> Array:
    return dense(X[:, [-1]]).ravel() if issparse(X) else X[:, -1]


def sums_of_squares(X: Any) -> Array:
    """‖x‖² of each row."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if issparse(X) else np.einsum("ij,ij->i", X, X)


def is_constant(X: Any) -> bool:
    """Whether all rows are the same."""
    if issparse(X):
        return bool((dense(X.max(axis=0)) == dense(X.min(axis=0))).all())
    return bool((X[:1] == X).all())


# ------------------------------------------------------------------------------------------------ programs
class Program(NamedTuple):
    """How to evaluate each kernel of a bank, arrays of shape (n_kernels,).

    ``order`` lists the kernels so that the source of a squaring comes before its result. The kernel of base value d is
    d itself (VALUE), exp(−rate · d) (EXPONENTIAL), or (rate · x'z + offset)^degree with the inner product x'z that
    corresponds to the squared distance d and the squared norms in row ``norm`` of the samples (POLYNOMIAL). An
    exponential with a ``parent`` is the parent's value squared ``doublings`` times. ``scaled`` kernels are multiplied
    by the scale of both samples.
    """

    order: IntArray
    kind: IntArray
    base: IntArray
    rate: Array
    offset: Array
    degree: IntArray
    parent: IntArray
    doublings: IntArray
    scaled: IntArray
    norm: IntArray


class SampleNorms(NamedTuple):
    """A list of samples: ``which`` (n,) are their columns in ``squares`` (n_norms, …) and ``scale`` (n_kernels, …).

    ``squares`` are the squared norms that turn a squared distance into an inner product; ``scale`` normalises.
    """

    which: IntArray
    squares: Array
    scale: Array


class Pairs(NamedTuple):
    """Pairs (i, j) from two lists of samples, with begin[i] ≤ j < end[i] in row i.

    The base values of a pair are ``panel[:, row_at[i] + column[j]]``; columns increase within a row.
    """

    panel: Array
    row_at: IntArray
    column: IntArray
    begin: IntArray
    end: IntArray
    left: SampleNorms
    right: SampleNorms


class Tile(NamedTuple):
    """A buffer for some pairs: the two samples of each, base values, and the values of the needed kernels.

    ``values`` has two extra rows for intermediates; ``bits`` is an integer view of ``values``. ``cursor`` holds the
    next row and the number of its pairs that are done.
    """

    cursor: IntArray
    needed: IntArray
    active: IntArray
    samples: IntArray
    bases: Array
    values: Array
    bits: IntArray


def make_tile(n_bases: int, n_kernels: int) -> Tile:
    values = np.empty((n_kernels + 2, TILE))
    return Tile(
        cursor=np.empty(2, dtype=np.int64),
        needed=np.empty(n_kernels, dtype=np.int64),
        active=np.empty(n_kernels + 3, dtype=np.int64),
        samples=np.empty((2, TILE), dtype=np.int64),
        bases=np.empty((n_bases, TILE)),
        values=values,
        bits=values.view(np.int64),
    )


# Allow only contraction: reassociation would cancel the rounding constant.
@njit(fastmath={"contract"})
def exp_into(x: Array, rate: float, n: int, shift: Array, shift_bits: IntArray, out: Array, bits: IntArray) -> None:
    """out_k = exp(−rate · x_k) for k < n and x ≥ 0, in a form that compilers can vectorise.

    −rate · x · log2(e) = integer + f with |f| ≤ ½; 2^f is a polynomial and the integer goes into the exponent bits.
    ``bits`` is an integer view of ``out``, and ``shift_bits`` of ``shift``, which is overwritten.
    """
    factor = -rate * _LOG2E
    for k in range(n):  # the Taylor series of degree 12 on |r| ≤ ln(2)/2 is exact to rounding
        t = factor * x[k]
        vanishes = t < _LOWEST
        t = 0.0 if vanishes else t
        z = t + _ROUND
        r = (t - (z - _ROUND)) * _LN2
        p = r * (1.0 / 479001600.0) + (1.0 / 39916800.0)
        p = p * r + (1.0 / 3628800.0)
        p = p * r + (1.0 / 362880.0)
        p = p * r + (1.0 / 40320.0)
        p = p * r + (1.0 / 5040.0)
        p = p * r + (1.0 / 720.0)
        p = p * r + (1.0 / 120.0)
        p = p * r + (1.0 / 24.0)
        p = p * r + (1.0 / 6.0)
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        out[k] = 0.0 if vanishes else p
        shift[k] = z
    for k in range(n):
        bits[k] += shift_bits[k] << 52


@inner_njit(fastmath={"contract"})
def square_into(source: Array, doublings: int, n: int, out: Array) -> None:
    """out_k = source_k^(2^doublings) for k < n, with up to four squarings per pass over memory."""
    while doublings > 0:
        if doublings >= 4:
            for k in range(n):
                x = source[k] * source[k]
                x *= x
                x *= x
                x *= x
                out[k] = x if x > _NEGLIGIBLE else 0.0
            doublings -= 4
        elif doublings >= 2:
            for k in range(n):
                x = source[k] * source[k]
                x *= x
                out[k] = x if x > _NEGLIGIBLE else 0.0
            doublings -= 2
        else:
            for k in range(n):
                x = source[k] * source[k]
                out[k] = x if x > _NEGLIGIBLE else 0.0
            doublings -= 1
        source = out


@inner_njit(fastmath={"contract"}, _nrt=True)
def next_tile(program: Program, pairs: Pairs, last: int, tile: Tile) -> int:
    """Evaluate the needed kernels at the next pairs from the cursor, as many as the tile holds; return their number.

    Pairs are taken row by row up to row last - 1, in pieces: several short rows or a part of a long one.
    """
    order, kind, base, rate, offset, degree, parent, doublings, scaled, norm = program
    panel, row_at, column, begin, end, left, right = pairs
    left_which, left_squares, left_scale = left
    right_which, right_squares, right_scale = right
    cursor, needed, _, samples, bases, values, bits = tile
    lefts, rights = samples[0], samples[1]
    shift, products = len(order), values[len(order) + 1]
    n = 0
    while cursor[0] < last and n < TILE:
        i = cursor[0]
        j = begin[i] + cursor[1]
        length = min(TILE - n, end[i] - j)
        columns = column[j:]
        no_gaps = length > 0 and columns[length - 1] - columns[0] == length - 1
        for b in range(len(bases)):
            source = panel[b, row_at[i] :]
            target = bases[b, n:]
            if no_gaps:
                source = source[columns[0] :]
                for k in range(length):
                    target[k] = source[k]
            else:
                for k in range(length):
                    target[k] = source[columns[k]]
        for k in range(length):
            lefts[n + k] = left_which[i]
            rights[n + k] = right_which[j + k]
        n += length
        cursor[0], cursor[1] = (i + 1, 0) if j + length == end[i] else (i, cursor[1] + length)

    products_of = -1  # the norms whose inner products are in ``products``
    for q in range(len(order)):
        m = order[q]
        if needed[m] == 0:
            continue
        b = base[m]
        source = bases[b]
        target = values[m]
        if kind[m] == EXPONENTIAL:
            if parent[m] < 0:
                exp_into(source, rate[m], n, values[shift], bits[shift], target, bits[m])
            else:
                # exp(−2γd) = exp(−γd)²; chains are short, because each squaring doubles the relative error
                square_into(values[parent[m]], doublings[m], n, target)
            continue
        if kind[m] == VALUE:
            for k in range(n):
                target[k] = source[k]
        else:
            if products_of != norm[m]:
                products_of = norm[m]
                own, other = left_squares[products_of], right_squares[products_of]
                for k in range(n):
                    products[k] = 0.5 * (own[lefts[k]] + other[rights[k]] - source[k])
            slope = rate[m]
            constant = offset[m]
            for k in range(n):
                target[k] = slope * products[k] + constant
            for _ in range(degree[m] - 1):
                for k in range(n):
                    target[k] *= slope * products[k] + constant
        if scaled[m]:
            for k in range(n):
                target[k] *= left_scale[m, lefts[k]] * right_scale[m, rights[k]]
    return n


@njit(fastmath={"contract"})
def combine_rows(
    program: Program, theta: Array, pairs: Pairs, first: int, last: int, tile: Tile, out: Array, adding: bool
) -> None:
    """out[row_at[i] + column[j]] = Σ_m θ_m K_m(i, j) for the pairs of rows first..last-1; columns have no gaps.

    ``adding`` adds to ``out`` instead.
    """
    order, parent = program.order, program.parent
    row_at, columns, begin, end = pairs.row_at, pairs.column, pairs.begin, pairs.end
    cursor, needed, active, _, _, values, _ = tile
    n_kernels = len(theta)
    sums = values[n_kernels]
    n_active = 0
    for m in range(n_kernels):
        needed[m] = theta[m] != 0.0
        if needed[m]:
            active[n_active] = m
            n_active += 1
    for q in range(n_active, n_kernels + 3):  # the sum takes four kernels at a time; padding has weight zero
        active[q] = active[0]
    for q in range(n_kernels - 1, -1, -1):
        m = order[q]
        if needed[m] and parent[m] >= 0:
            needed[parent[m]] = 1
    cursor[0], cursor[1] = first, 0
    while cursor[0] < last:
        i, offset = cursor[0], cursor[1]
        n = next_tile(program, pairs, last, tile)
        for k in range(n):
            sums[k] = 0.0
        for q in range(0, n_active, 4):
            w0 = theta[active[q]]
            w1 = theta[active[q + 1]] if q + 1 < n_active else 0.0
            w2 = theta[active[q + 2]] if q + 2 < n_active else 0.0
            w3 = theta[active[q + 3]] if q + 3 < n_active else 0.0
            v0, v1, v2, v3 = values[active[q]], values[active[q + 1]], values[active[q + 2]], values[active[q + 3]]
            for k in range(n):
                sums[k] += w0 * v0[k] + w1 * v1[k] + w2 * v2[k] + w3 * v3[k]
        done = 0
        while done < n:  # copy the pieces back to their rows
            j = begin[i] + offset
            length = min(n - done, end[i] - j)
            target = out[row_at[i] + columns[j] :]
            if adding:
                for k in range(length):
                    target[k] += sums[done + k]
            else:
                for k in range(length):
                    target[k] = sums[done + k]
            done += length
            i, offset = i + 1, 0


@njit()
def store_rows(program: Program, pairs: Pairs, first: int, last: int, tile: Tile, out: Array) -> None:
    """out[m, k] = K_m of the k-th pair of rows first..last-1, for each kernel separately."""
    cursor, needed, _, _, _, values, _ = tile
    for m in range(len(needed)):
        needed[m] = 1
    cursor[0], cursor[1] = first, 0
    at = 0
    while cursor[0] < last:
        n = next_tile(program, pairs, last, tile)
        for m in range(len(needed)):
            for k in range(n):
                out[m, at + k] = values[m, k]
        at += n


@njit()
def mirror(K: Array, start: IntArray, size: IntArray) -> None:
    """Copy the lower triangle of each block of K to the upper one, tile by tile."""
    tile = 32
    for b in range(len(size)):
        n = size[b]
        block = K[start[b] :]
        for i0 in range(0, n, tile):
            for j0 in range(0, i0 + 1, tile):
                for i in range(i0, min(i0 + tile, n)):
                    for j in range(j0, min(j0 + tile, i)):
                        block[j * n + i] = block[i * n + j]


@inner_njit(fastmath={"contract", "reassoc", "nsz"})
def dot_at(values: Array, positions: IntArray, offset: int, coefficients: Array, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += coefficients[k] * values[positions[k] - offset]
    return total


@inner_njit(fastmath={"contract", "reassoc", "nsz"})
def dot(values: Array, coefficients: Array, n: int) -> float:
    """Σ coefficients_k values_k over k < n, in an order that suits vector instructions."""
    total = 0.0
    for k in range(n):
        total += coefficients[k] * values[k]
    return total


# --------------------------------------------------------------------------------------------- distances
@inner_njit(fastmath={"contract", "reassoc", "nsz"})
def _add_four(x: Array, y: Array, Zt: Array, k: int, first: int, width: int, of_x: Array, of_y: Array) -> None:
    """Add the differences of four features of two samples to those of ``width`` columns."""
    x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
    y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
    z0, z1, z2, z3 = Zt[k, first:], Zt[k + 1, first:], Zt[k + 2, first:], Zt[k + 3, first:]
    for j in range(width):
        a, b, c, d = z0[j], z1[j], z2[j], z3[j]
        of_x[j] += abs(x0 - a) + abs(x1 - b) + abs(x2 - c) + abs(x3 - d)
        of_y[j] += abs(y0 - a) + abs(y1 - b) + abs(y2 - c) + abs(y3 - d)


@njit(fastmath={"contract", "reassoc", "nsz"})
def _add_differences(X: Array, Zt: Array, same: bool, out: Array) -> None:
    """out[i, j] += Σ_d |X[i, d] − Zt[d, j]|, two rows and four features at a time to load and store less often.

    If both are the ``same`` samples, the lower triangle is computed and copied to the upper one.
    """
    n, d = X.shape
    for first in range(0, Zt.shape[1], _COLUMNS):
        last = min(first + _COLUMNS, Zt.shape[1])
        top = first if same else 0
        for low in range(0, d, _FEATURES):
            high = min(low + _FEATURES, d)
            whole = high - (high - low) % 4
            for i in range(top, n - 1, 2):
                width = (min(last, i + 2) if same else last) - first
                for k in range(low, whole, 4):
                    _add_four(X[i], X[i + 1], Zt, k, first, width, out[i, first:], out[i + 1, first:])
                for k in range(whole, high):
                    for j in range(width):
                        out[i, first + j] += abs(X[i, k] - Zt[k, first + j])
                        out[i + 1, first + j] += abs(X[i + 1, k] - Zt[k, first + j])
            if (n - top) % 2:
                for k in range(low, high):
                    for j in range(first, last):
                        out[n - 1, j] += abs(X[n - 1, k] - Zt[k, j])
        if same:
            for i in range(top, n):
                for j in range(first, min(last, i + 1)):
                    out[j, i] = out[i, j]


def cityblock(X: AnyArray, Z: AnyArray) -> Array:
    """‖x − z‖_1 between the rows of X and of Z, (n, m); half the work if X is Z.

    The result has single precision if X has. Sparse samples become dense a few columns at a time.
    """
    kind = np.float32 if X.dtype == np.float32 else np.float64
    out = np.zeros((X.shape[0], Z.shape[0]), dtype=kind)
    if issparse(X) or issparse(Z):
        for first in range(0, X.shape[1], _DENSE_COLUMNS):
            some = slice(first, first + _DENSE_COLUMNS)
            x = dense(X[:, some])
            out += cityblock(x, x if X is Z else dense(Z[:, some]))
        return out
    left = np.ascontiguousarray(X, dtype=kind)
    _add_differences(left, np.ascontiguousarray(Z.T, dtype=kind), X is Z, out)
    return out


@njit(fastmath={"contract"})
def add_squares(
    x: AnyArray, z: AnyArray, x_squares: AnyArray, z_squares: AnyArray, share: float, products: AnyArray
) -> None:
    """Turn inner products x'z into ‖x − z‖² = x'x − 2x'z + z'z, in place.

    A result below ``share`` of x'x + z'z has lost most of its digits and is computed from the differences. Few are,
    unless an outlier is so far away that all others seem close together.
    """
    zero = share - share  # a zero with the precision of ``share``
    for i in range(len(products)):
        own = x_squares[i]
        for first in range(0, len(z), _COLUMNS):
            row, squares = products[i, first:], z_squares[first:]
            n = min(_COLUMNS, len(z) - first)
            n_lossy = 0
            for j in range(n):
                distance = max(own + squares[j] - row[j] - row[j], zero)
                row[j] = distance
                n_lossy += distance < share * (own + squares[j])
            for j in range(n if n_lossy else 0):
                if row[j] < share * (own + squares[j]):
                    total = zero
                    for k in range(x.shape[1]):
                        difference = x[i, k] - z[first + j, k]
                        total += difference * difference
                    row[j] = total


def squared_distances(x: AnyArray, z: AnyArray, x_squares: Array, z_squares: Array, out: AnyArray) -> None:
    """‖x_i − z_j‖² as x'x − 2x'z + z'z in the precision of x and z; where that cancels, from the differences."""
    x_squares, z_squares = x_squares.astype(out.dtype), z_squares.astype(out.dtype)
    share = out.dtype.type(1e-7 if out.dtype == np.float64 else 1e-4)
    if not (issparse(x) or issparse(z)):
        np.dot(x, z.T, out=out)
        add_squares(x, z, x_squares, z_squares, share, out)
        return
    total = x_squares[:, None] + z_squares
    np.maximum(total - 2 * dense(x @ z.T), 0, out=out)
    left, right = np.nonzero(out < share * total)
    for first in range(0, len(left), _PAIRS):
        i, j = left[first : first + _PAIRS], right[first : first + _PAIRS]
        out[i, j] = sums_of_squares(x[i] - z[j])


# ------------------------------------------------------------------------------------------------- plans
@dataclass(frozen=True)
class Bases:
    """The base matrices of a bank: kernels with the same columns and the same metric share one.

    Parameters
    ----------
    of_kernel : array of int of shape (n_kernels,)
        The base of each kernel.
    kernels : list of n_bases kernels
        One kernel of each base.
    columns : list of n_bases integer arrays
        The columns of each base; empty for a precomputed stack.
    scaling : list of n_bases names
        What is done to the columns of each base first.
    terms : array of int of shape (n_bases, 2), or None
        The two bases of which a base is the sum, such bases being last; −1 for the others.
    """

    of_kernel: IntArray
    kernels: list[Kernel]
    columns: list[IntArray]
    scaling: list[Scaling]
    terms: IntArray | None = None

    @classmethod
    def of(cls, kernels: list[Kernel], columns: list[IntArray] | None, scaling: list[Scaling]) -> Bases:
        """The bases of kernels and their columns; a precomputed stack has no columns, and a base for each kernel."""
        keys = [
            (m,) if columns is None or kernel.metric == "custom" else (kernel.metric, scaling[m], columns[m].tobytes())
            for m, kernel in enumerate(kernels)
        ]
        first: dict[tuple, int] = {}
        for m, key in enumerate(keys):
            first.setdefault(key, m)
        number = {key: b for b, key in enumerate(first)}
        seen = [np.empty(0, dtype=np.int64) if columns is None else columns[m] for m in first.values()]
        own = [kernels[m] for m in first.values()], seen, [scaling[m] for m in first.values()]
        return cls(np.array([number[key] for key in keys]), *own)


class Codes(NamedTuple):
    """The kernels of a bank as arrays (n_kernels,); see :class:`Program`."""

    kind: IntArray
    base: IntArray
    rate: Array
    offset: Array
    degree: IntArray
    scaled: IntArray
    norm: IntArray

    def take(self, which: IntArray | slice) -> Codes:
        return Codes(*[values[which] for values in self])  # type: ignore[arg-type]


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


class KernelGroup(NamedTuple):
    """Some of the evaluated kernels: ``program`` computes those at ``place`` from the bases at ``bases``.

    ``kernels`` are their rows in ``scale`` of the samples.
    """

    program: Program
    bases: slice
    place: slice
    kernels: IntArray

    def pairs(self, pairs: Pairs) -> Pairs:
        """Pairs of samples restricted to the bases and kernels of this group."""
        return self._of_group(pairs)._replace(panel=pairs.panel[self.bases])

    def _of_group(self, pairs: Pairs) -> Pairs:
        rows = self.kernels if self.program.scaled.any() else slice(0, 1)
        left, right = (side._replace(scale=side.scale[rows]) for side in (pairs.left, pairs.right))
        return pairs._replace(left=left, right=right)

    def tile(self) -> Tile:
        return make_tile(self.bases.stop - self.bases.start, len(self.kernels))

    def stack(self, pairs: Pairs) -> Array:
        """The value of each kernel, (n_kernels, n_pairs), for pairs of whole rows whose panel has only its bases."""
        out = np.empty((len(self.kernels), pairs.panel.shape[1]))
        store_rows(self.program, self._of_group(pairs), 0, len(pairs.row_at), self.tile(), out)
        return out


class EvaluationPlan:
    """How to evaluate kernels with the least work: all of them together, each by itself, unless they are very many.

    For very many kernels, see :class:`~paretomkl.kernels._many_kernels.PlanForMany`.

    Attributes
    ----------
    groups : list of KernelGroup
        The functions that are evaluated together.
    n_evaluated : int
        Number of evaluated functions.
    n_bases : int
        Number of bases in a panel.
    n_products : int
        Number of evaluated functions that are products of two exponentials; they come last.
    mixing : sparse array of shape (n_kernels, n_evaluated), or None
        Kernel m is Σ_i mixing[m, i] times the i-th evaluated function; None if the kernels themselves are evaluated.
    """

    mixing: csr_matrix | None = None
    n_products = 0

    def __init__(self, codes: Codes, n_bases: int):
        self.n_bases, self.n_evaluated = n_bases, len(codes.kind)
        self._codes, self._kernel = codes, np.arange(len(codes.kind))
        self.groups = [self._group(slice(0, self.n_evaluated), slice(0, n_bases))]

    @property
    def few(self) -> bool:
        """Whether all kernels are evaluated together, each by itself."""
        return len(self.groups) == 1 and self.mixing is None

    def split(self, most: int) -> list[KernelGroup]:
        """The evaluated functions in groups of at most ``most`` kernels and few bases."""
        base, first, groups = self._codes.base, 0, []
        for k in range(1, len(base) + 1):
            if k == len(base) or k - first == min(most, _GROUP) or abs(base[k] - base[first]) >= _GROUP:
                groups.append(self._group(slice(first, k)))
                first = k
        return groups

    def _group(self, place: slice, bases: slice | None = None) -> KernelGroup:
        some = self._codes.take(place)
        bases = bases or slice(int(some.base.min()), int(some.base.max()) + 1)
        program = compile_program(some._replace(base=some.base - bases.start))
        return KernelGroup(program, bases, place, self._kernel[place])

    def of_weights(self, theta: Array) -> tuple[EvaluationPlan, Array]:
        """The cheapest plan for Σ_m θ_m K_m, with its weights: for all kernels, or only for those with θ_m ≠ 0."""
        return self, self.weights(theta)

    def weights(self, theta: Array) -> Array:
        """The weights (…, n_evaluated) of the evaluated functions that give Σ_m θ_m K_m, θ (…, n_kernels)."""
        return theta if self.mixing is None else np.ascontiguousarray(theta @ self.mixing)

    def of_kernels(self, values: Array) -> Array:
        """Values (n_kernels, …) for all kernels from values (n_evaluated, …) that are linear in the kernels."""
        return values if self.mixing is None else self.mixing @ values

    def combine(self, weights: Array, pairs: Pairs, first: int, last: int, out: Array) -> None:
        """The weighted sum of the evaluated functions; see ``combine_rows``."""
        for k, group in enumerate(self.groups):
            some, tile = weights[group.place], group.tile()
            combine_rows(group.program, some, group.pairs(pairs), first, last, tile, out, k > 0)

    def product_stacks(self, panel: Array, most: int) -> Iterator[tuple[slice, Array]]:
        """Yield the values of products of two exponentials, at most ``most`` at a time, with their positions."""
        raise NotImplementedError

    def product_forms(self, pairs: Pairs, duals: Array, first: int, last: int) -> Array:
        """The quadratic forms of these products, (n_products, n_tasks), for duals (n_tasks, n_support)."""
        raise NotImplementedError
