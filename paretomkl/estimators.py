"""The scikit-learn estimators: one learned kernel for all classes, or for all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from ._parallel import effective_jobs
from ._typing import AnyArray, Array, IntArray
from ._validation import check_exponent, check_number, check_task_weight
from .kernels import FittedBank, as_bank
from .multitask import MultiTaskClassifier, Training
from .path import make_problem, trace
from .problem import MultiTaskProblem
from .progress import Progress
from .report.notebook import FittedTables
from .solution import Solution
from .solvers import Solver, make_solver
from .tasks import Task

PREDICT_BYTES = 64 * 2**20  # of one batch of test-time kernel values


class KernelTaskClassifier(FittedTables, MultiTaskClassifier):
    """Multi-task classifiers f_t(x) = Σ_i y_i α_ti k_t(x_i, x) + b_t: what all kernel methods share.

    A subclass has the parameters ``kernels`` and ``C`` and a method ``_solve`` that sets ``theta_``, the kernel weights
    of all tasks, (n_kernels,), or of each, (n_tasks, n_kernels), and returns the dual variables and the intercepts.
    """

    kernels: Any
    C: float
    theta_: Array

    def _solve(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        """Flat y∘α of all tasks, one after the other, and their intercepts (n_tasks,); ``bounds`` are those of α."""
        raise NotImplementedError

    def _is_precomputed(self) -> bool:
        kernels = as_bank(self.kernels).kernels
        return isinstance(kernels, str) and kernels == "precomputed"

    def _learn(self, training: Training) -> None:
        if isinstance(self.C, Sequence | np.ndarray) and not isinstance(self.C, str):
            raise ValueError("C must be one number; give fit a sample_weight, which multiplies C sample by sample.")
        check_number("C", self.C, lambda v: 0 < v < np.inf, "greater than 0")
        samples = training.samples
        bank = as_bank(self.kernels).fit(samples.data, samples.names)
        bounds = [self.C * weight for weight in training.weights]
        dual, intercepts = self._solve(bank, samples.data, training.tasks, bounds)
        self._keep_support(bank, samples.data, training.tasks, dual, intercepts)

    def _keep_support(
        self, bank: FittedBank, data: AnyArray, tasks: list[Task], dual: Array, intercepts: Array
    ) -> None:
        """Of the samples keep only those that support some task."""
        coefficients = np.zeros((len(tasks), len(data)))
        at = 0
        for t, task in enumerate(tasks):
            coefficients[t, task.rows] = dual[at : at + len(task.rows)]
            at += len(task.rows)
        self.support_ = np.flatnonzero((coefficients != 0).any(axis=0))
        self.dual_coef_ = coefficients[:, self.support_]
        self.intercept_ = intercepts
        self.kernel_names_ = bank.names
        self._bank = bank
        if not bank.precomputed:
            self.support_vectors_ = data[self.support_]

    def _decide(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        """Decisions of some tasks for some rows: kernels with the support vectors of these tasks only, in batches."""
        if self.theta_.ndim == 1:
            return self._decide_with(self.theta_, data, rows, tasks)
        out = np.empty((len(rows), len(tasks)))
        thetas, which = np.unique(self.theta_[tasks], axis=0, return_inverse=True)  # tasks of equal weights go together
        for k, theta in enumerate(thetas):
            mine = np.flatnonzero(which.ravel() == k)
            out[:, mine] = self._decide_with(theta, data, rows, tasks[mine])
        return out

    def _decide_with(self, theta: Array, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        used = np.flatnonzero((self.dual_coef_[tasks] != 0).any(axis=0))
        coefficients = self.dual_coef_[np.ix_(tasks, used)].T
        out = np.tile(self.intercept_[tasks], (len(rows), 1))
        if len(used) == 0:
            return out
        bank = self._bank
        right = bank.side_of_columns(len(used)) if bank.precomputed else bank.side(self.support_vectors_[used])
        step = max(1, int(PREDICT_BYTES // (8 * len(used) * max(1, len(bank.base_metric)))))
        for first in range(0, len(rows), step):
            batch = rows[first : first + step]
            part = data[np.ix_(batch, self.support_[used])] if bank.precomputed else data[batch]
            out[first : first + step] += bank.cross(bank.side(part), right, theta) @ coefficients
        return out


class ParetoMKLClassifier(KernelTaskClassifier):
    """Support vector classifiers that share one learned kernel, balanced by the power mean of their objectives.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ)),      M_p(g) = (Σ_t ω_t g_t^p)^(1/p)

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. Two classes are one task, more classes one
    task per pair (prediction by votes); or the tasks are said by a column of X, by ``tasks=``, or by a matrix y.

    Parameters
    ----------
    p : float, default=1.0
        Exponent of the mean: 1 is the average of the tasks, p < 1 lets easy tasks speak, ``inf`` protects the worst.
    s : float, default=1.1
        Norm of the kernel weights, at least 1; 1 is sparse.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`KernelBank`. The default bank suits features scaled to [0, 1].
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    task_weight : mapping or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks.
    solver : {"auto", "bcd", "tseng"}, default="auto"
        "auto" is the cut pool.
    tol : float, default=1e-3
        Relative gap at which to stop.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task (of each pair, where there are more)
        inversely to their frequency there, samples counted by their weight.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        Learned kernel weights.
    objectives_ : array of shape (n_tasks,)
        J_t at ``theta_``.
    task_weights_ : array of shape (n_tasks,)
        η, summing to one.
    objective_ : float
        M_p of ``objectives_``.
    gap_ : float
        Relative certificate, never below the truth.
    n_sweeps_ : int
        Passes over the tasks.
    classes_ : array of shape (n_classes,), or list of arrays
    task_names_, kernel_names_ : lists of str
    support_ : array of shape (n_support,)
        Training samples that support some task.
    support_vectors_ : array of shape (n_support, n_features)
    dual_coef_ : array of shape (n_tasks, n_support)
    intercept_ : array of shape (n_tasks,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ParetoMKLClassifier(p=0.5, C=10).fit(X, y)
    >>> clf.theta_.shape, clf.objectives_.shape
    ((11,), (3,))
    """

    def __init__(
        self,
        p: float = 1.0,
        s: float = 1.1,
        C: float = 1.0,
        kernels: Any = "default",
        task_column: Any = None,
        task_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.p = p
        self.s = s
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        exponents = [check_exponent(self.p)]
        solver, problem = self._parts(bank, data, tasks, bounds, exponents)
        with Progress(1, self.tol, self.verbose) as progress:
            (solution,) = trace(problem, exponents, solver, progress)
        self._keep(solution, problem.tasks.n_sweeps)
        return solution.sweep.dual, solution.sweep.intercepts

    def _parts(
        self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array], ps: list[float]
    ) -> tuple[Solver, MultiTaskProblem]:
        """The solver and the problem that the parameters describe."""
        check_number("s", self.s, lambda v: v >= 1, "at least 1")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        solver = make_solver(self.solver, ps, tol=self.tol)
        omega = check_task_weight(self.task_weight, tasks)
        return solver, make_problem(bank, data, tasks, bounds, self.s, omega, effective_jobs(self.n_jobs))

    def _keep(self, solution: Solution, n_sweeps: int) -> None:
        self.theta_ = solution.theta
        self.objectives_ = solution.objectives
        self.task_weights_ = solution.task_weights
        self.objective_ = solution.objective
        self.gap_ = solution.gap
        self.n_sweeps_ = n_sweeps

    def _at(self, solution: Solution, p: float, C: float, n_sweeps: int, training: Training, bank: FittedBank) -> Self:
        """This estimator, which has read the training data, as fitted with p and C by the given solution."""
        point = copy(self)
        point.p, point.C = p, C
        point._keep(solution, n_sweeps)
        sweep = solution.sweep
        point._keep_support(bank, training.samples.data, training.tasks, sweep.dual, sweep.intercepts)
        point._describe(training)
        return point
