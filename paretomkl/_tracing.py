"""From training data to a problem, and along p and C: what paths, estimators and searches share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._bank import FittedBank
from ._kernels import KernelLike, as_bank
from ._model import Fit, TaskModel, make_models
from ._parallel import effective_jobs
from ._progress import Progress
from ._run import Run
from ._tasks import Task
from ._typing import AnyArray, Array, SolverLike, TaskScale
from ._validation import check_count, check_number, check_task_scale
from .gram import GramBlocks
from .machines import SVCTasks
from .problem import MultiTaskProblem
from .protocols import Solver
from .scalarizations import PowerMean
from .solution import Solution
from .solvers import make_solver
from .sweep import Decisions
from .weight_sets import LsBall

if TYPE_CHECKING:
    from ._reading import Training


@dataclass(frozen=True)
class Grid:
    """Exponents, costs, capacities (None: the bank as it is) and norms to combine with each other.

    ``points`` are (C, capacity, p, s) in the order of scikit-learn's ParameterGrid.
    """

    ps: Sequence[float]
    Cs: Sequence[float]
    norms: Sequence[float]
    capacities: Sequence[float] | None = None

    @property
    def points(self) -> list[tuple[float, float | None, float, float]]:
        return list(product(self.Cs, self.capacities or (None,), self.ps, self.norms))

    @property
    def size(self) -> int:
        return len(self.points)

    def columns(self) -> dict[str, Array]:
        """The parameters of every point, one array of length ``size`` each; no capacity where there is none."""
        named = dict(zip(("C", "capacity", "p", "s"), np.array(self.points, dtype=float).T, strict=True))
        return named if self.capacities is not None else {k: v for k, v in named.items() if k != "capacity"}


class Stretch(NamedTuple):
    """A path at one C, capacity and norm: what it has cost, and the solutions in the order of the exponents."""

    C: float
    capacity: float | None
    s: float
    run: Run
    points: list[Solution]


@dataclass(frozen=True)
class Parts:
    """The parameters that do not depend on the data, checked: solver, s, the number of threads, task_scale."""

    solver: Solver
    s: float
    n_jobs: int
    task_scale: TaskScale = "none"


def check_parts(
    ps: Sequence[float],
    s: float,
    tol: float,
    solver: SolverLike,
    max_iter: int | None,
    n_jobs: int | None,
    task_scale: TaskScale = "none",
) -> Parts:
    check_number("s", s, lambda v: v >= 1, "at least 1")
    check_number("tol", tol, lambda v: 0 < v < 1, "between 0 and 1")
    if max_iter is not None:
        check_count("max_iter", max_iter)
    made = make_solver(solver, ps, tol=tol, max_iter=max_iter)
    return Parts(made, float(s), effective_jobs(n_jobs), check_task_scale(task_scale))


def fit_bank(kernels: KernelLike, training: Training) -> FittedBank:
    samples = training.samples
    groups = [(task.rows, weight) for task, weight in zip(training.tasks, training.weights, strict=True)]
    return as_bank(kernels).fit(samples.data, samples.names, training.sample_weight, groups)


def make_machine(
    bank: FittedBank,
    X: AnyArray,
    tasks: Sequence[Task],
    bounds: Sequence[Array],
    n_jobs: int = 1,
    shared: bool = True,
    scale: Array | None = None,
) -> SVCTasks:
    """The SVMs of these tasks; ``bounds`` holds C for each sample of each task, ``shared`` as in GramBlocks."""
    gram = GramBlocks(bank, X, [task.rows for task in tasks], n_jobs, shared)
    gram.check_positive_semidefinite()
    return SVCTasks(gram, np.concatenate([task.targets for task in tasks]), np.concatenate(bounds), scale)


def make_problem(
    training: Training, bounds: Sequence[Array], bank: FittedBank, parts: Parts, omega: Array | None = None
) -> MultiTaskProblem:
    """The problem at p = 1."""
    scale = 1 / training.task_sizes if parts.task_scale == "samples" else None
    machine = make_machine(bank, training.samples.data, training.tasks, bounds, parts.n_jobs, scale=scale)
    return MultiTaskProblem(machine, PowerMean(1.0, omega), LsBall(parts.s))


def make_model(bank: FittedBank, training: Training, theta: Array, decisions: Decisions) -> TaskModel:
    """The fitted model of one θ."""
    fit = Fit(bank, theta, decisions)
    return make_models(training.samples.data, training.tasks, training.labelling, [fit])[0]


def models_of(points: Sequence[Solution], training: Training) -> list[TaskModel]:
    """The fitted models of solutions for the same training data; points with the same sweep share one."""
    distinct: dict[int, Fit] = {}
    for point in points:
        if id(point.sweep) not in distinct:
            machine = point.machine
            assert isinstance(machine, SVCTasks)
            distinct[id(point.sweep)] = Fit(machine.gram.bank, point.theta, machine.decisions(point.sweep))
    made = make_models(training.samples.data, training.tasks, training.labelling, list(distinct.values()))
    model_of = dict(zip(distinct, made, strict=True))
    return [model_of[id(point.sweep)] for point in points]


def trace(
    problem: MultiTaskProblem,
    ps: Sequence[float],
    solver: Solver,
    progress: Progress,
    init: Solution | None = None,
    run: Run | None = None,
) -> list[Solution]:
    """Solve the problem for each p, each from the last one, and return the solutions in the order of ps."""
    run = run or Run(progress.report)
    omega = problem.scalarization.weights if isinstance(problem.scalarization, PowerMean) else None
    solutions: dict[float, Solution] = {}
    last = init
    for p in walking_order(ps):
        here = replace(problem, scalarization=PowerMean(p, omega))
        last = solutions[p] = solver.solve(here, last, run)
        progress.done()
    return [solutions[p] for p in ps]


def trace_grid(problem: MultiTaskProblem, grid: Grid, solver: Any, progress: Progress) -> Iterator[Stretch]:
    """The path for each C, capacity and s.

    The problem given is that of C = 1. C rises: what a dual says at one C it says at every larger one. Capacities and
    norms go back and forth, so that every path starts from its neighbour; they share duals and cuts, which hold for
    every s and every scale of the kernels.
    """
    machine: Any = problem.machine
    capacities = grid.capacities or (None,)
    turns = [(capacity, s) for k, capacity in enumerate(capacities) for s in grid.norms[:: 1 - 2 * (k % 2)]]
    last: Solution | None = None
    last_C = 0.0
    for k, C in enumerate(sorted(set(grid.Cs))):
        costly = machine.with_bounds(C * machine.C)
        at_capacity = {capacity: costly if capacity is None else costly.paying(capacity) for capacity in capacities}
        for capacity, s in turns if k % 2 == 0 else turns[::-1]:
            here = replace(problem, machine=at_capacity[capacity], weight_set=LsBall(s))
            run = Run(progress.report)
            init = None if last is None else _carried(last, here, solver, C / last_C)
            points = trace(here, grid.ps, solver, progress, init, run)
            last, last_C = points[list(grid.ps).index(walking_order(grid.ps)[0])], C
            yield Stretch(C, capacity, s, run, points)


def _carried(last: Solution, here: MultiTaskProblem, solver: Any, growth: float) -> Solution:
    """The solution of another C, capacity or norm as a start for this problem."""
    there: Any = last.machine
    if there is here.machine:
        return last
    if growth > 1:  # neighbours differ in C alone
        return solver.grown(last, here, growth)
    old, new = there.gram.bank.factor, here.machine.gram.bank.factor  # type: ignore[attr-defined]
    return solver.rescaled(last, here, np.divide(new, old, out=np.ones_like(new), where=old > 0))


def walking_order(ps: Sequence[float]) -> list[float]:
    """From the exponent nearest to one down to the smallest, then up to the largest: each starts near the last."""
    below = sorted({p for p in ps if p <= 1}, reverse=True)
    return below + sorted({p for p in ps if p > 1})
