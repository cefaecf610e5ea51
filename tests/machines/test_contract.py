"""What every machine must satisfy: certified optima of the whole problem, cuts, warm starts, weights, growth of C."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl import KernelBank
from paretomkl.gram import GramBlocks
from paretomkl.machines import MACHINES
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import BlockCoordinateDescent, CutPool
from paretomkl.weight_sets import LsBall
from tests.machines.cases import EPSILON, KINDS, gaussian, make_machine, some_tasks, some_theta, steps_of, targets_of
from tests.oracles import machine_objectives, machine_optimum, power_mean

every_kind = pytest.mark.parametrize("kind", KINDS)


def solve(machine, p, s, tol, solver=CutPool, **options):
    return solver(tol=tol, **options).solve(MultiTaskProblem(machine, PowerMean(p), LsBall(s)))


# -------------------------------------------------------------------------------------------------------------- optima
@pytest.mark.parametrize("p", [1.0, 2.0, 20.0, np.inf])
@pytest.mark.parametrize(
    ("kind", "s"), [(kind, s) for kind in KINDS for s in ((1.0,) if kind == "svdd" else (1.0, 1.1, 2.0))]
)
def test_the_optimum_matches_a_conic_solver_and_the_gap_bounds_the_true_one(kind, s, p):
    Ks, tasks, C = some_tasks(kind, seed=int(10 * s))
    optimum, _ = machine_optimum(kind, Ks, tasks, C, p, s, epsilon=EPSILON)
    machine = make_machine(kind, Ks, tasks, C)
    for tol in (1e-4, 1e-1):
        found = solve(machine, p, s, tol)
        value = power_mean(found.sweep.upper, p)
        assert value >= optimum * (1 - 2e-6)
        assert 1 - optimum / value <= found.gap + 2e-6
        assert found.gap <= tol
    assert_allclose(solve(machine, p, s, 1e-5).objective, optimum, rtol=1e-4)


@pytest.mark.parametrize("p", [-1.0, 0.0, 0.3])
@every_kind
def test_below_p_one_the_certificate_matches_an_independent_solve_of_the_weighted_sum(kind, p):
    Ks, tasks, C = some_tasks(kind, seed=5)
    s = 1.0 if kind == "svdd" else 1.1
    found = solve(make_machine(kind, Ks, tasks, C), p, s, 1e-4)
    eta = PowerMean(p).gradient(found.sweep.upper)
    optimum, _ = machine_optimum(kind, Ks, tasks, C, 1.0, s, weights=eta, epsilon=EPSILON)
    true_gap = 1 - optimum * eta.sum() / (eta @ found.sweep.upper)
    assert -2e-6 <= true_gap <= found.gap + 2e-6
    assert found.gap <= 1e-4


@every_kind
def test_every_task_of_a_sweep_is_solved(kind):
    Ks, tasks, C = some_tasks(kind, seed=1)
    scale = np.array([0.5, 1.0, 3.0])
    expected = scale * machine_objectives(kind, Ks, some_theta(0), tasks, C, EPSILON)
    for n_jobs in (1, 3):
        sweep = make_machine(kind, Ks, tasks, C, n_jobs=n_jobs, scale=scale).sweep(some_theta(0), rtol=1e-9)
        assert_allclose(sweep.lower, expected, rtol=1e-6)
        assert_allclose(sweep.upper, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["ridge", "svr", "one-class", "logistic"])
def test_block_coordinate_descent_ends_where_the_cut_pool_does(kind):
    Ks, tasks, C = some_tasks(kind, seed=2)
    machine = make_machine(kind, Ks, tasks, C)
    ours, other = (solve(machine, 0.5, 2.0, 1e-5, solver) for solver in (CutPool, BlockCoordinateDescent))
    assert_allclose(ours.objective, other.objective, rtol=3e-5)


def test_block_coordinate_descent_solves_balls_under_kernels_of_one_diagonal():
    X = np.random.default_rng(0).standard_normal((20, 3))
    Ks = np.stack([gaussian(X[:, [j]], 1.0) for j in range(3)])
    machine = make_machine("svdd", Ks, [(np.arange(12), np.ones(12)), (np.arange(12, 20), np.ones(8))], 0.3)
    ours, other = (solve(machine, 1.0, 1.0, 1e-3, solver) for solver in (CutPool, BlockCoordinateDescent))
    assert_allclose(ours.objective, other.objective, rtol=2e-3)


# ---------------------------------------------------------------------------------------------------------------- cuts
@pytest.mark.parametrize("rtol", [1e-1, 1e-9])
@every_kind
def test_cuts_lie_below_the_objectives_and_touch_where_they_were_made(kind, rtol):
    Ks, tasks, C = some_tasks(kind, seed=3)
    machine = make_machine(kind, Ks, tasks, C)
    sweep = machine.sweep(some_theta(0), rtol=rtol)
    assert np.all(sweep.forms >= 0)
    for seed in range(1, 15):
        theta = some_theta(seed) * np.random.default_rng(seed).uniform(0.1, 1)
        assert np.all(sweep.linear - sweep.forms @ theta / 2 <= machine.sweep(theta, rtol=1e-9).upper)
    assert_allclose(sweep.linear - sweep.forms @ sweep.theta / 2, sweep.upper, rtol=1.01 * rtol + 1e-12)


@every_kind
def test_objectives_are_positive_decreasing_and_convex_in_theta(kind):
    Ks, tasks, C = some_tasks(kind, seed=3)
    machine = make_machine(kind, Ks, tasks, C)
    for seed in range(5):
        theta, rise = 0.5 * some_theta(seed), 0.5 * some_theta(seed + 100)
        low, middle, high = (machine.sweep(theta + h * rise, rtol=1e-9).lower for h in (0, 0.5, 1))
        assert np.all(high > 0)
        assert np.all(high < low)
        assert np.all(middle <= (low + high) / 2 * (1 + 1e-8))


@every_kind
def test_the_constant_cuts_of_a_pool_lie_below_the_objectives(kind):
    """With a kernel that hardly distinguishes the samples."""
    Ks, tasks, C = some_tasks(kind, seed=4)
    Ks = np.stack([*Ks, 0.9 + 1e-3 * Ks[0]])
    machine = make_machine(kind, Ks, tasks, C)
    pool = solve(machine, 1.0, 1.0, 1e-3).state
    for theta in (*np.eye(5), *(some_theta(seed, 5) for seed in range(5))):
        assert np.all(pool.cuts.linear[0] <= machine.sweep(theta, rtol=1e-9).upper)
        assert np.all(pool.cuts.heights(theta).max(axis=0) <= machine.sweep(theta, rtol=1e-9).upper)


@every_kind
def test_cuts_of_smaller_costs_hold_for_larger_ones(kind):
    Ks, tasks, C = some_tasks(kind, seed=6)
    machine = make_machine(kind, Ks, tasks, C)
    small = solve(machine, 2.0, 1.0, 1e-3)
    for factor in (1.5, 10.0):
        large = make_machine(kind, Ks, tasks, factor * C)
        problem = MultiTaskProblem(large, PowerMean(2.0), LsBall(1.0))
        grown = CutPool(tol=1e-3).grown(small, problem, factor)
        for theta in (small.theta, *(some_theta(seed) for seed in range(6))):
            truth = large.sweep(theta, rtol=1e-9)
            assert np.all(grown.state.cuts.heights(theta).max(axis=0) <= truth.upper)
            again = large.sweep(theta, grown.sweep.warm, rtol=1e-9)
            assert_allclose(again.lower, truth.lower, rtol=1e-8)
        from_cuts = CutPool(tol=1e-4).solve(problem, grown)
        assert_allclose(from_cuts.objective, solve(large, 2.0, 1.0, 1e-4).objective, rtol=2e-4)


@every_kind
def test_another_capacity_price_is_another_problem_with_valid_cuts(kind):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 3))
    rows, C = [np.arange(18), np.arange(12, 30)], np.full(36, 0.3)
    y = targets_of(kind, np.concatenate([X[r, 0] * X[r, 1] for r in rows]))
    kernels = ["linear", ("rbf", {"sigma": 0.5}), ("rbf", {"sigma": 2.0})]
    banks = [KernelBank(kernels, normalize="capacity", capacity=k).fit(X) for k in (0.0, 1.0)]
    plain, fresh = (MACHINES[kind].make(GramBlocks(bank, X, rows), y, C) for bank in banks)
    penalised = MACHINES[kind].make(plain.gram.with_capacity(1.0), y, C)
    theta = some_theta(0, 3)
    assert_allclose(penalised.sweep(theta, rtol=1e-9).lower, fresh.sweep(theta, rtol=1e-9).lower, rtol=1e-7)
    solver, problem = CutPool(tol=1e-4), MultiTaskProblem(penalised, PowerMean(2.0), LsBall(1.0))
    ratio = banks[1].factor / banks[0].factor
    carried = solver.rescaled(solve(plain, 2.0, 1.0, 1e-4), problem, ratio)
    for seed in range(5):
        theta = some_theta(seed, 3)
        assert np.all(carried.state.cuts.heights(theta).max(axis=0) <= fresh.sweep(theta, rtol=1e-9).upper)
    assert_allclose(solver.solve(problem, carried).objective, solve(fresh, 2.0, 1.0, 1e-4).objective, rtol=2e-4)


# --------------------------------------------------------------------------------------------- starts, weights, copies
@pytest.mark.parametrize("kind", ["svr", "one-class", "svdd"])
def test_a_warm_start_takes_fewer_steps_and_a_solved_task_none(kind):
    Ks, tasks, C = some_tasks(kind, seed=8, sizes=(60, 50, 40))
    machine = make_machine(kind, Ks, tasks, 0.05 if kind == "svdd" else C)
    theta = some_theta(0)
    first = machine.sweep(theta, rtol=1e-4)
    before = first.warm.dual.copy()
    near = 0.99 * theta + 0.01 * some_theta(1)
    assert steps_of(machine.sweep(near, first.warm, rtol=1e-3)) < 0.5 * steps_of(machine.sweep(near, rtol=1e-3))
    assert steps_of(machine.sweep(theta, first.warm, rtol=1e-3)) == 0
    np.testing.assert_array_equal(first.warm.dual, before)


def values(machine, sweep, K):
    """The functions of the first task at its own samples, K their Gram matrix."""
    decisions = machine.decisions(sweep)
    return K @ decisions.dual[0] + decisions.intercepts[0] + decisions.diagonal * np.diag(K)


@every_kind
def test_weight_two_means_the_sample_twice_and_weight_zero_not_at_all(kind):
    Ks, tasks, C = some_tasks(kind, seed=9)
    rows, y = tasks[0]
    K, n = Ks[1:2][:, rows[:, None], rows], len(rows)
    twice = np.append(np.arange(n), 3)
    weight = np.ones(n)
    weight[3] = 2.0
    heavy = make_machine(kind, K, [(np.arange(n), y)], [weight * C])
    double = make_machine(kind, K[:, twice[:, None], twice], [(np.arange(n + 1), y[twice])], C)
    weight = np.where(np.isin(np.arange(n), [2, 5]), 0.0, 1.0)
    kept = np.flatnonzero(weight)
    light = make_machine(kind, K, [(np.arange(n), y)], [weight * C])
    without = make_machine(kind, K[:, kept[:, None], kept], [(np.arange(n - 2), y[kept])], C)
    one = np.ones(1)
    for left, right, where in ((heavy, double, twice), (light, without, kept)):
        a, b = left.sweep(one, rtol=1e-10), right.sweep(one, rtol=1e-10)
        assert_allclose(a.lower, b.lower, rtol=1e-8)
        assert_allclose(values(left, a, K[0])[where], values(right, b, K[0][np.ix_(where, where)]), atol=1e-4)


@every_kind
def test_names_select_machines(kind):
    assert MACHINES[kind].make.__name__.endswith("Tasks")
    assert set(MACHINES) == {"svc", "ls-svc", *KINDS}
