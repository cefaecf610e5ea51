"""Partially shared kernels: each task adds something of its own to the kernel of all (Tang, Chen, Ye 2009).

    minimise over ζ, γ ≥ 0    (1/T) Σ_t J_t(ζ + γ^t)
    subject to                Σ_m (ζ_m + γ_m^t) = 1 for every task t,     Σ_tm γ_m^t ≤ β

The equations give all tasks the same share Σ_m γ_m^t = 1 − Σ_m ζ_m, and none is better off with less of it: what ζ
can do γ can do. So the share is g = min(1, β/T), and the problem is one over a product of simplexes, ‖ζ‖_1 = 1 − g and
‖γ^t‖_1 = g for every t.

Every solved task gives a cut J_t(θ) ≥ a − ½ θ'G, and over the cuts the problem is a linear programme. Its solutions are
corners, far from each other; so the tasks are solved on the way from the best weights so far to the corner (in-out
separation, Ben-Ameur and Neto 2007), further along it the better the last step was.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._cuts import CutStore
from .._parallel import effective_jobs
from .._typing import AnyArray, Array
from .._validation import check_number
from ..estimators import KernelTaskClassifier
from ..gram import GramBlocks
from ..kernels import FittedBank
from ..machines.svc import SVCTasks, Sweep
from ..progress import Progress
from ..solvers import Solver
from ..tasks import Task
from ..weight_sets import LsBall

WARM_UP = 3  # sweeps before the first linear programme, a block-coordinate step apart
PATIENCE = 6  # programmes a cut may sit out before it is dropped
ACCURATE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the least HiGHS takes
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
        """The adjoint of expand: from one row for each task to one row for each part."""
        return np.vstack([terms.sum(axis=0), terms])

    def minimize_ratio(self, parts: Array, forms: Array) -> Array:
        """A step of block-coordinate descent, as if ζ and γ^t weighed different kernels: ‖f‖² = ζ_m² G or γ_m² G."""
        shares = [SIMPLEX.minimize_ratio(w) for w in parts**2 * self.pull_back(forms)]
        return self.totals[:, None] * np.array(shares)

    def lower_bound(self, linear: Array, slopes: Array) -> float:
        """min over all weights of Σ_t (linear_t − θ^t'slopes_t), slopes ≥ 0 of shape (n_tasks, n_kernels)."""
        return float(linear.sum() - self.totals @ SIMPLEX.support(self.pull_back(slopes)))


class Cuts(CutStore):
    """Cuts, and the linear programme over them."""

    def minimize_mean(self, sharing: PartialSharing, unit: float) -> tuple[Array | None, float]:
        """Parts that minimise the mean over the tasks of their highest cut, and a lower bound of all such means.

        A linear programme in the parts and z ≥ 0 (J_t is not negative), in units of ``unit``:

            minimise  (1/T) Σ_t z_t    where    z_t + ζ'h_k + γ^t'h_k ≥ a_k   for the cuts k of task t

        The bound is made of its multipliers and holds however inexact they are. No parts are returned where the
        programme could not be solved.
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
        # they sum to 1/T at most in each task: what is missing belongs to z ≥ 0
        multipliers *= np.minimum(1, 1 / (T * np.maximum(multipliers.sum(axis=0), 1e-300)))
        slopes = np.einsum("kt,ktm->tm", multipliers, self.slopes)
        corner = np.maximum(found.x[: M * (1 + T)].reshape(1 + T, M), 0)
        corner *= (sharing.totals / np.maximum(corner.sum(axis=1), 1e-300))[:, None]  # feasible to the last digit
        return corner, sharing.lower_bound(multipliers * self.linear, slopes)


@dataclass
class InOut(Solver):
    """Cutting planes for partially shared kernels, from the best weights so far towards the corner of the cuts."""

    def minimize(self, tasks: SVCTasks, sharing: PartialSharing) -> tuple[Sweep, Array, float]:
        """The best sweep, its parts, and its relative gap."""
        cuts = Cuts(sharing.n_tasks, sharing.n_kernels)
        parts = best_parts = sharing.start()
        best = tasks.sweep(sharing.expand(parts), rtol=self.task_rtol())
        sweep, lower, length = best, 0.0, 0.5
        while True:
            cuts.add(sweep)
            better = sweep.upper.mean() < best.upper.mean()
            if better:
                best, best_parts = sweep, parts
            if tasks.n_sweeps < WARM_UP:
                parts = sharing.minimize_ratio(parts, sweep.forms)
            else:
                corner, bound = cuts.minimize_mean(sharing, best.upper.mean())
                lower = max(lower, bound)
                gap = max(0.0, 1 - lower / best.upper.mean())
                if self.report is not None:
                    self.report(1.0, tasks.n_sweeps, gap)
                if gap <= self.tol:
                    return best, best_parts, gap
                if corner is None or tasks.n_sweeps >= self.max_iter:
                    warnings.warn(
                        f"Partially shared kernels stopped after {tasks.n_sweeps} sweeps, gap {gap:.1e} > "
                        f"tol={self.tol:g}. Raise tol.",
                        ConvergenceWarning,
                        stacklevel=5,
                    )
                    return best, best_parts, gap
                if tasks.n_sweeps > WARM_UP:
                    length = min(1.0, 1.5 * length) if better else max(0.1, 0.5 * length)
                parts = best_parts + length * (corner - best_parts)
            sweep = tasks.sweep(sharing.expand(parts), best.dual, self.task_rtol())


class PartiallySharedMKL(KernelTaskClassifier):
    """Kernels that are partly shared by the tasks and partly their own (Tang et al. 2009).

        minimise over ζ, γ ≥ 0    (1/T) Σ_t J_t(ζ + γ^t)
        subject to                Σ_m (ζ_m + γ_m^t) = 1 for every task t,     Σ_tm γ_m^t ≤ β

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. β = 0 shares one kernel among all tasks,
    which is :class:`~paretomkl.ParetoMKLClassifier` with p = 1 and s = 1; β ≥ T shares nothing, which is
    :class:`IndependentMKL` with s = 1. The equations give every task the same share β/T of weights of its own.

    Parameters
    ----------
    beta : float, default=1.0
        Sum of all weights that are not shared, at least 0; only values up to the number of tasks make a difference.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`~paretomkl.KernelBank`.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    tol : float, default=1e-3
        Relative gap at which to stop.
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
        Kernel weights ζ + γ^t of each task.
    shared_ : array of shape (n_kernels,)
        ζ.
    specific_ : array of shape (n_tasks, n_kernels)
        γ.
    objectives_ : array of shape (n_tasks,)
        J_t at θ^t.
    objective_ : float
        Mean of ``objectives_``.
    gap_ : float
        Relative certificate of the mean, never below the truth.
    n_sweeps_ : int
        Passes over the tasks.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import PartiallySharedMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PartiallySharedMKL(beta=0.6, C=10).fit(X, y)
    >>> clf.shared_.sum().round(6), clf.specific_.sum(axis=1).round(6)
    (np.float64(0.8), array([0.2, 0.2, 0.2]))
    """

    def __init__(
        self,
        beta: float = 1.0,
        C: float = 1.0,
        kernels: Any = "default",
        task_column: Any = None,
        tol: float = 1e-3,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.beta = beta
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        check_number("beta", self.beta, lambda v: v >= 0, "at least 0")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        gram = GramBlocks(bank, data, [task.rows for task in tasks], effective_jobs(self.n_jobs), shared=False)
        gram.check_positive_semidefinite()
        machine = SVCTasks(gram, np.concatenate([task.signs for task in tasks]), np.concatenate(bounds))
        sharing = PartialSharing(len(tasks), bank.n_kernels, min(1.0, self.beta / len(tasks)))
        with Progress(1, self.tol, self.verbose) as progress:
            best, parts, gap = InOut(tol=self.tol, report=progress.report).minimize(machine, sharing)
        self.theta_ = best.theta
        self.shared_, self.specific_ = parts[0], parts[1:]
        self.objectives_ = best.lower
        self.objective_ = float(best.lower.mean())
        self.gap_ = gap
        self.n_sweeps_ = machine.n_sweeps
        return best.dual, best.intercepts
