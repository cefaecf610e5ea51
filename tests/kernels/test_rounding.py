"""Rounding: bounds hold for exact kernel values, and an offset of the features changes nothing that is learned.

The truth is evaluated with 60 digits: the dual of a sweep is made feasible exactly, its cut is compared at several θ,
and its primal value at the θ of the sweep.
"""

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl import KernelBank, ParetoMKLClassifier, ParetoMKLOutlierDetector, ParetoMKLRegressor, pareto_path
from paretomkl.gram import GramBlocks
from paretomkl.gram._coupled import CoupledBank, CoupledGram
from paretomkl.kernels import Gaussian, Laplacian, Linear, Polynomial
from paretomkl.kernels._rounding import bound_errors
from paretomkl.machines import MACHINES
from paretomkl.solution import RoundingWarning
from tests.machines.cases import targets_of

N = 14
KERNELS = [Linear(), Polynomial(2, gamma=0.1), Gaussian(6.0), Gaussian(3.0), Laplacian(0.1)]
OFFSETS = (0.0, 1e3, 1e6, 1e7, 1e9)
COST = {"svc": 2.0, "ls-svc": 2.0, "logistic": 2.0, "ridge": 3.0, "svr": 1.5, "one-class": 0.4, "svdd": 0.3}
EPSILON = 0.1


def _samples(offset, unit=1.0):
    rng = np.random.default_rng(1)
    X = rng.integers(-9, 10, size=(N, 2)).astype(float)
    signal = X[:, 0] - X[:, 1] + rng.normal(size=N) * 4
    return offset + unit * X, signal


def _targets(kind, signal):
    return targets_of(kind, signal / 5 if kind == "svr" else signal)


def _gram(kind, X, normalize):
    """The Gram store, and its samples: features or a stack."""
    if normalize == "precomputed":
        X = np.stack([X @ X.T, (0.1 * X @ X.T + 1) ** 2], axis=2)
        bank = KernelBank("precomputed").fit(X)
    else:
        bank = KernelBank(KERNELS, normalize=normalize).fit(X)
    return GramBlocks(bank.for_shift_invariant() if MACHINES[kind].promises.shifts else bank, X, [np.arange(N)]), X


def _machine(kind, gram, signal):
    options = {"epsilon": EPSILON} if kind == "svr" else {}
    costs = COST[kind] * np.linspace(0.8, 1.2, N)
    return MACHINES[kind].make(gram, _targets(kind, signal), costs, np.array([0.5]), **options)


# ------------------------------------------------------------------------------------------------ exact values
def _exact(values):
    return np.vectorize(Decimal, otypes=[object])(np.asarray(values, dtype=float))


def _exact_kernels(bank, X):
    """The kernels of a bank among samples, with 60 digits."""
    if bank.precomputed:
        return [Decimal(f) * _exact(X[:, :, m]) for m, f in enumerate(bank.factor.tolist())]
    Z, made = _exact(X), []
    for kernel, factor in zip(bank.kernels, bank.factor.tolist(), strict=True):
        if isinstance(kernel, Gaussian):
            squares = ((Z[:, None] - Z) ** 2).sum(axis=2)
            K = np.vectorize(lambda d, s=Decimal(kernel.sigma): (-d / (2 * s * s)).exp(), otypes=[object])(squares)
        elif isinstance(kernel, Laplacian):
            d = abs(Z[:, None] - Z).sum(axis=2)
            K = np.vectorize(lambda d, g=Decimal(kernel.gamma): (-g * d).exp(), otypes=[object])(d)
        else:
            C = Z - _exact(bank.evaluator.middle) if bank.centred and kernel.code.degree == 1 else Z
            K = C @ C.T
            if isinstance(kernel, Polynomial):
                K = (Decimal(kernel.gamma) * K + Decimal(kernel.coef0)) ** kernel.degree
            if bank.normalize == "unit":
                root = np.array([K[i, i].sqrt() or Decimal(1) for i in range(len(K))])
                K = K / root / root[:, None]
        made.append(Decimal(factor) * K)
    return made


def _feasible(v, kind, C):
    """The dual with Σv = 0, or 1, to 60 digits, inside its box."""
    if kind == "one-class":
        return v
    positive, negative = sum(x for x in v if x > 0), -sum(x for x in v if x < 0)
    if kind != "svdd":
        ratio = positive / negative if positive < negative else negative / positive
        larger = 1 if positive > negative else -1
        return np.array([x * ratio if x * larger > 0 else x for x in v])
    if positive > 1:
        return v / positive
    free = max(range(len(v)), key=lambda i: C[i] - v[i])
    v[free] += 1 - positive
    return v


def _truth(kind, Ks, machine, sweep):
    """The cut of the exact dual, as its intercept and slopes, and the primal value at θ."""
    C, y, theta = _exact(machine.C), _exact(machine.targets), _exact(sweep.theta)
    decisions, scale = machine.decisions(sweep), Decimal(float(machine.scale[0]))
    v = _exact(decisions.dual[0]) / (2 if kind == "svdd" else 1)
    v = _feasible(v, kind, C)
    b = Decimal(float(decisions.intercepts[0]))
    forms = np.array([v @ K @ v for K in Ks])
    K = sum(t * K for t, K in zip(theta, Ks, strict=True))
    f, form = K @ v, theta @ forms
    if kind == "svdd":
        diagonals = np.array([np.diag(K) for K in Ks])
        top = diagonals.max()
        extra = top + Decimal("1e-9") * min(d.max() for d in diagonals) + Decimal("1e-13") * top
        outside = theta @ diagonals - 2 * f - b  # ‖φ(x) − a‖² − R², up to the b of the machine
        linear, slopes = extra, top - diagonals @ v + forms
        # R² = b + α'Kα, and the ball costs R² + Σ C max(0, outside)
        loss = sum(c * max(Decimal(0), o) for c, o in zip(C, outside, strict=True))
        return scale * linear, 2 * scale * slopes, scale * (extra - top * sum(theta) + b + form + loss)
    error = y - f - (0 if kind == "one-class" else b)
    if kind in ("ridge", "ls-svc"):
        linear, loss = v @ y - sum(v * v / C) / 2, sum(C * error * error) / 2
    elif kind == "logistic":
        shares = [abs(a) / c for a, c in zip(v, C, strict=True)]
        entropies = [-q * q.ln() - (1 - q) * (1 - q).ln() for q in shares]
        linear = sum(c * h for c, h in zip(C, entropies, strict=True))
        margins = y * (y - error)
        loss = sum(c * (max(-m, 0) + (1 + (-abs(m)).exp()).ln()) for c, m in zip(C, margins, strict=True))
    elif kind == "svr":
        epsilon = Decimal(EPSILON)
        linear = v @ y - epsilon * sum(abs(v))
        loss = sum(c * max(Decimal(0), abs(e) - epsilon) for c, e in zip(C, error, strict=True))
    else:
        linear = sum(abs(v))
        loss = sum(c * max(Decimal(0), e * s) for c, e, s in zip(C, error, y, strict=True))
    return scale * linear, scale * forms, scale * (form / 2 + loss)


def _check(kind, Ks, machine, rtol=1e-9):
    M, rng = machine.n_kernels, np.random.default_rng(0)
    theta = rng.dirichlet(np.ones(M))
    sweep = machine.sweep(theta, rtol=rtol)
    linear, forms, primal = _truth(kind, Ks, machine, sweep)
    for other in (theta, *np.eye(M), *rng.dirichlet(np.ones(M), size=3)):
        weights = _exact(other)
        reported = Decimal(float(sweep.linear[0])) - weights @ _exact(sweep.forms[0]) / 2
        assert reported <= linear - weights @ forms / 2
    fall = _exact(theta) @ forms / 2
    best = min(Decimal(1), linear / (2 * fall)) if fall > 0 and kind != "svdd" else 1  # a multiple of v is feasible too
    assert Decimal(float(sweep.upper[0])) >= primal
    least = primal if kind == "svdd" else primal * Decimal("1e-50")  # R² ≥ 0; other objectives are positive
    assert Decimal(float(sweep.lower[0])) <= max(best * linear - best**2 * fall, least)
    return sweep


ROUTES = ("full", "fields", "single")


@pytest.fixture
def route(request, monkeypatch):
    if request.param != "full":
        monkeypatch.setattr("paretomkl.gram._blocks._FEW_PAIRS_OF_ALL", 0)
    if request.param == "fields":
        monkeypatch.setattr("paretomkl.gram._large.distances.single_serves", lambda gram: False)
    return request.param


@pytest.mark.parametrize("route", ROUTES, indirect=True)
@pytest.mark.parametrize("normalize", ["none", "capacity", "unit", "trace", "precomputed"])
@pytest.mark.parametrize("kind", MACHINES)
def test_bounds_hold_for_exact_kernel_values(kind, normalize, route):
    if route != "full" and (kind in ("ridge", "ls-svc", "logistic") or normalize == "precomputed"):
        pytest.skip("solved with full matrices")
    with localcontext(prec=60):
        for offset in OFFSETS:
            X, signal = _samples(offset, 1e-3 if offset == 1e6 else 1.0)
            gram, samples = _gram(kind, X, normalize)
            Ks = _exact_kernels(gram.bank, samples)
            _check(kind, Ks, _machine(kind, gram, signal), 1e-4 if route == "single" else 1e-9)


@pytest.mark.parametrize("normalize", ["none", "capacity"])
@pytest.mark.parametrize("kind", ["svc", "ridge", "svr"])
def test_bounds_hold_for_shared_functions(kind, normalize):
    """The common part is centred, the part of a task is not: its duals do not sum to zero."""
    codes = np.repeat([0.0, 1.0], N // 2)
    same = codes[:, None] == codes
    with localcontext(prec=60):
        for offset in OFFSETS:
            X, signal = _samples(offset)
            base = KernelBank(KERNELS, normalize=normalize).fit(X)
            data, groups = np.column_stack([X, codes]), [(np.arange(N), np.ones(N))]
            bank = CoupledBank.of(base, data, groups).for_shift_invariant()
            own = [K * same for K in _exact_kernels(bank.own, X)]
            level = Decimal(float(bank.factor[-1])) * _exact(same)
            gram = CoupledGram(bank, data, [np.arange(N)])
            _check(kind, [*_exact_kernels(bank.common, X), *own, level], _machine(kind, gram, signal))


@pytest.mark.parametrize("kind", MACHINES)
def test_rounding_adds_next_to_nothing_for_ordinary_data(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    bank = KernelBank("default").fit(X)
    gram = GramBlocks(bank, X, [np.arange(N)])
    sweep = _machine(kind, gram, rng.normal(size=N)).sweep(np.full(bank.n_kernels, 1 / bank.n_kernels), rtol=1e-8)
    assert 0 < sweep.rounding[0] @ sweep.theta <= 1e-10 * sweep.upper[0]


# ------------------------------------------------------------------------------------------------ offsets
SINCE_1970 = 1.7e9
INVARIANT = [Linear(), Linear(columns=[0]), Gaussian(8.0), Laplacian(0.05)]


def _table(n=40):
    rng = np.random.default_rng(3)
    X = rng.integers(-15, 16, size=(n, 3)).astype(float)
    X[:, 2] = 7.0  # constant
    return X, X[:, 0] - 0.5 * X[:, 1] + 6 * rng.normal(size=n)


def _model(name, kernels):
    if name == "balls":
        return ParetoMKLOutlierDetector(kernels=kernels, method="svdd", tol=1e-6)
    if name in ("squared", "epsilon_insensitive"):
        return ParetoMKLRegressor(kernels=kernels, loss=name, tol=1e-6)
    return ParetoMKLClassifier(kernels=kernels, tol=1e-6)


@pytest.mark.filterwarnings("ignore:Several kernels")
@pytest.mark.parametrize("normalize", ["none", "capacity"])
@pytest.mark.parametrize("offset", [1e3, SINCE_1970, -1e9])
@pytest.mark.parametrize("name", ["two classes", "three classes", "squared", "epsilon_insensitive", "balls"])
def test_an_offset_changes_nothing_that_is_learned(name, offset, normalize):
    X, signal = _table()
    y = {"two classes": signal > 0, "three classes": np.digitize(signal, [-5, 5])}.get(name, signal)
    new = np.arange(-20.0, 20.0).reshape(-1, 2) @ [[1, 0, 2], [0, 3, 1]]
    learned = []
    for c in (0.0, offset):
        model = _model(name, KernelBank(INVARIANT, normalize=normalize)).fit(X + c, y)
        decide = model.predict if isinstance(model, ParetoMKLRegressor) else model.decision_function
        learned.append((model.theta_, model.objectives_, decide(new + c), decide(X + c), model.gap_))
    for here, there in zip(*learned, strict=True):
        assert_allclose(there, here, rtol=1e-9, atol=1e-9)


def test_an_offset_leaves_a_path_as_it_is():
    X, signal = _table(60)
    y, tasks = signal > 0, np.repeat(["a", "b", "c"], 20)
    kernels = KernelBank(INVARIANT, normalize="capacity")
    here, there = (pareto_path(X + c, y, tasks=tasks, ps=[0.5, 1, np.inf], kernels=kernels) for c in (0.0, SINCE_1970))
    assert_allclose(there.theta, here.theta, rtol=1e-9, atol=1e-12)
    assert there.n_sweeps == here.n_sweeps


def test_a_huge_value_does_not_move_the_centre():
    """Differences between the other samples stay exact."""
    X, _ = _table()
    X[0, 0] = 2.0**40
    bank = KernelBank([Linear(), Gaussian(8.0)], normalize="none").fit(X).for_shift_invariant()
    side = bank.side(X)
    K = bank.cross(side, side, np.array([1.0, 0.0]))[1:, 1:]
    centred = X[1:] - np.sort(X, axis=0)[19]  # the lower median of 40
    assert_allclose(K, centred @ centred.T, rtol=1e-14, atol=1e-12)


# ------------------------------------------------------------------------------------------------ the warning
@pytest.mark.parametrize("solver", ["auto", "bcd"])
def test_a_warning_names_the_kernel_that_rounding_spoils(solver):
    X, signal = _table()
    kernels = KernelBank([Gaussian(8.0), Polynomial(2)], normalize="none")
    clf = ParetoMKLClassifier(kernels=kernels, solver=solver, max_iter=10_000)
    with pytest.warns(RoundingWarning, match="offset") as seen:
        clf.fit(X + SINCE_1970, signal > 0)
    assert seen[0].message.kernel == "polynomial(degree=2)"
    assert seen[0].message.share > 1e-3
    assert clf.gap_ > 1e-3
    assert clf.n_sweeps_ <= 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clf.fit(X, signal > 0).gap_ <= 1e-3  # the advice helps


def test_a_precomputed_kernel_that_cancels_is_named():
    X, signal = _table()
    Z = X + SINCE_1970
    with pytest.warns(RoundingWarning, match="precomputed stack"):
        ParetoMKLClassifier(kernels="precomputed").fit((Z @ Z.T)[:, :, None], signal > 0)


def test_samples_without_a_dual_do_not_loosen_bounds_of_fields():
    """Adding zeros is exact, so a million samples at zero must not keep a task from being certified."""
    rng, n = np.random.default_rng(0), 20_000
    X, v = rng.normal(size=(n, 3)), np.zeros(n)
    v[:10] = rng.normal(size=10)
    bank, found = KernelBank(KERNELS, normalize="unit").fit(X), []
    for m in (10, n):
        rounding = GramBlocks(bank, X[:m], [np.arange(m)]).rounding
        forms, values, relative = np.empty((1, len(KERNELS))), np.empty(m), np.empty(1)
        weights, noise = np.ones((1, len(KERNELS))), np.array([40.0])
        bound_errors(rounding, weights, np.array([0, m]), v[:m], False, noise, forms, relative, values)
        found.append((forms, values[:10]))
    (few_forms, few_values), (many_forms, many_values) = found
    assert_allclose(many_forms, few_forms, rtol=1e-12)
    assert_allclose(many_values, few_values, rtol=1e-12)
