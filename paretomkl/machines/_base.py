"""The base class of all machines over Gram blocks."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._rounding import Errors, errors_of_duals, sweep_bounds
from ..protocols import Gram, Promises, check_part
from ..sweep import Decisions, Sweep

# the promises of a machine whose C bounds the dual, and whose cuts consist of a form and of a part proportional to it
BOX = Promises(nonnegative=True, shrinks=True, scales=True, grows=True, homogeneous=True)


class KernelTasks:
    """T tasks whose functions lie in the space of the kernel Σ_m θ_m K_m; a subclass defines what a task is.

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Labels ±1, or regression targets, of the samples of all tasks, concatenated by task.
    C : array of shape (n_entries,)
        Cost of an error, for each sample of each task.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds: 1/n_t for objectives per sample; None is 1. Duals, decisions and
        intercepts do not depend on it.
    """

    promises: Promises = Promises()
    balanced: ClassVar[bool] = False  # whether the duals of a task sum to zero

    def __init__(self, gram: Gram, targets: Array, C: Array, scale: Array | None = None):
        check_part(gram, Gram)
        self.gram = gram
        self.targets = np.ascontiguousarray(targets, dtype=np.float64)
        self.C = np.ascontiguousarray(C, dtype=np.float64)
        self.scale = np.ones(self.n_tasks) if scale is None else np.asarray(scale, dtype=np.float64)

    @property
    def n_tasks(self) -> int:
        return len(self.gram.layout.size)

    @property
    def n_kernels(self) -> int:
        return self.gram.n_kernels

    def sweep(self, theta: Array, warm: Any = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from ``warm`` of an earlier sweep."""
        raise NotImplementedError

    def decisions(self, sweep: Sweep) -> Decisions:
        """The task functions that result from a sweep of this machine."""
        raise NotImplementedError

    def of_tasks(self, values: Array) -> Array:
        """Sums over the samples of each task, (n_tasks,)."""
        return np.add.reduceat(values, self.gram.layout.ptr[:-1])

    def swept(
        self, theta: Array, linear: Array, size: Array, gap: Array, forms: Array, errors: Errors, warm: Any
    ) -> Sweep:
        """The sweep of duals v, feasible at every θ: cuts a_t − ½ Σ_m θ_m v'K_m v, and bounds from the duality gap.

        ``size`` is the sum of the sizes of the terms of a; ``gap`` contains what rounding adds to the decisions. Cuts
        are lowered and upper bounds raised by the other ``errors``.
        """
        lost, weights = errors.forms, theta if theta.ndim > 1 else theta[None]
        lower, upper = sweep_bounds(self.scale, weights, size, gap, errors.gap, errors.relative, linear, forms, lost)
        return Sweep(theta, linear, forms, lower, upper, warm, lost, self.gram.names)

    def forms(self, dual: Array) -> Array:
        """scale_t · v_t'K_m v_t of flat duals v, (n_tasks, n_kernels), rounded up."""
        errors, _ = errors_of_duals(self.gram, np.zeros(self.n_kernels), dual, self.balanced)
        return self.scale[:, None] * (np.maximum(self.gram.quadratic_forms(dual), 0.0) + errors.forms)

    def with_kernels(self, which: IntArray) -> Self:
        """A copy with the given kernels only; the store must be able to choose."""
        other = copy(self)
        other.gram = self.gram.with_kernels(which)  # type: ignore[attr-defined]
        return other

    def steepest(self, slope: Array, among: IntArray | None = None) -> IntArray:
        """The kernels to add next, given the slope of each; the store must be able to choose."""
        return self.gram.steepest(slope, among)  # type: ignore[attr-defined]

    def fitted_by_constants(self, tube: Array | float = 0.0) -> AnyArray:
        """Tasks whose targets span at most 2 ``tube``, ignoring samples of cost zero: J_t = 0 under every kernel."""
        counts, begin = self.C > 0, self.gram.layout.ptr[:-1]
        highest = np.maximum.reduceat(np.where(counts, self.targets, -np.inf), begin)
        lowest = np.minimum.reduceat(np.where(counts, self.targets, np.inf), begin)
        return highest - lowest <= 2 * np.asarray(tube)

    @staticmethod
    def idle(sweep: Sweep, tasks: AnyArray) -> Sweep:
        """The sweep with objectives, cuts and forms of exactly zero for the given tasks, which cost nothing."""
        if not tasks.any():
            return sweep
        linear, lower, upper = (np.where(tasks, 0.0, old) for old in (sweep.linear, sweep.lower, sweep.upper))
        forms = np.where(tasks[:, None], 0.0, sweep.forms)
        rounding = None if sweep.rounding is None else np.where(tasks[:, None], 0.0, sweep.rounding)
        return replace(sweep, linear=linear, forms=forms, lower=lower, upper=upper, rounding=rounding)

    def grown_start(self, warm: Any, factor: float) -> Any:
        """A warm start for these tasks from one for costs that are smaller by ``factor``."""
        return warm
