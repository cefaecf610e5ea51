"""Bounds on tasks that are solved roughly, compared with dual and primal values from dense kernel matrices.

Whatever ended a sweep early, its numbers must hold for the dual and the function that come with it: ``lower`` and the
cuts are at most the dual function, at every θ, and ``upper`` is at least the primal objective of the decision function.
A true J between the two proves less: a gap that is too small by a factor can still enclose it.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import cho_factor
from scipy.spatial.distance import cdist

from paretomkl import KernelBank
from paretomkl.gram import GramBlocks
from paretomkl.gram._large.fields import CombinedField, KernelFields
from paretomkl.kernels import Gaussian, Laplacian, Linear, Polynomial
from paretomkl.machines import MACHINES, _ridge
from tests.machines.cases import EPSILON, gaussian, make_machine, one_task, some_theta, targets_of
from tests.oracles import infeasibility, machine_dual, machine_objective, machine_primal

KERNELS = [Linear(), Polynomial(2), Gaussian(0.7), Gaussian(2.0), Laplacian(0.3)]
COSTS = {"svc": 5.0, "ls-svc": 3.0, "logistic": 4.0, "ridge": 3.0, "svr": 2.0, "one-class": 0.3, "svdd": 0.1}
SCALE = np.array([1.0, 0.5, 2.0])

every_kind = pytest.mark.parametrize("kind", COSTS)
on_working_sets = pytest.mark.parametrize("kind", ["svc", "svr", "one-class", "svdd"])


class Case:
    """Three tasks, two of which share samples, with costs that are zero for some samples; and their dense kernels."""

    def __init__(self, kind, n=90, seed=0, offset=0.0, cost=1.0, cache_mb=512):
        rng = np.random.default_rng(seed)
        X = offset + rng.normal(size=(n, 3))
        self.kind = {"ls-svc": "ridge"}.get(kind, kind)
        self.rows = [np.arange(n // 2), np.arange(n // 3, 2 * n // 3), np.arange(2 * n // 3, n)]
        Z = X - offset
        signal = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.3 * rng.normal(size=n)
        self.y = [targets_of(kind, signal)[rows] for rows in self.rows]
        self.C = [
            cost * COSTS[kind] * rng.uniform(0.5, 2, len(rows)) * (rng.random(len(rows)) < 0.9) for rows in self.rows
        ]
        squared, inner = cdist(X, X, "sqeuclidean"), X @ X.T
        self.Ks = np.stack(
            [
                inner,
                (inner + 1) ** 2,
                np.exp(-squared / (2 * 0.7**2)),
                np.exp(-squared / (2 * 2.0**2)),
                np.exp(-0.3 * cdist(X, X, "cityblock")),
            ]
        )
        gram = GramBlocks(KernelBank(KERNELS, normalize="none", cache_mb=cache_mb).fit(X), X, self.rows)
        options = {"epsilon": EPSILON} if kind == "svr" else {}
        self.machine = MACHINES[kind].make(gram, np.concatenate(self.y), np.concatenate(self.C), SCALE, **options)
        diagonals = np.diagonal(self.Ks, axis1=1, axis2=2)
        self.largest = np.array(
            [diagonals[:, rows].max(axis=1) for rows in self.rows]
        )  # k_m(x, x), (n_tasks, n_kernels)

    def _each(self, theta, duals):
        K = np.tensordot(theta, self.Ks, axes=1)
        for rows, y, C, v in zip(self.rows, self.y, self.C, duals, strict=True):
            yield self.kind, K[np.ix_(rows, rows)], y, C, v

    def _constant(self, theta):
        """What the objective of a ball has besides R², so that it decreases with θ and is positive."""
        if self.kind != "svdd":
            return 0.0
        top = self.largest.max(axis=1)
        return SCALE * (top * (1 - theta.sum()) + 1e-9 * self.largest.min(axis=1) + 1e-13 * top)

    def dual_values(self, theta, duals):
        values = [machine_dual(*task, epsilon=EPSILON) for task in self._each(theta, duals)]
        return SCALE * values + self._constant(theta)

    def primal_values(self, theta, duals, intercepts):
        tasks = zip(self._each(theta, duals), intercepts, strict=True)
        return SCALE * [machine_primal(*task, b, epsilon=EPSILON) for task, b in tasks] + self._constant(theta)

    def check(self, sweep, rounding=1e-9, slack=1e-6):
        """Every bound of a sweep holds and is not too cautious; returns the largest relative gap of its tasks."""
        decisions = self.machine.decisions(sweep)
        duals = [v / 2 for v in decisions.dual] if self.kind == "svdd" else decisions.dual
        for y, C, v in zip(self.y, self.C, duals, strict=True):
            assert infeasibility(self.kind, y, C, v) <= 1e-13
        dual = self.dual_values(sweep.theta, duals)
        primal = self.primal_values(sweep.theta, duals, decisions.intercepts)
        # a dual of negative value proves J ≥ 0 at least, or more if it is scaled
        assert np.all(sweep.lower <= np.where(dual > 0, dual, primal) + rounding * primal)
        assert np.all(sweep.upper >= primal - rounding * primal)
        for seed in range(4):
            theta = some_theta(seed, len(KERNELS)) * (1.0 if seed % 2 else 0.3)
            cuts, values = sweep.linear - sweep.forms @ theta / 2, self.dual_values(theta, duals)
            assert np.all(cuts <= values + rounding * (primal + np.abs(values)))
        assert np.all(sweep.upper - sweep.lower <= primal - dual + slack * primal)
        return np.max(1 - dual / primal)


def stream(monkeypatch, largest=None, rounds=None):
    """Solve tasks of any size on working sets, of few new variables and in few rounds if these are given."""
    monkeypatch.setattr("paretomkl.gram._blocks._FEW_PAIRS_OF_ALL", 0)
    if largest is not None:
        for name, value in {"ADDED": largest, "OF_ALL": 0.0, "OF_SUPPORT": 0.0}.items():
            monkeypatch.setattr(f"paretomkl.machines._working_sets.{name}", value)
    if rounds is not None:
        monkeypatch.setattr("paretomkl.machines._working_sets.MOST_ROUNDS", rounds)


@pytest.mark.parametrize("cache_mb", [512, 0])
@pytest.mark.parametrize("rtol", [0.9, 0.3, 1e-2, 1e-6])
@every_kind
def test_bounds_hold_for_any_accuracy_of_the_tasks(kind, rtol, cache_mb):
    """From stored kernel values, and from values that are computed whenever they are needed."""
    case = Case(kind, cache_mb=cache_mb)
    warm, gaps = None, []
    for seed in range(3):
        sweep = case.machine.sweep(some_theta(seed, len(KERNELS)), warm, rtol)
        warm = sweep.warm
        gaps.append(case.check(sweep))
    assert max(gaps) <= 1.001 * rtol
    assert case.kind == "ridge" or rtol < 1e-2 or max(gaps) > 0.02 * rtol  # they do stop early


@pytest.mark.parametrize(
    ("field", "rtol"),
    [(KernelFields, 0.3), (KernelFields, 1e-2), (KernelFields, 1e-8), (CombinedField, 0.3), (CombinedField, 1e-2)],
)
@on_working_sets
def test_bounds_hold_on_working_sets_for_any_accuracy(kind, field, rtol, monkeypatch):
    stream(monkeypatch, largest=5)
    double = rtol < 1e-5
    monkeypatch.setattr("paretomkl.gram._large.fields.READING", -np.inf if field is CombinedField else np.inf)
    case = Case(kind)
    assert case.machine.gram.streams
    warm, gaps = None, []
    for seed in (0, 1, 0):
        sweep = case.machine.sweep(some_theta(seed, len(KERNELS)), warm, rtol)
        warm = sweep.warm
        gaps.append(case.check(sweep, slack=1e-6 + 0.5 * rtol))
    with case.machine.gram.field() as last:
        assert isinstance(last, field)
    assert double or max(gaps) > 0.02 * rtol  # they do stop early


@pytest.mark.parametrize("kind", ["svc", "svr", "one-class"])
def test_working_sets_reach_any_accuracy_at_any_scale(kind, monkeypatch):
    stream(monkeypatch, largest=10)
    for cost in (1e-6, 1.0):
        case = Case(kind, cost=cost)
        assert case.check(case.machine.sweep(some_theta(0, len(KERNELS)), rtol=1e-9)) <= 2e-9


@pytest.mark.parametrize("offset", [3.0, 10.0, 30.0, 100.0])
@pytest.mark.parametrize("kind", ["svc", "svr", "one-class"])
def test_bounds_hold_on_working_sets_far_from_the_origin(kind, offset, monkeypatch):
    """The quadratic kernel loses all digits of single precision from about ten standard deviations."""
    stream(monkeypatch)
    case = Case(kind, offset=offset)
    warm = None
    for seed in (0, 1, 0):
        sweep = case.machine.sweep(some_theta(seed, len(KERNELS)), warm, rtol=1e-3)
        warm = sweep.warm
        case.check(sweep, slack=2e-3 if offset < 100 else 2e-2)


@pytest.mark.parametrize("rounds", [0, 1, 2, 4])
@on_working_sets
def test_bounds_hold_after_a_few_rounds(kind, rounds, monkeypatch):
    stream(monkeypatch, largest=3, rounds=rounds)
    for seed in range(2):
        case = Case(kind)
        sweep = case.machine.sweep(some_theta(seed, len(KERNELS)), rtol=1e-8)
        assert case.check(sweep) > 1e-7  # not solved yet


@pytest.mark.parametrize("some", [8, 12])
@pytest.mark.parametrize("cost", [1.0, 1e-3])
@pytest.mark.parametrize("kind", ["svc", "svr", "one-class"])
def test_bounds_hold_for_a_first_guess(kind, cost, some, monkeypatch):
    """The guess is learned on some samples with larger costs, and must be made feasible for all of them."""
    stream(monkeypatch, rounds=0)
    monkeypatch.setattr("paretomkl.machines._working_sets.SOME", some)
    case = Case(kind, cost=cost)
    for seed in range(3):
        sweep = case.machine.sweep(some_theta(seed, len(KERNELS)), rtol=1e-8)
        assert all(np.count_nonzero(v) > 1 for v in case.machine.decisions(sweep).dual)
        case.check(sweep)


@pytest.mark.parametrize("stiff", [1.05, 1.5])
@pytest.mark.parametrize("kind", ["ridge", "ls-svc"])
def test_bounds_hold_for_linear_systems_that_are_solved_inexactly(kind, stiff, monkeypatch):
    """The factor belongs to another matrix, so that every step leaves a residual, and refinement reduces it."""
    monkeypatch.setattr(_ridge, "cho_factor", lambda system, **options: cho_factor(stiff * system, **options))
    case = Case(kind)
    for seed in range(2):
        rough, fine = (
            case.check(case.machine.sweep(some_theta(seed, len(KERNELS)), rtol=rtol)) for rtol in (1.0, 1e-14)
        )
        assert rough > 1e-4
        assert fine < 0.1 * rough


def test_a_ridge_system_that_rounding_makes_indefinite_is_still_solved():
    """A smooth kernel on a line has a rank of about ten in double precision, and 1 / C does not make up for it."""
    x = np.linspace(0, 1, 40)
    K, w = gaussian(x[:, None], 1.0), np.sin(9 * x) - np.sin(9 * x).mean()
    machine = one_task("ridge", K, K @ w, 1e16)
    sweep = machine.sweep(np.ones(1), rtol=1e-6)
    assert_allclose([sweep.lower, sweep.upper], w @ K @ w / 2, rtol=1e-4)  # K w is fitted without error
    (dual,) = machine.decisions(sweep).dual
    assert abs(dual.sum()) <= 1e-15 * np.abs(dual).sum()


@pytest.mark.parametrize(("kind", "epsilon"), [("ridge", 0.0), ("svr", 1e-3), ("svr", 0.0)])
def test_only_targets_that_a_constant_fits_cost_nothing(kind, epsilon):
    """Targets of a small range have their own objective; samples of cost zero do not count."""
    x = np.linspace(-1, 1, 12)
    K, rows = gaussian(x[:, None]), np.arange(12)
    small, constant = 0.02 * np.sign(x), np.where(rows == 3, 5.0, 1.0)
    costs = [np.full(12, 2.0), np.where(rows == 3, 0.0, 2.0)]
    machine = make_machine(kind, K[None], [(rows, small), (rows, constant)], costs, epsilon)
    sweep = machine.sweep(np.ones(1), rtol=1e-9)
    assert_allclose(sweep.lower[0], machine_objective(kind, K, small, costs[0], epsilon), rtol=1e-5)
    assert sweep.lower[1] == sweep.upper[1] == 0
