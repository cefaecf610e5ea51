"""One-class support vector machines in hinge form over shared Gram blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._tools.typing import Array, IntArray
from ..sweep import Decisions, Sweep
from ._base import BOX, KernelTasks, MachineKind, solve_boxes
from ._smo import Box


class OneClassStart(NamedTuple):
    """Warm start from a one-class sweep: flat duals α and steps of the tasks."""

    dual: Array
    steps: IntArray


class OneClassTasks(KernelTasks):
    """T one-class machines whose Gram matrices are combinations Σ_m θ_m K_m.

        J_t(θ) = scale_t · min over f of  ½ ‖f‖² + Σ_i C_i max(0, 1 − f(x_i))
               = scale_t · max over {0 ≤ α ≤ C} of  α'1 − ½ α'K_θα

    There is no intercept: the hyperplane f = 1 separates the samples from the origin. α / Σα solves the ν one-class SVM
    of Schölkopf et al. with ν = Σα / (C n), where C is the same for all n samples; its offset ρ is 1 / Σα.

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Ones. Unused, since all samples belong to one class; present for API consistency.
    C : array of shape (n_entries,)
        Upper bounds of the dual variables, for each sample of each task.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds; None is 1.
    """

    promises = BOX

    def sweep(self, theta: Array, warm: OneClassStart | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep."""
        dual = np.zeros(len(self.C)) if warm is None else warm.dual.copy()
        box = Box(np.zeros_like(self.C), self.C, np.zeros(self.n_tasks), balanced=False)
        ones, nought = np.ones_like(self.C), np.zeros(self.n_tasks)
        solved, gap, forms, errors = solve_boxes(self.gram, theta, ones, box, dual, nought, rtol)
        linear = self.of_tasks(dual)
        return self.swept(theta, linear, linear, gap, forms, errors, OneClassStart(dual, solved.steps))

    def decisions(self, sweep: Sweep) -> Decisions:
        """f_t(x) − 1 = Σ_i α_ti k_θ(x_i, x) − 1, which is ≥ 0 inside."""
        start: OneClassStart = sweep.warm
        return Decisions(self.by_task(start.dual), np.full(self.n_tasks, -1.0))

    def grown_start(self, warm: OneClassStart, factor: float) -> OneClassStart:
        """A warm start for these tasks from one for bounds that are smaller by ``factor``."""
        return warm._replace(dual=np.clip(factor * warm.dual, 0.0, self.C))  # rounding may exceed the bounds


ONE_CLASS = MachineKind("one-class", OneClassTasks, "nothing", "one-class", decisions="levels", promises=BOX)
