"""Base kernels: values, normalisation, columns, the ways to specify them, and the accuracy of the compiled rows."""

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV

from paretomkl import (
    Cosine,
    Custom,
    Gaussian,
    KernelBank,
    Laplacian,
    Linear,
    ParetoMKLClassifier,
    Polynomial,
    pareto_path,
)
from paretomkl.kernels._evaluation import EXPONENTIAL, exp_into
from paretomkl.kernels._kernels import NAMED_KERNELS, Code, Kernel, as_bank, as_kernel, paper_kernels
from tests.oracles import paper_kernels as paper_stack

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(25, 4))
Z = RNG.uniform(size=(9, 4))

# kernel object, the same in scikit-learn
BUILT_IN = {
    "linear": (Linear(), pairwise.linear_kernel),
    "quadratic": (Polynomial(), partial(pairwise.polynomial_kernel, degree=2, gamma=1, coef0=1)),
    "cubic": (Polynomial(3, 0.5, 2.0), partial(pairwise.polynomial_kernel, degree=3, gamma=0.5, coef0=2)),
    "homogeneous": (Polynomial(2, 2.0, 0.0), partial(pairwise.polynomial_kernel, degree=2, gamma=2, coef0=0)),
    "degree one": (Polynomial(1), partial(pairwise.polynomial_kernel, degree=1, gamma=1, coef0=1)),
    "gaussian": (Gaussian(0.7), partial(pairwise.rbf_kernel, gamma=0.5 / 0.7**2)),
    "laplacian": (Laplacian(0.3), partial(pairwise.laplacian_kernel, gamma=0.3)),
    "cosine": (Cosine(), pairwise.cosine_similarity),
}
CALLABLES = {
    "lambda": lambda A, B: 2 + A @ B.T,
    "rbf_kernel": pairwise.rbf_kernel,
    "chi2_kernel": pairwise.chi2_kernel,
    "partial": partial(pairwise.polynomial_kernel, degree=3),
    "gp RBF": gp.RBF(0.5),
    "gp Matern": gp.Matern(0.8, nu=1.5),
    "gp sum": gp.ConstantKernel(2.0) * gp.RBF(0.3) + gp.DotProduct(1.0),
}


def X_times_Z(A, B):
    return A @ B.T


def matrix(kernels, left=X, right=None, normalize="none", theta=None, fit_on=X, names=None):
    """Σ_m θ_m K_m of a bank fitted on ``fit_on``, between left and right."""
    fitted = KernelBank(kernels, normalize=normalize).fit(fit_on, names)
    side = fitted.side(left)
    other = side if right is None else fitted.side(right)
    return fitted.cross(side, other, np.ones(fitted.n_kernels) if theta is None else theta)


def normalized(function, normalize, left, right):
    """The reference: function(left, right), normalised like the bank."""
    K = function(left, right)
    if normalize == "unit":
        return K / np.sqrt(np.outer(np.diag(function(left, left)), np.diag(function(right, right))))
    if normalize == "trace":
        return K / np.mean(np.diag(function(X, X)))
    return K


# -------------------------------------------------------------------------------------------------------------- values
@pytest.mark.parametrize("normalize", ["none", "unit", "trace"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_kernels_match_scikit_learn(name, normalize):
    kernel, function = BUILT_IN[name]
    assert_allclose(matrix([kernel], X, None, normalize), normalized(function, normalize, X, X), rtol=1e-12, atol=1e-14)
    assert_allclose(matrix([kernel], Z, X, normalize), normalized(function, normalize, Z, X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("normalize", ["none", "unit", "trace"])
@pytest.mark.parametrize("name", CALLABLES)
def test_callables_and_kernel_objects_of_scikit_learn(name, normalize):
    function = CALLABLES[name]
    assert_allclose(matrix([function], X, None, normalize), normalized(function, normalize, X, X), rtol=1e-12)
    assert_allclose(matrix([function], Z, X, normalize), normalized(function, normalize, Z, X), rtol=1e-12)


def test_the_default_bank_is_that_of_the_paper_with_unit_diagonals():
    for m, K in enumerate(paper_stack(X)):
        assert_allclose(matrix("paper", normalize="auto", theta=np.eye(11)[m]), K, rtol=1e-11, atol=1e-15)


def test_the_default_bank_needs_one_base_matrix():
    assert KernelBank("paper").fit(X).n_bases == 1


def test_weights_combine_kernels():
    """K_θ = Σ θ_m K_m, also with zero weights for kernels whose squares are other kernels."""
    kernels = [*paper_kernels(), Laplacian(2.0), Laplacian(0.25), Cosine(), Gaussian(0.9, columns=[0, 2]), X_times_Z]
    singles = [matrix(kernels, Z, X, "unit", np.eye(len(kernels))[m]) for m in range(len(kernels))]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        theta = rng.uniform(size=len(kernels)) * (rng.random(len(kernels)) < 0.4)
        expected = np.tensordot(theta, singles, axes=1)
        assert_allclose(matrix(kernels, Z, X, "unit", theta), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("panel_bytes", [1, 8 * 25 * 3, 2**20])
def test_test_time_kernels_do_not_depend_on_the_panels_they_are_made_in(monkeypatch, panel_bytes):
    expected = pairwise.rbf_kernel(Z, X, 0.5) + pairwise.laplacian_kernel(Z, X, 1.0)
    monkeypatch.setattr("paretomkl.kernels._fitted.PANEL_BYTES", panel_bytes)
    assert_allclose(matrix([Gaussian(1.0), Laplacian(1.0)], Z, X), expected, rtol=1e-13)


def test_a_thousand_columns_span_several_tiles():
    many = RNG.uniform(size=(1000, 4))
    assert_allclose(matrix(["linear", Gaussian(0.5)], Z, many), Z @ many.T + pairwise.rbf_kernel(Z, many, 2.0))


# ------------------------------------------------------------------------------------------------------------- columns
@pytest.mark.parametrize(
    ("columns", "positions"),
    [
        (2, [2]),
        (-1, [3]),
        ([0, 2], [0, 2]),
        ([2, -4], [2, 0]),
        ((1, 3), [1, 3]),
        (np.array([1, 3]), [1, 3]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        ("b", [1]),
        (["d", "a"], [3, 0]),
        (["a", 2], [0, 2]),
        (None, [0, 1, 2, 3]),
    ],
    ids=str,
)
def test_columns_restrict_a_kernel(columns, positions):
    expected = pairwise.rbf_kernel(X[:, positions], gamma=0.5) + X[:, positions] @ X[:, positions].T
    kernels = [Gaussian(columns=columns), (X_times_Z, {"columns": columns})]
    assert_allclose(matrix(kernels, names=["a", "b", "c", "d"]), expected, rtol=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frame_columns_are_matched_by_name(frame):
    y = np.arange(len(X)) % 2
    data = frame(dict(zip("abcd", X.T, strict=True)))
    by_name = pareto_path(data, y, ps=[1.0], kernels=[Gaussian(columns=["a", "d"]), ("linear", {"columns": "b"})])
    by_index = pareto_path(X, y, ps=[1.0], kernels=[Gaussian(columns=[0, 3]), ("linear", {"columns": 1})])
    assert_array_equal(by_name.theta, by_index.theta)
    assert_array_equal(by_name.objectives, by_index.objectives)


def test_kernels_on_the_same_columns_share_a_base_and_others_do_not():
    kernels = [Linear(), Gaussian(1.0), Gaussian(2.0, columns=[0]), Gaussian(3.0, columns=0), Laplacian(1.0)]
    assert_array_equal(KernelBank(kernels).fit(X).evaluator.bases.of_kernel, [0, 0, 1, 1, 2])


@pytest.mark.parametrize(
    ("columns", "same"),
    [
        (np.array([0, 3]), [0, 3]),
        (np.int64(2), 2),
        (range(1, 3), (1, 2)),
        (pd.Index(["a", "b"]), ["a", "b"]),
        (slice(1, 3), slice(1, 3)),
    ],
    ids=str,
)
def test_kernels_on_the_same_columns_are_equal(columns, same):
    assert Gaussian(columns=columns) == Gaussian(columns=same)
    assert Gaussian(columns=columns) != Gaussian(columns=[1])
    assert str(Gaussian(columns=columns)) == str(Gaussian(columns=same))


@dataclass(frozen=True)
class Canberra(Kernel):
    """k(x, z) = exp(-rate · Canberra distance), on a base that no built-in kernel has."""

    rate: float = 0.5
    metric = "canberra"
    scaling = "never"

    @property
    def code(self):
        return Code(EXPONENTIAL, self.rate)


def test_a_new_kernel_is_one_class():
    expected = np.exp(-0.5 * cdist(Z, X, "canberra")) + Z @ X.T
    assert_allclose(matrix([Canberra(), Linear()], Z, X), expected, rtol=1e-13)
    assert_allclose(matrix([Canberra()], X, None, "unit"), np.exp(-0.5 * cdist(X, X, "canberra")), rtol=1e-13)


# -------------------------------------------------------------------------------------------------------------- banks
def test_a_bank_of_a_generator_can_be_fitted_again():
    bank = KernelBank(Gaussian(sigma) for sigma in (1.0, 2.0))
    assert bank.fit(X).names == bank.fit(X).names == ["gaussian(sigma=1)", "gaussian(sigma=2)"]


def test_a_bare_generator_is_refused():
    with pytest.raises(ValueError, match="kernels is an iterator, which can be read only once; pass a list"):
        as_bank(Gaussian(sigma) for sigma in (1.0, 2.0))


def test_banks_have_parameters_like_estimators():
    model = ParetoMKLClassifier(kernels=KernelBank(["linear", "poly"]))
    assert clone(model).set_params(kernels__normalize="trace").kernels == KernelBank(["linear", "poly"], "trace")
    assert model.kernels.normalize == "auto"
    search = GridSearchCV(model, {"kernels__normalize": ["unit", "trace"]}, cv=2).fit(X, np.arange(25) % 2)
    assert search.best_estimator_.kernels.normalize in ("unit", "trace")
    with pytest.raises(ValueError, match="KernelBank has no parameter 'sigma'"):
        KernelBank().set_params(sigma=1)


@pytest.mark.parametrize("kernels", [["linear", Gaussian(0.5), X_times_Z], "precomputed"], ids=["kernels", "stack"])
def test_a_sample_of_weight_zero_counts_as_absent(kernels):
    data = (X @ X.T)[:, :, None] if kernels == "precomputed" else X
    weight = np.where(np.arange(25) % 3 == 0, 0.0, np.arange(25) + 1.0)
    kept = np.flatnonzero(weight)
    bank = KernelBank(kernels, normalize="trace")
    some = data[np.ix_(kept, kept)] if kernels == "precomputed" else data[kept]
    scale = bank.fit(data, weight=weight).factor
    assert_allclose(scale, bank.fit(some, weight=weight[kept]).factor, rtol=1e-13)
    assert_allclose(bank.fit(data, weight=np.full(25, 3.0)).factor, bank.fit(data).factor, rtol=1e-13)
    assert np.any(np.abs(scale / bank.fit(data).factor - 1) > 1e-3)


def test_whole_weights_are_repetitions():
    weight = np.arange(25) % 4
    bank = KernelBank(["linear", "poly"], normalize="trace")
    repeated = bank.fit(np.repeat(X, weight, axis=0)).factor
    assert_allclose(bank.fit(X, weight=weight).factor, repeated, rtol=1e-13)


# --------------------------------------------------------------------------------------------------- ways to ask for it
@pytest.mark.parametrize("name", NAMED_KERNELS)
def test_names_and_pairs(name):
    assert as_kernel(name) == as_kernel((name, {}))
    assert as_kernel((name, {"columns": [1]})).columns == (1,)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("linear", Linear()),
        (("poly", {"degree": 3}), Polynomial(3)),
        (("rbf", {"gamma": 2.0}), Gaussian(0.5)),
        (("gaussian", {"sigma": 3.0}), Gaussian(3.0)),
        ((Gaussian(3.0), {"columns": [0]}), Gaussian(3.0, columns=[0])),
        (("laplacian", {"gamma": 3}), Laplacian(3)),
        (X_times_Z, Custom(function=X_times_Z)),
        ((X_times_Z, {"columns": 1}), Custom(function=X_times_Z, columns=1)),
        (Cosine(), Cosine()),
    ],
)
def test_specifications_become_kernels(spec, expected):
    assert as_kernel(spec) == expected


def test_a_bank_is_passed_through_unchanged():
    bank = KernelBank(["linear"], normalize="trace")
    assert as_bank(bank) is bank


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Linear(), "linear"),
        (Gaussian(0.5), "gaussian(sigma=0.5)"),
        (Gaussian(2.0, columns=["a", "b"]), "gaussian(sigma=2) on ['a', 'b']"),
        (Polynomial(2), "polynomial(degree=2)"),
        (Polynomial(3, coef0=0.5), "polynomial(degree=3, coef0=0.5)"),
        (Custom(function=X_times_Z), "X_times_Z"),
        (Custom(function=X_times_Z, columns="a"), "X_times_Z on 'a'"),
        (Custom(function=gp.RBF(0.5)), "RBF(length_scale=0.5)"),
        (Gaussian(2.0, columns=3), "gaussian(sigma=2) on 3"),
    ],
    ids=str,
)
def test_names_show_parameters_and_columns(kernel, name):
    assert str(kernel) == name


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        (["rfb"], "Kernel 0 has the unknown name 'rfb'; use one of"),
        (["linear", ("rfb", {})], "Kernel 1 has the unknown name 'rfb'"),
        ([("rbf", {"sigmma": 1})], r"Kernel 0 ('rbf') does not take these parameters: {'sigmma': 1}"),
        ([("rbf", {"sigma": 0})], "A gaussian kernel needs a positive sigma, got sigma=0"),
        ([("rbf", {"sigma": -1.0})], "needs a positive sigma, got sigma=-1.0"),
        ([("rbf", {"sigma": np.nan})], "needs a positive sigma, got sigma=nan"),
        ([("rbf", {"sigma": "wide"})], "needs a positive sigma, got sigma='wide'"),
        ([("rbf", {"gamma": -2})], "A Gaussian kernel needs a positive gamma, got gamma=-2"),
        ([("laplacian", {"gamma": 0})], "A laplacian kernel needs a positive gamma, got gamma=0"),
        ([("poly", {"degree": 0})], "A polynomial kernel needs an integer degree >= 1, got degree=0"),
        ([("poly", {"degree": 1.5})], "A polynomial kernel needs an integer degree >= 1, got degree=1.5"),
        ([("poly", {"coef0": -1})], "A polynomial kernel needs coef0 >= 0 to be positive semidefinite, got coef0=-1"),
        ([("rbf", {"sigma": 1}, 3)], "Kernel 0 must be a pair (name or callable, dict of parameters)"),
        ([3.0], "Kernel 0 must be a kernel object, a name, a callable or a pair with parameters, got 3.0"),
        ([(X_times_Z, {"degree": 2})], "takes only 'columns', not ['degree']; bind other parameters with functools"),
        ([], "kernels is empty; pass at least one kernel"),
        ("rbf", "got 'rbf'; for a single kernel, pass ['rbf']"),
        (3, "kernels must be 'default', 'paper', 'precomputed', sources(…) or a sequence of kernels, got 3"),
        ([Gaussian(columns=4)], "asks for column 4, but X has 4 columns"),
        ([Gaussian(columns=[0, -5])], "asks for column -5, but X has 4 columns"),
        ([Gaussian(columns=[])], "has an empty list of columns"),
        ([Gaussian(columns="q")], "names the column 'q', which X does not have"),
    ],
)
def test_bad_banks_get_one_clear_sentence(kernels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        KernelBank(kernels).fit(X, ["a", "b", "c", "d"])


def test_columns_by_name_need_names():
    with pytest.raises(ValueError, match="names the column 'a', but X has no column names"):
        KernelBank([Gaussian(columns="a")]).fit(X)


@pytest.mark.parametrize("normalize", ["units", "uni", None, True, ["unit"], np.array(["unit"])])
def test_unknown_normalisations_are_refused(normalize):
    with pytest.raises(ValueError, match="normalize must be 'auto', 'unit', 'trace', 'capacity' or 'none', got"):
        KernelBank(normalize=normalize).fit(X)


@pytest.mark.parametrize("cache_mb", [-1, "much", None, np.nan])
def test_unknown_sizes_of_the_cache_are_refused(cache_mb):
    with pytest.raises(ValueError, match="cache_mb must be a number of at least 0, got"):
        KernelBank(cache_mb=cache_mb).fit(X)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: A @ A.T, r"Kernel <lambda> must return a matrix of shape \(25, 9\) for 25 and 9 samples, got"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "Kernel <lambda> returned NaN or infinite values"),
        (lambda A, B: np.full((len(A), len(B)), np.inf), "Kernel <lambda> returned NaN or infinite values"),
    ],
    ids=["shape", "nan", "inf"],
)
def test_what_a_callable_returns_is_checked(function, message):
    with pytest.raises(ValueError, match=message):
        matrix([function], X, Z)


# ------------------------------------------------------------------------------------------------------------ accuracy
GRID = np.arange(-40, 41)[:, None] / 8  # centred, and all squared distances exact
SQUARED = (GRID - GRID.T) ** 2


def assert_exponentials(kernels, distances, rates, points):
    """Every exponential of the bank is accurate to 1e-11 relative, unless it is so small that zero is fine."""
    for m, rate in enumerate(rates):
        K = matrix(kernels, points, theta=np.eye(len(kernels))[m], fit_on=points)
        expected = np.exp(-rate * distances)
        seen = expected > 1e-135
        assert_allclose(K[seen], expected[seen], rtol=1e-11)
        assert np.all(K[~seen] <= 1e-134)


@settings(deadline=None, max_examples=25)
@given(
    st.sets(st.integers(-7, 7), min_size=1),
    st.lists(st.floats(-7, 7).map(lambda k: 2.0**k), max_size=4),
    st.randoms(use_true_random=False),
)
def test_chains_of_squarings_keep_eleven_digits(exponents, others, random):
    sigmas = [2.0**k for k in exponents] + others
    random.shuffle(sigmas)
    assert_exponentials([Gaussian(s) for s in sigmas], SQUARED, [0.5 / s**2 for s in sigmas], GRID)


@pytest.mark.parametrize("ratio", [2.0, 4.0, 2.0**0.5, 3.0])
def test_chains_of_many_widths_keep_eleven_digits(ratio):
    """Ratios of rates 4, 16, 2 and 9: all squarings, all squarings in larger steps, and no chains at all."""
    sigmas = 2.0**-7 * ratio ** np.arange(0, int(14 / np.log2(ratio)) + 1)
    assert_exponentials([Gaussian(s) for s in sigmas], SQUARED, 0.5 / sigmas**2, GRID)


def test_chains_of_laplacians_keep_eleven_digits():
    rates = 2.0 ** np.arange(-12, 9)
    assert_exponentials([Laplacian(rate) for rate in rates], np.abs(GRID - GRID.T), rates, GRID)


def test_the_exponential_is_exact_to_its_argument():
    """The error of exp(-rate x) comes only from rounding rate · x."""
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.0, 1e-300, 1e-17], rng.uniform(0, 1, 500), 10 ** rng.uniform(-6, 2.5, 500)])
    out, shift = np.empty_like(x), np.empty_like(x)
    exp_into(x, 1.0, len(x), shift, shift.view(np.int64), out, out.view(np.int64))
    assert np.all(np.abs(out / np.exp(-x) - 1) <= 4e-16 * (1 + x))
    assert_array_equal(out[:2], 1)


@pytest.mark.parametrize("distance", [1e3, 1e30, 1e300])
def test_far_points_have_a_kernel_of_zero(distance):
    points = np.array([[0.0], [np.sqrt(distance)]])
    assert_array_equal(matrix([Gaussian(2.0**-7)], points, fit_on=points), np.eye(2))


def test_duplicates_have_a_kernel_of_one():
    points = np.vstack([X, X, X[::-1]])
    K = matrix("paper", points, fit_on=points, normalize="unit", theta=np.eye(11)[2])  # the narrowest
    same = np.all(points[:, None] == points, axis=2)
    assert_allclose(K[same], 1, rtol=1e-10)
    assert np.all(K[~same] < 1 - 1e-3)


def test_duplicates_have_a_kernel_of_one_on_unscaled_data():
    points = 1e3 * np.random.default_rng(0).standard_normal((50, 20))
    points = np.vstack([points, points])
    K = matrix([Gaussian(2.0**-7)], points, fit_on=points)
    assert_allclose(np.diag(K[50:, :50]), 1, rtol=1e-8)


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_gaussians_keep_their_digits_far_from_the_origin(offset):
    points = np.round(X * 2**20) / 2**20  # then points + offset is exact
    kernels = [Gaussian(sigma) for sigma in (0.05, 0.5, 5.0)]
    expected = matrix(kernels, points, fit_on=points)
    assert_allclose(matrix(kernels, points + offset, fit_on=points + offset), expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "cosine", ("poly", {"coef0": 0})], ids=str)
@pytest.mark.parametrize("normalize", ["unit", "none"])
def test_zero_vectors_stay_at_the_origin(kernel, normalize):
    points = np.vstack([X, np.zeros(4)])
    K = matrix([kernel], points, fit_on=points, normalize=normalize)
    assert_allclose(K[-1], 0, atol=1e-14)
    assert np.all(np.diag(K)[:-1] > 1e-3)


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_a_short_vector_has_the_cosine_of_its_direction(kernel):
    points = np.array([[1e-4, 1e-4], [1.0, 0.0], [3.0, 4.0]])  # digits are lost as the square of the ratio
    expected = pairwise.cosine_similarity(points)
    assert_allclose(matrix([kernel], points, fit_on=points, normalize="unit"), expected, rtol=1e-10)


def test_constant_data_have_finite_kernels():
    points = np.ones((6, 3))
    assert_allclose(matrix("paper", points, fit_on=points, normalize="unit"), 11, rtol=1e-12)


# --------------------------------------------------------------------------------------------------------- precomputed
def stacks():
    Ks = paper_stack(np.vstack([X, Z]))[[0, 1, 5]] * np.array([1, 10, 0.1])[:, None, None]
    return np.moveaxis(Ks[:, :25, :25], 0, 2), np.moveaxis(Ks[:, 25:, :25], 0, 2)


def test_precomputed_stacks_are_combined_unchanged():
    train, test = stacks()
    theta = np.array([0.5, 0.0, 2.0])
    fitted = KernelBank("precomputed").fit(train)
    side = fitted.side(train)
    assert_allclose(fitted.cross(side, side, theta), train @ theta, rtol=1e-14)
    assert_allclose(fitted.cross(fitted.side(test), side, theta), test @ theta, rtol=1e-14)


def test_precomputed_stacks_can_be_divided_by_their_mean_diagonal():
    train, test = stacks()
    fitted = KernelBank("precomputed", normalize="trace").fit(train)
    means = np.einsum("iim->m", train) / len(train)
    K = fitted.cross(fitted.side(test), fitted.side(train), np.ones(3))
    assert_allclose(K, (test / means).sum(axis=2), rtol=1e-13)


def test_precomputed_stacks_cannot_be_given_unit_diagonals():
    with pytest.raises(ValueError, match="normalize='unit' needs the norm of every test sample"):
        KernelBank("precomputed", normalize="unit").fit(stacks()[0])


def test_the_bank_of_the_paper_has_a_name():
    X = np.random.default_rng(0).random((5, 2))
    assert KernelBank("paper").fit(X).kernels == paper_kernels()
