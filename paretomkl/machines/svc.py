"""The task machine: support vector classifiers over shared Gram blocks."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from .._parallel import run_chunks
from .._typing import Array, IntArray
from ..gram import GramBlocks
from ._smo import solve_tasks

MAX_STEPS = 10_000_000  # pair steps of one task; reached only when the tolerance is below what rounding allows


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
        self.block_start = gram.start[gram.block_of_task]
        self.block_size = gram.size[gram.block_of_task]
        self.n_sweeps = 0
        self.seconds = 0.0

    def with_bounds(self, C: Array) -> SVCTasks:
        """The same tasks with other bounds of the dual variables, on the same kernels."""
        return SVCTasks(self.gram, self.signs, C)

    @property
    def n_tasks(self) -> int:
        return len(self.gram.ptr) - 1

    @property
    def n_kernels(self) -> int:
        return self.gram.bank.n_kernels

    def sweep(self, theta: Array, init: Array | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the dual variables ``init``.

        Any dual feasible for one θ is feasible for all, since θ is not in the constraints.
        """
        began = perf_counter()
        T = self.n_tasks
        K = self.gram.combine(theta)
        dual = np.zeros(len(self.signs)) if init is None else init.copy()
        value, gap, intercepts = np.empty(T), np.empty(T), np.empty(T)
        steps = np.zeros(T, dtype=np.int64)

        def work(first: int, last: int) -> None:
            solve_tasks(
                first,
                last,
                K,
                self.block_start,
                self.block_size,
                self.gram.ptr,
                self.gram.idx,
                self.signs,
                self.C,
                dual,
                rtol,
                MAX_STEPS,
                value,
                gap,
                intercepts,
                steps,
            )

        n_jobs = self.gram.n_jobs
        chunks = [(0, T)] if n_jobs == 1 else [(t, t + 1) for t in range(T)]
        run_chunks(work, chunks, n_jobs)
        linear = np.add.reduceat(np.abs(dual), self.gram.ptr[:-1])
        forms = np.maximum(self.gram.quadratic_forms(dual), 0.0)  # rounding may leave a form of zero below it
        lower = linear - 0.5 * (forms * theta).sum(axis=1)
        self.n_sweeps += 1
        self.seconds += perf_counter() - began
        return Sweep(theta, dual, intercepts, linear, forms, lower, lower + np.maximum(gap, 0.0), steps)
