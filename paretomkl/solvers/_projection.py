"""Compiled projection onto the dual feasible set of the min-max problem (Tseng's step).

For a point (b, l), :func:`project` finds

    argmin  Σ_t (‖β_t − b_t‖² + (λ_t − l_t)²) / w_t
    s.t.    0 ≤ β_i ≤ λ_t C_i,   β_t'y_t = 0,   λ ≥ 0,   Σ_t ω_t (λ_t / ω_t)^q ≤ 1

with task weights ω > 0 that sum to one and scales w > 0 of the distance. The last constraint is the set over which
λ'z has the weighted power mean M_p(z) = (Σ_t ω_t z_t^p)^(1/p), q = p/(p−1), as its maximum: q = ∞ means λ ≤ ω, and
q = 1 means Σ λ ≤ 1.

The problem separates into three nested scalar equations, each monotone:

1.  for given λ_t, one multiplier ν_t of the equality constraint: β_i = clip(b_i − ν_t y_i, 0, λ_t C_i) with
    β_t'y_t = 0, piecewise linear in ν_t;
2.  for given κ, one λ_t per task:
    2 (λ_t − l_t) − 2 Σ_i C_i (b_i − ν_t y_i − λ_t C_i)_+ + κ w_t (λ_t / ω_t)^(q−1) = 0,
    piecewise linear in λ_t but for its last term;
3.  one multiplier κ of the norm (q times that of the constraint as written).

All three are solved by Newton steps kept within a bracket. Active sets rarely change between neighbouring evaluations
and Newton is exact within a linear piece, so that the whole costs some tens of passes over the samples.
"""

from __future__ import annotations

import math

import numpy as np

from .._compiled import njit
from .._typing import Array, IntArray

EPS = 2.220446049250313e-16
MAX_ITER = 300  # of each bracketed iteration: more than bisection alone needs
NEGLIGIBLE = 1e-20  # a λ_t below this part of ω_t counts as zero


@njit()
def multiplier_range(b: Array, y: Array, C: Array) -> tuple[float, float]:
    """Bracket of ν: at its left end β_i = 0 for all y_i = −1, at its right end for all y_i = +1."""
    left, right = math.inf, -math.inf
    for i in range(b.shape[0]):
        if C[i] > 0.0:
            if y[i] > 0.0:
                right = max(right, b[i])
            else:
                left = min(left, -b[i])
    return left, right


@njit()
def solve_multiplier(
    b: Array, y: Array, C: Array, lam: float, nu: float, left: float, right: float
) -> tuple[float, float, float, float]:
    """Solve Σ_i y_i clip(b_i − ν y_i, 0, λ C_i) = 0 for ν in [left, right], starting from ``nu``.

    Returns
    -------
    nu : float
    pull : float
        2 Σ_i C_i (b_i − ν y_i − λ C_i)_+, which is −d/dλ of the squared distance.
    slope : float
        −d pull / dλ.
    drift : float
        dν / dλ.
    """
    if not left < right:  # β = 0 on all of [right, left]; an end is infinite where a class is missing
        nu = min(max(nu, right), left)
    elif not left <= nu <= right:
        nu = 0.5 * (left + right)
    pull = slope = drift = 0.0
    for _ in range(MAX_ITER):
        residual = total = pull = upper_y = upper_2 = 0.0
        n_free = 0
        for i in range(b.shape[0]):
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
        pull *= 2.0
        slope = 2.0 * upper_2
        if n_free > 0:
            drift = upper_y / n_free
            slope += 2.0 * upper_y * drift
        else:
            drift = 0.0
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
def pull_at_zero(b: Array, y: Array, C: Array, left: float, right: float) -> float:
    """Limit of the pull as λ → 0: 2 min over ν in [left, right] of Σ_i C_i (b_i − ν y_i)_+, by bisection."""
    pull = 0.0
    if left < right:
        nu = left
        while True:
            pull = slope = 0.0
            for i in range(b.shape[0]):
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
def solve_task(
    b: Array,
    y: Array,
    C: Array,
    anchor: float,
    weight: float,
    q: float,
    kappa: float,
    lam: float,
    nu: float,
    left: float,
    right: float,
    low: float,
    high: float,
    pull_zero: float,
) -> tuple[float, float, float, float, float, float]:
    """Solve equation 2 for one task on low ≤ λ ≤ high, starting from (lam, nu).

    ``anchor`` is l_t, ``weight`` ω_t, and ``kappa`` includes w_t. ``low`` = 0 and ``high`` may exclude the root and are
    tried where Newton steps beyond them; a positive ``low`` comes from a larger κ and is known not to. ``left`` and
    ``right`` bracket ν. ``pull_zero`` is the limit of the pull at λ = 0, nan while it is not known.

    Returns
    -------
    lam, nu : float
    force : float
        The left-hand side of equation 2: negative if λ is held by ``high``.
    slope : float
        Its derivative in λ.
    drift : float
        dν / dλ.
    pull_zero : float
    """
    low_known = high_known = low > 0.0
    force = drift = 0.0
    slope = 2.0
    lam = min(max(lam, low), high)
    if lam <= 0.0:
        lam = 0.5 * high
    for _ in range(MAX_ITER):
        nu, pull, slope, drift = solve_multiplier(b, y, C, lam, nu, left, right)
        slope += 2.0
        norm_force = 0.0
        if kappa > 0.0:
            norm_force = kappa * (lam / weight) ** (q - 1.0)
            slope += (q - 1.0) * norm_force / lam
        force = 2.0 * (lam - anchor) - pull + norm_force
        if abs(force) <= EPS * (2.0 * lam + 2.0 * abs(anchor) + pull + norm_force):
            break
        if force > 0.0:
            high, high_known = lam, True
        elif lam < high:
            low, low_known = lam, True
        else:  # held by the upper end
            break
        if high - low <= 2.0 * EPS * high or high <= NEGLIGIBLE * weight:
            break
        step = lam - force / slope
        if step >= high and not high_known:
            lam = high
            continue
        if step <= low and not low_known:
            if math.isnan(pull_zero):
                pull_zero = pull_at_zero(b, y, C, left, right)
            limit = kappa if q == 1.0 else 0.0  # of κ (λ / ω)^(q−1)
            if -2.0 * anchor - pull_zero + limit >= 0.0:
                lam = 0.0
                break
            low_known = True
        if not low < step < high:
            # In log λ the force is convex between kinks for q < 2 too, so that Newton from the right stays there.
            step = lam * math.exp(max(-force / (lam * slope), -50.0)) if force > 0.0 else high
            if not low < step < high:
                step = 0.5 * (low + high)
        nu += drift * (step - lam)
        lam = step
    return lam, nu, force, slope, drift, pull_zero


@njit()
def write_dual(b: Array, y: Array, C: Array, lam: float, nu: float, beta: Array) -> None:
    """β = clip(b − ν y, 0, λ C), less what rounding left of β'y, within the box."""
    residual = 0.0
    for i in range(b.shape[0]):
        beta[i] = min(max(b[i] - nu * y[i], 0.0), lam * C[i])
        residual += y[i] * beta[i]
    for i in range(b.shape[0]):
        if residual == 0.0:
            break
        moved = min(max(beta[i] - y[i] * residual, 0.0), lam * C[i])
        residual += y[i] * (moved - beta[i])
        beta[i] = moved


@njit()
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
    """Project (b, l) onto the feasible set of the dual variables of all tasks.

    Parameters
    ----------
    b : array of shape (n_samples,)
        Point to project, the samples of task t at ``ptr[t]:ptr[t + 1]``.
    l : array of shape (n_tasks,)
    ptr : array of shape (n_tasks + 1,)
    y : array of shape (n_samples,)
        Labels -1.0 and 1.0.
    C : array of shape (n_samples,)
        Upper bounds, not negative.
    omega : array of shape (n_tasks,)
        Positive, summing to one.
    w : array of shape (n_tasks,)
        Positive; equal entries make the projection the Euclidean one.
    q : float
        Exponent of the norm, from 1 to ``inf``.
    beta, lam : arrays of shape (n_samples,) and (n_tasks,)
        Filled with the projection.
    nu : array of shape (n_tasks,)
        Multipliers of the equality constraints: a guess on entry (any finite numbers will do), the solution on return.

    Returns
    -------
    kappa : float
        Multiplier of the norm, in the form κ w (λ / ω)^(q−1) in which it enters equation 2. Zero for q = ∞, where
        every task has a bound of its own.
    """
    n_tasks = l.shape[0]
    left = np.empty(n_tasks)
    right = np.empty(n_tasks)
    low = np.zeros(n_tasks)
    high = np.empty(n_tasks)
    slope = np.empty(n_tasks)
    drift = np.empty(n_tasks)
    pull_zero = np.full(n_tasks, math.nan)
    for t in range(n_tasks):
        task = slice(ptr[t], ptr[t + 1])
        left[t], right[t] = multiplier_range(b[task], y[task], C[task])
        lam[t] = l[t]
        high[t] = omega[t] ** (1.0 - 1.0 / q)  # from ω x^q ≤ 1 for one task alone; it keeps all powers in range

    tol = 4.0 * EPS * min(q, 1e6) * n_tasks
    power = linearising_power(q)
    kappa = kappa_low = norm = 0.0
    kappa_high = math.inf
    for iteration in range(MAX_ITER):
        norm = decline = kappa_cap = 0.0
        for t in range(n_tasks):
            if high[t] > 0.0:
                task = slice(ptr[t], ptr[t + 1])
                lam[t], nu[t], force, slope[t], drift[t], pull_zero[t] = solve_task(
                    b[task], y[task], C[task], l[t], omega[t], q, kappa * w[t], lam[t], nu[t], left[t], right[t],
                    low[t], high[t], pull_zero[t],
                )  # fmt: skip
                if lam[t] > 0.0 and q < math.inf:
                    # with x = λ / ω:  dλ/dκ = −w x^(q−1) / slope
                    x = lam[t] / omega[t]
                    norm += omega[t] * x**q
                    decline += q * w[t] * x ** (2.0 * q - 2.0) / slope[t]
                    if iteration == 0 and lam[t] == high[t]:
                        # the task alone fills the norm: κ is at least what frees it from its bound
                        kappa_cap = max(kappa_cap, -force / (w[t] * x ** (q - 1.0)))

        if norm <= 1.0 + tol and (kappa == 0.0 or norm >= 1.0 - tol):
            kappa = max(kappa, kappa_cap)
            break
        if kappa_cap > 0.0:
            step = kappa_low = kappa_cap
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
                nu[t] += drift[t] * (guess - lam[t])
                lam[t] = guess
        kappa = step

    excess = max(norm, 1.0) ** (1.0 / q)  # where l is large, rounding leaves the norm that much above one
    for t in range(n_tasks):
        lam[t] /= excess
        task = slice(ptr[t], ptr[t + 1])
        write_dual(b[task], y[task], C[task], lam[t], nu[t], beta[task])
    return kappa


@njit()
def linearising_power(q: float) -> float:
    """Power r for which norm^r is nearly linear in κ: 1 at q = 1, the −1/p of a task with constant pull above."""
    return 1.0 if q < 1.3 else -(q - 1.0) / q
