"""Kernel ridge regression: the same answer as scikit-learn, one factorisation for many outputs, constant targets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge

from paretomkl.machines import LeastSquaresSVCTasks, RidgeTasks, _ridge
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall
from tests.machines.cases import gaussian, make_machine, one_task, some_tasks, some_theta

ONE = np.ones(1)


def sample(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, 5 + np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_one_task_with_one_kernel_matches_kernel_ridge_on_centred_data(C):
    """Centring K and y has the same effect as an intercept; alpha = 1 / C in scikit-learn."""
    X, y = sample()
    K = gaussian(X)
    H = np.eye(len(y)) - 1 / len(y)
    theirs = KernelRidge(alpha=1 / C, kernel="precomputed").fit(H @ K @ H, y - y.mean())
    machine = one_task("ridge", K, y, C)
    sweep = machine.sweep(ONE, rtol=1e-10)
    dual, b = machine.decisions(sweep).dual[0], machine.decisions(sweep).intercepts[0]
    assert_allclose(dual, theirs.dual_coef_, rtol=1e-6, atol=1e-9 * np.abs(dual).max())
    assert_allclose(K @ dual + b, H @ K @ H @ theirs.dual_coef_ + y.mean(), rtol=1e-7)
    residual = y - K @ dual - b
    assert_allclose(sweep.upper[0], dual @ K @ dual / 2 + C * residual @ residual / 2, rtol=1e-8)
    assert_allclose(sweep.lower, sweep.upper, rtol=1e-9)


def test_a_zero_kernel_predicts_the_mean():
    _, y = sample()
    machine = one_task("ridge", np.zeros((30, 30)), y, 2.0)
    sweep = machine.sweep(ONE)
    assert_allclose(machine.decisions(sweep).intercepts, y.mean())
    assert_allclose(sweep.upper, np.sum((y - y.mean()) ** 2), rtol=1e-10)


@pytest.mark.parametrize("p", [-1.0, 0.5, 1.0, 2.0, 20.0, np.inf])
def test_a_task_with_constant_targets_has_no_effect(p):
    Ks, tasks, C = some_tasks("ridge")
    rows, y = tasks[1]
    problems = [
        MultiTaskProblem(make_machine("ridge", Ks, chosen, C), PowerMean(p), LsBall(1.1))
        for chosen in (tasks[::2], [tasks[0], (rows, np.full_like(y, 3e5)), tasks[2]])
    ]
    two, three = (CutPool(tol=1e-6).solve(problem) for problem in problems)
    assert three.gap <= 1e-6
    assert three.sweep.upper[1] == three.task_weights[1] == 0
    machine = problems[1].machine
    assert_allclose(machine.decisions(three.sweep).intercepts[1], 3e5)
    assert_allclose(PowerMean(p).value(three.objectives[::2]), two.objective, rtol=1e-5)


def test_outputs_on_the_same_samples_share_one_factorisation(monkeypatch):
    calls = []

    def counted(*args, **options):
        calls.append(len(args[0]))
        return factor(*args, **options)

    factor = _ridge.cho_factor
    monkeypatch.setattr(_ridge, "cho_factor", counted)
    X, y = sample()
    rows = np.arange(30)
    outputs = [(rows, y + k * X[:, 1]) for k in range(7)]
    sweep = make_machine("ridge", gaussian(X)[None], outputs, 1.0).sweep(ONE, rtol=1e-9)
    assert calls == [30]
    for output, value in zip(outputs, sweep.lower, strict=True):
        alone = make_machine("ridge", gaussian(X)[None], [output], 1.0).sweep(ONE, rtol=1e-9)
        assert_allclose(value, alone.lower[0], rtol=1e-9)
    del calls[:]
    other_costs = [np.full(30, 1.0 + (k == 6)) for k in range(7)]
    make_machine("ridge", gaussian(X)[None], outputs, other_costs).sweep(ONE)
    make_machine("ridge", gaussian(X)[None], [outputs[0], (rows[:20], y[:20])], 1.0).sweep(ONE)
    assert sorted(calls) == [20, 30, 30, 30]


def test_classification_by_least_squares_is_ridge_on_the_labels():
    Ks, tasks, C = some_tasks("ridge")
    tasks = [(rows, np.where(y > 0, 1.0, -1.0)) for rows, y in tasks]
    theta = some_theta(0)
    ours, other = (make_machine(kind, Ks, tasks, C).sweep(theta) for kind in ("ls-svc", "ridge"))
    assert_allclose(ours.lower, other.lower)
    assert issubclass(LeastSquaresSVCTasks, RidgeTasks)
