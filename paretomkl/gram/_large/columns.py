"""Compiled evaluation of a bank of kernels in single precision: one sample against many, a tile at a time.

Twice as many values fit into a vector register and into the cache as in double precision, and the data of the one
sample are read once. If kernels need more digits, :mod:`paretomkl.kernels._evaluation` is used instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._tools.compiled import inner_njit, njit
from ..._tools.typing import AnyArray, Array, IntArray
from ...kernels._evaluation import EXPONENTIAL, VALUE, Program

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


class Columns(NamedTuple):
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


class Room(NamedTuple):
    """A buffer for the values of all kernels at some rows of one column.

    ``values`` has an extra row for intermediates; ``bits`` is an integer view of ``values``.
    """

    values: AnyArray
    bits: AnyArray


def make_room(n_kernels: int) -> Room:
    values = np.empty((n_kernels + 1, ROWS), dtype=np.float32)
    return Room(values, values.view(np.int32))


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
        needed[m] = max(needed[m], weight[m] != 0.0)
        if needed[m] and parent[m] >= 0:
            needed[parent[m]] = 1
    return needed


@inner_njit(fastmath={"contract"})
def exp_into(x: AnyArray, rate: float, n: int, shift: AnyArray, whole: AnyArray, out: AnyArray, bits: AnyArray) -> None:
    """out_k = exp(−rate · x_k) for k < n and x ≥ 0; for the method see ``_kernel_rows.exp_into``.

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
def column_values(program: Program, needed: IntArray, columns: Columns, c: int, r: int, n: int, room: Room) -> None:
    """Write the needed kernels at rows r..r+n-1 of column c to ``room``."""
    order, kind, base, rate, offset, degree, parent, doublings, scaled, norm = program
    panel, at, squares, scale, row_squares, row_scale = columns
    values, bits = room
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
def add_single_columns(
    program: Program,
    columns: Columns,
    begin: int,
    end: int,
    room: Room,
    ptr: IntArray,
    number: IntArray,
    at: IntArray,
    step: Array,
    fields: Array,
) -> None:
    """fields[m, at_e + r] += step_e k_m(column c, row r) for rows begin ≤ r < end and all entries e of all columns c.

    Column c has the entries ptr[number[c]] to ptr[number[c] + 1] - 1.
    """
    values = room.values
    n_kernels = len(fields)
    needed = np.ones(n_kernels, dtype=np.int64)
    for r in range(begin, end, ROWS):  # the fields of these rows stay in the cache while all columns are added
        n = min(ROWS, end - r)
        for c in range(len(number)):
            column_values(program, needed, columns, c, r, n, room)
            for e in range(ptr[number[c]], ptr[number[c] + 1]):
                factor = step[e]
                for m in range(n_kernels):
                    add_into(values[m], factor, n, fields[m, at[e] + r :])


@njit(fastmath={"contract"})
def combine_columns(program: Program, weight: Array, columns: Columns, room: Room, K: Array) -> None:
    """K[c, r] = Σ_m weight_m k_m(column c, row r) for r ≤ c: the flat lower triangle among the same samples."""
    values, n_columns = room.values, len(columns.at)
    needed = needed_kernels(program, weight)
    for r in range(0, n_columns, ROWS):
        for c in range(r, n_columns):
            n = min(ROWS, c + 1 - r)
            column_values(program, needed, columns, c, r, n, room)
            target = K[c * n_columns + r :]
            for k in range(n):
                target[k] = 0.0
            for m in range(len(weight)):
                if weight[m] != 0.0:
                    add_into(values[m], weight[m], n, target)


@njit(fastmath={"contract"})
def combine_into(
    program: Program, weight: Array, columns: Columns, first: int, last: int, n: int, room: Room, out: AnyArray
) -> None:
    """out[at_c + r] = Σ_m weight_m k_m(column c, row r) for columns first ≤ c < last and rows r < n."""
    values = room.values
    needed = needed_kernels(program, weight)
    for c in range(first, last):
        for r in range(0, n, ROWS):
            some = min(ROWS, n - r)
            column_values(program, needed, columns, c, r, some, room)
            target = out[columns.at[c] + r :]
            for k in range(some):
                target[k] = _ZERO
            for m in range(len(weight)):
                if weight[m] != 0.0:
                    add_into(values[m], np.float32(weight[m]), some, target)


@njit(fastmath={"contract"})
def add_combined(
    panel: AnyArray,
    column_at: IntArray,
    begin: int,
    end: int,
    ptr: IntArray,
    number: IntArray,
    at: IntArray,
    step: Array,
    field: Array,
) -> None:
    """field[at_e + r] += step_e panel[column_at_c + r] for rows begin ≤ r < end and all entries e of all columns c.

    Column c has the entries ptr[number[c]] to ptr[number[c] + 1] - 1.
    """
    for r in range(begin, end, 4 * ROWS):
        n = min(4 * ROWS, end - r)
        for c in range(len(number)):
            for e in range(ptr[number[c]], ptr[number[c] + 1]):
                add_into(panel[column_at[c] + r :], step[e], n, field[at[e] + r :])


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
    columns: Columns,
    first: int,
    last: int,
    rows: IntArray,
    n_rows: IntArray,
    diagonal: AnyArray,
    chosen: AnyArray,
    room: Room,
    ptr: IntArray,
    number: IntArray,
    task: IntArray,
    v: Array,
    dual: Array,
    G: Array,
) -> None:
    """G[task_e, m] += 2 v_e Σ_r dual[task_e, r] k_m(column c, row r) over the first n_rows[c] rows, first ≤ c < last.

    ``rows`` are positions in the columns; the squares and scale of the rows are those of the chosen ones. Column c has
    the entries ptr[number[c]] to ptr[number[c] + 1] - 1; if ``diagonal[c]``, its last row is c itself and counts once.
    ``chosen`` (n_bases, n) is a buffer.
    """
    values, n_kernels = room.values, G.shape[1]
    here = Columns(chosen, np.zeros(len(columns.at), dtype=np.int64), *columns[2:])
    needed = np.ones(n_kernels, dtype=np.int64)
    for c in range(first, last):
        for b in range(len(chosen)):
            source = columns.panel[b, columns.at[c] :]
            for k in range(n_rows[c]):
                chosen[b, k] = source[rows[k]]
        for r in range(0, n_rows[c], ROWS):
            n = min(ROWS, n_rows[c] - r)
            column_values(program, needed, here, c, r, n, room)
            ends = diagonal[c] and r + n == n_rows[c]
            for e in range(ptr[number[c]], ptr[number[c] + 1]):
                mine = dual[task[e], r:]
                for m in range(n_kernels):
                    G[task[e], m] += 2.0 * v[e] * dot_mixed(values[m], mine, n)
                    if ends:
                        G[task[e], m] -= v[e] * mine[n - 1] * values[m, n - 1]
