"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sklearn.exceptions import ConvergenceWarning

from ._tools.typing import Array
from .protocols import Machine
from .sweep import Sweep

__all__ = ["RoundingWarning", "Solution"]


class RoundingWarning(ConvergenceWarning):
    """Rounding errors of kernel values alone account for a gap above the tolerance.

    Parameters
    ----------
    message : str
        What happened and what to do.
    kernel : str, default=""
        The kernel with the largest errors.
    share : float, default=0.0
        The part of the relative gap that rounding accounts for.

    Examples
    --------
    >>> from paretomkl.solution import RoundingWarning
    >>> RoundingWarning("Subtract the offset of the columns.", kernel="linear", share=0.1).kernel
    'linear'
    """

    def __init__(self, message: str, kernel: str = "", share: float = 0.0):
        super().__init__(message)
        self.kernel, self.share = kernel, share


@dataclass(frozen=True)
class Solution:
    """A point on the Pareto front with its certificate.

    Attributes
    ----------
    p, objective, gap : float
        The exponent (NaN if the scalarization has none), the scalarization of the objectives, and the certified
        relative gap, an upper bound on the true one.
    sweep : Sweep
        The tasks solved at θ.
    task_weights : array of shape (n_tasks,)
        Task weights η, which sum to one.
    n_sweeps, converged : int, bool
        Passes over the tasks for this solution, and whether the gap reached the tolerance.
    machine, state : Machine or None, object
        The machine that solved the tasks, and the solver state for a warm start at the next p, valid for this machine
        only.
    """

    p: float
    sweep: Sweep
    task_weights: Array
    objective: float
    gap: float
    n_sweeps: int
    converged: bool
    machine: Machine | None = field(default=None, repr=False, compare=False)
    state: object = field(default=None, repr=False, compare=False)

    @property
    def theta(self) -> Array:
        """Kernel weights (n_kernels,)."""
        return self.sweep.theta

    @property
    def objectives(self) -> Array:
        """J_t(θ), (n_tasks,)."""
        return self.sweep.lower

    def alone(self) -> Solution:
        """A copy without machine, duals and cuts, which are useless without the training data."""
        return replace(self, machine=None, state=None, sweep=replace(self.sweep, warm=None))
