"""The references agree with each other, and with problems solved by hand or by brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.oracles import (
    algorithm2,
    conic_optimum,
    objectives,
    paper_kernels,
    power_mean,
    relative_gap,
    single_task_loop,
    svc_gap,
    svc_objective,
    svc_objective_qp,
    svc_value,
    weighted_optimum,
)

SS = [1, 1.1, 2]


@pytest.fixture(scope="module")
def toy():
    """Four overlapping tasks on 12 to 21 of 40 samples, five kernels, labels with different noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 4))
    tasks = []
    for t, size in enumerate((12, 15, 18, 21)):
        rows = np.sort(rng.choice(40, size, replace=False))
        margin = X[rows, t] - X[rows, (t + 1) % 4] + 0.1 * t * rng.standard_normal(size)
        tasks.append((rows, np.where(margin > np.median(margin), 1.0, -1.0)))
    return paper_kernels(X)[[0, 1, 4, 5, 7]], tasks


def per_sample(tasks):
    rng = np.random.default_rng(1)
    return [rng.uniform(0.2, 5, len(rows)) for rows, _ in tasks]


def test_two_samples_by_hand():
    """One sample per class at squared distance d: both alpha = min(C, 2/d), J = 2 alpha - alpha^2 d / 2."""
    K, signs = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    for C, alpha in ((0.3, 0.3), (10.0, 1.0)):
        for solve in (svc_objective, svc_objective_qp):
            value, found = solve(K, signs, C)
            assert_allclose(value, 2 * alpha - alpha**2, rtol=1e-8)
            assert_allclose(found, [alpha, alpha], rtol=1e-6)


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_libsvm_agrees_with_the_conic_solver_at_any_scale(toy, C, scale):
    Ks, tasks = toy
    rows, signs = tasks[3]
    K = Ks[:, rows[:, None], rows].mean(axis=0) * scale
    value, alpha = svc_objective(K, signs, C / scale)
    assert_allclose(value, svc_objective_qp(K, signs, C / scale)[0], rtol=1e-8)
    assert_allclose(value, svc_value(K, signs, alpha))
    assert abs(signs @ alpha) <= 1e-12 * alpha.sum()
    assert -1e-13 <= svc_gap(K, signs, C / scale, alpha) <= 1e-11 * max(1, C)


def test_kernels_nearly_constant_survive_the_single_precision_of_libsvm():
    """Two samples at squared distance 2e-9 in kernels of size one: alpha = 1e9, but plain LIBSVM returns C."""
    value, alpha = svc_objective(np.array([[1, 1 - 1e-9], [1 - 1e-9, 1]]), np.array([1.0, -1.0]), 1e12)
    assert_allclose(alpha, 1e9, rtol=1e-6)
    assert_allclose(value, 1e9, rtol=1e-6)


def test_libsvm_takes_one_C_per_sample(toy):
    Ks, tasks = toy
    for (rows, signs), C in zip(tasks, per_sample(tasks), strict=True):
        K = Ks[0][np.ix_(rows, rows)]
        value, alpha = svc_objective(K, signs, C)
        assert np.all(alpha <= C * (1 + 1e-12))
        assert_allclose(value, svc_objective_qp(K, signs, C)[0], rtol=1e-8)
        assert svc_gap(K, signs, C, alpha) < 1e-11


def test_paper_kernels_are_positive_semidefinite_of_unit_diagonal():
    Ks = paper_kernels(np.random.default_rng(0).uniform(size=(30, 5)))
    assert Ks.shape == (11, 30, 30)
    assert_allclose(np.diagonal(Ks, axis1=1, axis2=2), 1)
    assert np.linalg.eigvalsh(Ks).min() > -1e-12


def test_power_mean_is_continuous_and_monotone_in_p():
    values, weights = np.array([1.0, 2.0, 7.0]), np.array([3.0, 1.0, 1.0])
    assert_allclose(power_mean(values, 1, weights), 12 / 5)
    assert_allclose(power_mean(values, 1e-8, weights), power_mean(values, 0, weights))
    assert_allclose(power_mean(values, 300), power_mean(values, np.inf), rtol=1e-2)
    means = [power_mean(values, p, weights) for p in (-np.inf, -2, -1, 0, 0.5, 1, 3, np.inf)]
    assert np.all(np.diff(means) > 0)


@pytest.mark.parametrize("s", SS)
def test_one_kernel_is_the_plain_svm(toy, s):
    Ks, tasks = toy
    value, theta = conic_optimum(Ks[:1], tasks[:1], 2.0, p=1, s=s)
    rows, signs = tasks[0]
    assert_allclose(theta, [1.0])
    assert_allclose(value, svc_objective(Ks[0][np.ix_(rows, rows)], signs, 2.0)[0], rtol=1e-8)


@pytest.mark.parametrize("s", SS)
@pytest.mark.parametrize("p", [1, 3, np.inf])
def test_two_kernels_by_brute_force(toy, p, s):
    """A grid over the arc theta = (u, (1 - u^s)^(1/s)), refined twice around its best point."""
    Ks, tasks = toy[0][[0, 3]], toy[1][:2]
    value, _ = conic_optimum(Ks, tasks, 5.0, p, s)
    low, high = 0.0, 1.0
    for _ in range(3):
        grid = np.linspace(low, high, 21)
        thetas = [np.array([u, (1 - u**s) ** (1 / s)]) for u in grid]
        found = [power_mean(objectives(Ks, theta, tasks, 5.0), p) for theta in thetas]
        best = int(np.argmin(found))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 20)]
    assert value <= found[best] * (1 + 1e-9)
    assert_allclose(value, found[best], rtol=1e-5)


@pytest.mark.parametrize("s", [*SS, 1.2345678, 5, np.inf])
@pytest.mark.parametrize("p", [1, 1.5, np.pi, 10, np.inf])
def test_conic_optimum_is_certified(toy, p, s):
    Ks, tasks = toy
    C, task_weight = per_sample(tasks), np.array([1.0, 2.0, 3.0, 4.0])
    value, theta = conic_optimum(Ks, tasks, C, p, s, task_weight)
    assert_allclose(np.linalg.norm(theta, s), 1)
    assert_allclose(value, power_mean(objectives(Ks, theta, tasks, C), p, task_weight), rtol=1e-9)
    assert -1e-9 < relative_gap(Ks, theta, tasks, C, p, s, task_weight) < 1e-6


@pytest.mark.parametrize("p", [1, 2.5, np.inf])
def test_gap_bounds_the_distance_to_the_optimum(toy, p):
    Ks, tasks = toy
    optimum, _ = conic_optimum(Ks, tasks, 3.0, p, 1.1)
    for seed in range(5):
        theta = np.random.default_rng(seed).dirichlet(np.ones(len(Ks)))
        theta /= np.linalg.norm(theta, 1.1)
        value = power_mean(objectives(Ks, theta, tasks, 3.0), p)
        assert 1 - optimum / value <= relative_gap(Ks, theta, tasks, 3.0, p, 1.1) + 1e-8


@pytest.mark.parametrize("s", SS)
def test_algorithm2_reaches_the_conic_optimum_at_p_1(toy, s):
    Ks, tasks = toy
    C, task_weight = per_sample(tasks), np.array([4.0, 3.0, 2.0, 1.0])
    found = algorithm2(Ks, tasks, C, p=1, s=s, tol=1e-5, task_weight=task_weight)
    optimum, _ = conic_optimum(Ks, tasks, C, 1, s, task_weight)
    assert found.gap <= 1e-5
    assert optimum * (1 - 1e-6) <= found.objective <= optimum * (1 + 1.1e-5)
    assert_allclose(found.gap, relative_gap(Ks, found.theta, tasks, C, 1, s, task_weight), atol=2e-6)


@pytest.mark.parametrize("p", [-1, 0, 0.01, 0.5])
def test_algorithm2_is_pareto_optimal_below_p_1(toy, p):
    """Its point is the optimum of the weighted sum with its own weights, eta_t proportional to J_t^(p-1)."""
    Ks, tasks = toy
    found = algorithm2(Ks, tasks, 3.0, p=p, s=1.1, tol=1e-5)
    eta = found.objectives ** (p - 1.0)
    assert_allclose(found.task_weights, eta / eta.sum())
    assert_allclose(found.objective, power_mean(found.objectives, p))
    assert_allclose(eta @ found.objectives, weighted_optimum(Ks, tasks, 3.0, eta, 1.1)[0], rtol=1.1e-5)


@pytest.mark.parametrize("s", SS)
def test_single_task_loop_is_algorithm2_with_one_task(toy, s):
    Ks, tasks = toy
    rows, signs = tasks[2]
    block = Ks[:, rows[:, None], rows]
    loop = single_task_loop(block, signs, 2.0, s, tol=1e-4)
    found = algorithm2(Ks, [(rows, signs)], 2.0, p=0.3, s=s, tol=1e-4)  # with one task p makes no difference
    assert loop.n_sweeps == found.n_sweeps
    assert_allclose(loop.theta, found.theta)
    assert_allclose(loop.objective, conic_optimum(Ks, [(rows, signs)], 2.0, 1, s)[0], rtol=1.1e-4)


def test_loops_stop_at_max_sweeps_with_matching_numbers(toy):
    Ks, tasks = toy
    found = algorithm2(Ks, tasks, 3.0, p=0.5, s=1, max_sweeps=3)
    assert found.n_sweeps == 3
    assert_allclose(found.objectives, objectives(Ks, found.theta, tasks, 3.0), rtol=1e-5)
    rows, signs = tasks[0]
    block = Ks[:, rows[:, None], rows]
    loop = single_task_loop(block, signs, 2.0, 1, tol=1e-6, max_sweeps=3)
    assert loop.n_sweeps == 3
    assert_allclose(loop.objective, svc_objective(np.tensordot(loop.theta, block, 1), signs, 2.0)[0], rtol=1e-6)


def test_conic_optimum_says_what_it_cannot_do(toy):
    Ks, tasks = toy
    with pytest.raises(ValueError, match="p >= 1 and s >= 1"):
        conic_optimum(Ks, tasks, 1.0, p=0.5, s=1.1)
