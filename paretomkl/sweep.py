"""The result of a machine: all tasks solved at one θ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._tools.compiled import njit
from ._tools.typing import Array

if TYPE_CHECKING:
    from .protocols import Machine

__all__ = ["Decisions", "Sweep", "check_sweep"]


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
    names : sequence of n_kernels str, default=None
        Names of the kernels, for messages; None if they have none.
    """

    theta: Array
    linear: Array
    forms: Array
    lower: Array
    upper: Array
    warm: Any = None
    rounding: Array | None = None
    names: Sequence[str] | None = None

    @property
    def gaps(self) -> Array:
        """The relative duality gap of each task, (n_tasks,); zero for idle tasks."""
        return np.where(self.upper > 0, 1 - self.lower / np.where(self.upper > 0, self.upper, 1.0), 0.0)


_CONTRADICTION = 1e-6  # a cut may lie above the objective at its own θ by this much, relative to its largest term


def check_sweep(sweep: Sweep, machine: Machine) -> Sweep:
    """The sweep itself; raise if it contradicts the protocol of machines, because it would certify nothing.

    The library checks every sweep. Call it in a solver of your own to find mistakes early.

    Parameters
    ----------
    sweep : Sweep
        What the machine returned.
    machine : Machine
        The machine that made it.

    Returns
    -------
    sweep : Sweep
        The same object.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from paretomkl.sweep import Sweep, check_sweep
    >>> one = np.ones(1)
    >>> wrong = Sweep(one, linear=one, forms=-np.ones((1, 1)), lower=one, upper=2 * one)
    >>> check_sweep(wrong, SimpleNamespace(n_tasks=1, n_kernels=1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: SimpleNamespace has the negative form -1 for task 0 and kernel 0, but ...
    """
    linear, forms, upper = sweep.linear, sweep.forms, sweep.upper
    shape = machine.n_tasks, machine.n_kernels
    if forms.shape != shape or not linear.shape == sweep.lower.shape == upper.shape == shape[:1]:
        raise ValueError(
            f"A sweep of {type(machine).__name__} must have forms of shape {shape} and linear, lower and upper of "
            f"shape {shape[:1]}, got {forms.shape}, {linear.shape}, {sweep.lower.shape} and {upper.shape}."
        )
    numbers = (
        np.ascontiguousarray(some, dtype=np.float64) for some in (np.atleast_2d(sweep.theta), linear, forms, upper)
    )
    t = _first_impossible(*numbers)
    if t >= 0:
        _refuse(t, sweep, type(machine).__name__)
    return sweep


@njit()
def _first_impossible(theta: Array, linear: Array, forms: Array, upper: Array) -> int:
    """The first task with numbers that are not finite, a negative form, an objective that is not positive, or a cut
    above its upper bound; −1 if there is none. An idle task is possible.

    Compiled, because a dozen calls of NumPy would cost more than some sweeps.
    """
    for t in range(len(upper)):
        own = t if len(theta) > 1 else 0
        value = linear[t]
        largest = 0.0
        for m in range(theta.shape[1]):
            value -= 0.5 * theta[own, m] * forms[t, m]
            largest = max(largest, forms[t, m])
            if not forms[t, m] >= 0.0:
                return t
        slack = upper[t] - value + _CONTRADICTION * abs(linear[t])
        idle = upper[t] == 0.0 and linear[t] == 0.0 and largest == 0.0
        if not idle and not (upper[t] > 0.0 and slack >= 0.0 and largest + upper[t] + abs(linear[t]) < np.inf):
            return t
    return -1


def _refuse(t: int, sweep: Sweep, name: str) -> None:
    """Say what is impossible about a task."""
    linear, forms, upper = float(sweep.linear[t]), sweep.forms[t], float(sweep.upper[t])
    if not np.isfinite([linear, upper, *forms]).all():
        raise ValueError(
            f"The objective of task {t} is not finite: C, the sample weights and the kernel values are too large "
            "together. Reduce C or normalise the kernels."
        )
    m = int(np.argmin(forms))
    if forms[m] < 0:
        raise ValueError(
            f"{name} has the negative form {forms[m]:.3g} for task {t} and kernel {m}, but an objective must not "
            "increase with a kernel weight. Is the kernel positive semidefinite?"
        )
    if not upper > 0:
        raise ValueError(
            f"Task {t} has the objective {upper:.3g} under {name}, but objectives must be positive: power means of "
            "others are not defined. Add a constant, or use another form of the task."
        )
    value = linear - 0.5 * float(forms @ np.atleast_2d(sweep.theta)[t if sweep.theta.ndim > 1 else 0])
    raise ValueError(
        f"{name} contradicts itself at task {t}: its cut has the value {value:.6g} at its own θ, which is above its "
        f"upper bound {upper:.6g}."
    )


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
