"""From labels to binary tasks: one-vs-one pairs, task labels, and label matrices with gaps."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ._typing import AnyArray, Array, IntArray


@dataclass(frozen=True)
class Task:
    """One binary problem.

    name: what messages and tables call it; rows (n,): its samples, rising; signs (n,): ±1; classes: the labels of −1
    and +1; source: the task label or column it came from (``None`` where there is only one).
    """

    name: str
    rows: IntArray
    signs: Array
    classes: tuple[Any, Any]
    source: Hashable = None


def make_tasks(y: Any, tasks: Any = None) -> list[Task]:
    """Binary tasks from labels.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        A vector with two classes is one task, with more classes one task per pair of classes. Each column of a matrix
        is a task of its own; NaN or None means that the sample is not labelled there.
    tasks : array-like of shape (n_samples,), default=None
        Which task each sample belongs to; each task may have two or more classes.
    """
    labels = as_labels(y, "y")
    if labels.ndim == 2:
        if tasks is not None:
            raise ValueError("tasks cannot be given together with a matrix y, whose columns are the tasks.")
        return _tasks_of_matrix(labels, getattr(y, "columns", None))
    if labels.ndim != 1:
        raise ValueError(f"y must have one or two dimensions, got {labels.ndim}.")
    refuse_missing(labels, "y")
    everyone = np.arange(len(labels))
    if tasks is None:
        return _pairs(labels, everyone, source=None)
    sources = as_labels(tasks, "tasks")
    if sources.shape != labels.shape:
        raise ValueError(f"tasks must have one entry per sample: y has {len(labels)}, tasks has shape {sources.shape}.")
    refuse_missing(sources, "tasks")
    return [
        task
        for source in unique_labels(sources)
        for task in _pairs(labels, everyone[equal_labels(sources, source)], source=source)
    ]


def stack_tasks(
    Xs: Sequence[Any], ys: Sequence[Any], names: Sequence[Hashable] | None = None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Lists of the arrays of each task, stacked into one X, one y and the task of each row.

    Parameters
    ----------
    Xs : sequence of n_tasks arrays of shape (n_samples of the task, n_features)
    ys : sequence of n_tasks arrays of shape (n_samples of the task,)
    names : sequence of n_tasks labels, default=None
        What the tasks are called; None numbers them.

    Returns
    -------
    X, y, tasks : arrays of n_samples rows, for ``fit(X, y, tasks=tasks)``

    Examples
    --------
    >>> X, y, tasks = stack_tasks([[[0.0], [1.0]], [[2.0], [3.0]]], [[0, 1], [1, 0]], names=["pump", "valve"])
    >>> X.shape, y.tolist(), tasks.tolist()
    ((4, 1), [0, 1, 1, 0], ['pump', 'pump', 'valve', 'valve'])
    """
    labels = list(range(len(Xs))) if names is None else list(names)
    if not len(Xs) == len(ys) == len(labels):
        raise ValueError(
            f"Xs, ys and names must have one entry per task, got {len(Xs)}, {len(ys)} and {len(labels)} of them."
        )
    if not labels:
        raise ValueError("There is no task to stack: Xs is empty.")
    if len(set(labels)) < len(labels):
        raise ValueError(f"names must differ from task to task, got {labels}.")
    blocks = [np.asarray(X) for X in Xs]
    for name, X, y in zip(labels, blocks, ys, strict=True):
        if X.ndim != 2 or X.shape[1] != blocks[0].shape[1]:
            raise ValueError(f"Task {name!r} must have X of {blocks[0].shape[-1]} columns, got shape {X.shape}.")
        if len(X) != len(y):
            raise ValueError(f"Task {name!r} has {len(X)} rows in X and {len(y)} labels.")
    sizes = [len(X) for X in blocks]
    return np.vstack(blocks), np.concatenate([np.asarray(y) for y in ys]), np.repeat(np.array(labels), sizes)


def unique_labels(labels: AnyArray) -> list[Any]:
    """Distinct labels, sorted where they can be compared, else in order of appearance."""
    distinct = list(dict.fromkeys(labels.tolist()))
    try:
        return sorted(distinct)
    except TypeError:
        return distinct


def _pairs(labels: AnyArray, rows: IntArray, source: Hashable) -> list[Task]:
    """One task per pair of the classes that occur among the rows."""
    classes = unique_labels(labels[rows])
    where = "y" if source is None else f"Task {source!r}"
    if len(classes) < 2:
        raise ValueError(f"{where} has only one class, {classes[0]!r}; a task needs two classes or more.")
    made = []
    for negative, positive in combinations(classes, 2):
        in_pair = equal_labels(labels[rows], negative) | equal_labels(labels[rows], positive)
        chosen = rows[in_pair]
        pair = f"{negative} vs {positive}"
        if source is None:
            name = pair
        else:
            name = str(source) if len(classes) == 2 else f"{source}: {pair}"
        signs = np.where(equal_labels(labels[chosen], positive), 1.0, -1.0)
        made.append(Task(name, chosen, signs, (negative, positive), source))
    return made


def _tasks_of_matrix(labels: AnyArray, names: Sequence[Any] | None) -> list[Task]:
    made = []
    if labels.shape[1] == 0:
        raise ValueError("y has no columns; each column is a task.")
    for column in range(labels.shape[1]):
        source = column if names is None else names[column]
        values = labels[:, column]
        rows = np.flatnonzero(~missing_labels(values))
        if len(rows) == 0:
            raise ValueError(f"Task {source!r} is empty: no sample is labelled in its column of y.")
        classes = unique_labels(values[rows])
        if len(classes) != 2:
            raise ValueError(
                f"Task {source!r} needs two classes in its column of y, got {len(classes)}: {classes[:5]}."
            )
        signs = np.where(equal_labels(values[rows], classes[1]), 1.0, -1.0)
        made.append(Task(str(source), rows, signs, (classes[0], classes[1]), source))
    return made


def as_labels(values: Any, name: str) -> AnyArray:
    if values is None:
        raise ValueError(f"{name} is missing.")
    try:
        labels = np.asarray(values)
        if labels.dtype.kind in "US" and not isinstance(values, np.ndarray):
            # NumPy turns what stands beside a string into a string, NaN too
            mixed = np.asarray(values, dtype=object)
            labels = labels if all(isinstance(label, str) for label in mixed.ravel()) else mixed
    except ValueError as error:
        raise ValueError(f"{name} must be a vector or a matrix, its rows all of one length.") from error
    if labels.size == 0 and labels.ndim == 1:
        raise ValueError(f"{name} is empty.")
    return labels


def missing_labels(labels: AnyArray) -> AnyArray:
    """Where labels of any shape are missing."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "O":
        return np.frompyfunc(_is_missing, 1, 1)(labels).astype(bool)
    return np.zeros(labels.shape, dtype=bool)


def _is_missing(label: Any) -> bool:
    """None, NaN, and the NA and NaT of pandas (which is not imported for that)."""
    return (
        label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, float) and label != label)
    )


def refuse_missing(labels: AnyArray, name: str) -> None:
    missing = np.flatnonzero(missing_labels(labels))
    if len(missing):
        raise ValueError(f"{name} is missing for sample {missing[0]} ({len(missing)} in all); remove those samples.")


def equal_labels(labels: AnyArray, value: Any) -> AnyArray:
    """labels == value, one by one where they are objects of several types."""
    if labels.dtype.kind == "O":
        return np.array([label == value for label in labels], dtype=bool)
    return labels == value


def find_task_column(X: Any, column: Any) -> int:
    """The position of the column of X, given by index or by name where X is a frame, that names the tasks."""
    names = list(X.columns) if hasattr(X, "columns") else None
    n_columns = np.shape(X)[1] if np.ndim(X) == 2 else 0
    if isinstance(column, numbers.Integral) and (names is None or column not in names):
        if not -n_columns <= int(column) < n_columns:
            raise ValueError(f"task_column={column} is out of range: X has {n_columns} columns.")
        return int(column) % n_columns
    if names is None:
        raise ValueError(f"task_column={column!r} is a name, but X has no column names; give the index.")
    if column not in names:
        raise ValueError(f"X has no column {column!r} (task_column); its columns are {names[:10]}.")
    return names.index(column)


def task_column_of(X: Any, column: Any) -> AnyArray:
    """The task of each row of X, read from its task column."""
    position = find_task_column(X, column)
    if not hasattr(X, "columns"):
        return np.asarray(X)[:, position]
    return (X.iloc[:, position] if hasattr(X, "iloc") else X[list(X.columns)[position]]).to_numpy()


def array_of(labels: list[Any]) -> AnyArray:
    """Labels as an array that keeps their types."""
    array = np.array(labels)
    if array.ndim == 1 and array.tolist() == labels:
        return array
    mixed = np.empty(len(labels), dtype=object)  # labels of several types: numpy would turn them into strings
    mixed[:] = labels
    return mixed
