"""The Pareto path: one solution for each exponent p, all from one pool of cuts."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from ._parallel import effective_jobs
from ._typing import AnyArray, Array
from .gram import GramBlocks
from .kernels import FittedBank, as_bank
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

    def __len__(self) -> int:
        return len(self.ps)

    def __repr__(self) -> str:
        points, tasks, kernels = len(self), len(self.task_names), len(self.kernel_names)
        return (
            f"ParetoPath({points} points, {tasks} tasks, {kernels} kernels, {self.n_sweeps} sweeps, "
            f"largest gap {self.gap.max():.1e})"
        )


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
    tol : float, default=1e-3
        Relative gap to reach at every p.
    task_weight : mapping from task name to weight, or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks, scaled to sum to one.
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
    exponents = _check_exponents(ps)
    _check_number("s", s, lambda v: v >= 1, "at least 1")
    _check_number("tol", tol, lambda v: 0 < v < 1, "between 0 and 1")
    parameters = {"tol": tol} if max_iter is None else {"tol": tol, "max_iter": max_iter}
    made_solver = make_solver(solver, exponents, **parameters)
    threads = effective_jobs(n_jobs)
    bank, data = _check_data(X, kernels)
    made_tasks = make_tasks(y, tasks)
    n_labels = len(np.asarray(y))
    if len(data) != n_labels:
        raise ValueError(f"X and y must have one row per sample: X has {len(data)}, y has {n_labels}.")
    bound = _check_bounds(C, len(data), made_tasks)
    omega = _check_task_weight(task_weight, made_tasks)
    weight_set = LsBall(float(s))

    rows = [task.rows for task in made_tasks]
    gram = GramBlocks(bank, data, rows, threads)
    gram.check_positive_semidefinite()
    machine = SVCTasks(
        gram,
        np.concatenate([task.signs for task in made_tasks]),
        np.concatenate([bound[r] for r in rows]),
    )
    problem = MultiTaskProblem(machine, PowerMean(1.0, omega), weight_set)
    solutions: dict[float, Solution] = {}
    with Progress(len(exponents), tol, verbose) as progress:
        made_solver = replace(made_solver, report=progress.report)
        last = None
        for p in walking_order(exponents):
            last = made_solver.solve(replace(problem, scalarization=PowerMean(p, omega)), init=last)
            solutions[p] = last
            progress.done(p)
    points = [solutions[p] for p in exponents]
    pool = last.state if last is not None else None
    return ParetoPath(
        ps=np.array(exponents),
        theta=np.array([point.theta for point in points]),
        objectives=np.array([point.objectives for point in points]),
        task_weights=np.array([point.task_weights for point in points]),
        objective=np.array([point.objective for point in points]),
        gap=np.array([point.gap for point in points]),
        n_sweeps=machine.n_sweeps,
        kernel_names=bank.names,
        task_names=[task.name for task in made_tasks],
        solutions=points,
        seconds={
            "total": perf_counter() - began,
            "tasks": machine.seconds,
            "master": getattr(pool, "seconds", 0.0),
        },
        tasks=made_tasks,
        bank=bank,
    )


def walking_order(ps: Sequence[float]) -> list[float]:
    """From the exponent nearest to one down to the smallest, then up to the largest: each starts near the last."""
    below = sorted({p for p in ps if p <= 1}, reverse=True)
    return below + sorted({p for p in ps if p > 1})


def _check_exponents(ps: Any) -> list[float]:
    if isinstance(ps, numbers.Real):
        ps = [ps]
    exponents = []
    for p in ps:
        if not isinstance(p, numbers.Real) or np.isnan(float(p)):
            raise ValueError(f"p must be a real number or ±inf, got {p!r}.")
        exponents.append(float(p))
    if not exponents:
        raise ValueError("ps is empty; give at least one exponent.")
    return exponents


def _check_number(name: str, value: Any, valid: Any, wanted: str) -> None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not valid(value):
        raise ValueError(f"{name} must be a number {wanted}, got {name}={value!r}.")


def _check_data(X: Any, kernels: Any) -> tuple[FittedBank, AnyArray]:
    bank = as_bank(kernels)
    if isinstance(bank.kernels, str) and bank.kernels == "precomputed":
        stack = np.asarray(X)
        if stack.ndim != 3 or stack.shape[0] != stack.shape[1] or stack.shape[2] == 0:
            raise ValueError(
                f"kernels='precomputed' needs X of shape (n_samples, n_samples, n_kernels), got shape {stack.shape}."
            )
        stack = np.asarray(stack, dtype=np.float64)
        for m in range(stack.shape[2]):
            K = stack[:, :, m]
            if not np.isfinite(K).all():
                raise ValueError(f"Kernel {m} of the precomputed stack has NaN or infinite entries.")
            if not np.allclose(K, K.T, rtol=1e-6, atol=1e-8 * np.abs(K).max()):
                raise ValueError(f"Kernel {m} of the precomputed stack is not symmetric.")
        return bank.fit(stack), stack
    from sklearn.utils.validation import check_array  # here: scikit-learn takes a second to import

    names = getattr(X, "columns", None)
    data = check_array(X, dtype=np.float64, input_name="X")
    return bank.fit(data, None if names is None else [str(name) for name in names]), data


def _check_bounds(C: Any, n_samples: int, tasks: list[Task]) -> Array:
    bound = np.asarray(C, dtype=np.float64)
    if bound.ndim == 0:
        _check_number("C", float(bound), lambda v: 0 < v < np.inf, "greater than 0")
        return np.full(n_samples, float(bound))
    if bound.shape != (n_samples,):
        raise ValueError(f"C must be a number or have one entry per sample ({n_samples}), got shape {bound.shape}.")
    if not (np.isfinite(bound).all() and (bound >= 0).all()):
        raise ValueError("C must not have negative, infinite or missing entries.")
    for task in tasks:
        for sign, label in ((-1, task.classes[0]), (1, task.classes[1])):
            if not (bound[task.rows[task.signs == sign]] > 0).any():
                raise ValueError(f"Task {task.name!r} has no sample of class {label!r} with C > 0.")
    return bound


def _check_task_weight(task_weight: Any, tasks: list[Task]) -> Array | None:
    if task_weight is None:
        return None
    names = [task.name for task in tasks]
    if isinstance(task_weight, Mapping):
        known = {key for task in tasks for key in (task.name, task.source) if key is not None}
        unknown = [key for key in task_weight if key not in known]
        if unknown:
            raise ValueError(f"task_weight names the unknown task {unknown[0]!r}; the tasks are {names[:10]}.")
        values = [task_weight.get(task.name, task_weight.get(task.source, 1.0)) for task in tasks]
    else:
        values = task_weight
    omega = np.asarray(values, dtype=np.float64)
    if omega.shape != (len(tasks),):
        raise ValueError(
            f"task_weight must have one entry for each of the {len(tasks)} tasks, got shape {omega.shape}."
        )
    for name, weight in zip(names, omega, strict=True):
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"task_weight of task {name!r} must be positive, got {weight!r}.")
    return omega / omega.sum()
