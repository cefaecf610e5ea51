"""The multi-task problem: a machine, a scalarization, a set of kernel weights, and the certificate of a solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._tools.compiled import barrier_function
from ._tools.typing import Array
from .protocols import Machine, Promises, Scalarization, WeightSet, check_part
from .sweep import Sweep

__all__ = ["MultiTaskProblem"]


@dataclass(frozen=True)
class MultiTaskProblem:
    """minimise over θ ∈ weight_set    scalarization(J_1(θ), …, J_T(θ)).

    Parameters
    ----------
    machine : Machine
        Solves the tasks at a given θ.
    scalarization : Scalarization
        Combines the objectives into one number.
    weight_set : WeightSet
        The allowed θ.

    Examples
    --------
    Two tasks on the same samples, with two kernels:

    >>> import numpy as np
    >>> from paretomkl import KernelBank
    >>> from paretomkl.gram import GramBlocks
    >>> from paretomkl.machines import SVCTasks
    >>> from paretomkl.problem import MultiTaskProblem
    >>> from paretomkl.scalarizations import PowerMean
    >>> from paretomkl.solvers import CutPool
    >>> from paretomkl.weight_sets import LsBall
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> rows = [np.arange(40), np.arange(40)]
    >>> signs = np.sign(np.concatenate([X[:, 0], X[:, 0] * X[:, 1]]))
    >>> gram = GramBlocks(KernelBank(["linear", "rbf"]).fit(X), X, rows)
    >>> problem = MultiTaskProblem(SVCTasks(gram, signs, np.full(80, 10.0)), PowerMean(2.0), LsBall(1.1))
    >>> solution = CutPool(tol=1e-4).solve(problem)
    >>> solution.theta.shape, solution.objectives.shape, bool(solution.gap <= 1e-4)
    ((2,), (2,), True)
    """

    machine: Machine
    scalarization: Scalarization
    weight_set: WeightSet

    def __post_init__(self) -> None:
        check_part(self.machine, Machine)
        check_part(self.scalarization, Scalarization)
        check_part(self.weight_set, WeightSet)
        promises, barrier = self.machine.promises, self.weight_set.barrier
        if type(promises) is not Promises:
            raise TypeError(f"{type(self.machine).__name__}.promises must be a Promises object, got {promises!r}.")
        if barrier is not None and type(barrier[0]) is not barrier_function:
            name = type(self.weight_set).__name__
            raise TypeError(f"{name}.barrier must be None or a @barrier_function and an array, got {barrier!r}.")

    def start(self) -> Array:
        """The starting point of the weight set."""
        return self.weight_set.start(self.machine.n_kernels)

    def gradient(self, objectives: Array) -> Array:
        """∂S/∂g_t; raise if one is negative or not a number, since then bounds on the objectives do not bound S."""
        gradient = self.scalarization.gradient(objectives)
        if np.isnan(self.scalarization.p) and not gradient.min() >= 0:
            t = int(np.argmin(gradient >= 0))
            raise ValueError(
                f"{type(self.scalarization).__name__} must increase with every objective, but has the derivative "
                f"{gradient[t]:.3g} for task {t} at the objectives {objectives}."
            )
        return gradient

    def lower_bound(self, weights: Array, linear: Array, forms: Array) -> float:
        """min over θ of Σ_t η_t (a_t − ½ θ'G_t) = Σ_t η_t a_t − ½ h(Σ_t η_t G_t), h the support function of the set.

        Any choice of one cut per task gives a lower bound on the minimum of Σ_t η_t J_t(θ).
        """
        return float(weights @ linear - 0.5 * self.weight_set.support(weights @ forms))

    def relative_gap(self, sweep: Sweep, lower: float | None = None) -> float:
        """Upper bound on the distance of M_p(J(θ)) to its optimum, relative to M_p(J(θ)).

        ``lower`` is a lower bound on Σ_t η_t J_t over all θ, where η is the gradient of M_p at the upper bounds of this
        sweep (or, for p ≥ 1, a lower bound on the optimum of M_p itself). The duals of the sweep give another one. For
        p < 1 the result is the gap of the sum with weights η ∝ J^(p−1): the point is Pareto optimal up to that amount.
        """
        value, own = self.value_and_bound(sweep)
        return self.gap_between(value, own if lower is None else max(own, lower))

    def value_and_bound(self, sweep: Sweep) -> tuple[float, float]:
        """S at the upper bounds u of the sweep, and the lower bound that its duals give; see :meth:`relative_gap`.

        With η = ∇S(u), a convex S has S(J) ≥ S(u) + η'(J − u) everywhere. For a homogeneous one η'u = S(u), so that
        Σ_t η_t J_t bounds it. For a concave one, both numbers are those of the sum with weights η.
        """
        scalarization, upper = self.scalarization, sweep.upper
        eta = self.gradient(upper)
        total, lower = float(eta @ upper), self.lower_bound(eta, sweep.linear, sweep.forms)
        if scalarization.homogeneous or not scalarization.convex:
            return total, lower
        value = scalarization.value(upper)
        return value, value + (lower - total)

    def gap_between(self, value: float, lower: float) -> float:
        """The relative gap between a value and a lower bound on the optimum."""
        if value == 0.0:
            return 0.0  # no task costs anything
        gap = 1.0 - (max(lower, 0.0) if self.machine.promises.nonnegative else lower) / value
        return 0.0 if gap < 0.0 else gap  # NaN stays NaN: it certifies nothing
