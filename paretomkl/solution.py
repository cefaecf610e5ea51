"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._typing import Array
from .machines.svc import Sweep


@dataclass(frozen=True)
class Solution:
    """A point on the Pareto front with its certificate.

    p; theta (n_kernels,); objectives (n_tasks,): J_t(θ); task_weights (n_tasks,): η, summing to one; objective:
    M_p(objectives); gap: relative certificate, never below the truth; n_sweeps: passes over the tasks that this
    solution cost; converged: whether the gap reached the tolerance; sweep: the solved tasks at θ; state: what the
    solver hands to the next p.
    """

    p: float
    theta: Array
    objectives: Array
    task_weights: Array
    objective: float
    gap: float
    n_sweeps: int
    converged: bool
    sweep: Sweep
    state: Any = None
