"""Kernels for tasks that share a function: f_t = f_0 + g_t, as one problem over the samples of all tasks.

The common part f_0 has the kernels K_m, the part g_t of a task has K_m ∘ [same task], and a constant on [same task]
gives penalised intercepts: 2M + 1 kernels, whose weights are learned together. Samples are rows of features with the
code of their task in the last column; a task not seen in training has the code −1 and gets the common part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from .._tools.typing import Array, IntArray
from ..kernels._evaluation import Scaling, last_column
from ..kernels._fitted import (
    FittedBank,
    Groups,
    KernelShares,
    Side,
    SpreadSums,
    capacity_factor,
    draw_samples,
    inverse,
    measure,
    most_measured,
    spreads,
)
from ..kernels._preparing import Preparation
from ..kernels._rounding import Rounding, rounding_of
from ._blocks import CombinedGram, GramBlocks, TaskLayout

UNKNOWN = -1.0
COMMON, OWN, LEVEL = "common", "own", "own: level"


@dataclass(frozen=True)
class CoupledSide:
    """Samples as rows or columns of Gram matrices: for the common part, for that of a task, and the task codes."""

    features: Side
    own: Side
    codes: Array

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, which: IntArray) -> CoupledSide:
        """A side with the given samples."""
        return CoupledSide(self.features.take(which), self.own.take(which), self.codes[which])


@dataclass(frozen=True, eq=False, repr=False)
class CoupledBank(KernelShares):
    """The kernels of a bank for the common part, again for the part of each task, and a level per task.

    It has the interface of :class:`FittedBank`, for samples with the code of their task in the last column.
    """

    base: FittedBank
    variance: Array
    effective_rank: Array
    factor: Array
    capacity: float
    centred: bool = False  # whether the linear kernels of the common part are inner products of centred columns

    coupled: ClassVar[bool] = True
    precomputed: ClassVar[bool] = False

    @classmethod
    def of(cls, base: FittedBank, X: Array, groups: Groups) -> CoupledBank:
        """Measure the kernels of the task-specific parts of samples X, to which the base bank was fitted."""
        most = most_measured(base.n_kernels, base.normalize)
        own, rank, _ = measure(base.evaluator, X[:, :-1], groups, most, codes=last_column(X))
        level, rank_of_level = _spread_of_level(last_column(X), groups, most)
        variance = np.concatenate([base.variance, own, level])
        rank = np.concatenate([base.effective_rank, rank, rank_of_level])
        factor = np.concatenate([base.factor, base.factor, inverse(level)])
        bank = cls(base, variance, rank, factor, base.capacity)
        return bank.with_capacity(base.capacity) if base.normalize == "capacity" else bank

    def with_capacity(self, capacity: float) -> CoupledBank:
        factor = capacity_factor(self.variance, self.effective_rank, self.sources, capacity)
        return replace(self, capacity=capacity, factor=factor)

    @property
    def names(self) -> list[str]:
        return [*(f"{part}: {name}" for part in (COMMON, OWN) for name in self.base.names), LEVEL]

    @property
    def sources(self) -> list[str | None]:
        sources = [kernel.source for kernel in self.base.kernels]
        return [*sources, *sources, None]

    @property
    def normalize(self) -> str:
        return self.base.normalize

    @property
    def scaling(self) -> dict[str, Scaling]:
        return self.base.scaling

    @property
    def preparation(self) -> Preparation | None:
        return self.base.preparation

    @property
    def n_kernels(self) -> int:
        return 2 * self.base.n_kernels + 1

    @property
    def n_bases(self) -> int:
        return self.base.n_bases

    @property
    def common(self) -> FittedBank:
        """The kernels of the common part, with their factors."""
        return replace(self.base, factor=self.factor[: self.base.n_kernels], centred=self.centred)

    @property
    def own(self) -> FittedBank:
        """The kernels of the task-specific parts, with their factors."""
        return replace(self.base, factor=self.factor[self.base.n_kernels : -1])

    def for_shift_invariant(self) -> CoupledBank:
        """See FittedBank; the duals of a single task need not sum to zero, so its own part stays as it is."""
        return replace(self, centred=self.base.for_shift_invariant().centred)

    def common_share(self, theta: Array) -> float:
        """Share of the common part in the variance."""
        return float(self.variance_share(theta)[: self.base.n_kernels].sum())

    def side(self, X: Array) -> CoupledSide:
        features = self.common.side(X[:, :-1])
        return CoupledSide(features, self.own.side(X[:, :-1]) if self.centred else features, last_column(X))

    def cross(self, left: CoupledSide, right: CoupledSide, theta: Array) -> Array:
        """Σ_m θ_m K_m between two sets of samples, (n_left, n_right)."""
        M = self.base.n_kernels
        common, own = self.common.cross(left.features, right.features, theta[:M]), theta[M : 2 * M]
        same = left.codes[:, None] == right.codes
        if not same.any():
            return common
        level = theta[-1] * self.factor[-1]
        return common + same * (self.own.cross(left.own, right.own, own) + level)

    def device_for(self, side: CoupledSide, n_pairs: int) -> None:
        """None: the CPU evaluates these kernels."""

    def sums(
        self, left: CoupledSide, right: CoupledSide, theta: Array, coefficients: Array, device: None = None
    ) -> Array:
        """Σ_j Σ_m θ_m K_m(x_i, z_j) coefficients_jt, (n_left, n_columns)."""
        return self.cross(left, right, theta) @ coefficients

    def stack(self, left: CoupledSide, right: CoupledSide) -> Array:
        """The kernels before their factors, (n_kernels, n_left, n_right)."""
        common = self.base.stack(left.features, right.features)
        own = self.base.stack(left.own, right.own) if self.centred else common
        same = (left.codes[:, None] == right.codes).astype(float)
        return np.concatenate([common, own * same, same[None]])

    def diagonals(self, X: Array) -> Array:
        """k_m(x, x) of samples X, (n_kernels, n)."""
        level = np.full((1, X.shape[0]), self.factor[-1])
        return np.concatenate([self.common.diagonals(X[:, :-1]), self.own.diagonals(X[:, :-1]), level])


def _spread_of_level(codes: Array, groups: Groups, most: int) -> tuple[Array, Array]:
    """Variance and effective rank of the kernel [same code]; see :func:`~paretomkl.kernels._fitted.measure`."""
    sums, drawn = SpreadSums.empty(1), draw_samples(groups, most)
    for rows, weight in drawn:
        same = (codes[rows][:, None] == codes[rows]).astype(float)
        sums.add(*spreads(same[None], weight / weight.sum()), len(drawn))
    return sums.means()


class CoupledGram:
    """Gram matrices of problems over samples of several tasks; see :class:`CoupledBank`.

    Values between samples of different tasks are computed only for the common part. The task-specific parts have one
    block per task.

    Parameters
    ----------
    bank : CoupledBank
    X : array of shape (n_samples, n_features + 1)
        The last column is the code of the task.
    rows : list of integer arrays
        The samples of each problem, in increasing order: all of them, or those of a pair of classes.
    n_jobs : int, default=1
    """

    streams = can_choose = False

    def __init__(self, bank: CoupledBank, X: Array, rows: list[IntArray], n_jobs: int = 1):
        self.bank = bank
        self.n_jobs = n_jobs
        self.X, self._rows = X, rows
        features, codes = X[:, :-1] if issparse(X) else np.ascontiguousarray(X[:, :-1]), last_column(X)
        self.common_part = GramBlocks(bank.common, features, rows, n_jobs)
        parts = [(p, mine[codes[mine] == code]) for p, mine in enumerate(rows) for code in np.unique(codes[mine])]
        self._problem = np.array([p for p, _ in parts])  # problem of each part (the samples of a task in a problem)
        self.own_part = GramBlocks(bank.own, features, [own for _, own in parts], n_jobs)
        self._order = np.concatenate(
            [start + np.argsort(codes[mine], kind="stable") for start, mine in zip(self.layout.ptr, rows, strict=False)]
        )
        self._places = [self._place(samples) for samples in self.own_part.samples]

    def _place(self, samples: IntArray) -> tuple[int, tuple[slice | IntArray, ...]]:
        """The block of the common part that contains these samples, and their position in it."""
        block = next(b for b, others in enumerate(self.common_part.samples) if np.isin(samples[0], others))
        at = np.searchsorted(self.common_part.samples[block], samples)
        together = at[-1] - at[0] == len(at) - 1
        return block, np.s_[at[0] : at[-1] + 1, at[0] : at[-1] + 1] if together else np.ix_(at, at)

    @property
    def layout(self) -> TaskLayout:
        return self.common_part.layout

    @property
    def n_kernels(self) -> int:
        return self.bank.n_kernels

    def with_capacity(self, capacity: float) -> CoupledGram:
        """A copy with another capacity exponent κ."""
        return self.with_bank(self.bank.with_capacity(capacity))

    def with_bank(self, bank: CoupledBank) -> CoupledGram:
        """A copy with a bank that differs only in the factors of its kernels."""
        other = copy(self)
        other.bank = bank
        vars(other).pop("rounding", None)  # it has the old factors
        other.common_part, other.own_part = self.common_part.with_bank(bank.common), self.own_part.with_bank(bank.own)
        return other

    @contextmanager
    def combined(self, theta: Array) -> Iterator[CombinedGram]:
        """K_θ of all problems, valid inside the ``with`` block."""
        M = self.bank.base.n_kernels
        level = theta[-1] * self.bank.factor[-1]
        with self.common_part.combined(theta[:M]) as K, self.own_part.combined(theta[M : 2 * M]) as own:
            begin = 0
            for samples, (block, where) in zip(self.own_part.samples, self._places, strict=True):
                n = len(samples)
                self.common_part.block(K.flat, block)[where] += own.flat[begin : begin + n * n].reshape(n, n) + level
                begin += n * n
            yield K

    def quadratic_forms(self, v: Array) -> Array:
        """G[t, m] = v_t'K_m v_t, (n_problems, n_kernels), for the flat duals v of all problems."""
        by_part = np.ascontiguousarray(v)[self._order]
        sums = np.add.reduceat(by_part, self.own_part.layout.ptr[:-1]) ** 2
        of_parts = np.column_stack([self.own_part.quadratic_forms(by_part), self.bank.factor[-1] * sums])
        own = np.zeros((len(self.layout.size), of_parts.shape[1]))
        np.add.at(own, self._problem, of_parts)
        return np.column_stack([self.common_part.quadratic_forms(v), own])

    def diagonals(self) -> Array:
        """k_m(x, x) of the samples of all problems, concatenated by problem, (n_kernels, n_entries)."""
        common, own = self.common_part.diagonals(), np.empty((self.bank.base.n_kernels, len(self._order)))
        own[:, self._order] = self.own_part.diagonals()
        return np.concatenate([common, own, np.full((1, len(self._order)), self.bank.factor[-1])])

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        return self.bank.names

    @cached_property
    def rounding(self) -> Rounding:
        """Bounds on the rounding errors of the kernels; a level is exact."""
        own = rounding_of(self.bank.base.evaluator, self.X[:, :-1], self.own_part.side).at(np.concatenate(self._rows))
        level = Rounding(own.rows[:1], np.zeros((2, 1), dtype=np.int64), np.array([[0.0], [0.0], [1.0]]), np.ones(1))
        return self.common_part.rounding.beside(own).beside(level)._replace(factor=self.bank.factor)

    def check_positive_semidefinite(self) -> None:
        self.common_part.check_positive_semidefinite()
