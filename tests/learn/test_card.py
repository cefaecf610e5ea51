"""Model cards, against what the models contain."""

from __future__ import annotations

import numpy as np
import pytest

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressor, load_model, save_model
from paretomkl.inspection import importance

RNG = np.random.default_rng(0)
X, SITES = RNG.standard_normal((60, 3)), np.array(["a", "b|c"])[np.arange(60) % 3 // 2]
LABELS = np.where(X[:, 0] + 0.5 * RNG.standard_normal(60) > 0, "yes", "no")


@pytest.mark.parametrize("share", ["nothing", "kernel", "function", "everything"])
def test_cards_count_the_rows_of_tasks_and_those_in_the_file(share, tmp_path):
    clf = ParetoMKLClassifier(C=1.0, share=share).fit(X, LABELS, tasks=SITES)
    card = clf.card()
    assert "| a | 40 |" in card
    assert "| b\\|c | 20 |" in card
    kept = sum(len(one.support.rows) for one in getattr(clf.model_, "models", [clf.model_]))
    assert 0 < kept < 60
    assert f"contains {kept} of the 60 training rows" in card
    assert ("| p | 1 |" in card) == (share == "kernel")
    assert "None: the model was fitted without folds." in card
    save_model(clf, tmp_path / "m.skops")
    assert load_model(tmp_path / "m.skops").card() == card


def test_cards_of_searches_have_their_honest_score():
    search = ParetoMKLClassifierCV(ps=[1.0, 2.0], Cs=[1.0], s=1.1, capacity=1.0, cv=3, share="kernel")
    card = search.fit(X, LABELS).card()
    low, high = search.honest_interval_
    assert f"accuracy {search.honest_score_:.3f}, 95 % interval {low:.3f} to {high:.3f}" in card
    assert "| all rows | 60 |" in card
    assert f"| p | {search.best_params_['p']:g} |" in card


def test_cards_may_have_importances():
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], s=1.1, capacity=1.0, cv=3).fit(X, LABELS)
    found = importance(search, X, LABELS, by="column", n_repeats=1)
    card, best = search.card(found), int(found.mean.argmax())
    assert "## Importances" not in search.card()
    first = card.split("## Importances")[1].split("| --- | --- | --- |\n")[1].splitlines()[0]
    assert (
        first == f"| {found.names[best]} | {found.mean[best]:.3f} | {found.low[best]:.3f} to {found.high[best]:.3f} |"
    )


def test_a_ridge_contains_all_rows():
    assert "contains 60 of the 60 training rows" in ParetoMKLRegressor().fit(X, X[:, 0]).card()
