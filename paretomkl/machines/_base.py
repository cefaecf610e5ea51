"""What all machines have in common: the kind of a machine, and the base class of those over Gram blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from .._tools.checks import check_number, shown
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._rounding import Errors, errors_of_duals, sweep_bounds
from ..protocols import Gram, Machine, Promises, WeightSet, check_part
from ..sweep import Decisions, Sweep
from ..weight_sets import LsBall
from ._smo import Box, Certified, certified, solve_tasks
from ._working_sets import certified_by_field, solve_on_working_sets

NONE = Promises()
Reads: TypeAlias = Literal["labels", "numbers", "nothing"]
Meaning: TypeAlias = Literal["margins", "log-odds", "estimates", "numbers", "levels"]
# the promises of a machine whose C bounds the dual, and whose cuts consist of a form and of a part proportional to it
BOX = Promises(nonnegative=True, shrinks=True, scales=True, grows=True, homogeneous=True)


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


def find_kind(
    kinds: Mapping[str, MachineKind], given: Any, parameter: str = "machine", reads: Reads | None = None
) -> MachineKind:
    """The kind that users mean: one of ``kinds`` by name (with ``reads``, by the name of its loss), or their own.

    ``reads`` is what the machine must learn from, and ``parameter`` what the message calls it if there is none.
    """
    offered = kinds if reads is None else {kind.loss: kind for kind in kinds.values() if kind.reads == reads}
    if isinstance(given, str) and given in offered:
        return offered[given]
    if not isinstance(given, MachineKind):
        names = ", ".join(map(repr, offered))
        raise ValueError(f"{parameter} must be one of {names} or a MachineKind, got {shown(given)}.")
    if reads is not None and given.reads != reads:
        raise ValueError(f"{parameter}={given.name!r} learns from {given.reads}, but this estimator from {reads}.")
    return given


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

    Attributes
    ----------
    balanced : bool
        Whether the duals of a task sum to zero.
    """

    promises: Promises = Promises()
    balanced: ClassVar[bool] = False

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

    def by_task(self, flat: Array) -> list[Array]:
        """The parts of a flat array that belong to each task."""
        return [flat[first:last] for first, last in pairwise(self.gram.layout.ptr.tolist())]

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


def solve_boxes(gram: Any, theta: Array, y: Array, box: Box, v: Array, intercepts: Array, rtol: float) -> Certified:
    """Solve all tasks at θ as :func:`solve_tasks` does, with the quadratic forms of their duals and bounds on rounding.

    Uses full Gram matrices or working sets, whichever the store expects to be less work.
    """
    if theta.ndim > 1 or not gram.streams:
        with gram.combined(theta) as K:
            solved = solve_tasks(K.flat, K.layout, y, box, v, rtol, gram.n_jobs)
        return certified(gram, theta, y, box, v, solved, gram.quadratic_forms(v), np.zeros(len(v)))
    while True:
        start = v.copy()
        with gram.field() as field:
            solved = solve_on_working_sets(field, theta * gram.bank.factor, y, box, v, intercepts, rtol)
            found = certified_by_field(field, theta, y, box, v, solved, rtol)
            precise = (found.errors.gap + found.errors.forms @ theta <= rtol * solved.value).all()
            if field.double and not precise and field.renew():
                solved.errors[:] = y - np.concatenate(field.decisions(range(len(solved.value))))
                found = certified_by_field(field, theta, y, box, v, solved, rtol)
        if field.double or precise:
            return found
        gram.use_double_precision()
        v[:] = start
