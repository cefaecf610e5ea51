"""What newcomers read first is true: the code of the README prints what it shows, and figures match stored results."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

ROOT = Path(__file__).resolve().parents[1]
README, COMPARISONS = ((ROOT / name).read_text("utf-8") for name in ("README.md", "doc/comparisons.md"))
NUMBER = re.compile(r"[+−]?\d+(?:\.\d+)?")
RAW = ("wine", "breast cancer", "iris", "digits", *(f"{name}, raw" for name in ("vehicle", "segment", "satellite")))
RAW += ("steel, raw", "robot 24, raw", "shuttle, raw")
SEVEN = ("segment", "vehicle", "landmine", "robot", "steel", "satellite", "letter")
PER_CLASS = (5, 10, 20, 30)


def stored(name: str) -> list[dict]:
    data = (ROOT / "doc" / "experiments" / name).read_bytes()
    return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)


def words(text: str) -> str:
    return " ".join(text.split())


def signed(gain: np.ndarray | float) -> str:
    """A mean, with its standard error if there are several values."""
    text = f"{np.mean(gain):+.1f}" + (f" ± {np.std(gain, ddof=1) / np.sqrt(len(gain)):.1f}" if np.ndim(gain) else "")
    return text.replace("-", "−")


# --------------------------------------------------------------------------------------------------- the code
def test_the_code_prints_what_the_readme_shows(tmp_path, monkeypatch):
    """Words are the same up to wrapping. Points may differ by one, hundredths by one: rounding differs by machine."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", README, re.M | re.S)
    assert [kind for kind, _ in blocks] == ["python", "text"]
    (_, code), (_, shown) = blocks
    printed = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # hidden from users by default
        exec(compile(code, "README.md", "exec"), names)
    printed, shown = words(printed.getvalue()), words(shown)
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    for found, said in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        decimals = len(said.partition(".")[2])
        away = abs(float(found.replace("−", "-")) - float(said.replace("−", "-")))
        assert away <= {0: 0, 1: 1, 2: 0.01}[decimals] + 1e-9, (found, said)
    needed = names["importance"](names["search"], names["X"], names["y"][names["train"]])
    assert [name for name, low in zip(needed.names, needed.low, strict=True) if low > 0] == ["sums", "frequencies"]
    assert names["search"].source_shares_["noise"] > 0.05


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 115
    assert len(README.split()) <= 1000


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:)([^)]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


# -------------------------------------------------------------------------------------------------- the picture
@pytest.fixture(scope="module")
def picture() -> dict:
    return runpy.run_path(str(ROOT / "tools" / "readme_picture.py"))


def lines_of(svg: str, methods: list[str]) -> list[np.ndarray]:
    """The points of the line of each method."""
    paths = [re.search(rf'<g id="{method}">\s*<path d="([^"]+)"', svg) for method in methods]
    return [np.array(re.findall(r"-?[\d.]+", path[1]), dtype=float) for path in paths]


def test_the_picture_shows_the_stored_results(picture):
    drawn = io.StringIO()
    picture["draw"]().savefig(drawn, format="svg")
    methods = list(picture["NAMES"])
    old, new = (lines_of(svg, methods) for svg in (picture["PICTURE"].read_text("utf-8"), drawn.getvalue()))
    for committed, fresh in zip(old, new, strict=True):
        assert len(committed) == 2 * len(PER_CLASS)
        np.testing.assert_allclose(committed, fresh, atol=0.1)
    assert all(picture["LOWEST"] < values.mean(axis=1).min() for values in picture["accuracies"]().values())


# -------------------------------------------------------------------------------------------------- the figures
@pytest.fixture(scope="module")
def accuracy():
    """Accuracy in per cent of a method on a data set, of shape (10,): its first ten splits."""
    value = {(row["set"], row["method"], row["run"]): 100 * row["accuracy"] for row in stored("accuracy.json.gz")}
    return lambda name, method: np.array([value[name, method, run] for run in range(10)])


def test_digits_from_six_sources(accuracy, picture):
    ours, svc = ([accuracy(f"mfeat {n}", method) for n in PER_CLASS] for method in ("default", "svc"))
    drawn = [method for method in picture["NAMES"] if method != "default"]
    gains, leads, sure = [], [], []
    for n, mine, other in zip(PER_CLASS, ours, svc, strict=True):
        best = max((accuracy(f"mfeat {n}", method) for method in drawn), key=np.mean)
        for below in ("logistic", "late fusion", "boosted"):
            assert accuracy(f"mfeat {n}", below).mean() < accuracy(f"mfeat {n}", "extra trees").mean()
        gains.append(mine - other)
        leads.append(mine - best)
        sure.append(ttest_rel(mine, best).pvalue < 0.05)
    assert sure == [False, True, True, True]
    points = [np.mean(gain) for gain in gains]
    ahead = [np.mean(lead) for lead in leads]
    said = f"{min(points):.1f} to {max(points):.1f} points ahead of an SVC on all columns, and {min(ahead):.1f} to "
    assert f"{said}{max(ahead):.1f} ahead of the best baseline (within the noise for 5 samples" in words(README)
    for row in (gains, leads):
        *first, last = map(signed, row)
        assert f"| {', '.join(first)} and {last} points" in COMPARISONS


def test_single_tables(accuracy):
    gains = {name: accuracy(name, "default") - accuracy(name, "svc") for name in SEVEN + RAW}
    assert f"accuracy {signed(np.mean([gains[name] for name in SEVEN]))} points on average" in COMPARISONS
    sure = [name for name in RAW if ttest_rel(accuracy(name, "default"), accuracy(name, "svc")).pvalue < 0.05]
    assert len(sure) == 6
    assert all(gains[name].mean() > 0 for name in sure)
    least = min(RAW, key=lambda name: gains[name].mean())
    assert f"(least on Vehicle, {signed(gains[least])})" in COMPARISONS
    assert least == "vehicle, raw"
    without = signed(np.mean([gains[name] for name in RAW if name != "robot 24, raw"]))
    everywhere, robot = signed(np.mean([gains[name] for name in RAW])), signed(gains["robot 24, raw"].mean())
    trees = accuracy("robot 24, raw", "boosted") - accuracy("robot 24, raw", "default")
    assert f"on Robot's 24 sensors, boosted trees are ahead by {trees.mean():.1f} points" in README
    six = "significantly better on six, "
    assert f"{without} points on average without Robot, {everywhere} with it; {six}worse on none" in README
    assert f"{without} points on average without Robot, which gains {robot[1:]} ({everywhere} with it); " in COMPARISONS


@pytest.mark.parametrize("page", [README, COMPARISONS], ids=["README", "comparisons"])
def test_several_sources(page):
    value = {(row["set"], row["method"], row["run"]): 100 * row["accuracy"] for row in stored("views.json")}
    sets, methods, runs = (sorted({key[k] for key in value}) for k in range(3))
    assert (len(sets), len(methods)) == (9, 8)
    of = {(name, method): np.array([value[name, method, run] for run in runs]) for name in sets for method in methods}
    best = {name: max((of[name, m] for m in methods if m != "ours"), key=np.mean) for name in sets}
    gains = {name: of[name, "ours"] - best[name] for name in sets}
    sure = [name for name in sets if ttest_rel(of[name, "ours"], best[name]).pvalue < 0.05]
    worse = [name for name in sure if gains[name].mean() < 0]
    assert (len(sure), worse) == (5, ["tcga3"])
    mean = signed(np.mean([gain.mean() for gain in gains.values()]))
    counts = "significantly better on four, significantly worse on one"
    assert f"{mean} points on average; {counts} (tcga3, {signed(gains['tcga3'])})" in page


def test_minefields():
    rows = [row["ways"] for row in stored("sharing.json.gz") if row["set"] == "landmine 20"]
    more = [
        100 * np.mean([ways[way]["accuracy"] - ways["kernel"]["accuracy"] for ways in rows])
        for way in ("function", "everything")
    ]
    said = f"sharing part of the function adds {more[0]:.1f} points and sharing all of it {more[1]:.1f};"
    assert said in COMPARISONS


def test_school():
    error = {(row["set"], row["method"], row["run"]): row["mse"] for row in stored("regression.json.gz")}

    def gains(method: str) -> list[np.ndarray]:
        cells = [[(f"school {share}", run) for run in range(10)] for share in (90, 75)]
        return [np.array([error[name, "ours", run] - error[name, method, run] for name, run in row]) for row in cells]

    level, pooled = gains("krr"), [gain.mean() for gain in gains("krr pooled")]
    assert f"squared error {signed(level[0])} and {signed(level[1])} for" in COMPARISONS
    assert f"ahead by {pooled[0]:.1f} and {pooled[1]:.1f} |" in COMPARISONS


@pytest.mark.parametrize("page", [README, COMPARISONS], ids=["README", "comparisons"])
def test_times(page):
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))
    loop, cvxpy, neighbours = results["4"]["tables"][0], results["4"]["tables"][1], results["6"]["tables"][1]

    def column(table: dict, name: str) -> list[float]:
        return [row[list(table["columns"]).index(name)] for row in table["rows"]]

    ratios = column(loop, "ratio")
    assert f"{min(ratios):.0f} to {max(ratios):.0f} times as fast" in page
    if page is README:
        return
    at, closer = (" and ".join(f"{ratio:.0f}" for ratio in column(cvxpy, name)) for name in ("ratio", "ratio 1e-6"))
    assert f"{at} times as fast at a gap of 1e-3, {closer} times at 1e-6" in page
    assert f"at least {min(column(neighbours, 'ratio')):.0f} times as fast" in page


def test_tables_of_accuracy_match_their_results():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import accuracy
        import comparison
        import views
    results = ROOT / "doc" / "experiments"
    methods = [*views.BASELINES, *views.LOSSES, "ours"]
    expected = {
        "accuracy": accuracy.report(comparison.read(results / "accuracy.json.gz")),
        "views": comparison.table(comparison.read(results / "views.json"), methods, views.VIEWS + views.TABLES),
        "losses": comparison.table(comparison.read(results / "losses.json"), methods, views.VIEWS + views.TABLES),
    }
    page = (ROOT / "doc" / "accuracy.md").read_text("utf-8")
    for name, table in expected.items():
        assert page.partition(f"<!-- begin {name} -->")[2].partition(f"<!-- end {name} -->")[0].strip() == table.strip()
