"""A bank of kernels bound to training data, without one Gram matrix per kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ._kernel_rows import EXPONENTIAL, Pairs, Program, Samples, combine_rows, make_tile
from ._typing import AnyArray, Array, IntArray

if TYPE_CHECKING:
    from ._kernels import Kernel, KernelBank, Normalization

MAX_DOUBLINGS = 14  # squarings in a row from one exp: the error 2^14 · 1e-16 stays near 1e-12
PANEL_BYTES = 32 * 2**20  # how much of the base matrices is made at a time when they are not kept


@dataclass(frozen=True)
class Side:
    """One set of samples as the rows or columns of Gram matrices.

    features: per base the samples as its metric wants them; squares (n_bases, n): squared norms; scale
    (n_kernels, n): normalisation factors; and for squared distances the norms of the centred features.
    """

    features: list[AnyArray]
    centred_squares: list[Array]
    squares: Array
    scale: Array

    def __len__(self) -> int:
        return self.scale.shape[1]

    def samples(self, which: IntArray) -> Samples:
        """Some of the samples, for compiled code."""
        return Samples(which, self.squares, self.scale)


class FittedBank:
    """A bank bound to training data: knows its bases, the order of its kernels, and its normalisation.

    ``columns`` are those of each kernel; ``None`` means that X is a precomputed stack.
    """

    def __init__(
        self,
        kernels: list[Kernel],
        columns: list[IntArray] | None,
        X: AnyArray,
        bank: KernelBank,
        weight: Array | None = None,
    ):
        self.kernels = kernels
        self.precomputed = columns is None
        if self.precomputed and bank.normalize == "unit":
            raise ValueError(
                "normalize='unit' needs the norm of every test sample, which a precomputed stack does not hold; "
                "normalise the stack yourself (K / sqrt(outer(diag, diag))) or use normalize='trace'."
            )
        auto: Normalization = "none" if self.precomputed else "unit"
        self.normalize = auto if bank.normalize == "auto" else bank.normalize
        # a stack is there already; a copy of it would double the memory
        self.cache_bytes = 0.0 if self.precomputed else bank.cache_mb * 2**20
        self.names = [str(kernel) for kernel in kernels]
        # kernels that see the same columns through the same metric share one base matrix
        keys: dict[tuple, int] = {}
        self.base = np.empty(len(kernels), dtype=np.int64)
        self.base_kernels: list[Kernel] = []
        self.base_columns: list[IntArray] = []
        for m, kernel in enumerate(kernels):
            key: tuple = (kernel.metric, tuple(columns[m])) if columns and kernel.metric != "custom" else (m,)
            if key not in keys:
                keys[key] = len(keys)
                self.base_kernels.append(kernel)
                self.base_columns.append(np.empty(0, dtype=np.int64) if columns is None else columns[m])
            self.base[m] = keys[key]
        self.centre = [np.average(X[:, seen], axis=0, weights=weight) for seen in self.base_columns if columns]
        self.trace_scale = np.ones(len(kernels))
        if self.normalize == "trace":
            diagonals = np.einsum("iim->mi", X) if self.precomputed else list(self._diagonals(X, self.side(X).squares))
            self.trace_scale = _inverse_root(np.average(diagonals, axis=1, weights=weight))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "program"}

    @cached_property
    def program(self) -> Program:
        return _compile(self.kernels, self.base, self.normalize)

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def n_bases(self) -> int:
        return len(self.base_kernels)

    def side(self, X: AnyArray) -> Side:
        """Prepare samples X (n, n_features), or a stack of any shape (n, n', n_kernels), for use in panels."""
        if self.precomputed:
            return replace(self.side_of_columns(len(X)), features=[X])
        X = np.asarray(X, dtype=np.float64)
        features: list[AnyArray] = []
        centred_squares: list[Array] = []
        squares = np.zeros((len(self.base_kernels), len(X)))
        for b, seen in enumerate(self.base_columns):
            part = X[:, seen]
            if self.base_kernels[b].metric == "sqeuclidean":
                squares[b] = np.einsum("ij,ij->i", part, part)
                part = part - self.centre[b]  # distances keep their digits when the data lie far from the origin
                centred_squares.append(np.einsum("ij,ij->i", part, part))
            else:
                centred_squares.append(squares[b])
            features.append(np.ascontiguousarray(part))
        scale = np.ones((self.n_kernels, len(X)))
        for m, (kernel, diagonal) in enumerate(zip(self.kernels, self._diagonals(X, squares), strict=True)):
            if not np.isfinite(diagonal).all():
                raise ValueError(f"Kernel {kernel} leaves the range of numbers on these data; scale the features.")
            if kernel.scaling == "always" or (kernel.scaling == "bank" and self.normalize == "unit"):
                scale[m] = _inverse_root(diagonal)
            elif kernel.scaling == "bank":
                scale[m] = self.trace_scale[m]
        return Side(features, centred_squares, squares, scale)

    def side_of_columns(self, n: int) -> Side:
        """The columns of a precomputed stack, which has no samples of its own on that side."""
        scale = np.tile(self.trace_scale[:, None], (1, n))
        return Side([], [], np.zeros((self.n_kernels, 1)), scale)

    def _diagonals(self, X: Array, squares: Array) -> Iterator[Array]:
        """k_m(x, x) of every sample, kernel by kernel."""
        part, base_of_part = X, -1
        for kernel, b in zip(self.kernels, self.base.tolist(), strict=True):
            if b != base_of_part:
                part, base_of_part = X[:, self.base_columns[b]], b
            yield kernel.diagonal(part, squares[b])

    def panel(self, left: Side, rows: IntArray, right: Side, columns: IntArray) -> Array:
        """Base matrices between some samples of each side, each of them flat: (n_bases, n_rows * n_columns)."""
        if self.precomputed:
            stack = left.features[0][np.ix_(rows, columns)]
            return np.ascontiguousarray(stack.reshape(-1, stack.shape[2]).T)
        out = np.empty((len(self.base_kernels), len(rows), len(columns)))
        for b, kernel in enumerate(self.base_kernels):
            x, z = left.features[b][rows], right.features[b][columns]
            if kernel.metric == "sqeuclidean":
                np.dot(x, z.T, out=out[b])
                out[b] *= -2
                out[b] += left.centred_squares[b][rows][:, None]
                out[b] += right.centred_squares[b][columns]
                np.maximum(out[b], 0, out=out[b])
                _refine_small(out[b], x, z, left.centred_squares[b][rows], right.centred_squares[b][columns])
                if left is right:
                    out[b][rows[:, None] == columns] = 0  # a sample is at distance zero from itself
            else:
                out[b] = kernel.base_values(x, z)
        return out.reshape(len(out), -1)

    def base_matrix(self, base: int, side: Side, samples: IntArray) -> Array:
        """One base matrix among some samples."""
        if self.precomputed:
            return np.ascontiguousarray(side.features[0][np.ix_(samples, samples)][:, :, base])
        part = side.features[base][samples]
        return self.base_kernels[base].base_values(part, part)

    def cross(self, left: Side, right: Side, theta: Array) -> Array:
        """Σ_m θ_m K_m between two sets of samples, (n_left, n_right)."""
        return self.cross_all(left, right, theta[None])[0]

    def cross_all(self, left: Side, right: Side, thetas: Array) -> Array:
        """The same for several θ, (n_thetas, n_left, n_right); base matrices are made once for all of them."""
        thetas = np.ascontiguousarray(thetas, dtype=np.float64)
        n_columns = len(right)
        out = np.empty((len(thetas), len(left) * n_columns))
        columns = np.arange(n_columns)
        tile = make_tile(len(self.base_kernels), self.n_kernels)
        step = max(1, int(PANEL_BYTES // (8 * len(self.base_kernels) * max(n_columns, 1))))
        for first in range(0, len(left), step):
            rows = np.arange(first, min(first + step, len(left)))
            pairs = Pairs(
                panel=self.panel(left, rows, right, columns),
                row_at=(rows - first) * n_columns,
                column=columns,
                begin=np.zeros_like(rows),
                end=np.full_like(rows, n_columns),
                left=left.samples(rows),
                right=right.samples(columns),
            )
            for theta, combined in zip(thetas, out, strict=True):
                combine_rows(self.program, theta, pairs, 0, len(rows), tile, combined[first * n_columns :])
        return out.reshape(len(thetas), len(left), n_columns)


def _refine_small(distances: Array, x: Array, z: Array, x_squares: Array, z_squares: Array) -> None:
    """Recompute from the features the squared distances that lost most digits as x'x − 2x'z + z'z (in place)."""
    for first in range(0, len(x), 256):
        part = slice(first, first + 256)
        i, j = np.nonzero(distances[part] < 1e-7 * (x_squares[part, None] + z_squares))
        for at in range(0, len(i), 4096):  # few, unless an outlier makes all others seem close to each other
            row, column = first + i[at : at + 4096], j[at : at + 4096]
            difference = x[row] - z[column]
            distances[row, column] = np.einsum("ij,ij->i", difference, difference)


def _inverse_root(diagonal: Array) -> Array:
    """1/√d, and zero where d is zero: a sample of norm zero stays at the origin of feature space."""
    with np.errstate(divide="ignore"):
        return np.where(diagonal > 0, 1 / np.sqrt(np.maximum(diagonal, 1e-300)), 0.0)


def _compile(kernels: list[Kernel], base: IntArray, normalize: Normalization) -> Program:
    """The program of a bank; exponentials whose rates differ by powers of two are squared from each other."""
    codes = [kernel.code for kernel in kernels]
    kind = np.array([code.kind for code in codes], dtype=np.int64)
    rate = np.array([code.rate for code in codes], dtype=np.float64)
    asked = {"always": True, "never": False, "bank": normalize != "none"}
    order = np.lexsort((rate, kind)).astype(np.int64)  # by rising rate: a kernel is squared from a wider one
    parent, doublings, depth = np.zeros((3, len(kernels)), dtype=np.int64)
    parent -= 1
    last_of_chain: dict[tuple[int, float], int] = {}  # by base and mantissa
    for m in order:
        if kind[m] != EXPONENTIAL:
            continue
        mantissa, exponent = math.frexp(rate[m])
        k = last_of_chain.get((int(base[m]), mantissa))
        if k is not None:
            steps = exponent - math.frexp(rate[k])[1]
            if steps >= 1 and depth[k] + steps <= MAX_DOUBLINGS:
                parent[m], doublings[m], depth[m] = k, steps, depth[k] + steps
        last_of_chain[int(base[m]), mantissa] = int(m)
    return Program(
        order=order,
        kind=kind,
        base=base,
        rate=rate,
        offset=np.array([code.offset for code in codes], dtype=np.float64),
        degree=np.array([code.degree for code in codes], dtype=np.int64),
        parent=parent,
        doublings=doublings,
        scaled=np.array([asked[kernel.scaling] for kernel in kernels], dtype=np.int64),
    )
