"""The field of one combined kernel with its columns, and the choice between it and the fields of all kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..._tools.parallel import run_chunks
from ..._tools.typing import AnyArray, Array, IntArray
from .columns import READING, Columns, add_combined, add_forms, combine_into, make_room, take_rows, work_per_pair
from .fields import PAIRS_AT_ONCE, Field, KernelFields, by_column
from .store import Batch, ColumnStore, SingleSide

if TYPE_CHECKING:
    from .._blocks import GramBlocks


class CombinedField(Field):
    """The field of K_θ = Σ_m weight_m K_m and the columns of K_θ, in single precision; see :class:`Field`."""

    def __init__(self, store: ColumnStore):
        super().__init__(store)
        self.field = np.zeros(store.n_fields)
        self._columns = np.empty((1, store.values.shape[1]), dtype=np.float32)  # K_θ, in the places of the store
        self._made = [np.zeros_like(atom.stamp) for atom in store.atoms]  # stamp of the columns that are up to date
        self._forms: Array | None = np.zeros((self.gram.n_tasks, self.gram.n_kernels))

    def begin(self, weight: Array, dual: Array) -> None:
        if not np.array_equal(weight, self.weight):
            self.field[:] = self.dual[:] = self.traffic[:] = 0.0
            self._forms = None
            for made in self._made:
                made[:] = 0
        super().begin(weight, dual)

    def decisions(self, tasks: Sequence[int]) -> list[Array]:
        ptr = self.gram.layout.ptr
        return [self.field[self.store.place[ptr[t] : ptr[t + 1]]] for t in tasks]

    def prepare(self, entries: Mapping[int, IntArray]) -> None:
        super().prepare(entries)
        for g, columns in self.store.keep_columns(entries).items():
            self._refresh(g, columns)

    def _add(self, g: int, columns: IntArray, ptr: IntArray, at: IntArray, step: Array) -> None:
        n = len(self.store.atoms[g].positions)
        self._forms = None
        self.store.keep(g, columns)
        self._refresh(g, columns)

        def add(batch: Batch, begin: int, end: int) -> None:
            add_combined(batch.panel[0], batch.at, begin, end, ptr, batch.number, at, step, self.field)

        for batch in self._batches(g, columns):
            tiles = self._tiles(n, len(batch.number))
            run_chunks(add, [(batch, begin, end) for begin, end in tiles], self.n_jobs)

    def _refresh(self, g: int, columns: IntArray) -> None:
        """Evaluate those of the given columns of K_θ that have a place in the store and are not up to date."""
        atom, made = self.store.atoms[g], self._made[g]
        due = columns[(atom.column[columns] >= 0) & (made[columns] != atom.stamp[columns])]
        self._combine(g, due, self.store.values, atom.column[due], self._columns)
        made[due] = atom.stamp[due]

    def _batches(self, g: int, columns: IntArray) -> Iterator[Batch]:
        """Columns of K_θ over atom g, in the form of ``ColumnStore.batches``; those in the store are up to date."""
        for number, panel, at in self.store.batches(g, columns):
            if panel is self.store.values:
                yield Batch(number, self._columns, at)
            else:
                out = np.empty((1, panel.shape[1]), dtype=np.float32)
                self._combine(g, columns[number], panel, at, out)
                yield Batch(number, out, at)

    def _combine(self, g: int, columns: IntArray, panel: AnyArray, row_at: IntArray, out: AnyArray) -> None:
        """Evaluate columns of K_θ over atom g and write them to the same places of ``out``."""
        atom, weight = self.store.atoms[g], self.weight
        n = len(atom.positions)
        self.store.n_values += n * len(columns)
        left, right = SingleSide.of(self.gram.side, self.gram.samples[atom.block][columns]), self.store.side_of(g)
        pairs = Columns(panel, row_at, left.squares, left.scale, right.squares, right.scale)

        def work(first: int, last: int) -> None:
            combine_into(self.store.program, weight, pairs, first, last, n, make_room(len(weight)), out[0])

        some = max(1, min(-(-len(columns) // self.n_jobs), int(PAIRS_AT_ONCE // n)))
        run_chunks(work, list(pairwise([*range(0, len(columns), some), len(columns)])), self.n_jobs)

    def _fill(self, t: int, idx: IntArray, K: AnyArray) -> None:
        for g in self.store.atoms_of[t]:
            own, at = self.store.within(g, idx)
            for number, columns, row_at in self._batches(g, idx):
                take_rows(columns[0], row_at, at, number, own, K.reshape(len(idx), -1))

    def quadratic_forms(self) -> Array:
        if self._forms is None:
            self._forms = np.zeros((self.gram.n_tasks, self.gram.n_kernels))
            there = np.flatnonzero(self.dual)
            idx, v = self.gram.layout.idx[there], self.dual[there]
            of_task = np.searchsorted(there, self.gram.layout.ptr)
            for g, atom in enumerate(self.store.atoms):
                columns, ptr, owner, entries = by_column(atom.tasks, of_task, idx)
                if len(columns):
                    self._forms[atom.tasks] += self._forms_over(g, columns, ptr, owner, v[entries])
        return self._forms.copy()

    def _forms_over(self, g: int, columns: IntArray, ptr: IntArray, owner: IntArray, v: Array) -> Array:
        """The part of the forms of the tasks of atom g from pairs of a column and an earlier sample of the atom."""
        atom, side, store = self.store.atoms[g], self.gram.side, self.store
        own, rows = store.within(g, columns)
        every = np.zeros((len(atom.tasks), len(columns)))
        every[owner, np.repeat(np.arange(len(columns)), np.diff(ptr))] = v
        dual = np.ascontiguousarray(every[:, own])
        inside = np.zeros(len(columns), dtype=bool)  # whether a column is also a row
        inside[own] = True
        right = SingleSide.of(side, atom.samples[rows])
        shape = len(atom.tasks), self.gram.n_kernels
        total = np.zeros(shape)

        def work(pairs: Columns, number: IntArray, last: IntArray, first: int, end: int) -> Array:
            G, room = np.zeros(shape), make_room(shape[1])
            chosen = np.empty((len(pairs.panel), len(rows)), dtype=np.float32)
            spans, entries = (rows, last, inside[number]), (ptr, number, owner, v)
            add_forms(store.program, pairs, first, end, *spans, chosen, room, *entries, dual, G)
            return G

        store.keep(g, columns)
        for number, panel, row_at in store.batches(g, columns):
            left = SingleSide.of(side, self.gram.samples[atom.block][columns[number]])
            pairs = Columns(panel, row_at, left.squares, left.scale, right.squares, right.scale)
            last = np.searchsorted(columns[own], columns[number], side="right")  # rows up to the diagonal
            store.n_values += int(last.sum())
            some = max(1, int(PAIRS_AT_ONCE // max(1, len(rows)))) if self.n_jobs == 1 else -(-len(number) // 16)
            edges = pairwise([*range(0, len(number), some), len(number)])
            for G in run_chunks(work, [(pairs, number, last, i, j) for i, j in edges], self.n_jobs):
                total += G
        return total


class Fields:
    """Both kinds of fields over one column store; :meth:`best` is the one that is expected to be less work."""

    def __init__(self, gram: GramBlocks, double: bool = False):
        self.store = ColumnStore(gram, double)
        self.double = self.store.double
        self._every = KernelFields(self.store)
        self._combined = None if self.double else CombinedField(self.store)
        self._combines = False  # a first sweep tries many variables, and most may stay at zero

    @property
    def best(self) -> Field:
        return self._combined if self._combined is not None and self._combines else self._every

    def note(self, used: Field) -> None:
        """Compare the work of the last sweep with what it would have been with the other kind."""
        if not used.moved:
            return
        every, some = (work_per_pair(self.store.program, w) for w in (np.ones_like(used.weight), used.weight))
        touched, _ = self.store.count_pairs(used.touched)
        _, of_support = self.store.count_pairs(used.dual != 0)
        changes = every * used.moved + some * used.among_pairs
        columns = some * touched + every * of_support + READING * used.moved
        self._combines = columns < changes
