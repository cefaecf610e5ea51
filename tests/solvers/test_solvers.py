"""All solvers solve the same problem and report the same certificate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl import pareto_path
from paretomkl.report import dense_ps
from paretomkl.solvers import CutPool
from tests.conftest import make_toy
from tests.oracles import algorithm2, conic_optimum, objectives, power_mean, weighted_optimum

CONVEX_PS = [1.0, 1.5, 2.0, 5.0, 20.0, np.inf]


def true_objective(toy, theta, C, p):
    return power_mean(objectives(toy.Ks, theta, toy.pairs, C), p)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("s", [1.0, 1.1, 1.5, 2.0, 4.0])
def test_cut_pool_reaches_the_conic_optimum(s, C):
    toy = make_toy(seed=round(10 * s + C))
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=CONVEX_PS, s=s, C=C, kernels=toy.kernels, tol=1e-5)
    for p, theta, gap in zip(path.ps, path.theta, path.gap, strict=True):
        optimum, _ = conic_optimum(toy.Ks, toy.pairs, C, p, s)
        excess = true_objective(toy, theta, C, p) / optimum - 1
        assert excess <= 1e-4
        assert gap >= excess - 2e-7, "a certificate must not lie below the truth"


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize("p", CONVEX_PS)
def test_a_loose_gap_is_still_above_the_true_gap(toy, p, tol):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], kernels=toy.kernels, tol=tol)
    optimum, _ = conic_optimum(toy.Ks, toy.pairs, 1.0, p, 1.1)
    excess = true_objective(toy, path.theta[0], 1.0, p) / optimum - 1
    assert excess - 2e-7 <= path.gap[0] <= tol


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0])
@pytest.mark.parametrize("p", [-2.0, 0.0, 0.01, 0.1, 0.5])
def test_below_one_the_weighted_gap_is_confirmed(toy, p, s):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], s=s, kernels=toy.kernels, tol=1e-3)
    J = objectives(toy.Ks, path.theta[0], toy.pairs, 1.0)
    eta = J ** (p - 1) / np.sum(J ** (p - 1))
    least, _ = weighted_optimum(toy.Ks, toy.pairs, 1.0, eta, s)
    assert 1 - least / (eta @ J) <= path.gap[0] + 1e-6
    assert path.gap[0] <= 1e-3
    assert_allclose(path.task_weights[0], eta, rtol=1e-3)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 1.0])
def test_cut_pool_is_no_worse_than_a_long_run_of_algorithm_2(toy, p):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], kernels=toy.kernels, tol=1e-5)
    long = algorithm2(toy.Ks, toy.pairs, 1.0, p, 1.1, max_sweeps=1500, tol=1e-7)
    assert true_objective(toy, path.theta[0], 1.0, p) <= long.objective * (1 + 1e-5)


@pytest.mark.parametrize(
    ("solver", "p"), [("bcd", 0.1), ("bcd", 1.0), ("tseng", 1.0), ("tseng", 3.0), ("tseng", np.inf)]
)
@pytest.mark.parametrize("s", [1.1, 2.0])
def test_solvers_agree(toy, solver, p, s):
    ours = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], s=s, kernels=toy.kernels, tol=1e-4)
    theirs = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], s=s, kernels=toy.kernels, tol=1e-4, solver=solver)
    assert theirs.gap[0] <= 1e-4
    assert_allclose(theirs.objective, ours.objective, rtol=2e-4)


def test_block_coordinate_descent_descends(toy):
    """Every step of Algorithm 2 lowers M_p."""
    from paretomkl.solvers import BlockCoordinateDescent

    values = []
    for max_iter in (1, 2, 4, 8, 16):
        solver = BlockCoordinateDescent(tol=1e-9, max_iter=max_iter)
        with pytest.warns(UserWarning, match=r"stopped at p=0.5, max_iter=\d+, gap"):
            values.append(
                pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.5], kernels=toy.kernels, solver=solver).objective[0]
            )
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_scale_of_the_kernels_does_not_matter(toy, scale):
    """cK with bound C/c is K with bound C, objectives divided by c."""
    stack = np.moveaxis(toy.Ks, 0, 2)
    ps = [0.1, 1.0, 5.0, np.inf]
    plain = pareto_path(stack, toy.y, tasks=toy.tasks, ps=ps, kernels="precomputed", tol=1e-5)
    scaled = pareto_path(scale * stack, toy.y, tasks=toy.tasks, ps=ps, kernels="precomputed", tol=1e-5, C=1 / scale)
    assert_allclose(scaled.objectives * scale, plain.objectives, rtol=1e-3)
    assert_allclose(scaled.objective * scale, plain.objective, rtol=3e-5)


def test_tasks_of_very_different_scale(toy):
    """Objectives spread over seven decades, and every p is still certified."""
    C = np.repeat([1e-8, 1.0, 1e2], len(toy.X) // 3)
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, C=C, kernels=toy.kernels)
    assert path.objectives.max() / path.objectives.min() > 1e7
    assert np.all(path.gap <= 1e-3)


@pytest.mark.parametrize("s", [1.0, 1.1])
@pytest.mark.parametrize("n_kernels", [1, 2, 60, 300])
def test_any_number_of_kernels(toy, n_kernels, s):
    kernels = [("rbf", {"sigma": sigma}) for sigma in np.geomspace(0.05, 20, n_kernels)]
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.1, 1.0, 20.0, np.inf], s=s, kernels=kernels)
    assert np.all(path.gap <= 1e-3)
    assert_allclose(np.linalg.norm(path.theta, s, axis=1), 1, rtol=1e-9)


def test_two_hundred_tasks():
    toy = make_toy(seed=5, n_tasks=200, n=10)
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, kernels=toy.kernels)
    assert path.objectives.shape == (13, 200)
    assert np.all(path.gap <= 1e-3)


@pytest.mark.parametrize("p", [1000.0, 1e6, -50.0, -np.inf])
def test_extreme_exponents(toy, p):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], kernels=toy.kernels)
    assert path.gap[0] <= 1e-3
    extreme = path.objectives[0].max() if p > 0 else path.objectives[0].min()
    assert_allclose(path.objective[0], extreme, rtol=0.05)


def test_every_exponent_has_its_own_point(toy):
    """121 exponents, 121 kernels and no steps: a point is between its neighbours, up to a few pixels of a chart."""
    solver = CutPool(tol=1e-6, borrow=0.0)
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=dense_ps(), kernels=toy.kernels, solver=solver)
    assert path.gap.max() <= 1e-6
    assert len({tuple(theta) for theta in path.theta}) == 121
    finite = path.objectives[:-1]
    off_line = np.abs(finite[1:-1] - (finite[:-2] + finite[2:]) / 2).max(axis=0)
    assert (off_line <= 0.02 * np.ptp(finite, axis=0)).all()
    optimum, _ = conic_optimum(toy.Ks, toy.pairs, 1.0, 5.0, 1.1)
    row = list(path.ps).index(5.0)
    assert true_objective(toy, path.theta[row], 1.0, 5.0) / optimum - 1 <= path.gap[row] + 2e-7


@pytest.mark.parametrize("options", [{"s": np.inf}, {"kernels": 1}, {"tasks": 1}], ids=str)
def test_a_point_that_serves_all_exponents_is_found_once(toy, options):
    kernels = [toy.kernels[0]] if "kernels" in options else toy.kernels
    mine = toy.tasks == toy.tasks[0] if "tasks" in options else np.full(len(toy.y), True)
    given = {"tasks": toy.tasks[mine], "kernels": kernels, "s": options.get("s", 1.1)}
    path = pareto_path(toy.X[mine], toy.y[mine], ps=dense_ps(40), solver=CutPool(tol=1e-6, borrow=0.0), **given)
    assert len({tuple(theta) for theta in path.theta}) == 1
    assert path.n_sweeps < 40


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0])
def test_points_shared_by_several_exponents_are_certified_for_each(toy, s):
    """With borrow=1 most exponents take the point of another one; its gap holds for the new exponent."""
    ps = [0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 5.0, np.inf]
    solver = CutPool(tol=1e-2, borrow=1.0)
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=ps, s=s, kernels=toy.kernels, solver=solver)
    assert len({tuple(theta) for theta in path.theta}) < len(ps)
    assert path.gap.max() <= 1e-2
    for p, theta, gap, eta, objective in zip(
        path.ps, path.theta, path.gap, path.task_weights, path.objective, strict=True
    ):
        J = objectives(toy.Ks, theta, toy.pairs, 1.0)
        assert_allclose(objective, power_mean(J, p), rtol=1e-3)
        if p == np.inf:
            excess = J.max() / conic_optimum(toy.Ks, toy.pairs, 1.0, p, s)[0] - 1
        else:
            assert_allclose(eta, J ** (p - 1) / np.sum(J ** (p - 1)), rtol=0.01)
            least, _ = weighted_optimum(toy.Ks, toy.pairs, 1.0, J ** (p - 1), s)
            excess = 1 - least / (J ** (p - 1) @ J)
        assert gap >= excess - 1e-5
