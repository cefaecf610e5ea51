"""Samples unlike those that a model has seen: values far outside their range, and novelty in the learned kernel."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_iris

from paretomkl import (
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLOutlierDetector,
    ParetoMKLRegressor,
    load_model,
    save_model,
)
from paretomkl.exceptions import MissingValueWarning, NewTaskWarning, UnlikeTrainingWarning, UnseenLevelWarning
from paretomkl.kernels import Gaussian, Linear

X, Y = load_iris(return_X_y=True)
D, T = load_diabetes(return_X_y=True)
TASKS = np.where(D[:, 1] > 0, "women", "men")


def said(predict, *args, **kwargs):
    with warnings.catch_warnings(record=True, category=UnlikeTrainingWarning) as found:
        warnings.simplefilter("always")
        predict(*args, **kwargs)
    return [one.message for one in found]


def test_values_far_outside_are_said_once_per_call():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = ParetoMKLClassifier().fit(frame, Y)
    assert said(clf.predict, frame) == []
    other = frame.copy()
    other.loc[[3, 7], "c"] = [69.0, -70.0]
    other.loc[7, "a"] = 1e6
    for predict in (clf.predict, clf.decision_function):
        (warning,) = said(predict, other)
        assert warning.rows == (3, 7)
        assert warning.columns == ("a", "c")
        assert "'c' is far outside what the model has seen (1 to 6.9) in 2 rows, such as 69 in row 3" in str(warning)
    edge = frame + 3 * (frame.max() - frame.min())  # by three widths of the range, which is not far
    assert said(clf.predict, edge - 1e-9) == []


def test_rare_and_constant_values_have_no_sharp_range():
    counts = np.zeros((50, 3))
    counts[:5, 0], counts[:, 1] = 1.0, np.arange(50)
    clf = ParetoMKLClassifier().fit(counts, np.arange(50) % 2)
    assert said(clf.predict, [[11.0, 196.0, 1e6]]) == []
    (warning,) = said(clf.predict, [[12.0, 197.0, 1e6]])
    assert warning.columns == (0, 1)


def test_the_message_is_short_however_many_columns_there_are():
    wide = np.random.default_rng(0).standard_normal((40, 300))
    names = [f"{'x' * 200}{k}" for k in range(300)]
    clf = ParetoMKLClassifier().fit(pd.DataFrame(wide, columns=names), wide[:, 0] > 0)
    (warning,) = said(clf.predict, pd.DataFrame(100 * wide, columns=names))
    assert len(str(warning)) <= 400
    assert len(warning.columns) > 250


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_searches_regressions_and_sparse_samples_know_their_ranges(form):
    search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], cv=3).fit(form(X), Y)
    (warning,) = said(search.predict, form(np.vstack([X, 50 * X[:1]])))
    assert warning.rows == (150,)
    assert warning.columns == (0, 1, 2, 3)
    blocks = {"left": X[:, :2], "right": X[:, 2:]}
    clf = ParetoMKLClassifier().fit(blocks, Y)
    (warning,) = said(clf.predict, blocks | {"right": 50 * X[:, 2:]})
    assert set(warning.columns) == {"right: 0", "right: 1"}


def test_gaps_beside_a_sparse_block_leave_its_ranges():
    rng = np.random.default_rng(0)
    counts, more = rng.poisson(0.4, (80, 6)).astype(float), rng.standard_normal((80, 3))
    more[:78, 2], more[3, 1] = np.nan, np.nan
    blocks = {"counts": csr_array(counts), "more": more}
    with pytest.warns(MissingValueWarning) as found:
        clf = ParetoMKLClassifier().fit(blocks, counts[:, 0] > 0)
    assert list(found[0].message.unused) == ["more: 2"]
    (gaps,) = said(clf.predict, blocks)
    assert gaps.columns == {"more: 1": 1}
    counts[0, 0], more[5, 0] = 500, 900
    gaps, warning = said(clf.predict, {"counts": csr_array(counts), "more": more})
    assert isinstance(gaps, MissingValueWarning)
    assert warning.columns == ("counts: 0", "more: 0")
    assert warning.rows == (0, 5)


def test_new_tasks_and_levels_are_warnings_of_the_same_kind():
    reg = ParetoMKLRegressor(share="everything").fit(D[:200], T[:200], tasks=TASKS[:200])
    tasks = TASKS[:5].copy().astype(object)
    tasks[3] = "others"
    (warning,) = said(reg.predict, D[:5], tasks=tasks)
    assert isinstance(warning, NewTaskWarning)
    assert warning.rows == (3,)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["x", "y"])[np.arange(150) % 2])
    clf = ParetoMKLClassifier().fit(frame, Y)
    (warning,) = said(clf.predict, frame.assign(kind="z"))
    assert isinstance(warning, UnseenLevelWarning)
    assert warning.columns == ("kind",)


@pytest.mark.parametrize("kernels", ["default", "paper"])
def test_novelty_is_the_distance_to_the_nearest_support_vector(kernels):
    clf = ParetoMKLClassifier(kernels=kernels, loss="squared").fit(X, Y)
    bank, theta = clf.model_.bank, clf.theta_
    side = bank.side(X)
    K = bank.cross(side, side, theta)
    apart = np.sqrt((np.diag(K)[:, None] + np.diag(K) - 2 * K).clip(min=0))
    apart = apart[~np.eye(len(K), dtype=bool)].reshape(len(K), -1)
    usual = max(np.quantile(apart.min(axis=1), 0.99), np.median(apart) / 2)
    new = X[::7] + 0.3 * np.random.default_rng(0).standard_normal(X[::7].shape)
    across = bank.cross(bank.side(new), side, theta)
    expected = np.sqrt((theta @ bank.diagonals(new))[:, None] + np.diag(K) - 2 * across).min(axis=1) / usual
    assert_allclose(clf.novelty(new), expected, rtol=1e-6)
    assert_allclose(clf.novelty(X), 0.0, atol=1e-5)


@pytest.mark.parametrize("share", ["kernel", "everything"])
def test_training_samples_are_not_novel_where_levels_repeat(share):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": pd.Categorical(rng.integers(1, 4, 150)), "x": rng.random(150)})
    y = frame["code"].astype(int) + 0.2 * rng.standard_normal(150) > 1.5
    kernels = [Linear(), Gaussian(1.0, columns=["code"])]
    clf = ParetoMKLClassifier(C=1, kernels=kernels, share=share).fit(frame, y, tasks=np.arange(150) % 3)
    assert len(clf.support_) < 50
    assert clf.novelty(frame, tasks=np.arange(150) % 3).max() <= 1


@pytest.mark.parametrize("share", ["nothing", "kernel", "function", "everything"])
def test_novelty_tells_new_samples_from_strange_ones(share):
    reg = ParetoMKLRegressor(share=share).fit(D[:250], T[:250], tasks=TASKS[:250])
    usual = reg.novelty(D[250:], tasks=TASKS[250:])
    assert np.mean(usual > 1) < 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlikeTrainingWarning)
        assert reg.novelty(10 * D[250:], tasks=TASKS[250:]).min() > np.median(usual)
        assert np.median(reg.novelty(10 * D[250:], tasks=TASKS[250:])) > 3
    both = ParetoMKLRegressor(share=share).fit(D[:250], np.column_stack([T, np.where(T > 200, np.nan, T)])[:250])
    assert both.novelty(D[250:]).shape == (len(D) - 250,)


def test_samples_far_in_the_learned_kernel_are_named():
    reg = ParetoMKLRegressor().fit(D[:250], T[:250])
    strange = D[250:].copy()
    strange[7] *= 30
    with warnings.catch_warnings(record=True, category=UnlikeTrainingWarning) as found:
        warnings.simplefilter("always")
        values = reg.novelty(strange)
    (novel,) = [one.message for one in found if "learned kernel" in str(one.message)]
    assert novel.rows == tuple(np.flatnonzero(values > 2))
    assert 7 in novel.rows
    assert "row 7" in str(novel)
    assert len(str(novel)) < 400


def test_models_keep_ranges_and_novelty_when_saved(tmp_path):
    pytest.importorskip("skops")
    search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], cv=3).fit(X, Y)
    save_model(search, tmp_path / "m.skops")
    far = 40 * X[:2]
    for model in (load_model(tmp_path / "m.skops"), pickle.loads(pickle.dumps(search))):
        assert len(said(model.predict, far)) == 1
        assert_allclose(model.novelty(X + 0.1), search.novelty(X + 0.1), rtol=1e-12)


def test_without_a_kernel_of_new_samples_there_is_no_novelty():
    stack = np.stack([X @ X.T, (X @ X.T) ** 2], axis=2) / 100
    clf = ParetoMKLClassifier(kernels="precomputed").fit(stack, Y)
    with pytest.raises(AttributeError, match="no novelty"):
        clf.novelty(stack)
    assert ParetoMKLOutlierDetector().fit(X).novelty(X[:3]).shape == (3,)
