"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ._typing import Array
from .protocols import Machine
from .sweep import Sweep

__all__ = ["Solution"]


@dataclass(frozen=True)
class Solution:
    """A point on the Pareto front with its certificate.

    Attributes
    ----------
    p, objective, gap : float
        The exponent, M_p(objectives), and the relative certificate, never below the truth.
    sweep : Sweep
        The tasks solved at θ.
    task_weights : array of shape (n_tasks,)
        η, summing to one.
    n_sweeps, converged : int, bool
        Passes over the tasks that this solution took, and whether the gap reached the tolerance.
    machine, state : Machine or None, object
        Whose tasks they are, and what the solver hands to the next p; it holds for this machine only.
    """

    p: float
    sweep: Sweep
    task_weights: Array
    objective: float
    gap: float
    n_sweeps: int
    converged: bool
    machine: Machine | None = field(default=None, repr=False, compare=False)
    state: Any = field(default=None, repr=False, compare=False)

    @property
    def theta(self) -> Array:
        """Kernel weights (n_kernels,)."""
        return self.sweep.theta

    @property
    def objectives(self) -> Array:
        """J_t(θ), (n_tasks,)."""
        return self.sweep.lower

    def alone(self) -> Solution:
        """Without machine, duals and cuts: what is worth keeping when the training data are gone."""
        return replace(self, machine=None, state=None, sweep=replace(self.sweep, warm=None))
