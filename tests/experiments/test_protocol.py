"""The plan and the protocol: what is run, on which samples, and what cross-validation gets to see."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV
from paretomkl._data.labels import Labelling
from paretomkl._experiments.methods import (
    SVC_CS,
    SVC_GAMMAS,
    WIDTHS,
    Candidate,
    Outcome,
    combinations,
    gaussian_gram,
    run_method,
)
from paretomkl._experiments.plan import (
    FULL,
    METHODS,
    QUICK,
    STUDIES,
    Cell,
    LabelledSamples,
    Split,
    draw_parts,
    load,
    make_folds,
    make_plan,
    make_split,
)
from paretomkl.baselines import UniformKernelSVC
from paretomkl.kernels import Gaussian, paper_kernels


def classes_data(sizes=(40, 25, 60), n_features=3, seed=0) -> LabelledSamples:
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b", "c"], sizes)
    return LabelledSamples(rng.random((len(y), n_features)) + 0.4 * (y == "b")[:, None], y, None)


def tasks_data(seed=0) -> LabelledSamples:
    rng = np.random.default_rng(seed)
    tasks = np.repeat([3, 1, 2], [50, 30, 44])
    y = (rng.random(len(tasks)) < 0.3).astype(int)
    return LabelledSamples(rng.random((len(tasks), 2)) + 0.5 * y[:, None], y, tasks)


def toy_split(data: LabelledSamples, n_tasks: int, fraction=40, seed=1) -> Split:
    train, test = draw_parts(data, fraction, seed)
    part = data[train]
    return Split(part, data[test], make_folds(part, seed, QUICK), n_tasks)


# ----------------------------------------------------------------------------------------------------- plan
def test_the_plan_has_every_table_of_the_paper():
    plan = make_plan()
    assert len(set(plan)) == len(plan)
    for name in ("robot", "segment", "satellite", "shuttle", "vehicle", "steel", "letter"):
        for fraction in (10, 20, 50):
            for method in METHODS:
                assert {Cell(name, fraction, method, run) for run in range(20)} <= set(plan)
    assert {cell.fraction for cell in plan if cell.dataset == "landmine"} == {20, 30, 50}


def test_runs_come_one_after_the_other_and_cheap_cells_first():
    plan = make_plan(runs=3)
    assert [cell.run for cell in plan] == sorted(cell.run for cell in plan)
    for run in range(3):
        costs = [cell.cost for cell in plan if cell.run == run]
        assert costs == sorted(costs)


def test_seeds_are_shared_by_methods_and_fractions_and_differ_between_runs():
    plan = make_plan()
    for name in ("robot", "letter"):
        seeds = {(cell.run, cell.seed) for cell in plan if cell.dataset == name}
        assert len(seeds) == 20
        assert len({seed for _, seed in seeds}) == 20
    assert Cell("segment", 10, "pareto", 4).seed == 548684568  # published results depend on it


def test_published_results_still_match_these_settings():
    """With other settings every cell would run again, and existing results files would be refused."""
    kept = json.dumps(FULL.as_dict(), sort_keys=True)
    assert hashlib.sha256(kept.encode()).hexdigest()[:12] == "b4a5e3215aa0"


def test_the_usual_alternative_can_run_alone():
    plan = make_plan(methods=["svc", "default"], runs=2)
    assert {cell.method for cell in plan} == {"svc", "default"}
    assert {cell.dataset for cell in plan} == {name for name, study in STUDIES.items() if name == study.source} - {
        "synthetic"
    }, "the sets of the paper, not their variants"
    assert len(plan) == 2 * 2 * 8 * 3


@pytest.mark.parametrize(("what", "name"), [("datasets", "iris"), ("methods", "forest")])
def test_unknown_names_are_refused(what, name):
    with pytest.raises(ValueError, match=name):
        make_plan(**{what: [name]})


# ------------------------------------------------------------------------------------------------- the splits
@pytest.mark.parametrize("fraction", [10, 20, 50])
def test_parts_are_disjoint_and_balanced_by_class(fraction):
    data = classes_data()
    train, test = draw_parts(data, fraction, seed=3)
    assert not set(train) & set(test)
    n = round(25 * fraction / 100)
    assert set(Counter(data.y[train].tolist()).values()) == {n}
    assert set(Counter(data.y[test].tolist()).values()) == {25 - n}


@pytest.mark.parametrize("per_class", [0, 6])
def test_parts_are_balanced_within_each_task(per_class):
    data = tasks_data()
    train, test = draw_parts(data, 50, seed=3, per_class=per_class)
    assert not set(train) & set(test)
    for task in (1, 2, 3):
        own = data.tasks == task
        n = per_class or min((data.y[own] == 0).sum(), (data.y[own] == 1).sum())
        for rows, expected in ((train, round(n / 2)), (test, n - round(n / 2))):
            here = rows[data.tasks[rows] == task]
            assert (data.y[here] == 0).sum() == (data.y[here] == 1).sum() == expected


def test_seeds_decide_the_parts_and_larger_fractions_contain_smaller_ones():
    data = classes_data()
    small, large = draw_parts(data, 10, seed=5), draw_parts(data, 50, seed=5)
    assert_array_equal(small[0], draw_parts(data, 10, seed=5)[0])
    assert set(small[0]) <= set(large[0])
    assert set(small[0]) | set(small[1]) == set(large[0]) | set(large[1]), "of the same pool"
    assert set(draw_parts(data, 50, seed=6)[0]) != set(large[0])


@pytest.mark.parametrize(
    ("data", "most"), [(classes_data(), 1000), (classes_data(), 20), (tasks_data(), 1000), (tasks_data(), 20)]
)
def test_folds_stay_within_the_training_part(data, most):
    train = data[draw_parts(data, 80, seed=0)[0]]
    folds = make_folds(train, 7, replace(QUICK, n_folds=3, most_in_folds=most))
    held_out = np.concatenate([test for _, test in folds])
    assert len(set(held_out)) == len(held_out) <= most
    for fit, test in folds:
        assert not set(fit) & set(test)
        assert set(fit) | set(test) == set(held_out)
        assert max(fit.max(), test.max()) < len(train)
        assert len(train[fit].groups) == len(train.groups), "every class of every task to learn from"


@pytest.mark.parametrize("method", METHODS)
def test_no_method_sees_the_test_part_before_it_is_tested(method, monkeypatch):
    """Other test samples do not change any cross-validated score or the choice."""
    data = classes_data()
    split = toy_split(data, 3)
    other = Split(split.train, LabelledSamples(1 - split.test.X, split.test.y[::-1], None), split.folds, 3)
    one, two = run_method(method, split, QUICK), run_method(method, other, QUICK)
    assert [point.params for point in one.points] == [point.params for point in two.points]
    assert [point.cv for point in one.points] == [point.cv for point in two.points]
    assert [point.tested for point in one.points] == [point.tested for point in two.points]
    assert [point.accuracy for point in one.points] != [point.accuracy for point in two.points]


# ------------------------------------------------------------------------------------------------ the methods
@pytest.mark.parametrize("data", [classes_data(), tasks_data()], ids=["classes", "tasks"])
@pytest.mark.parametrize("method", METHODS)
def test_methods_report_what_the_estimator_scores(method, data):
    split = toy_split(data, 3)
    outcome = run_method(method, split, QUICK)
    assert len(outcome.tasks) == len(outcome.n_test) == 3
    for point in outcome.points:
        if point.tested:
            assert len(point.right) == 3
            assert all(0 <= right <= n for right, n in zip(point.right, outcome.n_test, strict=True))
            if data.tasks is not None:
                assert_allclose(point.accuracy, np.mean(np.array(point.right) / outcome.n_test))
    if method.endswith("svc"):
        assert np.isnan(outcome.gap), "LIBSVM certifies nothing"
    else:
        assert outcome.gap <= QUICK.final_tol


@pytest.mark.parametrize("data", [classes_data(), tasks_data()], ids=["classes", "tasks"])
def test_pareto_is_the_estimator_at_every_C_and_p(data):
    split = toy_split(data, 3)
    outcome = run_method("pareto", split, QUICK)
    assert [(point.params["C"], point.params["p"]) for point in outcome.points] == [
        (C, p) for C in QUICK.Cs for p in QUICK.ps
    ]
    train, test = split.train, split.test
    for point in outcome.points[:2]:
        clf = ParetoMKLClassifier(**point.params, kernels="paper", tol=1e-6).fit(train.X, train.y, tasks=train.tasks)
        assert_allclose(point.objectives, clf.objectives_, rtol=0.05)
        assert abs(point.accuracy - clf.score(test.X, test.y, tasks=test.tasks)) <= 0.03
        scores = []
        for rows, held_out in split.folds:
            fit, rest = train[rows], train[held_out]
            scores.append(clf.fit(fit.X, fit.y, tasks=fit.tasks).score(rest.X, rest.y, tasks=rest.tasks))
        assert abs(point.cv - np.mean(scores)) <= 0.05


def test_candidates_are_scored_in_every_fold_and_the_best_is_fitted_on_all():
    split = toy_split(classes_data(), 3)
    outcome = run_method("uniform", split, QUICK)
    for point, C in zip(outcome.points, QUICK.Cs, strict=True):
        scores = [
            UniformKernelSVC(C=C, kernels="paper", tol=QUICK.tol)
            .fit(split.train.X[fit], split.train.y[fit])
            .score(split.train.X[rest], split.train.y[rest])
            for fit, rest in split.folds
        ]
        assert_allclose(point.cv, np.mean(scores))
    best = max(outcome.points, key=lambda point: point.cv)
    clf = UniformKernelSVC(C=best.params["C"], kernels="paper").fit(split.train.X, split.train.y)
    assert outcome.chosen is best
    assert_allclose(best.accuracy, clf.score(split.test.X, split.test.y))
    assert sum(point.tested for point in outcome.points) == 1


def grid_of(split: Split) -> dict:
    d = split.train.X.shape[1]
    return {"svc__C": SVC_CS, "svc__gamma": [gamma / d for gamma in SVC_GAMMAS]}


def test_each_task_chooses_its_own_width_and_cost():
    """As a grid search of scikit-learn in each task does."""
    split = toy_split(tasks_data(), 3)
    outcome = run_method("independent-svc", split, QUICK)
    train, test = split.train, split.test
    grid = {"C": QUICK.Cs, "gamma": [0.5 / width.sigma**2 for width in WIDTHS]}
    best, right = [], []
    for task in (1, 2, 3):
        own, asked = train.tasks == task, test.tasks == task
        search = GridSearchCV(SVC(), grid, cv=QUICK.n_folds).fit(train.X[own], train.y[own])
        best.append(search.best_score_)
        right.append(int((search.predict(test.X[asked]) == test.y[asked]).sum()))
    assert_allclose(outcome.chosen.cv, np.mean(best))
    assert outcome.chosen.right == right


def test_few_samples_make_few_folds():
    split = toy_split(tasks_data(), 3, fraction=40)
    outcome = run_method("independent-svc", split, replace(QUICK, n_folds=100))
    assert outcome.chosen.tested


def test_gaussian_grams_use_the_columns_of_their_source():
    X = tasks_data().X[:5]
    expected = np.exp(-2.0 * (X[:, None, 1] - X[None, :, 1]) ** 2)
    assert_allclose(gaussian_gram(Gaussian(0.5, columns=[1]), X, X), expected)


def test_svc_on_classes_is_a_grid_search_of_scikit_learn():
    split = toy_split(classes_data(), 3)
    outcome = run_method("svc", split, QUICK)
    # confidence breaks ties between votes, as for all methods here
    pipeline = make_pipeline(StandardScaler(), SVC(break_ties=True, tol=QUICK.tol))
    search = GridSearchCV(pipeline, grid_of(split), cv=split.folds).fit(split.train.X, split.train.y)
    assert_allclose([point.cv for point in outcome.points], search.cv_results_["mean_test_score"])
    assert {f"svc__{name}": value for name, value in outcome.chosen.params.items()} == search.best_params_
    assert_allclose(outcome.chosen.accuracy, search.score(split.test.X, split.test.y))


def test_svc_on_tasks_has_one_width_and_cost_for_all():
    """By hand: standardise columns over all tasks, fit one SVC per task, take the best mean over tasks and folds."""
    split = toy_split(tasks_data(), 3)
    outcome = run_method("svc", split, QUICK)

    def accuracy(fit: LabelledSamples, rest: LabelledSamples, C: float, gamma: float) -> float:
        scaler = StandardScaler().fit(fit.X)
        scores = []
        for task in (1, 2, 3):
            own, asked = fit.tasks == task, rest.tasks == task
            machine = SVC(C=C, gamma=gamma, tol=QUICK.tol).fit(scaler.transform(fit.X[own]), fit.y[own])
            scores.append(machine.score(scaler.transform(rest.X[asked]), rest.y[asked]))
        return float(np.mean(scores))

    assert len(outcome.points) == len(SVC_CS) * len(SVC_GAMMAS)
    for point in outcome.points[::5]:
        by_fold = [accuracy(split.train[fit], split.train[rest], **point.params) for fit, rest in split.folds]
        assert_allclose(point.cv, np.mean(by_fold))
    assert_allclose(outcome.chosen.accuracy, accuracy(split.train, split.test, **outcome.chosen.params))


@pytest.mark.parametrize("data", [classes_data(), tasks_data()], ids=["classes", "tasks"])
def test_the_default_is_the_search_with_default_settings(data):
    split = toy_split(data, 3)
    outcome = run_method("default", split, QUICK)
    (point,) = outcome.points
    train, test = split.train, split.test
    search = ParetoMKLClassifierCV(cv=split.folds).fit(train.X, train.y, tasks=train.tasks)
    assert point.params == search.best_params_
    assert point.cv == search.best_score_
    assert_allclose(point.accuracy, search.score(test.X, test.y, tasks=test.tasks))
    assert point.gap == search.gap_


def test_methods_of_the_paper_use_the_paper_bank():
    split = toy_split(classes_data(), 3)
    assert split.kernels == "paper"
    named = replace(split, kernels=paper_kernels())
    for method in ("pareto", "uniform", "independent"):
        one, two = run_method(method, split, QUICK), run_method(method, named, QUICK)
        assert [point.accuracy for point in one.points] == [point.accuracy for point in two.points]


def test_minimax_tests_the_best_of_each_alpha():
    split = toy_split(tasks_data(), 3)
    outcome = run_method("mm-ep", split, replace(QUICK, alphas=(0.4, 0.9)))
    tested = [point for point in outcome.points if point.tested]
    assert [point.params["alpha"] for point in tested] == pytest.approx([1.2, 2.7])


def test_pair_tasks_are_scored_on_their_own_classes():
    decisions = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, np.nan]])
    y = np.array(["a", "b", "c", "b"])
    tasks = Labelling(
        "classes", ["a vs b", "b vs c"], [None, None], [("a", "b"), ("b", "c")], np.array(["a", "b", "c"])
    )
    right, belongs = tasks.right(decisions, y)
    assert right.sum(axis=0).tolist() == [1, 1]
    assert belongs.sum(axis=0).tolist() == [3, 2]


def test_combinations_lists_all_candidates_in_order():
    assert combinations(C=(1, 2), q=(3, 4)) == [{"C": 1, "q": 3}, {"C": 1, "q": 4}, {"C": 2, "q": 3}, {"C": 2, "q": 4}]


def test_the_first_candidate_wins_a_tie():
    outcome = Outcome([Candidate({"C": 1}, 0.5), Candidate({"C": 2}, 0.9, 0.1), Candidate({"C": 3}, 0.9, 0.2)])
    assert outcome.chosen.params == {"C": 2}


# --------------------------------------------------------------------------------------------- the real data
@pytest.mark.parametrize("name", [name for name in STUDIES if name != "synthetic"])
def test_studies_match_the_paper(name, shared_data):
    study = STUDIES[name]
    data = load(study, shared_data)
    train, test = draw_parts(data, study.fractions[0], 0, study.per_class)
    assert len(train) + len(test) == study.pool
    groups = data[train].groups
    n_tasks = len(groups) * (len(groups) - 1) // 2 if data.tasks is None else len(np.unique(data.tasks))
    assert n_tasks == study.n_tasks
    if study.scaled:
        assert data.X.min() == 0
        assert data.X.max() == 1
    if name == "landmine":
        sizes = Counter(data.tasks[np.concatenate([train, test])].tolist()).values()
        assert (min(sizes), max(sizes)) == (30, 96), "the sizes of the paper"
    if name == "letter":
        assert set(Counter(data.tasks[np.concatenate([train, test])].tolist()).values()) == {200}


def test_segment_without_duplicates_never_tests_what_it_trained_on(shared_data):
    leaks = {}
    for name in ("segment", "segment-distinct"):
        split = make_split(Cell(name, 50, "pareto", 0), FULL, shared_data)
        known = {row.tobytes() for row in split.train.X}
        leaks[name] = sum(row.tobytes() in known for row in split.test.X)
    assert leaks["segment-distinct"] == 0 < leaks["segment"]


def test_splits_are_paired_across_methods(shared_data):
    """And have the paper's kernels, whatever the library's default is."""
    splits = [make_split(Cell("vehicle", 10, method, 3), FULL, shared_data) for method in METHODS]
    assert {split.kernels for split in splits} == {"paper"}
    for split in splits[1:]:
        assert_array_equal(split.train.X, splits[0].train.X)
        assert_array_equal(split.test.X, splits[0].test.X)
        assert all((a[1] == b[1]).all() for a, b in zip(split.folds, splits[0].folds, strict=True))
