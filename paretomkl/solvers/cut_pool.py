"""The cut pool: a whole Pareto path for about the price of one fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

import numpy as np

from .._cuts import CutStore
from .._typing import Array
from ..machines.svc import Sweep
from ..problem import MultiTaskProblem
from ..scalarizations import PowerMean
from ..solution import Solution
from ..weight_sets import LsBall
from ._master import minimize_over_cuts
from .base import Solver

WARM_UP = 3  # block-coordinate steps that fill an empty pool
PATIENCE = 6  # masters a cut may sit out before it is dropped
REWEIGHTINGS = 4  # of the master, for p < 1
LONGER, SHORTER, SHORTEST = 1.5, 0.5, 0.1  # stride to the master's point: after success, after failure, and at least
NEGLIGIBLE = 1e-25  # share of M_p below which a task is left out of the master


class Pool:
    """Every sweep made so far: cuts for the master, and candidates for the best θ.

    A cut belongs to a task, its data and C only, so one pool serves all p, all weight sets and all task weights.
    """

    def __init__(self, n_tasks: int, n_kernels: int) -> None:
        self.sweeps: list[Sweep] = []
        self.upper = np.empty((0, n_tasks))  # of J_t at the θ of each sweep
        self.cuts = CutStore(n_tasks, n_kernels)
        self.seconds = 0.0  # spent in the master

    def __len__(self) -> int:
        return len(self.sweeps)

    def add(self, sweep: Sweep, weight_set: LsBall) -> None:
        self.sweeps.append(sweep)
        self.upper = np.vstack([self.upper, sweep.upper])
        self.cuts.add(sweep)
        # The constant cuts keep the master's unknowns positive. cα is feasible for 0 ≤ c ≤ 1 too, so that J_t is at
        # least max over c of c a − c² h, where h is the largest ½ θ'G of all θ
        steepest = weight_set.support(0.5 * sweep.forms)
        scale = np.minimum(1.0, sweep.linear / np.maximum(2 * steepest, 1e-300))
        self.cuts.linear[0] = np.maximum(self.cuts.linear[0], scale * sweep.linear - scale**2 * steepest)

    def grown(self, factor: float, theta: Array) -> Pool:
        """The cuts that this pool has for the same tasks with bounds C that are ``factor`` ≥ 1 times as large.

        cα is feasible there for 0 ≤ c ≤ factor; c makes the cut c a − ½ c² θ'G as high as can be at the given θ.
        The values J_t(θ) seen so far do not hold there: the new pool has no sweep.
        """
        cuts, grown = self.cuts, Pool(self.upper.shape[1], self.cuts.slopes.shape[2])
        live = cuts.live
        live[0] = True
        kept = np.flatnonzero(live.any(axis=1))
        linear, slopes = cuts.linear[kept], cuts.slopes[kept]
        steepness = 2 * slopes @ theta
        scale = np.clip(linear / np.maximum(steepness, 1e-300), 1.0, factor)
        scale[0] = 1.0
        grown.cuts.linear, grown.cuts.slopes = scale * linear, scale[:, :, None] ** 2 * slopes
        grown.cuts.idle = np.where(cuts.idle[kept] < 0, -1, 0)
        return grown

    def best(self, scalarization: PowerMean) -> Sweep:
        """The sweep of least M_p."""
        return self.sweeps[int(scalarization.log_value(self.upper).argmin())]

    def has(self, theta: Array) -> bool:
        return any(np.abs(theta - sweep.theta).max() <= 1e-9 for sweep in self.sweeps)

    def minimize(
        self,
        scale: Array,
        omega: Array,
        p: float,
        weight_set: LsBall,
        start: Array,
        rtol: float,
        joint: bool = False,
        mark: bool = True,
    ) -> tuple[Array, float, Array]:
        """θ of least M_p over the cuts, in units of ``scale``; its lower bound; the multipliers of the tasks.

        A task of negligible weight is left out, which only lowers the bound, since J_t > 0. ``joint`` puts all cuts
        into one group: the master of the maximum. A cut has a part in the master if its multiplier is not negligible or
        if it is the highest of its task at θ; ``mark`` notes that.
        """
        present = self.cuts.live & (omega > NEGLIGIBLE)
        found = minimize_over_cuts(
            self.cuts.linear, self.cuts.slopes, present, scale, omega, p, weight_set, start, rtol, joint
        )
        if mark:
            self.cuts.note_use(found.used, PATIENCE, present)
        return found.theta, found.lower, found.task_weights


@dataclass
class Master:
    """θ that minimises M_p over the cuts, a rigorous lower bound, and at p = ∞ the multipliers of the tasks."""

    theta: Array
    lower: float
    task_weights: Array | None = None


@dataclass
class CutPool(Solver):
    """Cutting planes shared by all tasks and all p; every p.

    The pool's cuts bound every J_t from below. A master problem minimises M_p of these bounds, the tasks are solved
    at its θ, and their cuts join the pool, until the best M_p(J(θ)) seen is within ``tol`` of the master's lower bound.
    For p < 1 the master is a weighted sum, re-weighted; its bound certifies Pareto optimality.

    Parameters
    ----------
    tol, max_iter, report
        As in :class:`Solver`.
    borrow : float, default=0.1
        A point found for another p serves for this one if its gap is at most ``borrow * tol``. Small values give every
        p a point of its own; one is for those who want no more than the gap.
    """

    borrow: float = 0.1

    name: ClassVar[str] = "cut-pool"

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None) -> Solution:
        carried = init.state if init is not None else None
        pool = carried if isinstance(carried, Pool) else Pool(problem.tasks.n_tasks, problem.tasks.n_kernels)
        swept = problem.tasks.n_sweeps
        if not len(pool):
            self._warm_up(problem, pool, init)
        gap = 1.0 if init is None else 10 * self.tol
        precision = 1.0
        master = None
        leader, stride = None, 1.0
        while True:
            best = pool.best(problem.scalarization)
            # for p ≥ 1 the last bound is one of M_p itself and may certify the new point already
            if master is None or problem.scalarization.p < 1 or problem.relative_gap(best, master.lower) > self.tol:
                began = perf_counter()
                master = self._master(problem, pool, best, precision * max(0.1 * self.tol, 0.02 * gap))
                pool.seconds += perf_counter() - began
            gap = problem.relative_gap(best, master.lower)
            n_sweeps = problem.tasks.n_sweeps - swept
            self.told(problem, gap)
            # every mean of one number is that number: a point of one task serves all p
            enough = self.tol if n_sweeps or problem.tasks.n_tasks == 1 else self.borrow * self.tol
            if gap <= enough or n_sweeps >= self.max_iter or precision < 1e-6:
                return self.solution(problem, best, gap, n_sweeps, master.task_weights, state=pool)
            # Cutting planes overshoot where kernels are many: after a sweep that brought nothing better, go less far.
            stride = min(1.0, LONGER * stride) if best is not leader else max(SHORTEST, SHORTER * stride)
            leader = best
            theta = problem.weight_set.scale_to_boundary(best.theta + stride * (master.theta - best.theta))
            if pool.has(theta):  # nothing new to learn there at this accuracy
                precision *= 0.1
                theta = best.theta
            pool.add(problem.tasks.sweep(theta, best.dual, precision * self.task_rtol()), problem.weight_set)

    def grown(self, solution: Solution, factor: float, bounds: Array) -> Solution:
        """With the cuts of the smaller C, which hold for the larger one."""
        return replace(super().grown(solution, factor, bounds), state=solution.state.grown(factor, solution.theta))

    def _warm_up(self, problem: MultiTaskProblem, pool: Pool, init: Solution | None) -> None:
        """A few steps of block-coordinate descent at p = 1 (cuts do not know p)."""
        theta, dual = (problem.start(), None) if init is None else (init.theta, init.sweep.dual)
        for _ in range(1 if len(pool.cuts) else WARM_UP):  # cuts of a smaller C need no more than a first value
            sweep = problem.tasks.sweep(theta, dual, self.task_rtol())
            pool.add(sweep, problem.weight_set)
            self.told(problem, problem.relative_gap(sweep))
            dual = sweep.dual
            theta = problem.weight_set.minimize_ratio(theta**2 * sweep.forms.sum(axis=0))

    def _master(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Master:
        p = problem.scalarization.p
        greatest = problem.weight_set.greatest(problem.tasks.n_kernels)
        if greatest is not None:  # nothing to weigh: the sweep there proves itself
            return Master(greatest, -np.inf)
        if problem.tasks.n_tasks == 1:
            return self._master_of_mean(problem, pool, best, 1.0, rtol)
        if p == np.inf:
            return self._master_of_maximum(problem, pool, best, rtol)
        if p >= 1:
            return self._master_of_mean(problem, pool, best, p, rtol)
        return self._master_by_reweighting(problem, pool, best, rtol)

    def _master_of_mean(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, p: float, rtol: float) -> Master:
        # In units of objectives u: M_p(z) = M_p(u) · (Σ ω'_t (z_t/u_t)^p)^(1/p) with ω'_t = ω_t (u_t/M_p(u))^p
        scale = np.maximum(best.upper, pool.sweeps[-1].upper)
        omega = problem.scalarization.gradient(scale) * scale
        unit = omega.sum()
        theta, lower, _ = pool.minimize(scale, omega / unit, p, problem.weight_set, best.theta, rtol)
        return Master(theta, lower * unit)

    def _master_of_maximum(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Master:
        unit = best.upper.max()
        scale = np.full(problem.tasks.n_tasks, unit)
        everyone = np.ones(problem.tasks.n_tasks)
        theta, lower, shares = pool.minimize(scale, everyone, 1.0, problem.weight_set, best.theta, rtol, joint=True)
        return Master(theta, lower * unit, shares / shares.sum())

    def _master_by_reweighting(self, problem: MultiTaskProblem, pool: Pool, best: Sweep, rtol: float) -> Master:
        # M_p is concave for p < 1, so its tangent at z majorises it: the minimiser of Σ η_t(z) z_t lowers M_p
        scalarization, weight_set = problem.scalarization, problem.weight_set
        omega = scalarization.gradient(best.upper) * best.upper
        unit = omega.sum()  # M_p of the best point
        theta, lower, _ = pool.minimize(best.upper, omega / unit, 1.0, weight_set, best.theta, rtol)
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
            theta, _, _ = pool.minimize(best.upper, omega / omega.sum(), 1.0, weight_set, theta, rtol, mark=False)
        return Master(theta, lower * unit)
