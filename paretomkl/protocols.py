"""The interfaces of the library's parts. Any object with the right members plugs in; you need not inherit anything.

    minimise over θ ∈ weight set    scalarization(J_1(θ), …, J_T(θ))

where the machine computes J_t(θ) and its Gram store computes K_θ.

The page *How to add a part* in the documentation has an example of each.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ._typing import AnyArray, Array

if TYPE_CHECKING:
    from ._bank import FittedBank
    from ._compiled import barrier_function
    from ._run import Run
    from .gram import CombinedGram, TaskLayout
    from .problem import MultiTaskProblem
    from .solution import Solution
    from .sweep import Decisions, Sweep

__all__ = ["Gram", "Machine", "Scalarization", "Solver", "WeightSet", "check_part"]


@runtime_checkable
class Machine(Protocol):
    """Solves all tasks under a given kernel."""

    @property
    def n_tasks(self) -> int: ...

    @property
    def n_kernels(self) -> int: ...

    def sweep(self, theta: Array, warm: Any = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from ``warm`` of an earlier sweep."""

    def decisions(self, sweep: Sweep) -> Decisions:
        """The task functions that result from a sweep of this machine."""


@runtime_checkable
class Gram(Protocol):
    """Computes kernel values of the training samples for all tasks."""

    @property
    def layout(self) -> TaskLayout: ...

    @property
    def bank(self) -> FittedBank: ...

    @property
    def n_kernels(self) -> int: ...

    @property
    def n_jobs(self) -> int: ...

    def combined(self, theta: Array) -> AbstractContextManager[CombinedGram]:
        """The matrices Σ_m θ_m K_m of all tasks, valid inside the ``with`` block."""

    def quadratic_forms(self, v: Array) -> Array:
        """G[t, m] = v_t'K_m v_t, (n_tasks, n_kernels), where v concatenates the coefficients of all tasks."""

    def cross(self, X: AnyArray, theta: Array) -> Array:
        """Σ_m θ_m K_m between new samples X and the training samples, (n_other, n_samples)."""


@runtime_checkable
class WeightSet(Protocol):
    """The allowed kernel weights: {θ ≥ 0, c(θ) ≤ 1} with c convex and increasing."""

    def start(self, n_kernels: int) -> Array:
        """The starting point, on the boundary."""

    def support(self, direction: Array) -> Array:
        """The largest θ'v over the set for v ≥ 0, along the last axis of v."""

    def scale_to_boundary(self, theta: Array) -> Array:
        """The multiple of θ on the boundary."""

    def minimize_ratio(self, w: Array) -> Array:
        """The minimiser of Σ_m w_m / θ_m for w ≥ 0."""

    @property
    def barrier(self) -> tuple[barrier_function, Array]:
        """c for the compiled master: a compiled function and an array of its parameters."""

    def greatest(self, n_kernels: int) -> Array | None:
        """The elementwise largest weights if they lie in the set (then no barrier is needed), else None."""


@runtime_checkable
class Scalarization(Protocol):
    """Combines T task objectives into one number, increasing in each of them."""

    @property
    def p(self) -> float:
        """The exponent on the path; NaN if there is none."""

    @property
    def convex(self) -> bool:
        """Whether it is convex; a convex one is bounded by its linearisation, others are minimised by re-weighting."""

    def log_value(self, objectives: Array) -> Array:
        """log S(g) along the last axis of g of shape (..., n_tasks)."""

    def value(self, objectives: Array) -> float:
        """S(g)."""

    def gradient(self, objectives: Array) -> Array:
        """∂S/∂g_t."""

    def task_weights(self, objectives: Array) -> Array:
        """The gradient scaled to sum to one."""


@runtime_checkable
class Solver(Protocol):
    """Minimises the scalarization over the weight set."""

    tol: float

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        """Solve the problem to a relative gap of ``tol``, starting from the solution ``init`` if given."""


@cache
def _members(protocol: type) -> list[str]:
    return [name for name in {**vars(protocol), **protocol.__annotations__} if not name.startswith("_")]


def check_part(part: Any, protocol: type) -> None:
    """Raise an error that names the members a part lacks."""
    wanted = _members(protocol)
    missing = [name for name in wanted if not hasattr(part, name)]
    if missing or isinstance(part, type):
        kind = re.sub(r"(?<=.)([A-Z])", r" \1", protocol.__name__).lower()
        what = "is a class; pass an instance" if isinstance(part, type) else f"lacks {', '.join(missing)}"
        name = part.__name__ if isinstance(part, type) else type(part).__name__
        raise TypeError(f"{name} cannot be used as a {kind}: it {what}. A {kind} has {', '.join(wanted)}.")
