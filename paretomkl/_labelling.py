"""What prediction needs to know about the tasks: which rows belong to which, and how decisions become labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ._tasks import (
    FOLDS,
    TASK_FOLDS,
    Task,
    array_of,
    as_labels,
    equal_labels,
    labels_by_task,
    listed,
    missing_labels,
    refuse_missing,
    same_labels,
    unique_labels,
)
from ._typing import AnyArray, Array, IntArray
from ._wording import literal

Kind = Literal["classes", "single", "tasks", "matrix"]


@dataclass(frozen=True)
class Samples:
    """The content of X: features (or a stack of kernels) and the task label of each row, if there is one."""

    data: AnyArray
    sources: AnyArray | None = None
    names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: slice) -> Samples:
        sources = None if self.sources is None else self.sources[rows]
        return Samples(self.data[rows], sources, self.names)


@dataclass(frozen=True)
class TaskSet:
    """Which samples belong to which task; subclasses define what the decisions f_t(x) mean.

    kind: whether the tasks come from the classes of y, its single column, a task column or ``tasks=``, or the columns
    of a matrix y; names; sources: the task label, or the column of y, that each task comes from (None if there is only
    one).
    """

    kind: Kind
    names: list[str]
    sources: list[Hashable]

    advice: ClassVar[str] = TASK_FOLDS  # for tasks that are missing in a fold

    @property
    def n_tasks(self) -> int:
        return len(self.names)

    @property
    def distinct_sources(self) -> list[Hashable]:
        return list(dict.fromkeys(self.sources))

    def groups(self, samples: Samples) -> list[tuple[IntArray, IntArray]]:
        """Which rows belong to which tasks: pairs (rows, tasks) that cover all rows once."""
        everyone, every_task = np.arange(len(samples)), np.arange(self.n_tasks)
        if self.kind != "tasks":
            if samples.sources is not None:
                raise ValueError("The model was fitted without tasks; do not pass tasks= here either.")
            return [(everyone, every_task)]
        known = self.distinct_sources
        if samples.sources is None:
            raise ValueError(
                f"The model was fitted with tasks ({literal(known[:5])} …); pass the task of each row as tasks=."
            )
        groups = []
        for source in unique_labels(samples.sources):
            if source not in known:
                raise ValueError(
                    f"Unknown task {literal(source)}; the model knows {literal(known[:20])}. {self.advice}"
                )
            mine = every_task[[other == source for other in self.sources]]
            groups.append((everyone[equal_labels(samples.sources, source)], mine))
        return groups

    def predictions(self, decisions: Array) -> AnyArray:
        """What ``predict`` returns, from f_t(x) (n_samples, n_tasks), NaN for samples of other tasks."""
        raise NotImplementedError

    def score(self, decisions: Array, samples: Samples, y: Any, weight: Array | None = None) -> float:
        """Score of the predictions, a mean over the tasks; greater is better."""
        raise NotImplementedError

    def loss(self, samples: Samples, y: Any, weight: Array | None = None) -> Callable[[Array], float]:
        """A loss of decisions that almost never has the same value twice, to break ties between scores."""
        raise NotImplementedError

    @property
    def chosen_by_loss(self) -> bool:
        """Whether a search without ``scoring`` uses 1 − loss instead of the score."""
        return False


@dataclass(frozen=True)
class Labelling(TaskSet):
    """Classification tasks.

    pairs: the labels of −1 and +1 of each task, only the label of +1 for one class against the rest; classes: array of
    shape (n_classes,), or for "matrix" one array per task; estimates: whether decisions estimate ±1, as in least
    squares, and are judged by their squared error.
    """

    pairs: list[tuple[Any, ...]]
    classes: Any
    estimates: bool = False

    advice: ClassVar[str] = FOLDS

    @classmethod
    def of(cls, tasks: Sequence[Task], kind: Kind, classes: list[Any], estimates: bool = False) -> Labelling:
        pairs = [task.classes for task in tasks]
        known = [array_of(list(pair)) for pair in pairs] if kind == "matrix" else array_of(classes)
        return cls(kind, [task.name for task in tasks], [task.source for task in tasks], pairs, known, estimates)

    # ------------------------------------------------------------------------------------------------ labels
    def scores(self, decisions: Array) -> Array:
        """What ``decision_function`` returns, from f_t(x) (n_samples, n_tasks), NaN for samples of other tasks."""
        if self.kind == "matrix":
            return decisions
        if len(self.classes) == 2:
            return np.nansum(decisions, axis=1)  # each sample has a decision only for its own task
        return self._class_scores(decisions)

    def _class_scores(self, decisions: Array) -> Array:
        """A score for each class, (n_samples, n_classes).

        One-vs-rest: the decision of the class. Pairs: their votes, with ties broken by the sum of their confidences
        squeezed into (−⅓, ⅓). A class without any decision scores below all others.
        """
        index = {label: k for k, label in enumerate(listed(self.classes))}
        negative, positive = np.zeros((2, self.n_tasks, len(index)))
        for t, (*minus, plus) in enumerate(self.pairs):
            positive[t, index[plus]] = 1.0
            negative[t, [index[label] for label in minus]] = 1.0
        asked = ~np.isnan(decisions) @ (negative + positive) > 0
        f = np.nan_to_num(decisions)
        scores = f @ (positive - negative)
        if not self.one_vs_rest:
            votes = (f < 0) @ negative + (f > 0) @ positive
            scores = votes + scores / (3 * (np.abs(scores) + 1))
        lowest = np.where(asked, scores, np.inf).min(axis=1, keepdims=True, initial=0.0)
        return np.where(asked, scores, lowest - 1.0)

    @property
    def one_vs_rest(self) -> bool:
        """Whether some task has one class against the rest."""
        return any(len(pair) == 1 for pair in self.pairs)

    def predictions(self, decisions: Array) -> AnyArray:
        """Predicted labels, (n_samples,), or (n_samples, n_tasks) for a matrix."""
        scores = self.scores(decisions)
        if self.kind != "matrix":
            chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
            return self.classes[chosen]
        columns = [classes[(score > 0).astype(int)] for score, classes in zip(scores.T, self.classes, strict=True)]
        kinds = {column.dtype.kind for column in columns}
        if len(kinds) == 1 or kinds <= set("biuf"):
            return np.stack(columns, axis=1)
        mixed = np.empty(scores.shape, dtype=object)  # NumPy would turn numbers beside text into text
        for t, column in enumerate(columns):
            mixed[:, t] = array_of(listed(column))
        return mixed

    # ------------------------------------------------------------------------------------------------ scores
    def truth(self, y: Any) -> AnyArray:
        """Labels to compare predictions with, (n_samples,), or (n_samples, n_tasks) in the order of the tasks."""
        if self.kind == "matrix":
            return labels_by_task(y, list(self.sources))
        labels = as_labels(y, "y")
        return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels

    def score(self, decisions: Array, samples: Samples, y: Any, weight: Array | None = None) -> float:
        """Mean accuracy over the tasks; plain accuracy if the tasks are made from the classes.

        The mean skips tasks without a label of positive weight.
        """
        predicted, truth = self.predictions(decisions), self.truth(y)
        if truth.shape != predicted.shape:
            raise ValueError(f"y must have the shape {predicted.shape} of the predictions, got shape {truth.shape}.")
        weight = np.ones(len(truth)) if weight is None else np.asarray(weight, dtype=float)
        if self.kind == "matrix":
            labelled = ~missing_labels(truth)
            groups = [(truth[:, t], predicted[:, t], np.flatnonzero(labelled[:, t])) for t in range(self.n_tasks)]
        else:
            refuse_missing(truth, "y")
            groups = [(truth, predicted, rows) for rows, _ in self.groups(samples)]
        scores = [
            same_labels(labels[rows], answers[rows]) @ weight[rows] / total
            for labels, answers, rows in groups
            if (total := weight[rows].sum()) > 0
        ]
        if not scores:
            raise ValueError("There is nothing to score: y has no label with positive weight.")
        return float(np.mean(scores))

    def loss(self, samples: Samples, y: Any, weight: Array | None = None) -> Callable[[Array], float]:
        sides, loss = self.sides(y), squared_error if self.estimates else log_loss
        return lambda decisions: loss(decisions, sides, weight)

    def sides(self, y: Any) -> Array:
        """The side of each sample in each task, (n_samples, n_tasks): −1 or 1, or 0 if it is in neither class.

        A pair of classes has the samples of these classes; one class against the rest has all samples.
        """
        labels = self.truth(y)
        sides = np.zeros((len(labels), self.n_tasks))
        for t, (*minus, plus) in enumerate(self.pairs):
            of_task = labels if labels.ndim == 1 else labels[:, t]
            there = np.flatnonzero(~missing_labels(of_task))
            positive = equal_labels(of_task[there], plus)
            sides[there, t] = 1.0 * positive - (equal_labels(of_task[there], minus[0]) if minus else ~positive)
        return sides

    def right(self, decisions: Array, y: Any) -> tuple[AnyArray, AnyArray]:
        """Which samples are on the correct side of each task, and which belong to it, both (n_samples, n_tasks).

        A sample does not belong to a task whose decision for it is NaN.
        """
        shape = self.truth(y).shape
        if shape[0] != len(decisions) or (len(shape) == 2 and shape[1] != self.n_tasks):
            raise ValueError(
                f"y must have one row per sample ({len(decisions)}) and, if it is a matrix, one column per task "
                f"({self.n_tasks}), got shape {shape}."
            )
        sides = self.sides(y)
        belongs = (sides != 0) & ~np.isnan(decisions)
        return ((decisions > 0) == (sides > 0)) & belongs, belongs


def log_loss(decisions: Array, sides: Array, weight: Array | None = None) -> float:
    """Mean over the tasks of the mean of log(1 + exp(−y f)) over the samples of the task; NaN without samples.

    Unlike the accuracy, it almost never has the same value twice. ``sides`` comes from :meth:`Labelling.sides`; a
    decision of NaN means that the sample does not belong to the task.
    """
    return _mean_loss(lambda margin: np.logaddexp(0.0, -margin), decisions, sides, weight)


def squared_error(decisions: Array, sides: Array, weight: Array | None = None) -> float:
    """Like :func:`log_loss`, with (y − f)² = (1 − y f)²."""
    return _mean_loss(lambda margin: (1.0 - margin) ** 2, decisions, sides, weight)


def _mean_loss(loss: Callable[[Array], Array], decisions: Array, sides: Array, weight: Array | None) -> float:
    counts = (sides != 0) & ~np.isnan(decisions)
    weighed = counts if weight is None else counts * np.asarray(weight, dtype=float)[:, None]
    total = weighed.sum(axis=0)
    lost = (weighed * loss(sides * np.where(counts, decisions, 0.0))).sum(axis=0)
    return float(np.mean(lost[total > 0] / total[total > 0])) if (total > 0).any() else np.nan
