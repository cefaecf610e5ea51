"""Certificates of solvers that are stopped early, with rough tasks and rough masters, against independent bounds.

With U = M_p of the upper bounds of the sweep, a gap claims that no θ goes below (1 − gap) U; for p < 1, that no θ takes
the sum Σ_t η_t J_t, with η the gradient of M_p, below (1 − gap) Σ_t η_t U_t. Two truths are set against it: the optimum
of the problem, and the best bound that the cuts at hand can prove, which leaves no room for an error of a few percent.
"""

from __future__ import annotations

import warnings
from functools import cache, partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from paretomkl import Gaussian, KernelBank
from paretomkl.gram import GramBlocks
from paretomkl.machines import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import BlockCoordinateDescent, CutPool, Tseng
from paretomkl.solvers._base import Run
from paretomkl.solvers._master import minimize_over_cuts
from paretomkl.weight_sets import LsBall
from tests.conftest import make_toy
from tests.machines.cases import KINDS, gaussian, make_machine, some_tasks, some_theta
from tests.oracles import (
    conic_optimum,
    cut_optimum,
    machine_dual,
    machine_objectives,
    machine_primal,
    objectives,
    power_mean,
    weighted_optimum,
)

C = 1.0
OMEGA = np.array([0.5, 0.2, 0.3])
PS = [-1.0, 0.5, 1.0, 1.3, 4.0, np.inf]


class RoughSVC(SVCTasks):
    """Tasks that are never solved to better than 20 %."""

    def sweep(self, theta, warm=None, rtol=1e-6):
        return super().sweep(theta, warm, max(rtol, 0.2))


def problem_of(toy, p, s, rough=False):
    machine = make_machine("svc", toy.Ks, toy.pairs, C)
    if rough:
        machine = RoughSVC(machine.gram, machine.targets, machine.C)
    return MultiTaskProblem(machine, PowerMean(p, OMEGA), LsBall(s))


def stopped(solver, problem, init=None, run=None):
    """The solution of a solver that may stop long before its tolerance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem, init, run)


def claimed_bound(solution, p, omega=OMEGA):
    """The lower bound that the gap claims, and the weights η of the sum that it bounds (None for M_p itself)."""
    upper = solution.sweep.upper
    if p >= 1:
        return (1 - solution.gap) * power_mean(upper, p, omega), None
    eta = normalized(omega * upper ** (p - 1))
    return (1 - solution.gap) * (eta @ upper), eta


def normalized(weights):
    return weights / weights.sum()


@cache
def optimum_of_mean(p, s):
    toy = make_toy()
    return conic_optimum(toy.Ks, toy.pairs, C, p, s, OMEGA)[0]


def best_bound(toy, p, s, eta):
    """The optimum of what the gap bounds."""
    return optimum_of_mean(p, s) if eta is None else weighted_optimum(toy.Ks, toy.pairs, C, eta, s)[0]


def bound_of_cuts(cuts, p, s, eta):
    """The best bound that the cuts of a pool can prove, those that it has dropped included."""
    if eta is None:
        return cut_optimum(cuts.linear, cuts.slopes, p, s, OMEGA)
    return cut_optimum(cuts.linear, cuts.slopes, 1.0, s, eta)


def check_sweep(toy, machine, sweep):
    """The bounds of the tasks hold for the dual and the function that come with them; returns both values."""
    K = np.tensordot(sweep.theta, toy.Ks, axes=1)
    dual, intercepts, _ = machine.decisions(sweep)
    tasks = [(K[np.ix_(rows, rows)], y, np.full(len(y), C)) for rows, y in toy.pairs]
    low = np.array([machine_dual("svc", *task, v) for task, v in zip(tasks, dual, strict=True)])
    high = np.array([machine_primal("svc", *task, v, b) for task, v, b in zip(tasks, dual, intercepts, strict=True)])
    assert np.all(sweep.lower <= low * (1 + 1e-9))
    assert np.all(sweep.upper >= high * (1 - 1e-9))
    return low, high


# ------------------------------------------------------------------------------------------------------- stopped early
@pytest.mark.parametrize("rough", [False, True], ids=["accurate", "rough"])
@pytest.mark.parametrize("max_iter", [1, 5])
@pytest.mark.parametrize(
    ("solver", "p"),
    [(CutPool, p) for p in PS]
    + [(BlockCoordinateDescent, p) for p in (0.5, 1.0)]
    + [(Tseng, p) for p in (1.0, 3.0, np.inf)],
)
def test_a_gap_holds_after_any_number_of_steps(toy, solver, p, max_iter, rough):
    s = 1.1
    problem = problem_of(toy, p, s, rough)
    found = stopped(solver(tol=1e-9, max_iter=max_iter), problem)
    assert not found.converged
    low, _ = check_sweep(toy, problem.machine, found.sweep)
    assert_allclose(found.objective, power_mean(low, p, OMEGA), rtol=1e-6)
    bound, eta = claimed_bound(found, p)
    assert bound <= best_bound(toy, p, s, eta) * (1 + 2e-7)
    assert 0 < found.gap < 1


@pytest.mark.parametrize("rough", [False, True], ids=["accurate", "rough"])
@pytest.mark.parametrize("p", [-1.0, 0.5, 1.0])
def test_the_gap_of_block_coordinate_descent_is_that_of_its_duals(toy, p, rough):
    """η'a − ½‖Σ_t η_t G_t‖ with the conjugate norm, at the duals of the last sweep."""
    s = 1.5
    problem = problem_of(toy, p, s, rough)
    for max_iter in (1, 3, 10):
        run = Run()
        found = stopped(BlockCoordinateDescent(tol=1e-9, max_iter=max_iter), problem, run=run)
        assert found.n_sweeps == run.n_sweeps == len(run.history) == max_iter
        assert run.history[-1] == (p, max_iter, found.gap)
        _, high = check_sweep(toy, problem.machine, found.sweep)
        duals = problem.machine.decisions(found.sweep).dual
        linear = np.array([np.abs(v).sum() for v in duals])
        forms = np.array(
            [[v @ K[np.ix_(rows, rows)] @ v for K in toy.Ks] for v, (rows, _) in zip(duals, toy.pairs, strict=True)]
        )
        eta = OMEGA * high ** (p - 1)
        lower = eta @ linear - np.linalg.norm(eta @ forms, s / (s - 1)) / 2
        assert_allclose(found.gap, 1 - lower / (eta @ high), rtol=1e-6)


@pytest.mark.parametrize("s", [1.0, 1.1, 3.0])
@pytest.mark.parametrize("p", PS)
def test_no_bound_of_the_cut_pool_exceeds_what_its_cuts_prove(toy, p, s):
    problem = problem_of(toy, p, s)
    for max_iter in (1, 4, 6):
        found = stopped(CutPool(tol=1e-9, max_iter=max_iter), problem)
        bound, eta = claimed_bound(found, p)
        best = bound_of_cuts(found.state.cuts, p, s, eta)
        assert bound <= best * (1 + 1e-7)
        assert bound >= best - 0.1 * found.gap * best  # and it is nearly as good


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("p", PS)
def test_bounds_of_unfinished_masters_hold(toy, p, steps, monkeypatch):
    monkeypatch.setattr("paretomkl.solvers._cut_pool.minimize_over_cuts", partial(minimize_over_cuts, max_iter=steps))
    s = 1.1
    found = stopped(CutPool(tol=1e-9, max_iter=6), problem_of(toy, p, s))
    bound, eta = claimed_bound(found, p)
    assert bound <= bound_of_cuts(found.state.cuts, p, s, eta) * (1 + 1e-7)


@pytest.mark.parametrize(("seed", "cost", "p"), [(9, 1.0, -10.0), (21, 30.0, -1.0)])
def test_below_one_a_bound_belongs_to_the_weights_of_its_own_point(seed, cost, p):
    """A bound for the weights of one point says nothing about the next; on these samples it would be too high."""
    toy, s = make_toy(seed=seed), 1.0
    problem = MultiTaskProblem(make_machine("svc", toy.Ks, toy.pairs, cost), PowerMean(p, OMEGA), LsBall(s))
    found = CutPool(tol=0.01).solve(problem)
    bound, eta = claimed_bound(found, p)
    assert bound <= bound_of_cuts(found.state.cuts, p, s, eta) * (1 + 1e-7)


def test_constant_cuts_hold_for_balls_that_are_nearly_as_large_as_the_kernels():
    """Under narrow kernels R² is close to k(x, x), and cα is not feasible for c ≠ 1."""
    X = np.random.default_rng(0).normal(size=(16, 2))
    Ks = np.stack([gaussian(X, sigma) for sigma in (0.01, 0.1, 0.3)])
    tasks = [(np.arange(10), np.ones(10)), (np.arange(6, 16), np.ones(10))]
    found = CutPool(tol=1e-3).solve(MultiTaskProblem(make_machine("svdd", Ks, tasks, 0.3), PowerMean(1.0), LsBall(1.0)))
    for theta in np.eye(3):
        truth = machine_objectives("svdd", Ks, theta, tasks, 0.3)
        assert np.all(found.state.cuts.heights(theta).max(axis=0) <= truth * (1 + 1e-6))


def test_a_better_bound_lowers_the_gap_and_a_worse_one_does_not_matter(toy):
    problem = problem_of(toy, 2.0, 1.1)
    sweep = problem.machine.sweep(problem.start())
    value, own = problem.value_and_bound(sweep)
    assert_allclose(value, power_mean(sweep.upper, 2.0, OMEGA))
    assert_allclose(problem.relative_gap(sweep), 1 - own / value)
    assert_allclose(problem.relative_gap(sweep, lower=0.5 * own), 1 - own / value)
    assert_allclose(problem.relative_gap(sweep, lower=(own + value) / 2), (1 - own / value) / 2)
    assert problem.relative_gap(sweep, lower=value * (1 + 1e-15)) == 0
    assert np.isnan(problem.gap_between(value, np.nan)), "what is not a number certifies nothing"


# ------------------------------------------------------------------------------------------------------- carried along
@pytest.mark.parametrize("borrow", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("rough", [False, True], ids=["accurate", "rough"])
def test_gaps_hold_along_a_path_that_never_converges(toy, rough, borrow):
    """Every exponent starts from the pool of the one before, at points that were found for others."""
    s, found = 1.1, None
    machine = problem_of(toy, 1.0, s, rough).machine
    for p in (np.inf, 3.0, 1.0, 0.5, -1.0, 1.0):
        problem = MultiTaskProblem(machine, PowerMean(p, OMEGA), LsBall(s))
        found = stopped(CutPool(tol=1e-9, max_iter=1, borrow=borrow), problem, found)
        low, _ = check_sweep(toy, machine, found.sweep)
        assert_allclose(found.objective, power_mean(low, p, OMEGA), rtol=1e-6)
        bound, eta = claimed_bound(found, p)
        assert bound <= bound_of_cuts(found.state.cuts, p, s, eta) * (1 + 1e-7)


@pytest.mark.parametrize("rough", [False, True], ids=["accurate", "rough"])
@pytest.mark.parametrize("s", [1.0, 1.1])
def test_a_point_that_serves_other_exponents_is_certified_for_each(toy, s, rough):
    solver = CutPool(tol=0.5, borrow=1.0, max_iter=1)
    problem = problem_of(toy, 1.0, s, rough)
    found = stopped(solver, problem)
    ps = [-20.0, -2.0, 0.0, 0.5, 0.9, 1.1, 1.5, 3.0, 50.0]
    served = solver.also_solved(problem, found, problem.scalarization, ps)
    assert len(served) > 3
    low, _ = check_sweep(toy, problem.machine, found.sweep)
    for p, solution in served.items():
        upper = solution.sweep.upper
        eta = normalized(OMEGA * upper ** (p - 1))
        bound = (1 - solution.gap) * (eta @ upper)
        assert bound <= bound_of_cuts(found.state.cuts, 1.0, s, eta) * (1 + 1e-7)
        assert_allclose(solution.objective, power_mean(low, p, OMEGA), rtol=1e-6)
        assert_allclose(solution.task_weights, normalized(OMEGA * low ** (p - 1)), rtol=1e-6)


@pytest.mark.parametrize("borrow", [0.1, 0.5])
def test_a_point_serves_others_only_within_the_given_share_of_the_tolerance(toy, borrow):
    problem = problem_of(toy, 1.0, 1.1)
    found = CutPool(tol=1e-5).solve(problem)
    ps = [-50.0, -5.0, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0, 10.0, 100.0]
    served = CutPool(tol=0.01, borrow=borrow).also_solved(problem, found, problem.scalarization, ps)
    assert 0 < len(served) < len(ps)
    assert max(solution.gap for solution in served.values()) <= 0.01 * borrow


def certified(kind, Ks, tasks, costs, theta):
    if kind == "svc":
        return objectives(Ks, theta, tasks, costs)
    return machine_objectives(kind, Ks, theta, tasks, costs)


def case_of(kind):
    """Tasks of a machine and the weight set that suits it: Ks, tasks, C, s."""
    Ks, tasks, cost = some_tasks("svr" if kind == "svc" else kind, seed=3)
    if kind == "svc":
        tasks = [(rows, np.where(y > np.median(y), 1.0, -1.0)) for rows, y in tasks]
    return Ks, tasks, cost, 1.0 if kind == "svdd" else 1.1


@pytest.mark.parametrize("tol", [0.3, 1e-6])
@pytest.mark.parametrize("kind", ["svc", *KINDS])
def test_grown_cuts_and_gaps_hold_for_larger_costs(kind, tol):
    Ks, tasks, cost, s = case_of(kind)
    machine = make_machine(kind, Ks, tasks, cost)
    small = CutPool(tol=tol).solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(s)))
    for factor in (1.0, 20.0):
        problem = MultiTaskProblem(make_machine(kind, Ks, tasks, factor * cost), PowerMean(1.0), LsBall(s))
        solver = CutPool(tol=tol, max_iter=1)
        grown = solver.grown(small, problem, factor)
        for theta in (small.theta, some_theta(1)):
            truth = certified(kind, Ks, tasks, factor * cost, theta)
            assert np.all(grown.state.cuts.heights(theta).max(axis=0) <= truth * (1 + 1e-6))
        found = stopped(solver, problem, grown)
        bound, _ = claimed_bound(found, 1.0, None)
        assert bound <= certified(kind, Ks, tasks, factor * cost, found.theta).mean() * (1 + 1e-6)
        assert bound <= cut_optimum(found.state.cuts.linear, found.state.cuts.slopes, 1.0, s) * (1 + 1e-6)


@pytest.mark.parametrize("tol", [0.3, 1e-6])
@pytest.mark.parametrize("kind", ["svc", *KINDS])
def test_cuts_hold_for_kernels_of_another_scale(kind, tol):
    Ks, tasks, cost, s = case_of(kind)
    ratio = np.array([0.5, 2.0, 1.0, 0.1])
    small = CutPool(tol=tol).solve(MultiTaskProblem(make_machine(kind, Ks, tasks, cost), PowerMean(1.0), LsBall(s)))
    scaled = ratio[:, None, None] * Ks
    problem = MultiTaskProblem(make_machine(kind, scaled, tasks, cost), PowerMean(1.0), LsBall(s))
    solver = CutPool(tol=tol, max_iter=1)
    start = solver.rescaled(small, problem, ratio)
    cuts = start.state.cuts
    inside = some_theta(1)
    assert np.all(cuts.heights(inside).max(axis=0) <= certified(kind, scaled, tasks, cost, inside) * (1 + 1e-6))
    if kind != "svdd":  # the same combined kernel, where the cuts touch; constant cuts hold within the weight set only
        truth = certified(kind, Ks, tasks, cost, small.theta)
        assert np.all(cuts.heights(small.theta / ratio)[1:].max(axis=0) <= truth * (1 + 1e-6))
    found = stopped(solver, problem, start)
    bound, _ = claimed_bound(found, 1.0, None)
    assert bound <= cut_optimum(found.state.cuts.linear, found.state.cuts.slopes, 1.0, s) * (1 + 1e-6)


@pytest.mark.parametrize("cost", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("p", [0.5, 1.0, np.inf])
def test_cuts_hold_for_another_weight_set(toy, p, cost):
    """The constant cuts of one set may be too high for a larger one; with a small C every dual is at its bound."""
    machine = make_machine("svc", toy.Ks, toy.pairs, cost)
    found = None
    for s in (1.0, 4.0):
        problem = MultiTaskProblem(machine, PowerMean(p, OMEGA), LsBall(s))
        found = stopped(CutPool(tol=1e-9, max_iter=2), problem, found)
        for theta in (LsBall(s).start(len(toy.Ks)), found.theta, np.eye(len(toy.Ks))[0]):
            truth = objectives(toy.Ks, theta, toy.pairs, cost)
            assert np.all(found.state.cuts.heights(theta).max(axis=0) <= truth * (1 + 1e-6))
        bound, eta = claimed_bound(found, p)
        assert bound <= bound_of_cuts(found.state.cuts, p, s, eta) * (1 + 1e-7)


# -------------------------------------------------------------------------------------------------------- many kernels
@pytest.fixture
def few_are_many(monkeypatch):
    """Twelve kernels count as many, of which three join at a time."""
    monkeypatch.setattr("paretomkl.solvers._cut_pool.MANY", 10)
    monkeypatch.setattr("paretomkl.solvers._master._JOINING", 3)
    monkeypatch.setattr("paretomkl.gram._blocks._TOGETHER", 3)


SIGMAS = np.geomspace(0.05, 20, 12)


@cache
def kernels_and_optimum(p):
    """Gaussians of all widths, and the optimum over all of them for p ≥ 1."""
    toy = make_toy()
    Ks = np.stack([gaussian(toy.X, sigma) for sigma in SIGMAS])
    return Ks, conic_optimum(Ks, toy.pairs, C, p, 1.0, OMEGA)[0] if p >= 1 else None


@pytest.mark.parametrize("stored", [False, True], ids=["features", "stack"])
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-6])
@pytest.mark.parametrize("p", [0.5, 1.0, 3.0, np.inf])
def test_gaps_on_few_kernels_hold_for_all_kernels(toy, p, tol, stored, few_are_many):
    """From features the tasks are solved on few kernels; a stack of matrices has only masters on few kernels."""
    Ks, optimum = kernels_and_optimum(p)
    machine = make_machine("svc", Ks, toy.pairs, C)
    if not stored:
        bank = KernelBank([Gaussian(sigma) for sigma in SIGMAS]).fit(toy.X)
        machine = SVCTasks(GramBlocks(bank, toy.X, [rows for rows, _ in toy.pairs]), machine.targets, machine.C)
    found, run = None, Run()
    for q in (2.0, p):  # the second point starts from the kernels of the first
        problem = MultiTaskProblem(machine, PowerMean(q, OMEGA), LsBall(1.0))
        before = run.n_sweeps
        found = stopped(CutPool(tol=tol, max_iter=50), problem, found, run)
        assert found.n_sweeps == run.n_sweeps - before
    assert found.gap <= tol
    bound, eta = claimed_bound(found, p)
    assert bound <= (optimum if p >= 1 else weighted_optimum(Ks, toy.pairs, C, eta, 1.0)[0]) * (1 + 1e-6)
    theta = some_theta(0, len(SIGMAS))
    cuts = found.sweep.linear - found.sweep.forms @ theta / 2
    assert np.all(cuts <= objectives(Ks, theta, toy.pairs, C) * (1 + 1e-9))
