"""Decisions of fitted models for samples that have some columns from each other, as permutation importances need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from .._data.labels import Decided, Samples
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._exchange import Exchange, kernels_on, see_nothing_else
from .models import SeparateModel, SharedModel, TaskModel

PANEL_BYTES = 64 * 2**20  # size of the distances of one batch of samples


def exchanged(
    model: Any, samples: Samples, columns: Sequence[IntArray], donors: Sequence[IntArray]
) -> Iterator[Decided]:
    """For each group of columns, the decisions if sample i has these columns of a sample of its own task.

    There is one result for each of the ``donors``, arrays (n_samples,) that say which sample gives them to each.
    Distances between samples are updated, not computed again: it costs little more than evaluating the kernels.
    """
    if isinstance(model, SharedModel):
        n, tasks = len(samples), model.tasks
        copies = tasks.n_tasks if tasks.kind == "matrix" else 1
        repeated = [(n * np.arange(copies)[:, None] + own).ravel() for own in donors]
        for found in exchanged(model.whole, tasks.coded_samples(samples), columns, repeated):
            yield tasks.shaped(found)
        return
    groups = model.tasks.groups(samples)
    missing = Decided.missing(groups, len(samples))
    place = np.empty(len(samples), dtype=np.int64)
    parts = []
    for rows, asked in groups:
        place[rows] = np.arange(len(rows))
        parts += [(batch, slots, part) for batch, slots, part in _parts(model, samples, rows, asked)]
    for some, given in product(columns, donors):
        values = missing.values.copy()
        for batch, slots, part in parts:
            values[np.ix_(batch, slots)] = part.values(some, place[given[batch]])
        yield replace(missing, values=values)


def _parts(model: Any, samples: Samples, rows: IntArray, tasks: IntArray) -> Iterator[tuple[IntArray, Any, _Part]]:
    """Batches of the rows of some tasks: their rows, their slots, and their functions."""
    if isinstance(model, SeparateModel):
        places = [model.tasks.distinct_sources.index(model.tasks.sources[t]) for t in tasks.tolist()]
        for k in dict.fromkeys(places):
            slots = np.flatnonzero(np.array(places) == k)
            alone = model.models[k]
            for batch, own, part in _parts(alone, Samples(samples.data), rows, np.arange(alone.tasks.n_tasks)):
                yield batch, slots[own], part
        return
    dual = model.dual[tasks]
    used = np.unique(dual.indices)
    if not len(used):
        used = np.arange(1)  # a constant function, but of some support vector
    bank, right = model.bank, model.support.side(model.bank, used)
    left = bank.side(samples.data[rows])
    step = max(1, int(PANEL_BYTES // (8 * len(used) * max(1, bank.n_bases))))
    for first in range(0, len(rows), step):
        some = np.arange(first, min(first + step, len(rows)))
        part = _Part.of(model, left, right, some, dual[:, used].T.toarray(), model.intercepts[tasks])
        yield rows[some], np.arange(len(tasks)), part


@dataclass(frozen=True)
class _Part:
    """The functions of some tasks at some samples of a group.

    kernels: the kernels that may change, each with a matrix (n_rows, n_support) that multiplies them, or None.
    """

    bank: Any
    left: Any
    right: Any
    rows: IntArray
    theta: Array
    kernels: list[tuple[Exchange, AnyArray | None]]
    coefficients: Array
    intercepts: Array
    unchanged: dict[bytes, Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls, model: TaskModel, left: Any, right: Any, rows: IntArray, coefficients: Array, intercepts: Array
    ) -> _Part:
        bank: Any = model.bank
        kernels: list[tuple[Exchange, AnyArray | None]]
        if bank.coupled:
            M = bank.base.n_kernels
            same = left.codes[rows][:, None] == right.codes
            kernels = [
                (Exchange(bank.common, left.features, right.features, rows, model.theta[:M]), None),
                (Exchange(bank.own, left.own, right.own, rows, model.theta[M : 2 * M]), same),
            ]
        else:
            kernels = [(Exchange(bank, left, right, rows, model.theta), None)]
        return cls(bank, left, right, rows, model.theta, kernels, coefficients, intercepts)

    def values(self, columns: IntArray, donors: IntArray) -> Array:
        """f_t(x) of all tasks, (n_rows, n_tasks)."""
        bank = self.kernels[0][0].bank
        preparation = bank.evaluator.preparation
        columns = columns if preparation is None else preparation.expanded(columns)
        which = kernels_on(bank, columns)
        values = self._values_without(which)
        if len(self.rows) == len(self.left) and see_nothing_else(bank, columns, which):
            # whole samples exchange places as far as these kernels are concerned
            return values + (self._values_without(np.zeros_like(which)) - values)[donors]
        for kernels, factor in self.kernels:
            K = kernels.cross(columns, donors, which)
            values = values + (K if factor is None else K * factor) @ self.coefficients
        return values

    def _values_without(self, which: AnyArray) -> Array:
        """What the other kernels add, which exchanging these columns does not change."""
        key = which.tobytes()
        if key not in self.unchanged:
            changing = [which] * len(self.kernels) + ([np.zeros(1, dtype=bool)] if self.bank.coupled else [])
            theta = np.where(np.concatenate(changing), 0.0, self.theta)
            own = self.left.take(self.rows)
            self.unchanged[key] = self.bank.cross(own, self.right, theta) @ self.coefficients + self.intercepts
        return self.unchanged[key]
