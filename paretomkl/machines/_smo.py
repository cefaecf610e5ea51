"""Compiled sequential minimal optimisation for the tasks of all support vector machines over shared Gram blocks.

A task of n samples with targets y, bounds low ≤ 0 ≤ high, a tube of half-width ε and Gram matrix K is

    J = max  Σ_i y_i v_i − ε Σ_i |v_i| − ½ v'Kv     s.t.  low ≤ v ≤ high,   Σ_i v_i fixed by the start.

A classifier has y = ±1, v = y∘α and v_i between 0 and y_i C_i. With the errors e = y − Kv, the gradient is e, minus ε
for moves away from zero and plus ε for moves toward it. A pair (i, j) moves along v_i += δ, v_j −= δ. For every offset
b the duality gap is a sum of non-negative terms, with u = e − b

    Σ_i [high_i max(0, u_i − ε) − low_i max(0, −u_i − ε) − v_i u_i + ε |v_i|].

A task without intercept need not keep Σ_i v_i fixed: it is not ``balanced``. Then b = 0, and a variable may also move
alone, as if its partner were a sample with k = 0, y = 0 and no bounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._tools.compiled import inner_njit, njit
from .._tools.running import run_chunks
from .._tools.typing import Array, IntArray
from ..kernels._evaluation import dot, dot_at
from ..kernels._rounding import UNIT, Errors, Rounding, bound_errors, exact_sum, ranges_of_tasks

if TYPE_CHECKING:
    from ..gram._blocks import TaskLayout

MAX_STEPS = 10_000_000  # pair steps per task; reached only if the tolerance is below what rounding allows
CHECK_EVERY = 8  # pair steps between two evaluations of the duality gap, which costs about half a step
PATIENCE = 5  # pair steps per sample before the free variables move together
MOST_NEWTON_STEPS = 50  # limit on consecutive Newton steps
NEWTON_WORK = 150  # limit on Σ f³ / n² over consecutive steps with f free variables; beyond, pair steps are cheaper
STALLED = 20  # pair steps per sample without an increase of the dual value after which to stop
HOPELESS = 10  # times as many steps that leave the gap above the value, and nearly unchanged, after which to stop


@inner_njit(_nrt=True)
def copy_gram(K: Array, start: int, size: int, idx: IntArray, copy: Array) -> None:
    """Copy rows and columns idx of the block at ``start`` into contiguous memory."""
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
def value_and_gap(e: Array, y: Array, box: TaskBox, v: Array, b: float) -> tuple[float, float]:
    """The dual value Σ y v − ε Σ |v| − ½ v'Kv, with Kv = y − e, and the duality gap for the offset b."""
    low, high, epsilon, _ = box
    value = 0.0
    gap = 0.0
    for k in range(len(e)):
        u = e[k] - b
        tube = epsilon * abs(v[k])
        value += v[k] * (y[k] + e[k]) - 2.0 * tube
        gap += high[k] * max(0.0, u - epsilon) - low[k] * max(0.0, -u - epsilon) - v[k] * u + tube
    return 0.5 * value, gap


@inner_njit()
def note_moves(k: int, v: Array, box: TaskBox, rise: Array, fall: Array) -> None:
    """Set the terms that turn e_k into the slope for raising and for lowering v_k; ∓∞ if a bound forbids the move."""
    low, high, epsilon, _ = box
    rise[k] = -np.inf if v[k] >= high[k] else epsilon if v[k] < 0.0 else -epsilon
    fall[k] = np.inf if v[k] <= low[k] else -epsilon if v[k] > 0.0 else epsilon


# The three loops of a pair step have no branches, so they compile to vector instructions; no value in them is NaN.
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
def most_violating(e: Array, rise: Array, fall: Array, balanced: bool, score: Array) -> tuple[int, float, float]:
    """The sample with the steepest rise, its slope, and the smallest slope of those that can fall; -1 if none."""
    e_down = np.inf
    for k in range(len(e)):
        score[k] = e[k] + rise[k]
        e_down = min(e_down, e[k] + fall[k])
    i, e_up = find_largest(score)
    if not balanced:  # a variable that moves alone has a fictitious partner with error zero, index -1
        return (i, e_up, min(e_down, 0.0)) if e_up > 0.0 else (-1, 0.0, min(e_down, 0.0))
    return (i, e_up, e_down) if e_up > -np.inf else (-1, e_up, e_down)


@inner_njit(fastmath={"contract", "reassoc", "nsz", "nnan"})
def best_partner(
    row: Array, diagonal: Array, diagonal_i: float, e: Array, e_up: float, fall: Array, flat: float, score: Array
) -> tuple[int, float]:
    """The sample with the largest gain slope² / curvature among those with a slope below e_up, and that gain."""
    for k in range(len(e)):
        slope = max(e_up - (e[k] + fall[k]), 0.0)
        score[k] = slope * slope / max(diagonal_i + diagonal[k] - 2.0 * row[k], flat)
    return find_largest(score)


@inner_njit(fastmath={"contract"})
def update_errors(row_i: Array, row_j: Array, delta: float, e: Array) -> None:
    for k in range(len(e)):
        e[k] -= delta * (row_i[k] - row_j[k])


@inner_njit()
def offset(i: int, e_up: float, e_down: float, balanced: bool) -> float:
    """The b halfway between the slopes of the variables that can rise and of those that can fall."""
    if not balanced:
        return 0.0
    if i < 0 or e_down == np.inf:
        b = e_down if i < 0 else e_up  # all variables are at the same bound: any offset beyond this one is optimal
        return b if abs(b) < np.inf else 0.0
    return 0.5 * (e_up + e_down)


@inner_njit()
def raised(v: float, high: float, epsilon: float) -> float:
    """How far v can rise at constant slope: to its bound, or with a tube first to zero."""
    return 0.0 if epsilon > 0.0 and v < 0.0 else high


@inner_njit()
def lowered(v: float, low: float, epsilon: float) -> float:
    """How far v can fall at constant slope."""
    return 0.0 if epsilon > 0.0 and v > 0.0 else low


@inner_njit()
def largest_size(x: Array) -> float:
    largest = 0.0
    for k in range(len(x)):
        largest = max(largest, abs(x[k]))
    return largest


@inner_njit(_nrt=True)
def solve_task(
    K: Array, at: int, y: Array, box: TaskBox, v: Array, rtol: float, floor: float, max_steps: int, e: Array
) -> tuple[float, float, float, int, float]:
    """Improve v in place until gap ≤ rtol · J or ≤ floor; return dual value, duality gap, offset b, pair steps, drift.

    ``e`` receives the errors y − Kv, up to the drift: a bound on the rounding errors of their updates. The Gram matrix
    (n, n) begins at ``at`` of the flat K. Working sets are chosen by second-order gain (Fan, Chen, Lin 2005).
    """
    low, high, epsilon, balanced = box
    n = len(y)
    diagonal = np.empty(n)
    score = np.empty(n)
    rise = np.empty(n)
    fall = np.empty(n)
    alone = np.zeros(0 if balanced else n, K.dtype)  # kernel row of the fictitious partner of variables that move alone
    top = 0.0
    room = 0.0
    for k in range(n):
        diagonal[k] = K[at + k * n + k]
        top = max(top, diagonal[k])
        room += high[k] - low[k]
        v[k] = min(max(v[k], low[k]), high[k])
        note_moves(k, v, box, rise, fall)
    flat = 1e-14 * top + 1e-300  # curvature for a pair of equal samples, whose step then ends at a bound

    compute_errors(K, at, y, v, e)
    i, e_up, e_down = most_violating(e, rise, fall, balanced, score)
    drift = 0.0  # bound on the rounding error in e since it was last computed from scratch
    largest = largest_size(e)
    steps = 0
    b = 0.0
    while True:
        violation = e_up - e_down
        if steps % CHECK_EVERY == 0 or violation <= 1e-12 * (1.0 + abs(e_up)) or steps >= max_steps:
            b = offset(i, e_up, e_down, balanced)
            value, gap = value_and_gap(e, y, box, v, b)
            exhausted = violation <= 1e-15 * (1.0 + abs(e_up)) or steps >= max_steps
            enough = max(rtol * value, floor)
            if gap <= enough or exhausted:
                if drift * room <= 0.01 * enough:
                    return value, gap, b, steps, drift
                # recompute e, since the reported gap must hold for v itself, without accumulated rounding errors
                compute_errors(K, at, y, v, e)
                drift, largest = 0.0, largest_size(e)
                if exhausted:
                    value, gap = value_and_gap(e, y, box, v, b)
                    return value, gap, b, steps, drift
                i, e_up, e_down = most_violating(e, rise, fall, balanced, score)
                continue
        # i can rise and violates optimality most; its partner j can fall and gives the largest gain
        row_i = K[at + i * n :] if i >= 0 else alone
        diagonal_i = diagonal[i] if i >= 0 else 0.0
        j, gain = best_partner(row_i, diagonal, diagonal_i, e, e_up, fall, flat, score)
        if not balanced and i >= 0 and e_up * e_up > gain * max(diagonal_i, flat):
            j, gain = -1, 1.0
        if not gain > 0.0:
            value, gap = value_and_gap(e, y, box, v, b)
            return value, gap, b, steps, drift
        stop_i = raised(v[i], high[i], epsilon) if i >= 0 else 0.0
        stop_j = lowered(v[j], low[j], epsilon) if j >= 0 else 0.0
        room_i = stop_i - v[i] if i >= 0 else np.inf
        room_j = v[j] - stop_j if j >= 0 else np.inf
        e_j = e[j] + fall[j] if j >= 0 else 0.0
        curvature = diagonal_i + diagonal[j] - 2.0 * row_i[j] if j >= 0 else diagonal_i
        delta = min((e_up - e_j) / max(curvature, flat), room_i, room_j)
        if i >= 0:
            v[i] = stop_i if delta == room_i else v[i] + delta
            note_moves(i, v, box, rise, fall)
        if j >= 0:
            v[j] = stop_j if delta == room_j else v[j] - delta
            note_moves(j, v, box, rise, fall)
        largest += 2.0 * delta * top
        drift += 2.0 * UNIT * (2.0 * delta * top + largest)
        update_errors(row_i, K[at + j * n :] if j >= 0 else alone, delta, e)
        i, e_up, e_down = most_violating(e, rise, fall, balanced, score)
        steps += 1


class Box(NamedTuple):
    """Bounds on the duals of all tasks, and the cost ε of their size.

    low, high: flat over the samples of all tasks; epsilon: the tube of each task, (n_tasks,); balanced: whether the sum
    of the duals of a task is fixed, as it is for a task with an intercept; total: that sum.
    """

    low: Array
    high: Array
    epsilon: Array
    balanced: bool = True
    total: float = 0.0


class TaskBox(NamedTuple):
    """The :class:`Box` of one task."""

    low: Array
    high: Array
    epsilon: float
    balanced: bool


def classifier_box(y: Array, C: Array, n_tasks: int) -> Box:
    """The box of classifiers with signs y: v between 0 and y C."""
    bound = y * C
    return Box(np.minimum(0.0, bound), np.maximum(0.0, bound), np.zeros(n_tasks))


class Solved(NamedTuple):
    """Dual value, duality gap, intercept and pair steps of each task, arrays of shape (n_tasks,).

    ``errors`` are y − Kv of all samples; those of task t are off by at most drift[t] beyond the rounding of one sum.
    """

    value: Array
    gap: Array
    intercept: Array
    steps: IntArray
    drift: Array
    errors: Array

    @classmethod
    def empty(cls, n_tasks: int, n_entries: int) -> Solved:
        value, gap, intercept, drift = np.zeros((4, n_tasks))
        return cls(value, gap, intercept, np.zeros(n_tasks, dtype=np.int64), drift, np.empty(n_entries))


@njit()
def solve_range(
    first: int,
    last: int,
    K: Array,
    layout: TaskLayout,
    y: Array,
    box: Box,
    v: Array,
    rtol: float,
    floor: float,
    solved: Solved,
) -> int:
    """Take up to PATIENCE pair steps per sample on tasks first..last-1, warm-started from v (in place).

    Returns the number of tasks that need more.
    """
    n_unsolved = 0
    ptr, idx, start, size = layout
    value, gap, intercept, steps, drift, errors = solved
    low, high, epsilon, balanced, _ = box
    for t in range(first, last):
        begin = ptr[t]
        end = ptr[t + 1]
        n = end - begin
        gram = K
        at = start[t]
        if n < size[t]:
            gram = np.empty(n * n, K.dtype)
            at = 0
            copy_gram(K, start[t], size[t], idx[begin:end], gram)
        own = TaskBox(low[begin:end], high[begin:end], epsilon[t], balanced)
        value[t], gap[t], intercept[t], steps[t], drift[t] = solve_task(
            gram, at, y[begin:end], own, v[begin:end], rtol, floor, PATIENCE * n, errors[begin:end]
        )
        n_unsolved += steps[t] >= PATIENCE * n and gap[t] > max(rtol * value[t], floor)
    return n_unsolved


def solve_tasks(
    K: Array, layout: TaskLayout, y: Array, box: Box, v: Array, rtol: float, n_jobs: int = 1, floor: float = 0.0
) -> Solved:
    """Solve all tasks of a layout to a relative duality gap of rtol, each warm-started from its part of v (in place).

    K is the flat storage of the layout; y and v are flat over the samples of all tasks. A gap of ``floor`` is enough.
    """
    n_tasks = len(layout.size)
    solved = Solved.empty(n_tasks, len(y))
    problem = (K, layout, y, box, v, rtol, floor, solved)

    def work(first: int, last: int) -> None:
        if solve_range(first, last, *problem):
            some = slice(first, last)
            exhausted = solved.steps[some] >= PATIENCE * np.diff(layout.ptr)[some]
            late = exhausted & (solved.gap[some] > np.maximum(rtol * solved.value[some], floor))
            for t in (first + np.flatnonzero(late)).tolist():
                finish_task(t, *problem)

    run_chunks(work, [(0, n_tasks)] if n_jobs == 1 else [(t, t + 1) for t in range(n_tasks)], n_jobs)
    return solved


def finish_task(
    t: int, K: Array, layout: TaskLayout, y: Array, box: Box, v: Array, rtol: float, floor: float, solved: Solved
) -> None:
    """Alternate between Newton steps on the free variables and pair steps until the task is solved or stalls.

    A task that is already solved is left unchanged.
    """
    mine = slice(layout.ptr[t], layout.ptr[t + 1])
    n = len(y[mine])
    steps, patience = int(solved.steps[t]), PATIENCE * n
    value_then, best_gap = -np.inf, np.inf
    next_look = STALLED * (n + 100)
    looks: deque[tuple[float, float]] = deque(maxlen=HOPELESS)
    while solved.steps[t] >= patience and solved.gap[t] > max(rtol * solved.value[t], floor) and steps < MAX_STEPS:
        best_gap = min(best_gap, solved.gap[t])
        if steps >= next_look:
            looks.append((solved.value[t], best_gap))
            if solved.value[t] - value_then <= 1e-14 * solved.value[t] or is_hopeless(looks):
                break
            value_then, next_look = solved.value[t], steps + STALLED * (n + 100)
        own = TaskBox(box.low[mine], box.high[mine], float(box.epsilon[t]), box.balanced)
        move_free_variables(K, layout.start[t], layout.size[t], layout.idx[mine], y[mine], own, v[mine])
        solve_range(t, t + 1, K, layout, y, box, v, rtol, floor, solved)
        steps += int(solved.steps[t])
    solved.steps[t] = steps


def is_hopeless(looks: Sequence[tuple[float, float]]) -> bool:
    """Whether the dual values and gaps at HOPELESS looks show that thousands more would not solve the task.

    The gap bounds what the value can still gain. A kernel value far above all others, as of a sample with a sentinel
    for a missing number, makes every pair step too short to gain any of it.
    """
    (value_then, gap_then), (value, gap) = looks[0], looks[-1]
    return len(looks) == HOPELESS and gap > max(value, 0.5 * gap_then) and value - value_then < 1e-3 * gap


@njit()
def move_free_variables(K: Array, start: int, size: int, idx: IntArray, y: Array, box: TaskBox, v: Array) -> None:
    """Newton steps on the variables strictly inside the box, with the others fixed, until one step stays inside.

    Pair steps are slow if the Gram matrix of the free variables is nearly singular (large C, few features). The Newton
    direction solves [K_FF + εI, 1; 1', 0] [d; b] = [e_F; 0], here with a small ridge ε, and is followed to the best
    point inside the box. Each step either ends at the optimum of the face or puts one more variable on its bound. With
    a tube, zero is a bound too. All arguments belong to one task; v is updated.
    """
    n = len(y)
    free = np.empty(n, np.int64)
    low = box.low.copy()
    high = box.high.copy()
    epsilon = box.epsilon
    for k in range(n):
        if epsilon > 0.0:
            low[k] = 0.0 if v[k] >= 0.0 else low[k]
            high[k] = 0.0 if v[k] <= 0.0 else high[k]
    work = 0.0
    for _ in range(min(n, MOST_NEWTON_STEPS)):
        f = 0
        trace = 0.0
        for k in range(n):
            if low[k] < v[k] and v[k] < high[k]:
                free[f] = k
                f += 1
                trace += K[start + idx[k] * (size + 1)]
        if f < 1 + box.balanced or not trace > 0.0:
            return
        A = np.empty(f * f)
        e = np.empty(f)
        d = np.empty(f)
        for a in range(f):
            row = K[start + idx[free[a]] * size :]
            e[a] = y[free[a]] - (epsilon if v[free[a]] > 0.0 else -epsilon) - dot_at(row, idx, 0, v, n)
            for c in range(f):
                A[a * f + c] = row[idx[free[c]]]
        newton_direction(A, 1e-13 * trace, e, box.balanced, d)
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
        for a in range(f if box.balanced else 0):  # restore Σ v: rounding and clipping leave an excess
            k = free[a]
            if low[k] < v[k] - excess and v[k] - excess < high[k]:
                v[k] -= excess
                break
        work += float(f) ** 3
        if length < to_box or work > NEWTON_WORK * float(n) ** 2:
            return


@njit(fastmath={"contract"})
def newton_direction(A: Array, ridge: float, e: Array, balanced: bool, d: Array) -> None:
    """d with Σ d = 0 and (A + ridge I) d + b 1 = e for some b; A (f, f) is flat, and its lower triangle is overwritten.

    If not ``balanced``, b = 0 replaces Σ d = 0.

    With the Cholesky factor of A + ridge I, d = x − b u, where x and u solve for e and for 1. A pivot lost to rounding
    is replaced by the ridge.
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
    if not balanced:
        return
    b = sum_d / sum_u
    for i in range(f):
        d[i] -= b * u[i]
    for _ in range(2):  # the step must sum to zero to the last digit to keep the dual feasible
        mean = 0.0
        for i in range(f):
            mean += d[i] / f
        for i in range(f):
            d[i] -= mean


@njit()
def certify(
    rounding: Rounding,
    weights: Array,
    ptr: IntArray,
    y: Array,
    box: Box,
    v: Array,
    solved: Solved,
    noise: Array,
    extra: Array,
    forms: Array,
    relative: Array,
    gap: Array,
) -> None:
    """Upper bounds on the duality gaps of all tasks, and the errors of their duals; see :func:`bound_errors`.

    ``extra`` (n_entries,) is another bound on the errors of decisions. The part of each sample in the gap is convex in
    its error u, so it is largest at an end of the interval of u.
    """
    low, high, epsilon, balanced, fixed = box
    _, _, intercept, _, drift, e = solved
    lost = np.empty(len(v))
    bound_errors(rounding, weights, ptr, v, balanced and fixed == 0.0, noise, forms, relative, lost)
    for t in range(len(ptr) - 1):
        begin, end, b, width = ptr[t], ptr[t + 1], intercept[t] if balanced else 0.0, epsilon[t]
        total = 0.0
        size = 0.0
        for i in range(begin, end):
            off = lost[i] + drift[t] + extra[i] + 4.0 * UNIT * (abs(y[i]) + abs(b))
            u = e[i] - b - off
            below = high[i] * max(0.0, u - width) - low[i] * max(0.0, -u - width) - v[i] * u
            u = e[i] - b + off
            loss = high[i] * max(0.0, u - width) - low[i] * max(0.0, -u - width)
            total += max(0.0, max(below, loss - v[i] * u) + width * abs(v[i]))
            size += loss + abs(v[i]) * (abs(u) + width)
        gap[t] = total + (end - begin + 8) * UNIT * size
        if balanced:  # the gap holds if Σv is exact; otherwise its residual times b is missing
            gap[t] += abs(b * (exact_sum(v, begin, end) - fixed))


@njit()
def errors_of_tasks(K: Array, layout: TaskLayout, y: Array, v: Array, e: Array) -> None:
    """e = y − Kv of every task; K, y and v are as in :func:`solve_tasks`."""
    ptr, idx, start, size = layout
    for k in range(len(y)):
        e[k] = y[k]
    for t in range(len(size)):
        for i in range(ptr[t], ptr[t + 1]):
            if v[i] != 0.0:
                row = K[start[t] + idx[i] * size[t] :]
                for k in range(ptr[t], ptr[t + 1]):
                    e[k] -= v[i] * row[idx[k]]


class Certified(NamedTuple):
    """Solved tasks: upper bounds on their duality gaps, the forms of their duals, and bounds on rounding errors."""

    solved: Solved
    gap: Array
    forms: Array
    errors: Errors


def certified(
    gram: Any,
    theta: Array,
    y: Array,
    box: Box,
    v: Array,
    solved: Solved,
    forms: Array,
    extra: Array,
    noise: Array | None = None,
    of_forms: Array | float = 0.0,
) -> Certified:
    """Bound what rounding adds to the results of v.

    ``extra`` (n_entries,), ``noise`` (n_tasks,) and ``of_forms`` are errors of decisions and forms from elsewhere.
    """
    gap, relative = np.zeros((2, len(forms)))
    noise = np.zeros(len(forms)) if noise is None else noise
    weights, lost = theta if theta.ndim > 1 else theta[None], np.empty(forms.shape)

    def bound(first: int, last: int) -> None:
        own = slice(first, last)
        of_tasks, part = weights[own] if len(weights) > 1 else weights, box._replace(epsilon=box.epsilon[own])
        of_own = (solved.value[own], solved.gap[own], solved.intercept[own], solved.steps[own], solved.drift[own])
        found = Solved(*of_own, solved.errors)
        given = gram.layout.ptr[first : last + 1], y, part, v, found, noise[own], extra
        certify(gram.rounding, of_tasks, *given, lost[own], relative[own], gap[own])

    run_chunks(bound, ranges_of_tasks(len(forms), len(v), gram.n_jobs), gram.n_jobs)
    lost += of_forms
    return Certified(solved, gap, forms, Errors(lost, relative, np.maximum(gap - solved.gap, 0.0)))
