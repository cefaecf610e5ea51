"""Fields of large tasks on a device of PyTorch; see :mod:`.fields` for what a field is.

The device keeps the samples, if they fit, and the fields of all kernels in double precision. Columns are evaluated in
batches whenever the dual changes, and nothing else is stored. Kernel values have single precision where the rule for
the CPU allows it, and are added up in double precision. Matrices among working sets are made on the device, too, where
:mod:`~paretomkl.machines._working_sets_on_device` solves the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..._tools.typing import Array, IntArray
from ...kernels._device import (
    DeviceKernels,
    DeviceSamples,
    DeviceSide,
    Tensor,
    on_device,
    pairs_at_once,
    quadratic_forms,
)
from ...kernels._fitted import PANEL_BYTES
from .distances import Atom, make_atoms, single_serves
from .fields import Field, measured_samples, typical

if TYPE_CHECKING:
    from .._blocks import GramBlocks

_TOGETHER = 2**16  # samples of working sets that are gathered together
_LEAST_ATOM = 512  # mean samples per atom below which a block is a single atom: smaller ones keep no device busy


class DeviceStore:
    """The samples, the atoms and the kernels of a Gram store on a device.

    Attributes
    ----------
    atoms : list of Atom
    place : array of int of shape (n_entries,)
        Position of each entry of the layout in a field of length ``n_fields``.
    n_values : int
        Number of pairs of samples at which kernels were evaluated so far.
    """

    def __init__(self, gram: GramBlocks, device: Any, double: bool = False):
        self.gram, self.device = gram, device
        self.double = double or not single_serves(gram)
        self.kind = torch.float64 if self.double else torch.float32
        self.atoms, self.atoms_of, self.place, self.n_fields = make_atoms(gram, _LEAST_ATOM)
        self.kernels, self.samples = DeviceKernels(gram.bank.evaluator, device), DeviceSamples(gram.side, device)
        self.most_bytes = max(gram.bank.cache_bytes, 2 * PANEL_BYTES)
        # of the samples of each block; None is all of them
        n = len(self.samples)
        self.numbers = [None if len(own) == n else on_device(own, device) for own in gram.samples]
        self.n_values = 0

    def take(self, block: int, positions: Tensor, kind: Any = None) -> DeviceSide:
        """Samples at some positions of a block."""
        numbers = self.numbers[block]
        return self.samples.take(positions if numbers is None else numbers[positions], kind or self.kind)


class DeviceField(Field):
    """The fields of all kernels on a device; ``dual_there`` is the dual on it."""

    def __init__(self, store: DeviceStore):
        super().__init__(store)
        device = self.device = store.device
        self._fields = torch.zeros((self.gram.n_kernels, store.n_fields), dtype=torch.float64, device=device)
        self._place, self._idx = on_device(store.place, device), on_device(self.gram.layout.idx, device)
        self.dual_there = torch.zeros(len(self._idx), dtype=torch.float64, device=device)
        self._duals = Duals(self.gram, device)
        self._atoms = [(atom, on_device(atom.positions, device), self._duals.rows_of(atom)) for atom in store.atoms]
        self._block_of = np.repeat(np.arange(len(self.gram.samples)), np.diff(self.gram.blocks.task_ptr))[
            np.argsort(self.gram.blocks.tasks)
        ]
        self._kept: dict[int, DeviceSide] = {}  # the samples of atoms
        self._pairs = pairs_at_once(device)
        self._storage = torch.empty(0, dtype=store.kind, device=device)

    @cached_property
    def segments(self) -> Segments:
        """Sums over the samples of each task."""
        return Segments(self.gram.layout.ptr, self.device)

    def begin(self, weight: Array, dual: Array) -> None:
        self._pairs = pairs_at_once(self.device)  # asked once per sweep, because it takes half a millisecond
        super().begin(weight, dual)

    def _forget(self) -> None:
        super()._forget()
        self._fields.zero_()
        self.dual_there.zero_()

    def decisions_there(self) -> Tensor:
        """The decisions of all tasks, one after the other, on the device."""
        return (on_device(self.weight, self.device) @ self._fields)[self._place]

    def decisions(self, tasks: Sequence[int]) -> list[Array]:
        f, ptr = self.decisions_there().cpu().numpy(), self.gram.layout.ptr
        return [f[ptr[t] : ptr[t + 1]] for t in tasks]

    def quadratic_forms(self) -> Array:
        values, ptr = self._fields[:, self._place], self.gram.layout.ptr
        forms = [values[:, a:b] @ self.dual_there[a:b] for a, b in pairwise(ptr.tolist())]
        return torch.stack(forms).cpu().numpy()

    def move_to(self, dual: Array) -> None:
        changed = np.flatnonzero(dual != self.dual)
        if not len(changed):
            return
        of_task = self.note_changes(changed, dual)
        entries, values = on_device(changed, self.device), on_device(dual[changed], self.device)
        steps = self._duals.of(entries, values - self.dual_there[entries])
        self.dual_there[entries] = values
        moved = np.flatnonzero(np.diff(of_task))
        for g in sorted({g for t in moved for g in self.store.atoms_of[t]}):
            atom, positions, rows = self._atoms[g]
            own = steps[atom.block][rows]
            columns = (own != 0).any(dim=0).nonzero()[:, 0]
            if len(columns):
                self.moved += len(columns) * len(positions)
                self._add_columns(g, columns, own[:, columns])
        self.dual[:] = dual

    def _add_columns(self, g: int, columns: Tensor, steps: Tensor) -> None:
        """Add ``steps`` (n_tasks, n_columns) times columns of the block to the fields over atom g."""
        atom, positions, _ = self._atoms[g]
        n, n_tasks = len(positions), len(atom.tasks)
        rows_at_once = min(n, max(256, self._pairs // min(len(columns), 1024)))
        columns_at_once = max(1, self._pairs // rows_at_once)
        start = int(atom.at[0])
        fields = self._fields[:, start : start + n * n_tasks].view(-1, n_tasks, n)
        self.store.n_values += n * len(columns)
        for top in range(0, n, rows_at_once):
            end = min(n, top + rows_at_once)
            rows = self._rows_of(g, positions, top, end)
            for first in range(0, len(columns), columns_at_once):
                some = slice(first, first + columns_at_once)
                left = self.store.take(atom.block, columns[some])
                fields[:, :, top:end] += self.store.kernels.sums(left, rows, steps[:, some])

    def _rows_of(self, g: int, positions: Tensor, top: int, end: int) -> DeviceSide:
        """The samples of an atom, which are kept if memory allows."""
        whole = self.store.samples.keeps and end - top == len(positions)
        if whole and g in self._kept:
            return self._kept[g]
        rows = self.store.take(self.store.atoms[g].block, positions[top:end])
        if whole:
            self._kept[g] = rows
        return rows

    def matrices(self, sets: Mapping[int, IntArray], entries: Tensor) -> Tensor:
        """The matrices Σ_m weight_m K_m among some samples of each task, flat and one after the other.

        ``entries`` are the places of all these samples in arrays over the samples of all tasks. The matrices are valid
        until the next call.
        """
        sizes = np.array([len(some) for some in sets.values()])
        K, positions = self._matrix_storage(int((sizes**2).sum())), self._idx[entries]
        ends, ends_of_matrices = np.cumsum(sizes), np.cumsum(sizes**2)
        blocks = self._block_of[list(sets)]
        first = 0
        while first < len(sizes):  # tasks of one block, one after the other
            begin = ends[first] - sizes[first]
            fits = (blocks == blocks[first]) & (ends - begin <= _TOGETHER)
            fits[: first + 1] = True
            last = len(sizes) if fits.all() else int(np.argmin(fits))
            side = self.store.take(blocks[first], positions[begin : ends[last - 1]])
            for k in range(first, last):
                n, at, end = int(sizes[k]), ends[k] - begin, ends_of_matrices[k]
                own = side.part(at - n, at)
                self.store.kernels.combined(own, own, self.weight, K[end - n * n : end].view(n, n))
            first = last
        return K

    def _matrix_storage(self, size: int) -> Tensor:
        """Memory for so many numbers, which is used again: the allocator would keep a piece for each size."""
        if len(self._storage) < size:
            self._storage = self._storage[:0].clone()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            self._storage = torch.empty(int(1.2 * size), dtype=self.store.kind, device=self.device)
        return self._storage[:size]

    # ------------------------------------------------------------------------------------------ precision
    def single_errors(self, weight: Array) -> tuple[Array, Array]:
        gram, ptr = self.gram, self.gram.layout.ptr
        forms, decisions = np.zeros((gram.n_tasks, gram.n_kernels)), np.zeros(gram.n_tasks)
        for b, (first, last) in enumerate(zip(gram.blocks.task_ptr[:-1], gram.blocks.task_ptr[1:], strict=True)):
            tasks = gram.blocks.tasks[first:last]
            own = {int(t): measured_samples(self.dual[ptr[t] : ptr[t + 1]]) for t in tasks}
            places = {t: gram.layout.idx[ptr[t] + rows] for t, rows in own.items() if len(rows)}
            if not places:
                continue
            measured = np.unique(np.concatenate(list(places.values())))
            lost = self._lost_digits(b, tasks, measured)
            for k, t in enumerate(tasks.tolist()):
                if t in places:
                    mine = lost[:, k, np.searchsorted(measured, places[t])]
                    forms[t] = np.abs(self.dual[ptr[t] : ptr[t + 1]]).sum() * typical(mine) * gram.bank.factor
                    decisions[t] = typical(weight @ mine)
        return forms, decisions

    def _lost_digits(self, b: int, tasks: IntArray, measured: IntArray) -> Array:
        """What single precision adds to Σ_j v_j k_m(x_j, x) for tasks of block b, (n_kernels, n_tasks, n_measured)."""
        v = self._duals.dense(b, tasks, self.dual)
        columns, sums = (v != 0).any(dim=0).nonzero()[:, 0], self.store.kernels.sums
        kinds, where = (torch.float32, torch.float64), on_device(measured, self.device)
        rows = [self.store.take(b, where, kind) for kind in kinds]
        lost = torch.zeros((self.gram.n_kernels, len(tasks), len(where)), dtype=torch.float64, device=self.device)
        step = max(1, self._pairs // (2 * len(where)))
        for first in range(0, len(columns), step):
            some = columns[first : first + step]
            given = [
                (self.store.take(b, some, kind), of_kind, v[:, some]) for kind, of_kind in zip(kinds, rows, strict=True)
            ]
            single, double = (sums(*both) for both in given)
            lost += single - double
        return lost.abs().cpu().numpy()

    def exact_decisions(self, wanted: Sequence[tuple[int, IntArray]], theta: Array) -> list[Array]:
        if not wanted:
            return []
        weight, ptr, found = theta * self.gram.bank.factor, self.gram.layout.ptr, []
        rows = [ptr[t] + some for t, some in wanted]
        support = [ptr[t] + np.flatnonzero(self.dual[ptr[t] : ptr[t + 1]]) for t, _ in wanted]
        both = [on_device(np.concatenate(parts), self.device).split(list(map(len, parts))) for parts in (rows, support)]
        for (t, _), left, right in zip(wanted, *both, strict=True):
            block, v = self._block_of[t], self.dual_there[right]
            side = self.store.take(block, self._idx[right], torch.float64)
            for some in self._idx[left].split(max(1, self._pairs // max(1, len(v)))):
                found.append(self.store.kernels.combined(self.store.take(block, some, torch.float64), side, weight) @ v)
        return np.split(torch.cat(found).cpu().numpy(), np.cumsum(list(map(len, rows)))[:-1])


class Duals:
    """Numbers for the samples of tasks, on the device as one matrix (n_tasks, n_samples) for each block."""

    def __init__(self, gram: GramBlocks, device: Any):
        self._layout, self.device = gram.layout, device
        task_ptr, tasks = gram.blocks.task_ptr, gram.blocks.tasks
        self._shapes = [
            (b - a, len(samples)) for a, b, samples in zip(task_ptr, task_ptr[1:], gram.samples, strict=False)
        ]
        ends = np.cumsum([0, *(rows * columns for rows, columns in self._shapes)])
        self._ends = ends.tolist()
        start, self._row = np.empty(gram.n_tasks, dtype=np.int64), np.empty(gram.n_tasks, dtype=np.int64)
        for b, (rows, columns) in enumerate(self._shapes):
            own = tasks[task_ptr[b] : task_ptr[b + 1]]
            self._row[own] = np.arange(rows)
            start[own] = ends[b] + np.arange(rows) * columns
        self._start = start

    @cached_property
    def _place(self) -> Tensor:
        """The place of each entry in the matrices of all blocks, one after the other."""
        ptr, idx, _, _size = self._layout
        return on_device(np.repeat(self._start, np.diff(ptr)) + idx, self.device)

    @cached_property
    def _flat(self) -> Tensor:
        return torch.zeros(self._ends[-1], dtype=torch.float64, device=self.device)

    def of(self, entries: Tensor, values: Tensor) -> list[Tensor]:
        """The matrices of these numbers, zero elsewhere; valid until the next call."""
        self._flat.zero_()
        self._flat[self._place[entries]] = values
        return [
            self._flat[a:b].view(shape) for a, b, shape in zip(self._ends, self._ends[1:], self._shapes, strict=False)
        ]

    def rows_of(self, atom: Atom) -> Tensor:
        """The rows of the tasks of an atom in the matrix of its block."""
        return on_device(self._row[atom.tasks], self.device)

    def dense(self, b: int, tasks: IntArray, values: Array) -> Tensor:
        """The numbers of some tasks of block b, given those of all entries."""
        ptr = self._layout.ptr
        if len(tasks) == self._shapes[b][0] and (np.diff(ptr)[tasks] == self._shapes[b][1]).all():
            # tasks of all samples of the block, as outputs of a regression are: their numbers are a matrix already
            first = int(tasks[0])
            if (tasks == np.arange(first, first + len(tasks))).all():
                return on_device(values[ptr[first] : ptr[tasks[-1] + 1]].reshape(self._shapes[b]), self.device)
        there = np.flatnonzero(values)
        entries, numbers = on_device(there, self.device), on_device(values[there], self.device)
        return self.of(entries, numbers)[b][on_device(self._row[tasks], self.device)].clone()


class Segments:
    """Sums and maxima of the numbers of each task, by a fixed order of additions; ``of`` is the task of each number.

    The numbers of a task are reduced in pieces, and then the pieces.
    """

    def __init__(self, ptr: IntArray, device: torch.device):
        sizes, n = np.diff(ptr), int(ptr[-1])
        width = int(np.ceil(sizes.max() ** 0.5))
        n_pieces = -(-sizes // width)
        first = np.cumsum(n_pieces) - n_pieces
        owner = np.repeat(np.arange(len(sizes)), n_pieces)
        begin = ptr[owner] + width * (np.arange(len(owner)) - first[owner])
        places, end = begin[:, None] + np.arange(width), ptr[owner + 1][:, None]
        pieces = first[:, None] + np.arange(n_pieces.max())
        self.of = on_device(np.repeat(np.arange(len(sizes)), sizes), device)
        self._places = on_device(np.where(places < end, places, n), device)
        self._pieces = on_device(np.where(pieces < (first + n_pieces)[:, None], pieces, len(owner)), device)

    def sum(self, x: Tensor) -> Tensor:
        for places in (self._places, self._pieces):
            x = torch.nn.functional.pad(x, (0, 1))[places].sum(dim=1)
        return x

    def largest(self, x: Tensor) -> Tensor:
        for places in (self._places, self._pieces):
            x = torch.nn.functional.pad(x, (0, 1), value=-torch.inf)[places].amax(dim=1)
        return x


class DeviceFields:
    """What a Gram store keeps for its fields on a device; see :class:`~paretomkl.gram._large.fields.Fields`."""

    price = 0.02  # of a pair of samples, relative to single precision on the CPU

    def __init__(self, gram: GramBlocks, device: Any, double: bool = False):
        self.device, self.store = device, DeviceStore(gram, device, double)
        self.double = self.store.double
        self.best = DeviceField(self.store)

    def note(self, used: Field) -> None:
        """Nothing: there is only one kind."""


def forms_of_blocks(gram: GramBlocks, device: Any, dual: Array) -> Array:
    """v_t'K_m v_t before the factors, (n_tasks, n_kernels), in double precision."""
    kernels, samples = DeviceKernels(gram.bank.evaluator, device), DeviceSamples(gram.side, device)
    duals, forms = Duals(gram, device), np.zeros((gram.n_tasks, gram.n_kernels))
    for b, numbers in enumerate(gram.samples):
        tasks = gram.blocks.tasks[gram.blocks.task_ptr[b] : gram.blocks.task_ptr[b + 1]]
        found = quadratic_forms(samples, on_device(numbers, device), kernels, duals.dense(b, tasks, dual))
        forms[tasks] = found.T.cpu().numpy()
    return forms
