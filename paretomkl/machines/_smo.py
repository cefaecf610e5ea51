"""Compiled sequential minimal optimisation for many SVM tasks over shared Gram blocks.

A task of n samples with signs y, bounds C and Gram matrix K is, in the signed dual v = y∘α,

    J = max  Σ_i y_i v_i − ½ v'Kv     s.t.  Σ_i v_i = 0,   v_i between 0 and y_i C_i.

With the errors e = y − Kv the gradient is e itself, a pair (i, j) moves along v_i += δ, v_j −= δ, and for every
offset b the duality gap is Σ_i [C_i max(0, u_i) − α_i u_i] with u_i = y_i (e_i − b): a sum of non-negative terms.
"""

from __future__ import annotations

import numpy as np

from .._compiled import njit
from .._typing import Array, IntArray

CHECK_EVERY = 8  # pair steps between two evaluations of the duality gap, which costs about half a step
MOST_NEWTON_STEPS = 50  # in a row
STALLED = 20  # pair steps per sample without a rise of the dual value that end the search
PATIENCE = 5  # pair steps per sample before the free variables are moved together


@njit()
def task_gram(K: Array, start: int, size: int, idx: IntArray) -> Array:
    """The Gram matrix (n, n) of a task that owns rows and columns idx of the block at ``start`` of the flat storage.

    The block itself where the task owns all of it; else a copy, whose rows lie close together in memory.
    """
    n = len(idx)
    if n == size:
        return K[start : start + size * size].reshape((size, size))
    copy = np.empty((n, n))
    for i in range(n):
        row = K[start + idx[i] * size : start + (idx[i] + 1) * size]
        for k in range(n):
            copy[i, k] = row[idx[k]]
    return copy


@njit(fastmath={"contract"})
def compute_errors(K: Array, y: Array, v: Array, e: Array) -> None:
    """e = y − Kv, reading only the rows of support vectors."""
    n = len(y)
    for k in range(n):
        e[k] = y[k]
    for i in range(n):
        if v[i] != 0.0:
            row = K[i]
            weight = v[i]
            for k in range(n):
                e[k] -= weight * row[k]


@njit()
def duality_gap(e: Array, y: Array, C: Array, v: Array, b: float) -> float:
    gap = 0.0
    for k in range(len(e)):
        u = y[k] * (e[k] - b)
        gap += C[k] * max(0.0, u) - y[k] * v[k] * u
    return gap


@njit()
def dual_value(e: Array, y: Array, v: Array) -> float:
    """Σ y v − ½ v'Kv, with Kv = y − e."""
    value = 0.0
    for k in range(len(e)):
        value += v[k] * (y[k] + e[k])
    return 0.5 * value


@njit()
def move_free_variables(K: Array, y: Array, low: Array, high: Array, v: Array, e: Array) -> None:
    """Newton steps on the variables strictly inside the box, the others held, until one step stays inside.

    Pair steps crawl where the Gram matrix of the free variables is nearly singular (large C, few features). The
    Newton direction solves [K_FF + εI, 1; 1', 0] [d; b] = [e_F; 0] and is followed to the best point inside the box, so
    that each step either ends on the optimum of the face or puts one more variable on its bound. v and e are updated.
    """
    n = len(y)
    for _ in range(min(n, MOST_NEWTON_STEPS)):
        free = np.nonzero((v > low) & (v < high))[0]
        f = len(free)
        if f < 2:
            return
        A = np.zeros((f + 1, f + 1))
        rhs = np.zeros(f + 1)
        trace = 0.0
        for a in range(f):
            row = K[free[a]]
            for c in range(f):
                A[a, c] = row[free[c]]
            trace += A[a, a]
            rhs[a] = e[free[a]]
        if not trace > 0.0:
            return
        for a in range(f):
            A[a, a] += 1e-13 * trace
            A[a, f] = trace / f  # the row of ones, in units of the others
            A[f, a] = trace / f
        d = np.linalg.solve(A, rhs)[:f]
        for _ in range(2):  # the step must sum to zero to the last digit, or the dual would leave its plane
            mean = 0.0
            for a in range(f):
                mean += d[a] / f
            for a in range(f):
                d[a] -= mean
        slope = 0.0
        curvature = 0.0
        length = np.inf
        for a in range(f):
            k = free[a]
            slope += rhs[a] * d[a]
            Kd = -1e-13 * trace * d[a]
            for c in range(f):
                Kd += A[a, c] * d[c]
            curvature += d[a] * Kd
            if d[a] > 0.0:
                length = min(length, (high[k] - v[k]) / d[a])
            elif d[a] < 0.0:
                length = min(length, (low[k] - v[k]) / d[a])
        if not slope > 0.0:
            return
        to_box = length
        if curvature > 0.0:
            length = min(length, slope / curvature)
        if not np.isfinite(length):
            return
        excess = 0.0
        for a in range(f):
            k = free[a]
            moved = min(max(v[k] + length * d[a], low[k]), high[k])
            if length == to_box:  # the variable that stops the step lands on its bound exactly
                if d[a] > 0.0 and (high[k] - v[k]) / d[a] == to_box:
                    moved = high[k]
                elif d[a] < 0.0 and (low[k] - v[k]) / d[a] == to_box:
                    moved = low[k]
            excess += moved - v[k]
            v[k] = moved
        for a in range(f):  # what rounding and the box left over goes to a variable that has room for it
            k = free[a]
            if low[k] < v[k] - excess and v[k] - excess < high[k]:
                v[k] -= excess
                break
        compute_errors(K, y, v, e)
        if length < to_box:
            return


# The three loops of a pair step have no branches, so that they run as vector instructions; no value in them is NaN.
@njit(fastmath={"contract", "reassoc", "nsz", "nnan"})
def find_largest(x: Array) -> tuple[int, float]:
    """Position and value of the largest entry."""
    top = x[0]
    for k in range(len(x)):
        top = max(top, x[k])
    for k in range(len(x)):
        if x[k] == top:
            return k, top
    return 0, top


@njit(fastmath={"contract", "reassoc", "nsz", "nnan"})
def most_violating(e: Array, v: Array, low: Array, high: Array, score: Array) -> tuple[int, float, float]:
    """The sample of largest error among those that can rise, its error, and the least error of those that can fall."""
    e_down = np.inf
    for k in range(len(e)):
        score[k] = e[k] if v[k] < high[k] else -np.inf
        e_down = min(e_down, e[k] if v[k] > low[k] else np.inf)
    i, e_up = find_largest(score)
    return (i, e_up, e_down) if e_up > -np.inf else (-1, e_up, e_down)


@njit(fastmath={"contract", "reassoc", "nsz", "nnan"})
def best_partner(
    row: Array,
    diagonal: Array,
    diagonal_i: float,
    e: Array,
    e_up: float,
    v: Array,
    low: Array,
    flat: float,
    score: Array,
) -> int:
    """Among the samples that can fall and err less than e_up, the one of largest gain slope² / curvature; -1: none."""
    for k in range(len(row)):
        slope = max(e_up - e[k], 0.0) if v[k] > low[k] else 0.0
        score[k] = slope * slope / max(diagonal_i + diagonal[k] - 2.0 * row[k], flat)
    j, gain = find_largest(score)
    return j if gain > 0.0 else -1


@njit(fastmath={"contract"})
def update_errors(row_i: Array, row_j: Array, delta: float, e: Array) -> None:
    for k in range(len(e)):
        e[k] -= delta * (row_i[k] - row_j[k])


@njit()
def solve_task(
    K: Array, y: Array, C: Array, v: Array, e: Array, rtol: float, max_iter: int
) -> tuple[float, float, float, int]:
    """Improve v in place until gap ≤ rtol · J; return (dual value, duality gap, offset b, pair steps).

    ``e`` receives the errors y − Kv. Working sets are chosen by second-order gain (Fan, Chen, Lin 2005).
    """
    n = len(y)
    diagonal = np.empty(n)
    score = np.empty(n)
    low = np.empty(n)
    high = np.empty(n)
    top = 0.0
    room = 0.0
    for k in range(n):
        diagonal[k] = K[k, k]
        top = max(top, diagonal[k])
        low[k] = min(0.0, y[k] * C[k])
        high[k] = max(0.0, y[k] * C[k])
        room += C[k]
        v[k] = min(max(v[k], low[k]), high[k])
    flat = 1e-14 * top + 1e-300  # curvature of a pair of equal samples: its step goes to the box

    compute_errors(K, y, v, e)
    i, e_up, e_down = most_violating(e, v, low, high, score)
    drift = 0.0  # bound of the rounding in e since it was last computed from scratch
    steps = 0
    next_newton = PATIENCE * n
    next_look = STALLED * (n + 100)  # when to see whether the dual value still rises
    value_then = -np.inf
    b = 0.0
    while True:
        violation = e_up - e_down
        if steps % CHECK_EVERY == 0 or violation <= 1e-12 * (1.0 + abs(e_up)) or steps >= max_iter:
            if i < 0 or e_down == np.inf:
                b = e_down if i < 0 else e_up  # all at one bound: any offset beyond it is optimal
                if not np.isfinite(b):
                    b = 0.0
            else:
                b = 0.5 * (e_up + e_down)
            gap = duality_gap(e, y, C, v, b)
            value = dual_value(e, y, v)
            exhausted = violation <= 1e-15 * (1.0 + abs(e_up)) or steps >= max_iter
            if steps >= next_look:
                exhausted = exhausted or value - value_then <= 1e-14 * value
                value_then = value
                next_look = steps + STALLED * (n + 100)
            if gap <= rtol * value or exhausted:
                if drift * room <= 0.01 * rtol * value:
                    return value, gap, b, steps
                # rounding may have crept into e: what is reported must hold for v itself
                compute_errors(K, y, v, e)
                drift = 0.0
                if exhausted:
                    return dual_value(e, y, v), duality_gap(e, y, C, v, b), b, steps
                i, e_up, e_down = most_violating(e, v, low, high, score)
                continue
        if steps >= next_newton:
            move_free_variables(K, y, low, high, v, e)
            i, e_up, e_down = most_violating(e, v, low, high, score)
            drift = 0.0
            next_newton = steps + PATIENCE * n
            steps += 1
            continue
        # i can rise and violates most; its partner j can fall and promises the largest gain
        row_i = K[i]
        j = best_partner(row_i, diagonal, diagonal[i], e, e_up, v, low, flat, score)
        if j < 0:
            return dual_value(e, y, v), duality_gap(e, y, C, v, b), b, steps
        room_i = high[i] - v[i]
        room_j = v[j] - low[j]
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], flat)
        delta = min((e_up - e[j]) / curvature, room_i, room_j)
        v[i] = high[i] if delta == room_i else v[i] + delta
        v[j] = low[j] if delta == room_j else v[j] - delta
        drift += 2e-16 * (delta * top + 1.0)
        update_errors(row_i, K[j], delta, e)
        i, e_up, e_down = most_violating(e, v, low, high, score)
        steps += 1


@njit()
def solve_tasks(
    first: int,
    last: int,
    K: Array,
    block_start: IntArray,
    block_size: IntArray,
    ptr: IntArray,
    idx: IntArray,
    y: Array,
    C: Array,
    v: Array,
    rtol: float,
    max_iter: int,
    value: Array,
    gap: Array,
    offset: Array,
    steps: IntArray,
) -> None:
    """Solve tasks first..last-1 at the Gram blocks of K, each warm from its part of v (in place).

    ``ptr`` (n_tasks + 1,) delimits the tasks in the flat arrays idx, y, C, v; the results go to value, gap, offset
    and steps of shape (n_tasks,).
    """
    for t in range(first, last):
        part = slice(ptr[t], ptr[t + 1])
        e = np.empty(ptr[t + 1] - ptr[t])
        task_K = task_gram(K, block_start[t], block_size[t], idx[part])
        value[t], gap[t], offset[t], steps[t] = solve_task(task_K, y[part], C[part], v[part], e, rtol, max_iter)
