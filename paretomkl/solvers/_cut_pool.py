"""The cut pool: a whole Pareto path for about the cost of one fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray
from ..problem import MultiTaskProblem
from ..protocols import ChoosingMachine, Machine, Promises, Scalarization, WeightSet
from ..scalarizations import PowerMean
from ..solution import Solution
from ..sweep import Decisions, Sweep
from ._base import BaseSolver, Run, rounding_share
from ._grouped_master import MANY_TASKS, TaskGroups
from ._master import MANY, MasterProblem, Optimum, minimize_over_cuts, minimize_over_few, minimize_over_points

WARM_UP = 3  # block-coordinate steps that fill an empty pool
IN_USE = 0.1  # multiplier above which a cut counts as used, relative to those of the cuts that a task needs
PATIENCE = 4  # masters in a row that a cut may be unused before it is dropped
REWEIGHTINGS = 4  # limit on re-weightings of the master for p < 1
LONGER, SHORTER, SHORTEST = 1.5, 0.5, 0.1  # stride to the master's θ: factor after success, after failure; minimum
GAP_SHARE = 0.05  # accuracy of the tasks relative to the gap, while the gap is large
CRUMBS = 0.01  # share of θ, relative to tol, that may be set to zero to keep few kernels
SCORED = 3e-3  # tolerance of points that are only scored: the noise of folds is far larger
SHARE = 0.1  # accuracy of the solution on few kernels, relative to the gap over all kernels
FIRST_GAP = 0.5  # assumed gap over all kernels before it is known
NEGLIGIBLE = 1e-25  # share of M_p below which a task is left out of the master
FLOOR = 1e-3  # least height of raised cuts, relative to the objective
TANGENTS = 200  # limit on tangents of a scalarization in one master; ten are usual
TINY = 1e-9  # least objective at which a tangent is taken, relative to the best one
CONTRADICTION = 1e-6  # share by which rounding may lift a tangent above a convex scalarization


class CutStore:
    """J_t(θ) ≥ linear[k, t] − θ'slopes[k, t] for all θ; one row per sweep, one column per task.

    A cut depends only on a task, its data and C, not on p, the weight set or the task weights.

    Row 0 is the constant cut J_t(θ) ≥ linear[0, t] (zero until it is raised). ``idle`` counts the masters in a row that
    did not use a cut; −1 marks a dropped cut.
    """

    def __init__(self, n_tasks: int, n_kernels: int) -> None:
        self.linear = np.zeros((1, n_tasks))
        self.slopes = np.zeros((1, n_tasks, n_kernels))  # ½ G
        self.idle = np.zeros((1, n_tasks), dtype=np.int64)

    @property
    def live(self) -> AnyArray:
        """Which cuts have not been dropped, (n_rows, n_tasks)."""
        return self.idle >= 0

    def add(self, sweep: Sweep) -> None:
        """Add one cut per task."""
        self.linear = np.concatenate([self.linear, sweep.linear[None]])
        self.slopes = np.concatenate([self.slopes, 0.5 * sweep.forms[None]])
        self.idle = np.concatenate([self.idle, np.zeros((1, self.idle.shape[1]), dtype=np.int64)])

    def branch(self) -> CutStore:
        """A store that grows on its own; both share the arrays of cuts, which adding a cut replaces."""
        branch = copy(self)
        branch.idle = self.idle.copy()
        return branch

    def of_live_rows(self) -> CutStore:
        """A copy without the rows in which all cuts were dropped."""
        rows = np.append(0, 1 + np.flatnonzero(self.live[1:].any(axis=1)))
        kept = CutStore(*self.slopes.shape[1:])
        kept.linear, kept.slopes, kept.idle = self.linear[rows], self.slopes[rows], self.idle[rows]
        return kept

    def of_all_tasks(self) -> tuple[Array, Array]:
        """Intercepts and slopes of the sweeps whose cuts are live for some task, without the constant cuts."""
        rows = 1 + np.flatnonzero(self.live[1:].any(axis=1))
        return self.linear[rows], self.slopes[rows]

    def heights(self, theta: Array) -> Array:
        """The value of every cut at θ (n_kernels,); −∞ for dropped cuts."""
        return np.where(self.live, self.linear - self.slopes @ theta, -np.inf)

    def in_use(self, multipliers: Array, theta: Array, groups: TaskGroups | None = None) -> AnyArray:
        """Which cuts a master uses: those with a multiplier that counts, and the highest of each task at its θ.

        At a vertex of the master, T tasks and M kernels need at most T + M cuts. An interior point gives a little to
        many more cuts, which would make every later master slower.
        """
        heights, (n_tasks, n_kernels) = self.heights(theta), self.slopes.shape[1:]
        needed = 1 + n_kernels / n_tasks  # cuts of a task
        highest = heights == heights.max(axis=0)
        if groups is not None:
            highest = groups.of_tasks(groups.any(highest))
        return (multipliers > IN_USE / needed * multipliers.sum(axis=0)) | highest

    def note_use(self, used: AnyArray, patience: int, present: AnyArray | None = None) -> None:
        """Count one more master for the cuts not ``used`` in it, and drop cuts that were idle for ``patience`` masters.

        The constant cuts and those of the last two sweeps stay. ``present`` marks the cuts of the master, by default
        all live ones.
        """
        self.idle += self.live if present is None else present
        self.idle[used] = 0
        older = self.idle[1:-2]
        older[older > patience] = -1


class Pool:
    """All sweeps so far: cuts for the master, and candidates for the best θ.

    A cut depends only on a task, its data and C, so one pool serves all p, all weight sets and all task weights. The
    pool of a solution stays as it is: whoever continues from it takes a :meth:`branch`.
    """

    def __init__(self, machine: Machine, weight_set: WeightSet) -> None:
        n_tasks, n_kernels = machine.n_tasks, machine.n_kernels
        self.machine, self.weight_set, self.promises = machine, weight_set, machine.promises
        self.sweeps: list[Sweep] = []
        self.thetas, self.upper = np.empty((0, n_kernels)), np.empty((0, n_tasks))  # θ and bounds on J_t of each sweep
        self.cuts = CutStore(n_tasks, n_kernels)
        if not self.promises.nonnegative:
            self.cuts.linear[0] = -np.inf  # until cuts prove a floor
        self.few = weight_set.sparse and n_kernels >= MANY
        self._groups = TaskGroups.of(n_tasks) if n_tasks >= MANY_TASKS and not self.few else None
        self._likely = np.empty(0, dtype=np.int64)  # kernels used by the last master on few kernels
        self._multipliers: Array | None = None  # the multipliers of the last master, which prove its bound

    def __len__(self) -> int:
        return len(self.sweeps)

    def branch(self) -> Pool:
        """A pool with the same sweeps and cuts; what it adds or drops does not change this one."""
        branch = copy(self)
        branch.sweeps, branch.cuts = list(self.sweeps), self.cuts.branch()
        return branch

    def add(self, sweep: Sweep) -> None:
        self.sweeps.append(sweep)
        self.thetas = np.concatenate([self.thetas, sweep.theta[None]])
        self.upper = np.concatenate([self.upper, sweep.upper[None]])
        self.cuts.add(sweep)
        self.raise_floor(sweep.linear, 0.5 * sweep.forms)

    def take_cuts(self, linear: Array, slopes: Array, tasks: Sequence[int]) -> None:
        """Add cuts (n_cuts, n_tasks) that hold for these tasks only."""
        idle = np.full(linear.shape, -1, dtype=np.int64)
        idle[:, tasks] = 0
        cuts = self.cuts
        cuts.linear, cuts.slopes = np.concatenate([cuts.linear, linear]), np.concatenate([cuts.slopes, slopes])
        cuts.idle = np.concatenate([cuts.idle, idle])
        self.raise_floor(linear, slopes)

    def raise_floor(self, linear: Array, slopes: Array) -> None:
        """Raise the constant cuts, which keep the master's unknowns positive.

        J_t ≥ a − h(½G) for every θ, with the support function h. If the machine promises that duals may shrink, then
        J_t ≥ max over 0 ≤ c ≤ 1 of c a − c² h(½G).
        """
        steepest = self.weight_set.support(slopes)
        scale: Array | float = 1.0
        if self.promises.shrinks:
            scale = np.maximum(np.minimum(linear / np.maximum(2 * steepest, 1e-300), 1.0), 0.0)
        raised = scale * linear - scale**2 * steepest
        floor = self.cuts.linear[0]
        np.maximum(floor, raised if raised.ndim == 1 else raised.max(axis=0, initial=-np.inf), out=floor)

    def moved(self, machine: Machine, weight_set: WeightSet, ratio: Array | float = 1.0) -> Pool:
        """A pool with these cuts for another weight set; it has no sweeps, since their θ may lie outside that set.

        The machine may have the same tasks with kernels ``ratio`` (n_kernels,) times as large: scaling a kernel by c
        scales its quadratic form, and its slope in every cut, by c. Unless the machine promises that, no cut is kept
        for other scales.
        """
        moved = Pool(machine, weight_set)
        if np.any(ratio != 1.0) and not machine.promises.scales:
            return moved
        cuts = moved.cuts = self.cuts.of_live_rows()
        cuts.slopes *= ratio
        cuts.linear[0] = 0.0 if machine.promises.nonnegative else -np.inf
        moved.raise_floor(cuts.linear[1:], cuts.slopes[1:])
        return moved

    def grown(self, factor: float, theta: Array, problem: MultiTaskProblem) -> Pool:
        """A pool with these cuts for the same tasks with costs C that are ``factor`` ≥ 1 times as large.

        A machine that grows promises that a cut is valid for every larger C. If it is homogeneous, cα is feasible for
        0 ≤ c ≤ factor, and c is chosen to maximise the cut c a − ½ c² θ'G at the given θ. The new pool has no sweeps:
        the values J_t(θ) change with C.
        """
        grown = Pool(problem.machine, self.weight_set)
        if not grown.promises.grows:
            return grown
        cuts = grown.cuts = self.cuts.of_live_rows()
        if grown.promises.homogeneous:
            steepness = 2 * cuts.slopes @ theta
            scale = np.clip(cuts.linear / np.maximum(steepness, 1e-300), 1.0, factor)
            scale[0] = 1.0
            cuts.linear, cuts.slopes = scale * cuts.linear, scale[:, :, None] ** 2 * cuts.slopes
        cuts.idle = np.minimum(cuts.idle, 0)
        return grown

    def best(self, scalarization: Scalarization, first: int = 0) -> Sweep:
        """The sweep with the smallest M_p, starting from number ``first``."""
        return self.sweeps[first + int(scalarization.log_value(self.upper[first:]).argmin())]

    def has(self, theta: Array) -> bool:
        return bool(np.minimum.reduce(np.maximum.reduce(np.abs(self.thetas - theta), axis=1)) <= 1e-9)

    def minimize(
        self, scale: Array, omega: Array, p: float, start: Array, rtol: float, joint: bool = False, mark: bool = True
    ) -> Optimum:
        """Minimise M_p over the cuts, in units of ``scale``; returns θ, a lower bound and the multipliers.

        Tasks of negligible weight are left out, which only lowers the bound, since J_t ≥ 0. ``joint`` puts all cuts
        into one group: the master of the maximum. ``mark`` records which cuts were used.

        The master needs positive floors. If the machine does not promise them, a plain sum is solved with its cuts
        raised by a constant, and the constant is taken off the bound. Means with p > 1 and the maximum need no such
        care: they are defined for positive objectives, and an objective below zero counts as zero.
        """
        cuts = self.cuts
        present = cuts.live & (omega > NEGLIGIBLE if self.promises.nonnegative else omega > 0)
        linear, lift = cuts.linear, 0.0
        if not self.promises.nonnegative and linear[0].min() < 0:
            rise = np.maximum(-linear[0], 0.0) + FLOOR * scale
            linear = np.maximum(linear, 0.0) if joint or p > 1 else linear + rise
            lift = 0.0 if joint or p > 1 else float(omega @ (rise / scale))
        master = MasterProblem(linear, cuts.slopes, present, scale, omega, p, self.weight_set, joint)
        rtol /= 1 + lift
        groups = None if joint or not self.promises.nonnegative else self._groups
        if self.weight_set.barrier is None:
            found = minimize_over_points(master, start, rtol)
        elif groups is not None:
            found = groups.minimize(master, start, rtol)
        elif self.few:
            found, self._likely = minimize_over_few(master, start, rtol, self._likely)
        else:
            found = minimize_over_cuts(master, start, rtol)
        if lift:
            found = found._replace(lower=found.lower - lift, upper=found.upper - lift)
        if mark:
            cuts.note_use(present & cuts.in_use(found.multipliers, found.theta, groups), PATIENCE, present)
            self._multipliers = found.multipliers
        return found

    def mixed_cut(self) -> tuple[Array, Array] | None:
        """Intercepts (n_tasks,) and slopes (n_tasks, n_kernels) of one cut per task, mixed by the last multipliers.

        These cuts alone prove the bound of the last master, and they bound every other sum of the tasks too.
        """
        if self._multipliers is None:
            return None
        total, share = _shares(self._multipliers)
        share[0, total <= 0] = 1.0  # a task that the master left out keeps its constant cut
        linear, slopes = self.cuts.linear[: len(share)], self.cuts.slopes[: len(share)]
        return (share * linear).sum(axis=0), (share.T[:, None, :] @ slopes.swapaxes(0, 1))[:, 0]

    def on_kernels(self, machine: ChoosingMachine, place: IntArray, keep: Sweep) -> Pool:
        """A pool with the same points and cuts for a machine with more kernels; ``place`` locates the current ones."""
        pool = Pool(machine, self.weight_set)
        live = np.any(self.cuts.live[1:], axis=1)
        for k, sweep in enumerate(self.sweeps):
            if live[k] or sweep is keep:
                theta = np.zeros(machine.n_kernels)
                theta[place] = sweep.theta
                pool.add(replace(sweep, theta=theta, forms=machine.forms(duals(machine, sweep)), rounding=None))
        return pool


@dataclass
class Proposal:
    """The θ that minimises S over the cuts, and a rigorous lower bound on S; the task weights where S has a kink.

    The bound is ``constant`` + Σ proof · linear − h(Σ proof · slopes), proof (n_rows, n_tasks), h the support function.
    """

    theta: Array
    lower: float
    task_weights: Array | None = None
    proof: Array | None = None
    constant: float = 0.0


class Reached(NamedTuple):
    """The end of an iteration: the best sweep and its gap, the last master, and whether rounding ended it."""

    best: Sweep
    gap: float
    n_sweeps: int
    master: Proposal
    exhausted: bool


@dataclass
class CutPool(BaseSolver):
    """Cutting planes shared by all tasks and all p; handles every p.

    The cuts in the pool bound every J_t from below. A master problem minimises M_p of these bounds; then the tasks are
    solved at its θ, and their cuts join the pool, until the best M_p(J(θ)) is within ``tol`` of the master's lower
    bound. For p < 1 the master is an iteratively re-weighted sum; its bound certifies Pareto optimality. Any other
    convex scalarization is minimised in the same way, with its tangents as further cuts; one that is not convex is
    re-weighted as p < 1 is.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int, default=200
        Maximum number of sweeps per p.
    report : callable, default=None
        Called after every sweep with p, the number of sweeps so far and the gap.
    borrow : float, default=0.1
        A point found for another p is reused for this one if its gap is at most ``borrow * tol``. With 0, every p gets
        its own point, so curves along p are smooth; 1 is enough if you only need the gap.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> from paretomkl.solvers import CutPool
    >>> path = pareto_path(*load_iris(return_X_y=True), ps=[1], solver=CutPool(tol=1e-4))
    >>> bool(path.gap[0] <= 1e-4)
    True
    """

    borrow: float = 0.1

    name: ClassVar[str] = "cut-pool"

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        run = run or Run(self.report)
        if chooses_kernels(problem):
            return solve_on_few(self, problem, init, run)
        pool = self._pool(problem, init)
        best, gap, n_sweeps, master, exhausted = self.iterate(problem, pool, run, init)
        return self.solution(problem, best, gap, n_sweeps, master.task_weights, pool, exhausted)

    def iterate(self, problem: MultiTaskProblem, pool: Pool, run: Run, init: Solution | None = None) -> Reached:
        """Add sweeps to the pool until its best one is good enough."""
        n_before = run.n_sweeps
        alone = self.borrow == 0 and not _one_point_serves_all(problem)
        n_borrowed = len(pool)
        gap = 1.0 if init is None and not len(pool) else 10 * self.tol
        if not len(pool):
            self._warm_up(problem, pool, init, run)
        precision = 1.0
        master = None
        leader, stride = None, 1.0
        while True:
            best = pool.best(problem.scalarization, n_borrowed if alone and len(pool) > n_borrowed else 0)
            value, bound = problem.value_and_bound(best)
            # for a convex mean, the last bound holds for the mean itself and may already certify the new point
            serves = master is not None and problem.scalarization.convex
            if master is None or not serves or problem.gap_between(value, max(bound, master.lower)) > self.tol:
                with run.timed("master"):
                    master = self._master(problem, pool, best, precision * max(0.1 * self.tol, 0.02 * gap))
            gap = problem.gap_between(value, max(bound, master.lower))
            n_sweeps = run.n_sweeps - n_before
            run.note(problem.scalarization.p, gap)
            enough = self.tol if n_sweeps or _one_point_serves_all(problem) else self.borrow * self.tol
            exhausted = precision < 1e-6 or (gap > enough and rounding_share(problem, best, self.tol) > self.tol)
            if gap <= enough or n_sweeps >= self.max_iter or exhausted:
                return Reached(best, gap, n_sweeps, master, exhausted)
            # Cutting planes overshoot with many kernels: take a shorter stride after a sweep without improvement.
            stride = min(1.0, LONGER * stride) if best is not leader else max(SHORTEST, SHORTER * stride)
            leader = best
            theta = best.theta + stride * (master.theta - best.theta)
            theta = problem.weight_set.scale_to_boundary(
                without_crumbs(theta, CRUMBS * self.tol) if pool.few else theta
            )
            if pool.has(theta):  # another sweep there at the same accuracy would add nothing
                precision *= 0.1
                theta = best.theta
            pool.add(run.sweep(problem.machine, theta, best.warm, precision * self._accuracy(problem, gap)))

    def also_solved(
        self, problem: MultiTaskProblem, solution: Solution, mean: PowerMean, ps: Sequence[float]
    ) -> Mapping[float, Solution]:
        """The same point for those of the exponents for which it is good enough, certified without another master.

        For weights η, the gradient of M_p at the point, the mixed cut of the last master bounds Σ_t η_t J_t.
        """
        pool, sweep = solution.state, solution.sweep
        enough = self.tol if _one_point_serves_all(problem) else self.borrow * self.tol
        finite = [p for p in ps if np.isfinite(p)]
        if not isinstance(pool, Pool) or not finite or enough == 0:
            return {}
        values, gradients = mean.means_and_gradients(finite, sweep.upper)
        cuts = filter(None, [(sweep.linear, 0.5 * sweep.forms), pool.mixed_cut()])
        lower = [gradients @ linear - problem.weight_set.support(gradients @ slopes) for linear, slopes in cuts]
        relative = np.maximum(lower[0], lower[-1]) / np.where(values > 0, values, 1.0)
        gaps = np.where(values > 0, np.maximum(1 - relative, 0.0), 0.0)
        served = np.flatnonzero(gaps <= enough)
        if not len(served):
            return {}
        finite = [finite[k] for k in served]
        objectives, gradients = mean.means_and_gradients(finite, sweep.lower)
        total = gradients.sum(axis=1, keepdims=True)
        weights = np.where(total > 0, gradients / np.where(total > 0, total, 1.0), 1 / len(sweep.lower))
        return {
            p: Solution(p, sweep, eta, value, gap, 0, True, problem.machine, pool)
            for p, eta, value, gap in zip(finite, weights, objectives.tolist(), gaps[served].tolist(), strict=True)
        }

    def for_scores(self) -> CutPool:
        """One that reuses every point within ``tol``, which is larger unless users ask for less than the default.

        On eight data sets and six splits of each, the chosen models were as accurate (−0.02 ± 0.02 points).
        """
        rough = max(self.tol, SCORED) if self.tol >= CutPool.tol else self.tol
        return replace(self, borrow=1.0, tol=rough)

    def _accuracy(self, problem: MultiTaskProblem, gap: float) -> float:
        """Accuracy of the single tasks: while the gap is large, a fraction of it gives equally good cuts."""
        if _nothing_to_weigh(problem):
            return self.task_rtol
        return max(self.task_rtol, min(self.tol, GAP_SHARE * gap))

    def grown(self, solution: Solution, problem: MultiTaskProblem, factor: float) -> Solution:
        """As in the base class, but keeps the cuts of the smaller C, which are valid for the larger one."""
        pool, start = solution.state, super().grown(solution, problem, factor)
        return (
            replace(start, state=pool.grown(factor, solution.sweep.theta, problem)) if isinstance(pool, Pool) else start
        )

    def rescaled(self, solution: Solution, problem: MultiTaskProblem, ratio: Array) -> Solution:
        """As in the base class, but keeps all cuts, which are valid for every scale of the kernels."""
        pool, start = solution.state, super().rescaled(solution, problem, ratio)
        moved = pool.moved(problem.machine, problem.weight_set, ratio) if isinstance(pool, Pool) else None
        return replace(start, state=moved)

    def _pool(self, problem: MultiTaskProblem, init: Solution | None) -> Pool:
        """The pool of ``init`` if its cuts are valid for this problem; else an empty one."""
        carried = None if init is None else init.state
        if not isinstance(carried, Pool) or carried.machine is not problem.machine:
            return Pool(problem.machine, problem.weight_set)
        same = carried.weight_set is problem.weight_set or carried.weight_set == problem.weight_set
        return carried.branch() if same else carried.moved(problem.machine, problem.weight_set)

    def _warm_up(self, problem: MultiTaskProblem, pool: Pool, init: Solution | None, run: Run) -> None:
        """Fill the pool with a few steps of block-coordinate descent at p = 1, since cuts do not depend on p.

        If cuts were carried along, one sweep is enough, at the θ that minimises their mean.
        """
        theta, warm = self.begin(problem, init)
        gap, carried, greatest = 1.0, len(pool.cuts.linear) > 1, problem.weight_set.greatest(len(theta))
        if carried and greatest is not None:
            theta = greatest
        elif init is not None and carried:
            everyone = np.ones(problem.machine.n_tasks)
            with run.timed("master"):
                scale, shares = init.sweep.upper.mean() * everyone, everyone / len(everyone)
                theta = pool.minimize(scale, shares, 1.0, theta, 0.01, mark=False).theta
            theta = problem.weight_set.scale_to_boundary(theta)
        for _ in range(1 if carried else WARM_UP):
            sweep = run.sweep(problem.machine, theta, warm, self._accuracy(problem, gap))
            pool.add(sweep)
            gap = problem.relative_gap(sweep)
            run.note(problem.scalarization.p, gap)
            warm = sweep.warm
            theta = problem.weight_set.minimize_ratio(theta**2 * sweep.forms.sum(axis=0))

    def _master(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Proposal:
        scalarization = problem.scalarization
        greatest = problem.weight_set.greatest(problem.machine.n_kernels)
        if greatest is not None:  # this θ is optimal, and its sweep certifies it
            return Proposal(greatest, -np.inf)
        if not best.upper.max() > 0:  # no task costs anything
            return Proposal(best.theta, 0.0)
        latest = np.maximum(best.upper, pool.sweeps[-1].upper)
        if problem.machine.n_tasks == 1 and scalarization.homogeneous:
            return self._master_of_mean(problem, pool, best, 1.0, latest, rtol)
        if not scalarization.convex:
            return self._master_by_reweighting(problem, pool, best, rtol)
        if np.isnan(scalarization.p):
            return self._master_by_tangents(problem, pool, best, rtol)
        if scalarization.p == np.inf:
            return self._master_of_maximum(pool, best, rtol)
        return self._master_of_mean(problem, pool, best, scalarization.p, latest, rtol)

    def _master_of_mean(
        self, problem: MultiTaskProblem, pool: Pool, best: Sweep, p: float, u: Array, rtol: float
    ) -> Proposal:
        # In units of objectives u: M_p(z) = M_p(u) · (Σ ω'_t (z_t/u_t)^p)^(1/p) with ω'_t = ω_t (u_t/M_p(u))^p
        omega, scale = problem.scalarization.gradient(u) * u, np.where(u > 0, u, 1.0)  # an idle task has no weight
        unit = omega.sum()
        found = pool.minimize(scale, omega / unit, p, best.theta, rtol)
        return Proposal(found.theta, found.lower * unit, proof=unit * found.multipliers / scale)

    def _master_of_maximum(self, pool: Pool, best: Sweep, rtol: float) -> Proposal:
        unit = best.upper.max()
        busy = (best.upper > 0).astype(float)  # an idle task has no weight
        found = pool.minimize(np.full(len(busy), unit), busy, 1.0, best.theta, rtol, joint=True)
        weights = found.multipliers.sum(axis=0)
        return Proposal(found.theta, found.lower * unit, weights / weights.sum(), found.multipliers)

    def _master_by_reweighting(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Proposal:
        # a concave mean lies below its tangent at z, so the minimiser of Σ η_t(z) z_t decreases it
        scalarization, scale = problem.scalarization, np.where(best.upper > 0, best.upper, 1.0)
        first = self._master_of_mean(problem, pool, best, 1.0, best.upper, rtol)
        theta, value, total = first.theta, np.inf, float(scalarization.gradient(best.upper) @ best.upper)
        # That bound, with the weights of the best point, is its certificate. For the next θ, update the weights.
        for _ in range(REWEIGHTINGS):
            if total - first.lower <= self.tol * total:
                break
            objectives = np.maximum(pool.cuts.heights(theta).max(axis=0), 0.0)
            previous, value = value, float(scalarization.log_value(objectives))
            if previous - value <= rtol:
                break
            omega = scalarization.gradient(objectives) * best.upper
            theta = pool.minimize(scale, omega / omega.sum(), 1.0, theta, rtol, mark=False).theta
        return replace(first, theta=theta)

    def _master_by_tangents(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Proposal:
        # any convex S: S of the cuts is one task, whose own cuts are tangents of S, so this solver can minimise it
        machine = ScalarizedCuts(problem, pool.cuts, TINY * best.upper)
        inner = replace(problem, machine=machine, scalarization=PowerMean(1.0))
        tangents = Pool(machine, problem.weight_set)
        tangents.add(machine.sweep(best.theta))
        found = replace(self, tol=rtol, max_iter=TANGENTS).iterate(inner, tangents, Run())
        shares = np.zeros((1, 1)) if found.master.proof is None else found.master.proof
        proof, everyone, constant = np.zeros_like(pool.cuts.linear), np.arange(problem.machine.n_tasks), 0.0
        for share, sweep in zip(shares[1:, 0], tangents.sweeps, strict=False):  # that master may not know the last ones
            proof[sweep.warm.highest, everyone] += share * sweep.warm.slope
            constant += share * sweep.warm.constant
        pool.cuts.note_use(pool.cuts.in_use(proof, found.best.theta), PATIENCE)
        total = proof.sum(axis=0)
        weights = total / total.sum() if total.any() else None
        return Proposal(found.best.theta, float((1 - found.gap) * found.best.upper[0]), weights, proof, constant)


class Tangent(NamedTuple):
    """S(g) ≥ constant + slope'g; ``highest`` are the rows of the cuts that bound g from below."""

    constant: float
    slope: Array
    highest: IntArray


class ScalarizedCuts:
    """S of the highest cuts as a machine with a single task: J(θ) = S(z(θ)), z_t the highest cut of task t.

    With η the gradient at any objectives u, J(θ) ≥ S(u) + η'(z(θ) − u), and z_t lies above every cut of its task.
    ``least`` (n_tasks,) keeps u positive where cuts are not.
    """

    n_tasks = 1
    promises = Promises()

    def __init__(self, problem: MultiTaskProblem, cuts: CutStore, least: Array) -> None:
        self.problem, self.cuts, self.least = problem, cuts, least
        self.n_kernels = cuts.slopes.shape[2]
        self.linear = np.maximum(cuts.linear, 0.0)  # as objectives are positive
        self.tangents: list[Tangent] = []

    def sweep(self, theta: Array, warm: Tangent | None = None, rtol: float = 0.0) -> Sweep:
        heights = np.where(self.cuts.live, self.linear - self.cuts.slopes @ theta, -np.inf)
        highest, everyone = heights.argmax(axis=0), np.arange(heights.shape[1])
        u = np.maximum(heights[highest, everyone], self.least)
        value, slope = self.problem.scalarization.value(u), self.problem.gradient(u)
        tangent = Tangent(value - float(slope @ u), slope, highest)
        self._check_convex(u, value)
        self.tangents.append(tangent)
        linear = np.array([tangent.constant + slope @ self.linear[highest, everyone]])
        forms = 2 * slope @ self.cuts.slopes[highest, everyone]
        return Sweep(theta, linear, forms[None], linear - 0.5 * forms @ theta, np.array([value]), tangent)

    def decisions(self, sweep: Sweep) -> Decisions:
        raise NotImplementedError("cuts have no functions")

    def _check_convex(self, u: Array, value: float) -> None:
        for constant, slope, _ in self.tangents:
            if constant + slope @ u - value > CONTRADICTION * (value + abs(constant)):
                name = type(self.problem.scalarization).__name__
                raise ValueError(f"{name} declares that it is convex, but lies below one of its tangents at {u}.")


def _shares(multipliers: Array) -> tuple[Array, Array]:
    """The sum of the multipliers of each task, and the share of each cut in it; zero if there is no sum."""
    total = multipliers.sum(axis=0)
    return total, np.divide(multipliers, total, out=np.zeros_like(multipliers), where=total > 0)


def without_crumbs(theta: Array, share: float) -> Array:
    """θ with its smallest weights set to zero, up to ``share`` of their sum: kernels of weight zero cost nothing."""
    order = np.argsort(theta)
    small = np.cumsum(theta[order]) <= share * theta.sum()
    return np.where(np.isin(np.arange(len(theta)), order[small]), 0.0, theta)


def _nothing_to_weigh(problem: MultiTaskProblem) -> bool:
    """Whether there is only one kernel, or one θ is best for all tasks, so that one sweep is enough."""
    n_kernels = problem.machine.n_kernels
    return n_kernels == 1 or problem.weight_set.greatest(n_kernels) is not None


def _one_point_serves_all(problem: MultiTaskProblem) -> bool:
    """Whether all p have the same solution, as with a single task."""
    return problem.machine.n_tasks == 1 or _nothing_to_weigh(problem)


# ------------------------------------------------------------------------------------------ few of many kernels
class Few(NamedTuple):
    """The state of a solution on few kernels, for the next p: which of the machine's kernels, and the pool of these."""

    machine: Machine
    which: IntArray
    pool: Pool


def chooses_kernels(problem: MultiTaskProblem) -> bool:
    """Whether to solve on few kernels: if most weights will be zero and forms of all kernels are most of the work."""
    promises = problem.machine.promises
    many = problem.weight_set.sparse and problem.machine.n_kernels >= MANY
    return many and promises.chooses and promises.nonnegative


def duals(machine: Machine, sweep: Sweep) -> Array:
    """The flat duals of a sweep."""
    return np.concatenate(machine.decisions(sweep).dual)


def solve_on_few(solver: CutPool, problem: MultiTaskProblem, init: Solution | None, run: Run) -> Solution:
    """Solve with some kernels, check all of them, add those that would be used, and repeat.

    The multipliers μ of the last master mix the duals of its cuts into one dual per task, which is feasible and whose
    forms are at most the mixed forms. So its bound holds over all θ and is at least as good as the master's: one
    evaluation of all forms certifies the result of many sweeps.
    """
    machine = cast(ChoosingMachine, problem.machine)
    n_before = run.n_sweeps
    carried = None if init is None else init.state
    if isinstance(carried, Few) and carried.machine is machine and carried.pool.weight_set == problem.weight_set:
        which, pool = carried.which, carried.pool.branch()
    else:
        theta, warm = solver.begin(problem, init)
        which = machine.steepest(run.sweep(machine, theta, warm, 1e-3).forms.sum(axis=0))
        pool = Pool(machine.with_kernels(which), problem.weight_set)
    gap, finest = solver.tol if len(pool) else FIRST_GAP, 0.5 * solver.tol
    while True:
        left = max(1, solver.max_iter - (run.n_sweeps - n_before))
        inner = replace(solver, tol=max(finest, SHARE * gap), max_iter=left)
        reached = inner.iterate(replace(problem, machine=pool.machine), pool, run)
        with run.timed("tasks"):
            lower, slope = bound_over_all(machine, pool, reached)
        gap = problem.gap_between(problem.value_and_bound(reached.best)[0], lower)
        missing = np.setdiff1d(np.flatnonzero(slope > slope[which].max()), which)
        stuck = finest < 0.01 * solver.tol or reached.exhausted
        run.note(problem.scalarization.p, gap)
        if gap <= solver.tol or run.n_sweeps - n_before >= solver.max_iter or (stuck and not len(missing)):
            break
        if not len(missing):  # no kernel is missing, but the problem on these few is not solved well enough yet
            finest, gap = 0.3 * min(finest, inner.tol), 0.0
            continue
        wider = np.union1d(which, machine.steepest(slope, missing))
        pool = pool.on_kernels(machine.with_kernels(wider), np.searchsorted(wider, which), reached.best)
        which = wider
    theta = np.zeros(machine.n_kernels)
    theta[which] = reached.best.theta
    best = replace(reached.best, theta=theta, forms=machine.forms(duals(pool.machine, reached.best)), rounding=None)
    n_sweeps, weights = run.n_sweeps - n_before, reached.master.task_weights
    return solver.solution(problem, best, gap, n_sweeps, weights, Few(machine, which, pool), reached.exhausted)


def bound_over_all(machine: ChoosingMachine, pool: Pool, reached: Reached) -> tuple[float, Array]:
    """The lower bound over all kernels from the multipliers of a master on few, and the slopes of all kernels.

    The constant cuts are valid only for the few kernels; here they count as J ≥ 0.
    """
    if reached.master.proof is None:
        return -np.inf, np.zeros(machine.n_kernels)
    proof = reached.master.proof[1:]
    total, share = _shares(proof)
    sizes = [len(dual) for dual in pool.machine.decisions(reached.best).dual]
    pairs = zip(share, pool.sweeps, strict=False)
    mixed = np.sum([np.repeat(row, sizes) * duals(pool.machine, sweep) for row, sweep in pairs], axis=0)
    slope = 0.5 * total @ machine.forms(mixed)
    linear = reached.master.constant + float((proof * pool.cuts.linear[1 : 1 + len(proof)]).sum())
    return linear - float(pool.weight_set.support(slope)), slope
