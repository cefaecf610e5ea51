"""MinimaxMTL compared with the problem it states, written for a conic solver, and as a scikit-learn estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl.baselines._minimax import MinimaxMTL
from tests.conftest import make_toy

REGULARIZERS = ["trace", "ep"]

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "the check asks for equal decisions to 1e-7; the trace norm is not strictly convex, and at the smallest gap "
        "that rounding allows the decisions of two runs still differ by 1e-6 "
        "(test_weights_act_like_repetitions states the equivalence of the objectives)"
    ),
}


# a small tolerance, so that decisions settle: a gap of tol changes them by about its square root
@parametrize_with_checks(
    [MinimaxMTL("trace", tol=1e-6), MinimaxMTL("ep", tol=1e-8)],
    expected_failed_checks=lambda model: EXPECTED_FAILURES if model.regularizer == "trace" else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def penalty(W, regularizer, lam=1.0):
    """Ω of W (T, d); the best v_0 of "ep" has 2 v_0 = 2 (λ/T) Σ_t (w_t − v_0)."""
    if regularizer == "trace":
        return np.linalg.svd(W, compute_uv=False).sum()
    v = lam * W.mean(axis=0) / (1 + lam)
    return v @ v + lam / len(W) * ((W - v) ** 2).sum()


def hinge_losses(model, X, pairs):
    outputs = X @ model.coef_.T + model.intercept_
    return np.array([np.maximum(0, 1 - signs * outputs[rows, t]).mean() for t, (rows, signs) in enumerate(pairs)])


def conic_optimum(X, pairs, regularizer, alpha, mu, lam=1.0, intercept=True, weights=None, combine=None):
    """The stated problem by a conic solver, or with ``combine`` of the losses instead of b + (1/α) Σ ξ."""
    cp = pytest.importorskip("cvxpy")
    T, d = len(pairs), X.shape[1]
    W, offset, b, xi = cp.Variable((d, T)), cp.Variable(T), cp.Variable(), cp.Variable(T)
    losses = []
    for t, (rows, signs) in enumerate(pairs):
        share = np.ones(len(rows)) if weights is None else weights[rows]
        hinge = cp.pos(1 - cp.multiply(signs, X[rows] @ W[:, t] + offset[t]))
        losses.append(share @ hinge / share.sum())
    constraints = [] if intercept else [offset == 0]
    if regularizer == "trace":
        omega = cp.normNuc(W)
    else:
        v = cp.Variable((d, T + 1))  # v_0 last
        constraints += [W[:, t] == v[:, T] + v[:, t] for t in range(T)]
        omega = cp.sum_squares(v[:, T]) + lam / T * cp.sum_squares(v[:, :T])
    if combine is None:
        constraints += [xi >= 0, *(loss <= b + xi[t] for t, loss in enumerate(losses))]
        objective = b + cp.sum(xi) / alpha
    else:
        objective = combine(cp.hstack(losses))
    problem = cp.Problem(cp.Minimize(objective + mu * omega), constraints)
    return problem.solve(solver=cp.CLARABEL)


# ------------------------------------------------------------ the optimum
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize(
    ("alpha", "mu", "lam"), [(1.0, 0.01, 1.0), (1.6, 0.001, 0.1), (2.0, 0.1, 10.0), (3.7, 0.003, 3.0), (4.0, 0.02, 0.5)]
)
@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_optimum_matches_a_conic_solver(regularizer, alpha, mu, lam, intercept):
    toy = make_toy(seed=1, n_tasks=4, n=15, n_features=4)
    optimum = conic_optimum(toy.X, toy.pairs, regularizer, alpha, mu, lam, intercept)
    for tol in (1e-2, 1e-5):
        model = MinimaxMTL(regularizer, alpha, mu, lam, fit_intercept=intercept, tol=tol)
        model.fit(toy.X, toy.y, tasks=toy.tasks)
        true_gap = (model.objective_ - optimum) / model.objective_
        assert -1e-6 <= true_gap <= model.gap_ + 1e-6
        assert model.gap_ <= tol
    assert_allclose(model.objective_, optimum, rtol=1e-4)


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_attributes_keep_their_promises(toy, regularizer):
    model = MinimaxMTL(regularizer, alpha=1.5, mu=0.003, lam=2.0, tol=1e-5).fit(toy.X, toy.y, tasks=toy.tasks)
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == model.losses_.shape == model.task_weights_.shape == (3,)
    assert_allclose(model.losses_, hinge_losses(model, toy.X, toy.pairs), rtol=1e-10)
    first, second, third = np.sort(model.losses_)[::-1]
    worst = (first + second / 2) / 1.5
    assert_allclose(model.objective_, worst + 0.003 * penalty(model.coef_, regularizer, 2.0), rtol=1e-10)
    assert third < second
    assert_allclose(model.task_weights_.sum(), 1)
    assert np.all((model.task_weights_ >= 0) & (model.task_weights_ <= 1 / 1.5 + 1e-12))
    assert_allclose(model.task_weights_ @ model.losses_, worst, rtol=1e-3)
    assert 0 < model.n_iter_ <= 100


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_alpha_runs_from_the_worst_task_to_the_mean(toy, regularizer):
    cp = pytest.importorskip("cvxpy")
    mean = conic_optimum(toy.X, toy.pairs, regularizer, 0, 0.01, combine=lambda losses: cp.sum(losses) / 3)
    worst = conic_optimum(toy.X, toy.pairs, regularizer, 0, 0.01, combine=cp.max)
    fits = [MinimaxMTL(regularizer, alpha, 0.01, tol=1e-5) for alpha in (0.3, 1.0, 2.0, 3.0)]
    values = [model.fit(toy.X, toy.y, tasks=toy.tasks).objective_ for model in fits]
    assert_allclose(values[:2], worst, rtol=1e-4)
    assert_allclose(values[3], mean, rtol=1e-4)
    assert mean < values[2] < worst
    assert_allclose(fits[3].task_weights_, 1 / 3)


def test_default_alpha_is_a_fifth_of_the_tasks():
    X, y = make_classification(120, 4, random_state=0)
    tasks = np.arange(120) % 10
    default, explicit = (MinimaxMTL(alpha=alpha).fit(X, y, tasks=tasks) for alpha in (None, 2.0))
    assert default.objective_ == explicit.objective_


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_one_task(regularizer):
    X, y = make_classification(40, 4, flip_y=0.2, random_state=0)
    optimum = conic_optimum(X, [(np.arange(40), 2.0 * y - 1)], regularizer, 1.0, 0.02)
    for alpha in (None, 1.0):
        model = MinimaxMTL(regularizer, alpha, 0.02, tol=1e-5).fit(X, y)
        assert_allclose(model.objective_, optimum, rtol=1e-4)
        assert_array_equal(model.task_weights_, [1.0])


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_more_features_than_samples(regularizer):
    toy = make_toy(seed=2, n_tasks=2, n=8, n_features=30)
    model = MinimaxMTL(regularizer, 1.0, 0.01, tol=1e-5).fit(toy.X, toy.y, tasks=toy.tasks)
    assert_allclose(model.objective_, conic_optimum(toy.X, toy.pairs, regularizer, 1.0, 0.01), rtol=1e-4)
    assert model.coef_.shape == (2, 30)
    assert_allclose(model.losses_, hinge_losses(model, toy.X, toy.pairs), rtol=1e-8, atol=1e-12)


def test_a_heavy_trace_norm_leaves_nothing(toy):
    model = MinimaxMTL(mu=100.0, fit_intercept=False).fit(toy.X, toy.y, tasks=toy.tasks)
    assert_array_equal(model.coef_, np.zeros((3, 3)))
    assert_allclose(model.objective_, 1)
    model = MinimaxMTL("ep", mu=1e6).fit(toy.X, toy.y, tasks=toy.tasks)
    assert_allclose(model.coef_, 0, atol=1e-6)


def test_the_trace_norm_finds_low_rank():
    rng = np.random.default_rng(0)
    X, tasks = rng.standard_normal((400, 10)), np.arange(400) % 8
    directions = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 10))
    y = (X * directions[tasks]).sum(axis=1) > 0
    model = MinimaxMTL(alpha=8.0, mu=0.1, tol=1e-4).fit(X, y, tasks=tasks)
    assert np.linalg.matrix_rank(model.coef_) == 2


def test_tasks_become_similar_as_lam_grows(toy):
    spread = [
        np.std(MinimaxMTL("ep", mu=0.01, lam=lam).fit(toy.X, toy.y, tasks=toy.tasks).coef_, axis=0).max()
        for lam in (0.01, 1.0, 1e4)
    ]
    assert spread[0] > spread[1] > spread[2]
    assert spread[2] < 1e-2


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_scaling_the_features_scales_mu(toy, regularizer):
    power = 1 if regularizer == "trace" else 2
    model = MinimaxMTL(regularizer, mu=0.01).fit(toy.X, toy.y, tasks=toy.tasks)
    scaled = MinimaxMTL(regularizer, mu=0.01 * 1e3**power).fit(1e3 * toy.X, toy.y, tasks=toy.tasks)
    assert_allclose(scaled.objective_, model.objective_, rtol=1e-6)
    assert_allclose(1e3 * scaled.coef_, model.coef_, rtol=1e-3, atol=1e-4)


def test_an_early_stop_warns(toy):
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 iterations \(max_iter=2\), gap .* Raise max_iter"):
        model = MinimaxMTL(mu=0.001, max_iter=2).fit(toy.X, toy.y, tasks=toy.tasks)
    optimum = conic_optimum(toy.X, toy.pairs, "trace", 1.0, 0.001)
    assert 1e-3 < 1 - optimum / model.objective_ <= model.gap_ <= 1
    with pytest.warns(ConvergenceWarning, match="Rounding errors prevent a smaller gap: raise tol or mu"):
        model = MinimaxMTL(mu=0.001, tol=1e-15).fit(toy.X, toy.y, tasks=toy.tasks)
    assert model.gap_ < 1e-4


def test_progress_is_printed(toy, capsys):
    model = MinimaxMTL("ep", verbose=1).fit(toy.X, toy.y, tasks=toy.tasks)
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"iteration {model.n_iter_}: objective ")


# ------------------------------------------------------------ ways to name the tasks
@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_all_ways_to_give_the_tasks_are_one_problem(toy, regularizer):
    frame = pd.DataFrame(toy.X, columns=["a", "b", "c"]).assign(site=toy.tasks)
    matrix = np.full((len(toy.y), 3), np.nan)
    for t, (rows, signs) in enumerate(toy.pairs):
        matrix[rows, t] = signs
    by_tasks = MinimaxMTL(regularizer).fit(toy.X, toy.y, tasks=toy.tasks)
    by_column = MinimaxMTL(regularizer, task_column="site").fit(frame, toy.y)
    by_matrix = MinimaxMTL(regularizer).fit(toy.X, matrix)
    for other in (by_column, by_matrix):
        assert_allclose(other.coef_, by_tasks.coef_, rtol=1e-8, atol=1e-10)
        assert other.objective_ == by_tasks.objective_
    predicted = by_tasks.predict(toy.X, tasks=toy.tasks)
    assert_array_equal(by_column.predict(frame), predicted)
    scores = by_matrix.decision_function(toy.X)
    assert_allclose(scores, toy.X @ by_tasks.coef_.T + by_tasks.intercept_, rtol=1e-8)
    for t, (rows, _) in enumerate(toy.pairs):
        assert_array_equal(np.where(scores[rows, t] > 0, "yes", "no"), predicted[rows])


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_more_than_two_classes(regularizer):
    X, y = load_iris(return_X_y=True)
    model = MinimaxMTL(regularizer, mu=0.001).fit(X, y)
    assert model.task_names_ == ["0 vs 1", "0 vs 2", "1 vs 2"]
    assert model.score(X, y) > 0.95
    pairs = [(np.flatnonzero(y != left_out), np.where(y[y != left_out] == high, 1.0, -1.0))
             for left_out, high in ((2, 1), (1, 2), (0, 2))]  # fmt: skip
    assert_allclose(model.losses_, hinge_losses(model, X, pairs), rtol=1e-10)


# ------------------------------------------------------------ weights
@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_weights_act_like_repetitions(toy, regularizer):
    weight = np.arange(len(toy.y)) % 4
    for rows, signs in toy.pairs:
        weight[rows[signs > 0][0]] = weight[rows[signs < 0][0]] = 1
    repeated = np.repeat(np.arange(len(toy.y)), weight)
    model = MinimaxMTL(regularizer, 2.0, tol=1e-5)
    weighted = clone(model).fit(toy.X, toy.y, sample_weight=weight, tasks=toy.tasks)
    again = clone(model).fit(toy.X[repeated], toy.y[repeated], tasks=toy.tasks[repeated])
    assert_allclose(weighted.objective_, again.objective_, rtol=2e-5)
    optimum = conic_optimum(toy.X, toy.pairs, regularizer, 2.0, 0.01, weights=weight)
    assert_allclose(weighted.objective_, optimum, rtol=1e-4)


def test_class_weights_are_sample_weights():
    X, y = make_classification(200, 4, weights=[0.9], flip_y=0.1, random_state=0)
    counts = np.bincount(y)
    plain, balanced = MinimaxMTL().fit(X, y), MinimaxMTL(class_weight="balanced").fit(X, y)
    by_hand = MinimaxMTL(class_weight={label: 200 / (2 * counts[label]) for label in (0, 1)}).fit(X, y)
    by_sample = MinimaxMTL().fit(X, y, sample_weight=1 / counts[y])
    assert_allclose([by_hand.objective_, by_sample.objective_], balanced.objective_, rtol=1e-8)
    assert balanced.predict(X).mean() > plain.predict(X).mean()


# ------------------------------------------------------------ scikit-learn's tools
@pytest.mark.parametrize("copy", [clone, lambda m: pickle.loads(pickle.dumps(m))], ids=["clone", "pickle"])
def test_copies(toy, copy):
    model = MinimaxMTL("ep", alpha=2.0, mu=0.1).fit(toy.X, toy.y, tasks=toy.tasks)
    other = copy(model)
    assert other.get_params() == model.get_params()
    if hasattr(other, "coef_"):
        assert_array_equal(other.predict(toy.X, tasks=toy.tasks), model.predict(toy.X, tasks=toy.tasks))


def test_grid_search():
    X, y = make_classification(120, 5, random_state=0)
    data = np.column_stack([X, np.arange(120) % 3])
    search = GridSearchCV(MinimaxMTL(task_column=5), {"regularizer": REGULARIZERS, "mu": [0.01, 1.0]}, cv=3)
    assert search.fit(data, y).best_params_["mu"] == 0.01
    assert search.score(data, y) > 0.8


# ------------------------------------------------------------ errors
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"regularizer": "ridge"}, "regularizer must be 'trace' or 'ep', got 'ridge'"),
        ({"alpha": 3.5}, "alpha must be a number greater than 0 and at most the number of tasks, 3, got alpha=3.5"),
        ({"alpha": 0.0}, "alpha must be a number greater than 0"),
        ({"alpha": "half"}, "alpha must be a number"),
        ({"mu": 0.0}, "mu must be a number greater than 0"),
        ({"mu": float("nan")}, "mu must be a number greater than 0"),
        ({"lam": -1.0}, "lam must be a number greater than 0"),
        ({"tol": 0.0}, "tol must be a number between 0 and 1"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"class_weight": "heavy"}, "class_weight must be None, 'balanced' or a dict"),
    ],
)
def test_bad_parameters_are_named(toy, parameters, message):
    with pytest.raises(ValueError, match=message):
        MinimaxMTL(**parameters).fit(toy.X, toy.y, tasks=toy.tasks)


def test_unknown_tasks_are_named(toy):
    model = MinimaxMTL().fit(toy.X, toy.y, tasks=toy.tasks)
    with pytest.raises(ValueError, match="Unknown task 'pump'"):
        model.predict(toy.X[:1], tasks=["pump"])
