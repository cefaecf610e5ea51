"""Baselines for regression: independent and uniform kernels, and any scikit-learn regressor for each task."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import MultiTaskLasso, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import ParetoMKLRegressor
from paretomkl.baselines import IndependentMKLRegressor, TaskwiseRegressor, UniformKernelRegressor
from paretomkl.model_selection import MultiTaskKFold

KERNELS = ["linear", ("rbf", {"sigma": 0.5}), ("rbf", {"sigma": 2.0})]
MODELS = [
    IndependentMKLRegressor(kernels=KERNELS, tol=1e-6),
    UniformKernelRegressor(kernels=KERNELS, tol=1e-6),
    TaskwiseRegressor(),
    TaskwiseRegressor(Ridge(), {"alpha": [0.1, 1.0]}, form="pooled", cv=3),
]
GRID = {"alpha": [0.01, 0.1, 1.0], "gamma": [0.1, 1.0]}


@parametrize_with_checks(MODELS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def table():
    """Three tasks of 14 to 20 samples with their own means, scales and functions."""
    rng = np.random.default_rng(0)
    tasks = np.repeat(["a", "b", "c"], [20, 17, 14])
    X = rng.standard_normal((51, 4)) * [1, 10, 0.1, 1]
    slope = {"a": 1.0, "b": -2.0, "c": 30.0}
    y = np.array(
        [slope[task] * (np.sin(x[0]) + 0.1 * x[1] + 0.2 * e) for task, x, e in zip(tasks, X, X[:, 3], strict=True)]
    )
    return X, y + 5 * (tasks == "b"), tasks


# ------------------------------------------------------------------------------------------------ our own kernels
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_independent_kernels_match_each_task_alone(table, loss):
    X, y, tasks = table
    bank = ["linear", ("rbf", {"sigma": 1.0})]
    given = {"kernels": bank, "loss": loss, "C": 3.0, "tol": 1e-6}
    together = IndependentMKLRegressor(**given).fit(X, y, tasks=tasks)
    assert together.theta_.shape == (3, 2)
    assert together.gap_ == together.gaps_.max() <= 1e-6
    for t, task in enumerate("abc"):
        mine = tasks == task
        alone = ParetoMKLRegressor(**given).fit(X[mine], y[mine])
        assert_allclose(together.objectives_[t], alone.objective_, rtol=2e-6)
        assert_allclose(together.theta_[t], alone.theta_, atol=2e-3)
        assert_allclose(together.predict(X[mine], tasks=tasks[mine]), alone.predict(X[mine]), atol=1e-2 * y[mine].std())


def test_uniform_kernels_match_kernel_ridge_on_their_mean(table):
    X, y, tasks = table
    C = 2.0
    model = UniformKernelRegressor(C=C, kernels=KERNELS, tol=1e-8).fit(X, y, tasks=tasks)
    assert_allclose(model.theta_, 1 / 3)
    assert 0 <= model.gap_ <= 1e-8
    for t, task in enumerate("abc"):
        mine = np.flatnonzero(tasks == task)
        stack = model.model_.bank.stack(model.model_.bank.side(X[mine]), model.model_.bank.side(X[mine]))
        K = np.tensordot(model.theta_ * model.model_.bank.factor, stack, axes=1)
        unit = (y[mine] - y[mine].mean()) / y[mine].std()
        n = len(mine)
        system = np.block([[K + np.eye(n) / C, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        solution = np.linalg.solve(system, np.append(unit, 0))
        assert_allclose(model.intercept_[t], solution[-1], atol=1e-7)
        fitted = y[mine].mean() + y[mine].std() * (K @ solution[:-1] + solution[-1])
        assert_allclose(model.predict(X[mine], tasks=tasks[mine]), fitted, rtol=1e-6)


def test_a_task_within_the_tube_has_no_gap(table):
    X, y, tasks = table
    model = UniformKernelRegressor(loss="epsilon_insensitive", epsilon=10.0, kernels=KERNELS).fit(X, y, tasks=tasks)
    assert 0 <= model.gap_ <= 1e-3
    assert_allclose(model.objectives_, 0, atol=1e-6)


# ------------------------------------------------------------------------------------------- those of scikit-learn
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_each_task_chooses_as_grid_search_does(table, scoring):
    X, y, tasks = table
    folds = list(MultiTaskKFold(4, shuffle=True, random_state=3).split(X, y, tasks=tasks))
    model = TaskwiseRegressor(KernelRidge(kernel="rbf"), GRID, each=True, cv=folds, scoring=scoring, normalize_y=False)
    model.fit(X, y, tasks=tasks)
    pipeline = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    named = {f"kernelridge__{name}": values for name, values in GRID.items()}
    for t, task in enumerate("abc"):
        mine = np.flatnonzero(tasks == task)
        place = {row: k for k, row in enumerate(mine)}
        own = [tuple([place[row] for row in part if row in place] for part in fold) for fold in folds]
        search = GridSearchCV(pipeline, named, cv=own, scoring=scoring).fit(X[mine], y[mine])
        assert_allclose(model.cv_scores_[t], search.cv_results_["mean_test_score"])
        assert {f"kernelridge__{name}": value for name, value in model.best_params_[t].items()} == search.best_params_
        assert_allclose(model.predict(X[mine], tasks=tasks[mine]), search.predict(X[mine]))


def test_one_choice_is_the_best_on_average(table):
    X, y, tasks = table
    model = TaskwiseRegressor(SVR(), {"C": [0.01, 1.0, 100.0]}).fit(X, y, tasks=tasks)
    assert model.cv_scores_.shape == (3, 3)
    assert model.best_params_ == {"C": [0.01, 1.0, 100.0][model.cv_scores_.mean(axis=0).argmax()]}
    assert {estimator.C for estimator in model.estimators_} == {model.best_params_["C"]}


def test_pooled_is_one_search_with_a_column_for_each_task(table):
    X, y, tasks = table
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    given = {"form": "pooled", "cv": folds, "scoring": "neg_mean_squared_error"}
    plain = {"standardize": False, "normalize_y": False}
    model = TaskwiseRegressor(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, **given, **plain).fit(X, y, tasks=tasks)
    wide = np.hstack([X, np.array(["a", "b", "c"]) == tasks[:, None]])
    order = np.argsort(tasks, kind="stable")
    assert (order == np.arange(51)).all()
    alpha = model.best_params_["alpha"]
    assert_allclose(model.predict(X, tasks=tasks), Ridge(alpha=alpha).fit(wide, y).predict(wide))
    for k, candidate in enumerate([0.1, 1.0, 10.0]):
        errors = []
        for train, test in folds:
            found = (Ridge(alpha=candidate).fit(wide[train], y[train]).predict(wide[test]) - y[test]) ** 2
            errors.append([found[tasks[test] == task].mean() for task in "abc"])
        assert_allclose(model.cv_scores_[:, k], -np.mean(errors, axis=0))


def test_joint_outputs_match_a_grid_search(table):
    X, _, _ = table
    Y = X @ np.random.default_rng(1).standard_normal((4, 3)) + [0, 10, -100]
    folds = list(KFold(3).split(X))
    model = TaskwiseRegressor(MultiTaskLasso(), {"alpha": [0.01, 0.1, 1.0]}, form="joint", cv=folds, normalize_y=False)
    model.fit(X, Y)
    pipeline = make_pipeline(StandardScaler(), MultiTaskLasso())
    search = GridSearchCV(pipeline, {"multitasklasso__alpha": [0.01, 0.1, 1.0]}, cv=folds).fit(X, Y)
    assert_allclose(model.cv_scores_.mean(axis=0), search.cv_results_["mean_test_score"])
    assert_allclose(model.predict(X), search.predict(X))
    assert_allclose(model.score(X, Y), search.score(X, Y))


def test_ways_to_give_the_tasks_agree(table):
    X, y, tasks = table
    model = TaskwiseRegressor(Ridge(), {"alpha": [0.1, 10.0]})
    named = clone(model).fit(X, y, tasks=tasks)
    column = np.column_stack([X, np.searchsorted(["a", "b", "c"], tasks)])
    by_column = clone(model).set_params(task_column=4).fit(column, y)
    assert_allclose(by_column.predict(column), named.predict(X, tasks=tasks))
    Y = np.where(np.array(["a", "b", "c"]) == tasks[:, None], y[:, None], np.nan)
    matrix = clone(model).set_params(cv=list(MultiTaskKFold(5, shuffle=True, random_state=0).split(X, tasks=tasks)))
    matrix.fit(X, Y)
    assert_allclose(np.nansum(np.where(np.isnan(Y), np.nan, matrix.predict(X)), axis=1), named.predict(X, tasks=tasks))
    assert_allclose(matrix.score(X, Y), named.score(X, y, tasks=tasks))


def test_units_of_a_task_do_not_matter(table):
    """If targets are standardised within tasks, a regressor without an intercept fits any mean and scale."""
    X, y, tasks = table
    model = TaskwiseRegressor(KernelRidge(kernel="rbf"), GRID, random_state=1)
    scale = np.where(tasks == "b", 1e4, 1.0)
    plain = clone(model).fit(X, y, tasks=tasks).predict(X, tasks=tasks)
    assert_allclose(clone(model).fit(X, scale * y + 7, tasks=tasks).predict(X, tasks=tasks), scale * plain + 7)


def test_weights_act_like_repetitions(table):
    X, y, tasks = table
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    for form in ("separate", "pooled"):
        model = TaskwiseRegressor(Ridge(alpha=0.5), form=form)
        weighted = clone(model).fit(X, y, tasks=tasks, sample_weight=weight)
        repeated = clone(model).fit(X[twice], y[twice], tasks=tasks[twice])
        assert_allclose(weighted.predict(X, tasks=tasks), repeated.predict(X, tasks=tasks))


def test_impossible_requests_are_refused(table):
    X, y, tasks = table
    for model, words in [
        (TaskwiseRegressor(form="alone"), "form must be one of"),
        (TaskwiseRegressor(scoring="accuracy"), "scoring must be one of"),
        (TaskwiseRegressor(form="pooled", each=True), "each=True needs form='separate'"),
        (TaskwiseRegressor(MultiTaskLasso(), form="joint"), "needs a matrix y without gaps"),
        (IndependentMKLRegressor(loss="absolute"), "loss must be"),
        (UniformKernelRegressor(loss="epsilon_insensitive", epsilon=-1), "epsilon"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, tasks=tasks)
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        TaskwiseRegressor(KNeighborsRegressor()).fit(X, y, tasks=tasks, sample_weight=np.arange(51.0))
    gaps = np.where(np.arange(102).reshape(51, 2) == 7, np.nan, X[:, :2])
    with pytest.raises(ValueError, match="needs a matrix y without gaps"):
        TaskwiseRegressor(MultiTaskLasso(), form="joint").fit(X, gaps)
