"""From data to the page: every way to give the tasks, the split, and the accuracies."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl.kernels import KernelBank
from paretomkl.report import held_out_split, trade_off_page

from .conftest import digits, two_machines

QUICK = {"n_points": 15}
PLAIN = ParetoMKLClassifier(C=10.0)


def test_accuracies_match_the_models(many):
    """Compared with the independent evaluation of the displays, and with models fitted again."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from paretomkl.plotting import AccuracyDisplay

    X, y = digits(300)
    display = AccuracyDisplay.from_path(many.path, X[many.test], y[many.test])
    plt.close(display.figure_)
    assert_allclose(many.scores, display.scores, atol=1e-12)
    for p in (0.01, 1.0, np.inf):
        given = {"s": many.s, "kernels": KernelBank(capacity=many.capacity)}
        clf = ParetoMKLClassifier(p=p, C=many.C, tol=1e-5, **given).fit(X[many.train], y[many.train])
        row = list(many.path.ps).index(p)
        assert many.scores_overall[row] == pytest.approx(clf.score(X[many.test], y[many.test]), abs=0.014)  # a sample
    pairs = [{int(name[0]), int(name[-1])} for name in many.path.task_names]
    assert_array_equal(many.n_held_out, [np.isin(y[many.test], list(pair)).sum() for pair in pairs])


def test_cross_validation_chooses(many):
    assert many.cv.best_C == many.C
    assert many.cv.best_score == max(many.cv.mean)
    assert many.cv.n_splits == 3
    assert (many.s, many.capacity) == (many.cv.best_s, many.cv.best_capacity)
    assert set(many.seconds) == {"cross-validation", "path", "scores", "baselines"}


def test_every_point_is_certified(many):
    assert len(many.path) == 121
    assert many.path.gap.max() <= 1e-6


def test_ways_to_share_are_compared_with_the_kernel():
    X, y, tasks = two_machines(30)
    search = ParetoMKLClassifierCV(Cs=[1.0, 10.0], s=1.1, cv=3, share="kernel")
    sharing = clone(search).set_params(share=["function", "everything"])
    plain, result = (trade_off_page(one, X, y, tasks=tasks, **QUICK) for one in (search, sharing))
    assert plain.sharing is None
    assert list(result.sharing.scores) == ["kernel", "function", "everything"]
    assert result.sharing.scores["kernel"][0] == result.cv.best_score
    assert (result.C, result.capacity, result.cv) == (plain.C, plain.capacity, plain.cv), (
        "the path is that of the kernel"
    )
    assert_allclose(result.path.theta, plain.path.theta)
    ways = ["kernel", "function", "everything"]
    chosen = sharing.set_params(share=ways).fit(X[result.train], y[result.train], tasks=tasks[result.train])
    expected = chosen.score(X[result.test], y[result.test], tasks=tasks[result.test])
    assert result.comparison.ours.held_out == pytest.approx(expected), "the verdict is about the chosen way"
    assert result.sharing.best == chosen.best_share_
    baselines, others = result.comparison.baselines, plain.comparison.baselines
    assert [one.held_out for one in baselines] == [one.held_out for one in others]
    assert trade_off_page(sharing, X, y, **QUICK).sharing is None, "there is only one task"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            ParetoMKLClassifierCV(share="function"),
            "but share='function'; use a search with share=\\['kernel', 'function",
        ),
        (ParetoMKLClassifier(share="everything"), "tasks that share their kernel"),
        (ParetoMKLClassifierCV(share=["all", "kernel"]), "share must be 'nothing'"),
        (np.zeros((3, 2)), "takes a search"),
        (pareto_path([[0.0], [1.0]], kernels=["linear"], machine="one-class"), "outlier detectors"),
    ],
)
def test_models_without_a_page_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        trade_off_page(model, np.zeros((4, 1)), [0, 1, 0, 1])


def test_a_path_is_scored_on_all_samples():
    """A path that was traced on the training set gives the scores of the page that traces it."""
    X, y, tasks = two_machines(30)
    traced = trade_off_page(PLAIN, X, y, tasks=tasks, **QUICK)
    rows = traced.test
    found = trade_off_page(traced.path, X[rows], y[rows], tasks=tasks[rows])
    assert_array_equal(found.scores, traced.scores)
    assert_array_equal(found.low_overall, traced.low_overall)
    assert_array_equal(found.test, np.arange(len(rows)))
    assert (found.C, found.train, found.cv, found.comparison) == (None, None, None, None)
    assert f"tested on {len(rows)} samples</li>" in found.html


def test_exponents_of_the_search_are_on_the_page():
    X, y, tasks = two_machines(20)
    search = ParetoMKLClassifierCV(ps=[-1.0, 0.7], Cs=1.0, s=1.1, cv=2, share="kernel")
    found = trade_off_page(search, X, y, tasks=tasks, **QUICK)
    assert len(found.path) == 17
    assert found.cv.best_p in found.path.ps[[0, 7, 8]] or found.cv.best_p in (-1.0, 0.7)


def test_a_search_may_choose_one_class_against_the_rest():
    """The tasks of the page are then the classes."""
    X, y = digits(100)
    search = ParetoMKLClassifierCV(Cs=1.0, s=1.1, cv=2, ps=1.0, multi_class="one-vs-rest", loss="squared")
    found = trade_off_page(search, X, y, **QUICK)
    assert found.scores.shape == (15, 10)
    assert_allclose(found.scores_overall[7], found.path.models[7].score(X[found.test], y[found.test]))


def test_the_samples_may_be_a_dict_of_blocks():
    X, y = digits(100)
    blocks = {"upper": X[:, :32], "lower": X[:, 32:]}
    found = trade_off_page(ParetoMKLClassifierCV(Cs=1.0, s=1.1, cv=2, ps=1.0), blocks, y, **QUICK)
    assert list(found.path.source_shares) == list(blocks)
    assert_array_equal(found.test, held_out_split(X, y)[1])


def test_given_cost_is_kept():
    X, y, tasks = two_machines(20)
    result = trade_off_page(ParetoMKLClassifierCV(Cs=3.0, cv=2, share="kernel"), X, y, tasks=tasks, **QUICK)
    assert result.C == result.cv.best_C == 3.0
    assert len(result.cv.ps) == 13
    assert result.file is None
    assert "<iframe srcdoc=" in result._repr_html_()


def test_norm_and_capacity_are_chosen_or_given():
    """The path uses what cross-validation chose; a number fixes it; kernels that do not pay have no capacity."""
    X, y, tasks = two_machines(20)

    def page(**given):
        search = ParetoMKLClassifierCV(Cs=3.0, cv=2, share="kernel", **given)
        return trade_off_page(search, X, y, tasks=tasks, baselines=False, **QUICK)

    searched = page(s=[1.0, 3.0], capacity=[0.0, 0.7])
    assert searched.s in (1.0, 3.0)
    assert searched.capacity in (0.0, 0.7)
    assert (searched.s, searched.capacity) == (searched.cv.best_s, searched.cv.best_capacity)
    assert f"C = 3, capacity = {searched.capacity:g}, s = {searched.s:g}</li>" in searched.html
    fixed = page(s=searched.s, capacity=searched.capacity)
    assert (fixed.cv.best_s, fixed.cv.best_capacity) == (None, None)
    bank = KernelBank(capacity=searched.capacity)
    alone = trade_off_page(ParetoMKLClassifier(C=3.0, s=searched.s, kernels=bank), X, y, tasks=tasks, **QUICK)
    for other in (fixed, alone):
        assert (other.s, other.capacity) == (searched.s, searched.capacity)
        assert_allclose(other.path.objective, searched.path.objective, rtol=2e-5)
    plain = page(kernels="paper")
    assert plain.capacity is None
    assert "capacity" not in plain.path.refit


def test_task_scale_is_passed_on():
    X, y, tasks = two_machines(40)
    few = np.flatnonzero((tasks == "pump") | (np.arange(80) % 2 == 0))
    result = trade_off_page(clone(PLAIN).set_params(task_scale="samples"), X[few], y[few], tasks=tasks[few], **QUICK)
    assert result.path.task_scale == "samples"
    assert "task_scale='samples'" in result.path.refit
    assert "objectives per sample</li>" in result.html


def test_three_ways_to_give_the_tasks_agree():
    pandas = pytest.importorskip("pandas")
    X, y, tasks = two_machines(40)
    by_label = trade_off_page(PLAIN, X, y, tasks=tasks, **QUICK)
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(site=tasks)
    by_column = trade_off_page(clone(PLAIN).set_params(task_column="site"), frame, y, **QUICK)
    assert_array_equal(by_column.test, by_label.test)
    assert_allclose(by_column.scores, by_label.scores)
    assert_allclose(by_column.scores_overall, by_label.scores_overall)
    assert_allclose(by_label.scores_overall, by_label.scores.mean(axis=1))
    assert "task_column='site').fit(X, y)" in by_column.path.refit.replace(", tol=1e-6", "")
    names = by_label.path.task_names
    matrix = np.where(tasks[:, None] == np.array(names), (y == "yes").astype(float)[:, None], np.nan)
    by_matrix = trade_off_page(PLAIN, X, pandas.DataFrame(matrix, columns=names), **QUICK)
    assert by_matrix.path.task_names == names
    assert by_matrix.scores.shape == by_label.scores.shape
    # words with gaps in plain lists are read as the same labels
    rows = [[label if task == name else None for name in names] for label, task in zip(y, tasks, strict=True)]
    by_lists = trade_off_page(PLAIN, X, rows, **QUICK)
    assert_array_equal(by_lists.test, by_matrix.test)
    assert_allclose(by_lists.scores, by_matrix.scores)
    assert_array_equal(by_lists.n_held_out, by_matrix.n_held_out)


def test_precomputed_kernels_agree():
    X, y, tasks = two_machines(30)
    distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    stack = np.stack([np.exp(-distance / 2 / sigma**2) for sigma in (0.1, 0.5, 2.0)], axis=2)
    kernels = [("rbf", {"sigma": sigma}) for sigma in (0.1, 0.5, 2.0)]
    one = trade_off_page(clone(PLAIN).set_params(kernels="precomputed"), stack, y, tasks=tasks, **QUICK)
    other = trade_off_page(clone(PLAIN).set_params(kernels=kernels), X, y, tasks=tasks, **QUICK)
    assert_allclose(one.path.objective, other.path.objective, rtol=2e-5)
    assert_allclose(one.scores, other.scores, atol=0.1)


@pytest.mark.parametrize("most", [None, 40])
def test_pages_take_blocks_sparse_matrices_and_stacks(most):
    X, y, tasks = two_machines(30)
    whole = {"x": csr_array(X), "list": X, "kernel": (X @ X.T)[:, :, None]}
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3, max_search_rows=most)
    for given in (whole["x"], whole, [whole["x"], X]):
        found = trade_off_page(search, given, y, tasks=tasks, **QUICK)
        assert found.comparison is not None
        assert found.scores_overall.min() > 0.5
    train, test = held_out_split(whole, y, tasks=tasks)
    assert_array_equal(found.test, test)
    kept = {"x": whole["x"][train], "list": X[train], "kernel": whole["kernel"][np.ix_(train, train)]}
    with_stack = trade_off_page(clone(PLAIN), whole, y, tasks=tasks, **QUICK)
    path = pareto_path(kept, y[train], tasks=tasks[train], ps=[1.0], C=10.0, tol=1e-6)
    one = with_stack.path.objective[list(with_stack.path.ps).index(1.0)]
    assert_allclose(one, path.objective[0], rtol=1e-5)


@pytest.mark.parametrize(("test_size", "share"), [(0.25, 0.25), (0.3, 0.3), (1 / 3, 1 / 3), (0.5, 0.5)])
def test_split_is_stratified_by_task_and_label(test_size, share):
    X, y, tasks = two_machines(60)
    train, test = held_out_split(X, y, tasks=tasks, test_size=test_size)
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(120))
    for task in np.unique(tasks):
        for label in ("yes", "no"):
            cell = (tasks == task) & (y == label)
            assert cell[test].sum() == pytest.approx(share * cell.sum(), abs=3)
    assert len(test) == pytest.approx(share * 120, abs=2)


def test_split_depends_only_on_the_seed():
    X, y, tasks = two_machines(30)
    first, again, other = (held_out_split(X, y, tasks=tasks, random_state=seed)[1] for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert len(np.setdiff1d(first, other))


def test_small_labels_are_split_without_a_warning():
    y = np.array(["a"] * 3 + ["b"] * 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train, test = held_out_split(np.zeros((33, 1)), y)
    assert len(train) + len(test) == 33


def test_task_without_held_out_samples_has_no_accuracy():
    X, y, tasks = two_machines(31)
    pump = np.flatnonzero(tasks == "pump")
    # every tenth of 31 + 2 + 2 samples, ordered by label, is held out: none of the last four
    kept = np.concatenate([np.flatnonzero(tasks != "pump"), pump[y[pump] == "yes"][:2], pump[y[pump] == "no"][:2]])
    result = trade_off_page(PLAIN, X[kept], y[kept], tasks=tasks[kept], test_size=0.1, **QUICK)
    t = result.path.task_names.index("pump")
    assert result.n_held_out[t] == 0
    assert np.isnan(result.scores[:, t]).all()
    assert np.isfinite(result.scores[:, 1 - t]).all()
    assert '"scores":[[' in result.html


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_size": 1.5}, "test_size must be a number between 0 and 1, got test_size=1.5."),
        ({"test_size": 0.01}, "test_size must be from 0.1 to 0.9, got 0.01."),
        ({"n_points": 3}, "A dense grid has 15 to 1000 exponents, got n=3."),
        ({"tol": 2.0}, "tol must be a number between 0 and 1, got tol=2.0."),
    ],
)
def test_bad_arguments_are_refused(options, message):
    X, y, tasks = two_machines(20)
    with pytest.raises(ValueError) as error:
        trade_off_page(PLAIN, X, y, tasks=tasks, **(QUICK | options))
    assert str(error.value) == message


def test_missing_folder_is_noticed_before_any_work(tmp_path):
    X, y, _ = two_machines(20)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        trade_off_page(PLAIN, X, y, file=tmp_path / "nowhere" / "page.html")


# ---------------------------------------------------------------------------------------------- large tables
def test_a_page_may_learn_from_some_of_the_rows_and_says_so():
    """At most this many per task, in the same class proportions; the held-out samples stay the same."""
    X, y, tasks = two_machines(60)
    kept = np.r_[0:80, 60:120] if len(y) == 120 else np.arange(len(y))
    X, y, tasks = X[np.unique(kept)], y[np.unique(kept)], tasks[np.unique(kept)]
    whole, some = (trade_off_page(PLAIN, X, y, tasks=tasks, **QUICK, max_task_rows=most) for most in (None, 20))
    assert_array_equal(whole.test, some.test)
    assert set(some.train) < set(whole.train)
    for task in np.unique(tasks):
        mine = some.train[tasks[some.train] == task]
        assert 20 <= len(mine) <= 21
        of_class = [np.sum(y[rows][tasks[rows] == task] == y[0]) for rows in (whole.train, some.train)]
        assert of_class[1] / len(mine) == pytest.approx(of_class[0] / np.sum(tasks[whole.train] == task), abs=0.06)
    assert some.path.models[0].support.rows.max() < len(some.train)
    assert f"learned from {len(some.train)} samples drawn from {len(whole.train)}, tested on" in some.html
    assert "drawn from" not in whole.html
    everyone = trade_off_page(PLAIN, X, y, tasks=tasks, **QUICK, max_task_rows=10**6)
    assert_array_equal(everyone.train, whole.train)


def test_methods_are_compared_on_the_rows_that_parameters_are_chosen_on():
    """All methods learn from the same rows, and a sentence says so."""
    X, y, tasks = two_machines(120)
    search = ParetoMKLClassifierCV(Cs=[1.0, 10.0], s=1.1, capacity=0.5, cv=3, max_search_rows=40, share="kernel")
    found = trade_off_page(search, X, y, tasks=tasks, **QUICK)
    about = f"learn from the same {found.cv.n_rows} of {len(found.train)} samples"
    assert found.cv.n_rows < len(found.train)
    assert about in found.comparison.how
    assert about in found.html
    ours = found.comparison.ours
    train = found.train
    rows = train[search.fit(X[train], y[train], tasks=tasks[train]).search_rows_]
    bank = KernelBank(capacity=0.5)
    plain = ParetoMKLClassifier(p=found.cv.best_p, C=found.C, s=1.1, kernels=bank, tol=1e-6)
    plain.fit(X[rows], y[rows], tasks=tasks[rows])
    expected = plain.score(X[found.test], y[found.test], tasks=tasks[found.test])
    assert ours.held_out == pytest.approx(expected, abs=0.02)
    assert ours.held_out_interval[0] < ours.held_out < ours.held_out_interval[1]
    all_rows = trade_off_page(search.set_params(max_search_rows=None), X, y, tasks=tasks, **QUICK)
    at = list(all_rows.path.ps).index(all_rows.cv.best_p)
    assert all_rows.comparison.ours.held_out == all_rows.scores_overall[at]
    assert all_rows.comparison.about == ""


def test_held_out_samples_of_tasks_that_no_parameter_was_chosen_on_are_not_compared():
    rng = np.random.default_rng(0)
    tasks = np.repeat([f"t{k}" for k in range(24)], 16)
    X = rng.standard_normal((len(tasks), 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(len(tasks)) > 0, 1, -1)
    given = {"Cs": [1.0], "s": 1.1, "capacity": 0.5, "cv": 2, "max_search_rows": 130, "share": ["kernel", "everything"]}
    found = trade_off_page(ParetoMKLClassifierCV(**given), X, y, tasks=tasks, **QUICK)
    assert found.cv.n_rows < len(found.train)
    assert 0.5 < found.comparison.ours.held_out <= 1
    assert all(np.isfinite(one.held_out) for one in found.comparison.contenders)


def test_a_rough_path_may_share_models_and_a_fine_one_does_not():
    X, y, tasks = two_machines(60)
    fine, rough = (trade_off_page(PLAIN, X, y, tasks=tasks, **QUICK, tol=tol) for tol in (1e-6, 1e-3))
    distinct = [len({id(model) for model in found.path.models}) for found in (fine, rough)]
    assert distinct[1] < distinct[0] == 15
    assert rough.path.gap.max() <= 1e-3
