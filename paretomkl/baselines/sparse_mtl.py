"""Sparse multi-task learning: a mixed norm over kernels and tasks (Rakotomamonjy, Flamary, Gasso, Canu 2011).

    minimise  Σ_t Σ_i C_i hinge(y_i, f^t(x_i)) + Σ_m u_m^p,    u_m = (Σ_t ‖f_m^t‖^q)^(1/q),    f^t = Σ_m f_m^t + b_t

with 0 < p ≤ 1 ≤ q ≤ 2 and the norm of f_m^t that of the space of kernel m. Concave powers are least tangents, so

    u_m^p       = min over c of     c u_m + (terms in c),                          at c_m = p u_m^(p−1),
    c_m u_m     = min over θ_m of   ½ Σ_t ‖f_m^t‖² / θ_tm + ½ c_m² ‖θ_m‖_r,        r = q/(2−q),
                                    at θ_tm = u_m^(q−1) ‖f_m^t‖^(2−q) / c_m.

With c held, what is left is a convex problem in the kernel weights θ (n_tasks, n_kernels) of ordinary SVMs,

    minimise over θ ≥ 0    Σ_t J_t(θ^t) + ½ Σ_m c_m² ‖θ_m‖_r,

whose dual is to maximise Σ_t α_t'1 where ‖(G_m^t(α_t))_t‖_{r*} ≤ c_m² for every m. Each solved task gives a cut J_t(θ)
≥ a − ½ θ'G, so the problem is solved by cutting planes. p = 1 has c = 1; for p < 1 the slopes c follow the solution.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._parallel import effective_jobs
from .._typing import AnyArray, Array
from .._validation import check_count, check_number
from ..estimators import KernelTaskClassifier
from ..gram import GramBlocks
from ..kernels import FittedBank
from ..machines.svc import SVCTasks, Sweep
from ..progress import Progress
from ..tasks import Task
from ..weight_sets import power_norm

WARM_UP = 3  # re-weighting steps that fill an empty pool
TASK_RTOL = 0.02  # accuracy of the single tasks, as a share of tol
MASTER_RTOL = 0.1  # accuracy of the master, as a share of tol
MASTER_STEPS = 80  # Newton steps of one master
MOST_CUTS = 60  # kept for each task
CENTRING = 0.1  # how far a master starts from the best point towards equal weights
CAUTION = 0.3  # of the miss of the curved equations: how small the slacks may get before it
RIDGE = 1e-13  # added to the diagonal of second derivatives, which equal kernels leave singular to rounding
NO_KERNEL = 1e-30  # u_m, as a share of the largest, that is taken for zero
ABSENT = 0.01  # a weight smaller than this share of its multiplier, both relative, is taken for zero


@dataclass(frozen=True)
class MixedNorm:
    """The penalty Σ_m u_m^p, u_m = (Σ_t ‖f_m^t‖^q)^(1/q), and what follows from it."""

    p: float
    q: float

    @property
    def shared(self) -> bool:
        """Whether the weights θ_tm of a kernel are the same for all tasks."""
        return self.q == 2

    @property
    def power(self) -> float:
        """1/r = (2−q)/q, the exponent of x in θ = N^(1−1/r) x^(1/r), N = Σ_t x_t, for which ‖θ‖_r = N."""
        return (2 - self.q) / self.q

    def of_kernels(self, norms: Array) -> Array:
        """u (n_kernels,)."""
        return power_norm(norms.T, self.q)

    def of_forms(self, forms: Array) -> Array:
        """‖(G_m^t)_t‖_{r*} (n_kernels,), r* = q/(2q−2), which a dual point keeps below c²."""
        return power_norm(forms.T, np.inf if self.q == 1 else self.q / (2 * self.q - 2))

    def slopes(self, u: Array) -> Array:
        """c = p u^(p−1)."""
        if self.p == 1:
            return np.ones_like(u)
        used = u > NO_KERNEL * u.max()
        return np.where(used, self.p * np.where(used, u, 1.0) ** (self.p - 1), np.inf)

    def weights(self, norms: Array) -> Array:
        """θ of the tangent: (n_kernels,) where the tasks share them, else (n_tasks, n_kernels)."""
        u = self.of_kernels(norms)
        return (u if self.shared else u ** (self.q - 1) * norms ** (2 - self.q)) / self.slopes(u)


@dataclass(frozen=True)
class Point:
    """Functions f_m^t: the sweep they come from, their norms (n_tasks, n_kernels), u (n_kernels,) and losses."""

    sweep: Sweep
    norms: Array
    u: Array
    losses: Array

    def value(self, p: float) -> float:
        return float(self.losses.sum() + np.sum(self.u**p))


def point_of(sweep: Sweep, norm: MixedNorm) -> Point:
    """‖f_m^t‖ = θ_tm √G_tm, and the loss is what the primal objective of an SVM has beside ½ Σ_m ‖f_m^t‖² / θ_tm."""
    norms = sweep.theta * np.sqrt(sweep.forms)
    losses = np.maximum(sweep.upper - 0.5 * (sweep.theta * sweep.forms).sum(axis=1), 0.0)
    return Point(sweep, norms, norm.of_kernels(norms), losses)


class InteriorPoint:
    """A primal-dual interior point method for the master problem.

        minimise over x, z ≥ 0     Σ_t z_t + ½ Σ_tm x_tm    where   w_kt = z_t − a_kt + h_kt'θ^t(x) ≥ 0
        θ_tm = N_m^(1−ρ) x_tm^ρ,   N_m = Σ_t x_tm,   ρ = 1/r,   so that  ‖θ_m‖_r = N_m

    θ is concave in x, so the problem is convex, and its objective is linear however large r is. Where the tasks share
    their weights (q = 2) x has one row and θ = x. The slacks w are unknowns that meet their equations in the end only.
    Multipliers: μ of the cuts, ν of x ≥ 0. Steps are relative, ξ = dx/x and ζ = dN/N; with φ = x/N

        dθ = θ (ρ ξ + (1−ρ) ζ),    ζ = Σ_t φ_t ξ_t    (its multiplier: η).

    Parameters
    ----------
    a : array of shape (n_cuts, n_tasks)
    h : array of shape (n_cuts, n_tasks, n_kernels)
        Scaled so that the optimum is about one.
    norm : MixedNorm
    x : array of shape (n_tasks or 1, n_kernels)
        Where to start, positive.
    """

    def __init__(self, a: Array, h: Array, norm: MixedNorm, x: Array):
        self.a, self.h, self.norm = a, h, norm
        self.rho = 1.0 if norm.shared else norm.power
        self.x = x
        self._follow()
        self.z = self._heights() + 0.1 / a.shape[1]
        self.w = self.z - a + self.fall
        self.mu = 1 / (self.w * (1 / self.w).sum(axis=0))
        self.nu = np.mean(self.mu * self.w) / x
        self.miss = np.zeros_like(a)
        self.upper, self.lower = np.inf, -np.inf

    def _follow(self) -> None:
        """N, θ and h'θ at x."""
        self.N = self.x.sum(axis=0)
        self.theta = self.N ** (1 - self.rho) * self.x**self.rho
        self.fall = (self.h * self.theta).sum(axis=2)

    def _heights(self) -> Array:
        """The highest cut of each task at θ."""
        return (self.a - self.fall).max(axis=0)

    def solve(self, rtol: float) -> None:
        """Newton steps until the best bounds are within rtol; the best x, ν and μ of each kind are left in place."""
        for _ in range(MASTER_STEPS):
            self._note_bounds()
            if self.upper - self.lower <= rtol * self.upper:
                break
            if not self._step():
                break
        self._note_bounds()

    def _note_bounds(self) -> None:
        value = float(self._heights().sum() + 0.5 * self.x.sum())
        if value < self.upper:
            self.upper, self.best_x, self.best_theta, self.best_nu = value, self.x, self.theta, self.nu
        mu = self.mu / self.mu.sum(axis=0)
        bound = lower_bound(self.norm, (mu * self.a).sum(), 2 * mix(mu, self.h))
        if bound > self.lower:
            self.lower, self.best_mu = bound, mu

    def present(self) -> Array:
        """Which weights are not zero in the limit: x_tm, or for 1 < q < 2, where tasks leave a kernel together, N_m.

        x goes to zero where its multiplier does not: x ν is what is left of the barrier.
        """
        size, rest = self.best_x, self.best_x * self.best_nu
        if self.rho < 1:
            size, rest = size.sum(axis=0), rest.sum(axis=0)
        return size**2 > ABSENT * self.upper * rest

    def _factor(self) -> None:
        """The second derivatives at the present point, in the relative steps ξ (P), ζ (D) and between them (B)."""
        M, rho, theta = self.h.shape[2], self.rho, self.theta
        self.stiff = self.mu / self.w
        self.total = self.stiff.sum(axis=0)
        self.centre = mix(self.stiff, self.h) / self.total[:, None]
        rows = (np.sqrt(self.stiff)[:, :, None] * (self.h - self.centre) * theta).transpose(1, 0, 2)
        if self.norm.shared:
            rows = rows.reshape(1, -1, M)
        H = rows.transpose(0, 2, 1) @ rows
        bend = rho * (1 - rho) * theta * mix(self.mu, self.h) if rho < 1 else np.zeros_like(self.x)
        diagonal = np.arange(M)
        P = rho**2 * H
        P[:, diagonal, diagonal] *= 1 + RIDGE
        P[:, diagonal, diagonal] += bend + self.nu * self.x
        self.P_inverse = np.linalg.inv(P)
        if rho == 1:
            return
        self.B = rho * (1 - rho) * H
        self.B[:, diagonal, diagonal] -= bend
        D = (1 - rho) ** 2 * H.sum(axis=0)
        D[diagonal, diagonal] += bend.sum(axis=0)
        self.phi = self.x / self.N
        P_B, P_phi = self.P_inverse @ self.B, self.P_inverse * self.phi[:, None, :]
        one = np.eye(M)
        self.coupling = np.block(
            [
                [one + np.einsum("tm,tmn->mn", self.phi, P_B), np.einsum("tm,tmn->mn", self.phi, P_phi)],
                [D - summed(self.B, P_B), -one - summed(self.B, P_phi)],
            ]
        )

    def _direction(self, target: float, cross_w: Array, cross_x: Array) -> tuple[Array, ...]:
        """The Newton step to μw = target − cross_w, νx = target − cross_x: ξ, dz, dw, dμ, dν."""
        push = (target - cross_w) / self.w - self.stiff * self.miss
        excess = push.sum(axis=0) - 1
        pull = self.theta * (mix(push, self.h) - excess[:, None] * self.centre)
        if self.norm.shared:
            pull = pull.sum(axis=0, keepdims=True)
        right = self.rho * pull + target - cross_x - 0.5 * self.x
        xi = times(self.P_inverse, right)
        stretch = xi
        if self.rho < 1:
            #   P_t ξ_t + B_t ζ + φ_t η = right_t,     Σ_t B_t'ξ_t + D ζ − η = (1−ρ) Σ_t pull_t,     ζ = Σ_t φ_t ξ_t
            right_N = (1 - self.rho) * pull.sum(axis=0) - np.einsum("tnm,tn->m", self.B, xi)
            zeta, eta = np.split(np.linalg.solve(self.coupling, np.append((self.phi * xi).sum(axis=0), right_N)), 2)
            xi = xi - times(self.P_inverse, self.B @ zeta + self.phi * eta)
            stretch = self.rho * xi + (1 - self.rho) * zeta
        d_theta = self.theta * stretch
        d_z = excess / self.total - (self.centre * d_theta).sum(axis=1)
        d_w = self.miss + d_z + (self.h * d_theta).sum(axis=2)
        d_mu = (target - cross_w) / self.w - self.mu - self.stiff * d_w
        d_nu = (target - cross_x) / self.x - self.nu - self.nu * xi
        return xi, d_z, d_w, d_mu, d_nu

    def _step(self) -> bool:
        """Predictor, corrector (Mehrotra 1992) and the step; whether there was room for one."""
        self._factor()
        n_slacks = self.w.size + self.x.size
        tau = ((self.mu * self.w).sum() + (self.nu * self.x).sum()) / n_slacks
        xi, d_z, d_w, d_mu, d_nu = self._direction(0.0, np.zeros_like(self.w), np.zeros_like(self.x))
        primal, dual = self._room(xi, d_w, d_mu, d_nu)
        # the shorter the way to the boundary, the more the step must turn back to the centre; and the slacks must not
        # vanish before the curved equations are met
        astray = (self.mu * np.abs(self.miss)).sum() / n_slacks
        target = max(tau * max((1 - min(primal, dual)) ** 3, 1e-3), CAUTION * astray)
        taken = primal * dual
        xi, d_z, d_w, d_mu, d_nu = self._direction(target, taken * d_mu * d_w, taken * d_nu * self.x * xi)
        primal, dual = self._room(xi, d_w, d_mu, d_nu)
        if not max(primal, dual) > 1e-8:
            return False
        primal, dual = (0.99 * room if room < 1 else 1.0 for room in (primal, dual))
        self.x = self.x * (1 + primal * xi)
        self.z = self.z + primal * d_z
        self.w = self.w + primal * d_w
        self.mu = self.mu + dual * d_mu
        self.nu = self.nu + dual * d_nu
        self._follow()
        self.miss = self.z - self.a + self.fall - self.w
        return True

    def _room(self, xi: Array, d_w: Array, d_mu: Array, d_nu: Array) -> tuple[float, float]:
        """The longest steps, at most one, that keep primal and dual unknowns positive."""
        primal = max((-d_w / self.w).max(), (-xi).max(), 1.0)
        dual = max((-d_mu / self.mu).max(), (-d_nu / self.nu).max(), 1.0)
        return 1 / primal, 1 / dual


def mix(weights: Array, cuts: Array) -> Array:
    """Σ_k weights_kt cuts_ktm."""
    return np.einsum("kt,ktm->tm", weights, cuts)


def times(matrices: Array, vectors: Array) -> Array:
    """One matrix-vector product for each task."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def summed(left: Array, right: Array) -> Array:
    """Σ_t left_t' right_t."""
    return np.tensordot(left, right, axes=((0, 1), (0, 1)))


def lower_bound(norm: MixedNorm, linear: float, forms: Array) -> float:
    """Σ_t α_t'1 of a dual point whose forms are at most ``forms``, shrunk until it is feasible for c = 1.

    Forms are convex in α, so a mixture of cuts bounds those of the mixture of their α, and quadratic: √ of the excess.
    """
    return float(linear / np.sqrt(max(1.0, norm.of_forms(forms).max())))


class Pool:
    """The cuts J_t(θ) ≥ linear_kt − slopes_kt'θ of all sweeps; beyond MOST_CUTS a task forgets its least used."""

    def __init__(self, n_tasks: int, n_kernels: int):
        self.linear = np.zeros((1, n_tasks))  # row 0: J_t ≥ 0
        self.slopes = np.zeros((1, n_tasks, n_kernels))
        self.use = np.full((1, n_tasks), np.inf)  # multipliers in the last master

    def add(self, sweep: Sweep) -> None:
        if len(self.linear) <= MOST_CUTS:
            self.linear = np.vstack([self.linear, sweep.linear])
            self.slopes = np.concatenate([self.slopes, 0.5 * sweep.forms[None]])
            self.use = np.vstack([self.use, np.full_like(sweep.linear, np.inf)])
            return
        least = self.use.argmin(axis=0), np.arange(len(sweep.linear))
        self.linear[least], self.slopes[least], self.use[least] = sweep.linear, 0.5 * sweep.forms, np.inf

    def minimize(self, norm: MixedNorm, c: Array, start: Point, unit: float, rtol: float) -> tuple[Array, float]:
        """The θ of least Σ_t z_t + ½ Σ_m c_m² ‖θ_m‖_r over the cuts, and a lower bound of the convex problem.

        A kernel of c = ∞ is left out. In θ̃ = c² θ / unit the penalty is that of c = 1 and the objective about one.
        """
        kernels = np.isfinite(c)
        scale = unit / c[kernels] ** 2
        x = np.atleast_2d(norm.weights(start.norms)[..., kernels] / scale)
        if not norm.shared:
            N = power_norm(x.T, 1 / norm.power)
            x = N * (x / np.where(N > 0, N, 1.0)) ** (1 / norm.power)
        x = (1 - CENTRING) * x + CENTRING / x.size
        method = InteriorPoint(self.linear / unit, self.slopes[:, :, kernels] * (scale / unit), norm, x)
        method.solve(rtol)
        self.use[1:] = method.best_mu[1:]
        theta = np.zeros((len(x), len(c)))
        theta[:, kernels] = np.where(method.present(), method.best_theta, 0.0) * scale
        return theta[0] if norm.shared else theta, unit * method.lower


@dataclass
class Found:
    """The best point so far, its relative gap, and the objectives on the way to it."""

    point: Point
    gap: float
    history: list[float]


class Search:
    """Cutting planes for the convex problem of p = 1 and, from its solution, for p < 1."""

    def __init__(
        self, tasks: SVCTasks, q: float, tol: float, max_iter: int, report: Callable[[float, int, float], None]
    ):
        self.tasks = tasks
        self.q = q
        self.tol = tol
        self.max_iter = max_iter
        self.report = report
        self.pool = Pool(tasks.n_tasks, tasks.n_kernels)

    def sweep(self, norm: MixedNorm, theta: Array, init: Array | None, precision: float = 1.0) -> Point:
        sweep = self.tasks.sweep(theta, init, precision * TASK_RTOL * self.tol)
        self.pool.add(sweep)
        return point_of(sweep, norm)

    def reweighted(self, norm: MixedNorm, point: Point) -> Point:
        """The minimiser of the tangent at a point: never above it, and on a long slow way to the optimum."""
        return self.sweep(norm, norm.weights(point.norms), point.sweep.dual)

    def start(self, norm: MixedNorm) -> list[Point]:
        """Points of falling objective from weights that suit the scale of each kernel; f = 0 if that is no worse."""
        tasks = self.tasks
        counts = [np.add.reduceat(tasks.signs == sign, tasks.gram.layout.ptr[:-1], dtype=float) for sign in (-1, 1)]
        sizes = np.diff(tasks.gram.layout.ptr)
        means = np.where(tasks.signs > 0, 1 / np.repeat(counts[1], sizes), -1 / np.repeat(counts[0], sizes))
        apart = norm.of_forms(tasks.gram.quadratic_forms(means))  # squared distances between the means of the classes
        apart = np.maximum(apart, 1e-6 * apart.max() + 1e-300)
        theta = 1 / (tasks.n_kernels * np.sqrt(apart))
        points = [self.sweep(norm, theta if norm.shared else np.tile(theta, (tasks.n_tasks, 1)), None)]
        while len(points) < min(WARM_UP, self.max_iter):
            points.append(self.reweighted(norm, points[-1]))
        if points[-1].value(1.0) >= self._value_of_zero():
            points.append(self.sweep(norm, np.zeros_like(points[-1].sweep.theta), points[-1].sweep.dual))
        return points

    def _value_of_zero(self) -> float:
        """The objective of f = 0, each intercept on the side of the heavier class."""
        first = self.tasks.gram.layout.ptr[:-1]
        sides = [np.add.reduceat(self.tasks.C * (self.tasks.signs == sign), first) for sign in (-1, 1)]
        return float(2 * np.minimum(*sides).sum())

    def descend(self, norm: MixedNorm, points: list[Point]) -> Found:
        """Lower the objective from the best point until the convex problem that touches it has a gap of at most tol.

        For p < 1 that problem majorises the objective, Σ_m u_m^p ≤ Σ_m c_m u_m + (1 − p) Σ_m (u_m at best)^p, and is
        put up anew at every better point; a kernel at zero has c = ∞ and stays there.
        """
        p = norm.p
        best, history = points[0], [points[0].value(p)]
        for point in points[1:]:
            if point.value(p) < history[-1]:
                best = point
                history.append(point.value(p))
        lower, gap, precision, lowered = -np.inf, 1.0, 1.0, True
        while True:
            value, c = history[-1], norm.slopes(best.u)
            if not np.isfinite(c).any():
                return Found(best, 0.0, history)
            rtol = precision * max(MASTER_RTOL * self.tol, 0.02 * gap)
            theta, bound = self.pool.minimize(norm, c, best, value, rtol)
            if p < 1 and lowered:
                lower = -np.inf  # another point, another problem
            raised = bound > lower
            lower = max(lower, bound)
            gap = max(0.0, 1 - (lower + (1 - p) * float(np.sum(best.u**p))) / value)
            self.report(p, self.tasks.n_sweeps, gap)
            if gap <= self.tol or self.tasks.n_sweeps >= self.max_iter or precision < 1e-6:
                return Found(best, gap, history)
            if not (lowered or raised):  # nothing new to learn there at this accuracy
                precision *= 0.1
                theta = norm.weights(best.norms)
            point = self.sweep(norm, theta, best.sweep.dual, precision)
            lowered = point.value(p) < value
            if lowered:
                best = point
                history.append(point.value(p))

    def solve(self, p: float) -> Found:
        norm = MixedNorm(1.0, self.q)
        found = self.descend(norm, self.start(norm))
        if p == 1:
            return found
        norm, start = MixedNorm(p, self.q), found.point
        # where u is far from one the cuts so far are far from the scale of this problem
        found = self.descend(norm, [start, self.reweighted(norm, start)])
        value = self._value_of_zero()  # f = 0 is a local minimum for every p < 1
        if value < found.history[-1]:
            zero = self.sweep(norm, np.zeros_like(start.sweep.theta), found.point.sweep.dual)
            return Found(zero, 0.0, [*found.history, value])
        return found


class SparseMTL(KernelTaskClassifier):
    """Support vector classifiers that choose their kernels together, by a mixed norm over kernels and tasks.

        minimise   C Σ_t Σ_i hinge(y_i, f^t(x_i)) + Σ_m (Σ_t ‖f_m^t‖^q)^(p/q),      f^t = Σ_m f_m^t + b_t

    (Rakotomamonjy, Flamary, Gasso, Canu: "ℓp-ℓq penalty for sparse linear and sparse multiple kernel multitask
    learning", IEEE Transactions on Neural Networks 22, 2011.) Each task has its own combination of kernels; the norm
    makes few kernels serve all tasks. p = q = 1 leaves the tasks to themselves.

    Parameters
    ----------
    p : float, default=1.0
        Exponent over the kernels, 0 < p ≤ 1. 1 is convex; less gives fewer kernels and a local minimum, reached from
        the solution of p = 1.
    q : float, default=2.0
        Exponent over the tasks, 1 ≤ q ≤ 2: 2 gives all tasks the same kernel weights, 1 makes them independent.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`paretomkl.KernelBank`. The default bank suits features scaled to [0, 1].
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    tol : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int, default=300
        Passes over the tasks after which to stop.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task inversely to their frequency there.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Kernel weights under which the SVM of each task has the solution f^t.
    norms_ : array of shape (n_tasks, n_kernels)
        ‖f_m^t‖, zero for a kernel that is not used.
    objectives_ : array of shape (n_tasks,)
        C Σ_i hinge of each task.
    objective_ : float
        The sum of ``objectives_`` and of the penalty.
    gap_ : float
        Relative certificate, never below the truth. For p = 1 the distance of ``objective_`` to its optimum; for p < 1
        that of the convex problem which touches the objective here and lies above it elsewhere, over the kernels in
        use: zero at a stationary point.
    history_ : array of shape (n_points,)
        Objectives on the way, falling; for p < 1 the first is that of the solution of p = 1.
    n_sweeps_, n_iter_ : int
        Passes over the tasks.
    classes_ : array of shape (n_classes,), or list of arrays
    task_names_, kernel_names_ : lists of str
    support_ : array of shape (n_support,)
        Training samples that support some task.
    support_vectors_ : array of shape (n_support, n_features)
    dual_coef_ : array of shape (n_tasks, n_support)
    intercept_ : array of shape (n_tasks,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines.sparse_mtl import SparseMTL
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SparseMTL(q=1.5, C=10).fit(X, y)
    >>> clf.theta_.shape, clf.norms_.shape
    ((3, 11), (3, 11))
    """

    def __init__(
        self,
        p: float = 1.0,
        q: float = 2.0,
        C: float = 1.0,
        kernels: Any = "default",
        task_column: Any = None,
        tol: float = 1e-3,
        max_iter: int = 300,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.p = p
        self.q = q
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        check_number("p", self.p, lambda v: 0 < v <= 1, "greater than 0 and at most 1")
        check_number("q", self.q, lambda v: 1 <= v <= 2, "between 1 and 2")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        check_count("max_iter", self.max_iter)
        q = 2.0 if len(tasks) == 1 else float(self.q)  # one task: all q are the same
        gram = GramBlocks(bank, data, [task.rows for task in tasks], effective_jobs(self.n_jobs), shared=q == 2)
        gram.check_positive_semidefinite()
        machine = SVCTasks(gram, np.concatenate([task.signs for task in tasks]), np.concatenate(bounds))
        with Progress(1, self.tol, self.verbose) as progress:
            found = Search(machine, q, self.tol, self.max_iter, progress.report).solve(float(self.p))
        if found.gap > self.tol:
            self._warn(found.gap, machine.n_sweeps)
        self._keep(found, machine.n_sweeps)
        # a task without kernels is its intercept, and needs no support vectors
        used = np.repeat((self.theta_ > 0).any(axis=1), np.diff(gram.layout.ptr))
        return np.where(used, found.point.sweep.dual, 0.0), found.point.sweep.intercepts

    def _warn(self, gap: float, n_sweeps: int) -> None:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"SparseMTL stopped after {n_sweeps} sweeps (max_iter={self.max_iter}), gap {gap:.1e} > tol={self.tol:g}. "
            "Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _keep(self, found: Found, n_sweeps: int) -> None:
        point = found.point
        self.theta_ = np.array(np.broadcast_to(point.sweep.theta, point.norms.shape))
        self.norms_ = point.norms
        self.objectives_ = point.losses
        self.objective_ = found.history[-1]
        self.gap_ = found.gap
        self.history_ = np.array(found.history)
        self.n_sweeps_ = self.n_iter_ = n_sweeps
