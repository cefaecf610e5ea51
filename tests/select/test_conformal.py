"""Sets and intervals: the definition of CV+ by hand, and their coverage."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import KFold, StratifiedKFold

from paretomkl import (
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLRegressor,
    ParetoMKLRegressorCV,
    load_model,
    save_model,
)
from paretomkl.exceptions import NewTaskWarning, UnlikeTrainingWarning

ONE_POINT = {"ps": 1.0, "Cs": 1.0, "s": 2.0, "capacity": 0.5}


def diabetes(n=100):
    X, y = load_diabetes(return_X_y=True)
    return X[:n], y[:n], X[n : n + 60], y[n : n + 60]


def test_intervals_are_those_of_cv_plus():
    X, y, new, _ = diabetes()
    folds = list(KFold(4).split(X))
    search = ParetoMKLRegressorCV(**ONE_POINT, cv=folds).fit(X, y)
    low, high = [], []
    for train, test in folds:
        model = clone(search.best_estimator_).fit(X[train], y[train])
        errors = np.abs(y[test] - model.predict(X[test]))
        low += [model.predict(new) - error for error in errors]
        high += [model.predict(new) + error for error in errors]
    k = 20  # of n + 1 = 101 values, 20.2 lie below the lower end
    expected = np.stack([np.sort(low, axis=0)[k - 1], np.sort(high, axis=0)[-k]], axis=1)
    assert_allclose(search.predict_interval(new, coverage=0.8), expected, rtol=1e-6)
    assert np.isinf(search.predict_interval(new, coverage=0.995)).all()


def test_sets_hold_the_classes_that_are_not_too_improbable():
    X, y = load_wine(return_X_y=True)
    X, new, y = X[::2, :3], X[1::2, :3], y[::2]
    folds = list(StratifiedKFold(3).split(X, y))
    search = ParetoMKLClassifierCV(**ONE_POINT, cv=folds).fit(X, y)
    stranger = np.zeros((len(new), 3))
    for train, test in folds:
        model = clone(search.best_estimator_).fit(X[train], y[train])
        model.calibration_ = search.calibration_
        own, asked = (1 - model.predict_proba(samples) for samples in (X[test], new))
        stranger += (own[np.arange(len(test)), y[test]][:, None, None] < asked).sum(axis=0)
    expected = stranger < 0.9 * (len(X) + 1)
    expected[np.arange(len(new)), search.predict(new)] = True
    assert_array_equal(search.predict_set(new), expected)


def test_rows_that_fit_has_not_seen_give_split_conformal_intervals():
    X, y, new, _ = diabetes()
    search = ParetoMKLRegressorCV(**ONE_POINT, cv=3).fit(X[:50], y[:50])
    errors = np.sort(np.abs(y[50:] - search.predict(X[50:])))
    expected = search.predict(new)[:, None] + errors[int(np.ceil(0.9 * 51)) - 1] * np.array([-1, 1])
    assert_allclose(search.predict_interval(new, held_out=(X[50:], y[50:])), expected)


def noisy(rng, n, tasks=3):
    X, task = rng.normal(size=(n, 4)), rng.integers(tasks, size=n)
    return X, np.sin(X[:, 0]) + X[:, 1] + (1 + 3 * task) * rng.normal(size=n), np.array(["a", "b", "c", "d"])[task]


def covered(intervals, y):
    return (intervals[..., 0] <= y) & (y <= intervals[..., 1])


@pytest.mark.parametrize(("n", "share"), [(240, "kernel"), (240, "everything"), (90, "kernel")])
def test_every_task_is_covered_at_its_own_noise(n, share):
    hit, width = np.zeros((2, 6, 3))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        (X, y, tasks), (new, truth, asked) = noisy(rng, n), noisy(rng, 600)
        intervals = (
            ParetoMKLRegressorCV(**ONE_POINT, cv=3, share=share)
            .fit(X, y, tasks=tasks)
            .predict_interval(new, tasks=asked)
        )
        for t, task in enumerate("abc"):
            hit[seed, t] = covered(intervals, truth)[asked == task].mean()
            width[seed, t] = np.diff(intervals[asked == task]).mean()
    assert_allclose(hit.mean(axis=0), 0.9, atol=0.07)
    assert (width[:, 2] > 2 * width[:, 0]).all()


def test_coverage_on_average_over_draws():
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        (X, y, _), (new, truth, _) = noisy(rng, 60, 1), noisy(rng, 300, 1)
        regression = ParetoMKLRegressorCV(**ONE_POINT, cv=3).fit(X, y)
        classes = ParetoMKLClassifierCV(**ONE_POINT, cv=3).fit(X, y > 0)
        in_set = classes.predict_set(new)[np.arange(300), (truth > 0).astype(int)]
        found.append((covered(regression.predict_interval(new), truth).mean(), in_set.mean()))
    assert_allclose(np.mean(found, axis=0), 0.905, atol=0.035)


def test_new_tasks_are_judged_by_folds_that_leave_tasks_out():
    rng = np.random.default_rng(0)
    level = dict(zip("abcdefgh", [-10, -6, -2, 2, 6, 10, -4, 4], strict=True))

    def draw(names, n):
        X, task = rng.normal(size=(n, 3)), rng.choice(list(names), size=n)
        return X, X[:, 0] + np.array([level[name] for name in task]) + 0.1 * rng.normal(size=n), task

    X, y, tasks = draw("abcdef", 120)
    new, truth, asked = draw("abgh", 80)
    search = ParetoMKLRegressorCV(**ONE_POINT, share="everything").fit(X, y, tasks=tasks)
    with pytest.warns(NewTaskWarning):
        intervals = search.predict_interval(new, tasks=asked)
    width, unseen = intervals[:, 1] - intervals[:, 0], np.isin(asked, ["g", "h"])
    assert width[unseen].min() > 3 * width[~unseen].max()
    assert covered(intervals, truth)[unseen].mean() > 0.7
    known = search.predict_interval(new[~unseen], tasks=asked[~unseen])
    assert_allclose(intervals[~unseen], known)


def test_a_matrix_gives_one_answer_for_each_task():
    X, y, new, _ = diabetes()
    Y = np.stack([y, X[:, 2]], axis=1)
    Y[::7, 0] = np.nan
    intervals = ParetoMKLRegressorCV(**ONE_POINT, cv=3).fit(X, Y).predict_interval(new)
    assert intervals.shape == (60, 2, 2)
    assert covered(intervals[:, 1], new[:, 2]).mean() > 0.85
    for share in ("kernel", "function"):
        sets = ParetoMKLClassifierCV(**ONE_POINT, cv=3, share=share).fit(X, (np.nanmedian(Y, axis=0) < Y) * 1.0)
        first, second = sets.predict_set(new)
        assert first.shape == second.shape == (60, 2)
        assert (first.any(axis=1) & second.any(axis=1)).all()


def test_saved_searches_answer_if_they_did_before(tmp_path):
    X, y, new, _ = diabetes(60)
    search = ParetoMKLRegressorCV(**ONE_POINT, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="call predict_set or predict_interval once before saving"):
        pickle.loads(pickle.dumps(search)).predict_interval(new)
    expected = search.predict_interval(new)
    save_model(search, tmp_path / "model.skops")
    for same in (pickle.loads(pickle.dumps(search)), load_model(tmp_path / "model.skops")):
        assert_allclose(same.predict_interval(new), expected)
        assert same.folds_.examples is None
    first, second, _ = search.folds_.conformal["known"].models
    assert first.support is second.support  # one copy of the training rows serves all folds


def test_precomputed_kernels():
    X, y, new, _ = diabetes(60)
    stack, cross = ((A @ X.T)[..., None] for A in (X, new))
    search = ParetoMKLRegressorCV(ps=1.0, Cs=100.0, s=2.0, cv=KFold(3), kernels="precomputed").fit(stack, y)
    linear = ParetoMKLRegressorCV(ps=1.0, Cs=100.0, s=2.0, cv=KFold(3), kernels="precomputed").fit(stack, y)
    assert_allclose(search.predict_interval(cross), linear.predict_interval(cross))
    assert covered(search.predict_interval(stack), y).mean() > 0.7


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, np.nan, "much"])
def test_coverage_is_a_share(coverage):
    X, y, new, _ = diabetes(60)
    search = ParetoMKLRegressorCV(**ONE_POINT, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        search.predict_interval(new, coverage)


def test_estimators_without_folds_say_where_they_are():
    for model, method in ((ParetoMKLClassifier(), "predict_set"), (ParetoMKLRegressor(), "predict_interval")):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=f"needs the folds of a search; use {type(model).__name__}CV"):
            getattr(model, method)
    X, y, _, _ = diabetes(60)
    with pytest.raises(ValueError, match="held_out must be a tuple"):
        ParetoMKLRegressorCV(**ONE_POINT, cv=3).fit(X, y).predict_interval(X, held_out=X)


def test_far_rows_are_noted_and_bad_rows_refused():
    X, y, new, truth = diabetes()
    search = ParetoMKLRegressorCV(**ONE_POINT).fit(X, y)
    with pytest.warns(UnlikeTrainingWarning, match="row 0") as found:
        search.predict_interval(np.vstack([100 * new[:1], new]))
    assert found[0].filename == __file__
    for held_out in ((new, truth[:-1]), (new, None), (new, 3.0)):
        with pytest.raises(ValueError, match="one entry for each"):
            search.predict_interval(new, held_out=held_out)


def test_a_rare_class_of_a_task_is_no_obstacle_to_one_function():
    X, tasks = np.random.default_rng(0).standard_normal((60, 3)), np.repeat(["p", "q", "r"], 20)
    y = np.array(["a", "b"] * 30)
    y[[1, 41, 43]] = "c"  # one in task p
    search = ParetoMKLClassifierCV(**ONE_POINT, cv="new tasks").fit(X, y, tasks=tasks)
    assert search.predict_set(X, tasks=tasks).any(axis=1).all()
