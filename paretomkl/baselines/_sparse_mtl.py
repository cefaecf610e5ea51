"""Sparse multi-task learning: all tasks choose their kernels together, by a mixed norm over kernels and tasks.

    minimise  Σ_t Σ_i C_i hinge(y_i, f^t(x_i)) + Σ_m u_m^p,    u_m = (Σ_t ‖f_m^t‖^q)^(1/q),    f^t = Σ_m f_m^t + b_t

with 0 < p ≤ 1 ≤ q ≤ 2, where the norm of f_m^t is that of the space of kernel m. A concave power is the minimum of its
tangents, so

    u_m^p       = min over c of     c u_m + (terms in c),                          at c_m = p u_m^(p−1),
    c_m u_m     = min over θ_m of   ½ Σ_t ‖f_m^t‖² / θ_tm + ½ c_m² ‖θ_m‖_r,        r = q/(2−q),
                                    at θ_tm = u_m^(q−1) ‖f_m^t‖^(2−q) / c_m.

With c fixed, this is a convex problem in the kernel weights θ (n_tasks, n_kernels) of ordinary SVMs,

    minimise over θ ≥ 0    Σ_t J_t(θ^t) + ½ Σ_m c_m² ‖θ_m‖_r,

whose dual is to maximise Σ_t α_t'1 where ‖(G_m^t(α_t))_t‖_{r*} ≤ c_m² for every m. Each solved task gives a cut J_t(θ)
≥ a − ½ θ'G, so the problem is solved by cutting planes. p = 1 has c = 1; for p < 1 the slopes c follow the solution.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data.reading import Training
from .._fitting.models import TaskModel
from .._fitting.tracing import fit_bank, make_gram, make_model
from .._learn.base import KernelTaskClassifier
from .._tools.checks import check_count, check_number
from .._tools.running import Progress, effective_jobs
from .._tools.typing import Array, ClassWeight
from ..kernels._kernels import KernelLike
from ..machines import SVCTasks
from ..solvers._base import TASK_SHARE, Run
from ..solvers._cut_pool import CutStore
from ..sweep import Sweep
from ..weight_sets import _power_norm as power_norm
from ._interior_point import InteriorPoint

MASTER_RTOL = 0.1  # accuracy of the master problem, relative to tol
MASTER_STEPS = 80  # Newton steps of one master problem
CENTRING = 0.1  # how far from the best point, towards equal weights, a master starts
CAUTION = 0.3  # how small the slacks may get relative to the error of the curved equations
RIDGE = 1e-13  # added to the diagonal of second derivatives, which are numerically singular for equal kernels
NO_KERNEL = 1e-30  # a smaller u_m, relative to the largest, counts as zero
ABSENT = 0.01  # a weight smaller than this part of its multiplier, both relative, counts as zero


@dataclass(frozen=True)
class MixedNorm:
    """The penalty Σ_m u_m^p, and quantities that follow from it."""

    p: float
    q: float

    @property
    def shared(self) -> bool:
        """Whether the weights θ_tm of a kernel are the same for all tasks."""
        return self.q == 2

    @property
    def power(self) -> float:
        """ρ = 1/r = (2−q)/q, the exponent of x in θ = N^(1−ρ) x^ρ, N = Σ_t x_t, for which ‖θ‖_r = N."""
        return 1.0 if self.shared else (2 - self.q) / self.q

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
        """θ of the tangent: (n_kernels,) if the tasks share it, else (n_tasks, n_kernels)."""
        u = self.of_kernels(norms)
        return (u if self.shared else u ** (self.q - 1) * norms ** (2 - self.q)) / self.slopes(u)

    def coordinates(self, theta: Array) -> Array:
        """x of θ (n_tasks or 1, n_kernels)."""
        N = power_norm(theta.T, 1 / self.power)
        return N * (theta / np.where(N > 0, N, 1.0)) ** (1 / self.power)


@dataclass(frozen=True)
class TaskFunctions:
    """Functions f_m^t: the sweep they come from, their norms (n_tasks, n_kernels), u (n_kernels,) and losses."""

    sweep: Sweep
    norms: Array
    u: Array
    losses: Array

    def value(self, p: float) -> float:
        return float(self.losses.sum() + np.sum(self.u**p))


@dataclass
class CuttingPlanes:
    """Solves the convex problem with p = 1 by cutting planes and, from its solution, that with p < 1."""

    machine: SVCTasks
    q: float
    tol: float
    max_iter: int
    run: Run

    def __post_init__(self) -> None:
        self.cuts = CutStore(self.machine.n_tasks, self.machine.n_kernels)

    def solve(self, p: float) -> tuple[TaskFunctions, float, list[float]]:
        """The best point, its relative gap, and the objectives on the way to it."""
        norm, M = MixedNorm(1.0, self.q), self.machine.n_kernels
        zero = self.sweep(norm, np.zeros(M if norm.shared else (self.machine.n_tasks, M)))
        # at θ = 0, α is as large as allowed, and its forms are squared distances between the class means, which give
        # the scale of each kernel
        apart = norm.of_forms(zero.sweep.forms / (zero.sweep.linear[:, None] / 2) ** 2)
        theta = zero.sweep.theta + 1 / (M * np.sqrt(np.maximum(apart, 1e-6 * apart.max() + 1e-300)))
        first = self.sweep(norm, theta)
        point, gap, history = self.descend(norm, first if first.value(1.0) < zero.value(1.0) else zero)
        if p < 1:
            point, gap, history = self.descend(MixedNorm(p, self.q), point)
            if zero.value(p) < history[-1]:  # f = 0 is a local minimum for every p < 1
                return zero, 0.0, [*history, zero.value(p)]
        return point, gap, history

    def sweep(
        self, norm: MixedNorm, theta: Array, near: TaskFunctions | None = None, precision: float = 1.0
    ) -> TaskFunctions:
        """Solve the tasks at θ, starting from a nearby point."""
        warm = near.sweep.warm if near else None
        sweep = self.run.sweep(self.machine, theta, warm, precision * TASK_SHARE * self.tol)
        self.cuts.add(sweep)
        norms = theta * np.sqrt(sweep.forms)
        # the primal objective of an SVM without its term ½ Σ_m ‖f_m^t‖² / θ_tm
        losses = np.maximum(sweep.upper - 0.5 * (theta * sweep.forms).sum(axis=1), 0.0)
        return TaskFunctions(sweep, norms, norm.of_kernels(norms), losses)

    def descend(self, norm: MixedNorm, best: TaskFunctions) -> tuple[TaskFunctions, float, list[float]]:
        """Lower the objective from a point until the convex problem that touches it has a gap of at most tol.

        For p < 1 that problem majorises the objective, Σ_m u_m^p ≤ Σ_m c_m u_m + (1 − p) Σ_m (u_m at best)^p, and it
        changes at every better point; a kernel at zero has c = ∞ and stays there.
        """
        p, history = norm.p, [best.value(norm.p)]
        lower, gap, precision = -np.inf, 1.0, 1.0
        theta = norm.weights(best.norms)  # the minimiser of the tangent is nearby and never worse
        while True:
            point = self.sweep(norm, theta, best, precision)
            lowered = point.value(p) < history[-1]
            if lowered:
                best = point
                history.append(point.value(p))
            value, c = history[-1], norm.slopes(best.u)
            if not np.isfinite(c).any():
                return best, 0.0, history
            rtol = precision * max(MASTER_RTOL * self.tol, 0.02 * gap)
            theta, bound = self.minimize_over_cuts(norm, c, best, value, rtol)
            if p < 1 and lowered:
                lower = -np.inf  # a new point means a new problem
            raised = bound > lower
            lower = max(lower, bound)
            gap = max(0.0, 1 - (lower + (1 - p) * float(np.sum(best.u**p))) / value)
            self.run.note(p, gap)
            if gap <= self.tol or self.run.n_sweeps >= self.max_iter or precision < 1e-6:
                return best, gap, history
            if not (lowered or raised):  # no progress at this accuracy
                precision *= 0.1
                theta = norm.weights(best.norms)

    def minimize_over_cuts(
        self, norm: MixedNorm, c: Array, start: TaskFunctions, unit: float, rtol: float
    ) -> tuple[Array, float]:
        """The θ that minimises Σ_t z_t + ½ Σ_m c_m² ‖θ_m‖_r over the cuts, and a lower bound of the convex problem.

        Kernels with c = ∞ are skipped. In θ̃ = c² θ / unit the penalty has c = 1 and the objective is about one.
        """
        cuts, kernels = self.cuts, np.isfinite(c)
        scale = unit / c[kernels] ** 2
        x = norm.coordinates(np.atleast_2d(norm.weights(start.norms)[..., kernels] / scale))
        x = (1 - CENTRING) * x + CENTRING / x.size
        master = MixedNormMaster(cuts.linear / unit, cuts.slopes[:, :, kernels] * (scale / unit), norm, x)
        master.solve(rtol, MASTER_STEPS)
        theta = np.zeros((len(x), len(c)))
        theta[:, kernels] = master.weights() * scale
        return theta[0] if norm.shared else theta, unit * master.lower


class MixedNormMaster(InteriorPoint):
    """The problem over cuts a (n_cuts, n_tasks) and h (n_cuts, n_tasks, n_kernels), for c = 1.

        minimise over x, z ≥ 0     Σ_t z_t + ½ Σ_tm x_tm    where   w_kt = z_t − a_kt + h_kt'θ^t(x) ≥ 0
        θ_tm = N_m^(1−ρ) x_tm^ρ,   N_m = Σ_t x_tm

    θ is concave in x, so the problem is convex, and its objective is linear however small ρ is. If the tasks share
    their weights, x has one row and θ = x. The slacks w satisfy their equations only at the end. Multipliers: μ of the
    cuts, ν of x ≥ 0. The unknowns are the relative steps s = dθ/θ = ρ ξ + (1−ρ) ζ, with ξ = dx/x and, for φ = x/N,
    ζ = dN/N = Σ_t φ_t ξ_t = Σ_t φ_t s_t. The start x (n_tasks or 1, n_kernels) is positive; the optimum is about one.
    """

    def __init__(self, a: Array, h: Array, norm: MixedNorm, x: Array):
        self.a, self.h, self.norm, self.rho = a, h, norm, norm.power
        self.follow(x)
        self.z = self.heights() + 0.1 / a.shape[1]
        w = self.z - a + self.fall
        mu = 1 / (w * (1 / w).sum(axis=0))
        self.dual, self.slack = np.append(mu, np.mean(mu * w) / x), np.append(w, x)

    def parts(self, pairs: Array) -> tuple[Array, Array]:
        """Split the pairs into those of the cuts and those of x."""
        return pairs[: self.a.size].reshape(self.a.shape), pairs[self.a.size :].reshape(-1, self.h.shape[2])

    def follow(self, x: Array) -> None:
        """Update N, θ and h'θ for x."""
        self.N = x.sum(axis=0)
        self.theta = self.N ** (1 - self.rho) * x**self.rho
        self.fall = (self.h * self.theta).sum(axis=2)

    def heights(self) -> Array:
        """The highest cut of each task at θ."""
        return (self.a - self.fall).max(axis=0)

    def note_bounds(self) -> None:
        (mu, nu), (_, x) = self.parts(self.dual), self.parts(self.slack)
        value = float(self.heights().sum() + 0.5 * x.sum())
        if value < self.upper:
            self.upper, self.best_theta, self.best = value, self.theta, (x, x * nu)
        mu = mu / mu.sum(axis=0)
        # Forms are convex in α, so a mixture of cuts bounds the forms of the mixed α. They are also quadratic, so α
        # becomes feasible if it shrinks by the root of their excess.
        bound = float((mu * self.a).sum() / np.sqrt(max(1.0, self.norm.of_forms(2 * mix(mu, self.h)).max())))
        self.lower = max(self.lower, bound)

    def weights(self) -> Array:
        """The best θ, zero where the limit of x_tm is zero, or of N_m for 1 < q < 2, where tasks drop kernels together.

        x goes to zero where its multiplier does not: x ν is what remains of the barrier.
        """
        size, rest = self.best if self.rho == 1 else (part.sum(axis=0) for part in self.best)
        return np.where(size**2 > ABSENT * self.upper * rest, self.best_theta, 0.0)

    def factor(self) -> None:
        """The second derivatives in s: one block per task from the cuts, and for each kernel, with b from the curvature
        of θ and n from the barrier,

            ρ² Σ_t b_t (ξ_t − ζ)² + n_t ξ_t² = Σ_t (b_t + n_t) s_t² − 2 ζ g's + κ ζ²,     ζ = φ's
            g = b + (1−ρ) n,    κ = Σ_t b_t + (1−ρ)² n_t

        which is diagonal except for a part of rank two, from φ and g.
        """
        rho, (mu, nu), (w, x) = self.rho, self.parts(self.dual), self.parts(self.slack)
        self.miss = self.z - self.a + self.fall - w
        self.stiff = mu / w
        self.centre = mix(self.stiff, self.h) / self.stiff.sum(axis=0)[:, None]
        rows = (np.sqrt(self.stiff)[:, :, None] * (self.h - self.centre) * self.theta).transpose(1, 0, 2)
        if self.norm.shared:
            rows = rows.reshape(1, -1, rows.shape[2])
        blocks = rows.transpose(0, 2, 1) @ rows
        bend = (1 / rho - 1) * self.theta * mix(mu, self.h) if rho < 1 else 0.0
        barrier = nu * x / rho**2
        each = np.arange(blocks.shape[2])
        blocks[:, each, each] *= 1 + RIDGE
        blocks[:, each, each] += bend + barrier
        self.inverse = np.linalg.inv(blocks)
        self.phi = x / self.N
        if rho < 1:
            self.ends = np.stack([self.phi, bend + (1 - rho) * barrier])
            self.coupling = np.einsum("itm,tmn,jtn->imjn", self.ends, self.inverse, self.ends)
            self.coupling[(0, 1), :, (1, 0), :] -= np.eye(len(each))
            self.coupling[1, each, 1, each] -= (bend + (1 - rho) ** 2 * barrier).sum(axis=0)

    def head(self, goal: Array, tau: float) -> None:
        rho, (w, x) = self.rho, self.parts(self.slack)
        full_w, full_x = self.parts(goal + self.dual * self.slack)
        push = full_w / w - self.stiff * self.miss
        excess = push.sum(axis=0) - 1
        pull = self.theta * (mix(push, self.h) - excess[:, None] * self.centre)
        if self.norm.shared:
            pull = pull.sum(axis=0, keepdims=True)
        s = times(self.inverse, pull - x / 2 + (full_x - (1 - rho) * self.phi * full_x.sum(axis=0)) / rho)
        if rho < 1:
            size = x.shape[1]
            ends = np.einsum("itm,tm->im", self.ends, s).ravel()
            ends = np.linalg.solve(self.coupling.reshape(2 * size, 2 * size), ends).reshape(2, 1, size)
            s = s - times(self.inverse, (self.ends * ends).sum(axis=0))
        xi = (s - (1 - rho) * (self.phi * s).sum(axis=0)) / rho
        d_theta = self.theta * s
        self.d_z = excess / self.stiff.sum(axis=0) - (self.centre * d_theta).sum(axis=1)
        d_w = self.miss + self.d_z + (self.h * d_theta).sum(axis=2)
        self.d_slack = np.append(d_w, x * xi)
        self.d_dual = (goal - self.dual * self.d_slack) / self.slack

    def target(self, step: float) -> float:
        # the slacks must not vanish before the curved equations hold
        mu, _ = self.parts(self.dual)
        return max(super().target(step), CAUTION * (mu * np.abs(self.miss)).sum() / len(self.dual))

    def move(self, step: float) -> None:
        super().move(step)
        self.z = self.z + step * self.d_z
        self.follow(self.parts(self.slack)[1])


def mix(weights: Array, cuts: Array) -> Array:
    """Σ_k weights_kt cuts_ktm."""
    return np.einsum("kt,ktm->tm", weights, cuts)


def times(matrices: Array, vectors: Array) -> Array:
    """One matrix-vector product for each task."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


class SparseMTL(KernelTaskClassifier):
    """Support vector classifiers that choose their kernels together, by a mixed norm over kernels and tasks.

        minimise   C Σ_t Σ_i hinge(y_i, f^t(x_i)) + Σ_m (Σ_t ‖f_m^t‖^q)^(p/q),      f^t = Σ_m f_m^t + b_t

    (Rakotomamonjy, Flamary, Gasso, Canu: "ℓp-ℓq penalty for sparse linear and sparse multiple kernel multitask
    learning", IEEE Transactions on Neural Networks 22, 2011.) Each task has its own combination of kernels; the norm
    makes all tasks use the same few kernels. With p = q = 1 the tasks are independent.

    Parameters
    ----------
    p : float, default=1.0
        Exponent over the kernels, 0 < p ≤ 1. With 1 the problem is convex; a smaller p gives fewer kernels and a local
        minimum, reached from the solution at p = 1.
    q : float, default=2.0
        Exponent over the tasks, 1 ≤ q ≤ 2: 2 gives all tasks the same kernel weights, 1 makes them independent.
    C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`.
    max_iter : int, default=300
        Maximum number of passes over the tasks.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Kernel weights for which the SVM of each task has the solution f^t.
    norms_ : array of shape (n_tasks, n_kernels)
        ‖f_m^t‖, zero for a kernel that is not used.
    objectives_ : array of shape (n_tasks,)
        C Σ_i hinge of each task.
    objective_ : float
        The sum of ``objectives_`` and the penalty.
    gap_ : float
        Certified relative gap, never below the true gap. For p = 1 it is the distance of ``objective_`` from its
        optimum. For p < 1 it is the gap of a convex problem over the kernels in use that touches the objective here and
        lies above it elsewhere; it is zero at a stationary point.
    history_ : array of shape (n_points,)
        The decreasing objectives during the search; for p < 1 the first one is that of the solution at p = 1.
    n_sweeps_, classes_, task_names_, kernel_names_, support_, support_vectors_, dual_coef_, intercept_
        As for :class:`~paretomkl.ParetoMKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import SparseMTL
    >>> clf = SparseMTL(q=1.5, C=10).fit(*load_iris(return_X_y=True))
    >>> clf.theta_.shape, clf.norms_.shape
    ((3, 13), (3, 13))
    """

    norms_: Array
    history_: Array

    def __init__(
        self,
        p: float = 1.0,
        q: float = 2.0,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 300,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state)
        self.p = p
        self.q = q
        self.max_iter = max_iter

    def _learn(self, training: Training) -> TaskModel:
        check_number("p", self.p, lambda v: 0 < v <= 1, "greater than 0 and at most 1")
        check_number("q", self.q, lambda v: 1 <= v <= 2, "between 1 and 2")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        check_count("max_iter", self.max_iter)
        tasks, bank = training.tasks, fit_bank(self.kernels, training)
        q = 2.0 if len(tasks) == 1 else float(self.q)  # with one task q has no effect
        bounds, jobs = training.bounds(self._cost()), effective_jobs(self.n_jobs)
        gram = make_gram(bank, training.samples.data, tasks, jobs, shared=q == 2)
        machine = SVCTasks(gram, np.concatenate([task.targets for task in tasks]), np.concatenate(bounds))
        with Progress(1, self.tol, self.verbose) as progress:
            run = Run(progress.report)
            point, gap, history = CuttingPlanes(machine, q, self.tol, self.max_iter, run).solve(float(self.p))
        if gap > self.tol:
            warnings.warn(
                f"SparseMTL stopped after {run.n_sweeps} sweeps (max_iter={self.max_iter}), gap {gap:.1e} > "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        theta = np.array(np.broadcast_to(point.sweep.theta, point.norms.shape))
        self.norms_ = point.norms
        self.history_ = np.array(history)
        self._keep(point.losses, gap, run.n_sweeps, history[-1])
        # a task without kernels is just an intercept and needs no support vectors
        decisions = machine.decisions(point.sweep)
        kept = [dual * used for dual, used in zip(decisions.dual, theta.max(axis=1) > 0, strict=True)]
        return make_model(bank, training, theta, decisions._replace(dual=kept))
