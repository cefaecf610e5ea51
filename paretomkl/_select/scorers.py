"""Scorers that evaluate each task separately."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    check_scoring,
    f1_score,
    get_scorer,
    matthews_corrcoef,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import UNUSED

from .._data.tasks import (
    array_of,
    labels_by_task,
    listed,
    missing_labels,
    names_of_columns,
    task_column_of,
    unique_labels,
)
from .._tools.public import PublicNames
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import literal
from .cells import MATRIX_AND_TASKS, as_vector_or_matrix, rows_of_tasks

AVERAGES = ("macro", "worst", None)
RESPONSES = ("predict", "decision_function", "predict_proba")
SCORES = ("decision_function", "predict_proba")
COMPARE_CLASSES = (balanced_accuracy_score, f1_score, matthews_corrcoef, precision_score, recall_score)
WITHIN_UNIT = (  # scores between 0 and 1
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)


def make_multitask_scorer(
    metric: Any = "accuracy",
    *,
    average: str | None = "macro",
    response_method: Any = None,
    greater_is_better: bool = True,
    task_column: int | str | None = None,
    **kwargs: Any,
) -> MultiTaskScorer:
    """A scorer that evaluates a metric on each task and averages over the tasks.

    Use it wherever scikit-learn takes ``scoring=``, or call it as ``scorer(estimator, X, y, sample_weight=None,
    tasks=None)``. The task of each sample comes from ``tasks=`` (requested by default with metadata routing), from
    ``task_column``, from the ``task_column`` of the estimator (of the last step of a pipeline, or of the best estimator
    of a search), or from the columns of a matrix y. Without any of these, all samples are one task, and the score is
    the plain metric.

    Parameters
    ----------
    metric : str or callable, default="accuracy"
        Name of a scikit-learn scorer (``sklearn.metrics.get_scorer_names()``), a scorer made by
        :func:`sklearn.metrics.make_scorer`, or a function ``metric(y_true, y_pred, **kwargs)``.
    average : {"macro", "worst", None}, default="macro"
        Mean over the tasks, the lowest score of a task, or a dict from task name to score.
        :func:`~sklearn.model_selection.cross_validate` reports the entries of a dict one by one, and
        :class:`~sklearn.model_selection.GridSearchCV` takes a task name, or False, as ``refit``.
    response_method : {"predict", "decision_function", "predict_proba"} or tuple of these, default=None
        What the metric receives; for a tuple, the first method that the estimator has. None uses the response of the
        named scorer; for functions "predict", or scores if their second argument is called ``y_score``.
    greater_is_better : bool, default=True
        Whether a function is a score; if False, it is a loss and its sign is flipped.
    task_column : int or str, default=None
        The column of the X passed to the scorer that names the task of each row.
    **kwargs : dict
        Further arguments of the metric.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)``, for ``scoring=`` of scikit-learn's tools and of the searches.

    Notes
    -----
    In a matrix y, only labelled entries count. The mean skips tasks without scored samples; in a dict they are NaN. The
    same holds, with an ``UndefinedMetricWarning``, for tasks whose score is undefined: the metric is NaN, or the scored
    samples have a single class and the metric compares classes (it needs scores, or is balanced accuracy, precision,
    recall, F1 or the Matthews correlation).

    The score of a task compares the classes among its scored samples; with two classes, the larger one, or
    ``pos_label``, is the positive one. If you do not pass ``pos_label`` and its default is not a label of the task, the
    larger label of the task is positive, so "f1" works for text labels too.

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
    metric_of(scorer)  # raise on bad arguments now
    return scorer


class MultiTaskScorer(PublicNames, BaseEstimator):
    """The result of :func:`make_multitask_scorer`, with the same parameters.

    It derives from BaseEstimator only for metadata requests, ``clone`` and parameters.
    """

    _internal = ("parts",)

    __module__ = "paretomkl.model_selection"  # the public import path, which saved models use
    __metadata_request__score: ClassVar = {"tasks": True, "estimator": UNUSED}

    def __init__(
        self,
        metric: Any = "accuracy",
        average: str | None = "macro",
        response_method: Any = None,
        greater_is_better: bool = True,
        task_column: int | str | None = None,
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
        self, estimator: Any, X: object, y: object, sample_weight: object = None, tasks: object = None
    ) -> float | dict[str, float]:
        """Score a fitted estimator on X and y: a number, or with ``average=None`` a dict from task name to number.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like of n_samples rows
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        sample_weight : array-like of shape (n_samples,), default=None
        tasks : array-like of shape (n_samples,), default=None
            The task of each row; passed on to the estimator if it takes ``tasks`` too.
        """
        metric = metric_of(self)
        assert metric is not None
        parts, method, weight = self.parts(metric, estimator, X, y, sample_weight, tasks)
        scores: dict[str, float] = {}
        undefined = []
        for part in parts:
            scores[part.name] = np.nan
            if len(part.rows):
                scores[part.name] = metric.score(part, method, None if weight is None else weight[part.rows])
                undefined += [part.name] * bool(np.isnan(scores[part.name]))
        if undefined:
            warnings.warn(
                f"{metric.name} is undefined for {len(undefined)} of {len(scores)} tasks ({', '.join(undefined[:5])}), "
                "whose scored samples have too few classes. The average skips these tasks.",
                UndefinedMetricWarning,
                stacklevel=2,
            )
        if self.average is None:
            return scores
        defined = [value for value in scores.values() if not np.isnan(value)]
        if not defined:
            return np.nan
        return float(min(defined) if self.average == "worst" else np.mean(defined))

    __call__ = score

    def parts(
        self, metric: Metric, estimator: Any, X: object, y: object, sample_weight: object, tasks: object
    ) -> tuple[list[Part], str, Array | None]:
        """The samples of each task with the response of the estimator, the method that gave it, and the weights."""
        if tasks is not None and self.task_column is not None:
            raise ValueError("Pass task_column or tasks=, not both.")
        if sample_weight is not None and not metric.takes("sample_weight"):
            raise ValueError(f"The metric {metric.name} takes no sample_weight.")
        check_consistent_length(X, y, sample_weight, tasks)
        by = tasks if self.task_column is None else task_column_of(X, self.task_column)
        model, X = _unwrap(estimator, X)
        method = _first_method(model, metric.responses)
        answer = getattr(model, method)
        pooled = getattr(model, "sources_", None) == [None]  # fitted without tasks: one model for all
        by_task = tasks is not None and not pooled and "tasks" in _parameters(answer)
        response = answer(X, tasks=tasks) if by_task else answer(X)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if by is None and getattr(model, "task_column", None) is not None:
            by = task_column_of(X, model.task_column)
        return _parts(y, by, None if weight is None else weight != 0, response, method, model), method, weight


# --------------------------------------------------------------------------------------------- scorers of a search
def check_scorer(scoring: Any, estimator: Any) -> Callable[..., Any]:
    """A scorer that returns one number, after checking that the estimator has the methods it needs."""
    by_task = isinstance(scoring, MultiTaskScorer) and scoring.average is None
    if by_task or isinstance(scoring, dict | list | tuple | set):
        raise ValueError(f"scoring must return one number, but {scoring!r} returns several.")
    if not (isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be the name of a scorer or a callable, got {scoring!r}.")
    scorer = check_scoring(estimator, scoring=get_scorer(scoring))
    metric = metric_of(scorer)
    if metric is not None:
        _first_method(estimator, metric.responses)
    return scorer


def wants_probabilities(scorer: Any) -> bool:
    """Whether a scorer asks for probabilities first."""
    metric = metric_of(scorer)
    return metric is not None and metric.responses[0] == "predict_proba"


def scorer_takes(scorer: Any, argument: str) -> bool:
    """Whether a scorer takes ``sample_weight`` or ``tasks``."""
    metric = metric_of(scorer)
    if metric is None or (argument == "tasks" and isinstance(scorer, MultiTaskScorer)):
        return argument in _parameters(scorer)
    return argument == "sample_weight" and metric.takes(argument)


def within_unit(scoring: Any) -> bool:
    """Whether a score of classes is between 0 and 1; None is accuracy."""
    metric = None if scoring is None else metric_of(get_scorer(scoring))
    return scoring is None or (metric is not None and metric.function in WITHIN_UNIT and metric.sign > 0)


# ------------------------------------------------------------------------------------------------------- metrics
@dataclass(frozen=True)
class Metric:
    """A function of y_true and y_pred, with what is needed to call it."""

    name: str
    function: Callable[..., Any]
    sign: int
    arguments: dict[str, Any]
    responses: tuple[str, ...]

    def takes(self, argument: str) -> bool:
        """Whether the function has an argument of that name."""
        parameters = _parameters(self.function)
        return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    @property
    def of_labels(self) -> bool:
        """Whether it compares labels; otherwise it needs scores."""
        return self.responses[0] == "predict"

    @property
    def compares_classes(self) -> bool:
        """Whether it is undefined for samples of a single class."""
        return not self.of_labels or self.function in COMPARE_CLASSES

    @property
    def of_two_classes(self) -> bool:
        """Whether it is defined for two classes only."""
        average = _parameters(self.function).get("average")
        binary = average is not None and self.arguments.get("average", average.default) == "binary"
        return binary or not self.of_labels

    def score(self, part: Part, method: str, weight: Array | None) -> float:
        """Score of one task, greater is better; NaN if it is undefined."""
        ready = self.prepared(part, method)
        if ready is None:
            return np.nan
        truth, response, arguments = ready
        return self.value(truth, response, arguments if weight is None else arguments | {"sample_weight": weight})

    def value(self, truth: AnyArray, response: AnyArray, arguments: dict[str, Any]) -> float:
        """What the function returns, with the sign of a score."""
        return self.sign * float(self.function(truth, response, **arguments))

    def prepared(self, part: Part, method: str) -> tuple[AnyArray, AnyArray, dict[str, Any]] | None:
        """Truth, response and further arguments of the function for one task; None if the score is undefined."""
        truth, response, arguments = part.truth, part.response, dict(self.arguments)
        of_labels = method == "predict"
        if (not of_labels or self.compares_classes) and len(unique_labels(truth)) < 2:
            return None
        parameters = _parameters(self.function)
        has_positive = "pos_label" in parameters
        if has_positive or not of_labels:
            classes = part.classes or unique_labels(array_of(listed(truth) + (listed(response) if of_labels else [])))
            got = {name: p.default for name, p in parameters.items() if p.default is not p.empty} | arguments
            positive = got.get("pos_label")
            is_binary = not of_labels or (got.get("average") or "binary") == "binary"
            if has_positive and "pos_label" not in arguments and is_binary and positive not in classes:
                if len(classes) < 2:
                    return None  # with one label, the positive one is unknown
                if len(classes) == 2:
                    positive = arguments["pos_label"] = classes[1]
            if not of_labels and len(classes) == 2:
                response = _scores_of_pair(response, method, flip=positive == classes[0])
        return truth, response, arguments


def _scores_of_pair(response: Array, method: str, flip: bool) -> Array:
    """One number per sample, larger for the second of two classes, or for the first with ``flip``."""
    probable = method == "predict_proba"
    if response.ndim == 2:
        response = response[:, 1] if probable else response[:, 1] - response[:, 0]
    return float(probable) - response if flip else response


def metric_of(scorer: Any) -> Metric | None:
    """The metric of a scorer from this module or from scikit-learn; None for other functions."""
    if isinstance(scorer, MultiTaskScorer):
        if scorer.average not in AVERAGES:
            raise ValueError(f"average must be one of {AVERAGES}, got {scorer.average!r}.")
        return _as_metric(scorer.metric, scorer.response_method, scorer.greater_is_better, scorer.metric_params or {})
    return _as_metric(scorer, None, True, {}) if hasattr(scorer, "_score_func") else None


def _as_metric(metric: Any, response_method: Any, greater_is_better: bool, arguments: dict[str, Any]) -> Metric:
    if isinstance(metric, str) or hasattr(metric, "_score_func"):
        if not greater_is_better:
            raise ValueError(f"greater_is_better applies only to functions; the scorer {metric!r} already has a sign.")
        kept = vars(get_scorer(metric))  # scikit-learn has no public way from a scorer to its function
        function, sign, default = kept["_score_func"], kept["_sign"], kept["_response_method"]
        arguments = kept["_kwargs"] | arguments
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


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except ValueError:  # some compiled functions have no signature
        return {}


# ----------------------------------------------------------------------------------------------------- estimators
def _unwrap(estimator: Any, X: object) -> tuple[Any, Any]:
    """The final estimator inside pipelines and searches, and X as it receives it."""
    while True:
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator, X


def last_step(estimator: Any) -> Any:
    """The final estimator inside pipelines and searches."""
    while isinstance(estimator, Pipeline) or hasattr(estimator, "best_estimator_"):
        estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator.best_estimator_
    return estimator


def _first_method(estimator: Any, names: tuple[str, ...]) -> str:
    for name in names:
        if hasattr(estimator, name):
            return name
    raise ValueError(f"{type(estimator).__name__} has no method {' or '.join(names)}, which the metric needs.")


# ---------------------------------------------------------------------------------------------------------- tasks
class Part(NamedTuple):
    """The samples of one task, which are scored together.

    rows: their positions in y; truth (n,): their labels; response (n,) or (n, n_classes): the output of the estimator,
    with one column per entry of ``classes``; classes: all labels of the task, None if only the samples can tell.
    """

    name: str
    rows: IntArray
    truth: AnyArray
    response: AnyArray
    classes: list[Any] | None


def _parts(y: object, tasks: object, counted: AnyArray | None, response: Any, method: str, model: Any) -> list[Part]:
    """One part per column of a matrix y, or per task of a vector y, with the samples that count."""
    classes = getattr(model, "classes_", None)
    known = model.sources_ if isinstance(classes, list) and hasattr(model, "sources_") else None
    labels = as_vector_or_matrix(y if known is None else labels_by_task(y, known))
    counted = np.ones(len(labels), dtype=bool) if counted is None else counted
    if labels.ndim == 1:
        return parts_by_task(labels, tasks, counted, response, method, model)
    if tasks is not None:
        raise ValueError(MATRIX_AND_TASKS)
    by_task = isinstance(response, list)  # predict_proba of several outputs: a list of (n_samples, n_classes)
    if not by_task and np.shape(response) != labels.shape:
        raise ValueError(f"y has shape {labels.shape}, but the estimator returns shape {np.shape(response)}.")
    names = names_of_columns(y, labels.shape[1])
    if known is not None and set(known) == set(names):
        names = known  # labels_by_task has put the columns into this order
    labelled = ~missing_labels(labels) & counted[:, None]
    parts = []
    for t, name in enumerate(names):
        answer = response[t] if by_task else response[:, t]
        own = listed(np.asarray(classes[t])) if isinstance(classes, list) else None
        parts.append(_part(name, np.flatnonzero(labelled[:, t]), labels[:, t], answer, own))
    return parts


def parts_by_task(
    labels: AnyArray, tasks: object, counted: AnyArray, response: AnyArray, method: str, model: Any
) -> list[Part]:
    """One part per task; tasks that the model knows but that have no samples come last."""
    classes = getattr(model, "classes_", None)
    known = None if classes is None else listed(np.asarray(classes))
    if tasks is None:
        return [_part("score", np.flatnonzero(counted), labels, response, known)]
    parts = []
    for task, members in rows_of_tasks(tasks, len(labels)):
        rows = members[counted[members]]
        answer, own = response, known
        if known is not None and len(known) > 2:  # probably more than this task has
            own = None if method == "predict" else unique_labels(labels[rows])
            answer = response if own is None else _columns_of(own, known, response, method, task)
        parts.append(_part(task, rows, labels, answer, own))
    fitted, seen = {str(task) for task in getattr(model, "sources_", [])}, {part.name for part in parts}
    absent = sorted(fitted - seen) if seen <= fitted else []  # otherwise these are not the tasks of the model
    return parts + [_part(task, np.arange(0), labels, response, known) for task in absent]


def _part(task: Any, rows: IntArray, labels: AnyArray, response: AnyArray, classes: list[Any] | None) -> Part:
    return Part(str(task), rows, plain_labels(labels[rows]), plain_labels(np.asarray(response)[rows]), classes)


def plain_labels(labels: AnyArray) -> AnyArray:
    """Labels as a typed array if possible: one task often has one type of labels, even if all tasks do not."""
    return array_of(labels.tolist()) if labels.dtype.kind == "O" else labels


def _columns_of(own: list[Any], known: list[Any], response: Array, method: str, task: Any) -> Array:
    """The scores of the classes of one task, (n_samples, n_classes of the task); probabilities are renormalised."""
    unknown = [label for label in own if label not in known]
    if unknown:
        raise ValueError(f"Task {literal(task)} has label {literal(unknown[0])}, which the estimator does not know.")
    columns = response[:, [known.index(label) for label in own]]
    if method != "predict_proba":
        return columns
    total = columns.sum(axis=1, keepdims=True)
    return np.where(total > 0, columns / np.where(total > 0, total, 1.0), 1 / len(own))
