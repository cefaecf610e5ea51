"""p, C, s and the capacity of kernels by cross-validation, for little more than one path for each fold and C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ._kernel_classifier import KernelTaskClassifier
from ._kernels import KernelLike, as_bank
from ._labelling import Samples
from ._path_search import NORMS, HeldOut, PathSearch
from ._regressor import KernelTaskRegressor, machine_of_loss
from ._shares import Share
from ._tasks import as_labels, is_matrix, samples_of_class
from ._typing import Array, ClassWeight, MultiClass, SolverLike, TaskScale
from ._validation import check_grid
from .estimators import ParetoMKLClassifier, ParetoMKLRegressor
from .path import PAPER_PS

__all__ = ["ParetoMKLClassifierCV", "ParetoMKLRegressorCV"]

_FEW_OF_CLASS = 15  # samples: with fewer and several sources, pairs of classes learn less than each against the rest


class _HeldOutClassifier(HeldOut, ParetoMKLClassifier):
    """A fitted point of the grid."""


class _HeldOutRegressor(HeldOut, ParetoMKLRegressor):
    """A fitted point of the grid."""


class ParetoMKLClassifierCV(PathSearch, KernelTaskClassifier):
    """:class:`ParetoMKLClassifier` with p, C, s and the capacity κ of its kernels chosen by cross-validation.

    Each fold traces the path over all p for each C, κ and s. Kernels are made once a fold. A cut holds for every p, s
    and scale of the kernels, so that cuts and dual variables are carried along all of these and along C, and all models
    are scored in one pass over the held-out samples: the search costs little more than one path for each fold and C.
    Folds share nothing: what one of them learns never depends on samples it holds out.

    The highest mean score wins. Scores that differ by rounding only are equal; among equal ones the least log-loss of
    the held-out decisions decides. Points within one standard error of that score are as good as far as the folds can
    tell: of these the ones with p nearest to 1 are taken. Of these, among those that fall behind the best by no more
    than one standard error of the difference, the one is taken that scores best when its score is averaged with those
    of the next smaller and larger C. Decisions of least squares ("ls-svc") estimate ±1: there the least squared error
    of the held-out decisions decides among the points of p nearest to 1.

    Parameters
    ----------
    ps : sequence of float, or float, default=PAPER_PS
        Exponents to choose from.
    Cs : sequence of float, or float, default=(0.1, 1.0, 10.0, 100.0)
        Costs of a margin violation to choose from. If the chosen one is the smallest or the largest, and better than
        all others, a warning says so.
    s : sequence of float, or float, default=(1.1, 2.0)
        Norms of the kernel weights to choose from, at least 1: 1 is sparse, infinity weighs all kernels the same. A
        single number is not searched for and does not appear in ``best_params_``.
    capacity : "auto", sequence of float, or float, default="auto"
        Exponents κ of the effective rank to choose from, see :class:`KernelBank`. "auto" is (0.5, 1.0) for kernels that
        pay for their capacity, as those of the default bank do, and nothing for others. Given numbers, kernels of any
        kind pay for it.
    cv : int, splitter or iterable, default=None
        Number of folds (None: 5), which are shuffled and stratified by task and label; or any scikit-learn splitter, or
        an iterable of (train, test) indices.
    scoring : str, callable or None, default=None
        A scikit-learn scorer, or one of :func:`~paretomkl.model_selection.make_multitask_scorer`. None is the mean over
        tasks of the task accuracy (plain accuracy for multi-class). It has to give one number.
    kernels, task_column, task_weight, solver, tol, class_weight, verbose, max_iter, task_scale
        As in :class:`ParetoMKLClassifier`.
    machine : {"auto", "svc", "ls-svc"}, default="auto"
        As in :class:`ParetoMKLClassifier`. "auto" is "ls-svc" where classes are told from the rest, else "svc".
    share : str or sequence of str, default="kernel"
        What tasks have in common: "nothing", "kernel", "function" or "everything", see :class:`ParetoMKLClassifier`.
        Of a sequence the way of highest score is taken, on the same folds; where tasks have fewer than 100 samples on
        average, the way that shares most among those within one standard error of it.
    max_search_rows : int or None, default=3000
        Where there are more rows, parameters are chosen on folds of this many: those of some tasks, or some of each
        task and class where fewer than ten tasks would be left. Where no way makes one problem of all tasks
        ("function", "everything"), folds of up to four times as many rows are taken whole, or twice as many of one
        task. The model is fitted on all rows. None: always on folds of all rows.
    multi_class : {"auto", "one-vs-one", "one-vs-rest"}, default="auto"
        As in :class:`ParetoMKLClassifier`. "auto" is "one-vs-rest" where the kernels have several
        :func:`~paretomkl.kernels.sources` and the classes, more than two, have fewer than 15 samples on average, unless
        ``machine="svc"`` asks for support vector machines; else "one-vs-one".
    n_jobs : int, default=None
        Folds at a time; -1 is all cores. ``joblib.parallel_config`` chooses where they run, on a cluster too.
    random_state : int, RandomState or None, default=None
        Shuffles the folds where ``cv`` is a number; None is the same as 0.
    error_score : "raise" or float, default=nan
        What a fold scores whose fit fails. With NaN a warning is given and the other folds decide.

    Attributes
    ----------
    best_params_ : dict
        The chosen ``{"C": …, "capacity": …, "p": …, "s": …}``, without s and capacity where they were not searched for.
    best_score_ : float
        Mean score of the chosen point over the folds.
    best_index_ : int
        Its row in ``cv_results_``.
    best_estimator_ : ParetoMKLClassifier
        Fitted with ``best_params_`` on all samples.
    cv_results_ : dict of arrays of shape (n_points,)
        One row for each point of the grid, as GridSearchCV has them, ready for ``pandas.DataFrame``: ``params``,
        ``param_C``, ``param_p`` …, ``split0_test_score`` …, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``; and ``mean_test_log_loss`` (``mean_test_squared_error`` of least squares), ``max_gap``, the
        largest certificate among the folds, and
        ``mean_fit_time`` and ``std_fit_time``, of the point's share of its path.
    path_ : ParetoPath
        The whole path on all samples at the chosen C, s and capacity; where tasks share their kernel only.
    best_share_ : str
        What the tasks share.
    sharing_ : dict
        For each way to share the mean score of its best point and its standard error over the folds.
    sharing_in_words_ : str
        The same in a sentence.
    multi_class_, machine_ : str
        How several classes became tasks, and what a task is.
    scorer_ : callable
        What scored the held-out samples, and what ``score`` uses.
    best_indices_ : dict
        For each way to share the row of its best point in ``cv_results_``.
    small_tasks_ : bool
        Whether tasks have fewer than 100 samples on average, see ``share``.
    n_splits_, n_search_rows_ : int
        Folds, and rows that they were made of.
    search_rows_ : array of int, or None
        These rows; None where they are all.
    refit_time_ : float
        Seconds of the last path, on all samples.
    theta_, objectives_, task_weights_, objective_, gap_, n_sweeps_, classes_, …
        Those of ``best_estimator_``.

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
    machine_: Literal["svc", "ls-svc"]

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
        machine: Literal["auto", "svc", "ls-svc"] = "auto",
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
        self.machine = machine
        self.share = share
        self.max_search_rows = max_search_rows
        self.multi_class = multi_class

    def _settle(self, samples: Samples, y: Any) -> None:
        """Pairs of classes and support vector machines; each class against the rest where sources meet few samples."""
        each = np.inf if y is None or is_matrix(y) else samples_of_class(as_labels(y, "y").ravel(), samples.sources)
        multi_class, machine = self.multi_class, self.machine
        vectors = machine == "svc" or self.solver == "tseng"  # which is written for support vector machines
        if multi_class == "auto":
            pays = as_bank(self.kernels).n_sources > 1 and each < _FEW_OF_CLASS and not vectors
            multi_class = "one-vs-rest" if pays else "one-vs-one"
        if machine == "auto":
            machine = "ls-svc" if multi_class == "one-vs-rest" and each < np.inf and not vectors else "svc"
        self.multi_class_, self.machine_ = multi_class, machine

    def _settled(self) -> dict[str, Any]:
        usual = {"multi_class": "one-vs-one", "machine": "svc"}  # until the data are known
        given = {name: getattr(self, f"{name}_", getattr(self, name)) for name in usual}
        return {name: usual[name] if value == "auto" else value for name, value in given.items()}

    @property
    def by_loss(self) -> bool:
        return self._settled()["machine"] == "ls-svc"

    @property
    def loss_name(self) -> str:
        return "squared_error" if self.by_loss else "log_loss"


class ParetoMKLRegressorCV(PathSearch, KernelTaskRegressor):
    """:class:`ParetoMKLRegressor` with p, C, s, the capacity κ of its kernels, and ε chosen by cross-validation.

    As :class:`ParetoMKLClassifierCV`: each fold traces the path over all p for each C, κ and s (and ε) from one pool of
    cuts. The highest mean score wins: the share of the variance explained, task by task, unless ``scoring`` says
    otherwise; among equal ones the least squared error. Points within one standard error of it are as good as far as
    the folds can tell: of these the ones with p nearest to 1 are taken, and among those that hardly differ the one
    whose neighbours in C score well too.

    Parameters
    ----------
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        As in :class:`ParetoMKLRegressor`.
    epsilon : sequence of float, or float, default=(0.03, 0.1, 0.3)
        Values of ε to choose from, for ``loss="epsilon_insensitive"``.
    ps : sequence of float, or float, default=PAPER_PS
        Exponents to choose from.
    Cs : sequence of float, or float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Costs of an error to choose from. If the chosen one is the smallest or the largest, and better than all others,
        a warning says so.
    s : sequence of float, or float, default=(1.1, 2.0)
        Norms of the kernel weights to choose from. A single number is not searched for and does not appear in
        ``best_params_``.
    capacity : "auto", sequence of float, or float, default="auto"
        Exponents κ of the effective rank to choose from, see :class:`KernelBank`; "auto" is (0.5, 1.0) for kernels that
        pay for their capacity.
    cv : int, splitter or iterable, default=None
        Number of folds (None: 5), which are shuffled within each task; or any scikit-learn splitter, or an iterable of
        (train, test) indices.
    scoring : str, callable or None, default=None
        A scikit-learn scorer, or one of :func:`~paretomkl.model_selection.make_multitask_scorer`. None is the mean over
        tasks of 1 − MSE_t / v_t, v_t the variance of the targets of the task in the training part: R², but for a
        denominator that does not depend on the few samples held out. (``score`` is R² itself.)
    kernels, task_column, normalize_y, task_weight, solver, tol, verbose, max_iter, task_scale
        As in :class:`ParetoMKLRegressor`.
    share : str or sequence of str, default="kernel"
        What tasks have in common: "nothing", "kernel", "function" or "everything", see :class:`ParetoMKLRegressor`.
        Of a sequence the way of highest score is taken, on the same folds; where tasks have fewer than 100 samples on
        average, the way that shares most among those within one standard error of it.
    max_search_rows : int or None, default=3000
        Where there are more rows, parameters are chosen on folds of this many: those of some tasks, or some of each
        task and class where fewer than ten tasks would be left. Where no way makes one problem of all tasks
        ("function", "everything"), folds of up to four times as many rows are taken whole, or twice as many of one
        task. The model is fitted on all rows. None: always on folds of all rows.
    n_jobs : int, default=None
        Folds at a time; -1 is all cores.
    random_state : int, RandomState or None, default=None
        Shuffles the folds where ``cv`` is a number; None is the same as 0.
    error_score : "raise" or float, default=nan
        What a fold scores whose fit fails.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, cv_results_, path_, scorer_, n_splits_, refit_time_
        As in :class:`ParetoMKLClassifierCV`; ``cv_results_`` has ``mean_test_squared_error`` (in units of the spread of
        the task) in place of the log-loss.
    theta_, objectives_, task_weights_, objective_, gap_, n_sweeps_, …
        Those of ``best_estimator_``.

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
        loss: Literal["squared", "epsilon_insensitive"] = "squared",
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
    def loss_name(self) -> str:
        return "squared_error"

    def _epsilons(self) -> list[float] | None:
        if machine_of_loss(self.loss) != "svr":
            return None
        return check_grid("epsilon", self.epsilon, "of at least 0", lambda v: 0 <= v < np.inf)
