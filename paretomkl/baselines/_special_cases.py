"""Baselines that are special cases of the estimators: a learned kernel for each task, or the mean of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._data.reading import Training
from .._fitting.models import TaskModel
from .._fitting.tracing import Parts, check_parts, fit_bank, make_model, pose, trace
from .._learn.base import KernelTaskClassifier, KernelTaskRegressor, MultiTaskEstimator
from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
from .._tools.running import Progress, run_chunks
from .._tools.typing import Array, ClassWeight
from ..kernels import KernelLike
from ..machines import MACHINES
from ..machines._base import find_kind
from ..solution import Solution
from ..solvers._base import TASK_SHARE, Run
from ..sweep import Decisions


class SpecialCase:
    """What the classifier and the regressor of a method have in common with the estimator that they specialise."""

    kernels: KernelLike
    tol: float
    n_jobs: int | None
    verbose: int | None
    _cost: Callable[[], float]  # of KernelFit
    _keep: Callable[..., None]

    read_data = MultiTaskEstimator.read_data  # not on a cluster


class SeparateKernels(SpecialCase):
    """Learns a separate kernel for each task, from one bank."""

    gaps_: Array
    parts: Callable[..., Parts]  # of ParetoLearner

    def _learn(self, training: Training) -> TaskModel:
        parts, bank = self.parts([1.0], self.n_jobs), fit_bank(self.kernels, training)
        inner = parts if len(training.tasks) == 1 else replace(parts, n_jobs=1)  # otherwise one thread per task
        bounds = training.bounds(self._cost())
        with Progress(len(training.tasks), self.tol, self.verbose) as progress:

            def solve(t: int) -> tuple[Solution, Decisions]:
                problem = pose(only(training, t), bounds[t : t + 1], bank, inner).problem
                (solution,) = trace(problem, [1.0], parts.solver, progress)
                return solution.alone(), problem.machine.decisions(solution.sweep)

            found = run_chunks(solve, [(t,) for t in range(len(bounds))], parts.n_jobs)
        solutions, functions = zip(*found, strict=True)
        self.gaps_ = np.array([solution.gap for solution in solutions])
        objectives = np.array([solution.objective for solution in solutions])
        self._keep(objectives, self.gaps_.max(), max(solution.n_sweeps for solution in solutions))
        theta = np.array([solution.theta for solution in solutions])
        decisions = Decisions([f.dual[0] for f in functions], np.concatenate([f.intercepts for f in functions]))
        return make_model(bank, training, theta, decisions)


def only(training: Training, t: int) -> Training:
    """The training data of one task."""
    task, data = training.tasks[t], training.samples.data
    own = data[task.rows] if data.ndim == 2 else data[np.ix_(task.rows, task.rows)]
    alone = replace(task, rows=np.arange(len(task.rows)))
    return replace(
        training,
        samples=replace(training.samples, data=own, sources=None),
        tasks=[alone],
        weights=training.weights[t : t + 1],
    )


class UniformKernel(SpecialCase):
    """Solves the tasks under the mean of all kernels."""

    def _machine(self) -> dict[str, Any]:
        """The machine that solves the tasks, and its parameters, for ``check_parts``."""
        return {}

    def _learn(self, training: Training) -> TaskModel:
        parts = check_parts([1.0], 1.0, self.tol, "auto", None, self.n_jobs, **self._machine())
        bank = fit_bank(self.kernels, training)
        problem = pose(training, training.bounds(self._cost()), bank, parts).problem
        sweep = Run().sweep(problem.machine, problem.start(), None, TASK_SHARE * self.tol)
        self._keep(sweep.lower, sweep.gaps.max(), 1)
        return make_model(bank, training, sweep.theta, problem.machine.decisions(sweep))


class IndependentMKL(SeparateKernels, ParetoMKLClassifier):
    """Multiple kernel learning for each task on its own: the paper's baseline.

        for each task t     minimise over θ^t ≥ 0, ‖θ^t‖_s ≤ 1     J_t(θ^t)

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. This is
    :class:`~paretomkl.ParetoMKLClassifier` with ``share="nothing"``, except that the tasks have one bank of kernels,
    with the same widths and scales, and that pairs of classes are tasks, too.

    Parameters
    ----------
    s, C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`; each task stops at ``tol``, and each thread solves one task.
    max_iter : int, default=None
        Maximum number of sweeps for one task; None means 200.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Learned kernel weights of each task.
    objectives_, objective_
        J_t at θ^t (n_tasks,), and their mean.
    gaps_ : array of shape (n_tasks,)
        Certified relative gap of each task, never below the true gap.
    gap_ : float
        The largest of them, which also bounds the gap of the mean.
    n_sweeps_ : int
        Passes over the tasks: the largest number of times that any task was solved.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import IndependentMKL
    >>> IndependentMKL(C=10).fit(*load_iris(return_X_y=True)).theta_.shape
    (3, 13)
    """

    def __init__(
        self,
        s: float = 1.1,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
    ):
        own = tol, class_weight, n_jobs, verbose, random_state, max_iter
        super().__init__(1.0, s, C, kernels, task_column, None, "auto", *own)


class UniformKernelSVC(UniformKernel, KernelTaskClassifier):
    """Support vector classifiers with the mean of all kernels, k = Σ_m K_m / M; the kernel is not learned.

    This is :class:`~paretomkl.ParetoMKLClassifier` with s = ∞ and C / M.

    Parameters
    ----------
    C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`, with the same accuracy of the tasks.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        1/M for each kernel.
    objectives_, objective_
        J_t at ``theta_`` (n_tasks,), and their mean.
    gap_ : float
        Largest relative duality gap of a task.
    n_sweeps_ : int
        Always 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import UniformKernelSVC
    >>> UniformKernelSVC(C=10).fit(*load_iris(return_X_y=True)).objectives_.shape
    (3,)
    """


class IndependentMKLRegressor(SeparateKernels, ParetoMKLRegressor):
    """Multiple kernel learning for each regression task on its own.

    The problem of each task is that of :class:`IndependentMKL`, with J_t as in :class:`~paretomkl.ParetoMKLRegressor`.

    Parameters
    ----------
    loss, epsilon, C, s, kernels, task_column, normalize_y, tol, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLRegressor`; each task stops at ``tol``, and each thread solves one task.
    max_iter : int, default=None
        Maximum number of sweeps for one task; None means 200.

    Attributes
    ----------
    theta_, objectives_, objective_, gaps_, gap_, n_sweeps_
        As in :class:`IndependentMKL`.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from paretomkl.baselines import IndependentMKLRegressor
    >>> IndependentMKLRegressor().fit(*load_linnerud(return_X_y=True)).theta_.shape
    (3, 13)
    """

    def __init__(
        self,
        loss: Literal["squared", "epsilon_insensitive"] = "squared",
        epsilon: float = 0.1,
        C: float = 1.0,
        s: float = 1.1,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        normalize_y: bool = True,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
    ):
        own = tol, n_jobs, verbose, random_state, max_iter
        super().__init__(loss, epsilon, C, 1.0, s, kernels, task_column, normalize_y, None, "auto", *own)


class UniformKernelRegressor(UniformKernel, KernelTaskRegressor):
    """Kernel regression with the mean of all kernels, k = Σ_m K_m / M; the kernel is not learned.

    Parameters
    ----------
    loss, epsilon, C, kernels, task_column, normalize_y, tol, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLRegressor`, with the same accuracy of the tasks.

    Attributes
    ----------
    theta_, objectives_, objective_, gap_, n_sweeps_
        As in :class:`UniformKernelSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from paretomkl.baselines import UniformKernelRegressor
    >>> UniformKernelRegressor().fit(*load_linnerud(return_X_y=True)).objectives_.shape
    (3,)
    """

    def __init__(
        self,
        loss: Literal["squared", "epsilon_insensitive"] = "squared",
        epsilon: float = 0.1,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        normalize_y: bool = True,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.normalize_y = normalize_y
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _machine(self) -> dict[str, Any]:
        return {"machine": find_kind(MACHINES, self.loss, "loss", reads="numbers"), "epsilon": self.epsilon}
