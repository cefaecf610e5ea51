"""ParetoMKLClassifier as a scikit-learn estimator, and the ways to give the tasks."""

from __future__ import annotations

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_classification
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import Gaussian, KernelBank, ParetoMKLClassifier, pareto_path
from tests.conftest import make_toy

KERNELS = ["linear", ("rbf", {"sigma": 0.3}), ("rbf", {"sigma": 1.0})]


# a small tolerance, so that decisions settle: a gap of tol changes them by about its square root
# one check has class weights of 1000 and 0.0001, where rounding allows no proof of a gap below 3e-7
@parametrize_with_checks([ParetoMKLClassifier(tol=1e-8), ParetoMKLClassifier(p=0.1, s=2.0, kernels=KERNELS, tol=1e-6)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def column_form():
    """Two tasks that the last column distinguishes; it is not a feature."""
    X, y = make_classification(160, 5, n_informative=3, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    site = np.arange(160) % 2
    y = np.where(site == 1, 1 - y, y)  # the two tasks swap the classes
    return np.column_stack([X, site]), y


def make(**parameters):
    return ParetoMKLClassifier(kernels=KERNELS, **parameters)


# ------------------------------------------------------------ ways to say the tasks
def test_all_ways_to_give_the_tasks_are_one_problem(toy):
    frame = pd.DataFrame(toy.X, columns=["a", "b", "c"]).assign(site=toy.tasks)
    matrix = np.full((len(toy.y), 3), np.nan)
    for t, (rows, signs) in enumerate(toy.pairs):
        matrix[rows, t] = signs
    by_tasks = make(p=0.5).fit(toy.X, toy.y, tasks=toy.tasks)
    by_column = make(p=0.5, task_column="site").fit(frame, toy.y)
    by_index = make(p=0.5, task_column=-1).fit(frame, toy.y)
    polars = pl.DataFrame({name: frame[name].to_list() for name in frame})
    by_polars = make(p=0.5, task_column="site").fit(polars, toy.y)
    by_matrix = make(p=0.5).fit(toy.X, matrix)
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.5], kernels=KERNELS)
    for model in (by_tasks, by_column, by_index, by_polars, by_matrix):
        assert_allclose(model.theta_, path.theta[0], rtol=1e-6, atol=1e-9)
        assert_allclose(model.objectives_, path.objectives[0], rtol=1e-6)
    predicted = by_tasks.predict(toy.X, tasks=toy.tasks)
    assert_array_equal(by_column.predict(frame), predicted)
    assert_array_equal(by_polars.predict(polars), predicted)
    signs = by_matrix.predict(toy.X)
    for t, (rows, _) in enumerate(toy.pairs):
        assert_array_equal(np.where(signs[rows, t] > 0, "yes", "no"), predicted[rows])
    assert_allclose(by_matrix.score(toy.X, matrix), by_tasks.score(toy.X, toy.y, tasks=toy.tasks))


def test_fitted_attributes_keep_their_promises(toy):
    model = make(p=2.0).fit(toy.X, toy.y, tasks=toy.tasks)
    assert model.theta_.shape == (3,)
    assert model.objectives_.shape == model.task_weights_.shape == (3,)
    assert_allclose(model.task_weights_.sum(), 1)
    assert_allclose(model.objective_, np.mean(model.objectives_**2) ** 0.5, rtol=1e-8)
    assert 0 <= model.gap_ <= 1e-3
    assert model.n_sweeps_ > 0
    assert model.task_names_ == ["task 0", "task 1", "task 2"]
    assert_array_equal(model.classes_, ["no", "yes"])


def test_one_task_with_one_kernel_matches_svc():
    X, y = make_classification(120, 4, random_state=1)
    model = ParetoMKLClassifier(kernels=KernelBank([Gaussian(1.0)], normalize="none"), C=3.0, tol=1e-7).fit(X, y)
    svc = SVC(gamma=0.5, C=3.0, tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-3)
    assert_array_equal(model.predict(X), svc.predict(X))


def test_votes_match_svc():
    X, y = load_iris(return_X_y=True)
    model = ParetoMKLClassifier(kernels=KernelBank([Gaussian(1.0)], normalize="none"), C=1.0, tol=1e-7).fit(X, y)
    svc = SVC(gamma=0.5, C=1.0, tol=1e-8, decision_function_shape="ovr").fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    assert_array_equal(model.predict(X), svc.predict(X))
    assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-3)


def test_tasks_may_have_their_own_classes():
    toy = make_toy(seed=3, n_tasks=2, n=30)
    y = toy.y.astype(object)
    y[:30] = np.arange(30) % 3  # three numbers in the first task, two words in the second
    model = make(C=100.0).fit(toy.X, y, tasks=toy.tasks)
    assert model.n_tasks_ == 4
    predicted = model.predict(toy.X, tasks=toy.tasks)
    assert set(predicted[:30]) <= {0, 1, 2}
    assert set(predicted[30:]) <= {"yes", "no"}


def test_prediction_needs_only_the_requested_rows(toy):
    model = make().fit(toy.X, toy.y, tasks=toy.tasks)
    whole = model.decision_function(toy.X, tasks=toy.tasks)
    some = np.array([50, 3, 20])
    assert_allclose(model.decision_function(toy.X[some], tasks=toy.tasks[some]), whole[some], rtol=1e-12)


# ------------------------------------------------------------ weights
def test_weights_act_like_repetitions(toy):
    rows, _ = toy.pairs[0]
    X, y = toy.X[rows], toy.y[rows]
    weight = np.arange(len(rows)) % 3
    weight[:4] = 1
    repeated = np.repeat(np.arange(len(rows)), weight)
    weighted = make(tol=1e-6).fit(X, y, sample_weight=weight)
    again = make(tol=1e-6).fit(X[repeated], y[repeated])
    assert_allclose(weighted.objective_, again.objective_, rtol=2e-6)


def test_balanced_classes_count_equally():
    X, y = make_classification(200, 4, weights=[0.9], flip_y=0.1, random_state=0)
    plain, balanced = make().fit(X, y), make(class_weight="balanced").fit(X, y)
    assert np.mean(balanced.predict(X)) > np.mean(plain.predict(X))
    counts = np.bincount(y)
    by_hand = make(class_weight={label: len(y) / (2 * counts[label]) for label in (0, 1)}).fit(X, y)
    assert_allclose(by_hand.objective_, balanced.objective_, rtol=1e-8)


# ------------------------------------------------------------ scikit-learn's tools, column form
def test_cross_validation_with_string_scorers(column_form):
    X, y = column_form
    model = make(task_column=5)
    scores = cross_validate(model, X, y, cv=3, scoring=["accuracy", "roc_auc", "f1"])
    assert np.all(scores["test_accuracy"] > 0.6)
    assert np.all(scores["test_roc_auc"] > 0.6)
    assert cross_val_predict(model, X, y, cv=3).shape == y.shape
    sizes, train, _ = learning_curve(model, X, y, cv=3, train_sizes=[0.5, 1.0])
    assert train.shape == (2, 3)
    assert len(sizes) == 2


def test_grid_search_calibration_importance(column_form):
    X, y = column_form
    search = GridSearchCV(make(task_column=5), {"p": [0.1, 1.0], "C": [1.0, 10.0]}, cv=3).fit(X, y)
    assert search.predict(X).shape == y.shape
    calibrated = CalibratedClassifierCV(make(task_column=5), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(y), 2)
    importance = permutation_importance(make(task_column=5).fit(X, y), X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean[5] > 0.1  # the tasks disagree: without the task column they cannot be told apart


def test_pipeline_that_passes_the_column_through(column_form):
    X, y = column_form
    frame = pd.DataFrame(X, columns=[*"abcde", "site"])
    scale = ColumnTransformer([("scale", MinMaxScaler(), list("abcde"))], remainder="passthrough")
    pipe = make_pipeline(scale, make(task_column=-1)).fit(frame, y)
    assert pipe.score(frame, y) > 0.6


def test_routing_needs_no_requests(toy):
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_validate(
            make(), toy.X, toy.y, params={"tasks": toy.tasks}, cv=KFold(3, shuffle=True, random_state=1)
        )
    assert len(scores["test_score"]) == 3


def test_precomputed_stacks_in_a_grid_search(toy):
    rows, _ = toy.pairs[1]
    stack = np.moveaxis(toy.Ks[:, rows][:, :, rows], 0, 2)
    search = GridSearchCV(ParetoMKLClassifier(kernels="precomputed"), {"C": [0.1, 10.0]}, cv=3).fit(stack, toy.y[rows])
    assert search.predict(stack).shape == (len(rows),)
    direct = ParetoMKLClassifier(kernels=toy.kernels, tol=1e-7).fit(toy.X[rows], toy.y[rows])
    given = ParetoMKLClassifier(kernels="precomputed", tol=1e-7).fit(stack, toy.y[rows])
    assert_allclose(given.decision_function(stack), direct.decision_function(toy.X[rows]), atol=1e-4)


@pytest.mark.parametrize("copy", [clone, lambda m: pickle.loads(pickle.dumps(m))], ids=["clone", "pickle"])
def test_copies(toy, copy, tmp_path):
    model = make(p=0.3).fit(toy.X, toy.y, tasks=toy.tasks)
    other = copy(model)
    assert other.get_params() == model.get_params()
    joblib.dump(model, tmp_path / "model")
    loaded = joblib.load(tmp_path / "model")
    assert_array_equal(loaded.predict(toy.X, tasks=toy.tasks), model.predict(toy.X, tasks=toy.tasks))


def test_a_pickle_holds_support_vectors_not_kernels():
    X, y = make_classification(400, 5, class_sep=3.0, flip_y=0, random_state=0)
    model = ParetoMKLClassifier(C=10.0).fit(X, y)
    assert len(model.support_) < 200
    assert len(pickle.dumps(model)) < 30 * 8 * len(model.support_) + 20_000


def test_columns_by_name(column_form):
    X, y = column_form
    frame = pd.DataFrame(X, columns=[*"abcde", "site"])
    kernels = [Gaussian(0.5, columns=["a", "b"]), Gaussian(0.5, columns=["c"]), ("linear", {"columns": "e"})]
    model = ParetoMKLClassifier(kernels=kernels, task_column="site").fit(frame, y)
    assert_array_equal(model.feature_names_in_, [*"abcde", "site"])
    moved = frame[["site", *"edcba"]]
    again = ParetoMKLClassifier(kernels=kernels, task_column="site").fit(moved, y)
    assert_allclose(again.theta_, model.theta_, atol=1e-6)
    assert_array_equal(again.predict(moved), model.predict(frame))


# ------------------------------------------------------------ errors
def test_unknown_and_missing_tasks_are_named(toy):
    model = make().fit(toy.X, toy.y, tasks=toy.tasks)
    with pytest.raises(ValueError, match=r"Unknown task 'pump'; the model knows \['task 0', 'task 1', 'task 2'\]"):
        model.predict(toy.X[:1], tasks=["pump"])
    with pytest.raises(ValueError, match=r"was fitted with tasks .*; pass the task of each row as tasks="):
        model.predict(toy.X)
    with pytest.raises(ValueError, match="fitted without tasks; do not pass tasks="):
        make().fit(toy.X, toy.y).predict(toy.X, tasks=toy.tasks)
    with pytest.raises(ValueError, match="Pass task_column or tasks=, not both"):
        make(task_column=0).fit(toy.X, toy.y, tasks=toy.tasks)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (7, "task_column=7 is out of range: X has 3 columns"),
        ("site", "'site' is a name, but X has no column names; pass the index"),
        (True, "task_column must be an index or a name, got True"),
    ],
)
def test_a_bad_task_column_is_named(toy, column, message):
    with pytest.raises(ValueError, match=message):
        make(task_column=column).fit(toy.X, toy.y)


def test_a_task_of_one_class_is_named(toy):
    y = np.where(toy.tasks == "task 1", "yes", toy.y)
    with pytest.raises(ValueError, match="Task 'task 1' has only one class, 'yes'"):
        make().fit(toy.X, y, tasks=toy.tasks)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"p": float("nan")}, "p must be a number"),
        ({"p": "inf"}, "p must be a number or ±inf, got p='inf'"),
        ({"p": None}, "p must be a number"),
        ({"p": [1, 2]}, "p must be a number"),
        ({"s": 0.5}, "s must be a number at least 1"),
        ({"C": 0.0}, "C must be a number greater than 0"),
        ({"C": np.ones(54)}, "C must be one number; pass sample_weight to fit"),
        ({"class_weight": "heavy"}, "class_weight must be None, 'balanced' or a dict"),
        ({"class_weight": np.ones(54)}, "class_weight must be None, 'balanced' or a dict, got <ndarray>"),
        ({"class_weight": {"yes": 2, "nay": 3}}, "class_weight names the label 'nay', which y does not have"),
        ({"class_weight": {"yes": -1}}, "class_weight of class 'yes' must be positive"),
        ({"solver": "bcd", "p": 2.0}, "solver='bcd' handles only p <= 1"),
    ],
)
def test_bad_parameters_are_named(toy, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(toy.X, toy.y, tasks=toy.tasks)


@pytest.mark.parametrize("tasks", ["pump", [("a", 1)] * 54, ["task 0"]], ids=["text", "tuples", "too few"])
def test_tasks_that_do_not_fit_are_named(toy, tasks):
    model = make().fit(toy.X, toy.y, tasks=toy.tasks)
    for call in (lambda: model.predict(toy.X, tasks=tasks), lambda: make().fit(toy.X, toy.y, tasks=tasks)):
        with pytest.raises(ValueError, match=r"tasks must have one entry per sample \(54\)"):
            call()


def test_the_unknown_task_of_a_fold_is_explained(toy):
    model = make().fit(toy.X[:36], toy.y[:36], tasks=toy.tasks[:36])
    with pytest.raises(ValueError, match=r"In cross-validation, split with .*MultiTaskStratifiedKFold"):
        model.predict(toy.X, tasks=toy.tasks)


def test_x_that_does_not_fit_is_named(toy):
    objects = np.column_stack([toy.X.astype(object), toy.tasks])
    with pytest.raises(ValueError, match=r"could not convert string to float: 'task 0'\. Encode that column, or, if"):
        make().fit(objects, toy.y)
    with pytest.raises(ValueError, match="task_column=0 needs a dense X, but X is sparse"):
        make(task_column=0).fit(scipy.sparse.csr_array(toy.X), toy.y)
    with pytest.raises(ValueError, match="X has no column besides task_column=0"):
        make(task_column=0).fit(toy.X[:, :1], toy.y)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda y: np.where(np.arange(54) == 3, np.nan, y == "yes")[:, None],
        lambda y: pd.Series(y == "yes").astype("Int64").mask(np.arange(54) == 3),
        lambda y: [np.nan if k == 3 else label for k, label in enumerate(y.tolist())],
    ],
    ids=["column", "Int64", "list"],
)
def test_a_missing_label_gets_one_clear_error(toy, spoil):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"y is missing for sample 3 \(1 in total\)"):
            make().fit(toy.X, spoil(toy.y))


# ------------------------------------------------------------ labels of every type, in fit and in score
def label_matrix(toy, no="no", yes="yes", missing=None):
    matrix = np.full((len(toy.y), 3), missing, dtype=object)
    for t, (rows, signs) in enumerate(toy.pairs):
        matrix[rows, t] = [yes if sign > 0 else no for sign in signs]
    return matrix


@pytest.fixture(scope="module")
def accuracy(toy):
    model = make(C=0.1).fit(toy.X, toy.y, tasks=toy.tasks)
    return model.score(toy.X, toy.y, tasks=toy.tasks)


MATRICES = {
    "Int64": lambda toy: pd.DataFrame(label_matrix(toy, 0, 1)).astype("Int64"),
    "string": lambda toy: pd.DataFrame(label_matrix(toy)).astype("string"),
    "lists": lambda toy: label_matrix(toy, missing=float("nan")).tolist(),
    "two types": lambda toy: label_matrix(toy, 0, "one"),
    "polars": lambda toy: pl.DataFrame(label_matrix(toy).tolist(), schema=["a", "b", "c"], orient="row"),
}


@pytest.mark.parametrize("make_matrix", MATRICES.values(), ids=MATRICES)
def test_a_matrix_of_any_labels_is_scored_where_it_is_labelled(toy, accuracy, make_matrix):
    assert 0.5 < accuracy < 1
    matrix = make_matrix(toy)
    model = make(C=0.1).fit(toy.X, matrix)
    assert model.score(toy.X, matrix) == pytest.approx(accuracy)
    known = {
        label for row in np.asarray(matrix, dtype=object).tolist() for label in row if isinstance(label, int | str)
    }
    assert {label for classes in model.classes_ for label in classes.tolist()} == known


def test_a_frame_is_scored_by_the_names_of_its_columns(toy, accuracy):
    frame = pd.DataFrame(label_matrix(toy), columns=["a", "b", "c"])
    model = make(C=0.1).fit(toy.X, frame)
    assert model.score(toy.X, frame[["c", "a", "b"]]) == pytest.approx(accuracy)
    with pytest.raises(ValueError, match=r"y has the columns \['a', 'b', 'd'\], but the tasks are \['a', 'b', 'c'\]"):
        model.score(toy.X, frame.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match="y has two columns called 'a'"):
        make().fit(toy.X, frame.rename(columns={"b": "a"}))


def test_task_labels_keep_their_types(toy):
    tasks = [1 if task == "task 1" else task for task in toy.tasks.tolist()]
    model = make().fit(toy.X, toy.y, tasks=tasks)
    assert model.sources_ == ["task 0", 1, "task 2"]
    rows = [[*x, task] for x, task in zip(toy.X.tolist(), tasks, strict=True)]
    by_column = make(task_column=-1).fit(rows, toy.y)
    assert by_column.sources_ == model.sources_
    assert_array_equal(by_column.predict(rows), model.predict(toy.X, tasks=tasks))
    with pytest.raises(ValueError, match="task_column=-1 is missing for sample 53"):
        make(task_column=-1).fit([*rows[:-1], [*rows[-1][:-1], None]], toy.y)


@pytest.mark.skipif(
    hash(np.datetime64("2020", "s")) != hash(np.datetime64("2020", "ns")),
    reason="in old versions of NumPy, equal times of different units have different hashes",
)
@pytest.mark.parametrize("unit", ["ns", "us", "D"])
def test_times_name_tasks_and_classes(toy, accuracy, unit):
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], f"M8[{unit}]")
    tasks = days[np.unique(toy.tasks, return_inverse=True)[1]]
    model = make(C=0.1).fit(toy.X, toy.y, tasks=tasks)
    assert model.score(toy.X, toy.y, tasks=tasks.astype("M8[us]")) == pytest.approx(accuracy)
    assert model.predict(toy.X[:1], tasks=[pd.Timestamp("2020-01-01")]) == model.predict(toy.X[:1], tasks=tasks[:1])
    y = days[(toy.y == "yes").astype(int)]
    model = make(C=0.1).fit(toy.X, y, tasks=toy.tasks)
    assert model.predict(toy.X, tasks=toy.tasks).dtype == y.dtype
    assert model.score(toy.X, y, tasks=toy.tasks) == pytest.approx(accuracy)
    assert make().fit(toy.X, tasks).decision_function(toy.X).shape == (54, 3)


def test_scores_skip_samples_without_weight(toy):
    model = make(C=0.1).fit(toy.X, toy.y, tasks=toy.tasks)
    kept = toy.tasks != "task 1"
    alone = model.score(toy.X[kept], toy.y[kept], tasks=toy.tasks[kept])
    assert model.score(toy.X, toy.y, sample_weight=kept.astype(float), tasks=toy.tasks) == pytest.approx(alone)
    with pytest.raises(ValueError, match="nothing to score: y has no label with positive weight"):
        model.score(toy.X, toy.y, sample_weight=np.zeros(54), tasks=toy.tasks)


def test_scoring_labels_that_do_not_fit_is_refused(toy):
    matrix = label_matrix(toy)
    model = make().fit(toy.X, matrix)
    for y in (toy.y, matrix[:, :2]):
        with pytest.raises(ValueError, match=r"y must have the shape \(54, 3\) of the predictions, got"):
            model.score(toy.X, y)
    with pytest.raises(ValueError, match=r"y must have the shape \(54,\) of the predictions, got shape \(54, 3\)"):
        make().fit(toy.X, toy.y).score(toy.X, matrix)


def test_a_second_fit_leaves_nothing_of_the_first(toy):
    stack = np.moveaxis(toy.Ks, 0, 2)
    model = ParetoMKLClassifier().fit(pd.DataFrame(toy.X, columns=["a", "b", "c"]), toy.y)
    model.set_params(kernels="precomputed").fit(stack, toy.y)
    fresh = ParetoMKLClassifier(kernels="precomputed").fit(stack, toy.y)
    assert vars(model).keys() == vars(fresh).keys()
