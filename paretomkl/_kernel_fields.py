"""Kernel fields: the function of every kernel at all samples of a task, updated column by column.

The field of task t under kernel m is, at each sample i of the task,

    F_tm(i) = Σ_j v_tj k_m(x_i, x_j).

It gives a sweep all it needs without a Gram matrix: decisions at any θ are Σ_m θ_m F_tm(i), and quadratic forms v'K_m v
are Σ_i v_ti F_tm(i). When the dual v changes, F changes by the kernel columns of the samples whose v_tj changed, and no
other kernel values are computed. Distances of these columns are cached, up to ``cache_mb`` of the bank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._bank import PANEL_BYTES, squared_distances
from ._compiled import njit
from ._distances import cityblock
from ._kernel_columns import Columns, add_single_columns, combine_columns, make_room, with_short_chains
from ._kernel_rows import EXPONENTIAL, TILE, Pairs, Program, Tile, combine_rows, make_tile, mirror, next_tile
from ._parallel import run_chunks
from ._typing import AnyArray, Array, IntArray

if TYPE_CHECKING:
    from ._bank import Side
    from .gram import GramBlocks

_LEAST_ATOM = 64  # mean samples per atom below which a block is a single atom
_PAIRS_AT_ONCE = 2e7  # pairs of samples in one compiled call, which delays an interrupt
_SINGLE = 1e-5  # allowed error of a kernel value in single precision, relative to the kernel's variance
_LARGE = 1e15  # squares of larger numbers overflow in single precision


class _Atom(NamedTuple):
    """Samples of one block that belong to the same tasks.

    positions: of the samples in their block, increasing; samples: their numbers; tasks: increasing; at: start of the
    fields of each of these tasks for this atom; column (n_block,): position in the store of the distances between a
    sample of the block and the atom, −1 if they are not kept.
    """

    positions: IntArray
    samples: IntArray
    block: int
    tasks: IntArray
    at: IntArray
    column: IntArray


class KernelFields:
    """The fields of all tasks of a Gram store for one dual v, initially zero.

    Parameters
    ----------
    gram : GramBlocks
    double : bool, default=False
        Whether to use double precision even if single precision is enough.

    Attributes
    ----------
    dual : flat array over the samples of all tasks
        The current v; only :meth:`move_to` changes it.
    n_values : int
        Number of pairs of samples evaluated so far.
    """

    def __init__(self, gram: GramBlocks, double: bool = False):
        self.gram = gram
        self.bank, self.n_jobs = gram.bank, gram.n_jobs
        self.double = double or not _single_serves(gram)
        ptr = gram.layout.ptr
        self._atoms, self._atoms_of, self._place, n_fields = _make_atoms(gram)
        self.fields = np.zeros((gram.n_kernels, n_fields))
        self.dual = np.zeros(ptr[-1])
        self.n_values = 0
        self._program = self.bank.program if self.double else with_short_chains(self.bank.program)
        kind = np.float64 if self.double else np.float32
        n_bases = self.bank.n_bases
        room = int(max(self.bank.cache_bytes, 2 * PANEL_BYTES) // (n_bases * np.dtype(kind).itemsize))
        whole = sum(len(atom.positions) * len(atom.column) for atom in self._atoms)
        self._store = np.empty((n_bases, min(room, whole)), dtype=kind)  # uses memory only where it is written
        self._filled = 0
        self._spare: list[list[int]] = [[] for _ in self._atoms]
        self._rows: dict[int, _SingleSide] = {}  # the samples of atoms
        self._room = _Room()

    def decisions(self, weight: Array, tasks: Sequence[int]) -> list[Array]:
        """Σ_m weight_m F_tm at the samples of each of these tasks."""
        field = weight @ self.fields
        ptr = self.gram.layout.ptr
        return [field[self._place[ptr[t] : ptr[t + 1]]] for t in tasks]

    def quadratic_forms(self) -> Array:
        """v_t'K_m v_t before the factors of the kernels, (n_tasks, n_kernels)."""
        forms = np.zeros((self.gram.n_tasks, self.gram.n_kernels))
        ptr = self.gram.layout.ptr
        for t in range(self.gram.n_tasks):
            mine = slice(ptr[t], ptr[t + 1])
            there = np.flatnonzero(self.dual[mine])
            forms[t] = self.fields[:, self._place[mine][there]] @ self.dual[mine][there]
        return forms

    def move_to(self, dual: Array) -> None:
        """Update the fields to another dual."""
        changed = np.flatnonzero(dual != self.dual)
        step, idx = dual[changed] - self.dual[changed], self.gram.layout.idx[changed]
        of_task = np.searchsorted(changed, self.gram.layout.ptr)  # start of the changes of each task
        moved = np.flatnonzero(np.diff(of_task))
        for g in sorted({g for t in moved for g in self._atoms_of[t]}):
            atom = self._atoms[g]
            own = [np.arange(of_task[t], of_task[t + 1]) for t in atom.tasks]
            at = np.repeat(atom.at, [len(entries) for entries in own])
            entries = np.concatenate(own)
            order = np.argsort(idx[entries], kind="stable")
            columns, first = np.unique(idx[entries[order]], return_index=True)
            self._add(g, columns, np.append(first, len(entries)), at[order], step[entries[order]])
        self.dual[:] = dual

    def _add(self, g: int, columns: IntArray, ptr: IntArray, at: IntArray, step: Array) -> None:
        """Add columns of the block to the fields over atom g.

        Column c has the entries ptr[c] to ptr[c+1]-1 of ``at``, the start of the fields, and of ``step``.
        """
        self._keep(g, columns)
        atom, n = self._atoms[g], len(self._atoms[g].positions)
        where = atom.column[columns]
        kept = np.flatnonzero(where >= 0)
        self._add_batch(g, self._store, where[kept], columns[kept], (ptr, kept, at, step))
        missing = np.flatnonzero(where < 0)
        most = max(16, int(PANEL_BYTES // (8 * self.bank.n_bases * n)))
        for first in range(0, len(missing), most):
            some = missing[first : first + most]
            distances = self._distances(g, columns[some])
            panel = distances.astype(self._store.dtype).reshape(len(distances), -1)
            self._add_batch(g, panel, n * np.arange(len(some)), columns[some], (ptr, some, at, step))

    def _add_batch(self, g: int, panel: AnyArray, row_at: IntArray, columns: IntArray, entries: Any) -> None:
        if not len(columns):
            return
        atom, n = self._atoms[g], len(self._atoms[g].positions)
        self.n_values += n * len(columns)
        add = self._adder(g, panel, row_at, self.gram.samples[atom.block][columns], entries)
        tiles = max(1, min(-(-n // (TILE * self.n_jobs)), int(_PAIRS_AT_ONCE // (TILE * len(columns)))))
        edges = [*range(0, n, TILE * tiles), n]
        run_chunks(add, list(pairwise(edges)), self.n_jobs)

    def _adder(self, g: int, panel: AnyArray, row_at: IntArray, samples: IntArray, entries: Any) -> Callable:
        """A function of a range of rows that adds the columns of these samples to the fields over atom g."""
        side, n_kernels = self.gram.side, self.bank.n_kernels
        if not self.double:
            left, right = _SingleSide.of(side, samples), self._side_of(g)
            columns = Columns(panel, row_at, left.squares, left.scale, right.squares, right.scale)
            return lambda begin, end: add_single_columns(
                self._program, columns, begin, end, make_room(n_kernels), *entries, self.fields
            )
        number, here, there = (
            np.arange(len(self._atoms[g].samples)),
            side.samples(samples),
            side.samples(self._atoms[g].samples),
        )

        def work(begin: int, end: int) -> None:
            first, last = np.empty((2, len(samples)), dtype=np.int64)
            pairs = Pairs(panel, row_at, number, first, last, here, there)
            tile = make_tile(self.bank.n_bases, n_kernels)
            add_columns(self._program, pairs, begin, end, tile, *entries, self.fields)

        return work

    def keep_columns(self, entries: Mapping[int, IntArray]) -> None:
        """Store the distances between the given samples of each task and all samples of that task."""
        wanted: dict[int, list[IntArray]] = {}
        for t, some in entries.items():
            for g in self._atoms_of[t]:
                wanted.setdefault(g, []).append(self.gram.layout.idx[self.gram.layout.ptr[t] + some])
        for g, columns in wanted.items():
            self._keep(g, np.unique(np.concatenate(columns)))

    def _keep(self, g: int, columns: IntArray) -> None:
        """Store the distances between columns of the block and the samples of atom g, as far as they fit.

        If the store is full, they replace other columns of the atom.
        """
        atom, n = self._atoms[g], len(self._atoms[g].positions)
        missing = columns[atom.column[columns] < 0]
        lacking = len(missing) - (self._store.shape[1] - self._filled) // n - len(self._spare[g])
        if lacking > 0:
            idle = atom.column >= 0
            idle[columns] = False
            leaving = np.flatnonzero(idle)[:lacking]
            self._spare[g] += atom.column[leaving].tolist()
            atom.column[leaving] = -1
        most = max(16, int(PANEL_BYTES // (8 * self.bank.n_bases * n)))
        for first in range(0, len(missing), most):
            some = missing[first : first + most]
            places = self._room_for(g, len(some))
            if not places:
                return
            some = some[: len(places)]
            distances = self._distances(g, some)
            for k, place in enumerate(places):
                self._store[:, place : place + n] = distances[:, k]
            atom.column[some] = places

    def _room_for(self, g: int, most: int) -> list[int]:
        """Places in the store for up to ``most`` columns of atom g."""
        n, spare = len(self._atoms[g].positions), self._spare[g]
        places = [spare.pop() for _ in range(min(most, len(spare)))]
        new = min(most - len(places), (self._store.shape[1] - self._filled) // n)
        places += [self._filled + n * k for k in range(new)]
        self._filled += n * new
        return places

    def _distances(self, g: int, columns: IntArray) -> AnyArray:
        """Base values between columns of the block and the samples of atom g, (n_bases, n_columns, n_atom)."""
        atom, side, bank = self._atoms[g], self.gram.side, self.bank
        own = self.gram.samples[atom.block][columns]
        if self.double:
            return bank.panel(side, own, side, atom.samples).reshape(bank.n_bases, len(own), len(atom.samples))
        out = np.empty((bank.n_bases, len(own), len(atom.samples)), dtype=np.float32)
        rows = self._side_of(g)
        row = np.flatnonzero(np.isin(own, atom.samples, assume_unique=True))
        for b, kernel in enumerate(bank.base_kernels):
            if kernel.metric == "sqeuclidean":
                x, x_squares = side.features[b][own].astype(np.float32), side.centred_squares[b][own]
                squared_distances(x, rows.features[b], x_squares, side.centred_squares[b][atom.samples], out[b])
                out[b, row, np.searchsorted(atom.samples, own[row])] = 0  # a sample is at distance zero from itself
            elif kernel.metric == "cityblock":
                out[b] = cityblock(side.features[b][own].astype(np.float32), rows.features[b])
            else:
                out[b] = kernel.base_values(side.features[b][own], side.features[b][atom.samples])
        return out

    def _side_of(self, g: int) -> _SingleSide:
        if g not in self._rows:
            self._rows[g] = _SingleSide.of(self.gram.side, self._atoms[g].samples, features=True)
        return self._rows[g]

    @contextmanager
    def among(self, t: int, entries: IntArray, weight: Array) -> Iterator[Array]:
        """The flat matrix Σ_m weight_m K_m among some samples of task t, valid inside the ``with`` block."""
        idx = self.gram.layout.idx[self.gram.layout.ptr[t] + entries]
        n = len(idx)
        with (
            self._room.lend(np.float64, n * n) as K,
            self._room.lend(self._store.dtype, len(self._store) * n * n) as flat,
        ):
            panel = flat.reshape(len(self._store), n, n)
            self._collect(t, idx, panel)
            side, samples = self.gram.side, self.gram.samples[self._atoms[self._atoms_of[t][0]].block][idx]
            number, flat = np.arange(n), flat.reshape(len(panel), -1)
            if self.double:
                which = side.samples(samples)
                pairs = Pairs(flat, n * number, number, np.zeros_like(number), number + 1, which, which)
                combine_rows(self._program, weight, pairs, 0, n, make_tile(len(panel), len(weight)), K)
            else:
                _, squares, scale = _SingleSide.of(side, samples)
                columns = Columns(flat, n * number, squares, scale, squares, scale)
                combine_columns(self._program, weight, columns, make_room(len(weight)), K)
            mirror(K, np.zeros(1, dtype=np.int64), np.array([n]))
            yield K

    def _collect(self, t: int, idx: IntArray, panel: AnyArray) -> None:
        """Fill panel (n_bases, n, n) with the lower triangle of base values among samples idx of task t's block."""
        lost = np.zeros(len(idx), dtype=bool)
        for g in self._atoms_of[t]:
            atom = self._atoms[g]
            at = np.minimum(np.searchsorted(atom.positions, idx), len(atom.positions) - 1)
            own = np.flatnonzero(atom.positions[at] == idx)
            gather(self._store, atom.column[idx], at[own], own, panel)
            lost |= atom.column[idx] < 0
        if lost.any():  # the store had no room for their columns
            side, rows = self.gram.side, np.flatnonzero(lost)
            samples = self.gram.samples[self._atoms[self._atoms_of[t][0]].block][idx]
            values = self.bank.panel(side, samples[rows], side, samples)
            panel[:, rows] = values.reshape(len(panel), len(rows), len(idx))


class _Room:
    """Reusable arrays: allocating a large one takes as long as filling it."""

    def __init__(self) -> None:
        self._spare: dict[Any, list[AnyArray]] = {}

    @contextmanager
    def lend(self, kind: Any, size: int) -> Iterator[AnyArray]:
        """An array of this size, valid inside the ``with`` block."""
        spare = self._spare.setdefault(np.dtype(kind), [])
        try:
            array = spare.pop()
        except IndexError:
            array = np.empty(0, dtype=kind)
        if len(array) < size:
            array = np.empty(int(1.2 * size), dtype=kind)
        yield array[:size]
        spare.append(array)


class _SingleSide(NamedTuple):
    """Some samples in single precision: optionally their features for each base, squares and scale."""

    features: list[AnyArray]
    squares: AnyArray
    scale: AnyArray

    @classmethod
    def of(cls, side: Side, samples: IntArray, features: bool = False) -> _SingleSide:
        kept = [part[samples].astype(np.float32) for part in side.features] if features else []
        return cls(kept, side.squares[:, samples].astype(np.float32), side.scale[:, samples].astype(np.float32))


def _single_serves(gram: GramBlocks) -> bool:
    """Whether rounding to single precision is small compared with the variance of each kernel within tasks.

    Squared distances lose digits if the rate is high, values if a kernel is nearly constant.
    """
    bank, side = gram.bank, gram.side
    if bank.precomputed or side.squares.max(initial=0.0) > _LARGE:
        return False
    size, variance = gram.diagonals().mean(axis=1), bank.factor * bank.variance
    norms = np.array([squares.mean() for squares in side.centred_squares])  # zero if distances do not cancel
    exponents = np.where(bank.program.kind == EXPONENTIAL, bank.program.rate * norms[bank.program.base], 0.0)
    lost = np.finfo(np.float32).eps * size * (1 + 2 * exponents)
    return bool((lost <= _SINGLE * variance).all())


def _make_atoms(gram: GramBlocks) -> tuple[list[_Atom], list[list[int]], IntArray, int]:
    """The atoms of all blocks, the atoms of each task, the place of each entry in the fields, and their length."""
    ptr, idx, _, _ = gram.layout
    _, tasks, task_ptr = gram.blocks
    key = np.random.default_rng(0).integers(1, 2**62, gram.n_tasks)
    atoms: list[_Atom] = []
    atoms_of: list[list[int]] = [[] for _ in range(gram.n_tasks)]
    place, n_fields = np.empty(ptr[-1], dtype=np.int64), 0
    for b, samples in enumerate(gram.samples):
        own = tasks[task_ptr[b] : task_ptr[b + 1]]
        member = np.zeros(len(samples), dtype=np.int64)  # a sum of random keys identifies the tasks of a sample
        for t in own:
            member[idx[ptr[t] : ptr[t + 1]]] += key[t]
        kinds, kind = np.unique(member, return_inverse=True)
        if len(samples) < _LEAST_ATOM * len(kinds):
            kinds, kind = kinds[:1], np.zeros(len(samples), dtype=np.int64)
        for k in range(len(kinds)):
            positions = np.flatnonzero(kind == k)
            there = np.zeros(len(samples), dtype=bool)
            there[positions] = True
            seen = np.sort([t for t in own if there[idx[ptr[t] : ptr[t + 1]]].any()]).astype(np.int64)
            at = n_fields + len(positions) * np.arange(len(seen))
            n_fields += len(positions) * len(seen)
            for t, begin in zip(seen, at, strict=True):
                entries = ptr[t] + np.flatnonzero(there[idx[ptr[t] : ptr[t + 1]]])
                place[entries] = begin + np.searchsorted(positions, idx[entries])
                atoms_of[t].append(len(atoms))
            atoms.append(_Atom(positions, samples[positions], b, seen, at, np.full(len(samples), -1)))
    return atoms, atoms_of, place, n_fields


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
