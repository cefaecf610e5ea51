"""What a search loses without its sources, columns and kernels."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.model_selection import GroupKFold, LeaveOneOut

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressorCV, sources
from paretomkl._fitting.tracing import pose, trace, trace_without
from paretomkl._tools.running import Progress
from paretomkl.inspection import importance
from paretomkl.inspection._importance import mean_and_error
from paretomkl.kernels import Gaussian, Linear
from paretomkl.model_selection import make_multitask_scorer

WINE = load_wine(return_X_y=True)
DIABETES = tuple(part[:200] for part in load_diabetes(return_X_y=True))
THREE = sources({"acids": [0, 1, 2], "phenols": [5, 6, 7, 8], "rest": [3, 4, 9, 10, 11, 12]})
TWO = sources({"body": [0, 1, 2, 3], "blood": [4, 5, 6, 7, 8, 9]})
ONE = {"ps": [1.0], "Cs": [1.0], "s": 1.1, "capacity": 0.5, "cv": 3}
TASKS = np.where(DIABETES[0][:, 1] > 0, "women", "men")


@pytest.fixture(scope="module")
def wine():
    return ParetoMKLClassifierCV(**ONE, kernels=THREE).fit(*WINE)


# --------------------------------------------------------------------------------------------- what is measured
@pytest.mark.parametrize("p", [0.5, 1.0, 5.0])
def test_leaving_kernels_out_solves_the_problem_of_the_others(p):
    X, y = WINE
    clf = ParetoMKLClassifier(p=p, C=10.0, kernels=THREE, tol=1e-5)
    training = clf.read_data(X[::2], y[::2])
    parts, bounds = clf.parts([p]), training.bounds(10.0)
    posed = clf.posed(training, bounds, parts)
    masks = list(posed.bank.by_name().values())
    (_, whole), *others = trace_without(posed, masks, [p], parts, Progress(1, 1e-5, 0))
    for mask, (bank, without) in zip(masks, others, strict=True):
        assert_array_equal(bank.factor, np.where(mask, 0.0, posed.bank.factor))
        alone = pose(training, bounds, posed.bank.some(np.flatnonzero(~mask)), parts)
        (expected,) = trace(alone.problem, [p], parts.solver, Progress(1, 1e-5, 0))
        assert without.objective == pytest.approx(expected.objective, rel=2e-5)
        assert without.objective > whole.objective


def test_permuting_a_column_is_what_prediction_shows(wine):
    X, y = WINE
    found = importance(wine, X, y, by="column", n_repeats=1)
    lost = np.zeros((3, X.shape[1]))
    for k, (train, test) in enumerate(wine.folds_.searched):
        model = clone(wine.best_estimator_).fit(X[train], y[train])
        order = np.random.default_rng(0).permutation(len(test))
        for c in range(X.shape[1]):
            changed = X[test]
            changed[order, c] = changed[np.roll(order, 1), c]
            lost[k, c] = model.score(X[test], y[test]) - model.score(changed, y[test])
    assert_allclose(found.mean, lost.mean(axis=0), atol=1e-12)
    ratio = np.mean([len(test) / len(train) for train, test in wine.folds_.searched])
    assert_allclose(found.high - found.mean, mean_and_error(lost, ratio, 0.95)[1], atol=1e-12)


def test_a_source_is_its_columns_together(wine):
    found = importance(wine, *WINE, measure="permute", n_repeats=1)
    X, y = WINE
    train, test = wine.folds_.searched[0]
    assert found.names == ["acids", "phenols", "rest"]
    assert found.score == pytest.approx(wine.best_score_, abs=0.02)
    assert_array_equal(importance(wine, X, y, n_repeats=1).mean, found.mean, "permuting is the default")
    kept = importance(wine, X, y, measure="leave-out", n_repeats=1)
    assert found.low[2] > 0, "the rest has colour and proline"
    assert found.mean[2] > kept.mean[2], "a model can learn to do without"
    assert len(train) + len(test) == kept.n_samples


@pytest.mark.parametrize("share", ["nothing", "kernel", "function", "everything"])
def test_kernels_of_a_source_alone_exchange_whole_samples(share, monkeypatch):
    search = ParetoMKLRegressorCV(**ONE, kernels=TWO, share=share).fit(*DIABETES, tasks=TASKS)
    short = importance(search, *DIABETES, tasks=TASKS, n_repeats=1)
    monkeypatch.setattr("paretomkl._fitting.exchange.see_nothing_else", lambda *_: False)
    assert_allclose(importance(search, *DIABETES, tasks=TASKS, n_repeats=1).mean, short.mean, rtol=1e-9)


def test_several_permutations_of_a_source_narrow_its_interval(wine, monkeypatch):
    usual = importance(wine, *WINE, n_repeats=1)
    monkeypatch.setattr("paretomkl.inspection._importance.PERMUTATIONS", 1)
    single = importance(wine, *WINE, n_repeats=1)
    assert (usual.high - usual.low).sum() < 0.9 * (single.high - single.low).sum()
    assert_allclose(usual.mean, single.mean, atol=0.1)


def test_noise_has_a_share_but_no_importance():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((140, 28))
    y = np.where(X[:, :4].sum(axis=1) > 0, "b", "a")
    kernels = sources({"signal": slice(0, 4), "noise": slice(4, 28)})
    search = ParetoMKLClassifierCV(**(ONE | {"Cs": [10.0]}), kernels=kernels).fit(X, y)
    found = importance(search, X, y)
    assert_allclose(found.shares, list(search.source_shares_.values()))
    assert found.shares[1] > 0.2
    assert found.low[0] > 0.1
    assert found.low[1] <= 0


@pytest.mark.parametrize("share", ["nothing", "kernel", "function", "everything"])
def test_every_way_to_share_has_importances_by_task(share):
    X, y = DIABETES
    search = ParetoMKLRegressorCV(**ONE, kernels=TWO, share=share).fit(X, y, tasks=TASKS)
    for how in ({}, {"measure": "permute"}, {"by": "column"}):
        found = importance(search, X, y, tasks=TASKS, n_repeats=1, **how)
        assert found.score == pytest.approx(search.best_score_, abs=5e-3)
        assert found.mean.max() > 0.05
        assert found.task_names == ["men", "women"]
        frame = found.to_frame(by_task=True)
        assert list(frame.columns) == ["task", "name", "mean", "low", "high"]
        assert len(frame) == 2 * len(found.names)
        assert (frame["low"] <= frame["mean"]).all()


@pytest.mark.parametrize("share", ["kernel", "everything"])
def test_a_matrix_with_gaps_and_several_classes(share):
    X, y = load_iris(return_X_y=True)
    both = np.column_stack([y >= 1, y == 2]).astype(float)
    both[::7, 1] = np.nan
    search = ParetoMKLClassifierCV(**ONE, kernels=sources({"sepal": [0, 1], "petal": [2, 3]}), share=share).fit(X, both)
    found = importance(search, X, both, n_repeats=1)
    assert found.score == pytest.approx(search.best_score_, abs=0.01)
    assert found.mean[1] > found.mean[0]
    assert found.by_task.shape == (3, 2, 2)


def test_a_scorer_of_the_user_agrees_with_the_default_score():
    X, y = load_iris(return_X_y=True)
    tasks = np.arange(150) % 2
    kernels = sources({"sepal": [0, 1], "petal": [2, 3]})
    given = {"n_repeats": 2, "tasks": tasks}
    own = importance(ParetoMKLClassifierCV(**ONE, kernels=kernels).fit(X, y, tasks=tasks), X, y, **given)
    scorer = make_multitask_scorer("accuracy")
    search = ParetoMKLClassifierCV(**ONE, kernels=kernels, scoring=scorer).fit(X, y, tasks=tasks)
    theirs = importance(search, X, y, **given)
    for name in ("mean", "low", "high", "score"):
        assert_allclose(getattr(theirs, name), getattr(own, name), atol=1e-12)
    assert not theirs.task_names


def test_kernels_are_left_out_one_by_one():
    X, y = WINE
    search = ParetoMKLClassifierCV(**ONE, kernels=[Gaussian(1.0), Linear(), Gaussian(30.0)]).fit(X, y)
    found = importance(search, X, y, by="kernel", n_repeats=1)
    assert found.names == search.kernel_names_
    assert_allclose(found.shares, search.kernel_shares_)


# ------------------------------------------------------------------------------------------------ forms of X
def test_frames_blocks_sparse_matrices_and_task_columns_give_the_same():
    X, y = WINE
    blocks = {"left": X[:, :6], "right": pd.DataFrame(X[:, 6:], columns=[f"c{k}" for k in range(7)])}
    of_blocks = ParetoMKLClassifierCV(**ONE).fit(blocks, y)
    halves = sources({"left": slice(0, 6), "right": slice(6, 13)})
    plain = importance(ParetoMKLClassifierCV(**ONE, kernels=halves).fit(X, y), X, y, n_repeats=1)
    found = importance(pickle.loads(pickle.dumps(of_blocks)), blocks, y, n_repeats=1)
    assert found.names == ["left", "right"]
    assert_allclose(found.mean, plain.mean, atol=1e-12)
    assert importance(of_blocks, blocks, y, by="column", n_repeats=1).names[-1] == "right: c6"

    X, y = DIABETES
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(10)]).assign(sex=TASKS)
    in_column = ParetoMKLRegressorCV(**ONE, task_column="sex").fit(frame, y)
    beside = ParetoMKLRegressorCV(**ONE).fit(X, y, tasks=TASKS)
    found = importance(in_column, frame, y, by="column", n_repeats=1)
    assert found.names == list(frame.columns[:10])
    expected = importance(beside, X, y, tasks=TASKS, by="column", n_repeats=1)
    assert_allclose(found.mean, expected.mean, atol=1e-12)
    assert expected.names == [str(k) for k in range(10)]

    counts = np.random.default_rng(0).poisson(0.4, (90, 6)).astype(float)
    y = (counts[:, 0] + counts[:, 1] > 0).astype(int)
    one = importance(ParetoMKLClassifierCV(**ONE).fit(counts, y), counts, y, by="column", n_repeats=1)
    same = csr_array(counts)
    other = importance(ParetoMKLClassifierCV(**ONE).fit(same, y), same, y, by="column", n_repeats=1)
    assert other.mean[:2].min() > other.mean[2:].max()
    assert one.mean[:2].min() > one.mean[2:].max()


def test_a_block_that_is_a_stack_of_kernels_counts_as_a_source():
    X, y = load_iris(return_X_y=True)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    blocks = {"kernels": np.stack([Z @ Z.T, (Z @ Z.T) ** 2], axis=2), "columns": X[:, :2]}
    search = ParetoMKLClassifierCV(**ONE).fit(blocks, y)
    for measure in ("leave-out", "permute"):
        found = importance(search, blocks, y, measure=measure, n_repeats=1)
        assert found.mean[0] > found.mean[1]
    assert importance(search, blocks, y, by="column", n_repeats=1).names == ["columns: 0", "columns: 1"]


# --------------------------------------------------------------------------------------------- folds and words
def test_repeats_narrow_the_interval_and_begin_with_the_folds_of_the_search(wine):
    once, often = (importance(wine, *WINE, n_repeats=n) for n in (1, 4))
    assert (often.high - often.low).sum() < 0.8 * (once.high - once.low).sum()
    again = importance(wine, *WINE, n_repeats=4)
    assert_array_equal(again.mean, often.mean)
    assert once.n_folds == often.n_folds == 3


def test_given_folds_are_kept():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) // 5 % 5
    kernels = sources({"sepal": [0, 1], "petal": [2, 3]})
    search = ParetoMKLClassifierCV(**(ONE | {"cv": GroupKFold(5)}), kernels=kernels).fit(X, y, groups=groups)
    assert importance(search, X, y).n_repeats == 1
    assert importance(search, X, y, by="column").n_repeats == 3
    with pytest.raises(ValueError, match="always gives the same folds"):
        importance(search, X, y, measure="leave-out", n_repeats=2)
    some = np.r_[0:8, 50:58]
    alone = ParetoMKLClassifierCV(**(ONE | {"cv": LeaveOneOut()}), kernels=kernels).fit(X[some], y[some])
    with pytest.raises(ValueError, match="two held-out samples"):
        importance(alone, X[some], y[some], measure="permute")
    assert importance(alone, X[some], y[some]).measure == "leave-out", "nothing to exchange with"


def test_what_it_says(wine):
    found = importance(wine, *WINE, n_repeats=1, confidence=0.9)
    for text in (str(found), found._repr_html_()):
        assert "90 % interval" in text
        assert "stand in for each other" in " ".join(text.split())
        assert "phenols" in text
    frame = found.to_frame()
    assert list(frame.columns) == ["name", "mean", "low", "high"]
    assert frame["mean"].is_monotonic_decreasing
    with pytest.raises(ValueError, match="one task"):
        found.to_frame(by_task=True)
    wide = replace(found, confidence=0.99)
    assert "99 %" in wide.in_words


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "task"}, "by must be 'source', 'column' or 'kernel'"),
        ({"measure": "shap"}, "measure must be"),
        ({"by": "column", "measure": "leave-out"}, "only be permuted"),
        ({"by": "kernel", "measure": "permute"}, "Kernels are left out"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"n_repeats": 0}, "n_repeats must be"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(wine, given, message):
    with pytest.raises(ValueError, match=message):
        importance(wine, *WINE, **given)


def test_other_data_and_other_models_are_refused(wine):
    X, y = WINE
    with pytest.raises(ValueError, match="not the training data"):
        importance(wine, X, y[::-1])
    assert_array_equal(importance(wine, pd.DataFrame(X), pd.Series(y)).mean, importance(wine, X, y).mean)
    weight = np.linspace(1, 2, len(y))
    weighted = ParetoMKLClassifierCV(**ONE, kernels=THREE).fit(X, y, sample_weight=weight)
    assert importance(weighted, X, y, sample_weight=weight, n_repeats=1).mean.shape == (3,)
    with pytest.raises(ValueError, match="sample_weight"):
        importance(weighted, X, y)
    with pytest.raises(TypeError, match="needs a search"):
        importance(ParetoMKLClassifier().fit(X, y), X, y)
    with pytest.raises(ValueError, match="no named sources"):
        importance(ParetoMKLClassifierCV(**ONE).fit(X, y), X, y)
    single = ParetoMKLClassifierCV(**ONE, kernels=sources({"all": slice(0, 13)})).fit(X, y)
    with pytest.raises(ValueError, match="only one source"):
        importance(single, X, y, measure="leave-out")
    lone = ParetoMKLClassifierCV(**ONE, kernels=sources({"one": [9], "others": slice(0, 9)})).fit(X[:, :10], y)
    assert importance(lone, X[:, :10], y, n_repeats=1).mean[0] > 0, "a source may have a single column"
