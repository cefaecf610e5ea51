"""The result of a machine: all tasks solved at one θ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ._typing import Array

__all__ = ["Decisions", "Sweep"]


@dataclass(frozen=True)
class Sweep:
    """All tasks solved at one θ, with a cut per task that holds at every other θ.

    Attributes
    ----------
    theta : array of shape (n_kernels,), or (n_tasks, n_kernels) if each task has its own
    linear, forms : arrays of shape (n_tasks,) and (n_tasks, n_kernels)
        The cuts J_t(θ') ≥ linear_t − ½ θ'·forms_t, valid for all θ'.
    lower, upper : arrays of shape (n_tasks,)
        Bounds on J_t(θ): the dual and the primal objective.
    warm : object
        Warm start for the next sweep. Only the machine that made it can read it.
    rounding : array of shape (n_tasks, n_kernels), default=None
        What rounding errors of each kernel add to upper − lower, per unit of its weight; None if unknown.
    """

    theta: Array
    linear: Array
    forms: Array
    lower: Array
    upper: Array
    warm: Any = None
    rounding: Array | None = None


class Decisions(NamedTuple):
    """The task functions of a sweep, f_t(x) = Σ_i dual_ti k_θ(x_ti, x) + intercept_t + diagonal · k_θ(x, x).

    Attributes
    ----------
    dual : list of n_tasks arrays
        Coefficients over the samples of each task.
    intercepts : array of shape (n_tasks,)
        Constant term of each function.
    diagonal : float
        Factor of k_θ(x, x); nonzero only for balls.
    """

    dual: list[Array]
    intercepts: Array
    diagonal: float = 0.0
