"""The master problem of the cut pool: a compiled primal-dual interior point method.

    minimise    M_p(z)     over z (n_groups,), θ (n_kernels,)
    subject to  z_t ≥ a_k − h_k'θ   for the cuts k of group t,     θ ≥ 0,     c(θ) ≤ 1

with M_p(z) = (Σ_t ω_t z_t^p)^(1/p), 1 ≤ p < ∞, and the convex c of the weight set. The power mean is the smallest v for
which some x ≥ 0 satisfies

    z_t ≤ g(v, x_t) = v^(1−1/p) x_t^(1/p)    and    Σ_t ω_t x_t ≤ v.

This form stays well-behaved as p grows (g tends to v, the min-max problem), while Newton's method on z^p does not. So
the unknowns are θ, x and v. The slacks, which stay positive, and their multipliers are

    w_k = g(v, x_t) − a_k + h_k'θ  (μ_k),    y = v − Σ_t ω_t x_t  (λ),    r = 1 − c(θ)  (ρ),    θ  (ν),

in this order in one array each. The slacks w and r are independent unknowns that satisfy their equations only at the
end: with curved constraints, a method that stays inside creeps along the boundary. x is eliminated by hand, which
leaves a system in (θ, v): a diagonal plus a sum of squares.

With very many kernels and sparse weights, ``minimize_over_few`` keeps most θ_m at zero. The multipliers of a restricted
master also prove Σ_k μ_k a_k − h(Σ_k μ_k h_k) for the full one, h the support function of the full weight set: that
needs no θ, only the slopes Σ_k μ_k h_k of all kernels, one matrix-vector product. Kernels whose slopes exceed those of
the chosen ones join until what is missing is negligible.

The code avoids what compiles slowly: slices and array expressions (loops over single entries are cheap), array
allocation, and compiling a large function twice, by itself and within its only caller (hence ``inline="always"``).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from .._tools.compiled import barrier_function, call_handle, inner_njit, njit
from .._tools.typing import AnyArray, Array, IntArray
from ..protocols import PlainWeightSet, WeightSet
from ..weight_sets import CONSTRAINT, GAUGE, SUPPORT, LsBall

CAUTION = 0.3  # minimum of the target products relative to the residual of the curved equations
CENTRING = 0.1  # share of uniform weights in the start
ROOM = 0.05  # slack of the weight set at the start
MANY = 1000  # number of kernels from which a restricted master is less work
_JOINING = 200  # kernels that join at a time
_MOST_ROUNDS = 25
_MOST_POINTS = 100  # limit on points that describe a set without a barrier
_UNUSED = 1e-9  # weights below this fraction of the largest count as unused
_NEARLY = 0.98  # kernels with a slope above this fraction of the largest are likely to be needed next time
SUMS = {"contract", "reassoc", "nsz"}  # allows vector instructions to reorder a sum


class Problem(NamedTuple):
    """Cuts k = ptr[t] … ptr[t+1]−1 belong to group t; H (n_kernels, n_cuts) has h_k in its columns."""

    a: Array
    H: Array
    ptr: IntArray
    omega: Array
    p: float
    weight_set: int  # handle of the barrier function
    parameters: Array


class Iterate(NamedTuple):
    """An iterate, or a step from one to the next. x (n_groups + 1,) ends with v, slack with θ."""

    x: Array
    slack: Array
    multiplier: Array


class Local(NamedTuple):
    """The constraints at an iterate: derivatives, and the residuals of the slacks."""

    theta: Array  # a view of the end of the slacks
    h_theta: Array
    normal: Array  # ∇c
    curvature: Array  # diagonal of ∇²c
    g_v: Array
    g_x: Array
    miss: Array


class Best(NamedTuple):
    """The best weights and multipliers so far, and the bounds (upper, lower) that they prove."""

    theta: Array
    mu: Array
    bounds: Array


class System(NamedTuple):
    """Newton's equations in (θ, v), S = diag(diagonal, 0) + WW', and what is needed to recover x."""

    ratio: Array  # multiplier / slack
    A: Array  # second derivatives in x, diag(A) + (λ/y) ωω'
    N: Array  # (n_groups, n_kernels + 1): mixed second derivatives in x and (θ, v)
    diagonal: Array
    W: Array  # (n_kernels + 1, n_cuts + n_groups + 2)
    rows: Array  # the matrix whose Gram matrix is factored: W, or W' scaled by the diagonal if that has fewer rows
    L: Array
    right: Array
    right_x: Array
    image: Array
    response: Array


# ------------------------------------------------------------------------------------------ linear algebra
@inner_njit(fastmath=SUMS)
def _times(A: Array, x: Array, n: int, out: Array) -> None:
    """out ← Ax, its first n entries."""
    for i in range(n):
        total = 0.0
        for k in range(A.shape[1]):
            total += A[i, k] * x[k]
        out[i] = total


@inner_njit()
def _transpose_times(A: Array, x: Array, n: int, out: Array) -> None:
    """out ← A'x, with the first n rows of A."""
    for k in range(A.shape[1]):
        out[k] = 0.0
    for i in range(n):
        for k in range(A.shape[1]):
            out[k] += x[i] * A[i, k]


@inner_njit(fastmath=SUMS)
def _gram(A: Array, L: Array) -> None:
    """L ← AA', the lower half, in 2 × 2 tiles, which halve the loads of separate dot products."""
    last = len(L) - 1
    for i in range(0, len(L), 2):
        i1 = i + 1 if i < last else last
        for j in range(0, i + 1, 2):
            j1 = j + 1 if j < last else last
            s00 = s01 = s10 = s11 = 0.0
            for k in range(A.shape[1]):
                s00 += A[i, k] * A[j, k]
                s01 += A[i, k] * A[j1, k]
                s10 += A[i1, k] * A[j, k]
                s11 += A[i1, k] * A[j1, k]
            L[i, j], L[i, j1], L[i1, j], L[i1, j1] = s00, s01, s10, s11


@inner_njit(fastmath=SUMS)
def _cholesky(A: Array) -> None:
    """Lower factor in place; a pivot lost to rounding is replaced by a huge one, which freezes its variable."""
    for i in range(len(A)):
        for j in range(i + 1):
            rest = A[i, j]
            for k in range(j):
                rest -= A[i, k] * A[j, k]
            if j < i:
                A[i, j] = rest / A[j, j]
            else:
                A[i, i] = np.sqrt(rest) if rest > 1e-15 * A[i, i] else 1e64


@inner_njit(fastmath=SUMS)
def _cholesky_solve(L: Array, x: Array) -> None:
    for i in range(len(L)):
        rest = x[i]
        for j in range(i):
            rest -= L[i, j] * x[j]
        x[i] = rest / L[i, i]
    for i in range(len(L) - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


# ------------------------------------------------------------------------------------------ start and bounds
@inner_njit()
def _mean(z: Array, omega: Array, p: float) -> float:
    """M_p(z), p ≥ 1."""
    top = 0.0
    for t in range(len(omega)):
        top = z[t] if z[t] > top else top
    total = 0.0
    for t in range(len(omega)):
        if z[t] > 0.0:
            total += omega[t] * (z[t] / top) ** p
    return top * total ** (1.0 / p)


@inner_njit()
def _value(problem: Problem, h_theta: Array, stretch: float, lift: float, z: Array) -> float:
    """M_p of z, the highest cuts of the groups at stretch · θ, raised by ``lift``."""
    for t in range(len(problem.omega)):
        highest = -np.inf
        for k in range(problem.ptr[t], problem.ptr[t + 1]):
            height = problem.a[k] - stretch * h_theta[k]
            highest = height if height > highest else highest
        z[t] = highest + lift
    return _mean(z, problem.omega, problem.p)


@inner_njit()
def _start(problem: Problem, start: Array, uniform: Array, point: Iterate, local: Local, step: Iterate) -> None:
    """A point well inside whose products slack · multiplier are about equal."""
    omega, ptr = problem.omega, problem.ptr
    M, n_cuts, n_groups, share = len(start), len(problem.a), len(omega), 1.0 / problem.p
    theta, x, slack, multiplier = local.theta, point.x, point.slack, point.multiplier
    for m in range(M):
        theta[m] = (1.0 - CENTRING) * start[m] + CENTRING * uniform[m]
    c = call_handle(problem.weight_set, CONSTRAINT, theta, problem.parameters, local.normal, local.curvature)
    degree = 0.0  # d log c / d log ‖θ‖: along the ray, c behaves like this power
    for m in range(M):
        degree += theta[m] * local.normal[m] / c
    shrink = ((1.0 - ROOM) / c) ** (1.0 / degree)
    for m in range(M):
        theta[m] *= shrink
    _transpose_times(problem.H, theta, M, local.h_theta)
    v = (1.0 + 0.1 * share) * _value(problem, local.h_theta, 1.0, 0.1, x)  # y is about a tenth of v for every p
    x[n_groups] = v
    slack[n_cuts] = v
    slack[n_cuts + 1] = ROOM
    least = 1e-8**share
    product = 0.0
    for t in range(n_groups):
        g = x[t] / v if x[t] > least * v else least
        x[t] = v * g**problem.p
        slack[n_cuts] -= omega[t] * x[t]
        inverse = 0.0
        for k in range(ptr[t], ptr[t + 1]):
            slack[k] = v * g - problem.a[k] + local.h_theta[k]
            inverse += 1.0 / slack[k]
        for k in range(ptr[t], ptr[t + 1]):
            multiplier[k] = omega[t] / (slack[k] * inverse)
            product += omega[t] / inverse / n_cuts
    for i in range(len(slack)):
        local.miss[i] = 0.0
        step.slack[i] = step.multiplier[i] = 0.0
        if i > n_cuts:
            multiplier[i] = product / slack[i]
    multiplier[n_cuts] = share  # its value at the optimum


@inner_njit(inline="always")
def _evaluate(problem: Problem, point: Iterate, local: Local) -> None:
    """Evaluate the constraints at the point."""
    x, slack, h_theta, miss = point.x, point.slack, local.h_theta, local.miss
    n_cuts, n_groups, share = len(problem.a), len(problem.omega), 1.0 / problem.p
    v = x[n_groups]
    _transpose_times(problem.H, local.theta, len(local.theta), h_theta)
    for t in range(n_groups):
        g = v * (x[t] / v) ** share
        local.g_v[t] = (1.0 - share) * g / v
        local.g_x[t] = share * g / x[t]
        for k in range(problem.ptr[t], problem.ptr[t + 1]):
            miss[k] = g - problem.a[k] + h_theta[k] - slack[k]
    c = call_handle(problem.weight_set, CONSTRAINT, local.theta, problem.parameters, local.normal, local.curvature)
    miss[n_cuts + 1] = 1.0 - c - slack[n_cuts + 1]


@inner_njit(inline="always")
def _bound(problem: Problem, point: Iterate, local: Local, spare: Iterate, slope: Array, best: Best) -> None:
    """Rigorous bounds on the optimum, from θ scaled to the boundary and from multipliers made dual feasible.

    p = 1 needs Σ_{k of t} μ_k = ω_t; p > 1 needs η_t = Σ_{k of t} μ_k with Σ_t ω_t (η_t/ω_t)^q ≤ 1, q = p/(p−1).
    Then Σ_k μ_k a_k − max over the weight set of θ'Σ_k μ_k h_k is a lower bound.
    """
    omega, ptr, p = problem.omega, problem.ptr, problem.p
    norms, mu = spare.x, spare.multiplier
    stretch = 1.0 / call_handle(problem.weight_set, GAUGE, local.theta, problem.parameters, slope, slope)
    value = _value(problem, local.h_theta, stretch, 0.0, norms)
    if value < best.bounds[0]:
        best.bounds[0] = value
        for m in range(len(slope)):
            best.theta[m] = stretch * local.theta[m]
    for t in range(len(omega)):
        eta = 0.0
        for k in range(ptr[t], ptr[t + 1]):
            eta += point.multiplier[k]
        norms[t] = eta / omega[t]
    norm = 0.0 if p == 1.0 else _mean(norms, omega, p / (p - 1.0))
    bound = 0.0
    for t in range(len(omega)):
        scale = norms[t] if p == 1.0 else norm
        for k in range(ptr[t], ptr[t + 1]):
            mu[k] = point.multiplier[k] / scale
            bound += mu[k] * problem.a[k]
    _times(problem.H, mu, len(slope), slope)
    bound -= call_handle(problem.weight_set, SUPPORT, slope, problem.parameters, slope, slope)
    if bound > best.bounds[1]:
        best.bounds[1] = bound
        for k in range(len(problem.a)):
            best.mu[k] = mu[k]


# ------------------------------------------------------------------------------------------ Newton's equations
@inner_njit(inline="always")
def _assemble(problem: Problem, point: Iterate, local: Local, system: System) -> tuple[float, float, float]:
    """Second derivatives in (θ, v), as a diagonal and squares WW', with x eliminated.

    Returns y/λ + Σ_t ω_t²/A_t, the divisor of the elimination; the mean τ of the products slack · multiplier; and the
    residual of the curved equations in units of τ.
    """
    H, ptr, omega, x, slack, multiplier = problem.H, problem.ptr, problem.omega, point.x, point.slack, point.multiplier
    M, n_cuts, n_groups, n, share = len(local.theta), len(problem.a), len(omega), len(slack), 1.0 / problem.p
    ratio, A, N, W = system.ratio, system.A, system.N, system.W
    v, lam, rho = x[n_groups], multiplier[n_cuts], multiplier[n_cuts + 1]
    of_mean, of_set = n_cuts + n_groups, n_cuts + n_groups + 1
    tau = astray = 0.0
    for i in range(n):
        ratio[i] = multiplier[i] / slack[i]
        tau += multiplier[i] * slack[i]
        astray += multiplier[i] * abs(local.miss[i])
    spread = 1.0 / ratio[n_cuts]
    root = np.sqrt(ratio[n_cuts + 1])
    for m in range(M):
        system.diagonal[m] = ratio[n_cuts + 2 + m] + rho * local.curvature[m]
        W[m, of_mean] = 0.0
        W[m, of_set] = root * local.normal[m]
    W[M, of_mean] = 1.0
    W[M, of_set] = 0.0
    for t in range(n_groups):
        Q = eta = 0.0
        for k in range(ptr[t], ptr[t + 1]):
            Q += ratio[k]
            eta += multiplier[k]
        # for now, N_t is Σ_k ratio_k ∇w_k / Q without its x part
        for m in range(M):
            N[t, m] = 0.0
        for k in range(ptr[t], ptr[t + 1]):
            weight = ratio[k] / Q
            for m in range(M):
                N[t, m] += weight * H[m, k]
        for k in range(ptr[t], ptr[t + 1]):
            root = np.sqrt(ratio[k])
            for m in range(M):
                W[m, k] = root * (H[m, k] - N[t, m])
            W[M, k] = 0.0
        # minimised over e, Q (g_x e + c'd)² + bend (e − (x/v) dv)² is a single square in d
        x_t, g_x = x[t], local.g_x[t]
        bend = eta * g_x * (1.0 - share) / x_t
        A_t = Q * g_x * g_x + bend
        root = np.sqrt(Q * bend / A_t)
        pull = omega[t] / A_t
        spread += omega[t] * pull
        astray += abs(lam * omega[t] - eta * g_x) * x_t
        N[t, M] = local.g_v[t] - bend * x_t / (v * Q * g_x)
        for m in range(M + 1):
            W[m, n_cuts + t] = root * N[t, m]
            N[t, m] *= Q * g_x
            W[m, of_mean] += pull * N[t, m]
        W[M, n_cuts + t] = root * (local.g_v[t] + g_x * x_t / v)
        N[t, M] -= ratio[n_cuts] * omega[t]
        A[t] = A_t
    root = np.sqrt(spread)
    for m in range(M + 1):
        W[m, of_mean] /= root
    return spread, tau / n, astray / n


@inner_njit(inline="always")
def _factor(system: System) -> None:
    """The Cholesky factor L of S, or of B = I + W_θ' diag⁻¹ W_θ if that is the smaller matrix."""
    W, rows, L, diagonal = system.W, system.rows, system.L, system.diagonal
    M, n_rows = len(diagonal), W.shape[1]
    if n_rows < M:
        for m in range(M):
            scale = 1.0 / np.sqrt(diagonal[m])
            for i in range(n_rows):
                rows[i, m] = scale * W[m, i]
    _gram(rows, L)
    for i in range(len(L)):
        if n_rows < M:
            L[i, i] += 1.0
        elif i < M:
            L[i, i] += diagonal[i]
    _cholesky(L)
    if n_rows < M:
        for i in range(n_rows):
            system.response[i] = W[M, i]
        _cholesky_solve(L, system.response)


@inner_njit(fastmath=SUMS)
def _solve(system: System, x: Array) -> None:
    """x ← S⁻¹ x."""
    W, L, diagonal, image, l = system.W, system.L, system.diagonal, system.image, system.response
    M, n_rows = len(diagonal), W.shape[1]
    if n_rows >= M:
        _cholesky_solve(L, x)
        return
    # With l = B⁻¹ w_v:  dv = (x_v − l'W_θ'x_θ/d) / w_v'l  and  dθ = x_θ/d − W_θ(B⁻¹ W_θ'x_θ/d + l dv)/d
    for m in range(M):
        x[m] /= diagonal[m]
    _transpose_times(W, x, M, image)
    curvature = 0.0
    for i in range(n_rows):
        x[M] -= l[i] * image[i]
        curvature += l[i] * W[M, i]
    x[M] /= curvature
    _cholesky_solve(L, image)
    for i in range(n_rows):
        image[i] += l[i] * x[M]
    for m in range(M):
        total = 0.0
        for i in range(n_rows):
            total += W[m, i] * image[i]
        x[m] -= total / diagonal[m]


@inner_njit()
def _solve_x(system: System, omega: Array, spread: float, x: Array) -> None:
    """x ← (diag(A) + (λ/y) ωω')⁻¹ right_x."""
    inner = 0.0
    for t in range(len(omega)):
        inner += omega[t] * system.right_x[t] / system.A[t]
    for t in range(len(omega)):
        x[t] = (system.right_x[t] - omega[t] * inner / spread) / system.A[t]


@inner_njit()
def _direction(
    problem: Problem,
    point: Iterate,
    local: Local,
    system: System,
    spread: float,
    target: float,
    taken: float,
    step: Iterate,
) -> None:
    """Newton's step towards slack · multiplier = target, minus ``taken`` times the products of the previous step."""
    omega, ptr, miss, d_x, d_slack, push = problem.omega, problem.ptr, local.miss, step.x, step.slack, step.multiplier
    M, n_cuts, n_groups = len(local.theta), len(problem.a), len(omega)
    ratio, right, right_x, N = system.ratio, system.right, system.right_x, system.N
    for i in range(len(push)):
        push[i] = (target - taken * d_slack[i] * push[i]) / point.slack[i] - ratio[i] * miss[i]
    _times(problem.H, push, M, right)
    for m in range(M):
        right[m] += push[n_cuts + 2 + m] - local.normal[m] * push[n_cuts + 1]
    right[M] = push[n_cuts] - 1.0
    for t in range(n_groups):
        pull = 0.0
        for k in range(ptr[t], ptr[t + 1]):
            pull += push[k]
        right[M] += pull * local.g_v[t]
        right_x[t] = pull * local.g_x[t] - omega[t] * push[n_cuts]
    _solve_x(system, omega, spread, d_x)
    for t in range(n_groups):
        e = d_x[t]
        for m in range(M + 1):
            right[m] -= e * N[t, m]
    _solve(system, right)
    # back from (θ, v) to x and the slacks
    _times(N, right, n_groups, d_x)
    for t in range(n_groups):
        right_x[t] -= d_x[t]
    _solve_x(system, omega, spread, d_x)
    d_v = right[M]
    d_y = d_v
    _transpose_times(problem.H, right, M, d_slack)
    for t in range(n_groups):
        # x_t^(1/p) flattens: for a task of little weight, the tangent would make x_t explode
        most = 9.0 * point.x[t]
        d_x[t] = d_x[t] if d_x[t] < most else most
        d_y -= omega[t] * d_x[t]
        d_g = local.g_x[t] * d_x[t] + local.g_v[t] * d_v
        for k in range(ptr[t], ptr[t + 1]):
            d_slack[k] += miss[k] + d_g
    d_r = miss[n_cuts + 1]
    for m in range(M):
        d_r -= local.normal[m] * right[m]
        d_slack[n_cuts + 2 + m] = right[m]
    d_x[n_groups] = d_v
    d_slack[n_cuts] = d_y
    d_slack[n_cuts + 1] = d_r
    for i in range(len(push)):
        push[i] -= point.multiplier[i] + ratio[i] * (d_slack[i] - miss[i])


# ------------------------------------------------------------------------------------------ the step
@inner_njit(fastmath={"nnan", "nsz"})
def _room(point: Iterate, step: Iterate) -> tuple[float, float]:
    """The longest steps, at most one, that keep slacks and x (primal) and multipliers (dual) positive."""
    x, slack, multiplier = point
    primal = dual = 1.0
    for t in range(len(x)):
        fall = -step.x[t] / x[t]
        primal = fall if fall > primal else primal
    for i in range(len(slack)):
        fall = -step.slack[i] / slack[i]
        primal = fall if fall > primal else primal
        fall = -step.multiplier[i] / multiplier[i]
        dual = fall if fall > dual else dual
    return 1.0 / primal, 1.0 / dual


@inner_njit()
def _advance(point: Iterate, step: Iterate, primal: float, dual: float) -> None:
    """Take the step; slacks move along their tangents, and later Newton steps remove the residual."""
    for t in range(len(point.x)):
        point.x[t] += primal * step.x[t]
    for i in range(len(point.slack)):
        point.slack[i] += primal * step.slack[i]
        point.multiplier[i] += dual * step.multiplier[i]


# ------------------------------------------------------------------------------------------ cuts in and out
@inner_njit()
def _gather(
    linear: Array, slopes: Array, present: AnyArray, scale: Array, omega: Array, joint: bool, problem: Problem
) -> None:
    """Collect the cuts that are present by task, in units of ``scale``, as one group per task or a single group."""
    k = g = 0
    for t in range(len(scale)):
        first = k
        for i in range(len(linear)):
            if present[i, t]:
                problem.a[k] = linear[i, t] / scale[t]
                for m in range(slopes.shape[2]):
                    problem.H[m, k] = slopes[i, t, m] / scale[t]
                k += 1
        if k > first and not joint:
            problem.omega[g] = omega[t]
            problem.ptr[g] = first
            g += 1
    if joint:
        problem.omega[0] = 1.0
        problem.ptr[0] = 0
    problem.ptr[len(problem.omega)] = k


@njit(_nrt=False, no_cfunc_wrapper=True)
def solve_master(
    cuts: tuple[Array, ...],
    p: float,
    weight_set: int,
    parameters: Array,
    start: tuple[Array, Array],
    rtol: float,
    max_iter: int,
    joint: bool,
    work: tuple[AnyArray, ...],
    bounds: Array,
) -> int:
    """The iteration of ``minimize_over_cuts``, which allocates the arrays because doing so here compiles slowly."""
    linear, slopes, present, scale, omega = cuts
    H, ptr, weights, theta, per_barrier, per_group, per_kernel, N, W, rows, L = work
    M, n_groups = len(theta), len(weights)
    problem = Problem(H[M], H, ptr, weights, p, weight_set, parameters)
    point = Iterate(x=per_group[0], slack=per_barrier[0], multiplier=per_barrier[1])
    step = Iterate(x=per_group[1], slack=per_barrier[2], multiplier=per_barrier[3])
    local = Local(theta, per_barrier[4], per_kernel[0], per_kernel[1], per_group[2], per_group[3], per_barrier[5])
    system = System(
        per_barrier[6], per_group[4], N, per_kernel[2], W, rows, L, N[n_groups], per_group[5], W[M + 1], W[M + 2]
    )
    best = Best(theta=per_kernel[3], mu=per_barrier[7], bounds=bounds)
    bounds[0] = np.inf
    bounds[1] = -np.inf
    _gather(linear, slopes, present, scale, omega, joint, problem)
    _start(problem, start[0], start[1], point, local, step)
    n_steps = 0
    while True:
        _evaluate(problem, point, local)
        _bound(problem, point, local, step, per_kernel[4], best)
        if bounds[0] - bounds[1] <= rtol * bounds[0] or n_steps == max_iter:
            break
        spread, tau, astray = _assemble(problem, point, local, system)
        _factor(system)
        target, taken, primal, dual = 0.0, 0.0, 1.0, 1.0
        for corrector in range(2):
            _direction(problem, point, local, system, spread, target, taken, step)
            primal, dual = _room(point, step)
            if corrector == 0:
                # Mehrotra (1992): the shorter the way to the boundary, the more the step must turn back to the centre.
                # The slacks must not vanish before the curved equations are satisfied.
                short = 1.0 - (primal if primal < dual else dual)
                target = tau * short**3 if short > 0.1 else 1e-3 * tau
                target = target if target > CAUTION * astray else CAUTION * astray
                # second-order terms only for the feasible part of the predictor: the full terms mislead
                taken = primal * dual
        n_steps += 1
        primal = 0.99 * primal if primal < 1.0 else 1.0
        dual = 0.99 * dual if dual < 1.0 else 1.0
        if primal < 1e-8 and dual < 1e-8:
            break
        _advance(point, step, primal, dual)
    return n_steps


class MasterProblem(NamedTuple):
    """Minimise M_p of the cuts J_t ≥ linear − θ'slopes over a weight set.

    Row k of linear (n_rows, n_tasks) and slopes (n_rows, n_tasks, n_kernels) holds a cut of each task. ``present``
    marks those that count; a task without any is left out. The first cut of each task has linear > 0 and no slope, so
    that z > 0. Task t is in units of scale[t], about its objective. ``joint`` puts all cuts into one group: the master
    of the maximum.
    """

    linear: Array
    slopes: Array
    present: AnyArray
    scale: Array
    omega: Array
    p: float
    weight_set: WeightSet
    joint: bool = False

    def slope(self, multipliers: Array) -> Array:
        """Σ_k μ_k h_k, (n_kernels,)."""
        return (multipliers / self.scale).ravel() @ self.slopes.reshape(-1, self.slopes.shape[2])


class Optimum(NamedTuple):
    """θ on the boundary of the weight set, and bounds on the optimum of the master."""

    theta: Array
    upper: float  # M_p at θ
    lower: float  # valid however inexact the solution is
    n_steps: int
    multipliers: Array  # of the cuts (n_rows, n_tasks), which prove ``lower``; zero for those not present


def minimize_over_cuts(master: MasterProblem, start: Array, rtol: float, max_iter: int = 100) -> Optimum:
    """The optimum of the master to a relative gap of rtol, starting near ``start``."""
    linear, slopes, present, scale, omega, p, weight_set, joint = master
    n_tasks, M = slopes.shape[1:]
    n_cuts = np.count_nonzero(present)
    n_groups = 1 if joint else np.count_nonzero(present[0])
    n_squares = n_cuts + n_groups + 2
    size = M + 1 if n_squares >= M else n_squares  # the smaller of the two matrices that can be factored
    per_barrier, per_kernel = np.empty((8, n_cuts + M + 2)), np.empty((5, M))
    W = np.empty((M + 3, n_squares))
    work = (
        np.empty((M + 1, n_cuts)),
        np.empty(n_groups + 1, dtype=np.uint64),  # unsigned: saves the check for negative indices
        np.empty(n_groups),
        per_barrier[0, n_cuts + 2 :],
        per_barrier,
        np.empty((6, n_groups + 1)),
        per_kernel,
        np.empty((n_groups + 1, M + 1)),
        W,
        W if n_squares >= M else np.empty((n_squares, M)),
        np.empty((size, size)),
    )
    bounds = np.empty(2)
    function, parameters = cast(tuple[barrier_function, Array], weight_set.barrier)
    barrier = function.handle, np.asarray(parameters, dtype=np.float64)
    cuts, starts = (linear, slopes, present, scale, omega), (start, weight_set.start(M))
    n_steps = solve_master(cuts, float(p), *barrier, starts, rtol, max_iter, joint, work, bounds)
    multipliers = np.zeros((n_tasks, len(linear)))
    multipliers[present.T] = per_barrier[7, :n_cuts]  # by task, the order of ``_gather``
    return Optimum(per_kernel[3], bounds[0], bounds[1], n_steps, multipliers.T)


def minimize_over_few(master: MasterProblem, start: Array, rtol: float, likely: IntArray) -> tuple[Optimum, IntArray]:
    """``minimize_over_cuts`` for sparse weights; also returns the kernels to begin with next time.

    The bounds are valid for the master with all kernels, whichever were chosen.
    """
    rows = np.flatnonzero(master.present.any(axis=1))
    here = master._replace(linear=master.linear[rows], slopes=master.slopes[rows], present=master.present[rows])
    support, chosen, lower = master.weight_set.support, np.zeros(master.slopes.shape[2], dtype=bool), -np.inf
    chosen[likely] = chosen[largest(start)] = chosen[largest(master.omega / master.scale @ here.slopes[-1])] = True
    for _ in range(_MOST_ROUNDS):
        few = np.flatnonzero(chosen)
        some = np.ascontiguousarray(here.slopes[:, :, few])
        found = minimize_over_cuts(here._replace(slopes=some), start[few], 0.5 * rtol)
        slope = here.slope(found.multipliers)
        least, steepest = float(support(slope[few])), float(support(slope))
        lower = max(lower, found.lower + least - steepest)
        missing = np.flatnonzero((slope > least) & ~chosen)
        if found.upper - lower <= rtol * found.upper or not len(missing):
            break
        chosen[missing[largest(slope[missing])]] = True
    theta, multipliers = np.zeros(len(chosen)), np.zeros_like(master.linear)
    theta[few], multipliers[rows] = found.theta, found.multipliers
    likely = few[(found.theta > _UNUSED * found.theta.max()) | (slope[few] > _NEARLY * steepest)]
    return found._replace(theta=theta, lower=lower, multipliers=multipliers), likely


def largest(values: Array) -> IntArray:
    """Positions of the largest values."""
    return np.argpartition(values, -_JOINING)[-_JOINING:] if len(values) > _JOINING else np.arange(len(values))


def minimize_over_points(master: MasterProblem, start: Array, rtol: float) -> Optimum:
    """``minimize_over_cuts`` for a weight set without a barrier.

    θ = Σ_i w_i θ_i with points θ_i of the set and w in the ball with s = 1. The point that is farthest along the slopes
    at the solution joins, until it adds nothing; as with few kernels, the bounds are valid for the whole set.
    """
    weight_set = cast(PlainWeightSet, master.weight_set)
    points, lower = np.stack([start, weight_set.start(len(start))]), -np.inf
    for _ in range(_MOST_POINTS):
        along = np.ascontiguousarray(master.slopes @ points.T)
        here = master._replace(slopes=along, weight_set=LsBall(1.0))
        found = minimize_over_cuts(here, np.eye(1, len(points))[0], 0.5 * rtol)
        slope = master.slope(found.multipliers)
        lower = max(lower, found.lower + float((points @ slope).max() - weight_set.support(slope)))
        if found.upper - lower <= rtol * found.upper:
            break
        points = np.concatenate([points, weight_set.farthest(slope)[None]])
    return found._replace(theta=found.theta @ points[: len(found.theta)], lower=lower)
