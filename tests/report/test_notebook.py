"""What paths and estimators show in a notebook."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn

from paretomkl import PAPER_PS, ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl.kernels import sources
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
