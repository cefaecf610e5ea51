"""Evaluate the kernels of a bank on a device of PyTorch, in single or in double precision.

Base matrices are products of matrices, and L1 distances come from a kernel of our own (:mod:`._cuda`) or, without
CUDA, from PyTorch. This module imports PyTorch; import it only if a device was asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from .._tools.typing import AnyArray, Array
from ..exceptions import DeviceWarning
from ._evaluation import EXPONENTIAL
from ._fitted import NO_VARIANCE, Evaluator, Groups, Side

Tensor: TypeAlias = Any

MOST_SHARE = 0.4  # share of the free memory of a device that the samples may take; others stay on the host
PAIRS = 2**26  # pairs of samples at a time, if memory allows
_BYTES_PER_PAIR = 40  # of temporary matrices, and as much again is left free
_PATCH = 2**22  # numbers at a time where distances are computed from differences
_MANY_TASKS = 32  # sums for more tasks are products of matrices
_LOSSY = {torch.float32: 1e-4, torch.float64: 1e-7}  # as in squared_distances


class DeviceSide(NamedTuple):
    """Some samples on a device, as in :class:`~paretomkl.kernels._fitted.Side`; all numbers have one precision."""

    features: list[Tensor]
    centred_squares: list[Tensor]
    squares: Tensor
    scale: Tensor

    def __len__(self) -> int:
        return self.scale.shape[1]

    def part(self, first: int, last: int) -> DeviceSide:
        """Some consecutive samples, without copying them."""
        some = slice(first, last)
        features, norms = ([values[some] for values in parts] for parts in self[:2])
        return DeviceSide(features, norms, self.squares[:, some], self.scale[:, some])


class DeviceSamples:
    """The samples of a side, on the device if they fit, and else in the memory of the host.

    Parameters
    ----------
    side : Side
    device : torch.device
    most_bytes : float, default=None
        Limit on the features on the device; None is a share of the memory that is free.
    """

    def __init__(self, side: Side, device: Any, most_bytes: float | None = None):
        self.device = device
        size = sum(part.nbytes for part in {id(part): part for part in side.features}.values())
        self.resident = size <= (MOST_SHARE * free_bytes(device) if most_bytes is None else most_bytes)
        copies: dict[int, Tensor] = {}  # bases may share their samples
        for part in side.features:
            if id(part) not in copies:
                copies[id(part)] = self._kept(part)
        features = [copies[id(part)] for part in side.features]
        rows = np.vstack([*side.centred_squares, side.squares, side.scale])  # together: each gather has a price
        self._ends = len(side.centred_squares), len(side.centred_squares) + len(side.squares)
        self._made = {torch.float64: (features, on_device(rows, device))}
        # whether there is memory for copies in single precision
        self.keeps = self.resident and size <= (MOST_SHARE * free_bytes(device) if most_bytes is None else most_bytes)

    def __len__(self) -> int:
        return self._made[torch.float64][1].shape[1]

    def _kept(self, part: Array) -> Tensor:
        return on_device(part, self.device) if self.resident else torch.from_numpy(part)

    def take(self, which: Tensor, kind: Any) -> DeviceSide:
        """Some of the samples in the precision ``kind``; their numbers are on the device."""
        features, rows = self._of(kind)
        moved: dict[int, Tensor] = {}
        for part in features:
            if id(part) not in moved:
                moved[id(part)] = self._moved(part, which, kind)
        mine, (first, second) = rows[:, which], self._ends
        return DeviceSide([moved[id(part)] for part in features], list(mine[:first]), mine[first:second], mine[second:])

    def _of(self, kind: Any) -> tuple[list[Tensor], Tensor]:
        """The features and the norms of all samples in this precision, if there is memory for both."""
        if kind not in self._made:
            features, rows = self._made[torch.float64]
            if self.keeps:
                copies = {id(part): part.to(kind) for part in features}
                features = [copies[id(part)] for part in features]
            self._made[kind] = features, rows.to(kind)
        return self._made[kind]

    def _moved(self, part: Tensor, which: Tensor, kind: Any) -> Tensor:
        if self.resident:
            return part[which].to(kind)
        some = part[which.cpu()].to(kind)
        some = some.pin_memory() if self.device.type == "cuda" else some
        return some.to(self.device, non_blocking=True)

    def everything(self, kind: Any) -> DeviceSide:
        return self.take(torch.arange(len(self), device=self.device), kind)


class DeviceKernels:
    """The kernels of an evaluator, before their factors, between samples on a device."""

    def __init__(self, evaluator: Evaluator, device: Any):
        self.device, self.codes = device, evaluator.codes
        self.metrics = [kernel.metric for kernel in evaluator.bases.kernels]
        self._by_base = [np.flatnonzero(self.codes.base == b).tolist() for b in range(len(self.metrics))]
        self._fast: dict[Any, list[Any]] = {}
        self._weights: tuple[Array, Tensor] | None = None  # the last ones; they belong to many matrices

    def sums(self, left: DeviceSide, right: DeviceSide, steps: Tensor) -> Tensor:
        """Σ_i steps_ti k_m(x_i, z_j), added up in double precision, (n_kernels, n_tasks, n_right)."""
        out = torch.empty((len(self.codes.kind), len(steps), len(right)), dtype=torch.float64, device=self.device)
        for b, kernels in enumerate(self._by_base):
            fast = self._compiled(b, left.scale.dtype) if len(steps) <= _MANY_TASKS else []
            if fast:
                values = self._plain(b, left, right)
                for part in fast:
                    out[part.index] = part.sums(values, left, right, steps)
                continue
            D = self._base(b, left, right)
            for m in kernels:
                out[m] = steps @ self._value(m, D, left, right).double()
        return out

    def combined(self, left: DeviceSide, right: DeviceSide, weight: Array, out: Tensor | None = None) -> Tensor:
        """Σ_m weight_m K_m between two sets of samples, (n_left, n_right), written to ``out`` if it is given."""
        total = torch.empty((len(left), len(right)), dtype=left.scale.dtype, device=self.device) if out is None else out
        weights, adding = self._placed(weight, total.dtype), False
        for b, kernels in enumerate(self._by_base):
            needed = [m for m in kernels if weight[m] != 0]
            if not needed:
                continue
            fast = self._compiled(b, total.dtype)
            if fast:
                values = self._plain(b, left, right)
                for part in fast:
                    part.combine(values, left, right, weights, total, adding)
                    adding = True
                continue
            total, D, adding = total if adding else total.zero_(), self._base(b, left, right), True
            for m in needed:
                total.add_(self._value(m, D, left, right), alpha=float(weight[m]))
        return total if adding else total.zero_()

    def _placed(self, weight: Array, kind: Any) -> Tensor:
        """The weights on the device."""
        known = self._weights
        if known is None or known[1].dtype != kind or not np.array_equal(known[0], weight):
            known = self._weights = weight.copy(), on_device(weight, self.device).to(kind)
        return known[1]

    def each(self, left: DeviceSide, right: DeviceSide) -> Iterator[tuple[int, Tensor]]:
        """Yield m and K_m between two sets of samples."""
        for b, kernels in enumerate(self._by_base):
            D = self._base(b, left, right)
            for m in kernels:
                yield m, self._value(m, D, left, right)

    def _compiled(self, b: int, kind: Any) -> list[Any]:
        """The kernels of a base in parts that our own CUDA functions evaluate; empty without these."""
        if (b, kind) not in self._fast:
            self._fast[b, kind] = compiled_parts(self, b, kind)
        return self._fast[b, kind]

    def _plain(self, b: int, left: DeviceSide, right: DeviceSide) -> Tensor:
        """Inner products, or L1 distances."""
        x, z = left.features[b], right.features[b]
        if self.metrics[b] == "cityblock":
            return cityblock(x, z)
        with exact_products():
            return x @ z.T

    def _base(self, b: int, left: DeviceSide, right: DeviceSide) -> Tensor:
        """A base matrix between two sets of samples."""
        x, z = left.features[b], right.features[b]
        if self.metrics[b] == "cityblock":
            return cityblock(x, z)
        return squared_distances(x, z, left.centred_squares[b], right.centred_squares[b])

    def _value(self, m: int, D: Tensor, left: DeviceSide, right: DeviceSide) -> Tensor:
        codes = self.codes
        if codes.kind[m] == EXPONENTIAL:
            K = torch.mul(D, -float(codes.rate[m])).exp_()
        else:
            slope, norm = 0.5 * float(codes.rate[m]), int(codes.norm[m])
            affine = torch.add(left.squares[norm][:, None], right.squares[norm]).sub_(D)
            affine.mul_(slope).add_(float(codes.offset[m]))
            K = affine if codes.degree[m] == 1 else affine.clone()
            for _ in range(int(codes.degree[m]) - 1):
                K.mul_(affine)
        if codes.scaled[m]:
            K.mul_(left.scale[m][:, None]).mul_(right.scale[m])
        return K


def squared_distances(x: Tensor, z: Tensor, x_squares: Tensor, z_squares: Tensor) -> Tensor:
    """‖x_i − z_j‖² as x'x − 2x'z + z'z; where that cancels, from the differences."""
    total = x_squares[:, None] + z_squares
    with exact_products():
        D = torch.addmm(total, x, z.T, alpha=-2.0)
    left, right = torch.nonzero(total.mul_(_LOSSY[D.dtype]) > D, as_tuple=True)
    step = max(1, _PATCH // x.shape[1])
    for first in range(0, len(left), step):
        i, j = left[first : first + step], right[first : first + step]
        D[i, j] = (x[i] - z[j]).square_().sum(dim=1)
    return D


def cityblock(x: Tensor, z: Tensor) -> Tensor:
    """‖x_i − z_j‖_1."""
    own = _own_cityblock() if x.is_cuda else None
    return torch.cdist(x, z, p=1.0) if own is None else own(x, z)


@cache
def _own_cityblock() -> Any:
    """Our own function for L1 distances, or None if it cannot be compiled or is wrong."""
    try:
        from ._cuda import cityblock as own

        for kind in (torch.float32, torch.float64):
            x = torch.linspace(-1, 1, 3 * 150, dtype=kind, device="cuda").reshape(150, 3).sin_()
            if not torch.allclose(own(x, x), torch.cdist(x, x, p=1.0), rtol=1e-4, atol=1e-5):
                return None
    except Exception as error:  # NVRTC is not part of PyTorch's interface: whatever happens, there is another way
        note_failure(error)
        return None
    return own


def compiled_parts(kernels: DeviceKernels, b: int, kind: Any) -> list[Any]:
    """The kernels of a base as functions of our own, or none if these cannot be compiled."""
    if kernels.device.type != "cuda":
        return []
    try:
        from ._cuda import KERNELS, CudaBase

        own, double = np.flatnonzero(kernels.codes.base == b).tolist(), kind == torch.float64
        parts = [own[first : first + KERNELS] for first in range(0, len(own), KERNELS)]
        return [CudaBase(kernels.codes, kernels.metrics[b], b, part, double) for part in parts]
    except Exception as error:
        note_failure(error)
        return []


def note_failure(error: Exception) -> None:
    """Say that functions of our own cannot be used on a device."""
    reason = f"functions of our own cannot be used there ({error})"
    warnings.warn(DeviceWarning(f"The device is slower than it could be: {reason}.", "cuda", reason), stacklevel=2)


@contextmanager
def exact_products() -> Iterator[None]:
    """Within it, products of matrices have all digits of single precision, whatever the user has set."""
    before = torch.get_float32_matmul_precision()
    if before == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def on_device(values: AnyArray, device: Any) -> Tensor:
    """A copy of an array on the device."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device, copy=True)


def free_bytes(device: Any) -> float:
    """Memory of the device that nobody uses."""
    if device.type != "cuda":
        return float("inf")
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def pairs_at_once(device: Any) -> int:
    """Pairs of samples whose matrices fit on the device."""
    return int(min(PAIRS, max(2**16, free_bytes(device) / (2 * _BYTES_PER_PAIR))))


def ordered(X: AnyArray, places: Sequence[int], device: Any) -> Array:
    """For each of these places, the number at it if a column were sorted, (n_places, n_columns)."""
    step = max(1, int(PAIRS // len(X)))
    parts = []
    for first in range(0, X.shape[1], step):
        columns = on_device(X[:, first : first + step], device).T.contiguous()
        parts.append(torch.stack([columns.kthvalue(place + 1, dim=1).values for place in places]))
    return torch.cat(parts, dim=1).cpu().numpy()


def weighted_sums(
    evaluator: Evaluator, left: Side, right: Side, weight: Array, coefficients: Array, device: Any
) -> Array:
    """Σ_j Σ_m weight_m K_m(x_i, z_j) coefficients_jt in double precision, (n_left, n_columns)."""
    kernels, double = DeviceKernels(evaluator, device), torch.float64
    rows, columns = DeviceSamples(left, device), DeviceSamples(right, device)
    times = on_device(coefficients, device)
    out = torch.zeros((len(left), times.shape[1]), dtype=double, device=device)
    most = pairs_at_once(device)
    wide = min(len(right), most)
    for first in range(0, len(right), wide):
        right_part = columns.take(_numbers(first, min(first + wide, len(right)), device), double)
        some = max(1, most // wide)
        for top in range(0, len(left), some):
            end = min(top + some, len(left))
            K = kernels.combined(rows.take(_numbers(top, end, device), double), right_part, weight)
            out[top:end].addmm_(K, times[first : first + wide])
    return out.cpu().numpy()


def quadratic_forms(samples: DeviceSamples, numbers: Tensor, kernels: DeviceKernels, v: Tensor) -> Tensor:
    """v_t'K_m v_t before the factors, (n_kernels, n_tasks), of duals v (n_tasks, n) at samples with these numbers."""
    support = (v != 0).any(dim=0).nonzero()[:, 0]
    v, side = v[:, support], samples.take(numbers[support], torch.float64)
    forms = torch.zeros((len(kernels.codes.kind), len(v)), dtype=v.dtype, device=v.device)
    n = len(support)
    step, many = (max(1, pairs_at_once(v.device) // (times * max(1, n))) for times in (2, 1))
    for first in range(0, n, step):
        left = samples.take(numbers[support[first : first + step]], torch.float64)
        mine = v[:, first : first + step]
        if len(v) > _MANY_TASKS:
            for m, K in kernels.each(left, side):
                for t in range(0, len(v), many):
                    forms[m, t : t + many] += (mine[t : t + many] @ K).mul_(v[t : t + many]).sum(dim=1)
        else:
            forms += torch.einsum("mtj,tj->mt", kernels.sums(left, side, mine), v)
    return forms


def measured_spreads(evaluator: Evaluator, X: AnyArray, groups: Groups, device: Any) -> tuple[Array, Array]:
    """v and r of the kernels within groups of samples, (n_groups, n_kernels) each; see ``_fitted.measure``."""
    kernels, measured = DeviceKernels(evaluator, device), []
    for rows, weight in groups:
        side = DeviceSamples(evaluator.side(X[rows]), device).everything(torch.float64)
        w = on_device(weight / weight.sum(), device)
        measured.append(torch.stack([_spread(K, w) for _, K in sorted_by_kernel(kernels.each(side, side))]))
    both = torch.stack(measured).cpu().numpy()
    return both[..., 0], both[..., 1]


def sorted_by_kernel(values: Iterator[tuple[int, Tensor]]) -> list[tuple[int, Tensor]]:
    return sorted(values, key=lambda pair: pair[0])


def _spread(K: Tensor, w: Tensor) -> Tensor:
    """v and r of one matrix, which is overwritten; the formulas are those of ``_fitted.spreads``."""
    size = K.abs().max()
    K.div_(torch.where(size > 0, size, 1.0)).sub_(K[0, 0].clone())
    sums = K @ w
    mean = sums @ w
    v = K.diagonal() @ w - mean
    norm = K.square_() @ w @ w - 2 * sums.square() @ w + mean**2
    varies = (v > NO_VARIANCE) & (norm > 0)
    return torch.stack([torch.where(varies, size * v, 0.0), torch.where(varies, v**2 / norm, 0.0)])


def _numbers(first: int, last: int, device: Any) -> Tensor:
    return torch.arange(first, last, device=device)
