"""Parts of one's own in estimators, paths and searches: scalarizations, weight sets and losses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from paretomkl import (
    ParetoMKLClassifier,
    ParetoMKLOutlierDetector,
    ParetoMKLRegressor,
    load_model,
    pareto_path,
    save_model,
)
from paretomkl.machines import MACHINES, LogisticTasks, MachineKind
from paretomkl.scalarizations import PowerMean
from paretomkl.weight_sets import LsBall


@dataclass(frozen=True)
class SumOfSquares:
    """Σ g², which is convex, but not homogeneous and not a mean."""

    p = np.nan
    convex = True
    homogeneous = False

    def log_value(self, objectives):
        return np.log(self.value(objectives))

    def value(self, objectives):
        return np.sum(objectives**2, axis=-1)

    def gradient(self, objectives):
        return 2 * objectives

    def task_weights(self, objectives):
        return objectives / objectives.sum()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.sign(X[:, 0] + np.where(np.arange(80) < 30, 1, -1) * X[:, 1] * X[:, 2])
    return X, y, np.repeat(["a", "b"], [30, 50])


@pytest.mark.parametrize("estimator", [ParetoMKLClassifier, ParetoMKLRegressor])
def test_an_own_scalarization_reaches_the_optimum_of_the_power_mean_it_equals(data, estimator):
    X, y, tasks = data
    ours = estimator(p=2.0, tol=1e-6).fit(X, y, tasks=tasks)
    own = estimator(scalarization=SumOfSquares(), tol=1e-6).fit(X, y, tasks=tasks)
    assert_allclose(own.objectives_, ours.objectives_, rtol=2e-3)
    assert_allclose(own.objective_, 2 * ours.objective_**2, rtol=1e-5)
    assert own.gap_ <= 1e-6
    assert_allclose(own.task_weights_, ours.task_weights_, rtol=2e-3)


def test_a_path_with_an_own_scalarization_has_one_point(data):
    X, y, tasks = data
    path = pareto_path(X, y, tasks=tasks, scalarization=SumOfSquares(), tol=1e-5)
    assert len(path) == 1
    assert np.isnan(path.ps[0])
    assert "scalarization=scalarization" in path.refit
    assert "p=" not in path.refit
    assert_allclose(path.objective, SumOfSquares().value(path.objectives), rtol=1e-12)
    assert_allclose(path.models[0].predict(X, tasks), np.sign(path.models[0].predict(X, tasks)))


def test_a_power_mean_passed_as_an_object_is_the_one_of_that_exponent(data):
    X, y, tasks = data
    given = {"kernels": "paper", "tol": 1e-6}
    one = ParetoMKLClassifier(p=4.0, s=1.6, **given).fit(X, y, tasks=tasks)
    other = ParetoMKLClassifier(scalarization=PowerMean(4.0), weight_set=LsBall(1.6), **given).fit(X, y, tasks=tasks)
    assert_allclose(other.theta_, one.theta_, rtol=1e-12)
    assert clone(other).scalarization == PowerMean(4.0)


def test_an_own_weight_set_replaces_the_ball(data):
    X, y, tasks = data
    model = ParetoMKLRegressor(s=2.0, weight_set=LsBall(1.0)).fit(X, y, tasks=tasks)
    assert_allclose(model.theta_.sum(), 1.0)
    detector = ParetoMKLOutlierDetector(weight_set=LsBall(3.0), kernels=["linear", "rbf"])
    with pytest.warns(UserWarning, match="same columns"):
        assert_allclose(np.sum(detector.fit(X).theta_ ** 3), 1.0)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"scalarization": "mean"}, "str cannot be used as a scalarization: it lacks"),
        ({"scalarization": SumOfSquares}, "is a class; pass an instance"),
        ({"weight_set": 2.0}, "float cannot be used as a weight set: it lacks"),
        ({"scalarization": SumOfSquares(), "task_weight": [1, 2]}, "with scalarization=, give it the weights"),
        ({"scalarization": SumOfSquares(), "share": "everything"}, "no objectives for a scalarization to combine"),
        ({"loss": "absolute"}, "loss must be one of"),
        ({"loss": MACHINES["ridge"]}, "loss='ridge' learns from numbers, but this estimator from labels"),
    ],
)
def test_bad_parts_are_named(data, parameters, said):
    X, y, tasks = data
    with pytest.raises((TypeError, ValueError), match=said):
        ParetoMKLClassifier(**parameters).fit(X, y, tasks=tasks)


class GentleLogistic(LogisticTasks):
    """A loss of one's own, in one class."""

    def __init__(self, gram, targets, C, scale=None):
        super().__init__(gram, targets, 0.5 * C, scale)


GENTLE = MachineKind("gentle", GentleLogistic, "labels", decisions="log-odds", promises=LogisticTasks.promises)


def test_an_own_loss_works_in_estimators_and_paths(data, tmp_path):
    X, y, tasks = data
    own = ParetoMKLClassifier(loss=GENTLE, C=2.0, tol=1e-6).fit(X, y, tasks=tasks)
    ours = ParetoMKLClassifier(loss="logistic", C=1.0, tol=1e-6).fit(X, y, tasks=tasks)
    assert_allclose(own.decision_function(X, tasks=tasks), ours.decision_function(X, tasks=tasks), atol=1e-3)
    path = pareto_path(X, y, tasks=tasks, machine=GENTLE, C=2.0, ps=[1.0], tol=1e-6)
    assert_allclose(path.objectives[0], ours.objectives_, rtol=1e-5)
    assert "loss=loss" in path.refit
    pytest.importorskip("skops")
    save_model(own, tmp_path / "own.skops")
    with pytest.raises(ValueError, match="GentleLogistic"):
        load_model(tmp_path / "own.skops")
    name = f"{GentleLogistic.__module__}.GentleLogistic"
    assert load_model(tmp_path / "own.skops", trusted=[name]).gap_ == own.gap_


def test_a_kind_may_promise_nothing(data):
    X, y, tasks = data
    cautious = replace(GENTLE, promises=replace(GENTLE.promises, shifts=False))
    own, ours = (ParetoMKLClassifier(loss=kind, tol=1e-6).fit(X, y, tasks=tasks) for kind in (cautious, GENTLE))
    assert_allclose(own.objectives_, ours.objectives_, rtol=1e-5)
