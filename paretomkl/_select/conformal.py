"""Sets of classes and intervals of numbers that contain the true value as often as asked, from held-out samples.

With CV+, every sample i has been scored by the model of the fold that held it out: by how far off it was, or by how
improbable it found the right class. A value y is kept for a new x unless it is stranger than too many of them,

    y is in the set      ⇔      #{ i : score_i < score(x, y) by the model that held i out } < coverage · (n + 1).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .._data.labels import Samples, TaskSet
from .._data.numbers import Targets
from .._data.reading import Examples, read_samples
from .._data.tasks import codes_of, labels_by_task, listed
from .._data.together import Together
from .._fitting.models import FittedTasks, SharedModel, Support, TaskModel
from .._learn.fold_models import FoldModel
from .._tools.checks import check_number, shown
from .._tools.typing import AnyArray, Array, IntArray
from ..exceptions import NewTaskWarning
from ..kernels._evaluation import one_below_the_other
from .refolds import SearchFolds
from .splits import leave_tasks_out, make_splits

ENOUGH = 5.0  # scores of a task that must lie outside its set before it is compared only with itself
PRIOR_ROWS = 10.0  # rows of a task that count as much as all tasks for the size of its errors
BATCH = 2**22  # numbers in memory at once


@dataclass(frozen=True)
class Conformal:
    """Scores of samples by models that have not seen them.

    models: fitted; model, source, scores (n_cases,): the number of the model, the position of the task (−1 for a new
    one) and the score of each case; relative (n_cases,): the scores of numbers in units of the spread of their task as
    the other cases tell it; spread (n_sources + 1,): these units for new samples, the last for new tasks. For a matrix
    y, a sample is one case in each of its tasks.
    """

    models: list[FittedTasks]
    model: IntArray
    source: IntArray
    scores: Array
    relative: Array
    spread: Array

    def compared(self, source: int, coverage: float) -> IntArray:
        """The cases that a sample of a task is compared with: those of its own task if they are enough, else all."""
        own = np.flatnonzero(self.source == source)
        return own if len(own) * (1 - coverage) >= ENOUGH else np.arange(len(self.source))

    def intervals(self, samples: Samples, coverage: float) -> Array:
        """Lower and upper ends, (n_samples, 2), or (n_samples, n_tasks, 2) for a matrix y."""
        tasks = self.models[0].tasks
        predicted = np.stack([_by_case(model.predict(samples), tasks) for model in self.models])
        source, ends = sources_of(samples, tasks), np.empty((predicted.shape[1], 2))
        for s in np.unique(source).tolist():
            cases, mine = self.compared(s, coverage), np.flatnonzero(source == s)
            n, alone = len(cases), (self.source[cases] == s).all()
            errors = self.scores[cases] if alone else self.relative[cases] * self.spread[s]
            k = int(np.floor((1 - coverage) * (n + 1) + 1e-9)) - 1  # so many of n + 1 lie below the lower end
            if k < 0:
                ends[mine] = -np.inf, np.inf
                continue
            for rows in np.array_split(mine, max(1, n * len(mine) // BATCH)):
                centre = predicted[self.model[cases]][:, rows]
                ends[rows, 0] = np.partition(centre - errors[:, None], k, axis=0)[k]
                ends[rows, 1] = np.partition(centre + errors[:, None], n - 1 - k, axis=0)[n - 1 - k]
        return ends.reshape(tasks.n_tasks, len(samples), 2).transpose(1, 0, 2) if tasks.kind == "matrix" else ends

    def sets(self, search: Any, samples: Samples, coverage: float) -> Any:
        """Which classes cannot be ruled out, (n_samples, n_classes); a list of n_tasks arrays for a matrix y."""
        tasks = search.model_.tasks
        found = [_improbable(model, search, samples) for model in self.models]
        source, kept = sources_of(samples, tasks), np.empty(found[0].shape, dtype=bool)
        for s in np.unique(source).tolist():
            cases, mine = self.compared(s, coverage), source == s
            below = np.zeros(found[0][mine].shape, dtype=int)
            for m, scores in enumerate(found):
                of_model = np.sort(self.scores[cases[self.model[cases] == m]])
                below += np.searchsorted(of_model, scores[mine], side="left")
            kept[mine] = below < coverage * (len(cases) + 1) - 1e-9
        # the predicted class stays, or sets of accurate models would be empty
        best = _improbable(search.model_, search, samples)
        kept = (kept & (best < 1)) | (best == best.min(axis=1, keepdims=True))
        return list(kept.reshape(tasks.n_tasks, len(samples), 2)) if tasks.kind == "matrix" else kept


# ------------------------------------------------------------------------------------------------- from folds
def from_folds(search: Any, which: str) -> Conformal:
    """The scores of the folds of a search for "known" tasks; for "new" ones, of folds that leave tasks out."""
    folds: SearchFolds = search.folds_
    if which not in folds.conformal:
        examples, splits = folds.given, folds.splits
        samples = examples.samples
        if leave_tasks_out(splits, samples.sources) != (which == "new"):
            cv, groups = ("new tasks", None) if which == "new" else (None, search.groups_)
            again = {name: folds.again[name] for name in ("stratify", "together")}
            splits = make_splits(cv, samples.data, examples.y, samples.sources, groups, **again)
        fitted = folds.fitted(search.best_estimator_, search.n_jobs, splits)
        folds.conformal[which] = _scored(search, fitted, examples)
    found: Conformal = folds.conformal[which]
    return found


def _scored(search: Any, fitted: Sequence[FoldModel], examples: Examples) -> Conformal:
    tests = [examples.take(fold.test) for fold in fitted]
    parts = [_scores(search, fold.model, test) for fold, test in zip(fitted, tests, strict=True)]
    model = np.concatenate([np.full(len(source), k) for k, (source, _) in enumerate(parts)])
    source, scores = (np.concatenate(values) for values in zip(*parts, strict=True))
    tasks = search.model_.tasks
    relative, spread = scores, np.ones(0)
    if not search.stratify:
        relative, spread = _in_units(source, scores, _deviations(tasks))
    models = with_one_support([fold.model for fold in fitted], [fold.train for fold in fitted])
    return Conformal(models, model, source, scores, relative, spread)


def from_rows(search: Any, held_out: Any) -> Conformal:
    """The scores of rows that the search has not seen: (X, y), or (X, y, tasks)."""
    if not isinstance(held_out, tuple) or len(held_out) not in (2, 3):
        raise ValueError("held_out must be a tuple (X, y) or (X, y, tasks) of rows that were not in fit.")
    X, y, *tasks = held_out
    samples = read_samples(search, X, tasks=tasks[0] if tasks else None)
    if np.shape(y)[:1] != (len(samples),):
        raise ValueError(f"held_out has {len(samples)} rows of X; y must have one entry for each, got {shown(y)}.")
    source, scores = _scores(search, search.model_, Examples(samples, y))
    spread = np.ones(len(search.model_.tasks.distinct_sources) + 1)
    if not search.stratify:
        spread = _deviations(search.model_.tasks)  # known before these rows
    return Conformal([search.model_], np.zeros(len(source), dtype=int), source, scores, scores / spread[source], spread)


def _scores(search: Any, model: FittedTasks, test: Examples) -> tuple[IntArray, Array]:
    """The position of the task and the score of each case of held-out samples with a known y."""
    tasks, samples = search.model_.tasks, test.samples
    source = sources_of(samples, tasks)
    if tasks.kind == "matrix":
        truth = labels_by_task(test.y, list(tasks.sources)).T
    else:
        truth = np.asarray(test.y).reshape(1, -1)
    if search.stratify:
        classes = tasks.classes if tasks.kind == "matrix" else [tasks.classes]
        codes = np.concatenate([codes_of(one, listed(own)) for one, own in zip(truth, classes, strict=True)])
        scores = _improbable(model, search, samples)[np.arange(len(codes)), codes]
        known = codes >= 0
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NewTaskWarning)  # folds may leave tasks out on purpose
            scores = np.abs(truth.ravel().astype(float) - _by_case(model.predict(samples), model.tasks))
        known = ~np.isnan(scores)
    weight = np.ones(len(samples)) if test.sample_weight is None else np.asarray(test.sample_weight, dtype=float)
    known &= np.tile(weight, len(truth)) > 0
    return source[known], scores[known]


def _improbable(model: FittedTasks, search: Any, samples: Samples) -> Array:
    """One minus the probability of each class, (n_cases, n_classes), with the calibration of the search."""
    tasks = search.model_.tasks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewTaskWarning)
        found = search.calibration_.probabilities(model.tasks, model.decided(samples), samples, tasks)
    return 1 - np.concatenate(found) if tasks.kind == "matrix" else 1 - found


def _by_case(values: AnyArray, tasks: TaskSet) -> Array:
    """Predicted numbers, column by column for a matrix y."""
    return values.T.ravel() if tasks.kind == "matrix" else values


def sources_of(samples: Samples, tasks: TaskSet) -> IntArray:
    """The position of the task of each case among ``distinct_sources``, −1 for a new task."""
    if tasks.kind == "matrix":
        return np.repeat(np.arange(tasks.n_tasks), len(samples))
    if samples.sources is None:
        return np.zeros(len(samples), dtype=np.int64)
    return codes_of(samples.sources, tasks.distinct_sources)


def _deviations(tasks: Targets | Together) -> Array:
    """Standard deviation of the training targets of each task, and of a new one."""
    own = tasks.deviation[: len(tasks.distinct_sources)]
    return np.append(own, own.mean())


def _in_units(source: IntArray, errors: Array, deviation: Array) -> tuple[Array, Array]:
    """Errors in units of the root mean squared error of their task, and this unit for each task and for a new one.

    The unit of a task with few rows is drawn to the share of the variance that is left in all tasks. The unit of a case
    leaves its own error out, as that of a new sample does.
    """
    square = (errors / deviation[source]) ** 2
    overall = max(square.mean(), np.finfo(float).tiny) if len(square) else 1.0
    known = source >= 0
    n, total = (np.bincount(source[known], values, len(deviation)) for values in (known[known], square[known]))
    unit = deviation * np.sqrt((total + PRIOR_ROWS * overall) / (n + PRIOR_ROWS))
    others = np.where(known, total[source] - square, 0.0), np.where(known, n[source] - 1, 0.0)
    without = deviation[source] * np.sqrt((others[0] + PRIOR_ROWS * overall) / (others[1] + PRIOR_ROWS))
    return errors / without, unit


def with_one_support(models: Sequence[FittedTasks], rows: Sequence[IntArray]) -> list[FittedTasks]:
    """The models of folds with one common copy of their support vectors, numbered as rows of the training data.

    ``rows`` are those that each model learned from. Models of tasks that share nothing keep their own copies.
    """
    wholes: list[Any] = [model.whole if isinstance(model, SharedModel) else model for model in models]
    first = models[0].tasks  # where tasks are one problem, their samples carry the number of their task
    same = all(model.tasks.sources == first.sources for model in models) and first.kind != "matrix"
    if not all(isinstance(whole, TaskModel) for whole in wholes) or (isinstance(models[0], SharedModel) and not same):
        return list(models)
    numbers = [train[whole.support.rows] for whole, train in zip(wholes, rows, strict=True)]
    used = np.unique(np.concatenate(numbers))
    vectors = None
    if wholes[0].support.vectors is not None:
        _, first_seen = np.unique(np.concatenate(numbers), return_index=True)
        vectors = one_below_the_other([whole.support.vectors for whole in wholes])[first_seen]
    support, shared = Support(used, vectors), list[FittedTasks]()
    for model, whole, own in zip(models, wholes, numbers, strict=True):
        columns = np.searchsorted(used, own)[whole.dual.indices]
        dual = csr_matrix((whole.dual.data, columns, whole.dual.indptr), shape=(whole.dual.shape[0], len(used)))
        one = replace(whole, support=support, dual=dual)
        shared.append(replace(model, whole=one) if isinstance(model, SharedModel) else one)
    return shared


# ------------------------------------------------------------------------------------------- methods of searches
def predict_interval(self: Any, X: Any, coverage: float = 0.9, *, tasks: Any = None, held_out: Any = None) -> Array:
    """Intervals that contain the target for a share ``coverage`` of new samples.

    The errors of the folds on the samples they held out say how far predictions may be off (CV+). A sample is compared
    with its own task if that has at least 5 / (1 − coverage) rows, else with all tasks in units of their typical error.
    For a task not seen in training, the folds leave tasks out. The first call fits the folds again, at the chosen
    parameters and to all rows.

    Parameters
    ----------
    X, tasks
        As in ``predict``.
    coverage : float, default=0.9
        The share of new samples whose target is to lie in its interval, in (0, 1). With n rows to compare with,
        intervals above 1 − 1/(n + 1) are infinite.
    held_out : tuple (X, y) or (X, y, tasks), default=None
        Rows that were not in ``fit``. Their errors then take the place of those of the folds, and the coverage is
        guaranteed.

    Returns
    -------
    intervals : array of shape (n_samples, 2), or (n_samples, n_tasks, 2) after a fit on a matrix y
        Lower and upper ends.

    Notes
    -----
    For parameters fixed beforehand, such as those of a search over a single point, new samples like those of ``fit``
    are covered with a probability of at least 1 − 2 (1 − coverage), usually about ``coverage``. Choosing the parameters
    on the same folds voids this guarantee, though hardly the coverage; with ``held_out`` it is at least ``coverage``.
    """
    samples = self._samples(X, tasks)
    _check(self, samples, coverage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewTaskWarning)
        if held_out is not None:
            return from_rows(self, held_out).intervals(samples, coverage)
        ends = [
            (rows, from_folds(self, which).intervals(samples[rows], coverage)) for which, rows in _kinds(self, samples)
        ]
    return _in_order(ends)


def predict_set(self: Any, X: Any, coverage: float = 0.9, *, tasks: Any = None, held_out: Any = None) -> Any:
    """The classes that cannot be ruled out: sets that contain the class for a share ``coverage`` of new samples.

    The probabilities that the folds gave to the classes of the samples they held out say how improbable a class may be
    (CV+). A sample is compared with its own task if that has at least 5 / (1 − coverage) rows, else with all tasks. For
    a task not seen in training, the folds leave tasks out. The predicted class is always in the set, so the sets of a
    model that is more accurate than ``coverage`` cover more. The first call fits the folds again, at the chosen
    parameters and to all rows.

    Parameters
    ----------
    X, tasks
        As in ``predict``.
    coverage : float, default=0.9
        The share of new samples whose class is to be in its set, in (0, 1).
    held_out : tuple (X, y) or (X, y, tasks), default=None
        Rows that were not in ``fit``. They then take the place of the samples held out by folds, and the coverage is
        guaranteed.

    Returns
    -------
    sets : bool array of shape (n_samples, n_classes), or list of n_tasks arrays of shape (n_samples, 2)
        The columns are in the order of ``classes_``. The list is for a matrix y.

    Notes
    -----
    The guarantees are those of :meth:`ParetoMKLRegressorCV.predict_interval`.
    """
    samples = self._samples(X, tasks)
    _check(self, samples, coverage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewTaskWarning)
        if held_out is not None:
            return from_rows(self, held_out).sets(self, samples, coverage)
        kept = [
            (rows, from_folds(self, which).sets(self, samples[rows], coverage)) for which, rows in _kinds(self, samples)
        ]
    return _in_order(kept)


def _check(search: Any, samples: Samples, coverage: Any) -> None:
    check_number("coverage", coverage, lambda v: 0 < v < 1, "between 0 and 1, such as 0.9")
    if isinstance(search.model_, SharedModel):
        search.model_.note_new_tasks(samples)
    else:
        search.model_.tasks.groups(samples)  # raises for an unknown task


def _kinds(search: Any, samples: Samples) -> list[tuple[str, IntArray]]:
    """The rows of "known" and of "new" tasks, where there are any."""
    source = sources_of(samples, search.model_.tasks)
    if search.model_.tasks.kind == "matrix" or (source >= 0).all():
        return [("known", np.arange(len(samples)))]
    kinds = [("known", np.flatnonzero(source >= 0)), ("new", np.flatnonzero(source < 0))]
    return [(which, rows) for which, rows in kinds if len(rows)]


def _in_order(parts: list[tuple[IntArray, Any]]) -> Any:
    """The results of several sets of rows as one."""
    if len(parts) == 1:
        return parts[0][1]
    rows, results = zip(*parts, strict=True)
    return np.concatenate(results)[np.argsort(np.concatenate(rows))]
