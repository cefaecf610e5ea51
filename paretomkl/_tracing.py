"""From training data to a problem, and along p and C: what paths, estimators and searches share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ._bank import FittedBank
from ._kernels import KernelLike, as_bank
from ._model import TaskModel, make_models
from ._parallel import effective_jobs
from ._progress import Progress
from ._run import Run
from ._tasks import Task
from ._typing import AnyArray, Array, SolverLike
from ._validation import check_count, check_number
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
class Parts:
    """The parameters that do not depend on the data, checked: solver, s and the number of threads."""

    solver: Solver
    s: float
    n_jobs: int


def check_parts(
    ps: Sequence[float], s: float, tol: float, solver: SolverLike, max_iter: int | None, n_jobs: int | None
) -> Parts:
    check_number("s", s, lambda v: v >= 1, "at least 1")
    check_number("tol", tol, lambda v: 0 < v < 1, "between 0 and 1")
    if max_iter is not None:
        check_count("max_iter", max_iter)
    return Parts(make_solver(solver, ps, tol=tol, max_iter=max_iter), float(s), effective_jobs(n_jobs))


def fit_bank(kernels: KernelLike, training: Training) -> FittedBank:
    samples = training.samples
    return as_bank(kernels).fit(samples.data, samples.names, training.sample_weight)


def make_machine(
    bank: FittedBank, X: AnyArray, tasks: Sequence[Task], bounds: Sequence[Array], n_jobs: int = 1, shared: bool = True
) -> SVCTasks:
    """The SVMs of these tasks; ``bounds`` holds C for each sample of each task, ``shared`` as in GramBlocks."""
    gram = GramBlocks(bank, X, [task.rows for task in tasks], n_jobs, shared)
    gram.check_positive_semidefinite()
    return SVCTasks(gram, np.concatenate([task.signs for task in tasks]), np.concatenate(bounds))


def make_problem(
    training: Training, bounds: Sequence[Array], bank: FittedBank, parts: Parts, omega: Array | None = None
) -> MultiTaskProblem:
    """The problem at p = 1."""
    machine = make_machine(bank, training.samples.data, training.tasks, bounds, parts.n_jobs)
    return MultiTaskProblem(machine, PowerMean(1.0, omega), LsBall(parts.s))


def make_model(bank: FittedBank, training: Training, theta: Array, decisions: Decisions) -> TaskModel:
    """The fitted model of one θ."""
    return make_models(bank, training.samples.data, training.tasks, training.labelling, [theta], [decisions])[0]


def models_of(points: Sequence[Solution], training: Training) -> list[TaskModel]:
    """The fitted models of solutions of one problem; points with the same sweep share one."""
    machine = points[0].machine
    assert isinstance(machine, SVCTasks)
    distinct = {id(point.sweep): point.sweep for point in points}
    sweeps = list(distinct.values())
    made = make_models(
        machine.gram.bank,
        training.samples.data,
        training.tasks,
        training.labelling,
        [sweep.theta for sweep in sweeps],
        [machine.decisions(sweep) for sweep in sweeps],
    )
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


def trace_grid(
    problem: MultiTaskProblem, ps: Sequence[float], Cs: Sequence[float], solver: Any, progress: Progress
) -> Iterator[tuple[float, Run, list[Solution]]]:
    """The path for each C, from the smallest to the largest: what a dual says at one C it says at every larger one.

    The problem given is that of C = 1. Yields C, what its path has cost and the solutions in the order of ps.
    """
    machine: Any = problem.machine
    init, last = None, None
    for C in sorted(set(Cs)):
        here = replace(problem, machine=machine.with_bounds(C * machine.C))
        if init is not None and last is not None:
            init = solver.grown(init, here, C / last)
        run = Run(progress.report)
        points = trace(here, ps, solver, progress, init, run)
        yield C, run, points
        init, last = points[list(ps).index(walking_order(ps)[0])], C


def walking_order(ps: Sequence[float]) -> list[float]:
    """From the exponent nearest to one down to the smallest, then up to the largest: each starts near the last."""
    below = sorted({p for p in ps if p <= 1}, reverse=True)
    return below + sorted({p for p in ps if p > 1})
