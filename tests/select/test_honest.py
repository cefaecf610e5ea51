"""The score of a search whose folds are judged at points that the other folds choose, and intervals of scores."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, t
from sklearn.exceptions import NotFittedError

from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressorCV
from paretomkl._select.honest import honest_points
from paretomkl._select.intervals import Estimate, combined, of_folds, wilson
from paretomkl.report import compare
from tests.select.test_compare import priced_sites, three_sites

QUICK = {
    "ps": [1.0, 10.0],
    "Cs": [0.1, 1.0, 10.0],
    "s": 1.1,
    "capacity": 0.5,
    "kernels": ["linear", "gaussian"],
    "cv": 4,
}


@pytest.fixture(scope="module")
def sites():
    X, y, names = three_sites()
    return ParetoMKLClassifierCV(**QUICK, loss="squared").fit(X, y, tasks=names), (X, y, names)


def test_the_honest_score_is_that_of_a_comparison(sites):
    search, (X, y, names) = sites
    ours = compare(search, X, y, tasks=names).ours
    assert_allclose(search.honest_scores_, ours.folds)
    assert search.honest_score_ == pytest.approx(ours.mean)
    assert search.honest_score_ <= search.best_score_ + 0.05
    low, high = search.honest_interval_
    assert low < search.honest_score_ < high <= 1
    shown = f"Accuracy {100 * search.honest_score_:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f})"
    assert shown in search._repr_html_()


def test_a_fold_has_no_say_in_its_own_parameters(sites):
    """Neither by its scores nor by its losses, which decide for least squares."""
    search, _ = sites
    changed, rng = deepcopy(search), np.random.default_rng(0)
    points = honest_points(search)
    for k in range(4):
        results = dict(search.cv_results_)
        for name in (f"split{k}_test_score", f"split{k}_test_squared_error"):
            results[name] = rng.uniform(size=len(results[name]))
        changed.cv_results_ = results
        assert honest_points(changed)[k] == points[k]
    losses = [search.cv_results_[f"split{k}_test_squared_error"] for k in range(4)]
    assert_allclose(np.mean(losses, axis=0), search.cv_results_["mean_test_squared_error"])


def test_noise_has_no_honest_score():
    """The best of many scores is above chance on noise, and the honest one is not."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 10)), np.arange(40) % 2
        search = ParetoMKLClassifierCV(
            ps=1.0, Cs=np.geomspace(0.01, 100, 9), kernels=["linear", "gaussian"], random_state=seed
        ).choose({"X": X, "y": y}, refit=())
        found.append((search.best_score_, search.honest_score_))
    best, honest = np.mean(found, axis=0)
    assert best > 0.5
    assert honest < 0.5 + 0.03 < best + 0.03


def test_searches_keep_their_honest_score():
    X, y, names = priced_sites()
    search = ParetoMKLRegressorCV(**QUICK)
    with pytest.raises(NotFittedError):
        search.honest_score_  # noqa: B018
    assert "interval" not in search._repr_html_()
    search.fit(X, y, tasks=names)
    again = pickle.loads(pickle.dumps(search))
    assert again.honest_interval_ == search.honest_interval_
    scores, n = search.honest_scores_, 4
    half = t.ppf(0.975, n - 1) * scores.std(ddof=1) / np.sqrt(n)
    assert_allclose(search.honest_interval_, [scores.mean() - half, min(1.0, scores.mean() + half)])
    one = ParetoMKLRegressorCV(**QUICK | {"cv": [(np.arange(60), np.arange(60, 90))]}).fit(X, y)
    assert np.isnan(one.honest_interval_).all()
    assert np.isfinite(one.honest_score_)
    with pytest.raises(ValueError, match="The search was fitted to 90 rows, but X has 60"):
        compare(one, X[:60], y[:60])


# ------------------------------------------------------------------------------------------------- intervals
@pytest.mark.parametrize(("right", "n"), [(0, 7), (3, 7), (7, 7), (91, 100), (100, 100)])
def test_ends_of_wilsons_interval_are_shares_that_could_have_given_the_score(right, n):
    low, high = wilson(right / n, n)
    z = norm.ppf(0.975)
    for end in {low, high} - {0.0, 1.0}:
        assert abs(right / n - end) == pytest.approx(z * np.sqrt(end * (1 - end) / n))
    assert (low == 0) == (right == 0)
    assert (high == 1) == (right == n)


def test_wilsons_interval_covers():
    """Of 30 rows, for shares up to the border, where mean ± error has no width."""
    rng = np.random.default_rng(0)
    for share in (0.5, 0.8, 0.95, 0.99):
        low, high = wilson(rng.binomial(30, share, 4000) / 30, 30)
        assert np.mean((low <= share) & (share <= high)) > 0.92
    assert np.isnan(wilson(np.nan, 0)).all()


def test_folds_without_errors_still_have_an_interval():
    found = of_folds(np.ones(5), n_rows=50)
    assert found == (1.0, pytest.approx(wilson(1.0, 50)[0]), 1.0)
    scattered = of_folds(np.array([1.0, 0.7, 1.0, 0.7]), n_rows=1000)
    assert scattered.low < 0.7  # the scatter of the folds says more than the number of rows
    assert scattered.high < 1
    assert of_folds(np.array([0.5, np.nan])) == (
        0.5,
        pytest.approx(np.nan, nan_ok=True),
        pytest.approx(np.nan, nan_ok=True),
    )


def test_means_of_scores_have_the_interval_of_their_parts():
    parts = [Estimate(0.9, 0.8, 0.95), Estimate(1.0, 0.9, 1.0), Estimate(np.nan)]
    mean = combined(parts, np.ones(3))
    assert mean == pytest.approx((0.95, 0.95 - np.hypot(0.05, 0.05), 0.95 + 0.025))
    assert np.isnan(combined(parts[2:], np.ones(1))).all()
    exact = combined([Estimate(v, v - 1.959964 * 0.2, v + 1.959964 * 0.2) for v in (0.0, 1.0)], np.ones(2))
    assert exact.high - exact.score == pytest.approx(1.959964 * 0.2 / np.sqrt(2))  # as of normal scores
