"""Tasks solved on working sets, compared with the same tasks solved with full Gram matrices."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl import KernelBank, pareto_path
from paretomkl.gram import GramBlocks
from paretomkl.kernels import Gaussian, Laplacian, Linear, Polynomial
from paretomkl.machines import MACHINES

KINDS = ("svc", "svr", "one-class", "svdd")
KERNELS = [Linear(), Polynomial(2), Gaussian(0.7), Gaussian(1.5), Gaussian(3.0), Laplacian(0.3)]
THETA = np.array([0.1, 0.1, 0.2, 0.3, 0.1, 0.2])


def _stream(monkeypatch, whether=True):
    monkeypatch.setattr("paretomkl.gram._blocks._FEW_PAIRS_OF_ALL", 0 if whether else np.inf)


def _machine(kind, cache_mb=512, n_jobs=1, n=900, C=None):
    """Three tasks with their own costs on some of the samples; two tasks share samples."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    rows = [np.arange(0, n // 2), np.arange(n // 3, 2 * n // 3), np.arange(2 * n // 3, n)]
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    targets = {"svc": np.where(signal > 0, 1.0, -1.0), "svr": signal}.get(kind, np.ones(n))
    cost = C or {"svc": 5.0, "svr": 2.0, "one-class": 0.3, "svdd": 0.05}[kind]
    costs = cost * rng.uniform(0.5, 2, sum(map(len, rows)))
    gram = GramBlocks(KernelBank(KERNELS, normalize="unit", cache_mb=cache_mb).fit(X), X, rows, n_jobs)
    options = {"epsilon": 0.1} if kind == "svr" else {}
    return MACHINES[kind].make(
        gram, np.concatenate([targets[r] for r in rows]), costs, np.array([1.0, 0.5, 2.0]), **options
    )


@pytest.mark.parametrize("cache_mb", [512, 0])
@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-8])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_enclose_the_objectives_and_forms_match_the_dual(kind, rtol, cache_mb, monkeypatch):
    _stream(monkeypatch, False)
    machine = _machine(kind)
    truth = machine.sweep(THETA, rtol=1e-10)
    _stream(monkeypatch)
    streaming = _machine(kind, cache_mb)
    assert streaming.gram.streams
    warm = None
    for theta in (THETA, np.roll(THETA, 1), THETA):
        sweep = streaming.sweep(theta, warm, rtol)
        warm = sweep.warm
        assert (sweep.upper - sweep.lower <= 2.01 * rtol * sweep.upper).all()  # single precision may add rtol
        forms = streaming.scale[:, None] * machine.gram.quadratic_forms(warm.dual)
        if kind != "svdd":  # its slopes have another term
            assert (sweep.forms >= forms * (1 - 1e-12)).all()
            assert (sweep.forms <= forms * (1 + 1e-12) + 2 * sweep.rounding).all()
    assert (sweep.lower <= truth.upper).all()
    assert (sweep.upper >= truth.lower).all()
    assert_allclose(sweep.lower, truth.lower, rtol=max(rtol, 1e-9))


@pytest.mark.parametrize("rtol", [1e-3, 1e-8])
@pytest.mark.parametrize("kind", ["svc", "svr", "one-class"])
def test_stores_with_other_factors_share_fields(kind, rtol, monkeypatch):
    """The columns of a field serve every capacity, but forms and decisions have the factors of the store in use."""
    _stream(monkeypatch)
    machine = _machine(kind)
    first = machine.sweep(THETA, rtol=rtol)
    used = machine.gram._fields[0]
    for factors in (np.linspace(0.5, 1.0, len(KERNELS)), np.linspace(1.0, 0.2, len(KERNELS)), np.ones(len(KERNELS))):
        machine.gram = machine.gram.with_bank(replace(machine.gram.bank, factor=factors))
        other = machine.sweep(THETA, rtol=rtol)
        alone = _machine(kind)
        truth = alone.sweep(THETA * factors, rtol=1e-9)
        assert machine.gram._fields[0] is used
        assert (other.lower <= truth.upper).all()
        assert (other.upper >= truth.lower).all()
        assert (other.upper - other.lower <= 2.01 * rtol * other.upper).all()
    assert_allclose(other.lower, first.lower, rtol=2 * rtol)


def test_a_start_that_is_much_too_large_leaves_no_errors(monkeypatch):
    """Fields are updated from one dual to the next, and the errors of updates are those of the largest dual."""
    _stream(monkeypatch)
    monkeypatch.setattr("paretomkl.gram._blocks._SweepCost.note", lambda *given: None)  # never use full matrices
    machine = _machine("svr", C=1e4)
    start = machine.sweep(THETA, rtol=1e-2).warm
    start = machine.start_from(start.dual * (machine.C.min() / np.abs(start.dual).max()), start.intercepts)
    for theta in (3 * THETA, 30 * THETA):
        sweep = machine.sweep(theta, start, rtol=1e-2)
        assert (sweep.upper - sweep.lower <= 2.01e-2 * sweep.upper).all()


def test_fields_are_freed_with_their_store(monkeypatch):
    _stream(monkeypatch)
    machine = _machine("svc")
    machine.sweep(THETA, rtol=1e-3)
    kept = weakref.ref(machine.gram._fields[0])
    gc.disable()
    try:
        del machine
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_nothing(kind, monkeypatch):
    _stream(monkeypatch)
    one, two = (_machine(kind, n_jobs=n_jobs).sweep(THETA, rtol=1e-4) for n_jobs in (1, 2))
    assert_allclose(one.warm.dual, two.warm.dual, atol=1e-12)
    assert_allclose(one.forms, two.forms, rtol=1e-12)


def test_a_warm_start_needs_fewer_kernel_values_than_a_cold_one(monkeypatch):
    _stream(monkeypatch)
    machine = _machine("svc")
    values = []
    warm = None
    for theta in (THETA, THETA + 0.01, THETA + 0.01):
        warm = machine.sweep(theta, warm, 1e-4).warm
        with machine.gram.field() as field:
            values.append(field.store.n_values)
    assert values[1] - values[0] < values[0]
    assert values[2] == values[1]  # solved already


def test_full_matrices_take_over_when_most_samples_are_support_vectors(monkeypatch):
    _stream(monkeypatch)
    monkeypatch.setattr("paretomkl.gram._blocks._DEARER", 0.1)
    machine = _machine("svc")
    first = machine.sweep(THETA, rtol=1e-4)
    assert not machine.gram.streams
    second = machine.sweep(THETA, first.warm, 1e-4)
    assert_allclose(second.lower, first.lower, rtol=1e-4)


def test_many_kernels_use_full_matrices():
    X = np.random.default_rng(0).normal(size=(60, 2))
    kernels = [Gaussian(sigma) for sigma in np.geomspace(0.1, 10, 80)]
    gram = GramBlocks(KernelBank(kernels).fit(X), X, [np.arange(60)])
    assert not gram.streams


@pytest.mark.parametrize("kernels", ["default", "paper"])
def test_paths_agree_whichever_way_tasks_are_solved(kernels, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 5))
    y = (X[:, 0] > 0) * 1 + (X[:, 1] + 0.3 * rng.normal(size=600) > 0.5)
    paths = []
    for streams in (False, True):
        _stream(monkeypatch, streams)
        paths.append(pareto_path(X, y, kernels=kernels, C=10.0, ps=[0.1, 1, 10, np.inf], tol=1e-4))
    full, streamed = paths
    assert (streamed.gap <= 1e-4).all()
    assert_allclose(streamed.objective, full.objective, rtol=2e-4)
    for one, other in zip(full.models, streamed.models, strict=True):
        assert np.mean(one.predict(X) == other.predict(X)) > 0.98


def test_data_far_from_the_origin_keep_their_digits(monkeypatch):
    """The linear kernel is nearly constant there, so single precision is not enough."""
    rng = np.random.default_rng(0)
    X = 1e5 + rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 1e5, 1, -1)
    objectives = []
    for streams in (False, True):
        _stream(monkeypatch, streams)
        objectives.append(
            pareto_path(X, y, kernels=KernelBank([Linear(), Gaussian(1.0)]), ps=[1.0], tol=1e-4).objective
        )
    assert_allclose(objectives[1], objectives[0], rtol=2e-4)
