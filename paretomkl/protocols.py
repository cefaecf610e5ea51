"""The interfaces of the library's parts. Any object with the right members plugs in; you need not inherit anything.

    minimise over θ ∈ weight set    scalarization(J_1(θ), …, J_T(θ))

where the machine computes J_t(θ) and its Gram store computes K_θ.

A protocol lists all that the library asks of a part. What a part may offer beyond that, so that solvers can save work,
it declares: a machine by its :class:`Promises`, a store by ``streams`` and ``can_choose``, a weight set by ``sparse``
and ``norm``, a scalarization by ``convex`` and ``homogeneous``. Where nothing is declared nothing is assumed.

The page *How to add a part* in the documentation has an example of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ._tools.checks import check_members
from ._tools.typing import Array, IntArray

if TYPE_CHECKING:
    from ._tools.compiled import barrier_function
    from .gram._blocks import CombinedGram, TaskLayout
    from .gram._large.fields import Field
    from .kernels._fitted import FittedBank
    from .kernels._rounding import Rounding
    from .problem import MultiTaskProblem
    from .scalarizations import PowerMean
    from .solution import Solution
    from .solvers._base import Run
    from .sweep import Decisions, Sweep

__all__ = [
    "ChoosableGram",
    "ChoosingMachine",
    "ExtendingMachine",
    "Gram",
    "GrowingMachine",
    "HingeMachine",
    "LargeGram",
    "Machine",
    "PathSolver",
    "PlainWeightSet",
    "Promises",
    "Scalarization",
    "Solver",
    "WeightSet",
    "check_part",
]


@dataclass(frozen=True)
class Promises:
    """What a machine guarantees beyond its protocol. Each promise saves work; a false one makes certificates wrong.

    ``Promises()`` promises nothing: everything works, and is certified, but no cut survives a change of C or of the
    scale of a kernel. Below, a cut J_t(θ) ≥ a − ½ θ'G belongs to a dual v.

    Attributes
    ----------
    nonnegative : bool
        J_t(θ) ≥ 0 at every θ that the machine accepts, also where it has not been evaluated.
    shrinks : bool
        J_t(θ) ≥ c a − ½ c² θ'G for 0 ≤ c ≤ 1: a is concave in v with a(0) ≥ 0, and v may shrink to zero.
    scales : bool
        If kernel m becomes r_m times as large, the same dual gives the cut with G_m r_m in place of G_m, and it is
        still a warm start: a does not depend on the kernels.
    shifts : bool
        Moving all samples in the space of a kernel changes neither objectives nor functions, as with a free intercept,
        where duals sum to zero. Then linear kernels may be centred.
    grows : bool
        A cut holds for every larger C. The machine is a :class:`GrowingMachine`.
    homogeneous : bool
        C only bounds the dual, and a is proportional to it: if C becomes f times as large, c a − ½ c² θ'G is a cut for
        1 ≤ c ≤ f.
    chooses : bool
        a is concave in v, and G_m = v'K_m v of the duals that ``decisions`` returns. The machine is a
        :class:`ChoosingMachine`, and taking some of its kernels is cheap.
    extends : bool
        Samples may be added with a dual of zero: a cut of some of the samples of a task holds for all of them. The
        machine is an :class:`ExtendingMachine`.
    hinge : bool
        The tasks are the paper's support vector machines over a Gram store. The machine is a :class:`HingeMachine`.
    """

    nonnegative: bool = False
    shrinks: bool = False
    scales: bool = False
    shifts: bool = False
    grows: bool = False
    homogeneous: bool = False
    chooses: bool = False
    extends: bool = False
    hinge: bool = False


@runtime_checkable
class Machine(Protocol):
    """Solves all tasks under a given kernel: J_t(θ) > 0 is convex and does not increase with θ.

    A task whose J_t is zero under every kernel is idle: its cut, forms and bounds are zero.
    """

    @property
    def n_tasks(self) -> int: ...

    @property
    def n_kernels(self) -> int: ...

    @property
    def promises(self) -> Promises:
        """What solvers may rely on beyond this protocol."""

    def sweep(self, theta: Array, warm: Any = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from ``warm`` of an earlier sweep.

        The bounds must hold whatever accuracy was reached, and the cuts at every θ ≥ 0.
        """

    def decisions(self, sweep: Sweep) -> Decisions:
        """The task functions that result from a sweep of this machine."""


@runtime_checkable
class GrowingMachine(Machine, Protocol):
    """A machine that can start from the solution for a smaller C."""

    def grown_start(self, warm: Any, factor: float) -> Any:
        """A warm start for these tasks from one for costs that are smaller by ``factor``."""


@runtime_checkable
class ExtendingMachine(Machine, Protocol):
    """A machine that can start from the duals of a fit to some of its samples."""

    def start_from(self, dual: Array, intercepts: Array) -> Any:
        """A warm start from feasible flat duals, which are zero for new samples, and intercepts (n_tasks,)."""


@runtime_checkable
class ChoosingMachine(Machine, Protocol):
    """A machine of very many kernels that can work with a few of them."""

    def with_kernels(self, which: IntArray) -> ChoosingMachine:
        """The same tasks with the given kernels only; its sweeps have duals that this machine can read."""

    def forms(self, dual: Array) -> Array:
        """G[t, m] of the cuts of flat duals, (n_tasks, n_kernels)."""

    def steepest(self, slope: Array, among: IntArray | None = None) -> IntArray:
        """The kernels to add next, given the slope of each (n_kernels,)."""


@runtime_checkable
class HingeMachine(Machine, Protocol):
    """J_t(θ) = scale_t · max over {0 ≤ α ≤ C, α'y = 0} of α'1 − ½ (y∘α)'K_θ(y∘α), with flat arrays over all samples.

    The duals of its decisions are y∘α.
    """

    gram: Gram
    targets: Array
    C: Array
    scale: Array


@runtime_checkable
class Gram(Protocol):
    """Computes kernel values of the training samples for all tasks."""

    @property
    def layout(self) -> TaskLayout: ...

    @property
    def n_kernels(self) -> int: ...

    @property
    def names(self) -> Sequence[str]:
        """Names of the kernels, for messages."""

    @property
    def n_jobs(self) -> int:
        """Number of threads for the work on its matrices."""

    @property
    def rounding(self) -> Rounding:
        """Bounds on the rounding errors of its kernel values, such as ``Rounding.of_values(diagonals)``."""

    @property
    def streams(self) -> bool:
        """Whether to avoid full matrices now: the store is a :class:`LargeGram`."""

    @property
    def can_choose(self) -> bool:
        """Whether taking some of its kernels is cheap: the store is a :class:`ChoosableGram`."""

    def combined(self, theta: Array) -> AbstractContextManager[CombinedGram]:
        """The matrices Σ_m θ_m K_m of all tasks, valid inside the ``with`` block."""

    def quadratic_forms(self, v: Array) -> Array:
        """G[t, m] = v_t'K_m v_t, (n_tasks, n_kernels), where v concatenates the coefficients of all tasks."""

    def diagonals(self) -> Array:
        """k_m(x, x) of the samples of all tasks, concatenated by task, (n_kernels, n_entries)."""


@runtime_checkable
class LargeGram(Gram, Protocol):
    """A store that can evaluate the task functions without full matrices."""

    @property
    def bank(self) -> FittedBank: ...

    def field(self) -> AbstractContextManager[Field]:
        """The functions of all tasks at the dual of their last use."""

    def use_double_precision(self) -> None:
        """Compute fields in double precision from now on."""


@runtime_checkable
class ChoosableGram(Gram, Protocol):
    """A store of very many kernels that can work with a few of them."""

    def with_kernels(self, which: IntArray) -> Gram:
        """A store with the given kernels only."""

    def steepest(self, slope: Array, among: IntArray | None = None) -> IntArray:
        """The kernels to add next, given the slope of each (n_kernels,)."""


@runtime_checkable
class WeightSet(Protocol):
    """The allowed kernel weights: {θ ≥ 0, c(θ) ≤ 1} with c convex and increasing. Compared by ``==``."""

    @property
    def norm(self) -> float:
        """s if this is the ball {θ ≥ 0, ‖θ‖_s ≤ 1}; else NaN."""

    @property
    def sparse(self) -> bool:
        """Whether most optimal weights are zero, and the set of fewer kernels is this set with the others at zero."""

    def start(self, n_kernels: int) -> Array:
        """The starting point, on the boundary."""

    def support(self, direction: Array) -> Array:
        """The largest θ'v over the set for v ≥ 0, along the last axis of v."""

    def scale_to_boundary(self, theta: Array) -> Array:
        """The multiple of θ on the boundary."""

    def minimize_ratio(self, w: Array) -> Array:
        """The minimiser of Σ_m w_m / θ_m for w ≥ 0."""

    @property
    def barrier(self) -> tuple[barrier_function, Array] | None:
        """A smooth c for the compiled master: a function and an array of its parameters; None: a PlainWeightSet."""

    def greatest(self, n_kernels: int) -> Array | None:
        """The elementwise largest weights if they lie in the set (then no barrier is needed), else None."""


@runtime_checkable
class PlainWeightSet(WeightSet, Protocol):
    """A weight set without a barrier, such as one with corners: masters look for its extreme points."""

    def farthest(self, direction: Array) -> Array:
        """A θ of the set with the largest θ'v, for v ≥ 0 of shape (n_kernels,)."""


@runtime_checkable
class Scalarization(Protocol):
    """Combines T task objectives into one number, increasing in each of them.

    Every solver but Tseng's minimises any of them, whatever its value and gradient are computed from.
    """

    @property
    def p(self) -> float:
        """The exponent if this is a weighted power mean; else NaN."""

    @property
    def convex(self) -> bool:
        """Whether it is convex; a convex one is bounded by its tangents, others are minimised by re-weighting."""

    @property
    def homogeneous(self) -> bool:
        """Whether S(c g) = c S(g) for c > 0, so that its gradient times g is S(g)."""

    def log_value(self, objectives: Array) -> Array:
        """log S(g) along the last axis of g of shape (..., n_tasks)."""

    def value(self, objectives: Array) -> float:
        """S(g)."""

    def gradient(self, objectives: Array) -> Array:
        """∂S/∂g_t ≥ 0; any subgradient where a convex S has a kink."""

    def task_weights(self, objectives: Array) -> Array:
        """The gradient scaled to sum to one."""


@runtime_checkable
class Solver(Protocol):
    """Minimises the scalarization over the weight set.

    In paths and searches, a solver that has no more than this starts cold at every point, and its gap is evaluated
    again from its sweep.
    """

    tol: float

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        """Solve the problem to a relative gap of ``tol``, starting from the solution ``init`` if given."""


@runtime_checkable
class PathSolver(Solver, Protocol):
    """A solver that carries its state along a path: each point starts from the last."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def lowest_p(self) -> float:
        """The smallest exponent that it handles."""

    @property
    def highest_p(self) -> float:
        """The largest exponent that it handles."""

    def also_solved(
        self, problem: MultiTaskProblem, solution: Solution, mean: PowerMean, ps: Sequence[float]
    ) -> Mapping[float, Solution]:
        """Solutions for those exponents of ``mean`` that ``solution`` of this problem serves without further work."""

    def grown(self, solution: Solution, problem: MultiTaskProblem, factor: float) -> Solution:
        """A start for ``problem``, which differs from the problem of ``solution`` by a factor ≥ 1 of C only."""

    def rescaled(self, solution: Solution, problem: MultiTaskProblem, ratio: Array) -> Solution:
        """A start for ``problem``, which differs only in kernels that are ``ratio`` (n_kernels,) times as large."""

    def for_scores(self) -> PathSolver:
        """The solver to use if only the scores of its points matter, not that they form a smooth path."""


# what a part may declare, the value that declares it, and the protocol that it then has to satisfy
_DECLARED: dict[type, list[tuple[str, object, type]]] = {
    Machine: [
        ("promises.grows", True, GrowingMachine),
        ("promises.chooses", True, ChoosingMachine),
        ("promises.extends", True, ExtendingMachine),
        ("promises.hinge", True, HingeMachine),
    ],
    Gram: [("streams", True, LargeGram), ("can_choose", True, ChoosableGram)],
    WeightSet: [("barrier", None, PlainWeightSet)],
}
check_part = partial(check_members, _DECLARED)
"""Raise an error that names the members which a part lacks: ``check_part(part, protocol)``."""
