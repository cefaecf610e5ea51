"""The folds of a search, fitted again at the chosen point."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressorCV

IRIS = load_iris(return_X_y=True)
TASKS = np.arange(150) % 3
SMALL = {"ps": [1.0], "Cs": [1.0, 10.0], "s": 2.0, "capacity": 0.5, "cv": 3}


@pytest.mark.parametrize("share", ["nothing", "kernel", "everything"])
def test_fold_models_are_those_of_the_chosen_parameters(share):
    X, y = IRIS
    search = ParetoMKLClassifierCV(**SMALL, share=share).fit(X, y, tasks=TASKS)
    found = search.folds_.fitted(search.best_estimator_)
    assert_array_equal(np.sort(np.concatenate([fold.test for fold in found])), np.arange(150))
    for (train, test), fold in zip(search.folds_.splits, found, strict=True):
        assert_array_equal(fold.test, test)
        again = clone(search.best_estimator_).fit(X[train], y[train], tasks=TASKS[train])
        expected = again.decision_function(X[test], tasks=TASKS[test])
        assert_allclose(fold.model.tasks.scores(fold.decided), expected, atol=1e-9)


def test_folds_cover_all_rows_where_the_search_saw_some():
    X, y = load_diabetes(return_X_y=True)
    search = ParetoMKLRegressorCV(**SMALL, max_search_rows=50).fit(X, y)
    assert search.n_search_rows_ == 50
    assert {row for _, test in search.folds_.searched for row in test} == set(search.search_rows_)
    assert_array_equal(np.sort(np.concatenate([test for _, test in search.folds_.splits])), np.arange(len(y)))


def test_only_the_training_data_are_accepted():
    X, y = IRIS[0].copy(), np.array(["a", "b", "c"], dtype=object)[IRIS[1]]
    search = ParetoMKLClassifierCV(**SMALL).fit({"left": X[:, :2], "right": X[:, 2:]}, y)
    loaded = pickle.loads(pickle.dumps(search))
    with pytest.raises(ValueError, match="leaves its training data out"):
        loaded.folds_.fitted(loaded.best_estimator_)
    folds = loaded.folds_.checked(loaded, {"left": X[:, :2], "right": X[:, 2:]}, y.tolist())
    (one, *_), (same, *_) = folds.fitted(loaded.best_estimator_), search.folds_.fitted(search.best_estimator_)
    assert_array_equal(one.decided.values, same.decided.values)
    with pytest.raises(ValueError, match="not the training data"):
        loaded.folds_.checked(loaded, {"left": X[::-1, :2], "right": X[:, 2:]}, y)
    with pytest.raises(ValueError, match="not the training data"):
        loaded.folds_.checked(loaded, {"left": X[:, :2], "right": X[:, 2:]}, y[::-1])


def test_sparse_training_data_are_recognised():
    X, y = IRIS
    given = {"left": csr_array(X[:, :2]), "right": X[:, 2:]}
    search = ParetoMKLClassifierCV(**SMALL).fit(given, y)
    search.folds_.checked(search, {"left": csr_array(X[:, :2]), "right": X[:, 2:]}, y)
    with pytest.raises(ValueError, match="not the training data"):
        search.folds_.checked(search, {"left": csr_array(X[::-1, :2]), "right": X[:, 2:]}, y)


def test_arrays_that_change_after_the_fit_are_noticed():
    X, y = IRIS[0].copy(), IRIS[1]
    search = ParetoMKLClassifierCV(**SMALL).fit(X, y)
    X[0, 0] += 1.0
    with pytest.raises(ValueError, match="changed since"):
        search.folds_.fitted(search.best_estimator_)
