"""The Pareto path: one solution per exponent p, all from one pool of cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .._data.together import Share
from .._fitting.models import TaskModel
from .._fitting.tracing import check_parts, learn
from .._tools.checks import check_exponents, check_task_weight
from .._tools.public import PublicNames
from .._tools.typing import Array, ClassWeight, IntArray, MultiClass, SolverLike, TaskScale
from ..kernels._kernels import KernelLike
from ..machines import MACHINES, MachineKind
from ..machines._base import find_kind
from ..protocols import Scalarization, WeightSet
from ..scalarizations import PAPER_PS
from ..solution import Solution
from ..solvers._base import Run

if TYPE_CHECKING:
    from pandas import DataFrame

    from .._data.reading import Training

__all__ = ["PAPER_PS", "ParetoPath", "pareto_path"]


def _of_points(name: str) -> cached_property[Array]:
    """Stack an attribute of all solutions of a path, one row per solution."""
    return cached_property(lambda path: np.array([getattr(point, name) for point in path.solutions]))


def _ranks(values: Array) -> IntArray:
    """The indices that sort each row."""
    return np.argsort(values, axis=1, kind="stable")


def parameters_of(estimator: Any, tol: float, tasks: bool) -> dict[str, Any]:
    """What the code says that fits this estimator at another p, to this gap, with the solver that is the default."""
    given = estimator.get_params(deep=False) | {"tol": tol, "tasks": tasks, "solver": "auto"}
    return {"estimator": type(estimator).__name__, **given}


@dataclass(frozen=True)
class ParetoPath(PublicNames):
    """Solutions along p, one row per solution.

    Attributes
    ----------
    ps : array of shape (n_points,)
        Exponents, in the order you gave them.
    theta : array of shape (n_points, n_kernels)
        Kernel weights.
    kernel_shares : array of shape (n_points, n_kernels)
        θ_m v_m / Σ θ v, where v_m is the variance of kernel m within a task: the share of a kernel in the variance of a
        function drawn with the learned kernel. Unlike θ, it does not depend on the scale of the kernels.
    source_shares : dict of arrays of shape (n_points,)
        ``kernel_shares`` summed over the kernels of each named source; empty if the kernels have no sources.
    objectives : array of shape (n_points, n_tasks)
        Task objectives J_t(θ); J_t(θ) / n_t with ``task_scale="samples"``.
    task_weights : array of shape (n_points, n_tasks)
        η_t ∝ ω_t g_t^(p−1), where g are the ``objectives``; they sum to one. At p = ∞, the multipliers of the min-max
        problem.
    objective : array of shape (n_points,)
        M_p of ``objectives``.
    gap : array of shape (n_points,)
        Certified relative gap, an upper bound: for p ≥ 1 on the distance of M_p to its optimum; for p < 1 on that of
        the sum weighted by η, which limits how far the point can be from the Pareto front.
    models : list of TaskModel
        The fitted model of each point: ``path.models[0].predict(X)``. Models of other ways to share (``share``) predict
        and score in the same way.
    n_sweeps : int
        Passes over the tasks for the whole path.
    kernel_names, task_names : lists of str
    solutions : list of Solution
        One solution per point, with the values of the arrays above.
    seconds : dict
        Where the time went: ``"total"``, ``"tasks"`` and ``"master"``.
    history : list of (p, n_sweeps, gap)
        What the solver reported after each sweep, in the order it visited the exponents; n_sweeps counts from the start
        of the path.
    tol : float
        The requested relative gap.
    refit : str
        Python code that fits one point of the path, with ``{p}`` for its exponent; empty for machines whose estimator
        has ν instead of C.
    fitted_with : dict or None
        The parameters that ``refit`` writes out.
    reader : object
        Reads new samples the way X was read.
    task_sizes : array of shape (n_tasks,)
        n_t, the total sample weight of each task: the number of samples if all weights are one.
    task_scale : {"none", "samples"}
        Whether ``objectives`` are J_t or J_t / n_t.
    share : {"nothing", "kernel", "function", "everything"}
        What the tasks have in common. p balances tasks that share their kernel; otherwise p has no effect, and the path
        has one point, at p = 1. With "nothing", ``theta`` and ``kernel_shares`` have shape (1, n_tasks, n_kernels).
        "function" and "everything" make one problem of all tasks (or one per pair of classes): ``objectives``,
        ``task_weights`` and ``task_sizes`` have one entry per problem instead of per task, and
        ``models[0].common_share`` is the share of the common part.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> path = pareto_path(*load_iris(return_X_y=True), ps=[1, 10])
    >>> path.ps.tolist(), path.theta.shape, path.objectives.shape
    ([1.0, 10.0], (2, 13), (2, 3))
    """

    _internal = ("along_p", "from_solutions", "large_is_hard")

    solutions: list[Solution]
    models: list[TaskModel]
    n_sweeps: int
    seconds: dict[str, float]
    history: list[tuple[float, int, float]]
    tol: float
    reader: Any = None
    fitted_with: Mapping[str, Any] | None = None
    task_sizes: Array | None = None
    task_scale: TaskScale = "none"
    share: Share = "kernel"

    ps = _of_points("p")
    theta = _of_points("theta")
    objectives = _of_points("objectives")
    task_weights = _of_points("task_weights")
    objective = _of_points("objective")
    gap = _of_points("gap")

    @property
    def refit(self) -> str:
        from .._show.code import refit_code

        return "" if self.fitted_with is None else refit_code(**self.fitted_with)

    @property
    def kernel_shares(self) -> Array:
        pairs = zip(self.models, self.theta, strict=True)
        return np.array([model.bank.variance_share(theta) for model, theta in pairs])

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
        """J_t / n_t, (n_points, n_tasks): the objective per sample, which ranks tasks from easy to hard."""
        if self.task_sizes is None or self.task_scale == "samples":
            return self.objectives
        return self.objectives / self.task_sizes

    @property
    def large_is_hard(self) -> bool:
        """Whether a larger objective means a harder task at every p, as it does if all tasks have the same size."""
        return bool((_ranks(self.objectives) == _ranks(self.difficulty)).all())

    @classmethod
    def from_solutions(
        cls,
        points: Sequence[Solution],
        models: Sequence[Any],
        training: Training,
        reader: Any,
        run: Run,
        tol: float,
        spent: float,
        fitted_with: Mapping[str, Any] | None,
        task_scale: TaskScale = "none",
    ) -> ParetoPath:
        """Collect the solutions along p and their models, and drop what only the solver needs."""
        seconds = {"total": spent, **run.seconds}
        alone = [replace(point, machine=None, state=None, sweep=replace(point.sweep, warm=None)) for point in points]
        given = run.history, tol, reader, fitted_with, training.task_sizes, task_scale, training.share
        return cls(alone, list(models), run.n_sweeps, seconds, *given)

    def __len__(self) -> int:
        return len(self.solutions)

    def take(self, rows: Sequence[int]) -> ParetoPath:
        """A path with only the points in ``rows``."""
        chosen = [int(row) for row in rows]
        return replace(self, solutions=[self.solutions[k] for k in chosen], models=[self.models[k] for k in chosen])

    def along_p(self) -> ParetoPath:
        """Return the path itself if p has an effect on it; raise otherwise, since there is no trade-off to show."""
        if self.share != "kernel":
            raise ValueError(
                f"p has no effect with share={self.share!r}, so there is no trade-off to show; use share='kernel'."
            )
        return self

    def to_frame(self) -> DataFrame:
        """One row per p, for pandas, CSV files and LaTeX.

        Returns
        -------
        frame : pandas.DataFrame
            With the columns ``p``, ``M_p`` and ``gap``, then ``share of source: …``, ``share: …`` and ``theta: …`` of
            the kernels, and ``objective: …`` and ``weight: …`` of the tasks.
        """
        import pandas as pd

        def named(what: str, names: list[str], values: Array) -> dict[str, Array]:
            if values.ndim == 3:  # each task has its own
                names = [f"{task}: {name}" for task in self.task_names for name in names]
            return {f"{what}: {name}": own for name, own in zip(names, values.reshape(len(self), -1).T, strict=True)}

        found, first = {"p": self.ps, "M_p": self.objective, "gap": self.gap}, self.models[0]
        if shares := self.source_shares:
            found |= named("share of source", list(shares), np.stack(list(shares.values()), axis=-1))
        found |= named("share", self.kernel_names, self.kernel_shares)
        found |= named("theta", self.kernel_names, self.theta)
        problems = getattr(first, "whole", first).tasks.names
        for what, values in (("objective", self.objectives), ("weight", self.task_weights)):
            found |= named(what, problems, values)
        return pd.DataFrame(found)

    def __repr__(self) -> str:
        points, tasks, kernels = len(self), len(self.task_names), len(self.kernel_names)
        share = "" if self.share == "kernel" else f"share={self.share!r}, "
        return (
            f"ParetoPath({share}{points} point{'s' * (points != 1)}, {tasks} tasks, {kernels} kernels, "
            f"{self.n_sweeps} sweeps, largest gap {self.gap.max():.1e})"
        )

    def _repr_html_(self) -> str:
        from .._show.page import path_html

        return path_html(self)

    def to_html(self, file: str | PathLike[str], **options: Any) -> Path:
        """Write a page that shows the trade-off with a slider over p; it works offline.

        ``options`` are passed to :func:`paretomkl.report.build_page`; :func:`paretomkl.report.trade_off_page` computes
        them all from the data.
        """
        from .._show.page import write_page

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
    machine: str | MachineKind = "svc",
    epsilon: float = 0.1,
    normalize_y: bool = True,
    share: Share = "kernel",
    multi_class: MultiClass = "one-vs-one",
    scalarization: Scalarization | None = None,
    weight_set: WeightSet | None = None,
) -> ParetoPath:
    """Minimise the power mean of the task objectives at each exponent p.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ)),      M_p(g) = (Σ_t ω_t g_t^p)^(1/p)

    where J_t(θ) is the optimum of task t under the kernel Σ_m θ_m K_m. p = 1 averages the tasks, p < 1 gives more
    weight to tasks with small objectives, p = ∞ minimises the largest one; every finite p gives a Pareto-optimal point.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_samples, n_features), or a dict or list of these
        Samples, or several blocks with the same rows, one per source; with ``kernels="precomputed"``, a stack of Gram
        matrices of shape (n_samples, n_samples, n_kernels). A Dask array or frame with a task column, or
        :class:`~paretomkl.distributed.Sites`, is solved on a cluster.
    y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        Labels for classification, numbers for regression, None for "one-class" and "svdd". Two classes make one task,
        more make one task per pair (see ``multi_class``). A matrix has one task per column; NaN marks unknown values.
    tasks : array-like of shape (n_samples,), default=None
        The task of each sample.
    ps : sequence of float, default=PAPER_PS
        Exponents in any order; any real number or ±inf.
    s : float, default=1.1
        Norm of the kernel weights, 1 ≤ s ≤ ∞: 1 gives sparse weights, a larger s spreads them.
    C : float or array-like of shape (n_samples,), default=1.0
        Upper bound of the dual variables: one number, or one per sample.
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
        Multiplies C for each sample.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weights the two classes of each task inversely to their frequency in it.
    task_weight : mapping from task name to weight, or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks, scaled to sum to one; tasks missing from a mapping get weight one.
    max_iter : int, default=None
        Maximum number of sweeps (steps for ``"tseng"``) per p; None uses the solver's default.
    n_jobs : int, default=None
        Number of threads; None is one, -1 all cores.
    verbose : int, default=None
        0 is silent, 1 shows progress; None shows progress on a terminal once two seconds have passed.
    task_scale : {"none", "samples"}, default="none"
        "none" uses J_t itself, as in the paper. J_t grows with the number of samples, so p ≠ 1 cannot distinguish a
        large task from a hard one. "samples" uses J_t / n_t instead, where n_t is the total sample weight of task t (an
        array C counts as sample weights). If all tasks have the same size, both learn the same kernel.
    machine : {"svc", "ls-svc", "logistic", "ridge", "svr", "one-class", "svdd"} or MachineKind, default="svc"
        What a task minimises over f and its intercept b, with r_i = y_i − f(x_i) − b:

        - "svc": ½ ‖f‖² + C Σ max(0, 1 − y_i (f(x_i) + b)), labels; "ls-svc": ½ ‖f‖² + (C/2) Σ r_i² on labels ±1;
          "logistic": ½ ‖f‖² + C Σ log(1 + exp(−y_i (f(x_i) + b))), labels;
        - "ridge": ½ ‖f‖² + (C/2) Σ r_i²; "svr": ½ ‖f‖² + C Σ max(0, abs(r_i) − ε), numbers;
        - "one-class": ½ ‖f‖² + C Σ max(0, 1 − f(x_i)), b = 0; "svdd": the smallest ball, R² + C Σ max(0, ‖φ(x_i) − a‖²
          − R²), with Σ_m θ_m = 1 whatever s is; both without y. Pass one kernel per source for these: widths cannot be
          learned without labels.
    epsilon : float, default=0.1
        ε of "svr"; with ``normalize_y``, in units of the task's standard deviation.
    normalize_y : bool, default=True
        Whether to centre and scale regression targets to standard deviation one within each task, so that objectives
        are comparable.
    share : {"nothing", "kernel", "function", "everything"}, default="kernel"
        What the tasks (from ``tasks``, ``task_column`` or a matrix y) have in common, as in
        :class:`ParetoMKLClassifier`. p matters only for "kernel". The others give the fit of the estimators: a path of
        one point, at p = 1 whatever ``ps`` is. With a single task all four are the same, and you get a warning.
    multi_class : {"one-vs-one", "one-vs-rest"}, default="one-vs-one"
        Whether more than two classes make one task per pair of classes, or one task per class against the rest.
    scalarization : Scalarization, default=None
        A scalarization of your own in place of the power means. Then ``ps`` does not apply: the path has one point, and
        its p is NaN.
    weight_set : WeightSet, default=None
        Allowed kernel weights of your own in place of the ball ‖θ‖_s ≤ 1; then ``s`` does not apply.

    Returns
    -------
    path : ParetoPath
        One point per p, with its certificate and its fitted model.

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
    from .._data.reading import PathReader, Reading  # imported here because scikit-learn takes a second to import
    from .base import read_anywhere

    began = perf_counter()
    exponents = check_exponents(ps) if scalarization is None else [np.nan]
    kind, own_parts = find_kind(MACHINES, machine), (scalarization, weight_set)
    parts = check_parts(exponents, s, tol, solver, max_iter, n_jobs, task_scale, kind, *own_parts, epsilon=epsilon)
    reader = PathReader(Reading(kernels, task_column, class_weight, kind, normalize_y, share, multi_class))
    training = read_anywhere(reader, X, y, tasks=tasks, sample_weight=sample_weight)
    omega = check_task_weight(task_weight, training.tasks)
    if np.ndim(C) and training.together is not None and training.together.kind == "matrix":
        raise ValueError(f"With share={share!r} and a matrix y, C must be one number; pass sample_weight instead.")
    if np.ndim(C):  # an array C acts as sample weights, as in the refit code
        training, cost = replace(training, weights=training.bounds(C)), 1.0
    else:
        training.bounds(C)  # raises if C is invalid
        cost = float(C)
    if training.share != "kernel" and scalarization is None:
        exponents = [1.0]
    run, points, models, _ = learn(training, exponents, cost, kernels, parts, omega, verbose)
    given: dict[str, Any] = {"s": s, "C": C, "solver": solver, "tol": parts.solver.tol, "tasks": tasks is not None}
    given |= {"sample_weight": sample_weight is not None, "loss": kind.loss or kind, **parts.own, "kernels": kernels}
    given |= {"task_column": task_column, "task_weight": task_weight, "task_scale": task_scale, "share": share}
    given |= {"scalarization": scalarization, "weight_set": weight_set}
    estimators: dict[str, dict[str, Any]] = {
        "labels": {"estimator": "ParetoMKLClassifier", "class_weight": class_weight, "multi_class": multi_class},
        "numbers": {"estimator": "ParetoMKLRegressor", "normalize_y": normalize_y},
    }
    code = estimators[kind.reads] | given if kind.reads in estimators else None
    tol, spent = parts.solver.tol, perf_counter() - began
    return ParetoPath.from_solutions(points, models, training, reader, run, tol, spent, code, task_scale)
