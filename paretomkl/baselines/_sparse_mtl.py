"""Sparse multi-task learning: all tasks choose their kernels together."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data.reading import Training
from .._fitting.models import TaskModel
from .._fitting.tracing import fit_bank, make_gram, make_model
from .._learn.kernel_estimators import KernelTaskClassifier
from .._tools.checks import check_count, check_number
from .._tools.parallel import effective_jobs
from .._tools.progress import Progress
from .._tools.typing import Array, ClassWeight
from ..kernels._kernels import KernelLike
from ..machines import SVCTasks
from ..solvers._base import Run
from ._mixed_norm import Search


class SparseMTL(KernelTaskClassifier):
    """Support vector classifiers that choose their kernels together, by a mixed norm over kernels and tasks.

        minimise   C Σ_t Σ_i hinge(y_i, f^t(x_i)) + Σ_m (Σ_t ‖f_m^t‖^q)^(p/q),      f^t = Σ_m f_m^t + b_t

    (Rakotomamonjy, Flamary, Gasso, Canu: "ℓp-ℓq penalty for sparse linear and sparse multiple kernel multitask
    learning", IEEE Transactions on Neural Networks 22, 2011.) Each task has its own combination of kernels; the norm
    makes all tasks use the same few kernels. With p = q = 1 the tasks are independent.

    Parameters
    ----------
    p : float, default=1.0
        Exponent over the kernels, 0 < p ≤ 1. With 1 the problem is convex; a smaller p gives fewer kernels and a local
        minimum, reached from the solution at p = 1.
    q : float, default=2.0
        Exponent over the tasks, 1 ≤ q ≤ 2: 2 gives all tasks the same kernel weights, 1 makes them independent.
    C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`.
    max_iter : int, default=300
        Maximum number of passes over the tasks.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Kernel weights for which the SVM of each task has the solution f^t.
    norms_ : array of shape (n_tasks, n_kernels)
        ‖f_m^t‖, zero for a kernel that is not used.
    objectives_ : array of shape (n_tasks,)
        C Σ_i hinge of each task.
    objective_ : float
        The sum of ``objectives_`` and the penalty.
    gap_ : float
        Certified relative gap, never below the true gap. For p = 1 it is the distance of ``objective_`` from its
        optimum. For p < 1 it is the gap of a convex problem over the kernels in use that touches the objective here and
        lies above it elsewhere; it is zero at a stationary point.
    history_ : array of shape (n_points,)
        The decreasing objectives during the search; for p < 1 the first one is that of the solution at p = 1.
    n_sweeps_, classes_, task_names_, kernel_names_, support_, support_vectors_, dual_coef_, intercept_
        As for :class:`~paretomkl.ParetoMKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import SparseMTL
    >>> clf = SparseMTL(q=1.5, C=10).fit(*load_iris(return_X_y=True))
    >>> clf.theta_.shape, clf.norms_.shape
    ((3, 13), (3, 13))
    """

    norms_: Array
    history_: Array

    def __init__(
        self,
        p: float = 1.0,
        q: float = 2.0,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 300,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state)
        self.p = p
        self.q = q
        self.max_iter = max_iter

    def _learn(self, training: Training) -> TaskModel:
        check_number("p", self.p, lambda v: 0 < v <= 1, "greater than 0 and at most 1")
        check_number("q", self.q, lambda v: 1 <= v <= 2, "between 1 and 2")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        check_count("max_iter", self.max_iter)
        tasks, bank = training.tasks, fit_bank(self.kernels, training)
        q = 2.0 if len(tasks) == 1 else float(self.q)  # with one task q has no effect
        bounds, jobs = training.bounds(self._cost()), effective_jobs(self.n_jobs)
        gram = make_gram(bank, training.samples.data, tasks, jobs, shared=q == 2)
        machine = SVCTasks(gram, np.concatenate([task.targets for task in tasks]), np.concatenate(bounds))
        with Progress(1, self.tol, self.verbose) as progress:
            run = Run(progress.report)
            point, gap, history = Search(machine, q, self.tol, self.max_iter, run).solve(float(self.p))
        if gap > self.tol:
            warnings.warn(
                f"SparseMTL stopped after {run.n_sweeps} sweeps (max_iter={self.max_iter}), gap {gap:.1e} > "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        theta = np.array(np.broadcast_to(point.sweep.theta, point.norms.shape))
        self.norms_ = point.norms
        self.history_ = np.array(history)
        self._keep(point.losses, gap, run.n_sweeps, history[-1])
        # a task without kernels is just an intercept and needs no support vectors
        decisions = machine.decisions(point.sweep)
        kept = [dual * used for dual, used in zip(decisions.dual, theta.max(axis=1) > 0, strict=True)]
        return make_model(bank, training, theta, decisions._replace(dual=kept))
