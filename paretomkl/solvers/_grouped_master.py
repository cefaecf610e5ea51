"""The master of very many tasks: cuts of the means of groups of tasks in place of cuts of each task.

In units of ``scale``, the power mean S_g of the tasks of a group lies above their plain mean for every p ≥ 1, so

    S_g ≥ Σ_{t of g} ω_t / Ω_g · (a_kt − θ'h_kt) / scale_t,    Ω_g = Σ_{t of g} ω_t,

is a cut of the group, tight where the objectives are ``scale``. M_p of all tasks is that of the S_g with weights Ω_g.
With far more tasks than kernels, a few hundred groups know as much about θ, and the master is as much smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray
from ._master import MasterProblem, Optimum, minimize_over_cuts

GROUPS = 100
MANY_TASKS = 1000  # from which groups are less work


@dataclass(frozen=True)
class TaskGroups:
    """Consecutive tasks of about equal number; ``first`` is the first task of each group."""

    first: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, n_tasks: int) -> TaskGroups:
        edges = np.linspace(0, n_tasks, GROUPS + 1).astype(int)
        return cls(edges[:-1], np.diff(edges))

    def sums(self, values: Array) -> Array:
        """Sums over the tasks of each group, along the second axis of values (n_rows, n_tasks, …)."""
        return np.add.reduceat(values, self.first, axis=1)

    def of_tasks(self, values: AnyArray) -> AnyArray:
        """The value of its group for each task, along the last axis."""
        return np.repeat(values, self.sizes, axis=-1)

    def present(self, present: AnyArray) -> AnyArray:
        """Which cuts the groups have: those that no task of the group has dropped."""
        return np.logical_and.reduceat(present, self.first, axis=1)

    def any(self, chosen: AnyArray) -> AnyArray:
        """Whether any task of each group is chosen, (n_rows, n_groups)."""
        return np.logical_or.reduceat(chosen, self.first, axis=1)

    def minimize(self, master: MasterProblem, start: Array, rtol: float) -> Optimum:
        """A θ that is good for the master, a bound on its optimum, and multipliers of its cuts that prove the bound.

        Each cut of the master that is ``present`` must be so for all tasks of its group, or for none.
        """
        linear, slopes, present, scale, omega, *_ = master
        total = self.sums(omega[None])[0]
        weights = omega / self.of_tasks(np.where(total > 0, total, 1.0))
        grouped = master._replace(
            linear=self.sums(linear * (weights / scale)),
            slopes=self.sums(slopes * (weights / scale)[:, None]),
            present=self.present(present) & (total > 0),
            scale=np.ones(len(total)),
            omega=total,
        )
        found = minimize_over_cuts(grouped, start, rtol)
        return found._replace(multipliers=weights * self.of_tasks(found.multipliers))
