"""The SVM task solver: optima against LIBSVM on ordinary and nasty problems, bounds, cuts, warm starts."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import paretomkl
from paretomkl import KernelBank, pareto_path
from paretomkl.gram import GramBlocks
from paretomkl.machines._svc import SVCStart, SVCTasks
from paretomkl.solvers._base import Run
from tests.machines.cases import rounding_of
from tests.oracles import paper_kernels, svc_gap, svc_objective, svc_objective_qp, svc_value


def make_machine(Ks, tasks, C=1.0, n_jobs=1):
    """Ks (M, N, N); tasks: pairs (rows, signs); C: a number, or the bounds of every task."""
    stack = np.ascontiguousarray(np.moveaxis(np.asarray(Ks), 0, 2))
    gram = GramBlocks(KernelBank("precomputed").fit(stack), stack, [rows for rows, _ in tasks], n_jobs)
    costs = [C] * len(tasks) if np.isscalar(C) else C
    bounds = [np.broadcast_to(c, len(rows)) for c, (rows, _) in zip(costs, tasks, strict=True)]
    return SVCTasks(gram, np.concatenate([signs for _, signs in tasks]), np.concatenate(bounds))


def solve_one(K, signs, C, rtol=1e-10, init=None):
    """The sweep of one task with one kernel."""
    machine = make_machine(K[None], [(np.arange(len(signs)), signs)], [np.asarray(C, dtype=float)])
    start = None if init is None else SVCStart(init, np.zeros(1), np.zeros(1, dtype=int))
    return machine.sweep(np.ones(1), start, rtol)


def reference(K, signs, C):
    """J by LIBSVM, or by a conic solver if LIBSVM stops short of the optimum.

    Samples with C = 0 are left out: LIBSVM would drop them and renumber the others.
    """
    kept = np.broadcast_to(C, signs.shape) > 0
    problem = K[np.ix_(kept, kept)], signs[kept], np.broadcast_to(C, signs.shape)[kept]
    value, alpha = svc_objective(*problem)
    if svc_gap(*problem, alpha) > 1e-6:  # pessimistic for very large C, where the conic solver may give up
        with suppress(ArithmeticError):
            return svc_objective_qp(*problem)[0]
    return value


def sample_problem(n=40, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4))
    signs = np.where(X[:, 0] - X[:, 1] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    return X, signs


def gaussian(X, sigma=0.5):
    return np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / (2 * sigma**2))


def nasty_problems():
    X, signs = sample_problem()
    rng = np.random.default_rng(1)
    n = len(X)
    twice = np.vstack([X[:20], X[:20]])
    rare = np.where(np.arange(n) == 7, 1.0, -1.0)
    decades = 10 ** rng.uniform(-6, 6, n)
    scaled = 10 ** rng.uniform(-3, 3, n)
    some = np.where(rng.random(n) < 0.3, 0.0, 1.0)
    some[:2] = 1.0
    return {
        "gaussian": (gaussian(X), signs, 1.0),
        "linear": (X @ X.T, signs, 1.0),
        "separable": (gaussian(X, 0.1), signs, 100.0),
        "duplicates of one label": (gaussian(twice), np.tile(signs[:20], 2), 10.0),
        "duplicates of opposite labels": (gaussian(twice), np.repeat([1.0, -1.0], 20), 10.0),
        "all samples equal": (np.ones((n, n)), signs, 2.0),
        "zero kernel": (np.zeros((n, n)), signs, 2.0),
        "one sample a class": (np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0]), 10.0),
        "one sample a class, equal": (np.ones((2, 2)), np.array([1.0, -1.0]), 3.0),
        "rank one": (np.outer(X[:, 0], X[:, 0]), signs, 10.0),
        "rank one with zeros": (np.outer(np.maximum(X[:, 0] - 0.5, 0), np.maximum(X[:, 0] - 0.5, 0)), signs, 10.0),
        "one against many": (gaussian(X), rare, 1.0),
        "one against many, hard": (gaussian(X), rare, 1e4),
        "samples of different norm": (gaussian(X) * np.outer(scaled, scaled), signs, 1.0),
        "bounds over twelve decades": (gaussian(X), signs, decades),
        "some bounds of zero": (gaussian(X), signs, some),
        "one free sample a class": (gaussian(X), signs, np.where(np.arange(n) < 2, 1.0, 0.0)),
        "kernel of size 1e-6": (1e-6 * gaussian(X), signs, 1.0),
        "kernel of size 1e6": (1e6 * gaussian(X), signs, 1.0),
        "identity": (np.eye(n), signs, 0.7),
        "offset": (gaussian(X) + 1e4, signs, 1.0),
    }


NASTY = nasty_problems()
any_problem = pytest.mark.parametrize("name", NASTY)


def assert_solved(K, signs, C, rtol=1e-10, accuracy=1e-8):
    """The optimum matches LIBSVM and is between the bounds of the sweep."""
    sweep = solve_one(K, signs, C, rtol)
    expected = reference(K, signs, C)
    assert sweep.lower[0] <= expected * (1 + 1e-9)
    assert sweep.upper[0] >= expected * (1 - 1e-9)
    # the gap is a sum of C_i times margins, which are accurate up to the rounding of K v
    rounding = rounding_of(sweep, 4e-16 * np.sum(np.broadcast_to(C, signs.shape)) * (1 + K.max() * sweep.linear[0]))
    assert sweep.upper[0] - sweep.lower[0] <= 1.01 * rtol * sweep.upper[0] + rounding
    assert_allclose(sweep.lower[0], expected, rtol=accuracy, atol=rounding)


# -------------------------------------------------------------------------------------------------------------- optima
@any_problem
def test_nasty_problems_match_libsvm(name):
    assert_solved(*NASTY[name])


@pytest.mark.parametrize("C", [1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("kernel", ["gaussian", "linear", "quadratic", "rank one"])
def test_any_bound_matches_libsvm(kernel, C):
    X, signs = sample_problem(noise=0.1)
    inner = X @ X.T
    K = {
        "gaussian": gaussian(X),
        "linear": inner,
        "quadratic": (inner + 1) ** 2,
        "rank one": np.outer(X[:, 0], X[:, 0]),
    }
    assert_solved(K[kernel], signs, C, rtol=max(1e-10, 1e-14 * C), accuracy=1e-7)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_scaling_the_kernel_scales_the_dual(scale):
    """(c K, C / c) has the solution α / c and the objective J / c."""
    K, signs, C = NASTY["linear"]
    plain, scaled = solve_one(K, signs, C), solve_one(scale * K, signs, C / scale)
    assert_allclose(scaled.lower * scale, plain.lower, rtol=1e-9)


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(2, 30),
    rank=st.integers(1, 5),
    decade=st.floats(-3, 3),
    duplicates=st.booleans(),
    uneven=st.booleans(),
    seed=st.integers(0, 10_000),
)
@example(n=24, rank=3, decade=3.0, duplicates=True, uneven=True, seed=1152)  # LIBSVM stops 2e-4 below the optimum
def test_random_problems_match_libsvm(n, rank, decade, duplicates, uneven, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank))
    if duplicates:
        X = X[rng.integers(n, size=n)]
    signs = np.where(rng.random(n) < rng.choice([0.1, 0.5]), 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    C = 10.0**decade * (rng.uniform(0.1, 10, n) if uneven else np.ones(n))
    assert_solved(X @ X.T, signs, C, accuracy=1e-7)


@pytest.mark.parametrize(
    "name",
    [name for name in NASTY],
)
def test_the_dual_is_feasible(name):
    K, signs, C = NASTY[name]
    dual = solve_one(K, signs, C).warm.dual
    alpha = signs * dual
    assert np.all(alpha >= 0)
    assert np.all(alpha <= C)
    assert abs(dual.sum()) <= 1e-12 * alpha.sum()


@any_problem
@pytest.mark.parametrize("rtol", [1e-1, 1e-3])
def test_the_optimum_is_between_the_bounds_at_any_accuracy(name, rtol):
    K, signs, C = NASTY[name]
    sweep = solve_one(K, signs, C, rtol)
    expected = reference(K, signs, C)
    assert sweep.lower[0] <= expected * (1 + 1e-9)
    assert sweep.upper[0] >= expected * (1 - 1e-9)
    assert sweep.upper[0] - sweep.lower[0] <= 1.01 * rtol * sweep.upper[0]


@any_problem
def test_a_warm_start_ends_at_the_same_optimum(name):
    K, signs, C = NASTY[name]
    rng = np.random.default_rng(0)
    bound = np.broadcast_to(C, signs.shape)
    # any feasible start: random within the box, with the heavier side scaled down to balance
    alpha = rng.uniform(0, 1, len(signs)) * np.minimum(bound, 10 * np.median(bound[bound > 0]))
    plus, minus = alpha[signs > 0].sum(), alpha[signs < 0].sum()
    alpha[signs > 0] *= min(minus, plus) / plus
    alpha[signs < 0] *= min(minus, plus) / minus
    cold = solve_one(K, signs, C)
    for start in (signs * alpha, cold.warm.dual, 0 * cold.warm.dual):
        warm = solve_one(K, signs, C, init=start)
        assert_allclose(warm.lower, cold.lower, rtol=3e-10, atol=cold.rounding[0] @ cold.theta)


def test_a_solved_task_takes_no_step():
    K, signs, C = NASTY["gaussian"]
    cold = solve_one(K, signs, C, rtol=1e-8)
    warm = solve_one(K, signs, C, rtol=1e-7, init=cold.warm.dual)
    assert warm.warm.steps[0] == 0
    assert_array_equal(warm.warm.dual, cold.warm.dual)


def test_the_start_is_not_written_to():
    K, signs, C = NASTY["gaussian"]
    init = solve_one(K, signs, C, rtol=1e-1).warm.dual
    before = init.copy()
    solve_one(K, signs, C, init=init)
    assert_array_equal(init, before)


@pytest.mark.parametrize(
    ("scale", "C", "seed"),
    [
        (1e4, 1e3, 7),
        (1e4, 1e3, 15),
        (1e8, 1.0, 7),
        (1e12, 1e-2, 19),
    ],
)
def test_large_kernels_with_large_bounds_match_libsvm(scale, C, seed):
    """A dual that is not quite balanced would claim more than J: Σ v = 0 must hold whatever the scale of K."""
    X, signs = sample_problem(seed=seed)
    K = scale * gaussian(X, 1.0)
    sweep = solve_one(K, signs, C, rtol=1e-7)
    assert abs(sweep.warm.dual.sum()) <= 1e-12 * np.abs(sweep.warm.dual).sum()
    assert_allclose(sweep.lower[0], reference(K, signs, C), rtol=1e-6)


@pytest.mark.parametrize(("seed", "C"), [(2, 1e4), (3, 1e4)])
def test_an_impossible_accuracy_ends_quickly_with_the_best_result(seed, C):
    """The margins have rounding errors, and the gap is C times their sum, so 1e-12 is out of reach."""
    X, signs = sample_problem(16, seed)
    K = (X @ X.T + 1) ** 2
    sweep = solve_one(K, signs, C, rtol=1e-12)
    assert_allclose(sweep.lower[0], reference(K, signs, C), rtol=1e-8)
    rounding = rounding_of(sweep, 4e-16 * C * len(signs) * (1 + K.max() * sweep.linear[0]))
    assert_allclose(sweep.upper[0], sweep.lower[0], rtol=1e-8, atol=rounding)
    assert sweep.warm.steps[0] < 100_000


@any_problem
@pytest.mark.parametrize("rtol", [1e-1, 1e-3, 1e-8])
def test_the_upper_bound_is_the_primal_value_of_the_reported_dual_and_intercept(name, rtol):
    """½ v'Kv + Σ C_i max(0, 1 - y_i (K v + b)_i), whatever rounding errors the solver made."""
    K, signs, C = NASTY[name]
    sweep = solve_one(K, signs, C, rtol)
    decision = K @ sweep.warm.dual + sweep.warm.intercepts[0]
    losses = np.broadcast_to(C, signs.shape) @ np.maximum(0, 1 - signs * decision)
    primal = sweep.warm.dual @ K @ sweep.warm.dual / 2 + losses
    rounding = rounding_of(sweep, 4e-16 * np.sum(np.broadcast_to(C, signs.shape)) * (1 + K.max() * sweep.linear[0]))
    assert_allclose(sweep.upper[0], primal, rtol=0.02 * rtol, atol=rounding)


# ---------------------------------------------------------------------------------------------------------- many tasks
@pytest.fixture(scope="module")
def toy():
    """Six tasks: three that overlap, one separate from them, and two one-vs-one tasks; five kernels."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 4))
    tasks = []
    for t, (first, last) in enumerate([(0, 20), (10, 30), (25, 40), (40, 48), (48, 56), (52, 60)]):
        margin = X[first:last, t % 4] + 0.1 * t * rng.standard_normal(last - first)
        tasks.append((np.arange(first, last), np.where(margin > np.median(margin), 1.0, -1.0)))
    return paper_kernels(X)[[0, 1, 4, 5, 7]], tasks


def some_theta(seed, n_kernels=5):
    theta = np.random.default_rng(seed).exponential(size=n_kernels)
    return theta / theta.sum()


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_every_task_of_a_sweep_is_solved(toy, C, n_jobs):
    Ks, tasks = toy
    theta = some_theta(0)
    sweep = make_machine(Ks, tasks, C, n_jobs).sweep(theta, rtol=1e-10)
    K = np.tensordot(theta, Ks, axes=1)
    expected = [svc_objective(K[np.ix_(rows, rows)], signs, C)[0] for rows, signs in tasks]
    assert_allclose(sweep.lower, expected, rtol=1e-8)
    assert_allclose(sweep.upper, expected, rtol=1e-8)


def test_each_sample_of_each_task_has_its_own_bound(toy):
    Ks, tasks = toy
    rng = np.random.default_rng(2)
    costs = [rng.uniform(0.1, 10, len(rows)) for rows, _ in tasks]
    sweep = make_machine(Ks, tasks, costs).sweep(some_theta(0), rtol=1e-10)
    K = np.tensordot(some_theta(0), Ks, axes=1)
    for (rows, signs), bounds, value in zip(tasks, costs, sweep.lower, strict=True):
        assert_allclose(value, svc_objective(K[np.ix_(rows, rows)], signs, bounds)[0], rtol=1e-8)


@pytest.mark.parametrize("rtol", [1e-1, 1e-10])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_cuts_lie_below_the_objectives_everywhere_and_touch_where_they_were_made(toy, C, rtol):
    """F2: J_t(θ') >= linear_t - ½ θ'·forms_t for every θ', from optimal and from inexact duals."""
    Ks, tasks = toy
    machine = make_machine(Ks, tasks, C)
    sweep = machine.sweep(some_theta(0), rtol=rtol)
    for seed in range(1, 15):
        theta = some_theta(seed) * 10 ** np.random.default_rng(seed).uniform(-2, 2)
        optimum = machine.sweep(theta, rtol=1e-10).upper
        assert np.all(sweep.linear - sweep.forms @ theta / 2 <= optimum)
    at_home = sweep.linear - sweep.forms @ sweep.theta / 2
    assert_allclose(at_home, sweep.upper, rtol=1.01 * rtol)


def test_linear_and_forms_match_the_dual(toy):
    Ks, tasks = toy
    machine = make_machine(Ks, tasks, 1.0)
    sweep = machine.sweep(some_theta(0))
    for t, (rows, signs) in enumerate(tasks):
        v = sweep.warm.dual[machine.gram.layout.ptr[t] : machine.gram.layout.ptr[t + 1]]
        assert_allclose(sweep.linear[t], signs @ v, rtol=1e-13)
        assert_allclose(sweep.forms[t], Ks[:, rows[:, None], rows] @ v @ v, rtol=1e-11)
        K = np.tensordot(sweep.theta, Ks[:, rows[:, None], rows], axes=1)
        assert_allclose(sweep.lower[t], svc_value(K, signs, signs * v), rtol=1e-12)


@pytest.mark.parametrize("C", [0.3, 30.0])
def test_gradient_of_the_objectives_matches_finite_differences(toy, C):
    """F1: ∂J_t/∂θ_m = -½ G_m^t at the maximiser."""
    Ks, tasks = toy
    machine = make_machine(Ks, tasks, C)
    theta = some_theta(0)
    sweep = machine.sweep(theta, rtol=1e-12)
    for seed in range(5):
        step = 1e-4 * theta * np.random.default_rng(seed).standard_normal(5)
        above, below = (machine.sweep(theta + h, sweep.warm, rtol=1e-12).lower for h in (step, -step))
        assert_allclose(-sweep.forms @ step, above - below, rtol=1e-3, atol=1e-9 * sweep.lower.max())


def test_objectives_are_positive_decreasing_and_convex_in_theta(toy):
    """F1."""
    Ks, tasks = toy
    machine = make_machine(Ks, tasks, 1.0)
    for seed in range(10):
        theta, rise = some_theta(seed), some_theta(seed + 100)
        low, middle, high = (machine.sweep(theta + h * rise, rtol=1e-10).lower for h in (0, 0.5, 1))
        assert np.all(high > 0)
        assert np.all(high < low)
        assert np.all(middle <= (low + high) / 2 * (1 + 1e-9))


def test_threads_change_nothing(toy):
    Ks, tasks = toy
    one, three = (make_machine(Ks, tasks, 1.0, n_jobs).sweep(some_theta(0)) for n_jobs in (1, 3))
    assert_array_equal(one.warm.dual, three.warm.dual)
    assert_allclose(one.forms, three.forms, rtol=1e-12)


def test_sweeps_are_counted(toy):
    """The run counts them; a machine keeps no state."""
    machine, run = make_machine(*toy), Run()
    before = dict(vars(machine))
    for _ in range(3):
        run.sweep(machine, some_theta(0), None, 1e-2)
    assert run.n_sweeps == 3
    assert run.seconds["tasks"] > 0
    assert all(vars(machine)[name] is value for name, value in before.items())


# --------------------------------------------------------------------------------------------------------- compilation
def small_path():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(12, 2)), np.arange(12) % 3
    kernels = ["linear", "poly", "rbf", ("rbf", {"sigma": 0.25}), "laplacian"]
    path = pareto_path(X, y, ps=[1.0], tol=1e-8, kernels=kernels)
    return [path.theta.tolist(), path.objectives.tolist()]


def test_compiled_and_plain_python_give_the_same_numbers():
    root = Path(paretomkl.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", "import json, tests.machines.test_svc as t; print(json.dumps(t.small_path()))"],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    plain_theta, plain_objectives = json.loads(done.stdout)
    theta, objectives = small_path()
    assert_allclose(plain_theta, theta, rtol=1e-4, atol=1e-6)
    assert_allclose(plain_objectives, objectives, rtol=1e-6)
