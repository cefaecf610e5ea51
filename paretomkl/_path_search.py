"""Choosing p, C, s, capacity and ε by cross-validation: what searches over classifiers and regressors share."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, Self
from uuid import uuid4

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ._choice import choose, edge_of
from ._kernel_classifier import fitted_at
from ._kernels import as_bank
from ._labelling import Samples
from ._model import TaskModel, decide_all
from ._parallel import effective_jobs
from ._progress import Progress
from ._reading import Training, read_samples, take_rows
from ._refit import refit_code
from ._run import Run
from ._scorers import check_scorer, scorer_takes
from ._splits import make_splits
from ._tracing import Grid, Point, models_of, trace, trace_grid
from ._typing import Array, IntArray
from ._validation import check_exponents, check_grid, check_task_scale, shown
from .path import ParetoPath
from .solvers import CutPool

NORMS = (1.1, 2.0)
CAPACITIES = (0.5, 1.0)

_live: dict[str, Progress] = {}  # progress bars by token: a fold run in this process finds its own, elsewhere none


class PathSearch:
    """A search for the best point of a path; what it has found is the fitted estimator that it stands for.

    A subclass has the parameters of its plain estimator, ``ps``, ``Cs``, ``s`` and ``capacity`` in place of p, C and s,
    ``cv``, ``scoring`` and ``error_score``; and names the estimator and its form for held-out samples.
    """

    plain_type: ClassVar[Any]
    held_out_type: ClassVar[Any]
    stratify: ClassVar[bool] = True
    loss_name: ClassVar[str] = "log_loss"

    best_params_: dict[str, float]
    best_score_: float
    best_index_: int
    best_estimator_: Any
    cv_results_: dict[str, Any]
    path_: ParetoPath
    scorer_: Callable[..., Any]
    n_splits_: int
    refit_time_: float
    task_weights_: Array

    ps: Any
    Cs: Any
    s: Any
    capacity: Any
    cv: Any
    scoring: Any
    kernels: Any
    task_column: Any
    task_weight: Any
    solver: Any
    tol: float
    n_jobs: int | None
    verbose: int | None
    random_state: Any
    error_score: Any
    max_iter: int | None
    task_scale: Any

    get_params: Callable[..., dict[str, Any]]
    _forget: Callable[[], None]

    def fit(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the parameters, then learn the path of the chosen C, s and capacity on all samples.

        Parameters
        ----------
        X, y, tasks
            As in the ``fit`` of the plain estimator.
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
        plain.parts(grid.ps)
        training = plain.read_data(X, y, tasks=tasks, sample_weight=sample_weight)
        tasks = None if tasks is None else training.samples.sources
        X, y, sample_weight, tasks, groups = indexable(X, y, sample_weight, tasks, groups)
        self.scorer_ = own_score if self.scoring is None else check_scorer(self.scoring, plain)
        data, sources = training.samples.data, training.samples.sources
        splits = make_splits(self.cv, data, y, sources, groups, self.random_state, stratify=self.stratify)
        with Progress(len(splits) * grid.size + len(grid.ps), self.tol, self.verbose) as progress:
            folds = self._run_folds(X, y, sample_weight, tasks, splits, grid, progress)
            self._tabulate(folds, grid)
            self._refit(plain, training, grid, progress)
        self.n_splits_ = len(splits)
        return self

    def score(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> float:
        """The ``scoring`` of the search on these samples; without one that of the plain estimator."""
        check_is_fitted(self)
        given = _routed(self.scorer_, {"tasks": tasks, "sample_weight": sample_weight})
        return _one_number(self.scorer_(self.best_estimator_, X, y, **given))

    def _grid(self) -> Grid:
        """What to choose from, checked."""
        for name in ("ps", "Cs", "s", "capacity", "epsilon"):
            if isinstance(getattr(self, name, None), Iterator):
                raise ValueError(f"{name} is an iterator, which can be read only once; pass a list.")
        bank = as_bank(self.kernels)
        capacity: Any = self.capacity
        if isinstance(capacity, str):
            if capacity != "auto":
                raise ValueError(f"capacity must be 'auto', a number or a sequence of numbers, got {shown(capacity)}.")
            capacity = CAPACITIES if bank.normalization == "capacity" else None
        elif bank.normalize not in ("auto", "capacity"):
            raise ValueError(f"capacity is for normalize='capacity'; the bank has normalize={bank.normalize!r}.")
        return Grid(
            check_exponents(self.ps),
            check_grid("Cs", self.Cs),
            check_grid("s", self.s, "of at least 1", lambda v: 1 <= v <= np.inf),
            None if capacity is None else check_grid("capacity", capacity, "of at least 0", lambda v: 0 <= v < np.inf),
            self._epsilons(),
        )

    def _epsilons(self) -> list[float] | None:
        """Values of ε to choose from, for machines that have it."""
        return None

    def plain_estimator(self, kind: Any = None) -> Any:
        """The estimator whose parameters are chosen, not fitted; folds run side by side, each on one thread."""
        own = self.get_params(deep=False)
        shared = own.keys() & self.plain_type().get_params(deep=False).keys() - {"n_jobs", "verbose", "s", "epsilon"}
        plain = (kind or self.plain_type)(**{name: own[name] for name in shared})
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
                    self.plain_estimator(self.held_out_type),
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
        single = ("s", "capacity", "epsilon")
        fixed = {name for name in single if isinstance(getattr(self, name, None), numbers.Real)}
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
        results[f"mean_test_{self.loss_name}"] = losses[counted].mean(axis=0)
        results["max_gap"] = np.max([fold.gaps for fold in folds], axis=0)
        self.cv_results_ = results
        self.best_index_ = choose(scores[counted], results[f"mean_test_{self.loss_name}"], values)
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

    def _refit(self, plain: Any, training: Training, grid: Grid, progress: Progress) -> None:
        began = perf_counter()
        chosen = {name: float(values[self.best_index_]) for name, values in grid.columns().items()}
        C, p, plain.s = chosen["C"], chosen["p"], chosen["s"]
        if "capacity" in chosen:
            plain.kernels = replace(as_bank(plain.kernels), normalize="capacity", capacity=chosen["capacity"])
        if "epsilon" in chosen:
            plain.epsilon = chosen["epsilon"]
        ps = list(grid.ps)
        parts = plain.parts(ps)
        problem = plain.problem(training, training.bounds(C), parts)
        run = Run(progress.report)
        points = trace(problem, ps, parts.solver, progress, run=run)
        by_argument = self.task_column is None and training.samples.sources is not None
        skipped = {"p", "s", "C", "tol", "solver", "n_jobs", "verbose", "random_state", "max_iter"}
        named = {name: value for name, value in plain.get_params(deep=False).items() if name not in skipped}
        code = refit_code(self.plain_type.__name__, s=plain.s, C=C, tol=self.tol, tasks=by_argument, **named)
        spent = perf_counter() - began
        path = ParetoPath.from_solutions(points, training, plain, run, self.tol, spent, code, self.task_scale)
        k = ps.index(p)
        best = fitted_at(plain, points[k], path.models[k].trimmed(), C, run.n_sweeps)
        self.path_, self.best_estimator_, self.refit_time_ = path, best, spent
        for name in vars(best).keys() - best.get_params(deep=False).keys():
            setattr(self, name, getattr(best, name))


class HeldOut:
    """Makes an estimator one that has read the held-out samples already."""

    known: tuple[Any, Samples]

    def _samples(self, X: Any, tasks: Any) -> Samples:
        return self.known[1] if X is self.known[0] else super()._samples(X, tasks)  # type: ignore[misc]


@dataclass(frozen=True)
class _DecidedModel(TaskModel):
    """A model whose decisions about the held-out samples are known."""

    held_out: Samples | None = None
    decided: Array | None = None

    def decisions(self, samples: Any, tasks: Any = None) -> Array:
        known = samples is self.held_out and self.decided is not None
        return self.decided if known else super().decisions(samples, tasks)  # type: ignore[return-value]


class _Fold:
    """Scores, losses, gaps and seconds of all points of one fold, in the order of the grid; and what went wrong."""

    def __init__(self, number: int, grid: Grid):
        self.number, self.grid = number, grid
        self.scores, self.losses, self.gaps, self.seconds = np.full((4, grid.size), np.nan)
        self.shown = False
        self.error: Exception | None = None

    def fill(self, found: Mapping[Point, tuple[float, ...]]) -> None:
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
    fold: _Fold, estimator: Any, train: dict[str, Any], test: dict[str, Any], scorer: Any, token: str
) -> None:
    """Fit one fold at all points of the grid, and score each on the samples held out."""
    progress = _live.get(token)
    fold.shown = progress is not None
    grid = fold.grid
    training = estimator.read_data(**train, strict=False)
    parts = estimator.parts(grid.ps)
    solver = parts.solver
    if isinstance(solver, CutPool) and solver is not estimator.solver:
        solver = replace(solver, borrow=1.0)  # scores ask for models within tol, not for a path without steps
    training.bounds(max(grid.Cs))
    problem = estimator.problem(training, training.weights, parts)
    held_out = read_samples(estimator, test["X"], tasks=test["tasks"])
    estimator.known = (test["X"], held_out)
    given = _routed(scorer, {"tasks": test["tasks"], "sample_weight": test["sample_weight"]})
    stretches = list(trace_grid(problem, grid, solver, progress or Progress(1, estimator.tol, 0)))
    models = models_of([point for stretch in stretches for point in stretch.points], training)
    distinct = {id(model): model for model in models}  # several points may have the same sweep, and with it the model
    decided = dict(zip(distinct, decide_all(list(distinct.values()), held_out), strict=True))
    loss = training.labelling.loss(test["y"], test["sample_weight"])
    verdicts: dict[int, tuple[float, float]] = {}
    found = {}
    of_point = iter(models)
    for stretch in stretches:
        share = sum(stretch.run.seconds.values()) / len(grid.ps)
        for p, point, model in zip(grid.ps, stretch.points, of_point, strict=False):
            if id(model) not in verdicts:
                known = _DecidedModel(**vars(model), held_out=held_out, decided=decided[id(model)])
                fitted = fitted_at(estimator, point, known, stretch.C, stretch.run.n_sweeps)
                score = _one_number(scorer(fitted, test["X"], test["y"], **given))
                verdicts[id(model)] = score, loss(decided[id(model)])
            found[stretch.at(p)] = *verdicts[id(model)], point.gap, share
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


def own_score(estimator: Any, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
    return estimator.score(X, y, tasks=tasks, sample_weight=sample_weight)


def _routed(scorer: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What of this is there and the scorer takes."""
    return {name: value for name, value in given.items() if value is not None and scorer_takes(scorer, name)}


def _one_number(score: Any) -> float:
    if not isinstance(score, numbers.Real):
        raise ValueError(f"scoring must give one number, got {shown(score)}.")
    return float(score)
