"""Kernel logistic regression over shared Gram blocks: one Newton iteration per task."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.special import expit

from .._tools.compiled import njit
from .._tools.running import SMALL_SYSTEM, blas_threads, run_chunks
from .._tools.typing import Array, IntArray
from ..kernels._rounding import UNIT, Errors, errors_of_duals, exact_sum
from ..protocols import Gram
from ..sweep import Decisions, Sweep
from ._base import BOX, KernelTasks, MachineKind

MOST_STEPS = 100  # Newton steps of a task
SHORTEST = 1e-6  # share of a Newton step below which rounding prevents any descent
ARMIJO = 1e-4  # share of the predicted descent that a step must reach

PROMISES = replace(BOX, shifts=True, extends=True)
CHOOSING = replace(PROMISES, chooses=True)


class LogisticStart(NamedTuple):
    """Warm start from a logistic sweep: flat signed duals y∘α and the intercepts of the tasks."""

    dual: Array
    intercepts: Array


class LogisticTasks(KernelTasks):
    """T kernel logistic regressions whose Gram matrices are combinations Σ_m θ_m K_m.

        J_t(θ) = scale_t · min over f, b of  ½ ‖f‖² + Σ_i C_i log(1 + exp(−y_i (f(x_i) + b)))
               = scale_t · max over {0 ≤ α ≤ C, α'y = 0} of  Σ_i h_i(α_i) − ½ (y∘α)'K_θ(y∘α)

    with the entropy h_i(α) = −α log(α / C_i) − (C_i − α) log(1 − α / C_i). f(x) + b is the log-odds of y = 1. At the
    optimum α_i = C_i / (1 + exp(y_i (f(x_i) + b))), so every sample supports its task: a sweep factorises one n × n
    matrix for each Newton step of a task of n samples, and suits tasks of up to some thousand samples.

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Labels ±1 of the samples of all tasks, concatenated by task.
    C : array of shape (n_entries,)
        Cost of a log-loss of one, for each sample of each task; samples of cost zero are ignored.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds; None is 1.
    """

    # h grows with C, and h(cα) for cC is c h(α): both promises about a larger C hold although C also shapes h
    promises = PROMISES
    balanced: ClassVar[bool] = True

    def __init__(self, gram: Gram, targets: Array, C: Array, scale: Array | None = None):
        super().__init__(gram, targets, C, scale)
        self.promises = CHOOSING if gram.can_choose else PROMISES

    def sweep(self, theta: Array, warm: LogisticStart | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep."""
        dual = np.zeros(len(self.targets)) if warm is None else warm.dual.copy()
        values, intercepts = np.zeros(len(self.targets)), np.zeros(self.n_tasks)
        ptr, jobs = self.gram.layout.ptr, self.gram.n_jobs
        small = np.diff(ptr).max() <= SMALL_SYSTEM
        with self.gram.combined(theta) as K, blas_threads(1 if small or jobs > 1 else None):

            def work(t: int) -> None:
                own = np.arange(ptr[t], ptr[t + 1])
                counts = np.flatnonzero(self.C[own] > 0)
                own = own[counts]
                given = K.of_task(t, counts, counts), self.targets[own], self.C[own], dual[own]
                dual[own], values[own], intercepts[t] = solve(*given, rtol)

            run_chunks(work, [(t,) for t in range(self.n_tasks)], jobs)
        dual[self.C == 0] = 0.0
        errors, lost = errors_of_duals(self.gram, theta, dual, self.balanced)
        linear, gap = np.zeros((2, self.n_tasks))
        add_terms(ptr, self.targets, self.C, dual, intercepts, values, lost, linear, gap, errors)
        forms = self.gram.quadratic_forms(dual)
        return self.swept(theta, linear, linear.copy(), gap, forms, errors, LogisticStart(dual, intercepts))

    def decisions(self, sweep: Sweep) -> Decisions:
        """f_t(x) = Σ_i y_i α_ti k_θ(x_i, x) + b_t."""
        start: LogisticStart = sweep.warm
        return Decisions(self.by_task(start.dual), start.intercepts)

    def grown_start(self, warm: LogisticStart, factor: float) -> LogisticStart:
        """A warm start for these tasks from one for costs that are smaller by ``factor``."""
        return warm._replace(dual=np.clip(factor * warm.dual, -self.C, self.C))  # rounding may exceed the bounds

    def start_from(self, dual: Array, intercepts: Array) -> LogisticStart:
        """A warm start from feasible duals."""
        return LogisticStart(dual, intercepts)


def solve(K: Array, y: Array, C: Array, v: Array, rtol: float) -> tuple[Array, Array, float]:
    """Signed duals of one task to a relative gap of rtol, from v of any size; with their values Kv and the intercept.

    Newton's method in the primal, whose optimum has v = y C σ(−y (Kv + b)). Any f and the b that balances it give
    feasible duals by this formula, and their gap is Σ C KL(σ(−y (f + b)) ‖ σ(−y (f' + b'))), where f' are the values
    of these duals.
    """
    f = K @ v
    b = balance(f, y, C)
    best = (np.inf, v, f, b)
    for _ in range(MOST_STEPS):
        odds = expit(-y * (f + b))
        fed = y * C * odds  # feasible, since b balances it
        its = K @ fed
        at = balance(its, y, C)
        gap, value = gap_and_value(y, C, fed, its, at)
        if gap < best[0]:
            best = (gap, fed, its, at)
        if gap <= rtol * value:
            break
        new, shift = newton_point(K, C * odds * (1.0 - odds), fed, f + b)
        moved = K @ new
        step = descend(y, C, v, f, b, new, moved, shift)
        if step < SHORTEST:
            break
        v, f = v + step * (new - v), f + step * (moved - f)
        b = balance(f, y, C)
    return best[1:]


def newton_point(K: Array, W: Array, fed: Array, z: Array) -> tuple[Array, float]:
    """v and b with v = fed − W (Kv + b − z) and Σv = 0: the optimum for a loss with gradient −fed and curvature W at z.

    With S = √W, (I + WK)⁻¹ = I − S (I + SKS)⁻¹ SK, whose matrix has no eigenvalue below one.
    """
    S = np.sqrt(W)
    right = fed + W * z
    A, sides = S[:, None] * K * S, np.column_stack([S * (K @ right), S])
    failed, ridge = 1, 1.0
    while failed:  # an approximate step if rounding has made the matrix indefinite
        A[np.diag_indices_from(A)] += ridge
        _, found, failed = dposv(A, sides, lower=1)
        ridge *= 10.0
    free, slope = right - S * found[:, 0], S * found[:, 1]
    b = free.sum() / slope.sum()
    v = free - b * slope
    return v, float(b)


@njit()
def descend(y: Array, C: Array, v: Array, f: Array, b: float, new: Array, moved: Array, shift: float) -> float:
    """The share of the way from (v, b) to (new, shift) that lowers the primal objective; zero if none does."""
    norm, line, bend = 0.0, 0.0, 0.0  # v'Kv, v'Kd and d'Kd with d = new − v
    loss, fall = 0.0, 0.0
    for i in range(len(y)):
        change, margin = moved[i] - f[i], y[i] * (f[i] + b)
        norm += v[i] * f[i]
        line += v[i] * change
        bend += (new[i] - v[i]) * change
        loss += C[i] * _log_one_plus_exp(-margin)
        fall += C[i] / (1.0 + np.exp(margin)) * y[i] * (change + shift - b)
    start = 0.5 * norm + loss
    enough = ARMIJO * (line - fall)
    step = 1.0
    while step >= SHORTEST:
        value = 0.5 * norm + step * line + 0.5 * step * step * bend
        for i in range(len(y)):
            value += C[i] * _log_one_plus_exp(-y[i] * (f[i] + b + step * (moved[i] - f[i] + shift - b)))
        if value <= start + step * enough + 4.0 * len(y) * UNIT * start:
            return step
        step *= 0.5
    return 0.0


@njit()
def _log_one_plus_exp(x: float) -> float:
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@njit()
def balance(f: Array, y: Array, C: Array) -> float:
    """b with Σ y C σ(−y (f + b)) = 0, by Newton's method in a bracket; the sum falls with b."""
    plus, minus = 0.0, 0.0
    for i in range(len(y)):
        if y[i] > 0.0:
            plus += C[i]
        else:
            minus += C[i]
    # whatever f is, the terms of y = 1 outweigh the others at the lower end, and the others them at the upper end
    low, high = -np.max(f) + np.log(plus / minus), -np.min(f) + np.log(plus / minus)
    b = 0.5 * (low + high)
    for _ in range(200):
        total, slope, size = 0.0, 0.0, 0.0
        for i in range(len(y)):
            share = 1.0 / (1.0 + np.exp(y[i] * (f[i] + b)))
            total += y[i] * C[i] * share
            size += C[i] * share
            slope += C[i] * share * (1.0 - share)
        if abs(total) <= 4.0 * UNIT * size:
            break
        if total > 0.0:
            low = b
        else:
            high = b
        b = b + total / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < b < high:
            b = 0.5 * (low + high)
            if not low < b < high:  # neighbouring numbers
                break
    return b


@njit()
def gap_and_value(y: Array, C: Array, dual: Array, f: Array, b: float) -> tuple[float, float]:
    """The duality gap of feasible duals with values f, and their dual objective."""
    gap, value = 0.0, 0.0
    for i in range(len(y)):
        alpha, margin = abs(dual[i]), y[i] * (f[i] + b)
        entropy = _entropy(alpha, C[i])
        gap += max(C[i] * _log_one_plus_exp(-margin) - entropy + alpha * margin, 0.0)
        value += entropy - 0.5 * dual[i] * f[i]
    return gap, value


@njit()
def _entropy(alpha: float, C: float) -> float:
    """−α log(α/C) − (C − α) log(1 − α/C), zero at both ends."""
    q = min(alpha / C, 1.0)
    return C * (-(q * np.log(q) if q > 0.0 else 0.0) - ((1.0 - q) * np.log1p(-q) if q < 1.0 else 0.0))


@njit()
def add_terms(
    ptr: IntArray,
    y: Array,
    C: Array,
    dual: Array,
    intercepts: Array,
    f: Array,
    lost: Array,
    linear: Array,
    gap: Array,
    errors: Errors,
) -> None:
    """Add up the linear parts Σ h(α) and the gaps, with what rounding adds.

    The gap is Σ C log(1 + exp(−m)) − h(α) + α m with margins m = y (f + b), less b Σ yα if that is not zero. Its
    derivative with respect to m is α − C σ(−m), and its curvature at most C/4. f is off by at most ``lost``.
    """
    for t in range(len(linear)):
        found, b = 0.0, intercepts[t]
        for i in range(ptr[t], ptr[t + 1]):
            if C[i] > 0.0:
                alpha, margin = abs(dual[i]), y[i] * (f[i] + b)
                entropy, loss = _entropy(alpha, C[i]), C[i] * _log_one_plus_exp(-margin)
                own = max(loss - entropy + alpha * margin, 0.0)
                off = lost[i] + 4.0 * UNIT * (abs(f[i]) + abs(b))
                linear[t] += entropy
                gap[t] += own + abs(alpha - C[i] / (1.0 + np.exp(margin))) * off + 0.125 * C[i] * off * off
                gap[t] += 8.0 * UNIT * (loss + entropy + abs(alpha * margin))
                found += own
        gap[t] += abs(b) * abs(exact_sum(dual, ptr[t], ptr[t + 1])) + errors.relative[t] * gap[t]
        errors.gap[t] = gap[t] - found


LOGISTIC = MachineKind("logistic", LogisticTasks, "labels", "logistic", decisions="log-odds", promises=PROMISES)
