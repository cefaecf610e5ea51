"""SparseMTL: its optimum by a conic solver, its certificate, its limits, and its use in scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import Gaussian, KernelBank
from paretomkl._data.tasks import make_tasks
from paretomkl.baselines._sparse_mtl import SparseMTL
from paretomkl.kernels._kernels import as_bank
from tests.conftest import Toy
from tests.oracles import _factor, _solve, power_norm

KERNELS = ["linear", ("rbf", {"sigma": 0.3}), ("rbf", {"sigma": 1.0})]


# a small tolerance, so that decisions settle: a gap of tol changes them by about its square root
@parametrize_with_checks([SparseMTL(kernels="paper", tol=1e-6), SparseMTL(p=0.5, q=1.5, kernels=KERNELS, tol=1e-6)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_mixed(seed: int = 0, n_tasks: int = 3, n: int = 24) -> Toy:
    """Noisy tasks that share one column and have one of their own, so they use several kernels differently."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_tasks * n, 4))
    tasks = np.repeat([f"task {t}" for t in range(n_tasks)], n)
    own = X[np.arange(len(X)), 1 + np.repeat(np.arange(n_tasks), n) % 3]
    score = (np.sin(5 * X[:, 0]) + np.cos(7 * own) + 0.4 * rng.standard_normal(len(X))).reshape(n_tasks, n)
    y = np.where(score > np.median(score, axis=1, keepdims=True), "yes", "no").ravel()
    kernels = [*(Gaussian(0.3, columns=[k]) for k in range(4)), "linear", Gaussian(0.5)]
    bank = as_bank(kernels).fit(X)
    side = bank.side(X)
    Ks = np.array([bank.cross(side, side, row) for row in np.eye(len(kernels))])
    return Toy(X, y, tasks, kernels, Ks, [(task.rows, task.targets) for task in make_tasks(y, tasks)])


@pytest.fixture(scope="module")
def toy() -> Toy:
    return make_mixed()


def fit(toy, **parameters) -> SparseMTL:
    return SparseMTL(kernels=toy.kernels, **parameters).fit(toy.X, toy.y, tasks=toy.tasks)


def penalty(norms: np.ndarray, p: float, q: float) -> float:
    return float(np.sum(np.sum(norms**q, axis=0) ** (p / q)))


def conic_optimum(toy, q: float, C: float, c: np.ndarray | None = None) -> float:
    """min C Σ hinge + Σ_m c_m (Σ_t ‖f_m^t‖^q)^(1/q) in features F_m^t of the kernels; c = ∞ drops a kernel."""
    cp = pytest.importorskip("cvxpy")

    c = np.ones(len(toy.Ks)) if c is None else c
    kernels = np.flatnonzero(np.isfinite(c))
    norms = cp.Variable((len(toy.pairs), len(c)))
    total, constraints = sum(c[m] * power_norm(norms[:, m], q, approx=False) for m in kernels), []
    for t, (rows, signs) in enumerate(toy.pairs):
        slack, decision = cp.Variable(len(rows), nonneg=True), cp.Variable()
        for m in kernels:
            F = _factor(toy.Ks[m][np.ix_(rows, rows)])
            f = cp.Variable(F.shape[1])
            decision = decision + F @ f
            constraints.append(norms[t, m] >= cp.norm(f))
        constraints.append(cp.multiply(signs, decision) >= 1 - slack)
        total = total + C * cp.sum(slack)
    problem = cp.Problem(cp.Minimize(total), constraints)
    assert _solve(problem)
    return float(problem.value)


# ------------------------------------------------------------ p = 1: the optimum and its certificate
@pytest.mark.parametrize("C", [0.3, 2.0, 100.0])
@pytest.mark.parametrize("q", [1.0, 1.3, 1.5, 1.9, 2.0])
def test_the_optimum_matches_a_conic_solver(toy, q, C):
    optimum = conic_optimum(toy, q, C)
    for tol in (0.1, 1e-3, 1e-6):
        model = fit(toy, q=q, C=C, tol=tol)
        excess = 1 - optimum / model.objective_
        assert -2e-7 <= excess <= model.gap_ + 2e-7  # the certificate, to the accuracy of the conic solver
        assert model.gap_ <= tol
    assert_allclose(model.objective_, optimum, rtol=2e-6)


@pytest.mark.parametrize(("p", "q"), [(1.0, 2.0), (1.0, 1.5), (0.5, 1.5), (1.0, 1.0)])
def test_the_objective_matches_the_predictions(toy, p, q):
    C = 2.0
    model = fit(toy, p=p, q=q, C=C)
    decision = model.decision_function(toy.X, tasks=toy.tasks)
    norms = np.empty_like(model.norms_)
    for t, (rows, signs) in enumerate(toy.pairs):
        assert_allclose(model.objectives_[t], C * np.maximum(0, 1 - signs * decision[rows]).sum(), atol=1e-8)
        v = np.zeros(len(toy.y))
        v[model.support_] = model.dual_coef_[t]
        norms[t] = model.theta_[t] * np.sqrt([v @ K @ v for K in toy.Ks])
    assert_allclose(model.norms_, norms, atol=1e-10)
    assert_allclose(model.objective_, model.objectives_.sum() + penalty(norms, p, q), rtol=1e-10)


@pytest.mark.parametrize(("p", "q"), [(1.0, 2.0), (1.0, 1.3), (0.9, 1.7)])
def test_each_task_is_the_svm_of_its_kernel_weights(toy, p, q):
    """For ``theta_`` and for the weights that belong to the norms: re-weighting has converged."""
    C = 0.3
    model = fit(toy, p=p, q=q, C=C, tol=1e-7)
    decision = model.decision_function(toy.X, tasks=toy.tasks)
    u = np.sum(model.norms_**q, axis=0) ** (1 / q)
    assert np.sum(u > 0) > 1
    for theta in (model.theta_, u ** (q - p) * model.norms_ ** (2 - q) / p):
        for t, (rows, signs) in enumerate(toy.pairs):
            K = np.tensordot(theta[t], toy.Ks[:, rows[:, None], rows], axes=1)
            svc = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K, signs)
            assert_allclose(svc.decision_function(K), decision[rows], atol=5e-3)


def test_an_early_stop_warns(toy):
    with pytest.warns(ConvergenceWarning, match=r"stopped after 4 sweeps \(max_iter=4\), gap .* > tol=1e-08"):
        model = fit(toy, q=1.5, C=10.0, tol=1e-8, max_iter=4)
    assert model.gap_ > 1e-8
    assert model.objective_ * (1 - model.gap_) <= fit(toy, q=1.5, C=10.0, tol=1e-6).objective_ <= model.objective_


# ------------------------------------------------------------ p < 1: descent to a stationary point
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("p", [0.9, 0.5, 0.1])
def test_descent_to_a_stationary_point(toy, p, q):
    C, tol = 0.3, 1e-5
    start, model = fit(toy, q=q, C=C, tol=tol), fit(toy, p=p, q=q, C=C, tol=tol)
    assert_allclose(model.history_[0], start.objectives_.sum() + penalty(start.norms_, p, q), rtol=1e-10)
    assert np.all(np.diff(model.history_) < 0)
    assert model.objective_ == model.history_[-1]
    used = (model.norms_ > 0).any(axis=0)
    assert used.sum() <= (start.norms_ > 0).any(axis=0).sum()
    # stationary: the convex problem that touches the objective here cannot be lowered by more than the gap
    u = np.sum(model.norms_**q, axis=0) ** (1 / q)
    c = np.full(len(u), np.inf)
    c[used] = p * u[used] ** (p - 1)
    here = model.objectives_.sum() + c[used] @ u[used]
    assert 0 <= model.gap_ <= tol
    assert here - conic_optimum(toy, q, C, c) <= model.gap_ * model.objective_ + 1e-6 * here


def test_no_small_change_of_a_solution_lowers_the_objective(toy):
    """Along random directions in the span of the kernels in use, intercepts included, for p < 1."""
    p, q, C = 0.9, 1.5, 0.3
    model = fit(toy, p=p, q=q, C=C, tol=1e-7)
    used = np.flatnonzero((model.norms_ > 0).any(axis=0))
    assert len(used) > 1
    v = np.zeros((3, len(toy.y)))
    v[:, model.support_] = model.dual_coef_

    def objective(coefficients, intercepts):  # f_m^t = Σ_i coefficients_tmi k_m(x_i, ·)
        norms = np.zeros((3, len(toy.Ks)))
        loss = 0.0
        for t, (rows, signs) in enumerate(toy.pairs):
            parts = np.array([toy.Ks[m] @ coefficients[t, k] for k, m in enumerate(used)])
            norms[t, used] = np.sqrt(np.sum(coefficients[t] * parts, axis=1))
            loss += C * np.maximum(0, 1 - signs * (parts.sum(axis=0)[rows] + intercepts[t])).sum()
        return loss + penalty(norms, p, q)

    best = model.theta_[:, used, None] * v[:, None, :]
    assert_allclose(objective(best, model.intercept_), model.objective_, rtol=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(30):
            nearby = best + size * rng.standard_normal(best.shape) * np.abs(best).max()
            shifted = model.intercept_ + size * rng.standard_normal(3)
            assert objective(nearby, shifted) > model.objective_ * (1 - 1e-6)
    for factor in (0.9, 0.99, 1.01, 1.1):  # each kernel longer or shorter
        for k in range(len(used)):
            scaled = best.copy()
            scaled[:, k] *= factor
            assert objective(scaled, model.intercept_) > model.objective_ * (1 - 1e-6)


# ------------------------------------------------------------ limits
def test_with_p_and_q_of_one_the_tasks_are_independent(toy):
    together = fit(toy, q=1.0, C=3.0, tol=1e-6)
    alone = 0.0
    for rows, _ in toy.pairs:
        alone += SparseMTL(C=3.0, kernels=toy.kernels, tol=1e-6).fit(toy.X[rows], toy.y[rows]).objective_
    assert_allclose(together.objective_, alone, rtol=2e-6)


def test_with_one_task_q_does_not_matter(toy):
    rows, _ = toy.pairs[1]
    models = [SparseMTL(q=q, kernels=toy.kernels, C=5.0).fit(toy.X[rows], toy.y[rows]) for q in (1.0, 1.5, 2.0)]
    for model in models[1:]:
        assert_allclose(model.norms_, models[0].norms_, rtol=1e-12)


def test_one_kernel_with_one_task_is_an_svm_with_its_own_norm():
    X, y = make_classification(120, 4, random_state=1)
    model = SparseMTL(kernels=KernelBank([Gaussian(1.0)], normalize="none"), C=3.0, tol=1e-8).fit(X, y)
    assert_allclose(model.theta_, model.norms_, rtol=1e-3)  # ‖f‖ = min ½‖f‖²/θ + ½θ, at θ = ‖f‖
    svc = SVC(gamma=0.5, C=3.0 * model.theta_[0, 0], tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-3)


def test_the_optimum_is_continuous_in_q(toy):
    values = [fit(toy, q=q, C=3.0, tol=1e-6).objective_ for q in (2.0, 1.9999, 1.5, 1.0001, 1.0)]
    assert np.all(np.diff(values) > -2e-6 * values[0])  # the norm falls in q
    assert_allclose(values[1], values[0], rtol=1e-3)
    assert_allclose(values[3], values[4], rtol=1e-3)
    theta = fit(toy, q=2.0, C=3.0).theta_
    assert_array_equal(theta, np.tile(theta[0], (3, 1)))


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_a_small_C_leaves_the_intercepts_alone(toy, p, q):
    model = fit(toy, p=p, q=q, C=1e-4)
    assert_array_equal(model.norms_, 0)
    assert_array_equal(model.theta_, 0)
    assert_allclose(model.objective_, 1e-4 * len(toy.y))  # classes of equal size
    assert model.gap_ <= 1e-3
    assert len(model.support_) == 0
    assert_allclose(model.decision_function(toy.X, tasks=toy.tasks), 0)
    heavy = SparseMTL(p=p, q=q, C=1e-4, kernels=toy.kernels, class_weight={"yes": 3.0})
    heavy.fit(toy.X, toy.y, tasks=toy.tasks)
    assert_array_equal(heavy.predict(toy.X, tasks=toy.tasks), "yes")
    assert_allclose(heavy.intercept_, 1.0)


def test_some_tasks_may_use_no_kernels():
    """q = 1: a task of pure noise stays at zero while the other is learned."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 2))
    tasks = np.repeat([0, 1], 40)
    y = np.where(tasks == 0, X[:, 0] > 0.5, rng.permutation(np.arange(80) % 2 == 0))
    model = SparseMTL(q=1.0, C=0.3, kernels=[Gaussian(0.5), Gaussian(1.0)], tol=1e-4).fit(X, y, tasks=tasks)
    assert model.norms_[0].max() > 0
    assert_array_equal(model.norms_[1], 0)
    assert model.score(X[:40], y[:40], tasks=tasks[:40]) > 0.9
    assert_allclose(np.ptp(model.decision_function(X[40:], tasks=tasks[40:])), 0)
    assert_array_equal(model.dual_coef_[1], 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_large_C_is_a_hard_margin():
    """At C = 1e7, what rounding may cost is 1e-4 of the objective, so that no gap of 1e-6 can be proved."""
    toy = make_mixed(seed=2)
    kernels = [Gaussian(0.1), Gaussian(0.2)]  # everything can be separated
    models = [SparseMTL(q=1.5, C=C, kernels=kernels, tol=1e-6) for C in (1e4, 1e7)]
    soft, hard = (model.fit(toy.X, toy.y, tasks=toy.tasks) for model in models)
    assert_allclose(hard.objective_, soft.objective_, rtol=2e-4)
    assert hard.score(toy.X, toy.y, tasks=toy.tasks) == 1.0
    assert hard.objectives_.sum() <= 2e-4 * hard.objective_


@pytest.mark.parametrize("factor", [1e-2, 1e2])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_features_of_any_scale(toy, p, factor):
    """Kernels of very different size: x'z and its cube, which scale, and a Gaussian, which does not.

    With features of 100, the values of the cube have thirteen digits, and rounding accounts for a gap of 1e-3.
    """
    bank = KernelBank(["linear", ("poly", {"degree": 3}), Gaussian(0.3 * factor)], normalize="none")
    model = SparseMTL(p=p, q=1.5, kernels=bank, C=10.0, tol=2e-3).fit(factor * toy.X, toy.y, tasks=toy.tasks)
    assert model.gap_ <= 2e-3
    assert model.score(factor * toy.X, toy.y, tasks=toy.tasks) > 0.8


def test_noise_kernels_get_no_weight():
    rng = np.random.default_rng(0)
    X = rng.random((150, 6))
    tasks = np.arange(150) % 3
    y = X[:, 0] + 0.05 * tasks * X[:, 1] > 0.5
    kernels = [Gaussian(0.5, columns=[k]) for k in range(6)]

    def used(p, C):
        model = SparseMTL(p=p, C=C, kernels=kernels).fit(X, y, tasks=tasks)
        return np.flatnonzero((model.norms_ > 0).any(axis=0)).tolist()

    assert used(1.0, 0.2) == [0]
    noisy = used(1.0, 1.0)  # errors cost more, so noise kernels get weight
    assert 0 in used(0.5, 1.0)
    assert len(used(0.5, 1.0)) < len(noisy)


# ------------------------------------------------------------ ways to name the tasks
def test_all_ways_to_give_the_tasks_are_one_problem(toy):
    frame = pd.DataFrame(toy.X, columns=list("abcd")).assign(site=toy.tasks)
    matrix = np.full((len(toy.y), 3), np.nan)
    for t, (rows, signs) in enumerate(toy.pairs):
        matrix[rows, t] = signs
    by_tasks = fit(toy, q=1.5, C=3.0)
    by_column = SparseMTL(q=1.5, C=3.0, kernels=toy.kernels, task_column="site").fit(frame, toy.y)
    by_matrix = SparseMTL(q=1.5, C=3.0, kernels=toy.kernels).fit(toy.X, matrix)
    for model in (by_column, by_matrix):
        assert_allclose(model.norms_, by_tasks.norms_, atol=1e-9)
    predicted = by_tasks.predict(toy.X, tasks=toy.tasks)
    assert_array_equal(by_column.predict(frame), predicted)
    signs = by_matrix.predict(toy.X)
    for t, (rows, _) in enumerate(toy.pairs):
        assert_array_equal(np.where(signs[rows, t] > 0, "yes", "no"), predicted[rows])
    assert by_tasks.task_names_ == ["task 0", "task 1", "task 2"]


@pytest.mark.parametrize(("p", "q"), [(1.0, 2.0), (1.0, 1.5), (0.5, 1.2)])
def test_more_than_two_classes(p, q):
    X, y = load_iris(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    model = SparseMTL(p=p, q=q, C=10.0)
    assert cross_val_score(model, X, y, cv=3).min() > 0.9
    model.fit(X, y)
    assert model.theta_.shape == model.norms_.shape == (3, 13)
    assert model.decision_function(X).shape == (150, 3)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))


def test_precomputed_kernels_and_threads(toy):
    stack = np.moveaxis(toy.Ks, 0, 2)
    model = fit(toy, q=1.5, C=3.0)
    given = SparseMTL(q=1.5, C=3.0, kernels="precomputed", n_jobs=2).fit(stack, toy.y, tasks=toy.tasks)
    assert_allclose(given.objective_, model.objective_, rtol=1e-3)
    assert_array_equal(
        given.predict(stack, tasks=toy.tasks),
        np.where(given.decision_function(stack, tasks=toy.tasks) > 0, "yes", "no"),
    )


# ------------------------------------------------------------ weights
@pytest.mark.parametrize("q", [1.5, 2.0])
def test_weights_act_like_repetitions(toy, q):
    weight = np.arange(len(toy.y)) % 3
    weight[::4] = 1
    repeated = np.repeat(np.arange(len(toy.y)), weight)
    model = SparseMTL(q=q, C=2.0, kernels=toy.kernels, tol=1e-6)
    weighted = model.fit(toy.X, toy.y, sample_weight=weight, tasks=toy.tasks).objective_
    again = model.fit(toy.X[repeated], toy.y[repeated], tasks=toy.tasks[repeated]).objective_
    assert_allclose(weighted, again, rtol=2e-6)


# ------------------------------------------------------------ errors
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"p": 1.5}, "p must be a number greater than 0 and at most 1, got p=1.5"),
        ({"p": 0.0}, "p must be a number greater than 0 and at most 1"),
        ({"p": float("nan")}, "p must be a number greater than 0"),
        ({"q": 2.5}, "q must be a number between 1 and 2, got q=2.5"),
        ({"q": 0.5}, "q must be a number between 1 and 2"),
        ({"q": "2"}, "q must be a number between 1 and 2"),
        ({"C": -1.0}, "C must be a number greater than 0"),
        ({"tol": 0.0}, "tol must be a number between 0 and 1"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"class_weight": "heavy"}, "class_weight must be None, 'balanced' or a dict"),
    ],
)
def test_bad_parameters_are_named(toy, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(toy, **parameters)


def test_an_indefinite_kernel_is_named(toy):
    stack = np.moveaxis(toy.Ks, 0, 2).copy()
    stack[:, :, 2] -= 2 * np.eye(len(toy.y))
    with pytest.raises(ValueError, match=r"Kernel .*2.* is not positive semidefinite"):
        SparseMTL(kernels="precomputed").fit(stack, toy.y, tasks=toy.tasks)
