"""The displays: they draw what the path holds, and the result is readable."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from paretomkl import PAPER_PS, ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path, sources
from paretomkl.inspection import importance
from paretomkl.model_selection import MultiTaskStratifiedKFold
from paretomkl.plotting import (
    AccuracyDisplay,
    ConvergenceDisplay,
    FrontDisplay,
    KernelWeightsDisplay,
    ObjectivesDisplay,
)
from tests.conftest import make_toy

plt = pytest.importorskip("matplotlib.pyplot")
Text = pytest.importorskip("matplotlib.text").Text
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb
plt.switch_backend("Agg")

DISPLAYS = [ObjectivesDisplay, KernelWeightsDisplay, FrontDisplay, ConvergenceDisplay]


@pytest.fixture(autouse=True)
def _close_figures():
    plt.close("all")  # those that other files left open
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def path(toy):
    return pareto_path(toy.X, toy.y, tasks=toy.tasks, kernels=toy.kernels)


@pytest.fixture(scope="module")
def pair():
    toy = make_toy(n_tasks=2, n=30)
    return pareto_path(toy.X, toy.y, tasks=toy.tasks, kernels=toy.kernels, C=10.0, tol=1e-5)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def many(digits):
    """45 tasks."""
    X, y = digits
    return pareto_path(X[:100], y[:100])


@pytest.fixture(scope="module")
def dense(toy):
    return pareto_path(toy.X, toy.y, tasks=toy.tasks, kernels=toy.kernels, ps=[*np.geomspace(0.01, 100, 60), np.inf])


@pytest.fixture(scope="module")
def single(toy):
    """One task, one kernel."""
    rows, _ = toy.pairs[0]
    return pareto_path(toy.X[rows], toy.y[rows], kernels=["linear"])


def drawn(line):
    return np.asarray(line.get_ydata(), dtype=float)


def texts_of(display):
    """The boxes of all names and tick labels in the figure, in groups that must not overlap."""
    figure = display.figure_
    figure.draw_without_rendering()
    groups = [[Text.get_window_extent(text) for text in display.ax_.texts]]  # without the lines that lead to them
    for ax in [*figure.axes, *(child for parent in figure.axes for child in parent.child_axes)]:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            labels = [label for tick in ticks for label in (tick.label1, tick.label2)]
            groups.append([label.get_window_extent() for label in labels if label.get_visible() and label.get_text()])
    return groups


# ------------------------------------------------------------------------------------------------- objectives
def test_objectives_match_the_path(path):
    display = ObjectivesDisplay.from_path(path)
    assert_array_equal(np.array([drawn(line) for line in display.lines_]), path.objectives.T)
    assert_array_equal(drawn(display.mean_line_), path.objective)
    assert_array_equal(display.lines_[0].get_xdata()[:-1], path.ps[:-1])  # finite p are at their own values
    assert display.lines_[0].get_xdata()[-1] > path.ps[-2]
    assert [label.get_text() for label in display.labels_] == [*path.task_names, "$M_p$"]
    assert display.ax_.get_xlabel() == "exponent $p$ of the power mean"
    assert display.ax_.get_ylabel() == "task objective $J_t$"
    assert display.ax_.get_legend() is None, "names stand beside the lines"


def test_exponents_rise_from_left_to_right_whatever_their_order(toy):
    ps = [np.inf, 1.0, 0.1, 20.0]
    shuffled = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=ps, kernels=toy.kernels)
    display = ObjectivesDisplay.from_path(shuffled)
    for t, line in enumerate(display.lines_):
        assert np.all(np.diff(line.get_xdata()) > 0)
        assert_array_equal(drawn(line), shuffled.objectives[[2, 1, 3, 0], t])


def test_changes_of_the_objectives(path):
    display = ObjectivesDisplay.from_path(path, relative_to=1.0)
    at = list(path.ps).index(1.0)
    for t, line in enumerate(display.lines_):
        assert_allclose(drawn(line), path.objectives[:, t] / path.objectives[at, t] - 1)
        assert f"({path.objectives[at, t]:.3g})" in display.labels_[t].get_text()
    assert display.mean_line_ is None


def test_some_tasks_by_index_and_name(path):
    display = ObjectivesDisplay.from_path(path, tasks=["task 2", 0])
    assert_array_equal(drawn(display.lines_[0]), path.objectives[:, 2])
    assert_array_equal(drawn(display.lines_[1]), path.objectives[:, 0])


def test_one_task_is_one_line_and_noise_does_not_look_like_a_trend(single):
    display = ObjectivesDisplay.from_path(single)
    assert len(display.lines_) == 1
    assert display.mean_line_ is None
    low, high = display.ax_.get_ylim()
    assert high - low >= 0.0199 * single.objectives.mean()


def test_many_tasks_have_a_colour_bar_and_few_names(many):
    display = ObjectivesDisplay.from_path(many)
    assert len(display.lines_) == 45
    assert display.ax_.get_legend() is None
    assert "objective" in display.colorbar_.ax.get_ylabel()
    order = np.argsort(many.objectives.mean(axis=0))
    extremes = {many.task_names[t] for t in [*order[:3], *order[-3:]]}
    assert {label.get_text() for label in display.labels_} == extremes | {"$M_p$"}
    assert len({tuple(line.get_color()) for line in display.lines_}) > 30


def test_objectives_of_very_different_size_have_a_logarithmic_axis():
    objectives = np.array([[1.0, 100.0], [1.1, 90.0]])
    display = ObjectivesDisplay(ps=[1, 2], objectives=objectives, objective=[50, 60], task_names=["a", "b"])
    assert display.plot().ax_.get_yscale() == "log"


# --------------------------------------------------------------------------------------------- kernel weights
def test_bands_are_the_kernel_weights(path):
    display = KernelWeightsDisplay.from_path(path)
    assert_allclose(display.band_weights_.sum(axis=1), 1)
    for m, name in enumerate(display.band_names_):
        if name in path.kernel_names:
            assert_array_equal(display.band_weights_[:, m], path.kernel_shares[:, path.kernel_names.index(name)])
    top = display.bands_[-1].get_paths()[0].vertices
    assert_allclose(top[:, 1].max(), 1)
    legend = [text.get_text() for text in display.legend_.get_texts()]
    assert len(legend) == len(display.bands_) == len(display.band_names_)


@pytest.mark.parametrize("n_kernels", [50, 1000])
def test_many_kernels_are_pooled(n_kernels):
    theta = np.random.default_rng(0).random((4, n_kernels))
    theta[0, 7] = theta[3, 3] = 5.0
    names = [f"kernel {m}" for m in range(n_kernels)]
    display = KernelWeightsDisplay(ps=[0.1, 1, 5, np.inf], shares=theta, kernel_names=names).plot()
    assert display.band_names_[:2] == ["kernel 3", "kernel 7"]  # heaviest somewhere, in the order of the bank
    assert display.band_names_[-1] == f"{n_kernels - 7} others"
    assert_allclose(display.band_weights_.sum(axis=1), theta.sum(axis=1))
    assert len(display.plot(max_kernels=3).bands_) == 4


def test_nothing_is_pooled_alone():
    theta = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    display = KernelWeightsDisplay(ps=[1, 2], shares=theta, kernel_names=["a", "b", "c"]).plot(max_kernels=2)
    assert display.band_names_ == ["a", "b", "c"]


def test_one_kernel_and_one_point(single, path):
    assert KernelWeightsDisplay.from_path(single).band_names_ == ["linear"]
    lone = KernelWeightsDisplay(ps=[np.inf], shares=path.kernel_shares[:1], kernel_names=path.kernel_names).plot()
    assert np.ptp(lone.bands_[0].get_paths()[0].vertices[:, 0]) > 0


def test_names_are_shown_literally():
    names = ["_private", "costs $5 or $6", "x" * 100]
    display = KernelWeightsDisplay(ps=[1, 2], shares=np.ones((2, 3)), kernel_names=names).plot()
    legend = [text.get_text() for text in display.legend_.get_texts()]
    assert legend[::-1][:2] == names[:2]
    assert len(legend[0]) < 40
    display.figure_.draw_without_rendering()


# ------------------------------------------------------------------------------------------------------ front
def test_front_of_two_tasks(pair):
    display = FrontDisplay.from_path(pair)
    assert_array_equal(display.line_.get_xydata(), pair.objectives)
    assert_array_equal(display.points_.get_offsets(), pair.objectives)
    assert display.ax_.get_title() == ""
    x, y = pair.objectives.T
    distinct = np.append(np.diff(x) > 1e-4 * np.ptp(x), True)
    slopes = np.diff(y[distinct]) / np.diff(x[distinct])
    assert np.all(slopes < 0)
    assert np.all(np.diff(slopes) > -0.02 * np.abs(slopes).max())  # convex, up to the gap
    labels = {label.get_text() for label in display.labels_}
    assert {"p = 0.01", "p = 1", "p = ∞"} <= labels
    assert "better" in display.ax_.get_xlabel()
    assert pair.task_names[0] in display.ax_.get_xlabel()
    assert pair.task_names[1] in display.ax_.get_ylabel()


def test_front_of_more_tasks_is_a_projection(path):
    display = FrontDisplay.from_path(path, tasks=("task 2", 0), colorbar=False)
    assert_array_equal(display.line_.get_xydata(), path.objectives[:, [2, 0]])
    assert "projection" in display.ax_.get_title()
    assert display.colorbar_ is None


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (("task 0", "task 9"), "There is no task 'task 9'; choose from 'task 0', 'task 1', 'task 2'."),
        ((0, 3), "There is no task 3; tasks are numbered from 0 to 2."),
        ((0, "task 0"), "tasks must be two different tasks"),
        ((0, 1, 2), "tasks must be two different tasks"),
    ],
)
def test_unknown_tasks_of_the_front(path, tasks, message):
    with pytest.raises(ValueError, match=message):
        FrontDisplay.from_path(path, tasks=tasks)
    assert not plt.get_fignums()


def test_one_task_has_no_front(single):
    with pytest.raises(ValueError, match="needs two tasks"):
        FrontDisplay.from_path(single)


# --------------------------------------------------------------------------------------------------- accuracy
def halves(toy):
    even = np.arange(len(toy.y)) % 2 == 0
    return even, ~even


@pytest.mark.parametrize("p", [0.1, 1.0, np.inf])
def test_accuracies_of_a_path_match_the_estimator(toy, p):
    train, test = halves(toy)
    path = pareto_path(toy.X[train], toy.y[train], tasks=toy.tasks[train], ps=[p], kernels=toy.kernels)
    display = AccuracyDisplay.from_path(path, toy.X[test], toy.y[test], tasks_test=toy.tasks[test])
    clf = ParetoMKLClassifier(p=p, kernels=toy.kernels).fit(toy.X[train], toy.y[train], tasks=toy.tasks[train])
    right = clf.predict(toy.X[test], tasks=toy.tasks[test]) == toy.y[test]
    for t, name in enumerate(path.task_names):
        assert_allclose(display.scores[0, t], right[toy.tasks[test] == name].mean())
    assert_allclose(drawn(display.mean_line_), clf.score(toy.X[test], toy.y[test], tasks=toy.tasks[test]))


def test_pairs_of_classes_are_judged_by_their_own_samples(digits, many):
    X, y = digits
    display = AccuracyDisplay.from_path(many, X[100:400], y[100:400])
    clf = ParetoMKLClassifier(p=0.01).fit(X[:100], y[:100])
    assert display.scores.shape == (13, 45)
    assert display.names == clf.task_names_
    t = clf.task_names_.index("3 vs 8")
    both = np.isin(y[100:400], (3, 8))
    decision = clf.model_.decisions(X[100:400][both])[:, t]
    by_hand = np.mean((decision > 0) == (y[100:400][both] == 8))
    assert display.scores[0, t] == pytest.approx(by_hand, abs=0.05)  # another start, the same tolerance


def test_accuracies_of_a_label_matrix_and_of_precomputed_kernels(toy):
    train, test = halves(toy)
    Y = np.column_stack([np.where(toy.tasks == name, toy.y == "yes", np.nan) for name in ("task 0", "task 1")])
    for X_train, X_test, kernels in (
        (toy.X[train], toy.X[test], toy.kernels),
        (
            np.moveaxis(toy.Ks[:, train][:, :, train], 0, 2),
            np.moveaxis(toy.Ks[:, test][:, :, train], 0, 2),
            "precomputed",
        ),
    ):
        path = pareto_path(X_train, Y[train], ps=[1.0], kernels=kernels)
        display = AccuracyDisplay.from_path(path, X_test, Y[test])
        clf = ParetoMKLClassifier(kernels=kernels).fit(X_train, Y[train])
        assert_allclose(display.mean, clf.score(X_test, Y[test]))


def test_differences_from_one_exponent():
    scores = np.array([[0.7, 0.9], [0.75, 0.85], [0.6, 0.8]])
    display = AccuracyDisplay(ps=[0.1, 1.0, np.inf], scores=scores, names=["a", "b"], mean=scores.mean(axis=1))
    display.plot(relative_to=1.0)
    assert_allclose([drawn(line) for line in display.lines_], (scores - scores[1]).T)
    assert_allclose(drawn(display.mean_line_), scores.mean(axis=1) - 0.8)
    assert [label.get_text() for label in display.labels_] == ["a (0.750)", "b (0.850)", "mean (0.800)"]
    assert "difference from $p$ = 1" in display.ax_.get_ylabel()
    with pytest.raises(ValueError, match=r"relative_to=2 is not among the exponents: 0.1, 1, ∞"):
        display.plot(relative_to=2)


def test_bad_scores_are_refused(toy, path):
    with pytest.raises(ValueError, match="one row for each of the 3 exponents"):
        AccuracyDisplay(ps=[0.1, 1, 2], scores=np.ones((2, 3)), names="abc")
    with pytest.raises(ValueError, match="one column for each of the 1 names, got shape"):
        AccuracyDisplay(ps=[0.1, 1], scores=np.ones((2, 3)), names=["a"])
    with pytest.raises(ValueError, match="There is no task 'b'"):
        AccuracyDisplay(ps=[1], scores=[[0.5]], names=["a"]).plot(tasks=["b"])
    with pytest.raises(ValueError, match="pass the task of each row as tasks="):
        AccuracyDisplay.from_path(path, toy.X, toy.y)
    with pytest.raises(ValueError, match=r"one row per sample \(54\) .*, got shape \(53,\)"):
        AccuracyDisplay.from_path(path, toy.X, toy.y[1:], tasks_test=toy.tasks)
    with pytest.raises(ValueError, match=r"one column per task \(3\), got shape \(54, 2\)"):
        AccuracyDisplay.from_path(path, toy.X, np.ones((54, 2)), tasks_test=toy.tasks)
    with pytest.raises(ValueError, match="Task 'task 0' has 0 samples in the test data"):
        AccuracyDisplay.from_path(path, toy.X[20:], toy.y[20:], tasks_test=toy.tasks[20:])


def test_cross_validated_scores(toy):
    frame = pd.DataFrame(toy.X, columns=list("abc")).assign(site=toy.tasks)
    grid = {"p": [0.1, 1.0, np.inf], "C": [0.1, 1.0]}
    folds = MultiTaskStratifiedKFold(2, task_column="site")
    search = GridSearchCV(ParetoMKLClassifier(kernels=toy.kernels, task_column="site"), grid, cv=folds)
    search.fit(frame, toy.y)
    score = search.cv_results_["mean_test_score"].reshape(2, 3)  # C, then p
    std = search.cv_results_["std_test_score"].reshape(2, 3)
    best = AccuracyDisplay.from_cv_results(search)
    assert_allclose(drawn(best.lines_[0]), score.max(axis=0))
    assert best.mean_line_ is None
    assert best.labels_[0].get_text() == "best C"
    own = ParetoMKLClassifierCV(ps=grid["p"], Cs=grid["C"], kernels=toy.kernels, cv=2, share="kernel").fit(
        toy.X, toy.y, tasks=toy.tasks
    )
    assert_allclose(AccuracyDisplay.from_cv_results(own).scores.max(), own.best_score_)
    each = AccuracyDisplay.from_cv_results(search.cv_results_, by="C")
    assert_allclose([drawn(line) for line in each.lines_], score)
    assert [line.get_label() for line in each.lines_] == ["C = 0.1", "C = 1"]
    (band,) = each.bands_  # around the line with the best score: one standard error of a mean over two folds
    peak = score.max(axis=1).argmax()
    assert_allclose(band.get_paths()[0].vertices[:, 1].max(), (score + std)[peak].max())
    assert_allclose(band.get_facecolor()[0, :3], to_rgb(each.lines_[peak].get_color()))
    assert AccuracyDisplay.from_cv_results(search, relative_to=1.0).bands_ == []
    with pytest.raises(ValueError, match=r"must have one parameter 's'; the search has \['C', 'p'\]"):
        AccuracyDisplay.from_cv_results(search, by="s")
    failed = search.cv_results_ | {"mean_test_score": np.full(6, np.nan)}
    with pytest.raises(ValueError, match="No setting of the search has a score"):
        AccuracyDisplay.from_cv_results(failed)
    with pytest.raises(ValueError, match="needs a fitted search with cv_results_, got SVC"):
        AccuracyDisplay.from_cv_results(SVC())


# ------------------------------------------------------------------------------------------------ convergence
def test_the_history_of_a_path_ends_with_its_gaps(path):
    rows = np.array(path.history)
    assert rows[-1, 1] == path.n_sweeps
    assert np.all(np.diff(rows[:, 1]) >= 0)
    for p, gap in zip(path.ps, path.gap, strict=True):
        assert rows[rows[:, 0] == p][-1, 2] == gap
    display = ConvergenceDisplay.from_path(path)
    assert_array_equal(display.lines_[0].get_xydata(), rows[:, 1:])
    assert_array_equal(display.tol_line_.get_ydata(), path.tol)
    assert path.tol == 1e-3
    assert display.ax_.get_yscale() == "log"
    assert len(display.lines_[0].get_markevery()) == len(path)
    assert display.top_axis_ is not None


def test_solvers_side_by_side(toy):
    paths = {
        solver: pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[1.0], kernels=toy.kernels, solver=solver)
        for solver in ("cut-pool", "bcd", "tseng")
    }
    display = ConvergenceDisplay.from_path(paths)
    assert [line.get_label() for line in display.lines_] == list(paths)
    for line, path in zip(display.lines_, paths.values(), strict=True):
        assert drawn(line)[-1] == path.gap[0]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == [*paths, "tol = 0.001"]
    assert display.top_axis_ is None


def test_history_by_hand():
    rows = [(1.0, 1, 0.5), (1.0, 2, 0.0), (2.0, 2, 0.1)]
    display = ConvergenceDisplay({"gap": rows}).plot()
    assert np.all(drawn(display.lines_[0]) > 0)  # a gap of zero is drawn on a logarithmic axis too
    assert display.lines_[0].get_markevery() == [1, 2]
    assert display.tol_line_ is None
    with pytest.raises(ValueError, match=r"history 'mine' must have rows \(p, n_sweeps, gap\), got shape \(2, 2\)"):
        ConvergenceDisplay({"mine": [(1, 2), (3, 4)]})
    with pytest.raises(ValueError, match="no history to draw"):
        ConvergenceDisplay.from_path({})


# -------------------------------------------------------------------------------------------- all of them
@pytest.mark.parametrize("display", DISPLAYS)
def test_given_axes_are_used_and_others_left_alone(path, display):
    figure, (left, right) = plt.subplots(1, 2)
    made = display.from_path(path, ax=left)
    assert made.ax_ is left
    assert made.figure_ is figure
    assert not right.has_data()
    again = made.plot(right)
    assert again is made
    assert made.ax_ is right
    assert plt.get_fignums() == [figure.number]
    assert display.from_path(path).figure_ is not figure


@pytest.mark.parametrize(
    ("kind", "size"),
    [("pair", (6.4, 4.8)), ("many", (6.4, 4.8)), ("many", (4, 3)), ("dense", (6.4, 4.8)), ("single", (6.4, 4.8))],
)
@pytest.mark.parametrize("display", DISPLAYS)
def test_texts_do_not_touch_each_other(display, kind, size, request):
    path = request.getfixturevalue(kind)
    if display is FrontDisplay and kind == "single":
        pytest.skip("one task has no front")
    with plt.rc_context({"figure.figsize": size}):
        made = display.from_path(path)
    inside = made.figure_.bbox.padded(1)
    for boxes in texts_of(made):
        for one, other in combinations(boxes, 2):
            assert not one.overlaps(other)
        for box in boxes:
            assert inside.contains(*box.min)
            assert inside.contains(*box.max)


@pytest.mark.parametrize("display", DISPLAYS)
def test_dark_backgrounds(many, display):
    with plt.style.context("dark_background"):
        made = display.from_path(many)
        texts = [*made.ax_.texts, made.ax_.xaxis.label, made.ax_.yaxis.label]
        assert {text.get_color() for text in texts} == {"white"}
        if display is ObjectivesDisplay:
            assert made.mean_line_.get_color() == "white"
            luminance = [np.dot(line.get_color()[:3], (0.3, 0.6, 0.1)) for line in made.lines_]
            assert min(luminance) > 0.3


@pytest.mark.parametrize(
    "ps",
    [
        PAPER_PS,
        [-np.inf, -10, -1, -0.5, 0, 0.5, 1, np.inf],
        [1.0],
        [0.0],
        [np.inf],
        [-np.inf, np.inf],
        [-2.0, -1.0],
        np.linspace(-5, 5, 101),
        np.geomspace(0.01, 100, 120),
        np.linspace(1, 2, 40),
        [1e-9, 1.0, 1e9],
    ],
)
def test_the_axis_of_exponents(ps):
    from paretomkl.plotting._style import Exponents

    exponents = Exponents(ps)
    places = exponents.places(np.sort(ps))
    assert np.isfinite(places).all()
    heights = exponents.forward(places)
    assert np.all(np.diff(heights) > 0)
    assert_allclose(exponents.inverse(heights), places, rtol=1e-9, atol=1e-12)
    finite = np.isfinite(np.sort(ps))
    assert_array_equal(places[finite], np.sort(ps)[finite])
    values = np.arange(len(places), dtype=float) + 1
    display = ObjectivesDisplay(ps=np.sort(ps), objectives=values[:, None], objective=values, task_names=["a"]).plot()
    display.figure_.draw_without_rendering()
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert ticks
    assert len(set(ticks)) == len(ticks)
    assert ("∞" in ticks) == (np.inf in ps)
    if 1.0 in ps:
        assert "1" in ticks
    assert len(ticks) >= min(len(places), 3)


def test_labels_are_spread_no_further_than_needed():
    from paretomkl.plotting._style import spread

    assert_allclose(spread(np.array([0.1, 0.5, 0.9]), 0.1), [0.1, 0.5, 0.9])
    crowded = spread(np.array([0.5, 0.5, 0.5]), 0.1)
    assert_allclose(np.sort(crowded), [0.4, 0.5, 0.6])
    low = spread(np.zeros(4), 0.1)
    assert low.min() == 0
    assert all(b - a >= 0.1 - 1e-12 for a, b in pairwise(np.sort(low)))


def test_without_matplotlib_the_extra_is_named():
    code = """
import sys
import paretomkl, paretomkl.plotting
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
for draw in (
    lambda: paretomkl.plotting.AccuracyDisplay(ps=[1.0], scores=[[0.5]], names=["a"]).plot(),
    lambda: paretomkl.plotting.AccuracyDisplay.from_path(None, None, None),  # before any work
    lambda: paretomkl.plotting.ConvergenceDisplay({"gap": [(1.0, 1, 0.1)]}).plot(),
):
    try:
        draw()
    except ImportError as error:
        print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(told) == 3
    assert all("matplotlib" in line and "pip install 'paretomkl[plot]'" in line for line in told)


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_search_is_drawn_by_its_path(display):
    toy = make_toy(n_tasks=2, n=30)
    search = ParetoMKLClassifierCV(ps=[0.1, 1.0, np.inf], Cs=[1.0], cv=2, kernels=toy.kernels, share="everything")
    search.fit(toy.X, toy.y, tasks=toy.tasks)
    shown = display.from_path(search)
    if display is KernelWeightsDisplay:  # only a search knows how steady the shares are
        assert_array_equal(shown.errors_.lines[1][0].get_xdata(), shown.errors_.lines[1][1].get_xdata())
        shown.errors_.remove()
    lines = [one.ax_.lines for one in (shown, display.from_path(search.path_))]
    assert len(lines[0]) == len(lines[1])
    for one, other in zip(*lines, strict=True):
        assert_array_equal(one.get_xydata(), other.get_xydata())
    accuracies = [
        AccuracyDisplay.from_path(one, toy.X, toy.y, tasks_test=toy.tasks).scores for one in (search, search.path_)
    ]
    assert_array_equal(*accuracies)


def test_regressions_are_drawn_by_r2():
    rng = np.random.default_rng(0)
    X, tasks = rng.random((90, 3)), np.array(["a", "b", "c"])[np.arange(90) % 3]
    y = 7 * np.sin(4 * X[:, 0]) + (tasks == "b") * X[:, 1] + 0.3 * rng.standard_normal(90)
    train, test = slice(0, 60), slice(60, 90)
    given = {"C": 10.0, "kernels": "paper", "tol": 1e-6}
    path = pareto_path(X[train], y[train], tasks=tasks[train], machine="ridge", ps=[1.0, 10.0], verbose=0, **given)
    display = AccuracyDisplay.from_path(path, X[test], y[test], tasks_test=tasks[test])
    predicted = path.models[1].predict(X[test], tasks[test])
    expected = [r2_score(y[test][own], predicted[own]) for own in (tasks[test] == name for name in "abc")]
    assert_allclose(display.scores[1], expected)
    assert display.ax_.get_ylabel() == "R²"
    assert display.plot(relative_to=1.0).ax_.get_ylabel() == "R², difference from $p$ = 1"
    with pytest.raises(ValueError, match="Task 'b' has 0 samples in the test data; R² needs 2"):
        AccuracyDisplay.from_path(path, X[[0, 3]], y[[0, 3]], tasks_test=tasks[[0, 3]])
    alone = pareto_path(X, ps=[1.0], machine="one-class", kernels=[("rbf", {"sigma": 1.0})], verbose=0)
    with pytest.raises(ValueError, match="no score to draw"):
        AccuracyDisplay.from_path(alone, X, None)


# ------------------------------------------------------------------------------------------------ of searches
def test_shares_and_importances_show_how_sure_they_are():
    X, y = load_iris(return_X_y=True)
    kernels = sources({"sepal": [0, 1], "petal": [2, 3]})
    search = ParetoMKLClassifierCV(ps=[0.5, 1.0, 2.0], Cs=[1.0], cv=3, kernels=kernels).fit(X, y)
    display = KernelWeightsDisplay.from_path(search, by="source")
    (lines,) = display.errors_.lines[2]
    p = search.best_params_["p"]
    segments = np.array(lines.get_segments())
    assert_allclose(np.ptp(segments[:, :, 1], axis=1), 2 * np.array(list(search.source_shares_std_.values())))
    of_path = KernelWeightsDisplay.from_path(search.path_, by="source")
    assert of_path.errors_ is None
    assert p in search.path_.ps

    found = importance(search, X, y, n_repeats=1)
    shown = found.plot()
    assert [label.get_text() for label in shown.share_ax_.get_yticklabels()] == ["petal", "sepal"]
    assert [bar.get_width() for bar in shown.share_ax_.patches] == pytest.approx(found.shares[::-1].tolist())
    (bars,) = shown.ax_.containers[0].lines[2]
    ends = np.array(bars.get_segments())[:, :, 0]
    assert_allclose(ends, 100 * np.column_stack([found.low, found.high])[::-1])
    alone = importance(search, X, y, by="column", n_repeats=1).plot(most=2)
    assert alone.share_ax_ is None
    assert len(alone.order_) == 2
