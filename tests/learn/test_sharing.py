"""What tasks have in common: nothing, a kernel, a function, everything."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from paretomkl import (
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLRegressor,
    ParetoMKLRegressorCV,
    load_model,
    pareto_path,
    save_model,
    sources,
)
from paretomkl.exceptions import NewTaskWarning, SharingWarning
from paretomkl.gram._coupled import CoupledBank, CoupledGram
from paretomkl.kernels import Gaussian, KernelBank, Linear
from paretomkl.machines import RidgeTasks, SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall
from tests.oracles import explained_within_tasks

WAYS = ["nothing", "kernel", "function", "everything"]
BANK = KernelBank([Linear(), Gaussian(0.6), Gaussian(2.0)], normalize="none")


@pytest.fixture(scope="module")
def toy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(75, 3))
    tasks = np.repeat(["north", "south", "west"], 25)
    own = np.repeat([0.0, 1.0, -1.0], 25)
    z = np.sin(X[:, 0]) + 0.4 * own * X[:, 1] + own + 0.1 * rng.normal(size=75)
    return X, np.where(z > 0, "yes", "no"), z, tasks


def coupled(toy, bank=BANK):
    X, _, _, tasks = toy
    data = np.column_stack([X, np.unique(tasks, return_inverse=True)[1]])
    groups = [(np.arange(len(X)), np.ones(len(X)))]
    return CoupledBank.of(bank.fit(X, None, None, groups), data, groups), data


def dense_kernels(bank, data):
    """The 2M + 1 matrices, with their factors."""
    side = bank.side(data)
    return bank.factor[:, None, None] * bank.stack(side, side)


# ----------------------------------------------------------------------------------------------- the kernels
@pytest.mark.parametrize("kernels", [BANK, KernelBank(), sources({"a": [0, 1], "b": [2]})])
def test_gram_is_the_sum_of_the_dense_kernels(toy, kernels):
    bank, data = coupled(toy, kernels)
    rng = np.random.default_rng(1)
    rows = [np.arange(75), np.sort(rng.choice(75, 40, replace=False)), np.array([1, 2, 30, 31, 70])]
    gram = CoupledGram(bank, data, rows)
    stack = dense_kernels(bank, data)
    theta = rng.random(bank.n_kernels)
    with gram.combined(theta) as K:
        for t, mine in enumerate(rows):
            assert_allclose(K.of_task(t), np.tensordot(theta, stack, 1)[np.ix_(mine, mine)], rtol=1e-9, atol=1e-12)
    v = [rng.normal(size=len(mine)) for mine in rows]
    forms = [[w @ k[np.ix_(mine, mine)] @ w for k in stack] for mine, w in zip(rows, v, strict=True)]
    assert_allclose(gram.quadratic_forms(np.concatenate(v)), forms, rtol=1e-8, atol=1e-9)
    cross = bank.cross(bank.side(data[:7]), bank.side(data), theta)
    assert_allclose(cross, np.tensordot(theta, stack, 1)[:7], rtol=1e-9, atol=1e-12)
    sizes = [[np.diag(k)[mine] for k in stack] for mine in rows]
    assert_allclose(gram.diagonals(), np.concatenate(sizes, axis=1), rtol=1e-9)


def test_every_kernel_pays_for_its_capacity(toy):
    bank, data = coupled(toy, KernelBank(capacity=0.7))
    side = bank.side(data)
    centre = np.eye(75) - 1 / 75
    for K, v, r, factor in zip(bank.stack(side, side), bank.variance, bank.effective_rank, bank.factor, strict=True):
        centred = centre @ K @ centre
        assert v == pytest.approx(np.trace(centred) / 75, rel=1e-6)
        assert r == pytest.approx(np.trace(centred) ** 2 / (centred**2).sum(), rel=1e-6)
        assert factor == pytest.approx(1 / (v * r**0.7), rel=1e-6)
    assert_allclose(bank.with_capacity(0.0).factor, 1 / bank.variance)


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0])
@pytest.mark.parametrize("machine", [SVCTasks, RidgeTasks])
def test_the_optimum_matches_a_conic_solver(toy, machine, s):
    cp = pytest.importorskip("cvxpy")
    _, y, z, _ = toy
    bank, data = coupled(toy)
    targets = np.where(y == "yes", 1.0, -1.0) if machine is SVCTasks else z
    C = 2.0
    made = machine(CoupledGram(bank, data, [np.arange(75)]), targets, np.full(75, C))
    found = CutPool(tol=1e-5).solve(MultiTaskProblem(made, PowerMean(1.0), LsBall(s)))
    # min over θ of max over v: the largest lower bound, with h the support function of the ball
    v = cp.Variable(75)
    stack = dense_kernels(bank, data)
    roots = [np.linalg.cholesky(K + 1e-9 * np.eye(75)) for K in stack]
    forms = cp.hstack([cp.sum_squares(root.T @ v) for root in roots])
    q = np.inf if s == 1 else s / (s - 1)
    top = cp.max(forms) if s == 1 else cp.pnorm(forms, q)
    if machine is SVCTasks:
        linear, limits = cp.sum(cp.multiply(targets, v)), [cp.multiply(targets, v) >= 0, cp.multiply(targets, v) <= C]
    else:
        linear, limits = targets @ v - cp.sum_squares(v) / (2 * C), []
    problem = cp.Problem(cp.Maximize(linear - 0.5 * top), [cp.sum(v) == 0, *limits])
    optimum = problem.solve(solver=cp.CLARABEL)
    assert found.objective == pytest.approx(optimum, rel=1e-4)
    assert found.gap >= (found.sweep.upper[0] - optimum) / found.sweep.upper[0] - 2e-6


# -------------------------------------------------------------------------------------------------- the limits
def test_sharing_everything_matches_the_pooled_svm_of_scikit_learn(toy):
    X, y, _, tasks = toy
    bank = KernelBank([Gaussian(1.0)], normalize="none")
    ours = ParetoMKLClassifier(share="everything", kernels=bank, C=3, tol=1e-9).fit(X, y, tasks=tasks)
    assert ours.kernel_names_ == ["gaussian(sigma=1)", "level"]
    K = ours.theta_ @ np.stack([rbf_kernel(X, gamma=0.5), tasks[:, None] == tasks]).transpose(1, 0, 2)
    theirs = SVC(C=3, kernel="precomputed", tol=1e-9).fit(K, y)
    assert_allclose(ours.decision_function(X, tasks=tasks), theirs.decision_function(K), atol=1e-4)
    assert ours.common_share_ == 1.0


def test_tasks_that_share_everything_have_levels_and_new_ones_have_none():
    rng = np.random.default_rng(0)
    X, tasks = rng.normal(size=(120, 2)), np.repeat(["a", "b", "c"], 40)
    y = X[:, 0] + np.repeat([-5.0, 0.0, 5.0], 40)
    model = ParetoMKLRegressor(share="everything", C=100).fit(X, y, tasks=tasks)
    assert model.score(X, y, tasks=tasks) > 0.95
    with pytest.warns(NewTaskWarning, match="a level of zero"):
        new = model.predict(X, tasks=["d"] * 120)
    assert_allclose(new, X[:, 0], atol=0.5)


def test_function_with_only_common_kernels_is_the_pooled_svm(toy):
    X, y, _, _ = toy
    bank, data = coupled(toy, KernelBank([Gaussian(1.0)], normalize="none"))
    made = SVCTasks(CoupledGram(bank, data, [np.arange(75)]), np.where(y == "yes", 1.0, -1.0), np.full(75, 3.0))
    sweep = made.sweep(np.array([1.0, 0.0, 0.0]), rtol=1e-10)
    theirs = SVC(C=3, gamma=0.5, tol=1e-10).fit(X, y)
    assert sweep.lower[0] == pytest.approx(np.abs(theirs.dual_coef_).sum() - 0.5 * _norm(theirs, X), rel=1e-6)


def test_function_with_only_own_kernels_shares_nothing(toy):
    """With the same fixed kernel it is one problem with the sum of the tasks, but one intercept for all of them."""
    _, _, z, tasks = toy
    bank, data = coupled(toy, KernelBank([Gaussian(1.0)], normalize="none"))
    level = 1e7  # gives each task an intercept that costs almost nothing
    made = RidgeTasks(CoupledGram(bank, data, [np.arange(75)]), z, np.full(75, 3.0))
    sweep = made.sweep(np.array([0.0, 1.0, level]), rtol=1e-10)
    kernel = KernelBank([Gaussian(1.0)], normalize="none")
    apart = ParetoMKLRegressor(share="nothing", kernels=kernel, C=3, normalize_y=False, tol=1e-9)
    apart.fit(data[:, :-1], z, tasks=tasks)
    assert sweep.lower[0] == pytest.approx(apart.objectives_.sum(), rel=1e-4)


def _norm(svc, X):
    rows = X[svc.support_]
    K = np.exp(-0.5 * ((rows[:, None] - rows) ** 2).sum(axis=2))
    return (svc.dual_coef_ @ K @ svc.dual_coef_.T).item()


def test_sharing_nothing_solves_each_task_on_its_own(toy):
    X, y, z, tasks = toy
    model = ParetoMKLClassifier(share="nothing", C=3).fit(X, y, tasks=tasks)
    numbers = ParetoMKLRegressor(share="nothing", C=3).fit(X, z, tasks=tasks)
    assert model.theta_.shape == (3, len(model.kernel_names_))
    for t, name in enumerate(model.task_names_):
        mine = tasks == name
        alone = ParetoMKLClassifier(C=3).fit(X[mine], y[mine])
        assert_allclose(model.theta_[t], alone.theta_)
        assert_allclose(model.decision_function(X[mine], tasks=tasks[mine]), alone.decision_function(X[mine]))
        one = ParetoMKLRegressor(C=3).fit(X[mine], z[mine])
        assert_allclose(numbers.predict(X[mine], tasks=tasks[mine]), one.predict(X[mine]))


# ----------------------------------------------------------------------------------------------- the estimators
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_give_tasks_is_one_problem(toy, way, tmp_path):
    X, y, z, tasks = toy
    frame = pd.DataFrame(X, columns=list("abc")).assign(site=tasks)
    matrix = np.full((75, 3), np.nan)
    matrix[np.arange(75), np.unique(tasks, return_inverse=True)[1]] = z
    by_tasks = ParetoMKLRegressor(share=way, C=3).fit(X, z, tasks=tasks)
    by_column = ParetoMKLRegressor(share=way, C=3, task_column="site").fit(frame, z)
    by_matrix = ParetoMKLRegressor(share=way, C=3).fit(X, matrix)
    assert_allclose(by_column.predict(frame), by_tasks.predict(X, tasks=tasks))
    of_matrix = by_matrix.predict(X)
    assert of_matrix.shape == (75, 3)
    assert_allclose(of_matrix[~np.isnan(matrix)], by_tasks.predict(X, tasks=tasks)[np.argsort(tasks, kind="stable")])
    assert by_matrix.score(X, matrix) == pytest.approx(by_tasks.score(X, z, tasks=tasks))
    save_model(by_tasks, tmp_path / "model.skops")
    assert_allclose(load_model(tmp_path / "model.skops").predict(X, tasks=tasks), by_tasks.predict(X, tasks=tasks))
    labels = ParetoMKLClassifier(share=way, C=3).fit(X, y, tasks=tasks)
    assert labels.predict(X, tasks=tasks).shape == y.shape
    assert labels.gap_ <= 1e-3
    assert_array_equal(labels.classes_, ["no", "yes"])


def test_a_weight_of_two_means_the_sample_twice(toy):
    X, _, z, tasks = toy
    weight = np.ones(75)
    weight[:9], weight[30:33] = 2.0, 0.0
    rows = np.repeat(np.arange(75), weight.astype(int))
    model = ParetoMKLRegressor(share="function", C=3, kernels=BANK, tol=1e-8)
    weighted = model.fit(X, z, tasks=tasks, sample_weight=weight).predict(X, tasks=tasks)
    repeated = model.fit(X[rows], z[rows], tasks=tasks[rows]).predict(X, tasks=tasks)
    assert_allclose(weighted, repeated, rtol=1e-3, atol=1e-4)


def test_classes_have_a_common_and_an_own_part_per_pair(toy):
    X, _, z, tasks = toy
    three = np.array(["low", "middle", "high"])[np.digitize(z, [-0.5, 0.5])]
    model = ParetoMKLClassifier(share="function", C=10).fit(X, three, tasks=tasks)
    assert model.objectives_.shape == (3,)
    assert model.score(X, three, tasks=tasks) > 0.9


@pytest.mark.parametrize("way", ["function", "everything"])
def test_tasks_of_one_class_and_new_tasks(toy, way):
    X, y, _, tasks = toy
    y = y.copy()
    y[tasks == "west"] = "no"
    model = ParetoMKLClassifier(share=way, C=3).fit(X, y, tasks=tasks)
    assert model.score(X, y, tasks=tasks) > 0.7
    with pytest.warns(NewTaskWarning, match="Task 'elsewhere' was .* 5 rows"):
        assert set(model.predict(X[:5], tasks=["elsewhere"] * 5)) <= {"yes", "no"}
    with pytest.warns(NewTaskWarning, match=r"Tasks \['afar', 'beyond'\] were"):
        model.decision_function(X[:3], tasks=["beyond", "north", "afar"])
    with pytest.raises(ValueError, match="Task 'west' has only one class"):
        ParetoMKLClassifier(share="kernel").fit(X, y, tasks=tasks)


def test_a_new_task_gets_the_common_part(toy):
    X, _, z, tasks = toy
    model = ParetoMKLRegressor(share="function", C=3).fit(X, z, tasks=tasks)
    bank, data = model.model_.bank, np.column_stack([X, np.unique(tasks, return_inverse=True)[1]])
    M = bank.base.n_kernels
    theta = np.concatenate([model.theta_[:M], np.zeros(M + 1)])
    dual = np.zeros(75)
    dual[model.support_] = model.dual_coef_[0]
    f0 = bank.cross(bank.side(data), bank.side(data), theta) @ dual + model.intercept_[0]
    tasks_set = model.model_.tasks.whole
    with pytest.warns(NewTaskWarning):
        predicted = model.predict(X, tasks=["new"] * 75)
    assert_allclose(predicted, tasks_set.centre[0] + tasks_set.spread[0] * f0)
    assert 0 < model.common_share_ < 1


def test_contributions_of_common_and_own_parts_add_up(toy):
    X, _, z, tasks = toy
    model = ParetoMKLRegressor(share="function", C=3).fit(X, z, tasks=tasks)
    parts = model.contributions(X, tasks=tasks)
    assert parts.shape == (75, len(model.kernel_names_))
    assert np.ptp(model.predict(X, tasks=tasks) - parts.sum(axis=1)) < 1e-8


# ---------------------------------------------------------------------------------------------------- the search
def related(n_tasks, n_each, common, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_tasks * n_each, 4))
    tasks = np.repeat([f"t{k}" for k in range(n_tasks)], n_each)
    shared, own = rng.normal(size=4), np.repeat(rng.normal(size=(n_tasks, 4)), n_each, axis=0)
    f = common * X @ shared + (1 - common) * (X * own).sum(axis=1)
    return X, np.where(f > 0, 1, 0), f, tasks


def test_the_search_finds_out_what_tasks_share():
    found = {}
    for common in (1.0, 0.0):
        X, y, _, tasks = related(6, 24, common, seed=2)
        search = ParetoMKLClassifierCV(share=WAYS, ps=[1.0, 5.0], Cs=[1.0, 10.0], s=1.1, kernels=["linear"])
        found[common] = search.fit(X, y, tasks=tasks)
    assert found[1.0].best_share_ == "everything"
    assert found[0.0].best_share_ in ("nothing", "kernel", "function")
    assert found[0.0].sharing_["everything"][0] < found[0.0].best_score_ - 0.1
    search = found[1.0]
    assert set(search.sharing_) == set(WAYS)
    assert search.best_params_["share"] == "everything"
    assert search.best_estimator_.share == "everything"
    assert "One function serves all tasks; separate models would lose" in search.sharing_in_words_
    n_rows = len(search.cv_results_["params"])
    assert n_rows == 2 * 2 + 3 * 2  # p for the shared kernel only
    assert len(search.cv_results_["param_share"]) == n_rows


@pytest.mark.parametrize("way", WAYS)
def test_scores_of_the_search_are_those_of_plain_estimators(toy, way):
    X, _, z, tasks = toy
    folds = [(np.flatnonzero(np.arange(75) % 3 != k), np.flatnonzero(np.arange(75) % 3 == k)) for k in range(3)]
    search = ParetoMKLRegressorCV(share=[way], ps=1.0, Cs=[0.3, 3.0], s=1.1, capacity=0.5, cv=folds, tol=1e-7)
    search.fit(X, z, tasks=tasks)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        plain = ParetoMKLRegressor(share=way, C=params["C"], tol=1e-7)
        own = []
        for train, test in folds:
            predicted = plain.fit(X[train], z[train], tasks=tasks[train]).predict(X, tasks=tasks)
            own.append(explained_within_tasks(z, predicted, tasks, train, test))
        assert score == pytest.approx(np.mean(own), abs=2e-3)
    assert search.best_estimator_.share == way
    path = search.path_  # along p, whatever was chosen
    assert path.share == "kernel"
    assert path.fitted_with["C"] == search.best_params_["C"]


@pytest.mark.parametrize("way", ["kernel", "function"])
def test_columns_of_y_are_searched_like_tasks(toy, way):
    X, _, z, tasks = toy
    codes = np.unique(tasks, return_inverse=True)[1]
    matrix = np.full((75, 3), np.nan)
    matrix[np.arange(75), codes] = z
    folds = [(np.flatnonzero(np.arange(75) % 3 != k), np.flatnonzero(np.arange(75) % 3 == k)) for k in range(3)]
    given = {"share": [way], "ps": 1.0, "Cs": [0.3, 3.0], "s": 1.1, "cv": folds}
    by_tasks = ParetoMKLRegressorCV(**given).fit(X, z, tasks=tasks)
    by_matrix = ParetoMKLRegressorCV(**given).fit(X, matrix)
    assert_allclose(by_matrix.cv_results_["mean_test_score"], by_tasks.cv_results_["mean_test_score"], atol=1e-6)


def test_a_search_with_many_rows_uses_some_tasks():
    X, _, f, tasks = related(40, 10, 0.7, seed=4)
    search = ParetoMKLRegressorCV(share=WAYS, ps=1.0, Cs=[1.0], s=1.1, capacity=0.5, cv=3, max_search_rows=150)
    search.fit(X, f, tasks=tasks)
    assert search.n_search_rows_ == 150  # fifteen tasks of ten
    assert search.n_tasks_ == 40
    few = related(3, 100, 0.7, seed=4)
    search.fit(few[0], few[2], tasks=few[3])
    assert 140 <= search.n_search_rows_ <= 160  # some rows of each
    with pytest.raises(ValueError, match="max_search_rows must be a whole number"):
        ParetoMKLRegressorCV(share=WAYS, max_search_rows=0).fit(X, f, tasks=tasks)


def test_ways_that_the_data_do_not_allow_are_skipped(toy):
    X, y, _, tasks = toy
    y = y.copy()
    y[tasks == "west"] = "no"
    search = ParetoMKLClassifierCV(share=WAYS, ps=1.0, Cs=[1.0], s=1.1, cv=3)
    with pytest.warns(UserWarning, match="skips share='nothing' and 'kernel': Task 'west' has only one class"):
        search.fit(X, y, tasks=tasks)
    assert list(search.sharing_) == ["function", "everything"]
    assert search.small_tasks_  # 25 rows per task; known even without the skipped ways


# ---------------------------------------------------------------------------------------------------- the path
@pytest.mark.parametrize("machine", ["svc", "ridge"])
@pytest.mark.parametrize("way", WAYS)
def test_the_path_matches_the_estimators(toy, way, machine):
    """Along p if tasks share their kernel, else one point; certified, with preferences and weights."""
    X, y, z, tasks = toy
    targets, model = (y, ParetoMKLClassifier()) if machine == "svc" else (z, ParetoMKLRegressor())
    given = {"share": way, "s": 2.0, "tol": 1e-4}
    if way in ("nothing", "kernel"):
        given |= {"task_weight": {"north": 3.0}, "task_scale": "samples"}
    weight = np.linspace(0.5, 2.0, 75)
    path = pareto_path(
        X, targets, tasks=tasks, sample_weight=weight, machine=machine, ps=[0.5, 1.0, 4.0], C=2.0, **given
    )
    assert list(path.ps) == ([0.5, 1.0, 4.0] if way == "kernel" else [1.0])
    assert path.share == way
    assert path.gap.max() <= 1e-4
    k = list(path.ps).index(1.0)
    model.set_params(C=2.0, **given).fit(X, targets, tasks=tasks, sample_weight=weight)
    for name in ("theta", "objectives", "task_weights", "objective", "gap", "kernel_shares"):
        assert_allclose(getattr(path, name)[k], getattr(model, f"{name}_"), rtol=1e-3, atol=1e-4, err_msg=name)
    assert_allclose(path.models[k].decisions(X, tasks), model.model_.decisions(X, tasks), atol=0.02)
    if way in ("function", "everything"):
        assert path.models[0].common_share == pytest.approx(model.common_share_)
    elif way == "nothing":
        assert path.objective[0] == pytest.approx(np.array([0.6, 0.2, 0.2]) @ path.objectives[0])
        assert path.n_sweeps == model.n_sweeps_


def test_tasks_that_share_nothing_are_below_every_point_of_the_front(toy):
    """Each task is at its minimum, which no shared kernel can beat."""
    X, y, _, tasks = toy
    ideal = pareto_path(X, y, tasks=tasks, share="nothing", kernels=BANK, tol=1e-6)
    front = pareto_path(X, y, tasks=tasks, kernels=BANK, tol=1e-6)
    assert (ideal.objectives <= front.objectives * (1 + 2e-6)).all()


@pytest.mark.parametrize("way", WAYS)
def test_a_cost_for_each_sample_is_a_weight_in_a_path_too(toy, way):
    X, _, z, tasks = toy
    weight = np.linspace(0.5, 2.0, 75)
    given = {"tasks": tasks, "share": way, "machine": "ridge", "kernels": BANK, "normalize_y": False}
    one, other = pareto_path(X, z, C=weight, **given), pareto_path(X, z, sample_weight=weight, **given)
    assert_allclose(one.objectives, other.objectives, rtol=1e-6)
    assert_allclose(one.theta, other.theta, rtol=1e-6, atol=1e-9)


def test_a_path_of_precomputed_kernels_shares_nothing(toy):
    X, _, z, _ = toy
    Y = np.column_stack([z, X[:, 0] ** 2])
    X = np.stack([X @ X.T, (1 + X @ X.T) ** 2], axis=2)
    path = pareto_path(X, Y, share="nothing", machine="ridge", kernels="precomputed")
    model = ParetoMKLRegressor(share="nothing", kernels="precomputed").fit(X, Y)
    assert_allclose(path.models[0].predict(X), model.predict(X))
    with pytest.raises(ValueError, match="share='function' needs features"):
        pareto_path(X, Y, share="function", machine="ridge", kernels="precomputed")


def test_messages_name_what_a_path_cannot_share(toy, tmp_path):
    X, y, _, tasks = toy
    with pytest.raises(ValueError, match="share must be 'nothing', 'kernel', 'function' or 'everything', got 'all'"):
        pareto_path(X, y, tasks=tasks, share="all")
    with pytest.raises(ValueError, match="share='nothing' needs y, but machine='one-class' has none"):
        pareto_path(X, tasks=tasks, machine="one-class", share="nothing")
    with pytest.raises(ValueError, match="With share='function' and a matrix y, C must be one number"):
        pareto_path(X, X[:, :2] > 0, share="function", C=np.ones(75))
    path = pareto_path(X, y, tasks=tasks, share="function")
    assert "share='function', 1 point, 3 tasks" in path._repr_html_().replace("&#x27;", "'")
    with pytest.raises(ValueError, match="p has no effect with share='function'"):
        path.to_html(tmp_path / "page.html")


@pytest.mark.parametrize("way", ["nothing", "function", "everything"])
def test_one_task_makes_all_ways_of_a_path_the_same(toy, way):
    X, y, _, _ = toy
    with pytest.warns(UserWarning, match=f"only one task, so share='{way}' is the same as 'kernel'"):
        path = pareto_path(X, y, share=way, ps=[1.0, 4.0])
    assert path.share == "kernel"
    assert_allclose(path.theta, pareto_path(X, y, ps=[1.0, 4.0]).theta)


@pytest.mark.parametrize("way", ["nothing", "function", "everything"])
def test_one_task_makes_all_ways_the_same(toy, way):
    X, y, _, _ = toy
    for given in ({}, {"tasks": ["only"] * 75}):
        with pytest.warns(UserWarning, match=f"only one task, so share='{way}' is the same as 'kernel'"):
            model = ParetoMKLClassifier(share=way).fit(X, y, **given)
        assert_allclose(model.theta_, ParetoMKLClassifier().fit(X, y).theta_)


def test_a_search_of_one_task_has_one_way(toy):
    X, y, _, _ = toy
    for given in ({}, {"tasks": ["only"] * 75}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            search = ParetoMKLClassifierCV(share=WAYS, ps=1.0, Cs=[0.1, 1.0, 10.0, 100.0], cv=3).fit(X, y, **given)
        assert search.best_share_ == "kernel"
        assert search.sharing_in_words_ == "There is only one task, so all ways to share are the same."


@pytest.mark.parametrize(
    ("share", "message"),
    [("all", "share must be 'nothing', 'kernel', 'function' or 'everything', got 'all'"), (3, "got 3"), ([], "empty")],
)
def test_unknown_ways_are_named(toy, share, message):
    X, y, _, tasks = toy
    for kind in (ParetoMKLClassifier, ParetoMKLClassifierCV)[share == [] :]:
        with pytest.raises(ValueError, match=message):
            kind(share=share).fit(X, y, tasks=tasks)


def test_predict_names_a_missing_task_column(toy):
    X, y, _, tasks = toy
    for way in WAYS:
        model = ParetoMKLClassifier(share=way).fit(X, y, tasks=tasks)
        with pytest.raises(ValueError, match="fitted with tasks"):
            model.predict(X)
        frame = pd.DataFrame(X, columns=["u", "v", "w"])
        by_column = ParetoMKLClassifier(share=way, task_column="site").fit(frame.assign(site=tasks), y)
        with pytest.raises(
            ValueError, match=r"X has no column 'site' \(task_column\); its columns are \['u', 'v', 'w'\]"
        ):
            by_column.predict(frame)
    with pytest.raises(ValueError, match="Unknown task 'new'"):
        ParetoMKLClassifier().fit(X, y, tasks=tasks).predict(X, tasks=["new"] * 75)


def test_a_search_on_some_rows_keeps_two_of_each_class_of_a_task():
    """Otherwise rare classes would have one row or none, which folds refuse."""
    rng = np.random.default_rng(0)
    tasks, rare = np.repeat(np.arange(4), 100), np.arange(400) % 100 < 3
    X = rng.standard_normal((400, 2)) + 2.0 * rare[:, None]
    search = ParetoMKLClassifierCV(share=["function", "everything"], ps=1.0, Cs=[1.0], cv=2, max_search_rows=60)
    search.fit(X, rare.astype(int), tasks=tasks)
    kept = search.search_rows_
    for task in range(4):
        assert np.sum(rare[kept] & (tasks[kept] == task)) == 2
    assert len(kept) < 80


@pytest.mark.parametrize("way", ["function", "everything"])
def test_columns_with_other_labels_are_not_one_problem(way):
    X = np.random.default_rng(0).standard_normal((40, 2))
    y = np.stack([X[:, 0] > 0, (X[:, 1] > 0) + 5.0], axis=1)
    with pytest.raises(ValueError, match=r"same two labels, but they have \[0.0, 1.0, 5.0, 6.0\]"):
        ParetoMKLClassifier(share=way).fit(X, y)
    with pytest.warns(SharingWarning, match="same two labels"):
        search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], share=["kernel", way], cv=2).fit(X, y)
    assert search.predict(X).shape == (40, 2)
