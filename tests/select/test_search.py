"""ParetoMKLClassifierCV: the choice of GridSearchCV, for every way to give the tasks, and on a cluster."""

from __future__ import annotations

import pickle
import warnings
from contextlib import contextmanager
from dataclasses import replace

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, f1_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import (
    PAPER_PS,
    Gaussian,
    KernelBank,
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLRegressorCV,
    pareto_path,
)
from paretomkl._data import reading
from paretomkl._data.reading import PathReader, Reading
from paretomkl._fitting.tracing import Grid, check_parts, fit_bank, pose, trace_grid
from paretomkl._select.choice import choose
from paretomkl._select.splits import searches_all
from paretomkl._tools.public import PublicNames
from paretomkl._tools.running import Progress
from paretomkl.exceptions import GridEdgeWarning
from paretomkl.machines import SVCTasks
from paretomkl.model_selection import MultiTaskStratifiedKFold, make_multitask_scorer
from paretomkl.scalarizations import PowerMean
from paretomkl.weight_sets import LsBall

PS = [0.1, 1.0, np.inf]
CS = [0.3, 3.0, 30.0]


def scaled(X):
    return (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scaled(X), y


@pytest.fixture(scope="module")
def sites():
    """Two tasks in the column form, with their own labels."""
    X, y = load_digits(return_X_y=True)
    rows = np.flatnonzero(np.isin(y, [1, 2, 7, 8]))[:200]
    X, y = X[rows] / 16, y[rows]
    task = np.where(np.isin(y, [1, 7]), "stroke", "loop")
    return X, y, task


@parametrize_with_checks(
    [ParetoMKLClassifierCV([0.5, 2.0], [1.0, 10.0], cv=2, kernels=["linear", ("rbf", {"sigma": 0.5})], tol=1e-6)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "f1_macro"])
def test_scores_and_choice_match_a_grid_search(wine, scoring):
    X, y = wine
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    ours = ParetoMKLClassifierCV(ps=PS, Cs=CS, s=1.1, kernels="paper", cv=cv, scoring=scoring, tol=1e-5).fit(X, y)
    plain = ParetoMKLClassifier(kernels="paper", tol=1e-5)
    grid = GridSearchCV(plain, {"p": PS, "C": CS}, cv=cv, scoring=scoring).fit(X, y)
    for key in ("mean_test_score", "std_test_score", "split2_test_score"):
        assert_allclose(ours.cv_results_[key], grid.cv_results_[key], rtol=1e-12)
    assert list(ours.cv_results_["params"]) == list(grid.cv_results_["params"])
    assert ours.best_params_["p"] == 1.0  # the best of them are within one standard error of it
    chosen = plain.set_params(**ours.best_params_).fit(X, y)
    assert_allclose(ours.decision_function(X), chosen.decision_function(X), atol=2e-3)
    assert_array_equal(ours.predict(X), chosen.predict(X))


def test_every_capacity_and_norm_scores_as_if_fitted_alone(wine):
    X, y = wine
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    given = {"ps": [0.5, 1.0, np.inf], "Cs": [0.3, 30.0], "s": [1.0, 1.5, np.inf], "capacity": [0.0, 0.7]}
    ours = ParetoMKLClassifierCV(**given, cv=cv, tol=1e-5, scoring=confidence).fit(X, y)
    plain = ParetoMKLClassifier(kernels=KernelBank(), tol=1e-5)
    names = {"p": "ps", "C": "Cs", "s": "s", "kernels__capacity": "capacity"}
    grid = GridSearchCV(plain, {name: given[of] for name, of in names.items()}, cv=cv, scoring=confidence)
    expected = {tuple(row[name] for name in names): score for row, score in _rows(grid.fit(X, y))}
    assert len(ours.cv_results_["params"]) == len(expected) == 36
    for row, score in _rows(ours):
        assert score == pytest.approx(expected[row["p"], row["C"], row["s"], row["capacity"]], abs=2e-3)
    assert ours.cv_results_["max_gap"].max() <= 1e-5


def confidence(estimator, X, y):
    """A score that changes with every change of the model."""
    return float(np.abs(estimator.decision_function(X)).mean())


def _rows(search):
    return zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)


def test_the_search_over_everything_takes_few_extra_sweeps(wine):
    X, y = wine
    given = {"ps": [0.1, 0.5, 1.0, 2.0, np.inf], "Cs": [0.1, 1.0, 10.0], "cv": 3}
    sweeps = []
    for more in ({"s": 1.1, "capacity": 0.5}, {"s": [1.1, 2.0, np.inf], "capacity": [0.5, 1.0]}):
        with count_sweeps() as counted:
            ParetoMKLClassifierCV(**given, **more).fit(X, y)
        sweeps.append(len(counted))
    assert sweeps[1] <= 3 * sweeps[0]  # six times as many points


@contextmanager
def count_sweeps():
    counted, sweep = [], SVCTasks.sweep

    def counting(self, *args, **kwargs):
        counted.append(1)
        return sweep(self, *args, **kwargs)

    SVCTasks.sweep = counting
    try:
        yield counted
    finally:
        SVCTasks.sweep = sweep


def test_single_values_fix_a_parameter(wine):
    X, y = wine
    fixed = ParetoMKLClassifierCV(ps=1.0, Cs=10.0, s=2.0, capacity=0.25, cv=3).fit(X, y)
    assert fixed.best_params_ == {"C": 10.0, "p": 1.0}
    assert fixed.best_estimator_.s == 2.0
    assert fixed.best_estimator_.kernels == KernelBank(normalize="capacity", capacity=0.25)
    assert ParetoMKLClassifierCV(ps=1.0, Cs=10.0, s=[2.0], kernels="paper", cv=3).fit(X, y).best_params_ == {
        "C": 10.0,
        "p": 1.0,
        "s": 2.0,
    }
    again = clone(fixed.best_estimator_).fit(X, y)
    assert_allclose(again.decision_function(X), fixed.decision_function(X), atol=2e-2)


def test_other_kernels_pay_for_their_capacity_on_request(wine):
    X, y = wine
    stack = np.stack([rbf_kernel(X, gamma=g) for g in (0.1, 1.0, 100.0)], axis=2)
    for kernels, data in (([Gaussian(0.5), "linear"], X), ("precomputed", stack)):
        search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0, 10.0], s=1.1, capacity=[0.0, 1.0], kernels=kernels, cv=3)
        assert search.fit(data, y).best_params_["capacity"] in (0.0, 1.0)
        assert search.best_estimator_.kernels.normalize == "capacity"
    with pytest.raises(ValueError, match="capacity needs normalize='capacity', but the bank has normalize='unit'"):
        ParetoMKLClassifierCV(kernels=KernelBank("paper", normalize="unit"), capacity=0.5).fit(X, y)


def test_the_edge_of_the_grid_gives_a_warning(wine):
    X, y = wine
    with pytest.warns(GridEdgeWarning, match="add 3 to Cs"):
        ParetoMKLClassifierCV(ps=1.0, Cs=[1e-3, 0.3], cv=3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ParetoMKLClassifierCV(ps=1.0, Cs=10.0, cv=3).fit(X, y)


# ----------------------------------------------------------------------------------------- the rule of choice
def points(ps, Cs=None):
    return {"C": np.ones(len(ps)) if Cs is None else np.array(Cs), "p": np.array(ps)}


def test_the_loss_decides_when_scores_differ_only_by_rounding():
    scores = np.array([[0.9200000000000002, 0.9199999999999999, 0.9]] * 3)
    everywhere = points([1.0] * 3, [1.0] * 3)
    everywhere["s"] = np.array([1.0, 1.1, 2.0])
    assert choose(scores, np.array([0.5, 0.4, 0.1]), everywhere) == 1
    assert choose(scores, np.array([0.4, 0.5, 0.1]), everywhere) == 0
    assert choose(scores, np.array([0.4, 0.4, 0.1]), everywhere) == 0


def test_an_exponent_nearer_to_one_is_chosen_within_one_standard_error():
    best = np.array([0.90, 0.94, 0.98])  # mean 0.94, standard error 0.023
    table = np.column_stack([best, best - 0.02, best - 0.03])
    loss = np.zeros(3)
    assert choose(table, loss, points([0.1, 1.0, 10.0])) == 1
    assert choose(table, loss, points([0.1, 20.0, 1.0])) == 0  # p = 1 is too far below
    assert choose(table, loss, points([0.1, 0.5, 1.0])) == 1
    assert choose(table, loss, points([np.inf, 0.0, 1.0])) == 1
    assert choose(table[:1], loss, points([0.1, 1.0, 10.0])) == 0  # one fold knows no error
    assert choose(np.column_stack([table, [np.nan] * 3]), np.zeros(4), points([0.1, 1.0, 10.0, 2.0])) == 1


def test_the_middle_of_a_plateau_of_costs_is_chosen():
    mean = np.array([0.91, 0.5, 0.6, 0.904, 0.905, 0.903])
    noise = np.array([[-0.02], [0.0], [0.02]]) * np.array([1, -1, 1, -1, -1, -1])  # the difference has error 0.023
    at = points([1.0] * 6, [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
    assert choose(mean + noise, np.zeros(6), at) == 4
    mean[0] = 0.93  # now the others are more than one standard error of the difference below
    assert choose(mean + noise, np.zeros(6), at) == 0
    mean[0] = 0.91  # in all folds alike: the difference is certain
    assert choose(mean + np.abs(noise), np.zeros(6), at) == 0


def test_the_order_of_the_grid_does_not_matter(wine):
    X, y = wine
    one = ParetoMKLClassifierCV(ps=PS, Cs=CS, s=1.1, capacity=[0.0, 1.0], cv=3, tol=1e-5).fit(X, y)
    other = ParetoMKLClassifierCV(ps=PS[::-1], Cs=CS[::-1], s=1.1, capacity=[1.0, 0.0], cv=3, tol=1e-5).fit(X, y)
    shape = len(CS), 2, len(PS)
    table = one.cv_results_["mean_test_score"].reshape(shape)
    assert_array_equal(other.cv_results_["mean_test_score"].reshape(shape), table[::-1, ::-1, ::-1])


def test_results_load_into_a_frame(wine):
    pd = pytest.importorskip("pandas")
    X, y = wine
    search = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3).fit(X, y)
    table = pd.DataFrame(search.cv_results_)
    assert len(table) == len(PS) * len(CS) * 2 * 3  # two norms, three capacities
    assert {"param_C", "param_p", "param_s", "param_capacity", "mean_test_score", "std_test_score"} <= set(table)
    assert {"rank_test_score", "mean_test_log_loss", "max_gap"} <= set(table)
    assert table["rank_test_score"].min() == 1
    assert table.loc[search.best_index_, "mean_test_score"] == search.best_score_
    assert table["max_gap"].max() <= 3 * search.tol  # of the models of folds; a smaller tol holds for them too
    assert search.path_.gap.max() <= search.tol
    assert (table["mean_fit_time"] > 0).all()
    assert (table["std_fit_time"] >= 0).all()


def test_the_best_estimator_and_the_path_use_all_samples(wine):
    X, y = wine
    search = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3, tol=1e-5).fit(X, y)
    chosen = dict(search.best_params_)
    bank = KernelBank(capacity=chosen.pop("capacity"))
    plain = ParetoMKLClassifier(**chosen, kernels=bank, tol=1e-5).fit(X, y)
    path = pareto_path(X, y, ps=PS, C=chosen["C"], s=chosen["s"], kernels=bank, tol=1e-5)
    assert isinstance(search.best_estimator_, ParetoMKLClassifier)
    assert search.best_estimator_.get_params()["p"] == search.best_params_["p"]
    assert_allclose(search.best_estimator_.objective_, plain.objective_, rtol=2e-5)
    assert_allclose(search.path_.objective, path.objective, rtol=2e-5)
    assert_allclose(search.theta_, search.path_.theta[PS.index(search.best_params_["p"])])
    assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    assert search.path_.gap.max() <= 1e-5
    assert search.n_splits_ == 3
    assert f"C={search.best_params_['C']}" in search.path_.refit  # so that its page says how to fit a point


def test_all_ways_to_give_the_tasks_agree(sites):
    X, y, task = sites
    matrix = np.full((len(y), 2), np.nan)
    for t, name in enumerate(["loop", "stroke"]):
        matrix[task == name, t] = y[task == name]
    with_column = np.column_stack([X.astype(object), task])
    common = {"ps": PS, "Cs": CS, "share": "kernel"}
    cv = list(MultiTaskStratifiedKFold(3).split(X, y, tasks=task))
    by_argument = ParetoMKLClassifierCV(**common, cv=cv).fit(X, y, tasks=task)
    by_column = ParetoMKLClassifierCV(**common, cv=cv, task_column=64).fit(with_column, y)
    by_matrix = ParetoMKLClassifierCV(**common, cv=cv).fit(X, matrix)
    for other in (by_column, by_matrix):
        assert_allclose(other.cv_results_["mean_test_score"], by_argument.cv_results_["mean_test_score"])
        assert other.best_params_ == by_argument.best_params_
    assert_array_equal(by_argument.predict(X, tasks=task), by_column.predict(with_column))
    assert ParetoMKLClassifierCV(**common, cv=3).fit(X, y, tasks=task).n_splits_ == 3


def test_folds_are_stratified_by_task_and_label(sites):
    X, y, task = sites
    seen = []

    def note(estimator, X_test, y_test, tasks=None):
        seen.append((set(y_test), set(tasks)))
        return estimator.score(X_test, y_test, tasks=tasks)

    given = {"ps": [1.0], "Cs": [1.0], "s": 1.1, "capacity": 0.5, "share": "kernel"}
    ParetoMKLClassifierCV(**given, cv=4, scoring=note).fit(X, y, tasks=task)
    assert seen == [({1, 2, 7, 8}, {"stroke", "loop"})] * 4


@pytest.mark.parametrize("average", ["macro", "worst"])
def test_scorers_of_several_tasks(sites, average):
    X, y, task = sites
    scorer = make_multitask_scorer("balanced_accuracy", average=average)
    cv = list(MultiTaskStratifiedKFold(3).split(X, y, tasks=task))
    given = {"ps": [0.1, np.inf], "Cs": [0.01, 1.0], "s": 1.1, "capacity": 0.5, "share": "kernel"}
    ours = ParetoMKLClassifierCV(**given, cv=cv, scoring=scorer).fit(X, y, tasks=task)
    column = np.column_stack([X.astype(object), task])
    grid = GridSearchCV(
        ParetoMKLClassifier(task_column=64),
        {"p": [0.1, np.inf], "C": [0.01, 1.0]},
        cv=cv,
        scoring=make_multitask_scorer("balanced_accuracy", average=average),
    ).fit(column, y)
    assert_allclose(ours.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=0.02)


def test_string_scorers_reach_models_whose_tasks_are_an_argument(sites):
    X, y, task = sites
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3, scoring="accuracy", share="kernel").fit(X, y, tasks=task)
    assert 0.9 < search.best_score_ <= 1


def test_precomputed_stacks(wine):
    X, y = wine
    stack = np.stack([rbf_kernel(X, gamma=g) for g in (0.1, 1.0, 10.0)], axis=2)
    ours = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3, kernels="precomputed", tol=1e-5).fit(stack, y)
    kernels = [Gaussian(sigma=(0.5 / g) ** 0.5) for g in (0.1, 1.0, 10.0)]
    same = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3, kernels=kernels, tol=1e-5).fit(X, y)
    assert_allclose(ours.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])
    assert_array_equal(ours.predict(stack), same.predict(X))


def test_frames_weights_and_groups(wine):
    pd = pytest.importorskip("pandas")
    X, y = wine
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    weight = np.random.default_rng(0).integers(1, 4, size=len(y))
    kernels = [Gaussian(0.5, columns=["f0", "f1"]), Gaussian(1.0)]
    search = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3, kernels=kernels, class_weight="balanced")
    search.fit(frame, pd.Series(y), sample_weight=weight)
    assert list(search.feature_names_in_) == list(frame.columns)
    assert search.score(frame, y, sample_weight=weight) > 0.9
    grouped = ParetoMKLClassifierCV(ps=[1.0], Cs=CS, cv=GroupKFold(3)).fit(X, y, groups=np.arange(len(y)) % 7)
    assert grouped.n_splits_ == 3


@pytest.mark.parametrize("solver", ["bcd", "tseng"])
def test_the_solvers_of_the_paper(solver):
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    X = scaled(X)
    ps = [0.5, 1.0] if solver == "bcd" else [1.0, 2.0]
    search = ParetoMKLClassifierCV(ps=ps, Cs=[1.0, 10.0], cv=3, solver=solver, tol=1e-2).fit(X, y)
    auto = ParetoMKLClassifierCV(ps=ps, Cs=[1.0, 10.0], cv=3, tol=1e-2).fit(X, y)
    assert_allclose(search.cv_results_["mean_test_score"], auto.cv_results_["mean_test_score"], atol=0.03)


def test_cuts_of_a_smaller_cost_certify_the_larger_one(toy):
    """The path along C with carried cuts has the same certified values as paths from scratch."""
    training = PathReader(Reading(toy.kernels)).read_data(toy.X, toy.y, tasks=toy.tasks)
    parts = check_parts(PS, 1.1, 1e-4, "auto", None, None)
    problem, _, data = pose(training, training.weights, fit_bank(toy.kernels, training), parts)
    for stretch in trace_grid(problem, data, Grid(PS, CS, [1.1]), parts, Progress(1, 1e-4, 0)):
        C, run, points = stretch.C, stretch.run, stretch.points
        bounded = replace(problem, machine=data.machine(C))
        alone = [parts.solver.solve(replace(bounded, scalarization=PowerMean(p, None))) for p in PS]
        assert points[0].machine.C.max() == pytest.approx(C * problem.machine.C.max())
        assert run.n_sweeps == sum(point.n_sweeps for point in points)
        for carried, cold in zip(points, alone, strict=True):
            assert carried.gap <= 1e-4
            if carried.p >= 1:
                assert carried.objective == pytest.approx(cold.objective, rel=3e-4)


def test_parts_of_the_user_replace_ps_and_s(sites):
    """The power mean and the ball of the library, passed as parts, give the scores of their p and s."""
    X, y, task = sites
    usual = ParetoMKLClassifierCV(ps=[2.0], Cs=CS, s=[3.0], cv=3, share="kernel").fit(X, y, tasks=task)
    own = ParetoMKLClassifierCV(Cs=CS, cv=3, scalarization=PowerMean(2.0), weight_set=LsBall(3.0)).fit(X, y, tasks=task)
    assert_allclose(own.cv_results_["mean_test_score"], usual.cv_results_["mean_test_score"], atol=1e-12)
    assert_allclose(own.cv_results_["mean_test_log_loss"], usual.cv_results_["mean_test_log_loss"], rtol=1e-2)
    assert own.best_params_ == {name: value for name, value in usual.best_params_.items() if name in ("C", "capacity")}
    assert_allclose(own.theta_, usual.theta_, atol=0.01)
    assert_array_equal(own.predict(X, tasks=task), own.best_estimator_.predict(X, tasks=task))
    with pytest.raises(ValueError, match="share='kernel'"):
        ParetoMKLClassifierCV(scalarization=PowerMean(2.0), share="function").fit(X, y, tasks=task)


def test_clone_pickle_and_nesting(wine):
    X, y = wine
    search = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3)
    assert clone(search).get_params() == search.get_params()
    search.fit(X, y)
    saved = pickle.dumps(search)
    assert_array_equal(pickle.loads(saved).predict(X), search.predict(X))
    assert len(saved) < 40 * X.nbytes  # a path of three points; a Gram matrix of each kernel would be far more
    assert cross_val_score(ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0, 10.0], cv=2), X, y, cv=2).mean() > 0.9


def test_progress_is_shown_on_request(wine, capfd):
    X, y = wine
    ParetoMKLClassifierCV(ps=PS, Cs=CS, s=1.1, capacity=0.5, cv=KFold(3, shuffle=True), verbose=1).fit(X, y)
    shown = capfd.readouterr().err
    assert shown.splitlines()[-1].startswith("█" * 20 + " 30/30 points · done")
    ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3).fit(X, y)
    assert capfd.readouterr().err == ""


def test_folds_that_share_no_memory_report_their_progress(wine, capfd):
    """Other processes cannot write to the progress line, so it counts a fold once its scores are back."""
    X, y = wine
    with joblib.parallel_config(backend="loky", n_jobs=1):  # so joblib announces processes, but starts none
        ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], s=1.1, capacity=0.5, cv=3, verbose=1).fit(X, y)
    shown = capfd.readouterr().err
    assert "fold 1 of 3" in shown
    assert shown.splitlines()[-1].startswith("█" * 20 + " 4/4 points · done")


@pytest.mark.parametrize("way", ["kernel", "function", "nothing"])
def test_X_is_read_once(sites, monkeypatch, way):
    """Folds and the final fit take rows of the samples that were read at the start."""
    X, y, task = sites
    read = []
    original = reading.validate_data
    monkeypatch.setattr(reading, "validate_data", lambda *args, **kwargs: read.append(1) or original(*args, **kwargs))
    ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3, share=way).fit(X, y, tasks=task)
    assert len(read) == 1


@pytest.mark.parametrize("search", [ParetoMKLClassifierCV, ParetoMKLRegressorCV])
def test_few_classes_stand_above_a_search(search):
    ours = [kind for kind in search.__mro__ if kind.__module__.startswith("paretomkl")]
    assert len(ours) <= 4 + (PublicNames in ours)  # which only says what dir() shows


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_folds_in_parallel_give_the_same_result(wine, backend):
    X, y = wine
    alone = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=3, n_jobs=2).fit(X, y)
    assert_array_equal(together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert together.best_params_ == alone.best_params_
    assert_array_equal(together.theta_, alone.theta_)


def test_a_dask_cluster_of_several_processes_gives_the_same_result(wine, cluster):
    distributed = pytest.importorskip("distributed")
    X, y = wine
    alone = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=4).fit(X, y)
    with distributed.Client(cluster) as client, joblib.parallel_config(backend="dask"):
        there = ParetoMKLClassifierCV(ps=PS, Cs=CS, cv=4, scoring=_score_and_process).fit(X, y)
        workers = set(client.run(_process).values())
    assert len(workers) == 2
    assert there.best_params_ == alone.best_params_
    assert_array_equal(there.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


def _process():
    import os

    return os.getpid()


def _score_and_process(estimator, X, y):
    import multiprocessing

    assert multiprocessing.parent_process() is not None, "scored in the main process"
    return estimator.score(X, y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"ps": []}, "p"),
        ({"ps": [1.0, np.nan]}, "p"),
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [1.0, -1.0]}, "every entry of Cs must be a number greater than 0, got "),
        ({"Cs": [0.0]}, "every entry of Cs must be a number greater than 0, got "),
        ({"s": 0.5}, "every entry of s must be a number of at least 1, got 0.5"),
        ({"s": [1.1, np.nan]}, "every entry of s must be a number of at least 1, got nan"),
        ({"s": []}, "s is empty"),
        ({"capacity": -1.0}, "every entry of capacity must be a number of at least 0, got -1.0"),
        ({"capacity": "much"}, "capacity must be 'auto', a number or a sequence of numbers, got 'much'"),
        ({"scoring": "no such scorer"}, "'no such scorer' is not a valid scoring value"),
        ({"scoring": 3}, "scoring must be the name of a scorer or a callable, got 3"),
        ({"scoring": ["accuracy", "f1"]}, "scoring must return one number"),
        ({"scoring": {"a": "accuracy"}}, "scoring must return one number"),
        ({"scoring": make_multitask_scorer(average=None)}, "scoring must return one number"),
        ({"scoring": lambda estimator, X, y: {"a": 1.0}}, "scoring must return one number, got {'a': 1.0}"),
        ({"cv": []}, "cv yields no splits"),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"n_jobs": 1.5}, "n_jobs must be None"),
        ({"n_jobs": "a"}, "n_jobs must be None"),
        ({"cv": 1}, "n_splits"),
        ({"solver": "nothing"}, "solver"),
    ],
)
def test_errors_name_the_culprit(wine, parameters, words):
    X, y = wine
    with pytest.raises(ValueError, match=words):
        ParetoMKLClassifierCV(**parameters).fit(X, y)


def plain_count(estimator, X, y):
    """A scorer that does not take weights."""
    return float(np.sum(estimator.predict(X) == y))


@pytest.mark.parametrize(
    ("scoring", "by_hand"),
    [
        (None, lambda model, X, y, w: np.average(model.predict(X) == y, weights=w)),
        ("f1_macro", lambda model, X, y, w: f1_score(y, model.predict(X), average="macro", sample_weight=w)),
        (
            make_multitask_scorer("balanced_accuracy"),
            lambda model, X, y, w: balanced_accuracy_score(y, model.predict(X), sample_weight=w),
        ),
        (plain_count, lambda model, X, y, w: plain_count(model, X, y)),
        (
            make_scorer(lambda truth, answer: cohen_kappa_score(truth, answer)),
            lambda model, X, y, w: cohen_kappa_score(y, model.predict(X)),
        ),
    ],
    ids=["own score", "name", "multi-task scorer", "function without weights", "metric without weights"],
)
def test_weights_count_in_the_scores_if_the_scorer_takes_them(wine, scoring, by_hand):
    X, y = wine
    rng = np.random.default_rng(0)
    X = X + rng.normal(scale=0.5, size=X.shape)  # hard enough for weights to matter
    weight = rng.exponential(size=len(y)) ** 3
    cv = list(StratifiedKFold(3).split(X, y))
    fixed = {"kernels": "paper", "tol": 1e-6}  # so that search and single fits agree on every sample
    search = ParetoMKLClassifierCV([0.1, 1.0], [1.0], s=1.1, **fixed, cv=cv, scoring=scoring).fit(
        X, y, sample_weight=weight
    )
    for k, (train, test) in enumerate(cv):
        models = [
            ParetoMKLClassifier(p=p, **fixed).fit(X[train], y[train], sample_weight=weight[train]) for p in (0.1, 1.0)
        ]
        expected = [by_hand(model, X[test], y[test], weight[test]) for model in models]
        assert_allclose(search.cv_results_[f"split{k}_test_score"], expected, rtol=1e-12)


def test_pandas_gaps_are_scored_like_nan(sites):
    pd = pytest.importorskip("pandas")
    X, y, task = sites
    matrix = np.full((len(y), 2), np.nan)
    for t, name in enumerate(["loop", "stroke"]):
        matrix[task == name, t] = y[task == name]
    plain = ParetoMKLClassifierCV(ps=[1.0], Cs=CS, cv=3).fit(X, matrix)
    numbers = pd.DataFrame(matrix).astype("Int64")
    for frame in (numbers, numbers.astype("string")):
        search = ParetoMKLClassifierCV(ps=[1.0], Cs=CS, cv=3).fit(X, frame)
        assert_array_equal(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


def test_a_second_fit_leaves_nothing_of_the_first(wine):
    pd = pytest.importorskip("pandas")
    X, y = wine
    stack = np.stack([rbf_kernel(X, gamma=g) for g in (0.1, 1.0)], axis=2)
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3)
    search.fit(pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])]), y).fit(X, y)
    assert not hasattr(search, "feature_names_in_")
    search.set_params(kernels="precomputed").fit(stack, y)
    assert not hasattr(search, "support_vectors_")
    assert_array_equal(search.predict(stack), search.best_estimator_.predict(stack))


def test_with_very_many_rows_a_sample_chooses_and_all_are_fitted(wine):
    X, y = wine
    search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], s=1.1, capacity=0.5, cv=3, max_search_rows=40).fit(X, y)
    assert 35 <= search.n_search_rows_ <= 45
    assert set(y[search.search_rows_]) == set(y)
    plain = ParetoMKLClassifier(p=1.0, C=1.0, s=1.1).fit(X, y)
    assert_allclose(search.theta_, plain.theta_, atol=0.02)
    few = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], cv=3, max_search_rows=90).fit(X, y)
    assert few.search_rows_ is None  # not twice as many


def test_folds_that_are_given_refer_to_all_rows(wine):
    X, y = wine
    folds = [(np.arange(k % 2, len(y), 2), np.arange(1 - k % 2, len(y), 2)) for k in range(2)]
    search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], s=1.1, capacity=0.5, cv=folds, max_search_rows=40).fit(X, y)
    assert search.search_rows_ is None
    assert search.n_search_rows_ == len(y)


def test_large_tasks_are_searched_in_part_and_many_small_ones_whole():
    """One problem costs with the square of its rows: what is searched whole depends on the sizes of the tasks."""
    assert searches_all([3000], 3000, pooled=True)
    assert not searches_all([1500, 1501], 3000, pooled=True)
    assert searches_all([6000], 3000, pooled=False)
    assert not searches_all([6001], 3000, pooled=False)
    assert searches_all([3000] * 4, 3000, pooled=False)
    assert not searches_all([9000, 100], 3000, pooled=False)
    assert not searches_all([130] * 100, 3000, pooled=False)  # few pairs, but the rows are read and standardised too


@pytest.mark.parametrize("kernels", ["gaussian", ["rbf", "nonsense"], [("rbf", {"gamma": -1.0})], []], ids=str)
def test_bad_kernels_are_refused_before_the_folds(kernels):
    with pytest.raises(ValueError, match=r"^(?!The fit failed).*([Kk]ernel|gamma)"):
        ParetoMKLClassifierCV(kernels=kernels).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize(
    ("search", "scoring", "message"),
    [
        (ParetoMKLClassifierCV, "roc_auc", "compares two classes, but y has 3; use 'balanced_accuracy' or 'f1_macro'"),
        (ParetoMKLClassifierCV, "f1", "compares two classes, but y has 3"),
        (ParetoMKLClassifierCV, "r2", "is for numbers, but y has classes; use 'accuracy'"),
        (ParetoMKLRegressorCV, "accuracy", "is for classes, but y is numeric; use 'r2'"),
    ],
)
def test_scores_that_do_not_fit_are_refused_before_the_folds(search, scoring, message):
    with pytest.raises(ValueError, match=f"^scoring='{scoring}' {message}"):
        search(scoring=scoring).fit(*load_iris(return_X_y=True))


def test_with_many_pairs_of_classes_the_defaults_are_thinned_out(monkeypatch):
    monkeypatch.setattr("paretomkl._select.search.MOST_TASKS", 2)
    X, y = load_iris(return_X_y=True)
    search = ParetoMKLClassifierCV(Cs=1.0, cv=2).fit(X, y)
    tried = {name: set(search.cv_results_[f"param_{name}"].tolist()) for name in ("p", "capacity", "s")}
    assert tried == {"p": {0.1, 1.0, 10.0}, "capacity": {0.5, 1.0}, "s": {1.1}}
    assert len(search.path_) == len(PAPER_PS)
    given = {"ps": [0.5, 1.0], "s": [1.1, 3.0], "capacity": [0.0, 0.5, 1.0]}
    assert len(ParetoMKLClassifierCV(Cs=1.0, cv=2, **given).fit(X, y).cv_results_["params"]) == 12
