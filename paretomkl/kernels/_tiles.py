"""Compiled evaluation of a bank of kernels, a tile of pairs of samples at a time.

A bank of M kernels is built on a few *bases*: matrices of squared distances, of L1 distances, or of kernel values. The
values of all M kernels for a tile of pairs are computed from the base values, used, and discarded, so M Gram matrices
are never stored. Compiled functions allocate nothing; they work in a :class:`Tile`. They unpack tuples once: to read a
field, compiled code first copies the whole tuple, which is free at run time but slow to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._tools.compiled import inner_njit, njit
from .._tools.typing import Array, IntArray

VALUE, POLYNOMIAL, EXPONENTIAL = 0, 1, 2

_LOG2E = 1.4426950408889634
_LN2 = 0.6931471805599453
_ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to an integer, held in the low bits of the sum
TILE = 256  # pairs at a time: the values of a dozen kernels stay in the first-level cache
_LOWEST = -465.0  # log2 of about 1e-140
_NEGLIGIBLE = 1e-140  # smaller kernel values are set to zero, before squaring makes them denormal and slow


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


class Samples(NamedTuple):
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
    left: Samples
    right: Samples


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


@inner_njit(fastmath={"contract"}, _nrt=True)
def _combine(
    program: Program, theta: Array, pairs: Pairs, first: int, last: int, tile: Tile, out: Array, adding: bool
) -> None:
    """Shared implementation of ``combine_rows`` and ``add_rows``."""
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
def combine_rows(program: Program, theta: Array, pairs: Pairs, first: int, last: int, tile: Tile, out: Array) -> None:
    """out[row_at[i] + column[j]] = Σ_m θ_m K_m(i, j) for the pairs of rows first..last-1; columns have no gaps."""
    _combine(program, theta, pairs, first, last, tile, out, False)


@njit()
def add_rows(program: Program, theta: Array, pairs: Pairs, first: int, last: int, tile: Tile, out: Array) -> None:
    """Like ``combine_rows``, but add to ``out``."""
    _combine(program, theta, pairs, first, last, tile, out, True)


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


class Blocks(NamedTuple):
    """Groups of tasks on shared samples; samples are numbered consecutively over all blocks.

    Block b has the samples first[b] to first[b+1] - 1 and ``tasks[task_ptr[b] : task_ptr[b+1]]``.
    """

    first: IntArray
    tasks: IntArray
    task_ptr: IntArray


class Support(NamedTuple):
    """The samples that support at least one task, numbered in the order of the blocks, and the lists of each task.

    Support vector k is in block[k], whose first one is begin[k]. The support vectors of task t and their signed dual
    variables are the entries of ``number`` and ``value`` from ptr[t] on; rank[rank_at[t] + k] of them come before
    support vector k.
    """

    block: IntArray
    begin: IntArray
    number: IntArray
    value: Array
    rank: IntArray
    rank_at: IntArray


@njit()
def find_support(
    blocks: Blocks, ptr: IntArray, idx: IntArray, v: Array, position: IntArray, sample: IntArray, support: Support
) -> int:
    """Fill the lists for the dual v of the tasks in layout (ptr, idx); return the number of support vectors.

    ``sample`` receives these samples; ``position`` is a buffer with one integer per sample.
    """
    first, tasks, task_ptr = blocks
    block, begin, number, value, rank, rank_at = support
    n = 0
    n_ranks = 0
    for b in range(len(first) - 1):
        for i in range(first[b], first[b + 1]):
            position[i] = -1
        for a in range(task_ptr[b], task_ptr[b + 1]):
            for q in range(ptr[tasks[a]], ptr[tasks[a] + 1]):
                if v[q] != 0.0:
                    position[first[b] + idx[q]] = 0
        begins = n
        for i in range(first[b], first[b + 1]):
            if position[i] == 0:
                position[i] = n
                sample[n], block[n], begin[n] = i, b, begins
                n += 1
        for a in range(task_ptr[b], task_ptr[b + 1]):
            t = tasks[a]
            at = ptr[t]
            rank_at[t] = n_ranks - begins
            for q in range(ptr[t], ptr[t + 1]):
                if v[q] != 0.0:
                    number[at], value[at] = position[first[b] + idx[q]], v[q]
                    while n_ranks - rank_at[t] <= number[at]:
                        rank[n_ranks] = at - ptr[t]
                        n_ranks += 1
                    at += 1
            while n_ranks - rank_at[t] <= n:
                rank[n_ranks] = at - ptr[t]
                n_ranks += 1
    return n


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


@njit()
def quadratic_forms(
    program: Program,
    pairs: Pairs,
    blocks: Blocks,
    ptr: IntArray,
    support: Support,
    first: int,
    last: int,
    tile: Tile,
    forms: Array,
) -> None:
    """Add to forms[t, m] the part of v_t' K_m v_t from pairs (i, j) of support vectors, first ≤ i < last and j ≤ i."""
    _, tasks, task_ptr = blocks
    block, begin, number, value, rank, rank_at = support
    cursor, needed, _, _, _, tile_values, _ = tile
    for m in range(len(needed)):
        needed[m] = 1
    cursor[0], cursor[1] = first, 0
    edge = first
    while cursor[0] < last:
        i, offset = cursor[0], cursor[1]
        if i == edge:  # a tile ends with its block, so that rounding does not depend on other tasks
            while edge < last and block[edge] == block[i]:
                edge += 1
        n = next_tile(program, pairs, edge, tile)
        done = 0
        while done < n:
            j = begin[i] + offset
            length = min(n - done, i + 1 - j)
            on_diagonal = j + length == i + 1
            off = length - 1 if on_diagonal else length  # pairs below the diagonal, which count twice
            for a in range(task_ptr[block[i]], task_ptr[block[i] + 1]):
                t = tasks[a]
                at = rank[rank_at[t] + i]
                if rank[rank_at[t] + i + 1] == at:  # i does not support this task
                    continue
                v = value[ptr[t] + at]
                lo = rank[rank_at[t] + j]
                count = rank[rank_at[t] + j + off] - lo
                coefficients = value[ptr[t] + lo :]
                numbers = number[ptr[t] + lo :]
                for m in range(len(needed)):
                    values = tile_values[m, done:]
                    if count == off:  # every sample of the piece supports the task: no indirection
                        cross = dot(values, coefficients, off)
                    else:
                        cross = dot_at(values, numbers, j, coefficients, count)
                    forms[t, m] += 2.0 * v * cross
                    if on_diagonal:
                        forms[t, m] += v * v * values[off]
            done += length
            i, offset = i + 1, 0
