"""Parts with no more than the members of their protocol: right answers and true certificates, whoever wrote them."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from paretomkl import (
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLOutlierDetector,
    ParetoMKLRegressorCV,
    pareto_path,
)
from paretomkl.gram import CombinedGram, Rounding
from paretomkl.machines import MACHINES
from paretomkl.problem import MultiTaskProblem
from paretomkl.protocols import Gram, Machine, PathSolver, Promises, Scalarization, Solver, WeightSet, check_part
from paretomkl.scalarizations import PowerMean
from paretomkl.solution import Solution
from paretomkl.solvers import BlockCoordinateDescent, CutPool, Tseng, make_solver
from paretomkl.sweep import Decisions, Sweep
from paretomkl.weight_sets import LsBall
from tests.machines.cases import EPSILON, make_machine, some_tasks, some_theta
from tests.oracles import conic_optimum, machine_optimum, power_mean

KINDS = ("svc", "ls-svc", "logistic", "ridge", "svr", "one-class", "svdd")
every_kind = pytest.mark.parametrize("kind", KINDS)


# ------------------------------------------------------------------------------------------------------ foreign parts
def only(protocol, part, **own):
    """An object with the members of a protocol and nothing else: they are those of ``part``, or ``own`` ones."""
    names = {name for base in protocol.__mro__ for name in {**vars(base), **getattr(base, "__annotations__", {})}}
    names = {name for name in names if not name.startswith("_")}
    members = {name: property(lambda _, name=name: getattr(part, name)) for name in names - own.keys()}
    return type(f"Only{protocol.__name__}", (), {"__slots__": (), **members, **own})()


def bare_machine(machine):
    return only(Machine, machine, promises=Promises())


class DenseGram:
    """A store of plain matrices (n_kernels, n, n) per task, of its own layout."""

    streams = can_choose = False
    n_jobs = 1

    def __init__(self, store):
        self.layout, self.n_kernels, self.names = store.layout, store.n_kernels, store.names
        self._Ks, self._flat = [], []
        for theta in np.eye(store.n_kernels):
            with store.combined(theta) as K:
                self._Ks.append([K.of_task(t) for t in range(len(self.layout.size))])
                self._flat.append(K.flat.copy())
        self.rounding = Rounding.of_values(self.diagonals())

    @contextmanager
    def combined(self, theta):
        yield CombinedGram(np.tensordot(theta, self._flat, axes=1), self.layout)

    def quadratic_forms(self, v):
        parts = np.split(v, self.layout.ptr[1:-1])
        return np.array([[own @ K[t] @ own for K in self._Ks] for t, own in enumerate(parts)])

    def diagonals(self):
        return np.array([np.concatenate([np.diag(own) for own in K]) for K in self._Ks])


def bare_ball(s):
    """The L_s ball, which does not say that it is one."""
    return only(WeightSet, LsBall(s), norm=np.nan, sparse=False)


@dataclass(frozen=True)
class MeanOfPowers:
    """S(g) = mean of g^k: convex for k ≥ 1, concave below, homogeneous only for k = 1."""

    k: float
    p = np.nan
    homogeneous = False

    @property
    def convex(self):
        return self.k >= 1

    def log_value(self, objectives):
        return np.log(np.mean(objectives**self.k, axis=-1))

    def value(self, objectives):
        return float(np.mean(objectives**self.k))

    def gradient(self, objectives):
        return self.k * objectives ** (self.k - 1) / len(objectives)

    def task_weights(self, objectives):
        return self.gradient(objectives) / self.gradient(objectives).sum()


class Descent:
    """Block-coordinate descent in eight lines, with the two members of a solver; it claims to be perfect."""

    def __init__(self, tol, n_steps):
        self.tol, self.n_steps = tol, n_steps

    def solve(self, problem, init=None, run=None):
        theta, sweep = problem.start(), None
        for _ in range(self.n_steps):
            sweep = problem.machine.sweep(theta, None, 0.01 * self.tol)
            weights = problem.scalarization.task_weights(sweep.lower)
            theta = problem.weight_set.minimize_ratio(theta**2 * (weights @ sweep.forms))
        value = problem.scalarization.value(sweep.lower)
        return Solution(problem.scalarization.p, sweep, weights, value, 0.0, self.n_steps, True)


def problem_of(kind, seed=0):
    """Kernel matrices, tasks and costs of a small problem."""
    Ks, tasks, C = some_tasks({"svc": "svr", "ls-svc": "ridge"}.get(kind, kind), seed)
    if kind in ("svc", "ls-svc"):
        tasks = [(rows, np.where(y > np.median(y), 1.0, -1.0)) for rows, y in tasks]
    return Ks, tasks, C


def optimum_of(kind, Ks, tasks, C, p, s, weights=None):
    """min over θ of M_p(J), by a conic solver."""
    if kind == "svc":
        return conic_optimum(Ks, tasks, C, p, s, task_weight=weights)[0]
    return machine_optimum(kind.replace("ls-svc", "ridge"), Ks, tasks, C, p, s, weights=weights, epsilon=EPSILON)[0]


def true_gap(kind, data, s, solution):
    """The relative distance of a solution to the optimum: of M_p, or for p < 1 of the equivalent weighted sum."""
    p, upper = solution.p, solution.sweep.upper
    if p >= 1:
        return 1 - optimum_of(kind, *data, p, s) / power_mean(upper, p)
    eta = PowerMean(p).gradient(upper)
    return 1 - optimum_of(kind, *data, 1.0, s, eta / eta.sum()) * eta.sum() / (eta @ upper)


# ------------------------------------------------------------------------------------------------------------ machines
@pytest.mark.parametrize("p", [-1.0, 0.3, 1.0, 2.0, np.inf])
@every_kind
def test_a_bare_machine_gets_the_right_answer_and_a_true_gap(kind, p):
    data, s = problem_of(kind), 1.0 if kind == "svdd" else 1.1
    machine = bare_machine(make_machine(kind, *data))
    for tol in (0.2, 1e-4):
        found = CutPool(tol=tol).solve(MultiTaskProblem(machine, PowerMean(p), LsBall(s)))
        assert -3e-6 <= true_gap(kind, data, s, found) <= found.gap + 3e-6
        assert found.gap <= tol


@every_kind
def test_a_bare_machine_in_the_algorithms_of_the_paper(kind):
    data, s = problem_of(kind), 1.0 if kind == "svdd" else 2.0
    problem = MultiTaskProblem(bare_machine(make_machine(kind, *data)), PowerMean(1.0), LsBall(s))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # with s = 1 it is slow
        found = BlockCoordinateDescent(tol=1e-3, max_iter=20).solve(problem)
    assert true_gap(kind, data, s, found) <= found.gap + 3e-6
    assert kind == "svdd" or found.gap <= 1e-3
    with pytest.raises(TypeError, match="needs support vector machines"):
        Tseng().solve(problem)


@every_kind
def test_bare_machines_keep_no_cut_that_they_do_not_promise(kind):
    """After C has grown and kernels were rescaled, the answers are those of a fresh start."""
    Ks, tasks, C = problem_of(kind)
    s, ratio = 1.0 if kind == "svdd" else 1.1, np.array([0.3, 2.0, 1.0, 5.0])
    solver = CutPool(tol=1e-5)
    problem, larger, rescaled = (
        MultiTaskProblem(bare_machine(make_machine(kind, kernels, tasks, costs)), PowerMean(2.0), LsBall(s))
        for kernels, costs in ((Ks, C), (Ks, 3 * C), (ratio[:, None, None] * Ks, C))
    )
    first = solver.solve(problem)
    starts = solver.grown(first, larger, 3.0), solver.rescaled(first, rescaled, ratio)
    for other, start in zip((larger, rescaled), starts, strict=True):
        assert len(start.state.cuts.linear) == 1
        assert_allclose(solver.solve(other, start).objective, solver.solve(other).objective, rtol=2e-5)


@dataclass
class Making:
    """Makes a machine in a wrapper, or over a foreign store."""

    make: Any
    wrap: Any = None
    gram: Any = None

    def __call__(self, gram, *data, **own):
        machine = self.make(self.gram(gram) if self.gram else gram, *data, **own)
        return self.wrap(machine) if self.wrap else machine


@pytest.fixture
def bare_machines(monkeypatch):
    for name, kind in MACHINES.items():
        bare = replace(kind, make=Making(kind.make, bare_machine), promises=Promises())
        monkeypatch.setitem(MACHINES, name, bare)


@pytest.fixture
def dense_grams(monkeypatch):
    for name, kind in MACHINES.items():
        dense = replace(kind, make=Making(kind.make, gram=DenseGram), promises=Promises())
        monkeypatch.setitem(MACHINES, name, dense)


@pytest.fixture
def bare_balls(monkeypatch):
    for name, kind in MACHINES.items():
        monkeypatch.setitem(MACHINES, name, replace(kind, weight_set=lambda s, of=kind.weight_set: bare_ball(of(s).s)))


FOREIGN = ("bare_machines", "dense_grams", "bare_balls")


def small_data(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((42, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(42)
    return X, np.where(y > 0, "a", "b") if MACHINES[kind].reads == "labels" else y, np.arange(42) % 3


@pytest.mark.parametrize("foreign", FOREIGN)
@every_kind
def test_paths_with_foreign_parts_are_those_of_our_own(kind, foreign, request):
    X, y, tasks = small_data(kind)
    given = {"ps": [0.3, 1.0, 4.0], "tasks": tasks, "machine": kind, "kernels": "paper", "tol": 1e-4}
    y = None if kind in ("one-class", "svdd") else y
    ours = pareto_path(X, y, **given)
    request.getfixturevalue(foreign)
    theirs = pareto_path(X, y, **given)
    assert np.all(theirs.gap <= 1e-4)
    assert_allclose(theirs.objective, ours.objective, rtol=3e-4)
    exact = pareto_path(X, y, **{**given, "tol": 1e-7, "ps": [4.0]})
    assert 1 - exact.objective[0] / theirs.objective[2] <= theirs.gap[2] + 1e-6


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("kind", ["svc", "ls-svc", "logistic", "ridge", "svr"])
def test_searches_with_foreign_parts_are_those_of_our_own(kind, foreign, request):
    X, y, tasks = small_data(kind)
    given = {"ps": [0.5], "Cs": [0.3, 3.0], "s": [1.0, 2.0], "cv": 2, "kernels": "default", "tol": 1e-6}
    search = ParetoMKLClassifierCV if MACHINES[kind].reads == "labels" else ParetoMKLRegressorCV
    search = search(**given, loss=MACHINES[kind].loss, share="kernel")
    ours = search.fit(X, y, tasks=tasks)
    scores, decisions = ours.cv_results_["mean_test_score"].copy(), ours.predict(X, tasks=tasks)
    request.getfixturevalue(foreign)
    theirs = search.fit(X, y, tasks=tasks)
    # hinge and tube losses may leave the intercept undetermined
    atol = {"svc": 0.03, "svr": 0.1}.get(kind, 1e-3)
    assert_allclose(theirs.cv_results_["mean_test_score"], scores, atol=atol)
    assert theirs.gap_ <= 1e-6
    if kind == "ridge":
        assert_allclose(theirs.predict(X, tasks=tasks), decisions, atol=1e-3)


def test_a_detector_with_foreign_machines(bare_machines):
    X, _, tasks = small_data("svdd")
    detector = ParetoMKLOutlierDetector(method="svdd", tol=1e-4).fit(X, tasks=tasks)
    assert detector.gap_ <= 1e-4


# ------------------------------------------------------------------------------------------------------- other parts
@pytest.mark.parametrize("p", [0.3, 1.0, 2.0, np.inf])
@every_kind
def test_a_foreign_gram_in_all_machines(kind, p):
    data, s = problem_of(kind, seed=1), 1.0 if kind == "svdd" else 1.1
    ours = make_machine(kind, *data)
    options = {"epsilon": EPSILON} if kind == "svr" else {}
    machine = MACHINES[kind].make(DenseGram(ours.gram), ours.targets, ours.C, **options)
    theta = some_theta(0)
    assert_allclose(machine.sweep(theta, rtol=1e-9).upper, ours.sweep(theta, rtol=1e-9).upper, rtol=1e-8)
    found = CutPool(tol=1e-4).solve(MultiTaskProblem(machine, PowerMean(p), LsBall(s)))
    assert -3e-6 <= true_gap(kind, data, s, found) <= found.gap + 3e-6


def test_a_foreign_gram_in_the_algorithms_of_the_paper():
    data = problem_of("svc", seed=1)
    ours = make_machine("svc", *data)
    machine = MACHINES["svc"].make(DenseGram(ours.gram), ours.targets, ours.C)
    for solver, p in ((BlockCoordinateDescent(tol=1e-3), 0.5), (Tseng(tol=1e-2), 2.0)):
        found = solver.solve(MultiTaskProblem(machine, PowerMean(p), LsBall(2.0)))
        assert true_gap("svc", data, 2.0, found) <= found.gap + 3e-6
        assert found.converged


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0])
@pytest.mark.parametrize("p", [0.3, 1.0, 2.0, np.inf])
def test_a_foreign_weight_set(p, s):
    data = problem_of("svc", seed=2)
    problem = MultiTaskProblem(make_machine("svc", *data), PowerMean(p), bare_ball(s))
    found = CutPool(tol=1e-4).solve(problem)
    assert -3e-6 <= true_gap("svc", data, s, found) <= found.gap + 3e-6
    if p <= 1 and s == 2.0:
        assert true_gap("svc", data, s, BlockCoordinateDescent(tol=1e-3).solve(problem)) <= 1e-3 + 3e-6
    with pytest.raises(TypeError, match="L_s ball"):
        Tseng().solve(problem)


@pytest.mark.parametrize("tol", [1e-1, 1e-2])
def test_a_convex_scalarization_that_is_not_homogeneous_has_a_true_gap(tol):
    """min of the mean of g⁴ is the fourth power of min M_4(g)."""
    data = problem_of("svc", seed=3)
    problem = MultiTaskProblem(make_machine("svc", *data), MeanOfPowers(4.0), LsBall(2.0))
    found = BlockCoordinateDescent(tol=tol).solve(problem)
    optimum = optimum_of("svc", *data, 4.0, 2.0) ** 4
    assert 1 - optimum / np.mean(found.sweep.upper**4) <= found.gap + 3e-6
    start = problem.machine.sweep(problem.start(), rtol=1e-8)
    assert 1 - optimum / np.mean(start.upper**4) <= problem.relative_gap(start) + 3e-6
    with pytest.raises(TypeError, match="power mean"):
        Tseng().solve(problem)


@pytest.mark.parametrize("solver", [CutPool, BlockCoordinateDescent])
def test_a_concave_scalarization_is_certified_as_its_weighted_sum(solver):
    data = problem_of("svc", seed=3)
    scalarization = MeanOfPowers(0.25)
    found = solver(tol=1e-3).solve(MultiTaskProblem(make_machine("svc", *data), scalarization, LsBall(2.0)))
    eta = scalarization.gradient(found.sweep.upper)
    optimum = optimum_of("svc", *data, 1.0, 2.0, eta / eta.sum()) * eta.sum()
    assert -3e-6 <= 1 - optimum / (eta @ found.sweep.upper) <= found.gap + 3e-6


# ------------------------------------------------------------------------------------------------------------- solvers
def test_a_plain_solver_works_everywhere_and_starts_cold():
    X, y, tasks = small_data("svc")
    given = {"tasks": tasks, "kernels": "paper", "s": 2.0}
    ours = pareto_path(X, y, ps=[0.3, 1.0], tol=1e-5, **given)
    solver = Descent(tol=1e-3, n_steps=40)
    assert not hasattr(solver, "grown")
    theirs = pareto_path(X, y, ps=[0.3, 1.0], solver=solver, **given)
    assert_allclose(theirs.objective, ours.objective, rtol=1e-3)
    assert theirs.n_sweeps == 80
    fitted = ParetoMKLClassifier(solver=solver, kernels="paper", s=2.0).fit(X, y, tasks=tasks)
    assert fitted.gap_ <= 1e-3
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0, 3.0], cv=2, solver=solver, kernels="paper", s=2.0, share="kernel")
    assert search.fit(X, y, tasks=tasks).gap_ <= 1e-3
    assert search.cv_results_["mean_test_score"].shape == (2,)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_boast_is_not_a_certificate():
    """A plain solver that claims gap 0 after one step gets the gap that its sweep proves, and a warning."""
    X, y, tasks = small_data("svc")
    given = {"tasks": tasks, "kernels": "paper", "ps": [1.0], "s": 1.0}
    best = pareto_path(X, y, tol=1e-6, **given)
    boast = pareto_path(X, y, solver=Descent(tol=1e-3, n_steps=1), **given)
    assert boast.gap[0] >= 1 - best.objective[0] / boast.objective[0] - 1e-6 > 0.05
    with pytest.warns(ConvergenceWarning, match="Descent stopped"):
        pareto_path(X, y, solver=Descent(tol=1e-3, n_steps=1), **given)


# ------------------------------------------------------------------------------------------------------- wrong parts
class Given:
    """A machine that returns what it was given, at every θ."""

    promises = Promises()

    def __init__(self, linear, forms, upper):
        self.linear, self.forms, self.given = np.asarray(linear, float), np.asarray(forms, float), upper
        self.n_tasks, self.n_kernels = self.forms.shape

    def sweep(self, theta, warm=None, rtol=1e-6):
        lower = self.linear - 0.5 * self.forms @ theta
        return Sweep(theta, self.linear, self.forms, lower, lower if self.given is None else np.asarray(self.given))

    def decisions(self, sweep):
        return Decisions([np.zeros(1)] * self.n_tasks, np.zeros(self.n_tasks))


IMPOSSIBLE = {
    "negative objective": (Given([1.0, 0.2], np.ones((2, 2)), [0.5, -0.3]), "Task 1 has the objective -0.3"),
    "zero objective": (Given([1.0, 0.2], np.ones((2, 2)), [0.5, 0.0]), "Task 1 has the objective 0"),
    "negative form": (Given([1.0, 2.0], [[1.0, 1.0], [1.0, -1.0]], None), "task 1 and kernel 1"),
    "NaN": (Given([1.0, np.nan], np.ones((2, 2)), None), "task 1 is not finite"),
    "cut above the objective": (Given([1.0, 2.0], np.ones((2, 2)), [0.6, 0.7]), "contradicts itself at task 1"),
    "shape": (Given([1.0, 2.0], np.ones((2, 2)), [1.0]), "must have forms of shape"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
@pytest.mark.parametrize("solver", ["auto", "bcd", Descent(1e-3, 2)], ids=["pool", "bcd", "plain"])
def test_impossible_sweeps_are_refused_by_name(case, solver):
    machine, words = IMPOSSIBLE[case]
    with pytest.raises(ValueError, match=words):
        make_solver(solver, [1.0]).solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.0)))


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_objectives_that_are_negative_elsewhere_do_not_give_a_false_certificate(p):
    """J_1 = 0.8 − 1.5 θ_2 is positive at the start. Without a promise its floor is not taken to be zero."""
    machine = Given([0.8, 10.0], [[0.0, 3.0], [1.0, 0.0]], None)
    problem = MultiTaskProblem(machine, PowerMean(p), LsBall(1.0))
    with pytest.raises(ValueError, match="Task 0 has the objective"):
        CutPool(tol=1e-3).solve(problem)


def test_a_machine_must_make_promises_and_have_what_it_promises():
    machine = make_machine("ridge", *problem_of("ridge"))
    silent = replace_members(machine, promises=None)
    with pytest.raises(TypeError, match="promises must be a Promises object"):
        MultiTaskProblem(silent, PowerMean(1.0), LsBall(1.0))
    for promise, lacking in (("grows", "grown_start"), ("chooses", "steepest"), ("hinge", "gram, targets")):
        with pytest.raises(TypeError, match=lacking):
            check_part(replace_members(machine, promises=replace(Promises(), **{promise: True})), Machine)
    with pytest.raises(TypeError, match="bank, field"):
        check_part(only(Gram, machine.gram, streams=True, can_choose=False), Gram)


def replace_members(machine, **own):
    return only(Machine, machine, **own)


def test_the_bare_parts_have_the_members_of_their_protocols_only():
    machine = make_machine("svc", *problem_of("svc"))
    for part, protocol in (
        (bare_machine(machine), Machine),
        (DenseGram(machine.gram), Gram),
        (bare_ball(1.1), WeightSet),
        (MeanOfPowers(2.0), Scalarization),
        (Descent(1e-3, 1), Solver),
    ):
        check_part(part, protocol)
    assert not hasattr(bare_machine(machine), "gram")
    assert not hasattr(DenseGram(machine.gram), "bank")
    with pytest.raises(TypeError, match="lacks name, lowest_p"):
        check_part(Descent(1e-3, 1), PathSolver)
