"""Regressors: reading, prediction, scores, search, and errors for bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import ParetoMKLRegressor, ParetoMKLRegressorCV, load_model, pareto_path, save_model, sources
from paretomkl.kernels import Gaussian, KernelBank
from paretomkl.kernels._fitted import spreads
from tests.oracles import explained_within_tasks

LOSSES = ["squared", "epsilon_insensitive"]


@pytest.fixture(scope="module")
def toy():
    rng = np.random.default_rng(0)
    X = rng.random((90, 4))
    tasks = np.repeat(["pump", "valve", "motor"], 30)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    y[30:60] = 1000 + 50 * X[30:60, 3] ** 2  # another unit, another function
    y[60:] += 0.1 * rng.normal(size=30)
    return X, y, tasks


@parametrize_with_checks(
    [
        ParetoMKLRegressor(tol=1e-6),
        ParetoMKLRegressor(tol=1e-6, kernels=["linear", ("rbf", {"sigma": 1.0})], p=0.1, s=2.0, normalize_y=False),
        ParetoMKLRegressor(loss="epsilon_insensitive", tol=1e-6, kernels=["linear", ("rbf", {"sigma": 1.0})]),
        ParetoMKLRegressorCV(ps=[0.5, 1.0], Cs=[1.0, 10.0], s=1.1, capacity=0.5, cv=2, tol=1e-6),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_one_kernel_matches_kernel_ridge_with_an_intercept(toy):
    X, y, _ = toy
    C, sigma = 3.0, 0.7
    bank = KernelBank([Gaussian(sigma)], normalize="none")
    ours = ParetoMKLRegressor(C=C, kernels=bank, normalize_y=False, tol=1e-9).fit(X, y)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * sigma**2))
    # an intercept that costs nothing is a constant kernel without bound
    theirs = KernelRidge(alpha=1 / C, kernel="precomputed").fit(K + 1e8, y)
    assert_allclose(ours.predict(X), theirs.predict(K + 1e8), rtol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_way_to_give_tasks_is_one_problem(toy, loss):
    X, y, tasks = toy
    kernels = ["linear", ("rbf", {"sigma": 0.5})]
    make = {"loss": loss, "p": 2.0, "C": 5.0, "kernels": kernels}
    by_tasks = ParetoMKLRegressor(**make).fit(X, y, tasks=tasks)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(machine=tasks)
    by_column = ParetoMKLRegressor(**make, task_column="machine").fit(frame, y)
    matrix = np.full((len(y), 3), np.nan)
    for t, name in enumerate(by_tasks.task_names_):
        matrix[tasks == name, t] = y[tasks == name]
    by_matrix = ParetoMKLRegressor(**make).fit(X, matrix)
    path = pareto_path(X, y, tasks=tasks, ps=[2.0], C=5.0, kernels=kernels, machine=by_tasks_machine(loss))
    for model in (by_column, by_matrix):
        assert_allclose(model.theta_, by_tasks.theta_, rtol=1e-6)
    assert_allclose(path.theta[0], by_tasks.theta_, rtol=1e-6)
    own = by_tasks.predict(X, tasks=tasks)
    assert_allclose(by_column.predict(frame), own)
    assert_allclose(path.models[0].predict(X, tasks), own)
    assert_allclose(np.nansum(np.where(np.isnan(matrix), np.nan, by_matrix.predict(X)), axis=1), own)
    assert by_matrix.score(X, matrix) == pytest.approx(by_tasks.score(X, y, tasks=tasks))


def by_tasks_machine(loss: str) -> str:
    return {"squared": "ridge", "epsilon_insensitive": "svr"}[loss]


def test_the_score_is_the_mean_r2_of_the_tasks(toy):
    X, y, tasks = toy
    model = ParetoMKLRegressor(C=10).fit(X, y, tasks=tasks)
    weight = np.random.default_rng(1).random(len(y))
    predicted = model.predict(X, tasks=tasks)
    for w in (None, weight):
        own = [
            r2_score(y[tasks == t], predicted[tasks == t], sample_weight=None if w is None else w[tasks == t])
            for t in np.unique(tasks)
        ]
        assert model.score(X, y, tasks=tasks, sample_weight=w) == pytest.approx(np.mean(own))
    two = ParetoMKLRegressor().fit(X, np.column_stack([y, -y]))
    assert two.score(X, np.column_stack([y, -y])) == pytest.approx(r2_score(np.column_stack([y, -y]), two.predict(X)))


def test_units_of_the_targets_do_not_matter(toy):
    X, y, tasks = toy
    plain = ParetoMKLRegressor(C=10, p=5).fit(X, y, tasks=tasks)
    moved = ParetoMKLRegressor(C=10, p=5).fit(X, np.where(tasks == "pump", 1e6 * y - 3, y), tasks=tasks)
    assert_allclose(moved.theta_, plain.theta_, rtol=1e-6)
    pump = tasks == "pump"
    assert_allclose(
        moved.predict(X[pump], tasks=tasks[pump]), 1e6 * plain.predict(X[pump], tasks=tasks[pump]) - 3, rtol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_means_the_sample_twice(toy, loss):
    X, y, tasks = toy
    weight = np.ones(len(y))
    weight[:10], weight[40:45] = 2.0, 0.0
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    bank = KernelBank([Gaussian(0.5), Gaussian(2.0)], normalize="none")
    model = ParetoMKLRegressor(loss=loss, C=3, kernels=bank, tol=1e-8)
    weighted = clone(model).fit(X, y, tasks=tasks, sample_weight=weight)
    repeated = clone(model).fit(X[rows], y[rows], tasks=tasks[rows])
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)
    assert_allclose(weighted.predict(X, tasks=tasks), repeated.predict(X, tasks=tasks), rtol=1e-3)


def test_contributions_add_up(toy):
    X, y, tasks = toy
    blocks = sources({"first": [0, 1], "second": [2, 3]})
    model = ParetoMKLRegressor(C=10, kernels=blocks).fit(X, y, tasks=tasks)
    parts = model.contributions(X, tasks=tasks)
    assert parts.shape == (len(X), len(model.kernel_names_))
    constant = model.predict(X, tasks=tasks) - parts.sum(axis=1)
    for name in np.unique(tasks):
        assert np.ptp(constant[tasks == name]) < 1e-8 * np.abs(y).max()
    by_source = model.contributions(X, tasks=tasks, by="source")
    assert_allclose(by_source.sum(axis=1), parts.sum(axis=1), rtol=1e-9, atol=1e-9)
    assert list(model.source_shares_) == ["first", "second"]
    both = ParetoMKLRegressor().fit(X, np.column_stack([y, -y]))
    assert both.contributions(X).shape == (len(X), 2, len(both.kernel_names_))
    with pytest.raises(ValueError, match="'kernel' or 'source'"):
        model.contributions(X, tasks=tasks, by="column")


def test_several_outputs_measure_the_kernels_once(toy, monkeypatch):
    """The factors of the kernels match a single output; outputs with their own samples are measured separately."""
    X, y, _ = toy
    calls = []
    monkeypatch.setattr("paretomkl.kernels._fitted.spreads", lambda K, *rest: calls.append(len(K)) or spreads(K, *rest))
    one = ParetoMKLRegressor().fit(X, y)
    n_calls = len(calls)
    three = ParetoMKLRegressor().fit(X, np.column_stack([y, X[:, 0], X[:, 1]]))
    assert len(calls) == 2 * n_calls
    assert_allclose(three.model_.bank.factor, one.model_.bank.factor)
    missing = np.column_stack([y, np.where(np.arange(90) < 50, X[:, 0], np.nan)])
    ParetoMKLRegressor().fit(X, missing)
    assert len(calls) == 4 * n_calls


def test_several_outputs_share_one_factorisation(toy, monkeypatch):
    from paretomkl.machines import _ridge

    X, y, _ = toy
    calls = []
    real = _ridge.cho_factor
    monkeypatch.setattr(_ridge, "cho_factor", lambda *a, **k: calls.append(1) or real(*a, **k))
    model = ParetoMKLRegressor().fit(X, np.column_stack([y, -y, y**2]))
    assert len(calls) == model.n_sweeps_


def test_search_matches_a_grid_search_over_the_plain_estimator(toy):
    X, y, tasks = toy
    folds = [(np.arange(90)[np.arange(90) % 3 != k], np.arange(90)[np.arange(90) % 3 == k]) for k in range(3)]
    grid = {"ps": [0.5, 1.0, 5.0], "Cs": [1.0, 10.0], "s": 1.1, "capacity": 0.5}
    search = ParetoMKLRegressorCV(**grid, cv=folds, tol=1e-8, share="kernel")
    search.fit(X, y, tasks=tasks)
    scores = []
    for params in search.cv_results_["params"]:
        of_folds = []
        for train, test in folds:
            plain = ParetoMKLRegressor(p=params["p"], C=params["C"], tol=1e-8).fit(
                X[train], y[train], tasks=tasks[train]
            )
            of_folds.append(explained_within_tasks(y, plain.predict(X, tasks=tasks), tasks, train, test))
        scores.append(np.mean(of_folds))
    assert_allclose(search.cv_results_["mean_test_score"], scores, atol=1e-4)
    assert set(search.best_params_) == {"C", "p"}
    assert search.score(X, y, tasks=tasks) == search.best_estimator_.score(X, y, tasks=tasks)
    assert (search.cv_results_["max_gap"] <= 1e-8).all()
    assert "mean_test_squared_error" in search.cv_results_


def test_search_for_epsilon(toy):
    X, y, tasks = toy
    search = ParetoMKLRegressorCV(
        loss="epsilon_insensitive", epsilon=[0.01, 0.2], ps=[1.0, 2.0], Cs=[1.0, 10.0], s=1.1, cv=3, share="kernel"
    ).fit(X, y, tasks=tasks)
    assert set(search.best_params_) == {"C", "capacity", "epsilon", "p"}
    assert search.best_estimator_.epsilon == search.best_params_["epsilon"]
    assert len(search.cv_results_["params"]) == 2 * 2 * 2 * 2
    fixed = ParetoMKLRegressorCV(loss="epsilon_insensitive", epsilon=0.2, ps=[1.0], Cs=[1.0], cv=3).fit(
        X, y, tasks=tasks
    )
    assert "epsilon" not in fixed.best_params_
    assert fixed.best_estimator_.epsilon == 0.2


def test_the_search_can_use_scikit_learn_scores(toy):
    X, y, tasks = toy
    search = ParetoMKLRegressorCV(ps=[1.0], Cs=[0.1, 10.0], scoring="neg_mean_absolute_error", cv=3)
    search.fit(X, y, tasks=tasks)
    assert search.best_score_ < 0


def test_it_works_inside_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(ParetoMKLRegressor(C=0.1), X, y, cv=3).mean() > 0.3
    found = GridSearchCV(ParetoMKLRegressor(), {"C": [0.01, 0.1], "loss": LOSSES}, cv=2).fit(X, y)
    assert found.best_score_ > 0.3


def test_a_fold_may_hold_a_constant_task(toy):
    X, y, tasks = toy
    y = y.copy()
    y[30:60] = 0.0
    y[[30, 31]] = 1.0  # both may be held out
    folds = [(np.arange(90)[np.arange(90) // 3 % 3 != k], np.arange(90)[np.arange(90) // 3 % 3 == k]) for k in range(3)]
    search = ParetoMKLRegressorCV(ps=[0.1, 1.0, np.inf], Cs=[1.0], s=1.1, cv=folds, error_score="raise")
    search.fit(X, y, tasks=tasks)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_saved_models_predict_the_same(toy, tmp_path):
    X, y, tasks = toy
    for k, model in enumerate(
        [ParetoMKLRegressor(C=10), ParetoMKLRegressorCV(ps=[1.0, 2.0], Cs=[1.0, 10.0], s=1.1, cv=3)]
    ):
        model.fit(X, y, tasks=tasks)
        save_model(model, tmp_path / f"{k}.skops")
        same = load_model(tmp_path / f"{k}.skops")
        assert_allclose(same.predict(X, tasks=tasks), model.predict(X, tasks=tasks))


def test_code_of_a_path_fits_the_point_again(toy):
    X, y, tasks = toy
    path = pareto_path(X, y, tasks=tasks, ps=[0.5, 2.0], C=3.0, machine="svr", epsilon=0.05)
    known = {"X": X, "y": y, "tasks": tasks}
    exec(path.refit.replace("{p}", "2.0"), known)
    assert_allclose(known["reg"].objective_, path.objective[1], rtol=2e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["low"] * 45 + ["high"] * 45}, "y must contain numbers for regression, got 'low'"),
        ({"y": np.full(90, 2.5)}, "Task 'motor' has the same target, 2.5, in all samples"),
        ({"y": np.full(90, np.inf)}, "infinite"),
        ({"y": np.full(90, np.nan)}, "y is missing for sample 0"),
        ({"tasks": ["lonely"] + ["other"] * 89}, "Task 'lonely' has only one sample"),
        ({"y": np.zeros((90, 2)), "tasks": None}, "Task '0' has the same target, 0,"),
        ({"y": np.column_stack([np.arange(90), np.full(90, np.nan)]), "tasks": None}, "Task '1' is empty"),
        ({"y": np.arange(89)}, "X has 90, y has 89"),
        ({"sample_weight": -np.ones(90)}, "[Nn]egative"),
    ],
)
def test_bad_data_are_named_before_any_work(toy, change, message, monkeypatch):
    X, y, tasks = toy
    given = {"y": y, "tasks": tasks} | change
    monkeypatch.setattr("paretomkl._learn.estimators.learn", lambda *_: pytest.fail("work was done"))
    with pytest.raises(ValueError, match=message):
        ParetoMKLRegressor().fit(X, **given)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "absolute"}, "loss must be one of 'squared', 'epsilon_insensitive' or a MachineKind, got 'absolute'"),
        ({"loss": "epsilon_insensitive", "epsilon": -0.1}, "epsilon must be a number of at least 0"),
        ({"C": -1.0}, "C must be a number greater than 0"),
        ({"solver": "tseng", "p": 2.0}, "solver='tseng' needs machine='svc'"),
    ],
)
def test_bad_parameters_are_named_before_any_work(toy, parameters, message, monkeypatch):
    X, y, tasks = toy
    monkeypatch.setattr("paretomkl._fitting.tracing.trace", lambda *_, **__: pytest.fail("work was done"))
    with pytest.raises(ValueError, match=message):
        ParetoMKLRegressor(**parameters).fit(X, y, tasks=tasks)


def test_paths_say_what_their_machine_needs(toy):
    X, y, _ = toy
    with pytest.raises(ValueError, match="machine must be one of"):
        pareto_path(X, y, machine="tree")
    with pytest.raises(ValueError, match="learns without labels; pass y=None"):
        pareto_path(X, y, machine="svdd")
    with pytest.raises(ValueError, match="class_weight needs classes"):
        pareto_path(X, y, machine="ridge", class_weight="balanced")
    with pytest.raises(ValueError, match="y is missing"):
        pareto_path(X, machine="ridge")


def test_least_squares_classification(toy):
    from paretomkl import ParetoMKLClassifier

    X, y, tasks = toy
    labels = np.where(y > np.median(y[tasks == "pump"]), "high", "low")
    labels[30:60] = np.where(X[30:60, 3] > 0.5, "high", "low")
    model = ParetoMKLClassifier(loss="squared", C=10).fit(X, labels, tasks=tasks)
    signs = np.where(labels == "low", 1.0, -1.0)
    numbers = ParetoMKLRegressor(C=10, normalize_y=False).fit(X, signs, tasks=tasks)
    assert_allclose(model.decision_function(X, tasks=tasks), numbers.predict(X, tasks=tasks), atol=1e-6)
    with pytest.raises(ValueError, match="loss must be one of 'hinge', 'squared'"):
        ParetoMKLClassifier(loss="ridge").fit(X, labels, tasks=tasks)


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_targets_in_any_unit_give_the_same_fit(unit):
    """Squares of such targets leave the range of a double; their standard deviation and R² do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    with np.errstate(all="raise", under="ignore"):
        reg, usual = ParetoMKLRegressor().fit(X, unit * y), ParetoMKLRegressor().fit(X, y)
        assert_allclose(reg.predict(X) / unit, usual.predict(X))
        assert_allclose(reg.score(X, unit * y), usual.score(X, y))


@pytest.mark.parametrize(
    ("options", "y", "said"),
    [
        ({}, ["0.5", "1.5"] * 20, "got text such as '0.5'"),
        ({}, np.arange(40) + 1j, "got complex numbers"),
        ({"epsilon": -1}, np.arange(40.0), "epsilon must be a number of at least 0"),
    ],
)
def test_targets_and_epsilon_are_checked_whatever_the_loss(options, y, said):
    with pytest.raises(ValueError, match=said):
        ParetoMKLRegressor(**options).fit(np.eye(40), y)


def test_an_unknown_task_of_a_regression_suggests_folds_without_classes():
    reg = ParetoMKLRegressor(kernels=["linear"]).fit(np.eye(8), np.arange(8.0), tasks=list("aaaabbbb"))
    with pytest.raises(ValueError, match=r"Unknown task 'c'.*share='function' .*MultiTaskKFold: it keeps every task"):
        reg.predict(np.eye(8), tasks=list("aaaacccc"))
