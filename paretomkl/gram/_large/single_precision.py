"""Compiled evaluation of a bank of kernels in single precision: one sample against many, a tile at a time.

Twice as many values fit into a vector register and into the cache as in double precision, and the data of the one
sample are read once. Errors of single precision are measured where they matter for a certificate; if kernels need more
digits, :mod:`paretomkl.kernels._evaluation` is used instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._tools.compiled import inner_njit, njit
from ..._tools.typing import AnyArray, Array, IntArray
from ...kernels._evaluation import EXPONENTIAL, VALUE, Program

if TYPE_CHECKING:
    from ...kernels._fitted import Side

ROWS = 512  # rows at a time: the values of a dozen kernels stay in the first-level cache, and call overhead is small
_MOST_DOUBLINGS = 3  # limit on squarings in a row; each doubles the relative error of 1e-7
_LOG2E = 1.4426950408889634
_LN2 = np.float32(0.6931471805599453)
_ROUND = np.float32(12582912.0)  # 1.5 · 2^23: adding it rounds to an integer, held in the low bits of the sum
_LOWEST = np.float32(-60.0)  # log2 of about 1e-18: smaller values count as zero, so that squares do not underflow
_MANTISSA = np.int32(23)
# Taylor coefficients of exp; degree 7 is exact to rounding on |r| ≤ ln(2)/2
_C2, _C3, _C4, _C5, _C6, _C7 = (np.float32(1 / f) for f in (2, 6, 24, 120, 720, 5040))
# time per pair of samples in units of one vector operation on its values: an exponential, a squaring or a product,
# adding a value to a sum in double precision, and adding a stored value, which is read from memory
_EXPONENTIAL, _PRODUCT, _ADDING, READING = 6.0, 1.0, 1.0, 0.5
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


class SingleSide(NamedTuple):
    """Some samples in single precision: optionally their features for each base, squares and scale."""

    features: list[AnyArray]
    squares: AnyArray
    scale: AnyArray

    @classmethod
    def of(cls, side: Side, samples: IntArray, features: bool = False) -> SingleSide:
        kept = [part[samples].astype(np.float32) for part in side.features] if features else []
        return cls(kept, side.squares[:, samples].astype(np.float32), side.scale[:, samples].astype(np.float32))


class SingleColumns(NamedTuple):
    """The samples whose columns of kernel values to compute, and the rows of these columns.

    Row r of column c has the base values ``panel[:, at[c] + r]``. ``squares`` (n_norms, …) and ``scale``
    (n_kernels, …) belong to the columns, and with the prefix ``row_`` to the rows; all in single precision.
    """

    panel: AnyArray
    at: IntArray
    squares: AnyArray
    scale: AnyArray
    row_squares: AnyArray
    row_scale: AnyArray

    @classmethod
    def of(cls, panel: AnyArray, at: IntArray, columns: SingleSide, rows: SingleSide) -> SingleColumns:
        return cls(panel, at, columns.squares, columns.scale, rows.squares, rows.scale)


class ColumnEntries(NamedTuple):
    """Numbers that belong to columns, such as changes of the dual: column c has those from begin[c] to end[c] - 1.

    ``place`` is the start of the field of each, or the number of its task, and ``value`` the number itself.
    """

    begin: IntArray
    end: IntArray
    place: IntArray
    value: Array

    def take(self, columns: IntArray) -> ColumnEntries:
        """The entries of some of the columns."""
        return self._replace(begin=self.begin[columns], end=self.end[columns])

    def dense(self) -> tuple[IntArray, Array]:
        """The places of the entries, and a matrix (n_places, n_columns) of their values."""
        entry = np.concatenate([np.arange(a, b) for a, b in zip(self.begin, self.end, strict=True)])
        places, row = np.unique(self.place[entry], return_inverse=True)
        values = np.zeros((len(places), len(self.begin)))
        values[row, np.repeat(np.arange(len(self.begin)), self.end - self.begin)] = self.value[entry]
        return places, values


class Triangle(NamedTuple):
    """Rows of columns up to the diagonal: column c has the first n_rows[c] of ``rows``, positions in the column.

    If ``diagonal[c]``, the last of them is c itself.
    """

    rows: IntArray
    n_rows: IntArray
    diagonal: AnyArray


def with_short_chains(program: Program) -> Program:
    """The program with a new exponential wherever squarings would lose too many digits."""
    parent, doublings = program.parent.copy(), program.doublings.copy()
    depth = np.zeros_like(doublings)
    for m in program.order:
        if parent[m] >= 0:
            depth[m] = depth[parent[m]] + doublings[m]
            if depth[m] > _MOST_DOUBLINGS:
                parent[m], doublings[m], depth[m] = -1, 0, 0
    return program._replace(parent=parent, doublings=doublings)


def work_per_pair(program: Program, weight: Array) -> float:
    """The time to evaluate and add the kernels with weight at a pair of samples, relative to a vector operation."""
    needed = needed_kernels(program, weight)
    fresh = (program.kind == EXPONENTIAL) & (program.parent < 0)
    products = np.where(program.kind == EXPONENTIAL, program.doublings, program.degree + program.scaled)
    return float((np.where(fresh, _EXPONENTIAL, _PRODUCT * products) + _ADDING) @ needed)


@njit()
def needed_kernels(program: Program, weight: Array) -> IntArray:
    """Which kernels to evaluate: 1 for those with weight and for the sources of their squarings."""
    order, parent = program.order, program.parent
    needed = np.zeros(len(weight), dtype=np.int64)
    for q in range(len(weight) - 1, -1, -1):
        m = order[q]
        needed[m] = max(needed[m], int(weight[m] != 0.0))
        if needed[m] and parent[m] >= 0:
            needed[parent[m]] = 1
    return needed


@inner_njit(fastmath={"contract"})
def exp_into(x: AnyArray, rate: float, n: int, shift: AnyArray, whole: AnyArray, out: AnyArray, bits: AnyArray) -> None:
    """out_k = exp(−rate · x_k) for k < n and x ≥ 0; for the method see ``_evaluation.exp_into``.

    ``bits`` is an integer view of ``out``, and ``whole`` of ``shift``, which is overwritten.
    """
    factor = np.float32(-rate * _LOG2E)
    for k in range(n):
        t = factor * x[k]
        vanishes = t < _LOWEST
        t = _ZERO if vanishes else t
        z = t + _ROUND
        r = (t - (z - _ROUND)) * _LN2
        p = r * _C7 + _C6
        p = p * r + _C5
        p = p * r + _C4
        p = p * r + _C3
        p = p * r + _C2
        p = p * r + _ONE
        p = p * r + _ONE
        out[k] = _ZERO if vanishes else p
        shift[k] = z
    for k in range(n):
        bits[k] += whole[k] << _MANTISSA


# Each loop is a separate function: in one large function, compilers fail to vectorise them.
@inner_njit(fastmath={"contract"})
def square_into(source: AnyArray, n: int, out: AnyArray) -> None:
    for k in range(n):
        out[k] = source[k] * source[k]


@inner_njit(fastmath={"contract"})
def affine_into(
    source: AnyArray, squares: AnyArray, own: float, slope: float, constant: float, n: int, out: AnyArray
) -> None:
    """out_k = slope · (own + squares_k − source_k) + constant."""
    for k in range(n):
        out[k] = slope * (own + squares[k] - source[k]) + constant


@inner_njit(fastmath={"contract"})
def multiply_into(x: AnyArray, factor: float, n: int, out: AnyArray) -> None:
    """out_k *= factor · x_k."""
    for k in range(n):
        out[k] *= factor * x[k]


@inner_njit(fastmath={"contract"})
def copy_into(source: AnyArray, n: int, out: AnyArray) -> None:
    for k in range(n):
        out[k] = source[k]


@inner_njit(fastmath={"contract"})
def add_into(source: AnyArray, factor: float, n: int, out: Array) -> None:
    for k in range(n):
        out[k] += factor * source[k]


@inner_njit(_nrt=True)
def column_values(
    program: Program, needed: IntArray, columns: SingleColumns, c: int, r: int, n: int, values: AnyArray, bits: AnyArray
) -> None:
    """Write the needed kernels at rows r..r+n-1 of column c to ``values`` (n_kernels + 1, ROWS).

    ``bits`` is an integer view of ``values``, whose last row is for intermediates.
    """
    order, kind, base, rate, offset, degree, parent, doublings, scaled, norm = program
    panel, at, squares, scale, row_squares, row_scale = columns
    spare = len(order)
    for q in range(len(order)):
        m = order[q]
        if needed[m] == 0:
            continue
        b = base[m]
        source = panel[b, at[c] + r :]
        if kind[m] == EXPONENTIAL:
            if parent[m] < 0:
                exp_into(source, rate[m], n, values[spare], bits[spare], values[m], bits[m])
            else:
                square_into(values[parent[m]], n, values[m])
                for _ in range(doublings[m] - 1):
                    square_into(values[m], n, values[m])
            continue
        if kind[m] == VALUE:
            copy_into(source, n, values[m])
        else:
            slope, constant = np.float32(0.5 * rate[m]), np.float32(offset[m])
            affine_into(source, row_squares[norm[m], r:], squares[norm[m], c], slope, constant, n, values[m])
            if degree[m] > 1:
                copy_into(values[m], n, values[spare])
            for _ in range(degree[m] - 1):
                multiply_into(values[spare], _ONE, n, values[m])
        if scaled[m]:
            multiply_into(row_scale[m, r:], scale[m, c], n, values[m])


@njit(fastmath={"contract"})
def add_columns(
    program: Program, columns: SingleColumns, entries: ColumnEntries, first: int, last: int, fields: Array
) -> None:
    """fields[m, place_e + r] += value_e k_m(column c, row r) for first ≤ r < last and all entries e of columns c."""
    begin, end, place, value = entries
    n_kernels = len(fields)
    values = np.empty((n_kernels + 1, ROWS), dtype=np.float32)
    bits = values.view(np.int32)
    needed = np.ones(n_kernels, dtype=np.int64)
    for r in range(first, last, ROWS):  # the fields of these rows stay in the cache while all columns are added
        n = min(ROWS, last - r)
        for c in range(len(begin)):
            column_values(program, needed, columns, c, r, n, values, bits)
            for e in range(begin[c], end[c]):
                for m in range(n_kernels):
                    add_into(values[m], value[e], n, fields[m, place[e] + r :])


@njit(fastmath={"contract"})
def combine_columns(
    program: Program, weight: Array, columns: SingleColumns, first: int, last: int, n_rows: IntArray, out: AnyArray
) -> None:
    """out[at_c + r] = Σ_m weight_m k_m(column c, row r) for columns first ≤ c < last and rows r < n_rows[c]."""
    values = np.empty((len(weight) + 1, ROWS), dtype=np.float32)
    bits = values.view(np.int32)
    needed = needed_kernels(program, weight)
    for c in range(first, last):
        for r in range(0, n_rows[c], ROWS):
            n = min(ROWS, n_rows[c] - r)
            column_values(program, needed, columns, c, r, n, values, bits)
            target = out[columns.at[c] + r :]
            for k in range(n):
                target[k] = _ZERO
            for m in range(len(weight)):
                if weight[m] != 0.0:
                    add_into(values[m], np.float32(weight[m]), n, target)


@njit(fastmath={"contract"})
def add_combined(panel: AnyArray, at: IntArray, entries: ColumnEntries, first: int, last: int, field: Array) -> None:
    """field[place_e + r] += value_e panel[at_c + r] for rows first ≤ r < last, all columns c and their entries e."""
    begin, end, place, value = entries
    for r in range(first, last, 4 * ROWS):
        n = min(4 * ROWS, last - r)
        for c in range(len(begin)):
            for e in range(begin[c], end[c]):
                add_into(panel[at[c] + r :], value[e], n, field[place[e] + r :])


@njit()
def take_rows(
    panel: AnyArray, column_at: IntArray, position: IntArray, number: IntArray, own: IntArray, K: AnyArray
) -> None:
    """K[number_c, own_k] = panel[column_at_c + position_k]."""
    for c in range(len(number)):
        source, target = panel[column_at[c] :], K[number[c]]
        for k in range(len(own)):
            target[own[k]] = source[position[k]]


@inner_njit(fastmath={"contract", "reassoc", "nsz"})
def dot_mixed(x: AnyArray, v: Array, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += x[k] * v[k]
    return total


@njit(fastmath={"contract"})
def add_forms(
    program: Program,
    columns: SingleColumns,
    triangle: Triangle,
    entries: ColumnEntries,
    dual: Array,
    first: int,
    last: int,
    G: Array,
) -> None:
    """G[task, m] += 2 value_e Σ_r dual[task, r] k_m(column c, row r) over the rows r of the triangle, first ≤ c < last.

    ``task`` is the place of entry e of column c; the diagonal counts once. The squares and scale of the rows are those
    of the rows of the triangle.
    """
    rows, n_rows, diagonal = triangle
    begin, end, place, value = entries
    n_kernels = G.shape[1]
    values = np.empty((n_kernels + 1, ROWS), dtype=np.float32)
    bits = values.view(np.int32)
    chosen = np.empty((len(columns.panel), len(rows)), dtype=np.float32)
    here = SingleColumns(chosen, np.zeros(len(columns.at), dtype=np.int64), *columns[2:])
    needed = np.ones(n_kernels, dtype=np.int64)
    for c in range(first, last):
        for b in range(len(chosen)):
            source = columns.panel[b, columns.at[c] :]
            for k in range(n_rows[c]):
                chosen[b, k] = source[rows[k]]
        for r in range(0, n_rows[c], ROWS):
            n = min(ROWS, n_rows[c] - r)
            column_values(program, needed, here, c, r, n, values, bits)
            ends = diagonal[c] and r + n == n_rows[c]
            for e in range(begin[c], end[c]):
                mine, v = dual[place[e], r:], value[e]
                for m in range(n_kernels):
                    G[place[e], m] += 2.0 * v * dot_mixed(values[m], mine, n)
                    if ends:
                        G[place[e], m] -= v * mine[n - 1] * values[m, n - 1]
