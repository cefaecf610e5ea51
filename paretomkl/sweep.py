"""What a machine returns: all tasks solved at one θ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ._typing import Array

__all__ = ["Decisions", "Sweep"]


@dataclass(frozen=True)
class Sweep:
    """All tasks solved at one θ, with what each of them says about every other θ.

    Attributes
    ----------
    theta : array of shape (n_kernels,), or (n_tasks, n_kernels) where each task has its own
    linear, forms : arrays of shape (n_tasks,) and (n_tasks, n_kernels)
        The cuts J_t(θ') ≥ linear_t − ½ θ'·forms_t, valid for all θ'.
    lower, upper : arrays of shape (n_tasks,)
        Bounds of J_t(θ): the dual and the primal objective.
    warm : object
        Where the machine that made this sweep can start the next one. Only that machine reads it.
    """

    theta: Array
    linear: Array
    forms: Array
    lower: Array
    upper: Array
    warm: Any = None


class Decisions(NamedTuple):
    """The functions f_t(x) = Σ_i dual_ti k_θ(x_ti, x) + intercept_t + diagonal · k_θ(x, x) that a sweep stands for.

    Attributes
    ----------
    dual : list of n_tasks arrays
        Coefficients over the samples of each task.
    intercepts : array of shape (n_tasks,)
        What is added.
    diagonal : float
        Not zero only for balls.
    """

    dual: list[Array]
    intercepts: Array
    diagonal: float = 0.0
