"""Smallest balls: decisions, radius, bounds on nasty problems, and refused input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import OneClassSVM

from paretomkl import KernelBank
from paretomkl.gram import GramBlocks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall
from tests.machines.cases import gaussian, make_machine, one_task, rounding_of, some_tasks, some_theta

ONE = np.ones(1)


def sample(n=40, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, 3))


def squared_distances(K, alpha):
    """Squared distances of the samples from the centre Σ_i α_i φ(x_i)."""
    return np.diag(K) - 2 * K @ alpha + alpha @ K @ alpha


def test_the_smallest_ball_matches_geometry():
    """An equilateral triangle: the circumscribed circle."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)], [0.5, 0.3]]) + 10
    machine = one_task("svdd", X @ X.T, np.ones(4), 1.0)
    sweep = machine.sweep(ONE, rtol=1e-9)
    assert_allclose(sweep.lower, 1 / 3, rtol=1e-5)
    decisions = machine.decisions(sweep)
    values = X @ X.T @ decisions.dual[0] + decisions.intercepts[0] + decisions.diagonal * np.diag(X @ X.T)
    inner = np.sum((X[3] - X[:3].mean(axis=0)) ** 2)
    assert_allclose(values, [0, 0, 0, 1 / 3 - inner], atol=1e-4)


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_with_a_constant_diagonal_it_matches_the_one_class_svm_of_scikit_learn(nu):
    K = gaussian(sample())
    machine = one_task("svdd", K, np.ones(40), 1 / (nu * 40))
    alpha = machine.decisions(machine.sweep(ONE, rtol=1e-11)).dual[0] / 2
    theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9).fit(K)
    coefficients = np.zeros(40)
    coefficients[theirs.support_] = theirs.dual_coef_[0]
    assert_allclose(alpha * nu * 40, coefficients, atol=1e-3)


@pytest.mark.parametrize("nu", [0.02, 0.2, 0.6])
def test_a_decision_is_the_squared_radius_minus_the_squared_distance(nu):
    X = sample()
    K = (X @ X.T + 1) ** 2
    machine = one_task("svdd", K, np.ones(40), 1 / (nu * 40))
    sweep = machine.sweep(ONE, rtol=1e-10)
    decisions = machine.decisions(sweep)
    values = K @ decisions.dual[0] + decisions.intercepts[0] + decisions.diagonal * np.diag(K)
    alpha = sweep.warm.dual
    radius = values + squared_distances(K, alpha)
    assert_allclose(radius, radius[0])
    loss = np.maximum(0, -values).sum() / (nu * 40)
    assert_allclose(radius[0] + loss, sweep.upper[0], rtol=1e-6)
    assert np.mean(values < -1e-6) <= nu


def nasty_problems():
    X = sample()
    rng = np.random.default_rng(1)
    n = len(X)
    costs = 10 ** rng.uniform(-6, 6, n)
    return {
        "gaussian": (gaussian(X), 0.1),
        "wide gaussian": (gaussian(X, 30.0), 0.1),
        "linear": (X @ X.T, 0.1),
        "all the weight is needed": (X @ X.T, 1 / 40),
        "hard": ((X @ X.T + 1) ** 2, 1.0),
        "duplicates": (gaussian(np.vstack([X[:20], X[:20]])), 0.1),
        "rank one": (np.outer(X[:, 0], X[:, 0]), 0.1),
        "costs over twelve decades": (gaussian(X), costs),
        "some costs of zero": (gaussian(X), np.where(rng.random(n) < 0.3, 0.0, 0.2)),
        "offset": (gaussian(X) + 1e3, 0.1),
        "kernel of size 1e6": (1e6 * gaussian(X), 0.1),
    }


NASTY = nasty_problems()


@pytest.mark.parametrize("rtol", [1e-2, 1e-6])
@pytest.mark.parametrize("name", NASTY)
def test_bounds_and_radius_match_the_formulas_on_nasty_problems(name, rtol):
    K, C = NASTY[name]
    C = np.broadcast_to(C, len(K))
    sweep = one_task("svdd", K, np.ones(len(K)), C).sweep(ONE, rtol=rtol)
    alpha = sweep.warm.dual
    assert np.all((alpha >= 0) & (alpha <= C * (1 + 1e-12)))
    assert_allclose(alpha.sum(), 1, rtol=1e-12)
    constant = 1e-9 * np.diag(K).max()
    assert_allclose(sweep.lower[0] - constant, alpha @ np.diag(K) - alpha @ K @ alpha, rtol=1e-8, atol=0.01 * constant)
    squares = squared_distances(K, alpha)
    radius = 2 * sweep.warm.offsets[0] + alpha @ K @ alpha
    primal = radius + C @ np.maximum(0, squares - radius)
    rounding = rounding_of(sweep, 1e-15 * (1 + C.sum()) * K.max())
    assert_allclose(sweep.upper[0] - constant, primal, rtol=0.02 * rtol, atol=rounding + 0.01 * constant)
    assert sweep.upper[0] <= (1 + 1.01 * rtol) * sweep.lower[0] + rounding


@pytest.mark.parametrize("K", [np.ones((6, 6)), np.array([[3.0]])])
def test_identical_samples_have_a_ball_of_radius_zero(K):
    machine = one_task("svdd", K, np.ones(len(K)), 1.0)
    sweep = machine.sweep(ONE)
    decisions = machine.decisions(sweep)
    assert np.all(sweep.upper <= 1e-8)
    values = K @ decisions.dual[0] + decisions.intercepts[0] - np.diag(K)
    assert_allclose(values, 0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:CutPool stopped", "ignore:Rounding allows")  # as the optimum is zero
@pytest.mark.parametrize("p", [0.5, 1.0, 20.0, np.inf])
def test_a_kernel_that_is_constant_within_a_task_is_the_best_and_does_not_crash_the_solver(p):
    Ks, tasks, C = some_tasks("svdd")
    Ks = np.stack([*Ks, np.ones_like(Ks[0])])
    problem = MultiTaskProblem(make_machine("svdd", Ks, tasks, C), PowerMean(p), LsBall(1.0))
    found = CutPool(tol=1e-2).solve(problem)
    assert np.isfinite(found.gap)
    assert found.theta[4] > 0.999
    assert np.all(found.sweep.upper < 1e-6)


def test_kernels_that_vanish_on_a_task_are_refused():
    """There is no ball to learn, and M_p of its radius would be NaN."""
    Ks, tasks, C = some_tasks("svdd")
    Ks[:, tasks[2][0]] = Ks[:, :, tasks[2][0]] = 0.0
    with pytest.raises(ValueError, match="All kernels vanish on the samples of task 2"):
        make_machine("svdd", Ks, tasks, C)


def test_the_gap_is_relative_to_the_squared_radius():
    Ks, tasks, C = some_tasks("svdd")
    Ks = np.stack([gaussian(np.linspace(0, 1, len(Ks[0]))[:, None], sigma) for sigma in (3.0, 4.0)])
    machine = make_machine("svdd", Ks, tasks, C)
    problem = MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.0))
    sweep = machine.sweep(np.array([1.0, 0.0]), rtol=1e-8)
    best = machine.sweep(np.array([0.0, 1.0]), rtol=1e-8)
    true_gap = 1 - best.upper.mean() / sweep.upper.mean()
    assert true_gap > 0.3
    assert true_gap <= problem.relative_gap(sweep) + 1e-6
    assert CutPool(tol=1e-4).solve(problem).theta[1] > 0.999


def test_diagonals_match_the_kernels():
    X = sample(20)
    rows = [np.arange(0, 12), np.arange(8, 20)]
    for normalize in ("unit", "trace", "capacity"):
        bank = KernelBank(["linear", "poly", ("rbf", {"sigma": 0.5}), "laplacian"], normalize=normalize).fit(X)
        gram = GramBlocks(bank, X, rows)
        for m, theta in enumerate(np.eye(4)):
            with gram.combined(theta) as K:
                expected = np.concatenate([np.diag(K.of_task(t)) for t in range(2)])
            assert_allclose(gram.diagonals()[m], expected, rtol=1e-10)


def test_costs_without_a_feasible_dual_are_refused():
    Ks, tasks, _ = some_tasks("svdd")
    with pytest.raises(ValueError, match=r"The costs C of task 1 sum to 0\.5, but SVDD needs a sum of at least one"):
        make_machine("svdd", Ks, tasks, [1.0, 0.05, 1.0])


def test_weights_outside_the_simplex_are_refused():
    Ks, tasks, C = some_tasks("svdd")
    machine = make_machine("svdd", Ks, tasks, C)
    with pytest.raises(ValueError, match="kernel weights that sum to one"):
        CutPool().solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.1)))
    assert np.all(machine.sweep(some_theta(0)).upper > 0)


def test_a_very_large_kernel_changes_neither_objectives_nor_gap():
    """R² is tiny beside the largest kernel if another kernel is small; J and the gap must still be those of R²."""
    X = sample()
    Ks = np.stack([gaussian(X, 1.0), 1e6 * gaussian(X[:, :2], 0.5)])
    machine = make_machine("svdd", Ks, [(np.arange(40), np.ones(40))], 0.1)
    theta = np.array([1 - 1e-9, 1e-9])
    alone = one_task("svdd", np.tensordot(theta, Ks, axes=1), np.ones(40), 0.1).sweep(ONE, rtol=1e-9)
    assert_allclose(machine.sweep(theta, rtol=1e-9).lower, alone.lower, rtol=1e-6)
