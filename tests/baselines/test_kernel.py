"""The kernel baselines: independent kernels, partially shared kernels and uniform ones."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_validate
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import Gaussian, KernelBank, ParetoMKLClassifier, baselines
from paretomkl.baselines import IndependentMKL, PartiallySharedMKL, UniformKernelSVC
from paretomkl.baselines._partially_shared import Cuts, PartialSharing, minimize_in_out
from paretomkl.gram import GramBlocks
from paretomkl.kernels._kernels import as_bank
from paretomkl.machines._svc import SVCTasks
from paretomkl.solvers._base import Run
from tests.conftest import make_toy
from tests.oracles import _factor, _solve, conic_optimum, svc_objective

KERNELS = ["linear", ("rbf", {"sigma": 0.3}), ("rbf", {"sigma": 1.0})]
MODELS = [
    IndependentMKL(kernels=KERNELS),
    PartiallySharedMKL(kernels=KERNELS),
    UniformKernelSVC(kernels=KERNELS),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


# a small tolerance, so that decisions settle: a gap of tol changes them by about its square root
@parametrize_with_checks([clone(model).set_params(tol=1e-6) for model in MODELS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", baselines.__all__)
def test_a_notebook_shows_every_baseline(toy, name):
    model = getattr(baselines, name)()
    unfitted = model._repr_html_()
    y = toy.X[:, 0] if is_regressor(model) else toy.y
    assert "<table cellpadding" not in unfitted + model.fit(toy.X, y, tasks=toy.tasks)._repr_html_()


# ------------------------------------------------------------ the problems as stated
def partially_shared_optimum(Ks, pairs, C, beta):
    """min of mean_t J_t(zeta + gamma_t) by a conic solver, from the constraints as the paper states them.

    The tasks are in their primal form, 1/2 sum_m ||f_m||^2 / theta_m + C sum xi. The value is that of LIBSVM at the
    weights found, and must agree with the solver's value.
    """
    cp = pytest.importorskip("cvxpy")

    M, T = len(Ks), len(pairs)
    scale = np.mean([svc_objective(Ks.mean(axis=0)[np.ix_(rows, rows)], signs, C)[0] for rows, signs in pairs])
    zeta, gamma = cp.Variable(M, nonneg=True), cp.Variable((T, M), nonneg=True)
    constraints, total = [cp.sum(gamma) <= beta], 0
    for t, (rows, signs) in enumerate(pairs):
        theta = zeta + gamma[t]
        constraints.append(cp.sum(theta) == 1)
        xi, decision = cp.Variable(len(rows), nonneg=True), cp.Variable()
        for m, K in enumerate(Ks):
            F = _factor(K[np.ix_(rows, rows)] * scale)
            f = cp.Variable(F.shape[1])
            decision = decision + F @ f
            total = total + cp.quad_over_lin(f, theta[m]) / 2
        constraints.append(cp.multiply(signs, decision) >= 1 - xi)
        total = total + C / scale * cp.sum(xi)
    problem = cp.Problem(cp.Minimize(total / T), constraints)
    assert _solve(problem)
    weights = np.maximum(zeta.value + gamma.value, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    grams = [np.tensordot(w, Ks, axes=1)[np.ix_(rows, rows)] for w, (rows, _) in zip(weights, pairs, strict=True)]
    value = np.mean([svc_objective(K, signs, C)[0] for K, (_, signs) in zip(grams, pairs, strict=True)])
    assert_allclose(problem.value * scale, value, rtol=1e-5)
    return value


def assert_certified(model, optimum, tol):
    """The optimum is between the bounds that the model claims."""
    assert 0 <= model.gap_ <= tol
    assert model.objective_ <= optimum * (1 + tol)
    assert model.objective_ >= optimum * (1 - 1e-6)  # the reference itself is no more accurate
    assert (model.objective_ - optimum) / model.objective_ <= model.gap_ + 1e-6


@pytest.mark.parametrize(("beta", "C"), [(0.0, 1.0), (0.3, 1.0), (1.5, 0.1), (1.5, 30.0), (2.5, 1.0), (7.0, 3.0)])
def test_partially_shared_kernels_reach_the_conic_optimum(beta, C):
    toy = make_toy(seed=1, n=14)
    optimum = partially_shared_optimum(toy.Ks, toy.pairs, C, beta)
    for tol in (1e-2, 5e-5):
        model = PartiallySharedMKL(beta=beta, C=C, kernels=toy.kernels, tol=tol).fit(toy.X, toy.y, tasks=toy.tasks)
        assert_certified(model, optimum, tol)
        assert_allclose(model.theta_, model.shared_ + model.specific_, atol=1e-12)
        assert model.shared_.min() >= 0
        assert model.specific_.min() >= 0
        assert_allclose(model.theta_.sum(axis=1), 1, atol=1e-9)
        assert model.specific_.sum() <= beta + 1e-9


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0])
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_independent_kernels_reach_the_conic_optima(s, C):
    toy = make_toy(seed=2, n=14)
    model = IndependentMKL(s=s, C=C, kernels=toy.kernels, tol=1e-5).fit(toy.X, toy.y, tasks=toy.tasks)
    optima = np.array([conic_optimum(toy.Ks, [pair], C, p=1, s=s)[0] for pair in toy.pairs])
    assert model.theta_.shape == (3, 5)
    assert_allclose(model.objectives_, optima, rtol=1.2e-5)
    assert_allclose(model.objective_, optima.mean(), rtol=1.2e-5)
    assert model.gap_ == model.gaps_.max() <= 1e-5
    assert np.all((model.objectives_ - optima) / model.objectives_ <= model.gaps_ + 1e-6)
    assert_allclose(np.linalg.norm(model.theta_, s, axis=1), 1, rtol=1e-9)


def test_linear_programme_and_its_bound():
    """One cut for each task: the least mean over a product of simplexes has a closed form."""
    rng = np.random.default_rng(0)
    linear, slopes = 5 + rng.random((1, 4)), rng.random((1, 4, 6))
    cuts = Cuts(4, 6)
    cuts.add(SimpleNamespace(linear=linear[0], forms=2 * slopes[0]))
    sharing = PartialSharing(4, 6, 0.3)
    parts, lower = cuts.minimize_mean(sharing, unit=5.0)
    expected = (linear.sum() - 0.7 * slopes[0].sum(axis=0).max() - 0.3 * slopes[0].max(axis=1).sum()) / 4
    assert_allclose(lower, expected, rtol=1e-9)
    assert_allclose(np.mean(linear[0] - (sharing.expand(parts) * slopes[0]).sum(axis=1)), expected, rtol=1e-9)


def test_a_missed_tolerance_is_reported(toy):
    gram = GramBlocks(as_bank(toy.kernels).fit(toy.X), toy.X, [rows for rows, _ in toy.pairs], shared=False)
    tasks = SVCTasks(gram, np.concatenate([signs for _, signs in toy.pairs]), np.ones(len(toy.y)))
    with pytest.warns(ConvergenceWarning, match=r"stopped after 3 sweeps, gap .* > tol=1e-06"):
        best, parts, gap = minimize_in_out(tasks, PartialSharing(3, 5, 0.2), Run(), tol=1e-6, max_iter=3)
    optimum = partially_shared_optimum(toy.Ks, toy.pairs, 1.0, 0.6)
    assert 1e-6 < 1 - optimum / best.upper.mean() <= gap
    assert_allclose(parts.sum(axis=1), [0.8, 0.2, 0.2, 0.2])


# ------------------------------------------------------------ limits
def test_beta_zero_is_one_shared_kernel(toy):
    fit = {"X": toy.X, "y": toy.y, "tasks": toy.tasks}
    one = ParetoMKLClassifier(p=1, s=1, C=3.0, kernels=toy.kernels, tol=1e-5).fit(**fit)
    limit = PartiallySharedMKL(beta=0, C=3.0, kernels=toy.kernels, tol=1e-5).fit(**fit)
    assert_allclose(limit.objective_, one.objective_, rtol=2e-5)
    assert_allclose(limit.theta_, np.tile(limit.shared_, (3, 1)))
    assert_array_equal(limit.specific_, 0)


@pytest.mark.parametrize("beta", [3.0, 10.0, np.inf])
def test_nothing_shared_is_independent(toy, beta):
    fit = {"X": toy.X, "y": toy.y, "tasks": toy.tasks}
    each = IndependentMKL(s=1, C=3.0, kernels=toy.kernels, tol=1e-5).fit(**fit)
    limit = PartiallySharedMKL(beta=beta, C=3.0, kernels=toy.kernels, tol=1e-5).fit(**fit)
    assert_allclose(limit.objective_, each.objective_, rtol=2e-5)
    assert_array_equal(limit.shared_, 0)


def test_more_specific_weight_is_better(toy):
    models = [PartiallySharedMKL(beta=b, kernels=toy.kernels, tol=1e-4) for b in (0, 0.5, 1, 2, 3)]
    values = [model.fit(toy.X, toy.y, tasks=toy.tasks).objective_ for model in models]
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize("s", [1.0, 1.1])
def test_one_task_matches_paretomkl(s):
    X, y = make_classification(80, 4, random_state=2)
    one = ParetoMKLClassifier(s=s, C=2.0, kernels=KERNELS, tol=1e-6).fit(X, y)
    alone = IndependentMKL(s=s, C=2.0, kernels=KERNELS, tol=1e-6).fit(X, y)
    assert_allclose(alone.objective_, one.objective_, rtol=1e-6)
    assert_allclose(alone.theta_[0], one.theta_, atol=1e-9)
    assert_allclose(alone.decision_function(X), one.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("method", [IndependentMKL, PartiallySharedMKL, UniformKernelSVC])
def test_one_kernel_matches_svc(method):
    X, y = load_iris(return_X_y=True)
    model = method(C=3.0, kernels=KernelBank([Gaussian(1.0)], normalize="none"), tol=1e-7).fit(X, y)
    svc = SVC(gamma=0.5, C=3.0, tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-3)
    assert_array_equal(model.predict(X), svc.predict(X))


def test_uniform_kernel_matches_svc_on_the_mean_kernel(toy):
    model = UniformKernelSVC(C=3.0, kernels=toy.kernels, tol=1e-7).fit(toy.X, toy.y, tasks=toy.tasks)
    decisions = model.decision_function(toy.X, tasks=toy.tasks)
    K = toy.Ks.mean(axis=0)
    for t, (rows, signs) in enumerate(toy.pairs):
        svc = SVC(kernel="precomputed", C=3.0, tol=1e-8).fit(K[np.ix_(rows, rows)], signs)
        assert_allclose(decisions[rows], svc.decision_function(K[np.ix_(rows, rows)]), atol=1e-3)
        assert_allclose(model.objectives_[t], svc_objective(K[np.ix_(rows, rows)], signs, 3.0)[0], rtol=1e-6)
    assert_allclose(model.theta_, 0.2)
    assert model.n_sweeps_ == 1


@pytest.mark.parametrize("s", [1.1, 2.0])  # with s = 1, θ is less certain than the objective
def test_independent_kernels_are_those_of_tasks_that_share_nothing(toy, s):
    given = {"s": s, "C": 3.0, "kernels": toy.kernels, "tol": 1e-6}
    fit = {"X": toy.X, "y": toy.y, "tasks": toy.tasks}
    model, nothing = IndependentMKL(**given).fit(**fit), ParetoMKLClassifier(share="nothing", **given).fit(**fit)
    assert_allclose(model.theta_, nothing.theta_, atol=1e-7)
    assert_allclose(model.objectives_, nothing.objectives_, rtol=1e-9)


@pytest.mark.parametrize("p", [0.5, 1.0, np.inf])
def test_the_mean_kernel_is_the_limit_of_large_s(toy, p):
    fit = {"X": toy.X, "y": toy.y, "tasks": toy.tasks}
    mean = UniformKernelSVC(C=3.0, kernels=toy.kernels, tol=1e-6).fit(**fit)
    limit = ParetoMKLClassifier(p=p, s=np.inf, C=3.0 / 5, kernels=toy.kernels, tol=1e-6).fit(**fit)
    decisions = (model.decision_function(toy.X, tasks=toy.tasks) for model in (mean, limit))
    assert_allclose(*decisions, atol=1e-12)
    assert_allclose(mean.objectives_, 5 * limit.objectives_, rtol=1e-12)


# ------------------------------------------------------------ the common interface
@every_model
def test_all_ways_to_give_the_tasks_are_one_problem(toy, model):
    frame = pd.DataFrame(toy.X, columns=["a", "b", "c"]).assign(site=toy.tasks)
    matrix = np.full((len(toy.y), 3), np.nan)
    for t, (rows, signs) in enumerate(toy.pairs):
        matrix[rows, t] = signs
    by_tasks = clone(model).fit(toy.X, toy.y, tasks=toy.tasks)
    by_column = clone(model).set_params(task_column="site").fit(frame, toy.y)
    by_matrix = clone(model).fit(toy.X, matrix)
    for other in (by_column, by_matrix):
        assert_allclose(other.objectives_, by_tasks.objectives_, rtol=1e-6)
    predicted = by_tasks.predict(toy.X, tasks=toy.tasks)
    assert_array_equal(by_column.predict(frame), predicted)
    signs = by_matrix.predict(toy.X)
    for t, (rows, _) in enumerate(toy.pairs):
        assert_array_equal(np.where(signs[rows, t] > 0, "yes", "no"), predicted[rows])
    assert by_tasks.score(toy.X, toy.y, tasks=toy.tasks) > 0.7
    assert by_tasks.task_names_ == ["task 0", "task 1", "task 2"]
    assert_allclose(by_tasks.objective_, by_tasks.objectives_.mean())
    assert 0 <= by_tasks.gap_ <= 1e-3


@every_model
def test_pairs_of_classes_vote(model):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    fitted = clone(model).fit(X, names)
    assert fitted.objectives_.shape == (3,)
    assert fitted.decision_function(X).shape == (150, 3)
    assert fitted.score(X, names) > 0.93


@every_model
def test_copies_predict_the_same(toy, model):
    fitted = clone(model).fit(toy.X, toy.y, tasks=toy.tasks)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(
        loaded.decision_function(toy.X, tasks=toy.tasks), fitted.decision_function(toy.X, tasks=toy.tasks)
    )
    assert clone(fitted).get_params() == model.get_params()


@every_model
def test_threads_change_nothing(toy, model):
    one, two = (clone(model).set_params(n_jobs=n).fit(toy.X, toy.y, tasks=toy.tasks) for n in (None, 2))
    assert_allclose(two.objectives_, one.objectives_, rtol=1e-9)
    assert_allclose(two.theta_, one.theta_, atol=1e-9)


@every_model
def test_routing_needs_no_requests(toy, model):
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_validate(
            model, toy.X, toy.y, params={"tasks": toy.tasks}, cv=KFold(3, shuffle=True, random_state=1)
        )
    assert np.isfinite(scores["test_score"]).all()


@every_model
def test_weights_act_like_repetitions(toy, model):
    weight = 1 + np.arange(len(toy.y)) % 3
    repeated = np.repeat(np.arange(len(toy.y)), weight)
    accurate = clone(model).set_params(tol=1e-6)
    weighted = clone(accurate).fit(toy.X, toy.y, sample_weight=weight, tasks=toy.tasks)
    again = clone(accurate).fit(toy.X[repeated], toy.y[repeated], tasks=toy.tasks[repeated])
    assert_allclose(weighted.objectives_, again.objectives_, rtol=1e-4)
    assert_allclose(weighted.objective_, again.objective_, rtol=2e-6)


@every_model
def test_balanced_classes_count_equally(model):
    X, y = make_classification(150, 4, weights=[0.85], flip_y=0.1, random_state=0)
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    by_hand = clone(model).set_params(class_weight={label: len(y) / (2 * counts[label]) for label in (0, 1)}).fit(X, y)
    assert_allclose(by_hand.objective_, balanced.objective_, rtol=1e-10)
    assert np.mean(balanced.predict(X)) > np.mean(clone(model).fit(X, y).predict(X))


@pytest.mark.parametrize("verbose", [0, 1])
@every_model
def test_progress_is_shown_on_request(toy, model, verbose, capsys):
    clone(model).set_params(verbose=verbose).fit(toy.X, toy.y, tasks=toy.tasks)
    shown = "points" in capsys.readouterr().err
    assert shown == (verbose == 1 and not isinstance(model, UniformKernelSVC))


# ------------------------------------------------------------ errors
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PartiallySharedMKL(beta=-0.1), "beta must be a number at least 0, got beta=-0.1"),
        (PartiallySharedMKL(beta=float("nan")), "beta must be a number at least 0, got beta=nan"),
        (PartiallySharedMKL(beta="much"), "beta must be a number at least 0, got beta='much'"),
        (PartiallySharedMKL(tol=0.0), "tol must be a number between 0 and 1"),
        (PartiallySharedMKL(C=-1.0), "C must be a number greater than 0"),
        (IndependentMKL(s=0.5), "s must be a number at least 1"),
        (IndependentMKL(C=np.inf), "C must be a number greater than 0"),
        (IndependentMKL(tol=2.0), "tol must be a number between 0 and 1"),
        (IndependentMKL(n_jobs=0), "n_jobs must be None"),
        (UniformKernelSVC(C=0.0), "C must be a number greater than 0"),
        (UniformKernelSVC(tol=-1.0), "tol must be a number between 0 and 1"),
        (
            UniformKernelSVC(kernels="nice"),
            r"kernels must be 'default', 'paper', 'precomputed', sources\(…\) or a sequence",
        ),
        (UniformKernelSVC(class_weight="heavy"), "class_weight must be None, 'balanced' or a dict"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(toy, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(toy.X, toy.y, tasks=toy.tasks)


@every_model
def test_indefinite_kernels_are_named(toy, model):
    stack = np.moveaxis(toy.Ks, 0, 2).copy()
    stack[:, :, 1] = -stack[:, :, 1]
    with pytest.raises(ValueError, match="Kernel 1 of the precomputed stack is not positive semidefinite"):
        clone(model).set_params(kernels="precomputed").fit(stack, toy.y, tasks=toy.tasks)
