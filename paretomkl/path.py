"""The Pareto path: one solution for each exponent p, all from one pool of cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ._parallel import effective_jobs
from ._typing import AnyArray, Array
from ._validation import check_bounds, check_count, check_data, check_exponents, check_number, check_task_weight
from .gram import GramBlocks
from .kernels import FittedBank
from .machines.svc import SVCTasks
from .problem import MultiTaskProblem
from .progress import Progress
from .scalarizations import PowerMean
from .solution import Solution
from .solvers import Solver, make_solver
from .tasks import Task, make_tasks
from .weight_sets import LsBall

PAPER_PS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, np.inf)
"""The exponents of the paper's experiments."""


@dataclass(frozen=True)
class ParetoPath:
    """Solutions along p, one row for each.

    Attributes
    ----------
    ps : array of shape (n_points,)
        Exponents, in the order they were asked for.
    theta : array of shape (n_points, n_kernels)
        Kernel weights.
    objectives : array of shape (n_points, n_tasks)
        Task objectives J_t(θ).
    task_weights : array of shape (n_points, n_tasks)
        η_t ∝ ω_t J_t^(p−1), summing to one; at p = ∞ the multipliers of the min-max problem.
    objective : array of shape (n_points,)
        M_p(J(θ)).
    gap : array of shape (n_points,)
        Relative certificate, never below the truth: for p ≥ 1 the distance of M_p to its optimum, for p < 1 that of the
        sum weighted by η, which says how far the point can be from the Pareto front.
    n_sweeps : int
        Passes over the tasks that the whole path took.
    kernel_names, task_names : lists of str
    solutions : list of Solution
        The same by point, with dual variables and intercepts.
    seconds : dict
        Where the time went: ``"total"``, ``"tasks"`` and ``"master"``.
    history : list of (p, n_sweeps, gap)
        What the solver reported after each sweep, in the order it visited the exponents; n_sweeps counts from the start
        of the path.
    tol : float
        The relative gap that was asked for.
    refit : str
        Python code that fits one point of the path, with ``{p}`` for its exponent.
    """

    ps: Array
    theta: Array
    objectives: Array
    task_weights: Array
    objective: Array
    gap: Array
    n_sweeps: int
    kernel_names: list[str]
    task_names: list[str]
    solutions: list[Solution]
    seconds: dict[str, float]
    tasks: list[Task]
    bank: FittedBank
    history: list[tuple[float, int, float]]
    tol: float
    refit: str = ""

    def __len__(self) -> int:
        return len(self.ps)

    def __repr__(self) -> str:
        points, tasks, kernels = len(self), len(self.task_names), len(self.kernel_names)
        return (
            f"ParetoPath({points} points, {tasks} tasks, {kernels} kernels, {self.n_sweeps} sweeps, "
            f"largest gap {self.gap.max():.1e})"
        )

    def _repr_html_(self) -> str:
        from .report.notebook import path_html

        return path_html(self)

    def to_html(self, file: str | PathLike[str], **options: Any) -> Path:
        """Write a page with a slider over p that shows the trade-off; needs no network to be read.

        ``options`` are those of :func:`paretomkl.report.build_page`: held-out accuracies, cross-validation, title.
        :func:`paretomkl.report.trade_off_page` computes them all from the data.
        """
        from .report import write_page

        return write_page(file, self, **options)


def pareto_path(
    X: Any,
    y: Any,
    tasks: Any = None,
    ps: Sequence[float] = PAPER_PS,
    s: float = 1.1,
    C: float | Array = 1.0,
    kernels: Any = "default",
    solver: str | Solver = "auto",
    tol: float = 1e-3,
    *,
    task_weight: Any = None,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
) -> ParetoPath:
    """Minimise the power mean of the task objectives for each exponent p.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ)),      M_p(g) = (Σ_t ω_t g_t^p)^(1/p)

    with J_t(θ) the optimum of SVM task t under the kernel Σ_m θ_m K_m. p = 1 is the average of the tasks, p < 1 lets
    easy tasks speak, p = ∞ protects the worst one; every finite p gives a Pareto-optimal point.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Samples; with ``kernels="precomputed"`` a stack of Gram matrices of shape (n_samples, n_samples, n_kernels).
    y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        Labels. Two classes are one task, more are one task for each pair. A matrix has one task per column, with
        NaN for "not labelled".
    tasks : array-like of shape (n_samples,), default=None
        The task each sample belongs to.
    ps : sequence of float, default=PAPER_PS
        Exponents in any order; any real number or ±inf.
    s : float, default=1.1
        Norm of the kernel weights, 1 ≤ s ≤ ∞: 1 is sparse, larger spreads the weight.
    C : float or array-like of shape (n_samples,), default=1.0
        Upper bound of the dual variables, for all samples or for each.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        See :class:`KernelBank`.
    solver : {"auto", "bcd", "tseng"}, default="auto"
        ``"auto"`` is the cut pool, for every p; ``"bcd"`` (p ≤ 1) and ``"tseng"`` (p ≥ 1) are the paper's algorithms.
        A solver object is taken as it is, with its own ``tol`` and ``max_iter``.
    tol : float, default=1e-3
        Relative gap to reach at every p.
    task_weight : mapping from task name to weight, or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks, scaled to sum to one; a task that a mapping does not name has weight one.
    max_iter : int, default=None
        Sweeps (steps of ``"tseng"``) allowed for one p; None is the solver's own default.
    n_jobs : int, default=None
        Threads; None is one, -1 all cores.
    verbose : int, default=None
        0 is silent, 1 shows progress; None shows progress on a terminal once two seconds have passed.

    Returns
    -------
    path : ParetoPath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = pareto_path(X, y, ps=[0.1, 1.0])
    >>> path.theta.shape, path.objectives.shape
    ((2, 11), (2, 3))
    """
    began = perf_counter()
    exponents = check_exponents(ps)
    check_number("s", s, lambda v: v >= 1, "at least 1")
    check_number("tol", tol, lambda v: 0 < v < 1, "between 0 and 1")
    parameters: dict[str, Any] = {"tol": tol}
    if max_iter is not None:
        check_count("max_iter", max_iter)
        parameters["max_iter"] = max_iter
    made_solver = make_solver(solver, exponents, **parameters)
    threads = effective_jobs(n_jobs)
    bank, data = check_data(X, kernels)
    made_tasks = make_tasks(y, tasks)
    n_labels = len(np.asarray(y))
    if len(data) != n_labels:
        raise ValueError(f"X and y must have one row per sample: X has {len(data)}, y has {n_labels}.")
    bound = check_bounds(C, len(data), made_tasks)
    omega = check_task_weight(task_weight, made_tasks)
    problem = make_problem(bank, data, made_tasks, [bound[task.rows] for task in made_tasks], s, omega, threads)
    with Progress(len(exponents), made_solver.tol, verbose) as progress:
        points = trace(problem, exponents, made_solver, progress)
    path = gather(points, problem, made_tasks, progress, made_solver.tol, perf_counter() - began)
    from .report.refit import refit_code  # here: reports are made of paths

    code = refit_code(
        s=s, C=C, tol=made_solver.tol, tasks=tasks is not None, kernels=kernels, task_weight=task_weight, solver=solver
    )
    return replace(path, refit=code)


def gather(
    points: list[Solution],
    problem: MultiTaskProblem,
    tasks: list[Task],
    progress: Progress,
    tol: float,
    seconds: float,
) -> ParetoPath:
    """The solutions of one problem along p as arrays."""
    bank = problem.tasks.gram.bank
    return ParetoPath(
        ps=np.array([point.p for point in points]),
        theta=np.array([point.theta for point in points]),
        objectives=np.array([point.objectives for point in points]),
        task_weights=np.array([point.task_weights for point in points]),
        objective=np.array([point.objective for point in points]),
        gap=np.array([point.gap for point in points]),
        n_sweeps=problem.tasks.n_sweeps,
        kernel_names=bank.names,
        task_names=[task.name for task in tasks],
        solutions=points,
        seconds={
            "total": seconds,
            "tasks": problem.tasks.seconds,
            "master": getattr(points[0].state, "seconds", 0.0),
        },
        tasks=tasks,
        bank=bank,
        history=progress.history,
        tol=tol,
    )


def make_problem(
    bank: FittedBank,
    data: AnyArray,
    tasks: list[Task],
    bounds: list[Array],
    s: float,
    omega: Array | None = None,
    n_jobs: int = 1,
) -> MultiTaskProblem:
    """The problem at p = 1; ``bounds`` holds C for each sample of each task."""
    gram = GramBlocks(bank, data, [task.rows for task in tasks], n_jobs)
    gram.check_positive_semidefinite()
    machine = SVCTasks(gram, np.concatenate([task.signs for task in tasks]), np.concatenate(bounds))
    return MultiTaskProblem(machine, PowerMean(1.0, omega), LsBall(float(s)))


def trace(
    problem: MultiTaskProblem,
    ps: Sequence[float],
    solver: Solver,
    progress: Progress,
    init: Solution | None = None,
) -> list[Solution]:
    """Solve the problem for each p, each from the last one, and return the solutions in the order of ps."""
    solver = replace(solver, report=progress.report)
    solutions: dict[float, Solution] = {}
    last = init
    for p in walking_order(ps):
        scalarization = PowerMean(p, problem.scalarization.weights)
        last = solutions[p] = solver.solve(replace(problem, scalarization=scalarization), init=last)
        progress.done()
    return [solutions[p] for p in ps]


def trace_grid(
    problem: MultiTaskProblem, ps: Sequence[float], Cs: Sequence[float], solver: Solver, progress: Progress
) -> Iterator[tuple[float, MultiTaskProblem, list[Solution]]]:
    """The path for each C, from the smallest to the largest: what a dual says at one C it says at every larger one.

    The problem given is that of C = 1. Yields C, its problem and the solutions in the order of ps.
    """
    unit = problem.tasks.C
    init, last = None, None
    for C in sorted(set(Cs)):
        here = replace(problem, tasks=problem.tasks.with_bounds(C * unit))
        if init is not None and last is not None:
            init = solver.grown(init, C / last, here.tasks.C)
        points = trace(here, ps, solver, progress, init)
        yield C, here, points
        init, last = points[list(ps).index(walking_order(ps)[0])], C


def walking_order(ps: Sequence[float]) -> list[float]:
    """From the exponent nearest to one down to the smallest, then up to the largest: each starts near the last."""
    below = sorted({p for p in ps if p <= 1}, reverse=True)
    return below + sorted({p for p in ps if p > 1})
