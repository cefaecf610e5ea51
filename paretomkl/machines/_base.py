"""What all machines over Gram blocks share."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from .._typing import AnyArray, Array, IntArray
from ..protocols import Gram, check_part
from ..sweep import Decisions, Sweep

TINY = 1e-12  # of a large cost: the objective of a task that costs nothing


class KernelTasks:
    """T tasks whose functions lie in the space of the kernel Σ_m θ_m K_m; a subclass says what a task is.

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Labels ±1, or numbers to predict, over the samples of all tasks, one task after the other.
    C : array of shape (n_entries,)
        What an error of each sample of each task costs.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, and with them of cuts and bounds: 1/n_t for objectives per sample; None is 1.
        Duals, decisions and intercepts do not depend on it.
    """

    # whether the linear part of a cut is proportional to the dual it is made from, and C only bounds that dual
    homogeneous: ClassVar[bool] = True
    # whether a dual may shrink towards zero and cuts follow the scale of a kernel: linear part from the dual alone
    scalable: ClassVar[bool] = True

    # whether cuts are made of linear parts that are concave in the duals of ``decisions``, of their forms, and no more
    plain_cuts: ClassVar[bool] = False

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
        """Solve every task at θ to a relative duality gap of rtol, from the ``warm`` of an earlier sweep."""
        raise NotImplementedError

    def decisions(self, sweep: Sweep) -> Decisions:
        """The functions of the tasks as they were solved in a sweep of this machine."""
        raise NotImplementedError

    def of_tasks(self, values: Array) -> Array:
        """Sums over the samples of each task, (n_tasks,)."""
        return np.add.reduceat(values, self.gram.layout.ptr[:-1])

    def swept(
        self, theta: Array, linear: Array, dual: Array, gap: Array, warm: Any, forms: Array | None = None
    ) -> Sweep:
        """The sweep of duals v, feasible at every θ: cuts a_t − ½ Σ_m θ_m v'K_m v and, with the duality gap, bounds.

        ``forms`` are the v'K_m v where they are known.
        """
        linear = self.scale * linear
        forms = self.forms(dual, forms)
        lower = linear - 0.5 * (forms * theta).sum(axis=1)
        return Sweep(theta, linear, forms, lower, lower + self.scale * np.maximum(gap, 0.0), warm)

    def forms(self, dual: Array, known: Array | None = None) -> Array:
        """scale_t · v_t'K_m v_t of flat duals v, (n_tasks, n_kernels); ``known`` are the v_t'K_m v_t where they are."""
        forms = self.gram.quadratic_forms(dual) if known is None else known
        return self.scale[:, None] * np.maximum(forms, 0.0)  # rounding may leave a form of zero below it

    def with_kernels(self, which: IntArray) -> Self:
        """The same tasks with some of the kernels."""
        other = copy(self)
        other.gram = self.gram.with_kernels(which)  # type: ignore[attr-defined]
        return other

    def fitted_by_constants(self, tube: Array | float = 0.0) -> AnyArray:
        """Tasks whose targets lie within 2 ``tube``, samples of cost zero aside: J_t = 0 under every kernel."""
        return self._range_of_targets() <= 2 * np.asarray(tube)

    def _range_of_targets(self) -> Array:
        """Largest less smallest target of each task, samples of cost zero aside; −∞ where no sample counts."""
        counts, begin = self.C > 0, self.gram.layout.ptr[:-1]
        highest = np.maximum.reduceat(np.where(counts, self.targets, -np.inf), begin)
        return highest - np.minimum.reduceat(np.where(counts, self.targets, np.inf), begin)

    def without_cost(self, sweep: Sweep, tasks: AnyArray, power: int = 1) -> Sweep:
        """The sweep with a small constant for the objectives of tasks that cost nothing.

        Power means need positive objectives. A constant changes no minimiser of M_p except at p = −∞, and its part in
        the mean is negligible for p ≥ 1: it is TINY times what errors as large as the targets of the tasks are wide
        would cost.
        """
        if not tasks.any():
            return sweep
        widest = self._range_of_targets().max()
        cost = np.maximum(self.of_tasks(self.C), 1e-100) * (widest if widest > 0 else 1.0) ** power
        tiny = TINY * self.scale * cost
        linear, lower, upper = (np.where(tasks, tiny, old) for old in (sweep.linear, sweep.lower, sweep.upper))
        return replace(sweep, linear=linear, forms=np.where(tasks[:, None], 0.0, sweep.forms), lower=lower, upper=upper)

    def with_bounds(self, C: Array) -> Self:
        """The same tasks with other costs, on the same kernels."""
        other = copy(self)
        other.C = np.ascontiguousarray(C, dtype=np.float64)
        return other

    def paying(self, capacity: float) -> Self:
        """The same tasks with kernels that pay another price for their capacity."""
        other = copy(self)
        other.gram = self.gram.paying(capacity)  # type: ignore[attr-defined]
        return other

    def grown_start(self, warm: Any, factor: float) -> Any:
        """A start for these tasks from that of tasks whose costs are these divided by ``factor``."""
        return warm
