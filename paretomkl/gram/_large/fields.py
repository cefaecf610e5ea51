"""Fields: the functions of all tasks at all their samples, updated column by column as the dual changes.

The field of task t under kernel m is, at each sample i of the task,

    F_tm(i) = Σ_j v_tj k_m(x_i, x_j).

It gives a sweep all it needs without a Gram matrix: decisions at any θ are Σ_m θ_m F_tm(i), and quadratic forms v'K_m v
are Σ_i v_ti F_tm(i). There are two ways to have it:

:class:`KernelFields` keep F of every kernel. When the dual changes, they need the columns of the samples whose v_tj
changed, under all kernels, once per change. A new θ costs nothing.

:class:`CombinedField` keeps Σ_m θ_m F_tm only, and the columns of K_θ themselves. A new
θ needs the columns of all support vectors, under the kernels with weight; after that, changes of the dual are cheap.
Forms are evaluated at the end, among support vectors.

The first is less work if most variables are at their bounds and stay there, the second if most are free and change
with every θ. :class:`Fields` counts the work of both, and chooses before each sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._tools.compiled import njit
from ..._tools.running import run_chunks
from ..._tools.typing import AnyArray, Array, IntArray
from ...kernels._evaluation import TILE, Pairs, combine_rows, make_tile, mirror, store_rows
from ...kernels._fitted import PANEL_BYTES
from ...kernels._rounding import UNIT
from .distances import ColumnBatch, ColumnStore
from .single_precision import (
    READING,
    ColumnEntries,
    SingleColumns,
    SingleSide,
    Triangle,
    add_columns,
    add_combined,
    add_forms,
    combine_columns,
    take_rows,
    work_per_pair,
)

if TYPE_CHECKING:
    from .._blocks import GramBlocks

_DOUBLE = 2.0  # cost of a pair of a field in double precision, relative to single precision
_MEASURED = 16  # support vectors, and samples, of a task at which errors of single precision are measured
FEW_ERRORS = 1e-11  # of updates, relative to Σ_i |v_i|: a field that is made from scratch hardly has fewer
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
    device : torch.device or None
        Where it is.
    traffic : array of shape (n_tasks,)
        The additions to each value of a field since it was zero, each times Σ_i |v_i| at that time: this many units of
        rounding, times the size of a kernel value, may have accumulated.
    """

    device: Any = None

    def __init__(self, store: Any):
        self.store, self.n_jobs = store, store.gram.n_jobs
        self.double = store.double
        self.dual = np.zeros(self.gram.layout.ptr[-1])
        self.touched = np.zeros(len(self.dual), dtype=bool)
        self.weight = np.zeros(self.gram.n_kernels)
        self.moved = self.among_pairs = 0
        self.traffic, self._size = np.zeros((2, self.gram.n_tasks))  # the second is Σ_i |v_i|

    @property
    def gram(self) -> GramBlocks:
        """The Gram store that uses the field now; copies of it with other factors use it, too."""
        return self.store.gram

    @property
    def noise(self) -> Array:
        """``traffic`` relative to Σ_i |v_i|, see :func:`~paretomkl.kernels._rounding.errors_of_duals`."""
        size = self._size
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
            support, measured = np.flatnonzero(self.dual[mine]), measured_samples(self.dual[mine])
            if not len(support):
                continue
            v, numbers = self.dual[mine][support], self.store.samples_of(t, idx[mine])
            lost = self.store.lost_digits(numbers[support], v, numbers[measured])
            forms[t] = np.abs(v).sum() * typical(lost) * self.gram.bank.factor
            decisions[t] = typical(weight @ lost)
        return forms, decisions

    def exact_decisions(self, wanted: Sequence[tuple[int, IntArray]], theta: Array) -> list[Array]:
        """The decisions of each of these tasks at some of its samples, for kernel weights θ, in double precision."""
        found, side = [], self.gram.side
        for t, rows in wanted:
            mine = slice(self.gram.layout.ptr[t], self.gram.layout.ptr[t + 1])
            support, numbers = np.flatnonzero(self.dual[mine]), self.store.samples_of(t, self.gram.layout.idx[mine])
            K = self.gram.bank.cross(side.take(numbers[rows]), side.take(numbers[support]), theta)
            found.append(K @ self.dual[mine][support])
        return found

    @property
    def largest(self) -> int:
        """Number of samples whose matrix is as large as the store of columns."""
        return int((self.store.most_bytes / (8 if self.double else 4) / self.n_jobs) ** 0.5)

    def begin(self, weight: Array, dual: Array) -> None:
        """Start a sweep at these weights and this dual."""
        self.weight = weight
        self.touched[:] = dual != 0
        self.move_to(dual)
        self.moved = self.among_pairs = 0

    def _forget(self) -> None:
        """Belong to the zero dual again."""
        self.dual[:] = self.traffic[:] = self._size[:] = 0.0

    def renew(self) -> bool:
        """Compute the field from scratch if updates may have left errors, as after a dual that was much larger."""
        if (UNIT * self.noise <= FEW_ERRORS).all():
            return False
        dual = self.dual.copy()
        self._forget()
        self.move_to(dual)
        return True

    def decisions(self, tasks: Sequence[int]) -> list[Array]:
        """Σ_m weight_m F_tm at the samples of each of these tasks."""
        raise NotImplementedError

    def quadratic_forms(self) -> Array:
        """v_t'K_m v_t before the factors of the kernels, (n_tasks, n_kernels)."""
        raise NotImplementedError

    def _add(self, g: int, columns: IntArray, changes: ColumnEntries) -> None:
        """Add columns of the block to the field over atom g; each change has the start of its field."""
        raise NotImplementedError

    def move_to(self, dual: Array) -> None:
        """Update the field to another dual."""
        changed = np.flatnonzero(dual != self.dual)
        step, idx = dual[changed] - self.dual[changed], self.gram.layout.idx[changed]
        of_task = self.note_changes(changed, dual)
        moved = np.flatnonzero(np.diff(of_task))
        for g in sorted({g for t in moved for g in self.store.atoms_of[t]}):
            atom = self.store.atoms[g]
            columns, changes = by_column(atom.tasks, of_task, idx, step)
            self.moved += len(columns) * len(atom.positions)
            self._add(g, columns, changes._replace(place=atom.at[changes.place]))
        self.dual[:] = dual

    def note_changes(self, changed: IntArray, dual: Array) -> IntArray:
        """Record that these entries of the dual change to those of ``dual``; returns the first entry of each task."""
        self.touched[changed] = True
        of_task, before = np.searchsorted(changed, self.gram.layout.ptr), self._size
        self._size = self._sizes(dual)
        self.traffic += 2 * np.diff(of_task) * (before + self._size)
        return of_task

    def prepare(self, entries: Mapping[int, IntArray]) -> None:
        """Prepare :meth:`among` for some samples of each task."""
        for t, some in entries.items():
            self.touched[self.gram.layout.ptr[t] + some] = True
            self.among_pairs += len(some) ** 2 // 2

    @contextmanager
    def among(self, t: int, entries: IntArray) -> Iterator[AnyArray]:
        """The flat matrix Σ_m weight_m K_m among some samples of task t, valid inside the ``with`` block."""
        idx, n = self.gram.layout.idx[self.gram.layout.ptr[t] + entries], len(entries)
        with self.store.spare.lend(self.store.values.dtype, n * n) as K:
            self._fill(t, idx, K)
            yield K

    def _fill(self, t: int, idx: IntArray, K: AnyArray) -> None:
        """Fill the matrix among the samples at positions idx of the block of task t."""
        raise NotImplementedError

    def _tiles(self, n: int, n_columns: int) -> list[tuple[int, int]]:
        """Ranges of n rows for threads, small enough that an interrupt is noticed soon."""
        tiles = max(1, min(-(-n // (TILE * self.n_jobs)), int(PAIRS_AT_ONCE // (TILE * n_columns))))
        return _ranges(n, TILE * tiles)


class KernelFields(Field):
    """The fields of all kernels, see :class:`Field`."""

    def __init__(self, store: ColumnStore):
        super().__init__(store)
        self.fields = np.zeros((self.gram.n_kernels, store.n_fields))

    def _forget(self) -> None:
        super()._forget()
        self.fields[:] = 0.0

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

    def _add(self, g: int, columns: IntArray, changes: ColumnEntries) -> None:
        atom, store = self.store.atoms[g], self.store
        n = len(atom.positions)
        store.keep(g, columns)
        for number, panel, at in store.batches(g, columns):
            store.n_values += n * len(number)
            samples, mine = self.gram.samples[atom.block][columns[number]], changes.take(number)
            if self.double:
                add = partial(self._add_double, g, panel, at, samples, mine)
            else:
                columns_of_batch = store.columns(panel, at, samples, store.side_of(g))
                add = partial(self._add_single, columns_of_batch, mine)
            run_chunks(add, self._tiles(n, len(number)), self.n_jobs)

    def _add_single(self, columns: SingleColumns, changes: ColumnEntries, begin: int, end: int) -> None:
        add_columns(self.store.program, columns, changes, begin, end, self.fields)

    def _add_double(
        self, g: int, panel: Array, at: IntArray, samples: IntArray, changes: ColumnEntries, begin: int, end: int
    ) -> None:
        """Add columns of these samples to rows begin..end-1 of the fields over atom g, in double precision."""
        side, own, n, n_kernels = self.gram.side, self.store.atoms[g].samples, end - begin, self.gram.n_kernels
        places, W = changes.dense()
        for first, last in _ranges(len(samples), max(1, int(PANEL_BYTES // (8 * n_kernels * n)))):
            some, rows = last - first, np.arange(len(own))
            norms, of_rows = side.norms(samples[first:last]), side.norms(own)
            pairs = Pairs(panel, at[first:last], rows, np.full(some, begin), np.full(some, end), norms, of_rows)
            stack = np.empty((n_kernels, some, n))
            tile = make_tile(len(panel), n_kernels)
            store_rows(self.store.program, pairs, 0, some, tile, stack.reshape(n_kernels, -1))
            for place, values in zip(places, W[:, first:last], strict=True):
                self.fields[:, place + begin : place + end] += values @ stack

    def _fill(self, t: int, idx: IntArray, K: AnyArray) -> None:
        n, store, side = len(idx), self.store, self.gram.side
        samples = store.samples_of(t, idx)
        with store.spare.lend(store.values.dtype, len(store.values) * n * n) as flat:
            panel = flat.reshape(len(store.values), n, n)
            self._collect(t, idx, panel)
            number, flat = np.arange(n), flat.reshape(len(panel), -1)
            if self.double:
                which = side.norms(samples)
                pairs = Pairs(flat, n * number, number, np.zeros_like(number), number + 1, which, which)
                tile = make_tile(len(panel), len(self.weight))
                combine_rows(store.program, self.weight, pairs, 0, n, tile, K, False)
            else:
                columns = store.columns(flat, n * number, samples, SingleSide.of(side, samples))
                combine_columns(store.program, self.weight, columns, 0, n, number + 1, K)
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
            self._forget()
            for made in self._made:
                made[:] = 0
        super().begin(weight, dual)

    def _forget(self) -> None:
        super()._forget()
        self.field[:] = 0.0
        self._forms = None

    def decisions(self, tasks: Sequence[int]) -> list[Array]:
        ptr = self.gram.layout.ptr
        return [self.field[self.store.place[ptr[t] : ptr[t + 1]]] for t in tasks]

    def prepare(self, entries: Mapping[int, IntArray]) -> None:
        super().prepare(entries)
        for g, columns in self.store.keep_columns(entries).items():
            self._refresh(g, columns)

    def _add(self, g: int, columns: IntArray, changes: ColumnEntries) -> None:
        n = len(self.store.atoms[g].positions)
        self._forms = None
        self.store.keep(g, columns)
        self._refresh(g, columns)

        def add(batch: ColumnBatch, mine: ColumnEntries, begin: int, end: int) -> None:
            add_combined(batch.panel[0], batch.at, mine, begin, end, self.field)

        for batch in self._batches(g, columns):
            tiles, mine = self._tiles(n, len(batch.number)), changes.take(batch.number)
            run_chunks(add, [(batch, mine, begin, end) for begin, end in tiles], self.n_jobs)

    def _refresh(self, g: int, columns: IntArray) -> None:
        """Evaluate those of the given columns of K_θ that have a place in the store and are not up to date."""
        atom, made = self.store.atoms[g], self._made[g]
        due = columns[(atom.column[columns] >= 0) & (made[columns] != atom.stamp[columns])]
        self._combine(g, due, self.store.values, atom.column[due], self._columns)
        made[due] = atom.stamp[due]

    def _batches(self, g: int, columns: IntArray) -> Iterator[ColumnBatch]:
        """Columns of K_θ over atom g, in the form of ``ColumnStore.batches``; those in the store are up to date."""
        for number, panel, at in self.store.batches(g, columns):
            if panel is self.store.values:
                yield ColumnBatch(number, self._columns, at)
            else:
                out = np.empty((1, panel.shape[1]), dtype=np.float32)
                self._combine(g, columns[number], panel, at, out)
                yield ColumnBatch(number, out, at)

    def _combine(self, g: int, columns: IntArray, panel: AnyArray, at: IntArray, out: AnyArray) -> None:
        """Evaluate columns of K_θ over atom g and write them to the same places of ``out``."""
        atom, weight = self.store.atoms[g], self.weight
        n = len(atom.positions)
        self.store.n_values += n * len(columns)
        samples, n_rows = self.gram.samples[atom.block][columns], np.full(len(columns), n)
        single = self.store.columns(panel, at, samples, self.store.side_of(g))

        def work(first: int, last: int) -> None:
            combine_columns(self.store.program, weight, single, first, last, n_rows, out[0])

        some = max(1, min(-(-len(columns) // self.n_jobs), int(PAIRS_AT_ONCE // n)))
        run_chunks(work, _ranges(len(columns), some), self.n_jobs)

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
                columns, entries = by_column(atom.tasks, of_task, idx, v)
                if len(columns):
                    self._forms[atom.tasks] += self._forms_over(g, columns, entries)
        return self._forms.copy()

    def _forms_over(self, g: int, columns: IntArray, entries: ColumnEntries) -> Array:
        """The part of the forms of the tasks of atom g from pairs of a column and an earlier sample of the atom."""
        atom, side, store = self.store.atoms[g], self.gram.side, self.store
        own, rows = store.within(g, columns)  # columns that are also rows
        dual = np.zeros((len(atom.tasks), len(own)))
        tasks, values = entries.dense()
        dual[tasks] = values[:, own]
        n_rows = np.searchsorted(columns[own], columns, side="right")  # up to the diagonal
        inside = np.isin(columns, columns[own])
        right, total = SingleSide.of(side, atom.samples[rows]), np.zeros((len(atom.tasks), self.gram.n_kernels))
        store.keep(g, columns)
        for number, panel, at in store.batches(g, columns):
            single = store.columns(panel, at, self.gram.samples[atom.block][columns[number]], right)
            triangle = Triangle(rows, n_rows[number], inside[number])
            given = store.program, single, triangle, entries.take(number), dual
            store.n_values += int(n_rows[number].sum())
            some = max(1, int(PAIRS_AT_ONCE // max(1, len(rows)))) if self.n_jobs == 1 else -(-len(number) // 16)
            sums = [(first, last, np.zeros_like(total)) for first, last in _ranges(len(number), some)]
            run_chunks(lambda *range_and_sum, given=given: add_forms(*given, *range_and_sum), sums, self.n_jobs)
            for _, _, G in sums:
                total += G
        return total


class Fields:
    """Both kinds of fields over one column store; :meth:`best` is the one that is expected to be less work."""

    device = None

    def __init__(self, gram: GramBlocks, double: bool = False):
        self.store = ColumnStore(gram, double)
        self.double = self.store.double
        self._every = KernelFields(self.store)
        self._combined = None if self.double else CombinedField(self.store)
        self._combines = False  # a first sweep tries many variables, and most may stay at zero

    @property
    def price(self) -> float:
        """Of a pair of samples, relative to single precision."""
        return _DOUBLE if self.double else 1.0

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


def _ranges(n: int, step: int) -> list[tuple[int, int]]:
    """Consecutive ranges of at most ``step`` numbers below n."""
    return list(pairwise([*range(0, n, step), n]))


def by_column(tasks: IntArray, of_task: IntArray, idx: IntArray, value: Array) -> tuple[IntArray, ColumnEntries]:
    """The columns of the entries of some tasks, and these entries with the number among ``tasks`` of their task.

    Entries of_task[t] to of_task[t+1]-1 of the columns ``idx`` and the numbers ``value`` belong to task t.
    """
    own = [np.arange(of_task[t], of_task[t + 1]) for t in tasks]
    owner = np.repeat(np.arange(len(tasks)), [len(entries) for entries in own])
    entries = np.concatenate(own)
    order = np.argsort(idx[entries], kind="stable")
    columns, first = np.unique(idx[entries[order]], return_index=True)
    return columns, ColumnEntries(first, np.append(first[1:], len(entries)), owner[order], value[entries[order]])


# ------------------------------------------------------------------------------------------- compiled
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


def measured_samples(dual: Array) -> IntArray:
    """The samples of a task at which errors of single precision are measured: some that support it, and others."""
    support, everyone = np.flatnonzero(dual), np.arange(len(dual))
    if not len(support):
        return support
    some = [np.linspace(0, len(part) - 1, _MEASURED).astype(int) for part in (support, everyone)]
    return np.union1d(support[some[0]], everyone[some[1]])


def typical(errors: Array) -> Array:
    """What each of many errors may count as in a sum, given some of them along the last axis."""
    return np.maximum(errors.max(axis=-1), MARGIN * np.sqrt(np.mean(errors**2, axis=-1)))
