"""Folds that leave tasks out, and folds in the order of time."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GroupKFold

from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressorCV
from paretomkl._select.splits import make_splits

WAYS = ["nothing", "kernel", "function", "everything"]


@pytest.fixture(scope="module")
def machines():
    """Six machines that share a function and differ in their level."""
    rng = np.random.default_rng(0)
    X, tasks = rng.normal(size=(120, 2)), np.repeat(list("abcdef"), 20)
    return X, X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.1 * rng.normal(size=120), tasks


@pytest.mark.parametrize("cv", ["new tasks", GroupKFold(3)])
def test_a_search_scores_tasks_that_it_has_not_seen(machines, cv):
    X, y, tasks = machines
    folds = cv if isinstance(cv, str) else list(cv.split(X, y, tasks))
    search = ParetoMKLRegressorCV(share=WAYS, cv=folds, ps=1, Cs=[1.0, 10.0])
    with pytest.warns(UserWarning, match="skips share='nothing' and 'kernel': the folds leave tasks out"):
        search.fit(X, y, tasks=tasks)
    assert set(search.sharing_) == {"function", "everything"}
    assert 0.8 < search.best_score_ < 1
    labels = np.where(y > np.median(y), "high", "low")
    classes = ParetoMKLClassifierCV(share="everything", cv=folds, Cs=[1.0, 10.0]).fit(X, labels, tasks=tasks)
    assert classes.best_score_ > 0.8


def test_a_shared_kernel_cannot_be_judged_on_new_tasks(machines):
    X, y, tasks = machines
    with pytest.raises(ValueError, match="share='kernel' cannot be searched: the folds leave tasks out"):
        ParetoMKLRegressorCV(share="kernel", cv="new tasks", ps=1).fit(X, y, tasks=tasks)


def test_folds_in_time_learn_only_from_earlier_rows(machines):
    X, y, tasks = machines
    splits = make_splits("time", X, y, tasks, stratify=False)
    for train, test in splits:
        for task in "abcdef":
            assert train[tasks[train] == task].max() < test[tasks[test] == task].min()
    assert_array_equal(
        np.unique(np.concatenate([test for _, test in splits])) % 20 // 4, np.tile(np.repeat([2, 3, 4], 4), 6)
    )
    assert ParetoMKLRegressorCV(cv="time", ps=1, Cs=[1.0, 10.0]).fit(X, y, tasks=tasks).n_splits_ == 3


@pytest.mark.parametrize(
    ("cv", "tasks", "said"),
    [
        ("new tasks", None, "it needs the task of each row"),
        ("time", np.repeat([0, 1], [113, 7]), "one has 7"),
        ("random", None, "'new tasks' or 'time', got 'random'"),
    ],
)
def test_folds_that_cannot_be_made_are_explained(machines, cv, tasks, said):
    X, y, _ = machines
    with pytest.raises(ValueError, match=said):
        ParetoMKLRegressorCV(share="everything", cv=cv, ps=1).fit(X, y, tasks=tasks)
