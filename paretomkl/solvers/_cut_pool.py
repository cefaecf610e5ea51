"""The cut pool: a whole Pareto path for about the price of one fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .._cuts import CutStore
from .._run import Run
from .._typing import Array
from ..problem import MultiTaskProblem
from ..protocols import Machine, Scalarization, WeightSet
from ..scalarizations import PowerMean
from ..solution import Solution
from ..sweep import Sweep
from ._base import BaseSolver
from ._master import minimize_over_cuts

WARM_UP = 3  # block-coordinate steps that fill an empty pool
PATIENCE = 6  # masters a cut may sit out before it is dropped
REWEIGHTINGS = 4  # of the master, for p < 1
LONGER, SHORTER, SHORTEST = 1.5, 0.5, 0.1  # stride to the master's point: after success, after failure, and at least
NEGLIGIBLE = 1e-25  # share of M_p below which a task is left out of the master


class Pool:
    """Every sweep made so far: cuts for the master, and candidates for the best θ.

    A cut belongs to a task, its data and C only, so one pool serves all p, all weight sets and all task weights.
    """

    def __init__(self, machine: Machine, weight_set: WeightSet) -> None:
        n_tasks, n_kernels = machine.n_tasks, machine.n_kernels
        self.machine, self.weight_set = machine, weight_set
        self.sweeps: list[Sweep] = []
        self.upper = np.empty((0, n_tasks))  # of J_t at the θ of each sweep
        self.cuts = CutStore(n_tasks, n_kernels)

    def __len__(self) -> int:
        return len(self.sweeps)

    def add(self, sweep: Sweep) -> None:
        self.sweeps.append(sweep)
        self.upper = np.vstack([self.upper, sweep.upper])
        self.cuts.add(sweep)
        self.raise_floor(sweep.linear, 0.5 * sweep.forms)

    def raise_floor(self, linear: Array, slopes: Array) -> None:
        """Raise the constant cuts, which keep the master's unknowns positive.

        J_t ≥ a − h(½G), whatever θ, h the support function. Where cα is feasible for 0 ≤ c ≤ 1 too,
        J_t ≥ max over c of c a − c² h(½G).
        """
        steepest = self.weight_set.support(slopes)
        scalable = getattr(self.machine, "scalable", True)
        scale = np.minimum(1.0, linear / np.maximum(2 * steepest, 1e-300)) if scalable else 1.0
        self.cuts.linear[0] = np.max(
            [self.cuts.linear[0], *np.atleast_2d(scale * linear - scale**2 * steepest)], axis=0
        )

    def moved(self, machine: Machine, weight_set: WeightSet, ratio: Array | float = 1.0) -> Pool:
        """The cuts of this pool for another set of weights; the points seen so far need not lie in it.

        The machine may be one of the same tasks whose kernels are ``ratio`` (n_kernels,) times as large: a kernel
        multiplied by c has a quadratic form, and a slope of every cut, c times as large. Where slopes are more than
        that, no cut is kept for other scales.
        """
        moved = Pool(machine, weight_set)
        if np.any(ratio != 1.0) and not getattr(machine, "scalable", True):
            return moved
        live = self.cuts.live
        live[0] = True
        cuts = moved.cuts = self.cuts.copy(np.flatnonzero(live.any(axis=1)))
        cuts.slopes *= ratio
        cuts.linear[0] = 0.0
        moved.raise_floor(cuts.linear[1:], cuts.slopes[1:])
        return moved

    def grown(self, factor: float, theta: Array, problem: MultiTaskProblem) -> Pool:
        """The cuts that this pool has for the same tasks with costs C that are ``factor`` ≥ 1 times as large.

        A cut holds for every larger C. Where C bounds the dual, cα is feasible there for 0 ≤ c ≤ factor; c makes the
        cut c a − ½ c² θ'G as high as can be at the given θ.
        The values J_t(θ) seen so far do not hold there: the new pool has no sweep.
        """
        grown = Pool(problem.machine, self.weight_set)
        live = self.cuts.live
        live[0] = True
        cuts = grown.cuts = self.cuts.copy(np.flatnonzero(live.any(axis=1)))
        if getattr(problem.machine, "homogeneous", False):
            steepness = 2 * cuts.slopes @ theta
            scale = np.clip(cuts.linear / np.maximum(steepness, 1e-300), 1.0, factor)
            scale[0] = 1.0
            cuts.linear, cuts.slopes = scale * cuts.linear, scale[:, :, None] ** 2 * cuts.slopes
        cuts.idle = np.minimum(cuts.idle, 0)
        return grown

    def best(self, scalarization: Scalarization) -> Sweep:
        """The sweep of least M_p."""
        return self.sweeps[int(scalarization.log_value(self.upper).argmin())]

    def has(self, theta: Array) -> bool:
        return any(np.abs(theta - sweep.theta).max() <= 1e-9 for sweep in self.sweeps)

    def minimize(
        self, scale: Array, omega: Array, p: float, start: Array, rtol: float, joint: bool = False, mark: bool = True
    ) -> tuple[Array, float, Array]:
        """θ of least M_p over the cuts, in units of ``scale``; its lower bound; the multipliers of the tasks.

        A task of negligible weight is left out, which only lowers the bound, since J_t > 0. ``joint`` puts all cuts
        into one group: the master of the maximum. A cut has a part in the master if its multiplier is not negligible or
        if it is the highest of its task at θ; ``mark`` notes that.
        """
        cuts = self.cuts
        present = cuts.live & (omega > NEGLIGIBLE)
        found = minimize_over_cuts(
            cuts.linear, cuts.slopes, present, scale, omega, p, self.weight_set, start, rtol, joint
        )
        if mark:
            cuts.note_use(found.used, PATIENCE, present)
        return found.theta, found.lower, found.task_weights


@dataclass
class Master:
    """θ that minimises M_p over the cuts, a rigorous lower bound, and at p = ∞ the multipliers of the tasks."""

    theta: Array
    lower: float
    task_weights: Array | None = None


@dataclass
class CutPool(BaseSolver):
    """Cutting planes shared by all tasks and all p; every p.

    The pool's cuts bound every J_t from below. A master problem minimises M_p of these bounds, the tasks are solved
    at its θ, and their cuts join the pool, until the best M_p(J(θ)) seen is within ``tol`` of the master's lower bound.
    For p < 1 the master is a weighted sum, re-weighted; its bound certifies Pareto optimality.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int, default=200
        Sweeps allowed for one p.
    report : callable, default=None
        Called after every sweep with p, the number of sweeps so far and the gap.
    borrow : float, default=0.1
        A point found for another p serves for this one if its gap is at most ``borrow * tol``. Small values give every
        p a point of its own; one is for those who want no more than the gap.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> from paretomkl.solvers import CutPool
    >>> path = pareto_path(*load_iris(return_X_y=True), ps=[1], solver=CutPool(tol=1e-4))
    >>> bool(path.gap[0] <= 1e-2)
    True
    """

    borrow: float = 0.1

    name: ClassVar[str] = "cut-pool"

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        run = run or Run(self.report)
        n_before = run.n_sweeps
        pool = self._pool(problem, init)
        if not len(pool):
            self._warm_up(problem, pool, init, run)
        gap = 1.0 if init is None else 10 * self.tol
        precision = 1.0
        master = None
        leader, stride = None, 1.0
        while True:
            best = pool.best(problem.scalarization)
            # the last bound of a convex mean is one of the mean itself and may certify the new point already
            serves = master is not None and problem.scalarization.convex
            if master is None or not serves or problem.relative_gap(best, master.lower) > self.tol:
                with run.timed("master"):
                    master = self._master(problem, pool, best, precision * max(0.1 * self.tol, 0.02 * gap))
            gap = problem.relative_gap(best, master.lower)
            n_sweeps = run.n_sweeps - n_before
            run.note(problem.scalarization.p, gap)
            # every mean of one number is that number: a point of one task serves all p
            enough = self.tol if n_sweeps or problem.machine.n_tasks == 1 else self.borrow * self.tol
            if gap <= enough or n_sweeps >= self.max_iter or precision < 1e-6:
                return self.solution(problem, best, gap, n_sweeps, master.task_weights, pool, precision < 1e-6)
            # Cutting planes overshoot where kernels are many: after a sweep that brought nothing better, go less far.
            stride = min(1.0, LONGER * stride) if best is not leader else max(SHORTEST, SHORTER * stride)
            leader = best
            theta = problem.weight_set.scale_to_boundary(best.theta + stride * (master.theta - best.theta))
            if pool.has(theta):  # nothing new to learn there at this accuracy
                precision *= 0.1
                theta = best.theta
            pool.add(run.sweep(problem.machine, theta, best.warm, precision * self.task_rtol))

    def grown(self, solution: Solution, problem: MultiTaskProblem, factor: float) -> Solution:
        """With the cuts of the smaller C, which hold for the larger one."""
        pool = solution.state.grown(factor, solution.theta, problem)
        return replace(super().grown(solution, problem, factor), state=pool)

    def rescaled(self, solution: Solution, problem: MultiTaskProblem, ratio: Array) -> Solution:
        """With all cuts, which hold for every scale of the kernels."""
        pool = solution.state.moved(problem.machine, problem.weight_set, ratio)
        return replace(super().rescaled(solution, problem, ratio), state=pool)

    def _pool(self, problem: MultiTaskProblem, init: Solution | None) -> Pool:
        """The pool of the solution to start from, if its cuts are those of this problem; else an empty one."""
        carried = None if init is None else init.state
        if not isinstance(carried, Pool) or carried.machine is not problem.machine:
            return Pool(problem.machine, problem.weight_set)
        same = carried.weight_set == problem.weight_set
        return carried if same else carried.moved(problem.machine, problem.weight_set)

    def _warm_up(self, problem: MultiTaskProblem, pool: Pool, init: Solution | None, run: Run) -> None:
        """A few steps of block-coordinate descent at p = 1 (cuts do not know p); where cuts were carried along, one.

        That one is made where these cuts have their least mean.
        """
        theta, warm = self.begin(problem, init)
        carried = init is not None and len(pool.cuts.linear) > 1
        if init is not None and carried:
            greatest = problem.weight_set.greatest(len(theta))
            everyone = np.ones(problem.machine.n_tasks)
            if greatest is None:
                unit = init.sweep.upper.mean()
                with run.timed("master"):
                    theta, _, _ = pool.minimize(unit * everyone, everyone / len(everyone), 1.0, theta, 0.01, mark=False)
                theta = problem.weight_set.scale_to_boundary(theta)
            else:
                theta = greatest
        for _ in range(1 if carried else WARM_UP):
            sweep = run.sweep(problem.machine, theta, warm, self.task_rtol)
            pool.add(sweep)
            run.note(problem.scalarization.p, problem.relative_gap(sweep))
            warm = sweep.warm
            theta = problem.weight_set.minimize_ratio(theta**2 * sweep.forms.sum(axis=0))

    def _master(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Master:
        scalarization = problem.scalarization
        greatest = problem.weight_set.greatest(problem.machine.n_kernels)
        if greatest is not None:  # nothing to weigh: the sweep there proves itself
            return Master(greatest, -np.inf)
        if problem.machine.n_tasks == 1:
            return self._master_of_mean(problem, pool, best, 1.0, rtol)
        if not scalarization.convex:
            return self._master_by_reweighting(problem, pool, best, rtol)
        if not isinstance(scalarization, PowerMean):
            raise TypeError(
                f"{type(scalarization).__name__} is convex; of those the cut pool solves power means only. Concave "
                "scalarizations of any kind will do."
            )
        if scalarization.p == np.inf:
            return self._master_of_maximum(problem, pool, best, rtol)
        return self._master_of_mean(problem, pool, best, scalarization.p, rtol)

    def _master_of_mean(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, p: float, rtol: float) -> Master:
        # In units of objectives u: M_p(z) = M_p(u) · (Σ ω'_t (z_t/u_t)^p)^(1/p) with ω'_t = ω_t (u_t/M_p(u))^p
        scale = np.maximum(best.upper, pool.sweeps[-1].upper)
        omega = problem.scalarization.gradient(scale) * scale
        unit = omega.sum()
        theta, lower, _ = pool.minimize(scale, omega / unit, p, best.theta, rtol)
        return Master(theta, lower * unit)

    def _master_of_maximum(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Master:
        unit = best.upper.max()
        everyone = np.ones(problem.machine.n_tasks)
        theta, lower, shares = pool.minimize(unit * everyone, everyone, 1.0, best.theta, rtol, joint=True)
        return Master(theta, lower * unit, shares / shares.sum())

    def _master_by_reweighting(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Master:
        # a concave mean lies below its tangent at z: the minimiser of Σ η_t(z) z_t lowers it
        scalarization = problem.scalarization
        omega = scalarization.gradient(best.upper) * best.upper
        unit = omega.sum()  # the weighted sum at the best point
        theta, lower, _ = pool.minimize(best.upper, omega / unit, 1.0, best.theta, rtol)
        value = np.inf
        # that bound is for the weights of the best point, its certificate; to go on, let the weights follow the cuts
        for _ in range(REWEIGHTINGS):
            if 1 - lower <= self.tol:
                break
            objectives = pool.cuts.heights(theta).max(axis=0)
            previous, value = value, float(scalarization.log_value(objectives))
            if previous - value <= rtol:
                break
            omega = scalarization.gradient(objectives) * best.upper
            theta, _, _ = pool.minimize(best.upper, omega / omega.sum(), 1.0, theta, rtol, mark=False)
        return Master(theta, lower * unit)
