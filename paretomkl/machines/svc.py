"""The task machine: support vector classifiers over shared Gram blocks."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from .._typing import Array, IntArray
from ..gram import GramBlocks
from ._smo import solve_tasks


@dataclass(frozen=True)
class Sweep:
    """All tasks solved at one θ, with what each of them says about every other θ.

    theta (n_kernels,), or (n_tasks, n_kernels) where each task has its own; dual: flat signed dual variables y∘α of all
    tasks; intercepts (n_tasks,); linear (n_tasks,) and forms (n_tasks, n_kernels): the cuts J_t(θ') ≥ linear_t −
    ½ θ'·forms_t, valid for all θ'; lower and upper (n_tasks,): bounds of J_t(θ), the dual and the primal objective.
    """

    theta: Array
    dual: Array
    intercepts: Array
    linear: Array
    forms: Array
    lower: Array
    upper: Array
    steps: IntArray


class SVCTasks:
    """T support vector machines whose Gram matrices are combinations Σ_m θ_m K_m.

    Parameters
    ----------
    gram : GramBlocks
    signs : flat array of ±1 over the samples of all tasks
    C : flat array of upper bounds of the dual variables, one for each sample of each task
    """

    def __init__(self, gram: GramBlocks, signs: Array, C: Array):
        self.gram = gram
        self.signs = np.ascontiguousarray(signs, dtype=np.float64)
        self.C = np.ascontiguousarray(C, dtype=np.float64)
        self.n_sweeps = 0
        self.seconds = 0.0

    def with_bounds(self, C: Array) -> SVCTasks:
        """The same tasks with other bounds of the dual variables, on the same kernels."""
        return SVCTasks(self.gram, self.signs, C)

    @property
    def n_tasks(self) -> int:
        return self.gram.n_tasks

    @property
    def n_kernels(self) -> int:
        return self.gram.n_kernels

    def sweep(self, theta: Array, init: Array | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the dual variables ``init``.

        Any dual feasible for one θ is feasible for all, since θ is not in the constraints.
        """
        began = perf_counter()
        dual = np.zeros(len(self.signs)) if init is None else init.copy()
        with self.gram.combined(theta) as K:
            solved = solve_tasks(K.flat, K.layout, self.signs, self.C, dual, rtol, self.gram.n_jobs)
        linear = np.add.reduceat(np.abs(dual), self.gram.layout.ptr[:-1])
        forms = np.maximum(self.gram.quadratic_forms(dual), 0.0)  # rounding may leave a form of zero below it
        lower = linear - 0.5 * (forms * theta).sum(axis=1)
        self.n_sweeps += 1
        self.seconds += perf_counter() - began
        upper = lower + np.maximum(solved.gap, 0.0)
        return Sweep(theta, dual, solved.intercept, linear, forms, lower, upper, solved.steps)
