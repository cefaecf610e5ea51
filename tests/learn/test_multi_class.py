"""Several classes as tasks: pairs, or each class against the rest."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, load_model, pareto_path, save_model, sources
from paretomkl._data.labels import Samples, squared_error
from paretomkl._data.tasks import make_tasks
from paretomkl._select.choice import choose
from paretomkl._select.scores import make_judge

KERNELS = [("rbf", {"sigma": 0.5}), ("rbf", {"sigma": 2.0}), "linear"]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def by_hand(K, y, machine, C):
    """The decision of each class against the rest, one machine after the other, at the training samples."""
    decisions = []
    for label in np.unique(y):
        signs = np.where(y == label, 1.0, -1.0)
        if machine == "svc":
            decisions.append(SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, signs).decision_function(K))
        else:  # (K + 1/C) α + b = y, Σα = 0
            n = len(y)
            system = np.block([[K + np.eye(n) / C, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
            alpha = np.linalg.solve(system, np.append(signs, 0.0))
            decisions.append(K @ alpha[:-1] + alpha[-1])
    return np.array(decisions).T


@pytest.mark.parametrize(("machine", "loss"), [("svc", "hinge"), ("ls-svc", "squared")])
def test_decisions_match_one_machine_per_class(iris, machine, loss):
    X, y = iris
    stack = np.stack([rbf_kernel(X, gamma=gamma) for gamma in (0.1, 1.0)], axis=-1)
    given = {"kernels": "precomputed", "loss": loss, "multi_class": "one-vs-rest"}
    model = ParetoMKLClassifier(C=3.0, tol=1e-8, **given).fit(stack, y)
    wanted = by_hand(stack @ model.theta_, y, machine, 3.0)
    assert_allclose(model.decision_function(stack), wanted, atol=2e-3)
    assert_array_equal(model.predict(stack), wanted.argmax(axis=1))
    assert model.task_names_ == ["0 vs rest", "1 vs rest", "2 vs rest"]
    assert model.gap_ <= 1e-8


def test_it_matches_a_matrix_with_a_column_for_each_class(iris):
    X, y = iris
    one = ParetoMKLClassifier(p=0.5, kernels=KERNELS, multi_class="one-vs-rest").fit(X, y)
    other = ParetoMKLClassifier(p=0.5, kernels=KERNELS).fit(X, y[:, None] == np.unique(y))
    assert_allclose(one.theta_, other.theta_, rtol=1e-12)
    assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-12)


def test_two_classes_are_one_task_either_way(iris):
    X, y = iris[0][:100], iris[1][:100]
    one, other = (ParetoMKLClassifier(kernels=KERNELS, multi_class=way).fit(X, y) for way in WAYS)
    assert one.task_names_ == other.task_names_ == ["0 vs 1"]
    assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-12)


WAYS = ("one-vs-one", "one-vs-rest")


def test_every_sample_is_in_every_task():
    y = np.array(["b", "a", "c", "a"])
    tasks = make_tasks(y, multi_class="one-vs-rest")
    assert [task.classes for task in tasks] == [("a",), ("b",), ("c",)]
    assert_array_equal([task.targets for task in tasks], np.where(y == np.array([["a"], ["b"], ["c"]]), 1, -1))
    assert [tasks[0].samples_of(side) for side in tasks[0].sides] == ["besides class 'a'", "of class 'a'"]


@pytest.fixture(scope="module")
def plants(iris):
    """Two tasks, the second without class 2."""
    X, y = iris
    tasks = np.where(np.arange(len(y)) % 2, "field", "house")
    keep = (tasks == "field") | (y < 2)
    return X[keep], y[keep], tasks[keep]


@pytest.mark.parametrize("share", ["nothing", "kernel", "function", "everything"])
def test_tasks_of_several_classes(plants, share):
    X, y, tasks = plants
    model = ParetoMKLClassifier(C=10.0, kernels=KERNELS, share=share, multi_class="one-vs-rest")
    model.fit(X, y, tasks=tasks)
    scores, predicted = model.decision_function(X, tasks=tasks), model.predict(X, tasks=tasks)
    assert_array_equal(predicted, scores.argmax(axis=1))
    assert model.score(X, y, tasks=tasks) > 0.9
    if share in ("nothing", "kernel"):
        assert model.task_names_ == ["field: 0 vs rest", "field: 1 vs rest", "field: 2 vs rest", "house"]
        absent = scores[tasks == "house"]
        assert (absent[:, 2] < absent[:, :2].min(axis=1)).all()


def test_weights_of_classes_are_weights_of_their_samples(iris):
    X, y = iris
    weight = {0: 1.0, 1: 3.0, 2: 0.5}
    given = {"kernels": KERNELS, "multi_class": "one-vs-rest", "C": 0.3, "tol": 1e-6}
    one = ParetoMKLClassifier(class_weight=weight, **given).fit(X, y)
    other = ParetoMKLClassifier(**given).fit(X, y, sample_weight=[weight[label] for label in y])
    assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-9)
    balanced = ParetoMKLClassifier(class_weight="balanced", **given).fit(X, y)
    sizes = np.where(y[:, None] == np.arange(3), 150 / (2 * 50), 150 / (2 * 100))  # of both sides of each task
    rows = [ParetoMKLClassifier(**given | {"kernels": [KERNELS[0]]}) for _ in range(3)]
    alone = ParetoMKLClassifier(class_weight="balanced", **given | {"kernels": [KERNELS[0]]}).fit(X, y)
    wanted = [
        row.fit(X, y == label, sample_weight=sizes[:, label]).decision_function(X) for label, row in enumerate(rows)
    ]
    assert_allclose(alone.decision_function(X), np.array(wanted).T, atol=1e-3)
    assert np.isfinite(balanced.decision_function(X)).all()


@pytest.mark.parametrize(("machine", "loss"), [("svc", "hinge"), ("ls-svc", "squared")])
def test_models_of_a_path_predict_and_can_be_saved(iris, machine, loss, tmp_path):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    path = pareto_path(X, names, ps=[0.5, 1.0], kernels=KERNELS, machine=machine, multi_class="one-vs-rest")
    model = ParetoMKLClassifier(p=0.5, kernels=KERNELS, loss=loss, multi_class="one-vs-rest").fit(X, names)
    assert_array_equal(path.models[0].predict(X), model.predict(X))
    assert "multi_class='one-vs-rest'" in path.refit
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    pytest.importorskip("skops")
    save_model(model, tmp_path / "model.skops")
    assert_allclose(load_model(tmp_path / "model.skops").decision_function(X), model.decision_function(X), rtol=1e-12)


def test_tasks_are_judged_one_by_one(iris):
    X, y = iris
    model = pareto_path(X, y, ps=[1.0], kernels=KERNELS, multi_class="one-vs-rest").models[0]
    decisions = model.decisions(X)
    right = (decisions > 0) == (y[:, None] == np.arange(3))
    assert_allclose(model.task_accuracy(X, y), right.mean(axis=0))
    found = make_judge("balanced_accuracy").judge(model.tasks, decisions, Samples(X), y)
    truth = y[:, None] == np.arange(3)
    assert_allclose(found.scores, [(right[t, k].mean() + right[~t, k].mean()) / 2 for k, t in enumerate(truth.T)])
    predicted = decisions.argmax(axis=1)
    assert_allclose(found.overall[0], np.mean([np.mean(predicted[y == label] == label) for label in range(3)]))


def test_several_sources_choose_one_vs_rest_least_squares(monkeypatch):
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == digit)[:20] for digit in (1, 2, 7)])
    halves = sources({"upper": slice(0, 32), "lower": slice(32, 64)})
    given = {"ps": 1.0, "Cs": [1.0, 10.0], "s": 2.0, "cv": 2, "kernels": halves}
    search = ParetoMKLClassifierCV(**given).fit(X[rows], y[rows])
    assert (search.multi_class_, search.loss_) == ("one-vs-rest", "squared")
    assert search.best_estimator_.get_params()["multi_class"] == "one-vs-rest"
    assert search.path_.task_names == ["1 vs rest", "2 vs rest", "7 vs rest"]
    assert_array_equal(search.predict(X[:50]), search.path_.models[0].predict(X[:50]))
    tasks = np.arange(60) % 2  # of 30 samples each
    for most, how, found in [
        (60, {}, ("one-vs-rest", "squared")),
        (59, {}, ("one-vs-one", "hinge")),  # too many samples for least squares
        (30, {"tasks": tasks}, ("one-vs-rest", "squared")),
        (60, {"kernels": "default"}, ("one-vs-one", "hinge")),
        (60, {"kernels": sources({"all": slice(0, 64)})}, ("one-vs-one", "hinge")),
        (60, {"loss": "hinge"}, ("one-vs-one", "hinge")),
        (60, {"solver": "tseng"}, ("one-vs-one", "hinge")),
        (60, {"multi_class": "one-vs-one"}, ("one-vs-one", "squared")),
        (60, {"multi_class": "one-vs-rest", "kernels": "default"}, ("one-vs-rest", "hinge")),
        (59, {"loss": "squared"}, ("one-vs-one", "squared")),
    ]:
        monkeypatch.setattr("paretomkl._select.search._MOST_SQUARED", most)
        chosen = {name: value for name, value in how.items() if name != "tasks"}
        search = ParetoMKLClassifierCV(**given | chosen).fit(X[rows], y[rows], tasks=how.get("tasks"))
        assert (search.multi_class_, search.loss_) == found


def test_least_squares_are_chosen_by_their_squared_error(iris):
    X, y = iris
    search = ParetoMKLClassifierCV(
        ps=[0.5, 1.0], Cs=[0.01, 1.0, 100.0], kernels=KERNELS, multi_class="one-vs-rest", loss="squared"
    )
    results = search.fit(X, y).cv_results_
    score, loss, p = (results[name] for name in ("mean_test_score", "mean_test_squared_error", "param_p"))
    folds = np.array([results[f"split{k}_test_score"] for k in range(5)])
    tied = np.flatnonzero(score >= score.max() - 1e-9)
    best = tied[np.argmin(loss[tied])]
    near = np.flatnonzero((score >= score[best] - folds[:, best].std(ddof=1) / np.sqrt(5) - 1e-9) & (p == 1.0))
    assert loss[search.best_index_] <= 1.001 * loss[near].min()
    assert search.best_index_ in near


def test_a_lower_loss_beats_a_plateau_only_by_loss():
    scores = np.array([[0.9, 0.95, 0.9], [0.8, 0.85, 0.8]])
    at = {"C": np.array([1.0, 10.0, 100.0]), "p": np.ones(3)}
    losses = np.array([0.3, 0.5, 0.4])
    assert choose(scores, losses, at) == 1
    assert choose(scores, losses, at, by_loss=True) == 0


def test_squared_error_compares_with_the_signs():
    rng = np.random.default_rng(0)
    decisions, sides = rng.standard_normal((6, 2)), rng.choice([-1.0, 1.0], (6, 2))
    assert squared_error(decisions, sides) == pytest.approx(np.mean((sides - decisions) ** 2))


@pytest.mark.parametrize("make", [ParetoMKLClassifier, ParetoMKLClassifierCV])
def test_unknown_values_are_refused(iris, make):
    with pytest.raises(ValueError, match="multi_class must be 'one-vs-one' or 'one-vs-rest', got 'ovr'"):
        make(multi_class="ovr").fit(*iris)


def test_a_rest_without_cost_is_named(iris):
    X, y = iris
    with pytest.raises(ValueError, match="Task '0 vs rest' has no sample besides class 0 with a positive weight"):
        ParetoMKLClassifier(multi_class="one-vs-rest").fit(X, y, sample_weight=1.0 * (y == 0))
    with pytest.raises(ValueError, match="Task '0 vs rest' has no sample besides class 0 with C > 0"):
        pareto_path(X, y, C=1.0 * (y == 0), multi_class="one-vs-rest")
