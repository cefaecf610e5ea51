"""The Pareto path: one solution for each exponent p, all from one pool of cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ._kernels import KernelLike
from ._model import TaskModel
from ._progress import Progress
from ._refit import path_refit_code
from ._run import Run
from ._tracing import check_parts, fit_bank, make_problem, models_of, trace
from ._typing import Array, ClassWeight, IntArray, MachineName, SolverLike, TaskScale
from ._validation import check_exponents, check_task_weight
from .scalarizations import PAPER_PS
from .solution import Solution

if TYPE_CHECKING:
    from ._reading import Training

__all__ = ["PAPER_PS", "ParetoPath", "pareto_path"]


def _of_points(name: str) -> cached_property[Array]:
    """An attribute of all solutions of a path, as an array with one row for each."""
    return cached_property(lambda path: np.array([getattr(point, name) for point in path.solutions]))


def _ranks(values: Array) -> IntArray:
    """The order of each row, first to last."""
    return np.argsort(values, axis=1, kind="stable")


@dataclass(frozen=True)
class ParetoPath:
    """Solutions along p, one row for each.

    Attributes
    ----------
    ps : array of shape (n_points,)
        Exponents, in the order they were asked for.
    theta : array of shape (n_points, n_kernels)
        Kernel weights.
    kernel_shares : array of shape (n_points, n_kernels)
        θ_m v_m / Σ θ v with v_m the variance of kernel m within a task: the share that a kernel has in the variance of
        a function drawn with the learned kernel. Unlike θ it does not depend on the scale of the kernels.
    source_shares : dict of arrays of shape (n_points,)
        The same summed over the kernels of each named source; empty where kernels have no source.
    objectives : array of shape (n_points, n_tasks)
        Task objectives J_t(θ); J_t(θ) / n_t with ``task_scale="samples"``.
    task_weights : array of shape (n_points, n_tasks)
        η_t ∝ ω_t g_t^(p−1) with g the ``objectives``, summing to one; at p = ∞ the multipliers of the min-max problem.
    objective : array of shape (n_points,)
        M_p of ``objectives``.
    gap : array of shape (n_points,)
        Relative certificate, never below the truth: for p ≥ 1 the distance of M_p to its optimum, for p < 1 that of the
        sum weighted by η, which says how far the point can be from the Pareto front.
    models : list of TaskModel
        The fitted model of each point: ``path.models[0].predict(X)``.
    n_sweeps : int
        Passes over the tasks that the whole path took.
    kernel_names, task_names : lists of str
    solutions : list of Solution
        The same by point.
    seconds : dict
        Where the time went: ``"total"``, ``"tasks"`` and ``"master"``.
    history : list of (p, n_sweeps, gap)
        What the solver reported after each sweep, in the order it visited the exponents; n_sweeps counts from the start
        of the path.
    tol : float
        The relative gap that was asked for.
    refit : str
        Python code that fits one point of the path, with ``{p}`` for its exponent.
    reader : object
        Reads other samples in the way X was read.
    task_sizes : array of shape (n_tasks,)
        n_t, the total weight of the samples of each task: their number where all weights are one.
    task_scale : {"none", "samples"}
        Whether ``objectives`` are J_t or J_t / n_t.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> path = pareto_path(*load_iris(return_X_y=True), ps=[1, 10])
    >>> path.ps.tolist(), path.theta.shape, path.objectives.shape
    ([1.0, 10.0], (2, 13), (2, 3))
    """

    solutions: list[Solution]
    models: list[TaskModel]
    n_sweeps: int
    seconds: dict[str, float]
    history: list[tuple[float, int, float]]
    tol: float
    reader: Any = None
    refit: str = ""
    task_sizes: Array | None = None
    task_scale: TaskScale = "none"

    ps = _of_points("p")
    theta = _of_points("theta")
    objectives = _of_points("objectives")
    task_weights = _of_points("task_weights")
    objective = _of_points("objective")
    gap = _of_points("gap")

    @property
    def kernel_shares(self) -> Array:
        return self.models[0].bank.variance_share(self.theta)

    @property
    def source_shares(self) -> dict[str, Array]:
        return self.models[0].bank.by_source(self.kernel_shares)

    @property
    def kernel_names(self) -> list[str]:
        return self.models[0].bank.names

    @property
    def task_names(self) -> list[str]:
        return self.models[0].tasks.names

    @property
    def difficulty(self) -> Array:
        """J_t / n_t, (n_points, n_tasks): the objective per sample, by which tasks are called hard or easy."""
        if self.task_sizes is None or self.task_scale == "samples":
            return self.objectives
        return self.objectives / self.task_sizes

    @property
    def large_is_hard(self) -> bool:
        """Whether tasks of larger objectives are the harder ones too, at every p: always where all have one size."""
        return bool((_ranks(self.objectives) == _ranks(self.difficulty)).all())

    @classmethod
    def from_solutions(
        cls,
        points: Sequence[Solution],
        training: Training,
        reader: Any,
        run: Run,
        tol: float,
        spent: float,
        refit: str,
        task_scale: TaskScale = "none",
    ) -> ParetoPath:
        """The solutions of one problem along p, without what only the solver needs."""
        models = models_of(points, training)
        seconds = {"total": spent, **run.seconds}
        alone = [point.alone() for point in points]
        sizes = training.task_sizes
        return cls(alone, models, run.n_sweeps, seconds, run.history, tol, reader, refit, sizes, task_scale)

    def __len__(self) -> int:
        return len(self.solutions)

    def take(self, rows: Sequence[int]) -> ParetoPath:
        """Some points of the path, as a path."""
        chosen = [int(row) for row in rows]
        return replace(self, solutions=[self.solutions[k] for k in chosen], models=[self.models[k] for k in chosen])

    def __repr__(self) -> str:
        points, tasks, kernels = len(self), len(self.task_names), len(self.kernel_names)
        return (
            f"ParetoPath({points} points, {tasks} tasks, {kernels} kernels, {self.n_sweeps} sweeps, "
            f"largest gap {self.gap.max():.1e})"
        )

    def _repr_html_(self) -> str:
        from ._page.notebook import path_html

        return path_html(self)

    def to_html(self, file: str | PathLike[str], **options: Any) -> Path:
        """Write a page with a slider over p that shows the trade-off; needs no network to be read.

        ``options`` are those of :func:`paretomkl.report.build_page`; :func:`paretomkl.report.trade_off_page` computes
        them all from the data.
        """
        from ._page.page import write_page

        return write_page(file, self, **options)


def pareto_path(
    X: Any,
    y: Any = None,
    *,
    tasks: Any = None,
    ps: Sequence[float] = PAPER_PS,
    s: float = 1.1,
    C: float | Array = 1.0,
    kernels: KernelLike = "default",
    solver: SolverLike = "auto",
    tol: float = 1e-3,
    task_column: int | str | None = None,
    sample_weight: Any = None,
    class_weight: ClassWeight = None,
    task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
    task_scale: TaskScale = "none",
    machine: MachineName = "svc",
    epsilon: float = 0.1,
    normalize_y: bool = True,
) -> ParetoPath:
    """Minimise the power mean of the task objectives for each exponent p.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ)),      M_p(g) = (Σ_t ω_t g_t^p)^(1/p)

    with J_t(θ) the optimum of task t under the kernel Σ_m θ_m K_m. p = 1 is the average of the tasks, p < 1 gives
    tasks of small objectives more weight, p = ∞ protects the worst one; every finite p gives a Pareto-optimal point.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Samples; with ``kernels="precomputed"`` a stack of Gram matrices of shape (n_samples, n_samples, n_kernels).
    y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        Labels, or numbers for the machines that predict them; None for those that need neither. Two classes are one
        task, more are one task for each pair. A matrix has one task per column, with NaN for "not known".
    tasks : array-like of shape (n_samples,), default=None
        The task each sample belongs to.
    ps : sequence of float, default=PAPER_PS
        Exponents in any order; any real number or ±inf.
    s : float, default=1.1
        Norm of the kernel weights, 1 ≤ s ≤ ∞: 1 is sparse, larger spreads the weight.
    C : float or array-like of shape (n_samples,), default=1.0
        Upper bound of the dual variables, for all samples or for each.
    kernels : "default", "paper", "precomputed", sequence or KernelBank, default="default"
        See :class:`KernelBank`.
    solver : {"auto", "bcd", "tseng"} or solver object, default="auto"
        ``"auto"`` is the cut pool, for every p; ``"bcd"`` (p ≤ 1) and ``"tseng"`` (p ≥ 1) are the paper's algorithms.
        A solver object is used as it is, with its own ``tol`` and ``max_iter``.
    tol : float, default=1e-3
        Relative gap to reach at every p.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    sample_weight : array-like of shape (n_samples,), default=None
        Multiplies C, sample by sample.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task inversely to their frequency there.
    task_weight : mapping from task name to weight, or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks, scaled to sum to one; a task that a mapping does not name has weight one.
    max_iter : int, default=None
        Sweeps (steps of ``"tseng"``) allowed for one p; None is the solver's own default.
    n_jobs : int, default=None
        Threads; None is one, -1 all cores.
    verbose : int, default=None
        0 is silent, 1 shows progress; None shows progress on a terminal once two seconds have passed.
    task_scale : {"none", "samples"}, default="none"
        "none" takes the J_t as they are, the paper's form: they grow with the number of samples, so that p ≠ 1 cannot
        tell a large task from a hard one. "samples" takes J_t / n_t in their place, n_t the total weight of the samples
        of task t (C counts as a weight where each sample has its own). With tasks of one size both learn the same
        kernel.
    machine : {"svc", "ls-svc", "ridge", "svr", "one-class", "svdd"}, default="svc"
        What a task minimises over f and its intercept b, with r_i = y_i − f(x_i) − b:

        - "svc": ½ ‖f‖² + C Σ max(0, 1 − y_i (f(x_i) + b)), labels; "ls-svc": ½ ‖f‖² + (C/2) Σ r_i² on labels ±1;
        - "ridge": ½ ‖f‖² + (C/2) Σ r_i²; "svr": ½ ‖f‖² + C Σ max(0, abs(r_i) − ε), numbers;
        - "one-class": ½ ‖f‖² + C Σ max(0, 1 − f(x_i)), b = 0; "svdd": the smallest ball, R² + C Σ max(0, ‖φ(x_i) − a‖²
          − R²), with Σ_m θ_m = 1 whatever s is; both without y. Give these one kernel per source: widths cannot be
          learned without labels.
    epsilon : float, default=0.1
        ε of "svr"; with ``normalize_y`` in units of the standard deviation of the task.
    normalize_y : bool, default=True
        Whether numbers to predict are centred and scaled to standard deviation one within each task, so that objectives
        can be compared.

    Returns
    -------
    path : ParetoPath
        One point for each p, with its certificate and its fitted model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = pareto_path(X, y, ps=[0.1, 1.0])
    >>> path.theta.shape, path.objectives.shape
    ((2, 13), (2, 3))
    >>> path.models[1].predict(X[:3])
    array([0, 0, 0])
    """
    from ._reading import PathReader  # here: scikit-learn takes a second to import

    began = perf_counter()
    exponents = check_exponents(ps)
    parts = check_parts(exponents, s, tol, solver, max_iter, n_jobs, task_scale, machine, epsilon)
    reader = PathReader(kernels, task_column, class_weight, machine, normalize_y)
    training = reader.read_data(X, y, tasks=tasks, sample_weight=sample_weight)
    omega = check_task_weight(task_weight, training.tasks)
    bounds, bank = training.bounds(C), fit_bank(kernels, training)
    if np.ndim(C):  # a weight for each sample, as in the code that fits a point again
        training = replace(training, weights=bounds)
    problem = make_problem(training, bounds, bank, parts, omega)
    with Progress(len(exponents), parts.solver.tol, verbose) as progress:
        run = Run(progress.report)
        points = trace(problem, exponents, parts.solver, progress, run=run)
    given: dict[str, Any] = {
        "tol": parts.solver.tol,
        "tasks": tasks is not None,
        "sample_weight": sample_weight is not None,
    }
    given |= {"kernels": kernels, "task_column": task_column, "task_weight": task_weight, "class_weight": class_weight}
    code = path_refit_code(machine, epsilon, normalize_y, s=s, C=C, solver=solver, task_scale=task_scale, **given)
    spent = perf_counter() - began
    return ParetoPath.from_solutions(points, training, reader, run, parts.solver.tol, spent, code, task_scale)
