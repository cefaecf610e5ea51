"""Partially shared kernels: each task adds its own part to the kernel that all tasks share (Tang, Chen, Ye 2009).

The equations of :class:`PartiallySharedMKL` give all tasks the same share Σ_m γ_m^t = 1 − Σ_m ζ_m. A smaller share
never helps, because γ can do what ζ can do. So the share is g = min(1, β/T), and the problem is over a product of
simplexes: ‖ζ‖_1 = 1 − g and ‖γ^t‖_1 = g for every t.

Every solved task gives a cut J_t(θ) ≥ a − ½ θ'G, and over the cuts the problem is a linear programme. Its solutions are
corners, far from each other. So the tasks are solved at a point between the best weights so far and the corner (in-out
separation, Ben-Ameur and Neto 2007); the point is nearer to the corner if the last step was an improvement.
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
from .._tools.checks import check_number
from .._tools.running import Progress, effective_jobs
from .._tools.typing import Array, ClassWeight
from ..kernels._kernels import KernelLike
from ..machines import SVCTasks
from ..solvers._base import TASK_SHARE, Run
from ..solvers._cut_pool import CutStore
from ..sweep import Sweep
from ..weight_sets import LsBall

PATIENCE = 6  # drop a cut after this many programmes without it
ACCURATE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the smallest HiGHS accepts
SIMPLEX = LsBall(1.0)


@dataclass(frozen=True)
class PartialSharing:
    """Kernel weights θ^t = ζ + γ^t of T tasks, Σ_m ζ_m = 1 − share and Σ_m γ_m^t = share.

    ``parts`` (n_tasks + 1, n_kernels) holds ζ in its first row and γ^t in the others.
    """

    n_tasks: int
    n_kernels: int
    share: float

    @property
    def totals(self) -> Array:
        """Sums of the rows of ``parts``."""
        return np.array([1 - self.share, *[self.share] * self.n_tasks])

    def start(self) -> Array:
        return np.outer(self.totals, SIMPLEX.start(self.n_kernels))

    def expand(self, parts: Array) -> Array:
        """θ (n_tasks, n_kernels)."""
        return parts[0] + parts[1:]

    def pull_back(self, terms: Array) -> Array:
        """The adjoint of expand: from one row per task to one row per part."""
        return np.vstack([terms.sum(axis=0), terms])

    def lower_bound(self, linear: Array, slopes: Array) -> float:
        """min over all weights of Σ_t (linear_t − θ^t'slopes_t), slopes ≥ 0 of shape (n_tasks, n_kernels)."""
        return float(linear.sum() - self.totals @ SIMPLEX.support(self.pull_back(slopes)))


class Cuts(CutStore):
    """The cuts of all sweeps, and the linear programme over them."""

    def minimize_mean(self, sharing: PartialSharing, unit: float) -> tuple[Array | None, float]:
        """The parts that minimise the mean of the tasks' highest cuts, and a lower bound of that mean.

        A linear programme in the parts and z ≥ 0 (J_t is not negative), in units of ``unit``:

            minimise  (1/T) Σ_t z_t    where    z_t + ζ'h_k + γ^t'h_k ≥ a_k   for the cuts k of task t

        The bound comes from its multipliers and is valid even if they are inexact. The parts are None if the programme
        could not be solved.
        """
        from scipy.optimize import linprog
        from scipy.sparse import csr_matrix, hstack, identity, kron

        T, M = sharing.n_tasks, sharing.n_kernels
        row, task = np.nonzero(self.live[1:])
        row += 1  # the constant cut z ≥ 0 is a bound
        a, h = self.linear[row, task] / unit, self.slopes[row, task] / unit
        n = len(a)
        place = [np.tile(np.arange(M), (n, 1)), M * (1 + task[:, None]) + np.arange(M), M * (1 + T) + task[:, None]]
        entries = np.hstack([h, h, np.ones((n, 1))])
        rows = np.arange(n + 1) * (2 * M + 1)
        height = csr_matrix((entries.ravel(), np.hstack(place).ravel(), rows), shape=(n, M * (1 + T) + T))
        total = hstack([kron(identity(T + 1), np.ones((1, M))), csr_matrix((T + 1, T))], format="csr")
        cost = np.concatenate([np.zeros(M * (1 + T)), np.full(T, 1 / T)])
        found = linprog(cost, -height, -a, total, sharing.totals, method="highs", options=ACCURATE)
        if found.x is None:
            return None, 0.0
        multipliers = np.zeros_like(self.linear)
        multipliers[row, task] = np.maximum(-found.ineqlin.marginals, 0)
        self.note_use(multipliers > 0, PATIENCE)
        # in each task they sum to at most 1/T; the rest belongs to z ≥ 0
        multipliers *= np.minimum(1, 1 / (T * np.maximum(multipliers.sum(axis=0), 1e-300)))
        slopes = np.einsum("kt,ktm->tm", multipliers, self.slopes)
        corner = np.maximum(found.x[: M * (1 + T)].reshape(1 + T, M), 0)
        corner *= (sharing.totals / np.maximum(corner.sum(axis=1), 1e-300))[:, None]  # exactly feasible
        return corner, sharing.lower_bound(multipliers * self.linear, slopes)


def minimize_in_out(
    machine: SVCTasks, sharing: PartialSharing, run: Run, tol: float, max_iter: int = 200
) -> tuple[Sweep, Array, float]:
    """Cutting planes between the best weights and the corner of the cuts: the best sweep, its parts and gap."""
    rtol = TASK_SHARE * tol
    cuts = Cuts(sharing.n_tasks, sharing.n_kernels)
    parts = best_parts = sharing.start()
    best = run.sweep(machine, sharing.expand(parts), None, rtol)
    sweep, lower, length = best, 0.0, 0.5
    while True:
        cuts.add(sweep)
        better = sweep.upper.mean() < best.upper.mean()
        if better:
            best, best_parts = sweep, parts
        corner, bound = cuts.minimize_mean(sharing, best.upper.mean())
        lower = max(lower, bound)
        gap = max(0.0, 1 - lower / best.upper.mean())
        run.note(1.0, gap)
        if gap <= tol:
            return best, best_parts, gap
        if corner is None or run.n_sweeps >= max_iter:
            warnings.warn(
                f"PartiallySharedMKL stopped after {run.n_sweeps} sweeps, gap {gap:.1e} > tol={tol:g}. Raise tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
            return best, best_parts, gap
        if run.n_sweeps > 1:
            length = min(1.0, 1.5 * length) if better else max(0.1, 0.5 * length)
        parts = best_parts + length * (corner - best_parts)
        sweep = run.sweep(machine, sharing.expand(parts), best.warm, rtol)


class PartiallySharedMKL(KernelTaskClassifier):
    """Classifiers whose kernels are partly shared by the tasks and partly their own (Tang et al. 2009).

        minimise over ζ, γ ≥ 0    (1/T) Σ_t J_t(ζ + γ^t)
        subject to                Σ_m (ζ_m + γ_m^t) = 1 for every task t,     Σ_tm γ_m^t ≤ β

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. With β = 0 all tasks share one kernel, which
    is :class:`~paretomkl.ParetoMKLClassifier` with p = 1 and s = 1; with β ≥ T they share nothing, which is
    :class:`IndependentMKL` with s = 1. The equations give every task the same share β/T of its own weights.

    Parameters
    ----------
    beta : float, default=1.0
        Sum of all weights that are not shared, at least 0; values above the number of tasks have no further effect.
    C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Kernel weights ζ + γ^t of each task.
    shared_, specific_ : arrays of shape (n_kernels,) and (n_tasks, n_kernels)
        ζ and γ.
    objectives_, objective_
        J_t at θ^t (n_tasks,), and their mean.
    gap_, n_sweeps_
        As in :class:`~paretomkl.ParetoMKLClassifier`; the gap refers to the mean.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import PartiallySharedMKL
    >>> clf = PartiallySharedMKL(beta=0.6, C=10).fit(*load_iris(return_X_y=True))
    >>> clf.shared_.sum().round(6), clf.specific_.sum(axis=1).round(6)
    (np.float64(0.8), array([0.2, 0.2, 0.2]))
    """

    def __init__(
        self,
        beta: float = 1.0,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state)
        self.beta = beta

    def _learn(self, training: Training) -> TaskModel:
        check_number("beta", self.beta, lambda v: v >= 0, "at least 0")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        tasks, bank = training.tasks, fit_bank(self.kernels, training)
        bounds, jobs = training.bounds(self._cost()), effective_jobs(self.n_jobs)
        gram = make_gram(bank, training.samples.data, tasks, jobs, shared=False)
        machine = SVCTasks(gram, np.concatenate([task.targets for task in tasks]), np.concatenate(bounds))
        sharing = PartialSharing(len(tasks), bank.n_kernels, min(1.0, self.beta / len(tasks)))
        with Progress(1, self.tol, self.verbose) as progress:
            run = Run(progress.report)
            best, parts, gap = minimize_in_out(machine, sharing, run, self.tol)
        self.shared_, self.specific_ = parts[0], parts[1:]
        self._keep(best.lower, gap, run.n_sweeps)
        return make_model(bank, training, best.theta, machine.decisions(best))
