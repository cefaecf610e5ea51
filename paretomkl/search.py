"""p and C by cross-validation, for little more than one path for each fold and C."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal, Self
from uuid import uuid4

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ._kernel_classifier import KernelTaskClassifier, fitted_at
from ._kernels import KernelLike
from ._labelling import Samples
from ._model import TaskModel, decide_all
from ._parallel import effective_jobs
from ._progress import Progress
from ._reading import Training, read_samples, read_training, take_rows
from ._refit import refit_code
from ._run import Run
from ._scorers import check_scorer, scorer_takes
from ._splits import make_splits
from ._tracing import check_parts, fit_bank, make_problem, models_of, trace, trace_grid
from ._typing import Array, ClassWeight, IntArray, SolverLike
from ._validation import check_exponents, check_grid, check_task_weight, shown
from .estimators import ParetoMKLClassifier
from .path import PAPER_PS, ParetoPath
from .solvers import CutPool

__all__ = ["ParetoMKLClassifierCV"]

_live: dict[str, Progress] = {}  # progress bars by token: a fold run in this process finds its own, elsewhere none


class ParetoMKLClassifierCV(KernelTaskClassifier):
    """:class:`ParetoMKLClassifier` with p and C chosen by cross-validation.

    Each fold traces the path over all p for each C. Kernels are made once a fold, cuts and dual variables are carried
    along p and along C, and all models are scored in one pass over the held-out samples; a search over p and C thus
    costs about one path for each fold and C. Folds share nothing: what one of them learns never depends on samples it
    holds out.

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
    kernels, task_column, task_weight, solver, tol, class_weight, verbose, random_state, max_iter
        As in :class:`ParetoMKLClassifier`.
    n_jobs : int, default=None
        Folds at a time; -1 is all cores. ``joblib.parallel_config`` chooses where they run, on a cluster too.
    error_score : "raise" or float, default=nan
        What a fold scores whose fit fails. With NaN a warning is given and the other folds decide.

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
    scorer_ : callable
        What scored the held-out samples, and what ``score`` uses.
    n_splits_ : int
    refit_time_ : float
        Seconds of the last path, on all samples.
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

    best_params_: dict[str, float]
    best_score_: float
    best_index_: int
    best_estimator_: ParetoMKLClassifier
    cv_results_: dict[str, Any]
    path_: ParetoPath
    scorer_: Callable[..., Any]
    n_splits_: int
    refit_time_: float
    task_weights_: Array

    def __init__(
        self,
        ps: Sequence[float] = PAPER_PS,
        Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        s: float = 1.1,
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
        self.error_score = error_score
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
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
        ps, Cs = check_exponents(_reusable("ps", self.ps)), check_grid("Cs", _reusable("Cs", self.Cs))
        effective_jobs(self.n_jobs)
        plain = self.plain_estimator()
        training = read_training(plain, X, y, tasks=tasks, sample_weight=sample_weight)
        tasks = None if tasks is None else training.samples.sources
        X, y, sample_weight, tasks, groups = indexable(X, y, sample_weight, tasks, groups)
        self.scorer_ = _own_score if self.scoring is None else check_scorer(self.scoring, plain)
        splits = make_splits(self.cv, training.samples.data, y, training.samples.sources, groups)
        with Progress((len(splits) * len(Cs) + 1) * len(ps), self.tol, self.verbose) as progress:
            folds = self._run_folds(X, y, sample_weight, tasks, splits, ps, Cs, progress)
            self._tabulate(folds, ps, Cs)
            self._refit(plain, training, ps, progress)
        self.n_splits_ = len(splits)
        return self

    def score(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> float:
        """The ``scoring`` of the search on these samples; without one that of :meth:`ParetoMKLClassifier.score`."""
        check_is_fitted(self)
        given = _routed(self.scorer_, {"tasks": tasks, "sample_weight": sample_weight})
        return _one_number(self.scorer_(self.best_estimator_, X, y, **given))

    def plain_estimator(self, kind: type[ParetoMKLClassifier] = ParetoMKLClassifier) -> ParetoMKLClassifier:
        """The estimator whose p and C are chosen, not fitted; folds run side by side, each on one thread."""
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
        ps: list[float],
        Cs: list[float],
        progress: Progress,
    ) -> list[_Fold]:
        token = uuid4().hex
        _live[token] = progress

        def part(rows: IntArray, train: IntArray) -> dict[str, Any]:
            given = {"y": y, "tasks": tasks, "sample_weight": sample_weight}
            return {"X": take_rows(X, rows, train, self.kernels)} | {k: take_rows(v, rows) for k, v in given.items()}

        try:
            jobs = (
                delayed(_run_fold)(
                    self.error_score,
                    _Fold(k, len(Cs), len(ps)),
                    self.plain_estimator(_HeldOut),
                    part(train, train),
                    part(test, train),
                    self.scorer_,
                    ps,
                    Cs,
                    token,
                )
                for k, (train, test) in enumerate(splits)
            )
            folds: list[_Fold] = []
            # threads suit compiled loops; a backend that the user has set up takes precedence
            for fold in Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator_unordered")(jobs):
                folds.append(fold)
                if not fold.shown:
                    progress.done(len(Cs) * len(ps))
                    progress.show(f"fold {len(folds)} of {len(splits)}")
            return sorted(folds, key=lambda fold: fold.number)
        finally:
            del _live[token]

    def _tabulate(self, folds: list[_Fold], ps: list[float], Cs: list[float]) -> None:
        pairs = [{"C": C, "p": p} for C in Cs for p in ps]  # the order of scikit-learn's ParameterGrid
        scores = np.array([fold.scores.ravel() for fold in folds])
        counted = _counted(folds, self.error_score)
        mean = scores[counted].mean(axis=0)
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
        results["std_test_score"] = scores[counted].std(axis=0)
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
        parts = check_parts(ps, self.s, self.tol, self.solver, self.max_iter, None)
        omega = check_task_weight(self.task_weight, training.tasks)
        problem = make_problem(training, training.bounds(C), fit_bank(self.kernels, training), parts, omega)
        run = Run(progress.report)
        points = trace(problem, ps, parts.solver, progress, run=run)
        named = {name: getattr(self, name) for name in ("kernels", "task_column", "task_weight", "class_weight")}
        by_argument = self.task_column is None and training.samples.sources is not None
        code = refit_code(s=self.s, C=C, tol=self.tol, tasks=by_argument, **named)
        spent = perf_counter() - began
        path = ParetoPath.from_solutions(points, training, plain, run, self.tol, spent, code)
        k = ps.index(p)
        best = fitted_at(plain, points[k], path.models[k].trimmed(), C, run.n_sweeps)
        self.path_, self.best_estimator_, self.refit_time_ = path, best, spent
        for name in vars(best).keys() - best.get_params(deep=False).keys():
            setattr(self, name, getattr(best, name))


class _HeldOut(ParetoMKLClassifier):
    """A fitted point of the grid that has read the held-out samples already."""

    known: tuple[Any, Samples]

    def _samples(self, X: Any, tasks: Any) -> Samples:
        return self.known[1] if X is self.known[0] else super()._samples(X, tasks)


@dataclass(frozen=True)
class _DecidedModel(TaskModel):
    """A model whose decisions about the held-out samples are known."""

    held_out: Samples
    decided: Array

    def decisions(self, samples: Any, tasks: Any = None) -> Array:
        return self.decided if samples is self.held_out else super().decisions(samples, tasks)


class _Fold:
    """Scores and gaps of all points of one fold, (n_Cs, n_ps), the seconds of each C, and what went wrong."""

    def __init__(self, number: int, n_Cs: int, n_ps: int):
        self.number = number
        self.scores = np.full((n_Cs, n_ps), np.nan)
        self.gaps = np.full((n_Cs, n_ps), np.nan)
        self.seconds = np.zeros(n_Cs)
        self.shown = False
        self.error: Exception | None = None


def _run_fold(error_score: float | str, fold: _Fold, *others: Any) -> _Fold:
    """Score one fold; a failure is kept unless ``error_score`` is "raise"."""
    try:
        _score_fold(fold, *others)
    except Exception as error:
        if isinstance(error_score, str):
            raise
        fold.error = error
        fold.scores[:] = error_score
    return fold


def _score_fold(
    fold: _Fold,
    estimator: _HeldOut,
    train: dict[str, Any],
    test: dict[str, Any],
    scorer: Any,
    ps: list[float],
    Cs: list[float],
    token: str,
) -> None:
    """Fit one fold for all C and p, and score each on the samples held out."""
    progress = _live.get(token)
    fold.shown = progress is not None
    training = read_training(estimator, **train)
    parts = check_parts(ps, estimator.s, estimator.tol, estimator.solver, estimator.max_iter, None)
    solver = parts.solver
    if isinstance(solver, CutPool) and solver is not estimator.solver:
        solver = replace(solver, borrow=1.0)  # scores ask for models within tol, not for a path without steps
    omega = check_task_weight(estimator.task_weight, training.tasks)
    training.bounds(max(Cs))
    problem = make_problem(training, training.weights, fit_bank(estimator.kernels, training), parts, omega)
    held_out = read_samples(estimator, test["X"], tasks=test["tasks"])
    estimator.known = (test["X"], held_out)
    given = _routed(scorer, {"tasks": test["tasks"], "sample_weight": test["sample_weight"]})
    for C, run, points in trace_grid(problem, ps, Cs, solver, progress or Progress(1, estimator.tol, 0)):
        models = models_of(points, training)
        # several p may have the same point, and with it the same model
        distinct = {id(model): (point, model) for point, model in zip(points, models, strict=True)}
        decided = decide_all([model for _, model in distinct.values()], held_out)
        score_of = {}
        for (key, (point, model)), decisions in zip(distinct.items(), decided, strict=True):
            known = _DecidedModel(**vars(model), held_out=held_out, decided=decisions)
            fitted = fitted_at(estimator, point, known, C, run.n_sweeps)
            score_of[key] = _one_number(scorer(fitted, test["X"], test["y"], **given))
        for c in np.flatnonzero(np.array(Cs) == C):
            fold.scores[c] = [score_of[id(model)] for model in models]
            fold.gaps[c] = [point.gap for point in points]
            fold.seconds[c] = sum(run.seconds.values())


def _counted(folds: list[_Fold], error_score: float | str) -> list[bool]:
    """Which folds enter the mean: all, or with error_score=nan those whose fit did not fail."""
    failed = [fold for fold in folds if fold.error is not None]
    if not failed:
        return [True] * len(folds)
    first = failed[0].error
    if len(failed) == len(folds):
        raise ValueError(f"The fit failed in all {len(folds)} folds; in the first with: {first}") from first
    warnings.warn(
        f"The fit failed in {len(failed)} of {len(folds)} folds (error_score={error_score}); first with: {first}",
        FitFailedWarning,
        stacklevel=4,
    )
    return [fold.error is None or not np.isnan(float(error_score)) for fold in folds]


def _own_score(estimator: Any, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
    return estimator.score(X, y, tasks=tasks, sample_weight=sample_weight)


def _routed(scorer: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What of this is there and the scorer takes."""
    return {name: value for name, value in given.items() if value is not None and scorer_takes(scorer, name)}


def _reusable(name: str, values: Any) -> Any:
    if isinstance(values, Iterator):
        raise ValueError(f"{name} is an iterator, which can be read only once; pass a list.")
    return values


def _one_number(score: Any) -> float:
    if not isinstance(score, numbers.Real):
        raise ValueError(f"scoring must give one number, got {shown(score)}.")
    return float(score)
