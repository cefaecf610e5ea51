"""What all solvers share: parameters, starting points, solutions, and the counters of a run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import ClassVar, Self, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._tools.typing import Array
from ..problem import MultiTaskProblem
from ..protocols import GrowingMachine, Machine, PathSolver, Scalarization, Solver, check_part
from ..scalarizations import PowerMean
from ..solution import RoundingWarning, Solution
from ..sweep import Sweep, check_sweep

Report = Callable[[float, int, float], None]  # called with p, the sweeps of the run so far, and the gap

TASK_SHARE = 0.02  # accuracy of the single tasks relative to tol, so that they hardly affect the gap


@dataclass
class Run:
    """Counters of one run over one machine.

    n_sweeps: passes over the tasks; seconds: where they went; history: (p, n_sweeps, gap) after each sweep.
    """

    report: Report | None = None
    n_sweeps: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"tasks": 0.0, "master": 0.0})
    history: list[tuple[float, int, float]] = field(default_factory=list)

    def sweep(self, machine: Machine, theta: Array, warm: object, rtol: float) -> Sweep:
        """Let the machine solve its tasks, and check what it returns."""
        with self.timed("tasks"):
            sweep = machine.sweep(theta, warm, rtol)
        self.n_sweeps += 1
        return check_sweep(sweep, machine)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = perf_counter()
        yield
        self.seconds[name] += perf_counter() - began

    def note(self, p: float, gap: float) -> None:
        self.history.append((p, self.n_sweeps, gap))
        if self.report is not None:
            self.report(p, self.n_sweeps, gap)


@dataclass
class BaseSolver:
    """Solves a MultiTaskProblem to a relative gap of ``tol``, in at most ``max_iter`` sweeps (for Tseng: steps) per p.

    ``report`` is called after every sweep with p, the number of sweeps so far and the gap.
    """

    tol: float = 1e-3
    max_iter: int = 200
    report: Report | None = None

    name: ClassVar[str] = ""
    lowest_p: ClassVar[float] = -float("inf")
    highest_p: ClassVar[float] = float("inf")

    @property
    def task_rtol(self) -> float:
        """Accuracy of the single tasks."""
        return TASK_SHARE * self.tol

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        """Solve the problem, starting from the solution ``init`` of another p if given; ``run`` counts the cost."""
        raise NotImplementedError

    def also_solved(
        self, problem: MultiTaskProblem, solution: Solution, mean: PowerMean, ps: Sequence[float]
    ) -> Mapping[float, Solution]:
        """Solutions for those exponents of ``mean`` that ``solution`` of this problem serves without further work."""
        return {}

    def for_scores(self) -> Self:
        """The solver to use if only the scores of its points matter, not that they form a smooth path."""
        return self

    def begin(self, problem: MultiTaskProblem, init: Solution | None) -> tuple[Array, object]:
        """θ and the warm start of the tasks.

        A solution for other tasks, another C or another weight set gives θ only: its duals may be infeasible here.
        """
        if init is None:
            return problem.start(), None
        theta = init.sweep.theta
        if theta.shape != (problem.machine.n_kernels,):
            raise ValueError(
                f"init has {theta.shape[-1]} kernel weights, but the problem has {problem.machine.n_kernels} kernels."
            )
        warm = init.sweep.warm if init.machine is problem.machine else None
        return problem.weight_set.scale_to_boundary(theta), warm

    def grown(self, solution: Solution, problem: MultiTaskProblem, factor: float) -> Solution:
        """A start for ``problem``, which differs from the problem of ``solution`` by a factor ≥ 1 of C only."""
        if not problem.machine.promises.grows:
            return replace(solution, state=None)
        machine = cast(GrowingMachine, problem.machine)
        sweep = replace(solution.sweep, warm=machine.grown_start(solution.sweep.warm, factor))
        return replace(solution, sweep=sweep, machine=machine, state=None)

    def rescaled(self, solution: Solution, problem: MultiTaskProblem, ratio: Array) -> Solution:
        """A start for ``problem``, which differs only in kernels that are ``ratio`` (n_kernels,) times as large.

        A ratio of zero leaves a kernel out.
        """
        theta = solution.sweep.theta
        sweep = replace(solution.sweep, theta=np.divide(theta, ratio, out=np.zeros_like(theta), where=ratio > 0))
        machine = problem.machine if problem.machine.promises.scales else None
        return replace(solution, sweep=sweep, machine=machine, state=None)

    def solution(
        self,
        problem: MultiTaskProblem,
        sweep: Sweep,
        gap: float,
        n_sweeps: int,
        task_weights: Array | None = None,
        state: object = None,
        exhausted: bool = False,
    ) -> Solution:
        """The solution of a sweep, with a warning if its gap is above ``tol``."""
        scalarization = problem.scalarization
        converged = gap <= self.tol
        if not converged and (exhausted or rounding_share(problem, sweep, self.tol) > self.tol):
            warnings.warn(rounding_warning(problem, sweep, gap, self.tol), stacklevel=4)
        elif not converged:
            where = f"{type(self).__name__} stopped at {_shown(scalarization)}, max_iter={self.max_iter}"
            warn_not_converged(where, gap, self.tol, "Raise max_iter or tol")
        if task_weights is None:
            task_weights = scalarization.task_weights(sweep.lower)
        objective = scalarization.value(sweep.lower)
        return Solution(
            scalarization.p, sweep, task_weights, objective, gap, n_sweeps, converged, problem.machine, state
        )


@dataclass
class ColdStarts(BaseSolver):
    """A plain :class:`~paretomkl.protocols.Solver` as a solver of paths: every point starts cold.

    Its sweeps are checked, and its gaps are those that its sweeps prove: certificates do not depend on who solved.
    """

    solver: Solver | None = None

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        run = run or Run(self.report)
        with run.timed("tasks"):
            found = cast(Solver, self.solver).solve(problem)
        run.n_sweeps += found.n_sweeps
        sweep = check_sweep(found.sweep, problem.machine)
        gap = problem.relative_gap(sweep)
        run.note(problem.scalarization.p, gap)
        if gap > self.tol:
            where = f"{type(self.solver).__name__} stopped at {_shown(problem.scalarization)}"
            warn_not_converged(where, gap, self.tol, "This gap is what its last sweep proves")
        return replace(found, gap=gap, converged=gap <= self.tol, machine=problem.machine, state=None)


def choose_solver(
    solvers: Mapping[str, type[BaseSolver]],
    solver: str | Solver,
    ps: Iterable[float],
    tol: float | None = None,
    max_iter: int | None = None,
) -> PathSolver:
    """A solver of paths from its name or from a solver object, after checking that it handles all exponents.

    A tolerance or limit that is None keeps the default of the named solver.
    """
    made: PathSolver
    if isinstance(solver, str) and solver in solvers:
        made = own = solvers[solver]()
        own.tol, own.max_iter = own.tol if tol is None else tol, own.max_iter if max_iter is None else max_iter
    elif isinstance(solver, PathSolver):
        made = solver
    elif hasattr(solver, "solve"):
        check_part(solver, Solver)
        plain = cast(Solver, solver)
        made = ColdStarts(tol=plain.tol, solver=plain)
    else:
        raise ValueError(f"solver must be one of {sorted(solvers)} or a solver object, got {solver!r}.")
    for p in ps:
        if p < made.lowest_p or p > made.highest_p:  # a scalarization without exponent has p = NaN
            where = f"p <= {made.highest_p:g}" if p > made.highest_p else f"p >= {made.lowest_p:g}"
            raise ValueError(f"solver={made.name!r} handles only {where}, got p={p:g}; use solver='auto'.")
    return made


def _shown(scalarization: Scalarization) -> str:
    """The exponent, or the name of a scalarization that has none."""
    return type(scalarization).__name__ if np.isnan(scalarization.p) else f"p={scalarization.p:g}"


def warn_not_converged(where: str, gap: float, tol: float, cure: str) -> None:
    warnings.warn(f"{where}, gap {gap:.1e} > tol={tol:g}. {cure}.", ConvergenceWarning, stacklevel=5)


def rounding_share(problem: MultiTaskProblem, sweep: Sweep, tol: float = 0.0) -> float:
    """The part of the relative gap that rounding accounts for, which no sweep can remove; zero if it is below tol."""
    support = problem.weight_set.support
    if sweep.rounding is None or not sweep.upper.any():  # unknown, or no task costs anything
        return 0.0
    if sweep.rounding.max() * support(np.ones(len(sweep.theta))) <= tol * sweep.upper.min():
        return 0.0
    eta = problem.scalarization.gradient(sweep.upper)
    forms, lost = eta @ sweep.forms, eta @ sweep.rounding
    missing = support(forms) - support(np.maximum(forms - lost, 0.0))
    return float(0.5 * (lost @ sweep.theta + missing) / problem.value_and_bound(sweep)[0])


def rounding_warning(problem: MultiTaskProblem, sweep: Sweep, gap: float, tol: float) -> RoundingWarning:
    """A warning that names the kernel with the largest rounding errors."""
    kernel = ""
    if sweep.rounding is not None and sweep.names is not None:
        kernel = sweep.names[int(np.argmax(problem.scalarization.gradient(sweep.upper) @ sweep.rounding))]
    culprit = f" Kernel {kernel} has the largest errors." if kernel else ""
    return RoundingWarning(
        f"Rounding allows no gap below {gap:.1e} > tol={tol:g}.{culprit} Subtract the offset of its columns or "
        "standardise them (or centre a precomputed matrix), reduce C, or raise tol.",
        kernel,
        rounding_share(problem, sweep),
    )
