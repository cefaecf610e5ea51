"""What the library asks about a machine before it has seen any data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .._tools.checks import check_number
from ..protocols import Machine, Promises, WeightSet
from ..weight_sets import LsBall

NONE = Promises()
Reads: TypeAlias = Literal["labels", "numbers", "nothing"]
Meaning: TypeAlias = Literal["margins", "log-odds", "estimates", "numbers", "levels"]


@dataclass(frozen=True)
class Parameter:
    """A number that only some machines have.

    Parameters
    ----------
    default : float
        Its value if users pass none.
    at_least : float, default=0.0
        The smallest value allowed.

    Examples
    --------
    >>> from paretomkl.machines import Parameter
    >>> Parameter(0.1).checked("epsilon", 0.5)
    0.5
    """

    default: float
    at_least: float = 0.0

    def checked(self, name: str, value: Any) -> float:
        """The value that a user passes, or an error that names the parameter."""
        check_number(name, value, lambda v: self.at_least <= v < float("inf"), f"of at least {self.at_least:g}")
        return float(value)


@dataclass(frozen=True)
class MachineKind:
    """A kind of machine: how to make one, how y is read for it, and what its decisions mean.

    Everything outside a machine's own module asks its kind instead of comparing names, so a loss of your own works in
    paths, estimators, searches and on clusters: pass its kind as ``machine=`` or ``loss=``.

    Parameters
    ----------
    name : str
        What ``pareto_path(machine=…)`` and messages call it.
    make : callable
        ``make(gram, targets, C, scale, **parameters)`` returns a :class:`~paretomkl.protocols.Machine`; the arguments
        are those of :class:`KernelTasks`. On a cluster, workers import it by name.
    reads : {"labels", "numbers", "nothing"}
        What y contains: labels, which become targets ±1; numbers; or nothing, if there is no y.
    loss : str, default=""
        What the parameter ``loss`` of estimators calls it; empty if no estimator offers it by name.
    decisions : {"margins", "log-odds", "estimates", "numbers", "levels"}, default="margins"
        What f_t(x) means: for labels, a margin, the log-odds of +1, or an estimate of ±1, which is judged by its
        squared error; the predicted number; or how typical a sample is.
    promises : Promises, default=Promises()
        What every machine of this kind promises.
    parameters : mapping from str to Parameter, default={}
        Parameters of its own, such as ε.
    weight_set : callable, default=LsBall
        The allowed kernel weights for a given norm s.
    capacities : tuple of float, default=(0.5, 1.0)
        Exponents κ of the capacity of kernels that a search tries.
    diagonal : bool, default=False
        Whether decisions need k(x, x) of new samples, which a precomputed stack does not contain.

    Examples
    --------
    >>> from paretomkl.machines import MACHINES
    >>> MACHINES["svr"].reads, MACHINES["svr"].loss, list(MACHINES["svr"].parameters)
    ('numbers', 'epsilon_insensitive', ['epsilon'])
    """

    name: str
    make: Callable[..., Machine]
    reads: Reads
    loss: str = ""
    decisions: Meaning = "margins"
    promises: Promises = NONE
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    weight_set: Callable[[float], WeightSet] = LsBall
    capacities: tuple[float, ...] = (0.5, 1.0)
    diagonal: bool = False

    def own(self, given: Mapping[str, float]) -> dict[str, float]:
        """Its own parameters: those given, and the defaults of the others."""
        return {name: given.get(name, about.default) for name, about in self.parameters.items()}

    @property
    def estimates(self) -> bool:
        """Whether decisions estimate the labels ±1."""
        return self.decisions == "estimates"
