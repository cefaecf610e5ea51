"""What all solvers share: parameters, the form of a solver, and how a solution is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._typing import Array
from ..machines.svc import Sweep
from ..problem import MultiTaskProblem
from ..solution import Solution

Report = Callable[[float, int, float], None]  # called with (p, sweeps of all p so far, gap)


@dataclass
class Solver:
    """A way to solve a MultiTaskProblem to a relative gap of ``tol``.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int
        Sweeps (for Tseng: steps) allowed for one p.
    report : callable, default=None
        Called after every sweep with p, the number of sweeps so far and the gap.
    """

    tol: float = 1e-3
    max_iter: int = 200
    report: Report | None = None

    name: ClassVar[str] = ""
    lowest_p: ClassVar[float] = -float("inf")
    highest_p: ClassVar[float] = float("inf")

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None) -> Solution:
        """Solve the problem, from the solution of another p where one is given."""
        raise NotImplementedError

    def grown(self, solution: Solution, factor: float, bounds: Array) -> Solution:
        """Where to start once the bounds C of the dual variables have grown by ``factor``, to ``bounds``."""
        sweep = solution.sweep
        dual = np.clip(factor * sweep.dual, -bounds, bounds)  # rounding may carry it beyond
        return replace(solution, sweep=replace(sweep, dual=dual), state=None)

    def task_rtol(self) -> float:
        """Accuracy of the single tasks: a fraction of the gap asked for, so that they hardly show in it."""
        return 0.02 * self.tol

    def told(self, problem: MultiTaskProblem, gap: float) -> None:
        if self.report is not None:
            self.report(problem.scalarization.p, problem.tasks.n_sweeps, gap)

    def solution(
        self,
        problem: MultiTaskProblem,
        sweep: Sweep,
        gap: float,
        n_sweeps: int,
        task_weights: Array | None = None,
        state: Any = None,
    ) -> Solution:
        scalarization = problem.scalarization
        converged = gap <= self.tol
        if not converged:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"{type(self).__name__} stopped at p={scalarization.p:g}, max_iter={self.max_iter}, "
                f"gap {gap:.1e} > tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if task_weights is None:
            task_weights = scalarization.task_weights(sweep.lower)
        return Solution(
            p=scalarization.p,
            theta=sweep.theta,
            objectives=sweep.lower,
            task_weights=task_weights,
            objective=scalarization.value(sweep.lower),
            gap=gap,
            n_sweeps=n_sweeps,
            converged=converged,
            sweep=sweep,
            state=state,
        )
