"""Folds with every label of every task and, for regression, splits within each task, at random or by time."""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.model_selection import BaseShuffleSplit, GroupKFold, KFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from .._data.labels import Samples
from .._data.tasks import (
    as_labels,
    as_sources,
    codes_of,
    column_names,
    equal_labels,
    is_matrix,
    listed,
    missing_labels,
    refuse_missing,
    rows_by_code,
    task_column_of,
    unique_labels,
)
from .._tools.typing import AnyArray, IntArray
from .._tools.wording import literal
from ..exceptions import RareLabelWarning

FEWEST_TASKS = 10  # minimum number of tasks if parameters are chosen on some tasks only
FEWEST_OF_CLASS = 10  # minimum rows per class, without tasks, if parameters are chosen on some rows only
SEPARATELY = 4  # the limits on search rows and pairs of rows are this many times higher for separate tasks
RandomState = int | np.random.RandomState | None
TrainTest = tuple[IntArray, IntArray]  # rows for training and for testing
MATRIX_AND_TASKS = "Pass a matrix y, whose columns are the tasks, or the task of each row, not both."


class _TaskSplitter:
    """Base class of splits within tasks: it finds the tasks."""

    __metadata_request__split: ClassVar = {"groups": True, "tasks": True}
    n_splits: int
    random_state: RandomState
    task_column: int | str | None
    by_label: ClassVar[bool] = False  # whether a cell is a label of a task, or a whole task

    def split(self, X: object, y: object = None, groups: object = None, tasks: object = None) -> Iterator[TrainTest]:
        """Generate indices of training and test parts.

        Parameters
        ----------
        X : array-like or frame of n_samples rows
            Its values are used only with a ``task_column``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Targets; a matrix has one task per column, with NaN or None for missing targets. Without labels to stratify
            by, a vector is not used and may be None.
        groups, tasks : array-like of shape (n_samples,), default=None
            The task of each row. The two are aliases: without metadata routing, scikit-learn passes only ``groups``.

        Yields
        ------
        train, test : arrays of int
            In increasing order.
        """
        tasks = _given_tasks(X, self.task_column, groups, tasks)
        check_consistent_length(X, y, tasks)
        return self._splits(_cells(X, y, tasks, self.by_label))

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None, tasks: object = None) -> int:
        """Number of splits; the arguments are for compatibility with scikit-learn and have no effect."""
        return self.n_splits

    def _splits(self, cells: Cells) -> Iterator[TrainTest]:
        raise NotImplementedError


class _TaskFolds(_TaskSplitter):
    """Base class of folds over tasks: it distributes the samples."""

    shuffle: bool

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: RandomState = None,
        task_column: int | str | None = None,
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)  # type: ignore[call-arg]
        self.task_column = task_column

    def _splits(self, cells: Cells) -> Iterator[TrainTest]:
        if self.n_splits > cells.n_samples:
            raise ValueError(f"There are only {cells.n_samples} samples for {self.n_splits} folds.")
        self._check_sizes(cells)
        rng = check_random_state(self.random_state) if self.shuffle else None
        fold = _deal(cells, self.n_splits, rng) if cells.disjoint else _balance(cells, self.n_splits, rng)
        self._check_spread(cells, fold)
        everyone = np.arange(cells.n_samples)
        return ((everyone[fold != f], everyone[fold == f]) for f in range(self.n_splits))

    def _check_sizes(self, cells: Cells) -> None:
        """Raise if a cell is too small for any folds."""
        raise NotImplementedError

    def _check_spread(self, cells: Cells, fold: IntArray) -> None:
        """Raise if the folds (n_samples,) break a promise of the class."""
        raise NotImplementedError


class MultiTaskStratifiedKFold(_TaskFolds, StratifiedKFold):
    """Folds that are stratified by task and label together.

    The tasks come from a column of X (``task_column``), from ``groups=`` or ``tasks=`` in :meth:`split`, or from a
    matrix y with one task per column and NaN or None for missing labels. Without tasks, the folds are the same as those
    of :class:`sklearn.model_selection.StratifiedKFold`.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to shuffle the samples of each task and label before distributing them.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.
    task_column : int or str, default=None
        The column of X, by index or by name, that names the task of each row.

    Notes
    -----
    A cell is a pair of a task and a label.

    If each sample belongs to one cell, the cells are distributed in turn: the sizes of a cell, of a task and of the
    folds differ by at most one between folds.

    If samples have labels of several tasks, no rule can be that even. Each sample, starting with those of rare cells,
    goes to the fold f where it adds least to Σ_c Σ_f (n_cf / n_c)² (n_cf of the n_c samples of cell c are in fold f;
    the whole data set counts as a cell). Single samples are then moved as long as this sum decreases.

    A cell with a single sample is an error, since some training part would lack that label of that task. A cell with
    fewer samples than folds triggers a warning, since some test parts will lack it.

    With metadata routing, ``groups`` and ``tasks`` are requested by default.

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

    __module__ = "paretomkl.model_selection"  # the public import path, which saved models use
    by_label = True

    def _check_sizes(self, cells: Cells) -> None:
        sizes = cells.sizes
        if len(sizes) == 0:
            raise ValueError("y has no labels.")
        smallest = int(sizes.argmin())
        (task, label), where = cells.names[smallest], cells.where(smallest)
        if sizes[smallest] == 1:
            raise ValueError(
                f"{where} has a single sample with label {literal(label)}; cross-validation needs two or more, so that "
                "every training part has one."
            )
        if sizes[smallest] < self.n_splits:
            message = (
                f"{where} has only {sizes[smallest]} samples with label {literal(label)}, fewer than "
                f"n_splits={self.n_splits}; some test parts will have none."
            )
            rare = RareLabelWarning(message, task, label, int(sizes[smallest]), self.n_splits)
            warnings.warn(rare, stacklevel=4)

    def _check_spread(self, cells: Cells, fold: IntArray) -> None:
        """Every training part must contain every cell; samples in many cells may make that impossible."""
        present = cells.count(fold, self.n_splits) > 0
        n_folds = present.sum(axis=1)
        if (n_folds < 2).any():
            task, label = cells.names[int(n_folds.argmin())]
            raise ValueError(
                f"All samples with label {literal(label)} in task {literal(task)} fall into one fold, so its training "
                "part has none; use more folds, or shuffle=True with another random_state."
            )


class MultiTaskKFold(_TaskFolds, KFold):
    """Folds within each task, for regression: every task is spread evenly over the folds.

    The tasks come from a column of X (``task_column``), from ``groups=`` or ``tasks=`` in :meth:`split`, or from a
    matrix y with one task per column and NaN or None for missing targets. Without tasks and without shuffling, the
    folds are the same as those of :class:`sklearn.model_selection.KFold`.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to shuffle the samples of each task before distributing them.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.
    task_column : int or str, default=None
        The column of X, by index or by name, that names the task of each row.

    Notes
    -----
    If each sample belongs to one task, the sizes of a task and of the folds differ by at most one between folds. A task
    may have fewer samples than there are folds; then some test parts have none of it. If samples have targets of
    several tasks, the folds are balanced over the tasks as :class:`MultiTaskStratifiedKFold` balances labels; if every
    sample has all targets, they are even.

    It is an error if a training part has fewer than two samples of a task.

    With metadata routing, ``groups`` and ``tasks`` are requested by default.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.model_selection import MultiTaskKFold
    >>> tasks = np.array(["a", "a", "a", "a", "a", "b", "b", "b"])
    >>> for train, test in MultiTaskKFold(n_splits=3).split(np.zeros((8, 1)), tasks=tasks):
    ...     print(test, tasks[test])
    [0 1 5] ['a' 'a' 'b']
    [2 3 6] ['a' 'a' 'b']
    [4 7] ['a' 'b']
    """

    __module__ = "paretomkl.model_selection"

    def _check_sizes(self, cells: Cells) -> None:
        self._check_kept(cells, -(-cells.sizes // self.n_splits))

    def _check_spread(self, cells: Cells, fold: IntArray) -> None:
        self._check_kept(cells, cells.count(fold, self.n_splits).max(axis=1))

    def _check_kept(self, cells: Cells, most: IntArray) -> None:
        """Raise if a training part is too small; most (n_cells,) is the largest count of each task in one fold."""
        kept = cells.sizes - most
        least = int(kept.argmin())
        if kept[least] < 2:
            more = " or use more folds" if cells.sizes[least] > 2 else ""
            raise ValueError(
                f"{cells.where(least)} has {cells.sizes[least]} samples, and with {self.n_splits} folds a training "
                f"part keeps only {kept[least]} of them; regression needs two or more. Drop the task{more}."
            )


class MultiTaskShuffleSplit(_TaskSplitter, BaseShuffleSplit):
    """Random splits within each task, for regression: a fraction or number of samples of every task for training.

    You define the tasks as for :class:`MultiTaskKFold`; the other samples of each task are for testing.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits, each drawn independently.
    train_size : float or int, default=0.75
        A float in (0, 1) is the fraction of each task for training, rounded to whole samples; an int is the number of
        samples of each task, at least 2.
    random_state : int, RandomState or None, default=None
        Seed for the random splits.
    task_column : int or str, default=None
        The column of X, by index or by name, that names the task of each row.

    Notes
    -----
    If samples have targets of several tasks (a matrix y), ``train_size`` is the fraction or number of all samples.

    It is an error if a training part has fewer than two samples of a task, or a test part none.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.model_selection import MultiTaskShuffleSplit
    >>> tasks = np.repeat(["a", "b"], [10, 4])
    >>> splits = MultiTaskShuffleSplit(n_splits=2, train_size=0.5, random_state=0)
    >>> for train, test in splits.split(np.zeros((14, 1)), tasks=tasks):
    ...     print(tasks[train])
    ['a' 'a' 'a' 'a' 'a' 'b' 'b']
    ['a' 'a' 'a' 'a' 'a' 'b' 'b']
    """

    __module__ = "paretomkl.model_selection"

    def __init__(
        self,
        n_splits: int = 10,
        *,
        train_size: float = 0.75,
        random_state: RandomState = None,
        task_column: int | str | None = None,
    ) -> None:
        super().__init__(n_splits, train_size=train_size, random_state=random_state)
        self.task_column = task_column

    def _splits(self, cells: Cells) -> Iterator[TrainTest]:
        disjoint = cells.disjoint
        if disjoint:
            pools = [cells.rows[own] for own in rows_by_code(cells.columns, len(cells.names))]
        else:
            pools = [np.arange(cells.n_samples)]
        rng = check_random_state(self.random_state)
        shares = [
            _n_train(self.train_size, len(pool), cells.where(c) if disjoint else "y") for c, pool in enumerate(pools)
        ]
        return iter([self._draw(cells, pools, shares, rng) for _ in range(self.n_splits)])

    def _draw(self, cells: Cells, pools: list[IntArray], shares: list[int], rng: np.random.RandomState) -> TrainTest:
        drawn = [rng.permutation(pool) for pool in pools]
        train = np.sort(np.concatenate([rows[:n] for rows, n in zip(drawn, shares, strict=True)]))
        test = np.sort(np.concatenate([rows[n:] for rows, n in zip(drawn, shares, strict=True)]))
        in_test = np.zeros(cells.n_samples, dtype=int)
        in_test[test] = 1
        for c, (n_train, n_test) in enumerate(cells.count(in_test, 2).tolist()):
            if n_train < 2 or n_test < 1:
                raise ValueError(
                    f"{cells.where(c)} has {n_train} samples in a training part and {n_test} in its test part, but "
                    "needs at least two and one; drop the task or change train_size."
                )
        return train, test


def split_by_time(tasks: object, time: object, train_size: float = 0.75) -> TrainTest:
    """Split each task by time: the first part for training, the later part for testing.

    Within each task, all training samples are strictly earlier than all test samples; samples with the same time stay
    together.

    Parameters
    ----------
    tasks : array-like of shape (n_samples,) or None
        The task of each sample; None is one task.
    time : array-like of shape (n_samples,)
        Time of each sample: numbers or dates, in any order. Round them, as in ``np.floor(time)``, to keep samples of
        the same day together.
    train_size : float or int, default=0.75
        A float in (0, 1) is the fraction of each task for training, an int the number of samples of each task, at least
        2. It is an upper limit if samples with the same time lie on the boundary.

    Returns
    -------
    train, test : arrays of int
        In increasing order; you can pass ``[(train, test)]`` as ``cv=``.

    Examples
    --------
    >>> from paretomkl.model_selection import split_by_time
    >>> train, test = split_by_time(["a", "a", "b", "a", "b", "b", "a"], [3, 1, 10, 2, 30, 20, 4], train_size=0.6)
    >>> train, test
    (array([1, 2, 3, 5]), array([0, 4, 6]))
    """
    times = as_labels(time, "time")
    if times.ndim != 1 or times.dtype.kind not in "iufmM":
        raise ValueError(f"time must be a vector of numbers or dates, got shape {times.shape} of type {times.dtype}.")
    refuse_missing(times, "time")
    in_train = np.zeros(len(times), dtype=bool)
    for task, rows in rows_of_tasks(tasks, len(times)):
        where = "tasks=None" if task is None else f"Task {literal(task)}"
        own = times[rows]
        first_of_test = np.sort(own)[_n_train(train_size, len(rows), where)]
        in_train[rows] = own < first_of_test
        if in_train[rows].sum() < 2:
            raise ValueError(f"{where} has fewer than two samples before {first_of_test}, where its test part begins.")
    return np.flatnonzero(in_train), np.flatnonzero(~in_train)


def _n_train(train_size: float, n: int, where: str) -> int:
    """Number of training samples out of n: at least two, and not all."""
    count = isinstance(train_size, numbers.Integral)
    if not (train_size >= 2 if count else isinstance(train_size, float | np.floating) and 0 < train_size < 1):
        raise ValueError(
            f"train_size must be a fraction in (0, 1) or an integer of at least 2, got {literal(train_size)}."
        )
    n_train = int(train_size) if count else round(train_size * n)
    if not 2 <= n_train < n:
        raise ValueError(
            f"{where} has {n} samples, too few for train_size={literal(train_size)}; training needs at least two, "
            "testing at least one."
        )
    return n_train


def _given_tasks(X: object, task_column: int | str | None, groups: object, tasks: object) -> Any:
    """The task of each row, from at most one of the three arguments; None without tasks."""
    ways = {"task_column": task_column, "groups": groups, "tasks": tasks}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"Pass {given[0]} or {given[1]}, not both.")
    if task_column is not None:
        return task_column_of(X, task_column)
    return tasks if groups is None else groups


def make_splits(
    cv: Any,
    X: object,
    y: object,
    tasks: object = None,
    groups: object = None,
    random_state: RandomState = 0,
    *,
    stratify: bool = True,
) -> list[TrainTest]:
    """Training and test parts for any ``cv=`` that scikit-learn accepts; X has no task column.

    An int makes a :class:`MultiTaskStratifiedKFold` with that many folds, or for regression (``stratify=False``) a
    :class:`MultiTaskKFold`; None means five. These are shuffled: rows of a file are often sorted, and folds of
    neighbouring rows then resemble neither each other nor new data. "new tasks" leaves whole tasks out, and "time" the
    last rows of each task.
    """
    if isinstance(cv, str):
        return _named_splits(cv, tasks, _num_samples(y))
    if cv is None or isinstance(cv, numbers.Integral):
        seed = 0 if random_state is None else random_state
        folds = MultiTaskStratifiedKFold if stratify else MultiTaskKFold
        cv = folds(5 if cv is None else int(cv), shuffle=True, random_state=seed)
    of_tasks = isinstance(cv, _TaskSplitter)
    if of_tasks and groups is not None:
        raise ValueError(
            f"The folds of {type(cv).__name__}, and of a number as cv=, do not keep groups together; pass a splitter "
            "that does, such as GroupKFold."
        )
    if of_tasks and tasks is not None:
        plain = copy.copy(cv)
        plain.task_column = None  # no longer in X
        return list(plain.split(X, y, tasks=tasks))
    everyone = np.arange(_num_samples(y))
    parts = check_cv(cv, y, classifier=stratify).split(X, y, groups)
    splits = [(everyone[train], everyone[test]) for train, test in parts]
    if not splits:
        raise ValueError("cv yields no splits.")
    return splits


def _named_splits(cv: str, tasks: object, n: int) -> list[TrainTest]:
    """Up to five folds of whole tasks, or three that each hold out a fifth of every task, after what it learns from.

    For "time", the rows of a task must be in the order of time.
    """
    parts = [rows for _, rows in rows_of_tasks(tasks, n)]
    if cv == "new tasks":
        if len(parts) < 2:
            raise ValueError("cv='new tasks' leaves tasks out, but there is only one; pass the task of each row.")
        codes = np.empty(n, dtype=np.int64)
        for code, rows in enumerate(parts):
            codes[rows] = code
        return list(GroupKFold(min(5, len(parts))).split(codes, groups=codes))
    if cv != "time":
        raise ValueError(f"cv must be a number, a splitter, an iterable, 'new tasks' or 'time', got {cv!r}.")
    fifths = [np.array_split(rows, 5) for rows in parts]
    short = min(len(rows) for rows in parts)
    if short < 10:
        raise ValueError(f"cv='time' cuts each task into five parts and needs 10 rows in each, but one has {short}.")
    return [
        (
            np.sort(np.concatenate([np.concatenate(own[:k]) for own in fifths])),
            np.sort(np.concatenate([own[k] for own in fifths])),
        )
        for k in (2, 3, 4)
    ]


def leave_tasks_out(splits: Sequence[TrainTest], sources: AnyArray | None) -> bool:
    """Whether some test part has a task that its training part lacks."""
    if sources is None:
        return False
    codes = codes_of(sources, unique_labels(sources))
    return any(not np.isin(codes[test], codes[train]).all() for train, test in splits)


def searches_all(sizes: Sequence[int] | IntArray, most: int, pooled: bool) -> bool:
    """Whether tasks of these sizes are searched on all rows; ``pooled`` means that all tasks are one problem."""
    n, n_pairs = sum(sizes), sum(float(size) ** 2 for size in sizes)
    return bool(n <= most or (not pooled and n <= SEPARATELY * most and n_pairs <= SEPARATELY * most**2))


def rows_to_search(
    samples: Samples, y: object, cv: Any, most: int | None, pooled: bool, stratify: bool
) -> IntArray | None:
    """The rows used to choose parameters, about ``most``; None means all.

    If there are many rows, take whole tasks, so that each keeps its size and what it can learn by itself. If fewer than
    ten tasks would be left, draw rows from every task instead, and from every class of a task, as folds need.
    """
    given = np.iterable(cv) and not isinstance(cv, str)  # folds whose indices refer to all rows
    if most is None or given or samples.data.ndim != 2:
        return None
    n, sources, rng = len(samples), samples.sources, np.random.default_rng(0)
    known = [None] if sources is None else unique_labels(sources)
    parts = [np.arange(n)] if sources is None else rows_by_code(codes_of(sources, known), len(known))
    sizes = np.array([len(part) for part in parts])
    if searches_all(sizes, most, pooled):
        return None
    if sources is not None:
        order = rng.permutation(len(parts))
        kept = order[np.cumsum(sizes[order]) <= most]
        if len(kept) >= FEWEST_TASKS:
            return np.sort(np.concatenate([parts[t] for t in kept]))
    fewest = 4
    if stratify and not is_matrix(y):
        labels, fewest = as_labels(y, "y").ravel(), FEWEST_OF_CLASS if sources is None else 2
        parts = [part[equal_labels(labels[part], one)] for part in parts for one in unique_labels(labels[part])]
    elif sources is None:
        return np.sort(rng.choice(n, most, replace=False))
    drawn = [rng.permutation(part)[: max(fewest, round(len(part) * most / n))] for part in parts]
    return np.sort(np.concatenate(drawn))


@dataclass(frozen=True)
class Cells:
    """Which samples have which label of which task; for regression, a cell is a whole task.

    names: task (None if there are no tasks) and label (None for regression) of each cell; rows, columns: sample and
    cell of each known label or target.
    """

    names: list[tuple[Hashable, Hashable]]
    rows: IntArray
    columns: IntArray
    n_samples: int

    @property
    def disjoint(self) -> bool:
        """Whether no sample is in two cells."""
        return len(np.unique(self.rows)) == len(self.rows)

    @property
    def sizes(self) -> IntArray:
        """Samples of each cell, (n_cells,)."""
        return np.bincount(self.columns, minlength=len(self.names))

    def count(self, fold: IntArray, n_folds: int) -> IntArray:
        """Samples of each cell in each fold, (n_cells, n_folds); fold (n_samples,)."""
        counts = np.zeros((len(self.names), n_folds), dtype=int)
        np.add.at(counts, (self.columns, fold[self.rows]), 1)
        return counts

    def where(self, cell: int) -> str:
        """The name of the task of a cell in messages."""
        task = self.names[cell][0]
        return "y" if task is None else f"Task {literal(task)}"


def _cells(X: object, y: object, tasks: object, by_label: bool) -> Cells:
    """One cell per task, or per label of each task; y is needed only for labels and for tasks in its columns."""
    values = np.zeros(_num_samples(X)) if y is None and not by_label else as_vector_or_matrix(y)
    parts: list[tuple[Hashable, IntArray, AnyArray]]
    if values.ndim == 2:
        if tasks is not None:
            raise ValueError(MATRIX_AND_TASKS)
        if values.shape[1] == 0:
            raise ValueError("y has no columns.")
        names, known = column_names(y) or range(values.shape[1]), ~missing_labels(values)
        parts = [(name, np.flatnonzero(known[:, t]), values[:, t]) for t, name in enumerate(names)]
    else:
        if by_label and values.dtype.kind == "f":
            check_classification_targets(values)
        if by_label:
            refuse_missing(values, "y")
        parts = [(task, rows, values) for task, rows in rows_of_tasks(tasks, len(values))]
    cells: list[tuple[Hashable, Hashable]] = []
    columns = []
    for task, rows, labels in parts:  # cells of one task are adjacent, so that tasks are distributed evenly too
        found: dict[Hashable, int] = {} if by_label else {None: 0}
        codes = [found.setdefault(label, len(found)) for label in listed(labels[rows])] if by_label else [0] * len(rows)
        columns.append(len(cells) + np.array(codes, dtype=int))
        cells += [(task, label) for label in found]
    return Cells(cells, np.concatenate([rows for _, rows, _ in parts]), np.concatenate(columns), len(values))


def _deal(cells: Cells, n_splits: int, rng: np.random.RandomState | None) -> IntArray:
    """Folds of samples in one cell each: distribute cells in turn, with consecutive samples of a cell together."""
    n_cells = len(cells.names) + 1
    cell = np.full(cells.n_samples, n_cells - 1)  # the last cell has the samples without a label
    cell[cells.rows] = cells.columns
    in_order = np.sort(cell)
    share = np.array([np.bincount(in_order[f::n_splits], minlength=n_cells) for f in range(n_splits)])
    fold = np.empty(cells.n_samples, dtype=int)
    for c, rows in enumerate(rows_by_code(cell, n_cells)):
        folds = np.repeat(np.arange(n_splits), share[:, c])
        if rng is not None:
            rng.shuffle(folds)
        fold[rows] = folds
    return fold


def _balance(cells: Cells, n_splits: int, rng: np.random.RandomState | None) -> IntArray:
    """Folds of samples in several cells: minimise Σ_c Σ_f (n_cf / n_c)² by a greedy start and single moves."""
    n, everyone = cells.n_samples, np.arange(cells.n_samples)
    whole = len(cells.names)  # all samples form a cell too, for folds of even size
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
        if change[i, g] > -1e-12:  # only rounding is left
            return fold
        shared = weighted @ member[[i]].toarray()[0]
        load[:, fold[i]] -= shared
        load[:, g] += shared
        fold[i] = g


def as_vector_or_matrix(y: object) -> AnyArray:
    """Labels (n_samples,) or (n_samples, n_tasks); a matrix with one column becomes a vector."""
    labels = as_labels(y, "y")
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got {labels.ndim}.")
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def rows_of_tasks(tasks: object, n_samples: int) -> list[tuple[Hashable, IntArray]]:
    """The samples of each task, in order of appearance; without tasks, one task called None."""
    sources = as_sources(tasks, n_samples)
    if sources is None:
        return [(None, np.arange(n_samples))]
    known = list(dict.fromkeys(listed(sources)))
    return list(zip(known, rows_by_code(codes_of(sources, known), len(known)), strict=True))
