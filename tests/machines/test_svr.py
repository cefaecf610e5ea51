"""Support vector regression: optima that match LIBSVM, nasty problems, the tube, tasks that cost nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVR

from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall
from tests.machines.cases import gaussian, make_machine, one_task, rounding_of, some_tasks, some_theta

ONE = np.ones(1)


def sample(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize(("C", "epsilon"), [(0.1, 0.1), (1.0, 0.0), (1.0, 0.3), (100.0, 0.05)])
def test_one_task_with_one_kernel_matches_the_svr_of_scikit_learn(C, epsilon):
    X, y = sample()
    K = gaussian(X)
    theirs = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-8).fit(K, y)
    machine = one_task("svr", K, y, C, epsilon)
    decisions = machine.decisions(machine.sweep(ONE, rtol=1e-10))
    assert_allclose(K @ decisions.dual[0] + decisions.intercepts[0], theirs.predict(K), atol=1e-4)


def nasty_problems():
    X, y = sample()
    rng = np.random.default_rng(1)
    n = len(y)
    twice = np.vstack([X[:20], X[:20]])
    scaled = 10 ** rng.uniform(-3, 3, n)
    some = np.where(rng.random(n) < 0.3, 0.0, 1.0)
    return {
        "gaussian": (gaussian(X), y, 1.0, 0.1),
        "no tube": (gaussian(X), y, 1.0, 0.0),
        "no tube, hard": (gaussian(X), y, 1e3, 0.0),
        "linear": (X @ X.T, y, 1.0, 0.1),
        "linear, hard": (X @ X.T, y, 1e4, 0.1),
        "quadratic, hard": ((X @ X.T + 1) ** 2, y, 1e3, 0.01),
        "interpolated": (gaussian(X, 0.1), y, 1e4, 0.01),
        "duplicates": (gaussian(twice), np.tile(y[:20], 2), 10.0, 0.1),
        "duplicates that disagree": (gaussian(twice), y, 10.0, 0.1),
        "all samples equal": (np.ones((n, n)), y, 2.0, 0.1),
        "zero kernel": (np.zeros((n, n)), y, 2.0, 0.1),
        "two samples": (np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -3.0]), 10.0, 0.1),
        "rank one": (np.outer(X[:, 0], X[:, 0]), y, 10.0, 0.1),
        "samples of different norm": (gaussian(X) * np.outer(scaled, scaled), y, 1.0, 0.1),
        "costs over twelve decades": (gaussian(X), y, 10 ** rng.uniform(-6, 6, n), 0.1),
        "some costs of zero": (gaussian(X), y, some, 0.1),
        "one target apart": (gaussian(X), np.where(np.arange(n) == 3, 5.0, 0.0), 1.0, 0.1),
        "targets on a grid": (gaussian(X), np.round(y), 1.0, 0.5),
        "targets far from zero": (gaussian(X), y + 1e4, 1.0, 0.1),
        "targets of size 1e-6": (gaussian(X), 1e-6 * y, 1.0, 1e-7),
        "targets of size 1e6": (gaussian(X), 1e6 * y, 1.0, 1e5),
        "tube nearly wide enough": (gaussian(X), y, 1.0, 0.499 * np.ptp(y)),
    }


NASTY = nasty_problems()


@pytest.mark.parametrize("rtol", [1e-2, 1e-7])
@pytest.mark.parametrize("name", NASTY)
def test_bounds_and_intercept_match_the_formulas_on_nasty_problems(name, rtol):
    """The primal and dual objectives from their formulas: the optimum is between them."""
    K, y, C, epsilon = NASTY[name]
    C = np.broadcast_to(C, y.shape)
    machine = one_task("svr", K, y, C, epsilon)
    sweep = machine.sweep(ONE, rtol=rtol)
    beta, b = sweep.warm.dual, sweep.warm.intercepts[0]
    assert np.all(np.abs(beta) <= C)
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    dual = y @ beta - epsilon * np.abs(beta).sum() - beta @ K @ beta / 2
    primal = beta @ K @ beta / 2 + C @ np.maximum(0, np.abs(y - K @ beta - b) - epsilon)
    rounding = rounding_of(sweep, 1e-15 * C.sum() * (np.abs(y).max() + K.max() * np.abs(beta).sum()))
    assert_allclose(sweep.lower[0], dual, rtol=1e-9, atol=rounding)
    assert_allclose(sweep.upper[0], primal, rtol=0.02 * rtol, atol=rounding)
    assert sweep.upper[0] - sweep.lower[0] <= 1.01 * rtol * sweep.upper[0] + rounding


def test_a_wider_tube_costs_less_and_its_cuts_hold_for_narrower_ones():
    Ks, tasks, C = some_tasks("svr")
    wide = make_machine("svr", Ks, tasks, C, epsilon=0.4)
    narrow = make_machine("svr", Ks, tasks, C, epsilon=0.1)
    sweep = wide.sweep(some_theta(0), rtol=1e-8)
    for seed in range(5):
        theta = some_theta(seed)
        upper = narrow.sweep(theta, rtol=1e-8).upper
        assert np.all(sweep.linear - sweep.forms @ theta / 2 <= upper)
        assert np.all(wide.sweep(theta, rtol=1e-8).upper < upper)
    fresh = narrow.sweep(some_theta(0), rtol=1e-8)
    assert_allclose(narrow.sweep(some_theta(0), sweep.warm, rtol=1e-8).lower, fresh.lower, rtol=1e-7)


def test_each_task_may_have_its_own_tube():
    Ks, tasks, C = some_tasks("svr")
    each = make_machine("svr", Ks, tasks, C, epsilon=np.array([0.1, 0.2, 0.0])).sweep(some_theta(0), rtol=1e-8)
    for t, epsilon in enumerate((0.1, 0.2, 0.0)):
        alone = make_machine("svr", Ks, [tasks[t]], C, epsilon=epsilon).sweep(some_theta(0), rtol=1e-8)
        assert_allclose(each.lower[t], alone.lower[0], rtol=1e-7)


@pytest.mark.parametrize("p", [-np.inf, -3.0, -1.0, 0.0, 1e-4, 0.5, 1.0, 2.0, 20.0, np.inf])
@pytest.mark.parametrize("s", [1.0, 1.1])
def test_a_task_inside_the_tube_has_no_effect(p, s):
    """J_t = 0 for every kernel: the other tasks are solved, and certified, as if it were absent."""
    Ks, tasks, C = some_tasks("svr")
    rows, y = tasks[1]
    held = (rows, 7 + 0.19 * (y - y.min()) / np.ptp(y))
    problems = [
        MultiTaskProblem(make_machine("svr", Ks, chosen, C), PowerMean(p), LsBall(s))
        for chosen in (tasks[::2], [tasks[0], held, tasks[2]])
    ]
    with np.errstate(all="raise", under="ignore"):
        two, three = (CutPool(tol=1e-5).solve(problem) for problem in problems)
    assert three.converged
    assert three.sweep.upper[1] == three.task_weights[1] == 0
    assert_allclose(problems[1].machine.decisions(three.sweep).intercepts[1], 7.095)
    assert np.all(problems[1].machine.decisions(three.sweep).dual[1] == 0)
    assert_allclose(PowerMean(p).value(three.objectives[::2]), two.objective, rtol=1e-4)
    assert three.objective == pytest.approx(two.objective * ((2 / 3) ** (1 / p) if p >= 1 else 1), rel=1e-4)


@pytest.mark.parametrize("p", [-np.inf, -1.0, 0.5, 1.0, 20.0, np.inf])
def test_all_tasks_may_cost_nothing(p):
    Ks, tasks, C = some_tasks("svr")
    machine = make_machine("svr", Ks, tasks, C, epsilon=100.0)
    with np.errstate(all="raise", under="ignore"):
        found = CutPool(tol=1e-3).solve(MultiTaskProblem(machine, PowerMean(p), LsBall(1.1)))
    assert found.gap == found.objective == 0
    assert_allclose(found.task_weights, 1 / 3)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf])
def test_an_impossible_tube_is_refused(epsilon):
    Ks, tasks, C = some_tasks("svr")
    with pytest.raises(ValueError, match="epsilon must be finite and at least 0"):
        make_machine("svr", Ks, tasks, C, epsilon=epsilon)
