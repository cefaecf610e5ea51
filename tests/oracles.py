"""Slow, obvious, independent references for the tests and the benchmarks.

Everything here is written from the formulas with LIBSVM, NumPy and a conic solver, and imports nothing of the package.

The common form: ``Ks`` has shape (M, N, N), the base Gram matrices over the union of the samples; ``tasks`` is a list
of pairs (rows, signs), the sample indices of a task and its labels +1 or -1; ``C`` is one number, or a list with the
C of every sample for every task. With Q the Gram matrix of a task under the weights theta,

    J_t(theta) = max over {0 <= a <= C, a'y = 0} of  a'1 - 1/2 (y a)' Q (y a),    Q = sum_m theta_m K_m[rows, rows]
    M_p(g)     = (sum_t w_t g_t^p)^(1/p),    w = task_weight / sum(task_weight), 1/T each by default

and the problem is to minimise M_p(J(theta)) over {theta >= 0, ||theta||_s <= 1}.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Sequence
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

Task = tuple[np.ndarray, np.ndarray]
Costs = float | Sequence[np.ndarray]

PAPER_SIGMAS = 2.0 ** np.array([-7, -5, -3, -1, 0, 1, 3, 5, 7])


# ---------------------------------------------------------------------------------------------------------------------
# Kernels and means
# ---------------------------------------------------------------------------------------------------------------------


def paper_kernels(X: np.ndarray) -> np.ndarray:
    """The eleven kernels of the paper, of unit diagonal: linear, (x'z + 1)^2, and nine Gaussians; shape (11, N, N)."""
    inner = X @ X.T
    squared = cdist(X, X, "sqeuclidean")
    gaussians = [np.exp(-squared / (2 * sigma**2)) for sigma in PAPER_SIGMAS]
    return np.stack([_unit_diagonal(inner), _unit_diagonal((inner + 1) ** 2), *gaussians])


def _unit_diagonal(K: np.ndarray) -> np.ndarray:
    """k(x, z) / sqrt(k(x, x) k(z, z)); a sample of norm zero keeps its zeros."""
    norms = np.sqrt(np.diag(K))
    norms[norms == 0] = 1
    return K / np.outer(norms, norms)


def power_mean(values: np.ndarray, p: float, weights: np.ndarray | None = None) -> float:
    """(sum_t w_t g_t^p)^(1/p), its limits at p = 0 and p = +-inf; straight from the formula, for moderate numbers."""
    values = np.asarray(values, dtype=float)
    weights = _normalised(weights, len(values))
    if p == 0:
        return float(np.exp(weights @ np.log(values)))
    if np.isinf(p):
        return float(values.max() if p > 0 else values.min())
    return float((weights @ values**p) ** (1 / p))


def _normalised(weights: np.ndarray | None, count: int) -> np.ndarray:
    weights = np.ones(count) if weights is None else np.asarray(weights, dtype=float)
    return weights / weights.sum()


def _costs(C: Costs, tasks: Sequence[Task]) -> list[np.ndarray]:
    """C of every sample of every task, from either of its two forms."""
    per_task = [C] * len(tasks) if np.isscalar(C) else C
    pairs = zip(per_task, tasks, strict=True)
    return [np.array(np.broadcast_to(c, np.shape(signs)), dtype=float) for c, (_, signs) in pairs]


# ---------------------------------------------------------------------------------------------------------------------
# One task
# ---------------------------------------------------------------------------------------------------------------------


def svc_objective(
    K: np.ndarray, signs: np.ndarray, C: float | np.ndarray, tol: float = 1e-9, max_iter: int = 2_000_000
) -> tuple[float, np.ndarray]:
    """J and its maximiser by LIBSVM: max over {0 <= a <= C, a'y = 0} of a'1 - 1/2 (y a)'K(y a).

    The tolerance of LIBSVM is absolute in the gradient 1 - y K (y a), whose scale is one, and J <= a'1 <= 2 J at the
    optimum, so ``tol`` is a relative accuracy of J. There are three obstacles. LIBSVM treats curvatures below 1e-12
    as zero: the pair (c K, a / c) has the same gradient, and is used to give the kernel a mean diagonal of one. It
    keeps the kernel in single precision: the kernel is centred first, which leaves the problem as it is since
    (y a)'1 = 0, and the result is corrected in double precision. And where C is so large that rounding in the gradient
    exceeds ``tol``, ``max_iter`` ends the run.
    """
    signs = np.asarray(signs, dtype=float)
    free = np.broadcast_to(np.asarray(C, dtype=float), signs.shape) > 0
    if not free.all():  # LIBSVM drops samples of weight zero and renumbers the others
        value, some = svc_objective(K[np.ix_(free, free)], signs[free], np.asarray(C)[free], tol, max_iter)
        alpha = np.zeros(len(signs))
        alpha[free] = some
        return value, alpha
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    scale = np.mean(np.diag(centred)) or 1.0
    bounds = np.broadcast_to(np.asarray(C, dtype=float), signs.shape) * scale
    model = SVC(C=1.0, kernel="precomputed", tol=tol, shrinking=False, cache_size=500, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(centred / scale, signs, sample_weight=bounds)
    alpha = np.zeros(len(signs))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    alpha = _corrected(centred / scale, signs, bounds, alpha) / scale
    return svc_value(centred, signs, alpha), alpha


def _corrected(K: np.ndarray, signs: np.ndarray, bounds: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """One Newton step in the free alpha, K (y a) + b = y and (y a)'1 = 0, if it is feasible and loses nothing."""
    free = (alpha > 0) & (alpha < bounds)
    if not free.any():
        return alpha
    v, one = signs * alpha, np.ones((free.sum(), 1))
    system = np.block([[K[np.ix_(free, free)], one], [one.T, np.zeros((1, 1))]])
    residual = np.append((signs - K @ v)[free], -v.sum())
    step = np.linalg.lstsq(system, residual, rcond=None)[0][:-1]
    better = alpha.copy()
    better[free] += signs[free] * step
    balanced = abs(signs @ better) <= 1e-14 * better.sum()
    feasible = balanced and np.all(better >= 0) and np.all(better <= bounds)
    loss = svc_value(K, signs, alpha) - svc_value(K, signs, better)
    return better if feasible and loss <= 1e-13 * alpha.sum() else alpha  # both are the optimum up to rounding


def svc_value(K: np.ndarray, signs: np.ndarray, alpha: np.ndarray) -> float:
    """The dual function a'1 - 1/2 (y a)'K(y a)."""
    v = signs * alpha
    return float(alpha.sum() - v @ K @ v / 2)


def svc_gap(K: np.ndarray, signs: np.ndarray, C: float | np.ndarray, alpha: np.ndarray) -> float:
    """Relative duality gap of a feasible alpha: (primal - dual) / primal, the primal minimised exactly over the bias.

    With f = K (y a) the primal value is 1/2 (y a)'f + min over b of sum_i C_i max(0, 1 - y_i (f_i + b)), and the
    minimum over b is at one of the kinks b = y_i - f_i. Rigorous, and pessimistic for large C: a violation of the
    margin by 1e-9 counts as C 1e-9.
    """
    v = signs * alpha
    f = K @ v
    losses = np.maximum(0, 1 - signs * (f + (signs - f)[:, None])) @ np.broadcast_to(C, signs.shape)
    primal = v @ f / 2 + losses.min()
    return float((primal - svc_value(K, signs, alpha)) / primal)


def svc_objective_qp(K: np.ndarray, signs: np.ndarray, C: float | np.ndarray) -> tuple[float, np.ndarray]:
    """J and its maximiser by a conic solver; the same problem as ``svc_objective``."""
    cp = pytest.importorskip("cvxpy")

    signs = np.asarray(signs, dtype=float)
    bounds = np.broadcast_to(np.asarray(C, dtype=float), signs.shape)
    scale = _magnitude(K, signs, bounds)
    alpha = cp.Variable(len(signs))
    objective = cp.sum(alpha) - cp.sum_squares(_factor(K * scale).T @ cp.multiply(signs, alpha)) / 2
    problem = cp.Problem(cp.Maximize(objective), [alpha >= 0, alpha <= bounds / scale, signs @ alpha == 0])
    if not _solve(problem):
        raise ArithmeticError(f"the conic solver ended with status {problem.status!r}")
    return float(problem.value) * scale, np.asarray(alpha.value) * scale


def _magnitude(K: np.ndarray, signs: np.ndarray, bounds: np.ndarray) -> float:
    """A lower bound of the order of J: the best multiple of the alpha which is constant on each class."""
    direction = np.where(signs > 0, 1 / np.sum(signs > 0), 1 / np.sum(signs < 0))
    curvature = (signs * direction) @ K @ (signs * direction)
    longest = np.min(bounds / direction)
    step = min(longest, 2 / curvature) if curvature > 0 else longest
    return float(2 * step - step**2 * max(curvature, 0) / 2)


def _factor(K: np.ndarray) -> np.ndarray:
    """F with F F' = K up to rounding, of shape (n, rank)."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    kept = values > 1e-15 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def _solve(problem) -> bool:
    """Run Clarabel as accurately as possible; return whether it succeeded."""
    cp = pytest.importorskip("cvxpy")

    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    reduced = dict.fromkeys(("reduced_tol_gap_abs", "reduced_tol_gap_rel", "reduced_tol_feas"), 1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver="CLARABEL", max_iter=500, **tolerances, **reduced)
        except cp.SolverError:
            return False
    return problem.status in ("optimal", "optimal_inaccurate")


# ---------------------------------------------------------------------------------------------------------------------
# Many tasks
# ---------------------------------------------------------------------------------------------------------------------


def _sweep(Ks: np.ndarray, theta: np.ndarray, tasks: Sequence[Task], C: Costs) -> tuple[np.ndarray, ...]:
    """Every task solved at theta: a'1 of shape (T,) and G_m^t = (y a)'K_m(y a) of shape (T, M)."""
    K_theta = np.tensordot(theta, Ks, axes=1)
    sums, terms = [], []
    for (rows, signs), bounds in zip(tasks, _costs(C, tasks), strict=True):
        _, alpha = svc_objective(K_theta[np.ix_(rows, rows)], signs, bounds)
        v = signs * alpha
        sums.append(alpha.sum())
        terms.append([v @ K[np.ix_(rows, rows)] @ v for K in Ks])
    return np.array(sums), np.array(terms)


def objectives(Ks: np.ndarray, theta: np.ndarray, tasks: Sequence[Task], C: Costs) -> np.ndarray:
    """J_t(theta) of every task by LIBSVM, shape (T,)."""
    sums, terms = _sweep(Ks, theta, tasks, C)
    return sums - terms @ theta / 2


def relative_gap(
    Ks: np.ndarray,
    theta: np.ndarray,
    tasks: Sequence[Task],
    C: Costs,
    p: float,
    s: float,
    task_weight: np.ndarray | None = None,
) -> float:
    """The certificate at theta from one alpha per task: 1 - (eta'a - 1/2 ||sum_t eta_t G^t||_{s*}) / (eta'J).

    Here a_t = alpha_t'1, eta_t is proportional to w_t J_t^(p-1), and 1/s + 1/s* = 1. At p = inf eta is the best
    there is, the maximiser of the numerator over the simplex, and the denominator is max J.
    """
    sums, terms = _sweep(Ks, theta, tasks, C)
    values = sums - terms @ theta / 2
    if np.isposinf(p):
        return 1 - _best_lower_bound(sums / values.max(), terms / values.max(), s)
    eta = _normalised(task_weight, len(tasks)) * (values / values.max()) ** (p - 1)
    return float(1 - (eta @ sums - np.linalg.norm(eta @ terms, _conjugate(s)) / 2) / (eta @ values))


def _best_lower_bound(sums: np.ndarray, terms: np.ndarray, s: float) -> float:
    """max over eta in the simplex of eta'a - 1/2 ||sum_t eta_t G^t||_{s*}, evaluated at the eta found."""
    cp = pytest.importorskip("cvxpy")

    bounds = []
    for approx in (False, True):
        eta = cp.Variable(len(sums))
        bound = eta @ sums - power_norm(terms.T @ eta, _conjugate(s), approx=approx) / 2
        if _solve(cp.Problem(cp.Maximize(bound), [eta >= 0, cp.sum(eta) == 1])):
            found = _normalised(np.maximum(eta.value, 0), len(sums))
            bounds.append(found @ sums - np.linalg.norm(found @ terms, _conjugate(s)) / 2)
    return float(max(bounds))


def _conjugate(s: float) -> float:
    return np.inf if s == 1 else 1.0 if np.isinf(s) else s / (s - 1)


def conic_optimum(
    Ks: np.ndarray,
    tasks: Sequence[Task],
    C: Costs,
    p: float,
    s: float,
    task_weight: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """min over theta of M_p(J(theta)) for 1 <= p <= inf, s >= 1, by a conic solver; the optimum and theta.

    The problem is put as the primal one of ``primal_problem``, and where the solver stalls on that, as the dual one of
    ``dual_problem``, both with norms as power cones and then as second-order cones (as exact, for exponents with
    denominators up to 1024). The pair (c K, C / c) has objectives J / c and is used to make them of order one.

    The value returned is M_p(J(theta)) by LIBSVM at the theta found. It is trusted when the solver has the same value,
    and where that stopped short of full accuracy, when ``relative_gap`` is small as well: both to 1e-6, in most cases
    1e-8. Otherwise an ArithmeticError is raised.
    """
    if not p >= 1 or not s >= 1:
        raise ValueError(f"the problem is convex for p >= 1 and s >= 1 only; got p={p}, s={s}")
    uniform = np.full(len(Ks), len(Ks) ** (-1 / s))
    scale = objectives(Ks, uniform, tasks, C).max()
    weights = _normalised(task_weight, len(tasks))
    costs = [bounds / scale for bounds in _costs(C, tasks)]
    best_error, best = np.inf, None
    for build, approx in product((primal_problem, dual_problem), (False, True)):
        problem, read_theta = build(Ks * scale, tasks, costs, p, s, weights, approx)
        if not _solve(problem):
            continue
        theta = np.maximum(read_theta(), 0)
        theta /= np.linalg.norm(theta, s)
        value = power_mean(objectives(Ks, theta, tasks, C) / scale, p, weights)
        error = abs(problem.value / value - 1)
        if problem.status != "optimal":
            error = max(error, relative_gap(Ks, theta, tasks, C, p, s, weights))
        if error < best_error:
            best_error, best = error, (value * scale, theta)
        if error <= 1e-8:
            break
    if best is None or best_error > 1e-6:
        raise ArithmeticError(f"no conic solution to 1e-6 for p={p}, s={s}; the best attempt has {best_error:.1e}")
    return best


def power_norm(x, p, approx):
    """The L_p norm in CVXPY, by power cones or by rational powers; before CVXPY 1.8 only by rational powers."""
    cp = pytest.importorskip("cvxpy")

    by_cones = "approx" in inspect.signature(cp.pnorm).parameters
    return cp.pnorm(x, p, **({"approx": approx} if by_cones else {}))


def primal_problem(Ks, tasks, costs, p, s, weights, approx):
    """The primal problem in features F_m^t of the kernels, F_m^t F_m^t' = K_m[rows, rows], and a function for theta.

    minimise     M_p(z)    over theta, z, f, b, xi
    subject to   z_t >= 1/2 sum_m ||f_m^t||^2 / theta_m + C'xi^t,    ||theta||_s <= 1,
                 y^t (sum_m F_m^t f_m^t + b_t) >= 1 - xi^t,          xi >= 0
    """
    cp = pytest.importorskip("cvxpy")

    theta, z = cp.Variable(len(Ks)), cp.Variable(len(tasks))
    constraints = [power_norm(theta, s, approx=approx) <= 1, *_epigraphs(Ks, tasks, costs, theta, z)]
    mean = weights @ z if p == 1 else power_norm(cp.multiply(weights ** (1 / p), z), p, approx=approx)
    return cp.Problem(cp.Minimize(mean), constraints), lambda: theta.value


def _epigraphs(Ks, tasks, costs, theta, z):
    """z_t >= J_t(theta) as constraints of CVXPY."""
    cp = pytest.importorskip("cvxpy")

    constraints = []
    for t, ((rows, signs), bounds) in enumerate(zip(tasks, costs, strict=True)):
        xi, bias = cp.Variable(len(rows), nonneg=True), cp.Variable()
        decision, penalty = bias, 0
        for m, K in enumerate(Ks):
            F = _factor(K[np.ix_(rows, rows)])
            f = cp.Variable(F.shape[1])
            decision = decision + F @ f
            penalty = penalty + cp.quad_over_lin(f, theta[m]) / 2
        constraints += [z[t] >= penalty + bounds @ xi, cp.multiply(signs, decision) >= 1 - xi]
    return constraints


def dual_problem(Ks, tasks, costs, p, s, weights, approx):
    """The dual problem in beta_t = lam_t alpha_t, and a function for theta, twice the multipliers of r.

    maximise     sum_t beta_t'1 - 1/2 ||r||_{s*}    over beta, lam, r,    1/s + 1/s* = 1,
    subject to   r_m >= sum_t (y beta_t)'K_m(y beta_t) / lam_t,           ||w^(-1/p) lam||_q <= 1,    1/p + 1/q = 1,
                 0 <= beta_t <= lam_t C,  y'beta_t = 0
    """
    cp = pytest.importorskip("cvxpy")

    lam, r = cp.Variable(len(tasks), nonneg=True), cp.Variable(len(Ks))
    if p == 1:
        constraints = [lam == weights]
    else:
        constraints = [power_norm(cp.multiply(weights ** (-1 / p), lam), _conjugate(p), approx=approx) <= 1]
    total, terms = 0, [0] * len(Ks)
    for t, ((rows, signs), bounds) in enumerate(zip(tasks, costs, strict=True)):
        beta = cp.Variable(len(rows), nonneg=True)
        constraints += [beta <= lam[t] * bounds, signs @ beta == 0]
        total = total + cp.sum(beta)
        for m, K in enumerate(Ks):
            F = _factor(K[np.ix_(rows, rows)])
            terms[m] = terms[m] + cp.quad_over_lin(F.T @ cp.multiply(signs, beta), lam[t])
    tops = [r[m] >= term for m, term in enumerate(terms)]
    problem = cp.Problem(cp.Maximize(total - power_norm(r, _conjugate(s), approx=approx) / 2), constraints + tops)
    return problem, lambda: 2 * np.array([np.ravel(top.dual_value)[0] for top in tops])


def conic_minimum(Ks: np.ndarray, tasks: Sequence[Task], C: Costs, scalarize, allowed) -> float:
    """min over theta of S(J(theta)) by a conic solver, from the primal problem.

    ``scalarize(z)`` is an increasing convex expression of CVXPY, ``allowed(theta)`` a list of constraints.
    """
    cp = pytest.importorskip("cvxpy")

    theta, z = cp.Variable(len(Ks), nonneg=True), cp.Variable(len(tasks))
    constraints = allowed(theta) + _epigraphs(Ks, tasks, _costs(C, tasks), theta, z)
    problem = cp.Problem(cp.Minimize(scalarize(z)), constraints)
    if not _solve(problem):
        raise ArithmeticError(f"the conic solver ended with status {problem.status!r}")
    return float(problem.value)


def weighted_optimum(
    Ks: np.ndarray, tasks: Sequence[Task], C: Costs, eta: np.ndarray, s: float
) -> tuple[float, np.ndarray]:
    """min over theta of sum_t eta_t J_t(theta) by a conic solver; the optimum and theta."""
    value, theta = conic_optimum(Ks, tasks, C, p=1, s=s, task_weight=eta)
    return value * float(np.sum(eta)), theta


def cut_optimum(linear: np.ndarray, slopes: np.ndarray, p: float, s: float, weights: np.ndarray | None = None) -> float:
    """min over theta of M_p(z), 1 <= p <= inf, with z_t = max over k of linear[k, t] - slopes[k, t]'theta.

    This is the best lower bound that these cuts can prove, by a conic solver.
    """
    cp = pytest.importorskip("cvxpy")

    weights = _normalised(weights, linear.shape[1])
    scale = linear.max()
    values = []
    for approx in (False, True):
        theta, z = cp.Variable(slopes.shape[2], nonneg=True), cp.Variable(linear.shape[1])
        constraints = [power_norm(theta, s, approx=approx) <= 1]
        constraints += [z >= (a - h @ theta) for a, h in zip(linear / scale, slopes / scale, strict=True)]
        mean = weights @ z if p == 1 else power_norm(cp.multiply(weights ** (1 / p), z), p, approx=approx)
        problem = cp.Problem(cp.Minimize(mean), constraints)
        if _solve(problem):
            values.append(problem.value * scale)
            if problem.status == "optimal":
                break
    return float(values[-1])


# ---------------------------------------------------------------------------------------------------------------------
# Other machines
# ---------------------------------------------------------------------------------------------------------------------
#
# ``kind`` is one of those below; tasks are pairs (rows, targets). With Q the Gram matrix of a task,
#
#     ridge       1/2 ||f||^2 + 1/2 sum_i C_i (y_i - f_i - b)^2
#     svr         1/2 ||f||^2 + sum_i C_i max(0, |y_i - f_i - b| - epsilon)
#     one-class   1/2 ||f||^2 + sum_i C_i max(0, 1 - f_i)
#     logistic    1/2 ||f||^2 + sum_i C_i log(1 + exp(-y_i (f_i + b)))
#     svdd        R^2 + sum_i C_i max(0, ||phi_i - a||^2 - R^2),  and sum(theta) = 1


def machine_objective(kind: str, K: np.ndarray, y: np.ndarray, C: np.ndarray, epsilon: float = 0.1) -> float:
    """J of one task from its dual problem: a linear system for ridge, else a quadratic program."""
    cp = pytest.importorskip("cvxpy")

    if kind == "ridge":
        n = len(y)
        system = np.block([[K + np.diag(1 / C), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        alpha = np.linalg.solve(system, np.append(y, 0))[:n]
        return float(alpha @ y - alpha**2 @ (1 / C) / 2 - alpha @ K @ alpha / 2)
    v = cp.Variable(len(y))
    square = cp.sum_squares(_factor(K).T @ v)
    if kind == "svr":
        objective, constraints = y @ v - epsilon * cp.norm1(v) - square / 2, [cp.abs(v) <= C, cp.sum(v) == 0]
    elif kind == "one-class":
        objective, constraints = cp.sum(v) - square / 2, [v >= 0, v <= C]
    elif kind == "logistic":
        alpha = cp.multiply(y, v)
        entropy = cp.sum(cp.entr(alpha) + cp.entr(C - alpha)) + np.sum(C * np.log(C))
        objective, constraints = entropy - square / 2, [cp.sum(v) == 0]
    else:
        objective, constraints = np.diag(K) @ v - square, [v >= 0, v <= C, cp.sum(v) == 1]
    problem = cp.Problem(cp.Maximize(objective), constraints)
    if not _solve(problem):
        raise ArithmeticError(f"the conic solver ended with status {problem.status!r}")
    return float(problem.value)


def machine_dual(kind: str, K: np.ndarray, y: np.ndarray, C: np.ndarray, v: np.ndarray, epsilon: float = 0.1) -> float:
    """The dual function at the coefficients v of a task, v = y a for "svc": a lower bound on J where v is feasible."""
    square = v @ K @ v
    if kind == "svdd":
        return float(np.diag(K) @ v - square)
    if kind == "ridge":
        return float(v @ y - np.sum(v[C > 0] ** 2 / C[C > 0]) / 2 - square / 2)
    if kind == "logistic":
        alpha, costs = np.abs(v[C > 0]), C[C > 0]
        return float(np.sum([-xlogy(part, part / costs) for part in (alpha, costs - alpha)]) - square / 2)
    linear = {"svc": np.abs(v).sum(), "svr": v @ y - epsilon * np.abs(v).sum(), "one-class": v.sum()}[kind]
    return float(linear - square / 2)


def machine_primal(
    kind: str, K: np.ndarray, y: np.ndarray, C: np.ndarray, v: np.ndarray, b: float, epsilon: float = 0.1
) -> float:
    """The primal objective at f = K v and the intercept b, an upper bound on J; for "svdd" b = R^2 - v'K v."""
    f = K @ v
    if kind == "svdd":
        radius, distances = b + v @ f, np.diag(K) - 2 * f + v @ f
        return float(radius + C @ np.maximum(0, distances - radius))
    losses = {
        "svc": np.maximum(0, 1 - y * (f + b)),
        "logistic": np.logaddexp(0, -y * (f + b)),
        "ridge": (y - f - b) ** 2 / 2,
        "svr": np.maximum(0, np.abs(y - f - b) - epsilon),
        "one-class": np.maximum(0, 1 - f),
    }
    return float(v @ f / 2 + C @ losses[kind])


def infeasibility(kind: str, y: np.ndarray, C: np.ndarray, v: np.ndarray) -> float:
    """How far v is from the feasible set of the dual, relative to its size."""
    if kind == "ridge":
        outside = np.abs(v[C == 0]).sum()
    else:
        kind = "svc" if kind == "logistic" else kind
        low = {"svc": np.minimum(0, y * C), "svr": -C}.get(kind, 0 * C)
        high = {"svc": np.maximum(0, y * C)}.get(kind, C)
        outside = np.maximum(low - v, 0).sum() + np.maximum(v - high, 0).sum()
    imbalance = 0.0 if kind == "one-class" else abs(v.sum() - (kind == "svdd"))
    return float((outside + imbalance) / max(np.abs(v).sum(), 1e-300))


def machine_objectives(kind: str, Ks: np.ndarray, theta: np.ndarray, tasks, C: Costs, epsilon=0.1) -> np.ndarray:
    """J_t(theta) of every task, shape (T,)."""
    K = np.tensordot(theta, Ks, axes=1)
    pairs = zip(tasks, _costs(C, tasks), strict=True)
    return np.array([machine_objective(kind, K[np.ix_(rows, rows)], y, c, epsilon) for (rows, y), c in pairs])


def machine_optimum(
    kind: str, Ks: np.ndarray, tasks, C: Costs, p: float, s: float, weights=None, epsilon: float = 0.1
) -> tuple[float, np.ndarray]:
    """min over theta of M_p(J(theta)), 1 <= p <= inf, by a conic solver from the primal problem; and theta.

    The value is M_p at the theta found, from the dual problems of the tasks; it is trusted where the conic solver has
    the same to 1e-6.
    """
    cp = pytest.importorskip("cvxpy")

    weights = _normalised(weights, len(tasks))
    best_error, best = np.inf, None
    for approx in (False, True):
        theta, z = cp.Variable(len(Ks)), cp.Variable(len(tasks))
        constraints = [power_norm(theta, s, approx=approx) <= 1] if kind != "svdd" else [cp.sum(theta) == 1]
        for t, ((rows, y), costs) in enumerate(zip(tasks, _costs(C, tasks), strict=True)):
            constraints.append(z[t] >= _primal(kind, Ks[:, rows[:, None], rows], theta, y, costs, epsilon))
        mean = weights @ z if p == 1 else power_norm(cp.multiply(weights ** (1 / p), z), p, approx=approx)
        problem = cp.Problem(cp.Minimize(mean), constraints)
        if not _solve(problem):
            continue
        found = np.maximum(theta.value, 0)
        found /= np.linalg.norm(found, s)
        value = power_mean(machine_objectives(kind, Ks, found, tasks, C, epsilon), p, weights)
        error = abs(problem.value / value - 1)
        if error < best_error:
            best_error, best = error, (value, found)
        if error <= 1e-6:
            return best
    raise ArithmeticError(f"no conic solution to 1e-6 for {kind}, p={p}, s={s}; the best attempt has {best_error:.1e}")


def _primal(kind, Ks, theta, y, C, epsilon):
    """The primal objective of one task as an expression in theta, minimised over the task's own variables."""
    cp = pytest.importorskip("cvxpy")

    features = [_factor(K) for K in Ks]
    parts = [cp.Variable(F.shape[1]) for F in features]
    decision = sum(F @ f for F, f in zip(features, parts, strict=True))
    norm = sum(cp.quad_over_lin(f, theta[m]) for m, f in enumerate(parts))
    if kind == "svdd":  # with the centres a_m = f_m / sqrt(theta_m)
        radius, distances = cp.Variable(), np.diagonal(Ks, axis1=1, axis2=2).T @ theta - 2 * decision + norm
        return radius + C @ cp.pos(distances - radius)
    if kind == "one-class":
        return norm / 2 + C @ cp.pos(1 - decision)
    if kind == "logistic":
        return norm / 2 + C @ cp.logistic(-cp.multiply(y, decision + cp.Variable()))
    residual = y - decision - cp.Variable()
    if kind == "ridge":
        return norm / 2 + cp.sum_squares(cp.multiply(np.sqrt(C), residual)) / 2
    return norm / 2 + C @ cp.pos(cp.abs(residual) - epsilon)


# ---------------------------------------------------------------------------------------------------------------------
# The loops people write
# ---------------------------------------------------------------------------------------------------------------------


def algorithm2(
    Ks: np.ndarray,
    tasks: Sequence[Task],
    C: Costs,
    p: float,
    s: float,
    max_sweeps: int = 1000,
    tol: float | None = None,
    task_weight: np.ndarray | None = None,
    svc_tol: float | None = None,
) -> SimpleNamespace:
    """The paper's Algorithm 2, block-coordinate descent for p <= 1, as one would write it around scikit-learn.

    A sweep solves every task at theta, weighs them by eta_t proportional to w_t J_t^(p-1), and takes the theta which
    minimises sum_m u_m / theta_m on the ball, u_m = theta_m^2 sum_t eta_t G_m^t: theta proportional to u^(1/(1+s)). It
    ends when the relative gap of ``relative_gap`` is at most ``tol``, or after ``max_sweeps``. The SVMs are solved to
    ``svc_tol``, a tenth of ``tol`` by default.

    Returns theta, objectives, task_weights (summing to one), objective, gap, n_sweeps and seconds.
    """
    start = time.perf_counter()
    costs, weights = _costs(C, tasks), _normalised(task_weight, len(tasks))
    svc = SVC(C=1.0, kernel="precomputed", tol=svc_tol or (tol or 1e-5) / 10, cache_size=1000)
    blocks = [Ks[:, rows[:, None], rows] for rows, _ in tasks]
    theta = np.full(len(Ks), len(Ks) ** (-1 / s))
    for n_sweeps in range(1, max_sweeps + 1):
        sums, terms = np.empty(len(tasks)), np.empty((len(tasks), len(Ks)))
        for t, (block, (_, signs), bounds) in enumerate(zip(blocks, tasks, costs, strict=True)):
            svc.fit(np.tensordot(theta, block, axes=1), signs, sample_weight=bounds)
            v = np.zeros(len(signs))
            v[svc.support_] = svc.dual_coef_[0]
            sums[t], terms[t] = np.abs(v).sum(), (block @ v) @ v
        values = sums - terms @ theta / 2
        eta = weights * (values / values.max()) ** (p - 1)
        combined = eta @ terms
        gap = 1 - (eta @ sums - np.linalg.norm(combined, _conjugate(s)) / 2) / (eta @ values)
        if (tol is not None and gap <= tol) or n_sweeps == max_sweeps:
            break
        theta = (theta**2 * combined) ** (1 / (1 + s))
        theta /= np.linalg.norm(theta, s)
    return SimpleNamespace(
        theta=theta,
        objectives=values,
        task_weights=eta / eta.sum(),
        objective=power_mean(values, p, weights),
        gap=float(gap),
        n_sweeps=n_sweeps,
        seconds=time.perf_counter() - start,
    )


def single_task_loop(
    Ks: np.ndarray, y: np.ndarray, C: float, s: float, tol: float = 1e-3, max_sweeps: int = 1000
) -> SimpleNamespace:
    """L_s-norm multiple kernel learning of one SVM, the twenty lines around ``SVC(kernel="precomputed")``.

    Returns theta, objective, gap, n_sweeps and seconds.
    """
    start = time.perf_counter()
    svc = SVC(C=C, kernel="precomputed", tol=tol / 10, cache_size=1000)
    theta = np.full(len(Ks), len(Ks) ** (-1 / s))
    for n_sweeps in range(1, max_sweeps + 1):
        svc.fit(np.tensordot(theta, Ks, axes=1), y)
        v = np.zeros(len(y))
        v[svc.support_] = svc.dual_coef_[0]
        terms = (Ks @ v) @ v
        objective = np.abs(v).sum() - theta @ terms / 2
        gap = (np.linalg.norm(terms, _conjugate(s)) - theta @ terms) / 2 / objective
        if gap <= tol or n_sweeps == max_sweeps:
            break
        theta = (theta**2 * terms) ** (1 / (1 + s))
        theta /= np.linalg.norm(theta, s)
    seconds = time.perf_counter() - start
    return SimpleNamespace(theta=theta, objective=float(objective), gap=float(gap), n_sweeps=n_sweeps, seconds=seconds)


def explained_within_tasks(y, predicted, tasks, train, test):
    """1 − Σ (y − ŷ)² / Σ (y − ȳ_t)² over the test rows, each task in units of the variance of its training rows.

    A task without training rows has their overall mean, and the mean of the standard deviations of the other tasks.
    """
    missed = varied = 0.0
    spreads = [np.std(y[train][tasks[train] == task]) for task in np.unique(tasks[train])]
    for task in np.unique(tasks[test]):
        own, seen = test[tasks[test] == task], y[train][tasks[train] == task]
        level, unit = (np.mean(seen), np.std(seen)) if len(seen) else (np.mean(y[train]), np.mean(spreads))
        missed += np.sum((y[own] - predicted[own]) ** 2) / unit**2
        varied += np.sum((y[own] - level) ** 2) / unit**2
    return 1 - missed / varied
