"""The permutation test of a search."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressorCV
from paretomkl._select.held_out import held_out_by_task
from paretomkl._select.permutation import p_value, shuffler
from tests.select.test_compare import three_sites
from tests.select.test_groups import visits

QUICK = {"ps": 1.0, "Cs": [1.0, 10.0], "s": 1.1, "capacity": 0.5, "kernels": ["linear"], "cv": 3}


def test_p_values_of_exchangeable_scores_are_valid():
    """P(p ≤ a) ≤ a, with ties, and with equality for a = k / (n + 1) without."""
    rng = np.random.default_rng(0)
    for scores in (rng.normal(size=(20_000, 20)), rng.integers(4, size=(20_000, 20)).astype(float)):
        ps = np.array([p_value(own[0], own[1:]) for own in scores])
        for a in (0.05, 0.1, 0.5):
            assert np.mean(ps <= a) <= a + 0.008
    ps = [p_value(own[0], own[1:]) for own in rng.normal(size=(20_000, 20))]
    assert np.mean(np.array(ps) <= 0.25) == pytest.approx(0.25, abs=0.01)
    assert p_value(1.0, [0.0, np.nan, 1.0, np.inf]) == 4 / 5
    assert np.isnan(p_value(np.nan, [1.0]))


def test_labels_are_exchanged_within_tasks():
    """Every order of the rows of a task is equally likely."""
    sites, y = np.array(list("aababb")), np.arange(6)
    shuffle, rng = shuffler(y, sites, None), np.random.default_rng(0)
    orders = Counter(tuple(shuffle(rng).tolist()) for _ in range(3600))
    assert len(orders) == 36
    assert max(orders.values()) < 160
    for order in orders:
        assert_array_equal(sites[list(order)], sites)


def test_groups_of_one_label_exchange_it():
    _, y, sites, patient = visits(20)
    shuffle, changed = shuffler(y, sites, patient), 0
    for seed in range(20):
        permuted = y[shuffle(np.random.default_rng(seed))]
        assert all(len(set(permuted[patient == k])) == 1 for k in range(20))
        for site in "01":  # as many patients of each class, whatever their numbers of rows
            of_patient = [
                next(iter(own[(patient == k) & (sites == site)]))
                for own in (y, permuted)
                for k in np.unique(patient[sites == site])
            ]
            n = len(of_patient) // 2
            assert sum(of_patient[:n]) == sum(of_patient[n:])
        changed += (permuted != y).any()
    assert changed > 15


def test_groups_of_several_labels_exchange_all_of_them():
    patient, y = np.repeat(np.arange(9), [2, 2, 2, 3, 3, 3, 4, 4, 5]), np.arange(28)
    for seed in range(10):
        order = shuffler(y, None, patient)(np.random.default_rng(seed))
        assert_array_equal(np.sort(order), np.arange(28))
        for k in range(9):
            theirs = patient[order[patient == k]]
            assert len(set(theirs)) == 1
            assert np.sum(patient == theirs[0]) == np.sum(patient == k)


def test_rows_of_a_matrix_are_exchanged_as_a_whole():
    rng = np.random.default_rng(0)
    Y = np.where(rng.uniform(size=(40, 2)) < 0.3, np.nan, rng.integers(2, size=(40, 2)))
    permuted = Y[shuffler(Y, None, None)(rng)]
    assert_array_equal(np.isnan(permuted), np.isnan(Y))
    assert not np.array_equal(permuted, Y, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
def test_the_test_finds_what_is_there():
    """One task that can be learned and one that cannot; the scores are those of searches by hand."""
    rng = np.random.default_rng(1)
    X, tasks = rng.normal(size=(80, 4)), np.repeat(["noise", "signal"], 40)
    y = np.where(tasks == "signal", X[:, 0] > 0, rng.permutation(np.arange(80) % 2)).astype(int)
    search = ParetoMKLClassifierCV(**QUICK, n_permutations=19).fit(X, y, tasks=tasks)
    assert search.p_value_ == 0.05
    assert search.p_values_by_task_["signal"] == 0.05
    assert search.p_values_by_task_["noise"] > 0.1
    assert len(search.permutation_scores_) == 19
    again = clone(search).set_params(n_jobs=2).fit(X, y, tasks=tasks)
    assert_array_equal(again.permutation_scores_, search.permutation_scores_)
    by_hand = y[shuffler(y, tasks, None)(np.random.default_rng([0, 0]))]
    one = clone(search).set_params(n_permutations=0).fit(X, by_hand, tasks=tasks)
    assert one.honest_score_ == pytest.approx(search.permutation_scores_[0])
    assert not hasattr(one, "p_value_")
    assert "p = 0.05" in search._repr_html_()


@pytest.mark.filterwarnings("ignore")
def test_noise_is_not_significant():
    """On 24 data sets, the number of p-values up to 0.2 is at most what is likely."""
    significant = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(24, 3)), rng.permutation(np.arange(24) % 2)
        tiny = QUICK | {"Cs": 1.0, "cv": 2, "n_permutations": 4, "random_state": seed}
        significant += ParetoMKLClassifierCV(**tiny).fit(X, y).p_value_ <= 0.2
    assert significant <= 10  # the chance of more is 0.6 % at worst


@pytest.mark.filterwarnings("ignore")
def test_rows_of_a_patient_are_not_evidence():
    """Copies of rows make any label learnable, unless the folds and the test keep them together."""
    X, _, _, patient = visits(24, seed=3)
    y = np.random.default_rng(5).permutation(np.arange(24) % 2)[patient]
    gaussian = QUICK | {"kernels": ["gaussian"], "Cs": 10.0, "n_permutations": 9}
    assert ParetoMKLClassifierCV(**gaussian).fit(X, y).p_value_ == 0.1
    assert ParetoMKLClassifierCV(**gaussian).fit(X, y, groups=patient).p_value_ > 0.1


@pytest.mark.filterwarnings("ignore")
def test_regressions_and_columns():
    X, _, sites = three_sites(60)
    search = ParetoMKLRegressorCV(**QUICK, n_permutations=9).fit(X, X[:, 0] + X[:, 1], tasks=sites)
    assert search.p_value_ == 0.1
    assert set(search.p_values_by_task_) == set("abc")
    Y = np.stack([X[:, 0] > 0, X[:, 1] > 0], axis=1).astype(float)
    assert ParetoMKLClassifierCV(**QUICK, n_permutations=9).fit(X, Y).p_values_by_task_ == {"0": 0.1, "1": 0.1}


def test_scores_of_tasks_come_from_held_out_rows():
    X, y, sites = three_sites(90)
    search = ParetoMKLClassifierCV(**QUICK).fit(X, y, tasks=sites)
    table = held_out_by_task(search, X, y, tasks=sites)
    assert table.rows.sum() == 90
    right = np.zeros(90)
    for train, test in search.splits_:
        plain = search.estimator_at(search.best_index_).fit(X[train], y[train], tasks=sites[train])
        right[test] = plain.predict(X[test], tasks=sites[test]) == y[test]
    assert np.abs(table.pooled.score - right.mean()) < 0.05  # the other folds may choose another C
    assert table.pooled.low < table.pooled.score < table.pooled.high


@pytest.mark.parametrize("n", [-1, 2.5, True])
def test_bad_numbers_of_permutations_are_refused(n):
    with pytest.raises(ValueError, match="n_permutations must be a whole number"):
        ParetoMKLClassifierCV(n_permutations=n).fit(np.zeros((4, 1)), [0, 1, 0, 1])
