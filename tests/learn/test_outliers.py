"""The outlier detector."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretomkl import ParetoMKLOutlierDetector, load_model, pareto_path, save_model, sources
from paretomkl.kernels import Gaussian, KernelBank

METHODS = ["one-class", "svdd"]


@pytest.fixture(scope="module")
def toy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    tasks = np.repeat(["north", "south"], 60)
    X[60:] += 3.0
    X[[5, 65]] += 9.0  # one outlier in each task
    return X, tasks


@parametrize_with_checks(
    [
        ParetoMKLOutlierDetector(tol=1e-10),
        ParetoMKLOutlierDetector("svdd", tol=1e-10),
        ParetoMKLOutlierDetector(nu=0.5, tol=1e-10),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("method", METHODS)
def test_outliers_of_each_task_are_found(toy, method):
    X, tasks = toy
    detector = ParetoMKLOutlierDetector(method, contamination=0.05).fit(X, tasks=tasks)
    found = detector.predict(X, tasks=tasks)
    assert found[5] == found[65] == -1
    for name in ("north", "south"):
        assert (found[tasks == name] == -1).sum() == 3  # a threshold for each task
    assert_array_equal(detector.fit_predict(X, tasks=tasks), found)
    # a sample that is normal in the south is an outlier in the north
    assert (detector.predict(X[66:], tasks=["north"] * 54) == -1).mean() > 0.8
    own = detector.offset_[[detector.task_names_.index(name) for name in tasks]]
    assert_allclose(detector.decision_function(X, tasks=tasks), detector.score_samples(X, tasks=tasks) - own)
    assert detector.gap_ <= 1e-3


def test_one_kernel_matches_the_one_class_svm_of_scikit_learn(toy):
    X = toy[0][:60]
    bank = KernelBank([Gaussian(2.0)], normalize="none")
    ours = ParetoMKLOutlierDetector(nu=0.3, kernels=bank, tol=1e-10).fit(X)
    total = ours.dual_coef_.sum()
    C = 1 / (0.3 * len(X))
    theirs = OneClassSVM(nu=total / (C * len(X)), gamma=1 / 8, tol=1e-10).fit(X)
    # LIBSVM has Σα = νn
    assert_allclose(ours.score_samples(X) / C, theirs.score_samples(X) - theirs.offset_, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_sources_get_one_width_each_and_share_the_weight(toy, method, tmp_path):
    X, tasks = toy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector = ParetoMKLOutlierDetector(method, kernels=sources({"a": [0, 1], "b": [2, 3]})).fit(X, tasks=tasks)
    assert detector.kernel_names_ == ["a: gaussian ×1", "b: gaussian ×1"]
    assert sum(detector.source_shares_.values()) == pytest.approx(1)
    save_model(detector, tmp_path / "detector.skops")
    assert_array_equal(
        load_model(tmp_path / "detector.skops").predict(X, tasks=tasks), detector.predict(X, tasks=tasks)
    )


def test_several_widths_give_a_warning_that_says_why(toy):
    X, tasks = toy
    bank = KernelBank([Gaussian(1.0), Gaussian(4.0)])
    with pytest.warns(UserWarning, match="cannot be learned without labels"):
        detector = ParetoMKLOutlierDetector(kernels=bank, s=1.0).fit(X, tasks=tasks)
    assert detector.theta_[1] > 0.99  # the widest, as the warning says


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"contamination": 0.0}, "contamination must be a number in"),
        ({"contamination": 0.6}, "contamination must be a number in"),
        ({"nu": 1.5}, "nu must be a number in"),
        ({"method": "forest"}, "method must be one of 'one-class', 'svdd' or a MachineKind, got 'forest'"),
    ],
)
def test_bad_parameters_are_named(toy, parameters, message):
    with pytest.raises(ValueError, match=message):
        ParetoMKLOutlierDetector(**parameters).fit(toy[0])


def test_bad_data_are_named(toy):
    X, _ = toy
    with pytest.raises(ValueError, match="Task 'alone' has only one sample"):
        ParetoMKLOutlierDetector().fit(X, tasks=["alone"] + ["others"] * 119)
    stack = np.stack([X @ X.T, (X @ X.T) ** 2], axis=-1)
    with pytest.raises(ValueError, match="k\\(x, x\\) of new samples"):
        ParetoMKLOutlierDetector("svdd", kernels="precomputed").fit(stack)
    with pytest.raises(ValueError, match=r"Unknown task 'third'.*fit a detector without tasks"):
        ParetoMKLOutlierDetector().fit(X, tasks=["first", "second"] * 60).predict(X, tasks=["third"] * 120)


@pytest.mark.parametrize("machine", METHODS)
def test_paths_without_labels(toy, machine):
    X, tasks = toy
    path = pareto_path(
        X, tasks=tasks, machine=machine, kernels=[Gaussian(2.0, columns=[0, 1]), Gaussian(2.0, columns=[2, 3])]
    )
    assert (path.gap <= 1e-3).all()
    assert set(np.unique(path.models[0].predict(X, tasks))) <= {-1, 1}


def test_detection_refuses_samples_on_a_cluster():
    """In words, and without a client."""
    pytest.importorskip("distributed")
    from paretomkl.distributed import Site, Sites

    sites = Sites([Site("a", (np.eye(4), np.ones(4)))])
    with pytest.raises(ValueError, match="Outlier detection needs all samples in one place"):
        ParetoMKLOutlierDetector().fit(sites)
