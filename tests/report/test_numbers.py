"""The page of a regression: R² instead of accuracy, predicted vs. observed, residuals by task."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import mean_absolute_error, r2_score

import paretomkl
from paretomkl import ParetoMKLRegressor, ParetoMKLRegressorCV
from paretomkl.kernels import KernelBank
from paretomkl.report import _trade_off, build_page, held_out_split, trade_off_page
from tests.oracles import explained_within_tasks

from .test_page import Page, embedded, number

NAMES = ["quiet", "noisy", "</script>"]


def three_pumps(n: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tasks with different noise and slope, and targets far from zero."""
    rng = np.random.default_rng(0)
    X, tasks = rng.random((n, 3)), np.array(NAMES)[np.arange(n) % 3]
    noise = np.where(tasks == "noisy", 5.0, 0.5) * rng.standard_normal(n)
    return X, 200 + 10 * np.sin(5 * X[:, 0]) + np.where(tasks == "quiet", 20.0, 0.0) * X[:, 1] + noise, tasks


@pytest.fixture(scope="session")
def pumps(tmp_path_factory):
    X, y, tasks = three_pumps()
    file = tmp_path_factory.mktemp("pages") / "pumps.html"
    return trade_off_page(
        ParetoMKLRegressorCV(Cs=[1.0, 10.0], cv=3, share="kernel"), X, y, tasks=tasks, n_points=20, file=file
    )


def test_scores_match_models_fitted_by_hand(pumps):
    X, y, tasks = three_pumps()
    assert (pumps.measure.name, pumps.measure.key) == ("R²", "r2")
    train, test = held_out_split(X, y, tasks=tasks, stratify=False)
    assert_array_equal(train, pumps.train)
    assert_array_equal(pumps.n_held_out, [np.sum(tasks[test] == name) for name in pumps.path.task_names])
    given = {"C": pumps.C, "s": pumps.s, "kernels": KernelBank(capacity=pumps.capacity), "tol": 1e-6}
    for p in (0.01, 1.0, np.inf):
        row = list(pumps.path.ps).index(p)
        reg = ParetoMKLRegressor(p=p, **given).fit(X[train], y[train], tasks=tasks[train])
        everywhere = reg.predict(X, tasks=tasks)
        predicted = everywhere[test]
        by_hand = [r2_score(y[test][own], predicted[own]) for own in (tasks[test] == t for t in pumps.path.task_names)]
        assert_allclose(pumps.scores[row], by_hand, atol=2e-3)
        overall = explained_within_tasks(y, everywhere, tasks, train, test)
        assert pumps.scores_overall[row] == pytest.approx(overall, abs=2e-3)
        drawn = pumps.predictions
        assert_allclose(drawn.predicted[row], predicted[drawn.rows], rtol=1e-3)
        assert_allclose(drawn.truth, y[test][drawn.rows])
        assert_array_equal(np.array(pumps.path.task_names)[drawn.tasks], tasks[test][drawn.rows])


def test_predictions_survive_rounding(pumps):
    data = embedded(pumps.html)["numbers"]
    for name, values in [("truth", pumps.predictions.truth), ("predicted", pumps.predictions.predicted)]:
        assert_allclose(data["low"] + data["step"] * np.array(data[name]), values, atol=0.51 * data["step"])
    assert data["all"] == len(data["truth"]) == len(pumps.test)


def test_many_predictions_are_drawn_from_all_tasks(monkeypatch):
    monkeypatch.setattr(_trade_off, "MOST_DRAWN", 15 * 12)
    X, y, tasks = three_pumps(240)
    found = trade_off_page(ParetoMKLRegressor(), X, y, tasks=tasks, n_points=15)
    assert_array_equal(np.bincount(found.predictions.tasks), [4, 4, 4])
    assert found.predictions.n_all == 60
    assert len(set(found.predictions.rows)) == 12
    assert found.n_held_out.sum() == 60, "scores are those of all samples"


def test_other_scores_losses_and_forms_of_y():
    X, y, tasks = three_pumps(60)
    given = {"Cs": 10.0, "s": 1.1, "capacity": 1.0, "ps": 1.0, "scoring": "neg_mean_absolute_error", "cv": 2}
    search = ParetoMKLRegressorCV(loss="epsilon_insensitive", epsilon=0.3, share="kernel", **given)
    found = trade_off_page(search, X, y, tasks=tasks, n_points=15, baselines=False)
    assert "loss='epsilon_insensitive', epsilon=0.3" in found.path.refit
    assert (found.epsilon, found.measure.in_units) == (0.3, True)
    own = found.predictions.tasks == 1
    truth, predicted = found.predictions.truth[own], found.predictions.predicted[4, own]
    assert found.scores[4, 1] == pytest.approx(-mean_absolute_error(truth, predicted))
    matrix = np.column_stack([y, -100 * y])
    matrix[:10, 1] = np.nan
    two = trade_off_page(ParetoMKLRegressor(C=10.0), X, matrix, n_points=15)
    assert two.n_held_out[0] == len(two.test) > two.n_held_out[1]
    assert len(two.predictions.truth) == two.n_held_out.sum()


def test_cross_validation_chooses_epsilon():
    X, y, tasks = three_pumps(60)
    given = {"loss": "epsilon_insensitive", "epsilon": [0.1, 0.5], "Cs": 10.0, "s": 1.1, "capacity": 1.0, "cv": 2}
    found = trade_off_page(
        ParetoMKLRegressorCV(**given, share="kernel"), X, y, tasks=tasks, n_points=15, baselines=False
    )
    assert found.epsilon == found.cv.best_epsilon
    assert found.epsilon in (0.1, 0.5)
    assert f"epsilon = {found.epsilon:g}" in found.html


def test_scores_for_classes_are_refused():
    X, y, tasks = three_pumps(30)
    with pytest.raises(ValueError, match="not a score for numbers"):
        trade_off_page(ParetoMKLRegressorCV(scoring="accuracy"), X, y, tasks=tasks)


# ------------------------------------------------------------------------------------------------- in a browser
def residuals(result, row: int, task: int) -> np.ndarray:
    drawn = result.predictions
    return (drawn.truth - drawn.predicted[row])[drawn.tasks == task]


def test_charts_follow_the_slider(driver, pumps):
    page = Page(driver, pumps.file)
    seen = set()
    for index in (0, 9, len(pumps.path) - 1):
        page.slide(index)
        paths = driver.execute_script("return [...document.querySelectorAll('.dots')].map(n => n.getAttribute('d'))")
        assert [d.count("M") for d in paths] == pumps.n_held_out.tolist()
        seen.add(paths[0])
        legend = driver.execute_script(
            "return [...document.querySelectorAll('#fig-truth .legend b')].map(n => n.textContent)"
        )
        assert_allclose([number(text) for text in legend], pumps.scores[index], atol=6e-4)
    assert len(seen) == 3
    page.press("#fig-residuals svg", "\ue015", "\ue015")  # ↓ twice: the second task
    tip = page.text("#tip")
    error = residuals(pumps, len(pumps.path) - 1, 1)
    assert tip.startswith(pumps.path.task_names[1])
    assert_allclose(number(tip.split("root mean square ")[1]), np.sqrt(np.mean(error**2)), rtol=5e-3)
    assert_allclose(number(tip.split("median ")[1]), np.median(error), rtol=0.02, atol=0.01)
    assert driver.execute_script("return document.querySelectorAll('.box.hot, .dots.hot').length") == 2
    assert page.drain()[0] == []


def test_residuals_are_where_the_axis_says(driver, pumps):
    """The box of a task goes from quartile to quartile, according to the axis labels."""
    page = Page(driver, pumps.file)
    index = embedded(pumps.html)["start"]
    ticks = driver.execute_script(
        "return [...document.querySelectorAll('#fig-residuals svg > text[y]')]"
        ".map(n => [+n.getAttribute('x'), n.textContent])"
    )
    (x0, v0), (x1, v1) = [(x, number(text)) for x, text in ticks if re.fullmatch(r"[−\d.]+", text)][:2]
    for t in range(3):
        d = page.find(f"#fig-residuals .box:nth-of-type({t + 1}) .middle").get_attribute("d")
        left, right = (v0 + (float(x) - x0) * (v1 - v0) / (x1 - x0) for x in re.findall(r"[MH]([-\d.]+)", d))
        expected = np.quantile(residuals(pumps, index, t), [0.25, 0.75])
        assert_allclose([left, right], expected, atol=0.02 * (v1 - v0) + 0.05)


def test_words_fit_a_regression(driver, pumps):
    page = Page(driver, pumps.file)
    words = page.text("main")
    assert "ccuracy" not in words
    assert "support vector" not in words
    assert "right side" not in words
    assert "Held-out R² of the tasks" in words
    assert "optimum of its regression" in words
    assert "one kernel ridge per task" in page.text("#baselines")
    assert page.text("#baselines thead").endswith("RMSE")
    for width in (390, 1280):
        Page(driver, pumps.file, width=width)
        inner, content = driver.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
        assert content <= inner == width
        clipped = driver.execute_script(
            "return [...document.querySelectorAll('.card')].filter(node => node.scrollWidth > node.clientWidth + 1)"
            ".map(node => node.id)"
        )
        assert clipped == []


def test_a_page_of_a_path_alone(driver, tmp_path):
    X, y, tasks = three_pumps(30)
    path = paretomkl.pareto_path(X, y, tasks=tasks, ps=[0.5, 1.0, 2.0], machine="ridge", verbose=0)
    page = Page(driver, path.to_html(tmp_path / "page.html"))
    assert "trade_off_page(ParetoMKLRegressorCV(), X, y" in page.find("#no-accuracy").text
    assert "Held-out R²" in page.text("#no-accuracy")
    assert driver.find_elements("css selector", "#fig-truth, #fig-residuals, #fig-accuracy") == []
    assert page.drain()[0] == []
    ours = paretomkl.pareto_path(X, ps=[1.0], machine="one-class", kernels=[("rbf", {"sigma": 1.0})], verbose=0)
    page = Page(driver, ours.to_html(tmp_path / "detector.html"))
    assert not page.find("#no-accuracy").is_displayed()
    assert page.drain()[0] == []


def test_classification_pages_have_no_regression_charts(two):
    assert "fig-truth" not in re.sub(r"<script>.*</script>", "", two.html, flags=re.DOTALL)
    assert "Held-out accuracy" in build_page(two.path)


def test_notebooks_show_regressions(pumps):
    assert "largest J" in pumps.path._repr_html_()
    X, y, tasks = three_pumps(30)
    assert "certified gap" in ParetoMKLRegressor().fit(X, y, tasks=tasks)._repr_html_()


def test_labels_of_very_large_targets_do_not_overlap(driver, tmp_path):
    X, y, tasks = three_pumps(90)
    file = tmp_path / "page.html"
    Page(driver, trade_off_page(ParetoMKLRegressor(), X, 1e15 * y, tasks=tasks, n_points=15, file=file).file)
    labels = driver.execute_script(
        "return [...document.querySelectorAll('#fig-truth svg > text[text-anchor=middle]')]"
        ".filter(n => /\\d/.test(n.textContent)).map(n => n.getBoundingClientRect()).map(r => [r.left, r.right])"
    )
    assert len(labels) > 1
    assert all(right < left for (_, right), (left, _) in pairwise(labels))
