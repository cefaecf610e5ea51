"""Bounds on the errors that rounding leaves in kernel values, in quadratic forms and in decisions.

The computed value of kernel m at samples i and j is off by at most A_mi B_mj + B_mi A_mj, where A and B are positive
and depend on one sample only. So the error of v'K_m v is at most 2 (Σ_i |v_i| A_mi) (Σ_i |v_i| B_mi), and that of the
decision Σ_j v_j k_m(x_i, x_j) at most A_mi Σ_j |v_j| B_mj + B_mi Σ_j |v_j| A_mj: a few sums per sweep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._tools.compiled import inner_njit, njit
from .._tools.running import run_chunks
from .._tools.typing import AnyArray, Array, IntArray
from ._evaluation import EXPONENTIAL, MAX_DOUBLINGS, POLYNOMIAL, TILE, VALUE

if TYPE_CHECKING:
    from ..protocols import Gram
    from ._fitted import Evaluator, Side

UNIT, SINGLE_UNIT = 2.0**-53, 2.0**-24  # relative error of one operation
TERMS = 16  # operations on a result beside the sum over samples and that over kernels
POSITIVE = 1e-100  # smallest lower bound, relative to the upper one, if rounding leaves none: objectives are positive
_MANY_ENTRIES = 200_000  # samples of all tasks from which threads pay
_INTERPOLATION = 300  # error of a value that is interpolated from others, in units of UNIT


class Rounding(NamedTuple):
    """Bounds A_mi B_mj + B_mi A_mj on the rounding errors of the values of each kernel m at samples i and j.

    A = constant + slope · rows[first] and B = rows[second], times the factor of the kernel. In a sum with relative
    error γ, a value k is off by another γ times its size. That is at most 1 for ``bounded`` kernels (1, else 0), and at
    most (a_i b_j + b_i a_j) / 2 with a = rows[first] and b = rows[second] for the others, so that γ/2 joins the
    constant or the slope.

    Parameters
    ----------
    rows : array of shape (n_rows, n_entries)
        Numbers per sample of each task; those of row 0 are one.
    places : array of int of shape (2, n_kernels)
        The rows called first and second.
    sizes : array of shape (3, n_kernels)
        Constant, slope and bounded.
    factor : array of shape (n_kernels,)
        Factors of the kernels.

    Examples
    --------
    The usual bounds for a store of your own, from the values k(x, x) of two samples under one kernel:

    >>> import numpy as np
    >>> from paretomkl.gram import Rounding
    >>> Rounding.of_values(np.array([[1.0, 4.0]])).rows
    array([[1., 1.],
           [1., 2.]])
    """

    rows: Array
    places: IntArray
    sizes: Array
    factor: Array

    @classmethod
    def of_values(cls, diagonals: Array, units: float = 4.0) -> Rounding:
        """The bounds of values that are off by at most ``units`` units in the last place of √(k(x, x) k(z, z)).

        ``diagonals`` (n_kernels, n_entries) are the k_m(x, x) of the samples of all tasks.
        """
        made = RoundingBuilder(diagonals.shape[1])
        for own in diagonals:
            root = made.row(np.sqrt(np.maximum(own, 0.0)))
            made.product(root, root, units)
        return made.made()

    def at(self, samples: IntArray) -> Rounding:
        """The same for the given samples."""
        return self._replace(rows=np.ascontiguousarray(self.rows[:, samples]))

    def beside(self, other: Rounding) -> Rounding:
        """The bounds of more kernels on the same samples."""
        rows = np.concatenate([self.rows, other.rows])
        places = np.concatenate([self.places, other.places + len(self.rows)], axis=1)
        sizes = np.concatenate([self.sizes, other.sizes], axis=1)
        return Rounding(rows, places, sizes, np.concatenate([self.factor, other.factor]))


class RoundingBuilder:
    """Collects the bounds of the kernels of a bank one by one; ``n`` is the number of samples."""

    def __init__(self, n: int):
        self._rows = [np.ones(n)]
        self._kernels: list[tuple[int, int, float, float, float]] = []

    def row(self, values: Array) -> int:
        self._rows.append(values)
        return len(self._rows) - 1

    def exponential(self, depth: int, exponent: float, row: int = 0, slope: float = 0.0) -> None:
        """exp(−γd), squared ``depth`` times: the relative error of γd is ``exponent``, plus slope · rows[row] of both.

        The error of γd enters with x e^−x ≤ 0.37. That of the first exponential doubles with each squaring.
        """
        constant = 0.5 * (3 * 2.0**depth + 8 + 0.37 * exponent) * UNIT
        self._kernels.append((row, 0, constant, slope * UNIT, 1.0))

    def product(self, first: int, second: int, error: float) -> None:
        """Values with 2 |k_ij| ≤ a_i b_j + b_i a_j, which are off by that much times ``error``."""
        self._kernels.append((first, second, 0.0, error * UNIT, 0.0))

    def made(self, interpolated: bool = False) -> Rounding:
        first, second, constant, slope, bounded = (np.array(column) for column in zip(*self._kernels, strict=True))
        constant = constant + interpolated * _INTERPOLATION * UNIT * bounded
        sizes = np.array([constant, slope, bounded])
        return Rounding(np.array(self._rows), np.array([first, second]), sizes, np.ones(len(constant)))


def rounding_of(evaluator: Evaluator, X: AnyArray, side: Side) -> Rounding:
    """Bounds on the rounding errors of kernels among samples X, of which ``side`` was made, before their factors.

    With D columns, inner products and squared norms are off by D units of their size, so squared distances by
    2D + 16 units of the squared norms of both centred samples, centring included.
    """
    made, depth, bases = RoundingBuilder(len(side)), _squarings(evaluator), evaluator.bases
    kind, base, rate, offset, degree, scaled, norm = evaluator.codes
    squares = [-1] * len(bases.kernels)  # the row of the norms that distances are computed from
    values = evaluator.diagonals(X) if np.any(kind == VALUE) else None
    for m in range(evaluator.n_kernels):
        b, D = int(base[m]), len(bases.columns[base[m]])
        if kind[m] == EXPONENTIAL:
            metric = bases.kernels[b].metric
            if squares[b] < 0:
                one = metric == "cityblock"
                squares[b] = made.row(np.asarray(abs(side.features[b]).sum(axis=1)) if one else side.centred_squares[b])
            lost = {"sqeuclidean": 2 * D + 16, "cityblock": 2}.get(metric, 0)
            made.exponential(int(depth[m]), D + 8, squares[b], rate[m] * lost)
        elif kind[m] == POLYNOMIAL:
            # with κ = γ ‖x‖² + c, values are at most √(κ_i κ_j)^p, and their errors p √(κ_i κ_j)^(p−1) (κ_i + κ_j)
            norms = np.maximum(side.squares[norm[m]], side.centred_squares[b])
            size, p = rate[m] * norms + offset[m], degree[m]
            scale = side.scale[m] if scaled[m] else 1.0
            second = 0 if p == 1 and not scaled[m] else made.row(size ** ((p - 1) / 2) * scale)
            made.product(made.row(size ** ((p + 1) / 2) * scale), second, p * (3 * D + 24))
        else:
            assert values is not None
            root = made.row(np.sqrt(np.maximum(values[m], 0.0)))
            made.product(root, root, 4)
    return made.made(interpolated=evaluator.plan.mixing is not None)


def _squarings(evaluator: Evaluator) -> IntArray:
    """How many times in a row each exponential is squared; an upper bound if kernels are interpolated."""
    depth, plan = np.zeros(evaluator.n_kernels, dtype=np.int64), evaluator.plan
    if plan.mixing is not None:
        return np.full_like(depth, MAX_DOUBLINGS)
    program = plan.groups[0].program
    for m in program.order:
        if program.parent[m] >= 0:
            depth[m] = depth[program.parent[m]] + program.doublings[m]
    return depth


class Errors(NamedTuple):
    """Bounds on what rounding adds to the results of duals v.

    forms (n_tasks, n_kernels): to v'K_m v; relative (n_tasks,): to sums over the samples of a task, relative to the sum
    of the sizes of their terms; both cover a change of v that makes Σv = 0 exact. gap (n_tasks,): to the duality gap.
    """

    forms: Array
    relative: Array
    gap: Array


def errors_of_duals(gram: Gram, theta: Array, v: Array, balanced: bool) -> tuple[Errors, Array]:
    """The errors of duals v, and those of their decisions at kernel weights θ, (n_entries,); not those of the gap.

    The duals of ``balanced`` tasks sum to zero but for rounding.
    """
    n_tasks, ptr, weights = len(gram.layout.size), gram.layout.ptr, theta if theta.ndim > 1 else theta[None]
    forms, values = np.empty((n_tasks, gram.n_kernels)), np.empty(len(v))
    relative, noise, gap = np.zeros((3, n_tasks))
    rounding = gram.rounding

    def bound(first: int, last: int) -> None:
        own = slice(first, last)
        of_tasks = weights[own] if len(weights) > 1 else weights
        given = noise[own], forms[own], relative[own], values
        bound_errors(rounding, of_tasks, ptr[first : last + 1], v, balanced, *given)

    run_chunks(bound, ranges_of_tasks(n_tasks, len(v), gram.n_jobs), gram.n_jobs)
    return Errors(forms, relative, gap), values


def ranges_of_tasks(n_tasks: int, n_entries: int, n_jobs: int) -> list[tuple[int, int]]:
    """Tasks for threads, if there are so many samples of all tasks that threads pay."""
    step = -(-n_tasks // n_jobs) if n_entries > _MANY_ENTRIES else n_tasks
    return [(t, min(t + step, n_tasks)) for t in range(0, n_tasks, step)]


@njit()
def bound_errors(
    rounding: Rounding,
    weights: Array,
    ptr: IntArray,
    v: Array,
    balanced: bool,
    noise: Array,
    forms: Array,
    relative: Array,
    values: Array,
) -> None:
    """Fill the arrays of :func:`errors_of_duals`; ``weights`` has one row for all tasks, or one per task.

    Decisions of fields, which were updated many times, are off by ``noise`` (n_tasks,) more units of Σ_i |v_i|.
    """
    rows, places, sizes, factor = rounding
    first, second = places
    constant, slope, bounded = sizes
    n_rows = len(rows)
    n_kernels = len(factor)
    sums, share = np.empty(n_rows), np.empty(n_rows)
    n_support = np.count_nonzero(v)
    for t in range(len(ptr) - 1):
        begin, end = ptr[t], ptr[t + 1]
        for r in range(n_rows):
            total = 0.0
            for i in range(begin, end):
                total += abs(v[i]) * rows[r, i]
            sums[r] = total
            share[r] = 0.0
        n = end - begin
        terms, pieces = n, n * (1.0 + n / TILE)  # forms have the sums of n rows, which come in pieces
        if noise[t] > 0.0:  # most samples of large tasks are no support vectors, and adding zeros is exact
            terms = np.count_nonzero(v[begin:end])
            pieces = 2.0 * terms + min(n_support**2 / TILE, terms * (1.0 + n_support / TILE))
        gamma = (terms + n_kernels + TERMS + noise[t]) * UNIT
        if balanced and sums[0] > 0.0:
            # Shrinking the variables of the sign with the larger sum makes Σv = 0: they change by this share
            gamma += 4.2 * abs(exact_sum(v, begin, end)) / sums[0]
        relative[t] = gamma + (n - terms) * UNIT
        own = t if len(weights) > 1 else 0
        more = pieces * UNIT
        for m in range(n_kernels):
            flat = constant[m] + 0.5 * gamma * bounded[m]
            steep = slope[m] + 0.5 * gamma * (1.0 - bounded[m])
            a, b = flat * sums[0] + steep * sums[first[m]], sums[second[m]]
            size = sums[0] * bounded[m] + sums[first[m]] * (1.0 - bounded[m])
            forms[t, m] = factor[m] * (2.0 * a + more * size) * b
            w = weights[own, m] * factor[m]
            share[0] += w * flat * b
            share[first[m]] += w * steep * b
            share[second[m]] += w * a
        for i in range(begin, end):
            values[i] = 0.0
        for r in range(n_rows):
            if share[r] > 0.0:
                for i in range(begin, end):
                    values[i] += share[r] * rows[r, i]


@njit()
def sweep_bounds(
    scale: Array,
    weights: Array,
    size: Array,
    gap: Array,
    of_gap: Array,
    relative: Array,
    linear: Array,
    forms: Array,
    lost: Array,
) -> tuple[Array, Array]:
    """Lower and upper bounds on J_t from a cut a_t − ½ θ'G_t and its duality gap, with errors as in :class:`Errors`.

    All are multiplied by ``scale``. ``linear`` and ``forms`` become those of a cut that is certainly valid. ``lost``
    are the errors of the forms; they become the part of each kernel in what rounding adds to upper − lower, per unit of
    its weight, given the part ``of_gap`` in the duality gap. ``weights`` has one row for all tasks, or one per task.
    """
    lower, upper = np.empty_like(linear), np.empty_like(linear)
    for t in range(len(linear)):
        own = t if len(weights) > 1 else 0
        fall, doubt = 0.0, 0.0
        for m in range(forms.shape[1]):
            lost[t, m] *= scale[t]
            forms[t, m] = scale[t] * max(forms[t, m], 0.0) + lost[t, m]  # rounding may make a zero form negative
            fall += weights[own, m] * forms[t, m]
            doubt += weights[own, m] * lost[t, m]
        off = relative[t] * size[t]
        linear[t] = scale[t] * (linear[t] - off)
        lower[t] = linear[t] - 0.5 * fall
        upper[t] = lower[t] + scale[t] * (gap[t] + 2.0 * off) + doubt
        if lower[t] <= 0.0:  # the dual times c = a / θ'G < 1 gives more
            lower[t] = 0.5 * linear[t] ** 2 / fall if linear[t] > 0.0 else POSITIVE * upper[t]
        more = scale[t] * (of_gap[t] + 2.0 * off) / doubt if doubt > 0.0 else 0.0
        for m in range(forms.shape[1]):
            lost[t, m] *= 1.0 + more
    return lower, upper


@inner_njit()
def exact_sum(x: Array, begin: int, end: int) -> float:
    """Σ x[begin:end] with the rounding error of each addition added at the end."""
    total = 0.0
    lost = 0.0
    for k in range(begin, end):
        new = total + x[k]
        seen = new - total
        lost += (total - (new - seen)) + (x[k] - seen)
        total = new
    return total + lost
