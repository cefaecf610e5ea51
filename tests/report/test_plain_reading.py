"""What someone who reads a page for the first time must not misread."""

from __future__ import annotations

import math
import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import paretomkl
from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressorCV
from paretomkl._select.results import Contender, Sharing, with_error
from paretomkl._show.words import choice, lowest_score, plain_kernel
from paretomkl._tools.wording import ACCURACY, R2
from paretomkl.report import Comparison, CrossValidation, TradeOff, build_page, trade_off_page

from .test_for_everyone import sites  # noqa: F401  (a fixture)
from .test_page import Page, embedded, number


@pytest.fixture(scope="module")
def wards(tmp_path_factory) -> TradeOff:
    """Two tasks with three classes each, which are six comparisons, and eight sources."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((180, 8))
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(ward=np.array(["north", "south"])[np.arange(180) % 2])
    y = np.array(["cold", "flu", "well"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])]
    search = ParetoMKLClassifierCV(
        Cs=1.0, cv=2, task_column="ward", share="kernel", kernels=paretomkl.sources({name: name for name in "abcdefgh"})
    )
    file = tmp_path_factory.mktemp("pages") / "wards.html"
    return trade_off_page(search, frame, y, n_points=15, file=file)


# ------------------------------------------------------------------------------------------------------ the guide
def test_the_guide_is_open_the_first_time_only(driver, two):
    page = Page(driver, two.file)
    driver.execute_script("localStorage.clear()")
    opened = "return document.getElementById('about').open"
    page = Page(driver, two.file)
    assert driver.execute_script(opened)
    assert page.find("main > :first-child").get_attribute("id") == "about"
    page = Page(driver, two.file)
    assert not driver.execute_script(opened)
    assert page.drain()[0] == []


def test_a_page_in_a_frame_without_storage_works(driver, two, tmp_path):
    frame = tmp_path / "frame.html"
    frame.write_text(f"<!doctype html><body data-ready=yes>{two._repr_html_()}<script>"
                     "document.documentElement.dataset.ready = 'yes'</script>", encoding="utf-8")  # fmt: skip
    page = Page(driver, frame)
    driver.switch_to.frame(0)
    try:
        assert page.text("#p-now").startswith("p = ")
        assert driver.execute_script("return document.getElementById('about').open")
    finally:
        driver.switch_to.default_content()
    assert page.drain()[0] == []


# ----------------------------------------------------------------------------------------------- counts and names
def test_counts_of_tasks_agree(driver, wards, many):
    """A page calls one thing a task: what the task column names; its classes are compared."""
    page = Page(driver, wards.file)
    text = page.text("body > header") + driver.execute_script("return document.querySelector('main').innerText")
    assert "2 tasks (column ward), 3 classes compared one against the rest: 6 comparisons" in text
    assert set(re.findall(r"\b(\d+) tasks\b", text)) == {"2"}
    assert set(re.findall(r"\b(\d+) comparisons\b", text)) == {"6"}
    assert "Every comparison carries 17 % of the weight" in text.replace("\u00a0", " ")
    page = Page(driver, many.file)
    text = page.text("body > header") + driver.execute_script("return document.querySelector('main').innerText")
    assert "10 classes compared two at a time: 45 pairs" in text
    assert re.findall(r"\b\d+ tasks\b", text) == []


def test_a_single_task_is_named_by_its_column():
    rng = np.random.default_rng(0)
    X, mass = rng.random((40, 2)), rng.random(40)
    for y in (pd.Series(mass, name="mass"), pd.DataFrame({"mass": mass})):
        assert paretomkl.ParetoMKLRegressor().fit(X, y).task_names_ == ["mass"]
    assert paretomkl.ParetoMKLRegressor().fit(X, mass).task_names_ == ["y"]
    found = trade_off_page(
        ParetoMKLRegressorCV(Cs=1.0, cv=2), X, pd.Series(mass, name="mass"), n_points=15, baselines=False
    )
    assert embedded(found.html)["tasks"] == ["mass"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("linear", "straight lines (linear)"),
        ("gaussian ×0.125", "smooth, very narrow (gaussian ×0.125)"),
        ("laplacian ×4", "jagged, very wide (laplacian ×4)"),
        ("genes: gaussian ×1", "genes: smooth, medium (gaussian ×1)"),
        ("a: b: cosine", "a: b: directions (cosine)"),
        ("gaussian(sigma=2)", "gaussian(sigma=2)"),
        ("3 others", "3 others"),
        ("my linear", "my linear"),
    ],
)
def test_default_kernels_say_what_they_do(name, said):
    assert plain_kernel(name) == said


# ---------------------------------------------------------------------------------------------------------- colours
def lab(color: str) -> np.ndarray:
    rgb = np.array([int(part) / 255 for part in re.findall(r"\d+", color)[:3]] if "(" in color else to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = matrix @ linear / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_at_most_seven_colours_that_differ(driver, many, wards, scheme):
    for result in (many, wards):
        page = Page(driver, result.file, scheme=scheme)
        areas = driver.execute_script(
            "return [...document.querySelectorAll('#fig-kernels .area')].map(n => getComputedStyle(n).fill)"
        )
        assert len(areas) == len(set(areas)) == 7
        assert min(np.linalg.norm(lab(a) - lab(b)) for a, b in combinations(areas, 2)) > 20  # 2 can just be told apart
        lines = driver.execute_script(
            "return [...document.querySelectorAll('#fig-weights .line')].map(n => getComputedStyle(n).stroke)"
        )
        assert len(set(lines)) <= 7
    assert page.text("#kernels li:last-child").startswith("2 others")  # of eight sources


# -------------------------------------------------------------------------------------------------------------- axes
TICKS = "return [...document.querySelectorAll('#fig-{0} svg > g:first-of-type text')].map(n => n.textContent)"


def test_axes_of_scores_are_whole_until_zoomed(driver, two):
    page = Page(driver, two.file)
    page.click("#fig-accuracy .modes button:nth-child(2)")
    for figure in ("overall", "accuracy"):
        ticks = driver.execute_script(TICKS.format(figure))
        assert [ticks[0], ticks[-1]] == ["0 %", "100 %"]
        assert page.text(f"#fig-{figure} .zoom-note") == ""
        page.click(f"#fig-{figure} .zoom")
        ticks = [number(text) for text in driver.execute_script(TICKS.format(figure))]
        assert ticks[0] > 0
        assert driver.find_elements("css selector", f"#fig-{figure} .break.of-values")
        note = page.text(f"#fig-{figure} .zoom-note")
        shown = f"from {ticks[0]:g} % to {ticks[-1]:g} %"
        assert note == f"Zoomed in: this axis goes {shown}, the whole one from 0 % to 100 %."
        page.click(f"#fig-{figure} .zoom")
        assert driver.execute_script(TICKS.format(figure))[0] == "0 %"
    page.click("#fig-accuracy .modes button:nth-child(1)")
    assert not page.find("#fig-accuracy .zoom").is_displayed(), "differences have zero on their axis"
    assert page.drain()[0] == []


def test_the_front_shows_where_its_zoom_is(driver, two):
    """The frame in the small picture is where the objectives are, from zero to the largest."""
    page = Page(driver, two.file)
    a, b = (int(page.find(f"#front-{axis}").get_attribute("value")) for axis in "xy")
    part, axes = driver.execute_script(
        "const box = css => { const b = document.querySelector('#fig-front ' + css).getBBox();"
        " return [b.x, b.y, b.width, b.height]; }; return [box('.inset-part'), box('.inset-axes')]"
    )
    across, up = two.path.objectives[:, a], two.path.objectives[:, b]
    room = 66 / across.max()  # pixels per unit
    assert part[0] - axes[0] == pytest.approx(across.min() * room - 1.5, abs=0.1)
    assert part[2] == pytest.approx(np.ptp(across) * room + 3, abs=0.1)
    assert axes[1] + axes[3] - part[1] - part[3] == pytest.approx(up.min() * 34 / up.max() - 1.5, abs=0.1)
    assert len(driver.find_elements("css selector", "#fig-front .break")) == 2
    assert "Both axes are zoomed in" in page.text("#front-words")


# ------------------------------------------------------------------------------------------------------------ scores
def test_the_lowest_score_is_marked_and_said(driver, sites):  # noqa: F811
    page = Page(driver, sites.file)
    for index in (0, 7, 14):
        page.slide(index)
        t = int(np.nanargmin(sites.scores[index]))
        marked = [task for task, cells in page.cells().items() if "lowest: " in cells[4]]
        assert marked == [t]
        score = sites.measure.with_interval(*(float(v[index, t]) for v in (sites.scores, sites.low, sites.high)))
        assert f"The lowest held-out accuracy is that of {sites.path.task_names[t][:20]}" in page.text("#sentences")
        assert score in page.text("#sentences")
        assert score in page.text("#fig-accuracy .legend .key:first-child").replace("\u00a0", " ")
    assert lowest_score(["a", "b"], np.array([np.nan, 0.5]), np.zeros(2), np.ones(2), ACCURACY) == ""


def test_no_score_is_certain_or_beyond_its_range():
    assert ACCURACY.with_error(0.99996, 0.019) == "100.0 %"
    assert ACCURACY.with_error(0.9, 0.019) == "90.0 % ± 1.9"
    assert R2.with_error(1.0, 0.1) == "1.000 ± 0.100"
    assert re.fullmatch(r"100\.0 % \(9\d\.\d to 100\.0\)", with_error(ACCURACY, 0.99999, 1e-5, 200))
    cv = CrossValidation([1.0, 2.0], [1.0, 1.0], [0.0, 0.0], 1.0, 10.0, 5, n_rows=100)
    assert "100.0 %." in choice(cv)
    assert "standard error 0.0" not in choice(cv)


# ----------------------------------------------------------------------------------------------------------- verdict
def test_the_verdict_is_on_top_with_its_answer_in_bold(driver, two):
    page = Page(driver, two.file)
    bold = driver.execute_script("return [...document.querySelectorAll('header .verdict b')].map(n => n.textContent)")
    assert bold[0] == "Chosen"
    assert bold[1].startswith("p = ")
    assert re.match("(Better|Worse|Not shown to be better) than one SVM", bold[2])
    assert "95 % interval of the difference" in page.text("header .verdict")


def test_a_page_says_that_it_shows_another_model(two, tmp_path):
    scores = {"kernel": (0.82, 0.01), "everything": (0.85, 0.01)}
    said = "The charts of p below show the best model with a shared kernel, which is not the chosen one"
    for best in scores:
        page = build_page(two.path, sharing=Sharing(scores, best, 5, 120))
        assert (said in page) == (best == "everything")


def test_our_held_out_score_has_an_interval_however_tasks_share(sites):  # noqa: F811
    from paretomkl.report._trade_off import _with_interval

    score = sites.by_task.mean.score
    ours = Contender("paretomkl", np.ones(3), held_out=score)
    found = _with_interval(Comparison(ours, []), sites.by_task)
    assert found.ours.held_out_interval == (sites.by_task.mean.low, sites.by_task.mean.high)
    other = Comparison(Contender("paretomkl", np.ones(3), held_out=score - 0.1), [])
    assert math.isnan(_with_interval(other, sites.by_task).ours.held_out_interval[0])
