"""The master problem of the cut pool: a compiled primal-dual interior point method.

    minimise    M_p(z)     over z (n_groups,), θ (n_kernels,)
    subject to  z_t ≥ a_k − h_k'θ   for the cuts k of group t,     θ ≥ 0,     Σ_m θ_m^s ≤ 1

with M_p(z) = (Σ_t ω_t z_t^p)^(1/p), 1 ≤ p < ∞. The power mean is the smallest v for which some x ≥ 0 has

    z_t ≤ g(v, x_t) = v^(1−1/p) x_t^(1/p)    and    Σ_t ω_t x_t ≤ v,

a description that stays gentle as p grows (g tends to v, the min-max problem) where Newton's method on z^p does not. So
the unknowns are θ, v and x; the slacks kept positive, with their multipliers, are

    w_k = g(v, x_t) − a_k + h_k'θ  (μ_k),    y = v − Σ_t ω_t x_t  (λ),    r = 1 − Σ_m θ_m^s  (ρ),    θ  (ν).

The slacks are unknowns of their own that meet these equations only in the end: with curved constraints a method that
stays inside creeps along the boundary. x is eliminated by hand; what is left is a system in (θ, v), a diagonal plus a
sum of squares.
"""

from __future__ import annotations

import numpy as np

from .._compiled import njit
from .._kernel_rows import dot
from .._typing import Array, IntArray

CAUTION = 0.3  # of the miss of the curved equations: how small the slacks may get before it


@njit()
def _advance(x: Array, length: float, step: Array) -> None:
    """x ← x + length · step, over the entries of x. (Loops, here and below, compile in a fraction of the time that
    array expressions take.)"""
    for k in range(len(x)):
        x[k] += length * step[k]


@njit()
def _cholesky(A: Array) -> None:
    """Lower factor in place; a pivot lost to rounding is replaced by a huge one, which freezes its variable."""
    n = len(A)
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - dot(A[i], A[j], j)) / A[j, j]
        pivot = A[i, i] - dot(A[i], A[i], i)
        A[i, i] = np.sqrt(pivot) if pivot > 1e-15 * A[i, i] else 1e64


@njit()
def _cholesky_solve(L: Array, x: Array) -> None:
    n = len(L)
    for i in range(n):
        x[i] = (x[i] - dot(L[i], x, i)) / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@njit()
def _dual_norm(v: Array, s: float) -> float:
    """‖v‖_{s*} of v ≥ 0."""
    top = v.max()
    if s == 1.0 or not top > 0.0:
        return max(top, 0.0)
    total = 0.0
    for x in v:
        if x > 0.0:
            total += (x / top) ** (s / (s - 1.0))
    return top * total ** ((s - 1.0) / s)


@njit()
def _mean(z: Array, omega: Array, p: float) -> float:
    """φ(z): the weighted power mean, p ≥ 1."""
    if p == 1.0:
        return dot(omega, z, len(z))
    top = z.max()
    total = 0.0
    for t in range(len(z)):
        if z[t] > 0.0:
            total += omega[t] * (z[t] / top) ** p
    return top * total ** (1.0 / p)


@njit()
def dual_bound(a: Array, H: Array, ptr: IntArray, omega: Array, p: float, s: float, mu: Array) -> float:
    """Σ μ_k a_k − ‖Σ μ_k h_k‖_{s*}, a lower bound of the optimum, with μ ≥ 0 first made dual feasible (in place).

    p = 1 wants Σ_{k of t} μ_k = ω_t; p > 1 wants η_t = Σ_{k of t} μ_k with Σ_t ω_t (η_t/ω_t)^q ≤ 1, q = p/(p−1).
    """
    n_groups = len(omega)
    norm = 0.0
    top = 0.0
    q = 0.0 if p == 1.0 else p / (p - 1.0)
    ratio = np.empty(n_groups)
    for t in range(n_groups):
        eta = 0.0
        for k in range(ptr[t], ptr[t + 1]):
            eta += mu[k]
        if p == 1.0:
            for k in range(ptr[t], ptr[t + 1]):
                mu[k] = mu[k] * (omega[t] / eta) if eta > 0.0 else omega[t] / (ptr[t + 1] - ptr[t])
        elif omega[t] > 0.0:
            ratio[t] = eta / omega[t]
            top = max(top, ratio[t])
        else:
            ratio[t] = 0.0
            for k in range(ptr[t], ptr[t + 1]):
                mu[k] = 0.0
    if p > 1.0:
        for t in range(n_groups):
            norm += omega[t] * (ratio[t] / top) ** q
        norm = top * norm ** (1.0 / q)
        for k in range(len(mu)):
            mu[k] /= norm
    value = 0.0
    slope = np.zeros(H.shape[1])
    for k in range(len(a)):
        if mu[k] != 0.0:
            value += mu[k] * a[k]
            for m in range(len(slope)):
                slope[m] += mu[k] * H[k, m]
    return value - _dual_norm(slope, s)


@njit()
def _factor_shared(W: Array, diagonal: Array, woodbury: bool) -> Array:
    """Factor of S = diag(diagonal, 0) + W'W, or of B = I + W_θ diag⁻¹ W_θ' where that is the smaller matrix."""
    M = len(diagonal)
    if woodbury:
        scaled = np.empty((len(W), M))
        for i in range(len(W)):
            for m in range(M):
                scaled[i, m] = W[i, m] / np.sqrt(diagonal[m])
        L = np.dot(scaled, scaled.T)
        for i in range(len(L)):
            L[i, i] += 1.0
    else:
        L = np.dot(W.T, W)
        for m in range(M):
            L[m, m] += diagonal[m]
    _cholesky(L)
    return L


@njit()
def _solve_shared(L: Array, W: Array, diagonal: Array, woodbury: bool, x: Array) -> None:
    """x ← S⁻¹ x for the unknowns (θ, v), with the factor of _factor_shared."""
    if not woodbury:
        _cholesky_solve(L, x)
        return
    # With l = B⁻¹ w_v:  dv = (x_v − l'W_θ x_θ/d) / w_v'l  and  dθ = x_θ/d − W_θ'(B⁻¹ W_θ x_θ/d + l dv)/d
    M = len(diagonal)
    n_rows = len(W)
    image = np.empty(n_rows)
    l = np.empty(n_rows)
    for m in range(M):
        x[m] /= diagonal[m]
    for i in range(n_rows):
        image[i] = dot(W[i], x, M)
        l[i] = W[i, M]
    _cholesky_solve(L, l)
    curvature = 0.0
    d_v = x[M]
    for i in range(n_rows):
        curvature += W[i, M] * l[i]
        d_v -= l[i] * image[i]
    d_v /= curvature
    _cholesky_solve(L, image)
    for i in range(n_rows):
        weight = image[i] + l[i] * d_v
        for m in range(M):
            x[m] -= weight * W[i, m] / diagonal[m]
    x[M] = d_v


@njit()
def solve_master(
    a: Array,
    H: Array,
    ptr: IntArray,
    omega: Array,
    p: float,
    s: float,
    start: Array,
    rtol: float,
    max_iter: int,
) -> tuple[Array, Array, float, float, int]:
    """Solve the master from weights near ``start`` until its own relative gap is at most rtol.

    Cuts of group t are rows ptr[t]..ptr[t+1]-1 of a (n_cuts,) and H (n_cuts, n_kernels); each group has a cut with
    a > 0 and h = 0, so that z > 0, and is scaled so that z is about one. Returns θ on the sphere ‖θ‖_s = 1,
    multipliers μ (n_cuts,) that are dual feasible, the value M_p at θ, the bound that μ gives, and the number of Newton
    steps. The bound holds however inexact the solution is.
    """
    n_cuts, M = H.shape
    n_groups = len(omega)
    n_barriers = n_cuts + M + 2
    share = 1.0 / p

    # ------------------------------------------------------------------------- a start well inside
    theta = np.empty(M)
    total = 0.0  # Σ θ^s
    for m in range(M):
        theta[m] = 0.9 * start[m] + 0.1 * M ** (-1.0 / s)
        total += theta[m] ** s
    shrink = (0.95 / total) ** (1.0 / s)
    for m in range(M):
        theta[m] *= shrink
    total = 0.95
    r = 0.05
    h_theta = np.empty(n_cuts)
    group = np.empty(n_cuts, np.int64)
    tight = np.empty(n_groups)
    for t in range(n_groups):
        tight[t] = -np.inf
        for k in range(ptr[t], ptr[t + 1]):
            group[k] = t
            h_theta[k] = dot(H[k], theta, M)
            tight[t] = max(tight[t], a[k] - h_theta[k])
        tight[t] += 0.1
    v = (1.0 + 0.1 * share) * _mean(tight, omega, p)  # then y is about a tenth of v for every p
    x = np.empty(n_groups)
    g = np.empty(n_groups)
    y: float = v
    for t in range(n_groups):
        x[t] = v * max((tight[t] / v) ** p, 1e-8)
        g[t] = v * (x[t] / v) ** share
        y -= omega[t] * x[t]
    w = np.empty(n_cuts)
    mu = np.empty(n_cuts)
    tau = 0.0
    for t in range(n_groups):
        inverse = 0.0
        for k in range(ptr[t], ptr[t + 1]):
            w[k] = g[t] - a[k] + h_theta[k]
            inverse += 1.0 / w[k]
        for k in range(ptr[t], ptr[t + 1]):
            mu[k] = omega[t] / (w[k] * inverse)
            tau += mu[k] * w[k] / n_cuts
    nu = np.empty(M)
    for m in range(M):
        nu[m] = tau / theta[m]
    rho = tau / r
    lam = share  # its value at the optimum

    best_theta = start.copy()
    best_mu = mu.copy()
    upper = np.inf
    lower = -np.inf

    # the shared unknowns are (θ, v): column M belongs to v
    g_v = np.empty(n_groups)
    g_x = np.empty(n_groups)
    Q = np.empty(n_groups)  # Σ_k q_k
    bend = np.empty(n_groups)  # curvature of g in x, times the weight of the group
    A = np.empty(n_groups)  # second derivative in x_t
    centre = np.empty((n_groups, M + 1))  # Σ_k q_k ∇w_k / Q, without its x part
    n_rows = n_cuts + n_groups + 2
    W = np.empty((n_rows, M + 1))
    diagonal = np.empty(M)
    normal = np.empty(M)
    q = np.empty(n_cuts)
    cross_w = np.empty(n_cuts)
    cross_theta = np.empty(M)
    right_x = np.empty(n_groups)
    d_x = np.empty(n_groups)
    step = np.empty(M + 1)
    d_w = np.empty(n_cuts)
    d_mu = np.empty(n_cuts)
    d_nu = np.empty(M)
    miss_w = np.zeros(n_cuts)
    miss_r = 0.0
    woodbury = n_rows < M

    n_steps = 0
    while n_steps < max_iter:
        # ------------------------------------------------------------ rigorous bounds, and when to stop
        stretch = total ** (-1.0 / s)
        for t in range(n_groups):
            tight[t] = -np.inf
            for k in range(ptr[t], ptr[t + 1]):
                tight[t] = max(tight[t], a[k] - stretch * h_theta[k])
        value = _mean(tight, omega, p)
        if value < upper:
            upper = value
            for m in range(M):
                best_theta[m] = stretch * theta[m]
        feasible = mu.copy()
        bound = dual_bound(a, H, ptr, omega, p, s, feasible)
        if bound > lower:
            lower = bound
            best_mu = feasible
        if upper - lower <= rtol * upper:
            break
        # ------------------------------------------------- second derivatives, as a diagonal and squares W'W
        tau = rho * r + lam * y
        for m in range(M):
            normal[m] = s * theta[m] ** (s - 1.0)
            diagonal[m] = nu[m] / theta[m]
            if s > 1.0:
                diagonal[m] += rho * normal[m] * (s - 1.0) / theta[m]
            W[n_rows - 1, m] = np.sqrt(rho / r) * normal[m]
            W[n_rows - 2, m] = 0.0
            tau += nu[m] * theta[m]
        W[n_rows - 1, M] = 0.0
        W[n_rows - 2, M] = 1.0
        spread = y / lam
        astray = rho * abs(miss_r)  # how far the curved equations are from being met, in units of τ
        for t in range(n_groups):
            g_v[t] = (1.0 - share) * g[t] / v
            g_x[t] = share * g[t] / x[t]
            Q[t] = 0.0
            eta = 0.0
            for m in range(M):
                centre[t, m] = 0.0
            for k in range(ptr[t], ptr[t + 1]):
                q[k] = mu[k] / w[k]
                Q[t] += q[k]
                eta += mu[k]
                tau += mu[k] * w[k]
                astray += mu[k] * abs(miss_w[k])
                for m in range(M):
                    centre[t, m] += q[k] * H[k, m]
            for m in range(M):
                centre[t, m] /= Q[t]
            centre[t, M] = g_v[t]
            for k in range(ptr[t], ptr[t + 1]):
                root = np.sqrt(q[k])
                for m in range(M):
                    W[k, m] = root * (H[k, m] - centre[t, m])
                W[k, M] = 0.0
            # Q (g_x e + c'd)² + bend (e − (x/v) dv)² is least at one e; there it is one square in d
            astray += abs(lam * omega[t] - eta * g_x[t]) * x[t]
            bend[t] = eta * g[t] * share * (1.0 - share) / x[t] ** 2
            A[t] = Q[t] * g_x[t] ** 2 + bend[t]
            root = np.sqrt(Q[t] * bend[t] / A[t])
            pull = omega[t] / A[t]
            spread += omega[t] * pull
            for m in range(M):
                W[n_cuts + t, m] = root * centre[t, m]
                W[n_rows - 2, m] += pull * Q[t] * g_x[t] * centre[t, m]
            W[n_cuts + t, M] = root * g[t] / v
            W[n_rows - 2, M] += pull * (Q[t] * g_x[t] * g_v[t] - bend[t] * x[t] / v)
        tau /= n_barriers
        astray /= n_barriers
        root = np.sqrt(1.0 / spread)
        for m in range(M + 1):
            W[n_rows - 2, m] *= root
        L = _factor_shared(W, diagonal, woodbury)

        # -------------------------------------------------- predictor (target 0), then corrector (Mehrotra 1992)
        for k in range(n_cuts):
            cross_w[k] = 0.0
        for m in range(M):
            cross_theta[m] = 0.0
        cross_r = 0.0
        cross_y = 0.0
        target = 0.0
        primal: float = 1.0
        dual: float = 1.0
        d_v: float = 0.0
        for corrector in range(2):
            push_r = (target - cross_r) / r - rho / r * miss_r
            push_y = (target - cross_y) / y
            for m in range(M):
                step[m] = (target - cross_theta[m]) / theta[m] - normal[m] * push_r
            step[M] = push_y - 1.0
            inner = 0.0
            for t in range(n_groups):
                pull = 0.0
                for k in range(ptr[t], ptr[t + 1]):
                    push = (target - cross_w[k]) / w[k] - q[k] * miss_w[k]
                    pull += push
                    for m in range(M):
                        step[m] += push * H[k, m]
                step[M] += pull * g_v[t]
                right_x[t] = pull * g_x[t] - omega[t] * push_y
                inner += omega[t] * right_x[t] / A[t]
            # the right side of the shared system: R − N'E⁻¹R_x with E = diag(A) + (λ/y) ωω'
            inner_total = 0.0
            for t in range(n_groups):
                e = (right_x[t] - omega[t] * inner / spread) / A[t]
                inner_total += omega[t] * e
                for m in range(M + 1):
                    step[m] -= Q[t] * g_x[t] * centre[t, m] * e
                step[M] += bend[t] * x[t] / v * e
            step[M] += lam / y * inner_total
            _solve_shared(L, W, diagonal, woodbury, step)
            d_v = float(step[M])
            inner = 0.0
            for t in range(n_groups):
                right_x[t] += (bend[t] * x[t] / v + lam / y * omega[t]) * d_v
                right_x[t] -= Q[t] * g_x[t] * dot(centre[t], step, M + 1)
                inner += omega[t] * right_x[t] / A[t]
            d_y = d_v
            for t in range(n_groups):
                d_x[t] = (right_x[t] - omega[t] * inner / spread) / A[t]
                # x_t^(1/p) flattens: for a task of little weight the tangent would send x_t out of sight
                d_x[t] = min(d_x[t], 9.0 * x[t])
                d_y -= omega[t] * d_x[t]
            d_r = miss_r - dot(normal, step, M)
            d_rho = (target - cross_r) / r - rho - rho / r * d_r
            d_lam = push_y - lam - lam / y * d_y
            primal = 1.0
            dual = 1.0
            if d_rho < 0.0:
                dual = min(dual, -rho / d_rho)
            if d_lam < 0.0:
                dual = min(dual, -lam / d_lam)
            if d_r < 0.0:
                primal = min(primal, -r / d_r)
            if d_y < 0.0:
                primal = min(primal, -y / d_y)
            if d_v < 0.0:
                primal = min(primal, -v / d_v)
            for t in range(n_groups):
                if d_x[t] < 0.0:
                    primal = min(primal, -x[t] / d_x[t])
            for k in range(n_cuts):
                t = group[k]
                d_w[k] = miss_w[k] + g_x[t] * d_x[t] + g_v[t] * d_v + dot(H[k], step, M)
                d_mu[k] = (target - cross_w[k]) / w[k] - mu[k] - q[k] * d_w[k]
                if d_w[k] < 0.0:
                    primal = min(primal, -w[k] / d_w[k])
                if d_mu[k] < 0.0:
                    dual = min(dual, -mu[k] / d_mu[k])
            for m in range(M):
                d_nu[m] = (target - cross_theta[m]) / theta[m] - nu[m] - nu[m] / theta[m] * step[m]
                if step[m] < 0.0:
                    primal = min(primal, -theta[m] / step[m])
                if d_nu[m] < 0.0:
                    dual = min(dual, -nu[m] / d_nu[m])
            if corrector == 0:
                # second-order terms of the part of this step that could be taken: in full they mislead a short one
                taken = primal * dual
                for k in range(n_cuts):
                    cross_w[k] = taken * d_mu[k] * d_w[k]
                for m in range(M):
                    cross_theta[m] = taken * d_nu[m] * step[m]
                cross_r = taken * d_rho * d_r
                cross_y = taken * d_lam * d_y
                # the shorter the way to the boundary, the more the step must turn back to the centre
                # and the slacks must not vanish before the curved equations are met
                target = max(tau * max((1.0 - min(primal, dual)) ** 3, 1e-3), CAUTION * astray)

        n_steps += 1
        # ---------------------- the step; slacks move along their tangents and Newton's method makes up the miss
        primal = 0.99 * primal if primal < 1.0 else 1.0
        dual = 0.99 * dual if dual < 1.0 else 1.0
        if max(primal, dual) < 1e-8:
            break
        _advance(theta, primal, step)
        v += primal * d_v
        _advance(x, primal, d_x)
        y += primal * d_y
        r += primal * d_r
        _advance(w, primal, d_w)
        _advance(mu, dual, d_mu)
        _advance(nu, dual, d_nu)
        rho += dual * d_rho
        lam += dual * d_lam
        total = 0.0
        for m in range(M):
            total += theta[m] ** s
        miss_r = 1.0 - total - r
        for t in range(n_groups):
            g[t] = v * (x[t] / v) ** share
            for k in range(ptr[t], ptr[t + 1]):
                h_theta[k] = dot(H[k], theta, M)
                miss_w[k] = g[t] - a[k] + h_theta[k] - w[k]
    return best_theta, best_mu, upper, lower, n_steps


@njit()
def solve_over_pool(
    linear: Array,
    slopes: Array,
    idle: IntArray,
    scale: Array,
    omega: Array,
    p: float,
    s: float,
    start: Array,
    rtol: float,
    max_iter: int,
    joint: bool,
    patience: int,
) -> tuple[Array, float, Array]:
    """The master over the cuts of a pool: θ, the lower bound, and the sum of the multipliers of each task.

    linear (n_rows, n_tasks) and slopes (n_rows, n_tasks, n_kernels) hold the cuts, idle (n_rows, n_tasks) how many
    masters each has sat out (-1: dropped). Task t is measured in units of scale[t]; a task of omega = 0 is left out.
    ``joint`` puts all cuts into one group: the master of the maximum. A cut has a part in this master if its
    multiplier is not negligible or if it is the highest of its task at θ; one that has had none in ``patience`` masters
    is dropped, except for the constant ones in row 0 and those of the last two rows. patience < 0 leaves idle alone.
    """
    n_rows, n_tasks = linear.shape
    M = slopes.shape[2]
    n_cuts = 0
    n_groups = 0
    for t in range(n_tasks):
        if omega[t] > 0.0:
            n_groups += 1
            for i in range(n_rows):
                n_cuts += idle[i, t] >= 0
    a = np.empty(n_cuts)
    H = np.empty((n_cuts, M))
    row = np.empty(n_cuts, np.int64)
    ptr = np.zeros(n_groups + 1, np.int64)
    weight = np.empty(n_groups)
    task = np.empty(n_groups, np.int64)
    k = 0
    g = 0
    for t in range(n_tasks):
        if omega[t] > 0.0:
            for i in range(n_rows):
                if idle[i, t] >= 0:
                    a[k] = linear[i, t] / scale[t]
                    for m in range(M):
                        H[k, m] = slopes[i, t, m] / scale[t]
                    row[k] = i
                    k += 1
            task[g] = t
            weight[g] = omega[t]
            g += 1
            ptr[g] = k
    if joint:
        theta, mu, _, lower, _ = solve_master(a, H, np.array([0, n_cuts]), np.ones(1), 1.0, s, start, rtol, max_iter)
    else:
        theta, mu, _, lower, _ = solve_master(a, H, ptr, weight, p, s, start, rtol, max_iter)
    shares = np.zeros(n_tasks)
    for g in range(n_groups):
        t = task[g]
        highest = ptr[g]
        top = -np.inf
        for k in range(ptr[g], ptr[g + 1]):
            shares[t] += mu[k]
            height = a[k] - dot(H[k], theta, M)
            if height > top:
                top = height
                highest = k
        if patience >= 0:
            for k in range(ptr[g], ptr[g + 1]):
                if k == highest or mu[k] > 1e-4 * shares[t]:
                    idle[row[k], t] = 0
                elif idle[row[k], t] < patience or row[k] == 0 or row[k] >= n_rows - 2:
                    idle[row[k], t] += 1
                else:
                    idle[row[k], t] = -1
    return theta, lower, shares
