"""p, C, s and the capacity of kernels by cross-validation, for little more than one path for each fold and C."""

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

from ._choice import choose, edge_of
from ._kernel_classifier import KernelTaskClassifier, fitted_at
from ._kernels import KernelLike, as_bank
from ._labelling import Samples, log_loss
from ._model import TaskModel, decide_all
from ._parallel import effective_jobs
from ._progress import Progress
from ._reading import Training, read_samples, read_training, take_rows
from ._refit import refit_code
from ._run import Run
from ._scorers import check_scorer, scorer_takes
from ._splits import make_splits
from ._tracing import Grid, check_parts, fit_bank, make_problem, models_of, trace, trace_grid
from ._typing import Array, ClassWeight, IntArray, SolverLike, TaskScale
from ._validation import check_exponents, check_grid, check_task_scale, check_task_weight, shown
from .estimators import ParetoMKLClassifier
from .path import PAPER_PS, ParetoPath
from .solvers import CutPool

__all__ = ["ParetoMKLClassifierCV"]

_NORMS = (1.1, 2.0)
_CAPACITIES = (0.5, 1.0)

_live: dict[str, Progress] = {}  # progress bars by token: a fold run in this process finds its own, elsewhere none


class ParetoMKLClassifierCV(KernelTaskClassifier):
    """:class:`ParetoMKLClassifier` with p, C, s and the capacity κ of its kernels chosen by cross-validation.

    Each fold traces the path over all p for each C, κ and s. Kernels are made once a fold. A cut holds for every p, s
    and scale of the kernels, so that cuts and dual variables are carried along all of these and along C, and all models
    are scored in one pass over the held-out samples: the search costs little more than one path for each fold and C.
    Folds share nothing: what one of them learns never depends on samples it holds out.

    The highest mean score wins. Scores that differ by rounding only are equal; among equal ones the least log-loss of
    the held-out decisions decides. Points within one standard error of that score are as good as far as the folds can
    tell: of these the ones with p nearest to 1 are taken, and of these the one that still scores best when its score is
    averaged with those of the next smaller and larger C.

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
        ``rank_test_score``; and ``mean_test_log_loss``, ``max_gap``, the largest certificate among the folds, and
        ``mean_fit_time`` and ``std_fit_time``, of the point's share of its path.
    path_ : ParetoPath
        The whole path on all samples at the chosen C, s and capacity.
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
    >>> search = ParetoMKLClassifierCV(ps=[0.1, 1.0, 10.0], Cs=[1.0, 10.0], s=1.1).fit(X, y)
    >>> sorted(search.best_params_)
    ['C', 'capacity', 'p']
    >>> len(search.path_), len(search.cv_results_["mean_test_score"])
    (3, 12)
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
        ps: float | Sequence[float] = PAPER_PS,
        Cs: float | Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        s: float | Sequence[float] = _NORMS,
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

    def fit(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose p, C, s and capacity, then learn the path of that C, s and capacity on all samples.

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
        grid = self._grid()
        effective_jobs(self.n_jobs)
        check_task_scale(self.task_scale)
        plain = self.plain_estimator()
        training = read_training(plain, X, y, tasks=tasks, sample_weight=sample_weight)
        tasks = None if tasks is None else training.samples.sources
        X, y, sample_weight, tasks, groups = indexable(X, y, sample_weight, tasks, groups)
        self.scorer_ = _own_score if self.scoring is None else check_scorer(self.scoring, plain)
        splits = make_splits(self.cv, training.samples.data, y, training.samples.sources, groups, self.random_state)
        with Progress(len(splits) * grid.size + len(grid.ps), self.tol, self.verbose) as progress:
            folds = self._run_folds(X, y, sample_weight, tasks, splits, grid, progress)
            self._tabulate(folds, grid)
            self._refit(plain, training, grid, progress)
        self.n_splits_ = len(splits)
        return self

    def score(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> float:
        """The ``scoring`` of the search on these samples; without one that of :meth:`ParetoMKLClassifier.score`."""
        check_is_fitted(self)
        given = _routed(self.scorer_, {"tasks": tasks, "sample_weight": sample_weight})
        return _one_number(self.scorer_(self.best_estimator_, X, y, **given))

    def _grid(self) -> Grid:
        """What to choose from, checked."""
        for name in ("ps", "Cs", "s", "capacity"):
            if isinstance(getattr(self, name), Iterator):
                raise ValueError(f"{name} is an iterator, which can be read only once; pass a list.")
        bank = as_bank(self.kernels)
        capacity: Any = self.capacity
        if isinstance(capacity, str):
            if capacity != "auto":
                raise ValueError(f"capacity must be 'auto', a number or a sequence of numbers, got {shown(capacity)}.")
            capacity = _CAPACITIES if bank.normalization == "capacity" else None
        elif bank.normalize not in ("auto", "capacity"):
            raise ValueError(f"capacity is for normalize='capacity'; the bank has normalize={bank.normalize!r}.")
        return Grid(
            check_exponents(self.ps),
            check_grid("Cs", self.Cs),
            check_grid("s", self.s, "of at least 1", lambda v: 1 <= v <= np.inf),
            None if capacity is None else check_grid("capacity", capacity, "of at least 0", lambda v: 0 <= v < np.inf),
        )

    def plain_estimator(self, kind: type[ParetoMKLClassifier] = ParetoMKLClassifier) -> ParetoMKLClassifier:
        """The estimator whose parameters are chosen, not fitted; folds run side by side, each on one thread."""
        own = self.get_params(deep=False)
        shared = own.keys() & ParetoMKLClassifier().get_params(deep=False).keys() - {"n_jobs", "verbose", "s"}
        plain = kind(**{name: own[name] for name in shared})
        if not isinstance(self.capacity, str):  # asking for capacities asks for kernels that pay for them
            plain.kernels = replace(as_bank(self.kernels), normalize="capacity")
        return plain

    def _run_folds(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        tasks: Any,
        splits: list[tuple[IntArray, IntArray]],
        grid: Grid,
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
                    _Fold(k, grid),
                    self.plain_estimator(_HeldOut),
                    part(train, train),
                    part(test, train),
                    self.scorer_,
                    token,
                )
                for k, (train, test) in enumerate(splits)
            )
            folds: list[_Fold] = []
            # threads suit compiled loops; a backend that the user has set up takes precedence
            for fold in Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator_unordered")(jobs):
                folds.append(fold)
                if not fold.shown:
                    progress.done(grid.size)
                    progress.show(f"fold {len(folds)} of {len(splits)}")
            return sorted(folds, key=lambda fold: fold.number)
        finally:
            del _live[token]

    def _tabulate(self, folds: list[_Fold], grid: Grid) -> None:
        scores = np.array([fold.scores for fold in folds])
        losses = np.array([fold.losses for fold in folds])
        counted = _counted(folds, self.error_score)
        mean = scores[counted].mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError("No point of the grid has a score in every fold; look at scoring and cv.")
        seconds = np.array([fold.seconds for fold in folds])
        values = grid.columns()
        fixed = {name for name in ("s", "capacity") if isinstance(getattr(self, name), numbers.Real)}
        searched = [name for name in values if name not in fixed]
        rows = zip(*(values[name].tolist() for name in searched), strict=True)
        points = [dict(zip(searched, row, strict=True)) for row in rows]
        results: dict[str, Any] = {"mean_fit_time": seconds.mean(axis=0), "std_fit_time": seconds.std(axis=0)}
        results |= {f"param_{name}": values[name] for name in searched}
        results["params"] = points
        for k, of_fold in enumerate(scores):
            results[f"split{k}_test_score"] = of_fold
        results["mean_test_score"] = mean
        results["std_test_score"] = scores[counted].std(axis=0)
        worst_of_all = np.nanmin(mean) - 1
        filled = np.where(np.isnan(mean), worst_of_all, mean).round(9)  # sums of the same numbers differ by rounding
        results["rank_test_score"] = rankdata(-filled, method="min").astype(np.int32)
        results["mean_test_log_loss"] = losses[counted].mean(axis=0)
        results["max_gap"] = np.max([fold.gaps for fold in folds], axis=0)
        self.cv_results_ = results
        self.best_index_ = choose(scores[counted], results["mean_test_log_loss"], values)
        self.best_params_ = points[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        self._warn_of_edge(values["C"], mean)

    def _warn_of_edge(self, Cs: Array, mean: Array) -> None:
        C = self.best_params_["C"]
        edge = edge_of(C, mean, Cs)
        if edge is not None:
            beyond = C * 10 if edge == "largest" else C / 10
            warnings.warn(
                f"The chosen C={C:g} is the {edge} of Cs, and all others score less; add {beyond:g} to Cs.",
                UserWarning,
                stacklevel=4,
            )

    def _refit(self, plain: ParetoMKLClassifier, training: Training, grid: Grid, progress: Progress) -> None:
        began = perf_counter()
        values = grid.columns()
        C, p, plain.s = (float(values[name][self.best_index_]) for name in ("C", "p", "s"))
        if "capacity" in values:
            capacity = float(values["capacity"][self.best_index_])
            plain.kernels = replace(as_bank(plain.kernels), normalize="capacity", capacity=capacity)
        ps = list(grid.ps)
        parts = check_parts(ps, plain.s, self.tol, self.solver, self.max_iter, None, self.task_scale)
        omega = check_task_weight(self.task_weight, training.tasks)
        problem = make_problem(training, training.bounds(C), fit_bank(plain.kernels, training), parts, omega)
        run = Run(progress.report)
        points = trace(problem, ps, parts.solver, progress, run=run)
        names = ("kernels", "task_column", "task_weight", "class_weight", "task_scale")
        named = {name: getattr(plain, name) for name in names}
        by_argument = self.task_column is None and training.samples.sources is not None
        code = refit_code(s=plain.s, C=C, tol=self.tol, tasks=by_argument, **named)
        spent = perf_counter() - began
        path = ParetoPath.from_solutions(points, training, plain, run, self.tol, spent, code, self.task_scale)
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
    """Scores, losses, gaps and seconds of all points of one fold, in the order of the grid; and what went wrong."""

    def __init__(self, number: int, grid: Grid):
        self.number, self.grid = number, grid
        self.scores, self.losses, self.gaps, self.seconds = np.full((4, grid.size), np.nan)
        self.shown = False
        self.error: Exception | None = None

    def fill(self, found: Mapping[tuple[float, float | None, float, float], tuple[float, ...]]) -> None:
        """Score, loss, gap and seconds by point of the grid."""
        self.scores, self.losses, self.gaps, self.seconds = np.array([found[point] for point in self.grid.points]).T


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
    fold: _Fold, estimator: _HeldOut, train: dict[str, Any], test: dict[str, Any], scorer: Any, token: str
) -> None:
    """Fit one fold at all points of the grid, and score each on the samples held out."""
    progress = _live.get(token)
    fold.shown = progress is not None
    grid = fold.grid
    training = read_training(estimator, **train)
    parts = check_parts(
        grid.ps, estimator.s, estimator.tol, estimator.solver, estimator.max_iter, None, estimator.task_scale
    )
    solver = parts.solver
    if isinstance(solver, CutPool) and solver is not estimator.solver:
        solver = replace(solver, borrow=1.0)  # scores ask for models within tol, not for a path without steps
    omega = check_task_weight(estimator.task_weight, training.tasks)
    training.bounds(max(grid.Cs))
    problem = make_problem(training, training.weights, fit_bank(estimator.kernels, training), parts, omega)
    held_out = read_samples(estimator, test["X"], tasks=test["tasks"])
    estimator.known = (test["X"], held_out)
    given = _routed(scorer, {"tasks": test["tasks"], "sample_weight": test["sample_weight"]})
    stretches = list(trace_grid(problem, grid, solver, progress or Progress(1, estimator.tol, 0)))
    models = models_of([point for stretch in stretches for point in stretch.points], training)
    distinct = {id(model): model for model in models}  # several points may have the same sweep, and with it the model
    decided = dict(zip(distinct, decide_all(list(distinct.values()), held_out), strict=True))
    sides = training.labelling.sides(test["y"])
    verdicts: dict[int, tuple[float, float]] = {}
    found = {}
    of_point = iter(models)
    for stretch in stretches:
        share = sum(stretch.run.seconds.values()) / len(grid.ps)
        for p, point, model in zip(grid.ps, stretch.points, of_point, strict=False):
            if id(model) not in verdicts:
                known = _DecidedModel(**vars(model), held_out=held_out, decided=decided[id(model)])
                fitted = fitted_at(estimator, point, known, stretch.C, stretch.run.n_sweeps)
                loss = log_loss(known.decided, sides, test["sample_weight"])
                verdicts[id(model)] = _one_number(scorer(fitted, test["X"], test["y"], **given)), loss
            found[stretch.C, stretch.capacity, p, stretch.s] = *verdicts[id(model)], point.gap, share
    fold.fill(found)


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


def _one_number(score: Any) -> float:
    if not isinstance(score, numbers.Real):
        raise ValueError(f"scoring must give one number, got {shown(score)}.")
    return float(score)
