"""Fields: the functions of all tasks at all their samples, updated column by column as the dual changes.

The field of task t under kernel m is, at each sample i of the task,

    F_tm(i) = Σ_j v_tj k_m(x_i, x_j).

It gives a sweep all it needs without a Gram matrix: decisions at any θ are Σ_m θ_m F_tm(i), and quadratic forms v'K_m v
are Σ_i v_ti F_tm(i). There are two ways to have it:

:class:`KernelFields` keep F of every kernel. When the dual changes, they need the columns of the samples whose v_tj
changed, under all kernels, once per change. A new θ costs nothing.

:class:`~paretomkl.gram._large.combined.CombinedField` keeps Σ_m θ_m F_tm only, and the columns of K_θ themselves. A new
θ needs the columns of all support vectors, under the kernels with weight; after that, changes of the dual are cheap.
Forms are evaluated at the end, among support vectors.

The first is less work if most variables are at their bounds and stay there, the second if most are free and change
with every θ. :class:`~paretomkl.gram._large.combined.Fields` counts the work of both, and chooses before each sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from ..._tools.compiled import njit
from ..._tools.parallel import run_chunks
from ..._tools.typing import AnyArray, Array, IntArray
from ...kernels._evaluation import TILE, Pairs, Program, Tile, combine_rows, make_tile, mirror, next_tile
from .columns import Columns, add_single_columns, combine_columns, make_room
from .store import ColumnStore, SingleSide

_MEASURED = 16  # support vectors, and samples, of a task at which errors of single precision are measured
MARGIN = 3.0  # how many times the root mean square of the errors of single precision all of them count as
PAIRS_AT_ONCE = 2e7  # pairs of samples in one compiled call, which delays an interrupt


class Field:
    """The functions of all tasks of a column store for one dual v, initially zero; a subclass says how it is kept.

    Attributes
    ----------
    dual : flat array over the samples of all tasks
        The current v; only :meth:`move_to` changes it.
    weight : array of shape (n_kernels,)
        The weights of the kernels, before their factors, in decisions and matrices.
    moved, among_pairs : int
        Pairs of samples in all changes of the dual, and in the matrices of :meth:`among`.
    touched : flat array of bool
        The samples whose columns were needed since the last :meth:`begin`.
    traffic : array of shape (n_tasks,)
        The additions to each value of a field since it was zero, each times Σ_i |v_i| at that time: this many units of
        rounding, times the size of a kernel value, may have accumulated.
    """

    def __init__(self, store: ColumnStore):
        self.store, self.gram, self.n_jobs = store, store.gram, store.gram.n_jobs
        self.double = store.double
        self.dual = np.zeros(self.gram.layout.ptr[-1])
        self.touched = np.zeros(len(self.dual), dtype=bool)
        self.weight = np.zeros(self.gram.n_kernels)
        self.moved = self.among_pairs = 0
        self.traffic = np.zeros(self.gram.n_tasks)

    @property
    def noise(self) -> Array:
        """``traffic`` relative to Σ_i |v_i|, see :func:`~paretomkl.kernels._rounding.errors_of_duals`."""
        size = self._sizes(self.dual)
        return np.divide(self.traffic, size, out=np.zeros_like(size), where=size > 0)

    def _sizes(self, dual: Array) -> Array:
        return np.add.reduceat(np.abs(dual), self.gram.layout.ptr[:-1])

    def single_errors(self, weight: Array) -> tuple[Array, Array]:
        """What single precision adds to the forms, (n_tasks, n_kernels), and to the decisions of each task, (n_tasks,).

        ``weight`` are the weights of the kernels with their factors. The errors of decisions are measured at some
        samples of each task. Errors of all samples enter only in sums of their sizes, so that all of them count as the
        largest measured, or as MARGIN times the root mean square if that is more.
        """
        ptr, idx = self.gram.layout.ptr, self.gram.layout.idx
        forms, decisions = np.zeros((len(ptr) - 1, self.gram.n_kernels)), np.zeros(len(ptr) - 1)
        for t in range(len(ptr) - 1):
            mine = slice(ptr[t], ptr[t + 1])
            support = np.flatnonzero(self.dual[mine])
            if not len(support):
                continue
            everyone = np.arange(ptr[t + 1] - ptr[t])
            some = [np.linspace(0, len(part) - 1, _MEASURED).astype(int) for part in (support, everyone)]
            measured = np.union1d(support[some[0]], everyone[some[1]])
            v, numbers = self.dual[mine][support], self.store.samples_of(t, idx[mine])
            lost = self.store.lost_digits(numbers[support], v, numbers[measured])
            forms[t] = np.abs(v).sum() * _typical(lost) * self.gram.bank.factor
            decisions[t] = _typical(weight @ lost)
        return forms, decisions

    def exact_decisions(self, t: int, rows: IntArray, theta: Array) -> Array:
        """The decisions of task t at some of its samples, for kernel weights θ, in double precision."""
        mine = slice(self.gram.layout.ptr[t], self.gram.layout.ptr[t + 1])
        support, side = np.flatnonzero(self.dual[mine]), self.gram.side
        numbers = self.store.samples_of(t, self.gram.layout.idx[mine])
        return (
            self.gram.bank.cross(side.take(numbers[rows]), side.take(numbers[support]), theta)
            @ self.dual[mine][support]
        )

    @property
    def largest(self) -> int:
        """Number of samples whose matrix is as large as the store of columns."""
        return int((self.store.most_bytes / self.store.values.itemsize / self.n_jobs) ** 0.5)

    def begin(self, weight: Array, dual: Array) -> None:
        """Start a sweep at these weights and this dual."""
        self.weight = weight
        self.touched[:] = dual != 0
        self.move_to(dual)
        self.moved = self.among_pairs = 0

    def decisions(self, tasks: Sequence[int]) -> list[Array]:
        """Σ_m weight_m F_tm at the samples of each of these tasks."""
        raise NotImplementedError

    def quadratic_forms(self) -> Array:
        """v_t'K_m v_t before the factors of the kernels, (n_tasks, n_kernels)."""
        raise NotImplementedError

    def _add(self, g: int, columns: IntArray, ptr: IntArray, at: IntArray, step: Array) -> None:
        """Add columns of the block to the field over atom g.

        Column c has the entries ptr[c] to ptr[c+1]-1 of ``at``, the start of the field, and of ``step``.
        """
        raise NotImplementedError

    def move_to(self, dual: Array) -> None:
        """Update the field to another dual."""
        changed = np.flatnonzero(dual != self.dual)
        step, idx = dual[changed] - self.dual[changed], self.gram.layout.idx[changed]
        self.touched[changed] = True
        of_task = np.searchsorted(changed, self.gram.layout.ptr)  # start of the changes of each task
        moved = np.flatnonzero(np.diff(of_task))
        self.traffic += 2 * np.diff(of_task) * (self._sizes(self.dual) + self._sizes(dual))
        for g in sorted({g for t in moved for g in self.store.atoms_of[t]}):
            atom = self.store.atoms[g]
            columns, ptr, owner, entries = by_column(atom.tasks, of_task, idx)
            self.moved += len(columns) * len(atom.positions)
            self._add(g, columns, ptr, atom.at[owner], step[entries])
        self.dual[:] = dual

    def prepare(self, entries: Mapping[int, IntArray]) -> None:
        """Prepare :meth:`among` for some samples of each task."""
        for t, some in entries.items():
            self.touched[self.gram.layout.ptr[t] + some] = True
            self.among_pairs += len(some) ** 2 // 2

    @contextmanager
    def among(self, t: int, entries: IntArray) -> Iterator[AnyArray]:
        """The flat matrix Σ_m weight_m K_m among some samples of task t, valid inside the ``with`` block."""
        idx, n = self.gram.layout.idx[self.gram.layout.ptr[t] + entries], len(entries)
        with self.store.room.lend(self.store.values.dtype, n * n) as K:
            self._fill(t, idx, K)
            yield K

    def _fill(self, t: int, idx: IntArray, K: AnyArray) -> None:
        """Fill the matrix among the samples at positions idx of the block of task t."""
        raise NotImplementedError

    def _tiles(self, n: int, n_columns: int) -> list[tuple[int, int]]:
        """Ranges of n rows for threads, small enough that an interrupt is noticed soon."""
        tiles = max(1, min(-(-n // (TILE * self.n_jobs)), int(PAIRS_AT_ONCE // (TILE * n_columns))))
        return list(pairwise([*range(0, n, TILE * tiles), n]))


class KernelFields(Field):
    """The fields of all kernels, see :class:`Field`."""

    def __init__(self, store: ColumnStore):
        super().__init__(store)
        self.fields = np.zeros((self.gram.n_kernels, store.n_fields))

    def decisions(self, tasks: Sequence[int]) -> list[Array]:
        field, ptr = self.weight @ self.fields, self.gram.layout.ptr
        return [field[self.store.place[ptr[t] : ptr[t + 1]]] for t in tasks]

    def quadratic_forms(self) -> Array:
        forms = np.zeros((self.gram.n_tasks, self.gram.n_kernels))
        ptr = self.gram.layout.ptr
        for t in range(self.gram.n_tasks):
            mine = slice(ptr[t], ptr[t + 1])
            there = np.flatnonzero(self.dual[mine])
            forms[t] = self.fields[:, self.store.place[mine][there]] @ self.dual[mine][there]
        return forms

    def _add(self, g: int, columns: IntArray, ptr: IntArray, at: IntArray, step: Array) -> None:
        atom = self.store.atoms[g]
        n = len(atom.positions)
        self.store.keep(g, columns)
        for number, panel, row_at in self.store.batches(g, columns):
            self.store.n_values += n * len(number)
            samples = self.gram.samples[atom.block][columns[number]]
            add = self._adder(g, panel, row_at, samples, (ptr, number, at, step))
            run_chunks(add, self._tiles(n, len(number)), self.n_jobs)

    def _adder(self, g: int, panel: AnyArray, row_at: IntArray, samples: IntArray, entries: Any) -> Callable:
        """A function of a range of rows that adds the columns of these samples to the fields over atom g."""
        store, side, n_kernels = self.store, self.gram.side, self.gram.n_kernels
        if not self.double:
            left, right = SingleSide.of(side, samples), store.side_of(g)
            columns = Columns(panel, row_at, left.squares, left.scale, right.squares, right.scale)
            return lambda begin, end: add_single_columns(
                store.program, columns, begin, end, make_room(n_kernels), *entries, self.fields
            )
        own = store.atoms[g].samples
        number, here, there = np.arange(len(own)), side.norms(samples), side.norms(own)

        def work(begin: int, end: int) -> None:
            first, last = np.empty((2, len(samples)), dtype=np.int64)
            pairs = Pairs(panel, row_at, number, first, last, here, there)
            tile = make_tile(len(panel), n_kernels)
            add_columns(store.program, pairs, begin, end, tile, *entries, self.fields)

        return work

    def _fill(self, t: int, idx: IntArray, K: AnyArray) -> None:
        n, store, side = len(idx), self.store, self.gram.side
        samples = store.samples_of(t, idx)
        with store.room.lend(store.values.dtype, len(store.values) * n * n) as flat:
            panel = flat.reshape(len(store.values), n, n)
            self._collect(t, idx, panel)
            number, flat = np.arange(n), flat.reshape(len(panel), -1)
            if self.double:
                which = side.norms(samples)
                pairs = Pairs(flat, n * number, number, np.zeros_like(number), number + 1, which, which)
                tile = make_tile(len(panel), len(self.weight))
                combine_rows(store.program, self.weight, pairs, 0, n, tile, K)
            else:
                _, squares, scale = SingleSide.of(side, samples)
                columns = Columns(flat, n * number, squares, scale, squares, scale)
                combine_columns(store.program, self.weight, columns, make_room(len(self.weight)), K)
        mirror(K, np.zeros(1, dtype=np.int64), np.array([n]))

    def _collect(self, t: int, idx: IntArray, panel: AnyArray) -> None:
        """Fill panel (n_bases, n, n) with the lower triangle of base values among samples idx of task t's block."""
        lost = np.zeros(len(idx), dtype=bool)
        for g in self.store.atoms_of[t]:
            column = self.store.atoms[g].column[idx]
            own, at = self.store.within(g, idx)
            gather(self.store.values, column, at, own, panel)
            lost |= column < 0
        if lost.any():  # whole columns are stored only for variables that have moved
            rows, samples = np.flatnonzero(lost), self.store.samples_of(t, idx)
            panel[:, rows] = self.store.measure(samples[rows], samples)


def by_column(tasks: IntArray, of_task: IntArray, idx: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The entries of some tasks, sorted by column.

    Entries of_task[t] to of_task[t+1]-1 of idx belong to task t. Returns the columns, the start of the entries of each
    and their end, the number among ``tasks`` of the task of each entry, and the entry.
    """
    own = [np.arange(of_task[t], of_task[t + 1]) for t in tasks]
    owner = np.repeat(np.arange(len(tasks)), [len(entries) for entries in own])
    entries = np.concatenate(own)
    order = np.argsort(idx[entries], kind="stable")
    columns, first = np.unique(idx[entries[order]], return_index=True)
    return columns, np.append(first, len(entries)), owner[order], entries[order]


# ------------------------------------------------------------------------------------------- compiled
@njit(fastmath={"contract"})
def add_columns(
    program: Program,
    pairs: Pairs,
    begin: int,
    end: int,
    tile: Tile,
    ptr: IntArray,
    number: IntArray,
    at: IntArray,
    step: Array,
    fields: Array,
) -> None:
    """fields[m, at_e + r] += step_e k_m(column c, row r) for rows begin ≤ r < end and all entries e of all columns c.

    Column c has the entries ptr[number[c]] to ptr[number[c] + 1] - 1.
    """
    first, last = pairs.begin, pairs.end
    cursor, needed, _, _, _, values, _ = tile
    n_columns = len(first)
    for m in range(len(needed)):
        needed[m] = 1
    for r in range(begin, end, TILE):  # the fields of these rows stay in the cache while all columns are added
        for c in range(n_columns):
            first[c] = r
            last[c] = min(r + TILE, end)
        length = last[0] - r
        cursor[0], cursor[1] = 0, 0
        while cursor[0] < n_columns:
            c, offset = cursor[0], cursor[1]
            n = next_tile(program, pairs, n_columns, tile)
            done = 0
            while done < n:
                some = min(n - done, length - offset)
                for e in range(ptr[number[c]], ptr[number[c] + 1]):
                    factor = step[e]
                    for m in range(len(needed)):
                        target = fields[m, at[e] + r + offset :]
                        source = values[m, done:]
                        for k in range(some):
                            target[k] += factor * source[k]
                done += some
                offset += some
                if offset == length:
                    c, offset = c + 1, 0


@njit()
def gather(store: AnyArray, column: IntArray, position: IntArray, own: IntArray, panel: AnyArray) -> None:
    """panel[b, i, own_k] = store[b, column_i + position_k] for own_k ≤ i, for the rows i whose column is stored."""
    for b in range(len(panel)):
        for i in range(len(column)):
            if column[i] >= 0:
                source = store[b, column[i] :]
                target = panel[b, i]
                for k in range(len(own)):
                    if own[k] > i:
                        break
                    target[own[k]] = source[position[k]]


def _typical(errors: Array) -> Array:
    """What each of many errors may count as in a sum, given some of them along the last axis."""
    return np.maximum(errors.max(axis=-1), MARGIN * np.sqrt(np.mean(errors**2, axis=-1)))
