"""The path as a whole: limits, order, sharing of cuts, and the effect of p."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

import paretomkl
from paretomkl import PAPER_PS, Gaussian, KernelBank, pareto_path
from tests.conftest import make_toy
from tests.oracles import conic_optimum, objectives, power_mean, svc_objective


@pytest.fixture(scope="module")
def path(toy):
    return pareto_path(toy.X, toy.y, tasks=toy.tasks, kernels=toy.kernels, tol=1e-4)


def test_attributes_have_their_shapes_and_keep_their_promises(toy, path):
    T, M = len(toy.pairs), len(toy.kernels)
    assert path.theta.shape == (13, M)
    assert path.objectives.shape == path.task_weights.shape == (13, T)
    assert path.objective.shape == path.gap.shape == (13,)
    assert np.all(path.gap <= 1e-4)
    assert np.all(path.theta >= 0)
    assert np.all(np.linalg.norm(path.theta, 1.1, axis=1) <= 1 + 1e-9)
    assert_allclose(path.task_weights.sum(axis=1), 1, rtol=1e-12)
    assert_array_equal(path.ps, PAPER_PS)
    assert path.task_names == ["task 0", "task 1", "task 2"]
    for i, p in enumerate(path.ps):
        assert_allclose(path.objective[i], power_mean(path.objectives[i], p), rtol=1e-10)


def test_objectives_match_libsvm_at_theta(toy, path):
    for theta, J in zip(path.theta, path.objectives, strict=True):
        assert_allclose(J, objectives(toy.Ks, theta, toy.pairs, 1.0), rtol=1e-5)


@pytest.mark.parametrize("ps", [[1.0, 0.1, 20.0, np.inf], [np.inf, 20.0, 0.1, 1.0], [0.1, np.inf, 1.0, 20.0]])
def test_a_warm_path_equals_cold_solves_in_any_order(toy, ps):
    warm = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=ps, kernels=toy.kernels, tol=1e-5)
    for i, p in enumerate(ps):
        cold = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], kernels=toy.kernels, tol=1e-5)
        assert warm.ps[i] == p
        assert_allclose(warm.objective[i], cold.objective[0], rtol=3e-5)
        assert_allclose(warm.objectives[i], cold.objectives[0], rtol=2e-2)


def test_repeated_exponents_give_repeated_rows(toy):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[2.0, 1.0, 2.0], kernels=toy.kernels)
    assert_array_equal(path.theta[0], path.theta[2])


def test_the_path_costs_about_one_fit():
    """The cuts are shared: 13 points take fewer sweeps than twice one fit of Algorithm 2 at p = 1."""
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == digit)[:12] for digit in range(10)])
    X, y = X[rows] / 16, y[rows]
    path = pareto_path(X, y)
    one = pareto_path(X, y, ps=[1.0], solver="bcd")
    assert path.n_sweeps <= 2 * one.n_sweeps
    assert path.n_sweeps <= 60
    dense = pareto_path(X, y, ps=np.geomspace(0.01, 100, 120))
    assert np.all(dense.gap <= 1e-3)
    assert dense.n_sweeps <= 2 * path.n_sweeps


def test_one_task_and_one_kernel_is_a_plain_svm(toy):
    rows, signs = toy.pairs[0]
    path = pareto_path(toy.X[rows], toy.y[rows], kernels=["linear"], ps=[0.1, 1.0, np.inf], C=2.0)
    J, _ = svc_objective(toy.Ks[0][np.ix_(rows, rows)], signs, 2.0)
    assert_allclose(path.theta, 1.0)
    assert_allclose(path.objective, J, rtol=1e-5)


def test_with_one_task_p_does_not_matter(toy):
    rows, _ = toy.pairs[1]
    path = pareto_path(toy.X[rows], toy.y[rows], kernels=toy.kernels, tol=1e-5)
    assert_allclose(path.objective, path.objective[0], rtol=2e-5)
    assert path.n_sweeps == pareto_path(toy.X[rows], toy.y[rows], ps=[1.0], kernels=toy.kernels, tol=1e-5).n_sweeps


def test_infinite_s_is_the_plain_sum_of_kernels(toy):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.5, 1.0, np.inf], s=np.inf, kernels=toy.kernels)
    assert_allclose(path.theta, 1.0)
    assert np.all(path.gap <= 1e-3)


def test_large_p_approaches_the_worst_task(toy):
    ps = [1.0, 10.0, 100.0, 1000.0, np.inf]
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=ps, kernels=toy.kernels, tol=1e-5)
    worst = path.objectives.max(axis=1)
    assert np.all(np.diff(worst) <= 1e-4 * worst[0])
    assert_allclose(worst[3], worst[4], rtol=2e-3)
    assert_allclose(path.objective[3], path.objective[4], rtol=2e-3)


@pytest.mark.parametrize("p", [0.5, 1.0, 5.0])
def test_s_near_one_approaches_s_one(toy, p):
    values = [
        pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], s=s, kernels=toy.kernels, tol=1e-5).objective[0]
        for s in (1.1, 1.01, 1.001, 1.0)
    ]
    distances = np.abs(np.array(values[:-1]) - values[-1])
    assert distances[2] < distances[1] < distances[0]
    assert distances[2] <= 5e-3 * values[-1]


def test_no_point_dominates_another(path):
    """Pareto optimality: an improvement of every task by more than the gap would contradict the certificates."""
    J = path.objectives
    for i in range(len(J)):
        for j in range(len(J)):
            assert not np.all(J[i] < J[j] * (1 - 2e-4))


def test_task_weights_follow_p(toy, path):
    """The larger p is, the more weight the hardest task has and the less the easiest."""
    hardest = path.objectives.mean(axis=0).argmax()
    easiest = path.objectives.mean(axis=0).argmin()
    assert np.all(np.diff(path.task_weights[:, hardest]) > 0)
    assert np.all(np.diff(path.task_weights[:-1, easiest]) < 0)
    assert np.all(np.diff(path.objectives[:, hardest]) <= 1e-3 * path.objectives[0, hardest])


def test_preference_weights_pull_a_task_down(toy):
    plain = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.5, 1.0, 3.0], kernels=toy.kernels, tol=1e-5)
    for t, name in enumerate(plain.task_names):
        keen = pareto_path(
            toy.X, toy.y, tasks=toy.tasks, ps=[0.5, 1.0, 3.0], kernels=toy.kernels, tol=1e-5, task_weight={name: 20.0}
        )
        assert np.all(keen.objectives[:, t] < plain.objectives[:, t])
        assert np.all(keen.task_weights[:, t] > plain.task_weights[:, t])


def test_preference_weights_enter_the_power_mean(toy):
    omega = np.array([5.0, 1.0, 2.0])
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[1.0, 4.0], kernels=toy.kernels, tol=1e-5, task_weight=omega)
    for i, p in enumerate(path.ps):
        optimum, _ = conic_optimum(toy.Ks, toy.pairs, 1.0, p, 1.1, task_weight=omega)
        assert_allclose(path.objective[i], optimum, rtol=1e-4)


def test_minimax_weights_are_multipliers(toy):
    """At p = ∞ the weights are a certificate: no θ lowers the sum weighted by them below the worst task."""
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[np.inf], kernels=toy.kernels, tol=1e-5)
    J, eta = path.objectives[0], path.task_weights[0]
    assert_allclose(eta @ J, J.max(), rtol=1e-3)


def test_multiclass_matches_explicit_pairs():
    X, y = load_iris(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    path = pareto_path(X, y, ps=[0.1, 1.0])
    assert path.task_names == ["0 vs 1", "0 vs 2", "1 vs 2"]
    matrix = np.full((len(y), 3), np.nan)
    for column, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        both = np.isin(y, (a, b))
        matrix[both, column] = y[both] == b
    again = pareto_path(X, matrix, ps=[0.1, 1.0])
    assert_allclose(again.objectives, path.objectives, rtol=1e-6)


def test_precomputed_stack_is_the_same_problem(toy):
    stack = np.moveaxis(toy.Ks, 0, 2)
    ps = [0.1, 1.0, 5.0]
    direct = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=ps, kernels=toy.kernels, tol=1e-5)
    given = pareto_path(stack, toy.y, tasks=toy.tasks, ps=ps, kernels="precomputed", tol=1e-5)
    assert_allclose(given.objective, direct.objective, rtol=2e-5)


@pytest.mark.parametrize("cache_mb", [0, 512])
def test_threads_change_nothing(toy, cache_mb):
    given = {"tasks": toy.tasks, "ps": [0.1, 2.0], "kernels": KernelBank(toy.kernels, cache_mb=cache_mb)}
    alone, together = (pareto_path(toy.X, toy.y, **given, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_allclose(together.theta, alone.theta, atol=1e-9)


def test_stored_and_computed_kernel_values_differ_by_rounding_only(toy):
    paths = [
        pareto_path(
            toy.X, toy.y, tasks=toy.tasks, ps=[0.1, 2.0], kernels=KernelBank(toy.kernels, cache_mb=mb), tol=1e-8
        )
        for mb in (0, 512)
    ]
    assert max(path.gap.max() for path in paths) <= 1e-8
    assert_allclose(paths[0].objective, paths[1].objective, rtol=2e-8)
    assert_allclose(paths[0].theta, paths[1].theta, atol=2e-4)  # θ is precise to the square root of the gap


def test_an_unreachable_gap_gives_a_warning(toy):
    with pytest.warns(ConvergenceWarning, match=r"CutPool stopped at p=2, max_iter=1, gap .* > tol=1e-12. Raise"):
        path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[2.0], kernels=toy.kernels, tol=1e-12, max_iter=1)
    assert path.gap[0] > 1e-12
    assert not path.solutions[0].converged


def test_very_small_tolerances_end(toy):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.1, 1.0, 5.0, np.inf], kernels=toy.kernels, tol=1e-7)
    assert np.all(path.gap <= 1e-7)


def test_progress_is_reported(toy, capsys):
    pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[1.0, 2.0], kernels=toy.kernels, verbose=1)
    told = capsys.readouterr().err
    assert "points" in told
    assert "gap" in told
    pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[1.0], kernels=toy.kernels, verbose=0)
    assert capsys.readouterr().err == ""


def test_import_is_quick_and_compiles_nothing():
    import subprocess
    import sys

    code = (
        "import time; t = time.process_time(); import paretomkl; print(time.process_time() - t);"
        "from paretomkl.solvers._master import solve_master; print(len(solve_master.signatures))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]
    assert {compiled for _, compiled in runs} == {"0"}
    assert min(float(seconds) for seconds, _ in runs) < 1


def test_public_names():
    assert {"pareto_path", "PAPER_PS", "KernelBank"} <= set(paretomkl.__all__)
    assert len(PAPER_PS) == 13


@pytest.mark.parametrize("seed", range(3))
def test_random_problems_are_certified_everywhere(seed):
    toy = make_toy(seed=100 + seed, n_tasks=4, n=15)
    for s in (1.0, 1.1, 3.0):
        for C in (0.05, 100.0):
            path = pareto_path(toy.X, toy.y, tasks=toy.tasks, s=s, C=C, kernels=toy.kernels)
            assert np.all(path.gap <= 1e-3)


@pytest.mark.parametrize("p", [1e12, 1e308])
def test_huge_exponents_act_like_infinity(toy, p):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p, -p], kernels=toy.kernels)
    assert_array_equal(path.ps, [np.inf, -np.inf])


def test_one_outlier_does_not_cost_time_or_digits():
    """Recomputing the squared distances that lost digits costs no more than using differences for all."""
    rng = np.random.default_rng(0)
    plain = rng.random((600, 5))
    outlier = plain.copy()
    outlier[0] *= 1e6
    bank = KernelBank([Gaussian(0.1)]).fit(outlier)
    side = bank.side(outlier)

    def obvious():
        return np.exp(-50 * ((plain[:, None] - plain) ** 2).sum(axis=2))

    seconds = np.full((10, 2), np.inf)
    for run in seconds:  # alternate, so that both see the same load
        for k, make in enumerate((obvious, lambda: bank.cross(side, side, np.ones(1)))):
            began = time.process_time()
            K = make()
            run[k] = time.process_time() - began
    assert_allclose(K[1:, 1:], obvious()[1:, 1:], atol=1e-6)
    of_obvious, of_bank = seconds.min(axis=0)
    assert of_bank < 3 * of_obvious, "about the same when measured on an idle core"
