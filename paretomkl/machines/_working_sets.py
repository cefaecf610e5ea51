"""Solve tasks that are too large for a Gram matrix on working sets, and certify them on all samples.

In each round a task moves only its working set: the variables strictly inside their box and those that violate the
optimality conditions most. All others stay fixed; their contribution enters the targets of the smaller problem. The
kernel fields of the new dual then give the errors of all samples, hence the duality gap of the whole task and the
violators of the next round. The dual carries the working set over to the next θ, C or capacity.
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np

from .._tools.compiled import inner_njit, njit
from .._tools.running import run_chunks
from .._tools.typing import AnyArray, Array, IntArray
from ..gram._blocks import TaskLayout
from ..gram._large.fields import Field
from ._smo import (
    Box,
    Certified,
    Solved,
    TaskBox,
    certified,
    errors_of_tasks,
    note_moves,
    offset,
    solve_tasks,
    value_and_gap,
)

# limit on variables at a bound that join a working set: the largest of a number, a share of all, and a share of the
# nonzero ones
ADDED, OF_ALL, OF_SUPPORT = 400, 0.05, 0.5
NEARLY = 0.1  # extra variables in a working set, relative to its size, that do not violate yet but are closest to it
SUB_SHARE = 0.3  # accuracy of the smaller problem relative to that of the task
COARSE = 0.02  # accuracy of the smaller problem relative to the task's gap or value; more would be wasted
SOME, MANY = 1000, 20_000  # limits on samples for a first guess
FEW_ENTRIES = 5_000_000  # samples that one thread looks at faster than several agree on who does
MOST_ROUNDS = 200  # reached only if the tolerance is below what rounding allows


def certified_by_field(
    field: Field, theta: Array, y: Array, box: Box, v: Array, solved: Solved, rtol: float
) -> Certified:
    """The same for results of a field. Where single precision matters, they are computed again in double precision.

    Most samples cost what they cost, or nothing, however their decisions are rounded: those beyond the margin.
    """
    gram, extra = field.gram, np.zeros(len(v))
    forms, of_forms = field.quadratic_forms() * gram.bank.factor, np.zeros((len(solved.gap), gram.n_kernels))
    if not field.double:
        of_forms, of_tasks = field.single_errors(theta * gram.bank.factor)
        extra = np.repeat(of_tasks, np.diff(gram.layout.ptr))
        if (of_forms @ theta > 0.5 * rtol * solved.value).any():
            forms, of_forms = gram.quadratic_forms(v), np.zeros_like(of_forms)
        wanted = doubtful(gram.layout.ptr, box, v, solved, extra)
        for (t, rows), exact in zip(wanted, field.exact_decisions(wanted, theta), strict=True):
            places = gram.layout.ptr[t] + rows
            solved.errors[places] = y[places] - exact
            extra[places] = 0.0
    return certified(gram, theta, y, box, v, solved, forms, extra, field.noise, of_forms)


def doubtful(ptr: IntArray, box: Box, v: Array, solved: Solved, extra: Array) -> list[tuple[int, IntArray]]:
    """The samples of each task whose part in the duality gap may grow if their decisions are off by ``extra``."""
    grows = np.zeros(len(v), dtype=np.bool_)
    note_doubtful(ptr, box, v, solved.errors, solved.intercept * box.balanced, extra, grows)
    return [(t, rows) for t, own in enumerate(np.split(grows, ptr[1:-1])) if len(rows := np.flatnonzero(own))]


def solve_on_working_sets(
    field: Field, weight: Array, y: Array, box: Box, v: Array, intercepts: Array, rtol: float
) -> Solved:
    """Solve all tasks to a relative duality gap of rtol, warm-started from v (in place) and the intercepts.

    The kernel is Σ_m weight_m K_m. Afterwards the field belongs to v.
    """
    ptr = field.gram.layout.ptr
    n_tasks = len(ptr) - 1
    solved = Solved.empty(n_tasks, len(y))
    solved.intercept[:] = intercepts
    value, gap = solved.value, solved.gap
    field.begin(weight, v)
    work = _kind_of_work(field)(field, y, box, v, rtol, solved)
    work.guess()
    field.move_to(v)
    waiting = list(range(n_tasks))
    for n_rounds in count():
        before = value.copy()
        found = work.look(waiting)
        stalled = (n_rounds > 2) & (value - before >= 0) & (value - before <= 1e-14 * np.abs(value))
        going = (gap > rtol * value) & ~stalled
        waiting = [t for t in waiting if going[t]]
        if not waiting or n_rounds == MOST_ROUNDS:
            break
        work.improve(work.choose(waiting, found, n_rounds))
        field.move_to(v)
    work.finish()
    return solved


def _kind_of_work(field: Field) -> type[Work]:
    if field.device is None:
        return Work
    from ._working_sets_on_device import WorkOnDevice  # imports PyTorch

    return WorkOnDevice


class Goal(NamedTuple):
    """How large the box of a smaller problem is, relative to that of its task, and how accurately it is solved."""

    growth: float
    rtol: float
    floor: float


class Work:
    """The state of one sweep; see the arguments of :func:`solve_on_working_sets`."""

    def __init__(self, field: Field, y: Array, box: Box, v: Array, rtol: float, solved: Solved):
        self.field, self.y, self.box, self.v, self.rtol, self.solved = field, y, box, v, rtol, solved

    def entries(self, t: int) -> slice:
        ptr = self.field.gram.layout.ptr
        return slice(ptr[t], ptr[t + 1])

    def box_of(self, t: int) -> TaskBox:
        mine = self.entries(t)
        return TaskBox(self.box.low[mine], self.box.high[mine], float(self.box.epsilon[t]), self.box.balanced)

    def look(self, tasks: list[int]) -> Any:
        """Update errors, values, gaps and intercepts of some tasks; returns the slack of their variables."""
        value, gap, intercept, _, _, errors = self.solved

        def look_at(t: int, f: Array) -> Array:
            mine, slack = self.entries(t), np.empty(len(f))
            e = np.subtract(self.y[mine], f, out=errors[mine])
            found = look(e, self.y[mine], self.box_of(t), self.v[mine], intercept[t], slack)
            value[t], gap[t], intercept[t] = found
            return slack

        given = list(zip(tasks, self.field.decisions(tasks), strict=True))
        return dict(zip(tasks, run_chunks(look_at, given, self._jobs_to_look_at(tasks)), strict=True))

    def _jobs_to_look_at(self, tasks: list[int]) -> int:
        size = np.diff(self.field.gram.layout.ptr)[tasks].sum()
        return self.field.n_jobs if size > FEW_ENTRIES else 1

    def choose(self, tasks: list[int], slack: Any, n_rounds: int) -> dict[int, IntArray]:
        """The working sets of some tasks, the largest first, so that threads finish at about the same time."""

        largest = self.field.largest

        def choose_for(t: int) -> IntArray:
            rng = np.random.default_rng((n_rounds, t))
            return working_set(slack[t], self.box_of(t), self.v[self.entries(t)], largest, rng)

        sets = run_chunks(choose_for, [(t,) for t in tasks], self._jobs_to_look_at(tasks))
        return dict(sorted(zip(tasks, sets, strict=True), key=lambda pair: -len(pair[1])))

    def finish(self) -> None:
        """Complete ``solved``."""

    def improve(self, sets: dict[int, IntArray]) -> None:
        """Solve tasks for the variables in their working sets, with the others fixed."""
        goals = {}
        for t, some in sets.items():
            value, gap = float(self.solved.value[t]), float(self.solved.gap[t])
            floor = max(SUB_SHARE * self.rtol * value, COARSE * min(value, gap))
            if value <= 0:  # as after some warm starts: the gap says what remains to be done, and the set has a share
                floor = COARSE * gap * len(some) / (self.entries(t).stop - self.entries(t).start)
            goals[t] = Goal(1.0, 0.0, floor)
        self.solve(sets, goals)

    def solve(self, sets: dict[int, IntArray], goals: dict[int, Goal]) -> None:
        """Optimise some variables of each task, in a box that is ``growth`` times as large."""
        self.field.prepare(sets)

        def solve_set(t: int, some: IntArray) -> None:
            at, epsilon = self.entries(t).start + some, self.box.epsilon[t : t + 1]
            low, high = goals[t].growth * self.box.low[at], goals[t].growth * self.box.high[at]
            # The unknowns are the moves; with a tube, which has a kink at zero, the variables themselves.
            now = self.v[at] if epsilon[0] == 0 else np.zeros(len(at))
            x, part = self.v[at] - now, Box(low - now, high - now, epsilon, self.box.balanced)
            with self.field.among(t, some) as K:
                done = solve_part(K, self.solved.errors[at], part, x, goals[t])
            # a variable that reaches a bound gets its exact value
            self.v[at] = np.where(x <= part.low, low, np.where(x >= part.high, high, now + x))
            self.solved.intercept[t] = done.intercept[0]
            self.solved.steps[t] += done.steps[0]

        run_chunks(solve_set, list(sets.items()), self.field.n_jobs)

    def guess(self) -> None:
        """Start large tasks that have no warm start from a function learned on some of their samples.

        The costs of these samples grow in proportion, so that they represent all samples. Of the other samples, the
        same share goes to its bound: those with the largest errors.
        """
        field, layout = self.field, self.field.gram.layout
        n = np.diff(layout.ptr).tolist()
        cold = [t for t in range(len(n)) if n[t] > 2 * SOME and not self.v[self.entries(t)].any()]
        if not cold:
            return
        # use the same samples for all tasks of a block, so that they share columns
        rank = np.random.default_rng(0).permutation(int(layout.size.max()))
        sets = {
            t: np.sort(np.argsort(rank[layout.idx[self.entries(t)]])[: min(max(SOME, n[t] // 10), MANY)]) for t in cold
        }
        self.solved.errors[:] = self.y
        self.solve(sets, {t: Goal(n[t] / len(sets[t]), COARSE, 0.0) for t in cold})
        field.move_to(self.v)
        for t, f in zip(cold, field.decisions(cold), strict=True):
            self.v[self.entries(t)] = self._extended(t, sets[t], self.y[self.entries(t)] - f - self.solved.intercept[t])

    def _extended(self, t: int, some: IntArray, u: Array) -> Array:
        """A dual of task t inside its box, from a dual of some samples in a larger box; u are all errors."""
        low, high, epsilon, balanced = self.box_of(t)
        learned = self.v[self.entries(t)]
        dual = np.clip(learned, low, high)
        share = np.count_nonzero(dual[some] != learned[some]) / len(some)
        wrong = np.where(u > epsilon, high * (u - epsilon), np.where(u < -epsilon, low * (u + epsilon), 0.0))
        wrong[some] = 0.0
        first = np.argsort(-wrong)[: min(int(share * len(u)), np.count_nonzero(wrong))]
        dual[first] = np.where(u[first] > 0, high[first], low[first])
        if balanced:
            _balance(dual, np.abs(u))
        return dual


def solve_part(K: AnyArray, e: Array, part: Box, x: Array, goal: Goal) -> Solved:
    """Solve a smaller problem of one task with the flat matrix K, starting from x (in place), whose errors are e."""
    alone = TaskLayout(np.array([0, len(x)]), np.arange(len(x)), np.zeros(1, dtype=np.int64), np.array([len(x)]))
    targets = e
    if x.any():
        targets = np.empty_like(e)
        errors_of_tasks(K, alone, e, -x, targets)  # e + Kx
    return solve_tasks(K, alone, targets, part, x, goal.rtol, floor=goal.floor)


def _balance(dual: Array, error: Array) -> None:
    """Make the dual sum to zero: on the larger side, shrink the variables with the smallest errors."""
    excess = dual.sum()
    side = np.flatnonzero(dual * excess > 0)
    side = side[np.argsort(error[side])]
    given = np.minimum(np.cumsum(np.abs(dual[side])), abs(excess))
    dual[side] -= np.sign(excess) * np.diff(given, prepend=0.0)


def working_set(slack: Array, box: TaskBox, v: Array, largest: int, rng: np.random.Generator) -> IntArray:
    """The variables to move next, in increasing order: all inside the box, then those with the smallest slack.

    There are about ``largest`` of them at most.
    """
    low, high, epsilon, _ = box
    inside = (low < v) & (v < high)
    if epsilon > 0:
        inside &= v != 0
    free = np.flatnonzero(inside)
    if len(free) > largest // 2:
        free = free[np.argpartition(slack[free], largest // 2)[: largest // 2]]
    others = rng.permutation(np.flatnonzero(~inside))  # break ties at random; at the start all may be equal
    most = max(ADDED, int(OF_ALL * len(v)), int(OF_SUPPORT * np.count_nonzero(v)))
    n_new = min(int((slack[others] < 0).sum()), most, largest - len(free))
    n_new += int(NEARLY * (len(free) + n_new)) + 1
    if n_new < len(others):
        others = others[np.argpartition(slack[others], n_new)[:n_new]]
    return np.sort(np.concatenate([free, others]))


@njit()
def note_doubtful(
    ptr: IntArray, box: Box, v: Array, errors: Array, intercept: Array, extra: Array, grows: AnyArray
) -> None:
    """Note in ``grows`` which samples have a part in the gap that may be larger if their errors are off by extra."""
    for t in range(len(ptr) - 1):
        width = box.epsilon[t]
        for i in range(ptr[t], ptr[t + 1]):
            u = errors[i] - intercept[t]
            now = _part_of_gap(u, box.low[i], box.high[i], width, v[i])
            down = _part_of_gap(u - extra[i], box.low[i], box.high[i], width, v[i])
            up = _part_of_gap(u + extra[i], box.low[i], box.high[i], width, v[i])
            grows[i] = max(down, up) > now + 1e-14 * abs(v[i] * u)


@inner_njit()
def _part_of_gap(u: float, low: float, high: float, width: float, v: float) -> float:
    return high * max(0.0, u - width) - low * max(0.0, -u - width) - v * u


@njit()
def look(e: Array, y: Array, box: TaskBox, v: Array, b: float, slack: Array) -> tuple[float, float, float]:
    """Dual value, duality gap and the better of two offsets: b, and the one halfway between the extreme slopes.

    ``slack`` receives the distance of each variable from violating optimality; negative values violate it.
    """
    n = len(e)
    rise, fall = np.empty(n), np.empty(n)
    e_up, e_down = -np.inf, np.inf
    for k in range(n):
        note_moves(k, v, box, rise, fall)
        e_up = max(e_up, e[k] + rise[k])
        e_down = min(e_down, e[k] + fall[k])
    between = offset(0 if e_up > -np.inf else -1, e_up, e_down, box.balanced)
    value, gap = value_and_gap(e, y, box, v, b if box.balanced else 0.0)
    other = value_and_gap(e, y, box, v, between)[1]
    if other < gap or not box.balanced:
        gap, b = other, between
    for k in range(n):
        slack[k] = -max(e[k] + rise[k] - b, b - e[k] - fall[k])
    return value, gap, b
