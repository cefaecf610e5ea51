"""Cuts: lower bounds on the task objectives at every θ, from the tasks solved at one θ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray

if TYPE_CHECKING:
    from ..sweep import Sweep


class CutStore:
    """J_t(θ) ≥ linear[k, t] − θ'slopes[k, t] for all θ; one row per sweep, one column per task.

    A cut depends only on a task, its data and C, not on p, the weight set or the task weights.

    Row 0 is the constant cut J_t(θ) ≥ linear[0, t] (zero until it is raised). ``idle`` counts the masters in a row that
    did not use a cut; −1 marks a dropped cut.
    """

    def __init__(self, n_tasks: int, n_kernels: int) -> None:
        self.linear = np.zeros((1, n_tasks))
        self.slopes = np.zeros((1, n_tasks, n_kernels))  # ½ G
        self.idle = np.zeros((1, n_tasks), dtype=np.int64)

    @property
    def live(self) -> AnyArray:
        """Which cuts have not been dropped, (n_rows, n_tasks)."""
        return self.idle >= 0

    def add(self, sweep: Sweep) -> None:
        """Add one cut per task."""
        self.linear = np.concatenate([self.linear, sweep.linear[None]])
        self.slopes = np.concatenate([self.slopes, 0.5 * sweep.forms[None]])
        self.idle = np.concatenate([self.idle, np.zeros((1, self.idle.shape[1]), dtype=np.int64)])

    def copy(self, rows: IntArray | slice = slice(None)) -> CutStore:
        """A copy with the cuts of the given rows, by default all."""
        copy = CutStore(*self.slopes.shape[1:])
        copy.linear, copy.slopes, copy.idle = self.linear[rows].copy(), self.slopes[rows].copy(), self.idle[rows].copy()
        return copy

    def heights(self, theta: Array) -> Array:
        """The value of every cut at θ (n_kernels,), or (n_tasks, n_kernels); −∞ for dropped cuts."""
        fall = self.slopes @ theta if theta.ndim == 1 else np.einsum("ktm,tm->kt", self.slopes, theta)
        return np.where(self.live, self.linear - fall, -np.inf)

    def note_use(self, used: AnyArray, patience: int, present: AnyArray | None = None) -> None:
        """Count one more master for the cuts not ``used`` in it, and drop cuts that were idle for ``patience`` masters.

        The constant cuts and those of the last two sweeps stay. ``present`` marks the cuts of the master, by default
        all live ones.
        """
        self.idle += self.live if present is None else present
        self.idle[used] = 0
        older = self.idle[1:-2]
        older[older > patience] = -1
