"""Scikit-learn regressors for several tasks: one for each task, one for all, or one for all outputs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import ParameterGrid
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from paretomkl._data.numbers import r_squared
from paretomkl._data.reading import Training
from paretomkl._fitting.models import FittedTasks
from paretomkl._learn.base import MultiTaskRegressor
from paretomkl._select.splits import make_splits
from paretomkl._tools.checks import shown
from paretomkl._tools.running import effective_jobs
from paretomkl._tools.typing import AnyArray, Array, IntArray

FORMS = ("separate", "pooled", "joint")
SCORES = ("r2", "neg_mean_squared_error")


class TaskwiseRegressor(MultiTaskRegressor):
    """Any scikit-learn regressor on several tasks; cross-validation within the tasks chooses its parameters.

    There are three forms: "separate" fits one regressor per task; "pooled" fits one regressor to the samples of all
    tasks, with an indicator column for each task in addition to the features; "joint" passes the whole matrix y, which
    must have no gaps, to a regressor that ties its outputs together, such as
    :class:`~sklearn.linear_model.MultiTaskLasso`.

    Parameters
    ----------
    estimator : regressor, default=None
        The regressor; None means ``KernelRidge(kernel="rbf")``.
    param_grid : dict or list of dicts, default=None
        Values to choose from, as for :class:`~sklearn.model_selection.GridSearchCV`; None uses the estimator unchanged.
        On a tie the first candidate wins.
    form : {"separate", "pooled", "joint"}, default="separate"
        How to combine the tasks.
    each : bool, default=False
        Whether each task chooses its own parameters. Otherwise all tasks use those that are best on average. Only for
        form "separate".
    cv : int, splitter or iterable, default=None
        Number of folds (None: 5), which are shuffled within each task; or any scikit-learn splitter, or an iterable of
        (train, test) indices.
    scoring : {"r2", "neg_mean_squared_error"}, default="r2"
        The score to choose by, for each task in each fold; R² skips tasks with fewer than two samples in the fold.
    standardize : bool, default=True
        Whether to scale the features to mean zero and standard deviation one over the samples of each fit. Indicator
        columns are not scaled.
    normalize_y : bool, default=True
        Whether to scale the targets to mean zero and standard deviation one over the samples of each fit (each output
        separately), for regressors without an intercept. Predictions are always in the units of y.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    n_jobs : int, default=None
        Number of fits to run at a time during the search; -1 means all cores.
    random_state : int, RandomState or None, default=None
        Seed for shuffling the folds if ``cv`` is a number; None is the same as 0.

    Attributes
    ----------
    best_params_ : dict, or list of dicts
        The chosen parameters; one dict per task with ``each=True``.
    cv_scores_ : array of shape (n_tasks, n_candidates)
        Mean score over the folds for each task; absent without a ``param_grid``.
    estimators_ : list of regressors
        The fitted regressors in the order of the tasks, or the only one.
    """

    def __init__(
        self,
        estimator: Any = None,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
        form: Literal["separate", "pooled", "joint"] = "separate",
        each: bool = False,
        cv: Any = None,
        scoring: Literal["r2", "neg_mean_squared_error"] = "r2",
        standardize: bool = True,
        normalize_y: bool = True,
        task_column: int | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.form = form
        self.each = each
        self.cv = cv
        self.scoring = scoring
        self.standardize = standardize
        self.normalize_y = normalize_y
        self.task_column = task_column
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, training: Training) -> FittedTasks:
        self._check()
        tables = self._tables(training)
        fitter = self._fitter(training)
        best: list[dict[str, Any]] = [{}] * len(tables)
        if self.param_grid is not None:
            candidates = list(ParameterGrid(self.param_grid))
            self.cv_scores_ = self._cross_validate(training, tables, fitter, candidates)
            rounded = np.round(self.cv_scores_, 12)  # sums of the same scores in another order tie
            of_table = rounded if self.each else np.nanmean(rounded, axis=0)[None]
            chosen = [candidates[int(np.nanargmax(scores))] for scores in of_table]
            best = chosen if self.each else chosen * len(tables)
        self.best_params_ = best if self.each else best[0]
        fits = [fitter.fit(table, params) for table, params in zip(tables, best, strict=True)]
        self.estimators_ = [fit.estimator for fit in fits]
        targets = training.labelling
        plain = replace(targets, centre=np.zeros(targets.n_tasks), spread=np.ones(targets.n_tasks))
        return TaskwiseModel(plain, self.form, fits)

    def _check(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form must be one of {list(FORMS)}, got {shown(self.form)}.")
        if self.scoring not in SCORES:
            raise ValueError(f"scoring must be one of {list(SCORES)}, got {shown(self.scoring)}.")
        if self.each and self.form != "separate":
            raise ValueError(f"each=True needs form='separate'; with form={self.form!r} all tasks share one regressor.")
        effective_jobs(self.n_jobs)

    def _fitter(self, training: Training) -> Fitter:
        estimator = KernelRidge(kernel="rbf") if self.estimator is None else self.estimator
        weighted = any((weight != 1).any() for weight in training.weights)
        if weighted and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(f"{type(estimator).__name__} takes no sample_weight.")
        return Fitter(estimator, self.standardize, self.normalize_y, weighted)

    def _tables(self, training: Training) -> list[Table]:
        """The samples of each regressor, with targets in the units of y."""
        data, tasks, targets = training.samples.data, training.tasks, training.labelling
        values = [targets.centre[t] + targets.spread[t] * task.targets for t, task in enumerate(tasks)]
        if self.form == "joint":
            if targets.kind == "tasks" or any(len(task.rows) < len(data) for task in tasks):
                raise ValueError("form='joint' needs a matrix y without gaps: all outputs of all samples.")
            every_task = np.arange(len(tasks))[None].repeat(len(data), axis=0)
            return [Table(tasks[0].rows, data, None, np.stack(values, axis=1), training.weights[0], every_task)]
        tables = [
            Table(task.rows, data[task.rows], None, own, weight, np.full(len(own), t))
            for t, (task, own, weight) in enumerate(zip(tasks, values, training.weights, strict=True))
        ]
        if self.form == "separate":
            return tables
        rows, X, y, weight, of = (
            np.concatenate([getattr(table, name) for table in tables]) for name in ("rows", "X", "y", "weight", "task")
        )
        return [Table(rows, X, indicators(of, len(tasks)), y, weight, of)]

    def _cross_validate(
        self, training: Training, tables: list[Table], fitter: Fitter, candidates: list[dict[str, Any]]
    ) -> Array:
        """Mean score over the folds, (n_tasks, n_candidates)."""
        data, n_tasks = training.samples.data, len(training.tasks)
        y = np.full((len(data), n_tasks), np.nan)
        for t, task in enumerate(training.tasks):
            y[task.rows, t] = task.targets
        truth = y if training.labelling.kind == "matrix" else np.nansum(y, axis=1)
        splits = make_splits(self.cv, data, truth, training.samples.sources, None, self.random_state, stratify=False)
        jobs = (
            delayed(_score)(fitter, table.part(train), table.part(test), candidates, n_tasks, self.scoring)
            for table in tables
            for train, test in splits
        )
        scores = np.array(Parallel(n_jobs=self.n_jobs)(jobs))
        by_fold = scores.reshape(len(tables), len(splits), n_tasks, -1).transpose(1, 0, 2, 3)
        counts = (~np.isnan(by_fold)).sum(axis=(0, 1))
        if not counts.any():
            raise ValueError("No task has a score in any fold; check cv.")
        total = np.nansum(by_fold, axis=(0, 1))
        return np.divide(total, counts, out=np.full_like(total, np.nan), where=counts > 0)


@dataclass(frozen=True)
class Table:
    """The samples of one regressor.

    rows (n,): their rows in X, one for each pair of a sample and a task if the tasks are pooled; X (n, n_features);
    indicators (n, n_tasks) of the task, or None; y and task: (n,), or (n, n_tasks) if the outputs are learned together;
    weight (n,).
    """

    rows: IntArray
    X: Array
    indicators: Array | None
    y: Array
    weight: Array
    task: IntArray

    def part(self, rows: IntArray) -> Table:
        """The samples in the given rows of X."""
        mine = np.flatnonzero(np.isin(self.rows, rows))
        columns = None if self.indicators is None else self.indicators[mine]
        return Table(self.rows[mine], self.X[mine], columns, self.y[mine], self.weight[mine], self.task[mine])


@dataclass(frozen=True)
class Fitter:
    """Fits an estimator to a table."""

    estimator: Any
    standardize: bool
    normalize_y: bool
    weighted: bool

    def fit(self, table: Table, params: Mapping[str, Any]) -> Fitted:
        scaler, X = None, table.X
        if self.standardize:
            scaler = StandardScaler().fit(X, sample_weight=table.weight if self.weighted else None)
            X = scaler.transform(X)
        centre, spread = np.zeros(table.y.shape[1:]), np.ones(table.y.shape[1:])
        if self.normalize_y:
            centre = np.average(table.y, axis=0, weights=table.weight)
            deviation = np.sqrt(np.average((table.y - centre) ** 2, axis=0, weights=table.weight))
            spread = np.where(deviation > 1e-12 * np.abs(table.y).max(axis=0), deviation, 1.0)
        given = {"sample_weight": table.weight} if self.weighted else {}
        fitted = clone(self.estimator).set_params(**params)
        fitted.fit(beside(X, table.indicators), (table.y - centre) / spread, **given)
        return Fitted(fitted, scaler, centre, spread)


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, with the scaling of its inputs and outputs."""

    estimator: Any
    scaler: StandardScaler | None
    centre: Array
    spread: Array

    def predict(self, X: Array, columns: Array | None = None) -> Array:
        X = X if self.scaler is None else self.scaler.transform(X)
        return self.centre + self.spread * self.estimator.predict(beside(X, columns))


@dataclass(frozen=True)
class TaskwiseModel(FittedTasks):
    """The regressors of all tasks: one per task, or one for all."""

    tasks: Any
    form: str
    fits: list[Fitted]

    def _values(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        X = data[rows]
        if self.form == "joint":
            return self.fits[0].predict(X).reshape(len(rows), -1)[:, tasks]
        if self.form == "separate":
            return np.stack([self.fits[t].predict(X) for t in tasks], axis=1)
        n_tasks, one = self.tasks.n_tasks, self.fits[0]
        return np.stack([one.predict(X, indicators(np.full(len(X), t), n_tasks)) for t in tasks], axis=1)


def indicators(task: IntArray, n_tasks: int) -> Array | None:
    """One column per task, with 1 in the rows of that task; None if there is only one task."""
    return np.eye(n_tasks)[task] if n_tasks > 1 else None


def beside(X: Array, columns: Array | None) -> Array:
    return X if columns is None else np.hstack([X, columns])


def _score(
    fitter: Fitter, train: Table, test: Table, candidates: list[dict[str, Any]], n_tasks: int, scoring: str
) -> Array:
    """Scores on a held-out part, (n_tasks, n_candidates); NaN for tasks without samples there."""
    scores = np.full((n_tasks, len(candidates)), np.nan)
    if len(train.rows) == 0 or len(test.rows) == 0:
        return scores
    weight = np.broadcast_to(test.weight if test.y.ndim == 1 else test.weight[:, None], test.y.shape)
    for k, params in enumerate(candidates):
        predicted = fitter.fit(train, params).predict(test.X, test.indicators)
        for t in np.unique(test.task):
            mine = test.task == t
            truth, guess, own = test.y[mine], predicted[mine], weight[mine]
            if scoring == "r2" and (own > 0).sum() >= 2:
                scores[t, k] = r_squared(truth, guess, own)
            elif scoring != "r2" and own.sum() > 0:
                scores[t, k] = -np.average((truth - guess) ** 2, weights=own)
    return scores
