"""Compiled evaluation of a bank of kernels, one row at a time.

A bank of M kernels is built on few *bases*: matrices of squared distances, of L1 distances, or of kernel values as they
are. A row of all M kernels is made from one row of each base, used, and forgotten: M Gram matrices are never held.

A *panel* is a flat array that holds, base by base, some rows of the base matrices: entry (b, r, c) stands at
``(b * n_rows + r) * n_cols + c``.
"""

from __future__ import annotations

import numpy as np

from ._compiled import njit
from ._typing import Array, IntArray

VALUE, LINEAR, POLYNOMIAL, EXPONENTIAL = 0, 1, 2, 3

_LOG2E = 1.4426950408889634
_LN2 = 0.6931471805599453
_ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to an integer, held in the low bits of the sum
TILE = 256  # pairs at a time: the values of a dozen kernels stay in the first-level cache
_LOWEST = -465.0  # log2 of about 1e-140
_NEGLIGIBLE = 1e-140  # below it a kernel value is set to zero, before squaring makes it denormal and slow


# Contraction only: reassociation would cancel the rounding constant of exp_into.
@njit(fastmath={"contract"})
def exp_into(x: Array, rate: float, n: int, shift: Array, out: Array) -> None:
    """out_k = exp(−rate · x_k) for k < n and x ≥ 0, in a form that compilers turn into vector instructions.

    −rate · x · log2(e) = integer + f with |f| ≤ ½; 2^f is a polynomial and the integer goes to the exponent bits.
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
    bits = out.view(np.int64)
    exponent = shift.view(np.int64)
    for k in range(n):
        bits[k] += exponent[k] << 52


@njit(fastmath={"contract"})
def square_into(source: Array, doublings: int, n: int, out: Array) -> None:
    """out_k = source_k^(2^doublings) for k < n, up to four squarings to a pass over memory."""
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


@njit(fastmath={"contract"})
def fill_tile(
    program: tuple,
    needed: IntArray,
    base_tile: Array,
    n: int,
    rows: IntArray,
    columns: IntArray,
    left_squares: Array,
    right_squares: Array,
    left_scale: Array,
    right_scale: Array,
    shift: Array,
    inner: Array,
    V: Array,
) -> None:
    """V[m, k] = K_m(left sample rows[k], right sample columns[k]) for pairs k < n, for the needed kernels m.

    ``base_tile`` (n_bases, ≥ n) holds the base values of the pairs; ``squares`` (n_bases, n_samples) are the squared
    norms that turn a squared distance into an inner product; ``scale`` (n_kernels, n_samples) the normalisation.
    """
    order, kind, base, gamma, coef0, degree, parent, doublings, scaled, _ = program
    inner_of = -1  # the base whose inner products are in ``inner``
    for m in order:
        if needed[m] == 0:
            continue
        row = V[m]
        values = base_tile[base[m]]
        if kind[m] == EXPONENTIAL:
            if parent[m] < 0:
                exp_into(values, gamma[m], n, shift, row)
            else:
                # exp(−2γd) = exp(−γd)²; chains are kept short, for each squaring doubles the relative error
                square_into(V[parent[m]], doublings[m], n, row)
            continue
        if kind[m] == VALUE:
            for k in range(n):
                row[k] = values[k]
        else:
            if inner_of != base[m]:
                inner_of = base[m]
                of_left = left_squares[inner_of]
                of_right = right_squares[inner_of]
                for k in range(n):
                    inner[k] = 0.5 * (of_left[rows[k]] + of_right[columns[k]] - values[k])
            if kind[m] == LINEAR:
                for k in range(n):
                    row[k] = inner[k]
            else:
                slope = gamma[m]
                offset = coef0[m]
                for k in range(n):
                    row[k] = slope * inner[k] + offset
                for _ in range(degree[m] - 1):
                    for k in range(n):
                        row[k] *= slope * inner[k] + offset
        if scaled[m]:
            scale_left = left_scale[m]
            scale_right = right_scale[m]
            for k in range(n):
                row[k] *= scale_left[rows[k]] * scale_right[columns[k]]


@njit()
def needed_kernels(wanted: IntArray, order: IntArray, parent: IntArray) -> IntArray:
    """The wanted kernels and those whose rows they are squared from."""
    needed = wanted.copy()
    for m in order[::-1]:
        if needed[m] and parent[m] >= 0:
            needed[parent[m]] = 1
    return needed


@njit(fastmath={"contract"})
def combine_rows(
    program: tuple,
    theta: Array,
    panel: Array,
    panel_first: int,
    panel_rows: int,
    first: int,
    last: int,
    triangle: bool,
    left: tuple,
    right: tuple,
    out: Array,
    out_at: int,
) -> None:
    """out[i, k] = Σ_m θ_m K_m(i, k) for rows first..last-1; with ``triangle`` only k ≤ i.

    The panel holds the rows from ``panel_first`` on, ``panel_rows`` of them; out is flat, row-major, and starts at
    ``out_at``. left and right are (sample indices, squares, scale).
    """
    parent, n_bases = program[6], program[9]
    left_index, left_squares, left_scale = left
    right_index, right_squares, right_scale = right
    n_kernels = len(parent)
    n_cols = len(right_index)
    wanted = np.zeros(n_kernels, np.int64)
    active = np.zeros(n_kernels + 3, np.int64)  # kernels of positive weight, padded with a repeated one of weight zero
    weights = np.zeros(n_kernels + 3)
    n_active = 0
    for m in range(n_kernels):
        wanted[m] = theta[m] != 0.0
        if wanted[m]:
            active[n_active] = m
            weights[n_active] = theta[m]
            n_active += 1
    for q in range(n_active, n_kernels + 3):
        active[q] = active[0]
    needed = needed_kernels(wanted, program[0], parent)
    V = np.empty((n_kernels, TILE))
    shift = np.empty(TILE)
    inner = np.empty(TILE)
    base_tile = np.empty((n_bases, TILE))
    rows = np.empty(TILE, np.int64)
    columns = np.empty(TILE, np.int64)
    sums = np.empty(TILE)
    # A tile is filled with pieces of rows, several short ones or a part of a long one.
    begin_row = first
    begin = 0
    i = first
    j = 0
    while i < last:
        n = 0
        while i < last and n < TILE:
            end = i + 1 if triangle else n_cols
            length = min(TILE - n, end - j)
            for b in range(n_bases):
                source = panel[(b * panel_rows + i - panel_first) * n_cols + j :]
                tile = base_tile[b]
                for k in range(length):
                    tile[n + k] = source[k]
            for k in range(length):
                rows[n + k] = left_index[i]
                columns[n + k] = right_index[j + k]
            n += length
            j += length
            if j == end:
                i += 1
                j = 0
        fill_tile(
            program,
            needed,
            base_tile,
            n,
            rows,
            columns,
            left_squares,
            right_squares,
            left_scale,
            right_scale,
            shift,
            inner,
            V,
        )
        for k in range(n):
            sums[k] = 0.0
        for q in range(0, n_active, 4):  # four kernels to a pass over the sums
            w0, w1, w2, w3 = weights[q], weights[q + 1], weights[q + 2], weights[q + 3]
            v0, v1, v2, v3 = V[active[q]], V[active[q + 1]], V[active[q + 2]], V[active[q + 3]]
            for k in range(n):
                sums[k] += w0 * v0[k] + w1 * v1[k] + w2 * v2[k] + w3 * v3[k]
        done = 0
        while done < n:  # back to where the pieces came from
            end = begin_row + 1 if triangle else n_cols
            length = min(n - done, end - begin)
            row = out[out_at + begin_row * n_cols + begin :]
            for k in range(length):
                row[k] = sums[done + k]
            done += length
            begin += length
            if begin == end:
                begin_row += 1
                begin = 0


@njit()
def mirror(K: Array, at: int, n: int) -> None:
    """Copy the lower triangle of the (n, n) matrix at ``at`` to the upper one, tile by tile."""
    tile = 32
    for i0 in range(0, n, tile):
        for j0 in range(0, i0 + 1, tile):
            for i in range(i0, min(i0 + tile, n)):
                for j in range(j0, min(j0 + tile, i)):
                    K[at + j * n + i] = K[at + i * n + j]


@njit()
def support_of_block(tasks: IntArray, ptr: IntArray, idx: IntArray, v: Array, n: int) -> tuple[IntArray, Array]:
    """The samples of a block that are support vectors of some of its tasks, and their coefficients task by task.

    Returns the block's sample positions (n_support,), rising, and a table (n_tasks of the block, n_support).
    """
    position = np.full(n, -1, np.int64)
    for t in tasks:
        for q in range(ptr[t], ptr[t + 1]):
            if v[q] != 0.0:
                position[idx[q]] = 0
    support = np.nonzero(position == 0)[0]
    for k in range(len(support)):
        position[support[k]] = k
    table = np.zeros((len(tasks), len(support)))
    for a in range(len(tasks)):
        for q in range(ptr[tasks[a]], ptr[tasks[a] + 1]):
            if v[q] != 0.0:
                table[a, position[idx[q]]] = v[q]
    return support, table


@njit(fastmath={"contract", "reassoc", "nsz"})
def dot_at(values: Array, positions: IntArray, offset: int, coefficients: Array, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += coefficients[k] * values[positions[k] - offset]
    return total


@njit(fastmath={"contract", "reassoc", "nsz"})
def dot(values: Array, coefficients: Array, n: int) -> float:
    """Σ over k < n, in the order that suits vector instructions."""
    total = 0.0
    for k in range(n):
        total += coefficients[k] * values[k]
    return total


@njit()
def quadratic_forms(
    program: tuple,
    panel: Array,
    panel_row: IntArray,
    panel_column: IntArray,
    panel_rows: int,
    panel_columns: int,
    first: int,
    last: int,
    side: tuple,
    support: IntArray,
    table: Array,
) -> Array:
    """G[t, m], the part of v_t' K_m v_t that pairs support vectors first..last-1 with those up to them.

    Support vector k of the block is row ``panel_row[k]`` and column ``panel_column[k]`` of the panel; ``table``
    (n_tasks of the block, n_support) holds the signed dual variables.
    """
    n_kernels, n_bases = len(program[0]), program[9]
    index, squares, scale = side
    n_support = len(support)
    n_tasks = len(table)
    G = np.zeros((n_tasks, n_kernels))
    needed = np.ones(n_kernels, np.int64)
    V = np.empty((n_kernels, TILE))
    shift = np.empty(TILE)
    inner = np.empty(TILE)
    base_tile = np.empty((n_bases, TILE))
    rows = np.empty(TILE, np.int64)
    columns = np.empty(TILE, np.int64)
    # the support vectors of each task, rising
    counts = np.zeros(n_tasks, np.int64)
    positions = np.empty((n_tasks, n_support), np.int64)
    coefficients = np.empty((n_tasks, n_support))
    for a in range(n_tasks):
        for k in range(n_support):
            if table[a, k] != 0.0:
                positions[a, counts[a]] = k
                coefficients[a, counts[a]] = table[a, k]
                counts[a] += 1
    i = first
    j = 0
    while i < last:
        begin_row = i
        begin = j
        n = 0
        while i < last and n < TILE:  # pieces of rows up to the diagonal, as in combine_rows
            length = min(TILE - n, i + 1 - j)
            for b in range(n_bases):
                row_at = (b * panel_rows + panel_row[i]) * panel_columns
                tile = base_tile[b]
                for k in range(length):
                    tile[n + k] = panel[row_at + panel_column[j + k]]
            for k in range(length):
                rows[n + k] = index[support[i]]
                columns[n + k] = index[support[j + k]]
            n += length
            j += length
            if j == i + 1:
                i += 1
                j = 0
        fill_tile(program, needed, base_tile, n, rows, columns, squares, squares, scale, scale, shift, inner, V)
        done = 0
        while done < n:
            length = min(n - done, begin_row + 1 - begin)
            on_diagonal = begin + length == begin_row + 1
            off = length - 1 if on_diagonal else length  # pairs below the diagonal, which count twice
            for a in range(n_tasks):
                v = table[a, begin_row]
                if v == 0.0:
                    continue
                place = positions[a, : counts[a]]
                lo = int(np.searchsorted(place, begin))
                hi = int(np.searchsorted(place, begin + off))
                for m in range(n_kernels):
                    values = V[m, done : done + length]
                    if hi - lo == off:  # every sample of the piece supports the task: no indirection
                        cross = dot(values, coefficients[a, lo:hi], off)
                    else:
                        cross = dot_at(values, place[lo:hi], begin, coefficients[a, lo:hi], hi - lo)
                    G[a, m] += 2.0 * v * cross
                    if on_diagonal:
                        G[a, m] += v * v * values[off]
            done += length
            begin += length
            if begin == begin_row + 1:
                begin_row += 1
                begin = 0
    return G
