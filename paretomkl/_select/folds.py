"""Score a grid of parameters on folds: each fold traces its paths and scores all points on the held-out samples."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from .._data.labels import Decided, Samples, TaskSet
from .._data.reading import Examples, Training, apart
from .._fitting.models import FittedTasks, TaskModel, decide_all
from .._fitting.tracing import Grid, Parts, Point, models_of, trace_grid
from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
from .._tools.checks import shown
from .._tools.running import Progress, carrying, effective_jobs
from .._tools.shares import Share
from .._tools.typing import Array
from ..exceptions import TaskDataError
from .scorers import scorer_takes, wants_probabilities

PlainEstimator = ParetoMKLClassifier | ParetoMKLRegressor
Scorer = Callable[..., Any]
MOST_KEPT = 64 * 2**20  # bytes of decisions that a fold keeps; beyond, the chosen point is fitted again to calibrate it
MOST_SHARES = 1_000_000  # shares of kernels that a fold keeps


@dataclass(frozen=True)
class Fold:
    """All that one fold needs to score a grid, also in another process.

    estimator: unfitted; train, test: the samples to learn from and those held out; asked: the arguments X and tasks of
    a scorer, which are the held-out samples as the user passed them; keeps: whether to return the decisions.
    """

    number: int
    way: Share
    grid: Grid
    estimator: PlainEstimator
    train: Examples
    test: Examples
    scorer: Scorer
    asked: dict[str, Any]
    keeps: bool = False


@dataclass(frozen=True)
class FoldDecisions:
    """The decisions of all points of a fold on its held-out samples, in the order of the grid."""

    tasks: TaskSet
    decided: list[Decided]


@dataclass(frozen=True)
class FoldShares:
    """The names of the kernels of a fold, and their shares (n_points, n_kernels) in the learned ones."""

    kernels: list[str]
    values: Array


@dataclass(frozen=True)
class FoldScores:
    """Scores, losses, gaps and seconds of all points of one fold, in the order of the grid; or the error of its fit.

    held_out: the decisions behind the scores, if the fold keeps them; shares: what the learned kernels are made of.
    """

    number: int
    way: Share
    scores: Array
    losses: Array
    gaps: Array
    seconds: Array
    error: Exception | None = None
    held_out: FoldDecisions | None = None
    shares: FoldShares | None = None


def run_folds(
    folds: Iterable[Fold], n_folds: int, n_jobs: int | None, error_score: float | str, progress: Progress
) -> Iterator[FoldScores]:
    """Score all folds, in parallel, in the order in which they finish."""
    # threads suit compiled loops; a backend that the user has configured takes precedence
    backend, _ = get_active_backend(prefer="threads")
    shared = progress if getattr(backend, "supports_sharedmem", False) else None  # other processes cannot show it
    jobs = (delayed(carrying(_score_fold))(fold, error_score, shared) for fold in folds)
    several = effective_jobs(n_jobs) > 1  # then each fold has its thread, and BLAS should not add more
    with threadpool_limits(1 if several else None, user_api="blas"):
        for k, found in enumerate(Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")(jobs)):
            if shared is None:
                progress.done(len(found.scores))
                progress.show(f"fold {k + 1} of {n_folds}")
            yield found


def _score_fold(fold: Fold, error_score: float | str, progress: Progress | None) -> FoldScores:
    """Score one fold; a failure is kept unless ``error_score`` is "raise" and the data are not the reason."""
    try:
        return _score_points(fold, progress or Progress(1, fold.estimator.tol, 0))
    except Exception as error:
        raising = isinstance(error_score, str)
        if raising and not isinstance(error, TaskDataError):  # other ways to share may learn from such data
            raise
        unknown = np.full(fold.grid.size, np.nan)
        scores = unknown if raising else np.full(fold.grid.size, error_score)
        return FoldScores(fold.number, fold.way, scores, unknown, unknown, unknown, error)


def _score_points(fold: Fold, progress: Progress) -> FoldScores:
    """Fit one fold at all points of the grid."""
    estimator, grid, test = fold.estimator, fold.grid, fold.test
    training = fold.train.training(estimator.reading, strict=False)
    parts = estimator.parts(grid.ps)
    if parts.solver is not estimator.solver:
        parts = replace(parts, solver=parts.solver.for_scores())
    for C in (min(grid.Cs), max(grid.Cs)):
        training.bounds(C)  # raises before anything is computed
    tasks = training.together or training.labelling
    loss = tasks.loss(test.samples, test.y, test.sample_weight)
    if fold.scorer is own_score:
        score = _own_score(tasks, test)
    elif wants_probabilities(fold.scorer):  # which are calibrated once all folds have their decisions
        score = _later
    else:
        score = partial(foreign_score, fold, tasks)
    decide = _decide_apart if fold.way == "nothing" else _decide_together
    verdicts: dict[int, tuple[float, float]] = {}
    found, kept, models = {}, {}, {}
    for point, gap, seconds, decided, model in decide(estimator, training, grid, parts, progress, test.samples):
        if id(decided) not in verdicts:  # points with the same sweep share their decisions
            lost = loss(decided)
            verdicts[id(decided)] = score(point, decided, lost), lost
        found[point] = *verdicts[id(decided)], gap, seconds
        kept[point], models[point] = decided, model
    size = sum(one.values.nbytes for one in {id(one): one for one in kept.values()}.values())
    keeps = fold.keeps and (size <= MOST_KEPT or score is _later)
    held_out = FoldDecisions(tasks, [kept[point] for point in grid.points]) if keeps else None
    shares = _shares_of([models[point] for point in grid.points])
    scores, losses, gaps, seconds = np.array([found[point] for point in grid.points]).T
    return FoldScores(fold.number, fold.way, scores, losses, gaps, seconds, held_out=held_out, shares=shares)


def _shares_of(models: list[TaskModel | None]) -> FoldShares | None:
    """The shares of the kernels in each model; None if each task has its own kernels, or if there are very many."""
    known = [model for model in models if model is not None]
    if len(known) < len(models) or len(known) * known[0].bank.n_kernels > MOST_SHARES:
        return None
    shares = np.empty((len(known), known[0].bank.n_kernels))
    for bank in {id(model.bank): model.bank for model in known}.values():
        mine = [k for k, model in enumerate(known) if model.bank is bank]
        shares[mine] = bank.variance_share(np.array([known[k].theta for k in mine]))
    return FoldShares(list(known[0].bank.names), shares)


def shares_by_fold(scored: Iterable[FoldScores], way: Share, point: int, names: Sequence[str]) -> Array | None:
    """The shares of these kernels at a point of a grid, (n_folds, n_kernels), zero for a kernel that a fold lacks."""
    parts = [one.shares for one in sorted(scored, key=lambda one: one.number) if one.way == way and one.error is None]
    if any(part is None for part in parts):
        return None
    found = [dict(zip(part.kernels, part.values[point], strict=True)) for part in parts if part is not None]
    return np.array([[of_fold.get(name, 0.0) for name in names] for of_fold in found])


# ------------------------------------------------------------------------------------------------------- scores
def own_score(estimator: Any, X: object, y: object, sample_weight: object = None, tasks: object = None) -> float:
    """The scorer of a search without ``scoring``."""
    return estimator.score(X, y, tasks=tasks, sample_weight=sample_weight)


def _own_score(tasks: TaskSet, test: Examples) -> Callable[[Point, Decided, float], float]:
    """The same for decisions that are known."""
    if tasks.chosen_by_loss:
        return lambda point, decided, lost: 1 - lost
    return lambda point, decided, lost: tasks.score(decided, test.samples, test.y, test.sample_weight)


def _later(point: Point, decided: Decided, lost: float) -> float:
    """In place of a score that needs probabilities."""
    return np.nan


def foreign_score(fold: Fold, tasks: TaskSet, point: Point, decided: Decided, lost: float) -> float:
    """The score of a scorer that asks an estimator for its predictions."""
    return scored_by_user(fold, tasks, point, decided)


def scored_by_user(fold: Fold, tasks: TaskSet, point: Point, decided: Decided, **attributes: Any) -> float:
    """The score of a scorer for known decisions; ``attributes`` are of the fitted estimator that it sees."""
    fitted = copy(fold.estimator)
    # its own function finds the samples of the given X without reading them again
    known = {"model_": _Decided(tasks, decided), "p": point.p, "C": point.C, "_samples": partial(_held_out, fold)}
    vars(fitted).update(known | attributes)
    given = {"tasks": fold.asked["tasks"], "sample_weight": fold.test.sample_weight}
    return one_number(fold.scorer(fitted, fold.asked["X"], fold.test.y, **routed(fold.scorer, given)))


def _held_out(fold: Fold, X: object, tasks: object) -> Samples:
    """The held-out samples, which are read already."""
    if X is not fold.asked["X"]:
        raise ValueError("During the search, models can predict only the held-out samples.")
    return fold.test.samples


@dataclass(frozen=True)
class _Decided(FittedTasks):
    """A model with precomputed decisions on the held-out samples."""

    tasks: object
    found: Decided

    def decided(self, samples: Samples) -> Decided:
        return self.found


def routed(scorer: Scorer, given: dict[str, Any]) -> dict[str, Any]:
    """The given arguments that are not None and that the scorer takes."""
    return {name: value for name, value in given.items() if value is not None and scorer_takes(scorer, name)}


def noted(estimator: PlainEstimator, reader: object) -> PlainEstimator:
    """An estimator with the notes about the features of another one that has read them."""
    notes = "n_features_in_", "n_kernels_in_", "feature_names_in_", "blocks_in_", "codings_", "ranges_in_", "rows_in_"
    vars(estimator).update({name: value for name, value in vars(reader).items() if name in notes})
    return estimator


def one_number(score: Any) -> float:
    """A score, checked."""
    if not isinstance(score, numbers.Real):
        raise ValueError(f"scoring must return one number, got {shown(score)}.")
    return float(score)


# ---------------------------------------------------------------------------------------------------- decisions
class _DecidedPoint(NamedTuple):
    """A point of the grid: its gap, its share of the seconds, and its decisions on the held-out samples.

    model: None if there is one for each task.
    """

    point: Point
    gap: float
    seconds: float
    decided: Decided
    model: TaskModel | None


def _decide_together(
    estimator: PlainEstimator, training: Training, grid: Grid, parts: Parts, progress: Progress, held_out: Samples
) -> list[_DecidedPoint]:
    """Tasks that form one problem: one pool of cuts, and all models in one pass over the held-out samples."""
    problem, _, data = estimator.posed(training, training.bounds(1.0), parts)
    stretches = list(trace_grid(problem, data, grid, parts, progress))
    of_all = [(point, stretch.bank) for stretch in stretches for point in stretch.points]
    models = models_of(training, [point for point, _ in of_all], *(bank for _, bank in of_all))
    distinct = {id(model): model for model in models}
    shared = training.together
    seen = held_out if shared is None else shared.coded_samples(held_out)
    values = decide_all(list(distinct.values()), seen)
    decided = dict(
        zip(distinct, values if shared is None else [shared.shaped(of_model) for of_model in values], strict=True)
    )
    of_point = iter(models)
    return [
        _DecidedPoint(stretch.at(p), point.gap, seconds, decided[id(model)], model)
        for stretch in stretches
        for seconds in [sum(stretch.run.seconds.values()) / len(grid.ps)]
        for p, point, model in zip(grid.ps, stretch.points, of_point, strict=False)
    ]


def _decide_apart(
    estimator: PlainEstimator, training: Training, grid: Grid, parts: Parts, progress: Progress, held_out: Samples
) -> list[_DecidedPoint]:
    """Tasks that share nothing: one search per task, at the same points."""
    tasks = training.labelling
    groups = tasks.groups(held_out)
    missing = Decided.missing(groups, len(held_out))
    decided = {point: replace(missing, values=missing.values.copy()) for point in grid.points}
    gaps, seconds = dict.fromkeys(grid.points, 0.0), dict.fromkeys(grid.points, 0.0)
    rows_of = {t: rows for rows, asked in groups for t in asked.tolist()}
    quiet = Progress(1, estimator.tol, 0)
    for mine, own in zip(tasks.tasks_by_source.values(), apart(training), strict=True):
        rows = rows_of.get(mine[0], np.arange(0))
        slots = mine if tasks.kind == "matrix" else range(len(mine))
        alone = Samples(held_out.data[rows])
        for point, gap, spent, found, _ in _decide_together(estimator, own, grid, parts, quiet, alone):
            gaps[point], seconds[point] = max(gaps[point], gap), seconds[point] + spent
            decided[point].values[np.ix_(rows, slots)] = found.values
    progress.done(grid.size)
    return [_DecidedPoint(point, gaps[point], seconds[point], decided[point], None) for point in grid.points]
