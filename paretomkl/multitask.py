"""What all multi-task classifiers share: the ways to say the tasks, the checks, votes and scores."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ._typing import AnyArray, Array, IntArray
from ._validation import check_stack, numbers_only, shown
from .tasks import (
    Task,
    array_of,
    as_labels,
    as_sources,
    equal_labels,
    find_task_column,
    labels_by_task,
    listed,
    make_tasks,
    missing_labels,
    refuse_missing,
    same_labels,
    task_column_of,
    unique_labels,
)


@dataclass(frozen=True)
class Samples:
    """What was read from X: features (or a stack of kernels) and the task label of each row, if there is one."""

    data: AnyArray
    sources: AnyArray | None
    names: list[str] | None = None


@dataclass(frozen=True)
class Training:
    """What fit was given, checked.

    weights: for each task the weight of each of its samples, sample weight times class weight; kind: how the tasks were
    said ("matrix", "classes" or "tasks"); classes: all labels of a vector y.
    """

    samples: Samples
    tasks: list[Task]
    weights: list[Array]
    kind: str
    classes: list[Any]


class MultiTaskClassifier(ClassifierMixin, BaseEstimator):
    """What all multi-task classifiers share: the ways to say the tasks, the checks, and prediction.

    A subclass has the parameters ``task_column`` and ``class_weight``, a method ``_learn`` that solves the tasks, and a
    method ``_decide`` that evaluates them.
    """

    task_column: Any
    class_weight: Any
    classes_: Any

    # so that tasks= is routed without set_fit_request and its like, where routing is on
    __metadata_request__fit: ClassVar = {"tasks": True}
    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__decision_function: ClassVar = {"tasks": True}
    __metadata_request__score: ClassVar = {"tasks": True}

    def _learn(self, training: Training) -> None:
        """Solve the tasks and keep what ``_decide`` needs."""
        raise NotImplementedError

    def _decide(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        """f_t(x) of some tasks for some rows of the data, (n_rows, n_tasks asked)."""
        raise NotImplementedError

    def _is_precomputed(self) -> bool:
        """Whether X is a stack of kernels instead of features."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.three_d_array = self._is_precomputed()
        return tags

    # ------------------------------------------------------------------------------------------------ fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> MultiTaskClassifier:
        """Learn the shared kernel and all tasks.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``task_column`` one of the columns names the task of each row. With ``kernels="precomputed"`` a stack
            of shape (n_samples, n_samples, n_kernels).
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Labels; a matrix has one task per column, two values in each, NaN for "not labelled".
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C, sample by sample.
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, where no column of X says it.
        """
        self._forget()
        training = self._read_training(X, y, sample_weight, tasks)
        self._learn(training)
        self._describe(training)
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit has learned, of which the next one may not have all."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _read_training(self, X: Any, y: Any, sample_weight: Any, tasks: Any) -> Training:
        """Check everything that fit was given, and make the tasks."""
        samples = self._read(X, tasks, reset=True)
        labels = self._read_labels(y)
        if len(labels) != len(samples.data):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {len(samples.data)}, "
                f"y has {len(labels)}."
            )
        made = make_tasks(_with_columns(labels, y), samples.sources)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, samples.data)
        kind = "matrix" if labels.ndim == 2 else "classes" if samples.sources is None else "tasks"
        classes = [] if kind == "matrix" else unique_labels(labels)
        return Training(samples, made, task_sample_weights(made, weight, self.class_weight), kind, classes)

    def _describe(self, training: Training) -> None:
        """Keep what prediction has to know of the tasks."""
        made = training.tasks
        self.n_tasks_ = len(made)
        self.task_names_ = [task.name for task in made]
        self.sources_ = list(dict.fromkeys(task.source for task in made))
        self._classes_of_task = [task.classes for task in made]
        self._source_of_task = [task.source for task in made]
        self._kind = training.kind
        if self._kind == "matrix":
            self.classes_ = [array_of(list(task.classes)) for task in made]
        else:
            self.classes_ = array_of(training.classes)

    def _read(self, X: Any, tasks: Any, reset: bool) -> Samples:
        """Split X into features and task labels, and check both."""
        if self._is_precomputed():
            if self.task_column is not None:
                raise ValueError("task_column cannot be used with precomputed kernels; pass tasks= instead.")
            stack = check_stack(X, square=reset)
            if reset:
                self.n_features_in_ = stack.shape[1]
                self._n_kernels_in = stack.shape[2]
            elif stack.shape[1:] != (self.n_features_in_, self._n_kernels_in):
                raise ValueError(
                    f"X must have shape (n_samples, {self.n_features_in_}, {self._n_kernels_in}), the kernel values "
                    f"between the given and the training samples; got shape {stack.shape}."
                )
            return Samples(stack, as_sources(tasks, len(stack)))
        if self.task_column is None:
            with numbers_only():
                data = validate_data(self, X, dtype=np.float64, reset=reset)
            names = getattr(self, "feature_names_in_", None)
            return Samples(data, as_sources(tasks, len(data)), None if names is None else list(names))
        if tasks is not None:
            raise ValueError("The tasks are said twice: by task_column and by tasks=; leave one out.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return self._split_task_column(X)

    def _split_task_column(self, X: Any) -> Samples:
        sources = task_column_of(X, self.task_column)
        if np.shape(X)[1] < 2:
            raise ValueError(f"X has no column besides task_column={self.task_column!r}; features are needed too.")
        position = find_task_column(X, self.task_column)
        others = [k for k in range(np.shape(X)[1]) if k != position]
        names = list(X.columns) if hasattr(X, "columns") else None
        if names is None:
            features = X[:, others] if isinstance(X, np.ndarray) else [[row[k] for k in others] for row in X]
        elif hasattr(X, "iloc"):
            features = X.iloc[:, others]
        else:  # polars and its like
            features = X[[names[k] for k in others]]
        with numbers_only():
            data = check_array(features, dtype=np.float64, input_name="X", estimator=self)
        return Samples(data, sources, None if names is None else [str(names[k]) for k in others])

    def _read_labels(self, y: Any) -> AnyArray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = as_labels(y, "y")
        if labels.ndim == 2 and labels.shape[1] > 1:
            return labels
        refuse_missing(labels.ravel(), "y")
        labels = column_or_1d(labels, warn=True)
        if labels.dtype.kind == "f":  # numbers that measure are no labels; everything else that can be hashed is
            check_classification_targets(labels)
        return labels

    def _read_truth(self, y: Any) -> AnyArray:
        """Labels to compare predictions with, (n_samples,) or by task (n_samples, n_tasks)."""
        if self._kind == "matrix":
            return labels_by_task(y, self.sources_)
        labels = as_labels(y, "y")
        return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels

    # -------------------------------------------------------------------------------------------- predict
    def decision_function(self, X: Any, tasks: Any = None) -> Array:
        """Signed distances, up to scale.

        Returns
        -------
        scores : array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_tasks)
            With two classes in all, one number per sample, positive for ``classes_[1]``. With more classes one column
            per class, votes of the pairs refined by their confidences; a class that the task of a sample does not
            have is scored below all that it has. After a fit on a matrix y one column per task.
        """
        check_is_fitted(self)
        samples = self._read(X, tasks, reset=False)
        decisions = self._pair_decisions(samples)
        if self._kind == "matrix":
            return decisions
        if len(self.classes_) == 2:
            return np.nansum(decisions, axis=1)  # each sample has the decision of its own task only
        return self._scores_of_classes(decisions)

    def predict(self, X: Any, tasks: Any = None) -> AnyArray:
        """Labels of shape (n_samples,), or (n_samples, n_tasks) after a fit on a matrix y."""
        scores = self.decision_function(X, tasks)
        if self._kind == "matrix":
            pairs = zip(scores.T, self.classes_, strict=True)
            columns = [classes[(score > 0).astype(int)] for score, classes in pairs]
            kinds = {column.dtype.kind for column in columns}
            if len(kinds) == 1 or kinds <= set("biuf"):
                return np.stack(columns, axis=1)
            mixed = np.empty(scores.shape, dtype=object)  # numbers beside words would turn into words
            for t, column in enumerate(columns):
                mixed[:, t] = array_of(listed(column))
            return mixed
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Mean over the tasks of the task accuracy; plain accuracy where the classes are the tasks.

        A frame y has its columns matched to the tasks by name. Tasks without a label of positive weight are left out.
        """
        predicted = self.predict(X, tasks)
        truth = self._read_truth(y)
        check_consistent_length(predicted, truth, sample_weight)
        if truth.shape != predicted.shape:
            raise ValueError(f"y must have the shape {predicted.shape} of the predictions, got shape {truth.shape}.")
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if self._kind == "matrix":
            labelled = ~missing_labels(truth)
            groups = [(truth[:, t], predicted[:, t], np.flatnonzero(labelled[:, t])) for t in range(self.n_tasks_)]
        else:
            refuse_missing(truth, "y")
            parts = self._rows_of_sources(self._read(X, tasks, reset=False))
            groups = [(truth, predicted, rows) for _, rows in parts]
        scores = [
            np.average(same_labels(labels[rows], answers[rows]), weights=weight[rows])
            for labels, answers, rows in groups
            if weight[rows].sum() > 0
        ]
        if not scores:
            raise ValueError("There is nothing to score: y has no label of positive weight.")
        return float(np.mean(scores))

    def _pair_decisions(self, samples: Samples) -> Array:
        """f_t(x) of every task for the samples it is asked about, (n_samples, n_tasks); NaN elsewhere."""
        decisions = np.full((len(samples.data), self.n_tasks_), np.nan)
        for source, rows in self._rows_of_sources(samples):
            tasks = self._tasks_of_source(source)
            decisions[np.ix_(rows, tasks)] = self._decide(samples.data, rows, tasks)
        return decisions

    def _tasks_of_source(self, source: Any) -> IntArray:
        return np.flatnonzero([self._kind == "matrix" or known == source for known in self._source_of_task])

    def _rows_of_sources(self, samples: Samples) -> list[tuple[Any, IntArray]]:
        everyone = np.arange(len(samples.data))
        if self._kind != "tasks":
            if samples.sources is not None:
                raise ValueError(f"{type(self).__name__} was fitted without tasks; leave tasks= out here too.")
            return [(None, everyone)]
        if samples.sources is None:
            raise ValueError(
                f"{type(self).__name__} was fitted with tasks ({self.sources_[:5]} …); say the task of each sample "
                "with tasks=."
            )
        groups = []
        for source in unique_labels(samples.sources):
            if source not in self.sources_:
                raise ValueError(
                    f"Unknown task {source!r}; known are {self.sources_[:20]}; if this comes from cross-validation, "
                    "use MultiTaskStratifiedKFold or shuffle the rows."
                )
            groups.append((source, everyone[equal_labels(samples.sources, source)]))
        return groups

    def _scores_of_classes(self, decisions: Array) -> Array:
        """Votes of the pairs, with ties broken by the sum of their confidences squeezed into (−⅓, ⅓)."""
        index = {label: k for k, label in enumerate(listed(self.classes_))}
        negative, positive = np.zeros((2, self.n_tasks_, len(index)))
        for t, (minus, plus) in enumerate(self._classes_of_task):
            negative[t, index[minus]] = positive[t, index[plus]] = 1.0
        asked = ~np.isnan(decisions) @ (negative + positive) > 0
        f = np.nan_to_num(decisions)
        votes = (f < 0) @ negative + (f > 0) @ positive
        confidence = f @ (positive - negative)
        scores = votes + confidence / (3 * (np.abs(confidence) + 1))
        scores[~asked] = -1.0
        return scores


def task_sample_weights(tasks: list[Task], sample_weight: Array | None, class_weight: Any) -> list[Array]:
    """Sample weight · class weight for each sample of each task, with every class of every task left some."""
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if isinstance(class_weight, Mapping):
        _check_labels_of(class_weight, tasks)
    elif class_weight is not None and not balanced:
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {shown(class_weight)}.")
    weights = []
    for task in tasks:
        weight = np.ones(len(task.rows)) if sample_weight is None else sample_weight[task.rows].astype(float)
        if (weight < 0).any():
            raise ValueError(f"sample_weight must not be negative (task {task.name!r}).")
        factor = np.ones(len(weight))
        for sign, label in ((-1, task.classes[0]), (1, task.classes[1])):
            of_class = task.signs == sign
            total = weight[of_class].sum()
            if not total > 0:
                raise ValueError(f"Task {task.name!r} has no sample of class {label!r} with a positive weight.")
            if balanced:
                factor[of_class] = weight.sum() / (2 * total)
            elif class_weight is not None:
                factor[of_class] = _class_weight(class_weight, label)
        weights.append(weight * factor)
    return weights


def _check_labels_of(class_weight: Mapping[Any, Any], tasks: list[Task]) -> None:
    """Refuse a weight of a label that does not occur; where all labels have weights, it may be of some other part."""
    labels = list(dict.fromkeys(label for task in tasks for label in task.classes))
    unknown = [label for label in class_weight if label not in labels]
    if unknown and any(label not in class_weight for label in labels):
        raise ValueError(f"class_weight names the label {unknown[0]!r}, which y does not have; it has {labels[:10]}.")


def _class_weight(class_weight: Mapping[Any, Any], label: Any) -> float:
    weight = class_weight.get(label, 1.0)
    if not (isinstance(weight, numbers.Real) and 0 < float(weight) < np.inf):
        raise ValueError(f"class_weight of class {label!r} must be positive, got {weight!r}.")
    return float(weight)


def _with_columns(labels: AnyArray, y: Any) -> Any:
    """A matrix of labels keeps the column names of the frame it came from: they name the tasks."""
    return y if labels.ndim == 2 and hasattr(y, "columns") else labels
