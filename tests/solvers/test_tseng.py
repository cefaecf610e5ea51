"""Tseng's algorithm agrees with the cut pool, and what it reports is a certificate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from paretomkl.gram import GramBlocks
from paretomkl.kernels import Gaussian, KernelBank, Linear, Polynomial
from paretomkl.machines._svc import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers._cut_pool import CutPool
from paretomkl.solvers._tseng import Saddle, SaddlePoint, Tseng, power_divergence
from paretomkl.weight_sets import LsBall

PS = [1, 2, 5, np.inf]
SS = [1, 1.1, 2]


def make_problem(p, s, C=1.0, sizes=(14, 18, 24, 30), weights=None, seed=0):
    """Overlapping tasks with different noise on 40 samples, and five kernels of unit diagonal."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(40, 4))
    rows, signs = [], []
    for t, size in enumerate(sizes):
        rows.append(np.sort(rng.choice(40, size, replace=False)))
        margin = X[rows[-1], t % 4] - X[rows[-1], (t + 1) % 4] + 0.1 * t * rng.standard_normal(size)
        signs.append(np.where(margin > np.median(margin), 1.0, -1.0))
    kernels = [Linear(), Polynomial(), Gaussian(sigma=0.2), Gaussian(sigma=0.5), Gaussian(sigma=2.0)]
    gram = GramBlocks(KernelBank(kernels).fit(X), X, rows)
    flat = np.concatenate(signs)
    tasks = SVCTasks(gram, flat, np.full(len(flat), C))
    return MultiTaskProblem(tasks, PowerMean(p, weights), LsBall(s))


def random_point(problem, saddle, seed=0):
    """A feasible point in the interior, so that small moves in all directions make sense."""
    rng = np.random.default_rng(seed)
    theta = problem.weight_set.scale_to_boundary(rng.uniform(0.5, 1, problem.machine.n_kernels)) * 0.9
    lam = saddle.omega * rng.uniform(0.3, 0.9, problem.machine.n_tasks)
    beta = saddle.spread(lam) * saddle.C * rng.uniform(0.2, 0.8, len(saddle.C))
    return SaddlePoint(theta, beta, lam)


def phi(problem, saddle, u):
    """Σ_t β_t'1 − θ'G(β_t) / (2 λ_t), straight from the formula."""
    beta = saddle.unit * u.beta
    forms = problem.machine.gram.quadratic_forms(problem.machine.targets * beta)
    return beta.sum() - 0.5 * np.sum(forms @ u.theta / saddle.divisor(u.lam))


@pytest.mark.parametrize("s", SS)
@pytest.mark.parametrize("p", PS)
def test_tseng_agrees_with_the_cut_pool(p, s):
    tol = 1e-4
    found = Tseng(tol=tol).solve(make_problem(p, s))
    best = CutPool(tol=1e-7).solve(make_problem(p, s))
    assert found.converged
    assert found.gap <= tol
    assert_allclose(found.objective, best.objective, rtol=1.1 * tol)
    assert_allclose(found.task_weights.sum(), 1)
    if np.isfinite(p):  # at p = ∞ the weights are multipliers, which need not be unique
        assert_allclose(found.task_weights, best.task_weights, atol=1e-2)


@pytest.mark.parametrize("s", SS)
@pytest.mark.parametrize("p", PS)
def test_the_gap_is_never_below_the_true_gap(p, s):
    optimum = CutPool(tol=1e-8).solve(make_problem(p, s)).objective
    problem = make_problem(p, s)
    for max_iter in (0, 3, 10, 30):
        with pytest.warns(ConvergenceWarning):
            found = Tseng(tol=1e-9, max_iter=max_iter, check_every=5).solve(problem)
        value = problem.scalarization.value(found.sweep.upper)
        assert found.gap >= 1 - optimum / value - 1e-7


@pytest.mark.parametrize("s", SS)
def test_one_task(s):
    """With one task M_p is J_1 for every p."""
    expected = CutPool(tol=1e-7).solve(make_problem(1, s, sizes=(30,))).objective
    for p in PS:
        assert_allclose(Tseng(tol=1e-4).solve(make_problem(p, s, sizes=(30,))).objective, expected, rtol=1.1e-4)


@pytest.mark.parametrize("C", [1e-3, 100.0, 1e4])
def test_any_scale_of_the_dual_variables(C):
    found = Tseng(tol=1e-4).solve(make_problem(2, 1.1, C=C))
    best = CutPool(tol=1e-7).solve(make_problem(2, 1.1, C=C))
    assert_allclose(found.objective, best.objective, rtol=1.1e-4)


def test_preference_weights():
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    for p in PS:
        found = Tseng(tol=1e-4).solve(make_problem(p, 1.1, weights=weights))
        best = CutPool(tol=1e-7).solve(make_problem(p, 1.1, weights=weights))
        assert_allclose(found.objective, best.objective, rtol=1.1e-4)


def test_the_distances_of_the_paper_lead_to_the_same_point():
    found = Tseng(tol=1e-3, rescale=False).solve(make_problem(2, 1.1))
    best = CutPool(tol=1e-7).solve(make_problem(2, 1.1))
    assert_allclose(found.objective, best.objective, rtol=1.1e-3)


def test_a_solution_is_a_start():
    problem = make_problem(2, 1.1)
    first = Tseng(tol=1e-4).solve(problem)
    again = Tseng(tol=1e-3).solve(make_problem(2, 1.1), init=first)
    assert again.n_sweeps == 1
    next_p = Tseng(tol=1e-4).solve(make_problem(5, 1.1), init=first)
    assert_allclose(next_p.objective, CutPool(tol=1e-7).solve(make_problem(5, 1.1)).objective, rtol=1.1e-4)


@pytest.mark.parametrize("p", [1, 3, np.inf])
def test_gradient_matches_finite_differences(p):
    problem = make_problem(p, 1.1)
    saddle = Saddle(problem, unit=0.7)
    u = random_point(problem, saddle)
    slopes, _ = saddle.gradient(u)
    rng = np.random.default_rng(1)
    for k in range(3):
        step = 1e-6 * rng.standard_normal(u[k].shape)
        above = u._replace(**{u._fields[k]: u[k] + step})
        below = u._replace(**{u._fields[k]: u[k] - step})
        rise = phi(problem, saddle, above) - phi(problem, saddle, below)
        assert_allclose(2 * slopes[k] @ step, rise, rtol=1e-6)


def test_cuts_of_a_point_lie_below_the_objectives():
    problem = make_problem(2, 1.1)
    saddle = Saddle(problem, unit=1.0)
    u = random_point(problem, saddle)
    u = saddle.step(u, SaddlePoint(-np.ones(5), np.zeros_like(u.beta), np.zeros_like(u.lam)), 1.0)  # to satisfy β'y = 0
    _, (linear, forms) = saddle.gradient(u)
    for seed in range(5):
        theta = problem.weight_set.scale_to_boundary(np.random.default_rng(seed).uniform(size=5))
        assert np.all(linear - 0.5 * forms @ theta <= problem.machine.sweep(theta).upper)


@pytest.mark.parametrize("s", [1, 1.1, 2])
def test_steps_minimise_slope_and_distance(s):
    """No feasible point has a smaller v'q + ζ D(v, u) than the step."""
    problem = make_problem(2, s)
    saddle = Saddle(problem, unit=0.5)
    saddle.w = np.array([1.0, 0.2, 3.0, 0.7])
    zero = SaddlePoint(np.zeros(5), np.zeros_like(saddle.C), np.zeros(4))
    u = saddle.step(random_point(problem, saddle), zero, 1.0)
    slopes, _ = saddle.gradient(u)

    def cost(v):
        along = v.theta @ slopes.theta - v.beta @ slopes.beta - v.lam @ slopes.lam
        return along + 3.0 * saddle.distance(v, u)

    least = saddle.step(u, slopes, 3.0)
    for seed in range(10):
        other = saddle.step(random_point(problem, saddle, seed), zero, 1.0)
        for share in (1e-4, 0.1, 1.0):
            mixed = SaddlePoint(*((1 - share) * a + share * b for a, b in zip(least, other, strict=True)))
            assert cost(mixed) >= cost(least) - 1e-12


@pytest.mark.parametrize("s", [1.1, 2.0, 5.0])
def test_power_divergence(s):
    rng = np.random.default_rng(0)
    y = np.append(rng.uniform(size=20), 0.0)
    for scale in (1e-4, 1e-2, 1.0):
        x = np.abs(y + scale * rng.standard_normal(21))
        wide = x.astype(np.longdouble), y.astype(np.longdouble)
        expected = np.sum((wide[0] ** s - wide[1] ** s) / s - (wide[0] - wide[1]) * wide[1] ** (s - 1))
        assert_allclose(power_divergence(x, y, s), float(expected), rtol=1e-8)
    assert power_divergence(y, y, s) == 0
