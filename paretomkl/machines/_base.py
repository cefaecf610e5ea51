"""The base class of all machines over Gram blocks."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from .._rounding import Errors, errors_of_duals, sweep_bounds
from .._typing import AnyArray, Array, IntArray
from ..protocols import Gram, check_part
from ..sweep import Decisions, Sweep

TINY = 1e-12  # objective of a task that any constant fits, relative to a large cost


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

    # whether the linear part of a cut is proportional to its dual, and C only bounds that dual
    homogeneous: ClassVar[bool] = True
    # whether duals may shrink towards zero and cuts follow the scale of a kernel: the linear part needs the dual only
    scalable: ClassVar[bool] = True

    # whether a cut consists only of a linear part that is concave in the duals of ``decisions``, and of their forms
    plain_cuts: ClassVar[bool] = False
    # whether the duals of a task sum to zero
    balanced: ClassVar[bool] = False
    # whether moving all samples in the space of a kernel changes nothing, as with a free intercept, where Σv = 0
    shift_invariant: ClassVar[bool] = False

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
        return Sweep(theta, linear, forms, lower, upper, warm, lost)

    def forms(self, dual: Array) -> Array:
        """scale_t · v_t'K_m v_t of flat duals v, (n_tasks, n_kernels), rounded up."""
        errors, _ = errors_of_duals(self.gram, np.zeros(self.n_kernels), dual, self.balanced)
        return self.scale[:, None] * (np.maximum(self.gram.quadratic_forms(dual), 0.0) + errors.forms)

    def with_kernels(self, which: IntArray) -> Self:
        """A copy with the given kernels only."""
        other = copy(self)
        other.gram = self.gram.with_kernels(which)  # type: ignore[attr-defined]
        return other

    def fitted_by_constants(self, tube: Array | float = 0.0) -> AnyArray:
        """Tasks whose targets span at most 2 ``tube``, ignoring samples of cost zero: J_t = 0 under every kernel."""
        return self._range_of_targets() <= 2 * np.asarray(tube)

    def _range_of_targets(self) -> Array:
        """Range of the targets of each task, ignoring samples of cost zero; −∞ if no sample counts."""
        counts, begin = self.C > 0, self.gram.layout.ptr[:-1]
        highest = np.maximum.reduceat(np.where(counts, self.targets, -np.inf), begin)
        return highest - np.minimum.reduceat(np.where(counts, self.targets, np.inf), begin)

    def without_cost(self, sweep: Sweep, tasks: AnyArray, power: int = 1) -> Sweep:
        """The sweep with a small constant as the objective of the given tasks, whose objective is zero.

        Power means need positive objectives. A constant changes no minimiser of M_p except at p = −∞, and its effect on
        the mean is negligible for p ≥ 1: it is TINY times the cost of errors as large as the widest range of targets.
        """
        if not tasks.any():
            return sweep
        widest = self._range_of_targets().max()
        cost = np.maximum(self.of_tasks(self.C), 1e-100) * (widest if widest > 0 else 1.0) ** power
        tiny = TINY * self.scale * cost
        linear, lower, upper = (np.where(tasks, tiny, old) for old in (sweep.linear, sweep.lower, sweep.upper))
        forms = np.where(tasks[:, None], 0.0, sweep.forms)
        rounding = None if sweep.rounding is None else np.where(tasks[:, None], 0.0, sweep.rounding)
        return replace(sweep, linear=linear, forms=forms, lower=lower, upper=upper, rounding=rounding)

    def with_bounds(self, C: Array) -> Self:
        """A copy with other costs on the same kernels."""
        other = copy(self)
        other.C = np.ascontiguousarray(C, dtype=np.float64)
        return other

    def paying(self, capacity: float) -> Self:
        """A copy with another capacity exponent κ of the kernels."""
        other = copy(self)
        other.gram = self.gram.paying(capacity)  # type: ignore[attr-defined]
        return other

    def grown_start(self, warm: Any, factor: float) -> Any:
        """A warm start for these tasks from one for costs that are smaller by ``factor``."""
        return warm
