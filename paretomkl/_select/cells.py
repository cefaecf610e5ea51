"""Cells: which samples have which label of which task, and how to spread them evenly over folds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from .._data.tasks import (
    as_labels,
    as_sources,
    codes_of,
    column_names,
    listed,
    missing_labels,
    refuse_missing,
    rows_by_code,
)
from .._tools.typing import AnyArray, IntArray
from .._tools.wording import literal

MATRIX_AND_TASKS = "Pass a matrix y, whose columns are the tasks, or the task of each row, not both."


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

    def by_label(self) -> Cells:
        """The same cells with those of a label next to each other, so that labels are distributed evenly."""
        labels = [label for _, label in self.names]
        order = sorted(range(len(labels)), key=lambda cell: labels.index(labels[cell]))
        place = np.empty(len(order), dtype=int)
        place[order] = np.arange(len(order))
        return replace(self, names=[self.names[cell] for cell in order], columns=place[self.columns])

    def of_all(self) -> Cells:
        """One cell for each label, or a single one for regression, whatever the task."""
        known = list(dict.fromkeys(label for _, label in self.names))
        place = np.array([known.index(label) for _, label in self.names], dtype=int)
        return replace(self, names=[(None, label) for label in known], columns=place[self.columns])

    def where(self, cell: int) -> str:
        """The name of the task of a cell in messages."""
        task = self.names[cell][0]
        return "y" if task is None else f"Task {literal(task)}"


def cells_of(X: object, y: object, tasks: object, by_label: bool) -> Cells:
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


def deal(cells: Cells, n_splits: int, rng: np.random.RandomState | None) -> IntArray:
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


def balance(cells: Cells, n_splits: int, rng: np.random.RandomState | None, groups: IntArray | None = None) -> IntArray:
    """Folds of samples in several cells, or of whole groups: minimise Σ_c Σ_f (n_cf / n_c)².

    A greedy start, and then single moves. ``groups`` (n_samples,) are the numbers of the groups to keep together.
    """
    n = cells.n_samples
    unit = np.arange(n) if groups is None else groups  # what is moved as a whole
    n_units = int(unit.max()) + 1
    everyone, whole = np.arange(n_units), len(cells.names)  # all samples form a cell too, for folds of even size
    rows, columns = np.append(unit[cells.rows], unit), np.append(cells.columns, np.full(n, whole))
    size = np.bincount(columns, minlength=whole + 1)
    member = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_units, whole + 1))
    member.sum_duplicates()
    weighted = csr_array((member.data / size[member.indices] ** 2, member.indices, member.indptr), shape=member.shape)
    own = np.bincount(np.repeat(everyone, np.diff(member.indptr)), weighted.data * member.data, minlength=n_units)
    if groups is None:  # samples of rare cells first
        rank = np.full(n, n)
        np.minimum.at(rank, rows, size[columns])
    else:  # groups that are large parts of their cells first
        rank = np.unique(-own.round(12), return_inverse=True)[1]
    order = everyone if rng is None else rng.permutation(n_units)

    fold = np.zeros(n_units, dtype=int)
    count = np.zeros((whole + 1, n_splits))
    for i in order[np.argsort(rank[order], kind="stable")]:
        mine = slice(member.indptr[i], member.indptr[i + 1])
        cells_of_i = member.indices[mine]
        fold[i] = (weighted.data[mine] @ count[cells_of_i]).argmin()
        count[cells_of_i, fold[i]] += member.data[mine]

    # moving unit i from f to g changes half the cost by Σ_c m_ic (n_cg − n_cf + m_ic) / n_c² over its cells
    load = weighted @ count
    while True:
        change = load - (load[everyone, fold] - own)[:, None]
        change[everyone, fold] = 0.0
        i, g = divmod(int(change.argmin()), n_splits)
        if change[i, g] > -1e-12:  # only rounding is left
            return fold[unit]
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
