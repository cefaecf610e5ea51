"""Kernels that pay for their capacity, the default bank fitted to the data, and named sources."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from paretomkl import ParetoMKLClassifier, pareto_path
from paretomkl.kernels import Cosine, Gaussian, KernelBank, Laplacian, Linear, Polynomial, default_kernels, sources
from paretomkl.kernels._evaluation import cityblock
from paretomkl.kernels._fitted import Standardizer, Statistics, typical_distances, weighted_quantiles
from paretomkl.plotting import KernelWeightsDisplay
from tests import oracles

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 5)) * [1, 10, 0.1, 1, 1]
KERNELS = [
    Linear(),
    Polynomial(2),
    Gaussian(1.0),
    Gaussian(1e-3),
    Laplacian(0.2),
    Cosine(),
    lambda A, B: (A @ B.T) ** 2,
]


def centred_statistics(K, weight=None):
    """v and r from the definition; a whole weight is a number of repetitions."""
    if weight is not None:
        rows = np.repeat(np.arange(len(K)), weight)
        K = K[np.ix_(rows, rows)]
    n = len(K)
    centre = np.eye(n) - 1 / n
    Kc = centre @ K @ centre
    return np.trace(Kc) / n, np.trace(Kc) ** 2 / (Kc**2).sum()


def stack_of(kernels, data):
    bank = KernelBank(kernels, normalize="none").fit(data)
    side = bank.side(data)
    return np.stack([bank.cross(side, side, e) for e in np.eye(bank.n_kernels)])


# -------------------------------------------------------------------------------------------------- v r^κ
@pytest.mark.parametrize("capacity", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_are_divided_by_variance_and_effective_rank(capacity, weighted):
    groups = [np.arange(0, 25), np.arange(15, 40)]
    weight = RNG.integers(0, 4, size=40) if weighted else np.ones(40, dtype=int)
    given = [(rows, weight[rows].astype(float)) for rows in groups]
    Ks = stack_of(KERNELS, X)
    expected = []
    for K in Ks:
        found = [centred_statistics(K[np.ix_(rows, rows)], weight[rows]) for rows in groups]
        v, r = np.mean(found, axis=0)
        expected.append(1 / (v * r**capacity))
    for kernels, data in ((KERNELS, X), ("precomputed", np.moveaxis(Ks, 0, 2))):
        bank = KernelBank(kernels, normalize="capacity", capacity=capacity).fit(data, groups=given)
        assert_allclose(bank.factor, expected, rtol=1e-8)
    side = KernelBank(KERNELS, normalize="capacity", capacity=capacity).fit(X, groups=given)
    both = side.cross(side.side(X), side.side(X), np.ones(len(KERNELS)))
    assert_allclose(both, np.tensordot(expected, Ks, axes=1), rtol=1e-8)


def test_a_kernel_that_hardly_varies_keeps_its_digits():
    wide = KernelBank([Gaussian(1e4)], normalize="capacity").fit(X)
    linear = KernelBank([Linear()], normalize="capacity").fit(X)  # 1 − exp(−d²/2σ²) ≈ d²/2σ²
    assert_allclose(wide.effective_rank, linear.effective_rank, rtol=1e-4)
    assert_allclose(wide.variance * 1e8, linear.variance, rtol=1e-4)


def test_capacity_is_measured_on_at_most_a_thousand_samples():
    many = np.random.default_rng(0).normal(size=(2500, 3))
    bank = KernelBank([Gaussian(1.0), Gaussian(0.1)], normalize="capacity").fit(many)
    exact = [centred_statistics(K) for K in stack_of([Gaussian(1.0), Gaussian(0.1)], many)]
    assert_allclose(bank.variance, [v for v, _ in exact], rtol=0.02)
    assert_allclose(bank.effective_rank[0], exact[0][1], rtol=0.05)
    assert not np.array_equal(bank.variance, [v for v, _ in exact])
    again = KernelBank([Gaussian(1.0), Gaussian(0.1)], normalize="capacity").fit(many)
    assert_array_equal(again.factor, bank.factor)


def test_a_constant_kernel_gets_no_weight_and_does_no_harm():
    data = np.column_stack([X, np.full(40, 7.0)])
    y = (X[:, 0] > 0).astype(int)
    kernels = KernelBank([Gaussian(1.0, columns=5), Gaussian(1.0, columns=[0, 3])], normalize="capacity")
    model = ParetoMKLClassifier(kernels=kernels, C=10.0).fit(data, y)
    assert model.model_.bank.factor[0] == 0
    assert model.kernel_shares_[0] == 0
    assert model.score(data, y) == 1.0


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 20.0, np.inf])
@pytest.mark.parametrize("s", [1.0, 1.1, 2.0])
def test_the_optimum_matches_the_normalised_problem(p, s):
    """Compared with an independent conic solver on the divided kernels."""
    rng = np.random.default_rng(5)
    data = rng.normal(size=(36, 3))
    tasks = np.repeat([0, 1], 18)
    y = np.where(data[:, 0] + 0.5 * rng.normal(size=36) + 0.5 * data[:, 1] * tasks > 0, 1, -1)
    kernels = [Linear(), Gaussian(1.0), Gaussian(0.05), Laplacian(0.5)]
    Ks = stack_of(kernels, data)
    found = np.array([[centred_statistics(K[np.ix_(tasks == t, tasks == t)]) for t in (0, 1)] for K in Ks]).mean(axis=1)
    divided = Ks / (found[:, 0] * found[:, 1] ** 0.7)[:, None, None]
    bank = KernelBank(kernels, normalize="capacity", capacity=0.7)
    path = pareto_path(data, y, tasks=tasks, ps=[p], s=s, C=2.0, kernels=bank, tol=1e-5)
    pairs = [(np.flatnonzero(tasks == t), y[tasks == t].astype(float)) for t in (0, 1)]
    if p >= 1:
        truth, _ = oracles.conic_optimum(divided, pairs, 2.0, p, s)
        assert path.objective[0] == pytest.approx(truth, rel=1e-4)
        assert path.objective[0] * (1 - path.gap[0]) <= truth * (1 + 1e-6)
    else:  # a point of the front: least for the sum weighted as there
        eta = path.task_weights[0]
        truth, _ = oracles.weighted_optimum(divided, pairs, 2.0, eta, s)
        assert eta @ path.objectives[0] == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("kernels", ["default", "paper", ["linear", "rbf"]], ids=str)
def test_the_capacity_of_kernels_in_any_form_is_a_parameter(kernels):
    given = ParetoMKLClassifier(kernels=kernels)
    changed = clone(given).set_params(kernels__normalize="capacity", kernels__capacity=1.0)
    assert changed.kernels == KernelBank(kernels, normalize="capacity", capacity=1.0)
    assert given.kernels is kernels
    assert given.set_params(kernels="paper", kernels__capacity=0.25).kernels == KernelBank("paper", capacity=0.25)


def test_capacity_is_a_parameter_of_searches():
    X, y = load_iris(return_X_y=True)
    model = ParetoMKLClassifier(C=10, kernels=KernelBank())
    search = GridSearchCV(model, {"kernels__capacity": [0.0, 0.5, 1.0]}, cv=3).fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 3
    assert clone(model).set_params(kernels__capacity=0.2).kernels.capacity == 0.2


# ---------------------------------------------------------------------------------------- the default bank
def test_the_default_bank_is_made_from_the_data():
    data, _ = load_wine(return_X_y=True)
    bank = KernelBank().fit(data)
    Z = StandardScaler().fit_transform(data)
    assert_allclose(bank.evaluator.standardizer(data), Z, atol=1e-10)  # no value is ten deviations out
    distance = cdist(Z, Z)[np.tril_indices(len(Z), -1)]
    sigmas = [kernel.sigma for kernel in bank.kernels if isinstance(kernel, Gaussian)]
    assert_allclose(sigmas, np.median(distance) * 2.0 ** np.arange(-3, 3), rtol=1e-3)
    absolute = cdist(Z, Z, "cityblock")[np.tril_indices(len(Z), -1)]
    gammas = [kernel.gamma for kernel in bank.kernels if isinstance(kernel, Laplacian)]
    assert_allclose(gammas, 1 / (np.median(absolute) * 2.0 ** np.arange(-2, 3)), rtol=1e-3)
    assert bank.names[:3] == ["linear", "quadratic", "gaussian ×0.125"]
    assert bank.n_bases == 2  # squared and absolute distances, once each
    assert bank.normalize == "capacity"


@pytest.mark.parametrize("shift", [False, True])
def test_a_change_of_units_changes_nothing(shift):
    data, y = load_wine(return_X_y=True)
    units = 10.0 ** np.random.default_rng(1).integers(-9, 10, size=data.shape[1])
    zero = units * np.arange(data.shape[1]) * shift
    one = ParetoMKLClassifier(C=10).fit(data, y)
    other = ParetoMKLClassifier(C=10).fit(data * units + zero, y)
    assert_allclose(other.decision_function(data * units + zero), one.decision_function(data), atol=1e-3)
    assert other.kernel_names_ == one.kernel_names_


def test_constant_columns_and_outliers_are_harmless():
    data, y = load_wine(return_X_y=True)
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    plain = ParetoMKLClassifier(C=10).fit(data[train], y[train]).score(data[test], y[test])
    spoilt = np.column_stack([data, np.full(len(y), 3.3), np.zeros(len(y))])
    model = ParetoMKLClassifier(C=10).fit(spoilt[train], y[train])
    assert model.score(spoilt[test], y[test]) == plain
    spoilt[train[0], 0], spoilt[train[1], 5], spoilt[test[0], 3] = 1e12, -1e12, 1e12
    model = ParetoMKLClassifier(C=10).fit(spoilt[train], y[train])
    assert model.score(spoilt[test], y[test]) >= plain - 0.03
    assert np.isfinite(model.decision_function(spoilt[test])).all()


def test_whole_weights_are_repetitions_of_samples():
    data, y = load_wine(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 4, size=len(y))
    bank = KernelBank().fit(data, weight=weight.astype(float))
    repeated = KernelBank().fit(np.repeat(data, weight, axis=0))
    assert_allclose(bank.evaluator.standardizer.scale, repeated.evaluator.standardizer.scale, rtol=1e-12)
    for ours, theirs in zip(bank.kernels, repeated.kernels, strict=True):
        assert tuple(ours.code) == pytest.approx(tuple(theirs.code), rel=1e-9)
    assert_allclose(bank.factor, repeated.factor, rtol=1e-9)


def test_the_standardizer_handles_each_kind_of_column():
    n = 200
    rare = np.zeros(n)
    rare[:4] = 1.0  # an indicator that most samples do not have
    normal = np.random.default_rng(0).normal(5, 2, size=n)
    with_outlier = normal.copy()
    with_outlier[7] = 1e12
    huge = np.where(np.arange(n) == 3, 1e300, 0.0)
    nearly = np.full(n, 0.1) + 1e-17
    data = np.column_stack([rare, normal, with_outlier, huge, nearly, np.arange(n) + 1.6e9])
    standardizer = Standardizer.of(Statistics(data))
    Z = standardizer(data)
    assert np.isfinite(Z).all()
    assert_array_equal(np.isfinite(standardizer.scale), [True, True, True, True, False, True])
    assert_allclose(Z[:, [0, 1, 5]], StandardScaler().fit_transform(data[:, [0, 1, 5]]), atol=1e-5)
    assert_allclose(Z[:, 4], 0, atol=1e-12)
    others = np.arange(n) != 7
    assert abs(np.corrcoef(Z[others, 2], Z[others, 1])[0, 1]) > 0.999999
    assert 0.7 < Z[others, 2].std() < 1.0
    assert 5 < Z[7, 2] < 11


def test_weighted_quantiles_match_repeated_values():
    values, weight = RNG.normal(size=(30, 2)), RNG.integers(0, 5, size=30)
    ours = weighted_quantiles(values, weight.astype(float), (0.05, 0.5, 0.95))
    theirs = np.quantile(np.repeat(values, weight, axis=0), [0.05, 0.5, 0.95], axis=0, method="inverted_cdf")
    assert_array_equal(ours, theirs)


def test_identical_samples_have_some_distance():
    assert typical_distances(np.zeros((10, 3))) == (1.0, 1.0)
    assert len(default_kernels(np.zeros((10, 3)))) == 13


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 700, 5), (40, 1, 4), (65, 520, 17), (10, 1030, 64)])
def test_absolute_distances(shape):
    n, m, d = shape
    A, B = RNG.normal(size=(n, d)), RNG.normal(size=(m, d))
    assert_allclose(cityblock(A, B), cdist(A, B, "cityblock"), rtol=1e-12)
    assert_allclose(cityblock(B, B), cdist(B, B, "cityblock"), rtol=1e-12)


# ------------------------------------------------------------------------------------------------- sources
def test_each_source_has_its_own_default_bank():
    pd = pytest.importorskip("pandas")
    data, y = load_iris(return_X_y=True)
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    frame = pd.DataFrame(data, columns=names)
    by_pattern = sources({"sepal": "sepal_*", "petal": ["petal_length", "petal_width"]})
    by_index = sources({"sepal": [0, 1], "petal": slice(2, 4)})
    one, other = (
        ParetoMKLClassifier(C=10, kernels=bank).fit(x, y) for bank, x in ((by_pattern, frame), (by_index, data))
    )
    assert_allclose(one.decision_function(frame), other.decision_function(data), atol=1e-3)
    assert one.kernel_names_[0] == "sepal: cosine"
    assert one.kernel_names_[7:10] == ["petal: cosine", "petal: gaussian ×0.5", "petal: gaussian ×1"]
    alone = {kernel.name: kernel.code.rate for kernel in KernelBank().fit(data[:, 2:]).kernels}
    petal = {kernel.name: kernel.code.rate for kernel in one.model_.bank.kernels[8:]}  # all but the cosine
    assert petal == pytest.approx({name: alone[name] for name in petal}, rel=1e-12)
    shares = one.source_shares_
    assert list(shares) == ["sepal", "petal"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["petal"] == pytest.approx(one.kernel_shares_[7:].sum())
    assert shares["petal"] > shares["sepal"]


def test_a_source_of_one_column_has_a_linear_kernel_where_others_have_a_cosine():
    bank = sources({"age": 0, "constant": [1, 2], "genes": [2, 3]}).fit(RNG.normal(size=(30, 4)) * [1, 0, 1, 1])
    first = {kernel.source: kernel for kernel in reversed(bank.kernels)}
    first = {source: type(kernel).__name__ for source, kernel in first.items()}
    assert first == {"age": "Linear", "constant": "Linear", "genes": "Cosine"}


def test_one_source_has_the_whole_bank():
    data = RNG.normal(size=(20, 3))
    one, default = (KernelBank(kernels).fit(data) for kernels in (sources({"all": [0, 1, 2]}).kernels, "default"))
    assert [kernel.name for kernel in one.kernels] == [kernel.name for kernel in default.kernels]


def test_kernels_pay_within_their_source():
    data = np.random.default_rng(0).normal(size=(60, 30))
    bank = sources({"few": [0, 1], "many": range(2, 30)}).fit(data)
    for kernels in (slice(0, 7), slice(7, 14)):
        rank = bank.effective_rank[kernels] / bank.effective_rank[kernels].min()
        assert_allclose(bank.factor[kernels], 1 / (bank.variance[kernels] * rank**0.5), rtol=1e-12)
    assert bank.effective_rank[7:].min() > 3 * bank.effective_rank[:7].min()


def test_shares_do_not_depend_on_the_scale_of_a_kernel():
    """A kernel that is 1000 times larger has a θ that is 1000 times smaller, but the same share."""
    stack = np.moveaxis(stack_of([Gaussian(1.0), Linear()], X), 0, 2)
    bank = KernelBank("precomputed").fit(stack)
    larger = KernelBank("precomputed").fit(stack * [1.0, 1000.0])
    theta = np.array([0.5, 0.25])
    assert_allclose(larger.variance_share(theta / [1, 1000]), bank.variance_share(theta), rtol=1e-6)
    assert bank.variance_share(theta).sum() == pytest.approx(1)
    assert_allclose(bank.variance_share(np.zeros(2)), 0)


def test_sources_along_a_path_and_in_its_display():
    data, y = load_digits(n_class=3, return_X_y=True)
    data, y = data[:90], y[:90]
    path = pareto_path(data, y, ps=[0.1, 1.0, np.inf], kernels=sources({"top": range(32), "bottom": range(32, 64)}))
    assert path.kernel_shares.shape == path.theta.shape
    assert_allclose(sum(path.source_shares.values()), 1)
    display = KernelWeightsDisplay.from_path(path, by="source")
    assert display.band_names_ == ["top", "bottom"]
    assert_allclose(display.band_weights_.sum(axis=1), 1)
    plain = pareto_path(data, y, ps=[1.0])
    assert plain.source_shares == {}
    with pytest.raises(ValueError, match="The kernels of this path have no named sources"):
        KernelWeightsDisplay.from_path(plain, by="source")
    with pytest.raises(AttributeError, match="The kernels have no named sources"):
        _ = ParetoMKLClassifier().fit(data, y).source_shares_


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ({}, "sources needs at least one named block of columns"),
        ({"": [0]}, "The name of a source must be a non-empty string, got ''"),
        ({3: [0]}, "The name of a source must be a non-empty string, got 3"),
        ({"a": [0, 9]}, "Source 'a' asks for column 9, but X has 5 columns"),
        ({"a": "g_*"}, "Source 'a' names the column 'g_\\*', but X has no column names"),
        ({"a": []}, "Source 'a' has an empty list of columns"),
    ],
)
def test_bad_sources_are_refused(blocks, words):
    with pytest.raises(ValueError, match=words):
        sources(blocks).fit(X)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"capacity": -0.1}, "capacity must be a number of at least 0, got -0.1"),
        ({"capacity": "much"}, "capacity must be a number of at least 0, got 'much'"),
        ({"standardize": "yes"}, "standardize must be True, False, 'root' or 'auto', got 'yes'"),
        ({"kernels": "precomputed", "standardize": True}, "standardize=True needs features"),
    ],
)
def test_bad_banks_are_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        KernelBank(**parameters).fit(X)
