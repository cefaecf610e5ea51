"""Compiled sequential minimal optimisation for many SVM tasks over shared Gram blocks.

A task of n samples with signs y, bounds C and Gram matrix K is, in the signed dual v = y∘α,

    J = max  Σ_i y_i v_i − ½ v'Kv     s.t.  Σ_i v_i = 0,   v_i between 0 and y_i C_i.

With the errors e = y − Kv the gradient is e itself, a pair (i, j) moves along v_i += δ, v_j −= δ, and for every
offset b the duality gap is Σ_i [C_i max(0, u_i) − α_i u_i] with u_i = y_i (e_i − b): a sum of non-negative terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._compiled import inner_njit, njit
from .._kernel_rows import dot, dot_at
from .._parallel import run_chunks
from .._typing import Array, IntArray

if TYPE_CHECKING:
    from ..gram import TaskLayout

MAX_STEPS = 10_000_000  # pair steps of one task; reached only when the tolerance is below what rounding allows
CHECK_EVERY = 8  # pair steps between two evaluations of the duality gap, which costs about half a step
PATIENCE = 5  # pair steps per sample before the free variables are moved together
MOST_NEWTON_STEPS = 50  # in a row
STALLED = 20  # pair steps per sample without a rise of the dual value that end the search


@inner_njit(_nrt=True)
def copy_gram(K: Array, start: int, size: int, idx: IntArray, copy: Array) -> None:
    """Copy rows and columns idx of the block at ``start``: there they lie close together in memory."""
    n = len(idx)
    for i in range(n):
        source = K[start + idx[i] * size :]
        target = copy[i * n :]
        for k in range(n):
            target[k] = source[idx[k]]


@inner_njit(fastmath={"contract"}, _nrt=True)
def compute_errors(K: Array, at: int, y: Array, v: Array, e: Array) -> None:
    """e = y − Kv for the matrix at ``at`` of the flat K, reading only the rows of support vectors."""
    n = len(y)
    for k in range(n):
        e[k] = y[k]
    for i in range(n):
        if v[i] != 0.0:
            row = K[at + i * n :]
            weight = v[i]
            for k in range(n):
                e[k] -= weight * row[k]


@inner_njit()
def value_and_gap(e: Array, y: Array, C: Array, v: Array, b: float) -> tuple[float, float]:
    """The dual value Σ y v − ½ v'Kv, with Kv = y − e, and the duality gap for the offset b."""
    value = 0.0
    gap = 0.0
    for k in range(len(e)):
        u = y[k] * (e[k] - b)
        value += v[k] * (y[k] + e[k])
        gap += C[k] * max(0.0, u) - y[k] * v[k] * u
    return 0.5 * value, gap


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


@inner_njit(fastmath={"contract", "reassoc", "nsz", "nnan"})
def most_violating(e: Array, v: Array, low: Array, high: Array, score: Array) -> tuple[int, float, float]:
    """The sample of largest error among those that can rise, its error, and the least error of those that can fall."""
    e_down = np.inf
    for k in range(len(e)):
        score[k] = e[k] if v[k] < high[k] else -np.inf
        e_down = min(e_down, e[k] if v[k] > low[k] else np.inf)
    i, e_up = find_largest(score)
    return (i, e_up, e_down) if e_up > -np.inf else (-1, e_up, e_down)


@inner_njit(fastmath={"contract", "reassoc", "nsz", "nnan"})
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
    for k in range(len(e)):
        slope = max(e_up - e[k], 0.0) if v[k] > low[k] else 0.0
        score[k] = slope * slope / max(diagonal_i + diagonal[k] - 2.0 * row[k], flat)
    j, gain = find_largest(score)
    return j if gain > 0.0 else -1


@inner_njit(fastmath={"contract"})
def update_errors(row_i: Array, row_j: Array, delta: float, e: Array) -> None:
    for k in range(len(e)):
        e[k] -= delta * (row_i[k] - row_j[k])


@inner_njit(_nrt=True)
def solve_task(
    K: Array, at: int, y: Array, C: Array, v: Array, rtol: float, max_steps: int
) -> tuple[float, float, float, int]:
    """Improve v in place until gap ≤ rtol · J; return (dual value, duality gap, offset b, pair steps).

    The Gram matrix (n, n) begins at ``at`` of the flat K. Working sets are chosen by second-order gain (Fan, Chen, Lin
    2005).
    """
    n = len(y)
    e = np.empty(n)
    diagonal = np.empty(n)
    score = np.empty(n)
    low = np.empty(n)
    high = np.empty(n)
    top = 0.0
    room = 0.0
    for k in range(n):
        diagonal[k] = K[at + k * n + k]
        top = max(top, diagonal[k])
        low[k] = min(0.0, y[k] * C[k])
        high[k] = max(0.0, y[k] * C[k])
        room += C[k]
        v[k] = min(max(v[k], low[k]), high[k])
    flat = 1e-14 * top + 1e-300  # curvature of a pair of equal samples: its step goes to the box

    compute_errors(K, at, y, v, e)
    i, e_up, e_down = most_violating(e, v, low, high, score)
    drift = 0.0  # bound of the rounding in e since it was last computed from scratch
    steps = 0
    b = 0.0
    while True:
        violation = e_up - e_down
        if steps % CHECK_EVERY == 0 or violation <= 1e-12 * (1.0 + abs(e_up)) or steps >= max_steps:
            if i < 0 or e_down == np.inf:
                b = e_down if i < 0 else e_up  # all at one bound: any offset beyond it is optimal
                if not abs(b) < np.inf:
                    b = 0.0
            else:
                b = 0.5 * (e_up + e_down)
            value, gap = value_and_gap(e, y, C, v, b)
            exhausted = violation <= 1e-15 * (1.0 + abs(e_up)) or steps >= max_steps
            if gap <= rtol * value or exhausted:
                if drift * room <= 0.01 * rtol * value:
                    return value, gap, b, steps
                # rounding may have crept into e: what is reported must hold for v itself
                compute_errors(K, at, y, v, e)
                drift = 0.0
                if exhausted:
                    value, gap = value_and_gap(e, y, C, v, b)
                    return value, gap, b, steps
                i, e_up, e_down = most_violating(e, v, low, high, score)
                continue
        # i can rise and violates most; its partner j can fall and promises the largest gain
        row_i = K[at + i * n :]
        j = best_partner(row_i, diagonal, diagonal[i], e, e_up, v, low, flat, score)
        if j < 0:
            value, gap = value_and_gap(e, y, C, v, b)
            return value, gap, b, steps
        room_i = high[i] - v[i]
        room_j = v[j] - low[j]
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], flat)
        delta = min((e_up - e[j]) / curvature, room_i, room_j)
        v[i] = high[i] if delta == room_i else v[i] + delta
        v[j] = low[j] if delta == room_j else v[j] - delta
        drift += 2e-16 * (delta * top + 1.0)
        update_errors(row_i, K[at + j * n :], delta, e)
        i, e_up, e_down = most_violating(e, v, low, high, score)
        steps += 1


class Solved(NamedTuple):
    """Dual value, duality gap, intercept and pair steps of each task, arrays of shape (n_tasks,)."""

    value: Array
    gap: Array
    intercept: Array
    steps: IntArray


@njit()
def solve_range(
    first: int, last: int, K: Array, layout: TaskLayout, y: Array, C: Array, v: Array, rtol: float, solved: Solved
) -> int:
    """Pair steps on tasks first..last-1, each warm from its part of v (in place), up to PATIENCE for each sample.

    Returns how many tasks need more.
    """
    n_unsolved = 0
    ptr, idx, start, size = layout
    value, gap, intercept, steps = solved
    for t in range(first, last):
        begin = ptr[t]
        end = ptr[t + 1]
        n = end - begin
        gram = K
        at = start[t]
        if n < size[t]:
            gram = np.empty(n * n)
            at = 0
            copy_gram(K, start[t], size[t], idx[begin:end], gram)
        value[t], gap[t], intercept[t], steps[t] = solve_task(
            gram, at, y[begin:end], C[begin:end], v[begin:end], rtol, PATIENCE * n
        )
        n_unsolved += steps[t] >= PATIENCE * n and gap[t] > rtol * value[t]
    return n_unsolved


def solve_tasks(K: Array, layout: TaskLayout, y: Array, C: Array, v: Array, rtol: float, n_jobs: int = 1) -> Solved:
    """Solve all tasks of a layout to a relative duality gap of rtol, each warm from its part of v (in place).

    K is the flat storage of the layout; y, C and v are flat over the samples of all tasks.
    """
    n_tasks = len(layout.size)
    value, gap, intercept = np.empty((3, n_tasks))
    solved = Solved(value, gap, intercept, np.empty(n_tasks, dtype=np.int64))
    problem = (K, layout, y, C, v, rtol, solved)

    def work(first: int, last: int) -> None:
        if solve_range(first, last, *problem):
            for t in range(first, last):
                finish_task(t, *problem)

    run_chunks(work, [(0, n_tasks)] if n_jobs == 1 else [(t, t + 1) for t in range(n_tasks)], n_jobs)
    return solved


def finish_task(
    t: int, K: Array, layout: TaskLayout, y: Array, C: Array, v: Array, rtol: float, solved: Solved
) -> None:
    """Move the free variables and take pair steps in turn, until they solve the task or no longer raise its value.

    A task that was solved without is left as it is.
    """
    mine = slice(layout.ptr[t], layout.ptr[t + 1])
    n = len(y[mine])
    steps, patience = int(solved.steps[t]), PATIENCE * n
    value_then = -np.inf
    next_look = STALLED * (n + 100)
    while solved.steps[t] >= patience and solved.gap[t] > rtol * solved.value[t] and steps < MAX_STEPS:
        if steps >= next_look:
            if solved.value[t] - value_then <= 1e-14 * solved.value[t]:
                break
            value_then, next_look = solved.value[t], steps + STALLED * (n + 100)
        move_free_variables(K, layout.start[t], layout.size[t], layout.idx[mine], y[mine], C[mine], v[mine])
        solve_range(t, t + 1, K, layout, y, C, v, rtol, solved)
        steps += int(solved.steps[t])
    solved.steps[t] = steps


@njit()
def move_free_variables(K: Array, start: int, size: int, idx: IntArray, y: Array, C: Array, v: Array) -> None:
    """Newton steps on the variables strictly inside the box, the others held, until one step stays inside.

    Pair steps crawl where the Gram matrix of the free variables is nearly singular (large C, few features). The
    Newton direction solves [K_FF + εI, 1; 1', 0] [d; b] = [e_F; 0] and is followed to the best point inside the box, so
    that each step either ends on the optimum of the face or puts one more variable on its bound. The arguments are
    those of one task; v is updated.
    """
    n = len(y)
    free = np.empty(n, np.int64)
    low = np.empty(n)
    high = np.empty(n)
    for k in range(n):
        low[k] = min(0.0, y[k] * C[k])
        high[k] = max(0.0, y[k] * C[k])
    for _ in range(min(n, MOST_NEWTON_STEPS)):
        f = 0
        trace = 0.0
        for k in range(n):
            if low[k] < v[k] and v[k] < high[k]:
                free[f] = k
                f += 1
                trace += K[start + idx[k] * (size + 1)]
        if f < 2 or not trace > 0.0:
            return
        A = np.empty(f * f)
        e = np.empty(f)
        d = np.empty(f)
        for a in range(f):
            row = K[start + idx[free[a]] * size :]
            e[a] = y[free[a]] - dot_at(row, idx, 0, v, n)
            for c in range(f):
                A[a * f + c] = row[idx[free[c]]]
        newton_direction(A, 1e-13 * trace, e, d)
        slope = 0.0
        curvature = 0.0
        length = np.inf
        for a in range(f):
            k = free[a]
            slope += e[a] * d[a]
            of_others = dot(d[a + 1 :], A[a * f + a + 1 :], f - a - 1)
            curvature += d[a] * (K[start + idx[k] * (size + 1)] * d[a] + 2.0 * of_others)
            if d[a] > 0.0:
                length = min(length, (high[k] - v[k]) / d[a])
            elif d[a] < 0.0:
                length = min(length, (low[k] - v[k]) / d[a])
        if not slope > 0.0:
            return
        to_box = length
        if curvature > 0.0:
            length = min(length, slope / curvature)
        if not length < np.inf:
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
        if length < to_box:
            return


@njit(fastmath={"contract"})
def newton_direction(A: Array, ridge: float, e: Array, d: Array) -> None:
    """d with Σ d = 0 and (A + ridge I) d + b 1 = e for some b; A (f, f) is flat, and its lower triangle is overwritten.

    With the Cholesky factor of A + ridge I, d = x − b u where x and u solve for e and for 1. A pivot that rounding has
    taken is replaced by the ridge.
    """
    f = len(e)
    u = np.empty(f)
    for i in range(f):
        row = A[i * f :]
        for j in range(i):
            row[j] = (row[j] - dot(row, A[j * f :], j)) / A[j * f + j]
        row[i] = np.sqrt(max(row[i] + ridge - dot(row, row, i), ridge))
        d[i] = (e[i] - dot(row, d, i)) / row[i]
        u[i] = (1.0 - dot(row, u, i)) / row[i]
    sum_d = 0.0
    sum_u = 0.0
    for i in range(f - 1, -1, -1):
        row = A[i * f :]
        d[i] /= row[i]
        u[i] /= row[i]
        sum_d += d[i]
        sum_u += u[i]
        for j in range(i):
            d[j] -= d[i] * row[j]
            u[j] -= u[i] * row[j]
    b = sum_d / sum_u
    for i in range(f):
        d[i] -= b * u[i]
    for _ in range(2):  # the step must sum to zero to the last digit, or the dual would leave its plane
        mean = 0.0
        for i in range(f):
            mean += d[i] / f
        for i in range(f):
            d[i] -= mean


@njit()
def errors_of_tasks(K: Array, layout: TaskLayout, y: Array, v: Array, e: Array) -> None:
    """e = y − Kv of every task; K, y and v are those of :func:`solve_tasks`."""
    ptr, idx, start, size = layout
    for k in range(len(y)):
        e[k] = y[k]
    for t in range(len(size)):
        for i in range(ptr[t], ptr[t + 1]):
            if v[i] != 0.0:
                row = K[start[t] + idx[i] * size[t] :]
                for k in range(ptr[t], ptr[t + 1]):
                    e[k] -= v[i] * row[idx[k]]
