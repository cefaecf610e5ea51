"""A page that everyone can read and use: contrast, keyboard, labels, phones, names, colours, downloads."""

from __future__ import annotations

import csv
import io
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import confusion_matrix

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl._select.intervals import wilson
from paretomkl._show.page import MOST_COLORS
from paretomkl._show.words import plain_kernel, pool_shares, shorten_all
from paretomkl.report import trade_off_page, write_page

from .conftest import UGLY, digits, two_machines
from .test_numbers import pumps  # noqa: F401  (a fixture)
from .test_page import Page, embedded

SITES = [
    f"Clinical site {c}, department of pulmonary medicine, ward {k} (2019 to 2023)" for k, c in enumerate("ABCDEFGHI")
]
FORMULA = '=HYPERLINK("x")'


@pytest.fixture(scope="session")
def sites(tmp_path_factory):
    """Nine tasks with long names that start and end alike, and a class whose name looks like a formula."""
    rng = np.random.default_rng(1)
    X, site = rng.random((360, 4)), np.arange(360) % 9
    y = np.where(
        np.sin(3 * X[:, 0] * (1 + site / 4)) + 0.1 * site * rng.standard_normal(360) > 0.5, FORMULA, "no, none"
    )
    file = tmp_path_factory.mktemp("pages") / "sites.html"
    search = ParetoMKLClassifierCV(Cs=1.0, cv=2)
    return trade_off_page(search, X, y, tasks=np.array(SITES)[site], n_points=15, baselines=False, file=file)


# ------------------------------------------------------------------------------------------------------ contrast
# of every text that is shown: its colour against the nearest ground behind it, both with their opacity
CONTRAST = """
const parse = color => {
  const v = color.match(/[\\d.]+/g).map(Number), unit = color.startsWith("color(srgb") ? 255 : 1;
  return [unit * v[0], unit * v[1], unit * v[2], v[3] ?? 1];
};
const over = (top, under) => [0, 1, 2].map(k => top[3] * top[k] + (1 - top[3]) * under[k]).concat(1);
const ground = node => {
  const chain = [];
  for (let at = node; at; at = at.parentElement) chain.unshift(parse(getComputedStyle(at).backgroundColor));
  return chain.reduce((under, color) => over(color, under), [255, 255, 255, 1]);
};
const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const found = [];
document.querySelectorAll("details").forEach(node => { node.open = true; });
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
  if (!text || !node.checkVisibility({ visibilityProperty: true })) continue;
  if (node.closest("script, style, noscript, #tip, :disabled, .hidden")) continue;
  let opacity = 1;
  for (let at = node; at; at = at.parentElement) opacity *= +getComputedStyle(at).opacity;
  const svg = node.closest("svg"), looks = getComputedStyle(node), behind = ground(svg ? svg.parentElement : node);
  const own = parse(svg ? looks.fill : looks.color);
  const color = over([...own.slice(0, 3), own[3] * opacity], behind), [a, b] = [light(color), light(behind)];
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text.slice(0, 40), looks.color]);
}
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("problem", ["many", "two", "sourced", "sites", "pumps", "one"])
def test_text_has_contrast(driver, request, problem, scheme):
    result = request.getfixturevalue(problem)
    Page(driver, result[1] if problem == "one" else result.file, scheme=scheme)
    found = driver.execute_script(CONTRAST)
    assert len(found) > 60
    assert [one for one in found if one[0] < 4.5] == []


# --------------------------------------------------------------------------------------------- structure and labels
@pytest.mark.parametrize("problem", ["many", "sites", "pumps", "one"])
def test_controls_have_names_and_headings_an_order(driver, request, problem):
    result = request.getfixturevalue(problem)
    Page(driver, result[1] if problem == "one" else result.file)
    assert driver.execute_script("return document.documentElement.lang") == "en"
    assert driver.title
    nameless = driver.execute_script(
        "const named = n => n.getAttribute('aria-label') || n.getAttribute('aria-labelledby') || n.textContent.trim();"
        "const labelled = n => n.labels?.length && n.labels[0].firstChild.textContent.trim();"
        "return [...document.querySelectorAll('button, select, input, summary, svg[tabindex], [tabindex=\"0\"]')]"
        ".filter(n => n.checkVisibility() && !(n.tagName === 'SELECT' ? labelled(n) : named(n) || labelled(n)))"
        ".map(n => n.outerHTML.slice(0, 80))"
    )
    assert nameless == []
    levels = driver.execute_script("return [...document.querySelectorAll('h1, h2, h3')].map(n => +n.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert set(levels[1:]) == {2}
    ids = driver.execute_script("return [...document.querySelectorAll('[id]')].map(n => n.id)")
    assert len(ids) == len(set(ids))
    described = driver.execute_script(
        "return [...document.querySelectorAll('[aria-labelledby], [aria-describedby]')]"
        ".map(n => n.getAttribute('aria-labelledby') || n.getAttribute('aria-describedby'))"
    )
    assert set(described) <= set(ids)


def test_focus_is_visible_on_every_control(driver, sites):
    from selenium.webdriver.common.keys import Keys

    Page(driver, sites.file)
    driver.execute_script("document.body.focus()")
    seen = set()
    for _ in range(70):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        name, outline, width = driver.execute_script(
            "const a = document.activeElement, looks = getComputedStyle(a);"
            "return [a.id || a.getAttribute('aria-label') || a.textContent, looks.outlineStyle, looks.outlineWidth]"
        )
        if driver.execute_script("return document.activeElement === document.body"):  # behind the last control
            break
        seen.add(name)
        assert outline != "none", name
        assert float(width.removesuffix("px")) >= 2, name
    saving = {f"Save “What the model is made of” as {kind}" for kind in ("CSV", "SVG")}
    assert {"p", "confusion-task", "front-x", "find", *saving} <= seen


def test_confusion_and_downloads_work_by_keyboard(driver, sites, tmp_path):
    from selenium.webdriver.common.keys import Keys

    page = Page(driver, sites.file)
    before = page.text("#confusion .note")
    page.press("#confusion-task", Keys.ARROW_DOWN)
    assert page.text("#confusion .note") != before
    allow(driver, tmp_path)
    page.press("#fig-kernels .tools button", Keys.ENTER)
    assert saved(tmp_path, "what-the-model-is-made-of.csv")


# ----------------------------------------------------------------------------------------------------- small screens
@pytest.mark.parametrize("problem", ["many", "two", "sites", "pumps"])
def test_the_table_is_complete_on_a_phone(driver, request, problem):
    """Nothing scrolls sideways or is cut off, every value has its title, and columns can be sorted."""
    result = request.getfixturevalue(problem)
    page = Page(driver, result.file, width=390)
    assert driver.execute_script("return document.documentElement.scrollWidth") == 390
    cut_off = driver.execute_script(
        "return [...document.querySelectorAll('#tasks td, #tasks th, #baselines td, #confusion td, #confusion th')]"
        ".filter(n => { const b = n.getBoundingClientRect();"
        " return b.left < 0 || b.right > innerWidth || n.scrollWidth > n.clientWidth + 1 })"
        ".map(n => n.outerHTML.slice(0, 100))"
    )
    assert cut_off == []
    regions = driver.execute_script(
        "return [...document.querySelectorAll('.scroll, .across')].map(n => [n.scrollWidth - n.clientWidth,"
        " n.classList.contains('scroll') ? n.scrollHeight - n.clientHeight : 0])"
    )
    assert len(regions) == (1 if problem == "pumps" else 2)
    assert all(sideways <= 1 and below <= 1 for sideways, below in regions)
    titles = driver.execute_script(
        "return [...document.querySelectorAll('#tasks tbody tr:first-child td')].slice(1)"
        ".map(n => getComputedStyle(n, '::before').content)"
    )
    assert [title.strip('"')[:8] for title in titles] == ["objectiv", "change f", "weight", "held-out", "held-out"] + [
        "differen" if problem == "pumps" else "points a"
    ]
    assert len(page.cells()) == len(result.path.task_names)
    page.click("#tasks th:first-child button")
    shown = list(page.cells())
    page.click("#tasks th:first-child button")
    assert list(page.cells()) == shown[::-1]


def test_numbers_in_kernel_names_do_not_break(driver, tmp_path):
    X, y, tasks = two_machines(20)
    widths = [0.0078125, 0.123456789, 1234.5678]
    path = pareto_path(X, y, tasks=tasks, ps=[0.5, 1.0], kernels=[("rbf", {"sigma": w}) for w in widths], verbose=0)
    for width in (320, 390, 1280):
        page = Page(driver, path.to_html(tmp_path / "page.html"), width=width)
        # the lines that each number is set on
        lines = driver.execute_script(
            "return [...document.querySelectorAll('#kernels .whole')]"
            ".map(n => [n.textContent, n.getClientRects().length])"
        )
        assert len(lines) == 3
        assert {count for _, count in lines} == {1}
        assert all(f"{w:g}"[:4] in text for w, (text, _) in zip(widths, lines, strict=True))
    assert "kernel weight" not in page.text("main").lower(), "shares, not weights"
    assert "θ" not in page.text("main")


# ------------------------------------------------------------------------------------------------------------ names
def test_names_are_cut_where_they_differ_least():
    assert shorten_all(["a", "b"], 3) == ["a", "b"]
    assert shorten_all([f"{k} of the same long kind" for k in "ab"], 10) == ["a of the…", "b of the…"]
    assert shorten_all([f"the same long kind, {k}" for k in "ab"], 10) == ["…g kind, a", "…g kind, b"]
    between = [f"the same long start {k} and the same long end" for k in "ab"]
    assert shorten_all(between, 12) == ["…art a and…", "…art b and…"]
    assert shorten_all(["one name that is much too long"] * 2, 12) == ["one na…long"] * 2


@pytest.mark.parametrize("length", [16, 24, 40])
def test_shortened_names_are_short_and_distinct(length):
    for names in (SITES, [f"{k} / {name}" for k, name in enumerate(SITES)], [name[::-1] for name in SITES]):
        short = shorten_all(names, length)
        assert len(set(short)) == len(names)
        assert max(map(len, short)) <= length


def test_no_name_is_cut_inside_a_number():
    names = [f"pump {k} at pressure 12.345678 bar" for k in range(3)]
    for length in range(10, 33):
        for name, short in zip(names, shorten_all(names, length), strict=True):
            for part in re.findall(r"[\d.]+", short):
                assert part in re.findall(r"[\d.]+", name), short


def test_long_names_stay_distinct_wherever_they_are_shown(driver, sites):
    for width in (390, 1280):
        page = Page(driver, sites.file, "#p=50.0", width=width)
        shown = [
            node.get_attribute("textContent") for node in page.find("#front-x").find_elements("tag name", "option")
        ]
        assert len(set(shown)) == 9
        axes = driver.execute_script(
            "return [...document.querySelectorAll('#fig-front svg > text')].map(n => n.textContent)"
            ".filter(text => text.startsWith('←'))"
        )
        assert len(set(axes)) == 2
        spilled = driver.execute_script(
            "const box = document.querySelector('#fig-front svg').getBoundingClientRect();"
            "return [...document.querySelectorAll('#fig-front svg > text')].map(n => n.getBoundingClientRect())"
            ".filter(b => b.top < box.top - 2 || b.bottom > box.bottom + 2 || b.left < box.left - 2"
            " || b.right > box.right + 2).length"
        )
        assert spilled == 0


# ---------------------------------------------------------------------------------------------------------- colours
def colors(driver, css: str, property_name: str) -> set[str]:
    return set(
        driver.execute_script(
            f"return [...document.querySelectorAll({css!r})].map(n => getComputedStyle(n).{property_name})"
        )
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("problem", ["many", "two", "sourced", "sites"])
def test_a_colour_means_one_thing(driver, request, problem, scheme):
    """Tasks, kernels, exponents and cross-validation share no colour."""
    Page(driver, request.getfixturevalue(problem).file, scheme=scheme)
    sets = [
        colors(driver, "#fig-objectives .line", "stroke"),
        colors(driver, "#fig-kernels .area", "fill"),
        colors(driver, ".front-dot", "fill") | colors(driver, ".cursor", "stroke"),
        colors(driver, ".cv", "stroke"),
    ]
    assert all(sets)
    for k, some in enumerate(sets):
        for others in sets[k + 1 :]:
            assert not some & others
    if problem == "two":
        assert len(sets[0]) == 2


def test_the_front_has_a_legend_and_labels_that_cover_nothing(driver, many, two, sites):
    for result in (many, two, sites):
        page = Page(driver, result.file, "#p=5.0")
        ends = embedded(result.html)["p"]
        legend = page.text("#fig-front .legend")
        assert f"p = {ends[0]}" in legend
        assert "p = ∞" in legend
        assert "the current p" in legend
        for p in ("0.01", "5.0", "20.0", "inf"):
            driver.execute_script(f"location.hash = '#p={p}'")
            time.sleep(0.05)
            covered, clashing = driver.execute_script(
                "const boxes = [...document.querySelectorAll('#fig-front .named')].filter(n => n.textContent)"
                ".map(n => n.getBoundingClientRect());"
                "const dots = [...document.querySelectorAll('.front-dot')].map(n => n.getBoundingClientRect())"
                ".map(b => [(b.left + b.right) / 2, (b.top + b.bottom) / 2]);"
                "const inside = (x, y, b) => x > b.left && x < b.right && y > b.top && y < b.bottom;"
                "const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;"
                "return [dots.filter(([x, y]) => boxes.some(b => inside(x, y, b))).length,"
                " boxes.flatMap((a, k) => boxes.slice(k + 1).filter(b => meet(a, b))).length]"
            )
            assert (covered, clashing) == (0, 0), (result.file, p)


# -------------------------------------------------------------------------------------- the same kind of error
def test_the_band_matches_the_standard_error_in_the_text(driver, two):
    data = embedded(two.html)["cv"]
    assert_allclose(data["error"], np.array(two.cv.std) / np.sqrt(5), rtol=1e-5)
    row = list(two.cv.ps).index(two.cv.best_p)
    assert data["error"][row] == pytest.approx(two.cv.standard_error, rel=1e-5)
    page = Page(driver, two.file)
    assert "standard error" in page.text("#fig-overall .note")
    assert "deviation" not in page.text("main")


def test_means_over_tasks_are_labelled_as_means(driver, two, many):
    assert Page(driver, two.file).text("#fig-overall h2") == "mean accuracy over the 2 tasks"
    assert Page(driver, many.file).text("#fig-overall h2") == "accuracy over all 10 classes"


def test_held_out_scores_have_intervals_that_respect_their_range(two):
    """Wilson's for each task, and for the mean as far as independent errors carry it."""
    for t, n in enumerate(two.n_held_out):
        assert_allclose(np.transpose([two.low[:, t], two.high[:, t]]), np.transpose(wilson(two.scores[:, t], n)))
    mean, low, high = two.scores_overall, two.low_overall, two.high_overall
    assert_allclose(mean - low, np.sqrt(np.sum((two.scores - two.low) ** 2, axis=1)) / 2)
    assert_allclose(high - mean, np.sqrt(np.sum((two.high - two.scores) ** 2, axis=1)) / 2)
    assert (low < mean).all()
    assert two.high.max() <= 1


def test_standard_errors_of_numbers_match_many_draws():
    from paretomkl._select.scores import make_judge

    rng = np.random.default_rng(0)
    for scoring in ("r2", "neg_mean_absolute_error", "neg_mean_squared_error"):
        judge = make_judge(scoring, regression=True)
        drawn = []
        for _ in range(3000):
            truth = rng.standard_normal(80)
            drawn.append((truth, truth + 0.5 * rng.standard_normal(80)))
        scatter = np.std([judge.score(*one) for one in drawn])
        assert np.mean([judge.standard_error(*one) for one in drawn]) == pytest.approx(scatter, rel=0.1)


# -------------------------------------------------------------------------------------------------------- confusion
def shown_matrix(driver) -> np.ndarray:
    return np.array(
        driver.execute_script(
            "return [...document.querySelectorAll('#confusion tbody tr')]"
            ".map(r => [...r.querySelectorAll('td:not(.sum)')].map(c => +c.textContent))"
        )
    )


def test_confusion_of_classes_follows_p(driver, many):
    """Compared with scikit-learn, at both ends of the slider."""
    X, y = digits(300)
    page = Page(driver, many.file)
    for index in (0, len(many.path) - 1):
        page.slide(index)
        predicted = many.path.models[index].predict(X[many.test])
        assert_array_equal(shown_matrix(driver), confusion_matrix(y[many.test], predicted))
    right = round(many.scores_overall[-1] * len(many.test))
    assert page.text("#confusion .note").startswith(f"Correct predictions: {right} of {len(many.test)} held-out rows.")


def test_confusion_of_tasks(driver, two):
    from selenium.webdriver.support.select import Select

    X, y, tasks = two_machines()
    page = Page(driver, two.file, "#p=1.0")
    model = two.path.models[list(two.path.ps).index(1.0)]
    truth, asked = y[two.test], tasks[two.test]
    predicted = model.predict(X[two.test], asked)
    assert_array_equal(shown_matrix(driver), confusion_matrix(truth, predicted))
    choice = Select(page.find("#confusion-task"))
    assert {option.text for option in choice.options} == {"all tasks together", "pump", UGLY}
    choice.select_by_visible_text("pump")
    mine = asked == "pump"
    assert_array_equal(shown_matrix(driver), confusion_matrix(truth[mine], predicted[mine], labels=["no", "yes"]))


def test_confusion_of_columns_with_gaps():
    X, y, tasks = two_machines(40)
    names = ["pump", UGLY]
    matrix = np.where(tasks[:, None] == np.array(names), (y == "yes").astype(float)[:, None], np.nan)
    found = trade_off_page(ParetoMKLClassifier(), X, matrix, n_points=15)
    assert found.confusion.classes == [["0", "1"], ["0", "1"]]
    shares, sizes = found.confusion.right
    assert_array_equal(sizes, found.n_held_out)
    assert_allclose(shares, found.scores)


def test_many_classes_have_a_list_of_mistakes(driver, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(14), 12)
    X = np.column_stack([np.cos(y), np.sin(y)]) + 0.3 * rng.standard_normal((168, 2))
    file = tmp_path / "page.html"
    found = trade_off_page(ParetoMKLClassifier(), X, y, n_points=15, file=file)
    page = Page(driver, file)
    table = confusion_matrix(y[found.test], found.path.models[list(found.path.ps).index(1.0)].predict(X[found.test]))
    np.fill_diagonal(table, 0)
    shown = driver.execute_script(
        "return [...document.querySelectorAll('#confusion tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert [int(row[2].split(" of ")[0]) for row in shown] == sorted(table[table > 0], reverse=True)[:15]
    assert all(table[int(true), int(wrong)] for true, wrong, _ in shown)
    assert page.drain()[0] == []


# -------------------------------------------------------------------------------------------------------- downloads
def allow(driver, folder: Path) -> None:
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})


def saved(folder: Path, name: str) -> str:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if (folder / name).exists() and not list(folder.glob("*.crdownload")):
            return (folder / name).read_text(encoding="utf-8")
        time.sleep(0.05)
    raise AssertionError(f"{name} was not saved; there are {[file.name for file in folder.iterdir()]}")


def test_data_are_saved_as_csv(driver, sites, tmp_path):
    page, path = Page(driver, sites.file, "#p=1.0"), sites.path
    allow(driver, tmp_path)
    page.click("#tasks-card .tools button")
    rows = list(csv.DictReader(io.StringIO(saved(tmp_path, "the-tasks-at-p-1.csv"))))
    assert len(rows) == 15 * 9
    for k, row in enumerate(rows):
        i, t = divmod(k, 9)
        assert (float(row["p"]), row["task"]) == (path.ps[i], path.task_names[t])
        assert float(row["objective"]) == pytest.approx(path.objectives[i, t], rel=1e-5)
        assert float(row["held-out accuracy"]) == pytest.approx(sites.scores[i, t], rel=1e-5)
        assert float(row["low"]) == pytest.approx(sites.low[i, t], rel=1e-5)
        assert float(row["high"]) == pytest.approx(sites.high[i, t], rel=1e-5)
        assert int(row["held-out rows"]) == sites.n_held_out[t]
    page.click("#fig-kernels .tools button")
    table = list(csv.reader(io.StringIO(saved(tmp_path, "what-the-model-is-made-of.csv"))))
    shares, names = pool_shares(path.kernel_shares, path.kernel_names, MOST_COLORS - 1)
    assert table[0] == ["p", *map(plain_kernel, names)]
    assert_allclose(np.array(table[1:], dtype=float)[:, 1:], shares, rtol=1e-4, atol=1e-9)
    page.click("#confusion .tools button")
    rows = list(csv.DictReader(io.StringIO(saved(tmp_path, "confusion-between-classes.csv"))))
    assert sum(int(row["rows"]) for row in rows) == 15 * len(sites.test)
    assert {row["true class"] for row in rows} == {"'" + FORMULA, "no, none"}, (
        "no spreadsheet takes a name for a formula"
    )
    assert page.drain()[0] == []


def test_every_chart_is_saved_as_svg(driver, two, pumps, tmp_path):  # noqa: F811
    for k, result in enumerate((two, pumps)):
        folder = tmp_path / str(k)
        folder.mkdir()
        page = Page(driver, result.file)
        allow(driver, folder)
        charts = driver.find_elements("css selector", "figure.card")
        assert len(charts) == (7 if k == 0 else 9)
        for chart in charts:
            title = chart.find_element("css selector", "h2").get_attribute("textContent")
            driver.execute_script("arguments[0].querySelector('.tools button:last-child').click()", chart)
            name = re.sub("[^a-z0-9]+", "-", title.lower()).strip("-") + ".svg"
            text = saved(folder, name)
            root = ElementTree.fromstring(text)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
            assert words[0] == title[0].upper() + title[1:]
            assert "var(" not in text
            assert "<script" not in text
            assert not re.search(r"""(href|src|url\()""", text)
        for name in result.path.task_names:
            drawn = (
                ElementTree.parse(folder / "how-much-each-task-counts.svg")
                .getroot()
                .iter("{http://www.w3.org/2000/svg}text")
            )
            assert any(name in (node.text or "") for node in drawn), "the legend is in the file"
        assert page.drain()[0] == []


def test_a_saved_chart_looks_like_the_page(driver, two, tmp_path):
    """Opened alone it has the same lines in the same colours."""
    page = Page(driver, two.file)
    lines = driver.execute_script(
        "return [...document.querySelectorAll('#fig-weights .line')].slice(0, 2)"
        ".map(n => [n.getAttribute('d'), getComputedStyle(n).stroke])"
    )
    allow(driver, tmp_path)
    page.click("#fig-weights .tools button:last-child")
    saved(tmp_path, "how-much-each-task-counts.svg")
    driver.get((tmp_path / "how-much-each-task-counts.svg").as_uri())
    alone = driver.execute_script(
        "return [...document.querySelectorAll('path')].map(n => [n.getAttribute('d'), getComputedStyle(n).stroke])"
    )
    assert all(line in alone for line in lines)


def test_smooth_along_the_slider(many, two):
    for result in (many, two):
        assert len({tuple(theta) for theta in result.path.theta}) == 121
        assert result.path.gap.max() <= 1e-6


def test_pages_in_a_notebook_can_save_files(sites):
    assert 'sandbox="allow-scripts allow-downloads"' in sites._repr_html_()


def test_intervals_are_checked(two):
    with pytest.raises(ValueError, match=r"low must have shape .*, got shape \(3, 2\)"):
        write_page("never.html", two.path, scores=two.scores, low=np.ones((3, 2)))
