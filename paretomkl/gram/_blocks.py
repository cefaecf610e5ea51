"""Gram matrices of many tasks, stored in blocks of samples that share tasks and combined for one θ at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from threading import Lock, RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._tools.compiled import njit
from .._tools.devices import chosen_device
from .._tools.running import run_chunks
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._choose_device import device_for
from ..kernels._evaluation import EvaluationPlan, Pairs, Program, Tile, dot, dot_at, mirror, next_tile
from ..kernels._fitted import PANEL_BYTES, BaseValues, FittedBank
from ..kernels._rounding import Rounding, rounding_of
from ._large.fields import Field, Fields

__all__ = ["CombinedGram", "GramBlocks", "Rounding", "TaskLayout"]

_FEW_PAIRS = 20_000  # pairs of samples below which threads cost more than they save
_FEW_PAIRS_OF_ALL = 2e7  # pairs in total below which full matrices are not worth avoiding
_FEW_PAIRS_ON_DEVICE = 4e6  # pairs in total below which a device is no faster, or not for many tasks
_LARGE_ON_DEVICE = 20_000  # samples of all tasks from which a device evaluates quadratic forms
_SYSTEM = 500  # samples of a block from which a device solves its linear system faster than many cores
_DEARER = 3.0  # cost of a pair in a full matrix, including all its later use, relative to a pair of a field
_MOST_BYTES = 8 * 2**30  # limit on full matrices if there is an alternative
_STORED_BYTES = 32 * 2**20  # size of all kernel values up to which they are stored
_WORTH_STORING = 4  # fewer kernels are computed again as quickly as they are read
_TOGETHER = 200  # kernels chosen at a time
_MANY_SAMPLES = 10_000  # to estimate a mean
_MOST_CHECKED = 1000  # samples per block on which a kernel is checked for negative eigenvalues

_Thing = TypeVar("_Thing")


class TaskLayout(NamedTuple):
    """Positions of the samples and the Gram matrices of the tasks in flat arrays.

    Task t owns the entries ptr[t] to ptr[t+1] - 1 of ``idx`` and of every flat array over samples. Its Gram matrix
    consists of the rows and columns idx of its block, a size[t] × size[t] matrix at start[t] of the flat storage.

    Attributes
    ----------
    ptr : array of int of shape (n_tasks + 1,)
        Start of the entries of each task.
    idx : array of int of shape (n_entries,)
        Row of each entry in its block.
    start, size : arrays of int of shape (n_tasks,)
        Start of the block of each task, and its number of rows.
    """

    ptr: IntArray
    idx: IntArray
    start: IntArray
    size: IntArray


class Blocks(NamedTuple):
    """Groups of tasks on shared samples; samples are numbered consecutively over all blocks.

    Block b has the samples first[b] to first[b+1] - 1 and ``tasks[task_ptr[b] : task_ptr[b+1]]``.
    """

    first: IntArray
    tasks: IntArray
    task_ptr: IntArray


class SupportLists(NamedTuple):
    """The samples that support at least one task, numbered in the order of the blocks, and the lists of each task.

    Support vector k is in block[k], whose first one is begin[k]. The support vectors of task t and their signed dual
    variables are the entries of ``number`` and ``value`` from ptr[t] on; rank[rank_at[t] + k] of them come before
    support vector k.
    """

    block: IntArray
    begin: IntArray
    number: IntArray
    value: Array
    rank: IntArray
    rank_at: IntArray


class CombinedGram:
    """K_θ of all tasks for one θ, valid inside the ``with`` block that created it.

    Parameters
    ----------
    flat : array, or function that returns it
        The concatenated blocks.
    layout : TaskLayout
        Positions of the tasks in ``flat``.
    there : function, default=None
        Returns the block of a task on a device of PyTorch, or None if it is not there.
    """

    def __init__(
        self, flat: Array | Callable[[], Array], layout: TaskLayout, there: Callable[[int], Any] | None = None
    ):
        self._flat: Array | Callable[[], Array] | None = flat
        self.layout, self._there, self._lock = layout, there, Lock()

    @property
    def flat(self) -> Array:
        """The concatenated blocks of all tasks, in the order of the layout."""
        with self._lock:  # several threads may ask for it first
            flat = self._flat
            if flat is None:
                raise RuntimeError(
                    "A combined Gram matrix can be used only inside the `with gram.combined(theta)` block."
                )
            if callable(flat):
                flat = self._flat = flat()
            self._there = None  # whoever has the array may write to it
            return flat

    def of_task(self, t: int, rows: IntArray | None = None, columns: IntArray | None = None) -> Array:
        """A copy of the Gram matrix of a task, (n, n), or of some of its rows and columns; it stays valid."""
        ptr, idx, start, size = self.layout
        mine = idx[ptr[t] : ptr[t + 1]]
        block = self.flat[start[t] : start[t] + size[t] ** 2].reshape(size[t], size[t])
        return block[np.ix_(mine if rows is None else mine[rows], mine if columns is None else mine[columns])]

    def on_device(self, t: int, rows: IntArray) -> Any:
        """The Gram matrix among some samples of a task on a device, or None if the kernel values are not there."""
        there = self._there
        block = None if there is None else there(t)
        if block is None:
            return None
        mine = self.layout.idx[self.layout.ptr[t] : self.layout.ptr[t + 1]][rows]
        if len(mine) == len(block):  # in increasing order
            return block
        mine = block.new_tensor(mine, dtype=int)
        return block[mine[:, None], mine]

    def release(self) -> None:
        """Let go of the values; they cannot be used any more."""
        self._flat = self._there = None


@dataclass
class _Made:
    """What a Gram store creates on first use, and shares with its copies."""

    pairs: Pairs | None = None
    values: Array | None = None
    rounding: Rounding | None = None
    device_values: Any = None  # DeviceValues, see _on_device
    turn: Any = field(default_factory=RLock)  # of the thread that makes or uses them


class _SweepCost:
    """The cost of a sweep in pairs of samples: with full matrices, and as measured with kernel fields.

    Fields need only the columns of variables that change, a few times over. That is much less than all pairs unless
    most samples are support vectors. The first sweep has no warm start and may cost twice as much. Small tasks use full
    matrices, and so do tasks with so many kernels that the fields would be larger than the matrices.
    """

    def __init__(self, n_full: int, n_fields: int):
        self._n_pairs = n_full / 2
        self.fits = 16 * self._n_pairs <= _MOST_BYTES
        smaller = n_fields <= n_full
        self.streams = smaller and self._n_pairs > _FEW_PAIRS_OF_ALL
        self._allowed = 2 * _DEARER * self._n_pairs
        self.pays = smaller and self._n_pairs > _FEW_PAIRS_ON_DEVICE  # whether a device is faster
        self.double = False  # whether single precision turned out to lose too many digits

    def start_over(self) -> None:
        """The next sweep repeats the last one in double precision, and has no warm start either."""
        self.double, self._allowed = True, 2 * _DEARER * self._n_pairs

    def note(self, cost: float) -> None:
        """Record the cost of a sweep with fields."""
        if cost > self._allowed and self.fits:
            self.streams = False
        self._allowed = _DEARER * self._n_pairs


class GramBlocks:
    """Combined Gram matrices and quadratic forms of T tasks over one set of samples.

    Tasks that share samples share a block, so K_θ is formed once for all of them. Tasks on disjoint samples have
    separate blocks, and no kernel values are computed between them. All blocks lie in one flat array, see
    :class:`TaskLayout`.

    Parameters
    ----------
    bank : FittedBank
        The base kernels, from ``KernelBank.fit``.
    X : array of shape (n_samples, n_features)
        The samples; of shape (n_samples, n_samples, n_kernels) if precomputed.
    rows : list of n_tasks integer arrays
        The samples of each task, in increasing order.
    n_jobs : int, default=1
        Number of threads.
    shared : bool, default=True
        Whether all tasks have the same θ. If not, every task gets its own block.
    known : BaseValues, default=None
        The base values among all samples, if fitting the bank gave them.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl import KernelBank
    >>> from paretomkl.gram import GramBlocks
    >>> X = np.eye(3)
    >>> gram = GramBlocks(KernelBank(["linear"]).fit(X), X, [np.arange(3)])
    >>> bool(np.allclose(gram.cross(X, np.ones(1)), np.eye(3)))
    True
    """

    def __init__(
        self,
        bank: FittedBank,
        X: AnyArray,
        rows: list[IntArray],
        n_jobs: int = 1,
        shared: bool = True,
        known: BaseValues | None = None,
    ):
        self.bank, self.n_jobs = bank, n_jobs
        self._plan = bank.evaluator.plan
        self.side = bank.side(X) if known is None else bank.evaluator.with_norms(known.side, bank.centred)
        self._X, self._rows, self._shared = X, np.concatenate(rows), shared
        self.samples, block = _connected_blocks(rows, X.shape[0]) if shared else (rows, np.arange(len(rows)))
        size = np.array([len(samples) for samples in self.samples])
        tasks = np.argsort(block, kind="stable")
        self.blocks = Blocks(
            first=_offsets(size),
            tasks=tasks,
            task_ptr=np.searchsorted(block[tasks], np.arange(len(size) + 1)),
        )
        self._block_of = block
        self._start, self._size = _offsets(size**2), size  # positions of the blocks in flat storage
        self.layout = TaskLayout(
            ptr=_offsets([len(r) for r in rows]),
            idx=np.concatenate([np.searchsorted(self.samples[b], r) for b, r in zip(block, rows, strict=True)]),
            start=self._start[block],
            size=size[block],
        )
        # objects that are slow to create: nested and concurrent users take or make their own, and one is kept
        self._storage: deque[Array] = deque(maxlen=1)
        self._fields: deque[Any] = deque(maxlen=1)  # Fields, or those of a device
        self._cost = _SweepCost(int(self._start[-1]), bank.n_kernels * int(self.layout.ptr[-1]))
        # the concatenated rows of all blocks
        begin, number = np.repeat(self.blocks.first[:-1], size), np.arange(self.blocks.first[-1])
        samples = self.side.norms(np.concatenate(self.samples))
        pairs = Pairs(
            panel=np.empty((self._plan.n_bases, 0)),
            row_at=_offsets(np.repeat(size, size))[:-1],
            column=number - begin,
            begin=begin,
            end=number + 1,
            left=samples,
            right=samples,
        )
        self._kept = 8 * self._plan.n_bases * self._start[-1] <= bank.cache_bytes
        small = 8 * bank.n_kernels * self._start[-1] <= min(_STORED_BYTES, bank.cache_bytes)
        self._stored = small and self._plan.few and bank.n_kernels >= _WORTH_STORING
        self._bare_pairs = pairs
        self._known = known.panel if known is not None and size.tolist() == [X.shape[0]] else None  # of the only block
        self._made = _Made()

    @property
    def _pairs(self) -> Pairs:
        """All pairs of samples within blocks, with their base values if these are kept."""
        if self._made.pairs is None:
            self._made.pairs = self._with_bases()
        return self._made.pairs

    def _with_bases(self) -> Pairs:
        if not self._kept:
            return self._bare_pairs
        panel, which = self._known, self._bare_pairs.left.which
        return self._bare_pairs._replace(
            panel=self._panel(which, self.blocks.first, 0, len(which)) if panel is None else panel
        )

    @property
    def _values(self) -> Array:
        """The values of all kernels before their factors, (n_pairs, n_kernels), with pairs as in flat storage."""
        if self._made.values is None:
            whole_rows = self._with_bases()._replace(end=np.repeat(self.blocks.first[1:], self._size))
            self._made.values = np.ascontiguousarray(self._plan.groups[0].stack(whole_rows).T)
        return self._made.values

    @property
    def n_tasks(self) -> int:
        return len(self.layout.size)

    @property
    def n_kernels(self) -> int:
        return self.bank.n_kernels

    def with_capacity(self, capacity: float) -> GramBlocks:
        """A copy with another capacity exponent κ; it shares samples and base matrices with this one."""
        return self.with_bank(self.bank.with_capacity(capacity))

    @property
    def can_choose(self) -> bool:
        """Whether ``with_kernels`` is cheap: it is not for a precomputed stack, which would be copied."""
        return self._shared and not self.bank.precomputed

    def with_kernels(self, which: IntArray) -> GramBlocks:
        """A new store with the given kernels only."""
        rows = np.split(self._rows, self.layout.ptr[1:-1])
        return GramBlocks(self.bank.some(which), self._X, rows, self.n_jobs, self._shared)

    def steepest(self, slope: Array, among: IntArray | None = None) -> IntArray:
        """Kernels of large slope, starting with the largest of each base, since similar widths replace each other."""
        among = np.arange(self.n_kernels) if among is None else among
        falling = among[np.argsort(-slope[among], kind="stable")]
        base_of = self.bank.evaluator.bases.of_kernel
        by_base = falling[np.argsort(base_of[falling], kind="stable")]
        base = base_of[by_base]
        rank = np.arange(len(base)) - np.searchsorted(base, base)
        return np.sort(by_base[np.lexsort((-slope[by_base], rank))][:_TOGETHER])

    def with_bank(self, bank: FittedBank) -> GramBlocks:
        """A copy with a bank that differs only in the factors of its kernels."""
        other = copy(self)
        other.bank = bank
        vars(other).pop("rounding", None)  # it has the old factors
        return other

    def block(self, flat: Array, b: int) -> Array:
        """A view of block b in flat storage, (n, n)."""
        n = self._size[b]
        return flat[self._start[b] : self._start[b] + n * n].reshape(n, n)

    def _support_of(self, v: Array) -> tuple[IntArray, SupportLists]:
        """The samples that support at least one task, and the lists of each task."""
        ptr, idx, _, size = self.layout
        position, sample, block, begin = np.empty((4, self.blocks.first[-1]), dtype=np.int64)
        number, value = np.empty(len(idx), dtype=np.int64), np.empty(len(idx))
        rank, rank_at = np.empty((size + 1).sum(), dtype=np.int64), np.empty(len(size), dtype=np.int64)
        lists = SupportLists(block, begin, number, value, rank, rank_at)
        n = find_support(self.blocks, ptr, idx, v, position, sample, lists)
        return sample[:n], lists._replace(block=block[:n], begin=begin[:n])

    def _pieces(self, pairs: Pairs, first: int, last: int) -> list[tuple[int, int]]:
        """Ranges of rows with about the same number of pairs: several per thread, or one if threads do not pay."""
        if self.n_jobs == 1:
            return [(first, last)]
        area = _offsets((pairs.end - pairs.begin)[first:last])
        pieces = 1 if area[-1] < _FEW_PAIRS else 4 * self.n_jobs
        edges = np.unique(first + np.searchsorted(area, np.linspace(0, area[-1], pieces + 1)))
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))

    def _panel(self, which: IntArray, edges: IntArray, first: int, last: int) -> Array:
        """Base values between rows first..last-1 and all samples of their blocks; ``edges`` delimit the blocks."""
        bases = slice(0, self._plan.n_bases)
        parts = [
            self.bank.evaluator.panel(self.side, which[max(a, first) : min(b, last)], self.side, which[a:b], bases)
            for a, b in pairwise(edges.tolist())
            if a < last and b > first
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _chunks(self, pairs: Pairs, first: int, last: int) -> Iterator[tuple[Pairs, int, int]]:
        """Yield rows first..last-1 with their base values: all at once if these are kept, else in chunks."""
        if self._kept:
            yield pairs, first, last
            return
        edges = np.append(np.unique(pairs.begin), len(pairs.begin))
        row_at = _offsets(np.repeat(np.diff(edges), np.diff(edges)))
        most = int(PANEL_BYTES // (8 * self._plan.n_bases))
        column = np.arange(len(pairs.begin)) - pairs.begin
        while first < last:
            fits = int(np.searchsorted(row_at, row_at[first] + most, side="right")) - 1
            if fits < last and pairs.begin[fits] > first:
                fits = int(pairs.begin[fits])  # whole blocks, so that rounding does not depend on the other tasks
            end = min(last, max(fits, first + 16))
            panel = self._panel(pairs.left.which, edges, first, end)
            yield pairs._replace(panel=panel, row_at=row_at[:-1] - row_at[first], column=column), first, end
            first = end

    @property
    def fits(self) -> bool:
        """Whether full matrices are small enough to be an alternative to fields."""
        return self._cost.fits

    @property
    def streams(self) -> bool:
        """Whether kernel fields are expected to cost less than full matrices."""
        if self.bank.precomputed:
            return False
        return self._cost.streams or (self._cost.pays and self._device() is not None)

    @contextmanager
    def field(self) -> Iterator[Field]:
        """The functions of all tasks at the dual of their last use, valid inside the ``with`` block."""
        device, fields = self._device(), _popped(self._fields)
        if fields is None or fields.device != device or (self._cost.double and not fields.double):
            fields = self._make_fields(device)
        fields.store.gram = self  # copies with other factors share them
        field = fields.best
        before = fields.store.n_values
        yield field
        fields.note(field)
        self._cost.note(fields.price * (fields.store.n_values - before))
        fields.store.gram = None  # their memory is free as soon as no store needs them
        self._fields.append(fields)

    def _device(self) -> Any:
        """The device for fields, or None."""
        return device_for(self.bank.evaluator, self.side.features, self._cost.pays)

    def _make_fields(self, device: Any) -> Any:
        if device is None:
            return Fields(self, self._cost.double)
        from ._large.on_device import DeviceFields  # imports PyTorch

        return DeviceFields(self, device, self._cost.double)

    def use_double_precision(self) -> None:
        """Compute fields in double precision from now on."""
        self._cost.start_over()

    @contextmanager
    def combined(self, theta: Array) -> Iterator[CombinedGram]:
        """K_θ = Σ_m θ_m K_m of all tasks, valid inside the ``with`` block.

        θ has shape (n_kernels,), or (n_tasks, n_kernels) if every task has its own block. The next ``with`` block
        reuses the storage, so copy what you want to keep.
        """
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        if theta.shape not in ((self.n_kernels,), (len(self._size), self.n_kernels)):
            raise ValueError(f"theta must have one entry per kernel ({self.n_kernels}), got shape {theta.shape}.")
        made: list[Array] = []

        def make() -> Array:
            # before taking the storage, because computing values needs memory too
            _ = self._values if self._stored else self._pairs
            flat = _popped(self._storage)
            made.append(np.empty(self._start[-1]) if flat is None else flat)
            self.combine(theta * self.bank.factor, made[0])
            return made[0]

        gram = CombinedGram(make, self.layout, self._blocks_there(theta) if theta.ndim == 1 else None)
        try:
            yield gram
        finally:
            gram.release()
            self._storage.extend(made)

    def _blocks_there(self, theta: Array) -> Callable[[int], Any]:
        """A function that returns the block of a task in Σ_m θ_m K_m on a device, or None if values are not there."""
        made: dict[int, Any] = {}

        def block(t: int) -> Any:
            b = int(self._block_of[t])
            with self._made.turn:  # threads that solve systems of one block need it once
                values = self._device_values(make=True)
                if values is not None and b not in made:
                    made[b] = values.combined(b, theta * self.bank.factor)
            return made.get(b)

        return block

    def _device_values(self, make: bool = False) -> Any:
        """All kernel values on a device, if they are there, or if ``make`` says so and it pays; else None."""
        if self._size.max() < _SYSTEM or (self._made.device_values is None and not make):
            return None
        device = chosen_device(pays=True)
        if device is not None and (self._made.device_values is None or self._made.device_values.device != device):
            from ._on_device import DeviceValues  # imports PyTorch

            self._made.device_values = DeviceValues.of(self, device)
        return None if device is None else self._made.device_values

    def combine(self, weights: Array, flat: Array) -> None:
        """Fill flat storage with Σ_m weights_m K_m of kernels before their factors; one row for all blocks, or each."""
        first = self.blocks.first.tolist()
        rows = np.atleast_2d(weights)
        ranges = [(0, first[-1])] if weights.ndim == 1 else pairwise(first)
        if self._stored:
            combine_values(self._values, rows, self._start, self._size, flat)
            ranges, rows = [], rows[:0]
        for row, (a, b) in zip(rows, ranges, strict=True):
            plan, weights = self._plan.of_weights(row)
            for pairs, at, end in self._chunks(self._pairs, a, b):
                out = flat if self._kept else flat[self._pairs.row_at[at] :]
                pieces = self._pieces(pairs, at, end)
                run_chunks(plan.combine, [(weights, pairs, i, j, out) for i, j in pieces], self.n_jobs)
        mirror(flat, self._start, self._size)

    def quadratic_forms(self, v: Array) -> Array:
        """G[t, m] = v_t' K_m v_t, shape (n_tasks, n_kernels), for the flat signed dual v of all tasks.

        Only pairs of support vectors are evaluated.
        """
        ptr, idx, start, size = self.layout
        v = np.ascontiguousarray(v, dtype=np.float64)
        if (values := self._device_values()) is not None:
            with self._made.turn:
                return values.forms(v) * self.bank.factor
        if len(v) > _LARGE_ON_DEVICE and self._cost.pays and (device := self._device()) is not None:
            from ._large.on_device import forms_of_blocks  # imports PyTorch

            return forms_of_blocks(self, device, v) * self.bank.factor
        if self._stored:
            G = np.zeros((self.n_tasks, self.n_kernels))
            forms_of_values(self._values, ptr, idx, start, size, v, G)
            return G * self.bank.factor
        chosen, support = self._support_of(v)
        panel, row_at, column, _, end, left, _ = self._pairs
        norms = self.side.norms(left.which[chosen])
        pairs = Pairs(panel, row_at[chosen], column[chosen], support.begin, end[: len(chosen)], norms, norms)

        def work(pairs: Pairs, first: int, last: int) -> Array:
            return forms_of_pairs(self._plan, pairs, self.blocks, ptr, support, first, last)

        total = np.zeros((self._plan.n_evaluated, self.n_tasks))
        for some, first, last in self._chunks(pairs, 0, len(chosen)):
            for G in run_chunks(work, [(some, i, j) for i, j in self._pieces(some, first, last)], self.n_jobs):
                total += G
        return np.ascontiguousarray(self._plan.of_kernels(total).T) * self.bank.factor

    def diagonals(self) -> Array:
        """k_m(x, x) of the samples of all tasks, concatenated by task, (n_kernels, n_entries)."""
        return self._plain_diagonals * self.bank.factor[:, None]

    def mean_diagonals(self) -> Array:
        """The mean k_m(x, x) of samples of all tasks, many of them if not all, (n_kernels,)."""
        some = np.linspace(0, len(self._rows) - 1, min(len(self._rows), _MANY_SAMPLES)).astype(int)
        return self.bank.diagonals(self._X[self._rows[some]]).mean(axis=1)

    @cached_property
    def _plain_diagonals(self) -> Array:
        """``diagonals`` before the factors, which are the only difference between stores of different capacity."""
        return self.bank.evaluator.diagonals(self._X, self.bank.centred)[:, self._rows]

    @cached_property
    def rounding(self) -> Rounding:
        """Bounds on the rounding errors of the kernels at the samples of all tasks."""
        if self._made.rounding is None:
            self._made.rounding = rounding_of(self.bank.evaluator, self._X, self.side).at(self._rows)
        return self._made.rounding._replace(factor=self.bank.factor)

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        return self.bank.names

    def cross(self, X: AnyArray, theta: Array) -> Array:
        """Σ_m θ_m K_m between new samples X and all samples of the store, (len(X), n_samples)."""
        return self.bank.cross(self.bank.side(X), self.side, theta)

    def check_positive_semidefinite(self) -> None:
        """Raise if a callable or precomputed kernel is not symmetric or is clearly indefinite.

        Large blocks are checked on a subset of their samples: a principal submatrix of a positive semidefinite matrix
        is positive semidefinite.
        """
        for b, kernel in enumerate(self.bank.evaluator.bases.kernels):
            if kernel.semidefinite:
                continue
            for samples in self.samples:
                some = samples[np.unique(np.linspace(0, len(samples) - 1, _MOST_CHECKED).astype(int))]
                K = self.bank.evaluator.base_matrix(b, self.side, some)
                if not np.allclose(K, K.T, rtol=1e-6, atol=1e-8 * np.abs(K).max()):
                    raise ValueError(f"Kernel {kernel} is not symmetric.")
                least = np.linalg.eigvalsh(K)[0] if not _has_cholesky(K) else 0.0
                if least < 0:
                    raise ValueError(
                        f"Kernel {kernel} is not positive semidefinite: its smallest eigenvalue is {least:.2g}, and "
                        f"the mean of its diagonal is {np.diag(K).mean():.2g}. Clip its negative eigenvalues or use "
                        "another kernel."
                    )


def _popped(spare: deque[_Thing]) -> _Thing | None:
    """The last of these, or None; safe if several threads take it."""
    try:
        return spare.pop()
    except IndexError:
        return None


def _offsets(lengths: Sequence[int] | IntArray) -> IntArray:
    """Start of each of these consecutive pieces, and the end of the last."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _has_cholesky(K: Array) -> bool:
    """Whether K plus 1e-5 of its largest diagonal entry is positive definite; this allows for single precision."""
    try:
        np.linalg.cholesky(K + (1e-5 * np.abs(np.diag(K)).max() + 1e-300) * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def _connected_blocks(rows: list[IntArray], n_samples: int) -> tuple[list[IntArray], IntArray]:
    """Group tasks that share samples, directly or through others.

    Returns the samples of each block (increasing) and the block of each task.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n_tasks, n_nodes = len(rows), len(rows) + n_samples
    task = np.repeat(np.arange(n_tasks), [len(r) for r in rows])
    # an edge between each task and each of its samples; components are numbered by their first node, tasks come first
    edges = csr_matrix((np.ones(len(task)), (task, n_tasks + np.concatenate(rows))), shape=(n_nodes, n_nodes))
    _, component = connected_components(edges, directed=False)
    block, of_sample = component[:n_tasks].astype(np.int64), component[n_tasks:]
    n_members = np.bincount(of_sample, minlength=n_nodes)[: block.max() + 1]  # samples without a task come later
    members = np.argsort(of_sample, kind="stable")[: n_members.sum()]
    return np.split(members, np.cumsum(n_members)[:-1]), block


def forms_of_pairs(
    plan: EvaluationPlan, pairs: Pairs, blocks: Blocks, ptr: IntArray, support: SupportLists, first: int, last: int
) -> Array:
    """The quadratic forms of the evaluated functions, (n_evaluated, n_tasks); see ``quadratic_forms``."""
    n_tasks = len(ptr) - 1
    forms = np.empty((plan.n_evaluated, n_tasks))
    for group in plan.groups:
        some = np.zeros((n_tasks, len(group.kernels)))
        quadratic_forms(group.program, group.pairs(pairs), blocks, ptr, support, first, last, group.tile(), some)
        forms[group.place] = some.T
    if plan.n_products:
        forms[-plan.n_products :] = plan.product_forms(pairs, _dense_duals(blocks, ptr, support), first, last)
    return forms


def _dense_duals(blocks: Blocks, ptr: IntArray, support: SupportLists) -> Array:
    """The dual of each task at every support vector, (n_tasks, n_support)."""
    V = np.zeros((len(ptr) - 1, len(support.begin)))
    for b in range(len(blocks.task_ptr) - 1):
        mine = np.flatnonzero(support.block == b)
        for t in blocks.tasks[blocks.task_ptr[b] : blocks.task_ptr[b + 1]]:
            if len(mine):
                own = slice(ptr[t], ptr[t] + support.rank[support.rank_at[t] + mine[-1] + 1])
                V[t, support.number[own]] = support.value[own]
    return V


# ------------------------------------------------------------------------------------------- compiled
@njit()
def find_support(
    blocks: Blocks, ptr: IntArray, idx: IntArray, v: Array, position: IntArray, sample: IntArray, support: SupportLists
) -> int:
    """Fill the lists for the dual v of the tasks in layout (ptr, idx); return the number of support vectors.

    ``sample`` receives these samples; ``position`` is a buffer with one integer per sample.
    """
    first, tasks, task_ptr = blocks
    block, begin, number, value, rank, rank_at = support
    n = 0
    n_ranks = 0
    for b in range(len(first) - 1):
        for i in range(first[b], first[b + 1]):
            position[i] = -1
        for a in range(task_ptr[b], task_ptr[b + 1]):
            for q in range(ptr[tasks[a]], ptr[tasks[a] + 1]):
                if v[q] != 0.0:
                    position[first[b] + idx[q]] = 0
        begins = n
        for i in range(first[b], first[b + 1]):
            if position[i] == 0:
                position[i] = n
                sample[n], block[n], begin[n] = i, b, begins
                n += 1
        for a in range(task_ptr[b], task_ptr[b + 1]):
            t = tasks[a]
            at = ptr[t]
            rank_at[t] = n_ranks - begins
            for q in range(ptr[t], ptr[t + 1]):
                if v[q] != 0.0:
                    number[at], value[at] = position[first[b] + idx[q]], v[q]
                    while n_ranks - rank_at[t] <= number[at]:
                        rank[n_ranks] = at - ptr[t]
                        n_ranks += 1
                    at += 1
            while n_ranks - rank_at[t] <= n:
                rank[n_ranks] = at - ptr[t]
                n_ranks += 1
    return n


@njit()
def quadratic_forms(
    program: Program,
    pairs: Pairs,
    blocks: Blocks,
    ptr: IntArray,
    support: SupportLists,
    first: int,
    last: int,
    tile: Tile,
    forms: Array,
) -> None:
    """Add to forms[t, m] the part of v_t' K_m v_t from pairs (i, j) of support vectors, first ≤ i < last and j ≤ i."""
    _, tasks, task_ptr = blocks
    block, begin, number, value, rank, rank_at = support
    cursor, needed, _, _, _, tile_values, _ = tile
    for m in range(len(needed)):
        needed[m] = 1
    cursor[0], cursor[1] = first, 0
    edge = first
    while cursor[0] < last:
        i, offset = cursor[0], cursor[1]
        if i == edge:  # a tile ends with its block, so that rounding does not depend on other tasks
            while edge < last and block[edge] == block[i]:
                edge += 1
        n = next_tile(program, pairs, edge, tile)
        done = 0
        while done < n:
            j = begin[i] + offset
            length = min(n - done, i + 1 - j)
            on_diagonal = j + length == i + 1
            off = length - 1 if on_diagonal else length  # pairs below the diagonal, which count twice
            for a in range(task_ptr[block[i]], task_ptr[block[i] + 1]):
                t = tasks[a]
                at = rank[rank_at[t] + i]
                if rank[rank_at[t] + i + 1] == at:  # i does not support this task
                    continue
                v = value[ptr[t] + at]
                lo = rank[rank_at[t] + j]
                count = rank[rank_at[t] + j + off] - lo
                coefficients = value[ptr[t] + lo :]
                numbers = number[ptr[t] + lo :]
                for m in range(len(needed)):
                    values = tile_values[m, done:]
                    if count == off:  # every sample of the piece supports the task: no indirection
                        cross = dot(values, coefficients, off)
                    else:
                        cross = dot_at(values, numbers, j, coefficients, count)
                    forms[t, m] += 2.0 * v * cross
                    if on_diagonal:
                        forms[t, m] += v * v * values[off]
            done += length
            i, offset = i + 1, 0


@njit(fastmath={"contract", "reassoc", "nsz"})
def combine_values(values: Array, weights: Array, start: IntArray, size: IntArray, flat: Array) -> None:
    """The lower triangle of Σ_m weights_m K_m of every block, at its place in ``flat``, from stored kernel values.

    The values of all kernels for a pair of samples lie side by side, so that each pair is one short vector operation.

    ``values`` has shape (n_pairs, n_kernels); ``weights`` has one row for all blocks, or one row per block.
    """
    n_kernels = values.shape[1]
    for b in range(len(size)):
        weight = weights[b if len(weights) > 1 else 0]
        for i in range(size[b]):
            for pair in range(start[b] + i * size[b], start[b] + i * size[b] + i + 1):
                total = 0.0
                for m in range(n_kernels):
                    total += weight[m] * values[pair, m]
                flat[pair] = total


@njit(fastmath={"contract"})
def forms_of_values(
    values: Array, ptr: IntArray, idx: IntArray, start: IntArray, size: IntArray, v: Array, G: Array
) -> None:
    """G[t] += v_t'K_m v_t of every kernel, for flat duals v; the other arguments are those of a TaskLayout.

    A sum per row first: the error of a sum is that of its longest chain of additions.
    """
    n_kernels = values.shape[1]
    of_row = np.empty(n_kernels)
    for t in range(len(size)):
        form = G[t]
        for i in range(ptr[t], ptr[t + 1]):
            if v[i] == 0.0:
                continue
            row = start[t] + idx[i] * size[t]
            own = row + idx[i]
            for m in range(n_kernels):
                of_row[m] = 0.5 * v[i] * values[own, m]
            for j in range(ptr[t], i):
                if v[j] == 0.0:
                    continue
                pair, factor = row + idx[j], v[j]
                for m in range(n_kernels):
                    of_row[m] += factor * values[pair, m]
            for m in range(n_kernels):
                form[m] += 2.0 * v[i] * of_row[m]
