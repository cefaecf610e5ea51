"""Distances between the samples of large tasks, stored column by column as they are needed.

A column holds the base values between one sample and the samples of an *atom*: samples of one block that belong to the
same tasks. Tasks that share samples share columns. The store grows up to ``cache_mb`` of the bank; beyond, columns
replace each other, and those without a place are computed again whenever they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._tools.typing import AnyArray, Array, IntArray
from ...kernels._evaluation import EXPONENTIAL, cityblock, squared_distances
from ...kernels._fitted import PANEL_BYTES
from ...kernels._rounding import SINGLE_UNIT
from .single_precision import SingleColumns, SingleSide, combine_columns, with_short_chains

if TYPE_CHECKING:
    from .._blocks import GramBlocks

_LEAST_ATOM = 64  # mean samples per atom below which a block is a single atom
_SINGLE = 1e-5  # allowed error of a kernel value in single precision, relative to the kernel's variance
_MOST_CACHES = 4  # limit on the size of the store, relative to ``cache_mb``, where full matrices would fit
_LARGE = 1e15  # squares of larger numbers overflow in single precision


class Atom(NamedTuple):
    """Samples of one block that belong to the same tasks.

    positions: of the samples in their block, increasing; samples: their numbers; tasks: increasing; at: start of the
    fields of each of these tasks for this atom; column (n_block,): position in the store of the distances between a
    sample of the block and the atom, −1 if they are not kept; stamp (n_block,): changes whenever a column gets a place.
    """

    positions: IntArray
    samples: IntArray
    block: int
    tasks: IntArray
    at: IntArray
    column: IntArray
    stamp: IntArray


class ColumnBatch(NamedTuple):
    """Some columns: which ones of a list, a panel of their values, and the start of each in the panel."""

    number: IntArray
    panel: AnyArray
    at: IntArray


class ColumnStore:
    """Columns of base values of all tasks of a Gram store.

    Parameters
    ----------
    gram : GramBlocks
    double : bool, default=False
        Whether to use double precision even if single precision is enough.

    Attributes
    ----------
    atoms : list of Atom
    atoms_of : list of n_tasks lists
        The atoms of each task.
    place : array of int of shape (n_entries,)
        Position of each entry of the layout in a field, an array of length ``n_fields``.
    values : array of shape (n_bases, n_places)
        The stored columns.
    n_values : int
        Number of pairs of samples at which kernels were evaluated so far.
    """

    def __init__(self, gram: GramBlocks, double: bool = False):
        self.gram, self.bank = gram, gram.bank
        self.double = double or not single_serves(gram)
        self.atoms, self.atoms_of, self.place, self.n_fields = make_atoms(gram, _LEAST_ATOM)
        self.program = self.bank.evaluator.program if self.double else with_short_chains(self.bank.evaluator.program)
        kind = np.dtype(np.float64 if self.double else np.float32)
        n_bases, self.most_bytes = self.bank.n_bases, max(self.bank.cache_bytes, 2 * PANEL_BYTES)
        # a combined field keeps one more value for each place
        whole = sum(len(atom.positions) * len(atom.column) for atom in self.atoms)
        # where full matrices would fit, columns may take half their place, but not many times the cache
        most = (
            max(self.most_bytes, min(4 * whole, _MOST_CACHES * self.bank.cache_bytes)) if gram.fits else self.most_bytes
        )
        room = int(most // ((n_bases + (not self.double)) * kind.itemsize))
        self.values = np.empty((n_bases, min(room, whole)), dtype=kind)  # uses memory only where it is written
        self.spare = SpareArrays()
        self.n_values = self._filled = self._stamp = 0
        self._rows: dict[int, SingleSide] = {}  # the samples of atoms

    def lost_digits(self, support: IntArray, v: Array, samples: IntArray) -> Array:
        """What single precision adds to Σ_j v_j k_m(x_j, x) at some samples x, (n_kernels, n_samples), before factors.

        The samples x_j of the support and the others are given by their numbers, increasing. A combined column is
        rounded once more.
        """
        side, n_kernels, n = self.gram.side, self.gram.n_kernels, len(samples)
        panel = self.measure(support, samples).reshape(self.bank.n_bases, -1)
        columns = self.columns(panel, n * np.arange(len(v)), support, SingleSide.of(side, samples))
        values = np.empty((n_kernels, len(v) * n), dtype=np.float32)
        for m, alone in enumerate(np.eye(n_kernels)):
            combine_columns(self.program, alone, columns, 0, len(v), np.full(len(v), n), values[m])
        exact = self.bank.stack(side.take(support), side.take(samples))
        return np.abs(v @ (values.reshape(exact.shape) - exact)) + SINGLE_UNIT * (np.abs(v) @ np.abs(exact))

    def columns(self, panel: AnyArray, at: IntArray, samples: IntArray, rows: SingleSide) -> SingleColumns:
        """The columns of these samples, in single precision; their values start at ``at`` in the panel."""
        return SingleColumns.of(panel, at, SingleSide.of(self.gram.side, samples), rows)

    def samples_of(self, t: int, idx: IntArray) -> IntArray:
        """The numbers of the samples at positions idx of the block of task t."""
        return self.gram.samples[self.atoms[self.atoms_of[t][0]].block][idx]

    def batches(self, g: int, columns: IntArray) -> Iterator[ColumnBatch]:
        """The base values between columns of the block and atom g, some columns at a time.

        Columns that have a place in the store come first, and their panel is ``values``.
        """
        where = self.atoms[g].column[columns]
        kept = np.flatnonzero(where >= 0)
        if len(kept):
            yield ColumnBatch(kept, self.values, where[kept])
        missing, n = np.flatnonzero(where < 0), len(self.atoms[g].positions)
        most = self._at_once(n)
        for first in range(0, len(missing), most):
            some = missing[first : first + most]
            panel = np.empty((len(self.values), len(some), n), dtype=self.values.dtype)
            self._measure(g, columns[some], panel)
            yield ColumnBatch(some, panel.reshape(len(panel), -1), n * np.arange(len(some)))

    def keep_columns(self, entries: Mapping[int, IntArray]) -> dict[int, IntArray]:
        """Store the distances between the given samples of each task and all samples of that task.

        Returns these columns for each atom.
        """
        wanted: dict[int, list[IntArray]] = {}
        for t, some in entries.items():
            for g in self.atoms_of[t]:
                wanted.setdefault(g, []).append(self.gram.layout.idx[self.gram.layout.ptr[t] + some])
        of_atom = {g: np.unique(np.concatenate(columns)) for g, columns in wanted.items()}
        for g, columns in of_atom.items():
            self.keep(g, columns)
        return of_atom

    def keep(self, g: int, columns: IntArray) -> None:
        """Store the distances between columns of the block and the samples of atom g, as far as they fit.

        If the store is full, they replace other columns of the atom.
        """
        atom, n = self.atoms[g], len(self.atoms[g].positions)
        missing = columns[atom.column[columns] < 0]
        places = self._places(g, columns, len(missing))
        self._stamp += 1
        for first in range(0, len(places), self._at_once(n)):
            at = places[first : first + self._at_once(n)]
            some = missing[first : first + len(at)]
            if at[-1] - at[0] == n * (len(at) - 1):  # side by side, so that they can be measured in place
                self._measure(g, some, self.values[:, at[0] : at[-1] + n].reshape(-1, len(at), n))
            else:
                panel = np.empty((len(self.values), len(at), n), dtype=self.values.dtype)
                self._measure(g, some, panel)
                for k, place in enumerate(at):
                    self.values[:, place : place + n] = panel[:, k]
            atom.column[some], atom.stamp[some] = at, self._stamp

    def _places(self, g: int, columns: IntArray, n_wanted: int) -> IntArray:
        """Free places for columns of atom g, increasing, as many as there are: other columns make room for these."""
        atom, n = self.atoms[g], len(self.atoms[g].positions)
        new = self._filled + n * np.arange(min(n_wanted, (self.values.shape[1] - self._filled) // n))
        self._filled += n * len(new)
        idle = atom.column >= 0
        idle[columns] = False
        leaving = np.flatnonzero(idle)[: n_wanted - len(new)]
        left = atom.column[leaving]
        atom.column[leaving] = -1
        return np.sort(np.concatenate([new, left]))

    def _at_once(self, n: int) -> int:
        """Number of columns of n rows to measure at a time."""
        return max(16, int(PANEL_BYTES // (8 * self.bank.n_bases * n)))

    def _measure(self, g: int, columns: IntArray, out: AnyArray) -> None:
        """Write the base values between columns of the block and atom g to ``out`` (n_bases, n_columns, n_atom)."""
        atom = self.atoms[g]
        features = [] if self.double else self.side_of(g).features
        self._write(self.gram.samples[atom.block][columns], atom.samples, features, out)

    def measure(self, own: IntArray, samples: IntArray) -> AnyArray:
        """Base values between two lists of samples, both increasing, (n_bases, n_own, n_samples)."""
        out = np.empty((len(self.values), len(own), len(samples)), dtype=self.values.dtype)
        features = [] if self.double else SingleSide.of(self.gram.side, samples, features=True).features
        self._write(own, samples, features, out)
        return out

    def _write(self, own: IntArray, samples: IntArray, features: list[AnyArray], out: AnyArray) -> None:
        """Write the base values between two lists of samples to ``out``; the second is given with its features."""
        side, bank = self.gram.side, self.bank
        if self.double:
            out[:] = bank.evaluator.panel(side, own, side, samples).reshape(out.shape)
            return
        row = np.flatnonzero(np.isin(own, samples, assume_unique=True))
        for b, kernel in enumerate(bank.evaluator.bases.kernels):
            if kernel.metric == "sqeuclidean":
                x, squares = side.features[b][own].astype(np.float32), side.centred_squares[b]
                squared_distances(x, features[b], squares[own], squares[samples], out[b])
                out[b, row, np.searchsorted(samples, own[row])] = 0  # a sample is at distance zero from itself
            elif kernel.metric == "cityblock":
                out[b] = cityblock(side.features[b][own].astype(np.float32), features[b])
            else:
                out[b] = kernel.base_values(side.features[b][own], side.features[b][samples])

    def side_of(self, g: int) -> SingleSide:
        if g not in self._rows:
            self._rows[g] = SingleSide.of(self.gram.side, self.atoms[g].samples, features=True)
        return self._rows[g]

    def within(self, g: int, idx: IntArray) -> tuple[IntArray, IntArray]:
        """Which of the positions idx of a block belong to atom g, and where in the atom."""
        positions = self.atoms[g].positions
        at = np.minimum(np.searchsorted(positions, idx), len(positions) - 1)
        own = np.flatnonzero(positions[at] == idx)
        return own, at[own]

    def count_pairs(self, entries: AnyArray) -> tuple[int, int]:
        """Pairs of a chosen sample and a sample of its tasks, and pairs of two chosen samples, once each.

        ``entries`` is a flat mask over the samples of all tasks.
        """
        ptr, idx, _, _ = self.gram.layout
        n_all = n_chosen = 0
        for g, atom in enumerate(self.atoms):
            chosen = [idx[ptr[t] : ptr[t + 1]][entries[ptr[t] : ptr[t + 1]]] for t in atom.tasks]
            columns = np.unique(np.concatenate(chosen))
            n_all += len(columns) * len(atom.positions)
            n_chosen += len(columns) * len(self.within(g, columns)[0])
        return n_all, n_chosen // 2


class SpareArrays:
    """Reusable arrays: allocating a large one takes as long as filling it."""

    def __init__(self) -> None:
        self._spare: dict[np.dtype, list[AnyArray]] = {}

    @contextmanager
    def lend(self, kind: np.dtype, size: int) -> Iterator[AnyArray]:
        """An array of this size, valid inside the ``with`` block."""
        spare = self._spare.setdefault(kind, [])
        try:
            array = spare.pop()
        except IndexError:
            array = np.empty(0, dtype=kind)
        if len(array) < size:
            array = np.empty(int(1.2 * size), dtype=kind)
        yield array[:size]
        spare.append(array)


def single_serves(gram: GramBlocks) -> bool:
    """Whether rounding to single precision is small compared with the variance of each kernel within tasks.

    Squared distances lose digits if the rate is high, values if a kernel is nearly constant.
    """
    bank, side = gram.bank, gram.side
    if bank.precomputed or side.squares.max(initial=0.0) > _LARGE:
        return False
    size, variance = gram.mean_diagonals(), bank.factor * bank.variance
    norms = np.array([squares.mean() for squares in side.centred_squares])  # zero if distances do not cancel
    codes = bank.evaluator.codes
    exponents = np.where(codes.kind == EXPONENTIAL, codes.rate * norms[codes.base], 0.0)
    lost = np.finfo(np.float32).eps * size * (1 + 2 * exponents)
    return bool((lost <= _SINGLE * variance).all())


def make_atoms(gram: GramBlocks, least: int) -> tuple[list[Atom], list[list[int]], IntArray, int]:
    """The atoms of all blocks, the atoms of each task, the place of each entry in the fields, and their length.

    Blocks with a mean of less than ``least`` samples per atom are single atoms.
    """
    ptr, idx, _, _ = gram.layout
    _, tasks, task_ptr = gram.blocks
    key = np.random.default_rng(0).integers(1, 2**62, gram.n_tasks)
    atoms: list[Atom] = []
    atoms_of: list[list[int]] = [[] for _ in range(gram.n_tasks)]
    place, n_fields = np.empty(ptr[-1], dtype=np.int64), 0
    for b, samples in enumerate(gram.samples):
        own = tasks[task_ptr[b] : task_ptr[b + 1]]
        member = np.zeros(len(samples), dtype=np.int64)  # a sum of random keys identifies the tasks of a sample
        for t in own:
            member[idx[ptr[t] : ptr[t + 1]]] += key[t]
        kinds, kind = np.unique(member, return_inverse=True)
        if len(samples) < least * len(kinds):
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
            atoms.append(
                Atom(
                    positions,
                    samples[positions],
                    b,
                    seen,
                    at,
                    np.full(len(samples), -1),
                    np.zeros(len(samples), dtype=np.int64),
                )
            )
    return atoms, atoms_of, place, n_fields
