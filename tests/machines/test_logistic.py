"""Logistic regression: scikit-learn's on kernel features, every route of the library, and what it promises."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from paretomkl import KernelBank, ParetoMKLClassifier, ParetoMKLClassifierCV, load_model, pareto_path, save_model
from paretomkl.machines._logistic import balance, newton_point, solve
from tests.machines.cases import gaussian, make_machine, one_task, some_tasks, some_theta
from tests.oracles import _factor


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:200]), y[:200]


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_one_task_with_one_kernel_is_the_logistic_regression_of_scikit_learn(cancer, C):
    X, y = cancer
    K = gaussian(X, 6.0)
    ours = ParetoMKLClassifier(loss="logistic", kernels="precomputed", C=C, tol=1e-7).fit(K[:, :, None], y)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(_factor(K), y)
    assert_allclose(ours.decision_function(K[:, :, None]), theirs.decision_function(_factor(K)), atol=2e-4)
    objective = np.sum(theirs.coef_**2) / 2
    objective += C * np.logaddexp(0, -np.where(y, 1, -1) * theirs.decision_function(_factor(K))).sum()
    assert_allclose(ours.objective_, objective, rtol=1e-6)


def test_weighted_samples_are_those_of_scikit_learn(cancer):
    X, y = cancer
    weight = np.random.default_rng(0).exponential(size=len(y)) * (np.arange(len(y)) % 7 > 0)
    linear = KernelBank(["linear"], normalize="none")
    ours = ParetoMKLClassifier(loss="logistic", kernels=linear, tol=1e-7, class_weight={0: 3.0})
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000, class_weight={0: 3.0})
    decisions = (model.fit(X, y, sample_weight=weight).decision_function(X) for model in (ours, theirs))
    assert_allclose(*decisions, atol=1e-4)


def test_decisions_are_log_odds():
    """With plenty of samples, the learned probabilities are those that drew the labels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 1))
    odds = np.sin(2 * X[:, 0])
    model = ParetoMKLClassifier(loss="logistic", kernels=["linear", ("rbf", {"sigma": 1.0})], C=0.5)
    model.fit(X, rng.random(2000) < expit(odds))
    assert np.abs(expit(model.decision_function(X)) - expit(odds)).mean() < 0.03


@pytest.mark.parametrize("C", [1e-8, 1e-2, 1e8])
def test_a_task_is_solved_at_any_cost(C):
    """The classes can be separated, so decisions grow with C."""
    X = np.random.default_rng(1).normal(size=(40, 2))
    y, K = np.sign(X[:, 0] + 0.1), gaussian(X, 1.0)
    sweep = one_task("logistic", K, y, np.full(40, C)).sweep(np.ones(1), rtol=1e-8)
    assert 0 <= sweep.gaps[0] <= 2e-8
    assert np.all(np.abs(sweep.warm.dual) <= C)


def test_a_newton_step_solves_the_quadratic_model():
    rng = np.random.default_rng(2)
    K, W, fed, z = gaussian(rng.normal(size=(9, 2))), rng.exponential(size=9), rng.normal(size=9), rng.normal(size=9)
    v, b = newton_point(K, W, fed, z)
    assert_allclose(v, fed - W * (K @ v + b - z), atol=1e-10)
    assert abs(v.sum()) < 1e-10


@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3])
def test_the_intercept_balances_the_classes(spread):
    rng = np.random.default_rng(3)
    f, y, C = spread * rng.normal(size=30), np.repeat([1.0, -1.0], [3, 27]), rng.exponential(size=30)
    alpha = C * expit(-y * (f + balance(f, y, C)))
    assert abs(alpha @ y) <= 1e-12 * alpha.sum()


def test_a_warm_start_takes_fewer_steps(monkeypatch):
    Ks, tasks, C = some_tasks("logistic", sizes=(60, 50, 40))
    machine, steps = make_machine("logistic", Ks, tasks, C), []
    monkeypatch.setattr(
        "paretomkl.machines._logistic.newton_point", lambda *given: (steps.append(1), newton_point(*given))[1]
    )
    first = machine.sweep(some_theta(0), rtol=1e-6)
    cold, steps[:] = len(steps), []
    machine.sweep(0.99 * some_theta(0) + 0.01 * some_theta(1), first.warm, rtol=1e-6)
    assert 0 < len(steps) < cold
    steps[:] = []
    machine.sweep(some_theta(0), first.warm, rtol=1e-5)
    assert not steps


def test_an_indefinite_matrix_gives_a_feasible_dual():
    K = np.eye(6) - 0.5 * np.ones((6, 6))
    y, C = np.repeat([1.0, -1.0], 3), np.full(6, 10.0)
    v, _, _ = solve(K, y, C, np.zeros(6), 1e-6)
    assert np.all((y * v >= 0) & (y * v <= C))
    assert abs(v.sum()) < 1e-12


def test_it_works_wherever_a_loss_does(tmp_path):
    X, y = load_iris(return_X_y=True)
    tasks = np.arange(len(X)) % 2
    path = pareto_path(X, y, ps=[0.1, 1.0, np.inf], machine="logistic", multi_class="one-vs-rest")
    assert np.all(path.gap <= 1e-3)
    assert "loss='logistic'" in path.refit
    search = ParetoMKLClassifierCV(loss="logistic", share=["nothing", "kernel", "function", "everything"], cv=3, ps=1)
    search.set_params(Cs=[1.0, 10.0]).fit(X, y, tasks=tasks)
    assert search.best_score_ > 0.9
    assert "mean_test_log_loss" in search.cv_results_
    pytest.importorskip("skops")
    save_model(search, tmp_path / "search.skops")
    again = load_model(tmp_path / "search.skops")
    assert_allclose(again.decision_function(X, tasks=tasks), search.decision_function(X, tasks=tasks))
