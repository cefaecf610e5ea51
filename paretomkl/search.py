"""p and C by cross-validation, for little more than one path for each fold and C."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed

from ._parallel import effective_jobs
from ._typing import Array, IntArray
from ._validation import check_exponents, check_number, shown
from .estimators import KernelTaskClassifier, ParetoMKLClassifier
from .kernels import as_bank
from .model_selection import check_scorer, make_splits, scorer_takes
from .multitask import Samples, Training
from .path import PAPER_PS, gather, trace, trace_grid
from .progress import Progress
from .report.refit import refit_code
from .solvers.cut_pool import CutPool

HELD_OUT_BYTES = 64 * 2**20  # of all base kernels of one batch of held-out samples

_live: dict[str, Progress] = {}  # progress bars by token: a fold run in this process finds its own, elsewhere none


class ParetoMKLClassifierCV(KernelTaskClassifier):
    """:class:`ParetoMKLClassifier` with p and C chosen by cross-validation.

    Each fold traces the path over all p for each C. Kernels are made once a fold, cuts and dual variables are carried
    along p and along C, and the held-out samples meet all models at once; a search over p and C thus costs about one
    path for each fold and C. Folds share nothing: what one of them learns never depends on samples it holds out.

    Parameters
    ----------
    ps : sequence of float, default=PAPER_PS
        Exponents to choose from.
    Cs : sequence of float, default=(0.1, 1.0, 10.0, 100.0)
        Costs of a margin violation to choose from.
    s : float, default=1.1
        Norm of the kernel weights, at least 1; 1 is sparse.
    cv : int, splitter or iterable, default=None
        Number of folds (None: 5), which are stratified by task and label; or any scikit-learn splitter, or an iterable
        of (train, test) indices.
    scoring : str, callable or None, default=None
        A scikit-learn scorer, or one of :func:`~paretomkl.model_selection.make_multitask_scorer`. None is the mean over
        tasks of the task accuracy (plain accuracy for multi-class). It has to give one number.
    kernels, task_column, task_weight, solver, tol, class_weight
        As in :class:`ParetoMKLClassifier`.
    n_jobs : int, default=None
        Folds at a time; -1 is all cores. ``joblib.parallel_config`` chooses where they run, on a cluster too.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    best_params_ : dict
        The chosen ``{"C": …, "p": …}``.
    best_score_ : float
        Mean score of the chosen pair over the folds.
    best_index_ : int
        Its row in ``cv_results_``.
    best_estimator_ : ParetoMKLClassifier
        Fitted with ``best_params_`` on all samples.
    cv_results_ : dict of arrays of shape (n_Cs * n_ps,)
        One row for each C and p, as GridSearchCV has them, ready for ``pandas.DataFrame``: ``params``, ``param_C``,
        ``param_p``, ``split0_test_score`` …, ``mean_test_score``, ``std_test_score``, ``rank_test_score``; and
        ``max_gap``, the largest certificate among the folds, and ``mean_fit_time`` and ``std_fit_time``, of the point's
        share of its path.
    path_ : ParetoPath
        The whole path on all samples at the chosen C.
    n_splits_ : int
    theta_, objectives_, task_weights_, objective_, gap_, n_sweeps_, classes_, …
        Those of ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = ParetoMKLClassifierCV(ps=[0.1, 1.0, 10.0], Cs=[1.0, 10.0]).fit(X, y)
    >>> sorted(search.best_params_)
    ['C', 'p']
    >>> len(search.path_), len(search.cv_results_["mean_test_score"])
    (3, 6)
    """

    def __init__(
        self,
        ps: Sequence[float] = PAPER_PS,
        Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        s: float = 1.1,
        cv: Any = None,
        scoring: Any = None,
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
        self.ps = ps
        self.Cs = Cs
        self.s = s
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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None, groups: Any = None
    ) -> ParetoMKLClassifierCV:
        """Choose p and C, then learn the path at that C on all samples.

        Parameters
        ----------
        X, y, tasks
            As in :meth:`ParetoMKLClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C, sample by sample, and weighs the samples held out where the scorer takes ``sample_weight``.
        groups : array-like of shape (n_samples,), default=None
            For a ``cv`` that is a splitter which keeps groups together.
        """
        self._forget()
        ps, Cs = check_exponents(self.ps), _check_costs(self.Cs)
        effective_jobs(self.n_jobs)
        plain = self._plain(ParetoMKLClassifier)
        training = plain._read_training(X, y, sample_weight, tasks)
        tasks = None if tasks is None else training.samples.sources
        X, y, sample_weight, tasks, groups = indexable(X, y, sample_weight, tasks, groups)
        scorer = _own_score if self.scoring is None else check_scorer(self.scoring, plain)
        splits = make_splits(self.cv, training.samples.data, y, training.samples.sources, groups)
        with Progress((len(splits) * len(Cs) + 1) * len(ps), self.tol, self.verbose) as progress:
            folds = self._run_folds(X, y, sample_weight, tasks, splits, scorer, ps, Cs, progress)
            self._tabulate(folds, ps, Cs)
            self._refit(plain, training, ps, progress)
        self.n_splits_ = len(splits)
        return self

    def _plain(self, kind: type[ParetoMKLClassifier]) -> ParetoMKLClassifier:
        """The estimator whose p and C are sought; folds run side by side, each on one thread."""
        own = self.get_params(deep=False)
        shared = own.keys() & ParetoMKLClassifier().get_params(deep=False).keys() - {"n_jobs", "verbose"}
        return kind(**{name: own[name] for name in shared})

    def _run_folds(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        tasks: Any,
        splits: list[tuple[IntArray, IntArray]],
        scorer: Any,
        ps: list[float],
        Cs: list[float],
        progress: Progress,
    ) -> list[Fold]:
        token = uuid4().hex
        _live[token] = progress
        try:
            jobs = (
                delayed(_score_fold)(
                    k,
                    self._plain(HeldOut),
                    self._part(X, train, train),
                    _safe_indexing(y, train),
                    _part_of(sample_weight, train),
                    _part_of(tasks, train),
                    self._part(X, test, train),
                    _safe_indexing(y, test),
                    _part_of(tasks, test),
                    scorer,
                    ps,
                    Cs,
                    token,
                    _part_of(sample_weight, test),
                )
                for k, (train, test) in enumerate(splits)
            )
            folds: list[Fold] = []
            # threads suit compiled loops; a backend that the user has set up is taken instead
            for fold in Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator_unordered")(jobs):
                folds.append(fold)
                if not fold.told:
                    progress.done(len(Cs) * len(ps))
                    progress.show(f"fold {len(folds)} of {len(splits)}")
            return sorted(folds, key=lambda fold: fold.number)
        finally:
            del _live[token]

    def _part(self, X: Any, rows: IntArray, columns: IntArray) -> Any:
        """Some samples of X; of a precomputed stack also the training samples they are compared with."""
        return np.asarray(X)[np.ix_(rows, columns)] if self._is_precomputed() else _safe_indexing(X, rows)

    def _tabulate(self, folds: list[Fold], ps: list[float], Cs: list[float]) -> None:
        pairs = [{"C": C, "p": p} for C in Cs for p in ps]  # the order of scikit-learn's ParameterGrid
        scores = np.array([fold.scores.ravel() for fold in folds])
        mean = scores.mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError("No pair of p and C has a score in every fold; look at scoring and cv.")
        seconds = np.array([np.repeat(fold.seconds / len(ps), len(ps)) for fold in folds])
        results: dict[str, Any] = {
            "mean_fit_time": seconds.mean(axis=0),
            "std_fit_time": seconds.std(axis=0),
            "param_C": np.array([pair["C"] for pair in pairs]),
            "param_p": np.array([pair["p"] for pair in pairs]),
            "params": pairs,
        }
        for k, of_fold in enumerate(scores):
            results[f"split{k}_test_score"] = of_fold
        results["mean_test_score"] = mean
        results["std_test_score"] = scores.std(axis=0)
        worst_of_all = np.nanmin(mean) - 1
        rank = rankdata(-np.where(np.isnan(mean), worst_of_all, mean), method="min").astype(np.int32)
        results["rank_test_score"] = rank
        results["max_gap"] = np.max([fold.gaps.ravel() for fold in folds], axis=0)
        self.cv_results_ = results
        self.best_index_ = int(rank.argmin())
        self.best_params_ = pairs[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])

    def _refit(self, plain: ParetoMKLClassifier, training: Training, ps: list[float], progress: Progress) -> None:
        began = perf_counter()
        C, p = self.best_params_["C"], self.best_params_["p"]
        samples, tasks = training.samples, training.tasks
        bank = as_bank(self.kernels).fit(samples.data, samples.names)
        solver, problem = plain._parts(bank, samples.data, tasks, [C * weight for weight in training.weights], ps)
        progress.history.clear()
        points = trace(problem, ps, solver, progress)
        path = gather(points, problem, tasks, progress, self.tol, perf_counter() - began)
        code = refit_code(
            s=self.s,
            C=C,
            kernels=self.kernels,
            task_column=self.task_column,
            task_weight=self.task_weight,
            class_weight=self.class_weight,
            tol=self.tol,
            tasks=self.task_column is None and samples.sources is not None,
        )
        # without the cuts
        self.path_ = replace(path, refit=code, solutions=[replace(point, state=None) for point in points])
        best = plain._at(points[ps.index(p)], p, C, problem.tasks.n_sweeps, training, bank)
        self.best_estimator_ = best
        for name in vars(best).keys() - best.get_params(deep=False).keys():
            setattr(self, name, getattr(best, name))


class HeldOut(ParetoMKLClassifier):
    """A fitted point of the grid that knows the held-out samples, and its decisions about them, already."""

    known: tuple[Any, Samples, Array]

    def _read(self, X: Any, tasks: Any, reset: bool) -> Samples:
        return self.known[1] if not reset and X is self.known[0] else super()._read(X, tasks, reset)

    def _pair_decisions(self, samples: Samples) -> Array:
        return self.known[2] if samples is self.known[1] else super()._pair_decisions(samples)


class Fold:
    """Scores and gaps of all points of one fold, (n_Cs, n_ps), the seconds of each C, and whether progress was told."""

    def __init__(self, number: int, n_Cs: int, n_ps: int, told: bool):
        self.number = number
        self.scores = np.empty((n_Cs, n_ps))
        self.gaps = np.empty((n_Cs, n_ps))
        self.seconds = np.empty(n_Cs)
        self.told = told


def _score_fold(
    number: int,
    estimator: HeldOut,
    X: Any,
    y: Any,
    sample_weight: Any,
    tasks: Any,
    X_test: Any,
    y_test: Any,
    tasks_test: Any,
    scorer: Any,
    ps: list[float],
    Cs: list[float],
    token: str,
    weight_test: Any = None,
) -> Fold:
    """Fit one fold for all C and p, and score each on the samples held out."""
    progress = _live.get(token)
    fold = Fold(number, len(Cs), len(ps), told=progress is not None)
    training = estimator._read_training(X, y, sample_weight, tasks)
    data = training.samples.data
    bank = as_bank(estimator.kernels).fit(data, training.samples.names)
    solver, problem = estimator._parts(bank, data, training.tasks, training.weights, ps)
    if isinstance(solver, CutPool) and solver is not estimator.solver:
        solver = replace(solver, borrow=1.0)  # scores ask for models within tol, not for a path without steps
    held_out = ParetoMKLClassifier._read(estimator, X_test, tasks_test, reset=False)
    given = {"tasks": tasks_test, "sample_weight": weight_test}
    routed = {name: value for name, value in given.items() if value is not None and scorer_takes(scorer, name)}
    for C, at_C, points in trace_grid(problem, ps, Cs, solver, progress or Progress(1, estimator.tol, 0)):
        # several p may have the same point, and with it the same decisions
        distinct = list({id(point.sweep): k for k, point in enumerate(points)}.values())
        fitted = [estimator._at(points[k], ps[k], C, at_C.tasks.n_sweeps, training, bank) for k in distinct]
        score_of = {}
        for k, point, decisions in zip(distinct, fitted, _decide_all(fitted, held_out), strict=True):
            point.known = (X_test, held_out, decisions)
            score_of[id(points[k].sweep)] = _one_number(scorer(point, X_test, y_test, **routed))
        scores = [score_of[id(point.sweep)] for point in points]
        for c in np.flatnonzero(np.array(Cs) == C):
            fold.scores[c] = scores
            fold.gaps[c] = [point.gap for point in points]
            fold.seconds[c] = at_C.tasks.seconds + getattr(points[0].state, "seconds", 0.0)
    return fold


def _decide_all(fitted: Sequence[ParetoMKLClassifier], samples: Samples) -> Array:
    """The decisions of several models of the same tasks, (n_models, n_samples, n_tasks): base kernels are made once."""
    one = fitted[0]
    bank = one._bank
    decisions = np.full((len(fitted), len(samples.data), one.n_tasks_), np.nan)
    thetas = np.array([point.theta_ for point in fitted])
    for source, rows in one._rows_of_sources(samples):
        tasks = one._tasks_of_source(source)
        used = np.unique(np.concatenate([point.support_[point.dual_coef_[tasks].any(axis=0)] for point in fitted]))
        if len(used) == 0:
            decisions[:, rows[:, None], tasks] = [[point.intercept_[tasks]] for point in fitted]
            continue
        coefficients = np.zeros((len(fitted), len(used), len(tasks)))
        vectors = None if bank.precomputed else np.empty((len(used), one.support_vectors_.shape[1]))
        for k, point in enumerate(fitted):
            mine = np.isin(point.support_, used)
            place = np.searchsorted(used, point.support_[mine])
            coefficients[k, place] = point.dual_coef_[np.ix_(tasks, np.flatnonzero(mine))].T
            if vectors is not None:
                vectors[place] = point.support_vectors_[mine]
        right = bank.side_of_columns(len(used)) if vectors is None else bank.side(vectors)
        intercepts = np.array([point.intercept_[tasks] for point in fitted])[:, None]
        step = max(1, int(HELD_OUT_BYTES // (8 * len(used) * (bank.n_kernels + 1))))
        for first in range(0, len(rows), step):
            batch = rows[first : first + step]
            part = samples.data[np.ix_(batch, used)] if bank.precomputed else samples.data[batch]
            stack = bank.cross_all(bank.side(part), right, np.eye(bank.n_kernels))
            for k in range(len(fitted)):
                K = np.tensordot(thetas[k], stack, axes=1)
                decisions[k][np.ix_(batch, tasks)] = K @ coefficients[k] + intercepts[k]
    return decisions


def _part_of(values: Any, rows: IntArray) -> Any:
    return None if values is None else _safe_indexing(values, rows)


def _own_score(estimator: ParetoMKLClassifier, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
    return estimator.score(X, y, sample_weight, tasks)


def _one_number(score: Any) -> float:
    if not isinstance(score, numbers.Real):
        raise ValueError(f"scoring must give one number, got {shown(score)}.")
    return float(score)


def _check_costs(Cs: Any) -> list[float]:
    costs = [Cs] if np.ndim(Cs) == 0 else list(Cs)
    if not costs:
        raise ValueError("Cs is empty; give at least one C.")
    for C in costs:
        check_number("every C in Cs", C, lambda v: 0 < v < np.inf, "greater than 0")
    return [float(C) for C in costs]
