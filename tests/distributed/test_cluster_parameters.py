"""Every parameter means the same on a cluster as in one place, or is refused by name.

Parameters are changed several at a time, because a fit on a cluster takes a tenth of a second. A change that would make
no difference to the fit proves nothing, so each of them is shown to matter.
"""

from __future__ import annotations

from inspect import signature
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import paretomkl
from paretomkl import (
    KernelBank,
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLOutlierDetector,
    ParetoMKLRegressor,
    ParetoMKLRegressorCV,
    pareto_path,
)
from paretomkl.baselines import IndependentMKL
from paretomkl.distributed import Site, Sites
from paretomkl.scalarizations import PowerMean
from paretomkl.weight_sets import LsBall
from tests.learn.test_own_parts import GENTLE

distributed = pytest.importorskip("distributed")
delayed, array = pytest.importorskip("dask").delayed, pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # max_iter=2 is no mistake

BANK = KernelBank(["linear", "poly", ("rbf", {"sigma": 1.0})], normalize="trace")
SOLVING = {"s": 2.0, "C": 0.3, "tol": 1e-6, "task_weight": {0: 9.0}, "task_scale": "samples", "kernels": BANK}
INERT = {"n_jobs": 2, "verbose": 1, "random_state": 0}
EARLY = {"solver": "bcd", "max_iter": 2}
OWN_PARTS = {"scalarization": PowerMean(4.0), "weight_set": LsBall(1.6), "tol": 1e-6}
CHANGES = {
    ParetoMKLClassifier: [
        SOLVING | INERT | {"p": 3.0, "multi_class": "one-vs-rest", "class_weight": {0: 4.0, 2: 0.3}},
        EARLY | {"loss": "squared", "class_weight": "balanced"},
        OWN_PARTS | {"loss": GENTLE},
    ],
    ParetoMKLRegressor: [
        SOLVING | INERT | {"p": 3.0, "normalize_y": False},
        EARLY | {"loss": "epsilon_insensitive", "epsilon": 0.4, "tol": 1e-6},
        OWN_PARTS,
    ],
    pareto_path: [
        SOLVING | {"ps": [3.0], "n_jobs": 2, "verbose": 1, "multi_class": "one-vs-rest", "class_weight": "balanced"},
        EARLY | {"machine": "svr", "epsilon": 0.4, "normalize_y": False},
        OWN_PARTS | {"machine": "logistic"},
    ],
}
SEARCHES = [ParetoMKLClassifierCV, ParetoMKLRegressorCV]
REFUSED = {
    "share": (["nothing", "function", "everything"], "in one place"),
    "kernels": (["precomputed"], "in one place"),
    "probability": ([True], "in one place"),
    "solver": (["tseng"], "'tseng' needs"),
    "machine": (["one-class", "svdd"], "labels or targets"),
    "C": ([np.ones(62)], "one number"),
}


class Data(NamedTuple):
    """Three tasks of different size; in the classification, no two have the same classes."""

    X: np.ndarray
    tasks: np.ndarray
    weight: np.ndarray
    labels: np.ndarray
    numbers: np.ndarray

    def y(self, learner, params):
        regression = learner is ParetoMKLRegressor or params.get("machine") == "svr"
        return self.numbers if regression else self.labels

    def here(self, learner, params):
        return {"X": self.X, "y": self.y(learner, params), "tasks": self.tasks, "sample_weight": self.weight}

    def sites(self, learner, params):
        y, rows = self.y(learner, params), [np.flatnonzero(self.tasks == t) for t in (2, 0, 1)]
        return {"X": Sites([Site(int(self.tasks[r[0]]), (self.X[r], y[r], self.weight[r])) for r in rows])}

    def dask(self, learner, params):
        X, y = np.column_stack([self.X, self.tasks]), self.y(learner, params)
        given = {"X": array.from_array(X, chunks=(40, 4)), "y": array.from_array(y, chunks=40)}
        return given | {"sample_weight": array.from_array(self.weight, chunks=50)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    tasks = rng.permutation(np.repeat([0, 1, 2], [26, 20, 16]))
    X = rng.standard_normal((62, 3))
    numbers = np.tanh(X @ rng.standard_normal((3, 3)))[np.arange(62), tasks] + 0.3 * rng.standard_normal(62)
    labels = np.empty(62, dtype=int)
    for t, classes in enumerate([[0, 1, 2], [0, 1], [1, 2]]):
        rank = np.argsort(np.argsort(numbers[tasks == t]))
        labels[tasks == t] = np.array(classes)[rank * len(classes) // len(rank)]
    return Data(X, tasks, rng.random(62) + 0.1, labels, 5 * numbers * (1 + tasks) + tasks)


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


class Outcome(NamedTuple):
    """The task set as text: names, sources, classes, centres and all else that predictions need to know."""

    tasks: str
    objectives: np.ndarray
    theta: np.ndarray
    predictions: np.ndarray


def outcome(learner, params, given, data):
    """What is learned from the data given, with predictions for the samples of all tasks."""
    if learner is pareto_path:
        path = pareto_path(**given, **{"ps": [1.0]} | params)
        predictions = path.models[0].predict(data.X, data.tasks)
        return Outcome(repr(path.models[0].tasks), path.objectives[0], path.theta[0], predictions)
    model = learner(**params).fit(**given)
    if model.task_column is None:
        predictions = model.predict(data.X, tasks=data.tasks)
    else:
        predictions = model.predict(np.column_stack([data.X, data.tasks]))
    return Outcome(repr(model.model_.tasks), model.objectives_, model.theta_, predictions)


def differences(far, near):
    """The fields in which two outcomes differ."""
    return [name for name, a, b in zip(Outcome._fields, far, near, strict=True) if not alike(a, b)]


def alike(a, b):
    return a == b if isinstance(a, str) else a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-5)


named = attrgetter("__name__")
BUNDLES = [pytest.param(learner, params, id=named(learner)) for learner, all_of in CHANGES.items() for params in all_of]


@pytest.mark.parametrize("learner", CHANGES, ids=named)
def test_every_parameter_is_changed_or_refused(learner):
    known = signature(learner).parameters
    data_of_fit = {"X", "y", "tasks", "sample_weight"}
    if learner is not pareto_path:
        assert signature(learner.fit).parameters.keys() == {"self", "warm_from", *data_of_fit}
    changed = {name for params in CHANGES[learner] for name in params}
    refused = {
        "share",
        "task_column",
        "probability",
    }  # every other value of the first and last; Dask arrays below all have a task column
    assert not known.keys() - changed - refused - data_of_fit, "add these parameters to CHANGES"
    for params in CHANGES[learner]:
        assert not [name for name, value in params.items() if value is known[name].default], "these are the defaults"


def test_a_fit_on_a_cluster_continues_no_other(data, client):
    old = ParetoMKLClassifier().fit(**data.here(ParetoMKLClassifier, {}))
    with pytest.raises(ValueError, match="warm_from needs all samples in one place"):
        ParetoMKLClassifier().fit(**data.sites(ParetoMKLClassifier, {}), warm_from=old)


def test_every_estimator_is_here():
    here = [*CHANGES.keys() - {pareto_path}, *SEARCHES, ParetoMKLOutlierDetector]
    assert {name for name in paretomkl.__all__ if name.startswith("ParetoMKL")} == {named(one) for one in here}


@pytest.mark.parametrize(("learner", "params"), BUNDLES)
def test_each_change_matters(data, learner, params):
    near = outcome(learner, params, data.here(learner, params), data)
    for name in params.keys() - INERT:
        others = {other: value for other, value in params.items() if other != name}
        assert differences(outcome(learner, others, data.here(learner, others), data), near), name
    unweighted = data.here(learner, params) | {"sample_weight": None}
    assert differences(outcome(learner, params, unweighted, data), near), "sample_weight"


@pytest.mark.parametrize(("learner", "params"), BUNDLES)
def test_sites_learn_what_is_learned_in_one_place(client, data, learner, params):
    near, far = (outcome(learner, params, given(learner, params), data) for given in (data.here, data.sites))
    assert not differences(far, near)


@pytest.mark.parametrize(("learner", "params"), BUNDLES)
def test_dask_arrays_learn_what_is_learned_in_one_place(client, data, learner, params):
    params = params | {"task_column": 3}
    far = data.dask(learner, params)
    near = {name: values.compute() for name, values in far.items()}
    assert not differences(*(outcome(learner, params, given, data) for given in (far, near)))


# ------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize("where", ["sites", "dask"])
@pytest.mark.parametrize(
    ("learner", "name", "value"),
    [
        pytest.param(learner, name, value, id=f"{named(learner)}-{name}={value!s:.12}")
        for learner in CHANGES
        for name, (values, _) in REFUSED.items()
        for value in values
        if name in signature(learner).parameters
    ],
)
def test_what_needs_all_samples_in_one_place_is_refused_by_name(client, data, where, learner, name, value):
    params = {name: value} | ({"task_column": 3} if where == "dask" else {})
    with pytest.raises(ValueError, match=REFUSED[name][1]):
        outcome(learner, params, getattr(data, where)(learner, params), data)


@pytest.mark.parametrize("where", ["sites", "dask"])
def test_searches_and_detectors_are_refused(client, data, where):
    X = getattr(data, where)(ParetoMKLClassifier, {})["X"]
    for search in SEARCHES:
        with pytest.raises(ValueError, match="search splits"):
            search().fit(X)
    with pytest.raises(ValueError, match="Outlier detection"):
        ParetoMKLOutlierDetector().fit(X)


def test_baselines_refuse_sites(data):
    with pytest.raises(ValueError, match="IndependentMKL needs"):
        IndependentMKL().fit(**data.sites(ParetoMKLClassifier, {}))


@pytest.mark.parametrize("learner", CHANGES, ids=named)
def test_sites_refuse_what_they_have_themselves(client, data, learner):
    given = data.sites(learner, {})
    with pytest.raises(ValueError, match="do not pass task_column"):
        outcome(learner, {"task_column": 3}, given, data)
    for name in ("y", "tasks", "sample_weight"):
        with pytest.raises(ValueError, match=f"do not pass {name}"):
            outcome(learner, {}, given | {name: data.tasks}, data)


def test_an_unknown_label_in_class_weight_is_named(client, data):
    """A site need not have all labels of class_weight, but one of the sites must."""
    with pytest.raises(ValueError, match="label 7"):
        ParetoMKLClassifier(class_weight={7: 2.0}).fit(**data.sites(ParetoMKLClassifier, {}))


@pytest.mark.parametrize("where", ["sites", "one place"])
def test_estimators_refuse_column_names_of_mixed_types_and_paths_do_not(client, data, where):
    frame = pytest.importorskip("pandas").DataFrame(data.X, columns=["a", "b", 3])
    given = {"X": frame, "y": data.labels, "tasks": np.full(62, "s")}
    given = {"X": Sites([Site("s", (frame, data.labels))])} if where == "sites" else given
    with pytest.raises(TypeError, match="string names"):
        ParetoMKLClassifier().fit(**given)
    assert list(pareto_path(**given, ps=[1.0]).reader.feature_names_in_) == ["a", "b", "3"]


# --------------------------------------------------------------------------------------------------- nothing there
@pytest.mark.parametrize("empty", [0, 1, 2])
def test_frames_with_an_empty_partition(client, data, empty):
    pandas, dataframe = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    whole = pandas.DataFrame(data.X, columns=["a", "b", "c"]).assign(site=data.tasks, y=data.labels)
    edges = np.insert([0, 30, 62], empty, [0, 30, 62][empty])
    parts = [delayed(whole.iloc[a:b]) for a, b in pairwise(edges)]
    table = dataframe.from_delayed(parts, meta=whole.iloc[:0])
    assert (table.map_partitions(len).compute() == 0).tolist().index(True) == empty
    far, near = (
        ParetoMKLClassifier(task_column="site").fit(frame.drop(columns="y"), frame["y"]) for frame in (table, whole)
    )
    assert_allclose(far.theta_, near.theta_, rtol=0, atol=1e-9)
    assert_array_equal(far.support_, near.support_)


def test_arrays_with_empty_chunks(client, data):
    X = array.from_array(data.X, chunks=((0, 30, 0, 32, 0), 3))
    far = ParetoMKLClassifier().fit(X, array.from_array(data.labels, chunks=20), tasks=data.tasks)
    near = ParetoMKLClassifier().fit(data.X, data.labels, tasks=data.tasks)
    assert_allclose(far.theta_, near.theta_, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="no rows"):
        ParetoMKLClassifier().fit(X[:0], data.labels[:0], tasks=data.tasks[:0])


def test_a_site_without_samples_is_named(client, data):
    with pytest.raises(ValueError, match="'closed' has no samples"):
        pareto_path(Sites([Site("open", (data.X, data.labels)), Site("closed", (data.X[:0], data.labels[:0]))]))
