"""Groups of rows, such as the rows of a patient, that folds keep together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, cross_validate

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressorCV
from paretomkl._select.splits import make_splits
from paretomkl.model_selection import MultiTaskGroupKFold, MultiTaskStratifiedGroupKFold, MultiTaskStratifiedKFold

QUICK = {"ps": 1.0, "Cs": [1.0, 10.0], "s": 1.1, "capacity": 0.5, "kernels": ["linear"], "cv": 3}


def visits(n_patients=30, seed=0):
    """Patients of two sites with one to five visits each; all visits have the label of the patient, and look alike."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), rng.integers(1, 6, n_patients))
    label, site = rng.permutation(n_patients) % 2, rng.permutation(n_patients) // (n_patients // 2)
    own = rng.normal(size=(n_patients, 6)) + 0.5 * label[:, None]
    X = own[patient] + 0.01 * rng.normal(size=(len(patient), 6))
    return X, label[patient], site[patient].astype(str), patient


def apart(splits, groups):
    return all(not set(groups[train]) & set(groups[test]) for train, test in splits)


@pytest.mark.parametrize("with_tasks", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_groups_stay_together_and_cells_are_spread(shuffle, with_tasks):
    """As evenly as scikit-learn's folds do, which know no tasks, and each row is held out once."""
    for seed in range(5):
        X, y, sites, patient = visits(60, seed)
        state = seed if shuffle else None
        folds = MultiTaskStratifiedGroupKFold(4, shuffle=shuffle, random_state=state)
        splits = list(folds.split(X, y, patient, sites if with_tasks else None))
        assert apart(splits, patient)
        assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(len(y)))
        cells = np.unique(np.column_stack([y, sites if with_tasks else y]), axis=0, return_inverse=True)[1].ravel()

        def uneven(splits, cells=cells):
            counts = np.array([np.bincount(cells[test], minlength=cells.max() + 1) for _, test in splits])
            return np.sum((counts / counts.sum(axis=0)) ** 2)

        theirs = StratifiedGroupKFold(4).split(X, cells, patient)
        assert uneven(splits) <= uneven(list(theirs)) + 0.02


def test_folds_of_a_regression_spread_tasks():
    X, _, sites, patient = visits(40)
    splits = list(MultiTaskGroupKFold(4, shuffle=True, random_state=0).split(X, None, patient, sites))
    assert apart(splits, patient)
    shares = [[np.mean(sites[test] == site) for site in "01"] for _, test in splits]
    assert np.ptp(shares, axis=0).max() < 0.15


def test_groups_of_one_row_are_rows():
    """Then the sizes of cells differ by at most one between folds, as without groups."""
    X, y, sites, _ = visits(40)
    rows = np.arange(len(y))
    for _, test in MultiTaskStratifiedGroupKFold(3).split(X, y, rows, sites):
        for site in "01":
            for label in (0, 1):
                cell = (sites == site) & (y == label)
                assert abs(cell[test].sum() - cell.sum() / 3) < 1


def test_scikit_learn_takes_the_folds():
    X, y, _, patient = visits()
    scores = cross_validate(ParetoMKLClassifier(), X, y, groups=patient, cv=MultiTaskStratifiedGroupKFold(3))
    assert len(scores["test_score"]) == 3


@pytest.mark.parametrize("cv", [None, 3, GroupKFold(3), MultiTaskStratifiedGroupKFold(3)], ids=str)
def test_searches_keep_groups_together(cv):
    """Rows of a patient are nearly the same, so folds that divide patients are too optimistic."""
    X, y, sites, patient = visits()
    search = ParetoMKLClassifierCV(**QUICK | {"cv": cv, "kernels": ["gaussian"]}).fit(X, y, tasks=sites, groups=patient)
    assert len(search.splits_) == search.n_splits_
    assert apart(search.splits_, patient)
    assert_array_equal(np.unique(np.column_stack([search.groups_, patient]), axis=0)[:, 1], np.unique(patient))
    divided = clone(search).set_params(cv=3).fit(X, y, tasks=sites)
    assert divided.groups_ is None
    assert divided.best_score_ > search.best_score_ + 0.1


def test_regressions_keep_groups_together():
    X, _, sites, patient = visits(40)
    names = np.array([f"patient {k}" for k in patient])
    y = X @ np.arange(6.0)
    search = ParetoMKLRegressorCV(**QUICK).fit(X, y, tasks=sites, groups=names)
    assert apart(search.splits_, patient)
    some = ParetoMKLRegressorCV(**QUICK | {"max_search_rows": 60}).fit(X, y, groups=names)
    assert len(some.search_rows_) == sum(len(test) for _, test in some.splits_) < len(y)
    assert apart(some.splits_, patient)
    assert set(np.concatenate([test for _, test in some.splits_])) == set(some.search_rows_)


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (KFold(3), "cv=KFold has rows of group 'p0' both in a training set and in its test set"),
        (StratifiedKFold(3), "cv=StratifiedKFold has rows of group 'p0' both"),
        (MultiTaskStratifiedKFold(3), "The folds of MultiTaskStratifiedKFold do not keep groups together"),
        ("time", "cv='time' has rows of group 'p0' both"),
        ([(np.arange(0, 90), np.arange(90, 180))], "cv=list has rows of group 'p0' both"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_folds_that_divide_groups_are_refused(cv, words):
    X, y, groups = np.zeros((180, 2)), np.tile([0, 1, 1], 60), np.array([f"p{k}" for k in np.arange(180) % 37])
    with pytest.raises(ValueError, match=words):
        make_splits(cv, X, y, None, groups)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.arange(5), "inconsistent numbers of samples"),
        (np.where(np.arange(60) < 3, np.nan, np.arange(60)), "groups"),
        (np.arange(60) // 30, "There are only 2 groups for 3 folds"),
        (np.arange(60) * (np.arange(60) % 2), "All samples with label 0 .* fall into one fold"),
    ],
)
def test_bad_groups_are_refused(groups, words):
    X, y = np.arange(120.0).reshape(60, 2), np.arange(60) % 2
    with pytest.raises(ValueError, match=words):
        make_splits(3, X, y, None, groups)


def test_splitters_need_groups():
    with pytest.raises(ValueError, match="MultiTaskGroupKFold needs the group of each row; pass groups="):
        list(MultiTaskGroupKFold(2).split(np.zeros((4, 1))))
