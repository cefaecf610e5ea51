"""One-class machines: the same answer as scikit-learn after a change of parameters, and nasty problems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import OneClassSVM

from tests.machines.cases import gaussian, one_task, rounding_of

ONE = np.ones(1)


def sample(n=40, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, 3))


@pytest.mark.parametrize("C", [0.2, 0.3, 3.0])
def test_one_task_with_one_kernel_matches_the_one_class_svm_of_scikit_learn(C):
    """ν = Σα / (C n); the coefficients there are α / C, and ρ is 1 / C."""
    K = gaussian(sample())
    machine = one_task("one-class", K, np.ones(40), C)
    decisions = machine.decisions(machine.sweep(ONE, rtol=1e-12))
    alpha = decisions.dual[0]
    theirs = OneClassSVM(kernel="precomputed", nu=alpha.sum() / (C * 40), tol=1e-9).fit(K)
    coefficients = np.zeros(40)
    coefficients[theirs.support_] = theirs.dual_coef_[0]
    assert_allclose(alpha / C, coefficients, atol=1e-4)
    assert_allclose(K @ alpha + decisions.intercepts[0], C * theirs.decision_function(K), atol=1e-4)
    inside = K @ alpha + decisions.intercepts[0]
    assert np.mean(inside < -1e-5) <= alpha.sum() / (C * 40)


def nasty_problems():
    X = sample()
    rng = np.random.default_rng(1)
    n = len(X)
    scaled = 10 ** rng.uniform(-3, 3, n)
    return {
        "gaussian": (gaussian(X), 1.0),
        "wide gaussian": (gaussian(X, 30.0), 1.0),
        "wide gaussian, hard": (gaussian(X, 30.0), 1e3),
        "linear": (X @ X.T, 1.0),
        "linear, hard": (X @ X.T, 1e3),
        "quadratic, hard": ((X @ X.T + 1) ** 2, 1e3),
        "duplicates": (gaussian(np.vstack([X[:20], X[:20]])), 10.0),
        "all samples equal": (np.ones((n, n)), 2.0),
        "zero kernel": (np.zeros((n, n)), 2.0),
        "one sample": (np.array([[2.0]]), 10.0),
        "one sample of norm zero": (np.array([[0.0]]), 10.0),
        "rank one": (np.outer(X[:, 0], X[:, 0]), 10.0),
        "samples of different norm": (gaussian(X) * np.outer(scaled, scaled), 1.0),
        "costs over twelve decades": (gaussian(X), 10 ** rng.uniform(-6, 6, n)),
        "some costs of zero": (gaussian(X), np.where(rng.random(n) < 0.3, 0.0, 1.0)),
        "identity": (np.eye(n), 0.7),
        "offset": (gaussian(X) + 1e4, 1.0),
        "kernel of size 1e6": (1e6 * gaussian(X), 1.0),
    }


NASTY = nasty_problems()


@pytest.mark.parametrize("rtol", [1e-2, 1e-7])
@pytest.mark.parametrize("name", NASTY)
def test_bounds_match_the_formulas_on_nasty_problems(name, rtol):
    """The primal and dual objectives from their formulas: the optimum is between them."""
    K, C = NASTY[name]
    C = np.broadcast_to(C, len(K))
    sweep = one_task("one-class", K, np.ones(len(K)), C).sweep(ONE, rtol=rtol)
    alpha = sweep.warm.dual
    assert np.all((alpha >= 0) & (alpha <= C))
    rounding = rounding_of(sweep, 1e-15 * C.sum() * (1 + K.max() * alpha.sum()))
    assert_allclose(sweep.lower[0], alpha.sum() - alpha @ K @ alpha / 2, rtol=1e-9, atol=rounding)
    primal = alpha @ K @ alpha / 2 + C @ np.maximum(0, 1 - K @ alpha)
    assert_allclose(sweep.upper[0], primal, rtol=0.02 * rtol, atol=rounding)
    assert 0 < sweep.upper[0] <= (1 + 1.01 * rtol) * sweep.lower[0] + rounding
