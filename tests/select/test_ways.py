"""Which ways to share a search tries by itself, and what it has when it is done."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressorCV, load_model, pareto_path, save_model
from paretomkl._select.choice import choose_way
from paretomkl._select.splits import make_splits
from paretomkl.exceptions import SharingWarning
from paretomkl.model_selection import make_multitask_scorer
from paretomkl.scalarizations import PowerMean
from paretomkl.weight_sets import LsBall

WAYS = ["nothing", "kernel", "function", "everything"]
QUICK = {"ps": [0.5, 1.0], "Cs": [1.0, 10.0], "s": 1.1, "capacity": 0.5, "cv": 3, "kernels": ["linear", "rbf"]}


@pytest.fixture(scope="module")
def sites():
    """Three sites of forty rows that share one function."""
    rng = np.random.default_rng(1)
    X, tasks = rng.normal(size=(120, 3)), np.repeat(["a", "b", "c"], 40)
    number = X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=120)
    return X, np.where(number > 0, "yes", "no"), number, tasks


@pytest.fixture(scope="module")
def search(sites):
    X, y, _, tasks = sites
    return ParetoMKLClassifierCV(**QUICK).fit(X, y, tasks=tasks)


def test_tasks_are_searched_in_all_ways(sites, search):
    """As if the ways were named; the chosen one is that with the folds on its side."""
    X, y, _, tasks = sites
    named = ParetoMKLClassifierCV(share=WAYS, **QUICK).fit(X, y, tasks=tasks)
    assert list(search.sharing_) == WAYS
    assert search.best_params_ == named.best_params_
    assert search.best_params_["share"] == search.best_share_ == named.best_share_
    assert_array_equal(search.decision_function(X, tasks=tasks), named.decision_function(X, tasks=tasks))


def test_columns_of_y_are_tasks_too(sites):
    X, y, _, tasks = sites
    columns = np.column_stack([np.where(tasks == site, y, None) for site in "abc"])
    assert set(ParetoMKLClassifierCV(**QUICK).fit(X, columns).sharing_) == set(WAYS)


def test_without_tasks_nothing_changes(sites):
    X, y, _, _ = sites
    usual = ParetoMKLClassifierCV(share="kernel", **QUICK).fit(X, y)
    ours = ParetoMKLClassifierCV(**QUICK).fit(X, y)
    assert ours.best_share_ == "kernel"
    assert ours.best_params_ == usual.best_params_
    assert "share" not in ours.best_params_
    assert_array_equal(ours.cv_results_["mean_test_score"], usual.cv_results_["mean_test_score"])
    assert_array_equal(ours.decision_function(X), usual.decision_function(X))


@pytest.mark.parametrize(
    ("given", "tried"),
    [
        ({"task_weight": {"a": 2.0}}, ["kernel"]),
        ({"scalarization": PowerMean(1.0)}, ["kernel"]),
        ({"weight_set": LsBall(1.1)}, ["nothing", "kernel"]),
        ({"max_search_rows": 100}, ["nothing", "kernel"]),
    ],
    ids=str,
)
def test_ways_that_other_parameters_exclude_are_not_tried(sites, given, tried):
    X, y, _, tasks = sites
    search = ParetoMKLClassifierCV(**QUICK | {"ps": 1.0, "Cs": 1.0} | given).fit(X, y, tasks=tasks)
    assert list(search.sharing_) == tried


def test_many_small_tasks_are_not_learned_separately(sites):
    X, y, _, _ = sites
    search = ParetoMKLClassifierCV(**QUICK | {"ps": 1.0, "Cs": 1.0}).fit(X, y, tasks=np.arange(120) % 6)
    assert set(search.sharing_) == {"kernel", "function", "everything"}


# ------------------------------------------------------------------------------------------ tasks that are too small
@pytest.fixture(scope="module")
def uneven(sites):
    """Site a has one class, and site b one sample of a class."""
    X, y, number, tasks = sites
    y = y.copy()
    y[tasks == "a"] = "yes"
    lone = np.flatnonzero(tasks == "b")
    y[lone] = "no"
    y[lone[0]] = "yes"
    return X, y, number, tasks


@pytest.mark.parametrize("site", ["a", "b"])
@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0)], ids=str)
def test_a_task_that_is_too_small_rules_out_only_the_ways_that_need_more(uneven, site, cv):
    X, y, _, tasks = uneven
    kept = np.isin(tasks, [site, "c"])
    search = ParetoMKLClassifierCV(**QUICK | {"ps": 1.0, "cv": cv}, error_score="raise")
    with pytest.warns(SharingWarning, match=f"skips share='nothing' and 'kernel': Task '{site}'") as found:
        search.fit(X[kept], y[kept], tasks=tasks[kept])
    assert set(search.sharing_) == {"function", "everything"}
    about = next(one.message for one in found if isinstance(one.message, SharingWarning))
    assert (about.ways, about.task) == (("nothing", "kernel"), site)
    with pytest.raises(ValueError, match=f"'{site}'"):
        clone(search).set_params(share="kernel").fit(X[kept], y[kept], tasks=tasks[kept])


def test_folds_for_all_tasks_together_spread_every_label(uneven):
    """Evenly, whatever the task; and they are the usual folds where these exist."""
    X, y, _, tasks = uneven
    parts = [test for _, test in make_splits(4, X, y, tasks, together=True)]
    for label in ("yes", "no"):
        counts = [(y[test] == label).sum() for test in parts]
        assert max(counts) - min(counts) <= 1
    kept = tasks != "b"
    usual, ours = (make_splits(4, X[kept], y[kept], tasks[kept], together=one) for one in (False, True))
    assert all((a[1] == b[1]).all() for a, b in zip(usual, ours, strict=True))


def test_a_short_regression_task_rules_out_only_the_ways_that_need_more(sites):
    X, _, number, tasks = sites
    kept = np.r_[0, 40:120]
    search = ParetoMKLRegressorCV(**QUICK | {"ps": 1.0})
    with pytest.warns(SharingWarning, match="Task 'a' has only one sample"):
        search.fit(X[kept], number[kept], tasks=tasks[kept])
    assert set(search.sharing_) == {"function", "everything"}


# ----------------------------------------------------------------------------------------------- folds without tasks
@pytest.mark.parametrize("scoring", [None, make_multitask_scorer("balanced_accuracy")], ids=["own", "scorer"])
def test_folds_may_leave_tasks_out(sites, scoring):
    X, y, _, tasks = sites
    search = ParetoMKLClassifierCV(**QUICK | {"ps": 1.0, "cv": GroupKFold(3)}, scoring=scoring)
    with pytest.warns(SharingWarning, match="the folds leave tasks out"):
        search.fit(X, y, tasks=tasks, groups=tasks)
    assert set(search.sharing_) == {"function", "everything"}
    assert search.best_score_ > 0.8


# ----------------------------------------------------------------------------------------------------------- the path
def test_the_path_is_there_whatever_was_chosen(sites, search):
    """It is that of a shared kernel at its own best C; a copy has it too."""
    X, y, _, tasks = sites
    assert search.best_share_ != "kernel"
    at = search.cv_results_["params"][search.best_indices_["kernel"]]
    path = search.path_
    again = pickle.loads(pickle.dumps(search))
    assert path.ps.tolist() == [0.5, 1.0]
    cold = pareto_path(
        X, y, tasks=tasks, ps=[0.5, 1.0], C=at["C"], kernels=search.path_.reader.kernels, s=1.1, tol=search.tol
    )
    assert_allclose(path.objective, cold.objective, rtol=2e-3)
    assert search.path_ is path  # traced once
    assert_allclose(again.path_.theta, path.theta)
    assert not hasattr(clone(search), "path_")


def test_a_saved_search_does_not_contain_its_training_data(sites, tmp_path):
    pytest.importorskip("skops")
    X, y, _, tasks = sites
    search = ParetoMKLClassifierCV(**QUICK | {"ps": 1.0, "Cs": 1.0, "share": "everything"}).fit(X, y, tasks=tasks)
    save_model(search, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert_array_equal(loaded.predict(X, tasks=tasks), search.predict(X, tasks=tasks))
    with pytest.raises(AttributeError, match="leaves its training data out"):
        loaded.path_  # noqa: B018
    assert len(search.path_) == 1


def test_tasks_without_a_path_say_why(uneven):
    X, y, _, tasks = uneven
    search = ParetoMKLClassifierCV(**QUICK | {"ps": 1.0, "Cs": 1.0})
    with pytest.warns(SharingWarning):
        search.fit(X, y, tasks=tasks)
    with pytest.raises(AttributeError, match="no path_ of a shared kernel: Task 'a' has only one class"):
        search.path_  # noqa: B018


# ----------------------------------------------------------------------------------------------------------- the rule
@pytest.mark.parametrize(
    ("behind", "small", "chosen"),
    [
        ([0.02, 0.0, 0.01, 0.01], True, "kernel"),  # by 2.4 standard errors
        ([0.03, -0.02, 0.02, -0.01], True, "everything"),  # by 0.4
        ([0.03, -0.02, 0.02, 0.0], True, "kernel"),  # by 0.7
        ([0.03, -0.02, 0.02, -0.01], False, "kernel"),
    ],
)
def test_small_tasks_share_more_if_the_folds_hardly_object(behind, small, chosen):
    kernel = np.array([0.8, 0.9, 0.7, 0.8])
    assert choose_way({"kernel": kernel, "everything": kernel - behind}, small) == chosen
