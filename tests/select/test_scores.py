"""Scores and their names, for classes and for single tasks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score, f1_score, get_scorer, make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressorCV
from paretomkl._data.labels import Samples
from paretomkl._select.scores import make_judge
from paretomkl._tools.wording import CLASS_MEASURES
from paretomkl.model_selection import make_multitask_scorer
from paretomkl.report import compare, trade_off_page
from tests.oracles import explained_within_tasks
from tests.report.conftest import two_machines
from tests.select.test_compare import three_sites

QUICK = {"n_points": 15, "baselines": False}


def judged_by(scoring=None):
    """A search with nothing to choose."""
    return ParetoMKLClassifierCV(ps=1.0, Cs=10.0, s=1.1, capacity=0.5, cv=2, scoring=scoring)


@pytest.mark.parametrize("name", CLASS_MEASURES)
def test_every_name_scores_every_task(name):
    """Compared with the functions of scikit-learn on the held-out samples of each task."""
    X, y, sites = three_sites()
    y = (y == "yes").astype(int)
    result = trade_off_page(judged_by(name), X, y, tasks=sites, **QUICK)
    assert result.measure.key == name
    # scikit-learn has no public way from a scorer to its function
    metric, given = (vars(get_scorer(name))[part] for part in ("_score_func", "_kwargs"))
    X, y, sites = X[result.test], y[result.test], sites[result.test]
    for row in (0, 7, 14):
        decisions = result.path.models[row].decisions(X, sites)
        answers = decisions if name in ("roc_auc", "average_precision") else (decisions > 0).astype(int)
        for t, site in enumerate(result.path.task_names):
            mine = sites == site
            assert result.scores[row, t] == pytest.approx(metric(y[mine], answers[mine, t], **given), abs=1e-12)
    assert_allclose(result.scores_overall, result.scores.mean(axis=1))


def test_scores_of_a_model_match_its_decisions():
    """Without tolerance: the same decisions, scored by hand."""
    X, y, sites = three_sites()
    model = ParetoMKLClassifier().fit(X, y, tasks=sites).model_
    decisions = model.decisions(X, sites)
    for name, metric in [("roc_auc", roc_auc_score), ("balanced_accuracy", balanced_accuracy_score), ("f1", f1_score)]:
        judge = make_judge(name).of_tasks(model.tasks)
        found = judge.judge(model.tasks, decisions, Samples(X, sites), y)
        scores, overall = found.scores, found.overall.score
        assert (found.low < scores).all() or name == "f1"
        for t, site in enumerate("abc"):
            mine = sites == site
            answer = decisions[mine, t] if name == "roc_auc" else decisions[mine, t] > 0
            assert scores[t] == pytest.approx(metric(y[mine] == "yes", answer), abs=1e-12)
        assert overall == pytest.approx(scores.mean())
        worst = make_judge(f"worst_{name}").judge(model.tasks, decisions, Samples(X, sites), y).overall.score
        assert worst == pytest.approx(scores.min())


def test_votes_of_many_classes_are_judged_together():
    X, y = load_iris(return_X_y=True)
    result = trade_off_page(judged_by("balanced_accuracy"), X, y, **QUICK)
    model = result.path.models[0]
    expected = balanced_accuracy_score(y[result.test], model.predict(X[result.test]))
    assert result.scores_overall[0] == pytest.approx(expected)
    assert result.scores.shape == (15, 3)


def test_a_score_with_one_held_out_class_is_undefined():
    X, y, tasks = two_machines(31)
    pump = np.flatnonzero(tasks == "pump")
    some = np.concatenate([pump[y[pump] == "yes"][:12], pump[y[pump] == "no"][:2]])
    kept = np.concatenate([np.flatnonzero(tasks != "pump"), some])
    X, y, tasks = X[kept], y[kept], tasks[kept]
    for scoring in ("roc_auc", "balanced_accuracy", "f1"):
        result = trade_off_page(judged_by(scoring), X, y, tasks=tasks, test_size=0.1, **QUICK)
        t = result.path.task_names.index("pump")
        assert len(set(y[result.test][tasks[result.test] == "pump"])) == 1
        assert np.isnan(result.scores[:, t]).all()
        assert_allclose(result.scores_overall, result.scores[:, 1 - t])
    plain = trade_off_page(ParetoMKLClassifier(C=10.0), X, y, tasks=tasks, test_size=0.1, **QUICK)
    assert np.isfinite(plain.scores).all()


@pytest.mark.parametrize(
    ("labels", "scoring", "name"),
    [
        (("no", "yes"), "f1", "F1 of class 'yes'"),
        ((0, 1), "recall", "recall of class 1"),
        ((1, 2), "precision", "precision of class 1"),
        (("no", "yes"), "roc_auc", "ROC AUC"),
        (("no", "yes"), "f1_macro", "macro F1"),
        (("no", "yes"), make_multitask_scorer("f1", pos_label="no"), "F1 of class 'no'"),
        (("no", "yes"), "worst_balanced_accuracy", "balanced accuracy of the worst task"),
    ],
)
def test_scores_of_one_class_name_it(labels, scoring, name):
    X, y, sites = three_sites()
    y = np.where(y == "yes", labels[1], labels[0])
    assert make_judge(scoring).of_samples(X, y, tasks=sites).measure.name == name


def test_scorers_are_used_unchanged():
    judge = make_judge(make_scorer(f1_score, average="macro"))
    assert judge.measure.name == "f1 score"
    assert not judge.measure.percent
    assert make_judge(make_multitask_scorer(average="worst")).measure.key == "worst_accuracy"
    assert make_judge().scoring is None
    assert make_judge("accuracy").scoring is None


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        (
            "balanced_acuracy",
            "'balanced_acuracy' is not a score for classes (scoring); did you mean 'balanced_accuracy'?",
        ),
        ("auc", "'auc' is not a score for classes (scoring); did you mean 'roc_auc'?"),
        ("magic", "'magic' is not a score for classes (scoring); use one of accuracy, balanced_accuracy"),
        ("r2", "'r2' is not a score for classes (scoring); use one of accuracy, balanced_accuracy"),
        ("neg_log_loss", "The score neg_log_loss needs probabilities (scoring), which the baselines do not"),
        (make_scorer(f1_score, response_method="predict_proba"), "The score f1_score needs probabilities"),
        (make_multitask_scorer(average=None), "scoring must be the name of a score, a scikit-learn scorer, or a make"),
        (lambda *_: 0.0, "scoring must be the name of a score"),
    ],
)
def test_other_scores_are_refused(scoring, message):
    with pytest.raises(ValueError) as error:
        make_judge(scoring)
    assert str(error.value).startswith(message)


def test_scores_for_two_classes_refuse_three():
    X, y = load_iris(return_X_y=True)
    message = "The score roc_auc compares two classes, but y has 3; use balanced_accuracy or f1_macro."
    with pytest.raises(ValueError) as error:
        trade_off_page(judged_by("roc_auc"), X, y, **QUICK)
    assert str(error.value) == message
    with pytest.raises(ValueError, match="but task 'b' has 3; use"):
        make_judge("f1").of_samples(X[:120], y[:120].cumsum() % 3, tasks=["b"] * 120)


def test_short_tasks_cannot_spoil_the_score_of_a_regression():
    """The R² of two rows that happen to be alike is far below zero, and so is a mean over tasks with such rows."""
    rng = np.random.default_rng(0)
    X, tasks = rng.normal(size=(120, 3)), np.repeat(np.arange(20), 6)
    y = X @ [1.0, 2.0, 3.0] + 2 * rng.normal(size=120)
    folds = [(np.flatnonzero(np.arange(120) % 3 != k), np.flatnonzero(np.arange(120) % 3 == k)) for k in range(3)]
    search = ParetoMKLRegressorCV(share="everything", ps=1.0, cv=folds).fit(X, y, tasks=tasks)
    means = [search.score(X[test], y[test], tasks=tasks[test]) for _, test in folds]
    assert np.mean(means) < -1
    assert 0.3 < search.best_score_ < 1
    found = compare(search, X, y, tasks=tasks)
    assert all(-2 < one.mean < 1 for one in found.contenders)
    new = ParetoMKLRegressorCV(share="everything", ps=1.0, cv="new tasks").fit(X, y, tasks=tasks)
    plain, folds = new.estimator_at(new.best_index_), list(GroupKFold(5).split(X, groups=tasks))
    scores = []
    for train, test in folds:
        predicted = clone(plain).fit(X[train], y[train], tasks=tasks[train]).predict(X, tasks=tasks)
        scores.append(explained_within_tasks(y, predicted, tasks, train, test))
    assert new.best_score_ == pytest.approx(np.mean(scores), rel=5e-3)
