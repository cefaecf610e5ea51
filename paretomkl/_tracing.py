"""Build problems from training data and trace them along p and C, for paths, estimators and searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._bank import FittedBank
from ._coupled import CoupledBank, CoupledGram
from ._kernels import KernelLike, as_bank
from ._model import Fit, TaskModel, make_models
from ._parallel import effective_jobs
from ._progress import Progress
from ._run import Run
from ._tasks import Task
from ._typing import AnyArray, Array, SolverLike, TaskScale
from ._validation import check_count, check_number, check_task_scale, shown
from .gram import GramBlocks
from .machines import MACHINES, KernelTasks, SVCTasks
from .problem import MultiTaskProblem
from .protocols import Solver
from .scalarizations import PowerMean
from .solution import Solution
from .solvers import BaseSolver, make_solver
from .sweep import Decisions, Sweep
from .weight_sets import LsBall

if TYPE_CHECKING:
    from ._reading import Training


class Point(NamedTuple):
    """A point of a grid; a parameter that its kernels or its machine do not have is None."""

    C: float
    capacity: float | None
    epsilon: float | None
    p: float
    s: float


@dataclass(frozen=True)
class Grid:
    """Exponents, costs, norms, capacities (None: keep the bank's) and ε of SVR to combine.

    ``points`` has the order of scikit-learn's ParameterGrid.
    """

    ps: Sequence[float]
    Cs: Sequence[float]
    norms: Sequence[float]
    capacities: Sequence[float] | None = None
    epsilons: Sequence[float] | None = None

    @property
    def points(self) -> list[Point]:
        choices = self.Cs, self.capacities or (None,), self.epsilons or (None,), self.ps, self.norms
        return [Point(*values) for values in product(*choices)]

    @property
    def size(self) -> int:
        return len(self.points)

    def columns(self) -> dict[str, Array]:
        """The parameters that the points have, one array of length ``size`` each."""
        named = dict(zip(Point._fields, np.array(self.points, dtype=float).T, strict=True))
        absent = {"capacity": self.capacities is None, "epsilon": self.epsilons is None}
        return {name: values for name, values in named.items() if not absent.get(name)}


class Stretch(NamedTuple):
    """A path at one C, capacity, ε and norm: its run, and the solutions in the order of the exponents."""

    C: float
    capacity: float | None
    epsilon: float | None
    s: float
    run: Run
    points: list[Solution]

    def at(self, p: float) -> Point:
        return Point(self.C, self.capacity, self.epsilon, p, self.s)


@dataclass(frozen=True)
class Parts:
    """The checked parameters that do not depend on the data.

    ``make`` builds the machine from Gram store, targets, costs and scale.
    """

    solver: Solver
    s: float
    n_jobs: int
    task_scale: TaskScale = "none"
    make: Callable[..., KernelTasks] = SVCTasks

    @property
    def shift_invariant(self) -> bool:
        made: Any = self.make.func if isinstance(self.make, partial) else self.make
        return made.shift_invariant


def check_parts(
    ps: Sequence[float],
    s: float,
    tol: float,
    solver: SolverLike,
    max_iter: int | None,
    n_jobs: int | None,
    task_scale: TaskScale = "none",
    machine: str = "svc",
    epsilon: float = 0.1,
) -> Parts:
    check_number("s", s, lambda v: v >= 1, "at least 1")
    check_number("tol", tol, lambda v: 0 < v < 1, "between 0 and 1")
    if max_iter is not None:
        check_count("max_iter", max_iter)
    made = make_solver(solver, ps, tol=tol, max_iter=max_iter)
    if not isinstance(machine, str) or machine not in MACHINES:
        raise ValueError(f"machine must be one of {list(MACHINES)}, got {shown(machine)}.")
    if machine != "svc" and getattr(made, "name", "") == "tseng":
        raise ValueError(f"solver='tseng' needs machine='svc', got {machine!r}; use solver='auto'.")
    make: Callable[..., KernelTasks] = MACHINES[machine]
    check_number("epsilon", epsilon, lambda v: 0 <= v < np.inf, "of at least 0")
    if machine == "svr":
        make = partial(make, epsilon=float(epsilon))
    on_simplex = machine == "svdd"  # otherwise its objective would go to zero with the weights
    return Parts(made, 1.0 if on_simplex else float(s), effective_jobs(n_jobs), check_task_scale(task_scale), make)


def fit_bank(kernels: KernelLike, training: Training, shift_invariant: bool = True) -> Any:
    """Fit the bank to the samples, for shift-invariant machines or any; a CoupledBank if they have codes of tasks."""
    bank = _fitted(kernels, training)
    return bank.for_shift_invariant() if shift_invariant else bank


def _fitted(kernels: KernelLike, training: Training) -> Any:
    samples, bank = training.samples, as_bank(kernels)
    if training.remote:
        return training.fit_bank(bank)  # type: ignore[attr-defined]
    groups = [(task.rows, weight) for task, weight in zip(training.tasks, training.weights, strict=True)]
    if all(np.array_equal(rows, groups[0][0]) and np.array_equal(w, groups[0][1]) for rows, w in groups[1:]):
        groups = groups[:1]  # all tasks have the same samples: measure the kernels once
    if training.together is None or not training.together.coded:
        return bank.fit(samples.data, samples.names, training.sample_weight, groups)
    base = bank.fit(samples.data[:, :-1], samples.names, training.sample_weight, groups)
    return CoupledBank(base, samples.data, groups, bank.capacity)


def make_machine(
    bank: Any,
    X: AnyArray,
    tasks: Sequence[Task],
    bounds: Sequence[Array],
    n_jobs: int = 1,
    shared: bool = True,
    scale: Array | None = None,
    make: Callable[..., KernelTasks] = SVCTasks,
) -> Any:
    """The machine of these tasks; ``bounds`` holds C for each sample of each task, ``shared`` is as in GramBlocks."""
    rows = [task.rows for task in tasks]
    coupled = isinstance(bank, CoupledBank)
    gram: Any = CoupledGram(bank, X, rows, n_jobs) if coupled else GramBlocks(bank, X, rows, n_jobs, shared)
    gram.check_positive_semidefinite()
    return make(gram, np.concatenate([task.targets for task in tasks]), np.concatenate(bounds), scale)


def make_problem(
    training: Training, bounds: Sequence[Array], bank: Any, parts: Parts, omega: Array | None = None
) -> MultiTaskProblem:
    """The problem at p = 1."""
    if training.remote:
        remote: Any = training
        return MultiTaskProblem(remote.machine(bank, bounds, parts), PowerMean(1.0, omega), LsBall(parts.s))
    scale = 1 / training.task_sizes if parts.task_scale == "samples" else None
    data, tasks = training.samples.data, training.tasks
    machine = make_machine(bank, data, tasks, bounds, parts.n_jobs, scale=scale, make=parts.make)
    return MultiTaskProblem(machine, PowerMean(1.0, omega), LsBall(parts.s))


def make_model(bank: FittedBank, training: Training, theta: Array, decisions: Decisions) -> TaskModel:
    """The fitted model of one θ."""
    fit = Fit(bank, theta, decisions)
    return make_models(training.samples.data, training.tasks, training.labelling, [fit])[0]


def models_of(points: Sequence[Solution], training: Training) -> list[TaskModel]:
    """The fitted models of solutions for the same training data; points with the same sweep share a model."""
    if training.remote:
        return training.models(points)  # type: ignore[attr-defined]
    distinct: dict[int, Fit] = {}
    for point in points:
        if id(point.sweep) not in distinct:
            machine: Any = point.machine
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
    """Solve the problem for each p, starting from the previous solution; returns the solutions in the order of ps."""
    run = run or Run(progress.report)
    omega = problem.scalarization.weights if isinstance(problem.scalarization, PowerMean) else None
    solutions: dict[float, Solution] = {}
    last = init
    waiting = walking_order(ps)
    while waiting:
        here = replace(problem, scalarization=PowerMean(waiting[0], omega))
        last = solutions[waiting[0]] = solver.solve(here, last, run)
        also = solver.also_solved(here, last, waiting[1:]) if isinstance(solver, BaseSolver) else {}
        for p, solution in also.items():
            solutions[p] = solution
            run.note(p, solution.gap)
        left = [p for p in waiting if p not in solutions]
        progress.done(len(waiting) - len(left))
        waiting = left
    return [solutions[p] for p in ps]


def solve_apart(
    alone: Sequence[Training],
    C: float,
    kernels: KernelLike,
    parts: Parts,
    omega: Array | None,
    progress: Progress,
    run: Run,
) -> tuple[Solution, list[TaskModel]]:
    """Solve tasks that share nothing, each with its own bank and kernel weights; returns one solution and all models.

    It minimises Σ_t ω_t J_t(θ_t) for every ω > 0, so p has no effect. The relative gap of the sum is at most the
    largest gap of its parts.
    """
    counts = [len(own.tasks) for own in alone]
    omega = np.full(sum(counts), 1 / sum(counts)) if omega is None else omega
    solutions, models = [], []
    for own, weight in zip(alone, np.split(omega, np.cumsum(counts)[:-1]), strict=True):
        problem = make_problem(
            own, own.bounds(C), fit_bank(kernels, own, parts.shift_invariant), parts, weight / weight.sum()
        )
        points = trace(problem, [1.0], parts.solver, progress, run=run)
        solutions += points
        models += models_of(points, own)
    sweeps = [solution.sweep for solution in solutions]
    theta = np.concatenate([np.tile(sweep.theta, (count, 1)) for sweep, count in zip(sweeps, counts, strict=True)])
    values = (
        np.concatenate([getattr(sweep, name) for sweep in sweeps]) for name in ("linear", "forms", "lower", "upper")
    )
    whole = Sweep(theta, *values)
    gap, n_sweeps = (max(getattr(solution, name) for solution in solutions) for name in ("gap", "n_sweeps"))
    converged = all(solution.converged for solution in solutions)
    return Solution(1.0, whole, omega, float(omega @ whole.lower), gap, n_sweeps, converged), models


def trace_grid(problem: MultiTaskProblem, grid: Grid, solver: Any, progress: Progress) -> Iterator[Stretch]:
    """The path for each C, capacity, ε and s.

    The given problem has C = 1. C increases, because a cut at one C is valid at every larger one. Capacities and norms
    go back and forth, so that every path starts from its neighbour; they share duals and cuts, which are valid for
    every s and every scale of the kernels.
    """
    for epsilon in grid.epsilons or (None,):
        machine: Any = problem.machine
        there = problem if epsilon is None else replace(problem, machine=machine.with_epsilon(epsilon))
        yield from _trace_costs(there, grid, epsilon, solver, progress)


def _trace_costs(
    problem: MultiTaskProblem, grid: Grid, epsilon: float | None, solver: Any, progress: Progress
) -> Iterator[Stretch]:
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
            yield Stretch(C, capacity, epsilon, s, run, points)


def _carried(last: Solution, here: MultiTaskProblem, solver: Any, growth: float) -> Solution:
    """The solution for another C, capacity or norm as a start for this problem."""
    there: Any = last.machine
    if there is here.machine:
        return last
    if growth > 1:  # neighbours differ only in C
        return solver.grown(last, here, growth)
    old, new = there.gram.bank.factor, here.machine.gram.bank.factor  # type: ignore[attr-defined]
    return solver.rescaled(last, here, np.divide(new, old, out=np.ones_like(new), where=old > 0))


def walking_order(ps: Sequence[float]) -> list[float]:
    """Exponents from the largest p ≤ 1 down, then from the smallest p > 1 up, so that each starts near the last."""
    below = sorted({p for p in ps if p <= 1}, reverse=True)
    return below + sorted({p for p in ps if p > 1})
