"""Convex scalarizations and weight sets that are not the library's, in the cut pool and against a conic solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from paretomkl import Gaussian, KernelBank
from paretomkl.gram import GramBlocks
from paretomkl.machines import RidgeTasks, SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.protocols import WeightSet, check_part
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import BlockCoordinateDescent, CutPool, Tseng
from paretomkl.weight_sets import CONSTRAINT, GAUGE, SUPPORT, LsBall, barrier_function
from tests.machines.cases import make_machine, some_tasks
from tests.oracles import conic_minimum, power_norm
from tests.test_foreign_parts import bare_machine, problem_of

NAN = float("nan")
OMEGA = np.array([0.5, 0.2, 0.3])


# ------------------------------------------------------------------------------------------------------ scalarizations
@dataclass(frozen=True)
class Own:
    """A scalarization from its value and (sub)gradient; ``conic`` is the same as an expression of CVXPY."""

    of: Callable
    slope: Callable
    conic: Callable | None = None
    convex: bool = True
    homogeneous: bool = False
    p: float = NAN

    def value(self, objectives):
        return float(self.of(objectives))

    def log_value(self, objectives):
        return np.log(np.apply_along_axis(self.of, -1, objectives))

    def gradient(self, objectives):
        return self.slope(objectives)

    def task_weights(self, objectives):
        return self.slope(objectives) / self.slope(objectives).sum()


def fourth_powers():
    cp = pytest.importorskip("cvxpy")

    return Own(lambda g: np.mean(g**4), lambda g: 4 * g**3 / len(g), lambda z: cp.sum(cp.power(z, 4)) / 3)


def soft_maximum(temperature):
    """temperature · log mean exp(g / temperature)."""
    cp = pytest.importorskip("cvxpy")

    def shares(g):
        powers = np.exp((g - g.max()) / temperature)
        return powers / powers.sum()

    def value(g):
        return g.max() + temperature * np.log(np.mean(np.exp((g - g.max()) / temperature)))

    return Own(value, shares, lambda z: temperature * (cp.log_sum_exp(z / temperature) - np.log(3)))


def mean_of_largest(k):
    """The expected shortfall: polyhedral, with kinks wherever objectives are equal."""
    cp = pytest.importorskip("cvxpy")

    def subgradient(g):
        return np.isin(np.arange(len(g)), np.argsort(-g)[:k]) / k

    return Own(lambda g: np.sort(g)[-k:].mean(), subgradient, lambda z: cp.sum_largest(z, k) / k)


def huber(level):
    """Squares up to a level and straight lines above."""
    cp = pytest.importorskip("cvxpy")

    def value(g):
        return np.mean(np.where(g < level, g**2 / (2 * level), g - level / 2))

    def gradient(g):
        return np.minimum(g / level, 1) / len(g)

    return Own(value, gradient, lambda z: cp.sum(cp.huber(z / level)) * level / 6)


def sum_and_excess(level):
    """A weighted sum, and the variance above a level, which alone would not be increasing."""
    cp = pytest.importorskip("cvxpy")

    def value(g):
        return OMEGA @ g + 0.1 * np.sum(np.maximum(g - level, 0) ** 2)

    return Own(
        value,
        lambda g: OMEGA + 0.2 * np.maximum(g - level, 0),
        lambda z: OMEGA @ z + 0.1 * cp.sum(cp.square(cp.pos(z - level))),
    )


def disguised(p):
    """A power mean that does not say that it is one."""
    mean = PowerMean(p, OMEGA)
    return Own(mean.value, mean.gradient, homogeneous=True)


CONVEX = {
    "fourth powers": fourth_powers,
    "soft maximum": lambda: soft_maximum(1.0),
    "nearly the maximum": lambda: soft_maximum(0.05),
    "mean of the two largest": lambda: mean_of_largest(2),
    "the largest": lambda: mean_of_largest(1),
    "Huber": lambda: huber(5.0),
    "sum and excess": lambda: sum_and_excess(2.0),
}


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0])
@pytest.mark.parametrize("name", CONVEX)
def test_any_convex_scalarization_reaches_the_conic_optimum(name, s):
    """Its value and a subgradient are enough, at every tolerance, with and without promises of the machine."""
    data, scalarization = problem_of("svc", seed=3), CONVEX[name]()
    optimum = conic_minimum(*data, scalarization.conic, lambda theta: [power_norm(theta, s, approx=True) <= 1])
    machine = make_machine("svc", *data)
    for own, tol in ((machine, 0.1), (machine, 1e-5), (bare_machine(machine), 1e-3)):
        found = CutPool(tol=tol).solve(MultiTaskProblem(own, scalarization, LsBall(s)))
        assert -3e-6 <= 1 - optimum / scalarization.value(found.sweep.upper) <= found.gap + 3e-6
        assert found.gap <= tol
        assert_allclose(found.objective, scalarization.value(found.objectives))


@pytest.mark.parametrize("p", [1.0, 1.5, 4.0, 30.0, np.inf])
@pytest.mark.parametrize("s", [1.0, 1.1])
def test_a_disguised_power_mean_is_solved_as_the_plain_one(p, s):
    machine = make_machine("svc", *problem_of("svc", seed=1))
    theirs, ours = (
        CutPool(tol=1e-6).solve(MultiTaskProblem(machine, scalarization, LsBall(s)))
        for scalarization in (disguised(p), PowerMean(p, OMEGA))
    )
    assert_allclose(theirs.objective, ours.objective, rtol=2e-6)
    assert_allclose(theirs.task_weights, ours.task_weights, atol=2e-2)
    assert np.isnan(theirs.p)


@pytest.mark.parametrize("name", ["fourth powers", "Huber"])
def test_block_coordinate_descent_agrees(name):
    problem = MultiTaskProblem(make_machine("svc", *problem_of("svc")), CONVEX[name](), LsBall(2.0))
    pool, descent = CutPool(tol=1e-4).solve(problem), BlockCoordinateDescent(tol=1e-2).solve(problem)
    assert_allclose(descent.objective, pool.objective, rtol=1e-2)
    with pytest.raises(TypeError, match="power mean"):
        Tseng().solve(problem)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("p", [2.0, np.inf])
def test_objectives_of_any_size_and_idle_tasks(scale, p):
    """The mean of squares is the square of M_2, and the mean of the largest is M_∞; a task of zeros has no effect."""
    Ks, tasks, C = some_tasks("ridge")
    rows, y = tasks[1]
    tasks[1] = rows, 0 * y
    gram = make_machine("ridge", Ks, tasks, C).gram
    targets, costs = np.concatenate([y for _, y in tasks]), np.full(sum(len(y) for _, y in tasks), C)
    machine = RidgeTasks(gram, targets, costs, np.array([scale, scale, 1e-3 * scale]))
    squares = Own(lambda g: np.mean(g**2), lambda g: 2 * g / len(g))
    scalarization, power = (squares, 2) if p == 2 else (mean_of_largest(1), 1)
    ours = CutPool(tol=1e-6).solve(MultiTaskProblem(machine, PowerMean(p), LsBall(1.1)))
    found = CutPool(tol=1e-6).solve(MultiTaskProblem(machine, scalarization, LsBall(1.1)))
    assert found.converged
    assert found.task_weights[1] == 0 or p == 2
    assert_allclose(found.objective, ours.objective**power, rtol=1e-5)


def test_one_task_has_the_same_weights_under_every_scalarization():
    Ks, tasks, C = problem_of("svc")
    machine = make_machine("svc", Ks, tasks[:1], C)
    plain = CutPool(tol=1e-6).solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.1)))
    convex = Own(lambda g: np.mean(g**4), lambda g: 4 * g**3 / len(g))
    concave = Own(lambda g: np.mean(np.sqrt(g)), lambda g: 0.5 / np.sqrt(g) / len(g), convex=False)
    for scalarization in (convex, concave):
        found = CutPool(tol=1e-6).solve(MultiTaskProblem(machine, scalarization, LsBall(1.1)))
        assert_allclose(found.objectives, plain.objectives, rtol=1e-6)


@pytest.mark.parametrize("name", ["fourth powers", "mean of the two largest"])
def test_a_search_keeps_the_cuts_of_its_own_scalarization(name):
    """Along C and along the scale of the kernels, the optimum is that of a cold start and takes fewer sweeps."""
    Ks, tasks, C = problem_of("svc")
    solver, ratio = CutPool(tol=1e-5), np.array([0.3, 2.0, 1.0, 5.0])
    problem, larger, rescaled = (
        MultiTaskProblem(make_machine("svc", kernels, tasks, costs), CONVEX[name](), LsBall(1.1))
        for kernels, costs in ((Ks, C), (Ks, 3 * C), (ratio[:, None, None] * Ks, C))
    )
    first = solver.solve(problem)
    for other, start in (
        (larger, solver.grown(first, larger, 3.0)),
        (rescaled, solver.rescaled(first, rescaled, ratio)),
    ):
        warm, cold = solver.solve(other, start), solver.solve(other)
        assert_allclose(warm.objective, cold.objective, rtol=2e-5)
        assert warm.n_sweeps < cold.n_sweeps


@pytest.mark.parametrize("name", ["fourth powers", "mean of the two largest"])
def test_a_certificate_on_few_of_many_kernels_holds_for_all(toy, name, monkeypatch):
    monkeypatch.setattr("paretomkl.solvers._cut_pool.MANY", 10)
    monkeypatch.setattr("paretomkl.solvers._master._JOINING", 3)
    monkeypatch.setattr("paretomkl.gram._blocks._TOGETHER", 3)
    bank = KernelBank([Gaussian(sigma) for sigma in np.geomspace(0.05, 20, 12)]).fit(toy.X)
    gram = GramBlocks(bank, toy.X, [rows for rows, _ in toy.pairs])
    signs = np.concatenate([signs for _, signs in toy.pairs])
    problem = MultiTaskProblem(SVCTasks(gram, signs, np.ones(len(signs))), CONVEX[name](), LsBall(1.0))
    few = CutPool(tol=1e-3).solve(problem)
    assert np.count_nonzero(few.theta) < 12
    monkeypatch.setattr("paretomkl.solvers._cut_pool.MANY", 10**6)
    all_kernels = CutPool(tol=1e-6).solve(problem)
    assert few.gap <= 1e-3
    assert -1e-6 <= 1 - all_kernels.objective / few.objective <= few.gap + 1e-6


def test_false_declarations_are_noticed():
    machine = make_machine("svc", *problem_of("svc"))
    concave = Own(lambda g: np.mean(np.sqrt(g)), lambda g: 0.5 / np.sqrt(g) / len(g))
    with pytest.raises(ValueError, match="declares that it is convex"):
        CutPool(tol=1e-4).solve(MultiTaskProblem(machine, concave, LsBall(1.1)))
    falling = Own(lambda g: g[0] + 1 / g[1], lambda g: np.array([1.0, -1 / g[1] ** 2, 0.0]))
    for solver in (CutPool(), BlockCoordinateDescent()):
        with pytest.raises(ValueError, match="for task 1"):
            solver.solve(MultiTaskProblem(machine, falling, LsBall(1.1)))


def test_messages_name_a_scalarization_without_exponent():
    problem = MultiTaskProblem(make_machine("svc", *problem_of("svc")), fourth_powers(), LsBall(1.1))
    for solver in (CutPool(tol=1e-9, max_iter=4), BlockCoordinateDescent(tol=1e-9, max_iter=4)):
        with pytest.warns(ConvergenceWarning, match="stopped at Own, max_iter=4"):
            solver.solve(problem)


# --------------------------------------------------------------------------------------------------------- weight sets
@barrier_function
def ellipsoid(question, x, parameters, gradient, curvature):
    """Σ a_m θ_m² ≤ 1."""
    total = 0.0
    for m in range(len(x)):
        a = parameters[m]
        total += x[m] ** 2 / a if question == SUPPORT else a * x[m] ** 2
        if question == CONSTRAINT:
            gradient[m] = 2 * a * x[m]
            curvature[m] = 2 * a
    return total if question == CONSTRAINT else total**0.5


@barrier_function
def pairs(question, x, parameters, gradient, curvature):
    """The sum of the Euclidean norms of two pairs of kernels, ‖(θ_0, θ_1)‖ + ‖(θ_2, θ_3)‖ ≤ 1."""
    total = 0.0
    for i in (0, 2):
        norm = (x[i] ** 2 + x[i + 1] ** 2) ** 0.5
        total = max(total, norm) if question == SUPPORT else total + norm
        if question == CONSTRAINT:
            gradient[i], gradient[i + 1] = x[i] / norm, x[i + 1] / norm
            curvature[i], curvature[i + 1] = x[i + 1] ** 2 / norm**3, x[i] ** 2 / norm**3
    return total


@dataclass(frozen=True)
class OwnSet:
    """A weight set from its barrier; ``minimize_ratio`` is only nearly what it should be, which costs sweeps."""

    barrier: tuple
    norm: float = NAN
    sparse: bool = False

    def _ask(self, question, x):
        function, parameters = self.barrier
        unused = np.empty(len(x))
        return function.function(question, x, parameters, unused, unused)

    def start(self, n_kernels):
        return self.scale_to_boundary(np.ones(n_kernels))

    def support(self, direction):
        return np.apply_along_axis(lambda v: self._ask(SUPPORT, v), -1, direction)

    def scale_to_boundary(self, theta):
        return theta / self._ask(GAUGE, theta)

    def minimize_ratio(self, w):
        return self.scale_to_boundary(np.cbrt(w + 1e-6 * w.max()))

    def greatest(self, n_kernels):
        return None


@dataclass(frozen=True)
class BoxInSimplex:
    """θ_m ≤ most and Σ θ ≤ 1: a set with corners, and without a compiled function."""

    most: float
    barrier: None = None
    norm: float = NAN
    sparse: bool = False

    def farthest(self, direction):
        theta, falling = np.zeros(len(direction)), np.argsort(-direction)
        theta[falling] = np.clip(1 - self.most * np.arange(len(direction)), 0, self.most)
        return theta

    def start(self, n_kernels):
        return self.scale_to_boundary(np.ones(n_kernels))

    def support(self, direction):
        return np.apply_along_axis(lambda v: self.farthest(v) @ v, -1, direction)

    def scale_to_boundary(self, theta):
        return theta / max(theta.sum(), theta.max() / self.most)

    def minimize_ratio(self, w):
        return self.scale_to_boundary(np.sqrt(w + 1e-6 * w.max()))

    def greatest(self, n_kernels):
        return None


AXES = np.array([1.0, 5.0, 0.3, 2.0])


@dataclass(frozen=True)
class PlainEllipsoid(OwnSet):
    """The ellipsoid again, from its farthest points alone."""

    barrier: None = None

    def _ask(self, question, x):
        return ellipsoid.function(question, x, AXES, np.empty(4), np.empty(4))

    def farthest(self, direction):
        return self.scale_to_boundary(direction / AXES)


def sets_of_others():
    cp = pytest.importorskip("cvxpy")

    def inside(theta):
        return [cp.sum(cp.multiply(AXES, theta**2)) <= 1]

    return {
        "ellipsoid": (OwnSet((ellipsoid, AXES)), inside),
        "pairs": (OwnSet((pairs, np.zeros(1))), lambda theta: [cp.norm2(theta[:2]) + cp.norm2(theta[2:]) <= 1]),
        "box in simplex": (BoxInSimplex(0.4), lambda theta: [cp.sum(theta) <= 1, theta <= 0.4]),
        "ellipsoid without barrier": (PlainEllipsoid(), inside),
    }


@pytest.mark.parametrize("name", ["ellipsoid", "pairs", "box in simplex", "ellipsoid without barrier"])
@pytest.mark.parametrize("p", [0.3, 1.0, 2.0, np.inf, NAN])
def test_any_weight_set_reaches_the_conic_optimum(name, p):
    cp = pytest.importorskip("cvxpy")

    data, (weight_set, allowed) = problem_of("svc", seed=2), sets_of_others()[name]
    scalarization = fourth_powers() if np.isnan(p) else PowerMean(p)
    found = CutPool(tol=1e-4).solve(MultiTaskProblem(make_machine("svc", *data), scalarization, weight_set))
    value, eta = scalarization.value(found.sweep.upper), scalarization.gradient(found.sweep.upper)
    conic = {1.0: lambda z: cp.sum(z) / 3, 2.0: lambda z: cp.norm2(z) / np.sqrt(3), np.inf: cp.max}.get(p)
    if p < 1:
        value, conic = eta @ found.sweep.upper, lambda z: eta @ z
    optimum = conic_minimum(*data, conic or scalarization.conic, allowed)
    assert -3e-6 <= 1 - optimum / value <= found.gap + 3e-6
    assert found.gap <= 1e-4


def test_a_weight_set_has_a_barrier_or_farthest_points():
    check_part(BoxInSimplex(0.4), WeightSet)
    machine = make_machine("svc", *problem_of("svc"))
    with pytest.raises(TypeError, match="lacks farthest"):
        MultiTaskProblem(machine, PowerMean(1.0), OwnSet(None))
    with pytest.raises(TypeError, match="must be None or"):
        MultiTaskProblem(machine, PowerMean(1.0), OwnSet((lambda *_: 0.0, np.zeros(1))))


# --------------------------------------------------------------------------------------------------------------- state
def test_a_solution_keeps_its_pool():
    """Whoever continues from a solution leaves it as it was, so that it can be continued from again."""
    problem = MultiTaskProblem(make_machine("svc", *problem_of("svc")), PowerMean(1.0), LsBall(1.1))
    solver = CutPool(tol=1e-4)
    first = solver.solve(problem)
    before = [first.state.cuts.linear.copy(), first.state.cuts.slopes.copy(), first.state.cuts.idle.copy()]
    others = [solver.solve(replace(problem, scalarization=PowerMean(p)), first) for p in (8.0, np.inf, 0.1, 8.0)]
    assert_array_equal(others[0].theta, others[-1].theta)
    assert len(others[0].state) > len(first.state)
    for now, then in zip(
        (first.state.cuts.linear, first.state.cuts.slopes, first.state.cuts.idle), before, strict=True
    ):
        assert_array_equal(now, then)
