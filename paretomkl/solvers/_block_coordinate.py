"""Block-coordinate descent, the paper's Algorithm 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..problem import MultiTaskProblem
from ..solution import Solution
from ._base import BaseSolver, Run, rounding_share


@dataclass
class BlockCoordinateDescent(BaseSolver):
    """Alternate between solving the tasks and updating task and kernel weights in closed form; p ≤ 1.

    With w_m = Σ_t η_t ‖f_m^t‖² and ‖f_m^t‖² = θ_m² G_m^t, the next θ minimises Σ_m w_m / θ_m. Every step decreases M_p,
    but contracts log θ only by 2/(1+s), which is slow for s near one.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int, default=2000
        Maximum number of sweeps per p.
    report : callable, default=None
        Called after every sweep with p, the number of sweeps so far and the gap.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> from paretomkl.solvers import BlockCoordinateDescent
    >>> path = pareto_path(*load_iris(return_X_y=True), ps=[0.5], solver=BlockCoordinateDescent(tol=1e-2))
    >>> bool(path.gap[0] <= 1e-2)
    True
    """

    max_iter: int = 2000

    name: ClassVar[str] = "bcd"
    highest_p: ClassVar[float] = 1.0

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        run = run or Run(self.report)
        theta, warm = self.begin(problem, init)
        n_sweeps = 0
        while True:
            sweep = run.sweep(problem.machine, theta, warm, self.task_rtol)
            n_sweeps += 1
            gap = problem.relative_gap(sweep)
            run.note(problem.scalarization.p, gap)
            if gap <= self.tol or n_sweeps >= self.max_iter or rounding_share(problem, sweep, self.tol) > self.tol:
                return self.solution(problem, sweep, gap, n_sweeps)
            weights = problem.scalarization.task_weights(sweep.lower)
            theta = problem.weight_set.minimize_ratio(theta**2 * (weights @ sweep.forms))
            warm = sweep.warm
