"""Folds with every label of every task and, for regression, splits within each task, at random or by time."""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseShuffleSplit, GroupKFold, KFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import _num_samples

from .._data.labels import Samples
from .._data.tasks import (
    as_labels,
    codes_of,
    equal_labels,
    is_matrix,
    listed,
    refuse_missing,
    rows_by_code,
    task_column_of,
    unique_labels,
)
from .._tools.public import PublicNames
from .._tools.typing import AnyArray, IntArray
from .._tools.wording import literal
from ..exceptions import RareLabelWarning, TaskDataError
from .cells import Cells, balance, cells_of, deal, rows_of_tasks

FEWEST_TASKS = 10  # minimum number of tasks if parameters are chosen on some tasks only
FEWEST_OF_CLASS = 10  # minimum rows per class, without tasks, if parameters are chosen on some rows only
SEPARATELY = 4  # the limits on search rows and pairs of rows are this many times higher for separate tasks
RandomState = int | np.random.RandomState | None
TrainTest = tuple[IntArray, IntArray]  # rows for training and for testing


class _TaskSplitter(PublicNames):
    """Base class of splits within tasks: it finds the tasks."""

    _internal = ("by_label", "split_all")

    __metadata_request__split: ClassVar = {"groups": True, "tasks": True}
    n_splits: int
    random_state: RandomState
    task_column: int | str | None
    by_label: ClassVar[bool] = False  # whether a cell is a label of a task, or a whole task

    def split(self, X: object, y: object = None, groups: object = None, tasks: object = None) -> Iterator[TrainTest]:
        """Generate indices of training and test sets.

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
        return self._splits(cells_of(X, y, tasks, self.by_label))

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

    def _splits(self, cells: Cells, groups: IntArray | None = None) -> Iterator[TrainTest]:
        """Folds that keep groups together, given the number of the group of each sample."""
        return self._spread(cells, cells, groups)

    def split_all(self, X: object, y: object, tasks: object, groups: IntArray | None) -> Iterator[TrainTest]:
        """Folds for models of all tasks together: only labels, not those of each task, must be in every training set.

        They are those of :meth:`split` if these exist.
        """
        cells = cells_of(X, y, tasks, self.by_label)
        try:
            return self._splits(cells, groups)
        except TaskDataError:
            return self._spread(cells.by_label(), cells.of_all(), groups)

    def _spread(self, cells: Cells, needed: Cells, groups: IntArray | None) -> Iterator[TrainTest]:
        """Folds with the cells spread evenly, and with some of each needed cell in every training set."""
        n, units = (cells.n_samples, "samples") if groups is None else (int(groups.max()) + 1, "groups")
        if self.n_splits > n:
            raise ValueError(f"There are only {n} {units} for {self.n_splits} folds.")
        self._check_sizes(needed)
        rng = check_random_state(self.random_state) if self.shuffle else None
        dealt = cells.disjoint and groups is None
        fold = deal(cells, self.n_splits, rng) if dealt else balance(cells, self.n_splits, rng, groups)
        self._check_spread(needed, fold)
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

    A cell with a single sample is an error, since some training set would lack that label of that task. A cell with
    fewer samples than folds triggers a warning, since some test sets will lack it.

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
            raise TaskDataError(
                f"{where} has a single sample with label {literal(label)}; cross-validation needs two or more, so that "
                "every training set has one.",
                task=task,
            )
        if sizes[smallest] < self.n_splits:
            message = (
                f"{where} has only {sizes[smallest]} samples with label {literal(label)}, fewer than "
                f"n_splits={self.n_splits}; some test sets will have none."
            )
            rare = RareLabelWarning(message, task, label, int(sizes[smallest]), self.n_splits)
            warnings.warn(rare, stacklevel=5)

    def _check_spread(self, cells: Cells, fold: IntArray) -> None:
        """Every training set must contain every cell; samples in many cells may make that impossible."""
        present = cells.count(fold, self.n_splits) > 0
        n_folds = present.sum(axis=1)
        if (n_folds < 2).any():
            task, label = cells.names[int(n_folds.argmin())]
            raise TaskDataError(
                f"All samples with label {literal(label)} in task {literal(task)} fall into one fold, so its training "
                "set has none; use more folds, or shuffle=True with another random_state.",
                task=task,
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
    may have fewer samples than there are folds; then some test sets have none of it. If samples have targets of
    several tasks, the folds are balanced over the tasks as :class:`MultiTaskStratifiedKFold` balances labels; if every
    sample has all targets, they are even.

    It is an error if a training set has fewer than two samples of a task.

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
        """Raise if a training set is too small; most (n_cells,) is the largest count of each task in one fold."""
        kept = cells.sizes - most
        least = int(kept.argmin())
        if kept[least] < 2:
            more = " or use more folds" if cells.sizes[least] > 2 else ""
            raise TaskDataError(
                f"{cells.where(least)} has {cells.sizes[least]} samples, and with {self.n_splits} folds a training "
                f"set keeps only {kept[least]} of them; regression needs two or more. Drop the task{more}.",
                task=cells.names[least][0],
            )


class _GroupFolds(_TaskFolds):
    """Base class of folds over tasks that keep groups together."""

    def split(self, X: object, y: object = None, groups: object = None, tasks: object = None) -> Iterator[TrainTest]:
        """Generate indices of training and test sets.

        Parameters
        ----------
        X : array-like or frame of n_samples rows
            Its values are used only with a ``task_column``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Targets; a matrix has one task per column, with NaN or None for missing targets.
        groups : array-like of shape (n_samples,)
            The group of each row, such as the patient that it is from.
        tasks : array-like of shape (n_samples,), default=None
            The task of each row. A group may have rows in several tasks.

        Yields
        ------
        train, test : arrays of int
            In increasing order.
        """
        if groups is None:
            raise ValueError(f"{type(self).__name__} needs the group of each row; pass groups=.")
        tasks = _given_tasks(X, self.task_column, None, tasks)
        check_consistent_length(X, y, tasks, groups)
        return self._splits(cells_of(X, y, tasks, self.by_label), group_codes(groups, _num_samples(X)))


class MultiTaskStratifiedGroupKFold(_GroupFolds, MultiTaskStratifiedKFold):
    """Folds that keep the rows of a group together, and are stratified by task and label as far as that allows.

    If several rows come from one patient, machine or document, they resemble each other, and a model that has learned
    from some of them is tested on the others as if it had seen them. With these folds it is not. Searches take them by
    default if you pass ``groups`` to ``fit``.

    The tasks come from a column of X (``task_column``), from ``tasks=`` in :meth:`split`, or from a matrix y.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2 and at most the number of groups.
    shuffle : bool, default=False
        Whether to shuffle the groups before distributing them.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.
    task_column : int or str, default=None
        The column of X, by index or by name, that names the task of each row.

    Notes
    -----
    Groups, large ones first, go to the fold f where they add least to Σ_c Σ_f (n_cf / n_c)², where n_cf of the n_c
    samples of cell c, a pair of task and label, are in fold f. Then single groups are moved as long as the sum
    decreases.

    It is an error if all samples of a cell are in one fold.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.model_selection import MultiTaskStratifiedGroupKFold
    >>> y = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    >>> patients = np.array(["p", "p", "q", "q", "r", "r", "s", "s"])
    >>> for train, test in MultiTaskStratifiedGroupKFold(2).split(np.zeros((8, 1)), y, groups=patients):
    ...     print(patients[test], y[test])
    ['p' 'p' 's' 's'] [0 0 1 1]
    ['q' 'q' 'r' 'r'] [1 1 0 0]
    """

    __module__ = "paretomkl.model_selection"


class MultiTaskGroupKFold(_GroupFolds, MultiTaskKFold):
    """Folds that keep the rows of a group together, and spread every task evenly as far as that allows.

    The same as :class:`MultiTaskStratifiedGroupKFold` for regression: a cell is a whole task.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2 and at most the number of groups.
    shuffle : bool, default=False
        Whether to shuffle the groups before distributing them.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.
    task_column : int or str, default=None
        The column of X, by index or by name, that names the task of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.model_selection import MultiTaskGroupKFold
    >>> patients = np.array(["p", "p", "q", "q", "q", "r", "s", "s"])
    >>> for train, test in MultiTaskGroupKFold(2).split(np.zeros((8, 1)), groups=patients):
    ...     print(patients[test])
    ['q' 'q' 'q' 'r']
    ['p' 'p' 's' 's']
    """

    __module__ = "paretomkl.model_selection"


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

    It is an error if a training set has fewer than two samples of a task, or a test set none.

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
                    f"{cells.where(c)} has {n_train} samples in a training set and {n_test} in its test set, but "
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
            raise ValueError(f"{where} has fewer than two samples before {first_of_test}, where its test set begins.")
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
    together: bool = False,
) -> list[TrainTest]:
    """Training and test sets for any ``cv=`` that scikit-learn accepts; X has no task column.

    An int makes a :class:`MultiTaskStratifiedKFold` with that many folds, or for regression (``stratify=False``) a
    :class:`MultiTaskKFold`, and with ``groups`` the variants of these that keep groups together; None means five. These
    are shuffled: rows of a file are often sorted, and folds of neighbouring rows then resemble neither each other nor
    new data. "new tasks" leaves whole tasks out, and "time" the last rows of each task. No split may have rows of a
    group in both parts. ``together`` is for models of all tasks together, which need not have learned from every label
    of every task.
    """
    splits = _splits_of(cv, X, y, tasks, groups, random_state, stratify, together)
    if not splits:
        raise ValueError("cv yields no splits.")
    if groups is not None:
        _check_groups(cv, splits, group_codes(groups, _num_samples(y)), groups)
    return splits


def _splits_of(
    cv: Any,
    X: object,
    y: object,
    tasks: object,
    groups: object,
    random_state: RandomState,
    stratify: bool,
    together: bool,
) -> list[TrainTest]:
    if isinstance(cv, str):
        return _named_splits(cv, tasks, _num_samples(y))
    if cv is None or isinstance(cv, numbers.Integral):
        seed, kept = 0 if random_state is None else random_state, groups is not None
        plain, grouped = MultiTaskKFold, MultiTaskGroupKFold
        if stratify:
            plain, grouped = MultiTaskStratifiedKFold, MultiTaskStratifiedGroupKFold
        cv = (grouped if kept else plain)(5 if cv is None else int(cv), shuffle=True, random_state=seed)
    keeps_groups = isinstance(cv, _GroupFolds)
    if isinstance(cv, _TaskSplitter) and not keeps_groups and groups is not None:
        raise ValueError(
            f"The folds of {type(cv).__name__} do not keep groups together; leave cv out, or pass a splitter that "
            "does, such as MultiTaskStratifiedGroupKFold or GroupKFold."
        )
    if together and isinstance(cv, _TaskFolds):
        return list(cv.split_all(X, y, tasks, None if groups is None else group_codes(groups, _num_samples(y))))
    if isinstance(cv, _TaskSplitter) and (tasks is not None or keeps_groups):
        plain_cv = copy.copy(cv)
        plain_cv.task_column = None  # no longer in X
        given = {"groups": groups} if keeps_groups else {}
        return list(plain_cv.split(X, y, tasks=tasks, **given))
    everyone = np.arange(_num_samples(y))
    parts = check_cv(cv, y, classifier=stratify).split(X, y, groups)
    return [(everyone[train], everyone[test]) for train, test in parts]


def _check_groups(cv: Any, splits: Sequence[TrainTest], codes: IntArray, groups: Any) -> None:
    """Raise if a split has rows of one group in both parts."""
    for train, test in splits:
        both = np.intersect1d(codes[train], codes[test])
        if len(both):
            group = as_labels(groups, "groups").ravel()[codes == both[0]][0]
            name = repr(cv) if isinstance(cv, str) else type(cv).__name__
            raise ValueError(
                f"cv={name} has rows of group {literal(group)} both in a training set and in its test set; leave cv "
                "out, or pass splits that keep groups together, such as those of GroupKFold."
            )


def group_codes(groups: object, n_samples: int) -> IntArray:
    """The groups of the rows as numbers from 0, in order of appearance."""
    labels = as_labels(groups, "groups")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != n_samples:
        raise ValueError(f"groups must have one value per row ({n_samples}), got shape {labels.shape}.")
    refuse_missing(labels, "groups")
    return codes_of(labels, list(dict.fromkeys(listed(labels))))


def _named_splits(cv: str, tasks: object, n: int) -> list[TrainTest]:
    """Up to five folds of whole tasks, or three that each hold out a fifth of every task, after what it learns from.

    For "time", the rows of a task must be in the order of time.
    """
    parts = [rows for _, rows in rows_of_tasks(tasks, n)]
    if cv == "new tasks":
        if len(parts) < 2:
            raise ValueError(
                "cv='new tasks' leaves whole tasks out, so it needs the task of each row, and several tasks."
            )
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
    """Whether some test set has a task that its training set lacks."""
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
