"""Folds that hold every label of every task."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets

from ._tasks import (
    as_labels,
    as_sources,
    column_names,
    equal_labels,
    listed,
    missing_labels,
    refuse_missing,
    task_column_of,
)
from ._typing import AnyArray, IntArray

MATRIX_AND_TASKS = "Pass a matrix y, whose columns are the tasks, or the task of each row, not both."


class MultiTaskStratifiedKFold(StratifiedKFold):
    """Folds that are stratified by task and label together.

    The tasks come from a column of X (``task_column``), from ``groups=`` or ``tasks=`` in :meth:`split`, or from a
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

    A cell of a single sample is an error, since some training part would lack that label of that task; a cell of fewer
    samples than folds gives a warning, since some test parts lack it.

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

    __module__ = "paretomkl.model_selection"  # where users import it from, and saved models look for it
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
            Used only with a ``task_column``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Labels; a matrix has one task per column, NaN or None for "not labelled".
        groups, tasks : array-like of shape (n_samples,), default=None
            The task of each row: two names for one thing. Without metadata routing scikit-learn passes ``groups`` on.

        Yields
        ------
        train, test : arrays of int
        """
        ways = {"task_column": self.task_column, "groups": groups, "tasks": tasks}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"Pass {given[0]} or {given[1]}, not both.")
        if self.task_column is not None:
            tasks = task_column_of(X, self.task_column)
        elif groups is not None:
            tasks = groups
        check_consistent_length(X, y, tasks)
        cells = _make_cells(y, tasks)
        if self.n_splits > cells.n_samples:
            raise ValueError(f"n_splits={self.n_splits} is more than the number of samples, {cells.n_samples}.")
        self._check_sizes(cells)
        rng = check_random_state(self.random_state) if self.shuffle else None
        fold = _deal(cells, self.n_splits, rng) if cells.disjoint else _balance(cells, self.n_splits, rng)
        _check_spread(cells, fold)
        everyone = np.arange(cells.n_samples)
        return ((everyone[fold != f], everyone[fold == f]) for f in range(self.n_splits))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, tasks: Any = None) -> int:
        """Number of folds; scikit-learn passes the arguments of :meth:`split`, which change nothing."""
        return self.n_splits

    def _check_sizes(self, cells: Cells) -> None:
        sizes = np.bincount(cells.columns, minlength=len(cells.names))
        if len(sizes) == 0:
            raise ValueError("y has no label at all.")
        smallest = int(sizes.argmin())
        task, label = cells.names[smallest]
        where = "y" if task is None else f"Task {task!r}"
        if sizes[smallest] == 1:
            raise ValueError(
                f"{where} has a single sample of label {label!r}; cross-validation needs two or more, so that every "
                "training part has one."
            )
        if sizes[smallest] < self.n_splits:
            warnings.warn(
                f"{where} has only {sizes[smallest]} samples of label {label!r}, fewer than n_splits={self.n_splits}: "
                "some test parts will have none.",
                UserWarning,
                stacklevel=3,
            )


def _check_spread(cells: Cells, fold: IntArray) -> None:
    """Every training part must have some of every cell; samples of many cells may make that impossible."""
    present = np.zeros((len(cells.names), fold.max() + 1), dtype=bool)
    present[cells.columns, fold[cells.rows]] = True
    n_folds = present.sum(axis=1)
    if (n_folds < 2).any():
        task, label = cells.names[int(n_folds.argmin())]
        raise ValueError(
            f"All samples of label {label!r} of task {task!r} fall into one fold, and its training part has none; use "
            "more folds, or shuffle=True with another random_state."
        )


def make_splits(
    cv: Any, X: Any, y: Any, tasks: Any = None, groups: Any = None, random_state: Any = 0
) -> list[tuple[IntArray, IntArray]]:
    """Training and test parts for whatever scikit-learn's ``cv=`` may be; X is without a task column.

    An int is a :class:`MultiTaskStratifiedKFold` with that many folds, None one with five. They are shuffled: the rows
    of a file are often sorted, and then folds of neighbouring rows resemble neither each other nor what is to come.
    """
    if cv is None or isinstance(cv, numbers.Integral):
        seed = 0 if random_state is None else random_state
        cv = MultiTaskStratifiedKFold(5 if cv is None else int(cv), shuffle=True, random_state=seed)
    if isinstance(cv, MultiTaskStratifiedKFold) and groups is not None:
        raise ValueError(
            "The folds of MultiTaskStratifiedKFold, and of a number as cv=, do not keep groups together; for groups "
            "give a splitter that does, such as GroupKFold."
        )
    if isinstance(cv, MultiTaskStratifiedKFold) and tasks is not None:
        # its own task_column is no longer in X
        plain = MultiTaskStratifiedKFold(cv.n_splits, shuffle=cv.shuffle, random_state=cv.random_state)
        return list(plain.split(X, y, tasks=tasks))
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
    labels = as_vector_or_matrix(y)
    everyone = np.arange(len(labels))
    if labels.ndim == 2:
        if tasks is not None:
            raise ValueError(MATRIX_AND_TASKS)
        labelled = ~missing_labels(labels)
        names = column_names(y) or list(range(labels.shape[1]))
        parts = [(names[t], everyone[labelled[:, t]], labels[labelled[:, t], t]) for t in range(labels.shape[1])]
    else:
        if labels.dtype.kind == "f":
            check_classification_targets(labels)
        refuse_missing(labels, "y")
        parts = [(task, rows, labels[rows]) for task, rows in rows_of_tasks(tasks, len(labels))]
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


def as_vector_or_matrix(y: Any) -> AnyArray:
    """Labels (n_samples,) or (n_samples, n_tasks); a matrix of one column is a vector."""
    labels = as_labels(y, "y")
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got {labels.ndim}.")
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def rows_of_tasks(tasks: Any, n_samples: int) -> list[tuple[Any, IntArray]]:
    """The samples of each task, tasks in order of appearance; without tasks one task called None."""
    sources = as_sources(tasks, n_samples)
    if sources is None:
        return [(None, np.arange(n_samples))]
    return [(task, np.flatnonzero(equal_labels(sources, task))) for task in dict.fromkeys(listed(sources))]
