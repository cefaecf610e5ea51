"""Support vector data description over shared Gram blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._tools.typing import Array, IntArray
from ..kernels._rounding import UNIT
from ..protocols import Gram, Promises
from ..sweep import Decisions, Sweep
from ..weight_sets import LsBall
from ._base import KernelTasks, MachineKind, solve_boxes
from ._smo import Box

ROUNDING = 1e-9  # tolerance for kernel weights that sum to more than one, and for costs that sum to less
FLOOR, RESOLUTION = 1e-9, 1e-13  # smallest objective: relative to the smallest kernel, and to A_t


class SVDDStart(NamedTuple):
    """Warm start from an SVDD sweep: flat duals α, offsets (R² − α'Kα) / 2 and pair steps of the tasks."""

    dual: Array
    offsets: Array
    steps: IntArray


class SVDDTasks(KernelTasks):
    """T smallest enclosing balls under the kernels Σ_m θ_m K_m with Σ_m θ_m = 1.

        R²_t(θ) = min over a, R of  R² + Σ_i C_i max(0, ‖φ_θ(x_i) − a‖² − R²)
                = max over {0 ≤ α ≤ C, α'1 = 1} of  Σ_i α_i k_θ(x_i, x_i) − α'K_θα

    R² increases with θ, but solvers need objectives that decrease. Let A_t be at least every k_m(x_i, x_i) of the task.
    Then

        J_t(θ) = scale_t · (A_t (1 − Σ_m θ_m) + R²_t(θ) + 10⁻⁹ a_t + 10⁻¹³ A_t)

    is convex and decreasing, and equals R² up to the last terms if Σθ = 1: use it with ``LsBall(1.0)``. These keep it
    positive if all samples of a task look the same to the kernel; a_t is the smallest, over the kernels, of the largest
    k_m(x_i, x_i), so that they stay small if the kernels have very different scales. A cut is
    A_t − Σ_m θ_m (A_t − Σ_i α_i k_m(x_i, x_i) + α'K_mα).

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Ones. Unused, since all samples belong to one class; present for API consistency.
    C : array of shape (n_entries,)
        Upper bounds of the dual variables, which must sum to at least one in every task. 1 / (ν n) in a task of n
        samples leaves a fraction of about ν outside.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds; None is 1.
    """

    # duals sum to one, so they cannot shrink; A_t depends on the kernels; a ball moves with its samples
    promises = Promises(nonnegative=True, shifts=True, grows=True)

    def __init__(self, gram: Gram, targets: Array, C: Array, scale: Array | None = None):
        super().__init__(gram, targets, C, scale)
        total = self.of_tasks(self.C)
        if np.any(total < 1 - ROUNDING):
            t = int(np.argmin(total))
            raise ValueError(
                f"The costs C of task {t} sum to {total[t]:.3g}, but SVDD needs a sum of at least one; use "
                "C = 1 / (ν n) for a task of n samples, with 0 < ν ≤ 1."
            )
        largest = np.maximum.reduceat(gram.diagonals().max(axis=0), gram.layout.ptr[:-1])
        if not largest.min() > 0:
            raise ValueError(
                f"All kernels vanish on the samples of task {int(np.argmin(largest))}, so they lie in a ball of radius "
                "zero; leave the task out or use other kernels."
            )

    def sweep(self, theta: Array, warm: SVDDStart | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep."""
        if theta.sum() > 1 + ROUNDING * len(theta):
            raise ValueError(f"SVDD needs kernel weights that sum to one (s = 1), got a sum of {theta.sum():.3g}.")
        diagonals = self.gram.diagonals()
        dual = self._first_dual() if warm is None else warm.dual.copy()
        # half the problem has the form of the other machines: targets ½ k(x, x), and a quadratic form with factor ½
        targets = 0.5 * theta @ diagonals
        box = Box(np.zeros_like(self.C), self.C, np.zeros(self.n_tasks), total=1.0)
        offsets = np.zeros(self.n_tasks) if warm is None else warm.offsets
        solved, gap, forms, errors = solve_boxes(self.gram, theta, targets, box, dual, offsets, rtol)
        begin = self.gram.layout.ptr[:-1]
        largest = np.maximum.reduceat(diagonals, begin, axis=1).T
        top = self.scale * largest.max(axis=1)
        mean = np.add.reduceat(dual * diagonals, begin, axis=1).T
        # if the duals sum to 1 + r, a change by r makes them feasible, which changes the spread by at most 3 r k(x, x)
        off = (np.abs(self.of_tasks(dual) - 1.0) + errors.relative)[:, None]
        off = off + self.gram.rounding.sizes[1]
        rounding = self.scale[:, None] * (errors.forms + 4 * off * largest) + 8 * UNIT * top[:, None]
        slopes = np.maximum(top[:, None] - self.scale[:, None] * np.maximum(mean - forms, 0.0), 0.0) + rounding
        smallest = self.scale * largest.min(axis=1)
        linear = top + FLOOR * smallest + RESOLUTION * top
        lower = linear - slopes @ theta
        lost = rounding @ theta
        upper = lower + 2 * (self.scale * gap + lost)
        lower = np.maximum(lower, FLOOR * smallest + RESOLUTION * top)  # R² is at least zero
        more = self.scale * errors.gap / np.maximum(lost, 1e-300)
        start = SVDDStart(dual, solved.intercept, solved.steps)
        rounding = 2 * (1 + more[:, None]) * rounding
        return Sweep(theta, linear, 2 * slopes, lower, upper, start, rounding, self.gram.names)

    def _first_dual(self) -> Array:
        """A feasible dual: the first samples of each task at their upper bounds, until the sum is one."""
        before = np.cumsum(self.C) - self.C
        before -= np.repeat(before[self.gram.layout.ptr[:-1]], np.diff(self.gram.layout.ptr))
        dual = np.clip(1.0 - before, 0.0, self.C)
        return dual / np.repeat(self.of_tasks(dual), np.diff(self.gram.layout.ptr))

    def decisions(self, sweep: Sweep) -> Decisions:
        """f_t(x) = R² − ‖φ_θ(x) − a‖² = 2 Σ_i α_ti k_θ(x_i, x) − k_θ(x, x) + b_t with b = R² − α'K_θα."""
        start: SVDDStart = sweep.warm
        return Decisions(self.by_task(2 * start.dual), 2 * start.offsets, -1.0)


def simplex(s: float) -> LsBall:
    """Σθ ≤ 1 for every s: with larger weights, the objective would fall to zero."""
    return LsBall(1.0)


SVDD = MachineKind(
    "svdd",
    SVDDTasks,
    "nothing",
    "svdd",
    decisions="levels",
    promises=SVDDTasks.promises,
    weight_set=simplex,
    diagonal=True,
)
