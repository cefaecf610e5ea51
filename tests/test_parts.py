"""The parts of the page *How to add a part* work and are correct; incomplete parts are refused."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge

from paretomkl.gram import GramBlocks
from paretomkl.kernels import KernelBank
from paretomkl.machines import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.protocols import Gram, Machine, Scalarization, Solver, WeightSet, check_part
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import BlockCoordinateDescent, CutPool, Tseng, make_solver
from paretomkl.sweep import check_sweep
from paretomkl.weight_sets import LsBall

PARTS = Path(__file__).resolve().parents[1] / "doc" / "parts"


def load(name):
    """Import an example by name: numba caches its compiled functions under the name of the module."""
    if str(PARTS) not in sys.path:
        sys.path.insert(0, str(PARTS))
    return importlib.import_module(name)


@pytest.mark.parametrize("file", sorted(PARTS.glob("*.py")), ids=lambda file: file.stem)
def test_examples_are_short_and_run(file, capsys, monkeypatch):
    monkeypatch.syspath_prepend(PARTS)
    assert len(file.read_text().splitlines()) <= 80
    runpy.run_path(str(file), run_name="__main__")
    assert capsys.readouterr().out


def test_least_squares_is_kernel_ridge_regression():
    machine, solution = load("least_squares").main()
    assert isinstance(machine, Machine)
    assert solution.gap <= 1e-4
    function = machine.decisions(solution.sweep)
    with machine.gram.combined(solution.theta) as K:
        for t, (dual, y) in enumerate(zip(function.dual, machine.targets, strict=True)):
            ridge = KernelRidge(alpha=1 / machine.C, kernel="precomputed").fit(K.of_task(t), y)
            assert_allclose(dual, ridge.dual_coef_, rtol=1e-7)


def test_least_squares_gives_valid_cuts_and_a_true_gap():
    """Random weights never beat the certified optimum by more than the gap."""
    machine, solution = load("least_squares").main()  # ends at p = ∞
    rng, ball = np.random.default_rng(0), LsBall(1.1)
    for theta in (ball.scale_to_boundary(rng.random(4) ** 3) for _ in range(50)):
        sweep = machine.sweep(theta)
        cuts = solution.sweep.linear - 0.5 * solution.sweep.forms @ theta
        assert np.all(cuts <= sweep.lower * (1 + 1e-9))
        assert sweep.lower.max() >= solution.objective * (1 - 1.01e-4)


def test_the_squared_hinge_is_that_of_linear_svc():
    assert load("squared_hinge").main() < 1e-6


def test_the_squared_hinge_keeps_its_promises(toy):
    """Cuts hold at every θ, and still do if they shrink, if C grows, and if kernels and forms change their scale."""
    example, rng = load("squared_hinge"), np.random.default_rng(0)
    rows, signs = [rows for rows, _ in toy.pairs], np.concatenate([signs for _, signs in toy.pairs])
    C = rng.uniform(0.1, 3.0, len(signs)) * (rng.random(len(signs)) < 0.9)  # a tenth of the samples has no weight
    ratio, scale = rng.uniform(0.1, 10.0, len(toy.Ks)), np.array([1.0, 0.1, 3.0])

    def tasks(C, ratio):
        stack = np.moveaxis(toy.Ks * ratio[:, None, None], 0, 2).copy()
        return example.SquaredHingeTasks(GramBlocks(KernelBank("precomputed").fit(stack), stack, rows), signs, C, scale)

    machine, ones = tasks(C, np.ones_like(ratio)), np.ones_like(ratio)
    variants = [(machine, ones), (tasks(4 * C, ones), ones), (tasks(C, ratio), ratio)]
    for theta, other in zip(*rng.random((2, 10, len(ratio))) ** 3, strict=True):
        sweep = machine.sweep(theta)
        check_sweep(sweep, machine)
        assert (sweep.lower >= 0).all()
        assert (sweep.gaps <= 1e-8).all()
        for variant, factor in variants:
            for c in (0.2, 1.0):
                cut = c * sweep.linear - 0.5 * c**2 * (factor * sweep.forms) @ other
                assert (cut <= variant.sweep(other).upper).all()


def test_the_shifted_geometric_mean_has_its_limits():
    example = load("shifted_geometric_mean")
    machine = example.make_machine()

    def solve(scalarization):
        return CutPool(tol=1e-6).solve(MultiTaskProblem(machine, scalarization, LsBall(1.1)))

    objectives = np.array([0.3, 2.0, 5.0])
    mean = example.ShiftedGeometricMean(1.5)
    steps = 1e-6 * np.eye(3)
    slopes = [(mean.value(objectives + step) - mean.value(objectives - step)) / 2e-6 for step in steps]
    assert_allclose(mean.gradient(objectives), slopes, rtol=1e-6)
    for shift, p in ((1e-9, 0.0), (1e9, 1.0)):
        found, limit = solve(example.ShiftedGeometricMean(shift)), solve(PowerMean(p))
        assert PowerMean(p).value(found.objectives) == pytest.approx(limit.objective, rel=3e-6)
    by_descent = BlockCoordinateDescent(tol=1e-6).solve(MultiTaskProblem(machine, mean, LsBall(1.1)))
    assert solve(mean).objective == pytest.approx(by_descent.objective, rel=1e-5)


@pytest.mark.parametrize("s", [1.1, 2.0])
@pytest.mark.parametrize("p", [0.1, 1.0, 3.0, np.inf])
def test_the_weighted_ball_is_the_ball_of_rescaled_kernels(toy, p, s):
    """Σ w_m θ_m^s ≤ 1 with kernels K_m is ‖φ‖_s ≤ 1 with K_m / w_m^(1/s), φ_m = w_m^(1/s) θ_m."""
    costs = np.array([0.5, 3.0, 1.0, 20.0, 0.1])

    def solve(stack, weight_set):
        rows, signs = [rows for rows, _ in toy.pairs], np.concatenate([signs for _, signs in toy.pairs])
        gram = GramBlocks(KernelBank("precomputed").fit(stack), stack, rows)
        machine = SVCTasks(gram, signs, np.ones(len(signs)))
        return CutPool(tol=1e-6).solve(MultiTaskProblem(machine, PowerMean(p), weight_set))

    stack = np.moveaxis(toy.Ks, 0, 2).copy()
    weighted = load("weighted_ball").WeightedBall(s, tuple(costs))
    found, plain = solve(stack, weighted), solve(stack / costs ** (1 / s), LsBall(s))
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(plain.objective, rel=2e-6)
    assert np.sum(costs * found.theta**s) == pytest.approx(1)


@pytest.mark.parametrize("name", ["shifted_geometric_mean", "weighted_ball"])
def test_an_estimator_finds_the_solution_of_its_parts(name):
    solution, estimator = load(name).main()
    assert estimator.gap_ <= 1e-4
    assert estimator.objective_ == pytest.approx(solution.objective, rel=2e-4)
    assert_allclose(np.sort(estimator.objectives_), np.sort(solution.objectives), rtol=1e-2)


def test_the_counting_store_sees_one_of_each_per_sweep():
    gram, solution = load("counting_gram").main()
    assert isinstance(gram, Gram)
    assert gram.calls == {"combined": solution.n_sweeps + 1, "quadratic_forms": solution.n_sweeps}


def test_built_in_parts_satisfy_the_protocols(toy):
    gram = GramBlocks(KernelBank(toy.kernels).fit(toy.X), toy.X, [rows for rows, _ in toy.pairs])
    machine = SVCTasks(gram, np.concatenate([signs for _, signs in toy.pairs]), np.ones(len(toy.y)))
    for part, protocol in [
        (gram, Gram),
        (machine, Machine),
        (LsBall(1.1), WeightSet),
        (PowerMean(2.0), Scalarization),
        (CutPool(), Solver),
        (BlockCoordinateDescent(), Solver),
        (Tseng(), Solver),
    ]:
        check_part(part, protocol)
        assert isinstance(part, protocol)


def test_messages_name_what_a_part_lacks(toy):
    gram = GramBlocks(KernelBank(toy.kernels).fit(toy.X), toy.X, [rows for rows, _ in toy.pairs])
    machine = SVCTasks(gram, np.concatenate([signs for _, signs in toy.pairs]), np.ones(len(toy.y)))
    half = SimpleNamespace(n_tasks=3, n_kernels=5)
    with pytest.raises(
        TypeError, match=r"SimpleNamespace cannot be used as a machine: it lacks promises, sweep, decisions\. A machine"
    ):
        MultiTaskProblem(half, PowerMean(1.0), LsBall(1.1))
    with pytest.raises(TypeError, match="float cannot be used as a scalarization: it lacks p, convex"):
        MultiTaskProblem(machine, 1.0, LsBall(1.1))
    with pytest.raises(TypeError, match="LsBall cannot be used as a weight set: it is a class; pass an instance"):
        MultiTaskProblem(machine, PowerMean(1.0), LsBall)
    with pytest.raises(TypeError, match="ndarray cannot be used as a gram: it lacks layout"):
        SVCTasks(toy.Ks, np.ones(3), np.ones(3))
    with pytest.raises(TypeError, match="SimpleNamespace cannot be used as a solver: it lacks tol"):
        make_solver(SimpleNamespace(solve=None), [1.0])
