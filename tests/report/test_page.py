"""The page: its file, and what a browser shows, compared with the arrays of the path."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl import PAPER_PS, ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl._show.code import exponent_code, refit_code
from paretomkl._show.page import MOST_COLORS
from paretomkl._show.words import ExponentAxis, plain_kernel, pool_shares, source_shares
from paretomkl.kernels import Gaussian, KernelBank, Linear, sources
from paretomkl.kernels._kernels import as_bank
from paretomkl.report import Sharing, build_page, dense_ps, trade_off_page, write_page

from .conftest import UGLY, two_machines

MEGABYTE = 1e6


# ---------------------------------------------------------------------------------------------- without a browser
def embedded(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


@pytest.mark.parametrize("n", [15, 16, 50, 121, 300, 1000])
def test_dense_exponents(n):
    ps = dense_ps(n)
    assert len(ps) == len(set(ps)) == n
    assert list(ps) == sorted(ps)
    assert set(PAPER_PS) <= set(ps)
    steps = np.diff(np.log(ps[:-1]))
    assert steps.max() < 4 * np.median(steps)


@pytest.mark.parametrize("n", [14, 1001])
def test_dense_exponents_refuse_bad_counts(n):
    with pytest.raises(ValueError, match=f"got n={n}"):
        dense_ps(n)


def test_numbers_on_the_page_match_the_path(many):
    data = embedded(many.html)
    path = many.path
    for name, values in [
        ("objectives", path.objectives.T),
        ("weights", path.task_weights.T),
        ("shares", pool_shares(path.kernel_shares, path.kernel_names, MOST_COLORS - 1)[0].T),
        ("mean", path.objective),
        ("gap", path.gap),
        ("scores", many.scores.T),
        ("overall", many.scores_overall),
    ]:
        assert_allclose(np.array(data[name], dtype=float), values, rtol=1e-5, atol=1e-12, err_msg=name)
    assert data["p"][-1] == "∞"
    assert data["p"][data["reference"]] == "1"
    assert data["tasks"] == path.task_names


def test_missing_accuracies_are_null(two):
    scores = two.scores.copy()
    scores[:, 0] = np.nan
    data = embedded(build_page(two.path, scores=scores))
    assert set(data["scores"][0]) == {None}
    assert data["overall"][0] == pytest.approx(scores[0, 1], rel=1e-5)


def test_points_are_shown_once_each_in_increasing_p():
    X, y, tasks = two_machines(20)
    path = pareto_path(X, y, tasks=tasks, ps=[5.0, 0.5, 1.0, 0.5], verbose=0)
    data = embedded(build_page(path))
    assert data["p"] == ["0.5", "1", "5"]
    assert_allclose(data["mean"], path.objective[[1, 2, 0]], rtol=1e-5)


def test_pages_are_small(many, two):
    assert len(many.html.encode()) < 6 * MEGABYTE
    assert len(two.html.encode()) < 1 * MEGABYTE


def test_names_cannot_break_out(two):
    assert UGLY not in two.html
    assert embedded(two.html)["tasks"] == two.path.task_names
    assert "<title>Two &lt;machines&gt; &amp; more</title>" in two.html


class Links(HTMLParser):
    """All attributes that could make a browser load something."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]


def test_page_refers_to_nothing(many):
    links = Links()
    links.feed(many.html)
    assert links.found == ["data:,"]
    assert "url(" not in many.html
    assert "@import" not in many.html


def test_page_without_scripts_has_a_table(two):
    (fallback,) = re.findall(r"<noscript>(.*?)</noscript>", two.html, re.DOTALL)
    assert fallback.count("<tr>") == 1 + len(PAPER_PS)
    row = list(two.path.ps).index(0.2)
    assert f"<td>{two.path.objective[row]:#.5g}</td>" in fallback


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scores": np.ones((3, 2))}, r"scores must have shape \(121, 2\).*, got shape \(3, 2\)"),
        ({"scores": np.ones((121, 2)), "scores_overall": [1.0]}, r"scores_overall must have shape \(121,\)"),
        ({"scores": np.ones((121, 2)), "n_held_out": [1]}, r"n_held_out must have shape \(2,\)"),
    ],
)
def test_wrong_shapes_keep_the_old_file(two, tmp_path, options, message):
    file = tmp_path / "page.html"
    file.write_text("old")
    with pytest.raises(ValueError, match=message):
        write_page(file, two.path, **options)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_no_half_written_file_remains(two, tmp_path):
    target = tmp_path / "page.html"
    target.mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(OSError, match="directory"):
        write_page(target, two.path)
    assert os.listdir(tmp_path) == ["page.html"]
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        write_page(tmp_path / "nowhere" / "page.html", two.path)


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_pages_get_the_usual_file_permissions(two, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("x")
    page = write_page(tmp_path / "page.html", two.path)
    assert stat.S_IMODE(page.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_axis_is_logarithmic_with_infinity_beyond():
    axis = ExponentAxis(np.array([-np.inf, -2.0, 0.0, 0.1, 1.0, 10.0, np.inf]))
    places = axis.places(axis.ps)
    assert_allclose([places[0], places[-1]], [0, 1], atol=1e-12)
    assert (np.diff(places) > 0).all()
    assert places[5] - places[4] == pytest.approx(places[4] - places[3])
    assert len(axis.breaks()) == 2
    assert axis.nearest(1.2) == 4
    assert axis.nearest(np.inf) == 6


def test_many_kernels_are_pooled():
    theta = np.random.default_rng(0).random((5, 100))
    pooled, names = pool_shares(theta, [f"k{m}" for m in range(100)], MOST_COLORS - 1)
    assert pooled.shape == (5, 7)
    assert names[-1] == "94 others"
    assert_allclose(pooled.sum(axis=1), theta.sum(axis=1))


def test_refit_code_is_python():
    assert exponent_code(np.inf) == 'float("inf")'
    code = refit_code(s=np.inf, C=2, kernels=["linear", ("rbf", {"sigma": 2.0})], task_column="site", tasks=True)
    assert code.endswith(
        """ParetoMKLClassifier(p={p}, s=float("inf"), C=2.0, kernels=['linear', ('rbf', {'sigma': 2.0})], """
        """task_column='site').fit(X, y, tasks=tasks)"""
    )
    assert "kernels=kernels" in refit_code(kernels=[np.minimum])
    assert "kernels=kernels" in refit_code(kernels=KernelBank([np.minimum]))
    assert refit_code(C=np.ones(3)).endswith("C=1.0).fit(X, y, sample_weight=C)")


@pytest.mark.parametrize(
    ("kernels", "written"),
    [
        ("default", None),
        ("paper", "kernels='paper'"),
        (KernelBank("default", normalize="capacity", capacity=0.5), None),
        (KernelBank("default", normalize="capacity", capacity=1.0), "kernels=KernelBank('default', capacity=1.0)"),
        (KernelBank(["linear"], normalize="capacity"), "kernels=KernelBank(['linear'], normalize='capacity')"),
        ([Gaussian(2.0, columns=["a"]), Linear()], "kernels=[Gaussian(columns=('a',), sigma=2.0), Linear()]"),
        (sources({"A": "a*", "B": slice(1, 3)}), "kernels=sources({'A': 'a*', 'B': slice(1, 3, None)})"),
        (
            replace(sources({"A": np.arange(2)}), normalize="capacity", capacity=1.0),
            "kernels=sources({'A': (0, 1)}).set_params(capacity=1.0)",
        ),
    ],
)
def test_refit_code_writes_banks(kernels, written):
    """The code makes the same bank."""
    code = refit_code(kernels=kernels)
    if written is None:
        assert "kernels" not in code
        return
    assert f", {written})" in code
    names: dict[str, Any] = {}
    exec(code.rpartition("\n")[0] + f"\n{written}", names)
    X = np.random.default_rng(0).random((20, 3))
    one, other = (as_bank(bank).fit(X, ["a", "b", "c"]) for bank in (kernels, names["kernels"]))
    assert one.kernels == other.kernels
    assert_allclose(one.factor, other.factor)


def test_long_sources_are_assigned_before_they_are_used():
    bank = replace(sources({"genes": [f"gene {k}" for k in range(1000)]}), capacity=1.0)
    *lines, last = refit_code(kernels=bank).splitlines()
    assert "kernels=kernels)" in last
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    assert names["kernels"] == bank


# ------------------------------------------------------------------------------------------------ in a browser
def number(text: str) -> float:
    """The first number in a text as the page writes it."""
    found = re.search(r"[-+−]?\d+(\.\d+)?(e[-−]?\d+)?", text)
    assert found, text
    return float(found[0].replace("−", "-"))


class Page:
    """A page in the browser."""

    def __init__(self, driver, file: Path, address: str = "", scheme: str = "light", width: int = 1280):
        self.driver = driver
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        driver.get("about:blank")
        self.drain()
        driver.get(file.as_uri() + address)
        assert driver.execute_script("return document.documentElement.dataset.ready") == "yes"

    def drain(self) -> tuple[list, list]:
        """The console messages and network requests since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        requests = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return self.driver.get_log("browser"), requests

    def find(self, css: str):
        return self.driver.find_element("css selector", css)

    def text(self, css: str) -> str:
        """The text in the document, even if scrolled out of view."""
        return self.find(css).get_attribute("textContent").replace("\u00a0", " ")

    def slide(self, index: int) -> None:
        self.driver.execute_script(
            "const s = document.getElementById('p'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))", index
        )

    def cells(self) -> dict[int, list[str]]:
        """The visible rows of the table, in order, by task."""
        rows = self.driver.execute_script(
            "return [...document.querySelectorAll('#tasks tbody tr')]"
            ".map(row => [+row.dataset.task, [...row.cells].map(cell => cell.textContent)])"
        )
        return {task: [text.replace("\u00a0", " ") for text in texts] for task, texts in rows}

    def shares(self) -> list[str]:
        return self.driver.execute_script(
            "return [...document.querySelectorAll('#kernels b')].map(node => node.textContent)"
        )

    def press(self, css: str, *keys: str) -> None:
        node = self.find(css)
        self.driver.execute_script("arguments[0].focus()", node)
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def click(self, css: str) -> None:
        """Click at its place on the screen, as a user does."""
        node = self.find(css)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
        node.click()


def assert_shares(texts: list[str], shares: np.ndarray) -> None:
    """Percentages with one digit, or "less than"."""
    for text, share in zip(texts, shares, strict=True):
        assert text.endswith("\u00a0%")
        if text.startswith("<"):
            assert 0 < share < 5.1e-4
        else:
            assert_allclose(number(text), 100 * share, atol=0.0501)


def assert_shows(page: Page, result, index: int) -> None:
    """Everything on the page belongs to this point of the path."""
    path, accuracy = result.path, result.scores
    one = list(path.ps).index(1.0)
    cells = page.cells()
    assert sorted(cells) == list(range(len(path.task_names)))
    for t, (name, objective, change, weight, right, rows, gain) in cells.items():
        assert name == path.task_names[t]
        assert_allclose(number(objective), path.objectives[index, t], rtol=1e-4)
        assert_allclose(number(change), 100 * (path.objectives[index, t] / path.objectives[one, t] - 1), atol=0.0501)
        assert_allclose(number(weight), 100 * path.task_weights[index, t], atol=0.0501)
        assert_allclose(number(right), 100 * accuracy[index, t], atol=0.0501)
        assert right.startswith("lowest: ") == (t == np.nanargmin(accuracy[index]))
        assert right.replace("\u00a0", " ").endswith(
            f"({result.measure.interval(result.low[index, t], result.high[index, t])})"
        )
        assert int(rows) == result.n_held_out[t]
        assert_allclose(number(gain), 100 * (accuracy[index, t] - accuracy[one, t]), atol=0.0501)
    assert_shares(page.shares(), pool_shares(path.kernel_shares, path.kernel_names, MOST_COLORS - 1)[0][index])
    gap = page.text("#fig-gap .legend .key:first-child").split(": ")[1]
    assert_allclose(number(gap), path.gap[index], rtol=0.06)
    said, overall = page.text("#fig-overall .legend .key:first-child").split(": ")
    assert said == f"held out ({len(result.test)} rows)"
    of_all = result.scores_overall[index], result.low_overall[index], result.high_overall[index]
    assert overall.replace("\u00a0", " ") == result.measure.with_interval(*of_all)


@pytest.mark.parametrize("problem", ["many", "two"])
def test_everything_follows_the_slider(driver, request, problem):
    result = request.getfixturevalue(problem)
    page = Page(driver, result.file)
    for index in (0, 37, list(result.path.ps).index(1.0), 100, len(result.path) - 1):
        page.slide(index)
        label = embedded(result.html)["p"][index]
        assert page.text("#p-now") == f"p = {label}"
        assert page.text("#words-title") == f"What p = {label} means"
        assert page.find("#p").get_attribute("aria-valuetext").startswith(f"p = {label}, ")
        assert_shows(page, result, index)
    assert page.drain()[0] == []


def test_words_and_lines_of_a_point(driver, many):
    page = Page(driver, many.file)
    data = embedded(many.html)
    for index in (10, 110):
        page.slide(index)
        told = data["words"][index]
        assert page.text("#headline") == told["head"]
        assert page.text("#sentences") == "".join(told["said"])
        assert page.text("#certificate-words") == told["certificate"]
    assert page.text("#cv-words").startswith(
        f"Cross-validation (3 folds of {len(many.train)} rows of the training set) would pick p = "
    )


def test_simpler_models_are_compared_with_ours(driver, two):
    page, found = Page(driver, two.file), two.comparison
    script = (
        "return [...document.querySelectorAll('#baselines tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    rows = [[text.replace("\u00a0", " ") for text in row] for row in driver.execute_script(script)]
    held_out = [found.held_out_text(one) for one in found.contenders]
    assert rows == [[one.name, found.text(one), last] for one, last in zip(found.contenders, held_out, strict=True)]
    assert [one.name for one in found.baselines] == [
        "one SVM on all tasks together",
        "one SVM per task",
        "the majority class",
    ]
    assert all(" to " in text for text in held_out)
    note = page.text("#baselines .note")
    assert note.startswith("Mean accuracy over the 2 tasks of models you could use instead, on the same 5 folds")
    assert f"({len(two.train)} rows)" in note
    assert f"held-out rows ({len(two.test)})" in note
    assert found.ours.held_out == two.scores_overall[list(two.path.ps).index(two.cv.best_p)]
    assert page.text("#verdict") == found.verdict


@pytest.mark.parametrize("width", [1280, 390])
def test_ways_to_share_have_a_panel(driver, two, tmp_path, width):
    """Bars as long as their scores, within the panel, with their errors and the sentence."""
    scores = {"nothing": (0.8, 0.02), "kernel": (0.82, 0.01), "function": (0.9, 0.015), "everything": (0.85, np.nan)}
    sharing = Sharing(scores, "function", 5, 120, common=0.67)
    page = Page(driver, write_page(tmp_path / "page.html", two.path, sharing=sharing), width=width)
    rows = driver.find_elements("css selector", "#sharing tbody tr")
    texts = [row.text.replace("\u00a0", " ").split("\n") for row in rows]
    assert [text[0] for text in texts] == list(scores)
    assert [sharing.text(way) in " ".join(text) for way, text in zip(scores, texts, strict=True)] == [True] * 4
    assert [row.get_attribute("class") for row in rows] == ["", "", "best", ""]
    assert page.text("#sharing-words") == sharing.in_words
    assert "The tasks share part of their function: 67% of it is common" in sharing.in_words
    measure = "return [...document.querySelectorAll('.way')].map(w => getComputedStyle(w, '::before').width)"
    bars = np.array([float(width.removesuffix("px")) for width in driver.execute_script(measure)])
    means = np.array([mean for mean, _ in scores.values()])
    assert_allclose((bars - bars[0]) / (bars[2] - bars[0]), (means - 0.8) / 0.1, atol=0.02)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_pages_without_ways_have_no_panel(two):
    assert 'id="sharing"' not in two.html


def test_page_follows_the_measure(driver, tmp_path):
    """Another score, shown as a number, and a task whose held-out samples have one class."""
    X, y, tasks = two_machines()
    search = ParetoMKLClassifierCV(Cs=1.0, cv=3, scoring="roc_auc", share="kernel")
    result = trade_off_page(search, X, y, tasks=tasks, n_points=15)
    scores = result.scores.copy()
    scores[:, 0] = np.nan
    shown = {"scores": scores, "measure": result.measure, "cv": result.cv, "comparison": result.comparison}
    page = Page(driver, write_page(tmp_path / "page.html", result.path, **shown))
    text = page.text("main")
    for words in ("Held-out ROC AUC of the tasks", "mean ROC AUC over the 2 tasks", "held-out ROC AUC"):
        assert words in text
    assert re.search(r"Held-out mean ROC AUC over the 2 tasks is [01]\.\d{3}\.", text)
    assert "accuracy" not in text.replace(page.text("#no-accuracy"), "")
    row = list(result.path.ps).index(result.cv.best_p)
    assert [cells[4] for _, cells in sorted(page.cells().items())] == ["not defined", f"{scores[row, 1]:.3f}"]
    errors, _ = page.drain()
    assert errors == []


def test_page_starts_at_the_choice_of_cross_validation(driver, two):
    page = Page(driver, two.file)
    assert page.text("#p-now") == f"p = {two.cv.best_p:g}"
    assert f"with C = {two.C:g}" in page.text("#cv-words")
    assert page.find("#jumps .pick").get_attribute("aria-pressed") == "true"


def test_the_address_contains_the_exponent(driver, two):
    page = Page(driver, two.file, "#p=inf")
    assert page.text("#p-now") == "p = ∞"
    page.slide(list(two.path.ps).index(0.2))
    deadline = time.monotonic() + 5
    while not driver.current_url.endswith("#p=0.2") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert driver.current_url.endswith("#p=0.2")


def test_keyboard_moves_p(driver, two):
    from selenium.webdriver.common.keys import Keys

    page = Page(driver, two.file, "#p=1.0")
    one = list(two.path.ps).index(1.0)
    shown = embedded(two.html)["p"]
    for node in ("#p", "#fig-weights svg", "#fig-front svg"):
        for keys, index in [
            ([Keys.ARROW_RIGHT], one + 1),
            ([Keys.ARROW_LEFT, Keys.ARROW_LEFT], one - 1),
            ([Keys.PAGE_UP], one + 9),
            ([Keys.PAGE_DOWN], one - 1),
            ([Keys.END], len(shown) - 1),
            ([Keys.HOME], 0),
        ]:
            page.press(node, *keys)
            assert page.text("#p-now") == f"p = {shown[index]}", (node, keys)
        page.slide(one)
    page.press("#next", Keys.ENTER)
    assert page.text("#p-now") == f"p = {shown[one + 1]}"
    page.press("#jumps button:first-child", Keys.SPACE)
    assert page.text("#p-now") == f"p = {shown[0]}"
    assert page.find("#previous").get_attribute("disabled") is not None


def test_everything_can_be_reached_by_tab(driver, two):
    from selenium.webdriver.common.keys import Keys

    page = Page(driver, two.file, "#p=1.0")
    driver.execute_script("document.body.focus()")
    seen = []
    for _ in range(60):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(
            driver.execute_script(
                "const a = document.activeElement; return a.id || a.closest('[id]')?.id + ' ' + a.tagName.toLowerCase()"
            )
        )
    wanted = {"theme", "p", "previous", "next", "copy", "front-x", "front-y", "fig-objectives svg", "fig-kernels svg"}
    assert wanted <= set(seen)
    assert page.drain()[0] == []


def test_keys_step_through_the_tasks_of_a_chart(driver, many):
    from selenium.webdriver.common.keys import Keys

    page = Page(driver, many.file, "#p=10.0")
    index = list(many.path.ps).index(10.0)
    page.press("#fig-weights svg", Keys.ARROW_DOWN)
    heaviest = int(many.path.task_weights[index].argmax())
    assert page.text("#tip b") == many.path.task_names[heaviest]
    assert_allclose(number(page.text("#tip div")), 100 * many.path.task_weights[index, heaviest], atol=0.0501)
    hot = driver.execute_script(
        "return [...document.querySelectorAll('#fig-objectives .line')].findIndex(l => l.classList.contains('hot'))"
    )
    assert hot == heaviest  # in the other charts too
    page.press("#fig-weights svg", Keys.ARROW_DOWN, Keys.ENTER, Keys.ESCAPE)
    marked = [
        text
        for text in page.cells()
        if page.find(f"tr[data-task='{text}'] .name").get_attribute("aria-pressed") == "true"
    ]
    assert marked == [int(np.argsort(-many.path.task_weights[index])[1])]  # the next one down


def test_marked_tasks_stand_out_everywhere(driver, many):
    page = Page(driver, many.file)
    page.click("#tasks tr[data-task='7'] .name")
    for figure in ("objectives", "weights", "accuracy"):
        hot = driver.execute_script(
            f"return [...document.querySelectorAll('#fig-{figure} .line')].map(l => l.classList.contains('hot'))"
        )
        assert np.flatnonzero(hot).tolist() == [7]
        shown = page.find(f"#fig-{figure} .legend button:not([hidden])").text
        assert shown.startswith(many.path.task_names[7])
    page.click("#clear")
    assert not driver.execute_script("return document.querySelectorAll('.hot').length")


def test_find_and_sort(driver, many):
    page = Page(driver, many.file)
    page.find("#find").send_keys("8")
    names = [cells[0] for cells in page.cells().values()]
    assert sorted(names) == sorted(name for name in many.path.task_names if "8" in name)
    assert "Names with “8”: 9 of 45 pairs" in page.text("#tasks-note")
    page.find("#find").clear()
    page.find("#find").send_keys(" ")
    index = list(many.path.ps).index(many.cv.best_p)
    assert list(page.cells()) == np.argsort(-many.path.objectives[index], kind="stable").tolist()
    page.click("#tasks th:nth-child(4) button")
    weights = [many.path.task_weights[index, t] for t in page.cells()]
    assert_allclose(weights, np.sort(weights)[::-1], rtol=1e-5)
    page.click("#tasks th:nth-child(4) button")
    assert page.find("#tasks th:nth-child(4)").get_attribute("aria-sort") == "ascending"
    page.click("#tasks th:first-child button")
    assert [cells[0] for cells in page.cells().values()] == many.path.task_names


def test_front_of_two_chosen_tasks(driver, many):
    from selenium.webdriver.support.select import Select

    page = Page(driver, many.file, "#p=5.0")
    index = list(many.path.ps).index(5.0)
    for across, up in [(3, 30), (12, 30)]:
        Select(page.find("#front-x")).select_by_value(str(across))
        Select(page.find("#front-y")).select_by_value(str(up))
        point = page.find("#fig-front svg").get_attribute("aria-label")
        a, b = re.fullmatch(r"p = 5: objective of .* ([\d.]+), of .* ([\d.]+)\. Arrow keys move p\.", point).groups()
        assert_allclose([float(a), float(b)], many.path.objectives[index, [across, up]], rtol=1e-4)
        # the ring is on the point: its rank among all points matches its objectives
        x, y, left, right, top, bottom = driver.execute_script(
            "const now = document.querySelector('.front-now'), dots = [...document.querySelectorAll('.front-dot')];"
            "const xs = dots.map(d => +d.getAttribute('cx')), ys = dots.map(d => +d.getAttribute('cy'));"
            "return [+now.getAttribute('cx'), +now.getAttribute('cy'), Math.min(...xs), Math.max(...xs),"
            "        Math.min(...ys), Math.max(...ys)]"
        )
        horizontal, vertical = many.path.objectives[:, across], many.path.objectives[:, up]
        share = (horizontal[index] - horizontal.min()) / np.ptp(horizontal)
        assert (x - left) / (right - left) == pytest.approx(share, abs=1e-3)
        share = (vertical[index] - vertical.min()) / np.ptp(vertical)
        assert (bottom - y) / (bottom - top) == pytest.approx(share, abs=1e-3)
    page.click("#front-swap")
    assert page.find("#front-x").get_attribute("value") == "30"
    assert "projection of the front of 45 pairs" in page.text("#front-words")


def test_clicking_in_a_chart_moves_p(driver, two):
    from selenium.webdriver.common.action_chains import ActionChains

    page = Page(driver, two.file, "#p=0.01")
    svg = page.find("#fig-objectives svg")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    where = driver.execute_script(
        "const line = document.querySelector('#fig-objectives .one').getBoundingClientRect(),"
        "      box = document.querySelector('#fig-objectives svg').getBoundingClientRect();"
        "return line.left - (box.left + box.width / 2)"
    )
    ActionChains(driver).move_to_element_with_offset(svg, round(where), 0).click().perform()
    assert page.text("#p-now") == "p = 1"


@pytest.mark.parametrize("figure", ["objectives", "accuracy"])
def test_values_and_changes(driver, two, figure):
    page = Page(driver, two.file, "#p=50.0")
    index, one = list(two.path.ps).index(50.0), list(two.path.ps).index(1.0)
    values = {"objectives": two.path.objectives, "accuracy": two.scores}[figure]

    def legend() -> list[float]:
        return driver.execute_script(
            f"return [...document.querySelectorAll('#fig-{figure} .legend b')].map(node => node.textContent)"
        )

    changed = values[index] / values[one] - 1 if figure == "objectives" else values[index] - values[one]
    assert_allclose([number(text) for text in legend()], 100 * changed, atol=0.0501)
    page.click(f"#fig-{figure} .modes button:nth-child(2)")
    scale = 1 if figure == "objectives" else 100
    assert_allclose([number(text) for text in legend()], scale * values[index], rtol=1e-3)


def test_sources_and_kernels(driver, sourced):
    """By source first, by kernel on request; both follow p, and a mark in one is not a mark in the other."""
    page, path = Page(driver, sourced.file), sourced.path
    names = "return [...document.querySelectorAll('#kernels span:nth-child(2)')].map(node => node.textContent)"
    by_source = np.column_stack(list(path.source_shares.values()))
    for index in (0, len(path) - 1):
        page.slide(index)
        assert_shares(page.shares(), by_source[index])
        said = {name: float(share[index]) for name, share in path.source_shares.items()}
        assert source_shares(said) in page.text("#sentences")
    assert driver.execute_script(names) == list(path.source_shares) == ["A & B", "</script>"]
    page.click("#kernels li:first-child button")
    assert len(driver.find_elements("css selector", "#fig-kernels .area.hot")) == 1
    page.click("#fig-kernels .modes button:nth-child(2)")
    shares, kernels = pool_shares(path.kernel_shares, path.kernel_names, MOST_COLORS - 1)
    assert driver.execute_script(names) == [plain_kernel(name) for name in kernels]
    assert_shares(page.shares(), shares[-1])
    assert len(driver.find_elements("css selector", "#fig-kernels .area")) == 7
    assert driver.find_elements("css selector", "#fig-kernels .area.hot") == []
    assert "of each kernel" in page.find("#fig-kernels svg").get_attribute("aria-label")
    page.slide(3)
    assert_shares(page.shares(), shares[3])
    colors = driver.execute_script(
        "return [...document.querySelectorAll('#fig-kernels .area')].map(node => getComputedStyle(node).fill)"
    )
    assert len(set(colors)) == 7
    assert "θ" not in page.text("main")
    assert page.drain()[0] == []


@pytest.mark.parametrize("p", [1.0, np.inf])
def test_code_fits_a_model_of_sources_again(sourced, p):
    X, y, tasks = two_machines(40)
    given: dict[str, Any] = {"X": X[sourced.train], "y": y[sourced.train], "tasks": tasks[sourced.train]}
    exec(sourced.path.refit.replace("{p}", exponent_code(p)), given)
    row = list(sourced.path.ps).index(p)
    assert_allclose(given["clf"].objective_, sourced.path.objective[row], rtol=2e-5)
    assert list(given["clf"].source_shares_) == list(sourced.path.source_shares)


def test_names_are_shown_literally(driver, two):
    page = Page(driver, two.file, "#p=50.0")  # its sentences name the tasks
    assert UGLY in [cells[0] for cells in page.cells().values()]
    assert page.text("h1") == "Two <machines> & more"
    assert UGLY in page.text("#sentences")
    assert driver.execute_script("return document.querySelectorAll('#page li b, td b').length") == len(page.shares())
    assert UGLY in [option.text for option in page.find("#front-x").find_elements("tag name", "option")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_themes(driver, two, scheme):
    page = Page(driver, two.file, scheme=scheme)
    driver.execute_script("try { localStorage.clear() } catch {}")
    page = Page(driver, two.file, scheme=scheme)

    def brightness() -> float:
        color = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        return np.mean([int(part) for part in re.findall(r"\d+", color)[:3]])

    assert (brightness() > 128) == (scheme == "light")
    page.click("#theme")
    assert page.find("#theme").get_attribute("aria-label") == "Theme: light"
    assert brightness() > 128
    page.click("#theme")
    assert brightness() < 128
    line = driver.execute_script("return getComputedStyle(document.querySelector('.line')).stroke")
    page.click("#theme")
    assert (brightness() > 128) == (scheme == "light")
    same = driver.execute_script("return getComputedStyle(document.querySelector('.line')).stroke") == line
    assert same == (scheme == "dark")  # lines have a colour for each background


@pytest.mark.parametrize("problem", ["many", "two", "sourced"])
@pytest.mark.parametrize("width", [390, 1280])
def test_fits_the_screen(driver, request, problem, width):
    result = request.getfixturevalue(problem)
    Page(driver, result.file, width=width)
    inner, content = driver.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
    assert content <= inner == width
    spilled = driver.execute_script(
        "return [...document.querySelectorAll('.card, h1, h2, svg, button:not([hidden]), select')]"
        ".filter(node => !node.closest('.scroll') && node.getBoundingClientRect().right > innerWidth + 1)"
        ".map(node => node.outerHTML.slice(0, 80))"
    )
    assert spilled == []
    clipped = driver.execute_script(
        "return [...document.querySelectorAll('#tasks th, #tasks td, .card')]"
        ".filter(node => node.scrollWidth > node.clientWidth + 1).map(node => node.outerHTML.slice(0, 80))"
    )
    assert clipped == []


@pytest.mark.parametrize("problem", ["many", "two"])
def test_pages_open_quickly_and_load_nothing_else(driver, request, problem):
    result = request.getfixturevalue(problem)
    seconds = []
    for _ in range(3):  # take the fastest: other tests may run at the same time
        page = Page(driver, result.file)
        seconds.append(
            driver.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000
        )
    assert 0 < min(seconds) < 2
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    page.slide(3)
    console, requests = page.drain()
    assert console == []
    assert {urlsplit(url).scheme for url in requests} <= {"file", "data"}
    assert [urlsplit(url).path for url in requests if url.startswith("file")] == [str(result.file)]


OVER_P = "#fig-objectives, #fig-weights, #fig-accuracy, #fig-overall, #fig-front, #fig-gap"


def test_one_task(driver, one):
    """There is no slider and no chart over p, but the reason and everything else."""
    path, file = one
    page = Page(driver, file)
    assert driver.find_elements("css selector", f"#p, #control, #jumps, {OVER_P}") == []
    assert page.find("#no-slider").is_displayed()
    assert page.text("#no-slider").startswith("There is one task, so there is no trade-off and this page has no slider")
    assert "trade_off_page(ParetoMKLClassifierCV(), X, y" in page.find("#no-accuracy").text
    ((cells),) = page.cells().values()
    assert_allclose(number(cells[1]), path.objectives[1, 0], rtol=1e-4)
    assert_shares(page.shares(), pool_shares(path.kernel_shares, path.kernel_names, MOST_COLORS - 1)[0][1])
    assert "p = " not in page.find("main").text
    assert page.drain()[0] == []


def test_one_task_with_held_out_rows(driver, tmp_path):
    X, y, tasks = two_machines()
    pump = tasks == "pump"
    file = tmp_path / "page.html"
    found = trade_off_page(ParetoMKLClassifierCV(Cs=1.0, cv=3), X[pump], y[pump], n_points=15, file=file)
    page = Page(driver, file)
    text = page.find("main").text.replace("\u00a0", " ")
    ends = found.measure.interval(found.low_overall[0], found.high_overall[0])
    score = f"{found.measure.text(found.scores_overall[0])} ({len(found.test)} rows, 95 % interval {ends})"
    assert f"Held-out accuracy is {score}." in text
    assert "would pick C = 1" in text
    assert "p = " not in text
    assert len(driver.find_elements("css selector", "#baselines tbody tr")) == 3
    assert page.find("#confusion").is_displayed()
    assert page.drain()[0] == []


def test_one_point(driver, tmp_path):
    X, y, tasks = two_machines(20)
    path = pareto_path(X, y, tasks=tasks, ps=[2.0], verbose=0)
    page = Page(driver, path.to_html(tmp_path / "page.html"))
    assert page.text("#no-slider") == "This path has one exponent, p = 2, so this page has no slider."
    assert driver.find_elements("css selector", f"#p, {OVER_P}") == []
    assert page.text("#words-title") == "What p = 2 means"
    assert page.drain()[0] == []


@pytest.mark.parametrize("p", [0.2, np.inf])
def test_code_fits_the_model_again(driver, two, p):
    page = Page(driver, two.file, f"#p={p}")
    index = list(two.path.ps).index(p)
    X, y, tasks = two_machines()
    code = page.text("#code")
    assert code.startswith("from paretomkl import ParetoMKLClassifier\n")
    names = {"X": X[two.train], "y": y[two.train], "tasks": tasks[two.train]}
    exec(code, names)
    clf = names["clf"]
    assert isinstance(clf, ParetoMKLClassifier)
    assert_allclose(clf.theta_, two.path.theta[index], atol=0.01)
    assert_allclose(clf.objective_, two.path.objective[index], rtol=2e-5)  # both are certified to 1e-5


def test_note_and_address_follow_p(driver, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    X, y, tasks = two_machines(20)
    path = pareto_path(X, y, tasks=tasks, ps=[0.5, 1.0, np.inf], verbose=0)
    path.gap[:] = 0.0  # a gap of zero cannot be drawn on a logarithmic axis
    file = write_page(tmp_path / "page.html", path, refit_note="Say `fit 'a ``b``' --p {p}` there.")
    page = Page(driver, file, "#p=%E0%A4%A")
    assert page.text("#p-now") == "p = 1", "an address that makes no sense is passed over"
    assert page.text("#code-note") == "Say fit 'a `b`' --p 1.0 there."
    assert page.text("#code-note code") == "fit 'a `b`' --p 1.0"
    driver.execute_script("location.hash = '#p=inf'")
    WebDriverWait(driver, 5).until(lambda _: page.text("#p-now") == "p = ∞")
    assert page.text("#code-note code").endswith("--p inf")
    assert page.drain()[0] == []


def test_the_page_can_be_printed(driver, many):
    import base64

    page = Page(driver, many.file, scheme="dark")
    answer = driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    pdf = base64.b64decode(answer["data"])
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5
    page.slide(5)  # and it still works afterwards
    assert page.text("#p-now") == f"p = {embedded(many.html)['p'][5]}"


# --------------------------------------------------------------------------------------- hard is not large
@pytest.mark.parametrize("task_scale", ["none", "samples"])
def test_large_tasks_are_not_called_hard(task_scale):
    """A large task with a clear border and a small one that is noise; p = 5 favours one or the other."""
    rng = np.random.default_rng(0)
    X = rng.random((100, 2))
    y = np.where(np.arange(100) < 90, X[:, 0] > 0.5, np.arange(100) % 2)
    tasks = np.where(np.arange(100) < 90, "large", "noise")
    path = pareto_path(X, y, tasks=tasks, ps=[0.5, 1.0, 5.0], kernels=["linear"], verbose=0, task_scale=task_scale)
    page = build_page(path)
    data = embedded(page)
    assert_allclose(data["difficulty"], path.difficulty.mean(axis=0), rtol=1e-5)
    assert data["difficulty"][0] < data["difficulty"][1], "the colours go from easy to hard by objective per sample"
    head, said = data["words"][2]["head"], data["words"][2]["said"][0]
    table = "smallest J</th><th>largest J</th>"
    if task_scale == "none":
        assert head == "tasks with large objectives (hard, or many samples) get more weight"
        assert said.startswith("The task with the larger objective, large, carries")
        assert table in page
        assert "objectives per sample</li>" not in page
    else:
        assert head == "hard tasks get more weight"
        assert said.startswith("The harder task, noise, carries")
        assert table.replace("J<", "J / n<") in page
        assert "objectives per sample</li>" in page
