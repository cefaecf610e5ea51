"""Minimax multi-task learning: linear classifiers judged by their worst tasks, tied together by a penalty.

An interior-point method solves the α-minimax problem of linear models f_t(x) = w_t'x + o_t,

    minimise over b, ξ ≥ 0, s ≥ 0, W, o     b + (1/α) Σ_t ξ_t + μ Ω(W)
    where     s_i ≥ 1 − y_i f_t(x_i)  for the samples of task t,     Σ_i c_i s_i ≤ b + ξ_t

whose dual is to maximise Σ_i β_i − μ Ω*(Z/μ), Z_t = Σ_i β_i y_i x_i, where 0 ≤ β_i ≤ q_t c_i, Σ_i β_i y_i = 0 in every
task, 0 ≤ q_t ≤ 1/α and Σ_t q_t = 1. The first ``free`` columns (one or none) of the matrices W and Z, of shape
(n_tasks, free + n_features), hold the intercepts, which are not penalised.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from .._data.reading import Training
from .._data.tasks import Task
from .._fitting.models import LinearModel
from .._learn.base import MultiTaskClassifier
from .._tools.checks import check_count, check_number
from .._tools.running import effective_jobs
from .._tools.typing import Array, ClassWeight
from ._interior_point import InteriorPoint

REFINEMENTS = 8
EXACT = 1e-10  # a direction with a smaller relative error needs no refinement
INSIDE = 1e-9  # the bound of the task weights stays this far above 1/T, so that they have an interior
FAR = 15  # divided by the number of samples: the initial products of the task pairs, thirty times those of samples

LinearTasks = tuple[Array, list[Task], list[Array], float, int]  # features, tasks, weights, cap, free


class AlphaMinimax(InteriorPoint):
    """The whole problem except its penalty.

    ``features`` starts with ``free`` columns of ones; ``weights`` are the sample weights of each task, which c_i
    normalises; ``cap`` is 1/α.

    Pairs (dual, slack): β_i and the excess margin m_i = s_i − 1 + y_i f(x_i); γ_i = q_t c_i − β_i and s_i; q_t and
    h_t = b + ξ_t − Σ_i c_i s_i; p_t = 1/α − q_t and ξ_t. All equations except that of Z hold from the start.
    """

    def __init__(self, features: Array, tasks: list[Task], weights: list[Array], cap: float, free: int):
        # a sample with zero weight would have no interior
        pairs = zip(tasks, weights, strict=True)
        parts = [(task.rows[w > 0], task.targets[w > 0], w[w > 0] / w.sum()) for task, w in pairs]
        self.rows = [features[rows] * signs[:, None] for rows, signs, _ in parts]  # y_i x_i
        self.signs, self.cost = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        sizes, T, n = [len(rows) for rows in self.rows], len(tasks), len(self.cost)
        self.starts, self.task = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(T), sizes)
        self.cap, self.free = cap, free
        self.W = self.Z = np.zeros((T, features.shape[1]))
        q = np.full(T, 1 / T)
        room = max(cap, (1 + INSIDE) / T) - q
        self.dual = np.concatenate([self.cost / (2 * T), self.cost / (2 * T), q, room])
        self.slack = np.concatenate([np.ones(n), np.full(n, 2.0), FAR / n / q, FAR / n / room])
        self.edges = [n, 2 * n, 2 * n + T]

    @abstractmethod
    def value(self, W: Array) -> float:
        """μ Ω(W)."""

    @abstractmethod
    def dual_value(self, Z: Array, total: float) -> float:
        """Largest s·total − μ Ω*(s Z/μ) over 0 ≤ s ≤ 1."""

    @abstractmethod
    def factor_newton(self, roots: list[Array]) -> None:
        """Prepare to solve with A = root' root of each task."""

    @abstractmethod
    def solve_newton(self, G: Array, aimed: bool) -> tuple[Array, Array]:
        """dW and dZ with dZ + A dW = G, dZ the change of μ ∇Ω; if aimed, with the aim of the penalty's pairs."""

    def split(self, values: Array) -> list[Array]:
        return np.split(values, self.starts[1:])

    def sum(self, values: Array) -> Array:
        """Sums over the samples of each task, of shape (T,)."""
        return np.add.reduceat(values, self.starts)

    def pull(self, values: Array) -> Array:
        """Σ_i v_i y_i x_i of each task."""
        return np.stack([v @ rows for v, rows in zip(self.split(values), self.rows, strict=True)])

    def margins(self, W: Array) -> Array:
        """y_i f_t(x_i)."""
        return np.concatenate([rows @ w for rows, w in zip(self.rows, W, strict=True)])

    def losses(self, W: Array) -> Array:
        return self.sum(self.cost * np.maximum(0, 1 - self.margins(W)))

    def objective(self, W: Array) -> float:
        """The primal objective, in which the worst tasks get as much weight as allowed."""
        left = 1 - self.cap * np.arange(len(W))
        return float(np.clip(left, 0, self.cap) @ np.sort(self.losses(W))[::-1]) + self.value(W)

    def note_bounds(self) -> None:
        value = self.objective(self.W)
        if value < self.upper:
            self.upper, self.best_W = value, self.W
        beta, q = self.feasible()
        value = self.dual_value(self.pull(beta), float(beta.sum()))
        if value > self.lower:
            self.lower, self.best_q = value, q

    def feasible(self) -> tuple[Array, Array]:
        """β and q, clipped and scaled to be feasible."""
        beta, _, q, _ = np.split(self.dual, self.edges)
        q = np.clip(q, 0, self.cap)
        beta = np.clip(beta, 0, q[self.task] * self.cost)
        if self.free:  # shrink the heavier class of each task
            total, excess = self.sum(beta), self.sum(self.signs * beta)
            share = (total - np.abs(excess)) / (total + np.abs(excess))
            beta = np.where(self.signs * excess[self.task] > 0, share[self.task] * beta, beta)
        shrink = 1 / max(1.0, q.sum())
        q, beta = shrink * q, shrink * beta
        room = self.cap - q
        return beta, q + room * np.clip((1 - q.sum()) / max(room.sum(), 1e-300), 0, 1)

    def factor(self) -> None:
        """Eliminate the unknowns of single samples and tasks.

        Newton's equations are

            dβ = e (k + g dq − y df),      e = 1/(m/β + s/γ),   g = c s/γ
            dq = give (κ − db − u'dw),     u = Σ_i e_i g_i y_i x_i
            dz = … − (X'EX + give u u') dw

        whose matrix is stored as a product root' root.
        """
        m_by_beta, s_by_gamma, h_by_q, xi_by_p = np.split(self.slack / self.dual, self.edges)
        self.e = 1 / (m_by_beta + s_by_gamma)
        self.g = self.cost * s_by_gamma
        self.give = 1 / (h_by_q + xi_by_p + self.sum(self.cost * self.g * self.e * m_by_beta))
        self.u = self.pull(self.e * self.g)
        parts = zip(self.split(np.sqrt(self.e)), self.rows, np.sqrt(self.give), self.u, strict=True)
        self.factor_newton([np.vstack([e[:, None] * rows, give * u]) for e, rows, give, u in parts])
        self.border = self.respond(np.zeros_like(self.u), 1.0, aimed=False)  # the change when b falls by one

    def respond(self, missing: Array, kappa: Array | float, aimed: bool) -> tuple[Array, Array, Array]:
        """dW, dZ and dq with b fixed, where ``missing`` is what Z lacks."""
        dW, dZ = self.solve_newton(missing + (self.give * kappa)[:, None] * self.u, aimed)
        return dW, dZ, self.give * (kappa - (self.u * dW).sum(axis=1))

    def head(self, goal: Array, tau: float) -> None:
        aims = goal / self.dual
        aim_m, aim_s, aim_h, aim_xi = np.split(aims, self.edges)
        beta, _, q, _ = np.split(self.dual, self.edges)
        ek = self.e * (aim_m - aim_s)
        kappa = self.sum(self.cost * aim_s + self.g * ek) + aim_h - aim_xi
        missing, excess, error = self.pull(beta + ek) - self.Z, float(q.sum()) - 1, np.inf
        self.dW, self.dZ, dq = np.zeros_like(self.W), np.zeros_like(self.Z), np.zeros_like(q)
        for n in range(1 + REFINEMENTS):  # refine: the Newton matrix squares the condition of its factors
            answer = self.respond(missing, 0.0 if n else kappa, aimed=n == 0)
            fall = -(answer[2].sum() + excess) / self.border[2].sum()  # Σ q = 1 determines b
            parts = zip((self.dW, self.dZ, dq), answer, self.border, strict=True)
            dW, dZ, trial_q = (old + new + fall * border for old, new, border in parts)
            trial_beta = ek + self.e * (self.g * trial_q[self.task] - self.margins(dW))
            missing, excess = self.pull(beta + trial_beta) - self.Z - dZ, 0.0
            if n and not np.abs(missing).max() < error / 2:
                break
            self.dW, self.dZ, dq, d_beta, error = dW, dZ, trial_q, trial_beta, np.abs(missing).max()
            if error <= EXACT * np.abs(self.Z).max():
                break
        self.d_dual = np.concatenate([d_beta, self.cost * dq[self.task] - d_beta, dq, -dq])
        self.d_slack = aims - self.slack / self.dual * self.d_dual

    def move(self, step: float) -> None:
        super().move(step)
        self.W, self.Z = self.W + step * self.dW, self.Z + step * self.dZ


class CommonPart(AlphaMinimax):
    """Ω = ‖v_0‖² + (λ/T) Σ_t ‖v_t‖², w_t = v_0 + v_t, with the best v_0 for W: a quadratic function."""

    def __init__(self, mu: float, lam: float, *problem: *LinearTasks):
        super().__init__(*problem)
        self.mu, self.lam = mu, lam
        self.own = 2 * mu * lam / len(self.W)  # curvature in v_t
        self.penalised = np.arange(self.W.shape[1]) >= self.free

    def gradient(self, W: Array) -> Array:
        return self.own * self.penalised * (W - self.lam / (1 + self.lam) * W.mean(axis=0))

    def value(self, W: Array) -> float:
        return float((W * self.gradient(W)).sum() / 2)

    def dual_value(self, Z: Array, total: float) -> float:
        common = Z.sum(axis=0)
        bend = (common @ common) / (4 * self.mu) + (Z**2).sum() / (2 * self.own)
        s = min(1.0, float(total / (2 * bend))) if bend > 0 else 1.0
        return float(s * total - s**2 * bend)

    def factor_newton(self, roots: list[Array]) -> None:
        """Invert the blocks κI + A_t, and factor the rest, which belongs to v_0."""
        self.inverses = np.linalg.inv(np.stack([root.T @ root for root in roots]) + self.own * np.diag(self.penalised))
        self.columns = self.inverses[:, :, self.free :]
        rest = -(self.own**2) * self.columns[:, self.free :].sum(axis=0)
        rest[np.diag_indices_from(rest)] += 2 * self.mu + self.own * len(roots)
        self.rest = cho_factor(rest)

    def solve_newton(self, G: Array, aimed: bool) -> tuple[Array, Array]:
        alone = (self.inverses @ G[:, :, None])[:, :, 0]
        dW = alone + self.own * (self.columns @ cho_solve(self.rest, self.own * alone[:, self.free :].sum(axis=0)))
        return dW, self.gradient(dW)


class TraceNorm(AlphaMinimax):
    """Ω = ‖W‖_tr: μ Ω is the least ½ μ (tr A + tr B) with X = [[A, W], [W', B]] ⪰ 0.

    The dual has S = [[μI, −Z], [−Z', μI]] ⪰ 0; at the optimum X S = 0. The steps are those of Nesterov and Todd: with G
    such that G⁻¹ X G⁻ᵀ = Gᵀ S G = Λ, they satisfy dX̃ + dS̃ = aim for dX̃ = G⁻¹ dX G⁻ᵀ and dS̃ = Gᵀ dS G.
    """

    def __init__(self, mu: float, *problem: *LinearTasks):
        super().__init__(*problem)
        self.mu = mu
        self.more_pairs = sum(self.W.shape) - self.free
        # a tiny μ would leave no digits to work with
        self.X = min(2 * FAR / len(self.cost) / mu, 1e6) * np.eye(self.more_pairs)

    def corner(self, M: Array) -> Array:
        return M[: len(self.W), len(self.W) :]

    def embed(self, Z: Array) -> Array:
        M = np.zeros_like(self.X)
        self.corner(M)[:] = Z[:, self.free :]
        return M + M.T

    def value(self, W: Array) -> float:
        return self.mu * float(np.linalg.svd(W[:, self.free :], compute_uv=False).sum())

    def dual_value(self, Z: Array, total: float) -> float:
        return total * self.mu / max(self.mu, float(np.linalg.norm(Z, 2)))

    def solve(self, rtol: float, max_steps: int, verbose: int = 0) -> int:
        n_steps = super().solve(rtol, max_steps, verbose)
        # an interior point has full rank even if the optimum does not, so try lower ranks
        first, rest = np.split(self.best_W, [self.free], axis=1)
        U, singular, Vt = np.linalg.svd(rest, full_matrices=False)
        lower = [np.hstack([first, (U[:, :k] * singular[:k]) @ Vt[:k]]) for k in range(len(singular))]
        self.best_W = min([self.best_W, *lower], key=self.objective)
        return n_steps

    def factor_newton(self, roots: list[Array]) -> None:
        """The scaling G, and the matrix I + F 𝒫 F', where 𝒫 dZ = P₁₁ dZ P₂₂ + P₁₂ dZ' P₁₂, P = G G', A = F' F."""
        T, free = self.W.shape[0], self.free
        right = np.linalg.cholesky(self.X)
        left = np.linalg.cholesky(self.mu * np.eye(len(self.X)) - self.embed(self.Z))
        U, self.lam, _ = np.linalg.svd(right.T @ left)
        self.G = right @ (U / np.sqrt(self.lam))
        self.dX = self.dS = np.zeros_like(self.X)
        P = self.G @ self.G.T
        self.P_tasks, self.P_cross, self.P_features = P[:T, :T], P[:T, T:], P[T:, T:]
        triangles = [np.asarray(np.linalg.qr(root, mode="r")) for root in roots]
        self.edge = np.array([R[:free, free:] for R in triangles])
        self.diagonal = np.array([np.diag(R)[:free] for R in triangles])
        self.F = np.concatenate([R[free:, free:] for R in triangles])  # without the intercepts
        sizes = [len(R) - free for R in triangles]
        self.starts_F, self.task_F = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(T), sizes)
        newton = self.F @ self.P_features @ self.F.T
        newton *= self.P_tasks[np.ix_(self.task_F, self.task_F)]
        swapped = (self.F @ self.P_cross.T)[:, self.task_F]
        newton += swapped * swapped.T
        newton[np.diag_indices_from(newton)] += 1
        self.newton = cho_factor(newton, lower=True, overwrite_a=True, check_finite=False)

    def spread(self, Z: Array) -> Array:
        """𝒫 Z."""
        return self.P_tasks @ Z @ self.P_features + self.P_cross @ Z.T @ self.P_cross

    def solve_newton(self, G: Array, aimed: bool) -> tuple[Array, Array]:
        """dW = 𝒫 dZ, and the aim."""
        due = self.corner(self.G @ self.aim @ self.G.T) if aimed else 0.0
        first = G[:, : self.free] / self.diagonal
        rest = G[:, self.free :] - np.einsum("tf,tfd->td", first, self.edge)
        along = (self.spread(rest) + due)[self.task_F]
        v = cho_solve(self.newton, (self.F * along).sum(axis=1), check_finite=False)
        dZ = rest - np.add.reduceat(v[:, None] * self.F, self.starts_F)
        dW = self.spread(dZ) + due
        first = (first - np.einsum("tfd,td->tf", self.edge, dW)) / self.diagonal
        return np.hstack([first, dW]), np.hstack([np.zeros_like(first), dZ])

    def head(self, goal: Array, tau: float) -> None:
        product = self.dX @ self.dS  # of the predictor
        aim = np.diag(2 * tau - self.lam**2) - (product + product.T) / 2
        self.aim = 2 * aim / (self.lam[:, None] + self.lam)
        super().head(goal, tau)
        self.dS = -(self.G.T @ self.embed(self.dZ) @ self.G)
        self.dX = self.aim - self.dS

    def total(self, step: float) -> float:
        diagonal = np.diag(self.lam)
        return super().total(step) + float(((diagonal + step * self.dX) * (diagonal + step * self.dS)).sum() / 2)

    def room(self) -> float:
        root = np.sqrt(self.lam)
        lowest = min(np.linalg.eigvalsh(M / root / root[:, None])[0] for M in (self.dX, self.dS))
        return min(super().room(), -1 / min(lowest, -1e-300))

    def move(self, step: float) -> None:
        super().move(step)
        self.X = self.X + step * (self.G @ self.dX @ self.G.T)
        self.X = (self.X + self.X.T) / 2


class MinimaxMTL(MultiTaskClassifier):
    """Linear classifiers that limit the loss of the worst tasks (Mehta, Lee and Gray, 2012), in the α-minimax form.

        minimise over b, ξ ≥ 0, W     b + (1/α) Σ_t ξ_t + μ Ω(W),      L_t(w_t) ≤ b + ξ_t

    where L_t is the mean hinge loss of task t. The first two terms are the largest weighted mean Σ_t q_t L_t over the
    task weights q with Σ q = 1 and 0 ≤ q_t ≤ 1/α: for α ≤ 1 the worst task, for α = T the mean of all tasks, and in
    between about the mean of the α worst tasks. The penalty Ω is

    - "trace": the trace norm of W = (w_1, …, w_T), which favours few shared directions (MM-AEP), or
    - "ep": ‖v_0‖² + (λ/T) Σ_t ‖v_t‖² with w_t = v_0 + v_t, which favours similar tasks (MM-EP).

    Weights of samples and classes enter the mean L_t. The solver is a primal-dual interior-point method: an iteration
    costs n d² for n samples in all tasks and d features, plus (T d)³ for "trace".

    Parameters
    ----------
    regularizer : {"trace", "ep"}, default="trace"
        The penalty Ω.
    alpha : float, default=None
        How many tasks count as the worst, in (0, n_tasks]. None means 0.2 · n_tasks.
    mu : float, default=0.01
        Weight of the penalty.
    lam : float, default=1.0
        λ of "ep": how much the tasks' own parts v_t cost compared with the common part. "trace" does not use it.
    fit_intercept : bool, default=True
        Whether each task has its own intercept, which is not penalised. The papers write f_t(x) = w_t'x.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=100
        Maximum number of iterations of the interior-point method.
    class_weight : dict or "balanced", default=None
        Weights of the classes in the mean loss of a task; "balanced" weights the two classes of each task inversely to
        their frequency in the task.
    verbose : int, default=0
        1 prints a line per iteration.
    task_column, n_jobs, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`; this method does not use threads.

    Attributes
    ----------
    coef_ : array of shape (n_tasks, n_features)
        W, without the task column.
    intercept_ : array of shape (n_tasks,)
    losses_ : array of shape (n_tasks,)
        L_t, the (weighted) mean hinge losses on the training samples.
    task_weights_ : array of shape (n_tasks,)
        q, which sums to one.
    objective_ : float
        b + (1/α) Σ_t ξ_t + μ Ω(W).
    gap_ : float
        Certified relative gap, never below the true gap.
    n_iter_ : int
        Iterations of the interior-point method.
    n_tasks_, task_names_, n_features_in_, feature_names_in_, classes_
        As in :class:`~paretomkl.ParetoMKLClassifier`.

    References
    ----------
    N. Mehta, D. Lee and A. Gray, "Minimax multi-task learning and a generalized loss-compositional paradigm for MTL",
    Advances in Neural Information Processing Systems 25, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import MinimaxMTL
    >>> clf = MinimaxMTL(alpha=1.0).fit(*load_iris(return_X_y=True))
    >>> clf.coef_.shape, clf.losses_.shape
    ((3, 4), (3,))
    """

    _internal = ("kernels",)

    model_: LinearModel
    losses_: Array
    task_weights_: Array
    objective_: float
    gap_: float
    n_iter_: int

    def __init__(
        self,
        regularizer: Literal["trace", "ep"] = "trace",
        alpha: float | None = None,
        mu: float = 0.01,
        lam: float = 1.0,
        task_column: int | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 100,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.regularizer = regularizer
        self.alpha = alpha
        self.mu = mu
        self.lam = lam
        self.task_column = task_column
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def coef_(self) -> Array:
        """W, (n_tasks, n_features), without the task column."""
        return self.model_.coefficients

    @property
    def intercept_(self) -> Array:
        """(n_tasks,)."""
        return self.model_.intercepts

    def _learn(self, training: Training) -> LinearModel:
        n_tasks, free = len(training.tasks), int(bool(self.fit_intercept))
        cap = max(1 / max(self._check_parameters(n_tasks), 1.0), 1 / n_tasks)
        # the optimal w is in the span of the samples, and there may be fewer samples than features
        U, singular, back = np.linalg.svd(training.samples.data, full_matrices=False)
        # w'x does not change if x shrinks and w grows; the trace norm grows with w, "ep" with its square
        scale = float(np.sqrt(((U * singular) ** 2).sum(axis=1).max())) or 1.0
        features = np.hstack([np.ones((len(U), free)), U * (singular / scale)])
        problem = features, training.tasks, training.weights, cap, free
        method: AlphaMinimax = TraceNorm(self.mu / scale, *problem)
        if self.regularizer == "ep":
            method = CommonPart(self.mu / scale**2, self.lam, *problem)
        self.n_iter_ = method.solve(self.tol, self.max_iter, self.verbose)
        W = method.best_W
        intercepts = W[:, 0] if free else np.zeros(n_tasks)
        self.losses_ = method.losses(W)
        self.task_weights_ = method.best_q
        self.objective_ = method.objective(W)
        self.gap_ = max(0.0, 1 - method.lower / self.objective_)
        if self.gap_ > self.tol:
            rounding = "Rounding errors prevent a smaller gap: raise tol or mu"
            cure = "Raise max_iter" if self.n_iter_ >= self.max_iter else rounding
            warnings.warn(
                f"MinimaxMTL stopped after {self.n_iter_} iterations (max_iter={self.max_iter}), gap {self.gap_:.1e} > "
                f"tol={self.tol:g}. {cure}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return LinearModel(training.labelling, W[:, free:] / scale @ back, intercepts)

    def _check_parameters(self, n_tasks: int) -> float:
        """Check all parameters and return α."""
        if self.regularizer not in ("trace", "ep"):
            raise ValueError(f"regularizer must be 'trace' or 'ep', got {self.regularizer!r}.")
        check_number("mu", self.mu, lambda v: 0 < v < np.inf, "greater than 0")
        check_number("lam", self.lam, lambda v: 0 < v < np.inf, "greater than 0")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        check_count("max_iter", self.max_iter)
        effective_jobs(self.n_jobs)
        if self.alpha is None:
            return 0.2 * n_tasks
        wanted = f"greater than 0 and at most the number of tasks, {n_tasks}"
        check_number("alpha", self.alpha, lambda v: 0 < v <= n_tasks * (1 + 1e-12), wanted)
        return float(self.alpha)
