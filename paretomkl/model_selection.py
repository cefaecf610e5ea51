"""Cross-validation of several tasks: folds that hold every label of every task, and scores task by task."""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import check_classification_targets

from ._typing import AnyArray, Array, IntArray
from .tasks import (
    array_of,
    as_labels,
    as_sources,
    column_names,
    equal_labels,
    labels_by_task,
    listed,
    missing_labels,
    refuse_missing,
    task_column_of,
    unique_labels,
)

AVERAGES = ("macro", "worst", None)
RESPONSES = ("predict", "decision_function", "predict_proba")
SCORES = ("decision_function", "predict_proba")


# ------------------------------------------------------------------------------------------------ folds
class MultiTaskStratifiedKFold(StratifiedKFold):
    """Folds that are stratified by task and label together.

    The tasks are said by a column of X (``task_column``), by ``groups=`` or ``tasks=`` in :meth:`split`, or by a
    matrix y with one task per column, NaN or None for "not labelled". Without tasks the folds are those of
    :class:`sklearn.model_selection.StratifiedKFold`.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to shuffle the samples of each task and label before they are dealt out.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.
    task_column : int or str, default=None
        The column of X, by index or by name, that names the task of each row.

    Notes
    -----
    A cell is a pair of a task and a label.

    Where each sample belongs to one cell, the cells are dealt out in turn: the sizes of a cell, of a task and of the
    folds differ by at most one between folds.

    Where samples have labels of several tasks, no rule can be that even. Each sample, those of rare cells first, goes
    to the fold f where it adds least to Σ_c Σ_f (n_cf / n_c)² (n_cf of the n_c samples of cell c are in fold f; the
    whole data set counts as a cell), and single samples are then moved for as long as this falls.

    A cell of a single sample is refused, for some training part would lack that label of that task; a cell of fewer
    samples than folds is warned about, for some test parts lack it.

    Where metadata routing is on, ``groups`` and ``tasks`` are requested by default.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.model_selection import MultiTaskStratifiedKFold
    >>> y = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    >>> tasks = np.array(["a", "a", "a", "a", "b", "b", "b", "b"])
    >>> folds = MultiTaskStratifiedKFold(n_splits=2)
    >>> for train, test in folds.split(np.zeros((8, 1)), y, tasks=tasks):
    ...     print(test, tasks[test], y[test])
    [0 1 4 5] ['a' 'a' 'b' 'b'] [0 1 0 1]
    [2 3 6 7] ['a' 'a' 'b' 'b'] [0 1 0 1]
    """

    __metadata_request__split: ClassVar = {"groups": True, "tasks": True}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None, task_column: Any = None
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.task_column = task_column

    def split(
        self, X: Any, y: Any = None, groups: Any = None, tasks: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Indices of training and test parts.

        Parameters
        ----------
        X : array-like or frame of n_samples rows
            Looked at only where there is a ``task_column``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Labels; a matrix has one task per column, NaN or None for "not labelled".
        groups, tasks : array-like of shape (n_samples,), default=None
            The task of each row; two names for the same, of which scikit-learn hands on the first without routing.

        Yields
        ------
        train, test : arrays of int
        """
        said = {"task_column": self.task_column, "groups": groups, "tasks": tasks}
        given = [name for name, value in said.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"The tasks are said twice: by {given[0]} and by {given[1]}; leave one out.")
        if self.task_column is not None:
            tasks = task_column_of(X, self.task_column)
        elif groups is not None:
            tasks = groups
        check_consistent_length(X, y, tasks)
        return self._split(y, tasks)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, tasks: Any = None) -> int:
        """Number of folds; the arguments are there because scikit-learn hands on those of :meth:`split`."""
        return self.n_splits

    def _split(self, y: Any, tasks: Any) -> Iterator[tuple[IntArray, IntArray]]:
        cells = _make_cells(y, tasks)
        if self.n_splits > cells.n_samples:
            raise ValueError(f"n_splits={self.n_splits} is more than the number of samples, {cells.n_samples}.")
        self._check_sizes(cells)
        rng = check_random_state(self.random_state) if self.shuffle else None
        fold = _deal(cells, self.n_splits, rng) if cells.disjoint else _balance(cells, self.n_splits, rng)
        _check_spread(cells, fold)
        everyone = np.arange(cells.n_samples)
        return ((everyone[fold != f], everyone[fold == f]) for f in range(self.n_splits))

    def _check_sizes(self, cells: Cells) -> None:
        sizes = np.bincount(cells.columns, minlength=len(cells.names))
        if len(sizes) == 0:
            raise ValueError("y has no label at all.")
        smallest = int(sizes.argmin())
        task, label = cells.names[smallest]
        where = "y" if task is None else f"Task {task!r}"
        if sizes[smallest] == 1:
            raise ValueError(
                f"{where} has a single sample of label {label!r}; cross-validation needs two or more, for a training "
                "part that has none cannot learn it."
            )
        if sizes[smallest] < self.n_splits:
            warnings.warn(
                f"{where} has only {sizes[smallest]} samples of label {label!r}, fewer than n_splits={self.n_splits}: "
                "some test parts will have none.",
                UserWarning,
                stacklevel=4,
            )


def _check_spread(cells: Cells, fold: IntArray) -> None:
    """Every training part must have some of every cell; samples of many cells may make that impossible."""
    first = np.full(len(cells.names), -1)
    first[cells.columns] = fold[cells.rows]
    spread = np.zeros(len(cells.names), dtype=bool)
    np.logical_or.at(spread, cells.columns, fold[cells.rows] != first[cells.columns])
    if not spread.all():
        task, label = cells.names[int(spread.argmin())]
        raise ValueError(
            f"All samples of label {label!r} of task {task!r} fall into one fold, and its training part has none; use "
            "more folds, or shuffle=True with another random_state."
        )


def make_splits(cv: Any, X: Any, y: Any, tasks: Any = None, groups: Any = None) -> list[tuple[IntArray, IntArray]]:
    """Training and test parts for whatever scikit-learn's ``cv=`` may be.

    Parameters
    ----------
    cv : int, None, splitter or iterable of (train, test)
        An int is a :class:`MultiTaskStratifiedKFold` of so many folds over the tasks, None one of five; everything
        else is taken as :func:`sklearn.model_selection.check_cv` takes it.
    X : array-like of n_samples rows
        The samples, without a task column.
    y : array-like of shape (n_samples,) or (n_samples, n_tasks)
    tasks : array-like of shape (n_samples,), default=None
        The task of each row; also for a :class:`MultiTaskStratifiedKFold` given as ``cv``.
    groups : array-like of shape (n_samples,), default=None
        For splitters that keep groups together.

    Examples
    --------
    >>> make_splits(2, [[1], [2], [3], [4]], ["no", "yes", "no", "yes"])
    [(array([2, 3]), array([0, 1])), (array([0, 1]), array([2, 3]))]
    """
    if cv is None or isinstance(cv, numbers.Integral):
        cv = MultiTaskStratifiedKFold(5 if cv is None else int(cv))
    if isinstance(cv, MultiTaskStratifiedKFold) and groups is not None:
        raise ValueError(
            "The folds of MultiTaskStratifiedKFold, and so of a number as cv=, do not keep groups together; for groups "
            "give a splitter that does, such as GroupKFold."
        )
    if isinstance(cv, MultiTaskStratifiedKFold) and tasks is not None:
        check_consistent_length(X, y, tasks)
        return list(cv._split(y, tasks))  # its own task_column is no longer in X
    everyone = np.arange(len(y))
    parts = check_cv(cv, y, classifier=True).split(X, y, groups)
    splits = [(everyone[train], everyone[test]) for train, test in parts]
    if not splits:
        raise ValueError("cv has no folds.")
    return splits


@dataclass(frozen=True)
class Cells:
    """Which samples have which label of which task.

    names: task (None where there are none) and label of each cell; rows, columns: sample and cell of each label given.
    """

    names: list[tuple[Any, Any]]
    rows: IntArray
    columns: IntArray
    n_samples: int

    @property
    def disjoint(self) -> bool:
        """Whether no sample is in two cells."""
        return len(np.unique(self.rows)) == len(self.rows)


def _make_cells(y: Any, tasks: Any) -> Cells:
    labels = _as_vector_or_matrix(y)
    everyone = np.arange(len(labels))
    if labels.ndim == 2:
        if tasks is not None:
            raise ValueError("The tasks are said twice: by the columns of y and by the rows; leave one out.")
        labelled = ~missing_labels(labels)
        names = column_names(y) or list(range(labels.shape[1]))
        parts = [(names[t], everyone[labelled[:, t]], labels[labelled[:, t], t]) for t in range(labels.shape[1])]
    else:
        if labels.dtype.kind == "f":
            check_classification_targets(labels)
        refuse_missing(labels, "y")
        parts = [(task, rows, labels[rows]) for task, rows in _rows_of_tasks(tasks, len(labels))]
    cells: list[tuple[Any, Any]] = []
    rows_of, columns_of = [], []
    for task, rows, values in parts:  # cells of one task lie side by side, so that tasks are dealt out evenly too
        found: dict[Any, int] = {}
        codes = [found.setdefault(label, len(found)) for label in listed(values)]
        columns_of.append(len(cells) + np.array(codes, dtype=int))
        rows_of.append(rows)
        cells += [(task, label) for label in found]
    return Cells(cells, np.concatenate(rows_of), np.concatenate(columns_of), len(labels))


def _deal(cells: Cells, n_splits: int, rng: Any) -> IntArray:
    """Folds of samples of one cell each: in turn over all cells, consecutive samples of a cell staying together."""
    n_cells = len(cells.names) + 1
    cell = np.full(cells.n_samples, n_cells - 1)  # the last one has the samples without a label
    cell[cells.rows] = cells.columns
    in_order = np.sort(cell)
    share = np.array([np.bincount(in_order[f::n_splits], minlength=n_cells) for f in range(n_splits)])
    fold = np.empty(cells.n_samples, dtype=int)
    for c in range(n_cells):
        folds = np.repeat(np.arange(n_splits), share[:, c])
        if rng is not None:
            rng.shuffle(folds)
        fold[cell == c] = folds
    return fold


def _balance(cells: Cells, n_splits: int, rng: Any) -> IntArray:
    """Folds of samples of several cells: the least Σ_c Σ_f (n_cf / n_c)² that a greedy start and moves find."""
    n, everyone = cells.n_samples, np.arange(cells.n_samples)
    whole = len(cells.names)  # all samples are a cell too: even folds
    rows, columns = np.append(cells.rows, everyone), np.append(cells.columns, np.full(n, whole))
    size = np.bincount(columns, minlength=whole + 1)
    member = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, whole + 1))
    weight = 1.0 / size**2
    weighted = csr_array((weight[columns], (rows, columns)), shape=member.shape)
    rarest = np.full(n, n)
    np.minimum.at(rarest, rows, size[columns])
    order = everyone if rng is None else rng.permutation(n)

    fold = np.zeros(n, dtype=int)
    count = np.zeros((whole + 1, n_splits))
    for i in order[np.argsort(rarest[order], kind="stable")]:
        mine = member.indices[member.indptr[i] : member.indptr[i + 1]]
        fold[i] = (weight[mine] @ count[mine]).argmin()
        count[mine, fold[i]] += 1

    # moving sample i from f to g changes half the cost by Σ_c (n_cg − n_cf + 1) / n_c² over its cells
    load = weighted @ count
    own = weighted.sum(axis=1)
    while True:
        change = load - (load[everyone, fold] - own)[:, None]
        change[everyone, fold] = 0.0
        i, g = divmod(int(change.argmin()), n_splits)
        if change[i, g] > -1e-12:  # nothing but rounding
            return fold
        shared = weighted @ member[[i]].toarray()[0]
        load[:, fold[i]] -= shared
        load[:, g] += shared
        fold[i] = g


# ----------------------------------------------------------------------------------------------- scores
def make_multitask_scorer(
    metric: Any = "accuracy",
    *,
    average: str | None = "macro",
    response_method: Any = None,
    greater_is_better: bool = True,
    task_column: Any = None,
    **kwargs: Any,
) -> MultiTaskScorer:
    """A scorer that evaluates a metric on each task and averages over the tasks.

    It goes wherever scikit-learn takes ``scoring=``, and is called as ``scorer(estimator, X, y, sample_weight=None,
    tasks=None)``. The task of each sample is taken from ``tasks=`` (requested by default where metadata routing is
    on), from ``task_column``, from the ``task_column`` of the estimator (of the last step of a pipeline, or of the
    best estimator of a search), or from the columns of a matrix y. Without any of these all samples are one task, and
    the score is that of the plain metric.

    Parameters
    ----------
    metric : str or callable, default="accuracy"
        Name of a scikit-learn scorer (``sklearn.metrics.get_scorer_names()``), a scorer made by
        :func:`sklearn.metrics.make_scorer`, or a function ``metric(y_true, y_pred, **kwargs)``.
    average : {"macro", "worst", None}, default="macro"
        Mean over the tasks, the least score of a task, or a dict of task name to score.
        :func:`~sklearn.model_selection.cross_validate` reports the entries of a dict one by one, and
        :class:`~sklearn.model_selection.GridSearchCV` takes a task name, or False, as ``refit``.
    response_method : {"predict", "decision_function", "predict_proba"} or tuple of these, default=None
        What the metric is fed with; of a tuple the first that the estimator has. None is what the scorer of that name
        uses; for functions "predict", or scores where their second argument is called ``y_score``.
    greater_is_better : bool, default=True
        Whether a function is a score or a loss, whose sign is turned.
    task_column : int or str, default=None
        The column of the X given to the scorer that names the task of each row.
    **kwargs : dict
        Further arguments of the metric.

    Returns
    -------
    scorer : callable

    Notes
    -----
    Of a matrix y only labelled entries count. Tasks without a sample in the scored part are left out of the mean, and
    are NaN in a dict. So are, with an ``UndefinedMetricWarning``, tasks whose score is undefined: those where the
    metric is NaN, or where it is fed with scores but the scored samples have one class only.

    Scores of a task compare the classes that the scored samples of the task have; for two classes they favour the
    larger one, or ``pos_label``. A metric whose ``pos_label`` is not given, and by default not a label of the task,
    takes the larger label of the task as the positive one: "f1" works for words too.

    scikit-learn offers no public way from the name of a scorer to its function; private attributes of the scorer are
    read in one place, and only there.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_validate
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.model_selection import MultiTaskStratifiedKFold, make_multitask_scorer
    >>> X, y = make_classification(60, random_state=0)
    >>> X[:, 0] = np.arange(60) % 2
    >>> make_multitask_scorer("roc_auc", average="worst")
    make_multitask_scorer('roc_auc', average='worst')
    >>> results = cross_validate(ParetoMKLClassifier(task_column=0), X, y,
    ...                          cv=MultiTaskStratifiedKFold(3, task_column=0),
    ...                          scoring=make_multitask_scorer("roc_auc", average=None))
    >>> sorted(results)
    ['fit_time', 'score_time', 'test_0.0', 'test_1.0']
    """
    scorer = MultiTaskScorer(metric, average, response_method, greater_is_better, task_column, kwargs or None)
    scorer._check()
    return scorer


class MultiTaskScorer(BaseEstimator):
    """What :func:`make_multitask_scorer` returns; its parameters are those of the function.

    An estimator by base class only: that is the public way to metadata requests, to ``clone`` and to parameters.
    """

    __metadata_request__score: ClassVar = {"tasks": True, "estimator": UNUSED}

    def __init__(
        self,
        metric: Any = "accuracy",
        average: str | None = "macro",
        response_method: Any = None,
        greater_is_better: bool = True,
        task_column: Any = None,
        metric_params: dict[str, Any] | None = None,
    ) -> None:
        self.metric = metric
        self.average = average
        self.response_method = response_method
        self.greater_is_better = greater_is_better
        self.task_column = task_column
        self.metric_params = metric_params

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        metric = repr(self.metric) if isinstance(self.metric, str) else getattr(self.metric, "__name__", self.metric)
        defaults = inspect.signature(make_multitask_scorer).parameters
        names = ("average", "response_method", "greater_is_better", "task_column")
        changed = {name: getattr(self, name) for name in names if getattr(self, name) != defaults[name].default}
        changed |= self.metric_params or {}
        return f"make_multitask_scorer({', '.join([str(metric), *(f'{k}={v!r}' for k, v in changed.items())])})"

    def score(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None
    ) -> float | dict[str, float]:
        """Score of a fitted estimator on X and y: a number, or with ``average=None`` a dict of task name to number.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like of n_samples rows
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        sample_weight : array-like of shape (n_samples,), default=None
        tasks : array-like of shape (n_samples,), default=None
            The task of each row; handed on to the estimator where it takes ``tasks`` too.
        """
        metric = self._check()
        if tasks is not None and self.task_column is not None:
            raise ValueError("The tasks are said twice: by task_column and by tasks=; leave one out.")
        if sample_weight is not None and not metric.takes("sample_weight"):
            raise ValueError(f"The metric {metric.name} takes no sample_weight.")
        check_consistent_length(X, y, sample_weight, tasks)
        known = _tasks_of_columns(estimator)
        labels = _as_vector_or_matrix(y if known is None else labels_by_task(y, known))
        if labels.ndim == 2 and (tasks is not None or self.task_column is not None):
            raise ValueError("The tasks are said twice: by the columns of y and by the rows; leave one out.")
        method = _first_method(estimator, metric.responses)
        response = _respond(estimator, method, X, tasks)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        counted = np.ones(len(labels), dtype=bool) if weight is None else weight != 0
        if labels.ndim == 2:
            classes = getattr(estimator, "classes_", None)
            names = column_names(y) or list(range(labels.shape[1]))
            if known is not None and set(known) == set(names):
                names = known  # the order of the columns now
            parts = _parts_of_matrix(labels, names, counted, response, classes)
        else:
            sources = self._sources(estimator, X) if tasks is None else tasks
            parts = _parts_of_vector(labels, sources, counted, response, method, estimator)
        scores: dict[str, float] = {}
        undefined = []
        for part in parts:
            value = np.nan
            if len(part.rows):
                value = metric.score(part, method, None if weight is None else weight[part.rows])
                if np.isnan(value):
                    undefined.append(part.name)
            if part.name in scores:
                raise ValueError(f"Two tasks are called {part.name!r}; names must differ as text too.")
            scores[part.name] = value
        return self._average(scores, undefined, metric.name)

    __call__ = score

    def _check(self) -> Metric:
        if self.average not in AVERAGES:
            raise ValueError(f"average must be one of {AVERAGES}, got {self.average!r}.")
        return _as_metric(self.metric, self.response_method, self.greater_is_better, self.metric_params or {})

    def _sources(self, estimator: Any, X: Any) -> AnyArray | None:
        """The task of each row by the column of the scorer, or else by that of the estimator."""
        if self.task_column is not None:
            return task_column_of(X, self.task_column)
        for layer in _layers(estimator):
            column = getattr(layer, "task_column", None)
            if column is not None:
                return task_column_of(_as_seen_by(layer, estimator, X), column)
        return None

    def _average(self, scores: dict[str, float], undefined: list[str], metric: str) -> float | dict[str, float]:
        if undefined:
            warnings.warn(
                f"{metric} is undefined for {len(undefined)} of {len(scores)} tasks ({', '.join(undefined[:5])}): the "
                "scored samples have too few classes there. They are left out of the average.",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        if self.average is None:
            return scores
        defined = [value for value in scores.values() if not np.isnan(value)]
        if not defined:
            return np.nan
        return float(min(defined) if self.average == "worst" else np.mean(defined))


@dataclass(frozen=True)
class Part:
    """What is scored together: the samples of one task.

    rows: where they stand in y; truth (n,): their labels; response (n,) or (n, n_classes): what the estimator answers,
    a column per entry of ``classes``; classes: all labels of the task, None where only the samples can tell.
    """

    name: str
    rows: IntArray
    truth: AnyArray
    response: AnyArray
    classes: list[Any] | None

    def known_classes(self, method: str) -> list[Any]:
        """The labels of the task, as far as the estimator or the samples tell."""
        seen = listed(self.truth) + (listed(self.response) if method == "predict" else [])
        return self.classes or unique_labels(array_of(seen))


@dataclass(frozen=True)
class Metric:
    """A function of y_true and y_pred, with what has to be known to call it."""

    name: str
    function: Callable[..., Any]
    sign: int
    arguments: dict[str, Any]
    responses: tuple[str, ...]

    def takes(self, argument: str) -> bool:
        """Whether the function has an argument of that name."""
        parameters = _parameters(self.function)
        return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    def score(self, part: Part, method: str, weight: Array | None) -> float:
        """Score of one task, greater is better; NaN where it is undefined."""
        response, arguments = part.response, dict(self.arguments)
        if method != "predict" and len(unique_labels(part.truth)) < 2:
            return np.nan
        if method != "predict" or "pos_label" in _parameters(self.function):
            classes = part.known_classes(method)
            if self._lacks_positive_label(method, classes):
                if len(classes) < 2:
                    return np.nan  # which of two labels is the positive one cannot be told from one
                arguments["pos_label"] = classes[1]
            if method != "predict" and len(classes) == 2:
                positive = arguments.get("pos_label", self._default_of("pos_label"))
                response = _scores_of_pair(response, method, turn=positive == classes[0])
        if weight is not None:
            arguments["sample_weight"] = weight
        return self.sign * float(self.function(part.truth, response, **arguments))

    def _lacks_positive_label(self, method: str, classes: list[Any]) -> bool:
        """Whether the metric is about a positive label that nobody has named and that its default does not name."""
        if "pos_label" not in _parameters(self.function) or "pos_label" in self.arguments or len(classes) > 2:
            return False
        average = self.arguments.get("average", self._default_of("average") or "binary")
        return (method != "predict" or average == "binary") and self._default_of("pos_label") not in classes

    def _default_of(self, argument: str) -> Any:
        parameter = _parameters(self.function).get(argument)
        return None if parameter is None or parameter.default is parameter.empty else parameter.default


def _as_metric(metric: Any, response_method: Any, greater_is_better: bool, arguments: dict[str, Any]) -> Metric:
    if isinstance(metric, str) or hasattr(metric, "_score_func"):
        if not greater_is_better:
            raise ValueError(f"greater_is_better is for functions; the scorer {metric!r} knows its sign.")
        scorer = get_scorer(metric)
        function, sign, arguments = scorer._score_func, scorer._sign, {**scorer._kwargs, **arguments}
        default = scorer._response_method
    elif callable(metric):
        function, sign = metric, 1 if greater_is_better else -1
        default = SCORES if list(_parameters(metric))[1:2] == ["y_score"] else "predict"
    else:
        raise ValueError(f"metric must be the name of a scorer or a function, got {metric!r}.")
    responses = default if response_method is None else response_method
    responses = (responses,) if isinstance(responses, str) else tuple(responses)
    if not responses or any(name not in RESPONSES for name in responses):
        raise ValueError(f"response_method must be one of {RESPONSES} or a tuple of these, got {response_method!r}.")
    name = metric if isinstance(metric, str) else getattr(function, "__name__", repr(function))
    return Metric(name, function, sign, arguments, responses)


def check_scorer(scoring: Any, estimator: Any) -> Callable[..., Any]:
    """A scorer that gives one number and finds in the estimator what it needs."""
    by_task = isinstance(scoring, MultiTaskScorer) and scoring.average is None
    if by_task or isinstance(scoring, dict | list | tuple | set):
        raise ValueError(f"scoring must give one number, but {scoring!r} gives several.")
    if not (isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be the name of a scorer or a callable, got {scoring!r}.")
    scorer = check_scoring(estimator, scoring=get_scorer(scoring))
    metric = _metric_of(scorer)
    if metric is not None:
        _first_method(estimator, metric.responses)
    return scorer


def scorer_takes(scorer: Any, argument: str) -> bool:
    """Whether a scorer has a use for ``sample_weight`` or ``tasks``."""
    metric = _metric_of(scorer)
    if metric is None or (argument == "tasks" and isinstance(scorer, MultiTaskScorer)):
        return argument in _parameters(scorer)
    return argument == "sample_weight" and metric.takes(argument)


def _metric_of(scorer: Any) -> Metric | None:
    """The metric of a scorer of this module or of scikit-learn; None for other functions."""
    if isinstance(scorer, MultiTaskScorer):
        return scorer._check()
    return _as_metric(scorer, None, True, {}) if hasattr(scorer, "_score_func") else None


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except ValueError:  # some compiled functions do not tell
        return {}


def _layers(estimator: Any) -> Iterator[Any]:
    """The estimator, and what predicts in the end inside of pipelines and searches."""
    yield estimator
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return
        yield estimator


def _as_seen_by(layer: Any, estimator: Any, X: Any) -> Any:
    """X as it reaches a layer, transformed by the pipelines on the way."""
    for outer in _layers(estimator):
        if outer is layer:
            break
        if isinstance(outer, Pipeline) and len(outer) > 1:
            X = outer[:-1].transform(X)
    return X


def _tasks_of_columns(estimator: Any) -> list[Any] | None:
    """The tasks that a fit on a matrix y has named after its columns."""
    for layer in _layers(estimator):
        if isinstance(getattr(layer, "classes_", None), list) and hasattr(layer, "sources_"):
            return layer.sources_
    return None


def _first_method(estimator: Any, names: tuple[str, ...]) -> str:
    for name in names:
        if hasattr(estimator, name):
            return name
    raise ValueError(f"{type(estimator).__name__} has no method {' or '.join(names)}, which the metric needs.")


def _respond(estimator: Any, method: str, X: Any, tasks: Any) -> Any:
    """What the estimator answers; ``tasks`` go to the layer that takes them, past pipelines and searches."""
    if tasks is not None:
        for layer in _layers(estimator):
            pooled = getattr(layer, "sources_", None) == [None]  # fitted without tasks: one model for all
            if not pooled and "tasks" in _parameters(getattr(layer, method)):
                return getattr(layer, method)(_as_seen_by(layer, estimator, X), tasks=tasks)
    return getattr(estimator, method)(X)


def _parts_of_matrix(labels: AnyArray, names: list[Any], counted: AnyArray, response: Any, classes: Any) -> list[Part]:
    """One part per column of y, with the samples that are labelled there and counted."""
    by_task = isinstance(response, list)  # predict_proba of several outputs: a list of (n_samples, n_classes)
    if not by_task and np.shape(response) != labels.shape:
        raise ValueError(f"y has shape {labels.shape}, but the estimator answers with shape {np.shape(response)}.")
    labelled = ~missing_labels(labels) & counted[:, None]
    parts = []
    for t in range(labels.shape[1]):
        rows = np.flatnonzero(labelled[:, t])
        answer = response[t] if by_task else response[:, t]
        known = listed(np.asarray(classes[t])) if isinstance(classes, list) else None
        parts.append(_part(names[t], rows, labels[:, t], answer, known))
    return parts


def _parts_of_vector(
    labels: AnyArray, tasks: Any, counted: AnyArray, response: AnyArray, method: str, estimator: Any
) -> list[Part]:
    """One part per task, with its counted samples; tasks that the estimator knows but has no samples of come last."""
    classes = getattr(estimator, "classes_", None)
    known = None if classes is None else listed(np.asarray(classes))
    if tasks is None:
        return [_part("score", np.flatnonzero(counted), labels, response, known)]
    parts = []
    for task, members in _rows_of_tasks(tasks, len(labels)):
        rows = members[counted[members]]
        answer, mine = response, known
        if known is not None and len(known) > 2:  # more than this task has, as like as not
            mine = None if method == "predict" else unique_labels(labels[rows])
            answer = response if mine is None else _columns_of(mine, known, response, method, task)
        parts.append(_part(task, rows, labels, answer, mine))
    fitted = {str(task) for layer in _layers(estimator) for task in getattr(layer, "sources_", [])}
    seen = {part.name for part in parts}
    absent = sorted(fitted - seen) if seen <= fitted else []  # else the scores are for tasks of another kind
    return parts + [_part(task, np.arange(0), labels, response, known) for task in absent]


def _part(task: Any, rows: IntArray, labels: AnyArray, response: AnyArray, classes: list[Any] | None) -> Part:
    answer = np.asarray(response)[rows]
    if answer.dtype.kind == "O":
        answer = array_of(answer.tolist())
    truth = labels[rows]
    if truth.dtype.kind == "O":  # labels of one task are often of one type, though those of all tasks are not
        truth = array_of(truth.tolist())
    return Part(str(task), rows, truth, answer, classes)


def _columns_of(mine: list[Any], known: list[Any], response: Array, method: str, task: Any) -> Array:
    """The scores of the classes of one task, (n_samples, n_classes of the task); probabilities given these classes."""
    unknown = [label for label in mine if label not in known]
    if unknown:
        raise ValueError(f"Task {task!r} has label {unknown[0]!r}, which the estimator does not know.")
    columns = response[:, [known.index(label) for label in mine]]
    if method != "predict_proba":
        return columns
    total = columns.sum(axis=1, keepdims=True)
    return np.where(total > 0, columns / np.where(total > 0, total, 1.0), 1 / len(mine))


def _scores_of_pair(response: Array, method: str, turn: bool) -> Array:
    """One number per sample, larger for the second of two classes, or for the first with ``turn``."""
    if method == "predict_proba":
        second = response[:, 1] if response.ndim == 2 else response
        return 1 - second if turn else second
    second = response[:, 1] - response[:, 0] if response.ndim == 2 else response
    return -second if turn else second


# ----------------------------------------------------------------------------------------------- labels
def _as_vector_or_matrix(y: Any) -> AnyArray:
    labels = as_labels(y, "y")
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got {labels.ndim}.")
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _rows_of_tasks(tasks: Any, n_samples: int) -> list[tuple[Any, IntArray]]:
    """The samples of each task, tasks in order of appearance; one task without a name where there are none."""
    sources = as_sources(tasks, n_samples)
    if sources is None:
        return [(None, np.arange(n_samples))]
    return [(task, np.flatnonzero(equal_labels(sources, task))) for task in dict.fromkeys(listed(sources))]
