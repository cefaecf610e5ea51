"""Sparse multi-task learning: kernels chosen for all tasks together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._parallel import effective_jobs
from .._typing import AnyArray, Array
from .._validation import check_count, check_number
from ..estimators import KernelTaskClassifier
from ..gram import GramBlocks
from ..kernels import FittedBank
from ..machines.svc import SVCTasks
from ..progress import Progress
from ..tasks import Task
from ._mixed_norm import Search


class SparseMTL(KernelTaskClassifier):
    """Support vector classifiers that choose their kernels together, by a mixed norm over kernels and tasks.

        minimise   C Σ_t Σ_i hinge(y_i, f^t(x_i)) + Σ_m (Σ_t ‖f_m^t‖^q)^(p/q),      f^t = Σ_m f_m^t + b_t

    (Rakotomamonjy, Flamary, Gasso, Canu: "ℓp-ℓq penalty for sparse linear and sparse multiple kernel multitask
    learning", IEEE Transactions on Neural Networks 22, 2011.) Each task has its own combination of kernels; the norm
    makes few kernels serve all tasks. p = q = 1 leaves the tasks to themselves.

    Parameters
    ----------
    p : float, default=1.0
        Exponent over the kernels, 0 < p ≤ 1. 1 is convex; less gives fewer kernels and a local minimum, reached from
        the solution of p = 1.
    q : float, default=2.0
        Exponent over the tasks, 1 ≤ q ≤ 2: 2 gives all tasks the same kernel weights, 1 makes them independent.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`paretomkl.KernelBank`. The default bank suits features scaled to [0, 1].
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    tol : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int, default=300
        Passes over the tasks after which to stop.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task inversely to their frequency there.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Kernel weights under which the SVM of each task has the solution f^t.
    norms_ : array of shape (n_tasks, n_kernels)
        ‖f_m^t‖, zero for a kernel that is not used.
    objectives_ : array of shape (n_tasks,)
        C Σ_i hinge of each task.
    objective_ : float
        The sum of ``objectives_`` and of the penalty.
    gap_ : float
        Relative certificate, never below the truth. For p = 1 the distance of ``objective_`` to its optimum; for p < 1
        that of the convex problem which touches the objective here and lies above it elsewhere, over the kernels in
        use: zero at a stationary point.
    history_ : array of shape (n_points,)
        Objectives on the way, falling; for p < 1 the first is that of the solution of p = 1.
    n_sweeps_, n_iter_ : int
        Passes over the tasks.
    classes_, task_names_, kernel_names_, support_, support_vectors_, dual_coef_, intercept_
        As for :class:`~paretomkl.ParetoMKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines.sparse_mtl import SparseMTL
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SparseMTL(q=1.5, C=10).fit(X, y)
    >>> clf.theta_.shape, clf.norms_.shape
    ((3, 11), (3, 11))
    """

    def __init__(
        self,
        p: float = 1.0,
        q: float = 2.0,
        C: float = 1.0,
        kernels: Any = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 300,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.p = p
        self.q = q
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        check_number("p", self.p, lambda v: 0 < v <= 1, "greater than 0 and at most 1")
        check_number("q", self.q, lambda v: 1 <= v <= 2, "between 1 and 2")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        check_count("max_iter", self.max_iter)
        q = 2.0 if len(tasks) == 1 else float(self.q)  # one task: all q are the same
        gram = GramBlocks(bank, data, [task.rows for task in tasks], effective_jobs(self.n_jobs), shared=q == 2)
        gram.check_positive_semidefinite()
        machine = SVCTasks(gram, np.concatenate([task.signs for task in tasks]), np.concatenate(bounds))
        with Progress(1, self.tol, self.verbose) as progress:
            search = Search(machine, q, self.tol, self.max_iter, progress.report)
            point, self.gap_, history = search.solve(float(self.p))
        if self.gap_ > self.tol:
            warnings.warn(
                f"SparseMTL stopped after {search.n_sweeps} sweeps (max_iter={self.max_iter}), gap {self.gap_:.1e} > "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.theta_ = np.array(np.broadcast_to(point.sweep.theta, point.norms.shape))
        self.norms_ = point.norms
        self.objectives_ = point.losses
        self.objective_ = history[-1]
        self.history_ = np.array(history)
        self.n_sweeps_ = self.n_iter_ = search.n_sweeps
        # a task without kernels is its intercept, and needs no support vectors
        used = np.repeat((self.theta_ > 0).any(axis=1), np.diff(gram.layout.ptr))
        return np.where(used, point.sweep.dual, 0.0), point.sweep.intercepts
