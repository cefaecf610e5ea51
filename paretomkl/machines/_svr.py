"""Support vector regression over shared Gram blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from .._tools.typing import Array, IntArray
from ..protocols import Gram
from ..sweep import Decisions, Sweep
from ._base import BOX, KernelTasks, MachineKind, Parameter, solve_boxes
from ._smo import Box


class SVRStart(NamedTuple):
    """Warm start from an SVR sweep: flat duals β, intercepts and pair steps of the tasks."""

    dual: Array
    intercepts: Array
    steps: IntArray


class SVRTasks(KernelTasks):
    """T support vector regressions whose Gram matrices are combinations Σ_m θ_m K_m.

        J_t(θ) = scale_t · min over f, b of  ½ ‖f‖² + Σ_i C_i max(0, abs(y_i − f(x_i) − b) − ε)
               = scale_t · max over {−C ≤ β ≤ C, β'1 = 0} of  β'y − ε ‖β‖₁ − ½ β'K_θβ

    A task whose targets span at most 2ε is idle: f = 0 and a constant suffice, so J_t = 0 under every kernel. It has no
    task weight and no effect on θ.

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Targets of the samples of all tasks, concatenated by task.
    C : array of shape (n_entries,)
        Cost of an error beyond ε, for each sample of each task; samples of cost zero are ignored.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds; None is 1.
    epsilon : float or array of shape (n_tasks,), default=0.1
        Errors up to ε cost nothing. A cut is valid for every smaller ε.
    """

    promises = replace(BOX, shifts=True, extends=True)
    balanced: ClassVar[bool] = True

    def __init__(self, gram: Gram, targets: Array, C: Array, scale: Array | None = None, epsilon: float | Array = 0.1):
        super().__init__(gram, targets, C, scale)
        if not np.all(np.isfinite(epsilon)) or np.any(np.asarray(epsilon) < 0):
            raise ValueError(f"epsilon must be finite and at least 0, got {epsilon}.")
        self.epsilon = np.array(np.broadcast_to(epsilon, self.n_tasks), dtype=np.float64)

    def sweep(self, theta: Array, warm: SVRStart | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep."""
        idle = self.fitted_by_constants(self.epsilon)
        dual = np.zeros(len(self.targets)) if warm is None else warm.dual.copy()
        dual[np.repeat(idle, np.diff(self.gram.layout.ptr))] = 0.0
        box = Box(-self.C, self.C, self.epsilon)
        intercepts = np.zeros(self.n_tasks) if warm is None else warm.intercepts
        solved, gap, forms, errors = solve_boxes(self.gram, theta, self.targets, box, dual, intercepts, rtol)
        gain, cost = dual * self.targets, self.epsilon * self.of_tasks(np.abs(dual))
        linear, size = self.of_tasks(gain) - cost, self.of_tasks(np.abs(gain)) + cost
        start = SVRStart(dual, solved.intercept, solved.steps)
        return self.idle(self.swept(theta, linear, size, gap, forms, errors, start), idle)

    def decisions(self, sweep: Sweep) -> Decisions:
        """f_t(x) = Σ_i β_ti k_θ(x_i, x) + b_t."""
        start: SVRStart = sweep.warm
        return Decisions(self.by_task(start.dual), start.intercepts)

    def grown_start(self, warm: SVRStart, factor: float) -> SVRStart:
        """A warm start for these tasks from one for costs that are smaller by ``factor``."""
        return warm._replace(dual=np.clip(factor * warm.dual, -self.C, self.C))  # rounding may exceed the bounds

    def start_from(self, dual: Array, intercepts: Array) -> SVRStart:
        """A warm start from feasible duals."""
        return SVRStart(dual, intercepts, np.zeros(self.n_tasks, dtype=np.int64))


SVR = MachineKind(
    "svr",
    SVRTasks,
    "numbers",
    "epsilon_insensitive",
    decisions="numbers",
    promises=SVRTasks.promises,
    parameters={"epsilon": Parameter(0.1)},
)
