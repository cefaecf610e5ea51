"""What prediction needs to know about the tasks: which rows belong to which, and how decisions become labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import joined, literal, quoted
from ..exceptions import TaskDataError
from ..kernels._kernels import Block
from .tasks import (
    FOLDS,
    TASK_FOLDS,
    Task,
    array_of,
    as_labels,
    codes_of,
    equal_labels,
    labels_by_task,
    labels_of,
    listed,
    missing_labels,
    refuse_missing,
    rows_by_code,
    rows_by_label,
    same_labels,
    unique_labels,
)

MOST_TASKS = 5  # that a message names at most
Kind = Literal["classes", "single", "tasks", "matrix"]
Groups = list[tuple[IntArray, IntArray]]


@dataclass(frozen=True)
class Blocks:
    """Blocks of columns by name, as the user passed them: arrays, frames or sparse matrices of the same rows.

    absent: the names of blocks that are None, which all rows lack.
    """

    parts: Mapping[str, Any]
    absent: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        widths = [part.shape[1] for part in self.parts.values()]
        return next(iter(self.parts.values())).shape[0], sum(widths)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | IntArray) -> Blocks:
        from sklearn.utils import _safe_indexing  # imported here because scikit-learn takes a second to import

        return Blocks({name: _safe_indexing(part, rows) for name, part in self.parts.items()}, self.absent)

    def take(self, rows: IntArray, train: IntArray) -> Blocks:
        """Some rows, with the kernel values of stacks between them and the samples to learn from only."""
        some = self[rows]
        return Blocks(
            {name: np.asarray(p)[:, train] if len(p.shape) == 3 else p for name, p in some.parts.items()}, some.absent
        )


def as_blocks(X: Any) -> Any:
    """:class:`Blocks` if X is a dict, or a list of arrays or frames; else X itself."""
    if issparse(X):  # some sparse matrices are mappings
        return X
    if isinstance(X, Mapping):
        parts = {str(name): part for name, part in X.items()}
    elif isinstance(X, list | tuple) and X and all(len(getattr(part, "shape", ())) > 1 for part in X):
        parts = {f"block {k}": part for k, part in enumerate(X)}
    else:
        return X
    absent = tuple(name for name, part in parts.items() if part is None)
    parts = {name: part for name, part in parts.items() if part is not None}
    if not parts:
        raise ValueError("X has no blocks; pass one array or frame per source.")
    for name, part in parts.items():
        parts[name] = part = part if hasattr(part, "shape") else np.asarray(part)
        if len(part.shape) not in (2, 3):
            raise ValueError(f"Block {name!r} must have two dimensions, (n_samples, n_columns), got {part.shape}.")
        if part.shape[1] == 0:
            raise ValueError(f"Block {name!r} is empty: it has no columns.")
    first, one = next(iter(parts.items()))
    for name, part in parts.items():
        if part.shape[0] != one.shape[0]:
            raise ValueError(
                f"Block {name!r} has {part.shape[0]} rows, but block {first!r} has {one.shape[0]}; blocks describe the "
                "same samples, in the same order."
            )
        if hasattr(one, "iloc") and hasattr(part, "iloc") and not part.index.equals(one.index):
            raise ValueError(f"Block {name!r} has other row labels than block {first!r}; align them with .loc first.")
    return Blocks(parts, absent)


def flat_stack(stack: Any, training: bool = False) -> Array:
    """A block that is a stack of kernels (n, n_train, n_kernels) as rows of features; see ``_OfStack``."""
    values = np.moveaxis(np.asarray(stack, dtype=np.float64), 2, 1).reshape(len(stack), -1)
    return np.column_stack([values, np.arange(len(stack)) if training else np.full(len(stack), -1.0)])


def check_same_blocks(found: Mapping[str, Any], known: Mapping[str, tuple[int, ...]] | None) -> None:
    """Raise unless X has the blocks of the training data, with the same numbers of columns."""
    if known is None:
        raise ValueError("X has blocks, but the model was fitted without; pass one array or frame as in fit.")
    missing, new = known.keys() - found.keys(), found.keys() - known.keys()
    if missing:
        raise ValueError(
            f"X has no block {min(missing)!r}; the model was fitted with {quoted(known)}. Pass None if no row has it."
        )
    if new:
        raise ValueError(f"X has the unknown block {min(new)!r}; the model was fitted with {quoted(known)}.")
    for name, shape in known.items():
        seen = tuple(found[name].shape[1:])
        if len(seen) != len(shape):
            raise ValueError(f"Block {name!r} has {len(seen) + 1} dimensions, but {len(shape) + 1} in training.")
        if seen != shape:
            what = "columns" if len(shape) == 1 else "training samples and kernels"
            raise ValueError(
                f"Block {name!r} has {joined(map(str, seen))} {what}, but {joined(map(str, shape))} in training."
            )


@dataclass(frozen=True)
class Samples:
    """The content of X: features (or a stack of kernels) and the task label of each row, if there is one.

    names: the names of the columns, if they have any; blocks: the columns of each block, if X came in blocks; n_levels:
    the numbers of categories of the columns that hold their codes.
    """

    data: AnyArray
    sources: AnyArray | None = None
    names: list[str] | None = None
    blocks: Mapping[str, Block] = field(default_factory=dict)
    n_levels: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.data.shape[0])

    def __getitem__(self, rows: slice | IntArray) -> Samples:
        sources = None if self.sources is None else self.sources[rows]
        return replace(self, data=self.data[rows], sources=sources)


@dataclass(frozen=True)
class Decided:
    """The decisions f_t(x) of samples for their tasks only: a row need not have one column for each task.

    values: (n_samples, n_slots), NaN in a slot that a sample does not need; tasks: the task of each value, of the same
    shape, or (1, n_tasks) if all samples have the same tasks.
    """

    values: Array
    tasks: IntArray

    @classmethod
    def of(cls, decisions: Array | Decided) -> Decided:
        """Decisions unchanged, or from a matrix (n_samples, n_tasks) with NaN for samples of other tasks."""
        if isinstance(decisions, Decided):
            return decisions
        return cls(decisions, np.arange(decisions.shape[1])[None])

    @classmethod
    def missing(cls, groups: Groups, n_samples: int) -> Decided:
        """NaN for the tasks of all samples, which are those of :meth:`TaskSet.groups`."""
        n_slots = max((len(tasks) for _, tasks in groups), default=0)
        values = np.full((n_samples, n_slots), np.nan)
        if len(groups) == 1:
            return cls(values, groups[0][1][None])
        slots = np.zeros(values.shape, dtype=np.int64)
        for rows, tasks in groups:
            slots[rows, : len(tasks)] = tasks
        return cls(values, slots)

    def __len__(self) -> int:
        return len(self.values)

    def matrix(self, n_tasks: int) -> Array:
        """The decisions as (n_samples, n_tasks), NaN for samples of other tasks."""
        if self.values.shape[1] == n_tasks:
            return self.values
        matrix = np.full((len(self), n_tasks), np.nan)
        row, slot = np.nonzero(~np.isnan(self.values))
        matrix[row, self.task_of_each[row, slot]] = self.values[row, slot]
        return matrix

    @property
    def task_of_each(self) -> IntArray:
        """The task of each value, (n_samples, n_slots)."""
        return np.broadcast_to(self.tasks, self.values.shape)

    def times(self, values: AnyArray, weights: csr_matrix) -> Array:
        """Σ_t values_it weights_t over the tasks t of sample i, from one row of weights for each task."""
        if len(self.tasks) == 1:
            return np.asarray(values.astype(float) @ weights[self.tasks[0]])
        n, n_slots = values.shape
        parts = values.ravel().astype(float), self.tasks.ravel(), n_slots * np.arange(n + 1)
        return np.asarray((csr_matrix(parts, shape=(n, weights.shape[0])) @ weights).toarray())

    def sums(self, values: AnyArray, n_tasks: int = 0) -> AnyArray:
        """The sum of values over the samples of each task, (n_tasks,); the default may leave out tasks without any."""
        if len(self.tasks) == 1 and n_tasks in (0, self.tasks.shape[1]):
            return values.sum(axis=0)
        return np.bincount(self.task_of_each.ravel(), values.ravel(), minlength=n_tasks)

    def rows_by_task(self, known: AnyArray, n_tasks: int) -> list[tuple[IntArray, IntArray]]:
        """Rows and slots of the decisions of each task where ``known`` (n_samples or one, n_slots)."""
        row, slot = np.nonzero(known & ~np.isnan(self.values))
        return [(row[mine], slot[mine]) for mine in rows_by_code(self.task_of_each[row, slot], n_tasks)]


Decisions = Array | Decided  # a matrix (n_samples, n_tasks), NaN for samples of other tasks, or its entries only


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
    new_tasks: ClassVar[str] = "Models with share='function' or 'everything' predict new tasks too."

    @property
    def n_tasks(self) -> int:
        return len(self.names)

    @property
    def distinct_sources(self) -> list[Hashable]:
        return list(dict.fromkeys(self.sources))

    @property
    def tasks_by_source(self) -> dict[Hashable, list[int]]:
        """The tasks of each distinct source."""
        found: dict[Hashable, list[int]] = {}
        for t, source in enumerate(self.sources):
            found.setdefault(source, []).append(t)
        return found

    def groups(self, samples: Samples) -> Groups:
        """Which rows belong to which tasks: pairs (rows, tasks) that cover all rows once."""
        if self.kind != "tasks":
            if samples.sources is not None:
                raise ValueError("The model was fitted without tasks; do not pass tasks= here either.")
            return [(np.arange(len(samples)), np.arange(self.n_tasks))]
        known = self.tasks_by_source
        if samples.sources is None:
            raise ValueError(
                f"The model was fitted with tasks ({literal(list(known)[:5])} …); pass the task of each row as tasks=."
            )
        rows_of = rows_by_label(samples.sources)
        for source in rows_of:
            if source not in known:
                rest = len(known) - MOST_TASKS
                more = f" and {rest:,} more" if rest > 0 else ""
                problem = f"Unknown task {literal(source)}; the model knows {literal(list(known)[:MOST_TASKS])}{more}."
                raise TaskDataError(problem, f"{self.new_tasks} {self.advice}", source)
        return [(rows, np.array(known[source])) for source, rows in rows_of.items()]

    def predictions(self, decisions: Decisions) -> AnyArray:
        """What ``predict`` returns, from f_t(x)."""
        raise NotImplementedError

    def scores(self, decisions: Decisions) -> Array:
        """What ``decision_function`` returns, from f_t(x)."""
        return self.predictions(decisions)

    @property
    def units(self) -> Array:
        """By how much the prediction of each task grows with f_t(x), (n_tasks,) or (1,)."""
        return np.ones(1)

    def right(self, decisions: Decisions, y: Any) -> tuple[AnyArray, AnyArray]:
        """Which samples are on the correct side of their tasks, and which belong to them."""
        raise TypeError("Only classification tasks have an accuracy; use score.")

    def score(self, decisions: Decisions, samples: Samples, y: Any, weight: Array | None = None) -> float:
        """Score of the predictions, a mean over the tasks; greater is better."""
        raise NotImplementedError

    def agreement(self, truth: AnyArray, predicted: AnyArray, weight: Array) -> float:
        """Score of the predictions of one task; NaN if it has too few samples of positive weight."""
        raise NotImplementedError

    def loss(self, samples: Samples, y: Any, weight: Array | None = None) -> Callable[[Decided], float]:
        """A loss of decisions that almost never has the same value twice, to break ties between scores."""
        raise NotImplementedError

    def loss_by_source(
        self, samples: Samples, y: Any, weight: Array | None, level: Array, deviation: Array
    ) -> Callable[[Decided], float]:
        """The loss of one problem with the samples of several sources; level, deviation (n_samples,): of their y."""
        return self.loss(samples, y, weight)

    def alone(self, tasks: Sequence[Task], mine: list[int]) -> TaskSet:
        """The tasks with the numbers ``mine`` without the others, as if there were no sources."""
        raise NotImplementedError

    def joined(self, tasks: Sequence[Task], others: Sequence[Any]) -> TaskSet:
        """These tasks and those of other sets of the same kind, in this order, which are all tasks of sources."""
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
    def scores(self, decisions: Decisions) -> Array:
        """What ``decision_function`` returns, from f_t(x)."""
        decided = Decided.of(decisions)
        if self.kind == "matrix":
            return decided.values
        if len(self.classes) == 2:
            return np.nansum(decided.values, axis=1)  # each sample has a decision only for its own task
        return self._class_scores(decided)

    def _class_scores(self, decided: Decided) -> Array:
        """A score for each class, (n_samples, n_classes).

        One-vs-rest: the decision of the class. Pairs: their votes, with ties broken by the sum of their confidences
        squeezed into (−⅓, ⅓). A class without any decision scores below all others.
        """
        negative, positive = self.sides_of_classes
        asked = decided.times(~np.isnan(decided.values), negative + positive) > 0
        f = np.nan_to_num(decided.values)
        scores = decided.times(f, positive - negative)
        if not self.one_vs_rest:
            votes = decided.times(f < 0, negative) + decided.times(f > 0, positive)
            scores = votes + scores / (3 * (np.abs(scores) + 1))
        lowest = np.where(asked, scores, np.inf).min(axis=1, keepdims=True, initial=0.0)
        return np.where(asked, scores, lowest - 1.0)

    @property
    def sides_of_classes(self) -> tuple[csr_matrix, csr_matrix]:
        """One where a class is that of −1, or of +1, of a task: two sparse matrices (n_tasks, n_classes)."""
        minus, plus = self._codes
        shape, tasks, pairs = (self.n_tasks, len(self.classes)), np.arange(self.n_tasks), minus != plus
        positive = csr_matrix((np.ones(len(tasks)), (tasks, plus)), shape)
        negative = csr_matrix((np.ones(pairs.sum()), (tasks[pairs], minus[pairs])), shape)
        return negative, positive

    @property
    def one_vs_rest(self) -> bool:
        """Whether some task has one class against the rest."""
        return bool(np.equal(*self._codes).any())

    def predictions(self, decisions: Decisions) -> AnyArray:
        """Predicted labels, (n_samples,), or (n_samples, n_tasks) for a matrix."""
        decided = Decided.of(decisions)
        if self.kind == "tasks" and decided.values.shape[1] == 1:  # pairs of classes, which may differ between tasks
            minus, plus = (codes[decided.tasks] for codes in self._codes)
            return self.classes[np.where(decided.values > 0, plus, minus)[:, 0]]
        scores = self.scores(decided)
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

    def score(self, decisions: Decisions, samples: Samples, y: Any, weight: Array | None = None) -> float:
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
        return mean_score(
            (self.agreement(labels[rows], answers[rows], weight[rows]) for labels, answers, rows in groups),
            "y has no label with positive weight",
        )

    def agreement(self, truth: AnyArray, predicted: AnyArray, weight: Array) -> float:
        """The share of the weight with the correct label."""
        total = weight.sum()
        return float(same_labels(truth, predicted) @ weight / total) if total > 0 else np.nan

    def loss(self, samples: Samples, y: Any, weight: Array | None = None) -> Callable[[Decided], float]:
        own = self.kind == "tasks"
        tasks = Decided.missing(self.groups(samples), len(samples)).tasks if own else np.arange(self.n_tasks)[None]
        sides, loss = self.sides(y, tasks), squared_error if self.estimates else log_loss
        return lambda decided: loss(decided, sides, weight)

    def alone(self, tasks: Sequence[Task], mine: list[int]) -> Labelling:
        return Labelling.of(tasks, "classes", unique_labels(array_of(labels_of(tasks))), self.estimates)

    def joined(self, tasks: Sequence[Task], others: Sequence[Labelling]) -> Labelling:
        return Labelling.of(tasks, "tasks", unique_labels(array_of(labels_of(tasks))), self.estimates)

    def sides(self, y: Any, tasks: IntArray) -> Array:
        """The side of each sample in each of its tasks: −1 or 1, or 0 if it is in neither class.

        A pair of classes has the samples of these classes; one class against the rest has all samples. ``tasks`` are
        those of a :class:`Decided`, and the sides have the shape of its values.
        """
        labels = self.truth(y)
        if labels.ndim == 2:
            sides = np.zeros(labels.shape)
            for t, (minus, plus) in enumerate(self.pairs):
                there = np.flatnonzero(~missing_labels(labels[:, t]))
                own = labels[there, t]
                sides[there, t] = 1.0 * equal_labels(own, plus) - equal_labels(own, minus)
            return sides
        code = codes_of(labels, listed(self.classes))[:, None]
        minus, plus = (codes[tasks] for codes in self._codes)
        sides = np.where(code == plus, 1.0, np.where((code == minus) | (plus == minus), -1.0, 0.0))
        return np.where(missing_labels(labels)[:, None], 0.0, sides)

    @cached_property
    def _codes(self) -> tuple[IntArray, IntArray]:
        """The positions in ``classes`` of the labels of −1 and of +1 of each task; both of +1 if −1 is the rest."""
        minus, plus = (codes_of(array_of([pair[k] for pair in self.pairs]), listed(self.classes)) for k in (0, -1))
        return minus, plus

    def right(self, decisions: Decisions, y: Any) -> tuple[AnyArray, AnyArray]:
        """Which samples are on the correct side of their tasks, and which belong to them, like the decisions in shape.

        A sample does not belong to a task whose decision for it is NaN.
        """
        decided = Decided.of(decisions)
        shape = self.truth(y).shape
        if shape[0] != len(decided) or (len(shape) == 2 and shape[1] != self.n_tasks):
            raise ValueError(
                f"y must have one row per sample ({len(decided)}) and, if it is a matrix, one column per task "
                f"({self.n_tasks}), got shape {shape}."
            )
        sides = self.sides(y, decided.tasks)
        belongs = (sides != 0) & ~np.isnan(decided.values)
        return ((decided.values > 0) == (sides > 0)) & belongs, belongs


def mean_score(scores: Iterable[float], reason: str) -> float:
    """The mean of the scores that are defined; raise for the given reason if none is."""
    known = [score for score in scores if not np.isnan(score)]
    if not known:
        raise ValueError(f"There is nothing to score: {reason}.")
    return float(np.mean(known))


def log_loss(decisions: Decisions, sides: Array, weight: Array | None = None) -> float:
    """Mean over the tasks of the mean of log(1 + exp(−y f)) over the samples of the task; NaN without samples.

    Unlike the accuracy, it almost never has the same value twice. ``sides`` comes from :meth:`Labelling.sides`; a
    decision of NaN means that the sample does not belong to the task.
    """
    return _mean_loss(lambda margin: np.logaddexp(0.0, -margin), decisions, sides, weight)


def squared_error(decisions: Decisions, sides: Array, weight: Array | None = None) -> float:
    """Like :func:`log_loss`, with (y − f)² = (1 − y f)²."""
    return _mean_loss(lambda margin: (1.0 - margin) ** 2, decisions, sides, weight)


def _mean_loss(loss: Callable[[Array], Array], decisions: Decisions, sides: Array, weight: Array | None) -> float:
    decided = Decided.of(decisions)
    counts = (sides != 0) & ~np.isnan(decided.values)
    row, slot = np.nonzero(counts)  # a sample belongs to few of the pairs of many classes
    task, weighed = decided.task_of_each[row, slot], None if weight is None else np.asarray(weight, dtype=float)[row]
    each = loss(sides[row, slot] * decided.values[row, slot])
    total = np.bincount(task, weighed)
    lost = np.bincount(task, each if weighed is None else weighed * each)
    return float(np.mean(lost[total > 0] / total[total > 0])) if (total > 0).any() else np.nan
