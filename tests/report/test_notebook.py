"""What paths and estimators show in a notebook."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn

from paretomkl import PAPER_PS, ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl._show.notebook import which_matter
from paretomkl._tools.shares import CALLED
from paretomkl.inspection import importance
from paretomkl.kernels import sources
from paretomkl.model_selection import score_by_task
from paretomkl.report import dense_ps

from .conftest import two_machines


@pytest.fixture(scope="module")
def path():
    X, y, tasks = two_machines(20)
    return pareto_path(X, y, tasks=tasks, ps=dense_ps(40), verbose=0)


def test_path_shows_some_points_and_a_chart(path):
    shown = path._repr_html_()
    assert shown.count("<tr>") == 1 + len(PAPER_PS)
    assert f"<td>{path.objective[-1]:#.5g}</td>" in shown
    assert "&lt;b&gt;x&lt;/b&gt;&quot;&amp;" in shown
    assert "<script" not in shown
    root = ElementTree.fromstring(shown)  # well-formed
    lines = root.findall(".//polyline")
    assert len(lines) == 2
    assert len(lines[0].get("points").split()) == 40


def test_path_of_one_point(path):
    X, y, tasks = two_machines(20)
    shown = pareto_path(X, y, tasks=tasks, ps=[3.0], verbose=0)._repr_html_()
    assert shown.count("<tr>") == 2
    assert "<svg" not in shown


def test_fitted_estimator_shows_its_weights():
    X, y, tasks = two_machines(20)
    clf = ParetoMKLClassifier(p=2.0)
    assert "certified gap" not in clf._repr_html_()
    clf.fit(X, y, tasks=tasks)
    for shown in (clf._repr_html_(), clf._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in shown  # scikit-learn's own diagram comes first
        assert f"<td>{clf.kernel_shares_.max():.1%}</td>" in shown
        assert f"<td>{clf.objectives_.max():#.5g}</td>" in shown
        assert "7 more" in shown  # of thirteen kernels
        assert "source" not in shown.rpartition("certified gap")[2]
        assert "&lt;b&gt;x" in shown
    assert re.search(r"certified gap \de-\d\d", shown)


def test_fitted_search_shows_its_weights():
    X, y, tasks = two_machines(20)
    search = ParetoMKLClassifierCV(ps=[0.5, 1.0], Cs=[1.0], cv=2, share="kernel").fit(X, y, tasks=tasks)
    heaviest = int(np.argmax(search.kernel_shares_))
    share, spread = search.kernel_shares_[heaviest], 100 * search.kernel_shares_std_[heaviest]
    assert f"<td>{share:.1%} ± {spread:.1f}</td>" in search._repr_html_()


def test_sources_have_their_own_table():
    X, y, tasks = two_machines(20)
    clf = ParetoMKLClassifier(kernels=sources({"left & low": [0, 1], "right": [2, 3]})).fit(X, y, tasks=tasks)
    shown = clf._repr_html_()
    for name, share in clf.source_shares_.items():
        assert f"<td>{name.replace('&', '&amp;')}</td><td>{share:.1%}</td>" in shown
    assert sum(clf.source_shares_.values()) == pytest.approx(1)


def test_plain_text_stays_plain():
    with sklearn.config_context(display="text"):
        assert not hasattr(ParetoMKLClassifier(), "_repr_html_")
        assert set(ParetoMKLClassifier()._repr_mimebundle_()) == {"text/plain"}


# ----------------------------------------------------------------------------------- a score, a verdict, labelled axes
@pytest.fixture(scope="module")
def search():
    X, y, tasks = two_machines(40)
    kernels = sources({"left & low": [0, 1], "right": [2, 3]})
    found = ParetoMKLClassifierCV(ps=[0.5, 1.0], Cs=[1.0], cv=3, share=["nothing", "kernel"], kernels=kernels)
    return found.fit(X, y, tasks=tasks), (X, y, tasks)


def chart_of(shown: str) -> ElementTree.Element:
    """The chart in a view; it is well-formed."""
    return ElementTree.fromstring(re.search("<svg role=.*?</svg>", shown, re.DOTALL)[0])


def test_a_search_shows_score_verdict_and_axes(search):
    found, _ = search
    shown = found._repr_html_()
    low, high = found.honest_interval_
    score = f"Accuracy {100 * found.honest_score_:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f})"
    assert f"<b>{score} over 3 folds" in shown
    assert f"Chosen: {CALLED[found.best_share_]} (share = {found.best_share_})" in shown
    assert found.sharing_in_words_ in shown
    texts = [node.text for node in chart_of(shown).iter("text")]
    assert texts[-1] == "accuracy of each way to share in %, mean over the folds ± standard error"
    assert {"nothing", "kernel"} <= set(texts)
    unfitted = ParetoMKLClassifierCV()._repr_html_()
    assert "Chosen" not in unfitted
    assert "sk-top-container" in unfitted


def test_a_search_over_p_shows_its_scores():
    X, y, tasks = two_machines(20)
    found = ParetoMKLClassifierCV(ps=[0.5, 1.0, 2.0], Cs=[1.0], cv=2, share="kernel").fit(X, y, tasks=tasks)
    texts = [node.text for node in chart_of(found._repr_html_()).iter("text")]
    assert {"p = 0.5", "p = 1", "p = 2"} <= set(texts)
    assert texts[-1].startswith("accuracy of each p in %")
    alone = ParetoMKLClassifierCV(ps=[0.5, 1.0], Cs=[1.0], cv=2).fit(X[:20], y[:20])
    assert "<svg role=" not in alone._repr_html_(), "p has no effect on one task"


def test_an_importance_shows_a_verdict_and_axes(search):
    found, (X, y, tasks) = search
    measured = importance(found, X, y, tasks=tasks, n_repeats=1)
    shown = measured._repr_html_()
    assert which_matter(measured.names, measured.low, measured.high) in html.unescape(shown)
    chart = chart_of(shown)
    texts = [node.text for node in chart.iter("text")]
    assert texts[-1] == "loss in accuracy if permuted, in points, with 95 % interval"
    assert "left & low" in texts
    # the dots are where the axis says
    ticks = [(float(node.get("x")), float(node.text.replace("−", "-"))) for node in chart.iter("text")
             if re.fullmatch(r"[−\d.]+", node.text)]  # fmt: skip
    (x0, v0), (x1, v1) = ticks[0], ticks[-1]
    dots = [v0 + (float(dot.get("cx")) - x0) * (v1 - v0) / (x1 - x0) for dot in chart.iter("circle")]
    assert dots == pytest.approx(sorted(100 * measured.mean, reverse=True), abs=0.01 * (v1 - v0))


def test_what_matters_is_said_by_its_interval():
    low, high = np.array([0.1, -0.2, -0.4, np.nan]), np.array([0.3, 0.2, -0.1, np.nan])
    said = which_matter(["a", "b", "c", "d"], low, high)
    assert said == "Shown to matter: a. Better left out: c. Not shown to matter: b and d."


def test_a_path_says_what_p_does_and_labels_its_axes(path):
    shown = path._repr_html_()
    assert "With p = ∞ instead of p = 1, the harder task&#x27;s objective" in shown
    assert "Objectives are not scores" in shown
    assert "exponent p</text>" in shown
    assert "change of each objective from p = 1, in %</text>" in shown


def test_scores_mark_the_lowest_task(search):
    found, (X, y, tasks) = search
    table = score_by_task(found, X, y, tasks=tasks)
    shown = table._repr_html_()
    worst = html.escape(table.tasks[int(np.argmin(table.scores))])
    assert shown.count("(lowest)") == 1
    assert f'<tr style="font-weight:bold"><td>{worst} (lowest)</td>' in shown
