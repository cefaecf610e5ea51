"""The simpler alternatives, compared with the same in plain scikit-learn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array
from scipy.stats import ttest_rel
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.metrics import balanced_accuracy_score, get_scorer, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressor, ParetoMKLRegressorCV
from paretomkl._select import baselines
from paretomkl._select.baselines import ClassBaseline, RegressionBaseline, best, choices
from paretomkl._select.choice import choose
from paretomkl._select.results import CrossValidation
from paretomkl._show.words import verdict
from paretomkl.kernels import KernelBank
from paretomkl.model_selection import MultiTaskStratifiedKFold, make_multitask_scorer
from paretomkl.report import Comparison, Contender, Measure, compare
from tests.oracles import explained_within_tasks

KERNELS = [("rbf", {"sigma": 0.5}), ("linear", {})]
QUICK = {"ps": [1.0, 10.0], "Cs": [1.0, 10.0], "kernels": KERNELS, "share": "kernel"}
GRID = ClassBaseline.grid
FEW = GRID[::3]  # pairs that differ in both numbers


def three_sites(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sites with their own borders, and columns of different scales."""
    rng = np.random.default_rng(seed)
    X, sites = rng.standard_normal((n, 3)), np.array(["a", "b", "c"])[np.arange(n) % 3]
    slope = {"a": 1.0, "b": -1.0, "c": 0.0}
    score = X[:, 0] + np.array([slope[site] for site in sites]) * X[:, 1] + 0.5 * rng.standard_normal(n)
    return X * [1.0, 10.0, 0.1], np.where(score > 0.3, "yes", "no"), sites


def folds_of(y: np.ndarray, sites: np.ndarray | None, n_folds: int = 4) -> list[tuple[np.ndarray, np.ndarray]]:
    """Any folds are fine if every part has all classes of all sites."""
    fold = np.random.default_rng(1).permutation(np.arange(len(y)) % n_folds)
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


@pytest.fixture
def few_pairs(monkeypatch):
    """A quicker grid for SVMs, where it does not matter which one it is."""
    monkeypatch.setattr(ClassBaseline, "grid", FEW)


def baseline(comparison: Comparison, name: str) -> Contender:
    return next(one for one in comparison.baselines if one.name == name)


def in_each_fold_the_choice_of_the_others(scores: np.ndarray) -> list[float]:
    """scores (n_pairs, n_folds)"""
    found = []
    for k in range(scores.shape[1]):
        others = np.delete(scores, k, axis=1).mean(axis=1).round(12)
        found.append(scores[int(np.flatnonzero(others == others.max())[0]), k])
    return found


# ----------------------------------------------------------------------------------------------- ways to share
@pytest.mark.usefixtures("few_pairs")
def test_a_fold_does_not_influence_what_is_shared():
    """For the search and for each way alone: in each fold, the other folds choose the way and the point."""
    X, y, sites = three_sites()
    ways = ["nothing", "kernel", "function", "everything"]
    given = {"ps": 1.0, "Cs": [1.0, 10.0], "s": 1.1, "capacity": 1.0, "kernels": KERNELS}
    search = ParetoMKLClassifierCV(share=ways, **given, cv=folds_of(y, sites))
    search.fit(X, y, tasks=sites)
    results = search.cv_results_
    scores = np.array([results[f"split{k}_test_score"] for k in range(4)])
    alone = {way: compare(search, X, y, tasks=sites, share=way).ours.folds for way in ways}
    for way, folds in alone.items():
        only = clone(search).set_params(share=way).fit(X, y, tasks=sites)
        assert_allclose(folds, compare(only, X, y, tasks=sites).ours.folds)
    ours = compare(search, X, y, tasks=sites).ours.folds
    for k in range(4):
        assert ours[k] in scores[k]
        assert ours[k] in [folds[k] for folds in alone.values()]


@pytest.mark.usefixtures("few_pairs")
def test_baselines_use_the_rows_of_the_search():
    """If some rows choose the parameters, the folds use the same rows; for held-out samples, models use all rows."""
    X, y, sites = three_sites(240)
    held_out = three_sites(60, seed=1)
    search = ParetoMKLClassifierCV(share=["kernel", "everything"], ps=1.0, Cs=[1.0], cv=3, max_search_rows=120)
    search.fit(X, y, tasks=sites)
    assert len(search.search_rows_) == search.n_search_rows_ <= 120
    found = compare(search, X, y, tasks=sites, held_out=held_out)
    scores = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(3)])
    assert all(found.ours.folds[k] in scores[k] for k in range(3))
    assert found.ours.held_out == pytest.approx(search.score(held_out[0], held_out[1], tasks=held_out[2]))
    some = search.search_rows_
    few = compare(
        clone(search).set_params(max_search_rows=None).fit(X[some], y[some], tasks=sites[some]),
        X[some],
        y[some],
        tasks=sites[some],
    )
    assert_allclose(found.baselines[-1].folds, few.baselines[-1].folds)


@pytest.mark.parametrize("way", ["nothing", "function", "everything"])
def test_regression_errors_belong_to_the_chosen_way(way):
    X, _, sites = three_sites(90)
    y = X[:, 0] + (sites == "a") * X[:, 1] / 10
    folds = folds_of(y, sites, 3)
    search = ParetoMKLRegressorCV(share=[way], ps=1.0, Cs=[1.0], s=1.1, capacity=1.0, cv=folds).fit(X, y, tasks=sites)
    errors = compare(search, X, y, tasks=sites).ours.errors
    predicted = np.empty(90)
    for train, test in folds:
        plain = ParetoMKLRegressor(share=way, kernels=KernelBank(capacity=1.0)).fit(
            X[train], y[train], tasks=sites[train]
        )
        predicted[test] = plain.predict(X[test], tasks=sites[test])
    expected = [r2_score(y[sites == site], predicted[sites == site]) for site in errors.tasks]
    assert_allclose(errors.r2, expected, atol=2e-3)


# ------------------------------------------------------------------------------------------------ the choice
def test_a_fold_does_not_influence_its_own_choice():
    scores = np.array([[0.9, 0.5, 0.5], [0.1, 0.6, 0.6]])
    assert_array_equal(choices(scores), [1, 0, 0])  # the first fold alone prefers candidate 0
    changed = scores + np.array([0.0, 0.0, 9.0]) * np.array([[0.0], [1.0]])
    assert choices(changed)[2] == choices(scores)[2]


def test_the_first_wins_a_tie_and_undefined_scores_do_not_count():
    third = 1 / 3
    assert best(np.array([[0.92, 0.92, 0.92], [0.92 + 1e-16, 0.92, 0.92]])) == 0
    assert best(np.array([[third, third], [third + 1e-14, third]])) == 0
    assert best(np.array([[np.nan, 0.5], [0.4, np.nan], [np.nan, np.nan]])) == 0
    assert_array_equal(choices(np.array([[np.nan], [0.5]])), [1])


@pytest.mark.usefixtures("few_pairs")
def test_ours_is_chosen_by_the_rule_of_the_search_and_by_the_other_folds():
    X, y, sites = three_sites()
    search = ParetoMKLClassifierCV(cv=4, ps=[0.5, 1.0, 10.0], Cs=[0.1, 1.0, 10.0], share="kernel")
    search.fit(X, y, tasks=sites)
    results = search.cv_results_
    scores = np.array([results[f"split{k}_test_score"] for k in range(4)])
    points = {name: results[f"param_{name}"] for name in ("C", "capacity", "p", "s")}
    chosen = [choose(np.delete(scores, k, axis=0), results["mean_test_log_loss"], points) for k in range(4)]
    assert_array_equal(compare(search, X, y, tasks=sites).ours.folds, scores[np.arange(4), chosen])


def test_folds_match_the_search():
    """However it was shuffled: the majority class of each training set, on its test set."""
    X, y, _ = three_sites()
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.2, "rare", y)
    for seed in (None, 7):
        search = ParetoMKLClassifierCV(cv=4, random_state=seed, **QUICK).fit(X, y)
        folds = MultiTaskStratifiedKFold(4, shuffle=True, random_state=seed or 0).split(X, y)
        expected = [(y[test] == Counter(sorted(y[train])).most_common(1)[0][0]).mean() for train, test in folds]
        assert_allclose(baseline(compare(search, X, y), "the majority class").folds, expected)


def test_the_grid_starts_in_its_middle():
    assert GRID[0] == (1.0, 1.0)
    assert len(set(GRID)) == 12


# ---------------------------------------------------------------------------------------- against scikit-learn
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "f1_macro"])
def test_one_svm_matches_scikit_learn(scoring):
    X, y = load_iris(return_X_y=True)
    X = np.random.default_rng(0).permutation(X.T).T + np.random.default_rng(1).normal(0, 0.4, X.shape)
    folds = folds_of(y, None)
    search = ParetoMKLClassifierCV(cv=folds, scoring=scoring, **QUICK).fit(X, y)
    found = compare(search, X, y)
    assert [one.name for one in found.baselines] == ["one SVM", "the majority class"]
    scorer = get_scorer(scoring or "accuracy")
    scores = [
        [
            scorer(make_pipeline(StandardScaler(), SVC(C=C, gamma=width / 4)).fit(X[train], y[train]), X[test], y[test])
            for train, test in folds
        ]
        for C, width in GRID  # four standardised columns: gamma="scale" is 1/4
    ]
    chosen = in_each_fold_the_choice_of_the_others(np.array(scores))
    assert_allclose(baseline(found, "one SVM").folds, chosen, atol=1e-12)
    dummy = [scorer(DummyClassifier().fit(X[train], y[train]), X[test], y[test]) for train, test in folds]
    assert_allclose(found.baselines[-1].folds, dummy)
    results = search.cv_results_
    ours = np.array([results[f"split{k}_test_score"] for k in range(4)]).T
    assert set(found.ours.folds) <= set(ours.ravel())
    assert found.ours.mean <= search.best_score_ + 1e-12


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 3.0}])
def test_svms_of_tasks_match_scikit_learn(class_weight):
    pandas = pytest.importorskip("pandas")
    X, y, sites = three_sites()
    folds = folds_of(y, sites)
    scorer = make_multitask_scorer("balanced_accuracy")
    search = ParetoMKLClassifierCV(cv=folds, scoring=scorer, class_weight=class_weight, **QUICK)
    found = compare(search.fit(X, y, tasks=sites), X, y, tasks=sites)
    assert [one.name for one in found.baselines][:2] == ["one SVM on all tasks together", "one SVM per task"]
    frame = pandas.DataFrame(X, columns=list("uvw")).assign(site=sites)
    each, together = np.zeros((2, 3, len(FEW), len(folds)))
    columns = make_column_transformer((StandardScaler(), list("uvw")), (OneHotEncoder(), ["site"]))
    for k, (train, test) in enumerate(folds):
        scale = 1 / columns.fit_transform(frame.iloc[train]).var() / 6
        for g, (C, width) in enumerate(FEW):
            whole = make_pipeline(columns, SVC(C=C, gamma=width * scale, class_weight=class_weight))
            said = whole.fit(frame.iloc[train], y[train]).predict(frame)
            for t, site in enumerate("abc"):
                mine, there = train[sites[train] == site], test[sites[test] == site]
                own = make_pipeline(StandardScaler(), SVC(C=C, gamma=width / 3, class_weight=class_weight))
                together[t, g, k] = balanced_accuracy_score(y[there], said[there])
                each[t, g, k] = balanced_accuracy_score(y[there], own.fit(X[mine], y[mine]).predict(X[there]))
    per_task = np.mean([in_each_fold_the_choice_of_the_others(of_task) for of_task in each], axis=0)
    assert_allclose(baseline(found, "one SVM per task").folds, per_task, atol=1e-12)
    expected = in_each_fold_the_choice_of_the_others(together.mean(axis=0))
    assert_allclose(baseline(found, "one SVM on all tasks together").folds, expected, atol=1e-12)


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("metric", ["accuracy", "roc_auc", "f1"])
def test_columns_of_y_are_tasks_like_any_other(metric):
    X, y, sites = three_sites()
    folds, scorer = folds_of(y, sites), make_multitask_scorer(metric)
    matrix = np.where(sites[:, None] == np.array(["a", "b", "c"]), (y == "yes").astype(float)[:, None], np.nan)
    one = compare(ParetoMKLClassifierCV(cv=folds, scoring=scorer, **QUICK).fit(X, y, tasks=sites), X, y, tasks=sites)
    other = compare(ParetoMKLClassifierCV(cv=folds, scoring=scorer, **QUICK).fit(X, matrix), X, matrix)
    for a, b in zip(one.contenders, other.contenders, strict=True):
        assert a.name == b.name
        assert_allclose(a.folds, b.folds, atol=1e-12)
    if metric == "roc_auc":
        assert one.baselines[-1].mean == 0.5


@pytest.mark.usefixtures("few_pairs")
def test_tasks_may_have_their_own_labels():
    X, y, sites = three_sites()
    own = np.array([f"{label} {site}" for label, site in zip(y, sites, strict=True)])
    folds, scorer = folds_of(y, sites), make_multitask_scorer("roc_auc")
    search = ParetoMKLClassifierCV(cv=folds, scoring=scorer, **QUICK)
    few, many = (compare(search.fit(X, labels, tasks=sites), X, labels, tasks=sites) for labels in (y, own))
    assert_allclose(baseline(many, "one SVM per task").folds, baseline(few, "one SVM per task").folds)
    assert np.isfinite(baseline(many, "one SVM on all tasks together").folds).all()


def test_held_out_samples_are_judged_by_the_chosen_models():
    X, y, sites = three_sites(200)
    new, rest = np.arange(200) < 60, np.arange(200) >= 60
    search = ParetoMKLClassifierCV(cv=3, **QUICK).fit(X[rest], y[rest], tasks=sites[rest])
    found = compare(search, X[rest], y[rest], tasks=sites[rest], held_out=(X[new], y[new], sites[new]))
    assert found.ours.held_out == search.score(X[new], y[new], tasks=sites[new])
    counts = [max(np.mean(y[rest & (sites == s)] == label) for label in ("yes", "no")) for s in "abc"]
    said = [("yes" if np.mean(y[rest & (sites == s)] == "yes") > 0.5 else "no") for s in "abc"]
    expected = np.mean([np.mean(y[new & (sites == s)] == label) for s, label in zip("abc", said, strict=True)])
    assert found.baselines[-1].held_out == pytest.approx(expected)
    assert found.baselines[-1].mean == pytest.approx(np.mean(counts), abs=0.05)
    assert all(0.5 < one.held_out <= 1 for one in found.baselines[:2])


# ------------------------------------------------------------------------------------------------------ edges
def test_the_chosen_pair_learns_from_all_rows(monkeypatch):
    X, y, sites = three_sites()
    search = ParetoMKLClassifierCV(cv=folds_of(y, sites), **QUICK).fit(X, y)
    monkeypatch.setattr(ClassBaseline, "grid", [(10.0, 1.0)])
    whole = compare(search, X, y)
    monkeypatch.setattr(baselines, "MOST_ROWS", 30)
    assert_allclose(compare(search, X, y).baselines[0].folds, whole.baselines[0].folds)
    kept = baselines.thinned(np.arange(1000), (np.arange(1000) % 100 == 0).astype(int))
    assert len(kept) == 31
    assert (kept % 100 == 0).sum() == 1


@pytest.mark.usefixtures("few_pairs")
def test_a_fold_without_a_class_is_still_scored():
    X, y, sites = three_sites()
    y = np.where((sites == "a") & (np.arange(120) > 20), "no", y)  # the few of "yes" are in the first rows
    y[[3, 6]] = "yes"
    parts = np.array_split(np.arange(120), 4)
    folds = [(np.setdiff1d(np.arange(120), part), part) for part in parts[1:]]
    search = ParetoMKLClassifierCV(cv=folds, scoring=make_multitask_scorer("roc_auc"), **QUICK)
    with pytest.warns(UserWarning, match="roc_auc is undefined"):
        found = compare(search.fit(X, y, tasks=sites), X, y, tasks=sites)
    assert all(np.isfinite(one.folds).all() for one in found.contenders)


def test_precomputed_kernels_are_compared_only_with_the_majority():
    X, y, sites = three_sites()
    stack = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))[:, :, None]
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0, 10.0], cv=3, kernels="precomputed").fit(stack, y, tasks=sites)
    held_out = (stack[:30], y[:30], sites[:30])
    found = compare(search, stack, y, tasks=sites, held_out=held_out)
    assert [one.name for one in found.baselines] == ["the majority class"]


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("form", [csr_array, coo_array])
@pytest.mark.parametrize("regression", [False, True])
def test_baselines_of_sparse_samples_are_those_of_dense_ones(form, regression, monkeypatch):
    monkeypatch.setattr(RegressionBaseline, "grid", RegressionBaseline.grid[::5])
    X, y, sites = three_sites()
    X = np.where(X > 0.5, X, 0.0)
    make, given = (ParetoMKLRegressorCV, X[:, 0] + X[:, 2]) if regression else (ParetoMKLClassifierCV, y)
    sparse, dense = (
        compare(make(**QUICK, cv=folds_of(y, sites)).fit(one, given, tasks=sites), one, given, tasks=sites)
        for one in (form(X), X)
    )
    for own, same in zip(sparse.baselines, dense.baselines, strict=True):
        assert_allclose(own.folds, same.folds, atol=0.03)


@pytest.mark.usefixtures("few_pairs")
def test_baselines_leave_stacks_of_kernels_among_blocks_out():
    X, y, _ = three_sites()
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=folds_of(y, None))
    stack = (X @ X.T)[:, :, None]
    plain, both, alone = (
        compare(clone(search).fit(given, y), given, y).baselines
        for given in ({"a": X}, {"a": X, "kernel": stack}, {"kernel": stack})
    )
    assert_array_equal(both[0].folds, plain[0].folds)
    assert [one.name for one in alone] == ["the majority class"]


def test_scores_over_all_tasks_at_once_are_refused():
    X, y, sites = three_sites()
    search = ParetoMKLClassifierCV(scoring="f1_macro", cv=3, **QUICK).fit(X, y, tasks=sites)
    with pytest.raises(ValueError, match=r"use scoring=make_multitask_scorer\('f1_macro'\)"):
        compare(search, X, y, tasks=sites)


@pytest.mark.usefixtures("few_pairs")
def test_progress_names_what_is_done(capsys):
    X, y, sites = three_sites()
    search = ParetoMKLClassifierCV(cv=3, **QUICK).fit(X, y, tasks=sites)
    compare(search, X, y, tasks=sites, verbose=1)
    assert "folds · SVMs to compare with" in capsys.readouterr().err
    compare(search, X, y, tasks=sites)
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------------------------------------ words
def versus(ours: list[float], theirs: list[float], measure: Measure | None = None) -> Comparison:
    dull = Contender("the majority class", np.full(len(ours), 0.5))
    baselines = [Contender("one SVM per task", np.array(theirs)), dull]
    return Comparison(Contender("paretomkl", np.array(ours)), baselines, measure or Measure())


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (
            [0.90, 0.92, 0.91],
            [0.91, 0.91, 0.913],
            "One SVM per task does as well: 91.1 % against 91.0 %, within the error of the folds.",
        ),
        (
            [0.90, 0.92, 0.91],
            [0.92, 0.94, 0.933],
            "One SVM per task is better by 2.1 points: 93.1 % against 91.0 %; consider it, or other kernels.",
        ),
        (
            [0.92, 0.94, 0.933],
            [0.90, 0.92, 0.91],
            "The best simpler model, one SVM per task, is 2.1 points behind: 91.0 % against 93.1 %.",
        ),
        (
            [0.5] * 3,
            [0.4] * 3,
            "The majority class does as well: 50.0 % against 50.0 %, within the error of the folds.",
        ),
        (
            [0.90, 0.92, 0.9171428571428571],
            [0.90, 0.92, 0.91],
            "One SVM per task does as well: 91.0 % against 91.2 %, within the error of the folds.",
        ),
        ([np.nan] * 2, [0.5, 0.6], "The folds do not show which is better."),
    ],
)
def test_verdict(ours, theirs, said):
    assert versus(ours, theirs).verdict == said


def test_differences_are_paired_by_fold():
    """The folds scatter by ten points, but the difference is two in each of them."""
    ours = np.array([0.7, 0.8, 0.9])
    found = versus(ours.tolist(), (ours + 0.02).tolist())
    assert found.ours.standard_error == pytest.approx(0.1 / np.sqrt(3))
    assert "is better by 2.0 points" in found.verdict
    lead, error = found.lead(found.baselines[0])
    assert (lead, error) == pytest.approx((-0.02, 0.0), abs=1e-12)


def test_numbers_of_a_comparison():
    found = versus([0.8, 0.9, np.nan], [0.7, 0.7, 0.7], Measure("ROC AUC", "roc_auc", percent=False))
    assert found.text(found.ours) == "0.850 ± 0.050"
    assert found.facts()["scores"]["paretomkl"] == pytest.approx({"mean": 0.85, "standard_error": 0.05})
    rows = found.page_data()["rows"]
    assert [row["bar"] for row in rows] == [
        1.0,
        pytest.approx(0.7 / 0.85, abs=1e-4),
        pytest.approx(0.5 / 0.85, abs=1e-4),
    ]
    one = versus([0.8], [0.7])
    assert one.text(one.ours) == "80.0 %"
    assert one.facts()["scores"]["paretomkl"]["standard_error"] is None


# ----------------------------------------------------------------------------------------------------- numbers
def priced_sites(n: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, _, sites = three_sites(n)
    noise = np.random.default_rng(5).standard_normal(n)
    return X, 50 + 5 * np.sin(2 * X[:, 0]) + np.where(sites == "a", 1.0, -0.5) * X[:, 1] + noise, sites


@pytest.fixture(scope="module")
def priced():
    X, y, sites = priced_sites()
    folds = folds_of(y, sites, 3)
    search = ParetoMKLRegressorCV(ps=[1.0, 10.0], Cs=[0.1, 1.0], kernels=KERNELS, s=1.1, cv=folds)
    search.fit(X, y, tasks=sites)
    return search, folds, compare(search, X, y, tasks=sites, held_out=(X[:30] + 0.1, y[:30], sites[:30]))


def ridge(train: np.ndarray, test: np.ndarray, y: np.ndarray, alpha: float, width: float) -> np.ndarray:
    """As a user would write it."""
    gamma = width / (train.shape[1] * train.var())
    return y.mean() + KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(train, y - y.mean()).predict(test)


@pytest.mark.parametrize("together", [True, False])
def test_kernel_ridge_matches_scikit_learn(priced, together):
    _, folds, found = priced
    X, y, sites = priced_sites()
    answers = np.empty((len(RegressionBaseline.grid), len(y)))
    for train, test in folds:
        for mine in [np.full(len(y), True)] if together else [sites == name for name in "abc"]:
            learn, judge = train[mine[train]], test[mine[test]]
            scaler = StandardScaler().fit(X[learn])
            parts = [scaler.transform(X[rows]) for rows in (learn, judge)]
            if together:
                indicators = [(sites[rows, None] == np.array(["a", "b", "c"])).astype(float) for rows in (learn, judge)]
                parts = [np.hstack(both) for both in zip(parts, indicators, strict=True)]
            for k, pair in enumerate(RegressionBaseline.grid):
                answers[k, judge] = ridge(*parts, y[learn], *pair)

    def score(answer: np.ndarray, fold: tuple, names: str) -> float:
        parts = [rows[np.isin(sites[rows], list(names))] for rows in fold]
        return explained_within_tasks(y, answer, sites, *parts)

    chosen = np.empty(len(y))
    for names in ["abc"] if together else list("abc"):
        scores = np.array([[score(answer, fold, names) for fold in folds] for answer in answers])
        for k, best_pair in enumerate(choices(scores)):
            rows = folds[k][1][np.isin(sites[folds[k][1]], list(names))]
            chosen[rows] = answers[best_pair, rows]
    name = "one kernel ridge " + ("on all tasks together" if together else "per task")
    one = baseline(found, name)
    assert_allclose(one.folds, [score(chosen, fold, "abc") for fold in folds], atol=1e-8)
    assert_allclose(one.errors.r2, [r2_score(y[sites == t], chosen[sites == t]) for t in "abc"], atol=1e-8)
    rmse = [np.sqrt(np.mean((y - chosen)[sites == t] ** 2)) for t in "abc"]
    assert_allclose(one.errors.rmse, rmse, atol=1e-8)
    assert one.errors.overall_rmse == pytest.approx(np.sqrt(np.mean((y - chosen) ** 2)))


def test_our_errors_match_models_fitted_by_hand(priced):
    search, folds, found = priced
    X, y, sites = priced_sites()
    results = search.cv_results_
    scores = np.array([results[f"split{k}_test_score"] for k in range(3)])
    points = {name: results[f"param_{name}"] for name in ("C", "p")}
    predicted = np.empty(len(y))
    for k, (train, test) in enumerate(folds):
        chosen = choose(np.delete(scores, k, axis=0), results["mean_test_squared_error"], points)
        reg = ParetoMKLRegressor(**results["params"][chosen], s=1.1, kernels=KERNELS, tol=1e-5)
        predicted[test] = reg.fit(X[train], y[train], tasks=sites[train]).predict(X[test], tasks=sites[test])
        assert found.ours.folds[k] == scores[k, chosen]
    by_hand = [r2_score(y[sites == t], predicted[sites == t]) for t in "abc"]
    assert_allclose(found.ours.errors.r2, by_hand, atol=5e-3)
    facts = found.facts()["scores"]["paretomkl"]
    assert facts["tasks"]["b"]["rows"] == 30
    sizes = [np.sum(sites == t) for t in "abc"]
    assert facts["r2"] == pytest.approx(np.average(by_hand, weights=sizes), abs=5e-3)


def test_the_mean_of_each_task(priced):
    _, folds, found = priced
    _, y, sites = priced_sites()
    mean = np.empty(len(y))
    for train, test in folds:
        for name in "abc":
            mean[test[sites[test] == name]] = y[train[sites[train] == name]].mean()
    assert_allclose(found.baselines[-1].errors.r2, [r2_score(y[sites == t], mean[sites == t]) for t in "abc"])
    assert_allclose([found.baselines[-1].held_out, *found.baselines[-1].folds], 0.0, atol=1e-12)  # by definition


def test_outputs_with_different_units_are_compared():
    """One machine for all outputs puts them on one scale, so a change of units changes nothing."""
    X, y, _ = priced_sites()
    matrix = np.column_stack([y, X[:, 2] + 0.1 * y])
    matrix[:15, 1] = np.nan
    given = {"ps": [1.0], "Cs": [1.0], "kernels": KERNELS, "cv": 3}
    plain, scaled = (
        compare(ParetoMKLRegressorCV(**given).fit(X, one), X, one) for one in (matrix, matrix * [1.0, 1000.0])
    )
    for a, b in zip(plain.contenders, scaled.contenders, strict=True):
        assert_allclose(a.errors.r2, b.errors.r2, atol=1e-6)
        assert_allclose(a.errors.rmse * [1, 1000], b.errors.rmse, rtol=1e-5)
    assert_array_equal(plain.ours.errors.rows, [90, 75])


def test_without_tasks_there_is_one_kernel_ridge_and_one_mean():
    X, y, _ = priced_sites()
    scoring = "neg_mean_squared_error"
    search = ParetoMKLRegressorCV(ps=[1.0], Cs=[1.0], kernels=KERNELS, cv=3, scoring=scoring).fit(X, y)
    found = compare(search, X, y)
    assert [one.name for one in found.baselines] == ["one kernel ridge", "the mean"]
    assert found.measure.name == "negative mean squared error"
    mean = found.baselines[-1]
    assert mean.mean == pytest.approx(-(mean.errors.overall_rmse**2), rel=1e-9)  # folds of one size


# ---------------------------------------------------------------------------------------- models of one's own
def columns_with_indicators(X, sites, train):
    scaled = StandardScaler().fit(X[train]).transform(X)
    return np.hstack([scaled, np.array(sites)[:, None] == np.unique(sites)])


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_own_classifiers_learn_from_the_training_rows_of_each_fold(scoring):
    X, y, sites = three_sites()
    folds, tree = (
        folds_of(y, sites, 3),
        DecisionTreeClassifier(max_depth=3, random_state=0, class_weight={"no": 1, "yes": 3}),
    )
    search = ParetoMKLClassifierCV(**QUICK, s=1.1, capacity=1.0, cv=folds, scoring=make_multitask_scorer(scoring))
    search.fit(X, y, tasks=sites)
    found = compare(search, X, y, tasks=sites, held_out=(X[:30], y[:30], sites[:30]), baselines={"tree": tree})
    assert found.baselines[0].name == "tree"
    assert not hasattr(tree, "tree_")  # clones were fitted
    everyone = np.arange(len(y))
    scores = [*baseline(found, "tree").folds, baseline(found, "tree").held_out]
    for score, (train, test) in zip(scores, [*folds, (everyone, everyone[:30])], strict=True):
        columns = columns_with_indicators(X, sites, train)
        model = clone(tree).fit(columns[train], y[train])
        scorer = get_scorer(scoring)
        own = [scorer(model, columns[rows], y[rows]) for rows in (test[sites[test] == site] for site in "abc")]
        assert score == pytest.approx(np.mean(own))


def test_own_regressors_get_the_targets_as_they_are():
    X, _, sites = three_sites(90)
    y = np.exp(X[:, 0] / 4 + (sites == "a"))
    folds = folds_of(y, sites, 3)
    gamma = TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp)
    search = ParetoMKLRegressorCV(share="kernel", ps=1.0, Cs=[1.0], s=1.1, capacity=1.0, cv=folds)
    found = compare(search.fit(X, y, tasks=sites), X, y, tasks=sites, baselines={"log-linear": gamma})
    predicted = np.empty(90)
    for train, test in folds:
        columns = columns_with_indicators(X, sites, train)
        predicted[test] = clone(gamma).fit(columns[train], y[train]).predict(columns[test])
    errors = baseline(found, "log-linear").errors
    assert_allclose(errors.r2, [r2_score(y[sites == site], predicted[sites == site]) for site in errors.tasks])
    assert found.best_baseline.name == "log-linear"
    assert "log-linear" in found.verdict.lower()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([SVC()], TypeError, "baselines must map names to estimators"),
        ({"GP": SVC}, TypeError, "'GP' must be a classifier"),
        ({"ridge": KernelRidge()}, TypeError, "'ridge' must be a classifier"),
        ({"paretomkl": SVC()}, ValueError, "texts other than 'paretomkl'"),
        ({"one SVM": SVC()}, ValueError, "'one SVM' in baselines is the name of another"),
    ],
)
def test_models_that_cannot_be_compared_are_named(given, error, message):
    X, y = load_iris(return_X_y=True)
    search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], s=1.1, capacity=1.0, cv=2, kernels=KERNELS).fit(X, y)
    with pytest.raises(error, match=message):
        compare(search, X, y, baselines=given)


# ------------------------------------------------------------------------------------------------- the verdict
def along(ps: list[float], mean: list[float], best_p: float) -> CrossValidation:
    return CrossValidation(ps, mean, [0.02] * len(ps), best_p, 10.0, 4)


def test_the_verdict_gives_the_interval_of_the_lead():
    ours, theirs = np.array([0.9, 0.92, 0.88, 0.94]), np.array([0.8, 0.86, 0.8, 0.84])
    found = Comparison(Contender("paretomkl", ours), [Contender("GP", theirs), Contender("SVM", theirs - 0.1)])
    half = ttest_rel(ours, theirs).confidence_interval(0.95)
    said = verdict("kernel", {"C": 10.0}, along([1.0, 2.0], [0.91, 0.8], 1.0), found, 2)
    ends = f"{100 * half.low:.1f} to {100 * half.high:.1f}"
    assert said[-1] == (
        f"Better than GP, the best baseline, by 8.5 points (95 % interval of the difference over the folds: {ends})."
    )
    swapped = Comparison(Contender("paretomkl", theirs), [Contender("GP", ours)])
    assert verdict("kernel", {}, None, swapped, 2)[-1].startswith("Worse than GP, the best baseline, by 8.5 points")
    same = Comparison(Contender("paretomkl", ours), [Contender("GP", ours[::-1] - 1e-3)])
    assert verdict("kernel", {}, None, same, 2)[-1].startswith("Not shown to be better than GP")


def test_the_verdict_says_why_this_p():
    def why(cv, n_tasks=2, way="kernel"):
        return verdict(way, {"C": 10.0}, cv, None, n_tasks)[1]

    assert why(along([1.0, 2.0, 5.0], [0.8, 0.9, 0.895], 2.0)).startswith(
        "p = 2 has the best score in the folds; 2 of 3"
    )
    assert why(along([1.0, 2.0], [0.9, 0.9], 1.0)).startswith("p = 1, and the choice hardly matters: both exponents")
    chosen_near_one = why(along([1.0, 2.0, 5.0], [0.895, 0.9, 0.8], 1.0))
    assert chosen_near_one.startswith("p = 1: the folds hardly tell it from the best, p = 2")
    assert why(along([2.0], [0.9], 2.0)) == "p = 2, the only one tried."
    assert "one task" in why(along([1.0, 2.0], [0.9, 0.9], 1.0), n_tasks=1)
    assert "no role" in why(None, way="function")
