"""The task machine of the paper: support vector classifiers over shared Gram blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._typing import Array, IntArray
from ..protocols import Gram, check_part
from ..sweep import Decisions, Sweep
from ._smo import solve_tasks


class SVCStart(NamedTuple):
    """What an SVC sweep leaves for the next: flat signed duals y∘α, intercepts and pair steps of the tasks."""

    dual: Array
    intercepts: Array
    steps: IntArray


class SVCTasks:
    """T support vector machines whose Gram matrices are combinations Σ_m θ_m K_m.

        J_t(θ) = scale_t · max over {0 ≤ α ≤ C, α'y = 0} of  α'1 − ½ (y∘α)'K_θ(y∘α)

    Parameters
    ----------
    gram : Gram
    signs : flat array of ±1 over the samples of all tasks
    C : flat array of upper bounds of the dual variables, one for each sample of each task
    scale : array of shape (n_tasks,), default=None
        What the objectives and with them cuts and bounds are multiplied by, 1/n_t for objectives per sample; None is 1.
        Duals, decisions and intercepts do not depend on it.
    """

    def __init__(self, gram: Gram, signs: Array, C: Array, scale: Array | None = None):
        check_part(gram, Gram)
        self.gram = gram
        self.signs = np.ascontiguousarray(signs, dtype=np.float64)
        self.C = np.ascontiguousarray(C, dtype=np.float64)
        self.scale = np.ones(self.n_tasks) if scale is None else np.asarray(scale, dtype=np.float64)

    @property
    def n_tasks(self) -> int:
        return len(self.gram.layout.size)

    @property
    def n_kernels(self) -> int:
        return self.gram.n_kernels

    def sweep(self, theta: Array, warm: SVCStart | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep.

        A dual that is feasible at one θ is feasible at all, since θ is not in the constraints.
        """
        dual = np.zeros(len(self.signs)) if warm is None else warm.dual.copy()
        with self.gram.combined(theta) as K:
            solved = solve_tasks(K.flat, K.layout, self.signs, self.C, dual, rtol, self.gram.n_jobs)
        linear = self.scale * np.add.reduceat(np.abs(dual), self.gram.layout.ptr[:-1])
        # rounding may leave a form of zero below it
        forms = self.scale[:, None] * np.maximum(self.gram.quadratic_forms(dual), 0.0)
        lower = linear - 0.5 * (forms * theta).sum(axis=1)
        upper = lower + self.scale * np.maximum(solved.gap, 0.0)
        return Sweep(theta, linear, forms, lower, upper, SVCStart(dual, solved.intercept, solved.steps))

    def decisions(self, sweep: Sweep) -> Decisions:
        """f_t(x) = Σ_i y_i α_ti k_θ(x_i, x) + b_t."""
        start: SVCStart = sweep.warm
        return Decisions(np.split(start.dual, self.gram.layout.ptr[1:-1]), start.intercepts)

    def with_bounds(self, C: Array) -> SVCTasks:
        """The same tasks with other bounds of the dual variables, on the same kernels."""
        return SVCTasks(self.gram, self.signs, C, self.scale)

    def paying(self, capacity: float) -> SVCTasks:
        """The same tasks with kernels that pay another price for their capacity."""
        gram: Any = self.gram
        return SVCTasks(gram.paying(capacity), self.signs, self.C, self.scale)

    def grown_start(self, warm: SVCStart, factor: float) -> SVCStart:
        """A start for these tasks from that of tasks whose bounds are these divided by ``factor``."""
        return warm._replace(dual=np.clip(factor * warm.dual, -self.C, self.C))  # rounding may carry it beyond
