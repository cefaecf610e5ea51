"""Projection onto the dual feasible set of the min-max problem (Tseng's step).

For a point (b, l), :func:`project` finds

    argmin  Σ_t (‖β_t − b_t‖² + (λ_t − l_t)²) / w_t
    s.t.    0 ≤ β_i ≤ λ_t C_i,   β_t'y_t = 0,   λ ≥ 0,   Σ_t ω_t (λ_t / ω_t)^q ≤ 1

with task weights ω > 0 that sum to one and scales w > 0 of the distance. The maximum of λ'z over the last constraint is
the weighted power mean M_p(z) = (Σ_t ω_t z_t^p)^(1/p), q = p/(p−1): q = ∞ means λ ≤ ω, and q = 1 means Σ λ ≤ 1.

The problem separates into three nested scalar equations, each monotone:

1.  for given λ_t, one multiplier ν_t of the equality constraint: β_i = clip(b_i − ν_t y_i, 0, λ_t C_i) with
    β_t'y_t = 0, piecewise linear in ν_t;
2.  for given κ, one λ_t per task:
    2 (λ_t − l_t) − 2 Σ_i C_i (b_i − ν_t y_i − λ_t C_i)_+ + κ w_t (λ_t / ω_t)^(q−1) = 0,
    piecewise linear in λ_t except for its last term;
3.  one multiplier κ of the norm (q times the multiplier of the constraint as written).

Newton steps within a bracket solve all three. Active sets rarely change between successive evaluations, and Newton is
exact within a linear piece, so the total cost is a few tens of passes over the samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._tools.compiled import njit
from .._tools.typing import Array, IntArray

EPS = 2.220446049250313e-16
MAX_ITER = 300  # limit of each bracketed iteration, more than bisection alone needs
NEGLIGIBLE = 1e-20  # a λ_t below this fraction of ω_t counts as zero


class PointAndSet(NamedTuple):
    """The point and the set, as given to :func:`project`."""

    b: Array
    l: Array
    ptr: IntArray
    y: Array
    C: Array
    omega: Array
    w: Array
    q: float


class TaskState(NamedTuple):
    """The state of each task, (n_tasks,): brackets of ν and λ, the current solution, and its derivatives."""

    left: Array  # where β_i = 0 for all y_i = −1
    right: Array  # where β_i = 0 for all y_i = +1
    low: Array
    high: Array
    lam: Array
    nu: Array
    pull_zero: Array  # limit of the pull at λ = 0, nan until it is computed
    force: Array  # left-hand side of equation 2, negative if λ is at ``high``
    slope: Array  # its derivative in λ
    drift: Array  # dν / dλ


@njit()
def solve_multiplier(
    b: Array, y: Array, C: Array, first: int, last: int, lam: float, nu: float, left: float, right: float
) -> tuple[float, float, float, float]:
    """Solve Σ_i y_i clip(b_i − ν y_i, 0, λ C_i) = 0 for ν in [left, right], starting from ``nu``.

    Returns ν; pull = 2 Σ_i C_i (b_i − ν y_i − λ C_i)_+, which is −d/dλ of the squared distance; −d pull / dλ; dν / dλ.
    """
    if not left < right:  # β = 0 on all of [right, left]; an end is infinite if a class is missing
        nu = min(max(nu, right), left)
    elif not left <= nu <= right:
        nu = 0.5 * (left + right)
    pull = slope = drift = 0.0
    for _ in range(MAX_ITER):
        residual = total = pull = upper_y = upper_2 = 0.0
        n_free = 0
        for i in range(first, last):
            top = lam * C[i]
            value = b[i] - nu * y[i]
            if value >= top:
                pull += C[i] * (value - top)
                upper_y += C[i] * y[i]
                upper_2 += C[i] * C[i]
                residual += top * y[i]
                total += top
            elif value > 0.0:
                n_free += 1
                residual += value * y[i]
                total += value
        drift = upper_y / n_free if n_free > 0 else 0.0
        pull, slope = 2.0 * pull, 2.0 * (upper_2 + upper_y * drift)
        if abs(residual) <= EPS * (total + n_free * abs(nu)):
            break
        if residual > 0.0:
            left = nu
        else:
            right = nu
        if right - left <= 2.0 * EPS * max(abs(left), abs(right)):
            break
        step = nu + residual / n_free if n_free > 0 else right
        nu = step if left < step < right else 0.5 * (left + right)
    return nu, pull, slope, drift


@njit()
def pull_at_zero(b: Array, y: Array, C: Array, first: int, last: int, left: float, right: float) -> float:
    """Limit of the pull as λ → 0: 2 min over ν in [left, right] of Σ_i C_i (b_i − ν y_i)_+, by bisection."""
    pull = 0.0
    nu = left
    while left < right:
        pull = slope = 0.0
        for i in range(first, last):
            value = b[i] - nu * y[i]
            if value > 0.0:
                pull += C[i] * value
                slope -= C[i] * y[i]
        if slope == 0.0 or right - left <= 2.0 * EPS * max(abs(left), abs(right)):
            break
        if slope < 0.0:
            left = nu
        else:
            right = nu
        nu = 0.5 * (left + right)
        if not left < nu < right:
            break
    return 2.0 * pull


@njit()
def solve_tasks(problem: PointAndSet, kappa: float, tasks: TaskState) -> None:
    """Solve equation 2 for every task on low ≤ λ ≤ high, starting from (lam, nu).

    ``low`` = 0 and ``high`` may exclude the root, so they are tried if Newton steps beyond them. A positive ``low``
    comes from a larger κ and cannot exclude it.
    """
    b, l, ptr, y, C, omega, w, q = problem
    left, right, low, high, lam, nu, pull_zero, force, slope, drift = tasks
    for t in range(len(l)):
        if high[t] <= 0.0:
            continue
        first, last, bottom, top, price = ptr[t], ptr[t + 1], low[t], high[t], kappa * w[t]
        bottom_known = top_known = bottom > 0.0
        x = min(max(lam[t], bottom), top)
        if x <= 0.0:
            x = 0.5 * top
        for _ in range(MAX_ITER):
            nu[t], pull, bend, drift[t] = solve_multiplier(b, y, C, first, last, x, nu[t], left[t], right[t])
            norm_force = 0.0
            if price > 0.0:
                norm_force = price * (x / omega[t]) ** (q - 1.0)
                bend += (q - 1.0) * norm_force / x
            force[t] = 2.0 * (x - l[t]) - pull + norm_force
            slope[t] = 2.0 + bend
            if abs(force[t]) <= EPS * (2.0 * x + 2.0 * abs(l[t]) + pull + norm_force):
                break
            if force[t] > 0.0:
                top, top_known = x, True
            elif x < top:
                bottom, bottom_known = x, True
            else:  # λ is at its upper end
                break
            if top - bottom <= 2.0 * EPS * top or top <= NEGLIGIBLE * omega[t]:
                break
            step = x - force[t] / slope[t]
            if step >= top and not top_known:
                x = top
                continue
            if step <= bottom and not bottom_known:
                if math.isnan(pull_zero[t]):
                    pull_zero[t] = pull_at_zero(b, y, C, first, last, left[t], right[t])
                limit = price if q == 1.0 else 0.0  # of κ (λ / ω)^(q−1)
                if -2.0 * l[t] - pull_zero[t] + limit >= 0.0:
                    x = 0.0
                    break
                bottom_known = True
            if not bottom < step < top:
                # In log λ the force is convex between kinks for q < 2 too, so Newton from the right stays on the right.
                step = x * math.exp(max(-force[t] / (x * slope[t]), -50.0)) if force[t] > 0.0 else top
                if not bottom < step < top:
                    step = 0.5 * (bottom + top)
            nu[t] += drift[t] * (step - x)
            x = step
        lam[t] = x


@njit()
def write_dual(problem: PointAndSet, lam: Array, nu: Array, beta: Array) -> None:
    """β = clip(b − ν y, 0, λ C), corrected within the box for the rounding error in β'y = 0."""
    b, ptr, y, C = problem.b, problem.ptr, problem.y, problem.C
    for t in range(len(lam)):
        residual = 0.0
        for i in range(ptr[t], ptr[t + 1]):
            beta[i] = min(max(b[i] - nu[t] * y[i], 0.0), lam[t] * C[i])
            residual += y[i] * beta[i]
        for i in range(ptr[t], ptr[t + 1]):
            if residual == 0.0:
                break
            moved = min(max(beta[i] - y[i] * residual, 0.0), lam[t] * C[i])
            residual += y[i] * (moved - beta[i])
            beta[i] = moved


@njit()
def solve_norm(problem: PointAndSet, tasks: TaskState) -> tuple[float, float]:
    """Solve for κ, for q < ∞; returns κ and the resulting norm."""
    omega, w, q = problem.omega, problem.w, problem.q
    low, high, lam, nu, slope = tasks.low, tasks.high, tasks.lam, tasks.nu, tasks.slope
    n_tasks = len(lam)
    tol = 4.0 * EPS * min(q, 1e6) * n_tasks
    # the power r for which norm^r is nearly linear in κ: 1 near q = 1, else −1/p, as for a task with constant pull
    power = 1.0 if q < 1.3 else -(q - 1.0) / q
    kappa = kappa_low = norm = 0.0
    kappa_high = math.inf
    for iteration in range(MAX_ITER):
        solve_tasks(problem, kappa, tasks)
        norm = decline = cap = 0.0
        for t in range(n_tasks):
            if lam[t] > 0.0:  # with x = λ / ω:  dλ/dκ = −w x^(q−1) / slope
                lean = w[t] * (lam[t] / omega[t]) ** (q - 1.0)
                norm += lam[t] * lean / w[t]
                decline += q * lean * lean / (w[t] * slope[t])
                if iteration == 0 and lam[t] == high[t]:
                    cap = max(cap, -tasks.force[t] / lean)  # this task alone fills the norm; κ must be at least this
        if norm <= 1.0 + tol and (kappa == 0.0 or norm >= 1.0 - tol):
            return max(kappa, cap), norm
        if cap > 0.0:
            step = kappa_low = cap
        else:
            bound = high if norm > 1.0 else low
            for t in range(n_tasks):
                bound[t] = lam[t]
            if norm > 1.0:
                kappa_low = kappa
            else:
                kappa_high = kappa
            if kappa_high < math.inf and kappa_high - kappa_low <= 2.0 * EPS * kappa_high:
                break
            step = kappa + (norm - norm ** (1.0 - power)) / (power * decline) if decline > 0.0 else kappa_high
            if not kappa_low < step < kappa_high:
                step = 2.0 * kappa_low + 1.0 if kappa_high == math.inf else 0.5 * (kappa_low + kappa_high)
        for t in range(n_tasks):
            if lam[t] > 0.0:
                guess = lam[t] - (step - kappa) * w[t] * (lam[t] / omega[t]) ** (q - 1.0) / slope[t]
                guess = min(max(guess, low[t]), high[t])
                nu[t] += tasks.drift[t] * (guess - lam[t])
                lam[t] = guess
        kappa = step
    return kappa, norm


def project(
    b: Array,
    l: Array,
    ptr: IntArray,
    y: Array,
    C: Array,
    omega: Array,
    w: Array,
    q: float,
    beta: Array,
    lam: Array,
    nu: Array,
) -> float:
    """Project (b, l) onto the feasible set of the dual variables of all tasks; the result goes to beta and lam.

    The samples of task t are at ``ptr[t]:ptr[t + 1]`` of b, the labels y = ±1 and the bounds C ≥ 0; omega (n_tasks,) is
    positive and sums to one; equal w (n_tasks,) give the Euclidean projection; 1 ≤ q ≤ ∞. On input, nu (n_tasks,) holds
    a guess of the multipliers of the equality constraints (any finite numbers), on output the solution. Returns κ.
    """
    problem = PointAndSet(b, l, ptr, y, C, omega, w, q)
    left = np.minimum.reduceat(np.where((C > 0) & (y < 0), -b, np.inf), ptr[:-1])
    right = np.maximum.reduceat(np.where((C > 0) & (y > 0), b, -np.inf), ptr[:-1])
    low, pull_zero, force, slope, drift = np.zeros((5, len(l)))
    high = omega ** (1 - 1 / q)  # from ω x^q ≤ 1 for each task; keeps all powers in range
    lam[:], pull_zero[:] = l, np.nan
    tasks = TaskState(left, right, low, high, lam, nu, pull_zero, force, slope, drift)
    kappa = 0.0
    if np.isinf(q):  # the constraint separates into λ ≤ ω
        solve_tasks(problem, kappa, tasks)
    else:
        kappa, norm = solve_norm(problem, tasks)
        lam /= max(norm, 1.0) ** (1 / q)  # if l is large, rounding leaves the norm slightly above one
    write_dual(problem, lam, nu, beta)
    return kappa
