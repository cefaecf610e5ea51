"""The paper's machine: support vector classifiers over shared Gram blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from .._tools.typing import Array, IntArray
from ..protocols import Gram
from ..sweep import Decisions, Sweep
from ._base import BOX, KernelTasks, MachineKind, solve_boxes
from ._smo import classifier_box

HINGE = replace(BOX, shifts=True, extends=True, hinge=True)
CHOOSING = replace(HINGE, chooses=True)


class SVCStart(NamedTuple):
    """Warm start from an SVC sweep: flat signed duals y∘α, intercepts and pair steps of the tasks."""

    dual: Array
    intercepts: Array
    steps: IntArray


class SVCTasks(KernelTasks):
    """T support vector machines whose Gram matrices are combinations Σ_m θ_m K_m.

        J_t(θ) = scale_t · max over {0 ≤ α ≤ C, α'y = 0} of  α'1 − ½ (y∘α)'K_θ(y∘α)

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Labels ±1 of the samples of all tasks, concatenated by task.
    C : array of shape (n_entries,)
        Upper bounds of the dual variables, for each sample of each task.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds: 1/n_t for objectives per sample; None is 1. Duals, decisions and
        intercepts do not depend on it.
    """

    promises = HINGE
    balanced: ClassVar[bool] = True

    def __init__(self, gram: Gram, targets: Array, C: Array, scale: Array | None = None):
        super().__init__(gram, targets, C, scale)
        self.promises = CHOOSING if gram.can_choose else HINGE

    def sweep(self, theta: Array, warm: SVCStart | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep.

        A dual that is feasible at one θ is feasible at every θ, since θ does not appear in the constraints.
        """
        dual = np.zeros(len(self.targets)) if warm is None else warm.dual.copy()
        box = classifier_box(self.targets, self.C, self.n_tasks)
        intercepts = np.zeros(self.n_tasks) if warm is None else warm.intercepts
        solved, gap, forms, errors = solve_boxes(self.gram, theta, self.targets, box, dual, intercepts, rtol)
        linear = self.of_tasks(np.abs(dual))
        return self.swept(theta, linear, linear, gap, forms, errors, SVCStart(dual, solved.intercept, solved.steps))

    def decisions(self, sweep: Sweep) -> Decisions:
        """f_t(x) = Σ_i y_i α_ti k_θ(x_i, x) + b_t."""
        start: SVCStart = sweep.warm
        return Decisions(self.by_task(start.dual), start.intercepts)

    def grown_start(self, warm: SVCStart, factor: float) -> SVCStart:
        """A warm start for these tasks from one for bounds that are smaller by ``factor``."""
        return warm._replace(dual=np.clip(factor * warm.dual, -self.C, self.C))  # rounding may exceed the bounds

    def start_from(self, dual: Array, intercepts: Array) -> SVCStart:
        """A warm start from feasible duals."""
        return SVCStart(dual, intercepts, np.zeros(self.n_tasks, dtype=np.int64))


# κ = 1.5 is for smooth decisions of many samples: it leaves little to the kernels that can fit anything
SVC = MachineKind("svc", SVCTasks, "labels", "hinge", promises=HINGE, capacities=(0.5, 1.0, 1.5))
