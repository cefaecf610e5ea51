"""Tseng's algorithm for the min-max form of the problem, the paper's Algorithm 1.

Its step projects onto the dual feasible set. For a point (b, l), :func:`project` finds

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
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np

from .._tools.compiled import njit
from .._tools.typing import Array, IntArray
from ..kernels._rounding import errors_of_duals
from ..machines._smo import errors_of_tasks
from ..problem import MultiTaskProblem
from ..protocols import HingeMachine
from ..scalarizations import PowerMean
from ..solution import Solution
from ..sweep import Sweep
from ..weight_sets import LsBall
from ._base import BaseSolver, Run, rounding_share

FLOOR = 1e-9  # added to λ_t / ω_t in divisions: keeps Φ concave and its gradient finite as λ_t reaches zero
BALANCE = 0.5  # unit of β relative to the length of α: a larger one lets β move further in a step, θ and λ less
DRIFT = 2.0  # factor by which a λ_t may drift from the scale of its distance before the scale is updated
SMOOTH_P = 16.0  # p = ∞ starts from the task weights of this p, since every λ_t must start positive
DOUBLINGS = 60  # limit on doublings of ζ in one step, after which the step is below rounding
EPS = float(np.finfo(float).eps)
MAX_ITER = 300  # limit of each bracketed iteration, more than bisection alone needs
NEGLIGIBLE = 1e-20  # a λ_t below this fraction of ω_t counts as zero
TILTS = (16.0, 256.0, 4096.0)  # how sharply the bound at p = ∞ favours the tasks near the maximum


class SaddlePoint(NamedTuple):
    """A point u = (θ, β, λ), or a gradient there."""

    theta: Array
    beta: Array
    lam: Array


class Saddle:
    """min over θ, max over (β, λ) of Φ, with the distances of the steps.

        Φ(θ, β, λ) = Σ_t c_t (β_t'1 − θ'G^t(β_t) / (2 λ_t)),   0 ≤ β_t ≤ λ_t C,  β_t'y_t = 0,  Σ_t ω_t (λ_t/ω_t)^q ≤ 1
        D(u, u_k)  = D_θ(θ, θ_k) + Σ_t (‖β_t − β_t,k‖² + (λ_t − λ_t,k)²) / w_t

    with q = p/(p−1), β_t = λ_t α_t, c the ``scale`` of the machine, and D_θ the Bregman divergence of ‖θ‖_s^s / s (of
    ‖θ‖²/2 for s = 1). ``beta`` is stored in units of ``unit``, the size of α. The paper has c = 1, w = 1 and unit = 1.
    """

    def __init__(self, problem: MultiTaskProblem, unit: float):
        machine, mean = _machine_of(problem), problem.scalarization
        p, self.ball = mean.p, LsBall(problem.weight_set.norm)
        self.machine = machine
        self.ptr = machine.gram.layout.ptr
        self.sizes = np.diff(self.ptr)
        self.unit = unit
        self.C = machine.C / unit
        self.omega = mean.gradient(np.ones(len(self.sizes)))  # at equal objectives, of any power mean
        self.q = 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)
        self.s = 2.0 if self.ball.s == 1 else self.ball.s
        self.w = np.ones(len(self.sizes))
        self.nu = np.zeros(len(self.sizes))

    def spread(self, per_task: Array) -> Array:
        """Repeat the number of each task for all its samples."""
        return np.repeat(per_task, self.sizes)

    def divisor(self, lam: Array) -> Array:
        return lam + FLOOR * self.omega

    def gradient(self, u: SaddlePoint) -> tuple[SaddlePoint, tuple[Array, Array]]:
        """(∇_θ Φ, ∇_β Φ, ∇_λ Φ), and linear and forms of the cuts at α = β / λ.

        ∇_β = c (1 − Y K_θ Y α), ∇_λ = ½ c θ'G(α), ∇_θ = −½ Σ_t λ_t c_t G^t(α_t): one K_θ, one product with it per
        task, one pass for G.
        """
        gram, signs, scale = self.machine.gram, self.machine.targets, self.machine.scale
        lam = self.divisor(u.lam)
        alpha = self.unit * u.beta / self.spread(lam)
        v = signs * alpha
        errors = np.empty(len(v))
        with gram.combined(u.theta) as K:
            errors_of_tasks(K.flat, K.layout, signs, v, errors)
        forms = scale[:, None] * gram.quadratic_forms(v)
        slopes = SaddlePoint(-0.5 * lam @ forms, self.unit * self.spread(scale) * signs * errors, 0.5 * forms @ u.theta)
        lost, _ = errors_of_duals(gram, u.theta, v, balanced=True)
        linear = scale * (1 - lost.relative) * np.add.reduceat(alpha, self.ptr[:-1])
        return slopes, (linear, np.maximum(forms, 0.0) + scale[:, None] * lost.forms)

    def step(self, u: SaddlePoint, slopes: SaddlePoint, zeta: float) -> SaddlePoint:
        """argmin over feasible v of v'q + ζ D(v, u), where q = (∇_θ Φ, −∇_β Φ, −∇_λ Φ)."""
        theta = self.ball.prox_step(u.theta, slopes.theta, zeta)
        reach = self.w / (2 * zeta)
        b, l = u.beta + self.spread(reach) * slopes.beta, u.lam + reach * slopes.lam
        point = PointAndSet(b, l, self.ptr, self.machine.targets, self.C, self.omega, self.w, self.q)
        beta, lam, _ = project(point, self.nu)
        return SaddlePoint(theta, beta, lam)

    def distance(self, v: SaddlePoint, u: SaddlePoint) -> float:
        """D(v, u)."""
        of_beta = np.sum((v.beta - u.beta) ** 2 / self.spread(self.w))
        of_lam = np.sum((v.lam - u.lam) ** 2 / self.w)
        return power_divergence(v.theta, u.theta, self.s) + float(of_beta + of_lam)

    def follow(self, lam: Array) -> None:
        """Reset the scales w of the distance to λ if λ has drifted away from them by a factor.

        ∇Φ depends on β_t / λ_t, so in the distance ‖β_t‖² / λ_t it is as smooth for small λ_t as for large ones. Once λ
        settles, so do the scales, and the distance is fixed from then on, as in the paper.
        """
        scales = self.divisor(lam)
        if np.any(scales > DRIFT * self.w) or np.any(scales < self.w / DRIFT):
            self.w = scales


def _machine_of(problem: MultiTaskProblem) -> HingeMachine:
    """The machine of the problem; raise unless all parts are those of the paper's algorithm."""
    machine, mean, ball = problem.machine, problem.scalarization, problem.weight_set
    if machine.promises.hinge and not np.isnan(mean.p) and not np.isnan(ball.norm):
        return cast(HingeMachine, machine)
    raise TypeError(
        "Tseng's algorithm needs support vector machines (such as SVCTasks), a power mean and an L_s ball, got "
        f"{type(machine).__name__}, {type(mean).__name__} and {type(ball).__name__}; use CutPool."
    )


def power_divergence(x: Array, y: Array, s: float) -> float:
    """Bregman divergence of h(x) = Σ x^s / s for x, y ≥ 0: Σ (x^s − y^s)/s − (x − y) y^(s−1).

    If x and y are close, the terms cancel, so the Taylor series in r = (x − y)/y is used instead.
    """
    safe = np.where(y > 0, y, 1.0)
    r = np.where(y > 0, (x - y) / safe, np.inf)
    near = np.abs(r) < 1e-3
    direct = (x**s - y**s) / s - (x - y) * y ** (s - 1)
    small = np.where(near, r, 0.0)
    series = y**s * (s - 1) * small**2 * (1 / 2 + (s - 2) * small * (1 / 6 + (s - 3) * small / 24))
    return float(np.sum(np.where(near, series, direct)))


@dataclass
class Tseng(BaseSolver):
    """Tseng's extragradient method on the saddle point of Φ(θ, β, λ), the paper's Algorithm 1; p ≥ 1.

    From u, a trial step along the gradient at u leads to v, and the actual step follows the gradient at v:

        v   = argmin over u' of  u'·q(u) + ζ D(u', u)
        u⁺  = argmin over u' of  u'·q(v) + ζ D(u', u),    accepted if  u⁺·q(v) + ζ D(u⁺, u) ≥ v·q(v)     (eq. 11)

    The step length is 1/ζ, and the condition holds once ζ is large: ζ is doubled if it fails (the paper's "ζ/2" is a
    misprint) and lowered a little after each success.

    Every few steps the tasks are solved at the current θ. M_p of their objectives minus the lower bound from (β, λ) is
    the paper's duality gap; bounds from the solved tasks are used too.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int, default=5000
        Maximum number of steps per p.
    report : callable, default=None
        Called after every sweep with p, the number of sweeps so far and the gap.
    check_every : int, default=10
        Steps between two evaluations of the gap.
    rescale : bool, default=True
        Whether distances follow the size of α and of λ. ``False`` gives the paper's distances. Their steps shrink with
        the smallest λ_t, and stall at p = ∞, where most tasks have λ_t = 0 at the solution.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> from paretomkl.solvers import Tseng
    >>> path = pareto_path(*load_iris(return_X_y=True), ps=[2], solver=Tseng(tol=1e-2))
    >>> bool(path.gap[0] <= 1e-2)
    True
    """

    max_iter: int = 5000
    check_every: int = 10
    rescale: bool = True

    name: ClassVar[str] = "tseng"
    lowest_p: ClassVar[float] = 1.0

    def solve(self, problem: MultiTaskProblem, init: Solution | None = None, run: Run | None = None) -> Solution:
        run = run or Run(self.report)
        machine = _machine_of(problem)
        n_before = run.n_sweeps
        theta, warm = self.begin(problem, init)
        sweep = best = run.sweep(machine, theta, warm, self.task_rtol)
        saddle, u = self._start(problem, sweep)
        value = problem.scalarization.value(sweep.upper)
        lower, weights = -np.inf, u.lam
        zeta = value  # the size of Φ, since the distances are of order one
        for n_iter in range(self.max_iter + 1):
            slopes, cuts = saddle.gradient(u)
            if n_iter % self.check_every == 0 or n_iter == self.max_iter:
                if n_iter:
                    sweep = run.sweep(machine, u.theta, sweep.warm, self.task_rtol)
                bound, at = self._lower_bound(problem, u.lam, sweep, cuts)
                if bound > lower:
                    lower, weights = bound, at
                best = min(best, sweep, key=lambda one: problem.scalarization.log_value(one.upper))
                gap = problem.relative_gap(best, lower)
                run.note(problem.scalarization.p, gap)
                if gap <= self.tol or rounding_share(problem, best, self.tol) > self.tol:
                    break
            for _ in range(DOUBLINGS):
                v = saddle.step(u, slopes, zeta)
                slopes_v, _ = saddle.gradient(v)
                ahead = saddle.step(u, slopes_v, zeta)
                rise = (
                    (ahead.theta - v.theta) @ slopes_v.theta
                    - (ahead.beta - v.beta) @ slopes_v.beta
                    - (ahead.lam - v.lam) @ slopes_v.lam
                )
                if rise + zeta * saddle.distance(ahead, u) >= -1e-14 * value:  # eq. 11, to rounding
                    break
                zeta *= 2
            u = ahead
            zeta *= 0.9
            if self.rescale:
                saddle.follow(u.lam)
        minimax = np.isinf(problem.scalarization.p)
        multipliers = weights / weights.sum() if minimax else None
        return self.solution(problem, best, gap, run.n_sweeps - n_before, multipliers)

    def _start(self, problem: MultiTaskProblem, sweep: Sweep) -> tuple[Saddle, SaddlePoint]:
        """λ from the objectives of the first sweep (all positive), β = λ α."""
        machine, mean = _machine_of(problem), problem.scalarization
        smooth = PowerMean(SMOOTH_P, mean.gradient(np.ones(machine.n_tasks)))
        lam = smooth.task_weights(sweep.upper) if np.isinf(mean.p) else mean.gradient(sweep.upper)
        alpha = np.abs(np.concatenate(machine.decisions(sweep).dual))
        length = np.sqrt(np.mean(np.add.reduceat(alpha**2, machine.gram.layout.ptr[:-1])))
        unit = BALANCE * float(length) if self.rescale else 1.0
        saddle = Saddle(problem, unit)
        if self.rescale:
            saddle.w = saddle.divisor(lam)
        return saddle, SaddlePoint(sweep.theta, saddle.spread(lam) * alpha / unit, lam)

    def _lower_bound(
        self, problem: MultiTaskProblem, lam: Array, sweep: Sweep, cuts: tuple[Array, Array]
    ) -> tuple[float, Array]:
        """The best lower bound on the optimum from λ, with the cuts at β / λ or those of the sweep; and its λ.

        At p = ∞ every λ ≥ 0 with Σλ = 1 gives a bound. At the solution, tasks below the maximum have λ_t = 0; before
        it, λ_t is only small. λ tilted towards the tasks with the largest objectives is closer to the solution.
        """
        candidates = [lam]
        if np.isinf(problem.scalarization.p):
            below = 1 - sweep.lower / sweep.lower.max()
            candidates += [lam * np.exp(-tilt * below) for tilt in TILTS]
            candidates = [weights / weights.sum() for weights in candidates]
        bounds = [
            (problem.lower_bound(weights, linear, forms), k)
            for k, weights in enumerate(candidates)
            for linear, forms in (cuts, (sweep.linear, sweep.forms))
        ]
        bound, k = max(bounds)
        return bound, candidates[k]


# ------------------------------------------------------------------------------------------ the projection
class PointAndSet(NamedTuple):
    """The point (b, l) and the set; the samples of task t are at ``ptr[t]:ptr[t + 1]`` of b, y and C."""

    b: Array
    l: Array
    ptr: IntArray
    y: Array  # ±1
    C: Array  # ≥ 0
    omega: Array  # positive, of sum one
    w: Array  # equal ones give the Euclidean projection
    q: float  # 1 ≤ q ≤ ∞


class TaskState(NamedTuple):
    """The state of each task, (n_tasks,): brackets of ν and λ, the current solution, and its derivatives."""

    left: Array  # where β_i = 0 for all y_i = −1
    right: Array  # where β_i = 0 for all y_i = +1
    low: Array
    high: Array
    lam: Array
    nu: Array
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
def solve_tasks(problem: PointAndSet, kappa: float, tasks: TaskState) -> None:
    """Solve equation 2 for every task on low ≤ λ ≤ high, starting from (lam, nu).

    ``high`` may exclude the root unless ``low`` > 0 comes from a larger κ, so it is tried if Newton steps beyond it.
    """
    b, l, ptr, y, C, omega, w, q = problem
    left, right, low, high, lam, nu, force, slope, drift = tasks
    for t in range(len(l)):
        if high[t] <= 0.0:
            continue
        first, last, bottom, top, price = ptr[t], ptr[t + 1], low[t], high[t], kappa * w[t]
        top_known = bottom > 0.0
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
                bottom = x
            else:  # λ is at its upper end
                break
            if top <= NEGLIGIBLE * omega[t]:
                x = 0.0
            if top - bottom <= 2.0 * EPS * top or x == 0.0:
                break
            step = x - force[t] / slope[t]
            if step >= top and not top_known:
                x = top
                continue
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


def project(problem: PointAndSet, nu: Array) -> tuple[Array, Array, float]:
    """β, λ and κ of the projection.

    nu (n_tasks,) holds a guess of the multipliers of the equality constraints (any finite numbers), then the solution.
    """
    b, l, ptr, y, C, omega, _, q = problem
    left = np.minimum.reduceat(np.where((C > 0) & (y < 0), -b, np.inf), ptr[:-1])
    right = np.maximum.reduceat(np.where((C > 0) & (y > 0), b, -np.inf), ptr[:-1])
    low, force, slope, drift = np.zeros((4, len(l)))
    high = omega ** (1 - 1 / q)  # from ω x^q ≤ 1 for each task; keeps all powers in range
    beta, lam, kappa = np.empty_like(b), l.copy(), 0.0
    tasks = TaskState(left, right, low, high, lam, nu, force, slope, drift)
    if np.isinf(q):  # the constraint separates into λ ≤ ω
        solve_tasks(problem, kappa, tasks)
    else:
        kappa, norm = solve_norm(problem, tasks)
        lam /= max(norm, 1.0) ** (1 / q)  # if l is large, rounding leaves the norm slightly above one
    write_dual(problem, lam, nu, beta)
    return beta, lam, kappa
