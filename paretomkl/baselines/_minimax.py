"""Minimax multi-task learning: linear classifiers judged by their worst tasks, tied together by a penalty."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data.reading import Training
from .._fitting.models import LinearModel
from .._learn.classifier import MultiTaskClassifier
from .._tools.checks import check_count, check_number
from .._tools.parallel import effective_jobs
from .._tools.typing import Array, ClassWeight
from ._alpha_minimax import AlphaMinimax, CommonPart, TraceNorm


class MinimaxMTL(MultiTaskClassifier):
    """Linear classifiers that limit the loss of the worst tasks (Mehta, Lee and Gray, 2012), in the α-minimax form.

        minimise over b, ξ ≥ 0, W     b + (1/α) Σ_t ξ_t + μ Ω(W),      L_t(w_t) ≤ b + ξ_t

    where L_t is the mean hinge loss of task t. The first two terms are the largest weighted mean Σ_t q_t L_t over the
    task weights q with Σ q = 1 and 0 ≤ q_t ≤ 1/α: for α ≤ 1 the worst task, for α = T the mean of all tasks, and in
    between about the mean of the α worst tasks. The penalty Ω is

    - "trace": the trace norm of W = (w_1, …, w_T), which favours few shared directions (MM-AEP), or
    - "ep": ‖v_0‖² + (λ/T) Σ_t ‖v_t‖² with w_t = v_0 + v_t, which favours similar tasks (MM-EP).

    Weights of samples and classes enter the mean L_t. The solver is a primal-dual interior-point method: an iteration
    costs n d² for n samples in all tasks and d features, plus (T d)³ for "trace".

    Parameters
    ----------
    regularizer : {"trace", "ep"}, default="trace"
        The penalty Ω.
    alpha : float, default=None
        How many tasks count as the worst, in (0, n_tasks]. None means 0.2 · n_tasks.
    mu : float, default=0.01
        Weight of the penalty.
    lam : float, default=1.0
        λ of "ep": how much the tasks' own parts v_t cost compared with the common part. "trace" does not use it.
    fit_intercept : bool, default=True
        Whether each task has its own intercept, which is not penalised. The papers write f_t(x) = w_t'x.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=100
        Maximum number of iterations of the interior-point method.
    class_weight : dict or "balanced", default=None
        Weights of the classes in the mean loss of a task; "balanced" weights the two classes of each task inversely to
        their frequency in the task.
    verbose : int, default=0
        1 prints a line per iteration.
    task_column, n_jobs, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`; this method does not use threads.

    Attributes
    ----------
    coef_ : array of shape (n_tasks, n_features)
        W, without the task column.
    intercept_ : array of shape (n_tasks,)
    losses_ : array of shape (n_tasks,)
        L_t, the (weighted) mean hinge losses on the training samples.
    task_weights_ : array of shape (n_tasks,)
        q, which sums to one.
    objective_ : float
        b + (1/α) Σ_t ξ_t + μ Ω(W).
    gap_ : float
        Certified relative gap, never below the true gap.
    n_iter_ : int
        Iterations of the interior-point method.
    n_tasks_, task_names_, n_features_in_, feature_names_in_, classes_
        As in :class:`~paretomkl.ParetoMKLClassifier`.

    References
    ----------
    N. Mehta, D. Lee and A. Gray, "Minimax multi-task learning and a generalized loss-compositional paradigm for MTL",
    Advances in Neural Information Processing Systems 25, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import MinimaxMTL
    >>> clf = MinimaxMTL(alpha=1.0).fit(*load_iris(return_X_y=True))
    >>> clf.coef_.shape, clf.losses_.shape
    ((3, 4), (3,))
    """

    model_: LinearModel
    losses_: Array
    task_weights_: Array
    objective_: float
    gap_: float
    n_iter_: int

    def __init__(
        self,
        regularizer: Literal["trace", "ep"] = "trace",
        alpha: float | None = None,
        mu: float = 0.01,
        lam: float = 1.0,
        task_column: int | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 100,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.regularizer = regularizer
        self.alpha = alpha
        self.mu = mu
        self.lam = lam
        self.task_column = task_column
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def coef_(self) -> Array:
        """W, (n_tasks, n_features), without the task column."""
        return self.model_.coefficients

    @property
    def intercept_(self) -> Array:
        """(n_tasks,)."""
        return self.model_.intercepts

    def _learn(self, training: Training) -> LinearModel:
        n_tasks, free = len(training.tasks), int(bool(self.fit_intercept))
        cap = max(1 / max(self._check_parameters(n_tasks), 1.0), 1 / n_tasks)
        # the optimal w is in the span of the samples, and there may be fewer samples than features
        U, singular, back = np.linalg.svd(training.samples.data, full_matrices=False)
        # w'x does not change if x shrinks and w grows; the trace norm grows with w, "ep" with its square
        scale = float(np.sqrt(((U * singular) ** 2).sum(axis=1).max())) or 1.0
        features = np.hstack([np.ones((len(U), free)), U * (singular / scale)])
        problem = features, training.tasks, training.weights, cap, free
        method: AlphaMinimax = TraceNorm(self.mu / scale, *problem)
        if self.regularizer == "ep":
            method = CommonPart(self.mu / scale**2, self.lam, *problem)
        self.n_iter_ = method.solve(self.tol, self.max_iter, self.verbose)
        W = method.best_W
        intercepts = W[:, 0] if free else np.zeros(n_tasks)
        self.losses_ = method.losses(W)
        self.task_weights_ = method.best_q
        self.objective_ = method.objective(W)
        self.gap_ = max(0.0, 1 - method.lower / self.objective_)
        if self.gap_ > self.tol:
            rounding = "Rounding errors prevent a smaller gap: raise tol or mu"
            cure = "Raise max_iter" if self.n_iter_ >= self.max_iter else rounding
            warnings.warn(
                f"MinimaxMTL stopped after {self.n_iter_} iterations (max_iter={self.max_iter}), gap {self.gap_:.1e} > "
                f"tol={self.tol:g}. {cure}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return LinearModel(training.labelling, W[:, free:] / scale @ back, intercepts)

    def _check_parameters(self, n_tasks: int) -> float:
        """Check all parameters and return α."""
        if self.regularizer not in ("trace", "ep"):
            raise ValueError(f"regularizer must be 'trace' or 'ep', got {self.regularizer!r}.")
        check_number("mu", self.mu, lambda v: 0 < v < np.inf, "greater than 0")
        check_number("lam", self.lam, lambda v: 0 < v < np.inf, "greater than 0")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        check_count("max_iter", self.max_iter)
        effective_jobs(self.n_jobs)
        if self.alpha is None:
            return 0.2 * n_tasks
        wanted = f"greater than 0 and at most the number of tasks, {n_tasks}"
        check_number("alpha", self.alpha, lambda v: 0 < v <= n_tasks * (1 + 1e-12), wanted)
        return float(self.alpha)
