"""Baselines for regression: independent and uniform kernels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import ParetoMKLRegressor
from paretomkl.baselines import IndependentMKLRegressor, UniformKernelRegressor

KERNELS = ["linear", ("rbf", {"sigma": 0.5}), ("rbf", {"sigma": 2.0})]
MODELS = [
    IndependentMKLRegressor(kernels=KERNELS, tol=1e-6),
    UniformKernelRegressor(kernels=KERNELS, tol=1e-6),
]


@parametrize_with_checks(MODELS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def table():
    """Three tasks of 14 to 20 samples with their own means, scales and functions."""
    rng = np.random.default_rng(0)
    tasks = np.repeat(["a", "b", "c"], [20, 17, 14])
    X = rng.standard_normal((51, 4)) * [1, 10, 0.1, 1]
    slope = {"a": 1.0, "b": -2.0, "c": 30.0}
    y = np.array(
        [slope[task] * (np.sin(x[0]) + 0.1 * x[1] + 0.2 * e) for task, x, e in zip(tasks, X, X[:, 3], strict=True)]
    )
    return X, y + 5 * (tasks == "b"), tasks


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_independent_kernels_match_each_task_alone(table, loss):
    X, y, tasks = table
    bank = ["linear", ("rbf", {"sigma": 1.0})]
    given = {"kernels": bank, "loss": loss, "C": 3.0, "tol": 1e-6}
    together = IndependentMKLRegressor(**given).fit(X, y, tasks=tasks)
    assert together.theta_.shape == (3, 2)
    assert together.gap_ == together.gaps_.max() <= 1e-6
    for t, task in enumerate("abc"):
        mine = tasks == task
        alone = ParetoMKLRegressor(**given).fit(X[mine], y[mine])
        assert_allclose(together.objectives_[t], alone.objective_, rtol=2e-6)
        assert_allclose(together.theta_[t], alone.theta_, atol=2e-3)
        assert_allclose(together.predict(X[mine], tasks=tasks[mine]), alone.predict(X[mine]), atol=1e-2 * y[mine].std())


def test_uniform_kernels_match_kernel_ridge_on_their_mean(table):
    X, y, tasks = table
    C = 2.0
    model = UniformKernelRegressor(C=C, kernels=KERNELS, tol=1e-8).fit(X, y, tasks=tasks)
    assert_allclose(model.theta_, 1 / 3)
    assert 0 <= model.gap_ <= 1e-8
    for t, task in enumerate("abc"):
        mine = np.flatnonzero(tasks == task)
        stack = model.model_.bank.stack(model.model_.bank.side(X[mine]), model.model_.bank.side(X[mine]))
        K = np.tensordot(model.theta_ * model.model_.bank.factor, stack, axes=1)
        unit = (y[mine] - y[mine].mean()) / y[mine].std()
        n = len(mine)
        system = np.block([[K + np.eye(n) / C, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        solution = np.linalg.solve(system, np.append(unit, 0))
        assert_allclose(model.intercept_[t], solution[-1], atol=1e-7)
        fitted = y[mine].mean() + y[mine].std() * (K @ solution[:-1] + solution[-1])
        assert_allclose(model.predict(X[mine], tasks=tasks[mine]), fitted, rtol=1e-6)


def test_a_task_within_the_tube_has_no_gap(table):
    X, y, tasks = table
    model = UniformKernelRegressor(loss="epsilon_insensitive", epsilon=10.0, kernels=KERNELS).fit(X, y, tasks=tasks)
    assert 0 <= model.gap_ <= 1e-3
    assert_allclose(model.objectives_, 0, atol=1e-6)


def test_impossible_requests_are_refused(table):
    X, y, tasks = table
    for model, words in [
        (IndependentMKLRegressor(loss="absolute"), "loss must be"),
        (UniformKernelRegressor(loss="epsilon_insensitive", epsilon=-1), "epsilon"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, tasks=tasks)
