"""The scikit-learn estimators: one learned kernel for all classes, or for all tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._kernel_classifier import KernelTaskClassifier, keep_solution
from ._kernels import KernelLike
from ._model import TaskModel
from ._progress import Progress
from ._reading import Training
from ._run import Run
from ._tracing import check_parts, fit_bank, make_problem, models_of, trace
from ._typing import Array, ClassWeight, SolverLike, TaskScale
from ._validation import check_exponent, check_task_weight

__all__ = ["ParetoMKLClassifier"]


class ParetoMKLClassifier(KernelTaskClassifier):
    """Support vector classifiers that share one learned kernel, balanced by the power mean of their objectives.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ)),      M_p(g) = (Σ_t ω_t g_t^p)^(1/p)

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. Two classes are one task, more classes one
    task per pair (prediction by votes); or a column of X, ``tasks=`` or a matrix y gives the tasks.

    Parameters
    ----------
    p : float, default=1.0
        Exponent of the mean: 1 is the average of the tasks, p < 1 gives tasks of small objectives more weight, p > 1
        those of large ones, ``inf`` protects the worst.
    s : float, default=1.1
        Norm of the kernel weights, at least 1; 1 is sparse.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "paper", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`KernelBank`. The default bank standardises the features itself.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    task_weight : mapping or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks.
    solver : {"auto", "bcd", "tseng"} or solver object, default="auto"
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
    max_iter : int, default=None
        Sweeps (steps of "tseng") allowed; None is the solver's own default.
    task_scale : {"none", "samples"}, default="none"
        "none" takes the J_t as they are, the paper's form: they grow with the number of samples, so that p ≠ 1 cannot
        tell a large task from a hard one. "samples" takes J_t / n_t in their place, n_t the total weight of the samples
        of task t (their number where all weights are one). With tasks of one size both learn the same kernel.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        Learned kernel weights.
    kernel_shares_ : array of shape (n_kernels,)
        θ_m v_m / Σ θ v with v_m the variance of kernel m within a task: weights on a common scale.
    source_shares_ : dict
        The same summed over the kernels of each named source.
    objectives_ : array of shape (n_tasks,)
        J_t at ``theta_``; J_t / n_t with ``task_scale="samples"``.
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
    ((13,), (3,))
    """

    task_weights_: Array

    def __init__(
        self,
        p: float = 1.0,
        s: float = 1.1,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
    ):
        super().__init__(C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state)
        self.p = p
        self.s = s
        self.task_weight = task_weight
        self.solver = solver
        self.max_iter = max_iter
        self.task_scale = task_scale

    def _learn(self, training: Training) -> TaskModel:
        exponents = [check_exponent(self.p)]
        parts = check_parts(exponents, self.s, self.tol, self.solver, self.max_iter, self.n_jobs, self.task_scale)
        omega = check_task_weight(self.task_weight, training.tasks)
        problem = make_problem(training, training.bounds(self._cost()), fit_bank(self.kernels, training), parts, omega)
        with Progress(1, self.tol, self.verbose) as progress:
            run = Run(progress.report)
            points = trace(problem, exponents, parts.solver, progress, run=run)
        keep_solution(self, points[0], run.n_sweeps)
        return models_of(points, training)[0]
