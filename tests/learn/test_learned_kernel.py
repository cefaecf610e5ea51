"""The learned kernel itself, and the numbers of paths and searches as frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.svm import SVC

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressor, pareto_path, sources

X, Y = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)
TASKS = RNG.integers(0, 3, len(X)).astype(str)


def test_it_serves_other_methods():
    search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0], cv=3).fit(X, Y)
    svc = SVC(kernel=search.kernel).fit(X[::2], Y[::2])
    assert svc.score(X[1::2], Y[1::2]) > 0.9
    assert_allclose(search.kernel(X[:9], X), search.kernel(X)[:9], rtol=1e-9)
    assert KernelPCA(2, kernel="precomputed").fit_transform(search.kernel(X)).shape == (150, 2)


@pytest.mark.parametrize("share", ["kernel", "function", "everything"])
def test_functions_are_sums_of_it_over_the_support(share):
    reg = ParetoMKLRegressor(share=share, normalize_y=False).fit(X[:, 1:], X[:, 0], tasks=TASKS)
    rows = reg.support_
    new, tasks = X[:, 1:] + 0.1 * RNG.standard_normal((150, 3)), TASKS[::-1]
    K = reg.kernel(new, X[rows, 1:], tasks=tasks, Z_tasks=TASKS[rows])
    values = K @ reg.dual_coef_.T + reg.intercept_
    own = values[:, 0] if values.shape[1] == 1 else values[np.arange(150), tasks.astype(int)]
    assert_allclose(own, reg.predict(new, tasks=tasks), rtol=1e-8)


@pytest.mark.parametrize("share", ["function", "everything"])
def test_without_tasks_it_is_what_tasks_have_in_common(share):
    reg = ParetoMKLRegressor(share=share).fit(X[:, 1:], X[:, 0], tasks=TASKS)
    common, known = reg.kernel(X[:, 1:]), reg.kernel(X[:, 1:], tasks=TASKS)
    same = TASKS[:, None] == TASKS
    assert_allclose(known[~same], common[~same], rtol=1e-12)
    assert (known - common)[same].max() > 0
    new = reg.kernel(X[:4, 1:], tasks=["new", "new", "other", "0"])  # a task not seen has a part of its own, too
    assert new[0, 1] > common[0, 1]
    assert_allclose(new[0, 2:], common[0, 2:4], rtol=1e-12)
    assert np.linalg.eigvalsh(known).min() > -1e-9
    with pytest.raises(ValueError, match="neither"):
        reg.kernel(X[:, 1:], X[:, 1:], tasks=TASKS)


def test_a_stack_has_values_with_training_samples_only():
    stack = np.stack([X @ X.T, (X @ X.T) ** 2], axis=2) / 100
    clf = ParetoMKLClassifier(kernels="precomputed").fit(stack, Y)
    expected = stack @ (clf.theta_ * clf.model_.bank.factor)
    assert_allclose(clf.kernel(stack), expected)
    with pytest.raises(ValueError, match="leave out Z"):
        clf.kernel(stack, stack)
    apart = ParetoMKLClassifier(share="nothing").fit(X, Y, tasks=TASKS)
    with pytest.raises(AttributeError, match="separate kernels"):
        apart.kernel(X)
    block = ParetoMKLClassifier().fit({"stack": stack, "X": X}, Y)
    with pytest.raises(AttributeError, match="precomputed block"):
        block.kernel({"stack": stack, "X": X})


def test_frames_have_one_row_per_point():
    kernels = sources({"sepal": [0, 1], "petal": [2, 3]})
    path = pareto_path(X, Y, ps=[0.5, 1, np.inf], kernels=kernels)
    frame = path.to_frame()
    assert_array_equal(frame["p"], path.ps)
    assert_array_equal(frame["share of source: petal"], path.source_shares["petal"])
    assert_array_equal(frame.filter(like="theta: "), path.theta)
    assert_array_equal(frame["objective: 1 vs 2"], path.objectives[:, 2])
    search = ParetoMKLClassifierCV(ps=[0.5, 1.0], Cs=[0.1, 1.0, 10.0], s=2.0, cv=3).fit(X, Y)
    frame = search.to_frame()
    assert list(frame) == ["C", "capacity", "p", "score", "score_std", "rank", "log_loss", "max_gap", "seconds"]
    assert frame.loc[search.best_index_, "score"] == search.best_score_
    assert dict(frame.loc[search.best_index_, ["C", "capacity", "p"]]) == search.best_params_


@pytest.mark.parametrize("share", ["nothing", "function", "everything"])
def test_frames_name_the_tasks_or_problems_of_each_way_to_share(share):
    path = pareto_path(X, Y, tasks=TASKS, share=share, kernels=sources({"sepal": [0, 1], "petal": [2, 3]}))
    frame = path.to_frame()
    assert isinstance(frame, pd.DataFrame)
    n_shares = sum(np.size(own) for own in path.source_shares.values())
    assert frame.shape == (1, 3 + n_shares + 2 * path.theta.size + 2 * path.objectives.size)
    if share == "nothing":
        assert_array_equal(frame.filter(regex="^theta: 2: 0 vs 1: ").to_numpy(), path.theta[:, 6])
