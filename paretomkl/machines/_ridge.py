"""Kernel ridge regression over shared Gram blocks: one linear system for all tasks on the same samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .._tools.compiled import njit
from .._tools.devices import chosen_device
from .._tools.running import SMALL_SYSTEM, blas_threads, run_chunks
from .._tools.typing import AnyArray, Array, IntArray
from ..gram._blocks import CombinedGram
from ..kernels._rounding import UNIT, errors_of_duals, exact_sum, ranges_of_tasks
from ..protocols import Promises
from ..sweep import Decisions, Sweep
from ._base import KernelTasks, MachineKind

VERY_LARGE = 6000  # samples above which the jobs pay as threads of one system
WORTH_A_DEVICE = 1e10  # multiplications from which a device is faster
REFINEMENTS = 3  # refinement steps if the gap is too large; more would not help against rounding


class RidgeStart(NamedTuple):
    """The result of a ridge sweep: flat duals and the intercepts of the tasks."""

    dual: Array
    intercepts: Array


class RidgeTasks(KernelTasks):
    """T kernel ridge regressions whose Gram matrices are combinations Σ_m θ_m K_m.

        J_t(θ) = scale_t · min over f, b of  ½ ‖f‖² + ½ Σ_i C_i (y_i − f(x_i) − b)²
               = scale_t · max over {α'1 = 0} of  α'y − ½ Σ_i α_i² / C_i − ½ α'K_θα

    The optimum solves (K_θ + diag(1/C)) α + b 1 = y, 1'α = 0. All tasks with the same samples and costs share one
    Cholesky factor, so many outputs cost little more than one. A task with constant targets has J_t = 0 under every
    kernel: it is idle.

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Targets of the samples of all tasks, concatenated by task.
    C : array of shape (n_entries,)
        Cost of a squared error, for each sample of each task; samples of cost zero are ignored.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds; None is 1.
    """

    # not homogeneous: the linear part α'y − ½ Σ α²/C depends on C, and grows with it
    promises = Promises(nonnegative=True, shrinks=True, scales=True, shifts=True, grows=True, extends=True)
    balanced: ClassVar[bool] = True

    def sweep(self, theta: Array, warm: RidgeStart | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ. The systems are solved directly, so ``warm`` is not used."""
        dual, missing = np.zeros((2, len(self.targets)))
        intercepts = np.zeros(self.n_tasks)
        systems = [(tasks,) for tasks in self._same_systems]
        with self.gram.combined(theta) as K, blas_threads(self._blas_threads(len(systems))):

            def work(tasks: IntArray) -> None:
                self._solve(K, tasks, rtol, dual, missing, intercepts)

            run_chunks(work, systems, self.gram.n_jobs)
        errors, lost = errors_of_duals(self.gram, theta, dual, self.balanced)
        linear, size, gap = sums = np.zeros((3, self.n_tasks))
        ptr, of_samples = self.gram.layout.ptr, (self.targets, self.C, dual, missing, lost)

        def add(first: int, last: int) -> None:
            own = slice(first, last)
            add_terms(
                ptr[first : last + 1], *of_samples, intercepts[own], errors.relative[own], sums[:, own], errors.gap[own]
            )

        run_chunks(add, ranges_of_tasks(self.n_tasks, len(dual), self.gram.n_jobs), self.gram.n_jobs)
        forms = self.gram.quadratic_forms(dual)
        sweep = self.swept(theta, linear, size, gap, forms, errors, RidgeStart(dual, intercepts))
        return self.idle(sweep, self._constant)

    @cached_property
    def _constant(self) -> AnyArray:
        return self.fitted_by_constants()

    def _blas_threads(self, n_systems: int) -> int | None:
        """One thread for small systems and for each of several; all for a large one. More would wait for each other."""
        if self.gram.n_jobs == 1:
            return 1 if np.diff(self.gram.layout.ptr).max() <= SMALL_SYSTEM else None
        return self.gram.n_jobs if n_systems == 1 and len(self.targets) > VERY_LARGE else 1

    def decisions(self, sweep: Sweep) -> Decisions:
        """f_t(x) = Σ_i α_ti k_θ(x_i, x) + b_t."""
        start: RidgeStart = sweep.warm
        return Decisions(self.by_task(start.dual), start.intercepts)

    def start_from(self, dual: Array, intercepts: Array) -> RidgeStart:
        """A warm start from feasible duals."""
        return RidgeStart(dual, intercepts)

    @cached_property
    def _same_systems(self) -> list[IntArray]:
        """Groups of tasks with the same samples and the same costs."""
        ptr, idx, start, _ = self.gram.layout
        alike: dict[tuple, list[int]] = {}
        for t in range(self.n_tasks):
            mine = slice(ptr[t], ptr[t + 1])
            alike.setdefault((start[t], idx[mine].tobytes(), self.C[mine].tobytes()), []).append(t)
        return [np.array(tasks) for tasks in alike.values()]

    def _solve(
        self, K: CombinedGram, tasks: IntArray, rtol: float, dual: Array, missing: Array, intercepts: Array
    ) -> None:
        """Solve tasks that share their system, and fill in their parts of the results."""
        ptr = self.gram.layout.ptr
        C = self.C[ptr[tasks[0]] : ptr[tasks[0] + 1]]
        counts, whole = np.flatnonzero(C > 0), slice(ptr[tasks[0]], ptr[tasks[-1] + 1])
        if len(counts) == len(C) and (np.diff(tasks) == 1).all():  # then the numbers of these tasks lie together
            shape = len(tasks), len(C)
            targets, dual, missing = (values[whole].reshape(shape) for values in (self.targets, dual, missing))
            places: Any = slice(None)
        else:
            targets, places = self.targets, ptr[tasks][:, None] + counts
        C = C[counts]
        y = targets[places].T
        alpha, left, b = self._system(K, int(tasks[0]), counts, y.shape[1])(y, C, rtol)
        dual[places], missing[places], intercepts[tasks] = alpha.T, left.T, b

    def _system(self, K: CombinedGram, t: int, counts: IntArray, n_outputs: int) -> Callable[..., tuple[Array, ...]]:
        """:func:`solved` for the matrix of these samples of a task, on a device if that is faster."""
        matrix = K.on_device(t, counts)
        if matrix is None:
            matrix = K.of_task(t, counts, counts)
            device = chosen_device(pays=True) if matrix.size * n_outputs > WORTH_A_DEVICE else None
            if device is None:
                return partial(solved, matrix)
            from ..kernels._device import on_device  # imports PyTorch

            matrix = on_device(matrix, device)
        from ._ridge_on_device import solved_there

        return partial(solved_there, matrix)


def solved(K: Array, y: Array, C: Array, rtol: float) -> tuple[Array, Array, Array]:
    """α and b with (K + diag(1/C)) α + b 1 = y and 1'α = 0 for each column of y, and what is left of y."""
    solve = _solver(K, C)
    alpha, b = np.zeros_like(y), np.zeros(y.shape[1])
    # with (K + 1/C) x = y and (K + 1/C) u = 1, the solution is α = x − b u, where b makes Σα = 0
    ones = solve(np.ones(len(C)))
    for _ in range(1 + REFINEMENTS):
        step = solve(y - K @ alpha - alpha / C[:, None] - b)
        offset = step.sum(axis=0) / ones.sum()
        alpha, b = alpha + step - ones[:, None] * offset, b + offset
        alpha -= alpha.mean(axis=0)  # Σα = 0 to the last digit, so that the dual is feasible
        values = K @ alpha
        left = y - values - b - alpha / C[:, None]
        value = (alpha * (y - 0.5 * values - 0.5 * alpha / C[:, None])).sum(axis=0)
        if (0.5 * C @ left**2 <= rtol * value).all():
            break
    return alpha, left, b


def _solver(K: Array, C: Array) -> Callable[[Array], Array]:
    """A function that solves (K + diag(1/C)) x = r, approximately if rounding has made the matrix indefinite."""
    system = K.copy()
    system[np.diag_indices_from(system)] += 1 / C
    jitter = 1e-14 * np.trace(system) / len(system)
    while True:
        try:
            factor = cho_factor(system, lower=True, check_finite=False)
        except LinAlgError:
            system[np.diag_indices_from(system)] += jitter
            jitter *= 10
        else:
            return lambda right: cho_solve(factor, right, check_finite=False)


@njit()
def add_terms(
    ptr: IntArray,
    y: Array,
    C: Array,
    dual: Array,
    missing: Array,
    lost: Array,
    intercepts: Array,
    relative: Array,
    sums: Array,
    of_gap: Array,
) -> None:
    """Add up the linear parts Σ α y − ½ α² / C, the sizes of their terms, and the gaps, (3, n_tasks).

    Gaps contain what rounding adds, ``of_gap``. The gap is ½ Σ C (r − α/C)² with r = y − Kα − b, less b Σα if that is
    not zero. ``missing`` is r − α/C, and Kα is off by at most ``lost``.
    """
    linear, size, gap = sums
    for t in range(len(linear)):
        found, b = 0.0, abs(intercepts[t])
        for i in range(ptr[t], ptr[t + 1]):
            if C[i] > 0.0:
                share = dual[i] / C[i]
                linear[t] += dual[i] * y[i] - 0.5 * dual[i] * share
                size[t] += abs(dual[i] * y[i]) + 0.5 * dual[i] * share
                off = abs(missing[i]) + lost[i] + 4.0 * UNIT * (abs(y[i]) + abs(share) + b)
                gap[t] += 0.5 * C[i] * off * off
                found += 0.5 * C[i] * missing[i] * missing[i]
        gap[t] += b * abs(exact_sum(dual, ptr[t], ptr[t + 1])) + relative[t] * gap[t]
        of_gap[t] = gap[t] - found


RIDGE = MachineKind("ridge", RidgeTasks, "numbers", "squared", decisions="numbers", promises=RidgeTasks.promises)
