"""Choose p, C, s and the kernel capacity by cross-validation, for little more than one path per fold and C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .._data.labels import Samples
from .._data.tasks import as_labels, is_matrix, samples_of_class
from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
from .._learn.kernel_estimators import KernelTaskClassifier
from .._learn.path import PAPER_PS
from .._learn.regressor import KernelTaskRegressor
from .._tools.shares import Share
from .._tools.typing import Array, ClassWeight, MultiClass, SolverLike, TaskScale
from ..kernels._kernels import KernelLike, as_bank
from ..machines import MachineKind, find_kind
from .path_search import NORMS, HeldOut, PathSearch

__all__ = ["ParetoMKLClassifierCV", "ParetoMKLRegressorCV"]

_FEW_OF_CLASS = 15  # samples per class: below this, with several sources, one-vs-rest learns more than one-vs-one


class _HeldOutClassifier(HeldOut, ParetoMKLClassifier):
    """A fitted point of the grid."""


class _HeldOutRegressor(HeldOut, ParetoMKLRegressor):
    """A fitted point of the grid."""


class ParetoMKLClassifierCV(PathSearch, KernelTaskClassifier):
    """:class:`ParetoMKLClassifier` with p, C, s and the capacity κ of its kernels chosen by cross-validation.

    Each fold traces the path over all p for each C, κ and s, and computes its kernels once. A cut is valid for every p,
    s and kernel scale, so the search reuses cuts and dual variables across all of these and across C, and scores all
    models in one pass over the held-out samples. It costs little more than one path per fold and C. Folds share
    nothing: what a fold learns never depends on the samples it holds out.

    The highest mean score wins; scores that differ only by rounding are ties, which the smallest log-loss of the
    held-out decisions breaks. The folds cannot tell points within one standard error of that score apart, so the search
    keeps those with p nearest to 1. From these it drops the points that fall behind the best by more than one standard
    error of the difference, and takes the one with the best score averaged with the next smaller and larger C. The
    decisions of least squares (``loss="squared"``) estimate ±1: with it, the smallest squared error of the held-out
    decisions decides among the points with p nearest to 1.

    Parameters
    ----------
    ps : sequence of float, or float, default=PAPER_PS
        Exponents to choose from.
    Cs : sequence of float, or float, default=(0.1, 1.0, 10.0, 100.0)
        Costs of a margin violation to choose from. You get a warning if the smallest or the largest of them scores
        best.
    s : sequence of float, or float, default=(1.1, 2.0)
        Norms of the kernel weights to choose from, at least 1: 1 gives sparse weights, infinity equal weights. A single
        number is fixed and does not appear in ``best_params_``.
    capacity : "auto", sequence of float, or float, default="auto"
        Exponents κ of the effective rank to choose from, see :class:`KernelBank`. "auto" is (0.5, 1.0) for kernels with
        a capacity penalty, such as the default bank, and no search for others. With the squared loss it is (0.0,),
        since that already penalises fitting noise. If you pass numbers, the penalty applies to kernels of any kind.
    cv : int, splitter or iterable, default=None
        Number of folds (None: 5), shuffled and stratified by task and label; or any scikit-learn splitter, or an
        iterable of (train, test) indices.
    scoring : str, callable or None, default=None
        A scikit-learn scorer, or one from :func:`~paretomkl.model_selection.make_multitask_scorer`. It must return one
        number. None is the mean accuracy over tasks (plain accuracy for multi-class).
    kernels, task_column, task_weight, solver, tol, class_weight, verbose, max_iter, task_scale
        As in :class:`ParetoMKLClassifier`.
    loss : {"auto", "hinge", "squared", "logistic"} or MachineKind, default="auto"
        As in :class:`ParetoMKLClassifier`. "auto" is "squared" for one-vs-rest, else "hinge".
    share : str or sequence of str, default="kernel"
        What tasks have in common: "nothing", "kernel", "function" or "everything", see :class:`ParetoMKLClassifier`.
        From a sequence, the search takes the way to share with the highest score on the same folds; if tasks have fewer
        than 100 samples on average, the way that shares most among those within one standard error of it.
    max_search_rows : int or None, default=3000
        With more rows than this, the parameters are chosen on folds of this many rows: the rows of some tasks, or a
        sample from each task and class if fewer than ten tasks would be left. If ``share`` includes neither "function"
        nor "everything", which make one problem of all tasks, the search uses all rows up to four times this limit, or
        twice the limit for a single task. The final model is fitted on all rows. None always uses all rows.
    multi_class : {"auto", "one-vs-one", "one-vs-rest"}, default="auto"
        As in :class:`ParetoMKLClassifier`. "auto" is "one-vs-rest" if the kernels have several
        :func:`~paretomkl.kernels.sources`, there are more than two classes with fewer than 15 samples each on average,
        and ``loss`` allows least squares; else "one-vs-one".
    n_jobs : int, default=None
        Number of folds to run in parallel; -1 uses all cores. ``joblib.parallel_config`` sets the backend, which may be
        a cluster.
    random_state : int, RandomState or None, default=None
        Seed for shuffling the folds if ``cv`` is a number; None is the same as 0.
    error_score : "raise" or float, default=nan
        Score of a fold whose fit fails. With NaN, you get a warning and the other folds decide.

    Attributes
    ----------
    best_params_ : dict
        The chosen ``{"C": …, "capacity": …, "p": …, "s": …}``, without s and capacity if they were not searched.
    best_score_ : float
        Mean score of the chosen point over the folds.
    best_index_ : int
        Its row in ``cv_results_``.
    best_estimator_ : ParetoMKLClassifier
        Fitted with ``best_params_`` on all samples.
    cv_results_ : dict of arrays of shape (n_points,)
        One row per point of the grid, as in GridSearchCV, ready for ``pandas.DataFrame``: ``params``, ``param_C``,
        ``param_p`` …, ``split0_test_score`` …, ``mean_test_score``, ``std_test_score``, ``rank_test_score``,
        ``mean_test_log_loss`` (``mean_test_squared_error`` for least squares), ``max_gap`` (the largest certified gap
        among the folds), and ``mean_fit_time`` and ``std_fit_time`` (the point's share of the time of its path).
    path_ : ParetoPath
        The whole path on all samples at the chosen C, s and capacity. Only if tasks share just their kernel.
    best_share_ : str
        What the tasks share.
    sharing_ : dict
        For each way to share, the mean score of its best point and its standard error over the folds.
    sharing_in_words_ : str
        The same as a sentence.
    multi_class_, loss_ : str
        How several classes became tasks, and the model of a task.
    scorer_ : callable
        The scorer of the held-out samples, which ``score`` uses too.
    best_indices_ : dict
        For each way to share, the row of its best point in ``cv_results_``.
    small_tasks_ : bool
        Whether tasks have fewer than 100 samples on average, see ``share``.
    n_splits_, n_search_rows_ : int
        Number of folds, and number of rows in the search.
    search_rows_ : array of int, or None
        The rows used in the search; None if it used all.
    refit_time_ : float
        Time in seconds to fit the final path on all samples.
    theta_, objectives_, task_weights_, objective_, gap_, n_sweeps_, classes_, …
        As in ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = ParetoMKLClassifierCV(ps=[0.1, 1.0, 10.0], Cs=[1.0, 10.0], s=1.1).fit(X, y)
    >>> sorted(search.best_params_)
    ['C', 'capacity', 'p']
    >>> len(search.path_), len(search.cv_results_["mean_test_score"])
    (3, 12)
    """

    best_estimator_: ParetoMKLClassifier
    multi_class_: MultiClass
    loss_: str | MachineKind

    plain_type = ParetoMKLClassifier
    held_out_type = _HeldOutClassifier

    def __init__(
        self,
        ps: float | Sequence[float] = PAPER_PS,
        Cs: float | Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        s: float | Sequence[float] = NORMS,
        capacity: float | Sequence[float] | Literal["auto"] = "auto",
        cv: Any = None,
        scoring: str | Callable[..., Any] | None = None,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int | None = 0,
        random_state: int | np.random.RandomState | None = None,
        error_score: float | Literal["raise"] = np.nan,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
        loss: str | MachineKind = "auto",
        share: Share | Sequence[Share] = "kernel",
        max_search_rows: int | None = 3000,
        multi_class: MultiClass | Literal["auto"] = "auto",
    ):
        self.ps = ps
        self.Cs = Cs
        self.s = s
        self.capacity = capacity
        self.cv = cv
        self.scoring = scoring
        self.kernels = kernels
        self.task_column = task_column
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.error_score = error_score
        self.max_iter = max_iter
        self.task_scale = task_scale
        self.loss = loss
        self.share = share
        self.max_search_rows = max_search_rows
        self.multi_class = multi_class

    def _settle(self, samples: Samples, y: Any) -> None:
        """Resolve "auto": one-vs-rest least squares with several sources and few samples per class, else SVM pairs."""
        each = np.inf if y is None or is_matrix(y) else samples_of_class(as_labels(y, "y").ravel(), samples.sources)
        multi_class, loss = self.multi_class, self.loss
        squares = loss in ("auto", "squared") and self.solver != "tseng"  # Tseng's algorithm has no least squares
        if multi_class == "auto":
            pays = as_bank(self.kernels).n_sources > 1 and each < _FEW_OF_CLASS and squares
            multi_class = "one-vs-rest" if pays else "one-vs-one"
        if loss == "auto":
            loss = "squared" if multi_class == "one-vs-rest" and each < np.inf and squares else "hinge"
        self.multi_class_, self.loss_ = multi_class, loss

    def _settled(self) -> dict[str, Any]:
        usual = {"multi_class": "one-vs-one", "loss": "hinge"}  # until the data are known
        given = {name: getattr(self, f"{name}_", getattr(self, name)) for name in usual}
        return {name: usual[name] if value == "auto" else value for name, value in given.items()}

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss, as far as it is known."""
        return find_kind(self._settled()["loss"], "loss", reads="labels")


class ParetoMKLRegressorCV(PathSearch, KernelTaskRegressor):
    """:class:`ParetoMKLRegressor` with p, C, s, the capacity κ of its kernels, and ε chosen by cross-validation.

    It works like :class:`ParetoMKLClassifierCV`: each fold traces the path over all p for each C, κ and s (and ε) from
    one pool of cuts. The highest mean score wins, by default the share of explained variance averaged over tasks; the
    smallest squared error breaks ties. The folds cannot tell points within one standard error of it apart, so the
    search keeps those with p nearest to 1, and among those that hardly differ takes the one whose neighbours in C score
    well too.

    Parameters
    ----------
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        As in :class:`ParetoMKLRegressor`.
    epsilon : sequence of float, or float, default=(0.03, 0.1, 0.3)
        Values of ε to choose from, for ``loss="epsilon_insensitive"``.
    ps : sequence of float, or float, default=PAPER_PS
        Exponents to choose from.
    Cs : sequence of float, or float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Costs of an error to choose from. You get a warning if the smallest or the largest of them scores best.
    s : sequence of float, or float, default=(1.1, 2.0)
        Norms of the kernel weights to choose from. A single number is fixed and does not appear in ``best_params_``.
    capacity : "auto", sequence of float, or float, default="auto"
        Exponents κ of the effective rank to choose from, see :class:`KernelBank`; "auto" is (0.5, 1.0) for kernels with
        a capacity penalty.
    cv : int, splitter or iterable, default=None
        Number of folds (None: 5), shuffled within each task; or any scikit-learn splitter, or an iterable of
        (train, test) indices.
    scoring : str, callable or None, default=None
        A scikit-learn scorer, or one from :func:`~paretomkl.model_selection.make_multitask_scorer`. None is the mean
        over tasks of 1 − MSE_t / v_t, where v_t is the variance of the task's targets in the training part. This is R²
        with a denominator that does not depend on the few held-out samples. (``score`` is R² itself.)
    kernels, task_column, normalize_y, task_weight, solver, tol, verbose, max_iter, task_scale
        As in :class:`ParetoMKLRegressor`.
    share : str or sequence of str, default="kernel"
        What tasks have in common: "nothing", "kernel", "function" or "everything", see :class:`ParetoMKLRegressor`.
        From a sequence, the search takes the way to share with the highest score on the same folds; if tasks have fewer
        than 100 samples on average, the way that shares most among those within one standard error of it.
    max_search_rows : int or None, default=3000
        With more rows than this, the parameters are chosen on folds of this many rows: the rows of some tasks, or a
        sample from each task if fewer than ten tasks would be left. If ``share`` includes neither "function"
        nor "everything", which make one problem of all tasks, the search uses all rows up to four times this limit, or
        twice the limit for a single task. The final model is fitted on all rows. None always uses all rows.
    n_jobs : int, default=None
        Number of folds to run in parallel; -1 uses all cores.
    random_state : int, RandomState or None, default=None
        Seed for shuffling the folds if ``cv`` is a number; None is the same as 0.
    error_score : "raise" or float, default=nan
        Score of a fold whose fit fails.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, cv_results_, path_, scorer_, n_splits_, refit_time_
        As in :class:`ParetoMKLClassifierCV`; ``cv_results_`` has ``mean_test_squared_error`` (targets scaled by the
        spread of the task) instead of the log-loss.
    theta_, objectives_, task_weights_, objective_, gap_, n_sweeps_, …
        As in ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from paretomkl import ParetoMKLRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = ParetoMKLRegressorCV(ps=1.0, Cs=[0.1, 1.0, 10.0]).fit(X[:200], y[:200])
    >>> sorted(search.best_params_)
    ['C', 'capacity', 'p', 's']
    """

    best_estimator_: ParetoMKLRegressor

    plain_type = ParetoMKLRegressor
    held_out_type = _HeldOutRegressor
    stratify = False

    def __init__(
        self,
        loss: str | MachineKind = "squared",
        epsilon: float | Sequence[float] = (0.03, 0.1, 0.3),
        ps: float | Sequence[float] = PAPER_PS,
        Cs: float | Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0),
        s: float | Sequence[float] = NORMS,
        capacity: float | Sequence[float] | Literal["auto"] = "auto",
        cv: Any = None,
        scoring: str | Callable[..., Any] | None = None,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        normalize_y: bool = True,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int | None = 0,
        random_state: int | np.random.RandomState | None = None,
        error_score: float | Literal["raise"] = np.nan,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
        share: Share | Sequence[Share] = "kernel",
        max_search_rows: int | None = 3000,
    ):
        self.loss = loss
        self.epsilon = epsilon
        self.ps = ps
        self.Cs = Cs
        self.s = s
        self.capacity = capacity
        self.cv = cv
        self.scoring = scoring
        self.kernels = kernels
        self.task_column = task_column
        self.normalize_y = normalize_y
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.error_score = error_score
        self.max_iter = max_iter
        self.task_scale = task_scale
        self.share = share
        self.max_search_rows = max_search_rows

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss."""
        return find_kind(self.loss, "loss", reads="numbers")
