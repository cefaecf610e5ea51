"""Scores of each task with intervals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, get_scorer, make_scorer, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressor
from paretomkl._select.intervals import wilson
from paretomkl._select.metric_intervals import CLOSED_FORMS, _formula, estimate
from paretomkl._select.scorers import Part, metric_of
from paretomkl._tools.wording import CLASS_MEASURES, REGRESSION_MEASURES
from paretomkl.model_selection import make_multitask_scorer, score_by_task
from tests.oracles import explained_within_tasks
from tests.select.test_compare import priced_sites, three_sites


@pytest.fixture(scope="module")
def fitted():
    X, y, sites = three_sites(180)
    return ParetoMKLClassifier(kernels=["linear"]).fit(X[::2], y[::2], tasks=sites[::2]), X[1::2], y[1::2], sites[1::2]


def of(name, truth, response, **given):
    scorer = get_scorer(name) if isinstance(name, str) else name
    labels = metric_of(scorer).responses[0] == "predict"
    part = Part("", np.arange(len(truth)), np.asarray(truth), np.asarray(response), None)
    return estimate(metric_of(scorer), part, "predict" if labels else "decision_function", **given)


def delong(truth, scores):
    """AUC and its standard error, from all pairs."""
    positive, negative = scores[truth == 1], scores[truth == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    variance = wins.mean(axis=1).var(ddof=1) / len(positive) + wins.mean(axis=0).var(ddof=1) / len(negative)
    return wins.mean(), np.sqrt(variance)


# ------------------------------------------------------------------------------------------------ intervals
@pytest.mark.parametrize("rounded", [False, True])
def test_the_interval_of_an_area_has_the_variance_of_delong(rounded):
    """Wilson's interval of a share with that variance; with ties too."""
    rng = np.random.default_rng(0)
    truth = (np.arange(70) < 30).astype(int)
    scores = rng.normal(size=70) + truth
    scores = scores.round() if rounded else scores
    area, error = delong(truth, scores)
    found = of("roc_auc", truth, scores)
    assert found == pytest.approx((area, *wilson(area, area * (1 - area) / error**2)))
    z = norm.ppf(0.975)
    assert found.high - found.low == pytest.approx(2 * z * error, rel=0.1)
    weighted = of("roc_auc", truth, scores, weight=np.full(70, 3.0))
    assert weighted == pytest.approx(found)


@pytest.mark.parametrize("name", [*CLASS_MEASURES, *REGRESSION_MEASURES])
def test_every_score_has_an_interval_around_it(name):
    rng = np.random.default_rng(1)
    numbers = name in REGRESSION_MEASURES
    truth = rng.normal(size=60) if numbers else rng.integers(2, size=60)
    response = truth + 0.6 * rng.normal(size=60)
    if not numbers and metric_of(get_scorer(name)).responses[0] == "predict":
        response = (response > 0.5).astype(int)
    found = of(name, truth, response)
    assert found.low <= found.score <= found.high
    assert found.low < found.high
    wide = of(name, truth, response, confidence=0.99)
    assert wide.high - wide.low > found.high - found.low


@pytest.mark.parametrize("scoring", [*CLASS_MEASURES, "precision_micro", "explained_variance", "r2"])
def test_formulas_match_scikit_learn(scoring):
    """Under random weights, which bring no row twice."""
    rng, scorer = np.random.default_rng(5), get_scorer(scoring)
    metric, numbers = metric_of(scorer), scoring in REGRESSION_MEASURES
    two = scoring in ("f1", "precision", "recall", "average_precision", "roc_auc")
    truth = rng.normal(size=50) if numbers else rng.integers(2 if two else 3, size=50)
    response = (truth + rng.normal(size=50)).round(1) if numbers or not metric.of_labels else rng.permutation(truth)
    formula = _formula(metric, truth, response, metric.arguments)
    if formula is None:  # it has a variance instead
        assert metric.function in CLOSED_FORMS
        return
    weights = rng.exponential(size=(3, 50))
    expected = [metric.value(truth, response, metric.arguments | {"sample_weight": own}) for own in weights]
    assert_allclose(metric.sign * formula(weights), expected)


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "precision", "recall", "roc_auc", "f1", "f1_macro"])
def test_scores_of_one_are_not_certain(name):
    """However many rows agree, the lower end is below 1, the higher the more rows there are."""
    ends = []
    for n in (10, 100):
        truth = np.arange(n) % 2
        score, low, high = of(name, truth, truth)
        assert score == high == 1
        ends.append(low)
    assert 0.5 < ends[0] < ends[1] < 1


@pytest.mark.parametrize(
    ("name", "n"), [("accuracy", 20), ("balanced_accuracy", 30), ("roc_auc", 30), ("f1", 40), ("r2", 40)]
)
def test_intervals_cover_the_score_of_a_large_sample(name, n):
    rng = np.random.default_rng(2)

    def draw(size):
        truth = rng.permutation(np.arange(size) % 2) if name != "r2" else rng.normal(size=size)
        response = truth + (0.5 if name == "r2" else 0.45) * rng.normal(size=size)
        return truth, response if name in ("roc_auc", "r2") else (response > 0.5).astype(int)

    large = of(name, *draw(40_000), quick=True).score
    covered = [low <= large <= high for _, low, high in (of(name, *draw(n)) for _ in range(150))]
    assert np.mean(covered) > 0.86


@pytest.mark.parametrize("name", ["accuracy", "roc_auc", "r2", "f1_macro"])
def test_copies_of_a_row_say_no_more_than_the_row(name):
    """The interval of 3 copies of 40 rows, one group each, is that of 40 rows, up to the n / (n − 1) of groups."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=40) if name == "r2" else np.arange(40) % 2
    response = truth + 0.8 * rng.normal(size=40)
    response = response if name in ("r2", "roc_auc") else (response > 0.5).astype(int)
    once, copied = of(name, truth, response), np.tile(np.arange(40), 3)
    thrice = of(name, truth[copied], response[copied], groups=copied)
    assert_allclose(thrice, once, atol=0.012)
    naive = of(name, truth[copied], response[copied])
    assert naive.high - naive.low < 0.75 * (thrice.high - thrice.low)


def test_weights_count():
    """Rows of weight zero are absent; equal weights do not matter."""
    truth, response = np.arange(40) % 2, (np.arange(40) % 3 > 0).astype(int)
    plain = of("accuracy", truth[:30], response[:30])
    assert of("accuracy", truth, response, weight=np.where(np.arange(40) < 30, 2.0, 0.0)) == pytest.approx(plain)


# ------------------------------------------------------------------------------------------------ tables
def test_accuracies_by_task(fitted):
    model, X, y, sites = fitted
    table = score_by_task(model, X, y, tasks=sites)
    predicted = model.predict(X, tasks=sites)
    for k, site in enumerate(table.tasks):
        mine = sites == site
        right = np.mean(predicted[mine] == y[mine])
        assert (table.rows[k], table.scores[k]) == (mine.sum(), right)
        assert (table.low[k], table.high[k]) == pytest.approx(wilson(right, mine.sum()))
    assert table.pooled == pytest.approx((np.mean(predicted == y), *wilson(np.mean(predicted == y), len(y))))
    assert table.mean.score == pytest.approx(model.score(X, y, tasks=sites))
    assert table.mean.low == pytest.approx(table.mean.score - np.sqrt(np.sum((table.scores - table.low) ** 2)) / 3)
    frame = table.to_frame()
    assert list(frame.columns) == ["task", "rows", "score", "low", "high"]
    assert frame["task"].tolist() == [*table.tasks, "mean over the tasks", "all rows"]
    assert_allclose(frame["score"], [*table.scores, table.mean.score, table.pooled.score])
    first = f"{100 * table.scores[0]:.1f} %"
    for shown in (str(table), table._repr_html_()):
        assert first in shown
        assert f"{100 * table.low[0]:.1f} to {100 * table.high[0]:.1f}" in shown
        assert "95 % interval" in shown
    narrow = score_by_task(model, X, y, tasks=sites, confidence=0.5)
    assert (narrow.high - narrow.low < table.high - table.low).all()
    assert "50 % interval" in str(narrow)


def test_the_explained_variance_of_all_tasks(fitted):
    X, y, sites = priced_sites(120)
    train, test = np.arange(120) % 2 == 0, np.arange(120) % 2 == 1
    for share in ("kernel", "nothing", "function"):
        model = ParetoMKLRegressor(share=share).fit(X[train], y[train], tasks=sites[train])
        table = score_by_task(model, X[test], y[test], tasks=sites[test])
        predicted = model.predict(X[test], tasks=sites[test])
        expected = [r2_score(y[test][sites[test] == name], predicted[sites[test] == name]) for name in table.tasks]
        assert_allclose(table.scores, expected)
        assert table.mean.score == pytest.approx(np.mean(expected))
        everyone = np.empty(120)
        everyone[test] = predicted
        by_hand = explained_within_tasks(y, everyone, sites, np.flatnonzero(train), np.flatnonzero(test))
        assert table.pooled.score == pytest.approx(by_hand)
        assert table.pooled.low < by_hand < table.pooled.high


def test_a_search_is_scored_as_it_was_chosen(fitted):
    _, X, y, sites = fitted
    search = ParetoMKLClassifierCV(ps=1.0, Cs=1.0, kernels=["linear"], cv=2, scoring=make_multitask_scorer("roc_auc"))
    search.fit(X, y, tasks=sites)
    assert score_by_task(search, X, y, tasks=sites).measure.name == "ROC AUC"
    table = score_by_task(search, X, y, tasks=sites)
    assert table.mean.score == pytest.approx(search.score(X, y, tasks=sites))
    assert table.pooled.score == pytest.approx(np.average(table.scores, weights=table.rows))
    assert score_by_task(search, X, y, tasks=sites, scoring="worst_f1_macro").measure.name == "macro F1"


def test_models_of_any_kind():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = make_pipeline(StandardScaler(), ParetoMKLClassifier()).fit(X[::2], names[::2])
    table = score_by_task(model, X[1::2], names[1::2])
    assert table.tasks == ["all rows"]
    assert len(str(table).splitlines()) == 2
    assert table.mean == table.pooled == (table.scores[0], table.low[0], table.high[0])
    chosen = GridSearchCV(model, {"paretomklclassifier__C": [1, 10]}, scoring="f1_macro", cv=2).fit(X[::2], names[::2])
    expected = f1_score(names[1::2], chosen.predict(X[1::2]), average="macro")
    assert score_by_task(chosen, X[1::2], names[1::2]).scores[0] == pytest.approx(expected)
    thirds, foreign = np.arange(75) % 3, LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    scores = score_by_task(foreign, X[1::2], y[1::2], tasks=thirds).scores
    assert_allclose(scores, [accuracy_score(y[1::2][k::3], foreign.predict(X[1::2][k::3])) for k in range(3)])
    line = score_by_task(
        LinearRegression().fit(X[:, 1:], X[:, 0]), X[:, 1:], X[:, 0], tasks=y, groups=np.arange(150) // 5
    )
    assert (line.scores < line.pooled.score + 0.3).all()


def test_columns_of_y_share_their_rows():
    """So their errors are not independent, and the interval of the mean is as wide as those of the tasks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    signs = (X[:, :1] + 0.8 * rng.normal(size=(120, 2)) > 0).astype(float)
    Y = np.where(rng.uniform(size=signs.shape) < 0.2, np.nan, signs)
    table = score_by_task(ParetoMKLClassifier(C=0.1).fit(X[:60], Y[:60]), X[60:], Y[60:])
    assert table.rows.sum() == (~np.isnan(Y[60:])).sum()
    assert table.mean.score - table.mean.low == pytest.approx(np.mean(table.scores - table.low))
    assert table.pooled.score == pytest.approx(np.average(table.scores, weights=table.rows))
    low, high = wilson(table.pooled.score, table.rows.sum())
    assert table.pooled.high - table.pooled.low >= high - low - 1e-12


def test_weights_and_groups_of_a_table(fitted):
    model, X, y, sites = fitted
    weight = np.random.default_rng(0).uniform(0, 1, len(y)) * (np.arange(len(y)) % 5 > 0)
    table = score_by_task(model, X, y, tasks=sites, scoring="balanced_accuracy", sample_weight=weight)
    predicted = model.predict(X, tasks=sites)
    for site, score in zip(table.tasks, table.scores, strict=True):
        mine = sites == site
        by_hand = balanced_accuracy_score(y[mine], predicted[mine], sample_weight=weight[mine])
        assert score == pytest.approx(by_hand)
    plain = score_by_task(model, X, y, tasks=sites)
    wrong = np.argsort(predicted == y)  # groups of rows that are all right or all wrong
    groups = np.empty(len(y), dtype=int)
    groups[wrong] = np.arange(len(y)) // 9
    grouped = score_by_task(model, X, y, tasks=sites, groups=groups)
    assert_allclose(grouped.scores, plain.scores)
    assert grouped.pooled.high - grouped.pooled.low > 2 * (plain.pooled.high - plain.pooled.low)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"confidence": 1.0}, "confidence must be a number between 0 and 1"),
        ({"scoring": lambda *_: 0.0}, "scoring must be the name of a score"),
        ({"scoring": "speed"}, "speed"),
        ({"groups": [1, 2]}, "inconsistent numbers of samples"),
        ({"scoring": make_scorer(balanced_accuracy_score, response_method="predict_proba")}, "predict_proba"),
    ],
)
def test_bad_arguments_are_refused(fitted, given, words):
    model, X, y, sites = fitted
    with pytest.raises(ValueError, match=words):
        score_by_task(model, X, y, tasks=sites, **given)


def test_a_task_of_one_row_has_no_explained_variance_and_no_warning(recwarn):
    X, _, tasks = three_sites()
    reg = ParetoMKLRegressor(share="everything").fit(X, X[:, 0], tasks=tasks)
    rows = np.flatnonzero(tasks == tasks[0])[:5].tolist() + np.flatnonzero(tasks != tasks[0])[:1].tolist()
    table = score_by_task(reg, X[rows], X[rows, 0], tasks=tasks[rows])
    assert np.isnan(table.scores).tolist() == [n < 2 for n in table.rows]
    assert np.isfinite(table.pooled.score)
    assert not recwarn.list
