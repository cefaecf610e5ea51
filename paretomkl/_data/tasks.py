"""Make tasks from labels: pairs of classes or one class against the rest, task labels, matrices with gaps."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray, MultiClass
from .._tools.wording import literal
from ..exceptions import TaskDataError

FOLDS = (
    "In cross-validation, split with paretomkl.model_selection.MultiTaskStratifiedKFold: it keeps every class of every "
    "task in every fold."
)
TASK_FOLDS = (
    "In cross-validation, split with paretomkl.model_selection.MultiTaskKFold: it keeps every task in every fold."
)
NEVER_MISSING = {str, int, bool}  # types of labels that need not be looked at one by one


@dataclass(frozen=True)
class Task:
    """One problem: binary classification, regression or outlier detection.

    name: its name in messages and tables; rows (n,): its samples, increasing; targets (n,): ±1 for classes, else
    numbers; classes: the labels of −1 and +1, only the label of +1 for one class against the rest, empty without
    classes; source: the task label or column it came from (``None`` if there is only one).
    """

    name: str
    rows: IntArray
    targets: Array
    classes: tuple[Any, ...] = ()
    source: Hashable = None

    @property
    def sides(self) -> tuple[int, ...]:
        """−1 and +1; empty if the task has no classes."""
        return (-1, 1) if self.classes else ()

    def samples_of(self, side: int) -> str:
        """Words for the samples of a side."""
        *other, one = self.classes
        if side > 0 or other:
            return f"of class {literal(one if side > 0 else other[0])}"
        return f"besides class {literal(one)}"


def make_tasks(y: Any, tasks: Any = None, multi_class: MultiClass = "one-vs-one") -> list[Task]:
    """Binary tasks from labels y and, optionally, the task of each sample; a task may have more than two classes.

    A vector y with two classes makes one task; with more classes, one task per pair of classes, or per class with
    "one-vs-rest". Each column of a matrix makes one task; NaN or None marks a missing label.
    """
    labels = as_labels(y, "y")
    if labels.ndim == 2:
        if tasks is not None:
            raise ValueError("tasks cannot be given together with a matrix y, whose columns are the tasks.")
        return _tasks_of_matrix(labels, names_of_columns(y, labels.shape[1]))
    if labels.ndim != 1:
        raise ValueError(f"y must have one or two dimensions, got {labels.ndim}.")
    refuse_missing(labels, "y")
    refuse_alike(labels, "y")
    sources = as_sources(tasks, len(labels))
    if sources is None:
        return _tasks_of_classes(labels, np.arange(len(labels)), None, multi_class)
    rows = rows_by_label(sources)
    return [task for source, own in rows.items() for task in _tasks_of_classes(labels, own, source, multi_class)]


def make_number_tasks(y: Any, tasks: Any = None, strict: bool = True, name: str = "y") -> list[Task]:
    """Regression tasks: one per distinct entry of ``tasks``, or one per column of a matrix y with gaps.

    ``name`` is that of y if it is the only task.

    If ``strict``, raise for tasks with a single sample or a constant target, which have nothing to learn. In a fold of
    a search they may occur by chance.
    """
    values = as_numbers(y)
    if values.ndim == 2:
        if tasks is not None:
            raise ValueError("tasks cannot be given together with a matrix y, whose columns are the tasks.")
        sources = names_of_columns(y, values.shape[1])
        known = [np.flatnonzero(~np.isnan(column)) for column in values.T]
        made = [
            Task(str(source), rows, column[rows], (), source)
            for source, rows, column in zip(sources, known, values.T, strict=True)
        ]
        empty = [task.name for task in made if len(task.rows) == 0]
        if empty:
            raise ValueError(f"Task {empty[0]!r} is empty: its column of y has no numbers.")
    else:
        labels = as_sources(tasks, len(values))
        if labels is None:
            made = [Task(name, np.arange(len(values)), values)]
        else:
            made = [Task(str(source), rows, values[rows], (), source) for source, rows in rows_by_label(labels).items()]
    for task in made if strict else ():
        where = "y" if task.source is None else f"Task {task.name!r}"
        if len(task.rows) < 2:
            problem = f"{where} has only one sample; a task needs two samples or more to learn from."
            raise TaskDataError(problem, task=task.source)
        if (task.targets == task.targets[0]).all():
            problem = f"{where} has the same target, {task.targets[0]:g}, in all samples; nothing to learn."
            raise TaskDataError(problem, task=task.source)
    return made


def make_sample_tasks(n_samples: int, tasks: Any = None) -> list[Task]:
    """Tasks without targets: one for all samples, or one per distinct entry of ``tasks``; each needs two samples."""
    labels = as_sources(tasks, n_samples)
    if labels is None:
        made = [Task("X", np.arange(n_samples), np.ones(n_samples))]
    else:
        rows_of = rows_by_label(labels)
        made = [Task(str(source), rows, np.ones(len(rows)), (), source) for source, rows in rows_of.items()]
    for task in made:
        if len(task.rows) < 2:
            where = "X" if task.source is None else f"Task {task.name!r}"
            raise ValueError(f"{where} has only one sample; a task needs two samples or more to learn from.")
    return made


def as_numbers(y: Any) -> Array:
    """Targets as floats of shape (n,) or (n, n_tasks); only a matrix may have NaN."""
    labels = as_labels(y, "y")
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got {labels.ndim}.")
    if labels.dtype.kind in "mMc":
        what = "complex numbers" if labels.dtype.kind == "c" else "times"
        raise ValueError(f"y must contain real numbers for regression, got {what}: {labels.ravel()[0]!s:.40}.")
    if labels.dtype.kind == "O":
        labels = np.where(missing_labels(labels), np.nan, labels)
    try:
        values = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must contain numbers for regression, got {literal(_first_word(labels))}.") from error
    if labels.dtype.kind in "US":
        raise ValueError(f"y must contain numbers for regression, got text such as {str(labels.ravel()[0])!r:.40}.")
    if np.isinf(values).any():
        raise ValueError("y must not contain infinity; it has infinite entries.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 1:
        refuse_missing(values, "y")
    return values


def _first_word(labels: AnyArray) -> Any:
    """The first entry that is not a number."""
    for label in labels.ravel().tolist():
        try:
            float(label)
        except (TypeError, ValueError):
            return label
    return labels.ravel()[0]


def stack_tasks(
    Xs: Iterable[Any] | Mapping[Any, Any], ys: Iterable[Any] | Mapping[Any, Any], names: Iterable[Any] | None = None
) -> tuple[Any, AnyArray, AnyArray]:
    """Stack the arrays of all tasks into one X, one y and the task of each row.

    Parameters
    ----------
    Xs : n_tasks arrays or frames of shape (n_samples of the task, n_features)
        A list, or a mapping from task name to array. The columns of frames are matched by name and keep their names.
    ys : n_tasks arrays of shape (n_samples of the task,)
        A list or a mapping, like ``Xs``.
    names : n_tasks labels, default=None
        Names of the tasks; None numbers them, or uses the keys of a mapping.

    Returns
    -------
    X : array or frame of n_samples rows
        The samples of all tasks, concatenated by task.
    y, tasks : arrays of n_samples entries
        Pass them as ``fit(X, y, tasks=tasks)``.

    Examples
    --------
    >>> X, y, tasks = stack_tasks([[[0.0], [1.0]], [[2.0], [3.0]]], [[0, 1], [1, 0]], names=["pump", "valve"])
    >>> X.shape, y.tolist(), tasks.tolist()
    ((4, 1), [0, 1, 1, 0], ['pump', 'pump', 'valve', 'valve'])
    """
    if isinstance(Xs, Mapping) or isinstance(ys, Mapping):
        if not (isinstance(Xs, Mapping) and isinstance(ys, Mapping) and Xs.keys() == ys.keys() and names is None):
            raise ValueError("Xs and ys must be two lists, or two mappings with the same keys, without names=.")
        names, Xs, ys = list(Xs), list(Xs.values()), [ys[name] for name in Xs]
    blocks: list[Any] = [X if hasattr(X, "columns") else np.asarray(X) for X in Xs]
    targets = [as_labels(y, "An entry of ys") for y in ys]
    labels = list(range(len(blocks))) if names is None else list(names)
    sizes = len(blocks), len(targets), len(labels)
    if len(set(sizes)) > 1:
        raise ValueError("Xs, ys and names must have one entry per task, got {}, {} and {}.".format(*sizes))
    if not labels:
        raise ValueError("There is no task to stack: Xs is empty.")
    if len(set(labels)) < len(labels):
        raise ValueError(f"names must be unique, got {literal(labels)}.")
    for name, X, y in zip(labels, blocks, targets, strict=True):
        if len(X.shape) != 2:
            raise ValueError(f"X of task {literal(name)} must have two dimensions, got shape {X.shape}.")
        if X.shape[1] != blocks[0].shape[1]:
            raise ValueError(f"X of task {literal(name)} must have {blocks[0].shape[1]} columns, got shape {X.shape}.")
        if type(X) is not type(blocks[0]):
            kinds = f"{type(X).__name__} and {type(blocks[0]).__name__}"
            raise ValueError(f"X of task {literal(name)} must have the type of the other tasks, got {kinds}.")
        columns = column_names(X) or []
        missing = [column for column in column_names(blocks[0]) or [] if column not in columns]
        if missing:
            raise ValueError(
                f"Task {literal(name)} has no column {literal(missing[0])}; its columns are {literal(columns[:10])}."
            )
        if y.shape != (len(X),):
            raise ValueError(f"Task {literal(name)} has {len(X)} rows in X, but its labels have shape {y.shape}.")
    stacked = array_of([label for y in targets for label in listed(y)])
    return _stack(blocks), stacked, np.repeat(array_of(labels), [len(X) for X in blocks])


def _stack(blocks: list[Any]) -> Any:
    """Stack arrays or frames of one type vertically; frames get the column order of the first."""
    columns = column_names(blocks[0])
    if columns is None:
        return np.vstack(blocks)
    library = sys.modules[type(blocks[0]).__module__.partition(".")[0]]  # pandas or polars, whichever made them
    options = {"ignore_index": True} if hasattr(blocks[0], "iloc") else {}
    return library.concat([X[columns] for X in blocks], **options)


def listed(labels: AnyArray) -> list[Any]:
    """A vector of labels as a list; times stay NumPy objects, since Python's have no nanoseconds."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def unique_labels(labels: AnyArray) -> list[Any]:
    """Distinct labels, sorted if they can be compared, else in order of appearance."""
    distinct = list(dict.fromkeys(listed(labels)))
    try:
        return sorted(distinct)
    except TypeError:
        return distinct


def codes_of(labels: AnyArray, known: Iterable[Any]) -> IntArray:
    """The position of each label among the known ones, which are distinct; −1 for other labels."""
    place = {label: code for code, label in enumerate(known)}
    return np.fromiter((place.get(label, -1) for label in listed(labels)), dtype=np.int64, count=len(labels))


def rows_by_code(codes: AnyArray, n_codes: int) -> list[IntArray]:
    """The rows of each code 0, …, n_codes − 1, increasing."""
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(n_codes + 1))
    return [order[a:b] for a, b in pairwise(edges.tolist())]


def rows_by_label(labels: AnyArray) -> dict[Any, IntArray]:
    """The rows of each distinct label, in the order of :func:`unique_labels`."""
    known = unique_labels(labels)
    return dict(zip(known, rows_by_code(codes_of(labels, known), len(known)), strict=True))


def labels_of(tasks: Iterable[Task]) -> list[Any]:
    """The distinct labels of classification tasks, in order of appearance."""
    return list(dict.fromkeys(label for task in tasks for label in task.classes))


def _tasks_of_classes(labels: AnyArray, rows: IntArray, source: Hashable, multi_class: MultiClass) -> list[Task]:
    """One task per pair of the classes among the rows, or per class ("one-vs-rest") if there are more than two."""
    classes = unique_labels(labels[rows])
    where = "y" if source is None else f"Task {literal(source)}"
    if len(classes) < 2:
        raise TaskDataError(
            f"{where} has only one class, {literal(classes[0])}; a task needs two classes or more.", FOLDS, source
        )
    of_class = {label: equal_labels(labels[rows], label) for label in classes}
    if multi_class == "one-vs-rest" and len(classes) > 2:
        split: list[Any] = [((label,), f"{label} vs rest", rows) for label in classes]
    else:
        pairs = combinations(classes, 2)
        split = [((one, other), f"{one} vs {other}", rows[of_class[one] | of_class[other]]) for one, other in pairs]
    made = []
    for known, name, chosen in split:
        if source is not None:
            name = str(source) if len(classes) == 2 else f"{source}: {name}"
        signs = np.where(equal_labels(labels[chosen], known[-1]), 1.0, -1.0)
        made.append(Task(name, chosen, signs, known, source))
    return made


def _tasks_of_matrix(labels: AnyArray, sources: list[Any]) -> list[Task]:
    made = []
    if labels.shape[1] == 0:
        raise ValueError("y has no columns; each column is a task.")
    for column, source in enumerate(sources):
        values = labels[:, column]
        rows = np.flatnonzero(~missing_labels(values))
        if len(rows) == 0:
            raise ValueError(f"Task {literal(source)} is empty: its column of y has no labels.")
        classes = unique_labels(values[rows])
        if len(classes) != 2:
            raise TaskDataError(
                f"Task {literal(source)} needs two classes in its column of y, got {len(classes)}: "
                f"{literal(classes[:5])}.",
                FOLDS if len(classes) < 2 else "",
                source,
            )
        signs = np.where(equal_labels(values[rows], classes[1]), 1.0, -1.0)
        made.append(Task(str(source), rows, signs, (classes[0], classes[1]), source))
    return made


def names_of_columns(y: Any, n_columns: int) -> list[Any]:
    """The columns of a matrix y, which are tasks, by name or by number."""
    columns = column_names(y) or list(range(n_columns))
    seen: set[str] = set()
    for text in map(str, columns):
        if text in seen:
            raise ValueError(f"y has two columns called {text!r}; each column is a task and needs a unique name.")
        seen.add(text)
    return columns


def name_of(y: Any) -> str:
    """The name of a series, or of the column of a frame; "y" without one."""
    names = column_names(y)
    name = getattr(y, "name", None) if names is None else names[0]
    return name if isinstance(name, str) and name else "y"


def refuse_alike(labels: AnyArray, name: str) -> None:
    """Raise if labels of different types have the same text, which is their name in tables: 1 and "1"."""
    known: dict[str, Any] = {}
    for label in dict.fromkeys(listed(labels)) if labels.dtype.kind == "O" else ():
        if known.setdefault(str(label), label) is not label:
            both = f"{literal(known[str(label)])} and {literal(label)}"
            raise ValueError(f"{name} has the labels {both}, which look alike; convert them to one type.")


def as_labels(values: Any, name: str) -> AnyArray:
    """Labels as an array that keeps their types."""
    if values is None:
        raise ValueError(f"{name} is missing.")
    if hasattr(values, "toarray"):  # a sparse matrix of 0 and 1
        values = values.toarray()
    try:
        labels = np.asarray(values)
        if labels.dtype.kind in "US" and not isinstance(values, np.ndarray):
            # NumPy turns everything beside a string into a string, even NaN
            mixed = np.asarray(values, dtype=object)
            labels = labels if all(isinstance(label, str) for label in mixed.ravel()) else mixed
    except ValueError as error:
        raise ValueError(f"{name} must be a vector or a matrix with rows of equal length.") from error
    if labels.size == 0 and labels.ndim == 1:
        raise ValueError(f"{name} is empty.")
    return labels


def is_matrix(y: Any) -> bool:
    """Whether y has several columns, each of which is a task."""
    labels: AnyArray = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    return labels.ndim == 2 and labels.shape[1] > 1


def as_sources(tasks: Any, n_samples: int, name: str = "tasks") -> AnyArray | None:
    """The task of each sample, (n_samples,); None if there are no tasks."""
    if tasks is None:
        return None
    sources = as_labels(tasks, name)
    if sources.ndim == 2 and sources.shape[1] == 1:
        sources = sources[:, 0]
    if sources.shape != (n_samples,):
        got = f"shape {sources.shape}" if sources.ndim else repr(tasks)
        raise ValueError(f"{name} must have one entry per sample ({n_samples}), got {got}.")
    refuse_missing(sources, name)
    refuse_alike(sources, name)
    return sources


def column_names(y: Any) -> list[Any] | None:
    """The column names of a frame; None if y is not a frame."""
    if not hasattr(y, "columns"):
        return None
    return y.columns.tolist() if hasattr(y.columns, "tolist") else list(y.columns)  # pandas iterates slowly


def labels_by_task(y: Any, known: list[Any]) -> AnyArray:
    """The labels of y, with the columns of a frame in the order of the known tasks.

    Numbered tasks have no names; then the columns of a frame keep their order.
    """
    labels, names = as_labels(y, "y"), column_names(y)
    if names is None or labels.ndim != 2 or names == known:
        return labels
    if len(names) == len(known) and set(names) == set(known):
        return labels[:, [names.index(name) for name in known]]
    if known == list(range(len(known))):
        return labels
    raise ValueError(f"y has the columns {literal(names[:10])}, but the tasks are {literal(known[:10])}.")


def missing_labels(labels: AnyArray) -> AnyArray:
    """Where labels of any shape are missing."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype.kind == "O" and not set(map(type, labels.ravel().tolist())) <= NEVER_MISSING:
        return np.frompyfunc(_is_missing, 1, 1)(labels).astype(bool)
    return np.zeros(labels.shape, dtype=bool)


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or pandas' NA or NaT (checked by type name, to avoid importing pandas)."""
    if isinstance(label, float | np.datetime64 | np.timedelta64):
        return bool(label != label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def refuse_missing(labels: AnyArray, name: str) -> None:
    missing = np.flatnonzero(missing_labels(labels))
    if len(missing):
        raise ValueError(f"{name} is missing for sample {missing[0]} ({len(missing)} in total); remove those samples.")


def equal_labels(labels: AnyArray, value: Any) -> AnyArray:
    """labels == value, compared one by one if the labels are Python objects."""
    if labels.dtype.kind == "O":
        return np.array([label == value for label in labels], dtype=bool)
    return labels == value


def same_labels(labels: AnyArray, others: AnyArray) -> AnyArray:
    """labels == others, compared one by one if either holds Python objects."""
    if "O" in (labels.dtype.kind, others.dtype.kind):
        return np.array([a == b for a, b in zip(listed(labels), listed(others), strict=True)], dtype=bool)
    return labels == others


def find_task_column(X: Any, column: Any) -> int:
    """The position of the task column of X, given by index, or by name if X is a frame."""
    if isinstance(column, bool | np.bool_):
        raise ValueError(f"task_column must be an index or a name, got {literal(column)}.")
    if hasattr(X, "toarray"):
        raise ValueError(f"task_column={literal(column)} needs a dense X, but X is sparse; use X.toarray().")
    if np.ndim(X) != 2:
        raise ValueError(f"task_column={literal(column)} needs X of two dimensions, got shape {np.shape(X)}.")
    names, n_columns = column_names(X), np.shape(X)[1]
    if isinstance(column, numbers.Integral) and (names is None or column not in names):
        if not -n_columns <= int(column) < n_columns:
            raise ValueError(f"task_column={column} is out of range: X has {n_columns} columns.")
        return int(column) % n_columns
    if names is None:
        raise ValueError(f"task_column={literal(column)} is a name, but X has no column names; pass the index.")
    if column not in names:
        raise ValueError(f"X has no column {literal(column)} (task_column); its columns are {literal(names[:10])}.")
    return names.index(column)


def task_column_of(X: Any, column: Any) -> AnyArray:
    """The task of each row of X, read from its task column."""
    position = find_task_column(X, column)
    if hasattr(X, "iloc"):
        values = X.iloc[:, position]
    elif hasattr(X, "columns"):  # polars and similar
        values = X[list(X.columns)[position]]
    else:
        values = X[:, position] if isinstance(X, np.ndarray) else [row[position] for row in X]
    sources = as_sources(values, len(X), f"task_column={literal(column)}")
    assert sources is not None
    return sources


def array_of(labels: list[Any]) -> AnyArray:
    """Labels as an array that keeps their types."""
    try:
        array = np.array(labels)
        if array.ndim == 1 and listed(array) == labels:
            return array
    except ValueError:  # tuples of several lengths
        pass
    mixed = np.empty(len(labels), dtype=object)  # NumPy would turn labels of mixed types into strings
    for k, label in enumerate(labels):
        mixed[k] = label
    return mixed
