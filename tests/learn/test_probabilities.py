"""Probabilities: calibrated on held-out decisions, led by the predicted class."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressorCV, load_model, save_model
from paretomkl._data.labels import Decided, Labelling, Samples
from paretomkl._learn.calibration import OFFSET, OWN_OFFSET, OWN_SLOPE, SLOPE, Calibration, HeldOut, led_by
from paretomkl.baselines import IndependentMKL
from paretomkl.exceptions import TaskDataError
from paretomkl.model_selection import MultiTaskStratifiedKFold, make_multitask_scorer

ONE_POINT = {"ps": 1.0, "Cs": 1.0, "s": 2.0, "capacity": 0.5}


def cancer(n, seed=0):
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))
    return X[rows[:n], 10:], y[rows[:n]], X[rows[n:], 10:], y[rows[n:]]


def posterior(f, y):
    """Slope and offset of log-odds a f + b by another way: the offsets ∓b/2 of both classes pay OFFSET."""
    scale = np.sqrt(np.mean(f**2))

    def lost(v):
        prior = SLOPE * (v[0] * scale - 1) ** 2 / 2 + OFFSET * v[1] ** 2 / 4
        return np.logaddexp(0, -(2 * y - 1) * (v[0] * f + v[1])).sum() + prior

    return minimize(lost, [1.0, 0.0], method="BFGS", tol=1e-10).x


def test_a_search_calibrates_on_its_held_out_decisions():
    X, y, new, _ = cancer(120)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    search = ParetoMKLClassifierCV(**ONE_POINT, cv=folds, tol=1e-6).fit(X, y)
    held_out = np.empty(len(y))
    for train, test in folds.split(X, y):
        held_out[test] = clone(search.best_estimator_).fit(X[train], y[train]).decision_function(X[test])
    a, b = posterior(held_out, y)
    f = search.decision_function(new)
    agree = (a * f + b > 0) == (f > 0)
    assert agree.mean() > 0.9
    assert_allclose(search.predict_proba(new)[agree, 1], expit(a * f + b)[agree], atol=2e-4)


def test_a_search_scores_each_fold_with_the_calibration_of_the_others():
    X, y, _, _ = cancer(120)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    search = ParetoMKLClassifierCV(**ONE_POINT, cv=folds, scoring="neg_log_loss", tol=1e-6).fit(X, y)
    f = [clone(search.best_estimator_).fit(X[train], y[train]).decision_function(X[test]) for train, test in folds]
    for k, (_, test) in enumerate(folds):
        others = [j for j in range(3) if j != k]
        a, b = posterior(np.concatenate([f[j] for j in others]), np.concatenate([y[folds[j][1]] for j in others]))
        z = a * f[k] + b
        z = np.where((z > 0) == (f[k] > 0), z, 0.0)
        assert_allclose(search.cv_results_[f"split{k}_test_score"][0], -log_loss(y[test], expit(z)), atol=1e-4)


def labelling(kind, pairs, sources):
    classes = np.array(sorted({label for pair in pairs for label in pair}))
    return Labelling(kind, [str(pair) for pair in pairs], sources, pairs, classes)


def test_calibration_of_several_classes_maximises_its_posterior():
    rng = np.random.default_rng(0)
    tasks = labelling("classes", [("a", "b"), ("a", "c"), ("b", "c")], [None] * 3)
    y = rng.integers(3, size=60)
    means = np.array([[-1, -1, 0], [1, 0, -1], [0, 1, 1]])
    f = means[y] + rng.normal(size=(60, 3))
    part = HeldOut(tasks, Decided.of(f), Samples(f), tasks.classes[y])
    found = Calibration.of(tasks, "margins", [part])
    f = f / np.sqrt(np.mean(f**2))
    mean = np.stack([-f[:, 0] - f[:, 1], f[:, 0] - f[:, 2], f[:, 1] + f[:, 2]], axis=1) / 3
    log = [np.log(expit(2 * v)) for v in (-f[:, 0], f[:, 0], -f[:, 1], f[:, 1], -f[:, 2], f[:, 2])]
    log = np.stack([log[0] + log[2], log[1] + log[4], log[3] + log[5]], axis=1) * (2 / 3) ** 0.25

    def lost(v):
        z = log_softmax(v[0] * mean + v[1] * log + v[2:], axis=1)
        return -z[np.arange(60), y].sum() + SLOPE * (v[0] ** 2 + (v[1] - 1) ** 2) / 2 + OFFSET * (v[2:] ** 2).sum() / 2

    best = minimize(lost, [0, 1, 0, 0, 0], method="BFGS").x
    assert_allclose(np.r_[found.slopes[-1], found.offsets[-1]], best, atol=1e-3)


def test_tasks_leave_the_common_calibration_as_far_as_their_size_justifies():
    rng = np.random.default_rng(0)
    tasks = labelling("tasks", [(0, 1)] * 3, ["large", "small", "absent"])
    name = np.repeat(["large", "small"], [4000, 8])
    f = rng.normal(size=4008) * 2
    y = (rng.random(4008) < expit(np.where(name == "large", 3.0, 0.5) * f + (name == "small"))).astype(int)
    decided = Decided(f[:, None], (name == "small").astype(int)[:, None])
    found = Calibration.of(tasks, "margins", [HeldOut(tasks, decided, Samples(f[:, None], name), y)])
    f = f / found.scale
    large, small, absent, common = found.slopes[:, 0]
    assert_allclose(large / found.scale, 3.0, atol=0.3)
    assert absent == common
    assert small < common
    mine = name == "small"
    start = found.slopes[-1, 0], np.ptp(found.offsets[-1])

    def lost(v):
        z = (2 * y[mine] - 1) * (v[0] * f[mine] + v[1])
        prior = OWN_SLOPE * (v[0] - start[0]) ** 2 / 2 + OWN_OFFSET * (v[1] - np.diff(found.offsets[-1])[0]) ** 2 / 4
        return np.logaddexp(0, -z).sum() + prior

    best = minimize(lost, start, method="BFGS").x
    assert_allclose([small, np.diff(found.offsets[1])[0]], best, atol=1e-3)


def test_a_weight_counts_as_so_many_samples():
    rng = np.random.default_rng(0)
    tasks = labelling("classes", [("a", "b")], [None])
    f, y = rng.normal(size=30), np.array(["a", "b"])[rng.integers(2, size=30)]
    weight = rng.integers(0, 4, size=30)

    def fitted(rows, weight=None, class_weight=None):
        part = HeldOut(tasks, Decided.of(f[rows, None]), Samples(f[rows, None]), y[rows], weight)
        found = Calibration.of(tasks, "margins", [part], class_weight)
        return np.r_[found.slopes[-1] / found.scale, found.offsets[-1]]

    everyone = np.arange(30)
    repeated = fitted(np.repeat(everyone, weight))
    assert_allclose(fitted(everyone, weight.astype(float)), repeated, atol=1e-9)
    f = np.sign(f)  # whose root mean square does not depend on the weights of classes
    of_class = fitted(np.r_[everyone, np.flatnonzero(y == "b")])
    assert_allclose(fitted(everyone, class_weight={"b": 2.0}), of_class, atol=1e-9)
    share = np.bincount(y == "a") / 15
    balanced = fitted(everyone, 1 / np.where(y == "a", share[1], share[0]))
    assert_allclose(fitted(everyone, class_weight="balanced"), balanced, atol=1e-9)


def test_the_chosen_class_leads_by_the_smallest_change():
    found = led_by(np.array([[0.5, 0.3, 0.2], [0.45, 0.35, 0.2], [0.2, 0.7, 0.1]]), np.array([1, 2, 1]))
    assert_allclose(found, [[0.4, 0.4, 0.2], [1 / 3] * 3, [0.2, 0.7, 0.1]], atol=1e-8)
    assert_array_equal(found.argmax(axis=1), [1, 2, 1])
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


FORMS = {
    "two classes": lambda X, y: (X, y > 0, None),
    "text": lambda X, y: (X, np.array(["x", "y", "z"], dtype=object)[y], None),
    "tasks": lambda X, y: (X, np.where(np.arange(len(y)) % 2, y, y > 0), np.arange(len(y)) % 2),
    "matrix": lambda X, y: (X, np.stack([y > 0, np.where(np.arange(len(y)) % 5, y == 2, np.nan)], axis=1), None),
}
MODELS = {
    "search": ParetoMKLClassifierCV(ps=1.0, Cs=[0.1, 1.0], s=2.0, cv=3, share="kernel"),
    "search by log-loss": ParetoMKLClassifierCV(
        share="kernel", ps=1.0, Cs=[0.1, 1.0], s=2.0, cv=3, scoring=make_multitask_scorer("neg_log_loss")
    ),
    "apart": ParetoMKLClassifierCV(**ONE_POINT, cv=3, share="nothing"),
    "everything": ParetoMKLClassifierCV(**ONE_POINT, cv=3, share="everything"),
    "plain": ParetoMKLClassifier(probability=True),
    "log-odds": ParetoMKLClassifier(loss="logistic"),
    "rest": ParetoMKLClassifier(loss="squared", multi_class="one-vs-rest", probability=True),
    "balanced": ParetoMKLClassifier(probability=True, class_weight="balanced"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_the_predicted_class_is_the_most_probable(form, model):
    X, y = load_wine(return_X_y=True)
    X, y, tasks = FORMS[form](X[::2, :6], y[::2])
    fitted = clone(MODELS[model]).fit(X, y, tasks=tasks)
    probability, predicted = fitted.predict_proba(X, tasks=tasks), fitted.predict(X, tasks=tasks)
    columns = [(probability, predicted, fitted.classes_)]
    if form == "matrix":
        columns = list(zip(probability, predicted.T, fitted.classes_, strict=True))
    for own, labels, classes in columns:
        assert own.shape == (len(X), len(classes))
        assert_allclose(own.sum(axis=1), 1.0)
        assert_array_equal(np.asarray(classes)[own.argmax(axis=1)], labels)
    logarithm = fitted.predict_log_proba(X, tasks=tasks)
    assert_allclose(np.exp(logarithm), probability)
    if form == "tasks" and model != "everything":
        assert (probability[tasks == 0, 2] == 0).all()
        assert (probability[tasks == 1] > 0).all()


def test_new_tasks_get_the_common_calibration():
    X, y = load_iris(return_X_y=True)
    tasks = np.array(["a", "b", "c"])[np.arange(150) % 3]
    search = ParetoMKLClassifierCV(**ONE_POINT, share="function", cv="new tasks").fit(X[:, :2], y, tasks=tasks)
    assert_allclose(search.predict_proba(X[:9, :2], tasks=["d"] * 9).sum(axis=1), 1.0)
    assert not np.allclose(search.calibration_.slopes[0], search.calibration_.slopes[-1])


def test_calibrated_probabilities_beat_the_sigmoid_of_decisions():
    X, y, new, truth = cancer(60, seed=1)
    model = ParetoMKLClassifier(C=0.05, probability=True).fit(X, y)
    assert log_loss(truth, model.predict_proba(new)) < 0.8 * log_loss(truth, expit(model.decision_function(new)))


def test_only_models_with_probabilities_have_the_methods():
    X, y, _, _ = cancer(60)
    plain = ParetoMKLClassifier()
    for model in (plain, plain.fit(X, y), IndependentMKL().fit(X, y)):
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError, match="set probability=True, or use ParetoMKLClassifierCV"):
            model.predict_log_proba(X)
    for model in (ParetoMKLClassifier(probability=True), ParetoMKLClassifier(loss="logistic"), ParetoMKLClassifierCV()):
        assert hasattr(model, "predict_proba")
    assert not hasattr(ParetoMKLRegressorCV(), "predict_proba")
    with pytest.raises(ValueError, match="has no method predict_proba"):
        ParetoMKLRegressorCV(scoring="neg_log_loss").fit(X, y.astype(float))


def test_probabilities_survive_saving_and_cloning(tmp_path):
    X, y, new, _ = cancer(60)
    search = ParetoMKLClassifierCV(**ONE_POINT, cv=3).fit(X, y)
    expected = search.predict_proba(new)
    save_model(search, tmp_path / "model.skops")
    for same in (load_model(tmp_path / "model.skops"), pickle.loads(pickle.dumps(search)), search.best_estimator_):
        assert_allclose(same.predict_proba(new), expected, atol=1e-12)
    assert_allclose(clone(search).fit(X, y).predict_proba(new), expected)


@pytest.mark.filterwarnings("ignore")
def test_tools_of_scikit_learn_that_need_probabilities():
    X, y, new, truth = cancer(60)
    tuned = TunedThresholdClassifierCV(ParetoMKLClassifierCV(**ONE_POINT, cv=3), scoring="f1", cv=3).fit(X, y)
    assert tuned.score(new, truth) > 0.85
    pipeline = make_pipeline(StandardScaler(), ParetoMKLClassifier(probability=True))
    grid = GridSearchCV(pipeline, {"paretomklclassifier__C": [0.1, 1.0]}, scoring="neg_log_loss", cv=3).fit(X, y)
    assert log_loss(truth, grid.predict_proba(new)) < log_loss(truth, np.full(len(truth), y.mean())) / 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_searches_choose_by_probabilities(scoring):
    X, y = load_iris(return_X_y=True)
    search = ParetoMKLClassifierCV(ps=1.0, Cs=[0.01, 10.0], s=2.0, scoring=scoring, cv=MultiTaskStratifiedKFold(3)).fit(
        X, y
    )
    results = search.cv_results_
    assert search.best_params_["C"] == 10.0
    assert search.best_score_ > results["mean_test_score"].max() - 0.01
    assert -0.2 < search.score(X, y) < 0


def test_folds_may_lack_classes():
    rng = np.random.default_rng(0)
    X, tasks = rng.standard_normal((41, 3)), np.repeat(["p", "q"], [20, 21])
    y = np.array(
        ["a", "b"] * 20 + ["c"]
    )  # the fold that holds out the last sample has two classes, and one kind of evidence
    clf = ParetoMKLClassifier(probability=True).fit(X, y, tasks=tasks)
    found = clf.predict_proba(X, tasks=tasks)
    assert_allclose(found.sum(axis=1), 1)
    assert (found[:20, 2] == 0).all()
    assert_array_equal(clf.classes_[found.argmax(axis=1)], clf.predict(X, tasks=tasks))
    with pytest.raises(TaskDataError, match=r"probability=True fits 5 folds.*two samples or more"):
        ParetoMKLClassifier(probability=True).fit(X, np.array(["a"] * 40 + ["b"]))
