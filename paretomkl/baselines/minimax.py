"""Minimax multi-task learning: linear classifiers whose worst tasks count, under a penalty that ties them together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from .._parallel import effective_jobs
from .._typing import AnyArray, Array, IntArray
from .._validation import check_count, check_number
from ..multitask import MultiTaskClassifier, Training

STEP = 0.98  # share of the way to the boundary
SMALLEST_STEP = 1e-8  # below it rounding has the last word
PATIENCE = 10  # iterations without a better model or bound
REFINEMENTS = 8
EXACT = 1e-10  # relative error at which a direction needs no refinement


class MinimaxMTL(MultiTaskClassifier):
    """Linear classifiers that keep the worst tasks low, after Mehta, Lee and Gray (2012), in the α-minimax form.

        minimise over b, ξ ≥ 0, W     b + (1/α) Σ_t ξ_t + μ Ω(W),      L_t(w_t) ≤ b + ξ_t

    where L_t is the mean hinge loss of task t. The first two terms are the largest weighted mean Σ_t q_t L_t over the
    task weights q with Σ q = 1 and 0 ≤ q_t ≤ 1/α: the worst task for α ≤ 1, about the mean of the α worst tasks in
    between, the mean of all for α = T. The penalty Ω is

    - "trace": the trace norm of W = (w_1, …, w_T), which asks for few shared directions (MM-AEP), or
    - "ep": ‖v_0‖² + (λ/T) Σ_t ‖v_t‖² with w_t = v_0 + v_t, which asks for tasks that are alike (MM-EP).

    Weights of samples and classes enter the mean L_t. The method is a primal-dual interior-point method: an iteration
    costs n d² for n samples in all tasks and d features, and (T d)³ more for "trace".

    Parameters
    ----------
    regularizer : {"trace", "ep"}, default="trace"
        The penalty Ω.
    alpha : float, default=None
        How many tasks count as the worst, in (0, n_tasks]. None is 0.2 · n_tasks.
    mu : float, default=0.01
        Weight of the penalty.
    lam : float, default=1.0
        λ of "ep", the price of the tasks' own parts v_t against that of the common one. "trace" has no use for it.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    fit_intercept : bool, default=True
        Whether each task has an intercept of its own, which is not penalised. The papers write f_t(x) = w_t'x.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=100
        Most iterations of the interior-point method.
    class_weight : dict or "balanced", default=None
        Weighs the samples in the mean loss of a task by class; "balanced" weighs the two classes of each task
        inversely to their frequency there.
    n_jobs : int, default=None
        Not used: the work is that of the linear algebra library. Present for a common interface.
    verbose : int, default=0
        1 prints a line per iteration.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    coef_ : array of shape (n_tasks, n_features)
        W, without the task column.
    intercept_ : array of shape (n_tasks,)
    losses_ : array of shape (n_tasks,)
        L_t, the (weighted) mean hinge losses on the training samples.
    task_weights_ : array of shape (n_tasks,)
        q, summing to one.
    objective_ : float
        b + (1/α) Σ_t ξ_t + μ Ω(W).
    gap_ : float
        Relative certificate, never below the truth.
    n_iter_ : int
        Iterations of the interior-point method.
    n_tasks_ : int
    task_names_ : list of str
    classes_ : array of shape (n_classes,), or list of arrays
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)

    References
    ----------
    N. Mehta, D. Lee and A. Gray, "Minimax multi-task learning and a generalized loss-compositional paradigm for MTL",
    Advances in Neural Information Processing Systems 25, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines.minimax import MinimaxMTL
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MinimaxMTL(alpha=1.0).fit(X, y)
    >>> clf.coef_.shape, clf.losses_.shape
    ((3, 4), (3,))
    """

    def __init__(
        self,
        regularizer: str = "trace",
        alpha: float | None = None,
        mu: float = 0.01,
        lam: float = 1.0,
        task_column: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 100,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
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

    def _learn(self, training: Training) -> None:
        n_tasks = len(training.tasks)
        cap = max(1 / max(self._check_parameters(n_tasks), 1.0), 1 / n_tasks)
        features, back = _rotate(training.samples.data)
        # w'x stays as it is when x shrinks and w grows; the trace norm grows with w, "ep" with its square
        scale = float(np.sqrt((features**2).sum(axis=1).max())) or 1.0
        samples = TaskSamples.make(features / scale, training, cap, bool(self.fit_intercept))
        penalty: TraceNorm | CommonPart
        if self.regularizer == "trace":
            penalty = TraceNorm(self.mu / scale, n_tasks, features.shape[1])
        else:
            penalty = CommonPart(self.mu / scale**2, self.lam, n_tasks, features.shape[1])
        method = InteriorPoint(samples, penalty)
        best, self.task_weights_, bound, self.n_iter_ = method.solve(self.tol, self.max_iter, self.verbose)
        self.coef_ = best.W / scale if back is None else best.W / scale @ back
        self.intercept_ = best.intercepts
        self.losses_ = best.losses
        self.objective_ = best.objective
        self.gap_ = max(0.0, 1 - bound / best.objective)
        if self.gap_ > self.tol:
            cure = "Raise max_iter" if self.n_iter_ >= self.max_iter else "Rounding allows no more: raise tol or mu"
            warnings.warn(
                f"MinimaxMTL stopped after {self.n_iter_} iterations (max_iter={self.max_iter}), gap {self.gap_:.1e} > "
                f"tol={self.tol:g}. {cure}.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_parameters(self, n_tasks: int) -> float:
        """α, after a look at all parameters."""
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

    def _decide(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        return data[rows] @ self.coef_[tasks].T + self.intercept_[tasks]


def _rotate(features: Array) -> tuple[Array, Array | None]:
    """With more features than samples, coordinates in the span of the samples: no w of use has a part outside it."""
    if features.shape[1] <= features.shape[0]:
        return features, None
    U, singular, back = np.linalg.svd(features, full_matrices=False)
    return U * singular, back


# ---------------------------------------------------------------------------------------------------- the loss
@dataclass(frozen=True)
class TaskSamples:
    """The samples of all tasks, one task after the other.

    rows (N, d): y_i x_i; signs (N,): y_i; cost (N,): share of a sample in the mean loss of its task; task (N,): the
    task of each; starts (T,): where each task begins; cap: bound 1/α of the task weights; intercept: whether there is
    one.
    """

    rows: Array
    signs: Array
    cost: Array
    task: IntArray
    starts: IntArray
    cap: float
    intercept: bool

    @classmethod
    def make(cls, features: Array, training: Training, cap: float, intercept: bool) -> TaskSamples:
        kept = [weight > 0 for weight in training.weights]  # a sample of no weight would have no interior
        rows = np.concatenate([task.rows[k] for task, k in zip(training.tasks, kept, strict=True)])
        signs = np.concatenate([task.signs[k] for task, k in zip(training.tasks, kept, strict=True)])
        cost = np.concatenate([w[k] / w.sum() for w, k in zip(training.weights, kept, strict=True)])
        sizes = np.array([k.sum() for k in kept])
        return cls(
            features[rows] * signs[:, None],
            signs,
            cost,
            np.repeat(np.arange(len(sizes)), sizes),
            np.cumsum(sizes) - sizes,
            cap,
            intercept,
        )

    @property
    def slices(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self.starts, [*self.starts[1:], len(self.rows)], strict=True)]

    def sum(self, values: Array) -> Array:
        """Sums over the samples of each task, (T,)."""
        return np.add.reduceat(values, self.starts)

    def pull(self, values: Array) -> Array:
        """Σ_i v_i y_i x_i of each task, (T, d)."""
        return np.stack([values[k] @ self.rows[k] for k in self.slices])

    def margins(self, W: Array, intercepts: Array) -> Array:
        """y_i f_t(x_i), (N,)."""
        along = np.concatenate([self.rows[k] @ w for k, w in zip(self.slices, W, strict=True)])
        return along + self.signs * intercepts[self.task]

    def losses(self, W: Array, intercepts: Array) -> Array:
        return self.sum(self.cost * np.maximum(0, 1 - self.margins(W, intercepts)))

    def scalarize(self, losses: Array) -> float:
        """Largest Σ q_t L_t over 0 ≤ q ≤ cap, Σ q = 1: the worst tasks take all they may."""
        left = 1 - self.cap * np.arange(len(losses))
        return float(np.clip(left, 0, self.cap) @ np.sort(losses)[::-1])

    def feasible(self, beta: Array, q: Array) -> tuple[Array, Array]:
        """The nearest thing to a feasible pair that clipping and scaling give."""
        q = np.clip(q, 0, self.cap)
        beta = np.clip(beta, 0, q[self.task] * self.cost)
        if self.intercept:  # Σ_i β_i y_i = 0: the heavier class of each task gives way
            positive = self.sum(np.where(self.signs > 0, beta, 0))
            negative = self.sum(np.where(self.signs < 0, beta, 0))
            sides = np.where(self.signs > 0, positive[self.task], negative[self.task])
            beta = beta * np.minimum(positive, negative)[self.task] / sides
        shrink = 1 / max(1.0, q.sum())
        q, beta = shrink * q, shrink * beta
        room = self.cap - q
        if room.sum() > 0:
            q = q + room * min(1.0, (1 - q.sum()) / room.sum())
        return beta, q


# ---------------------------------------------------------------------------------------------------- penalties
# Both offer the penalty and its dual (value, dual_value, candidates), and to the interior-point method their part of a
# step: begin once; then factor, and aim, solve, head for each direction; longest_step, complementarity, move.
class CommonPart:
    """μ (‖v_0‖² + (λ/T) Σ_t ‖v_t‖²), w_t = v_0 + v_t, with v_0 at its best for W. It is smooth: W is all its state."""

    degree = 0  # complementary pairs that the penalty adds

    def __init__(self, mu: float, lam: float, n_tasks: int, n_features: int):
        self.mu, self.lam = mu, lam
        self.own = 2 * mu * lam / n_tasks  # curvature in v_t
        self.W = np.zeros((n_tasks, n_features))

    def value(self, W: Array) -> float:
        common = self._common(W)
        return float(self.mu * (common @ common) + self.own / 2 * ((W - common) ** 2).sum())

    def _common(self, W: Array) -> Array:
        return self.lam / (1 + self.lam) * W.mean(axis=0)

    def dual_value(self, Z: Array, total: float) -> float:
        """Largest s·total − μ Ω*(s Z/μ) over 0 ≤ s ≤ 1."""
        common = Z.sum(axis=0)
        bend = (common @ common) / (4 * self.mu) + (Z**2).sum() / (2 * self.own)
        s = 1.0 if 2 * bend <= total else total / (2 * bend)
        return float(s * total - s**2 * bend)

    def candidates(self) -> list[Array]:
        return [self.W]

    def begin(self, tau: float) -> None:
        pass

    def gradient(self) -> Array:
        return self.own * (self.W - self._common(self.W))

    def factor(self, roots: list[Array]) -> None:
        """Blocks κI + A_t of the Newton matrix, A_t = root' root, and what they leave for v_0."""
        unit = np.eye(self.W.shape[1])
        self._inverses = np.linalg.inv(np.stack([root.T @ root for root in roots]) + self.own * unit)
        rest = (2 * self.mu + self.own * len(roots)) * unit - self.own**2 * self._inverses.sum(axis=0)
        self._rest = cho_factor(rest)

    def aim(self, tau: float, corrected: bool) -> None:
        pass

    def solve(self, G: Array, aimed: bool) -> Array:
        """dW with (μ ∇²Ω + A) dW = G."""
        alone = (self._inverses @ G[:, :, None])[:, :, 0]
        common = cho_solve(self._rest, self.own * alone.sum(axis=0))
        dW = alone + self.own * (self._inverses @ common)
        return np.stack([dW, self.own * (dW - self._common(dW))])

    def head(self, direction: Array) -> None:
        self._dW = direction[0]

    def longest_step(self) -> float:
        return np.inf

    def complementarity(self, step: float) -> float:
        return 0.0

    def move(self, step: float) -> None:
        self.W = self.W + step * self._dW


class TraceNorm:
    """μ ‖W‖_tr = least ½ μ (tr A + tr B) with X = [[A, W], [W', B]] ⪰ 0.

    The dual is Z, of the shape of W, with S = [[μI, −Z], [−Z', μI]] ⪰ 0; at the optimum X S = 0. Steps are those of
    Nesterov and Todd: with G such that G⁻¹ X G⁻ᵀ = Gᵀ S G = Λ they have G⁻¹ dX G⁻ᵀ + Gᵀ dS G = aim.
    """

    _dX: Array
    _dS: Array

    def __init__(self, mu: float, n_tasks: int, n_features: int):
        self.mu, self.n_tasks = mu, n_tasks
        self.degree = n_tasks + n_features
        self.Z = np.zeros((n_tasks, n_features))

    @property
    def W(self) -> Array:
        return self._corner(self.X)

    def _corner(self, M: Array) -> Array:
        return M[: self.n_tasks, self.n_tasks :]

    def _embed(self, Z: Array) -> Array:
        M = np.zeros((self.degree, self.degree))
        self._corner(M)[:] = Z
        return M + M.T

    def value(self, W: Array) -> float:
        return self.mu * float(np.linalg.svd(W, compute_uv=False).sum())

    def dual_value(self, Z: Array, total: float) -> float:
        """Largest s·total over 0 ≤ s ≤ 1 with s ‖Z‖ ≤ μ."""
        norm = float(np.linalg.norm(Z, 2))
        return total if norm <= self.mu else total * self.mu / norm

    def candidates(self) -> list[Array]:
        """W and its parts of lower rank: an interior point has full rank where the optimum has not."""
        U, singular, Vt = np.linalg.svd(self.W, full_matrices=False)
        return [self.W, *((U[:, :k] * singular[:k]) @ Vt[:k] for k in range(len(singular)))]

    def begin(self, tau: float) -> None:
        self.X = min(2 * tau / self.mu, 1e6) * np.eye(self.degree)  # a tiny μ would leave no digits to work with

    def gradient(self) -> Array:
        return self.Z

    def factor(self, roots: list[Array]) -> None:
        """Scaling G, and the Newton matrix I + F 𝒫 F', where 𝒫 dZ = P₁₁ dZ P₂₂ + P₁₂ dZ' P₁₂, P = G G', A = F' F."""
        T = self.n_tasks
        right = np.linalg.cholesky(self.X)
        left = np.linalg.cholesky(self.mu * np.eye(self.degree) - self._embed(self.Z))
        U, self._lam, _ = np.linalg.svd(right.T @ left)
        self._G = right @ (U / np.sqrt(self._lam))
        P = self._G @ self._G.T
        self._tasks, self._cross, self._features = P[:T, :T], P[:T, T:], P[T:, T:]
        short = [root if len(root) <= root.shape[1] else np.linalg.qr(root, mode="r") for root in roots]
        self._F = np.concatenate(short)
        sizes = np.array([len(root) for root in short])
        self._task = np.repeat(np.arange(T), sizes)
        self._starts = np.cumsum(sizes) - sizes
        newton = self._F @ self._features @ self._F.T
        newton *= self._tasks[np.ix_(self._task, self._task)]
        swapped = (self._F @ self._cross.T)[:, self._task]
        newton += swapped * swapped.T
        newton[np.diag_indices_from(newton)] += 1
        self._newton = cho_factor(newton, lower=True, overwrite_a=True, check_finite=False)

    def _spread(self, Z: Array) -> Array:
        """𝒫 Z."""
        return self._tasks @ Z @ self._features + self._cross @ Z.T @ self._cross

    def aim(self, tau: float, corrected: bool) -> None:
        """Aim at X S = 2τ I, with the second-order term of the last direction where corrected."""
        goal = np.diag(2 * tau - self._lam**2)
        if corrected:
            product = self._dX @ self._dS
            goal = goal - (product + product.T) / 2
        self._aim = 2 * goal / (self._lam[:, None] + self._lam)

    def solve(self, G: Array, aimed: bool) -> Array:
        """dW and dZ with dW = 𝒫 dZ (+ aim), dZ = G − A dW."""
        pull = self._corner(self._G @ self._aim @ self._G.T) if aimed else 0.0
        along = self._spread(G) + pull
        v = cho_solve(self._newton, (self._F * along[self._task]).sum(axis=1), check_finite=False)
        dZ = G - np.add.reduceat(v[:, None] * self._F, self._starts)
        return np.stack([self._spread(dZ) + pull, dZ])

    def head(self, direction: Array) -> None:
        self._dZ = direction[1]
        self._dS = -(self._G.T @ self._embed(self._dZ) @ self._G)
        self._dX = self._aim - self._dS

    def longest_step(self) -> float:
        root = np.sqrt(self._lam)
        lowest = min(np.linalg.eigvalsh(M / root / root[:, None])[0] for M in (self._dX, self._dS))
        return -1 / lowest if lowest < 0 else np.inf

    def complementarity(self, step: float) -> float:
        """½ <X, S> after a step."""
        if step == 0:
            return float(self.mu * np.trace(self.X) / 2 - (self.W * self.Z).sum())
        diagonal = np.diag(self._lam)
        return float(((diagonal + step * self._dX) * (diagonal + step * self._dS)).sum() / 2)

    def move(self, step: float) -> None:
        self.X = self.X + step * (self._G @ self._dX @ self._G.T)
        self.X = (self.X + self.X.T) / 2
        self.Z = self.Z + step * self._dZ


# ---------------------------------------------------------------------------------------------------- the method
@dataclass(frozen=True)
class Model:
    """Parameters and what they are worth."""

    W: Array
    intercepts: Array
    losses: Array
    objective: float


@dataclass(frozen=True)
class Change:
    """Of W and Z (2, T, d), of the intercepts (T,) and of the task weights (T,)."""

    link: Array
    intercepts: Array
    q: Array

    def __add__(self, other: Change) -> Change:
        return Change(self.link + other.link, self.intercepts + other.intercepts, self.q + other.q)

    def __rmul__(self, factor: float) -> Change:
        return Change(factor * self.link, factor * self.intercepts, factor * self.q)


class InteriorPoint:
    """Primal-dual interior-point method with Mehrotra's predictor and corrector.

    Complementary pairs (dual, slack): β_i and the excess margin m_i = s_i − 1 + y_i f(x_i); γ_i = q_t c_i − β_i and the
    loss s_i; q_t and h_t = b + ξ_t − Σ_i c_i s_i; p_t = 1/α − q_t and ξ_t. Of the linear equations only
    Z = Σ_i β_i y_i x_i and Σ_i β_i y_i = 0 do not hold from the start.
    """

    d_dual: Array
    d_slack: Array

    def __init__(self, samples: TaskSamples, penalty: CommonPart | TraceNorm):
        self.samples, self.penalty = samples, penalty
        n_tasks, n = len(samples.starts), len(samples.cost)
        self.free = samples.cap * n_tasks > 1 + 1e-9  # else q = 1/T is all there is
        self.edges = [n, 2 * n, 2 * n + n_tasks]
        self.intercepts = np.zeros(n_tasks)
        self.q = np.full(n_tasks, 1 / n_tasks)
        half = self.q[samples.task] * samples.cost / 2
        dual, slack = [half, half], [np.ones(n), np.full(n, 2.0)]
        # the pairs of the tasks and of the penalty are few; it pays to start them further inside
        far = 30 * half.mean()
        if self.free:
            room = samples.cap - self.q
            dual, slack = [*dual, self.q, room], [*slack, far / self.q, far / room]
        self.dual, self.slack = np.concatenate(dual), np.concatenate(slack)
        penalty.begin(far)

    def solve(self, tol: float, max_iter: int, verbose: int) -> tuple[Model, Array, float, int]:
        """The best model, the task weights of the best lower bound, that bound, and the iterations they took."""
        best, weights, bound = self.measure(self.penalty.W), self.q, 0.0
        improved_at = 0
        for n_iter in range(max_iter + 1):
            model = self.measure(self.penalty.W)
            lower, q = self.lower_bound()
            if model.objective < best.objective:
                best, improved_at = model, n_iter
            if lower > bound:
                bound, weights, improved_at = lower, q, n_iter
            gap = 1 - bound / best.objective
            if verbose:
                print(f"iteration {n_iter}: objective {best.objective:.6g}, gap {gap:.1e}")
            if gap <= tol or n_iter == max_iter or n_iter > improved_at + PATIENCE or not self.advance():
                break
        best = min(best, *map(self.measure, self.penalty.candidates()), key=_objective)
        return best, weights, bound, n_iter

    def measure(self, W: Array) -> Model:
        losses = self.samples.losses(W, self.intercepts)
        return Model(W, self.intercepts, losses, self.samples.scalarize(losses) + self.penalty.value(W))

    def lower_bound(self) -> tuple[float, Array]:
        beta, q = self.samples.feasible(self.dual[: self.edges[0]], self.q)
        return self.penalty.dual_value(self.samples.pull(beta), float(beta.sum())), q

    def advance(self) -> bool:
        """One step; False where rounding allows none."""
        try:
            with np.errstate(all="ignore"):
                self.factor()
                tau = self.mean_complementarity(0.0)
                self.head(0.0, corrected=False)
                reach = min(1.0, self.longest_step())
                centring = (self.mean_complementarity(reach) / tau) ** 3
                self.head(centring * tau, corrected=True)
                step = min(1.0, STEP * self.longest_step())
        except LinAlgError:
            return False
        if not (step > SMALLEST_STEP and np.isfinite(self.d_dual @ self.d_slack)):
            return False
        self.dual = self.dual + step * self.d_dual
        self.slack = self.slack + step * self.d_slack
        self.q = self.q + step * self.change.q
        self.intercepts = self.intercepts + step * self.change.intercepts
        self.penalty.move(step)
        return True

    def mean_complementarity(self, step: float) -> float:
        """Mean product of the pairs after a step; zero is none."""
        if step == 0:
            total = self.dual @ self.slack
        else:
            total = (self.dual + step * self.d_dual) @ (self.slack + step * self.d_slack)
        return (total + self.penalty.complementarity(step)) / (len(self.dual) + self.penalty.degree)

    def longest_step(self) -> float:
        longest = self.penalty.longest_step()
        for values, change in ((self.dual, self.d_dual), (self.slack, self.d_slack)):
            longest = min(longest, 1 / max(float((-change / values).max()), 1e-300))
        return longest

    def factor(self) -> None:
        """Eliminate all that belongs to one sample or one task; the penalty factors what is left.

        With x̃ = (x, 1) and f = w̃'x̃, Newton's equations are

            dβ = e (k + g dq − y df),      e = 1/(m/β + s/γ),   g = c s/γ
            dq = give (κ − db − u'dw̃),     u = Σ_i e_i g_i y_i x̃_i
            dz̃ = … − (X̃'EX̃ + give u u') dw̃

        whose matrix is kept as a product root' root, the intercept projected out.
        """
        samples, two = self.samples, self.edges[1]
        m_by_beta, s_by_gamma = np.split(self.slack[:two] / self.dual[:two], 2)
        self.e = 1 / (m_by_beta + s_by_gamma)
        self.g = samples.cost * s_by_gamma
        self.give = np.zeros(len(self.q))
        if self.free:
            h_by_q, xi_by_p = np.split(self.slack[two:] / self.dual[two:], 2)
            self.give = 1 / (h_by_q + xi_by_p + samples.sum(samples.cost * self.g * self.e * m_by_beta))
        eg = self.e * self.g
        self.u = samples.pull(eg)
        self.u_last = samples.sum(eg * samples.signs) * samples.intercept
        root_e, root_give = np.sqrt(self.e), np.sqrt(self.give)
        self.ratio, self.weight = np.zeros_like(self.u), np.ones(len(self.q))
        roots = []
        for t, k in enumerate(samples.slices):
            root = np.vstack([root_e[k, None] * samples.rows[k], root_give[t] * self.u[t]])
            if samples.intercept:
                last = np.append(root_e[k] * samples.signs[k], root_give[t] * self.u_last[t])
                self.weight[t] = last @ last
                self.ratio[t] = last @ root / self.weight[t]
                root -= np.outer(last, self.ratio[t])
            roots.append(root)
        self.penalty.factor(roots)
        # what a fall of b by one changes
        G = self.give[:, None] * (self.u - self.ratio * self.u_last[:, None])
        link = self.penalty.solve(G, aimed=False)
        last = self.give * self.u_last / self.weight - _dots(self.ratio, link[0])
        self.border = Change(link, last, self.give * (1 - _dots(self.u, link[0]) - self.u_last * last))

    def head(self, tau: float, corrected: bool) -> None:
        """The direction towards products τ of all pairs, with the second-order term of the last one where corrected."""
        samples, penalty = self.samples, self.penalty
        goal = tau - self.dual * self.slack
        if corrected:
            goal = goal - self.d_dual * self.d_slack
        penalty.aim(tau, corrected)
        n, two, three = self.edges
        aims = goal / self.dual
        ek = self.e * (aims[:n] - aims[n:two])
        kappa = samples.sum(samples.cost * aims[n:two] + self.g * ek)
        if self.free:
            kappa += aims[two:three] - aims[three:]
        change = self.respond(*self.residual(ek, 0.0), kappa, self.q.sum() - 1, aimed=True)
        self.change, d_beta = self.refine(ek, change)
        penalty.head(self.change.link)
        d_dual = [d_beta, samples.cost * self.change.q[samples.task] - d_beta]
        if self.free:
            d_dual += [self.change.q, -self.change.q]
        self.d_dual = np.concatenate(d_dual)
        self.d_slack = aims - self.slack / self.dual * self.d_dual

    def respond(self, link: Array, balance: Array, kappa: Array, excess: float, aimed: bool) -> Change:
        """The change that answers given residuals."""
        pressed = self.give * kappa
        last = balance + pressed * self.u_last
        both = self.penalty.solve(link + pressed[:, None] * self.u - self.ratio * last[:, None], aimed)
        last = last / self.weight - _dots(self.ratio, both[0])
        change = Change(both, last, self.give * (kappa - _dots(self.u, both[0]) - self.u_last * last))
        if self.free:  # Σ q = 1 determines b
            change = change + (-(change.q.sum() + excess) / self.border.q.sum()) * self.border
        return change

    def refine(self, ek: Array, change: Change) -> tuple[Change, Array]:
        """The change made more exact, and dβ: the Newton matrix has the square of the condition of its factors."""
        d_beta = self.follow(ek, change)
        residual = self.residual(d_beta, change.link[1])
        error, still = _largest(*residual), np.zeros(len(self.q))
        for _ in range(REFINEMENTS):
            if error <= EXACT * np.abs(self.penalty.gradient()).max():
                break
            other = change + self.respond(*residual, still, 0.0, aimed=False)
            other_beta = self.follow(ek, other)
            residual = self.residual(other_beta, other.link[1])
            if not _largest(*residual) < error / 2:
                break
            change, d_beta, error = other, other_beta, _largest(*residual)
        return change, d_beta

    def follow(self, ek: Array, change: Change) -> Array:
        """dβ."""
        along = self.samples.margins(change.link[0], change.intercepts)
        return ek + self.e * (self.g * change.q[self.samples.task] - along)

    def residual(self, d_beta: Array, dZ: Any) -> tuple[Array, Array]:
        """What is missing to Z = Σ_i β_i y_i x_i and to Σ_i β_i y_i = 0 after a step."""
        beta = self.dual[: self.edges[0]] + d_beta
        balance = self.samples.sum(self.samples.signs * beta) * self.samples.intercept
        return self.samples.pull(beta) - self.penalty.gradient() - dZ, balance


def _dots(A: Array, B: Array) -> Array:
    """Inner products of the rows."""
    return np.einsum("td,td->t", A, B)


def _largest(*arrays: Array) -> float:
    return max(float(np.abs(array).max()) for array in arrays)


def _objective(model: Model) -> float:
    return model.objective
